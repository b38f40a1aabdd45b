"""A visit to a round of ForecastBench: pull it, newest values, forecasts, combination, check, file, upload."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from foretell.data.datasets.forecastbench_download import (
    FIRST_ROUND,
    FORECASTBENCH_URL,
    ROUND_DAYS,
    ForecastBenchDownload,
    pulled_rounds,
    read_pulled,
)
from foretell.data.datasets.question_set import questions_digest, union
from foretell.data.files import DownloadCache, write_atomically
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.service import needs_key
from foretell.frozen import frozen
from foretell.number_text import duration
from foretell.plugins import exists, load, variables_in_words
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.value_age import ValueAge
from foretell.report.run_plan import RunPlan
from foretell.runs.due_prices import keep_due_prices
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import PreparedRun, prepare_run
from foretell.runs.settings import Settings, clock_of
from foretell.runs.spec import AUTO, DEFAULT, QuestionsSpec, RunSpec
from foretell.runs.store import RunStore
from foretell.tournaments.connection import open_round, open_sender
from foretell.tournaments.forecastbench import (
    PLATFORM,
    TOKEN_VARIABLE,
    BucketFolder,
    ForecastBenchTeam,
    checked_submission,
    closed_round,
    file_bytes,
)
from foretell.tournaments.money import PaidResult
from foretell.tournaments.settings import MODEL_FREE, ForecastBenchSettings
from foretell.tournaments.state import RoundState, Row
from foretell.tournaments.submission import DONE_STATUSES
from foretell.tournaments.visit import Visit, VisitOptions, why_unusable

LATEST = "latest"
MOST_STALE = 0.1
"""Largest share of stale values with which a round is sent without being told to."""
AT_ONCE = 16
"""How many questions are answered without a model at the same time; they mostly wait for data."""
DAY = timedelta(days=1)


# The result.


@frozen
class RoundResult(PaidResult):
    """What one visit to a round did."""

    tournament: str = PLATFORM
    round: str
    organization: str
    entry: str
    questions: int = 0
    answered: int = 0
    """How many questions have a forecast."""
    by_agents: int = 0
    """How many of them agents contributed to."""
    values: int = 0
    """How many forecasts stand on a value of a series."""
    stale: int = 0
    """How many of those values are older than their sources could have given."""
    coverage: tuple[str, ...] = ()
    file: Path | None = None
    """The written file, if any."""
    uploaded: str | None = None
    next_step: str | None = None
    """What is left for you to do."""
    forecasts: tuple[Row, ...] = ()
    """One row per target: the submitted number, and those of both forecasters."""
    problems: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """3 if answers are missing or the file could not be written or uploaded."""
        return 3 if self.problems else 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats for the reader."""
        return (*self.notes, *self.problems)

    def __str__(self) -> str:
        if self.plan is not None:
            return f"ForecastBench {self.round}: {self.plan}"
        by = f"{self.by_agents} with agents" if self.by_agents else "all without a model"
        if not self.questions:
            return f"ForecastBench {self.round}: nothing was done"
        counts = f"{self.answered} of {self.questions} questions answered, {by}"
        lines = [f"ForecastBench {self.round}: {counts}; {self.money_text}"]
        lines += [f"values of series: {self.values - self.stale} of {self.values} fresh"] if self.values else []
        lines += [*self.coverage, *([f"Wrote {self.file}"] if self.file else [])]
        lines += [f"Uploaded to {self.uploaded}"] if self.uploaded else []
        return "\n".join([*lines, *([self.next_step] if self.next_step else [])])


# Downloading rounds.


async def pull_rounds(
    named: str, own: ForecastBenchSettings, settings: Settings, options: VisitOptions
) -> tuple[str, list[str]]:
    """Download the round and earlier ones with their outcomes; return its due date and what could not be downloaded.

    Raises NoOpenRound if something is to be submitted and the round is closed.
    """
    cache = DownloadCache(settings.home / PLATFORM)
    url = settings.addresses.get(PLATFORM) or FORECASTBENCH_URL
    async with AsyncHttpClient(limits=HttpLimits(attempts=3), access=settings.access) as client:
        source, notes = ForecastBenchDownload(cache, client, url=url), list[str]()
        try:
            day = named if named not in ("", LATEST) else await _newest(source, cache, settings, notes)
            _check_open(day, options, clock_of(settings)())
            if day not in pulled_rounds(cache):
                await source.pull([day])
        except SourceError as error:
            problem = f"the question set could not be fetched: {error}"
            raise InputError(problem, hint="start it again when the network is available") from None
        due = date.fromisoformat(day)
        before = (due - timedelta(days=ROUND_DAYS * n) for n in range(1, own.past_rounds + 1))
        notes += await _pull_past(source, [str(round_day) for round_day in before if round_day >= FIRST_ROUND])
        read = [due_price.state for due_price in await keep_due_prices(cache, [day], settings) if not due_price.bytes]
        notes += [f"prices on the due date: {state}; the older, published prices are used" for state in read]
        earlier = sum(pulled_round < day for pulled_round in pulled_rounds(cache))
        options.tell(f"round {day}; {earlier} earlier rounds are here to learn from")
        return day, notes


async def _newest(source: ForecastBenchDownload, cache: DownloadCache, settings: Settings, notes: list[str]) -> str:
    """Return the newest round; today's if it is on this machine and the source cannot be reached."""
    try:
        return await source.latest()
    except SourceError as error:
        today = clock_of(settings)().date().isoformat()
        if today not in pulled_rounds(cache):
            raise
        notes.append(f"the newest round could not be looked up, so today's round on this machine is used: {error}")
        return today


async def _pull_past(source: ForecastBenchDownload, days: Sequence[str]) -> list[str]:
    """Download earlier rounds, newest first, skipping days without a round."""
    for number, day in enumerate(days):
        try:
            await source.pull([day])
        except InputError:
            continue  # There was no round on that day.
        except SourceError as error:
            return [f"outcomes of {len(days) - number} earlier rounds could not be updated: {error}"]
    return []


class NoOpenRound(InputError):
    """The round does not accept files today."""


def _check_open(day: str, options: VisitOptions, now: datetime) -> None:
    """Refuse a round that is not open now, unless nothing will be submitted."""
    try:
        due = date.fromisoformat(day)
    except ValueError:
        raise InputError(
            f"{day!r} is not a round", hint="write its due date, such as forecastbench:2026-08-02"
        ) from None
    if options.sandbox or options.plan or options.dry_run or not (closed := closed_round(day, now)):
        return
    following = due + timedelta(days=ROUND_DAYS * max(0, (now.date() - due).days // ROUND_DAYS + 1))
    raise NoOpenRound(closed, hint=f"the next one is due on {following}; --sandbox does everything but send")


def missing_keys(questions: Sequence[Question], settings: Settings) -> list[str]:
    """Return notes on newest values that cannot be read because a key is missing."""
    kinds = Counter(
        ("series", question.series.provider) if question.series is not None else ("markets", question.source)
        for question in questions
    )
    notes: list[str] = []
    for (kind, name), count in sorted(kinds.items()):
        plugin = load(kind, name) if exists(kind, name) else None
        if plugin is not None and needs_key(plugin) and not settings.key(name):
            variables = variables_in_words(getattr(plugin, "key_variables", ()))
            notes.append(f"{count} questions of {name} use the value in the question set: no {variables}")
    return notes


# The visit.


@dataclass(kw_only=True)
class RoundVisit(Visit[RoundState, RoundResult, RunSpec | None]):
    """One visit to a round. Questions are answered without a model, and also by agents if there is a model."""

    own: ForecastBenchSettings
    team: ForecastBenchTeam
    day: str
    questions: Sequence[Question] = ()
    model_free: PreparedRun = field(init=False)
    agents: PreparedRun | None = None
    by_model_free: dict[str, Forecast] = field(default_factory=dict[str, Forecast])
    by_agents: dict[str, Forecast] = field(default_factory=dict[str, Forecast])
    handed_in: Row = field(default_factory=Row)
    """Fields of the result: what was written and uploaded."""
    problems: list[str] = field(default_factory=list[str])
    refused: bool = False
    """Whether too many values are stale for the round to be sent."""

    def __post_init__(self) -> None:
        # In the sandbox a round is asked as of its due date, so that nothing later is used.
        mode = "backtest" if self.options.sandbox else "live"
        asked = QuestionsSpec(dataset=PLATFORM, rounds=(self.day,), leaky_questions="keep")
        at_once = AT_ONCE if self.spec is None else max(AT_ONCE, self.spec.concurrency)
        self._model_free = RunSpec(questions=asked, forecaster=MODEL_FREE, mode=mode, concurrency=at_once)
        if self.spec is not None:
            # The weights of agents, price and model-free answer were learnt on earlier rounds.
            rule = DEFAULT if self.spec.combine == AUTO else self.spec.combine
            self.spec = replace(self.spec, questions=asked, mode=mode, combine=rule)

    def read_state(self) -> RoundState:
        """Return the state of earlier visits."""
        return RoundState.read(self.folder / "state.json", round=self.day)

    async def look(self) -> Sequence[Question]:
        """Return all questions of the round."""
        cache = DownloadCache(self.settings.home / PLATFORM)
        history = union(PLATFORM, [read_pulled(cache, day) for day in pulled_rounds(cache) if day <= self.day])
        self.questions = read_pulled(cache, self.day).questions
        # Fetch the newest values in the sandbox as well, as of the round's own day.
        benchmark = Benchmark(questions=history.only(self.questions), history=history, own=True)
        digest = questions_digest(benchmark.questions.questions)
        self.model_free = prepare_run(self._model_free.with_digest(digest), benchmark)
        self.agents = None if self.spec is None else prepare_run(self.spec.with_digest(digest), benchmark)
        self.notes += missing_keys(self.questions, self.settings)
        return self.questions

    def planned(self, questions: Sequence[Question]) -> RunPlan:
        """Return what the visit would ask and cost, and whether there is time for it."""
        plan = self.plan_of(self.agents or self.model_free)
        left = self._seconds_left()
        if left is not None and plan.seconds > left:
            short = f"agents have {duration(max(0.0, left))}: if time runs out, the model-free answer is used"
            return replace(plan, notes=(*plan.notes, short))
        return plan

    def batches(self, questions: Sequence[Question]) -> list[Sequence[Question]]:
        """Return all questions at once: the file is sent as a whole."""
        plan = self.planned(questions)
        self.options.tell(f"ForecastBench {self.day}: {plan}")
        self._begin()
        return [questions]

    async def forecast(self, questions: Sequence[Question]) -> list[Forecast]:
        """Return the answers of agents, combined with the model-free ones, or those alone where agents gave none."""
        self._ask_stale_again()
        await self.execute(self.model_free, self.options.watch)
        self.by_model_free = self._answers()
        self._check_values()
        if self.refused:
            return []
        if self.agents is not None:
            self.by_agents = await self._ask_agents(self.agents)
        final = self._final
        silent = [question.id for question in questions if question.id not in final]
        if silent:
            named = f"{', '.join(silent[:5])}{' and others' if len(silent) > 5 else ''}"
            self.notes.append(f"{len(silent)} questions have no forecast: {named}; the benchmark uses 0.5 for them")
        return list(final.values())

    def _answers(self) -> dict[str, Forecast]:
        """Return the stored answers without a model, by question."""
        with closing(RunStore(self.settings.store)) as store:
            answers = list(store.answers(self.model_free.spec.id))
        return {answer.question_id: answer for answer in answers if isinstance(answer, Forecast)}

    def _ask_stale_again(self) -> None:
        """Delete answers of earlier visits that stand on stale values, unless a file with them was written."""
        if self.state.file:
            return
        stale = {id for id, answer in self._answers().items() if answer.value is not None and answer.value.stale}
        with closing(RunStore(self.settings.store)) as store:
            store.forget_answers([trial.key for trial in self.model_free.run_trials() if trial.question.id in stale])

    def _check_values(self) -> None:
        """Note how many values are stale, and refuse to send the round if there are too many."""
        if not self.stale:
            return
        problem = f"{len(self.stale)} of {len(self.values)} values are older than their sources could have given"
        sent = not (self.options.sandbox or self.options.dry_run or self.state.file)
        accepted = self.options.accept_stale or self.own.accept_stale
        if sent and not accepted and len(self.stale) > MOST_STALE * len(self.values):
            self.refused = True
            self.problems.append(f"the round was not sent: {problem}; start it again later, or add --accept-stale")
        else:
            self.notes.append(problem)

    @property
    def values(self) -> list[ValueAge]:
        """The values of series that the answers stand on."""
        return [answer.value for answer in self.by_model_free.values() if answer.value is not None]

    @property
    def stale(self) -> list[ValueAge]:
        """Those that are older than their sources could have given."""
        return [value for value in self.values if value.stale]

    @property
    def _final(self) -> dict[str, Forecast]:
        """The forecast of each question."""
        final: dict[str, Forecast] = {}
        for question in self.questions:
            model_free, agents = self.by_model_free.get(question.id), self.by_agents.get(question.id)
            if agents is not None:
                final[question.id] = (
                    agents
                    if model_free is None
                    else replace(agents, p={**model_free.p, **agents.p}, value=model_free.value)
                )
            elif model_free is not None:
                final[question.id] = model_free
        return final

    def _seconds_left(self) -> float | None:
        """Return seconds that agents have left; None without a deadline."""
        if self.options.sandbox:
            return None
        closes = instant(self.day) + DAY - timedelta(minutes=self.own.stop_before)
        return (closes - clock_of(self.settings)()).total_seconds()

    def _begin(self) -> None:
        """Save the runs before anything is paid, so that what a killed run spent is counted."""
        state, team = self.state, self.team
        state.organization, state.entry, state.number = team.organization, team.model, team.number
        state.rehearsal = self.options.sandbox
        state.runs = {MODEL_FREE: self.model_free.spec.id}
        if self.agents is not None:
            state.runs["agents"] = self.agents.spec.id
            state.paid += [] if self.agents.spec.id in state.paid else [self.agents.spec.id]
        state.save()

    async def _ask_agents(self, prepared: PreparedRun) -> dict[str, Forecast]:
        """Ask agents, and combine their answers with price and model-free answer by weights from earlier rounds."""
        questions = {question.id: question for question in prepared.questions}
        with closing(RunStore(self.settings.store)) as store:
            # For data-set questions, the model-free answer is the base rate of the run.
            rates = (
                (questions[id], target, p)
                for id, forecast in self.by_model_free.items()
                for target, p in forecast.p.items()
            )
            store.keep_rates(prepared.spec.id, rates)
        left = self._seconds_left()
        try:
            work = self.execute(prepared, self.options.watch)
            self.done = await asyncio.wait_for(work, left if left is None else max(0.0, left))
            if self.done.stopped:
                stopped = f"agents stopped: {self.done.stopped}; the model-free answers are used for the rest"
                self.problems.append(stopped)
        except TimeoutError:
            self.problems.append("agents ran out of time; the model-free answers are used for the rest")
        forecasts, answers = self.combined(prepared.spec, prepared.questions)
        self._note_failures(answers)
        return forecasts

    def _note_failures(self, answers: Sequence[Forecast | Failure]) -> None:
        """Note how many trials of agents failed, and the most common reason."""
        why = Counter(why_unusable(answer) for answer in answers if isinstance(answer, Failure) or answer.fallback)
        if why:
            (reason, _), *_ = why.most_common(1)
            self.problems.append(f"{why.total()} of {len(answers)} trials of agents failed, such as: {reason}")

    def result(self, **fields: Any) -> RoundResult:
        """Return the result so far."""
        return RoundResult(
            round=self.day,
            organization=self.team.organization,
            entry=self.team.model,
            questions=len(self.questions),
            values=len(self.values),
            stale=len(self.stale),
            notes=tuple(self.notes),
            problems=tuple(self.problems),
            **fields,
        )

    def record(self, money: dict[str, float]) -> RoundResult:
        """Store what was done, unless it was a dry run."""
        final, state = self._final, self.state
        result = self.result(
            **money,
            **self.handed_in,
            answered=len(final),
            by_agents=len(self.by_agents),
            forecasts=tuple(self._rows(final)),
            runs=tuple(state.runs.values()),
        )
        if not self.options.dry_run:
            state.file, state.uploaded = str(result.file or state.file), result.uploaded or state.uploaded
            at = clock_of(self.settings)().isoformat(timespec="seconds")
            state.visits.append(
                {
                    "at": at,
                    "answered": result.answered,
                    "by_agents": result.by_agents,
                    "billed": result.billed,
                    "values": result.values,
                    "stale": result.stale,
                }
            )
            state.save()
            self.summarize(f"## ForecastBench {self.day}\n\n{replace(result, next_step=None)}\n")
        return result

    def _rows(self, final: Mapping[str, Forecast]) -> Iterator[Row]:
        """Return one row per target: the submitted number, and those of both forecasters."""
        for question in self.questions:
            if (forecast := final.get(question.id)) is None:
                continue
            model_free, agents = self.by_model_free.get(question.id), self.by_agents.get(question.id)
            for target in question.targets:
                if target.id in forecast.p:
                    yield {
                        "question": question.id,
                        "target": target.id,
                        "p": forecast.p[target.id],
                        "model_free": None if model_free is None else model_free.p.get(target.id),
                        "agents": None if agents is None else agents.p.get(target.id),
                        "value": None if forecast.value is None else forecast.value.in_words,
                    }

    async def send(self, forecasts: Sequence[Forecast]) -> None:
        """Write and upload the file; a sandbox run only writes it, a dry run does neither."""
        if self.refused:
            return
        folder, questions = self.own.folder or self.folder, self.questions
        if self.options.sandbox or self.options.dry_run:
            how = {"reasoning": self.own.reasoning, "incomplete": self.own.incomplete}
            body, coverage = checked_submission(forecasts, questions, self.team, **how)
            self.handed_in = {"coverage": coverage, "next_step": "Nothing was written, and nothing was sent."}
            if not self.options.dry_run:
                path = folder / self.team.file_name(self.day)
                write_atomically(path, file_bytes(body))
                left = f"Nothing was sent. foretell tournament results {PLATFORM} scores it."
                self.handed_in |= {"file": path, "next_step": left}
            return
        async with open_round(self.team, self.day, self.own, self.settings, folder) as submitter:
            plan = submitter.plan(forecasts, questions)
            sender = open_sender(submitter, self.settings, PLATFORM, resend=self.own.overwrite)
            results = await sender.hand_in(plan)
        item = plan.items[0]
        self.problems += [*item.problems, *(str(result) for result in results if result.fate not in DONE_STATUSES)]
        done = {result.item.part for result in results if result.fate in DONE_STATUSES}
        path = folder / item.title if "file" in done else None
        uploader = submitter.uploader
        where = None if uploader is None or "upload" not in done else uploader.folder.address(item.title)
        left = None if path is None or where else upload_advice(path, self.own.bucket, self.day)
        self.handed_in = {"coverage": item.notes, "file": path, "uploaded": where, "next_step": left}


def upload_advice(path: Path, bucket: str | None, day: str) -> str:
    """Return how to upload a file by hand."""
    place = "gs://FOLDER-OF-YOUR-TEAM" if bucket is None else BucketFolder.read(bucket, day).address("").rstrip("/")
    return (
        f"Upload it by 23:59:59 UTC on {day} to the folder that the benchmark gave your team:\n"
        f"  gcloud storage cp {str(path)!r} {place}/\n"
        f"or set tournament.bucket to {place} and {TOKEN_VARIABLE}, and start this again: no question is asked again."
    )
