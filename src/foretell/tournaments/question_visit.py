"""A visit to a tournament with single questions, on Metaculus or Prophet Arena: send each with reasons."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, cast

from foretell.data.datasets.question_set import QuestionSet
from foretell.data.files import write_atomically
from foretell.data.http import SourceError
from foretell.forecasters.agent.agent import without_numbers
from foretell.frozen import frozen
from foretell.number_text import dollars
from foretell.questions.as_of import instant
from foretell.questions.codec import to_json
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.report.run_plan import RunPlan
from foretell.report.run_report import answer_text
from foretell.report.tournament_page import TournamentDay, TournamentRow, markdown_summary, tournament_page
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import PreparedRun, prepare_run
from foretell.runs.settings import clock_of
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.tournaments.connection import PlatformConnection, open_platform, open_sender
from foretell.tournaments.ledger import SubmissionHistory, open_ledger
from foretell.tournaments.money import PaidResult
from foretell.tournaments.policy import ATTEMPTS, STALE, TournamentListing, questions_to_ask, reads_the_same
from foretell.tournaments.settings import UpdateSettings
from foretell.tournaments.state import Row, TournamentState
from foretell.tournaments.submission import (
    DONE_STATUSES,
    QUOTA_EXCEEDED,
    TURNED_AWAY,
    ItemResult,
    SubmissionPlan,
    Submitter,
)
from foretell.tournaments.visit import Visit, why_unusable

TOGETHER = 8
"""How many questions are forecast before any is sent. Few, because questions close soon and a run may be killed."""
SHORTAGES = tuple(f"the budget of the {name} " for name in ("run", "tournament run", "tournament"))
"""Beginnings of errors that mean that the money for the whole tournament ran out, not for one question."""
LONGEST_COMMENT = 8000


# The text of a comment.


def comment_text(forecast: Forecast, question: Question | None) -> str:
    """Return the text of a comment: the forecast, its date and its reasons. Empty if there are no reasons."""
    reasons = re.sub(r"\n{3,}", "\n\n", without_numbers(forecast.rationale))
    if not reasons:
        return ""
    date = forecast.as_of.at.strftime("%Y-%m-%d %H:%M UTC")
    title = f"{question.text}\n\n" if question is not None and "#" in question.id else ""
    text = f"{title}**{answer_text(forecast, question)}**, as of {date}\n\n{reasons}"
    return text if len(text) <= LONGEST_COMMENT else text[: LONGEST_COMMENT - 2].rstrip() + " …"


# What a visit needs of a platform.


class TournamentPlatform(ABC):
    """A platform that lists questions and accepts forecasts."""

    reasons: ClassVar[bool]
    """Whether every forecast needs a comment with its reasons."""

    @abstractmethod
    async def look(self, now: datetime) -> tuple[str, TournamentListing]:
        """Return the account we forecast with, and the open questions."""

    @abstractmethod
    async def submitter(self, forecasts: Sequence[Forecast], now: datetime) -> Submitter:
        """Return a submitter that knows the current state of the questions behind these forecasts."""

    @abstractmethod
    def address(self, question: str) -> str:
        """Return the address of a question."""

    def comment_address(self, question: str, reply: Row) -> str:
        """Return the address of a comment from the platform's reply to it; empty if it has none."""
        del question, reply
        return ""


# The visit.


@frozen
class TournamentResult(PaidResult):
    """What one visit did."""

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
        """3 if an answer is missing, is a fallback or was not sent."""
        return 3 if self.stopped or any(not row.sent for row in self.forecasts if self.requests is None) else 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        left = (f"{count} left out: {reason}" for reason, count in self.skipped.items())
        return (*left, *self.notes, *([f"stopped: {self.stopped}"] if self.stopped else []))

    def __str__(self) -> str:
        if self.plan is not None:
            return f"{self.tournament}: {self.plan}"
        sent = sum(row.sent for row in self.forecasts)
        lines = [f"{row.named}: {row.outcome}" for row in self.forecasts]
        left = len(self.forecasts) - sent
        failed = f", {left} not sent" if left and self.requests is None else ""
        comments = " with a comment" * self.comments
        lines.append(f"{self.tournament}: {self.open} open, {sent} sent{comments}{failed}; {self.money_text}")
        lines += [json.dumps(list(self.requests), ensure_ascii=False, indent=1)] if self.requests is not None else []
        return "\n".join([*lines, *([f"Wrote {self.page}"] if self.page else [])])


@dataclass(kw_only=True)
class QuestionVisit(Visit[TournamentState, TournamentResult, RunSpec]):
    """One visit to a tournament with single questions."""

    own: UpdateSettings
    """The section `tournament` of the settings."""
    connect: Callable[[PlatformConnection], TournamentPlatform]
    site: TournamentPlatform = field(init=False)
    now: datetime = field(init=False)
    listing: TournamentListing = field(default_factory=TournamentListing)
    rows: list[TournamentRow] = field(default_factory=list[TournamentRow])
    requests: list[Row] = field(default_factory=list[Row])
    """The requests of a dry run."""
    stopped: str = ""
    run: str = ""
    trials: int = 0
    """How many trials this visit runs."""
    account: str = ""
    reasons: bool = True
    """Whether only forecasts with reasons are sent."""

    async def take(self) -> TournamentResult:
        """Take part with a connection to the platform."""
        async with open_platform(self.platform, self.settings) as connection:
            self.site = self.connect(connection)
            return await super().take()

    def read_state(self) -> TournamentState:
        """Return the state of earlier visits."""
        return TournamentState.read(self.folder / "state.json")

    async def look(self) -> Sequence[Question]:
        """Send what an earlier visit left, then choose from the open questions."""
        self.now = clock_of(self.settings)().replace(microsecond=0)
        if self.state.outbox and not (self.options.dry_run or self.options.plan):
            self.options.tell(f"not sent yet from an earlier run: {len(self.state.outbox)}")
            _, listing = await self.site.look(self.now)
            self._drop_edited(listing)
            await self.hand_in()
        self.reasons = self.site.reasons
        self.account, self.listing = await self.site.look(self.now)
        questions, given_up = questions_to_ask(self.listing, self.state, self.own, self._sent(), self.now)
        self.notes += [f"given up after {ATTEMPTS} runs: {problem}" for problem in given_up]
        left = len(questions) + len(given_up)
        questions = questions[: self.options.limit]
        count = len(self.listing.questions)
        answered = f", {count - left} answered already" if count > left else ""
        again = "; --set tournament.update_after=DAYS answers them again" if answered and not questions else ""
        self.options.tell(f"{self.slug}: {count} open{answered}, {len(questions)} to forecast{again}")
        self.trials = len(questions) * self.spec.trials
        return questions

    def planned(self, questions: Sequence[Question]) -> RunPlan:
        """Return what the visit would ask and cost."""
        nothing = QuestionSet(name=self.slug)
        benchmark = Benchmark(questions=nothing, history=nothing)
        prepared = PreparedRun(spec=self.spec, benchmark=benchmark, questions=tuple(questions))
        return self.plan_of(prepared)

    def batches(self, questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
        """Return few questions at a time, until something stops the visit or the budget is used up."""
        for start in range(0, len(questions), TOGETHER):
            money = self.money.total
            if self.limit is not None and money.used >= self.limit:
                self.stopped = f"the tournament's budget of {dollars(self.limit)} is used up: {money}"
            if self.stopped:
                return
            yield questions[start : start + TOGETHER]

    async def send(self, forecasts: Sequence[Forecast]) -> None:
        """Send the outbox, or list the requests of a dry run."""
        if self.options.dry_run:
            submitter = await self.site.submitter(forecasts, clock_of(self.settings)())
            plan = submitter.plan(forecasts, ())
            self.requests += [asdict(request) for request in submitter.requests(plan.ready)]
        elif not await self.hand_in():
            self.stopped = self.stopped or f"{self.platform} cannot be read; the next run sends what is forecast"

    def record(self, money: dict[str, float]) -> TournamentResult:
        """Link each row to its page, and write the page of the day."""
        self.rows = [replace(row, url=self.site.address(row.question)) for row in self.rows]
        return self.result(
            **money,
            page=None if self.options.dry_run else self._noted(money),
            forecasts=tuple(self.rows),
            stopped=self.stopped or None,
            requests=tuple(self.requests) if self.options.dry_run else None,
        )

    def result(self, **fields: Any) -> TournamentResult:
        """Return the result so far."""
        return TournamentResult(
            tournament=self.slug,
            account=self.account,
            comments=self.reasons,
            open=len(self.listing.questions),
            skipped=self.listing.skipped,
            notes=tuple(self.notes),
            **fields,
        )

    def _drop_edited(self, listing: TournamentListing) -> None:
        """Drop unsent forecasts whose question was edited since, so that the new text is asked."""
        listed = {question.question.id: question.question for question in listing.questions}
        for id in [forecast.question_id for forecast in self.state.outbox]:
            pending = self.state.pending.get(id)
            if pending is not None and id in listed and not reads_the_same(pending.question, listed[id]):
                self.notes.append(
                    f"{id} was edited after it was forecast; the forecast is not sent, and the question is asked again"
                )
                self.state.outbox = [forecast for forecast in self.state.outbox if forecast.question_id != id]
                self.state.texts.pop(id, None)
        self.state.save()

    def _sent(self) -> dict[str, list[datetime]]:
        """Return when this account last sent a forecast of each question, according to the ledger."""
        history = SubmissionHistory.of(open_ledger(self.settings).entries()).taken
        return {
            key[2]: [instant(entries[-1].at)]
            for key, entries in history.items()
            if key[0] == self.platform and key[1] == self.account and key[3] == "forecast"
        }

    async def forecast(self, questions: Sequence[Question]) -> list[Forecast]:
        """Run the questions and put the answers into the outbox."""
        name = f"{max(question.due for question in questions):%Y%m%dT%H%M%S}-{len(self.state.runs)}.jsonl"
        batch = self.folder / "batches" / name
        write_atomically(batch, "".join(f"{to_json(question)}\n" for question in questions).encode())
        prepared = prepare_run(replace(self.spec, questions=QuestionsSpec(dataset=str(batch))))
        self.run = prepared.spec.id
        if self.run not in self.state.runs:
            self.state.runs.append(self.run)
        self.state.save()  # Before anything is paid, so that the cost of a killed run counts.
        before = self.done
        done = await self.execute(prepared, lambda now: self.options.watch(replace(before + now, total=self.trials)))
        self.done, self.stopped = before + done, done.stopped
        forecasts, answers = self.combined(prepared.spec, questions)
        return self._ready(questions, forecasts, answers)

    def _ready(
        self, questions: Sequence[Question], forecasts: Mapping[str, Forecast], answers: Sequence[Forecast | Failure]
    ) -> list[Forecast]:
        """Put forecasts that can be sent into the outbox; the other questions wait for the next visit."""
        ready: list[Forecast] = []
        for question in questions:
            forecast = forecasts.get(question.id)
            text = "" if forecast is None else comment_text(forecast, question)
            if forecast is not None and (text or not self.reasons):
                ready.append(replace(forecast, rationale=text))
                self.state.texts[question.id] = (question.text, answer_text(forecast, question))
                continue
            problem = _why_missing(question.id, answers) if forecast is None else "it gives no `reason` for the comment"
            # A question that could not be paid for has not failed.
            self._fail(question.id, problem, count=not any(name in problem for name in SHORTAGES))
        if self.options.dry_run:
            self.rows += [self._row(forecast.question_id) for forecast in ready]
        else:
            self.state.outbox += ready
            self.state.save()
        return ready

    async def hand_in(self) -> bool:
        """Send the outbox, one forecast with its comment at a time, and save each result at once.

        A question that the platform does not show now stays in the outbox. Returns False if it shows none.
        """
        submitter = await self.site.submitter(self.state.outbox, clock_of(self.settings)())
        sender = open_sender(submitter, self.settings, self.platform)
        plans = {forecast.question_id: submitter.plan([forecast], ()) for forecast in self.state.outbox}
        unread = {id for id, plan in plans.items() if any(item.later for item in plan.items)}
        for question, plan in plans.items():
            try:
                results = await sender.hand_in(plan)
            except SourceError as error:
                # The result of an earlier attempt could not be read, so nothing was sent.
                unread.add(question)
                self._fail(question, error.problem, count=False)
            else:
                self._settle(question, plan, results)
        return not plans or len(unread) < len(plans)

    def _settle(self, question: str, plan: SubmissionPlan, results: Sequence[ItemResult]) -> None:
        """Remove from the outbox what the platform has accepted or refused; keep what is uncertain."""
        # Forecasts over today's quota stay in the outbox for tomorrow.
        unsure = any(result.fate in ("unknown", "failed") or QUOTA_EXCEEDED in result.reason for result in results)
        turned_away = not unsure and any(mark in result.reason for result in results for mark in TURNED_AWAY)
        if turned_away or any(item.later for item in plan.items):
            forecast_time = next(
                forecast.as_of.at for forecast in self.state.outbox if forecast.question_id == question
            )
            unsure = clock_of(self.settings)() - forecast_time < STALE
        problems = [f"{item.part}: {problem}" for item in plan.refused for problem in item.problems]
        problems += [f"{result.item.part}: {result.reason}" for result in results if result.fate not in DONE_STATUSES]
        if problems:
            self._fail(question, "; ".join(dict.fromkeys(problems)), count=not unsure)
        else:
            self._add(replace(self._row(question), sent=True))
            self.state.pending.pop(question, None)
            self.state.made[question] = clock_of(self.settings)().isoformat(timespec="seconds")
        if not unsure:
            self.state.outbox = [forecast for forecast in self.state.outbox if forecast.question_id != question]
            self.state.texts.pop(question, None)
        self.state.save()

    def _fail(self, question: str, problem: str, *, count: bool = True) -> None:
        self._add(replace(self._row(question), problem=problem))
        if (pending := self.state.pending.get(question)) is not None:
            pending.problem, pending.attempts = problem, pending.attempts + count

    def _add(self, row: TournamentRow) -> None:
        """Add the result of a question, replacing an earlier one."""
        self.rows = [other for other in self.rows if other.question != row.question] + [row]

    def _noted(self, money: Mapping[str, float]) -> Path:
        """Record what was done, and write the page of its day."""
        links = self._comment_links()
        self.rows = [replace(row, comment=links.get(row.question, "") if row.sent else "") for row in self.rows]
        self.state.visits.append(
            {
                "at": self.now.isoformat(),
                "run": self.run,
                "billed": money["billed"],
                "rows": [asdict(row) for row in self.rows],
            }
        )
        self.state.save()
        today = self.state.day(self.now.date().isoformat())
        day = TournamentDay(
            tournament=self.slug,
            account=self.account,
            day=self.now.date().isoformat(),
            visits=len(today),
            rows=[TournamentRow(**row) for run in today for row in run["rows"]],
            skipped=self.listing.skipped,
            notes=[*self.notes, *([self.stopped] if self.stopped else [])],
            # Older versions called it dollars.
            billed=sum(run["billed"] if "billed" in run else run["dollars"] for run in today),
            billed_in_all=money["billed_in_all"],
            unknown=money["unknown"],
            budget=self.limit,
            comments=self.reasons,
        )
        page = self.folder / "pages" / f"{day.day}.html"
        write_atomically(page, tournament_page(day).encode())
        self.summarize(markdown_summary(day))
        return page

    def _comment_links(self) -> dict[str, str]:
        """Return the address of this account's newest comment on each question, according to the ledger."""
        return {
            entry.question: self.site.comment_address(entry.question, cast("Row", entry.content.get("answer") or {}))
            for entry in open_ledger(self.settings).entries()
            if (entry.kind, entry.part, entry.platform, entry.account)
            == ("receipt", "comment", self.platform, self.account)
        }

    def _row(self, question: str) -> TournamentRow:
        """Return the row of a question before its result is known."""
        pending = self.state.pending.get(question)
        text, answer = self.state.texts.get(question, ("" if pending is None else pending.question.text, ""))
        return TournamentRow(question=question, text=text, answer=answer)


def _why_missing(question: str, answers: Sequence[Forecast | Failure]) -> str:
    """Return why a question has no forecast that can be sent."""
    why = [why_unusable(answer) for answer in answers if answer.question_id == question]
    return "; ".join(dict.fromkeys(why)) or "the run stopped before it was asked"
