"""The third stage: each entry makes one forecast per trial at every ready forecast time, before its deadline."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import datetime, timedelta

from foretell.arena.live import LiveArena
from foretell.arena.spec import arena_of
from foretell.arena.store import ArenaEntryRow, ArenaStore, ForecastTime
from foretell.forecasters.forecaster import CannotForecast
from foretell.forecasters.prompt.forecaster import fit
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, Failed
from foretell.runs.executor import AnswerTrial, Executor, RunProgress, TrialStopped, TrialTakenOver
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore, RunTrial, TrialKey

# The rules for every entry: its context, its deadline, and that exclusive outcomes sum to one.

MISSED_PREFIX = "missed: "
"""Prefix of the error of every failure whose only cause is a passed deadline."""
CACHED_CONTEXTS = 64
"""Maximum number of contexts held in the in-memory cache."""


class ArenaContexts:
    """Reads shared contexts from the arena's store, by question and forecast time, and verifies their digests."""

    def __init__(self, records: ArenaStore) -> None:
        self._records = records
        self._cache: OrderedDict[str, PredictionContext] = OrderedDict()

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext:
        """Return the context that was built when the question was asked. Raises `CannotForecast` if there is none."""
        records = self._records
        forecast_time = await records.db.aside(records.forecast_times.at, question.id, question.due.isoformat())
        if forecast_time is None or forecast_time.context is None:
            raise CannotForecast(f"there is no context for question {question.id} at {as_of}")
        if forecast_time.context not in self._cache:
            context = await records.db.aside(records.context, forecast_time.context)
            if context is None:
                raise CannotForecast(f"context {forecast_time.context[:12]} of question {question.id} is missing")
            self._cache[forecast_time.context] = context
            if len(self._cache) > CACHED_CONTEXTS:
                self._cache.popitem(last=False)
        return self._cache[forecast_time.context]


def with_arena_rules(answer: AnswerTrial, records: ArenaStore, clock: Clock) -> AnswerTrial:
    """Wrap `answer` so that its forecasts obey the arena's rules.

    Exclusive outcomes are made to sum to one, unless the forecaster gave `stated` itself, as baselines do. A forecast
    is rejected if it comes after the deadline, is a fallback forecast, or covers other outcomes than the question.
    Rejected forecasts are retried until the deadline.
    """

    async def answer_by_rules(trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
        if (late := await _late(records, trial.question, clock(), "no forecast was made by then")) is not None:
            return _rejected(trial, late, emit)
        forecast = await answer(trial, emit)
        if isinstance(forecast, Failure):
            return forecast
        # A forecast that was requested in time may still arrive too late.
        if (late := await _late(records, trial.question, clock(), "the forecast came later")) is not None:
            return _rejected(trial, late, emit)
        if forecast.fallback:
            return _rejected(trial, f"fallback: {forecast.problem}", emit)
        if set(forecast.p) != {target.id for target in trial.question.targets}:
            return _rejected(trial, "it covers other outcomes than the question", emit)
        if forecast.stated is None and (fitted := fit(trial.question, forecast.p)).p != forecast.p:
            # Keep the original probabilities in `stated`.
            forecast = replace(forecast, p=fitted.p, stated=forecast.p)
        return replace(forecast, trial=trial.trial)

    return answer_by_rules


async def _late(records: ArenaStore, question: Question, now: datetime, problem: str) -> str | None:
    forecast_time = await records.db.aside(records.forecast_times.at, question.id, question.due.isoformat())
    if forecast_time is None or forecast_time.deadline is None:
        return f"{MISSED_PREFIX}{question.id} was not asked at {question.due.isoformat()}"
    if now < forecast_time.deadline:
        return None
    return f"{MISSED_PREFIX}the deadline was {forecast_time.deadline.isoformat()}, and {problem}"


def _rejected(trial: RunTrial, error: str, emit: EmitEvent) -> Failure:
    emit(Failed(error=error))
    as_of = trial.question.as_of_in("live")
    return Failure(question_id=trial.question.id, forecaster="refused", as_of=as_of, trial=trial.trial, error=error)


MOST_REASONS = 8
"""Maximum number of reasons that a report lists."""
DETAIL = pattern(
    r"https?://\S+"  # addresses
    r"|\b\w+/\S*\d\S*|\b[A-Z][A-Z\d._-]*\d[A-Z\d._-]*"  # ids of events and tickers of markets
    r"|\d{4}-\d\d-\d\d\S*|(?<![\w-])\d[\d.,]*"  # times, and numbers that are not part of a name
)
"""Parts of a reason that differ from event to event."""


def reason_lines(what: str, reasons: Mapping[str, int]) -> list[str]:
    """Return lines with the most frequent reasons and their numbers; those that differ in details only count as one.

    >>> reason_lines("failed", {"gpt-5: no kalshi/A-1, KXA-1": 1, "gpt-5: no kalshi/B-2, KXB-2": 1, "gpt-4: busy": 1})
    ['  failed: 2 × gpt-5: no kalshi/A-1, KXA-1', '  failed: 1 × gpt-4: busy']
    """
    alike: dict[str, list[str]] = {}
    for reason in reasons:
        alike.setdefault(DETAIL.sub("…", reason), []).append(reason)
    often = Counter({same[0]: sum(reasons[reason] for reason in same) for same in alike.values()})
    lines = [f"  {what}: {n} × {reason}" for reason, n in often.most_common(MOST_REASONS)]
    return [*lines, *([f"  and {len(often) - MOST_REASONS} other reasons"] if len(often) > MOST_REASONS else [])]


GRACE = timedelta(minutes=10)
"""How long after a deadline the store still accepts a forecast that a worker made in time."""


@frozen
class ForecastReport:
    """Counts of what happened to the forecasts of ready forecast times."""

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
    """Number of failures by entry and reason."""

    @property
    def has_news(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.made or self.failed or self.missed)

    @property
    def problems(self) -> list[str]:
        """Failures that the host can mend: those for lack of money."""
        return [reason for reason in self.reasons if "the budget of" in reason]

    def __str__(self) -> str:
        """Format the report for people."""
        head = f"{self.made} forecasts, {self.failed} failed, {self.money} in {self.calls} calls"
        for number, words in (
            (self.sent, "with workers"),
            (self.elsewhere, "in progress elsewhere"),
            (self.resting, "waiting for a retry"),
            (self.missed, "too late"),
        ):
            head += f"; {number} {words}" if number else ""
        return "\n".join([head, *reason_lines("failed", self.reasons)])

    def __add__(self, other: "ForecastReport") -> "ForecastReport":
        numbers = [part.name for part in fields(self) if part.name != "reasons"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return ForecastReport(**sums, reasons=dict(Counter(self.reasons) + Counter(other.reasons)))


async def make_forecasts(arena: LiveArena, now: datetime, *, entries: Sequence[str] = ()) -> ForecastReport:
    """Let all entries, or those named, make their missing forecasts. Forecasts past their deadline count as missed."""
    records = arena.records
    all_entries = await records.db.aside(arena.entries)
    chosen = [(entry, run) for entry, run in all_entries if not entries or entry.name in entries]
    caught = await records.db.aside(records.said.catch_up, now)
    progress, slots = RunProgress(total=0), asyncio.Semaphore(arena.concurrency)
    before = arena.spending()
    reports = await asyncio.gather(
        *(_EntryForecaster(arena, entry, run, progress, slots).answer(now) for entry, run in chosen)
    )
    missed = await _close_out(arena, arena.clock(), all_entries)
    money = arena.spending() - before
    return sum(reports, ForecastReport(missed=missed, made=caught, money=money, calls=progress.calls))


OpenForecast = tuple[ForecastTime, int]
"""A forecast that is still to be made: its forecast time and its trial."""


def missing_forecasts(
    forecast_times: Sequence[ForecastTime], entry: ArenaEntryRow, run: RunSpec, recorded: set[tuple[int, int, int]]
) -> list[OpenForecast]:
    """Return the forecasts of an entry that are not recorded."""
    wanted = [(forecast_time, trial) for forecast_time in forecast_times for trial in range(run.trials)]
    return [
        (forecast_time, trial) for forecast_time, trial in wanted if (forecast_time.id, entry.id, trial) not in recorded
    ]


def trial_key(run: str, forecast_time: ForecastTime, trial: int) -> TrialKey:
    """Return the key under which the store keeps a forecast."""
    assert forecast_time.taken_at is not None
    return TrialKey(run=run, question=forecast_time.event, due=forecast_time.taken_at.isoformat(), trial=trial)


def _name(key: TrialKey) -> str:
    return f"{key.question} {key.due} {key.trial}"


async def _has_failed(store: RunStore, key: TrialKey) -> bool:
    answers = await store.aside(store.answers_to, key)
    return any(isinstance(answer, Failure) and answer.trial == key.trial for answer in answers)


async def _close_out(arena: LiveArena, now: datetime, all_entries: Sequence[tuple[ArenaEntryRow, RunSpec]]) -> int:
    """Record missing forecasts as missed after their deadline, once each, and return how many."""
    records, missed = arena.records, 0
    ready = await records.db.aside(records.forecast_times.ready)
    late = [
        (forecast_time, forecast_time.deadline)
        for forecast_time in ready
        if forecast_time.deadline is not None and forecast_time.deadline <= now
    ]
    if not late:
        return 0
    await records.db.aside(records.said.catch_up, now)
    recorded = await records.db.aside(records.said.for_ready)
    for forecast_time, deadline in late:
        noted = [
            await _note_missed(arena, trial_key(run.id, forecast_time, trial), forecast_time, deadline)
            for entry, run in all_entries
            # Entries that joined later could not answer.
            if forecast_time.taken_at is not None and entry.since <= forecast_time.taken_at
            for _, trial in missing_forecasts([forecast_time], entry, run, recorded)
        ]
        missed += sum(map(bool, noted))
        if None not in noted and deadline + GRACE <= now:
            await records.db.aside(records.forecast_times.close, forecast_time.id)
    return missed


async def _note_missed(arena: LiveArena, key: TrialKey, forecast_time: ForecastTime, deadline: datetime) -> bool | None:
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
        question = await arena.records.db.aside(arena.records.forecast_times.question, forecast_time.id)
        failure = Failure(
            question_id=key.question,
            forecaster="missed",
            as_of=question.as_of_in("live"),
            trial=key.trial,
            error=f"{MISSED_PREFIX}no forecast by {deadline.isoformat()}",
        )
        await store.aside(store.finish_trial, key, failure)
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
        arena, records, store, run = self._arena, self._arena.records, self._arena.store, self._run
        ready = await records.db.aside(records.forecast_times.ready)
        recorded = await records.db.aside(records.said.for_ready)
        fresh = [
            forecast_time
            for forecast_time in ready
            if forecast_time.deadline is not None and forecast_time.deadline > now
        ]
        missing = missing_forecasts(fresh, self._entry, run, recorded)
        waiting = [forecast for forecast in missing if not arena.retries.is_waiting(trial_key(run.id, *forecast), now)]
        resting = len(missing) - len(waiting)
        if not waiting:
            return ForecastReport(resting=resting)
        waiting.sort(key=lambda forecast: forecast[1])
        ids = sorted({forecast_time.id for forecast_time, _ in waiting})
        questions = {id: await records.db.aside(records.forecast_times.question, id) for id in ids}
        await store.aside(store.keep_questions, run.id, questions.values())
        if arena.send is not None and arena.asks_models(run):
            return ForecastReport(sent=await self._send(waiting, questions), resting=resting)
        self._progress.total += len(waiting)
        async with arena.prepare(run) as answer, self._executor.recording(), asyncio.TaskGroup() as group:
            for forecast_time, trial in waiting:
                run_trial = RunTrial(run=run.id, question=questions[forecast_time.id], trial=trial)
                group.create_task(self._answer_once(forecast_time, run_trial, answer))
        counts = self._counts
        return ForecastReport(
            made=counts["made"],
            failed=counts["failed"],
            elsewhere=counts["elsewhere"],
            resting=resting,
            reasons=dict(self._reasons),
        )

    async def _send(self, waiting: Sequence[OpenForecast], questions: Mapping[int, Question]) -> int:
        """Send trials to workers and return how many.

        A trial that failed there is sent again, as a new attempt, once its pause is over.
        """
        arena, trials = self._arena, list[tuple[RunTrial, int]]()
        for forecast_time, trial in waiting:
            key = trial_key(self._run.id, forecast_time, trial)
            if await _has_failed(arena.store, key):
                arena.retries.failed(key, arena.clock())
            run_trial = RunTrial(run=key.run, question=questions[forecast_time.id], trial=trial)
            trials.append((run_trial, arena.retries.attempt(key)))
        assert arena.send is not None
        await asyncio.to_thread(arena.send, trials)
        return len(trials)

    async def _answer_once(self, forecast_time: ForecastTime, trial: RunTrial, answer: AnswerTrial) -> None:
        store = self._arena.store
        async with self._slots:
            try:
                async with self._executor.claimed(trial.key) as mine:
                    if not mine:
                        self._counts["elsewhere"] += 1
                    elif not await store.aside(store.answered, trial.key):
                        await self._record(forecast_time, trial, answer)
            except (TrialStopped, TrialTakenOver):
                self._counts["elsewhere"] += 1
            self._progress.done += 1
            self._progress.money = self._arena.spending()
            self._arena.watch(self._progress)

    async def _record(self, forecast_time: ForecastTime, trial: RunTrial, answer: AnswerTrial) -> None:
        arena = self._arena
        answered = await self._executor.answer_trial(trial, answer, self._progress)
        if isinstance(answered, Failure):
            self._counts["failed"] += 1
            self._progress.failed += 1
            self._reasons[f"{self._entry.name}: {answered.error}"] += 1
            arena.retries.failed(trial.key, arena.clock())
            return
        which = (self._entry.id, forecast_time.id, trial.trial)
        await arena.records.db.aside(arena.records.said.add, which, forecast_time.targets, answered, arena.clock())
        arena.retries.forget(trial.key)
        self._counts["made"] += 1


class ArenaQuestions:
    """An arena as the question set of a run: `foretell.runs` finds it by the prefix of the dataset's name."""

    def contexts(self, spec: RunSpec, store: RunStore) -> ArenaContexts:
        """Return the contexts that the arena stored, the same for every entry."""
        return ArenaContexts(_store_of(spec, store))

    def rules(self, answer: AnswerTrial, spec: RunSpec, store: RunStore, clock: Clock) -> AnswerTrial:
        """Wrap `answer` so that forecasts are in time and exclusive outcomes sum to one."""
        return with_arena_rules(answer, _store_of(spec, store), clock)


def _store_of(spec: RunSpec, store: RunStore) -> ArenaStore:
    return ArenaStore(store.database, arena_of(spec) or "")
