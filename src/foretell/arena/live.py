"""An arena at work: its file, its books, and the ways to markets, searchers and forecasters."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from foretell.arena.spec import ArenaSpec
from foretell.arena.store import ArenaEntryRow, ArenaStore
from foretell.data.markets.listing import EventSource
from foretell.data.markets.prices import PriceSource
from foretell.data.settlements.settlement import SettlementSource
from foretell.forecasters.prompt.builder import ContextBuild
from foretell.models.journal import RunMoney
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.question import Question
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import AnswerCell, RunProgress
from foretell.runs.runner import begin_run
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunCell, RunStore

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)


class ContextMaker(Protocol):
    """Makes contexts."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """The context of a question at a moment, or `CannotBuild`."""
        ...


PrepareEntry = Callable[[RunSpec], AbstractAsyncContextManager[AnswerCell]]
"""What answers the cells of an entry in this process."""
SendCells = Callable[[Sequence[tuple[RunCell, int]]], None]
"""Hands cells, each with the number of its attempt, to other processes; the same again changes nothing."""


class RetrySchedule:
    """When what failed is tried again: later and later. In memory alone: whoever starts anew tries at once."""

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


class _NotOpened:
    """Stands for a part that a command did not ask for."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        raise AssertionError("the arena was not opened for contexts")

    def __call__(self, run: RunSpec) -> AbstractAsyncContextManager[AnswerCell]:
        raise AssertionError("the arena was not opened for forecasts")


@dataclass(frozen=True, kw_only=True)
class LiveArena:
    """Everything the stages need. `open` must have been called on it once."""

    spec: ArenaSpec
    store: RunStore
    book: ArenaStore
    clock: Clock
    events: Mapping[str, EventSource] = field(default_factory=dict[str, EventSource])
    settlements: Mapping[str, SettlementSource] = field(default_factory=dict[str, SettlementSource])
    builder: ContextMaker = field(default_factory=_NotOpened)
    furnish: PrepareEntry = field(default_factory=_NotOpened)
    prices: Mapping[str, PriceSource] = field(default_factory=dict[str, PriceSource])
    send: SendCells | None = None
    """Where set, cells that ask models are answered by other processes."""
    asks_models: Callable[[RunSpec], bool] = lambda run: True
    services: tuple[str, ...] = ()
    """Whose keys there are; noted with every run."""
    concurrency: int = 50
    watch: Callable[[RunProgress], None] = lambda progress: None
    money: Callable[[str], RunMoney] = lambda run: RunMoney()
    """What a run has cost, by its id."""
    retries: RetrySchedule = field(default_factory=RetrySchedule)
    claims: ClaimTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", ClaimTable(self.store.database))

    @property
    def name(self) -> str:
        """Of the arena."""
        return self.spec.name

    def open(self) -> None:
        """Note the arena and everybody who takes part; the same again changes nothing."""
        now = self.clock()
        self.book.begin(self.spec.to_json(), now)
        for name, run in self.spec.runs.items():
            begin_run(self.store, run, now, self.services)
            self.book.enter(name, run.id, run.to_json(), now)

    def entries(self) -> list[tuple[ArenaEntryRow, RunSpec]]:
        """Who takes part now."""
        known = {(entry.name, entry.run): entry for entry in self.book.entries()}
        return [(known[name, run.id], run) for name, run in self.spec.runs.items()]
