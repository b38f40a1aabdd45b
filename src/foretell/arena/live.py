"""A live arena: its spec, its stores, and its connections to markets, search engines and forecasters."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from datetime import datetime, timedelta
from typing import Protocol

from foretell.arena.spec import ArenaSpec
from foretell.arena.store import ArenaEntryRow, ArenaStore
from foretell.data.markets.listing import EventSource
from foretell.data.markets.market import PriceSource
from foretell.data.settlements.settlement import SettlementSource
from foretell.forecasters.prompt.builder import ContextBuild
from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.question import Question
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import AnswerTrial, RunProgress
from foretell.runs.runner import begin_run
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore, RunTrial

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)


class ContextMaker(Protocol):
    """Builds contexts."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """Build the context of a question at a given time. Raises `ContextUnavailable` if that is impossible."""
        ...


PrepareEntry = Callable[[RunSpec], AbstractAsyncContextManager[AnswerTrial]]
"""Opens a context manager that yields the function that answers an entry's trials in this process."""
SendTrials = Callable[[Sequence[tuple[RunTrial, int]]], None]
"""Sends trials, each with its attempt number, to other processes. Sending the same pair again has no effect."""


class RetrySchedule:
    """Decides when to retry failed work, with growing pauses.

    It is held in memory only, so a restarted process retries at once.
    """

    def __init__(self) -> None:
        self._failed: dict[Hashable, tuple[int, datetime]] = {}

    def attempt(self, key: Hashable) -> int:
        """Return how often `key` has failed so far."""
        return self._failed[key][0] if key in self._failed else 0

    def is_waiting(self, key: Hashable, now: datetime) -> bool:
        """Return whether it is too early to retry `key`."""
        return key in self._failed and self._failed[key][1] > now

    def failed(self, key: Hashable, now: datetime) -> None:
        """Record another failure of `key` and lengthen its pause."""
        times = self.attempt(key)
        self._failed[key] = (times + 1, now + min(LONGEST_PAUSE, FIRST_PAUSE * 4**times))

    def forget(self, key: Hashable) -> None:
        """Drop `key`, because it needs no more retries."""
        self._failed.pop(key, None)


class _NotOpened:
    """Placeholder for a part of the arena that a command does not need."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        raise AssertionError("the arena was not opened for contexts")

    def __call__(self, run: RunSpec) -> AbstractAsyncContextManager[AnswerTrial]:
        raise AssertionError("the arena was not opened for forecasts")


@frozen
class LiveArena:
    """Everything that the stages need. Call `open` once before use."""

    spec: ArenaSpec
    store: RunStore
    records: ArenaStore
    clock: Clock
    events: Mapping[str, EventSource] = field(default_factory=dict[str, EventSource])
    settlements: Mapping[str, SettlementSource] = field(default_factory=dict[str, SettlementSource])
    builder: ContextMaker = field(default_factory=_NotOpened)
    prepare: PrepareEntry = field(default_factory=_NotOpened)
    prices: Mapping[str, PriceSource] = field(default_factory=dict[str, PriceSource])
    send: SendTrials | None = None
    """If set, trials that ask models are sent to other processes through it."""
    asks_models: Callable[[RunSpec], bool] = lambda run: True
    services: tuple[str, ...] = ()
    """Services that API keys are available for; recorded with every run."""
    concurrency: int = 50
    watch: Callable[[RunProgress], None] = lambda progress: None
    money: Callable[[str], Money] = lambda account: Money()
    """Returns what a run, or the whole arena, has cost, given the id of its account."""
    spending: Callable[[], Money] = Money
    """Returns what this process has spent on the arena."""
    retries: RetrySchedule = field(default_factory=RetrySchedule)
    claims: ClaimTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", ClaimTable(self.store.database))

    @property
    def name(self) -> str:
        """The arena's name."""
        return self.spec.name

    @property
    def account(self) -> str:
        """The arena's account in the ledger, which includes those of its entries."""
        return self.spec.account

    def open(self) -> None:
        """Record the arena and its entries. Doing so again has no effect."""
        now = self.clock()
        self.records.begin(self.spec.to_json(), now)
        for name, run in self.spec.runs.items():
            begin_run(self.store, run, now, self.services)
            self.records.enter(name, run.id, run.to_json(), now)

    def entries(self) -> list[tuple[ArenaEntryRow, RunSpec]]:
        """Return the current entries, each with its run."""
        known = {(entry.name, entry.run): entry for entry in self.records.entries()}
        return [(known[name, run.id], run) for name, run in self.spec.runs.items()]
