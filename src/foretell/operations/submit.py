"""Submit forecasts to a platform, and read the ledger of submissions."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from foretell.data.datasets.forecastbench_download import read_pulled
from foretell.data.files import DownloadCache, write_atomically
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.market import market_ref
from foretell.data.markets.metaculus import MetaculusClient
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.operations.requests.tournaments import (
    ForecastBenchSettings,
    LedgerRequest,
    ProphetArenaSettings,
    SubmitRequest,
)
from foretell.operations.result import ReportResult, Result
from foretell.operations.table import operation
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.runs.combine import combining_of_run, one_forecast_per_question
from foretell.runs.settings import KEYS, Settings, clock_of, load_settings
from foretell.runs.spec import spec_from_json
from foretell.runs.store import RunStore, find_run_row
from foretell.submit.forecastbench import (
    NOT_THERE,
    PLATFORM,
    TOKEN_VARIABLE,
    BucketFolder,
    BucketUploader,
    ForecastBenchSubmitter,
    ForecastBenchTeam,
    checked_submission,
    file_bytes,
    files_of,
    round_of,
)
from foretell.submit.ledger import LEDGER_FILE, LedgerEntry, LedgerHead, SubmissionHistory, SubmissionLedger
from foretell.submit.metaculus import MetaculusOptions, MetaculusSubmitter, MetaculusWriter, read_posts
from foretell.submit.prophet_arena import (
    ProphetArenaOptions,
    ProphetArenaSubmitter,
    ProphetArenaWriter,
    read_events,
)
from foretell.submit.submission import (
    SEND_ONCE,
    ItemResult,
    SendOptions,
    SubmissionItem,
    SubmissionPlan,
    SubmissionSender,
    Submitter,
    read_forecasts,
)

SERVICES = {"metaculus": "metaculus", "prophet-arena": "prophet_arena"}
"""Platform → its name in the settings."""
BUCKETS = "buckets"
"""The name of the storage in the settings: FORETELL_BUCKETS_URL."""

FAILED = ("refused", "failed", "unknown")
"""Results of items that should have been sent but were not."""


@dataclass(frozen=True, kw_only=True)
class SubmissionPreview:
    """What is about to be sent, and what is not."""

    plan: SubmissionPlan
    fresh: tuple[SubmissionItem, ...]
    """Items that were not sent before."""
    before: tuple[ItemResult, ...]
    """Items that were sent before."""
    notes: tuple[str, ...] = ()

    def messages(self) -> list[str]:
        """One line for everything left out, and then what is sent."""
        lines = [f"note: {note}" for note in self.notes]
        for item in self.plan.refused:
            lines += [f"not sent: {item.question} {item.part}: {problem}" for problem in item.problems]
        for item in self.plan.ready:
            lines += [f"note: {item.question}: {note}" for note in item.notes]
        lines += [f"not sent: {one}" for one in self.before]
        counts = {
            part: sum(item.part == part for item in self.fresh) for part in ("forecast", "comment", "file", "upload")
        }
        parts = ", ".join(f"{n} {part}{'s' if n != 1 else ''}" for part, n in counts.items() if n)
        return [*lines, f"to {self.plan.platform} as {self.plan.account}: {parts or 'nothing'}"]


@dataclass(frozen=True, kw_only=True)
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
            return not any(one.fate in FAILED for one in self.results)
        return bool(self.preview.plan.ready)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The last hash of the ledger, to be noted elsewhere."""
        return (f"last hash of the ledger: {self.head}; keep a note of it elsewhere",) if self.results else ()

    def to_dict(self) -> Any:
        """The requests of a dry run, or every item with its result."""
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
        """One row for each item."""
        return [
            {"question": one.item.question, "part": one.item.part, "result": one.fate, "reason": one.reason}
            for one in (*self.preview.before, *self.results)
        ]

    def __str__(self) -> str:
        """The requests of a dry run, or a line for each item."""
        if self.requests is not None:
            return self.to_json()
        lines: list[str] = []
        for one in self.results:
            lines.append(str(one))
            uploads = any(other.item.part == "upload" for other in self.results)
            if one.item.part == "file" and one.fate == "sent" and not uploads:
                lines.append(f"Upload {one.item.title} to the folder that the benchmark gave your team.")
        return "\n".join(lines) or "nothing to send"


@dataclass(frozen=True, kw_only=True)
class SubmissionFile(Result):
    """A file for ForecastBench that was written and not sent, and how much of the round it answers."""

    path: Path
    body: dict[str, Any]
    notes: tuple[str, ...]
    """How much of each kind of question it answers."""

    def to_dict(self) -> Any:
        """The content of the file."""
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
    """Submit the forecasts of a run or a file. A Python program is not asked before they are sent.

    Args:
        request: What to submit, where and how.
        settings: Those of this machine; from the environment if not given.
        tell: Is given a line for everything that is left out, and what is about to be sent.
        confirm: Is shown what is about to be sent unless the request says yes, and raises where it should not be.
    """
    settings = settings or load_settings()
    clock = clock_of(settings)
    at = clock()
    found = forecasts_to_submit(request, settings, at)
    found = found.only(request.questions) if request.questions else found
    found = forecasts_of_round(settings, found, request.round) if request.platform == PLATFORM else found
    if request.out is not None:
        return write_submission(request, request.out, found)
    found, notes = relevant(request, found, at)
    ledger = open_ledger(settings)
    # A server of one's own need not be given time.
    pause: dict[str, Any] = {"pause": 0.1} if SERVICES.get(request.platform) in settings.addresses else {}
    try:
        async with open_submitter(request, settings, found, at) as submitter:
            plan = submitter.plan(found.forecasts, found.questions)
            sender = SubmissionSender(submitter, ledger, clock, SendOptions(resend=request.resend, **pause))
            fresh, before = sender.preview(plan)
            preview = SubmissionPreview(plan=plan, fresh=tuple(fresh), before=tuple(before), notes=notes)
            for message in preview.messages():
                tell(message)
            if request.dry_run:
                return SubmitResult(preview=preview, requests=tuple(asdict(one) for one in submitter.requests(fresh)))
            if not fresh:
                return SubmitResult(preview=preview)
            if not request.yes:
                confirm(preview)
            results = await sender.hand_in(plan)
            if isinstance(submitter, ProphetArenaSubmitter):
                await submitter.report_unanswered(plan)
            return SubmitResult(preview=preview, results=tuple(results), head=str(ledger.head()))
    except SourceError as error:
        problem = f"{request.platform} could not be reached as it should: {error}"
        raise InputError(problem, hint="nothing more was sent") from None


submit_forecasts = operation(SubmitRequest)(submit)


@dataclass(frozen=True, kw_only=True)
class SubmissionForecasts:
    """One forecast per question, and the questions as far as they are known."""

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


def open_ledger(settings: Settings) -> SubmissionLedger:
    """The ledger of this machine."""
    return SubmissionLedger(settings.home / LEDGER_FILE)


def forecasts_to_submit(request: SubmitRequest, settings: Settings, at: datetime) -> SubmissionForecasts:
    """The forecasts in a file, or those of a run with its trials combined."""
    if Path(request.source).is_file():
        forecasts, questions = read_forecasts(Path(request.source), at)
        return SubmissionForecasts(forecasts=tuple(forecasts), questions=tuple(questions))
    with closing(RunStore(settings.store)) as store:
        row = find_run_row(store, request.source)
        answers, questions = list(store.answers(row.id)), store.questions(row.id)
        spec = spec_from_json(row.spec)
        how = combining_of_run(store, replace(spec, combine=request.combine or spec.combine))
    if spec.clairvoyant:
        raise InputError(f"run {row.id} was clairvoyant: it saw the future, so it is no forecast")
    if not answers:
        raise InputError(f"run {row.id} has no answers yet", hint="start it again with foretell run")
    if request.out is None and spec.mode != "live":
        hint = "forecasts for a live platform come from a run with mode: live"
        raise InputError(f"run {spec.id} is a backtest: it pretends that it is another day", hint=hint)
    if request.out is not None and spec.questions.dataset != PLATFORM:
        raise InputError(f"run {spec.id} asked {spec.questions.dataset!r}, not a round of forecastbench")
    forecasts = one_forecast_per_question(answers, questions, replace(how, degraded=request.include_fallback))
    return SubmissionForecasts(forecasts=tuple(forecasts), questions=tuple(questions))


def forecasts_of_round(settings: Settings, found: SubmissionForecasts, day: str | None) -> SubmissionForecasts:
    """The forecasts of one round, with its whole question set, even if only part of it was asked."""
    days = sorted({forecast.as_of.at.date().isoformat() for forecast in found.forecasts})
    if not days:
        raise InputError("there is no forecast to submit", hint="foretell show RUN says what failed")
    if day is None and len(days) > 1:
        hint = "name one with --to forecastbench:DATE"
        raise InputError(f"forecasts are for {len(days)} days: {', '.join(days)}", hint=hint)
    if day is not None and day not in days:
        raise InputError(f"there is no forecast for {day}", column="--to", hint=f"they are for {', '.join(days)}")
    day = day or days[0]
    forecasts = tuple(one for one in found.forecasts if one.as_of.at.date().isoformat() == day)
    questions = read_pulled(DownloadCache(settings.home / PLATFORM), day).questions
    return SubmissionForecasts(forecasts=forecasts, questions=tuple(questions))


def relevant(
    request: SubmitRequest, found: SubmissionForecasts, at: datetime
) -> tuple[SubmissionForecasts, tuple[str, ...]]:
    """Keep the open questions of this platform, and say how many others are left out."""
    if request.post is not None or request.platform == PLATFORM:
        return found, ()
    away = {question.id for question in found.questions if not _belongs(request.to, question)}
    over = {q.id for q in found.questions if q.id not in away and q.closes_at is not None and q.closes_at <= at}
    kept = [f.question_id for f in found.forecasts if f.question_id not in away | over]
    if not kept:
        return found, ()
    notes = [f"{len(away)} questions of other platforms are left out"] if away else []
    notes += [f"{len(over)} questions are closed"] if over else []
    silent = [q.id for q in found.questions if q.id not in away | over]
    return found.only([*kept, *silent]), tuple(notes)


def _belongs(platform: str, question: Question) -> bool:
    ref = market_ref(question, question.targets[0])
    return SERVICES[platform] in (question.source, None if ref is None else ref.platform)


@dataclass(frozen=True, kw_only=True)
class PlatformConnection:
    """A key, an address if it is not the public one, and two clients."""

    key: str = field(repr=False)
    host: dict[str, Any]
    reading: Any
    writing: Any

    def metaculus(self) -> tuple[MetaculusClient, MetaculusWriter]:
        """Reads and writes Metaculus."""
        client = MetaculusClient(http=self.reading, token=self.key, **self.host)
        return client, MetaculusWriter(client=client, http=self.writing, token=self.key, **self.host)

    def prophet_arena(self) -> tuple[ProphetArenaClient, ProphetArenaWriter]:
        """Reads and writes Prophet Arena."""
        client = ProphetArenaClient(http=self.reading, key=self.key, **self.host)
        return client, ProphetArenaWriter(client=client, http=self.writing, key=self.key, **self.host)


@asynccontextmanager
async def open_submitter(
    request: SubmitRequest, settings: Settings, found: SubmissionForecasts, at: datetime
) -> AsyncGenerator[Submitter]:
    """Open a submitter that has read the platform's current questions."""
    if request.platform == PLATFORM:
        own = request.section(ForecastBenchSettings)
        async with open_bucket(own.bucket, settings, round_of(found.questions)) as uploader:
            yield await _round(request, own, settings, found, at, uploader)
        return
    async with open_platform(request.platform, settings) as wire:
        open_ = _metaculus if request.platform == "metaculus" else _prophet_arena
        yield await open_(request, found, at, wire)


@asynccontextmanager
async def open_platform(platform: str, settings: Settings) -> AsyncGenerator[PlatformConnection]:
    """Connect to a platform with one client that reads and one that writes and never retries by itself."""
    service = SERVICES[platform]
    key = settings.key(service)
    if not key:
        raise InputError(f"{platform} needs a key", hint=f"set {KEYS[service][0]}")
    host = {"host": settings.addresses[service]} if service in settings.addresses else {}
    access = settings.access
    async with AsyncHttpClient(access=access) as reading, AsyncHttpClient(limits=SEND_ONCE, access=access) as writing:
        yield PlatformConnection(key=key, host=host, reading=reading, writing=writing)


async def _metaculus(
    request: SubmitRequest, found: SubmissionForecasts, at: datetime, wire: PlatformConnection
) -> Submitter:
    ids = {forecast.question_id for forecast in found.forecasts}
    if request.post is not None and len(ids) != 1:
        raise InputError(
            f"one post cannot be the answer to {len(ids)} questions", column="--post", hint="--question ID"
        )
    named = {} if request.post is None else {ids.pop(): request.post}
    options = MetaculusOptions(comment=request.comment, clip=request.clip, named=named)
    _, writer = wire.metaculus()
    account, seen = await read_posts(writer, found.forecasts, found.questions, options)
    return MetaculusSubmitter(writer=writer, account=account, seen=seen, now=at, options=options)


async def _prophet_arena(
    request: SubmitRequest, found: SubmissionForecasts, at: datetime, wire: PlatformConnection
) -> Submitter:
    own = request.section(ProphetArenaSettings)
    client, writer = wire.prophet_arena()
    agent = own.agent or await client.weekly_agent()
    if not agent:
        raise InputError("Prophet Arena wants to know which agent this is", column="--set tournament.agent")
    entrant = ProphetArenaOptions(agent=agent, rationale=request.comment is not None, window=own.window)
    return ProphetArenaSubmitter(
        writer=writer, entrant=entrant, seen=await read_events(writer, found.forecasts), now=at
    )


async def _round(
    request: SubmitRequest,
    own: ForecastBenchSettings,
    settings: Settings,
    found: SubmissionForecasts,
    at: datetime,
    uploader: BucketUploader | None,
) -> Submitter:
    team, day, folder = forecastbench_team(own), round_of(found.questions), own.folder or Path()
    return ForecastBenchSubmitter(
        sender=team,
        folder=folder,
        now=at,
        found=files_of(folder, day),
        reasoning=own.reasoning,
        incomplete=own.incomplete,
        uploader=uploader,
        replaces=await replaced_upload(team, day, uploader, open_ledger(settings), overwrite=request.resend),
    )


@asynccontextmanager
async def open_bucket(bucket: str | None, settings: Settings, day: str) -> AsyncGenerator[BucketUploader | None]:
    """Connect to a team's upload folder; None if no folder is named."""
    if bucket is None:
        yield None
        return
    folder, token = BucketFolder.read(bucket, day), settings.keys.get(TOKEN_VARIABLE, "")
    if not token:
        hint = f"export {TOKEN_VARIABLE}=$(gcloud auth print-access-token); without a bucket only the file is written"
        raise InputError("uploading needs a token", column="tournament.bucket", hint=hint)
    own: dict[str, Any] = {}
    if BUCKETS in settings.addresses:
        own = {"host": settings.addresses[BUCKETS], "wait_seconds": 0.1}
    access = settings.access
    async with AsyncHttpClient(access=access) as reading, AsyncHttpClient(limits=SEND_ONCE, access=access) as writing:
        yield BucketUploader(folder=folder, reading=reading, writing=writing, token=token, **own)


async def replaced_upload(
    team: ForecastBenchTeam, day: str, uploader: BucketUploader | None, ledger: SubmissionLedger, *, overwrite: bool
) -> str:
    """The generation of the uploaded file that may be replaced: this machine's own, or with `overwrite` any."""
    if uploader is None:
        return NOT_THERE
    name, key = team.file_name(day), (PLATFORM, team.organization, f"{PLATFORM}/{day}#{team.number}", "upload")
    own = SubmissionHistory.of(ledger.entries()).taken.get(key, [])
    if overwrite or (own and await uploader.holds(name, str(own[-1].content.get("md5")))):
        return await uploader.generation(name)
    told = [
        cast("dict[str, Any]", entry.content.get("answer") or {}).get("generation")
        for entry in ledger.entries()
        if entry.kind == "receipt" and entry.key == key
    ]
    # A team that may not look knows what it was told last time.
    return str(told[-1]) if told and told[-1] else NOT_THERE


def forecastbench_team(own: ForecastBenchSettings) -> ForecastBenchTeam:
    """The team that submits the ForecastBench file."""
    for name in ("organization", "entry"):
        if not getattr(own, name):
            raise InputError("ForecastBench wants to know whose file it is", column=f"--set tournament.{name}")
    return ForecastBenchTeam(
        organization=own.organization,
        model=own.entry,
        model_organization=own.model_organization,
        number=own.file_number,
    )


def write_submission(request: SubmitRequest, path: Path, found: SubmissionForecasts) -> SubmissionFile:
    """Write forecasts as a ForecastBench file, checked against the round's question set."""
    own = request.section(ForecastBenchSettings)
    how = {"reasoning": own.reasoning, "incomplete": own.incomplete}
    body, coverage = checked_submission(found.forecasts, found.questions, forecastbench_team(own), **how)
    write_atomically(path, file_bytes(body))
    return SubmissionFile(path=path, body=body, notes=coverage)


# The ledger.


class LedgerVerdict(ReportResult):
    """Whether a ledger is unchanged."""

    @property
    def ok(self) -> bool:
        """Whether the ledger is unchanged."""
        return self.report.whole

    def to_dict(self) -> Any:
        """The check as plain data."""
        return {"whole": self.report.whole, **asdict(self.report)}


@dataclass(frozen=True, kw_only=True)
class LedgerEntries(Result):
    """Entries of a ledger, and its last hash."""

    entries: tuple[LedgerEntry, ...]
    last_hash: str
    """Number and hash of the last intact entry, which fix the whole ledger; empty if there is none."""
    broken: str = ""
    """The first changed entry; later ones are not shown."""

    @property
    def ok(self) -> bool:
        """Whether all entries are unchanged."""
        return not self.broken

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the first changed entry."""
        return (f"broken: {self.broken}; what stands behind it is not shown",) if self.broken else ()

    def rows(self) -> list[dict[str, Any]]:
        """The entries with all fields."""
        return [asdict(entry) for entry in self.entries]

    def __str__(self) -> str:
        last = f"last hash {self.last_hash}" if self.last_hash else "no entries"
        return "\n".join([*map(_entry_line, self.entries), last])


def read_ledger(request: LedgerRequest) -> LedgerEntries | LedgerVerdict:
    """List the entries of the ledger, or check them all.

    Raises InputError if there is no such file, or if what is to be checked against is no number and hash.
    """
    if request.file is not None and not request.file.is_file():
        raise InputError("no such file", path=request.file)
    ledger = open_ledger(load_settings()) if request.file is None else SubmissionLedger(request.file)
    if request.verify is not None:
        try:
            noted = None if request.verify == "all" else LedgerHead.read(request.verify)
        except ValueError as error:
            raise InputError(str(error), column="--verify") from None
        return LedgerVerdict(report=ledger.verify(noted))
    intact, broken, _ = ledger.read()
    entries = [entry for entry in intact if request.platform in (None, entry.platform)]
    last_hash = str(intact[-1].head) if intact else ""
    return LedgerEntries(
        entries=tuple(entries[-request.last :] if request.last else entries), last_hash=last_hash, broken=broken
    )


def _entry_line(entry: LedgerEntry) -> str:
    head = f"{entry.number:5} {entry.at[:19]} {entry.platform} {entry.account} {entry.question} {entry.part}"
    if entry.kind == "intention":
        content = json.dumps(entry.content, ensure_ascii=False)
        short = content if len(content) <= 60 else content[:59] + "…"
        return f"{head}: to send {short} [{entry.digest[:12]}]"
    return f"{head}: {entry.kind} of entry {entry.content['intention']}: {entry.content.get('how', '')}"
