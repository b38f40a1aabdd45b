"""Question sets and documents on this machine: download, list, show, build, import, search."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from foretell.data.datasets.question_files import OUTCOMES, QUESTIONS
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
    ClaimsSettings,
    CorpusAddRequest,
    CorpusSearchRequest,
    DataBuildRequest,
    DataListRequest,
    DataPullRequest,
    DataShowRequest,
    PricesSettings,
    SampleSettings,
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

if TYPE_CHECKING:
    from foretell.data.datasets.analytica import DiscardedTask, FinancialTasks

WatchDownload = Callable[[str], Progress]
"""File name → a function that is called with the progress of its download."""
NO_CUTOFF = AsOf.day("9999-12-31", mode="live")
"""Show everything, whatever its date."""


def _cache() -> DownloadCache:
    return DownloadCache(home_folder() / "forecastbench")


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

    cache, settings = _cache(), load_settings()
    try:
        async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as client:
            address = settings.addresses.get("forecastbench") or FORECASTBENCH_URL
            source = ForecastBenchDownload(cache, client, url=address)
            days = sorted({*request.rounds}) or [await source.latest()]
            files = await source.pull(days, watch)
        files += await keep_due_prices(cache, days, settings) if request.prices else []
    except SourceError as error:
        raise InputError(str(error)) from None
    return PullResult(files=tuple(files), folder=cache.root)


async def _pull_arena(request: DataPullRequest) -> PullResult:
    if not request.dataset:
        raise InputError("which data set?", column="--dataset", hint="e.g. --dataset SLUG, or SLUG@VERSION")
    settings = load_settings()
    folder = dataset_folder()
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
            show_text(console, f"nothing in {self.folder}; try: foretell data pull forecastbench\n")
            return
        columns = {TextColumn(head="source"): "source", TextColumn(head="round"): "round"}
        columns |= {TextColumn(head=head, right=True): head for head in ("questions", "targets", "resolved")}
        show_table(console, self.rounds, {**columns, TextColumn(head="files", shrink=20): "files"})
        show_text(console, f"in {self.folder}\n")


def list_rounds(_: DataListRequest) -> RoundsResult:
    """List the rounds on this machine, with the number of resolved targets."""
    cache, rounds = _cache(), list[dict[str, Any]]()
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
    """A question set with outcomes, to be written into a folder."""

    questions: QuestionSet
    discarded: "tuple[DiscardedTask, ...]" = ()
    """Tasks that could not be made from a price series."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        return self.questions.notes

    def to_dict(self) -> dict[str, Any]:
        """The name of the set, the number of questions and outcomes, and what was left out."""
        built = self.questions
        counts = {"questions": len(built.questions), "outcomes": len(built.outcomes())}
        return {"name": built.name, **counts, "notes": list(built.notes), "discarded": self._discarded()}

    def write_folder(self, folder: Path) -> list[Path]:
        """Write questions.jsonl, outcomes.csv and, if tasks were discarded, discarded.csv; return their paths."""
        written = write_question_set(self.questions, folder)
        return [*written, *([write_rows(self._discarded(), folder / "discarded.csv")] if self.discarded else [])]

    def _discarded(self) -> list[dict[str, Any]]:
        return [
            {"series": task.series, "cutoff": task.cutoff.isoformat(), "reason": task.reason} for task in self.discarded
        ]

    def __str__(self) -> str:
        built = self.questions
        counts = f"{built.name}: {len(built.questions)} questions with {len(built.outcomes())} outcomes"
        return f"{counts}\nNext: foretell backtest FOLDER -F prior, or questions: FOLDER in the settings of a run"


def write_question_set(questions: QuestionSet, folder: Path) -> list[Path]:
    """Write a set as questions.jsonl and outcomes.csv, which every command reads by the folder; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / QUESTIONS
    write_atomically(file, "".join(f"{to_json(question)}\n" for question in questions.questions).encode())
    return [file, write_rows(outcome_rows(questions.questions, questions.resolutions), folder / OUTCOMES)]


async def build(request: DataBuildRequest, settings: Settings | None = None) -> BuiltSet:
    """Build a question set from a round, claims, tasks or price series.

    Raises InputError if a setting or a source cannot be used, or if no question can be made.
    """
    from foretell.data.datasets.analytica import read_claims, read_options

    chosen = request.SETTINGS[request.kind].from_settings(request.set)
    discarded: tuple[DiscardedTask, ...] = ()
    match chosen:
        case SampleSettings():
            built = _draw_sample(request, chosen)
        case ClaimsSettings():
            built = read_claims(request.sources[0], chosen.split)
        case PricesSettings():
            built = await _price_tasks(request, chosen, settings or load_settings())
            discarded = tuple(built.discarded)
        case _:
            built = read_options(request.sources[0])
    if not built.questions:
        raise InputError(f"{built.name} holds no question", hint="; ".join(built.notes) or None)
    return BuiltSet(questions=built, discarded=discarded)


def _draw_sample(request: DataBuildRequest, chosen: SampleSettings) -> QuestionSet:
    """Draw a fixed-seed sample of the resolved questions of a round."""
    from foretell.data.datasets.tranches import TranchePlan, build_tranche

    (due,) = request.sources
    try:
        plan = TranchePlan(
            due=instant(due),
            resolved_by=instant(request.resolved_by or ""),
            per_dataset_source=chosen.per_source,
            markets=chosen.markets,
            seed=chosen.seed,
        )
    except ValueError as error:
        raise InputError(str(error), hint="dates are written as 2025-10-26") from None
    return build_tranche(read_pulled(_cache(), due), plan)


async def _price_tasks(request: DataBuildRequest, chosen: PricesSettings, settings: Settings) -> "FinancialTasks":
    """Make tasks from price series."""
    from foretell.data.datasets import analytica

    try:
        cutoffs = [date.fromisoformat(day) for day in request.cutoffs]
    except ValueError as error:
        raise InputError(str(error), column="--cutoff") from None
    kind = analytica.LONG_SHORT if chosen.task == "long-short" else analytica.HIGHER_LOWER
    plan = analytica.FinancialTaskPlan(horizon_days=chosen.horizon, min_history=chosen.history)
    series = await _price_series(request.sources, chosen.series, settings)
    return analytica.build_financial_tasks(series, cutoffs, kind, plan)


async def _price_series(sources: Sequence[str], only: Sequence[str], settings: Settings) -> list[Series]:
    """Read the series of all sources, or only some of them."""
    from foretell.data.series.local import CsvSeries
    from foretell.runs.services import open_services

    found: dict[str, Series] = {}
    for source in sources:
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
    for name in only:
        if name not in found:
            hint = f"one of {', '.join(list(found)[:12])}"
            raise InputError(f"there is no series {name!r}", column="--set series", hint=hint)
    return [series for name, series in found.items() if not only or name in only]


# The corpus: your own dated documents.


@dataclass(frozen=True, kw_only=True)
class CorpusAddition(Result):
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


def add_documents(request: CorpusAddRequest) -> CorpusAddition:
    """Add files or folders; documents that are already in the corpus are not stored twice."""
    for source in request.sources:
        if not source.exists():
            raise InputError("there is no such file or folder", path=source)
    path = request.corpus or load_settings().corpus
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(Corpus(path)) as store:
        counts = sum((store.add(read_documents(source)) for source in request.sources), CorpusCounts())
        return CorpusAddition(**asdict(counts), total=len(store), corpus=path)


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

    asked: QuestionSet
    topics: tuple[TopicLabel, ...] = ()
    notes: tuple[str, ...] = ()
    late: Mapping[AskedKey, tuple[LatePassage, ...]] = field(default_factory=dict[AskedKey, tuple[LatePassage, ...]])
    """Questions whose own text is newer than their date; a backtest leaves them out."""
    refused: Mapping[AskedKey, tuple[RefusedArticle, ...]] = field(
        default_factory=dict[AskedKey, tuple[RefusedArticle, ...]]
    )
    """Sources that came with a question and that the fence refuses."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions."""
        return self.asked.questions

    @property
    def outcomes(self) -> int:
        """The number of targets with an outcome."""
        return len(self.asked.outcomes())

    def to_dict(self) -> list[dict[str, Any]]:
        """One dictionary per question, with all fields and what was noted about it."""
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

    def saved(self) -> QuestionSet:
        """The set as it is written to a file: the topic of a question, if it has one, is its category."""
        labels = [label.topic for label in self.topics] or [question.category for question in self.questions]
        pairs = zip(self.questions, labels, strict=True)
        return replace(self.asked, questions=tuple(replace(question, category=label) for question, label in pairs))

    def rows(self) -> list[dict[str, Any]]:
        """Whole questions, as a file of questions has them."""
        return [json.loads(to_json(question)) for question in self.saved().questions]

    def write_folder(self, folder: Path) -> list[Path]:
        """Write questions.jsonl and outcomes.csv with the known outcomes; return their paths."""
        return write_question_set(self.saved(), folder)

    def table(self) -> list[dict[str, Any]]:
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
                "price": "" if (price := first.snapshot and first.snapshot.price) is None else f"{price:.0%}",
                "text": question.text,
            }
            row |= {"topic": self.topics[place].topic} if self.topics else {}
            found.append(row)
        return found

    def print(self, console: Console) -> None:
        """The first questions as a table, and a summary of all."""
        columns: dict[TextColumn, Any] = {
            TextColumn(head="id", shrink=12): "id",
            TextColumn(head="asked", drop=2): "asked",
            TextColumn(head="resolves"): "resolves",
            TextColumn(head="targets", right=True, drop=3): "targets",
            TextColumn(head="price", right=True, drop=1): "price",
        }
        columns |= {TextColumn(head="topic"): "topic"} if self.topics else {}
        show_table(console, self.table()[:SHOWN], columns | {TextColumn(head="question", shrink=32): "text"})
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


async def read_set(name: str, wanted: SetFilter, settings: Settings) -> QuestionSet:
    """Any question set as it is now: a file, a data set, or a market's list."""
    found = find_set(name)
    if found.kind == "datasets":
        return open_benchmark(name, wanted=wanted, live=True).questions
    if wanted.rounds:
        raise InputError(f"{name} has no rounds", column="questions.rounds")
    questions, notes = await list_questions(found, wanted, settings, clock_of(settings)().replace(microsecond=0))
    return QuestionSet(name=name, questions=tuple(questions), notes=notes)


async def show_questions(request: DataShowRequest, settings: Settings | None = None) -> QuestionsResult:
    """Check a question set and return its questions, with their topics if requested.

    Raises InputError if the set or a setting cannot be used, or if no question is left.
    """
    settings, wanted = settings or load_settings(), request.wanted()
    submitted = _submitted(settings) if request.new else frozenset[str]()
    found = await look_at_set(request.dataset, wanted, settings, leave_out=submitted)
    return replace(found, topics=await _topics(found.questions, request.model)) if request.topics else found


async def look_at_set(
    name: str, wanted: SetFilter, settings: Settings, *, leave_out: Container[str] = ()
) -> QuestionsResult:
    """Read a question set, and note texts that are newer than their questions and sources that are refused.

    Questions whose ids are in `leave_out` do not count towards the limit.
    """
    found = await read_set(name, replace(wanted, limit=None) if leave_out else wanted, settings)
    chosen = [question for question in found.questions if question.id not in leave_out][: wanted.limit]
    if not chosen:
        kind = "new open question for you" if found.questions else "such question"
        raise InputError(f"{name} has no {kind}", hint="; ".join(found.notes[:3]) or None)
    found = found.only(chosen)
    late = {asked_key(one): late_passages(one) for one in found.questions} if wanted.late_text != "keep" else {}
    if wanted.late_text == "cut":
        found = with_early_texts(found, "cut")
    articles = [(one, found.contexts.get(asked_key(one), ())) for one in found.questions]
    refused = {asked_key(one): tuple(refused_articles(one, given)) for one, given in articles if given}
    named = list(chain.from_iterable(refused.values()))
    return QuestionsResult(
        asked=found,
        notes=(*found.notes, *refusal_notes(named, sum(len(given) for _, given in articles), SHOWN)),
        late={key: passages for key, passages in late.items() if passages},
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


def _submitted(settings: Settings) -> frozenset[str]:
    """Ids of questions that this machine has submitted; one part of a group is enough."""
    taken = [key[2] for key in SubmissionHistory.of(open_ledger(settings).entries()).taken]
    return frozenset(name for full in taken for name in (full, full.partition("#")[0]))
