"""What would be sent, to the letter, and why some of it cannot be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from foretell.arena.ledger.entry import digest_of
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

Part = Literal["forecast", "comment", "file"]
State = Literal["taken", "refused", "lost"]


@dataclass(frozen=True, kw_only=True)
class Item:
    """One forecast, comment or file."""

    question: str
    """Our name of what it is about, such as `metaculus/20925`."""
    part: Part
    content: Mapping[str, Any]
    """What is sent, to the letter; empty where nothing could be made."""
    title: str = ""
    problems: tuple[str, ...] = ()
    """Why it is not sent."""
    notes: tuple[str, ...] = ()
    """What was done to the forecast, and what else one should know."""
    standing: bool = False
    """The platform shows exactly this already."""
    follows: tuple[str, ...] = ()
    """Questions whose forecasts must stand before this is sent."""
    record: Mapping[str, Any] | None = None
    """What the ledger keeps, where the content is too long for it."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """What the ledger keeps of it."""
        return self.content if self.record is None else self.record

    @property
    def digest(self) -> str:
        """SHA-256 of what the ledger keeps."""
        return digest_of(self.kept)


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """One request as it will leave this machine, without its key; or one file as it will be written."""

    method: Literal["POST", "WRITE"]
    address: str
    body: Any


@dataclass(frozen=True, kw_only=True)
class Submission:
    """Everything that would be handed in to one platform under one name."""

    platform: str
    account: str
    items: tuple[Item, ...]
    problems: tuple[str, ...] = ()
    """What stands in the way of the whole."""

    @property
    def ready(self) -> tuple[Item, ...]:
        """What can be sent."""
        return () if self.problems else tuple(item for item in self.items if not item.problems)

    @property
    def refused(self) -> tuple[Item, ...]:
        """What cannot."""
        return tuple(item for item in self.items if item.problems)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of an item that was sent."""

    item: Item
    state: State
    reason: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the platform said in return."""


class Submitter(Protocol):
    """One platform. It has been told what the platform asks; planning reads nothing more."""

    @property
    def platform(self) -> str:
        """Its name."""
        ...

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> Submission:
        """Exactly what would be sent, with the problems of each item; the same input gives the same plan."""
        ...

    def requests(self, items: Sequence[Item]) -> list[Outgoing]:
        """The requests that would carry these items, in order."""
        ...

    async def stands(self, items: Sequence[Item]) -> list[bool]:
        """Whether each is there already: read back from the platform, before something is sent a second time."""
        ...

    async def send(self, items: Sequence[Item]) -> list[Outcome]:
        """Send each of them once, and say what is known of it. All are of the same part."""
        ...


def split_id(question: str) -> tuple[str, str]:
    """Platform and the platform's own id of a question.

    >>> split_id("metaculus/20925"), split_id("kalshi:KXFED-26DEC"), split_id("prophet_arena/who-wins:2026")
    (('metaculus', '20925'), ('kalshi', 'KXFED-26DEC'), ('prophet_arena', 'who-wins:2026'))
    """
    marks = [place for mark in "/:" if (place := question.find(mark)) >= 0]
    first = min(marks, default=len(question))
    return question[:first], question[first + 1 :]
