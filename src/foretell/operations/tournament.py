"""A tournament run: forecast the open, unanswered questions, send them with reasons, and write a page.

Everything that the next run must know is in one file, rewritten as a whole at every step: questions as they were
first seen, forecasts that are not sent yet, the runs that were paid for, and what each run did. The next one
finishes what a killed one began: replies come back from the journal, and what was sent is in the ledger or on the
platform. Platforms are in `tournament_platforms`; a round of ForecastBench is in `tournament_round`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, Self, cast

from foretell.data.datasets.question_set import QuestionSet
from foretell.data.files import LockHeld, locked, write_atomically
from foretell.data.http import SourceError
from foretell.forecasters.agent.agent import without_numbers
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.ledger import Account, Money
from foretell.operations.grid import prepared_cell_cost
from foretell.operations.requests.tournaments import TournamentRunRequest, UpdateSettings
from foretell.operations.result import Result
from foretell.operations.runs import measured_costs
from foretell.operations.submit import SERVICES, PlatformConnection, open_ledger, open_platform
from foretell.questions.as_of import instant
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.report.run_report import answer_text
from foretell.report.tournament_page import TournamentDay, TournamentRow, markdown_summary, tournament_page
from foretell.runs.combine import CombinationSettings, combining_of_run, one_forecast_per_question
from foretell.runs.executor import RunProgress
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import PreparedRun, WatchProgress, asks_models, check_run, execute_run, prepare_run
from foretell.runs.settings import Settings, clock_of
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_mapping
from foretell.runs.store import RunStore
from foretell.submit.ledger import SubmissionHistory
from foretell.submit.submission import (
    DONE_STATUSES,
    QUOTA_EXCEEDED,
    TURNED_AWAY,
    ItemResult,
    SendOptions,
    SubmissionPlan,
    SubmissionSender,
    Submitter,
)

ATTEMPTS = 3
"""How many tournament runs may fail to answer a question before it is given up."""
STALE = timedelta(days=1)
"""An unanswered question that was first seen longer ago than this is asked as of now."""
TOGETHER = 8
"""How many questions are forecast before any is sent. Windows are short, and a kill should lose little."""
SHORTAGES = tuple(f"the budget of the {name} " for name in ("run", "tournament run", "tournament"))
"""How an error begins when the money for the whole tournament ran out, not for one question."""
LONGEST_COMMENT = 8000
VISITS_KEPT = 2000
CONCURRENCY = 4
"""How many trials run at the same time, unless a setting says otherwise."""
Row = dict[str, Any]


# Settings, price and budget of a tournament run: the same on every platform.


def tournament_spec(request: TournamentRunRequest, questions: str) -> RunSpec:
    """The run that forecasts the questions of a tournament, by the settings of the request.

    Raises:
        InputError: If a setting is wrong, or no model is named although one is needed.
    """
    settings = request.settings({"concurrency": CONCURRENCY})
    spec = spec_from_mapping({**settings, "questions": questions, "mode": "live"})
    if spec.clairvoyant:
        raise InputError("a clairvoyant run is no forecast", path=request.config, column="clairvoyant")
    if asks_models(spec) and "agent" not in spec.models:
        raise InputError(
            "no model is named", column="--model", hint="e.g. openai:NAME; FORETELL_MODEL stands in for it"
        )
    return spec


@dataclass(frozen=True, kw_only=True)
class TournamentPlan(Result):
    """What a tournament run would ask, what that costs and how long it takes."""

    tournament: str
    questions: int
    cells: int
    """How many trials are still to be run."""
    dollars: float | None
    """What they will cost; None if no price is known."""
    basis: str
    """Where the price comes from: measured, rough, unknown, free model or no model."""
    seconds: float
    """Roughly how long they take."""
    most: float | None = None
    """The most that can be billed in this run; None without a budget."""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.basis in ("no model", "free model"):
            told = f"{self.tournament}: {self.questions} questions, {self.cells} trials to make, nothing to pay"
            return f"{told}; {minutes_text(self.seconds)}" if self.seconds else told
        price = "a price nobody knows" if self.dollars is None else f"about ${self.dollars:.2f} ({self.basis})"
        limit = "no budget is set" if self.most is None else f"at most ${self.most:.2f}"
        told = f"{self.tournament}: {self.questions} questions, {self.cells} trials to make, {price}; {limit}"
        return f"{told}; {minutes_text(self.seconds)}"


def minutes_text(seconds: float) -> str:
    """A duration for people, roughly.

    >>> minutes_text(20), minutes_text(300), minutes_text(3 * 3600 + 1200)
    ('under a minute', 'about 5 min', 'about 3 h 20 min')
    """
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute"
    return f"about {minutes} min" if minutes < 60 else f"about {minutes // 60} h {minutes % 60} min"


def plan_of(prepared: PreparedRun, settings: Settings, tournament: str, *, most: float | None) -> TournamentPlan:
    """Estimate price and duration of a run from similar runs on this machine, or by a rough guess."""
    spec = prepared.spec
    with closing(RunStore(settings.store)) as store:
        known = store.run(spec.id) is not None
        cells = len(prepared.questions) * spec.trials - (len(store.finished(spec.id)) if known else 0)
        cost = prepared_cell_cost(prepared, measured_costs(store))
    return TournamentPlan(
        tournament=tournament,
        questions=len(prepared.questions),
        cells=cells,
        dollars=None if cost.dollars is None and cells else cells * (cost.dollars or 0.0),
        basis=cost.basis,
        seconds=cells * cost.seconds / max(1, min(spec.concurrency, cells)),
        most=most,
    )


@dataclass(frozen=True, kw_only=True)
class TournamentMoney:
    """What all runs of a tournament cost, including killed ones."""

    account: str
    """The tournament's account in the ledger."""
    total: Money

    @classmethod
    def of(cls, settings: Settings, account: str, runs: Sequence[str]) -> "TournamentMoney":
        """According to the ledger. `runs` are the tournament's, which may have begun before it had an account."""
        if not runs or not (settings.database or Path(settings.journal).is_file()):
            return cls(account=account, total=Money())
        with closing(Journal(settings.journal)) as journal:
            journal.ledger.open(Account(account, "tournament"))
            journal.ledger.enclose(runs, account)
            return cls(account=account, total=journal.ledger.money(account))

    def since(self, before: "TournamentMoney", reused: float = 0.0) -> dict[str, float]:
        """The fields of a result: what was billed since then and in all, and what is unknown and reserved."""
        billed = round(self.total.billed - before.total.billed, 9)
        money = replace(self.total, billed=billed, reused=reused)
        return money.to_dict() | {"billed_in_all": round(self.total.billed, 9)}


@dataclass(frozen=True, kw_only=True)
class PaidResult(Result):
    """What a tournament run cost."""

    lines = "forecasts"
    notes: tuple[str, ...] = ()
    billed: float = 0.0
    reused: float = 0.0
    unknown: float = 0.0
    """What lost replies may have cost, in all runs."""
    reserved: float = 0.0
    billed_in_all: float = 0.0
    """Billed in all runs of the tournament."""
    plan: TournamentPlan | None = None
    """The plan, if only that was asked for."""

    @property
    def money_text(self) -> str:
        """What it cost, for people: billed now and in all, and what is unknown."""
        now = Money(billed=self.billed, reused=self.reused, unknown=self.unknown, reserved=self.reserved)
        return f"{now}; ${self.billed_in_all:.4f} billed in all"


def budget_for(limit: float | None, spec: RunSpec, settings: Settings, before: TournamentMoney) -> Budget:
    """The budget of a tournament run: its own limit, within that of the whole tournament."""
    around = Budget("tournament", dollars=limit, within=settings.budget, id=before.account)
    return around if spec.budget.run is None else Budget("tournament run", dollars=spec.budget.run, within=around)


def most_billed_now(limit: float | None, spec: RunSpec, before: TournamentMoney) -> float | None:
    """The most that may be billed in this tournament run; None without a limit."""
    limits = [] if limit is None else [max(0.0, limit - before.total.used)]
    return min([*limits, *([] if spec.budget.run is None else [spec.budget.run])], default=None)


# The state between two runs of a tournament.


def tournament_folder(settings: Settings, platform: str, name: str) -> Path:
    """The folder for the state of a tournament or a round."""
    return settings.home / "tournaments" / f"{SERVICES.get(platform, platform)}-{name}"


@dataclass(kw_only=True)
class StoredState:
    """The state that the runs of a tournament share, stored in a file."""

    path: Path
    visits: list[Row] = field(default_factory=list[Row])
    """What each run did; called visits in the files of all versions."""

    @classmethod
    def read(cls, path: Path, **new: Any) -> Self:
        """Read the state from its file, or create one with these fields if there is none."""
        if not path.is_file():
            return cls(path=path, **new)
        try:
            return cls(path=path, **cls._decoded(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, TypeError, KeyError, AttributeError, InputError):
            hint = "delete it: runs, ledger and platform know what was answered and sent"
            raise InputError("is damaged", path=path, hint=hint) from None

    @classmethod
    def _decoded(cls, body: Row) -> Row:
        """The fields of the state from parsed JSON."""
        return body

    def save(self) -> None:
        """Write the whole state at once."""
        body = {name: value for name, value in vars(self).items() if name != "path"}
        body["visits"] = self.visits[-VISITS_KEPT:]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, json.dumps(body, ensure_ascii=False, default=_encoded).encode())


def _encoded(value: Any) -> Any:
    if isinstance(value, Question | Forecast):
        return json.loads(to_json(value))
    return vars(value) if is_dataclass(value) else str(value)


@dataclass(kw_only=True)
class PendingQuestion:
    """An unanswered question, as it was when it was first seen."""

    question: Question
    attempts: int = 0
    problem: str = ""


@dataclass(kw_only=True)
class TournamentState(StoredState):
    """The state that the runs of a tournament with single questions share."""

    pending: dict[str, PendingQuestion] = field(default_factory=dict[str, PendingQuestion])
    """By question id."""
    outbox: list[Forecast] = field(default_factory=list[Forecast])
    """Forecasts that are not sent yet. Their rationale is the text of the comment."""
    texts: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """For each question in the outbox: its text and the answer in short."""
    made: dict[str, str] = field(default_factory=dict[str, str])
    """When each question was last forecast. The ledger does not record a forecast that equals the one before."""
    runs: list[str] = field(default_factory=list[str])
    """Every run of this tournament, for counting what was spent."""

    @classmethod
    def _decoded(cls, body: Row) -> Row:
        pending = {
            id: PendingQuestion(question=from_dict(row.pop("question"), Question), **row)
            for id, row in body["pending"].items()
        }
        outbox = [from_dict(row, Forecast) for row in body["outbox"]]
        return {**body, "pending": pending, "outbox": outbox}

    def day(self, day: str) -> list[Row]:
        """What the runs of one day did."""
        return [visit for visit in self.visits if visit["at"].startswith(day)]


# Which open questions are asked now.


@dataclass(frozen=True, kw_only=True)
class ListedPart:
    """The unit that one forecast answers: a whole question, or one question of a group."""

    name: str
    """Our id for it."""
    closes_at: datetime | None
    answered: bool
    """Whether this account already has a forecast on the platform."""
    since: datetime | None = None
    """When that forecast was made, if the platform says so."""
    target: str = ""
    """For a question of a group: the target it stands for."""
    certain: bool = False
    """Trust `answered` even if the ledger has an earlier forecast, which was for an earlier round."""


@dataclass(frozen=True, kw_only=True)
class ListedQuestion:
    """An open question of the tournament, with what this account has already forecast."""

    question: Question
    parts: tuple[ListedPart, ...]
    """One part; for a group of yes-or-no questions, each one that is open."""


@dataclass(frozen=True, kw_only=True)
class TournamentListing:
    """The open questions of a tournament, and what was left out."""

    questions: tuple[ListedQuestion, ...]
    skipped: Mapping[str, int]
    """Reason → how many were left out."""

    @classmethod
    def of(cls, found: Iterable[ListedQuestion], skipped: Mapping[str, int]) -> "TournamentListing":
        """Sort the questions by closing time."""
        far = datetime.max.replace(tzinfo=UTC)
        return cls(questions=tuple(sorted(found, key=lambda one: one.question.closes_at or far)), skipped=dict(skipped))


def due_again(policy: UpdateSettings, last: datetime, closes: datetime | None, now: datetime) -> bool:
    """Whether a question that was already forecast is due for another forecast.

    >>> policy = UpdateSettings(before_close=24)
    >>> monday, friday = instant("2026-11-16"), instant("2026-11-20")
    >>> [due_again(policy, monday, friday, monday + timedelta(days=days)) for days in (1, 3.5)]
    [False, True]
    """
    if policy.update_after is not None and now - last >= timedelta(days=policy.update_after):
        return True
    if policy.before_close is None or closes is None:
        return False
    begins = closes - timedelta(hours=policy.before_close)
    return last < begins <= now


def questions_to_ask(
    listing: TournamentListing,
    state: TournamentState,
    policy: UpdateSettings,
    sent: Mapping[str, Sequence[datetime]],
    now: datetime,
) -> tuple[list[Question], list[str]]:
    """Choose the questions to forecast now, each as it was first seen; also return what was given up.

    Args:
        listing: The open questions.
        state: The state of earlier runs.
        policy: When a question is forecast again.
        sent: When this account sent a forecast of each question, according to the ledger.
        now: The current time.
    """
    listed_ids = {listed.question.id for listed in listing.questions}
    state.pending = {id: one for id, one in state.pending.items() if id in listed_ids}
    chosen: list[Question] = []
    given_up: list[str] = []
    waiting = {forecast.question_id for forecast in state.outbox}
    for listed in listing.questions:
        question = listed.question
        own = [instant(state.made[question.id])] if question.id in state.made else []
        asked = [part for part in listed.parts if _is_due(part, policy, [*own, *sent.get(part.name, ())], now)]
        if not asked or question.id in waiting:
            continue
        if asked[0].target and len(question.targets) > 1:
            wanted = {part.target for part in asked}
            targets = tuple(target for target in question.targets if target.id in wanted)
            question = replace(question, targets=targets) if targets else question
        pending = state.pending.get(question.id)
        if pending is not None and pending.attempts >= ATTEMPTS and now - pending.question.due < STALE:
            given_up.append(f"{question.id}: {pending.problem}")
            continue
        if pending is None or not _unchanged(pending.question, question) or now - pending.question.due >= STALE:
            state.pending[question.id] = pending = PendingQuestion(question=question)
        chosen.append(pending.question)
    return chosen, given_up


def reads_the_same(asked: Question, listed: Question) -> bool:
    """Whether a listed question still asks what was asked: platforms edit texts, rename options and reuse ids."""
    labels = {target.id: target.label for target in listed.targets}
    texts = [(one.text, one.criteria, one.range) for one in (asked, listed)]
    return texts[0] == texts[1] and all(labels.get(target.id) == target.label for target in asked.targets)


def _unchanged(asked: Question, listed: Question) -> bool:
    """Whether asking again as before would ask exactly what is listed."""
    same_targets = [target.id for target in asked.targets] == [target.id for target in listed.targets]
    return same_targets and asked.closes_at == listed.closes_at and reads_the_same(asked, listed)


def _is_due(part: ListedPart, policy: UpdateSettings, sent: Sequence[datetime], now: datetime) -> bool:
    if not part.answered and (part.certain or not sent):
        return True
    moments = [*sent] if part.since is None else [*sent, part.since]
    # A forecast of unknown age counts as made now.
    return due_again(policy, max(moments, default=now), part.closes_at, now)


# The text of a comment.


def comment_text(forecast: Forecast, question: Question | None) -> str:
    """The text of a comment: the forecast, its date and its reasons. Empty if there are no reasons."""
    reasons = re.sub(r"\n{3,}", "\n\n", without_numbers(forecast.rationale))
    if not reasons:
        return ""
    made = forecast.as_of.at.strftime("%Y-%m-%d %H:%M UTC")
    title = f"{question.text}\n\n" if question is not None and "#" in question.id else ""
    text = f"{title}**{answer_text(forecast, question)}**, as of {made}\n\n{reasons}"
    return text if len(text) <= LONGEST_COMMENT else text[: LONGEST_COMMENT - 2].rstrip() + " …"


# What a tournament run needs of a platform.


class TournamentPlatform(Protocol):
    """A platform that lists questions and accepts forecasts."""

    @property
    def reasons(self) -> bool:
        """Whether every forecast needs a comment with its reasons."""
        ...

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """The account we forecast with, and the open questions."""
        ...

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """A submitter that knows the current state of the questions behind these forecasts."""
        ...

    def address(self, question: str) -> str:
        """The web page of a question."""
        ...

    def comment_address(self, question: str, reply: Row) -> str:
        """The web page of a comment, from the platform's reply to it; empty if it has none."""
        ...


# The tournament run.


@dataclass(frozen=True, kw_only=True)
class TournamentResult(PaidResult):
    """What one tournament run did."""

    tournament: str
    account: str = ""
    comments: bool = True
    """Whether every forecast is sent with a comment."""
    open: int = 0
    """How many questions are open."""
    forecasts: tuple[TournamentRow, ...] = ()
    """Every question that was forecast, with the result."""
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    stopped: str | None = None
    """Why open questions were left unanswered."""
    page: Path | None = None
    requests: tuple[Row, ...] | None = None
    """The requests of a dry run."""

    @property
    def exit_code(self) -> int:
        """3 if an answer is missing, rests on a failure or was not sent."""
        return 3 if self.stopped or any(not row.sent for row in self.forecasts if self.requests is None) else 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        left = (f"{count} left out: {reason}" for reason, count in self.skipped.items())
        return (*left, *self.notes, *([f"stopped: {self.stopped}"] if self.stopped else []))

    def __str__(self) -> str:
        if self.plan is not None:
            return str(self.plan)
        sent = sum(row.sent for row in self.forecasts)
        lines = [f"{row.named}: {row.outcome}" for row in self.forecasts]
        left = len(self.forecasts) - sent
        failed = f", {left} not sent" if left and self.requests is None else ""
        comments = " with a comment" * self.comments
        lines.append(f"{self.tournament}: {self.open} open, {sent} sent{comments}{failed}; {self.money_text}")
        lines += [json.dumps(list(self.requests), ensure_ascii=False, indent=1)] if self.requests is not None else []
        return "\n".join([*lines, *([f"Wrote {self.page}"] if self.page else [])])


async def run_alone(
    run: "TournamentRun", connect: Callable[[PlatformConnection], TournamentPlatform]
) -> TournamentResult:
    """Take part unless another process is already working on this tournament."""
    try:
        with locked(run.folder / "lock", wait=False):
            async with open_platform(run.platform, run.settings) as wire:
                return await run.take(connect(wire))
    except LockHeld:
        note = "another process is working on this tournament; nothing was done"
        return TournamentResult(tournament=run.slug, notes=(note,))
    except SourceError as error:
        problem = f"{run.platform} could not be reached as it should: {error}"
        raise InputError(problem, hint="nothing more was sent; the next run goes on") from None


@dataclass(kw_only=True)
class TournamentRun:
    """One run of a tournament, made while holding its lock."""

    request: TournamentRunRequest
    own: UpdateSettings
    """The section `tournament` of the settings."""
    settings: Settings
    spec: RunSpec
    """How to forecast."""
    platform: str
    slug: str
    watch: WatchProgress
    tell: Callable[[str], None]
    rows: list[TournamentRow] = field(default_factory=list[TournamentRow])
    notes: list[str] = field(default_factory=list[str])
    stopped: str = ""
    run: str = ""
    done: RunProgress = field(default_factory=lambda: RunProgress(total=0))
    """Combined progress of the runs of models so far."""
    account: str = ""
    reasons: bool = True
    """Whether only forecasts with reasons are sent."""

    @property
    def folder(self) -> Path:
        """The folder with the state of this tournament."""
        return tournament_folder(self.settings, self.platform, self.slug)

    async def take(self, site: TournamentPlatform) -> TournamentResult:
        """List the questions, send what an earlier run left, forecast, send, and write the page."""
        state = TournamentState.read(self.folder / "state.json")
        now = clock_of(self.settings)().replace(microsecond=0)
        spec, only_looks = self.spec, self.request.dry_run or self.request.plan
        before = self.money(state)
        budget = budget_for(self.own.budget, spec, self.settings, before)
        check_run(spec, replace(self.settings, budget=budget))
        if state.outbox and not only_looks:
            self.tell(f"not sent yet, of an earlier run: {len(state.outbox)}")
            _, listing = await site.look(now)
            self._drop_edited(listing, state)
            await self.hand_in(site, state)
        self.reasons = site.reasons
        self.account, listing = await site.look(now)
        questions, given_up = questions_to_ask(listing, state, self.own, self._sent(), now)
        self.notes += [f"given up after {ATTEMPTS} runs: {problem}" for problem in given_up]
        questions = questions[: self.request.limit]
        self.tell(f"{self.slug}: {len(listing.questions)} open, {len(questions)} to forecast")
        if self.request.plan:
            return self._planned(questions, listing, before)
        requests: tuple[Row, ...] | None = () if self.request.dry_run else None
        cells = len(questions) * spec.trials
        for start in range(0, len(questions), TOGETHER):
            if self.stopped or not self._affordable(self.money(state)):
                break
            forecasts = await self.forecast(spec, questions[start : start + TOGETHER], state, budget, cells)
            if requests is not None:
                submitter = await site.submitter(forecasts, clock_of(self.settings)())
                requests += tuple(asdict(one) for one in submitter.requests(submitter.plan(forecasts, ()).ready))
            elif not await self.hand_in(site, state):
                self.stopped = self.stopped or f"{self.platform} cannot be read; the next run sends what is forecast"
        # Link each row to its page.
        self.rows = [replace(row, url=site.address(row.question)) for row in self.rows]
        money = self.money(state).since(before, self.done.money.reused)
        page = None if self.request.dry_run else self._noted(site, state, now, listing, money)
        return self._result(
            listing,
            forecasts=tuple(self.rows),
            **money,
            stopped=self.stopped or None,
            page=page,
            requests=requests,
        )

    def _result(self, listing: TournamentListing, **fields: Any) -> TournamentResult:
        return TournamentResult(
            tournament=self.slug,
            account=self.account,
            comments=self.reasons,
            open=len(listing.questions),
            skipped=listing.skipped,
            notes=tuple(self.notes),
            **fields,
        )

    def _planned(
        self, questions: Sequence[Question], listing: TournamentListing, before: TournamentMoney
    ) -> TournamentResult:
        """Estimate what it would ask and cost."""
        nothing = QuestionSet(name=self.slug)
        benchmark = Benchmark(questions=nothing, history=nothing)
        prepared = PreparedRun(spec=self.spec, benchmark=benchmark, questions=tuple(questions))
        most = most_billed_now(self.own.budget, self.spec, before)
        plan = plan_of(prepared, self.settings, self.slug, most=most)
        return self._result(listing, **before.since(before), plan=plan)

    def _drop_edited(self, listing: TournamentListing, state: TournamentState) -> None:
        """Drop unsent forecasts whose question was edited since, so that it is asked as it reads now."""
        listed = {one.question.id: one.question for one in listing.questions}
        for id in [forecast.question_id for forecast in state.outbox]:
            pending = state.pending.get(id)
            if pending is not None and id in listed and not reads_the_same(pending.question, listed[id]):
                self.notes.append(f"{id} was edited after it was forecast: the forecast is not sent, it is asked again")
                state.outbox = [one for one in state.outbox if one.question_id != id]
                state.texts.pop(id, None)
        state.save()

    def _sent(self) -> dict[str, list[datetime]]:
        """When this account last sent a forecast of each question, according to the ledger."""
        history = SubmissionHistory.of(open_ledger(self.settings).entries()).taken
        return {
            key[2]: [instant(entries[-1].at)]
            for key, entries in history.items()
            if key[0] == self.platform and key[1] == self.account and key[3] == "forecast"
        }

    def money(self, state: TournamentState) -> TournamentMoney:
        """What all runs of the tournament cost."""
        return TournamentMoney.of(self.settings, f"tournament {self.folder.name}", state.runs)

    def _affordable(self, money: TournamentMoney) -> bool:
        limit = self.own.budget
        if limit is not None and money.total.used >= limit:
            self.stopped = f"the tournament's budget of ${limit:g} is used up: {money.total}"
        return not self.stopped

    async def forecast(
        self,
        spec: RunSpec,
        questions: Sequence[Question],
        state: TournamentState,
        budget: Budget,
        cells: int,
    ) -> list[Forecast]:
        """Run the questions and put the answers into the outbox."""
        batch = self.folder / "batches" / f"{max(one.due for one in questions):%Y%m%dT%H%M%S}-{len(state.runs)}.jsonl"
        batch.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(batch, "".join(f"{to_json(one)}\n" for one in questions).encode())
        spec = replace(spec, questions=QuestionsSpec(dataset=str(batch)))
        prepared = prepare_run(spec)
        self.run = prepared.spec.id
        if self.run not in state.runs:
            state.runs.append(self.run)
        state.save()  # Before anything is paid: what a killed run spent counts.
        before = self.done
        done = await execute_run(
            prepared,
            replace(self.settings, budget=budget),
            watch=lambda now: self.watch(replace(before + now, total=cells)),
            concurrency=spec.concurrency,
        )
        self.done = before + done
        with closing(RunStore(self.settings.store)) as store:
            answers = list(store.answers(self.run))
            how = combining_of_run(store, spec)
        self.stopped = done.stopped
        self.notes += [one for one in done.unread if one not in self.notes]
        return self._taken(questions, answers, how, state)

    def _taken(
        self,
        questions: Sequence[Question],
        answers: Sequence[Forecast | Failure],
        how: CombinationSettings,
        state: TournamentState,
    ) -> list[Forecast]:
        """Put forecasts that can be sent into the outbox; the other questions wait for the next run."""
        how = replace(how, degraded=self.request.include_fallback)
        found = {one.question_id: one for one in one_forecast_per_question(answers, questions, how)}
        ready: list[Forecast] = []
        for question in questions:
            forecast = found.get(question.id)
            text = "" if forecast is None else comment_text(forecast, question)
            if forecast is not None and (text or not self.reasons):
                ready.append(replace(forecast, rationale=text))
                state.texts[question.id] = (question.text, answer_text(forecast, question))
                continue
            problem = _why_missing(question.id, answers) if forecast is None else "it gives no reasons for a comment"
            # A question that could not be paid for has not failed.
            self._fail(state, question.id, problem, count=not any(name in problem for name in SHORTAGES))
        if self.request.dry_run:
            self.rows += [_row(state, one.question_id) for one in ready]
            return ready
        state.outbox += ready
        state.save()
        return ready

    async def hand_in(self, site: TournamentPlatform, state: TournamentState) -> bool:
        """Send the outbox, one forecast with its comment at a time, and save each result at once.

        A question that the platform does not show just now stays in the outbox. Returns False if it shows none.
        """
        # No need to wait for a server on this machine.
        own: dict[str, Any] = {"pause": 0.1} if SERVICES[self.platform] in self.settings.addresses else {}
        ledger, clock = open_ledger(self.settings), clock_of(self.settings)
        submitter = await site.submitter(state.outbox, clock())
        sender = SubmissionSender(submitter, ledger, clock, SendOptions(**own))
        plans = {forecast.question_id: submitter.plan([forecast], ()) for forecast in state.outbox}
        unread = {id for id, plan in plans.items() if any(item.later for item in plan.items)}
        for question, plan in plans.items():
            try:
                results = await sender.hand_in(plan)
            except SourceError as error:
                # What became of an earlier attempt could not be read back, so nothing was sent.
                unread.add(question)
                self._fail(state, question, error.problem, count=False)
            else:
                self._settle(question, plan, results, state)
        return not plans or len(unread) < len(plans)

    def _settle(
        self, question: str, plan: SubmissionPlan, results: Sequence[ItemResult], state: TournamentState
    ) -> None:
        """Remove from the outbox what the platform has accepted or refused; keep what is uncertain."""
        # What exceeds today's quota stays in the outbox for tomorrow.
        unsure = any(one.fate in ("unknown", "failed") or QUOTA_EXCEEDED in one.reason for one in results)
        turned_away = not unsure and any(mark in one.reason for one in results for mark in TURNED_AWAY)
        if turned_away or any(item.later for item in plan.items):
            made = next(forecast.as_of.at for forecast in state.outbox if forecast.question_id == question)
            unsure = clock_of(self.settings)() - made < STALE
        problems = [f"{item.part}: {problem}" for item in plan.refused for problem in item.problems]
        problems += [f"{one.item.part}: {one.reason}" for one in results if one.fate not in DONE_STATUSES]
        if problems:
            self._fail(state, question, "; ".join(dict.fromkeys(problems)), count=not unsure)
        else:
            self._add(replace(_row(state, question), sent=True))
            state.pending.pop(question, None)
            state.made[question] = clock_of(self.settings)().isoformat(timespec="seconds")
        if not unsure:
            state.outbox = [one for one in state.outbox if one.question_id != question]
            state.texts.pop(question, None)
        state.save()

    def _fail(self, state: TournamentState, question: str, problem: str, *, count: bool = True) -> None:
        self._add(replace(_row(state, question), problem=problem))
        if (pending := state.pending.get(question)) is not None:
            pending.problem, pending.attempts = problem, pending.attempts + count

    def _add(self, row: TournamentRow) -> None:
        """The result of a question; what waits in the outbox has one at every turn, and the last counts."""
        self.rows = [one for one in self.rows if one.question != row.question] + [row]

    def _noted(
        self,
        site: TournamentPlatform,
        state: TournamentState,
        now: datetime,
        listing: TournamentListing,
        money: Mapping[str, float],
    ) -> Path:
        """Record what was done, and write the page of its day."""
        links = self._comment_links(site)
        self.rows = [replace(row, comment=links.get(row.question, "") if row.sent else "") for row in self.rows]
        state.visits.append(
            {
                "at": now.isoformat(),
                "run": self.run,
                "billed": money["billed"],
                "rows": [asdict(row) for row in self.rows],
            }
        )
        state.save()
        today = state.day(now.date().isoformat())
        day = TournamentDay(
            tournament=self.slug,
            account=self.account,
            day=now.date().isoformat(),
            visits=len(today),
            rows=[TournamentRow(**row) for one in today for row in one["rows"]],
            skipped=listing.skipped,
            notes=[*self.notes, *([self.stopped] if self.stopped else [])],
            # Visits of older versions called it dollars.
            billed=sum(one["billed"] if "billed" in one else one["dollars"] for one in today),
            billed_in_all=money["billed_in_all"],
            unknown=money["unknown"],
            budget=self.own.budget,
            comments=self.reasons,
        )
        page = self.folder / "pages" / f"{day.day}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(page, tournament_page(day).encode())
        if self.request.summary is not None:
            with self.request.summary.open("a", encoding="utf-8") as file:
                file.write(markdown_summary(day))
        return page

    def _comment_links(self, site: TournamentPlatform) -> dict[str, str]:
        """The address of this account's newest comment on each question; the ledger knows its number."""
        return {
            entry.question: site.comment_address(entry.question, cast("Row", entry.content.get("answer") or {}))
            for entry in open_ledger(self.settings).entries()
            if (entry.kind, entry.part, entry.platform, entry.account)
            == ("receipt", "comment", self.platform, self.account)
        }


def _row(state: TournamentState, question: str) -> TournamentRow:
    """The row of a question before its result is known."""
    pending = state.pending.get(question)
    text, answer = state.texts.get(question, ("" if pending is None else pending.question.text, ""))
    return TournamentRow(question=question, text=text, answer=answer)


def _why_missing(question: str, answers: Sequence[Forecast | Failure]) -> str:
    """Why a question has no forecast that can be sent."""
    own = [answer for answer in answers if answer.question_id == question]
    why = [one.error if isinstance(one, Failure) else f"fallback forecast: {one.problem}" for one in own]
    return "; ".join(dict.fromkeys(why)) or "the run stopped before it was asked"
