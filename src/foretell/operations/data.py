"""Question sets and documents on this machine: download, list, show, build, import, search."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console

from foretell.data.corpus import Corpus, CorpusCounts, CorpusHit, read_documents
from foretell.data.datasets.forecastbench_download import (
    FORECASTBENCH_URL,
    ForecastBenchDownload,
    PulledFile,
    pulled_rounds,
    read_pulled,
)
from foretell.data.datasets.prophet_arena import dataset_folder, download_events
from foretell.data.datasets.question_set import AskedKey, QuestionSet, SetFilter, asked_key, quarantine_note
from foretell.data.files import DownloadCache, home_folder, write_atomically
from foretell.data.http import AsyncHttpClient, HttpLimits, Progress, SourceError
from foretell.data.markets.prophet_arena import MARKET
from foretell.data.series.series import Series, SeriesUnavailable
from foretell.data.service import ServiceConfig
from foretell.forecasters.prompt.prediction_context import RefusedArticle, refusal_notes, refused_articles
from foretell.forecasters.topics import TopicClassifier, TopicLabel
from foretell.models.journal import Journal
from foretell.models.names import ModelRoles
from foretell.models.router import ModelRouter
from foretell.operations.requests.data import (
    ClaimsRequest,
    CorpusImportRequest,
    CorpusSearchRequest,
    DataListRequest,
    DataPullRequest,
    FetchRequest,
    FinancialTasksRequest,
    OptionTasksRequest,
    QuestionsRequest,
    TrancheRequest,
)
from foretell.operations.result import Result, show_table
from foretell.operations.submit import open_ledger
from foretell.plugins import exists, names
from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.question_sets import LATE_TEXT_HINT, find_set, list_questions, open_benchmark, with_early_texts
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.scoring.long_tables import outcome_rows, write_rows
from foretell.submit.ledger import SubmissionHistory
from foretell.tools.late_text import LatePassage, late_passages

WatchDownload = Callable[[str], Progress]
"""File name → a function that is called with the progress of its download."""
NO_CUTOFF = AsOf.day("9999-12-31", mode="live")
"""Show everything, whatever its date."""


def _cache(folder: Path | None) -> DownloadCache:
    return DownloadCache(folder or home_folder() / "forecastbench")


# Public question sets.


@dataclass(frozen=True, kw_only=True)
class PullResult(Result):
    """Files that were downloaded or already there."""

    folder: Path
    files: tuple[PulledFile, ...]

    def __str__(self) -> str:
        lines: list[str] = []
        for one in self.files:
            size = f", {one.bytes / 1e6:.1f} MB" if one.bytes else ""
            revised = f", {one.revised} outcomes revised" if one.revised else ""
            lines.append(f"{one.name}: {one.state}{size}{revised}")
        return "\n".join([*lines, f"in {self.folder}"])


async def pull(request: DataPullRequest, watch: WatchDownload | None = None) -> PullResult:
    """Download rounds with their outcomes so far; intact files are not downloaded again."""
    if request.source == "prophet-arena":
        return await _pull_arena(request)
    from foretell.runs.due_prices import keep_due_prices

    cache, settings = _cache(request.folder), load_settings()
    try:
        async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as client:
            source = ForecastBenchDownload(cache, client, url=request.url or FORECASTBENCH_URL)
            newest = [await source.latest()] if request.latest or not request.rounds else []
            days = sorted({*request.rounds, *newest})
            files = await source.pull(days, watch)
        files += await keep_due_prices(cache, days, settings) if request.prices else []
    except SourceError as error:
        raise InputError(str(error)) from None
    return PullResult(files=tuple(files), folder=cache.root)


async def _pull_arena(request: DataPullRequest) -> PullResult:
    if not request.dataset:
        raise InputError("which data set?", column="--dataset", hint="e.g. --dataset SLUG, or SLUG@VERSION")
    settings = load_settings()
    folder = dataset_folder(request.folder)
    try:
        async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as http:
            address = settings.addresses.get("prophet_arena")
            config = ServiceConfig(http=http, key=settings.key("prophet_arena"), address=address)
            path = await download_events(MARKET.client(config), request.dataset, folder)
    except SourceError as error:
        raise InputError(str(error)) from None
    return PullResult(files=(PulledFile(name=path.name, state="downloaded", bytes=path.stat().st_size),), folder=folder)


@dataclass(frozen=True, kw_only=True)
class RoundsResult(Result):
    """Rounds on this machine."""

    lines = "rounds"
    folder: Path
    rounds: tuple[dict[str, Any], ...]

    def print(self, console: Console) -> None:
        """A table, or how to download a first round."""
        if not self.rounds:
            show_text(console, f"nothing in {self.folder}; try: foretell data pull forecastbench --latest\n")
            return
        columns = {TextColumn(head="source"): "source", TextColumn(head="round"): "round"}
        columns |= {TextColumn(head=head, right=True): head for head in ("questions", "targets", "resolved")}
        show_table(console, self.rounds, {**columns, TextColumn(head="files", shrink=20): "files"})
        show_text(console, f"in {self.folder}\n")


def list_rounds(request: DataListRequest) -> RoundsResult:
    """List the rounds on this machine, with the number of resolved targets."""
    cache, rounds = _cache(request.folder), list[dict[str, Any]]()
    for day in pulled_rounds(cache):
        row: dict[str, Any] = {"source": "forecastbench", "round": day}
        try:
            found = read_pulled(cache, day)
        except InputError as error:
            row |= {"questions": None, "targets": None, "resolved": None, "files": f"{error.problem}: {error.hint}"}
        else:
            targets = sum(len(question.targets) for question in found.questions)
            row |= {"questions": len(found.questions), "targets": targets, "resolved": len(found.outcomes())}
            row["files"] = "intact"
        rounds.append(row)
    return RoundsResult(rounds=tuple(rounds), folder=cache.root)


# Building question sets.


@dataclass(frozen=True, kw_only=True)
class BuiltSet(Result):
    """A question set with outcomes, and the files it was written to."""

    name: str
    questions: int
    outcomes: int
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    """What was left out, and why."""

    def __str__(self) -> str:
        counts = f"{self.questions} questions with {self.outcomes} outcomes"
        folder = self.files[0].parent
        step = f"Next: foretell backtest {folder} -F prior, or questions: {folder} in the spec of a run"
        return "\n".join([*(f"Wrote {path}" for path in self.files), f"{self.name}: {counts}", step])


def _written(found: QuestionSet, folder: Path) -> BuiltSet:
    if not found.questions:
        raise InputError(f"{found.name} holds no question", hint="; ".join(found.notes) or None)
    folder.mkdir(parents=True, exist_ok=True)
    questions = folder / "questions.jsonl"
    write_atomically(questions, "".join(f"{to_json(one)}\n" for one in found.questions).encode())
    outcomes = write_rows(outcome_rows(found.questions, found.resolutions), folder / "outcomes.csv")
    return BuiltSet(
        name=found.name,
        questions=len(found.questions),
        outcomes=len(found.outcomes()),
        files=(questions, outcomes),
        notes=found.notes,
    )


def build_tranche(request: TrancheRequest) -> BuiltSet:
    """A fixed-seed sample of the resolved questions of a round."""
    from foretell.data.datasets.tranches import TranchePlan
    from foretell.data.datasets.tranches import build_tranche as draw

    try:
        plan = TranchePlan(
            due=instant(request.round),
            resolved_by=instant(request.resolved_by),
            per_dataset_source=request.per_source,
            markets=request.markets,
            seed=request.seed,
        )
    except ValueError as error:
        raise InputError(str(error), hint="dates are written as 2025-10-26") from None
    return _written(draw(read_pulled(_cache(request.data), request.round), plan), request.folder)


def build_claims(request: ClaimsRequest) -> BuiltSet:
    """Claims that a publication later found true or false."""
    from foretell.data.datasets.analytica import read_claims

    return _written(read_claims(request.source, request.split), request.folder)


def build_options(request: OptionTasksRequest) -> BuiltSet:
    """Tasks in which one of several options pays most."""
    from foretell.data.datasets.analytica import read_options

    return _written(read_options(request.source), request.folder)


async def build_financial(request: FinancialTasksRequest, settings: Settings | None = None) -> BuiltSet:
    """Tasks made from price series."""
    from foretell.data.datasets import analytica

    try:
        cutoffs = [date.fromisoformat(day) for day in request.cutoffs]
    except ValueError as error:
        raise InputError(str(error), column="--cutoff") from None
    kind = analytica.LONG_SHORT if request.kind == "long-short" else analytica.HIGHER_LOWER
    plan = analytica.FinancialTaskPlan(horizon_days=request.horizon, min_history=request.history)
    series = await _price_series(request, settings or load_settings())
    tasks = analytica.build_financial_tasks(series, cutoffs, kind, plan)
    built = _written(tasks, request.folder)
    if not tasks.discarded:
        return built
    rows = [{"series": one.series, "cutoff": one.cutoff.isoformat(), "reason": one.reason} for one in tasks.discarded]
    return replace(built, files=(*built.files, write_rows(rows, request.folder / "discarded.csv")))


async def _price_series(request: FinancialTasksRequest, settings: Settings) -> list[Series]:
    """All series that the request names."""
    from foretell.data.series.local import CsvSeries
    from foretell.runs.services import open_services

    found: dict[str, Series] = {}
    for source in request.sources:
        provider, _, id = source.partition("/")
        if Path(source).exists():
            known = CsvSeries(path=Path(source))
            for name in known.ids():
                found[name] = await known.fetch(SeriesRef(provider="csv", id=name), NO_CUTOFF)
        elif id and exists("series", provider):
            async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as http:
                services = open_services(settings, http, ())
                try:
                    ref = SeriesRef(provider=provider, id=id)
                    found[source] = await services.series.fetch(ref, AsOf(at=datetime.now(UTC), mode="live"))
                except (SeriesUnavailable, SourceError) as error:
                    raise InputError(f"{source} could not be read: {error}") from None
        else:
            hint = f"write provider/id with one of {', '.join(names('series'))}"
            raise InputError("there is no such file or series", path=source, hint=hint)
    for name in request.series:
        if name not in found:
            raise InputError(
                f"there is no series {name!r}", column="--series", hint=f"one of {', '.join(list(found)[:12])}"
            )
    return [one for name, one in found.items() if not request.series or name in request.series]


# The corpus: your own dated documents.


@dataclass(frozen=True, kw_only=True)
class CorpusImport(Result):
    """What was added to the corpus."""

    added: int
    known: int
    undated: int
    total: int
    corpus: Path

    @property
    def warnings(self) -> tuple[str, ...]:
        """How many documents have no date."""
        return (f"{self.undated} have no date: a backtest never sees them",) if self.undated else ()

    def __str__(self) -> str:
        return f"{self.added} added, {self.known} already there, {self.total} in {self.corpus}"


def import_documents(request: CorpusImportRequest) -> CorpusImport:
    """Import files or folders; documents that are already in the corpus are not stored twice."""
    for source in request.sources:
        if not source.exists():
            raise InputError("there is no such file or folder", path=source)
    path = request.corpus or load_settings().corpus
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(Corpus(path)) as store:
        counts = sum((store.add(read_documents(source)) for source in request.sources), CorpusCounts())
        return CorpusImport(**asdict(counts), total=len(store), corpus=path)


@dataclass(frozen=True, kw_only=True)
class CorpusSearchResult(Result):
    """Documents of the corpus, best matches first."""

    found: tuple[CorpusHit, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say so if nothing was found."""
        return () if self.found else ("nothing found",)

    def to_dict(self) -> list[dict[str, Any]]:
        """One dictionary per document."""
        rows: list[dict[str, Any]] = []
        for one in self.found:
            dated = one.document.published or one.document.captured
            row = {"dated": dated.isoformat() if dated else None, "title": one.document.title, "url": one.document.url}
            rows.append({**row, "snippet": one.snippet})
        return rows

    def __str__(self) -> str:
        return "\n".join(
            f"{row['dated'][:10] if row['dated'] else 'undated'}  {row['title']}\n"
            f"            {row['url']}\n            {row['snippet']}"
            for row in self.to_dict()
        )


def search_corpus(request: CorpusSearchRequest) -> CorpusSearchResult:
    """Search the corpus as of a date, or all of it."""
    try:
        as_of = AsOf.day(request.as_of) if request.as_of else NO_CUTOFF
    except ValueError as error:
        raise InputError(str(error), column="--as-of") from None
    with closing(Corpus(request.corpus or load_settings().corpus, must_exist=True)) as store:
        return CorpusSearchResult(found=tuple(store.search(request.query, as_of, request.limit)))


# Any question set: show it, sort it by topic, or save it to a file.


SHOWN = 20
"""How many questions are shown in a terminal."""


@dataclass(frozen=True, kw_only=True)
class QuestionsResult(Result):
    """Valid questions, with their topics if requested."""

    questions: tuple[Question, ...]
    topics: tuple[TopicLabel, ...] = ()
    notes: tuple[str, ...] = ()
    outcomes: int = 0
    """The number of targets with an outcome."""
    late: Mapping[AskedKey, tuple[LatePassage, ...]] = field(default_factory=dict[AskedKey, tuple[LatePassage, ...]])
    """Questions whose own text is newer than their date; a backtest leaves them out."""
    refused: Mapping[AskedKey, tuple[RefusedArticle, ...]] = field(
        default_factory=dict[AskedKey, tuple[RefusedArticle, ...]]
    )
    """Sources that came with a question and that the fence refuses."""

    def to_dict(self) -> Any:
        """One dictionary per question, with all fields."""
        found: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            row = json.loads(to_json(question))
            if self.topics:
                row |= {"topic": self.topics[place].topic, "topic_by": self.topics[place].by}
            if late := self.late.get(asked_key(question)):
                row["quarantined"] = [vars(one) for one in late]
            if refused := self.refused.get(asked_key(question)):
                row["refused_sources"] = [vars(one) for one in refused]
            found.append(row)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """What the terminal shows, for every question."""
        found: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            first = question.targets[0]
            resolves = first.resolves_at or question.closes_at
            row = {
                "id": question.id,
                "asked": question.due.date().isoformat(),
                "resolves": resolves.date().isoformat() if resolves else "",
                "targets": len(question.targets),
                "crowd": first.snapshot.price if first.snapshot else None,
                "text": question.text,
            }
            row |= {"topic": self.topics[place].topic} if self.topics else {}
            row |= {"quarantined": str((self.late.get(asked_key(question)) or ("",))[0])} if self.late else {}
            found.append(row)
        return found

    def print(self, console: Console) -> None:
        """The first questions as a table, and a summary of all."""
        columns: dict[TextColumn, Any] = {
            TextColumn(head="id", shrink=12): "id",
            TextColumn(head="asked", drop=2): "asked",
            TextColumn(head="resolves"): "resolves",
            TextColumn(head="targets", right=True, drop=3): "targets",
            TextColumn(head="crowd", right=True, drop=1): _crowd,
        }
        columns |= {TextColumn(head="topic"): "topic"} if self.topics else {}
        show_table(console, self.rows()[:SHOWN], columns | {TextColumn(head="question", shrink=32): "text"})
        if len(self.questions) > SHOWN:
            show_text(console, f"… and {len(self.questions) - SHOWN} more\n")
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(q.kind for q in self.questions).items())
        targets = sum(len(q.targets) for q in self.questions)
        known = f", {self.outcomes} of which have come out" if self.outcomes else ""
        show_text(console, f"{len(self.questions)} questions ({kinds}) with {targets} targets{known}: well formed.\n")
        if self.late:
            one = len(self.late) == 1
            text = f"{quarantine_note(len(self.late))}. A backtest leaves {'it' if one else 'them'} out"
            show_text(console, f"{text} ({LATE_TEXT_HINT}):\n")
        for (id, due), found in list(self.late.items())[:SHOWN]:
            show_text(console, f"  {id}, asked {due.date()}\n" + "".join(f"    {one}\n" for one in found[:SHOWN]))
        for topic, n in Counter(label.topic for label in self.topics).most_common():
            show_text(console, f"{n:5} {topic}\n")


def _crowd(row: dict[str, Any]) -> str:
    return "" if row["crowd"] is None else f"{row['crowd']:.0%}"


async def read_set(name: str, wanted: SetFilter, settings: Settings, as_of: str | None = None) -> QuestionSet:
    """Any question set as it is now: a file, a data set, or a market's list."""
    found = find_set(name)
    if found.kind == "datasets":
        return open_benchmark(name, wanted=wanted, live=True, now=_moment(as_of) if as_of else None).questions
    if as_of:
        raise InputError(f"{name} lists what is known today", column="--as-of", hint="leave it out")
    if wanted.rounds:
        raise InputError(f"{name} has no rounds", column="--round")
    questions, notes = await list_questions(found, wanted, settings, clock_of(settings)().replace(microsecond=0))
    return QuestionSet(name=name, questions=tuple(questions), notes=notes)


def _moment(written: str) -> datetime:
    try:
        return instant(written)
    except ValueError as error:
        raise InputError(str(error), column="--as-of") from None


async def check_questions(request: QuestionsRequest, settings: Settings | None = None) -> QuestionsResult:
    """Check a question set, and sort it by topic if requested."""
    found = await read_set(request.dataset, request.wanted(), settings or load_settings(), request.as_of)
    if not found.questions:
        raise InputError(f"{request.dataset} has no such question", hint="; ".join(found.notes[:3]) or None)
    topics = await _topics(found.questions, request.model) if request.topics else ()
    late = {asked_key(one): late_passages(one) for one in found.questions} if request.late_text != "keep" else {}
    late = {key: passages for key, passages in late.items() if passages}
    if request.late_text == "cut":
        found = with_early_texts(found, "cut")
    articles = [(one, found.contexts.get(asked_key(one), ())) for one in found.questions]
    refused = {asked_key(one): tuple(refused_articles(one, given)) for one, given in articles if given}
    named = list(chain.from_iterable(refused.values()))
    return QuestionsResult(
        questions=found.questions,
        topics=topics,
        notes=(*found.notes, *refusal_notes(named, sum(len(given) for _, given in articles), SHOWN)),
        outcomes=len(found.outcomes()),
        late=late,
        refused={key: those for key, those in refused.items() if those},
    )


async def _topics(questions: tuple[Question, ...], model: str | None) -> tuple[TopicLabel, ...]:
    if model is None:
        return tuple([await TopicClassifier().sort(question) for question in questions])
    settings = load_settings()
    with closing(Journal(settings.journal)) as journal:
        async with ModelRouter(settings.keys, journal=journal, addresses=settings.addresses) as router:
            router.check([model])
            classifier = TopicClassifier(models=ModelRoles(agent=model), model=router)
            return tuple(await asyncio.gather(*(classifier.sort(question) for question in questions)))


@dataclass(frozen=True, kw_only=True)
class FetchResult(QuestionsResult):
    """A question set as it is now."""

    def rows(self) -> list[dict[str, Any]]:
        """Whole questions, as `foretell run` reads them."""
        return self.to_dict()

    def print(self, console: Console) -> None:
        """The number of questions."""
        show_text(console, f"{len(self.questions)} questions\n")


async def fetch(request: FetchRequest) -> FetchResult:
    """A question set as it is now."""
    settings, wanted = load_settings(), request.wanted()
    # Leave out submitted questions before applying the limit.
    found = await read_set(request.dataset, replace(wanted, limit=None) if request.new else wanted, settings)
    sent = _submitted(settings) if request.new else frozenset[str]()
    chosen = [question for question in found.questions if question.id not in sent][: request.limit]
    if not chosen:
        kind = "new open question" if request.new else f"{wanted.status or 'open'} question"
        raise InputError(f"{request.dataset} has no {kind} for you", hint="nothing was written")
    return FetchResult(questions=tuple(chosen), notes=found.notes)


def _submitted(settings: Settings) -> frozenset[str]:
    """Ids of questions that this machine has submitted; one part of a group is enough."""
    taken = [key[2] for key in SubmissionHistory.of(open_ledger(settings).entries()).taken]
    return frozenset(name for full in taken for name in (full, full.partition("#")[0]))
