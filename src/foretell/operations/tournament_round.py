"""One round of ForecastBench in one command: pull, newest values, forecasts, combination, check, file, upload.

Every step can be repeated: runs continue where they stopped, combining them is arithmetic, the file is written as a
whole, and the ledger holds every intention. The next run finishes what a killed one began.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
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
from foretell.data.files import DownloadCache, LockHeld, locked, write_atomically
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.service import needs_key
from foretell.operations.requests.tournaments import ForecastBenchSettings, TournamentRunRequest
from foretell.operations.submit import open_bucket, open_ledger, replaced_upload
from foretell.operations.tournament import (
    PaidResult,
    StoredState,
    TournamentMoney,
    TournamentPlan,
    budget_for,
    minutes_text,
    most_billed_now,
    plan_of,
    tournament_folder,
    tournament_spec,
)
from foretell.plugins import exists, load, variables_in_words
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.runs.combine import combine_trials, combining_of_run
from foretell.runs.due_prices import keep_due_prices
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import PreparedRun, WatchProgress, asks_models, check_run, execute_run, prepare_run
from foretell.runs.runtime import prices_of
from foretell.runs.settings import Settings, clock_of
from foretell.runs.spec import AUTO, DEFAULT, QuestionsSpec, RunSpec
from foretell.runs.store import RunStore
from foretell.submit.forecastbench import (
    PLATFORM,
    TOKEN_VARIABLE,
    BucketFolder,
    ForecastBenchSubmitter,
    ForecastBenchTeam,
    checked_submission,
    closed_round,
    file_bytes,
    files_of,
)
from foretell.submit.submission import DONE_STATUSES, ItemResult, SendOptions, SubmissionSender

STACK = "stack"
LATEST = "latest"
AT_ONCE = 16
"""How many questions the stack answers at the same time; it mostly waits for values."""
DAY = timedelta(days=1)
Row = dict[str, Any]


# The state of a round.


@dataclass(kw_only=True)
class RoundState(StoredState):
    """The state of a round: what its runs share, and what the results report."""

    round: str
    organization: str = ""
    entry: str = ""
    number: int = 1
    rehearsal: bool = False
    runs: dict[str, str] = field(default_factory=dict[str, str])
    """Who answers (`stack` or `agents`) → run id."""
    paid: list[str] = field(default_factory=list[str])
    """Every run that cost money, including those of other models."""
    file: str = ""
    """The written file; empty until then."""
    uploaded: str = ""
    """The address it was uploaded to; empty until then."""

    @classmethod
    def _decoded(cls, body: Row) -> Row:
        body.pop("platform", None)  # Written by the first version.
        return body


# The result.


@dataclass(frozen=True, kw_only=True)
class RoundResult(PaidResult):
    """What one run on a round did."""

    tournament: str = PLATFORM
    round: str
    organization: str
    entry: str
    questions: int = 0
    answered: int = 0
    """How many questions have a forecast."""
    by_agents: int = 0
    """How many of them agents contributed to."""
    coverage: tuple[str, ...] = ()
    file: Path | None = None
    """The written file, if any."""
    uploaded: str | None = None
    next_step: str | None = None
    """What is left for you to do."""
    forecasts: tuple[Row, ...] = ()
    """One row per target: the submitted number, and those of stack and agents."""
    problems: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """3 if answers are missing or the file could not be written or uploaded."""
        return 3 if self.problems else 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know."""
        return (*self.notes, *self.problems)

    def __str__(self) -> str:
        if self.plan is not None:
            return str(self.plan)
        by = f"{self.by_agents} with agents" if self.by_agents else "all by the stack"
        if not self.questions:
            return f"ForecastBench {self.round}: nothing was done"
        counts = f"{self.answered} of {self.questions} questions answered, {by}"
        lines = [f"ForecastBench {self.round}: {counts}; {self.money_text}"]
        lines += [*self.coverage, *([f"Wrote {self.file}"] if self.file else [])]
        lines += [f"Uploaded to {self.uploaded}"] if self.uploaded else []
        return "\n".join([*lines, *([self.next_step] if self.next_step else [])])


async def enter_round(
    request: TournamentRunRequest,
    settings: Settings,
    *,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> RoundResult:
    """Take part in a round of ForecastBench, unless another process is already working on it."""
    own, agents = request.section(ForecastBenchSettings), _run_settings(request)
    _refuse_unused(request, own, agents)
    team = _team(request, own, agents)
    try:
        day, notes = await pull_rounds(request, own, settings, tell)
    except NoOpenRound as error:
        if not own.when_open:
            raise
        day = request.name or LATEST
        return RoundResult(round=day, organization=team.organization, entry=team.model, notes=(str(error),))
    # Named as by earlier versions, whose rounds go on.
    name = f"{day}-{own.file_number}" + ("-rehearsal" if request.sandbox else "")
    folder = tournament_folder(settings, PLATFORM, name)
    try:
        with locked(folder / "lock", wait=False):
            run = RoundRun(
                request=request, own=own, settings=settings, team=team, day=day, folder=folder, watch=watch, tell=tell
            )
            run.notes += notes
            return await run.take()
    except LockHeld:
        note = "another process is working on this round; nothing was done"
        return RoundResult(round=day, organization=team.organization, entry=team.model, notes=(note,))


def _run_settings(request: TournamentRunRequest) -> Row | None:
    """The settings of the agents' run; None without a model."""
    run = request.settings()
    return run if run.get("models", {}).get("agent") else None


def _refuse_unused(request: TournamentRunRequest, own: ForecastBenchSettings, run: Row | None) -> None:
    """Refuse settings that have no effect in this round."""
    if own.overwrite and own.bucket is None:
        raise InputError("has no effect without tournament.bucket", column="tournament.overwrite", hint="leave it out")
    if run is not None:
        return
    unused = request.unused_without_model() or (
        "tournament.stop_before" if "stop_before" in own.model_fields_set else None
    )
    if unused is not None:
        raise InputError("has no effect without a model", column=unused, hint="add --model, or leave this out")


def _team(request: TournamentRunRequest, own: ForecastBenchSettings, run: Row | None) -> ForecastBenchTeam:
    """The team that submits; what is not sent needs no registered name."""
    pretend = request.sandbox or request.dry_run or request.plan
    if not own.organization and not pretend:
        hint = "as registered with ForecastBench; --sandbox does without"
        raise InputError("ForecastBench wants to know whose file it is", column="tournament.organization", hint=hint)
    return ForecastBenchTeam(
        organization=own.organization or "sandbox",
        model=own.entry or f"foretell {STACK if run is None else run['models']['agent']}",
        model_organization=own.model_organization,
        number=own.file_number,
    )


# Downloading rounds.


async def pull_rounds(
    request: TournamentRunRequest, own: ForecastBenchSettings, settings: Settings, tell: Callable[[str], None]
) -> tuple[str, list[str]]:
    """Download the round and earlier ones with their outcomes; return its due date and what could not be downloaded."""
    cache = DownloadCache(settings.home / PLATFORM)
    url = settings.addresses.get(PLATFORM) or FORECASTBENCH_URL
    async with AsyncHttpClient(limits=HttpLimits(attempts=3), access=settings.access) as client:
        source, notes = ForecastBenchDownload(cache, client, url=url), list[str]()
        try:
            named = request.name if request.name != LATEST else ""
            day = named or await _newest(source, cache, settings, notes)
            _check_open(day, request, clock_of(settings)())
            if day not in pulled_rounds(cache):
                await source.pull([day])
        except SourceError as error:
            problem = f"the question set could not be fetched: {error}"
            raise InputError(problem, hint="with a network, start it again") from None
        due = date.fromisoformat(day)
        before = (due - timedelta(days=ROUND_DAYS * n) for n in range(1, own.past_rounds + 1))
        notes += await _pull_past(source, [str(one) for one in before if one >= FIRST_ROUND])
        read = [one.state for one in await keep_due_prices(cache, [day], settings) if not one.bytes]
        notes += [f"prices on the due date: {state}; the older, published prices are used" for state in read]
        earlier = sum(one < day for one in pulled_rounds(cache))
        tell(f"round {day}; {earlier} earlier rounds are here to learn from")
        return day, notes


async def _newest(source: ForecastBenchDownload, cache: DownloadCache, settings: Settings, notes: list[str]) -> str:
    """The newest round; today's if it is on this machine and nobody can be asked."""
    try:
        return await source.latest()
    except SourceError as error:
        today = clock_of(settings)().date().isoformat()
        if today not in pulled_rounds(cache):
            raise
        notes.append(f"the newest round could not be looked up, so today's, which is on this machine, is used: {error}")
        return today


async def _pull_past(source: ForecastBenchDownload, days: Sequence[str]) -> list[str]:
    """Download earlier rounds, newest first, skipping days without a round."""
    for number, day in enumerate(days):
        try:
            await source.pull([day])
        except InputError:
            continue  # There was no round on that day.
        except SourceError as error:
            return [f"outcomes of {len(days) - number} earlier rounds could not be brought up to date: {error}"]
    return []


class NoOpenRound(InputError):
    """The round does not accept files today."""


def _check_open(day: str, request: TournamentRunRequest, now: datetime) -> None:
    """Refuse a round that is not open now, unless nothing will be submitted."""
    try:
        due = date.fromisoformat(day)
    except ValueError:
        raise InputError(
            f"{day!r} is not a round", hint="write its due date, such as forecastbench:2026-08-02"
        ) from None
    if request.sandbox or request.plan or request.dry_run or not (closed := closed_round(day, now)):
        return
    following = due + timedelta(days=ROUND_DAYS * max(0, (now.date() - due).days // ROUND_DAYS + 1))
    raise NoOpenRound(closed, hint=f"the next one is due on {following}; --sandbox does everything but send")


def missing_keys(questions: Sequence[Question], settings: Settings) -> list[str]:
    """Notes on newest values that cannot be read because a key is missing."""
    kinds = Counter(
        ("series", one.series.provider) if one.series is not None else ("markets", one.source) for one in questions
    )
    notes: list[str] = []
    for (kind, name), count in sorted(kinds.items()):
        plugin = load(kind, name) if exists(kind, name) else None
        if plugin is not None and needs_key(plugin) and not settings.key(name):
            variables = variables_in_words(getattr(plugin, "key_variables", ()))
            notes.append(f"{count} questions of {name} go by the value in the question set: no {variables}")
    return notes


# The run on a round.


@dataclass(kw_only=True)
class RoundRun:
    """One run on a round, made while holding the round's lock."""

    request: TournamentRunRequest
    own: ForecastBenchSettings
    settings: Settings
    team: ForecastBenchTeam
    day: str
    folder: Path
    watch: WatchProgress
    tell: Callable[[str], None]
    notes: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    reused: float = 0.0
    """What replies that were taken from the journal cost when they came."""

    async def take(self) -> RoundResult:
        """Forecast, combine, check, write and upload."""
        now = clock_of(self.settings)()
        state = RoundState.read(self.folder / "state.json", round=self.day)
        cache = DownloadCache(self.settings.home / PLATFORM)
        history = union(PLATFORM, [read_pulled(cache, one) for one in pulled_rounds(cache) if one <= self.day])
        questions = read_pulled(cache, self.day).questions
        # Fetch the newest values in the sandbox as well, as of the round's own day.
        benchmark = Benchmark(questions=history.only(questions), history=history, own=True)
        agents, before = self._agents(), self._money(state)
        if agents is not None:
            check_run(agents, replace(self.settings, budget=budget_for(self.own.budget, agents, self.settings, before)))
        stack = self._prepared(RunSpec(questions=self._asked(), forecaster=STACK, mode=self._mode), benchmark)
        prepared = None if agents is None else self._prepared(agents, benchmark)
        self.notes += missing_keys(questions, self.settings)
        plan = self._plan(stack, prepared, before, now)
        if self.request.plan:
            return self._result(questions, {}, {}, {}, **before.since(before), plan=plan)
        self._refuse_unlimited(prepared, plan)
        self.tell(str(plan))
        self._begin(state, stack, prepared)
        at_once = AT_ONCE if prepared is None else max(AT_ONCE, prepared.spec.concurrency)
        self.notes += (await execute_run(stack, self.settings, watch=self.watch, concurrency=at_once)).unread
        by_stack = self._answers(stack)
        by_agents = {} if prepared is None else await self._ask_agents(prepared, by_stack, before)
        final = _together(questions, by_stack, by_agents)
        self._look_for_gaps(questions, final)
        money = self._money(state).since(before, self.reused)
        result = self._result(questions, by_stack, by_agents, final, **money)
        result = replace(result, runs=tuple(state.runs.values()))
        return await self._hand_in(result, list(final.values()), questions, state)

    def _money(self, state: RoundState) -> TournamentMoney:
        return TournamentMoney.of(self.settings, f"tournament {self.folder.name}", state.paid)

    @property
    def _mode(self) -> Any:
        """In the sandbox a round is asked as of its due date, so nothing later is seen."""
        return "backtest" if self.request.sandbox else "live"

    def _asked(self) -> QuestionsSpec:
        return QuestionsSpec(dataset=PLATFORM, rounds=(self.day,), late_text="keep")

    def _prepared(self, spec: RunSpec, benchmark: Benchmark) -> PreparedRun:
        spec = spec.with_digest(questions_digest(benchmark.questions.questions))
        return prepare_run(spec, benchmark)

    def _agents(self) -> RunSpec | None:
        """How agents forecast; None without a model."""
        if _run_settings(self.request) is None:
            return None
        spec = tournament_spec(self.request, PLATFORM)
        if not asks_models(spec):
            hint = "without a model the stack answers"
            raise InputError("this forecaster asks no model", path=self.request.config, column="forecaster", hint=hint)
        # Earlier rounds have taught how much to trust agents compared with price and stack.
        rule = DEFAULT if spec.combine == AUTO else spec.combine
        spec = replace(spec, questions=self._asked(), mode=self._mode, combine=rule)
        return spec

    def _plan(
        self, stack: PreparedRun, agents: PreparedRun | None, before: TournamentMoney, now: datetime
    ) -> TournamentPlan:
        name, spec = f"ForecastBench {self.day}", (agents or stack).spec
        most = None if agents is None else most_billed_now(self.own.budget, spec, before)
        plan = plan_of(agents or stack, self.settings, name, most=most)
        left = self._seconds_left(now)
        if left is not None and plan.seconds > left:
            short = f"agents have {minutes_text(max(0.0, left))}: where time runs out the stack's answer stands"
            return replace(plan, notes=(short,))
        return plan

    def _seconds_left(self, now: datetime) -> float | None:
        """Seconds that agents have left; None without a deadline."""
        if self.request.sandbox:
            return None
        closes = instant(self.day) + DAY - timedelta(minutes=self.own.stop_before)
        return (closes - now).total_seconds()

    def _refuse_unlimited(self, agents: PreparedRun | None, plan: TournamentPlan) -> None:
        """Require a budget if money may be spent."""
        if agents is None or plan.most is not None:
            return
        prices = prices_of(agents.spec)
        if all(prices.free(name) for name in agents.spec.models.values()):
            return
        raise InputError(
            f"this may cost money: {plan}",
            column="--budget",
            hint="add --budget, or --model none; --plan only shows the cost",
        )

    def _begin(self, state: RoundState, stack: PreparedRun, agents: PreparedRun | None) -> None:
        """Save the runs before anything is paid, so that what a killed run spent is counted."""
        state.organization, state.entry, state.number = self.team.organization, self.team.model, self.team.number
        state.rehearsal = self.request.sandbox
        state.runs = {STACK: stack.spec.id} | ({} if agents is None else {"agents": agents.spec.id})
        if agents is not None and agents.spec.id not in state.paid:
            state.paid.append(agents.spec.id)
        state.save()

    def _answers(self, prepared: PreparedRun) -> dict[str, Forecast]:
        with closing(RunStore(self.settings.store)) as store:
            found = [one for one in store.answers(prepared.spec.id) if isinstance(one, Forecast)]
        return {one.question_id: one for one in found}

    async def _ask_agents(
        self, prepared: PreparedRun, by_stack: dict[str, Forecast], before: TournamentMoney
    ) -> dict[str, Forecast]:
        """Ask agents, and combine their answers with price and stack as earlier rounds have taught."""
        # Read now: the stack's answers took their time.
        spec, left = prepared.spec, self._seconds_left(clock_of(self.settings)())
        questions = {question.id: question for question in prepared.questions}
        with closing(RunStore(self.settings.store)) as store:
            # Agents on data-set questions are anchored to the stack, here and wherever the run is shown.
            rates = ((questions[id], target, p) for id, one in by_stack.items() for target, p in one.p.items())
            store.keep_rates(spec.id, rates)
        budget = budget_for(self.own.budget, spec, self.settings, before)
        work = execute_run(
            prepared,
            replace(self.settings, budget=budget),
            watch=self.watch,
            concurrency=spec.concurrency,
        )
        try:
            done = await asyncio.wait_for(work, left if left is None else max(0.0, left))
            self.notes += [one for one in done.unread if one not in self.notes]
            self.reused = done.money.reused
            if done.stopped:
                self.problems.append(f"agents stopped: {done.stopped}; the stack's answers stand for the rest")
        except TimeoutError:
            self.problems.append("agents ran out of time; the stack's answers stand for the rest")
        with closing(RunStore(self.settings.store)) as store:
            how = combining_of_run(store, spec)
            answers = list(store.answers(spec.id))
        self._note_failures(answers)
        how = replace(how, degraded=self.request.include_fallback)
        return {one.question_id: one for one in combine_trials(answers, prepared.questions, how)}

    def _note_failures(self, answers: Sequence[Forecast | Failure]) -> None:
        """Trials of agents without a sound answer, with the most common reason."""
        why = Counter(
            one.error if isinstance(one, Failure) else f"fallback forecast: {one.problem}"
            for one in answers
            if isinstance(one, Failure) or one.degraded
        )
        if why:
            (reason, _), *_ = why.most_common(1)
            self.problems.append(f"{why.total()} of {len(answers)} trials of agents failed, such as: {reason}")

    def _look_for_gaps(self, questions: Sequence[Question], final: dict[str, Forecast]) -> None:
        silent = [one.id for one in questions if one.id not in final]
        if silent:
            named = f"{', '.join(silent[:5])}{' and others' if len(silent) > 5 else ''}"
            self.notes.append(f"{len(silent)} questions have no forecast: {named}; the benchmark takes 0.5 for them")

    def _result(
        self,
        questions: Sequence[Question],
        by_stack: dict[str, Forecast],
        by_agents: dict[str, Forecast],
        final: dict[str, Forecast],
        **fields: Any,
    ) -> RoundResult:
        rows = [
            {
                "question": question.id,
                "target": target.id,
                "p": forecast.p[target.id],
                "stack": by_stack[question.id].p.get(target.id) if question.id in by_stack else None,
                "agents": by_agents[question.id].p.get(target.id) if question.id in by_agents else None,
            }
            for question in questions
            if (forecast := final.get(question.id)) is not None
            for target in question.targets
            if target.id in forecast.p
        ]
        return RoundResult(
            round=self.day,
            organization=self.team.organization,
            entry=self.team.model,
            questions=len(questions),
            answered=len(final),
            by_agents=len(by_agents),
            forecasts=tuple(rows),
            notes=tuple(self.notes),
            problems=tuple(self.problems),
            **fields,
        )

    async def _hand_in(
        self, result: RoundResult, forecasts: Sequence[Forecast], questions: Sequence[Question], state: RoundState
    ) -> RoundResult:
        """Write and upload the file; a sandbox run only writes it, a dry run does neither."""
        folder = self.own.folder or self.folder
        if self.request.sandbox or self.request.dry_run:
            how = {"reasoning": self.own.reasoning, "incomplete": self.own.incomplete}
            body, coverage = checked_submission(forecasts, questions, self.team, **how)
            result = replace(result, coverage=coverage)
            if self.request.dry_run:
                return replace(result, next_step="Nothing was written, and nothing was sent.")
            path = folder / self.team.file_name(self.day)
            write_atomically(path, file_bytes(body))
            self._finish(state, file=str(path), result=result)
            return replace(
                result, file=path, next_step=f"Nothing was sent. foretell tournament results {PLATFORM} scores it."
            )
        async with open_bucket(self.own.bucket, self.settings, self.day) as uploader:
            ledger, clock = open_ledger(self.settings), clock_of(self.settings)
            submitter = ForecastBenchSubmitter(
                sender=self.team,
                folder=folder,
                now=clock(),
                found=files_of(folder, self.day),
                reasoning=self.own.reasoning,
                incomplete=self.own.incomplete,
                uploader=uploader,
                replaces=await replaced_upload(self.team, self.day, uploader, ledger, overwrite=self.own.overwrite),
            )
            plan = submitter.plan(forecasts, questions)
            sender = SubmissionSender(submitter, ledger, clock, SendOptions(resend=self.own.overwrite))
            results = await sender.hand_in(plan)
        item = plan.items[0]
        problems = [*self.problems, *item.problems]
        problems += [str(one) for one in results if one.fate not in DONE_STATUSES]
        done = _done_parts(results)
        path = folder / item.title if "file" in done else None
        where = None if uploader is None or "upload" not in done else uploader.folder.address(item.title)
        self._finish(state, file=str(path or ""), uploaded=where, result=result)
        left = None if path is None or where else upload_advice(path, self.own.bucket, self.day)
        return replace(result, coverage=item.notes, file=path, uploaded=where, next_step=left, problems=tuple(problems))

    def _finish(self, state: RoundState, *, file: str, result: RoundResult, uploaded: str | None = None) -> None:
        """Record what was done."""
        state.file, state.uploaded = file or state.file, uploaded or state.uploaded
        at = clock_of(self.settings)().isoformat(timespec="seconds")
        state.visits.append(
            {"at": at, "answered": result.answered, "by_agents": result.by_agents, "billed": result.billed}
        )
        state.save()
        if self.request.summary is not None:
            with self.request.summary.open("a", encoding="utf-8") as file_:
                file_.write(f"## ForecastBench {self.day}\n\n{replace(result, file=Path(file) if file else None)}\n")


def _done_parts(results: Sequence[ItemResult]) -> set[str]:
    return {one.item.part for one in results if one.fate in DONE_STATUSES}


def _together(
    questions: Sequence[Question], by_stack: dict[str, Forecast], by_agents: dict[str, Forecast]
) -> dict[str, Forecast]:
    """Combine agents and stack: the stack alone where agents gave no answer."""
    final: dict[str, Forecast] = {}
    for question in questions:
        stack, agents = by_stack.get(question.id), by_agents.get(question.id)
        if agents is not None:
            final[question.id] = agents if stack is None else replace(agents, p={**stack.p, **agents.p})
        elif stack is not None:
            final[question.id] = stack
    return final


def upload_advice(path: Path, bucket: str | None, day: str) -> str:
    """How to upload a file by hand."""
    place = "gs://FOLDER-OF-YOUR-TEAM" if bucket is None else BucketFolder.read(bucket, day).address("").rstrip("/")
    return (
        f"Upload it by 23:59:59 UTC on {day} to the folder that the benchmark gave your team:\n"
        f"  gcloud storage cp {str(path)!r} {place}/\n"
        f"or set tournament.bucket to {place} and {TOKEN_VARIABLE}, and start this again: nothing is asked anew."
    )
