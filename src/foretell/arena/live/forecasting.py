"""The third stage: everybody answers every moment that is ready, each once, and never after its deadline."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from foretell.arena.cells import Cell
from foretell.arena.executor import Answer, Executor, Progress
from foretell.arena.live.answers import MISSED
from foretell.arena.live.arena import LiveArena
from foretell.arena.live.book import EntryRow
from foretell.arena.live.moments import Moment
from foretell.arena.spec import RunSpec
from foretell.arena.store import CellKey
from foretell.questions.forecast import Failure
from foretell.questions.question import Question

GRACE = timedelta(minutes=10)
"""How long after a deadline a forecast that a worker made before it may still turn up in the store."""


@dataclass(frozen=True, kw_only=True)
class Forecasted:
    """What came of the moments that were ready."""

    made: int = 0
    failed: int = 0
    missed: int = 0
    """Forecasts that are now too late to be made."""
    elsewhere: int = 0
    """At which another process is at work."""
    resting: int = 0
    """Failed before, and not to be tried again yet."""
    sent: int = 0
    """Handed to workers."""
    dollars: float = 0.0
    calls: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of failures."""

    @property
    def telling(self) -> bool:
        """Whether anything happened."""
        return bool(self.made or self.failed or self.missed)

    def __str__(self) -> str:
        """For people."""
        head = f"{self.made} forecasts, {self.failed} failed, ${self.dollars:.4f} in {self.calls} calls"
        for number, told in (
            (self.sent, "with workers"),
            (self.elsewhere, "at work elsewhere"),
            (self.resting, "to be tried again later"),
            (self.missed, "missed"),
        ):
            head += f"; {number} {told}" if number else ""
        return "\n".join([head, *(f"  failed: {n} × {reason}" for reason, n in self.reasons.items())])

    def __add__(self, other: "Forecasted") -> "Forecasted":
        reasons = dict(self.reasons)
        for reason, n in other.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + n
        numbers = ("made", "failed", "missed", "elsewhere", "resting", "sent", "dollars", "calls")
        return Forecasted(**{name: getattr(self, name) + getattr(other, name) for name in numbers}, reasons=reasons)


@dataclass(frozen=True, kw_only=True)
class Open:
    """A forecast that is still to be made."""

    moment: Moment
    trial: int

    def key(self, run: str) -> CellKey:
        """Where the store keeps it."""
        assert self.moment.taken_at is not None
        return CellKey(run=run, question=self.moment.event, due=self.moment.taken_at.isoformat(), trial=self.trial)


async def forecast(arena: LiveArena, now: datetime, *, entries: Sequence[str] = ()) -> Forecasted:
    """Every entry, or those named, answers what it has not answered; what is too late is noted as missed."""
    book = arena.book
    everybody = await book.db.aside(arena.entries)
    chosen = [(entry, run) for entry, run in everybody if not entries or entry.name in entries]
    caught = await book.db.aside(book.said.catch_up, now)
    progress = Progress(total=0)
    slots = asyncio.Semaphore(arena.concurrency)
    found = await asyncio.gather(*(_Entry(arena, entry, run, progress, slots).answer(now) for entry, run in chosen))
    missed = await close_out(arena, arena.clock(), everybody)
    return sum(found, Forecasted(missed=missed, made=caught, dollars=progress.dollars, calls=progress.calls))


async def close_out(arena: LiveArena, now: datetime, everybody: Sequence[tuple[EntryRow, RunSpec]]) -> int:
    """Moments whose deadline has passed: what was not said is noted as missed, once; how many."""
    book, missed = arena.book, 0
    ready = await book.db.aside(book.moments.ready)
    over = [moment for moment in ready if moment.deadline is not None and moment.deadline <= now]
    if not over:
        return 0
    await book.db.aside(book.said.catch_up, now)
    said = await book.db.aside(book.said.for_ready)
    for moment in over:
        noted = [
            await _note_missed(arena, one.key(run.id), moment)
            for entry, run in everybody
            # Whoever came later was not there to be asked.
            if moment.taken_at is not None and entry.since <= moment.taken_at
            for one in _missing(moment, entry, run, said)
        ]
        missed += sum(map(bool, noted))
        if None not in noted and moment.deadline is not None and moment.deadline + GRACE <= now:
            await book.db.aside(book.moments.close, moment.id)
    return missed


async def _note_missed(arena: LiveArena, key: CellKey, moment: Moment) -> bool | None:
    """Whether it was missed; None while another process is still at it."""
    store = arena.store
    async with arena.claims.claim(f"cell {key.run}", _name(key)) as mine:
        if not mine:
            return None
        if await store.aside(store.answered, key):
            return False
        arena.retries.forget(key)
        before = await store.aside(store.answers_to, key)
        if any(isinstance(one, Failure) and one.trial == key.trial for one in before):
            return False
        asked = await arena.book.db.aside(arena.book.moments.question, moment.id)
        deadline = "" if moment.deadline is None else moment.deadline.isoformat()
        failure = Failure(
            question_id=key.question,
            forecaster="missed",
            as_of=asked.as_of_in("live"),
            trial=key.trial,
            error=f"{MISSED}no forecast by {deadline}",
        )
        await store.aside(store.finish_cell, key, failure)
        return True


def _missing(moment: Moment, entry: EntryRow, run: RunSpec, said: set[tuple[int, int, int]]) -> Iterator[Open]:
    for trial in range(run.trials):
        if (moment.id, entry.id, trial) not in said:
            yield Open(moment=moment, trial=trial)


def _name(key: CellKey) -> str:
    return f"{key.question} {key.due} {key.trial}"


class _Entry:
    """One entry answering, at most as many at once as all of them together may."""

    def __init__(
        self, arena: LiveArena, entry: EntryRow, run: RunSpec, progress: Progress, slots: asyncio.Semaphore
    ) -> None:
        self._arena = arena
        self._entry = entry
        self._run = run
        self._progress = progress
        self._slots = slots
        self._executor = Executor(arena.store)
        self._counts = {"made": 0, "failed": 0, "elsewhere": 0}
        self._reasons: dict[str, int] = {}

    async def answer(self, now: datetime) -> Forecasted:
        waiting, resting = await self._open(now)
        if not waiting:
            return Forecasted(resting=resting)
        questions = await self._keep_questions(waiting)
        if self._arena.send is not None and self._arena.asks_models(self._run):
            return Forecasted(sent=await self._send(waiting, questions), resting=resting)
        self._progress.total += len(waiting)
        async with self._arena.furnish(self._run) as answer, self._executor.noting(), asyncio.TaskGroup() as group:
            for one in waiting:
                group.create_task(self._one(one, questions[one.moment.id], answer))
        return Forecasted(**self._counts, resting=resting, reasons=self._reasons)

    async def _open(self, now: datetime) -> tuple[list[Open], int]:
        """What is to be answered now, first trials first, and how much rests after a failure."""
        book, retries = self._arena.book, self._arena.retries
        ready = await book.db.aside(book.moments.ready)
        said = await book.db.aside(book.said.for_ready)
        fresh = [moment for moment in ready if moment.deadline is not None and moment.deadline > now]
        missing = [one for moment in fresh for one in _missing(moment, self._entry, self._run, said)]
        waiting = [one for one in missing if not retries.rests(one.key(self._run.id), now)]
        return sorted(waiting, key=lambda one: one.trial), len(missing) - len(waiting)

    async def _keep_questions(self, waiting: Sequence[Open]) -> dict[int, Question]:
        book, store = self._arena.book, self._arena.store
        ids = {one.moment.id for one in waiting}
        questions = {id: await book.db.aside(book.moments.question, id) for id in sorted(ids)}
        await store.aside(store.keep_questions, self._run.id, questions.values())
        return questions

    async def _send(self, waiting: Sequence[Open], questions: Mapping[int, Question]) -> int:
        """Hand cells to workers. One that failed there is sent again, as another attempt, when it has rested."""
        arena, store, run = self._arena, self._arena.store, self._run.id
        cells: list[tuple[Cell, int]] = []
        for one in waiting:
            before = await store.aside(store.answers_to, one.key(run))
            if any(isinstance(told, Failure) and told.trial == one.trial for told in before):
                arena.retries.failed(one.key(run), arena.clock())
            cell = Cell(run=run, question=questions[one.moment.id], trial=one.trial)
            cells.append((cell, arena.retries.attempt(one.key(run))))
        assert arena.send is not None
        await asyncio.to_thread(arena.send, cells)
        return len(cells)

    async def _one(self, one: Open, question: Question, answer: Answer) -> None:
        async with self._slots:
            key = one.key(self._run.id)
            async with self._arena.claims.claim(f"cell {key.run}", _name(key)) as mine:
                if not mine:
                    self._counts["elsewhere"] += 1
                elif not await self._arena.store.aside(self._arena.store.answered, key):
                    await self._answered(one, Cell(run=key.run, question=question, trial=one.trial), answer)
            self._progress.done += 1
            self._arena.watch(self._progress)

    async def _answered(self, one: Open, cell: Cell, answer: Answer) -> None:
        arena = self._arena
        found = await self._executor.one(cell, answer, self._progress)
        if isinstance(found, Failure):
            self._counts["failed"] += 1
            self._progress.failed += 1
            self._reasons[found.error] = self._reasons.get(found.error, 0) + 1
            arena.retries.failed(cell.key, arena.clock())
            return
        which = (self._entry.id, one.moment.id, one.trial)
        await arena.book.db.aside(arena.book.said.say, which, one.moment.targets, found, arena.clock())
        arena.retries.forget(cell.key)
        self._counts["made"] += 1
