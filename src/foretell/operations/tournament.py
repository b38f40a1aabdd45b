"""One visit of a tournament: what is open and unanswered is forecast, sent with its reasons, and told on a page.

Everything that a later visit must know is in one file, written anew whole at every step: questions as they were first
seen, forecasts that are not sent yet, the runs that were paid for, and what each visit did. A visit that is killed is
made good by the next: replies come back from the journal, and what was sent is found in the ledger or on the platform.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from foretell.data.atomic_file import write_atomically
from foretell.data.datasets.rows import read_text
from foretell.data.file_lock import LockHeld, locked
from foretell.data.http import SourceError
from foretell.data.markets.listing import ListedEvent, ListingFilter, ListingReport
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents, questions_of
from foretell.data.payload import Payload
from foretell.forecasters.agent.agent import without_numbers
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.operations.requests import PracticeRequest, TournamentRequest
from foretell.operations.result import Result
from foretell.operations.submit import open_ledger, open_platform
from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast, Numeric
from foretell.questions.question import Question
from foretell.report.tournament_page import TournamentDay, TournamentRow, markdown_summary, tournament_page
from foretell.runs.combine import CombinationSettings, one_forecast_per_question
from foretell.runs.executor import RunProgress
from foretell.runs.question_sets import MAX_QUESTIONS, TOURNAMENT_PREFIX, Tournament
from foretell.runs.runner import WatchProgress, asks_models, check_run, execute_run, prepare_run
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec, spec_from_mapping, yaml_mapping
from foretell.runs.store import RunStore
from foretell.runs.taught import combining_of_run
from foretell.submit.ledger import SubmissionHistory, SubmissionLedger
from foretell.submit.metaculus import PLATFORM, MetaculusOptions, MetaculusSubmitter, read_posts
from foretell.submit.metaculus_client import MetaculusWriter, OpenMetaculusQuestion, questions_in_post
from foretell.submit.sending import DONE_STATUSES, ItemResult, SendOptions, SubmissionSender
from foretell.submit.submission import SubmissionPlan, split_id

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
class ListedQuestion:
    """An open question of the tournament, with the forecasts that this account has made of its parts."""

    question: Question
    parts: tuple[OpenMetaculusQuestion, ...]
    """One; of a group of yes-or-no questions each that is open."""


@dataclass(frozen=True, kw_only=True)
class TournamentListing:
    """Everything that is open in a tournament, and what of it cannot be asked."""

    questions: tuple[ListedQuestion, ...]
    skipped: Mapping[str, int]
    """How many, by reason."""


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
            found.append(ListedQuestion(question=event.question, parts=parts))
        else:
            listing.ledger.left_out["it takes no forecast now"] += 1
    skipped = Counter(one.reason for one in listing.ledger.skipped) + listing.ledger.left_out
    far = datetime.max.replace(tzinfo=UTC)
    return TournamentListing(
        questions=tuple(sorted(found, key=lambda one: one.question.closes_at or far)), skipped=dict(skipped)
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
        if asked[0].grouped and len(question.targets) > 1:
            numbers = {str(part.id) for part in asked}
            targets = tuple(target for target in question.targets if target.id in numbers)
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


def _is_due(part: OpenMetaculusQuestion, policy: ForecastPolicy, sent: Sequence[datetime], now: datetime) -> bool:
    if part.standing is None and not sent:
        return True
    shown = part.standing.since if part.standing else None
    moments = [*sent] if shown is None else [*sent, shown]
    # A forecast of unknown age counts as made now.
    return policy.due(max(moments) if moments else now, part.closes_at, now)


# What a forecast says, for the comment and for the page.


def answer_text(forecast: Forecast, question: Question | None) -> str:
    """The answer in a few words.

    >>> answer_text(Forecast(question_id="q", forecaster="f", as_of=AsOf.day("2026-11-15"), p={"yes": 0.344}), None)
    '34.4%'
    """
    scale = None if question is None else question.range
    if isinstance(forecast.distribution, Numeric):
        values = [forecast.distribution.quantile(level) for level in (0.1, 0.5, 0.9)]
        if scale is None or not scale.dates:
            values = [float(f"{value:.4g}") for value in values]
        low, middle, high = (str(value) if scale is None else scale.write(value) for value in values)
        return f"{middle} (8 in 10: {low} to {high})"
    if len(forecast.p) == 1:
        return f"{next(iter(forecast.p.values())):.1%}"
    labels = {} if question is None else {target.id: target.label or target.id for target in question.targets}
    ranked = sorted(forecast.p.items(), key=lambda one: -one[1])
    return ", ".join(f"{labels.get(id, id)} {p:.1%}" for id, p in ranked)


def comment_text(forecast: Forecast, question: Question | None) -> str:
    """The forecast, when it was made, its reasons and what they rest on; empty where it gives no reasons."""
    reasons = re.sub(r"\n{3,}", "\n\n", without_numbers(forecast.rationale))
    if not reasons:
        return ""
    made = forecast.as_of.at.strftime("%Y-%m-%d %H:%M UTC")
    title = f"{question.text}\n\n" if question is not None and "#" in question.id else ""
    text = f"{title}**{answer_text(forecast, question)}**, as of {made}\n\n{reasons}"
    return text if len(text) <= LONGEST_COMMENT else text[: LONGEST_COMMENT - 2].rstrip() + " …"


# The visit.


@dataclass(frozen=True, kw_only=True)
class TournamentResult(Result):
    """What one visit did."""

    tournament: str
    account: str = ""
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
        }

    def __str__(self) -> str:
        sent = sum(row.sent for row in self.rows_)
        lines = [f"{row.question}: {row.answer or row.problem}" for row in self.rows_]
        failed = f", {len(self.rows_) - sent} not sent" if sent < len(self.rows_) and self.requests is None else ""
        money = f"${self.dollars:.4f} this time, ${self.spent:.4f} in all"
        lines.append(f"{self.tournament}: {self.open} open, {sent} sent with a comment{failed}; {money}")
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
    if request.practice:
        return await _in_practice(request, settings or load_settings(), watch, tell)
    return await _alone(request, settings or load_settings(), watch, tell)


async def _in_practice(
    request: TournamentRequest, settings: Settings, watch: WatchProgress, tell: Callable[[str], None]
) -> TournamentResult:
    from foretell.operations.practice import ENGINE, open_practice

    async with open_practice(PracticeRequest(), settings) as environment:
        world = load_settings({name: value for name, value in environment.items() if value is not None})
        return await _alone(request.model_copy(update={"search": (ENGINE,)}), world, watch, tell)


async def _alone(
    request: TournamentRequest, settings: Settings, watch: WatchProgress, tell: Callable[[str], None]
) -> TournamentResult:
    """A visit, unless another process is at one."""
    slug = TESTING_AREA if request.rehearse else Tournament.read(TOURNAMENT_PREFIX + request.tournament).slug
    folder = settings.home / "tournaments" / f"{request.platform}-{slug}"
    try:
        with locked(folder / "lock", wait=False):
            async with open_platform(request.platform, settings) as wire:
                client = MetaculusClient(http=wire.reading, token=wire.key, **wire.address)
                writer = MetaculusWriter(client=client, http=wire.writing, token=wire.key, **wire.address)
                return await TournamentVisit(
                    request=request,
                    settings=settings,
                    slug=slug,
                    folder=folder,
                    client=client,
                    writer=writer,
                    watch=watch,
                    tell=tell,
                ).take()
    except LockHeld:
        return TournamentResult(tournament=slug, notes=("another process is at this tournament; nothing was done",))
    except SourceError as error:
        problem = f"{request.platform} could not be reached as it should: {error}"
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

    request: TournamentRequest
    settings: Settings
    slug: str
    folder: Path
    client: MetaculusClient
    writer: MetaculusWriter
    watch: WatchProgress
    tell: Callable[[str], None]
    rows: list[TournamentRow] = field(default_factory=list[TournamentRow])
    notes: list[str] = field(default_factory=list[str])
    stopped: str = ""
    run: str = ""
    account: str = ""

    async def take(self) -> TournamentResult:
        """List, send what was left over, forecast, send, tell."""
        state = TournamentState.read(self.folder / "state.json")
        now = clock_of(self.settings)().replace(microsecond=0)
        spec = tournament_spec(self.request, self.settings, self.slug)
        check_run(spec, self.settings)
        if state.outbox and not self.request.dry_run:
            self.tell(f"not sent yet, of an earlier visit: {len(state.outbox)}")
            await self.hand_in(state)
        listing, sent = await self._look(now)
        policy = ForecastPolicy(
            again=None if self.request.again is None else timedelta(days=self.request.again),
            before_close=None if self.request.before_close is None else timedelta(hours=self.request.before_close),
        )
        questions, given_up = questions_to_ask(listing, state, policy, sent, now)
        self.notes += [f"given up after {ATTEMPTS} visits: {one}" for one in given_up]
        questions = questions[: self.request.limit]
        self.tell(f"{self.slug}: {len(listing.questions)} questions are open, {len(questions)} to forecast")
        before = self.spent(state)
        requests: tuple[Row, ...] | None = () if self.request.dry_run else None
        budget, progress = self._budget(spec, before), VisitProgress(self.watch, len(questions) * spec.trials)
        for start in range(0, len(questions), TOGETHER):
            if self.stopped or not self._affordable(self.spent(state)):
                break
            forecasts = await self.forecast(spec, questions[start : start + TOGETHER], state, budget, progress)
            if requests is not None:
                requests += await self.requests(forecasts)
            else:
                await self.hand_in(state)
        spent = self.spent(state)
        page = self._noted(state, now, listing, before, spent)
        return TournamentResult(
            tournament=self.slug,
            account=self.account,
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

    async def _look(self, now: datetime) -> tuple[TournamentListing, dict[str, list[datetime]]]:
        self.account = (await self.writer.account()).name
        listing = await list_tournament(self.client, self.slug, now)
        history = SubmissionHistory.of(open_ledger(self.settings).entries()).taken
        sent = {
            key[2]: [instant(entries[-1].at)]
            for key, entries in history.items()
            if key[0] == PLATFORM and key[1] == self.account and key[3] == "forecast"
        }
        return listing, sent

    def spent(self, state: TournamentState) -> float:
        """Dollars of all visits, lost replies at their estimate, also where a visit was killed."""
        if not state.runs or not (self.settings.database or Path(self.settings.journal).is_file()):
            return 0.0
        with closing(Journal(self.settings.journal)) as journal:
            return sum(journal.paid(run) + journal.unsettled(run).at_risk for run in state.runs)

    def _affordable(self, before: float) -> bool:
        limit = self.request.tournament_budget
        if limit is not None and before >= limit:
            self.stopped = f"the tournament's budget of ${limit:g} is spent"
        return not self.stopped

    def _budget(self, spec: RunSpec, before: float) -> Budget | None:
        """Around the runs of this visit: what is left for the tournament, and within it what the visit may cost."""
        limit, around = self.request.tournament_budget, self.settings.budget
        if limit is not None:
            around = Budget("tournament", dollars=max(0.0, limit - before), within=around)
        return around if spec.budget.run is None else Budget("visit", dollars=spec.budget.run, within=around)

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
            if forecast is not None and text:
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

    async def _submitter(self, forecasts: Sequence[Forecast]) -> MetaculusSubmitter:
        """A submitter that has looked at what the posts of these forecasts ask now."""
        wishes = MetaculusOptions(comment=self.request.comment, clip=True)
        account, seen = await read_posts(self.writer, forecasts, (), wishes)
        now = clock_of(self.settings)()
        return MetaculusSubmitter(desk=self.writer, account=account, seen=seen, now=now, wishes=wishes)

    async def requests(self, forecasts: Sequence[Forecast]) -> tuple[Row, ...]:
        """What would be sent."""
        submitter = await self._submitter(forecasts)
        return tuple(asdict(one) for one in submitter.requests(submitter.plan(forecasts, ()).ready))

    async def hand_in(self, state: TournamentState) -> None:
        """Send what waits, one forecast with its comment after the other; what became of each is kept at once."""
        # A server of one's own need not be given time.
        own: dict[str, Any] = {"pause": 0.1} if PLATFORM in self.settings.addresses else {}
        ledger, clock = open_ledger(self.settings), clock_of(self.settings)
        submitter = await self._submitter(state.outbox)
        sender = SubmissionSender(submitter, ledger, clock, SendOptions(**own))
        for forecast in list(state.outbox):
            plan = submitter.plan([forecast], ())
            self._settle(forecast.question_id, plan, await sender.hand_in(plan), state)

    def _settle(
        self, question: str, plan: SubmissionPlan, results: Sequence[ItemResult], state: TournamentState
    ) -> None:
        """Out of the outbox goes what the platform has, or does not want; what nobody knows of stays."""
        unsure = [one for one in results if one.fate in ("unknown", "failed")]
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
        links = comment_links(open_ledger(self.settings), self.account)
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
    return TournamentRow(question=question, text=text, answer=answer, url=post_address(question))


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


def tournament_spec(request: TournamentRequest, settings: Settings, slug: str) -> RunSpec:
    """How to forecast: the file of a spec, if there is one, and what the request says beside it."""
    written: Any = {} if request.spec is None else yaml_mapping(read_text(request.spec))
    if not isinstance(written, dict):
        raise InputError("is not a run's spec", path=request.spec)
    try:
        spec = spec_from_mapping(cast("Row", written) | {"questions": f"{TOURNAMENT_PREFIX}{slug}", "mode": "live"})
    except InputError as error:
        raise error.at(path=request.spec) from None
    if spec.clairvoyant:
        raise InputError("a clairvoyant run is no forecast", path=request.spec, column="clairvoyant")
    model = request.model or spec.models.get("agent") or settings.keys.get("FORETELL_MODEL")
    engines = tuple(filter(None, settings.keys.get("FORETELL_SEARCH", "").split(",")))
    spec = replace(
        spec,
        models={**spec.models, "agent": model} if model else spec.models,
        search=request.search or spec.search or engines,
        trials=request.trials or spec.trials,
        budget=BudgetSpec(
            run=request.budget or spec.budget.run, question=request.question_budget or spec.budget.question
        ),
    )
    if asks_models(spec) and "agent" not in spec.models:
        raise InputError(
            "no model is named", column="--model", hint="e.g. openai:NAME; FORETELL_MODEL stands in for it"
        )
    return spec
