"""Submit forecasts to a platform."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from foretell.data.datasets.forecastbench_download import read_pulled
from foretell.data.files import DownloadCache, write_atomically
from foretell.data.http import SourceError
from foretell.data.markets.market import market_ref
from foretell.frozen import frozen
from foretell.operations.requests.tournaments import SubmitRequest
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.report.result import Result
from foretell.runs.combine import combine_trials, combining_of_run
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.spec import spec_from_json
from foretell.runs.store import RunStore, find_run_row
from foretell.scoring.table_input import names_a_file
from foretell.tournaments.connection import (
    SERVICES,
    PlatformConnection,
    open_platform,
    open_round,
    open_sender,
)
from foretell.tournaments.forecastbench import PLATFORM, ForecastBenchTeam, checked_submission, file_bytes, round_of
from foretell.tournaments.ledger import open_ledger
from foretell.tournaments.metaculus import MetaculusOptions, MetaculusSubmitter, read_posts
from foretell.tournaments.prophet_arena import ProphetArenaOptions, ProphetArenaSubmitter, agent_name, read_events
from foretell.tournaments.settings import ForecastBenchSettings, ProphetArenaSettings
from foretell.tournaments.submission import ItemResult, SubmissionItem, SubmissionPlan, Submitter, read_forecasts

FAILED = ("refused", "failed", "unknown")
"""Results of items that should have been sent but were not."""


@frozen
class SubmissionPreview:
    """What is about to be sent, and what is not."""

    plan: SubmissionPlan
    fresh: tuple[SubmissionItem, ...]
    """Items that were not sent before."""
    before: tuple[ItemResult, ...]
    """Items that were sent before."""
    notes: tuple[str, ...] = ()

    def messages(self) -> list[str]:
        """Return one line for everything left out, and then what is sent."""
        lines = [f"note: {note}" for note in self.notes]
        for item in self.plan.refused:
            lines += [f"not sent: {item.question} {item.part}: {problem}" for problem in item.problems]
        for item in self.plan.ready:
            lines += [f"note: {item.question}: {note}" for note in item.notes]
        lines += [f"not sent: {result}" for result in self.before]
        counts = {
            part: sum(item.part == part for item in self.fresh) for part in ("forecast", "comment", "file", "upload")
        }
        parts = ", ".join(f"{n} {part}{'s' if n != 1 else ''}" for part, n in counts.items() if n)
        return [*lines, f"to {self.plan.platform} as {self.plan.account}: {parts or 'nothing'}"]


@frozen
class SubmitResult(Result):
    """The result of a submission."""

    preview: SubmissionPreview
    requests: tuple[dict[str, Any], ...] | None = None
    """The requests of a dry run."""
    results: tuple[ItemResult, ...] = ()
    head: str = ""
    """The head of the ledger afterwards."""

    @property
    def ok(self) -> bool:
        """Whether something was ready, and all of it was sent."""
        if self.results:
            return not any(result.fate in FAILED for result in self.results)
        return bool(self.preview.plan.ready)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The last hash of the ledger, to be saved elsewhere."""
        return (f"last hash of the ledger: {self.head}; save it elsewhere",) if self.results else ()

    def to_dict(self) -> Any:
        """Return the requests of a dry run, or every item with its result."""
        if self.requests is not None:
            return list(self.requests)
        plan = self.preview.plan
        return {
            "platform": plan.platform,
            "account": plan.account,
            "items": self.rows(),
            "refused": [
                {"question": item.question, "part": item.part, "problems": list(item.problems)} for item in plan.refused
            ],
            "ledger_head": self.head or None,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each item."""
        return [
            {"question": result.item.question, "part": result.item.part, "result": result.fate, "reason": result.reason}
            for result in (*self.preview.before, *self.results)
        ]

    def __str__(self) -> str:
        """Return the requests of a dry run, or a line for each item."""
        if self.requests is not None:
            return self.to_json()
        lines: list[str] = []
        for result in self.results:
            lines.append(str(result))
            uploads = any(other.item.part == "upload" for other in self.results)
            if result.item.part == "file" and result.fate == "sent" and not uploads:
                lines.append(f"Upload {result.item.title} to the folder that the benchmark gave your team.")
        return "\n".join(lines) or "nothing to send"


@frozen
class SubmissionFile(Result):
    """A file for ForecastBench that was written and not sent, and how much of the round it answers."""

    path: Path
    body: dict[str, Any]
    notes: tuple[str, ...]
    """How much of each kind of question it answers."""

    def to_dict(self) -> Any:
        """Return the content of the file."""
        return self.body

    def __str__(self) -> str:
        return f"Wrote {self.path}"


async def submit(
    request: SubmitRequest,
    settings: Settings | None = None,
    *,
    tell: Callable[[str], None] = lambda _: None,
    confirm: Callable[[SubmissionPreview], None] = lambda _: None,
) -> SubmitResult | SubmissionFile:
    """Submit the forecasts of a run or a file. Python programs are not asked for confirmation.

    `tell` is called with a line for everything that is left out or about to be sent. `confirm` is called with the
    preview unless `request.yes` is set; it raises to cancel.
    """
    settings = settings or load_settings()
    at = clock_of(settings)()
    selected = forecasts_to_submit(request, settings, at)
    selected = selected.only(request.questions) if request.questions else selected
    selected = forecasts_of_round(settings, selected, request.round) if request.platform == PLATFORM else selected
    if request.out is not None:
        return write_submission(request, request.out, selected)
    selected, notes = relevant(request, selected, at)
    try:
        async with open_submitter(request, settings, selected, at) as submitter:
            plan = submitter.plan(selected.forecasts, selected.questions)
            sender = open_sender(submitter, settings, request.platform, resend=request.resend)
            fresh, before = sender.preview(plan)
            preview = SubmissionPreview(plan=plan, fresh=tuple(fresh), before=tuple(before), notes=notes)
            for message in preview.messages():
                tell(message)
            if request.dry_run:
                return SubmitResult(preview=preview, requests=tuple(asdict(item) for item in submitter.requests(fresh)))
            if not fresh:
                return SubmitResult(preview=preview)
            if not request.yes:
                confirm(preview)
            results = await sender.hand_in(plan)
            if isinstance(submitter, ProphetArenaSubmitter):
                await submitter.report_unanswered(plan)
            return SubmitResult(preview=preview, results=tuple(results), head=str(open_ledger(settings).head()))
    except SourceError as error:
        problem = f"{request.platform} could not be reached or gave an unexpected answer: {error}"
        raise InputError(problem, hint="nothing more was sent") from None


@frozen
class SubmissionForecasts:
    """One forecast per question, and the known questions."""

    forecasts: tuple[Forecast, ...]
    questions: tuple[Question, ...] = ()

    def only(self, ids: Sequence[str]) -> "SubmissionForecasts":
        """Keep only these questions."""
        known = {f.question_id for f in self.forecasts} | {q.id for q in self.questions}
        if strays := [id for id in ids if id not in known]:
            raise InputError(f"there is no question {strays[0]!r}", column="--question", hint=", ".join(sorted(known)))
        return SubmissionForecasts(
            forecasts=tuple(f for f in self.forecasts if f.question_id in ids),
            questions=tuple(q for q in self.questions if q.id in ids),
        )


def forecasts_to_submit(request: SubmitRequest, settings: Settings, at: datetime) -> SubmissionForecasts:
    """Return the forecasts in a file, or those of a run with its trials combined."""
    if Path(request.source).is_file():
        forecasts, questions = read_forecasts(Path(request.source), at)
        return SubmissionForecasts(forecasts=tuple(forecasts), questions=tuple(questions))
    if names_a_file(request.source):
        raise InputError("no such file", path=request.source)
    with closing(RunStore(settings.store)) as store:
        row = find_run_row(store, request.source)
        answers, questions = list(store.answers(row.id)), store.questions(row.id)
        spec = spec_from_json(row.spec)
        how = combining_of_run(store, spec, request.combine)
    if not spec.leakage_filter:
        raise InputError(f"run {row.id} had no leakage filter and may have seen the outcome, so it cannot be submitted")
    if not answers:
        raise InputError(f"run {row.id} has no answers yet", hint="start it again with foretell run")
    if request.out is None and spec.mode != "live":
        hint = "forecasts for a live platform come from a run with mode: live"
        raise InputError(f"run {spec.id} is a backtest, made as of another day", hint=hint)
    if request.out is not None and spec.questions.dataset != PLATFORM:
        raise InputError(f"run {spec.id} asked {spec.questions.dataset!r}, not a round of forecastbench")
    forecasts = combine_trials(answers, questions, replace(how, fallback=request.include_fallback))
    return SubmissionForecasts(forecasts=tuple(forecasts), questions=tuple(questions))


def forecasts_of_round(settings: Settings, selected: SubmissionForecasts, day: str | None) -> SubmissionForecasts:
    """Return the forecasts of one round, with its whole question set, even if only part of it was asked."""
    days = sorted({forecast.as_of.at.date().isoformat() for forecast in selected.forecasts})
    if not days:
        raise InputError("there is no forecast to submit", hint="foretell show RUN lists failures")
    if day is None and len(days) > 1:
        hint = "name one with --to forecastbench:DATE"
        raise InputError(f"forecasts are for {len(days)} days: {', '.join(days)}", hint=hint)
    if day is not None and day not in days:
        raise InputError(f"there is no forecast for {day}", column="--to", hint=f"they are for {', '.join(days)}")
    day = day or days[0]
    forecasts = tuple(forecast for forecast in selected.forecasts if forecast.as_of.at.date().isoformat() == day)
    questions = read_pulled(DownloadCache(settings.home / PLATFORM), day).questions
    return SubmissionForecasts(forecasts=forecasts, questions=tuple(questions))


def relevant(
    request: SubmitRequest, selected: SubmissionForecasts, at: datetime
) -> tuple[SubmissionForecasts, tuple[str, ...]]:
    """Keep the open questions of this platform, and note how many others are left out."""
    if request.post is not None or request.platform == PLATFORM:
        return selected, ()
    away = {question.id for question in selected.questions if not _belongs(request.to, question)}
    over = {q.id for q in selected.questions if q.id not in away and q.closes_at is not None and q.closes_at <= at}
    question_ids = [f.question_id for f in selected.forecasts if f.question_id not in away | over]
    if not question_ids:
        return selected, ()
    notes = [f"{len(away)} questions of other platforms are left out"] if away else []
    notes += [f"{len(over)} questions are closed"] if over else []
    silent = [q.id for q in selected.questions if q.id not in away | over]
    return selected.only([*question_ids, *silent]), tuple(notes)


def _belongs(platform: str, question: Question) -> bool:
    ref = market_ref(question, question.targets[0])
    return SERVICES[platform] in (question.source, None if ref is None else ref.platform)


@asynccontextmanager
async def open_submitter(
    request: SubmitRequest, settings: Settings, selected: SubmissionForecasts, at: datetime
) -> AsyncGenerator[Submitter]:
    """Open a submitter that has read the platform's current questions."""
    if request.platform == PLATFORM:
        own = request.section(ForecastBenchSettings).model_copy(update={"overwrite": request.resend})
        team, day = forecastbench_team(own), round_of(selected.questions)
        async with open_round(team, day, own, settings, own.folder or Path()) as submitter:
            yield submitter
        return
    async with open_platform(request.platform, settings) as connection:
        open_ = _metaculus if request.platform == "metaculus" else _prophet_arena
        yield await open_(request, selected, at, connection)


async def _metaculus(
    request: SubmitRequest, selected: SubmissionForecasts, at: datetime, connection: PlatformConnection
) -> Submitter:
    ids = {forecast.question_id for forecast in selected.forecasts}
    if request.post is not None and len(ids) != 1:
        raise InputError(f"one post cannot answer {len(ids)} questions", column="--post", hint="--question ID")
    named = {} if request.post is None else {ids.pop(): request.post}
    options = MetaculusOptions(comment=request.comment, clip=request.clip, named=named)
    _, writer = connection.metaculus()
    account, seen = await read_posts(writer, selected.forecasts, selected.questions, options)
    return MetaculusSubmitter(writer=writer, account=account, seen=seen, now=at, options=options)


async def _prophet_arena(
    request: SubmitRequest, selected: SubmissionForecasts, at: datetime, connection: PlatformConnection
) -> Submitter:
    own = request.section(ProphetArenaSettings)
    client, writer = connection.prophet_arena()
    agent = await agent_name(client, own)
    entrant = ProphetArenaOptions(agent=agent, rationale=request.comment is not None, window=own.window)
    return ProphetArenaSubmitter(
        writer=writer, entrant=entrant, seen=await read_events(writer, selected.forecasts), now=at
    )


def forecastbench_team(own: ForecastBenchSettings) -> ForecastBenchTeam:
    """Return the team that submits the ForecastBench file."""
    for name in ("organization", "entry"):
        if not getattr(own, name):
            raise InputError("ForecastBench needs to know who submits the file", column=f"--set tournament.{name}")
    return ForecastBenchTeam(
        organization=own.organization,
        model=own.entry,
        model_organization=own.model_organization,
        number=own.file_number,
    )


def write_submission(request: SubmitRequest, path: Path, selected: SubmissionForecasts) -> SubmissionFile:
    """Write forecasts as a ForecastBench file, checked against the round's question set."""
    own = request.section(ForecastBenchSettings)
    how = {"reasoning": own.reasoning, "incomplete": own.incomplete}
    body, coverage = checked_submission(selected.forecasts, selected.questions, forecastbench_team(own), **how)
    write_atomically(path, file_bytes(body))
    return SubmissionFile(path=path, body=body, notes=coverage)
