"""An arena at work: its file, its books, and the ways to markets, searchers and forecasters."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from foretell.arena.cells import Cell
from foretell.arena.executor import Answer, Progress
from foretell.arena.live.book import Book, EntryRow
from foretell.arena.live.claims import Claims
from foretell.arena.live.schedule import Clock
from foretell.arena.live.spec import ArenaSpec
from foretell.arena.spec import RunSpec
from foretell.arena.store import Store
from foretell.forecasters.context.built import Built
from foretell.questions.clock import AsOf
from foretell.questions.question import Question
from foretell.sources.listing import EventSource
from foretell.sources.market import PriceSource
from foretell.sources.settlements.settlement import SettlementSource

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)


class Builds(Protocol):
    """Makes contexts."""

    async def build(self, question: Question, as_of: AsOf) -> Built:
        """The context of a question at a moment, or `CannotBuild`."""
        ...


Furnish = Callable[[RunSpec], AbstractAsyncContextManager[Answer]]
"""What answers the cells of an entry in this process."""
Send = Callable[[Sequence[tuple[Cell, int]]], None]
"""Hands cells, each with the number of its attempt, to other processes; the same again changes nothing."""


class Retries:
    """When what failed is tried again: later and later. Kept in memory: whoever starts anew tries at once."""

    def __init__(self) -> None:
        self._failed: dict[Hashable, tuple[int, datetime]] = {}

    def attempt(self, key: Hashable) -> int:
        """How often it failed before."""
        return self._failed[key][0] if key in self._failed else 0

    def rests(self, key: Hashable, now: datetime) -> bool:
        """Whether it is too early to try again."""
        return key in self._failed and self._failed[key][1] > now

    def failed(self, key: Hashable, now: datetime) -> None:
        """Once more."""
        times = self.attempt(key)
        self._failed[key] = (times + 1, now + min(LONGEST_PAUSE, FIRST_PAUSE * 4**times))

    def forget(self, key: Hashable) -> None:
        """What is over needs no memory."""
        self._failed.pop(key, None)


class _NoBuilder:
    async def build(self, question: Question, as_of: AsOf) -> Built:
        raise AssertionError("the arena was not opened for contexts")


def _not_opened(run: RunSpec) -> AbstractAsyncContextManager[Answer]:
    raise AssertionError("the arena was not opened for forecasts")


@dataclass(frozen=True, kw_only=True)
class LiveArena:
    """Everything the stages need. `open` must have been called on it once."""

    spec: ArenaSpec
    store: Store
    book: Book
    clock: Clock
    events: Mapping[str, EventSource] = field(default_factory=dict[str, EventSource])
    settlements: Mapping[str, SettlementSource] = field(default_factory=dict[str, SettlementSource])
    builder: Builds = field(default_factory=_NoBuilder)
    furnish: Furnish = _not_opened
    prices: Mapping[str, PriceSource] = field(default_factory=dict[str, PriceSource])
    send: Send | None = None
    """Where set, cells that ask models are answered by other processes."""
    asks_models: Callable[[RunSpec], bool] = lambda run: True
    services: tuple[str, ...] = ()
    """Whose keys there are; noted with every run."""
    concurrency: int = 50
    watch: Callable[[Progress], None] = lambda progress: None
    retries: Retries = field(default_factory=Retries)
    claims: Claims = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", Claims(self.store.database))

    @property
    def name(self) -> str:
        """Of the arena."""
        return self.spec.name

    def open(self) -> None:
        """Note the arena and everybody who takes part; the same again changes nothing."""
        now = self.clock()
        self.book.begin(self.spec.to_json(), now)
        for name, run in self.spec.runs.items():
            self.store.begin(run.id, run.to_json(), now.isoformat(timespec="seconds"), services=self.services)
            self.book.enter(name, run.id, run.to_json(), now)

    def entries(self) -> list[tuple[EntryRow, RunSpec]]:
        """Who takes part now."""
        known = {(entry.name, entry.run): entry for entry in self.book.entries()}
        return [(known[name, run.id], run) for name, run in self.spec.runs.items()]
