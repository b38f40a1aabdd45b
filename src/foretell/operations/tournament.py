"""One visit of a tournament: what is open and unanswered is forecast, sent with its reasons, and told on a page.

Everything that a later visit must know is in one file, written anew whole at every step: questions as they were first
seen, forecasts that are not sent yet, the runs that were paid for, and what each visit did. A visit that is killed is
made good by the next: replies come back from the journal, and what was sent is found in the ledger or on the platform.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, cast

from foretell.data.datasets.question_set import QuestionSet
from foretell.data.files import LockHeld, locked, write_atomically
from foretell.data.http import SourceError
from foretell.data.markets.listing import ListedEvent, ListingFilter, ListingReport
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents, questions_of
from foretell.data.payload import Payload
from foretell.forecasters.agent.agent import without_numbers
from foretell.models.budget import Budget
from foretell.operations.requests import PracticeRequest, TournamentRequest, VisitFields
from foretell.operations.result import Result
from foretell.operations.submit import SERVICES, PlatformConnection, open_ledger, open_platform
from foretell.operations.table import operation
from foretell.operations.tournament_plan import (
    VisitPlan,
    budget_for,
    most_spent_now,
    plan_of,
    spent_on,
    tournament_spec,
)
from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.report.run_report import answer_text
from foretell.report.tournament_page import TournamentDay, TournamentRow, markdown_summary, tournament_page
from foretell.runs.combine import CombinationSettings, one_forecast_per_question
from foretell.runs.executor import RunProgress
from foretell.runs.question_sets import MAX_QUESTIONS, TOURNAMENT_PREFIX, Benchmark, Tournament
from foretell.runs.runner import PreparedRun, WatchProgress, check_run, execute_run, prepare_run
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore
from foretell.runs.taught import combining_of_run
from foretell.submit.ledger import SubmissionHistory, SubmissionLedger
from foretell.submit.metaculus import (
    PLATFORM,
    MetaculusOptions,
    MetaculusSubmitter,
    MetaculusWriter,
    OpenMetaculusQuestion,
    questions_in_post,
    read_posts,
)
from foretell.submit.submission import (
    DONE_STATUSES,
    QUOTA_EXCEEDED,
    ItemResult,
    SendOptions,
    SubmissionPlan,
    SubmissionSender,
    Submitter,
    split_id,
)

TESTING_AREA = "bot-testing-area"
"""Where Metaculus lets bots be tried."""
ATTEMPTS = 3
"""Rounds in which a question may fail before it is given up."""
STALE = timedelta(days=1)
"""A question that was first seen longer ago, and is still not answered, is asked as of now."""
COUNTED = ("done", "failed", "degraded", "skipped", "dollars", "calls")
"""What runs of one visit add up."""
TOGETHER = 8
"""Questions that are forecast before any of them is sent: windows are short, and a kill should lose little."""
SHORTAGES = tuple(f"the budget of the {name} " for name in ("run", "visit", "tournament"))
"""How a failure begins that is one of money for the whole, and not of the question."""
LONGEST_COMMENT = 8000
VISITS_KEPT = 2000
Row = dict[str, Any]


# What is kept between visits.


def tournament_folder(settings: Settings, platform: str, name: str) -> Path:
    """Where the state of a tournament, or of a round, is kept."""
    return settings.home / "tournaments" / f"{SERVICES.get(platform, platform)}-{name}"


@dataclass(kw_only=True)
class PendingQuestion:
    """A question that was seen and is not answered yet, as it was when it was first seen."""

    question: Question
    attempts: int = 0
    problem: str = ""


@dataclass(kw_only=True)
class TournamentState:
    """What a visit leaves to the next."""

    path: Path
    pending: dict[str, PendingQuestion] = field(default_factory=dict[str, PendingQuestion])
    """By question id."""
    outbox: list[Forecast] = field(default_factory=list[Forecast])
    """Forecasts whose sending is not over; their reasons are the text of the comment."""
    texts: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By question id, of those in the outbox: how it is worded, and the answer in a few words."""
    made: dict[str, str] = field(default_factory=dict[str, str])
    """By question id, when it was last forecast: one that says the same as before leaves no entry in the ledger."""
    runs: list[str] = field(default_factory=list[str])
    """Everything that was spent on the tournament was spent by these."""
    visits: list[Row] = field(default_factory=list[Row])

    @classmethod
    def read(cls, path: Path) -> "TournamentState":
        """From its file; empty where there is none."""
        if not path.is_file():
            return cls(path=path)
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                path=path,
                pending={
                    id: PendingQuestion(
                        question=from_dict(row["question"], Question), attempts=row["attempts"], problem=row["problem"]
                    )
                    for id, row in body["pending"].items()
                },
                outbox=[from_dict(row, Forecast) for row in body["outbox"]],
                texts={id: (text, answer) for id, (text, answer) in body["texts"].items()},
                made=body["made"],
                runs=body["runs"],
                visits=body["visits"],
            )
        except (ValueError, TypeError, KeyError, AttributeError, InputError):
            hint = "delete it: what is open is then asked anew, and what stands on the platform is not"
            raise InputError("is damaged", path=path, hint=hint) from None

    def save(self) -> None:
        """Write all of it, or nothing."""
        body = {
            "pending": {
                id: {"question": json.loads(to_json(one.question)), "attempts": one.attempts, "problem": one.problem}
                for id, one in self.pending.items()
            },
            "outbox": [json.loads(to_json(forecast)) for forecast in self.outbox],
            "texts": self.texts,
            "made": self.made,
            "runs": self.runs,
            "visits": self.visits[-VISITS_KEPT:],
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, json.dumps(body, ensure_ascii=False).encode())

    def day(self, day: str) -> list[Row]:
        """The visits of a day."""
        return [one for one in self.visits if one["at"].startswith(day)]


# What is open, and which of it is asked now.


@dataclass(frozen=True, kw_only=True)
class ListedPart:
    """What one forecast is of: a whole question, or one of a group."""

    name: str
    """Our name of it."""
    closes_at: datetime | None
    answered: bool
    """Whether this account has a forecast of it there."""
    since: datetime | None = None
    """When that was made, where it is told."""
    target: str = ""
    """Of a group: which target of the question it is."""
    certain: bool = False
    """Whether the platform's word counts against what was sent before: it was of an earlier round."""


@dataclass(frozen=True, kw_only=True)
class ListedQuestion:
    """An open question of the tournament, with what this account has said of its parts."""

    question: Question
    parts: tuple[ListedPart, ...]
    """One; of a group of yes-or-no questions each that is open."""


@dataclass(frozen=True, kw_only=True)
class TournamentListing:
    """Everything that is open in a tournament, and what of it cannot be asked."""

    questions: tuple[ListedQuestion, ...]
    skipped: Mapping[str, int]
    """How many, by reason."""

    @classmethod
    def of(cls, found: Iterable[ListedQuestion], skipped: Mapping[str, int]) -> "TournamentListing":
        """Those that close first in front."""
        far = datetime.max.replace(tzinfo=UTC)
        return cls(questions=tuple(sorted(found, key=lambda one: one.question.closes_at or far)), skipped=dict(skipped))


class TournamentEvents(MetaculusEvents):
    """The open posts of a tournament, and beside them what this account has forecast already."""

    def __init__(self, client: MetaculusClient, slug: str) -> None:
        super().__init__(client, tournaments=(slug,))
        self.parts: dict[str, tuple[OpenMetaculusQuestion, ...]] = {}
        """By question id."""

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """A post as an event; its forecasts are kept."""
        event = await super().read(row, as_of, report)
        if not all(question.has("my_forecasts") for question in questions_of(row)):
            row = await self.fetch(event.question.id.removeprefix(f"{PLATFORM}/"))
        self.parts[event.question.id] = questions_in_post(row)
        return event


async def list_tournament(client: MetaculusClient, slug: str, now: datetime) -> TournamentListing:
    """What is open now, those that close first in front."""
    events = TournamentEvents(client, slug)
    listing = events.events(ListingFilter(as_of=AsOf(at=now, mode="live"), limit=MAX_QUESTIONS))
    found: list[ListedQuestion] = []
    for event in await listing.all():
        parts = tuple(one for one in events.parts[event.question.id] if not one.closed(now))
        if parts:
            found.append(ListedQuestion(question=event.question, parts=tuple(map(_listed_part, parts))))
        else:
            listing.ledger.left_out["it takes no forecast now"] += 1
    skipped = Counter(one.reason for one in listing.ledger.skipped) + listing.ledger.left_out
    return TournamentListing.of(found, skipped)


def _listed_part(part: OpenMetaculusQuestion) -> ListedPart:
    return ListedPart(
        name=part.name,
        closes_at=part.closes_at,
        answered=part.standing is not None,
        since=part.standing.since if part.standing else None,
        target=str(part.id) if part.grouped else "",
    )


@dataclass(frozen=True, kw_only=True)
class ForecastPolicy:
    """When a question is forecast that this account has forecast before."""

    again: timedelta | None = None
    before_close: timedelta | None = None

    def due(self, last: datetime, closes: datetime | None, now: datetime) -> bool:
        """Whether the last forecast is to be followed by another one now.

        >>> policy = ForecastPolicy(before_close=timedelta(hours=24))
        >>> monday, friday = instant("2026-11-16"), instant("2026-11-20")
        >>> [policy.due(monday, friday, monday + timedelta(days=days)) for days in (1, 3.5)]
        [False, True]
        """
        if self.again is not None and now - last >= self.again:
            return True
        if self.before_close is None or closes is None:
            return False
        begins = closes - self.before_close
        return begins <= now and last < begins


def questions_to_ask(
    listing: TournamentListing,
    state: TournamentState,
    policy: ForecastPolicy,
    sent: Mapping[str, Sequence[datetime]],
    now: datetime,
) -> tuple[list[Question], list[str]]:
    """What is to be forecast now, as it was first seen, and what was given up.

    Args:
        listing: What is open.
        state: What earlier visits left.
        policy: When a question is forecast again.
        sent: By the name of a question, when this account sent a forecast of it, as the ledger says.
        now: The moment.
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
        same = pending is not None and [t.id for t in pending.question.targets] == [t.id for t in question.targets]
        if pending is None or not same or now - pending.question.due >= STALE:
            state.pending[question.id] = pending = PendingQuestion(question=question)
        chosen.append(pending.question)
    return chosen, given_up


def _is_due(part: ListedPart, policy: ForecastPolicy, sent: Sequence[datetime], now: datetime) -> bool:
    if not part.answered and (part.certain or not sent):
        return True
    moments = [*sent] if part.since is None else [*sent, part.since]
    # A forecast of unknown age counts as made now.
    return policy.due(max(moments) if moments else now, part.closes_at, now)


# What a forecast says, for the comment and for the page.


def comment_text(forecast: Forecast, question: Question | None) -> str:
    """The forecast, when it was made, its reasons and what they rest on; empty where it gives no reasons."""
    reasons = re.sub(r"\n{3,}", "\n\n", without_numbers(forecast.rationale))
    if not reasons:
        return ""
    made = forecast.as_of.at.strftime("%Y-%m-%d %H:%M UTC")
    title = f"{question.text}\n\n" if question is not None and "#" in question.id else ""
    text = f"{title}**{answer_text(forecast, question)}**, as of {made}\n\n{reasons}"
    return text if len(text) <= LONGEST_COMMENT else text[: LONGEST_COMMENT - 2].rstrip() + " …"


# One platform, as a visit needs it.


class VisitedPlatform(Protocol):
    """Where questions are listed and forecasts are sent."""

    @property
    def reasons(self) -> bool:
        """Whether a forecast is sent only with a comment that gives its reasons."""
        ...

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """Under which name we forecast here, and what is open."""
        ...

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """A submitter that has looked at what the questions of these forecasts ask now."""
        ...

    def address(self, question: str) -> str:
        """The page of a question."""
        ...


@dataclass(frozen=True, kw_only=True)
class MetaculusVisits:
    """A tournament of Metaculus."""

    client: MetaculusClient
    writer: MetaculusWriter
    slug: str
    options: MetaculusOptions
    reasons: bool = True

    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """The bot's account, and what is open in the tournament."""
        return (await self.writer.account()).name, await list_tournament(self.client, self.slug, now)

    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """With the posts of these forecasts."""
        account, seen = await read_posts(self.writer, forecasts, (), self.options)
        return MetaculusSubmitter(writer=self.writer, account=account, seen=seen, now=now, options=self.options)

    def address(self, question: str) -> str:
        """The page of a post."""
        return post_address(question)


# The visit.


@dataclass(frozen=True, kw_only=True)
class TournamentResult(Result):
    """What one visit did."""

    tournament: str
    account: str = ""
    comments: bool = True
    """Whether every forecast has a comment beside it."""
    open: int = 0
    """Questions that are open."""
    rows_: tuple[TournamentRow, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()
    dollars: float = 0.0
    spent: float = 0.0
    """On the tournament in all."""
    stopped: str = ""
    """Why open questions were left unanswered."""
    page: Path | None = None
    requests: tuple[Row, ...] | None = None
    """What would be sent, for a dry run."""
    plan: VisitPlan | None = None
    """What would be asked, where only that was wanted."""

    @property
    def exit_code(self) -> int:
        """3 where an answer is missing, degraded or not sent."""
        return 3 if self.stopped or any(not row.sent for row in self.rows_ if self.requests is None) else 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        left = (f"{count} left out: {reason}" for reason, count in self.skipped.items())
        return (*left, *self.notes, *([f"stopped: {self.stopped}"] if self.stopped else []))

    def rows(self) -> list[Row]:
        """One row for each forecast that was made, sent or failed."""
        return [row.to_dict() for row in self.rows_]

    def to_dict(self) -> Row:
        """Counts, money and rows."""
        return {
            "tournament": self.tournament,
            "account": self.account,
            "open": self.open,
            "forecasts": self.rows(),
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
            "dollars": round(self.dollars, 9),
            "spent": round(self.spent, 9),
            "stopped": self.stopped or None,
            "page": None if self.page is None else str(self.page),
            **({} if self.requests is None else {"requests": list(self.requests)}),
            **({} if self.plan is None else {"plan": self.plan.to_dict()}),
        }

    def __str__(self) -> str:
        if self.plan is not None:
            return str(self.plan)
        sent = sum(row.sent for row in self.rows_)
        lines = [f"{row.named}: {row.answer or row.problem}" for row in self.rows_]
        failed = f", {len(self.rows_) - sent} not sent" if sent < len(self.rows_) and self.requests is None else ""
        money = f"${self.dollars:.4f} this time, ${self.spent:.4f} in all"
        lines.append(
            f"{self.tournament}: {self.open} open, {sent} sent{' with a comment' * self.comments}{failed}; {money}"
        )
        lines += [json.dumps(list(self.requests), ensure_ascii=False, indent=1)] if self.requests is not None else []
        return "\n".join([*lines, *([f"Wrote {self.page}"] if self.page else [])])


async def tournament(
    request: TournamentRequest,
    settings: Settings | None = None,
    *,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> TournamentResult:
    """Forecast what is open and unanswered in a tournament, and send it with comments.

    Args:
        request: The tournament and how to take part.
        settings: This machine's; without them, from the environment.
        watch: Is told how far the run is.
        tell: Is given a line about what goes on.
    """
    settings = settings or load_settings()
    if request.practice:
        async with practice_world(settings) as (world, engine):
            return await _visit_metaculus(request.model_copy(update={"search": (engine,)}), world, watch, tell)
    return await _visit_metaculus(request, settings, watch, tell)


enter_metaculus = operation(TournamentRequest)(tournament)


@asynccontextmanager
async def practice_world(settings: Settings) -> AsyncGenerator[tuple[Settings, str]]:
    """The settings of a practice world beside the user's own, and the search engine that it has."""
    from foretell.operations.practice import ENGINE, open_practice

    async with open_practice(PracticeRequest(), settings) as environment:
        yield load_settings({name: value for name, value in environment.items() if value is not None}), ENGINE


async def _visit_metaculus(
    request: TournamentRequest, settings: Settings, watch: WatchProgress, tell: Callable[[str], None]
) -> TournamentResult:
    slug = TESTING_AREA if request.rehearse else Tournament.read(TOURNAMENT_PREFIX + request.tournament).slug
    options = MetaculusOptions(comment=request.comment, clip=True)
    spec = tournament_spec(request, settings, f"{TOURNAMENT_PREFIX}{slug}")

    def reached(wire: PlatformConnection) -> MetaculusVisits:
        client = MetaculusClient(http=wire.reading, token=wire.key, **wire.host)
        writer = MetaculusWriter(client=client, http=wire.writing, token=wire.key, **wire.host)
        return MetaculusVisits(client=client, writer=writer, slug=slug, options=options)

    return await visit_alone(
        TournamentVisit(
            request=request, settings=settings, spec=spec, platform=PLATFORM, slug=slug, watch=watch, tell=tell
        ),
        reached,
    )


async def visit_alone(
    visit: "TournamentVisit", reached: Callable[[PlatformConnection], VisitedPlatform]
) -> TournamentResult:
    """A visit, unless another process is at one."""
    try:
        with locked(visit.folder / "lock", wait=False):
            async with open_platform(visit.platform, visit.settings) as wire:
                return await visit.take(reached(wire))
    except LockHeld:
        note = "another process is at this tournament; nothing was done"
        return TournamentResult(tournament=visit.slug, notes=(note,))
    except SourceError as error:
        problem = f"{visit.platform} could not be reached as it should: {error}"
        raise InputError(problem, hint="nothing more was sent; the next visit goes on") from None


class VisitProgress:
    """How far a visit is, whose questions are several runs: total and counts are those of all of them."""

    def __init__(self, watch: WatchProgress, total: int) -> None:
        self._watch = watch
        self._before = RunProgress(total=total)

    def __call__(self, now: RunProgress) -> None:
        """Tell how far all of it is."""
        before = self._before
        sums = {name: getattr(before, name) + getattr(now, name) for name in COUNTED}
        self._watch(replace(now, total=before.total, **sums))

    def add(self, done: RunProgress) -> None:
        """A run is over."""
        before = self._before
        self._before = replace(before, **{name: getattr(before, name) + getattr(done, name) for name in COUNTED})


@dataclass(kw_only=True)
class TournamentVisit:
    """One visit, under the tournament's lock."""

    request: VisitFields
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
    account: str = ""
    reasons: bool = True
    """Whether a forecast without reasons is not sent."""

    @property
    def folder(self) -> Path:
        """Where everything is that a later visit must know."""
        return tournament_folder(self.settings, self.platform, self.slug)

    async def take(self, site: VisitedPlatform) -> TournamentResult:
        """List, send what was left over, forecast, send, tell."""
        state = TournamentState.read(self.folder / "state.json")
        now = clock_of(self.settings)().replace(microsecond=0)
        spec, only_looks = self.spec, self.request.dry_run or self.request.plan
        check_run(spec, self.settings)
        if state.outbox and not only_looks:
            self.tell(f"not sent yet, of an earlier visit: {len(state.outbox)}")
            await self.hand_in(site, state)
        self.reasons = site.reasons
        self.account, listing = await site.look(now)
        policy = ForecastPolicy(
            again=None if self.request.again is None else timedelta(days=self.request.again),
            before_close=None if self.request.before_close is None else timedelta(hours=self.request.before_close),
        )
        questions, given_up = questions_to_ask(listing, state, policy, self._sent(), now)
        self.notes += [f"given up after {ATTEMPTS} visits: {one}" for one in given_up]
        questions = questions[: self.request.limit]
        self.tell(f"{self.slug}: {len(listing.questions)} questions are open, {len(questions)} to forecast")
        before = self.spent(state)
        if self.request.plan:
            return self._planned(questions, listing, before)
        requests: tuple[Row, ...] | None = () if self.request.dry_run else None
        budget = budget_for(self.request, spec, self.settings, before)
        progress = VisitProgress(self.watch, len(questions) * spec.trials)
        for start in range(0, len(questions), TOGETHER):
            if self.stopped or not self._affordable(self.spent(state)):
                break
            forecasts = await self.forecast(spec, questions[start : start + TOGETHER], state, budget, progress)
            if requests is not None:
                submitter = await site.submitter(forecasts, clock_of(self.settings)())
                requests += tuple(asdict(one) for one in submitter.requests(submitter.plan(forecasts, ()).ready))
            else:
                await self.hand_in(site, state)
        # What the answers say is told with the page of each question.
        self.rows = [replace(row, url=site.address(row.question)) for row in self.rows]
        spent = self.spent(state)
        page = self._noted(state, now, listing, before, spent)
        return TournamentResult(
            tournament=self.slug,
            account=self.account,
            comments=self.reasons,
            open=len(listing.questions),
            rows_=tuple(self.rows),
            skipped=listing.skipped,
            notes=tuple(self.notes),
            dollars=spent - before,
            spent=spent,
            stopped=self.stopped,
            page=page,
            requests=requests,
        )

    def _planned(self, questions: Sequence[Question], listing: TournamentListing, before: float) -> TournamentResult:
        """What would be asked, and what that costs."""
        nothing = QuestionSet(name=self.slug)
        benchmark = Benchmark(questions=nothing, history=nothing)
        prepared = PreparedRun(spec=self.spec, benchmark=benchmark, questions=tuple(questions))
        limit = most_spent_now(self.request, self.spec, before)
        plan = plan_of(prepared, self.settings, self.slug, concurrency=self.request.concurrency, limit=limit)
        return TournamentResult(
            tournament=self.slug,
            account=self.account,
            open=len(listing.questions),
            skipped=listing.skipped,
            notes=tuple(self.notes),
            spent=before,
            plan=plan,
        )

    def _sent(self) -> dict[str, list[datetime]]:
        """By the name of a question, when this account last sent a forecast of it, as the ledger says."""
        history = SubmissionHistory.of(open_ledger(self.settings).entries()).taken
        return {
            key[2]: [instant(entries[-1].at)]
            for key, entries in history.items()
            if key[0] == self.platform and key[1] == self.account and key[3] == "forecast"
        }

    def spent(self, state: TournamentState) -> float:
        """Dollars of all visits."""
        return spent_on(self.settings, state.runs)

    def _affordable(self, before: float) -> bool:
        limit = self.request.tournament_budget
        if limit is not None and before >= limit:
            self.stopped = f"the tournament's budget of ${limit:g} is spent"
        return not self.stopped

    async def forecast(
        self,
        spec: RunSpec,
        questions: Sequence[Question],
        state: TournamentState,
        budget: Budget | None,
        progress: "VisitProgress",
    ) -> list[Forecast]:
        """A run over the questions, and its answers put where they wait to be sent."""
        batch = self.folder / "batches" / f"{max(one.due for one in questions):%Y%m%dT%H%M%S}-{len(state.runs)}.jsonl"
        batch.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(batch, "".join(f"{to_json(one)}\n" for one in questions).encode())
        spec = replace(spec, questions=QuestionsSpec(dataset=str(batch)))
        prepared = prepare_run(spec)
        self.run = prepared.spec.id
        if self.run not in state.runs:
            state.runs.append(self.run)
        state.save()  # Before anything is paid: what a killed visit spent counts.
        done = await execute_run(
            prepared, replace(self.settings, budget=budget), watch=progress, concurrency=self.request.concurrency
        )
        progress.add(done)
        with closing(RunStore(self.settings.store)) as store:
            answers = list(store.answers(self.run))
            how = combining_of_run(store, spec)
        self.stopped = done.stopped
        return self._taken(questions, answers, how, state)

    def _taken(
        self,
        questions: Sequence[Question],
        answers: Sequence[Forecast | Failure],
        how: CombinationSettings,
        state: TournamentState,
    ) -> list[Forecast]:
        """The forecasts that may be sent go to the outbox; the other questions wait for the next visit."""
        how = replace(how, degraded=self.request.degraded)
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
            # What had no money was not tried.
            self._fail(state, question.id, problem, count=not any(name in problem for name in SHORTAGES))
        if self.request.dry_run:
            self.rows += [_row(state, one.question_id) for one in ready]
            return ready
        state.outbox += ready
        state.save()
        return ready

    async def hand_in(self, site: VisitedPlatform, state: TournamentState) -> None:
        """Send what waits, one forecast with its comment after the other; what became of each is kept at once."""
        # A server of one's own need not be given time.
        own: dict[str, Any] = {"pause": 0.1} if SERVICES[self.platform] in self.settings.addresses else {}
        ledger, clock = open_ledger(self.settings), clock_of(self.settings)
        submitter = await site.submitter(state.outbox, clock())
        sender = SubmissionSender(submitter, ledger, clock, SendOptions(**own))
        for forecast in list(state.outbox):
            plan = submitter.plan([forecast], ())
            self._settle(forecast.question_id, plan, await sender.hand_in(plan), state)

    def _settle(
        self, question: str, plan: SubmissionPlan, results: Sequence[ItemResult], state: TournamentState
    ) -> None:
        """Out of the outbox goes what the platform has, or does not want; what nobody knows of stays."""
        # What is over the quota of the day goes tomorrow, as it is.
        unsure = [one for one in results if one.fate in ("unknown", "failed") or QUOTA_EXCEEDED in one.reason]
        problems = [f"{item.part}: {problem}" for item in plan.refused for problem in item.problems]
        problems += [f"{one.item.part}: {one.reason}" for one in results if one.fate not in DONE_STATUSES]
        if problems:
            self._fail(state, question, "; ".join(dict.fromkeys(problems)), count=not unsure)
        else:
            self.rows.append(replace(_row(state, question), sent=True))
            state.pending.pop(question, None)
            state.made[question] = clock_of(self.settings)().isoformat(timespec="seconds")
        if not unsure:
            state.outbox = [one for one in state.outbox if one.question_id != question]
            state.texts.pop(question, None)
        state.save()

    def _fail(self, state: TournamentState, question: str, problem: str, *, count: bool = True) -> None:
        self.rows.append(replace(_row(state, question), problem=problem))
        if (pending := state.pending.get(question)) is not None:
            pending.problem, pending.attempts = problem, pending.attempts + count

    def _noted(
        self, state: TournamentState, now: datetime, listing: TournamentListing, before: float, spent: float
    ) -> Path | None:
        """Keep what the visit did, and write the page of its day."""
        if self.request.dry_run:
            return None
        # The ledger knows the number of each comment.
        links = comment_links(open_ledger(self.settings), self.account) if self.platform == PLATFORM else {}
        self.rows = [replace(row, comment=links.get(row.question, "") if row.sent else "") for row in self.rows]
        state.visits.append(
            {
                "at": now.isoformat(),
                "run": self.run,
                "dollars": spent - before,
                "rows": [row.to_dict() for row in self.rows],
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
            dollars=sum(one["dollars"] for one in today),
            spent=spent,
            budget=self.request.tournament_budget,
            comments=self.reasons,
        )
        page = self.folder / "pages" / f"{day.day}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(page, tournament_page(day).encode())
        if self.request.summary is not None:
            with self.request.summary.open("a", encoding="utf-8") as file:
                file.write(markdown_summary(day))
        return page


def _row(state: TournamentState, question: str) -> TournamentRow:
    """What is known of a question, before it is known what became of it."""
    pending = state.pending.get(question)
    text, answer = state.texts.get(question, ("" if pending is None else pending.question.text, ""))
    return TournamentRow(question=question, text=text, answer=answer)


def post_address(question: str) -> str:
    """The address of a question's page.

    >>> post_address("metaculus/20925#52")
    'https://www.metaculus.com/questions/20925/'
    """
    return f"https://www.metaculus.com/questions/{split_id(question)[1].partition('#')[0]}/"


def comment_links(ledger: SubmissionLedger, account: str) -> dict[str, str]:
    """By question, the address of the newest comment of this account."""
    found: dict[str, str] = {}
    for entry in ledger.entries():
        if (entry.kind, entry.part, entry.platform, entry.account) == ("receipt", "comment", PLATFORM, account):
            number = cast("Row", entry.content.get("answer") or {}).get("comment")
            found[entry.question] = f"{post_address(entry.question)}#comment-{number}" if number else ""
    return found


def _why_missing(question: str, answers: Sequence[Forecast | Failure]) -> str:
    """Why a question has no forecast that may be sent."""
    own = [answer for answer in answers if answer.question_id == question]
    why = [one.error if isinstance(one, Failure) else f"degraded: {one.problem}" for one in own]
    return "; ".join(dict.fromkeys(why)) or "the run stopped before it was asked"
