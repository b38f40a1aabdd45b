"""The third stage: each entry forecasts every ready moment once, and never after its deadline."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta

from foretell.arena.live import LiveArena
from foretell.arena.spec import arena_of
from foretell.arena.store import ArenaEntryRow, ArenaStore, Moment
from foretell.forecasters.forecaster import CannotForecast
from foretell.forecasters.prompt.forecaster import fit
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.models.ledger import Money
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, Failed
from foretell.runs.executor import AnswerCell, CellStopped, CellTakenOver, Executor, RunProgress
from foretell.runs.spec import RunSpec
from foretell.runs.store import CellKey, RunCell, RunStore

# The rules that hold for every entry: what it is shown, by when it must have answered, and that it adds up.

MISSED_PREFIX = "missed: "
"""Prefix of the error of every failure whose only cause is a passed deadline."""
CACHED_CONTEXTS = 64
"""Maximum number of contexts held in the in-memory cache."""


class ArenaContexts:
    """Reads shared contexts from the arena's store, by question and moment, and verifies them by their digest."""

    def __init__(self, book: ArenaStore) -> None:
        self._book = book
        self._near: OrderedDict[str, PredictionContext] = OrderedDict()

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext:
        """Return the context that was gathered when the question was asked; raise `CannotForecast` if there is none."""
        book = self._book
        moment = await book.db.aside(book.moments.at, question.id, question.due.isoformat())
        if moment is None or moment.context is None:
            raise CannotForecast(f"no context is kept for question {question.id} at {as_of}")
        if moment.context not in self._near:
            found = await book.db.aside(book.context, moment.context)
            if found is None:
                raise CannotForecast(f"context {moment.context[:12]} of question {question.id} is lost")
            self._near[moment.context] = found
            if len(self._near) > CACHED_CONTEXTS:
                self._near.popitem(last=False)
        return self._near[moment.context]


def with_arena_rules(answer: AnswerCell, book: ArenaStore, clock: Clock) -> AnswerCell:
    """Wrap `answer` so that its forecasts obey the arena's rules.

    Exclusive outcomes are made to sum to one, unless the forecaster gave `stated` itself, as baselines do. A forecast
    is refused if it comes after the deadline, is degraded, or answers about other outcomes than were asked; refused
    forecasts are retried until the deadline.
    """

    async def ruled(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        if (late := await _late(book, cell.question, clock(), "no forecast was made by then")) is not None:
            return _refused(cell, late, emit)
        found = await answer(cell, emit)
        if isinstance(found, Failure):
            return found
        # Whatever was asked for in time and came too late is not taken for what was said in time.
        if (late := await _late(book, cell.question, clock(), "the forecast came later")) is not None:
            return _refused(cell, late, emit)
        if found.degraded:
            return _refused(cell, f"degraded: {found.problem}", emit)
        if set(found.p) != {target.id for target in cell.question.targets}:
            return _refused(cell, "it answered about other outcomes than were asked", emit)
        if found.stated is None and (fitted := fit(cell.question, found.p)).p != found.p:
            # Exclusive outcomes sum to one, with what was said beside them.
            found = replace(found, p=fitted.p, stated=found.p)
        return replace(found, trial=cell.trial)

    return ruled


async def _late(book: ArenaStore, question: Question, now: datetime, told: str) -> str | None:
    moment = await book.db.aside(book.moments.at, question.id, question.due.isoformat())
    if moment is None or moment.deadline is None:
        return f"{MISSED_PREFIX}{question.id} was not asked at {question.due.isoformat()}"
    if now < moment.deadline:
        return None
    return f"{MISSED_PREFIX}the deadline was {moment.deadline.isoformat()}, and {told}"


def _refused(cell: RunCell, error: str, emit: EmitEvent) -> Failure:
    emit(Failed(error=error))
    as_of = cell.question.as_of_in("live")
    return Failure(question_id=cell.question.id, forecaster="refused", as_of=as_of, trial=cell.trial, error=error)


MOST_REASONS = 8
"""Maximum number of failure reasons that a report lists."""
GRACE = timedelta(minutes=10)
"""How long after a deadline a forecast that a worker made in time may still arrive in the store."""


@dataclass(frozen=True, kw_only=True)
class ForecastReport:
    """Counts of what happened to the forecasts of ready moments."""

    made: int = 0
    failed: int = 0
    missed: int = 0
    """Forecasts that can no longer be made because their deadline has passed."""
    elsewhere: int = 0
    """Forecasts that another process is working on."""
    resting: int = 0
    """Forecasts that failed before and are not due for a retry yet."""
    sent: int = 0
    """Forecasts handed to workers."""
    money: Money = field(default_factory=Money)
    """What it cost now."""
    calls: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of failures by reason."""

    @property
    def telling(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.made or self.failed or self.missed)

    def __str__(self) -> str:
        """Format the report for people."""
        head = f"{self.made} forecasts, {self.failed} failed, {self.money} in {self.calls} calls"
        for number, words in (
            (self.sent, "with workers"),
            (self.elsewhere, "at work elsewhere"),
            (self.resting, "to be tried again later"),
            (self.missed, "missed"),
        ):
            head += f"; {number} {words}" if number else ""
        often = Counter(self.reasons).most_common(MOST_REASONS)
        lines = [f"  failed: {n} × {reason}" for reason, n in often]
        lines += [f"  and {len(self.reasons) - len(often)} other reasons"] if len(self.reasons) > len(often) else []
        return "\n".join([head, *lines])

    def __add__(self, other: "ForecastReport") -> "ForecastReport":
        numbers = [one.name for one in fields(self) if one.name != "reasons"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return ForecastReport(**sums, reasons=dict(Counter(self.reasons) + Counter(other.reasons)))


async def make_forecasts(arena: LiveArena, now: datetime, *, entries: Sequence[str] = ()) -> ForecastReport:
    """Let all entries, or those named, make their missing forecasts, and record those that are too late as missed."""
    book = arena.book
    everybody = await book.db.aside(arena.entries)
    chosen = [(entry, run) for entry, run in everybody if not entries or entry.name in entries]
    caught = await book.db.aside(book.said.catch_up, now)
    progress, slots = RunProgress(total=0), asyncio.Semaphore(arena.concurrency)
    before = arena.spending()
    found = await asyncio.gather(
        *(_EntryForecaster(arena, entry, run, progress, slots).answer(now) for entry, run in chosen)
    )
    missed = await _close_out(arena, arena.clock(), everybody)
    money = arena.spending() - before
    return sum(found, ForecastReport(missed=missed, made=caught, money=money, calls=progress.calls))


OpenForecast = tuple[Moment, int]
"""A forecast that is still to be made: its moment and its trial."""


def _missing(
    moments: Sequence[Moment], entry: ArenaEntryRow, run: RunSpec, said: set[tuple[int, int, int]]
) -> list[OpenForecast]:
    trials = range(run.trials)
    return [(moment, trial) for moment in moments for trial in trials if (moment.id, entry.id, trial) not in said]


def _key(run: str, moment: Moment, trial: int) -> CellKey:
    """Return the key under which the store keeps a forecast."""
    assert moment.taken_at is not None
    return CellKey(run=run, question=moment.event, due=moment.taken_at.isoformat(), trial=trial)


def _name(key: CellKey) -> str:
    return f"{key.question} {key.due} {key.trial}"


async def _has_failed(store: RunStore, key: CellKey) -> bool:
    before = await store.aside(store.answers_to, key)
    return any(isinstance(one, Failure) and one.trial == key.trial for one in before)


async def _close_out(arena: LiveArena, now: datetime, everybody: Sequence[tuple[ArenaEntryRow, RunSpec]]) -> int:
    """Record missing forecasts of moments past their deadline as missed, once each, and return how many."""
    book, missed = arena.book, 0
    ready = await book.db.aside(book.moments.ready)
    over = [(moment, moment.deadline) for moment in ready if moment.deadline is not None and moment.deadline <= now]
    if not over:
        return 0
    await book.db.aside(book.said.catch_up, now)
    said = await book.db.aside(book.said.for_ready)
    for moment, deadline in over:
        noted = [
            await _note_missed(arena, _key(run.id, moment, trial), moment, deadline)
            for entry, run in everybody
            # Whoever came later was not there to be asked.
            if moment.taken_at is not None and entry.since <= moment.taken_at
            for _, trial in _missing([moment], entry, run, said)
        ]
        missed += sum(map(bool, noted))
        if None not in noted and deadline + GRACE <= now:
            await book.db.aside(book.moments.close, moment.id)
    return missed


async def _note_missed(arena: LiveArena, key: CellKey, moment: Moment, deadline: datetime) -> bool | None:
    """Record a forecast as missed and return whether it was; None if another process is still working on it."""
    store = arena.store
    async with arena.claims.claim(f"cell {key.run}", _name(key)) as mine:
        if not mine:
            return None
        if await store.aside(store.answered, key):
            return False
        arena.retries.forget(key)
        if await _has_failed(store, key):
            return False
        question = await arena.book.db.aside(arena.book.moments.question, moment.id)
        failure = Failure(
            question_id=key.question,
            forecaster="missed",
            as_of=question.as_of_in("live"),
            trial=key.trial,
            error=f"{MISSED_PREFIX}no forecast by {deadline.isoformat()}",
        )
        await store.aside(store.finish_cell, key, failure)
        return True


class _EntryForecaster:
    """Makes the forecasts of one entry; all entries together share one limit on concurrency."""

    def __init__(
        self, arena: LiveArena, entry: ArenaEntryRow, run: RunSpec, progress: RunProgress, slots: asyncio.Semaphore
    ) -> None:
        self._arena, self._entry, self._run = arena, entry, run
        self._progress, self._slots = progress, slots
        self._executor = Executor(arena.store, claims=arena.claims)
        self._counts, self._reasons = {"made": 0, "failed": 0, "elsewhere": 0}, Counter[str]()

    async def answer(self, now: datetime) -> ForecastReport:
        """Make the forecasts that are missing now, first trials first; recent failures wait for their retry."""
        arena, book, store, run = self._arena, self._arena.book, self._arena.store, self._run
        ready = await book.db.aside(book.moments.ready)
        said = await book.db.aside(book.said.for_ready)
        fresh = [moment for moment in ready if moment.deadline is not None and moment.deadline > now]
        missing = _missing(fresh, self._entry, run, said)
        waiting = [one for one in missing if not arena.retries.rests(_key(run.id, *one), now)]
        resting = len(missing) - len(waiting)
        if not waiting:
            return ForecastReport(resting=resting)
        waiting.sort(key=lambda one: one[1])
        ids = sorted({moment.id for moment, _ in waiting})
        questions = {id: await book.db.aside(book.moments.question, id) for id in ids}
        await store.aside(store.keep_questions, run.id, questions.values())
        if arena.send is not None and arena.asks_models(run):
            return ForecastReport(sent=await self._send(waiting, questions), resting=resting)
        self._progress.total += len(waiting)
        async with arena.furnish(run) as answer, self._executor.noting(), asyncio.TaskGroup() as group:
            for moment, trial in waiting:
                cell = RunCell(run=run.id, question=questions[moment.id], trial=trial)
                group.create_task(self._one(moment, cell, answer))
        counts = self._counts
        return ForecastReport(
            made=counts["made"],
            failed=counts["failed"],
            elsewhere=counts["elsewhere"],
            resting=resting,
            reasons=dict(self._reasons),
        )

    async def _send(self, waiting: Sequence[OpenForecast], questions: Mapping[int, Question]) -> int:
        """Hand cells to workers and return how many.

        A cell that failed there is sent again, as a new attempt, once its pause is over.
        """
        arena, cells = self._arena, list[tuple[RunCell, int]]()
        for moment, trial in waiting:
            key = _key(self._run.id, moment, trial)
            if await _has_failed(arena.store, key):
                arena.retries.failed(key, arena.clock())
            cell = RunCell(run=key.run, question=questions[moment.id], trial=trial)
            cells.append((cell, arena.retries.attempt(key)))
        assert arena.send is not None
        await asyncio.to_thread(arena.send, cells)
        return len(cells)

    async def _one(self, moment: Moment, cell: RunCell, answer: AnswerCell) -> None:
        store = self._arena.store
        async with self._slots:
            try:
                async with self._executor.claimed(cell.key) as mine:
                    if not mine:
                        self._counts["elsewhere"] += 1
                    elif not await store.aside(store.answered, cell.key):
                        await self._answered(moment, cell, answer)
            except (CellStopped, CellTakenOver):
                self._counts["elsewhere"] += 1
            self._progress.done += 1
            self._progress.money = self._arena.spending()
            self._arena.watch(self._progress)

    async def _answered(self, moment: Moment, cell: RunCell, answer: AnswerCell) -> None:
        arena = self._arena
        found = await self._executor.one(cell, answer, self._progress)
        if isinstance(found, Failure):
            self._counts["failed"] += 1
            self._progress.failed += 1
            self._reasons[found.error] += 1
            arena.retries.failed(cell.key, arena.clock())
            return
        which = (self._entry.id, moment.id, cell.trial)
        await arena.book.db.aside(arena.book.said.add, which, moment.targets, found, arena.clock())
        arena.retries.forget(cell.key)
        self._counts["made"] += 1


class ArenaQuestions:
    """An arena as the question set of a run: `foretell.runs` finds it by the prefix of the dataset's name."""

    def contexts(self, spec: RunSpec, store: RunStore) -> ArenaContexts:
        """Return the contexts that the arena stored, which are the same for every entry."""
        return ArenaContexts(_store_of(spec, store))

    def rules(self, answer: AnswerCell, spec: RunSpec, store: RunStore, clock: Clock) -> AnswerCell:
        """Wrap `answer` so that forecasts are in time and exclusive outcomes sum to one."""
        return with_arena_rules(answer, _store_of(spec, store), clock)


def _store_of(spec: RunSpec, store: RunStore) -> ArenaStore:
    return ArenaStore(store.database, arena_of(spec) or "")
