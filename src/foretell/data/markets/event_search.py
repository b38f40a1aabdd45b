"""Looking for events by what they are about, on the platforms that answer without a key. For live use only."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from foretell.data.http import SourceError
from foretell.data.markets.listing import ListedEvent, ListingReport, UnsupportedEvent, require_live
from foretell.data.payload import Payload
from foretell.questions.as_of import AsOf


@dataclass(frozen=True, kw_only=True)
class EventQuery:
    """What is looked for."""

    as_of: AsOf
    """The moment of looking, which snapshots carry. Its mode must be live."""
    phrases: tuple[str, ...]
    """Words to search by, the most exact first."""
    near: Callable[[str], float]
    """From a title to how near it is to what is looked for, so that only the nearest are read whole."""
    limit: int = 8
    """Most events read whole."""

    def __post_init__(self) -> None:
        require_live(self.as_of)

    def nearest(self, rows: Iterable[Payload], title: str) -> list[Payload]:
        """The rows whose title is nearest, nearest first; none that has nothing in common with what is looked for."""
        ranked = [(self.near(row.words(title)), n, row) for n, row in enumerate(rows)]
        return [row for score, _, row in sorted(ranked, key=lambda one: (-one[0], one[1])) if score > 0][: self.limit]


class EventSearch(Protocol):
    """Finds open events of a platform by words."""

    async def search(self, query: EventQuery) -> list[ListedEvent]:
        """The open events that may be what is looked for. Raises `SourceError` where the platform does not answer."""
        ...


async def read_open(source: Any, rows: Sequence[Payload], as_of: AsOf) -> list[ListedEvent]:
    """Rows as events by a platform's own reader; those that cannot be read, or are over, are left out."""
    found: list[ListedEvent] = []
    for row in rows:
        try:
            event: ListedEvent = await source.read(row, as_of, ListingReport())
        except (SourceError, UnsupportedEvent, ValueError):
            continue
        if event.status == "open":
            found.append(event)
    return found
