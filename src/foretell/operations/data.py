"""Question sets and documents on this machine: download, list, show, build, import, search."""

import asyncio
import json
import shlex
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
from foretell.data.datasets.question_files import CONTEXTS, OUTCOMES, QUESTIONS, REFERENCES
from foretell.data.datasets.question_set import (
    AskedKey,
    QuestionSet,
    SetFilter,
    asked_key,
    excluded_note,
    union,
)
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
from foretell.number_text import percent
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
from foretell.plugins import exists, names
from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.question_sets import (
    LEAKY_QUESTIONS_HINT,
    SetContexts,
    find_set,
    list_questions,
    open_benchmark,
    with_early_texts,
)
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.scoring.long_tables import outcome_rows, write_rows
from foretell.tools.post_cutoff_text import PostCutoffPassage, post_cutoff_passages
from foretell.tournaments.ledger import SubmissionHistory, open_ledger

if TYPE_CHECKING:
    from foretell.data.datasets.analytica import DiscardedTask, FinancialTasks

WatchDownload = Callable[[str], Progress]
"""File name → a function that is called with the progress of its download."""
BACKTEST = "backtest"
"""Folder within a question set for the answers of its first backtest."""
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
        for file in self.files:
            size = f", {file.bytes / 1e6:.1f} MB" if file.bytes else ""
            revised = f", {file.revised} outcomes revised" if file.revised else ""
            lines.append(f"{file.name}: {file.state}{size}{revised}")
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
        raise InputError("no data set is named", column="--dataset", hint="e.g. --dataset SLUG, or SLUG@VERSION")
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
        """Print a table, or how to download a first round."""
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
            pulled = read_pulled(cache, day)
        except InputError as error:
            row |= {"questions": None, "targets": None, "resolved": None, "files": f"{error.problem}: {error.hint}"}
        else:
            targets = sum(len(question.targets) for question in pulled.questions)
            row |= {"questions": len(pulled.questions), "targets": targets, "resolved": len(pulled.outcomes())}
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
    folders: list[Path] = field(default_factory=list[Path], repr=False, compare=False)
    """Folders that it was written to."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        return self.questions.notes

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the set, the number of questions and outcomes, and what was left out."""
        built = self.questions
        counts = {"questions": len(built.questions), "outcomes": len(built.outcomes())}
        return {"name": built.name, **counts, "notes": list(built.notes), "discarded": self._discarded()}

    def write_folder(self, folder: Path) -> list[Path]:
        """Write questions.jsonl, outcomes.csv and, if tasks were discarded, discarded.csv; return their paths."""
        paths = write_question_set(self.questions, folder)
        self.folders.append(folder)
        return [*paths, *([write_rows(self._discarded(), folder / "discarded.csv")] if self.discarded else [])]

    def _discarded(self) -> list[dict[str, Any]]:
        return [
            {"series": task.series, "cutoff": task.cutoff.isoformat(), "reason": task.reason} for task in self.discarded
        ]

    def __str__(self) -> str:
        built = self.questions
        counts = f"{built.name}: {len(built.questions)} questions with {len(built.outcomes())} outcomes"
        if not self.folders:
            return counts
        folder = self.folders[-1]
        name, answers = (shlex.quote(str(path)) for path in (folder, folder / BACKTEST))
        files = [shlex.quote(str(path)) for path in (folder / BACKTEST / "forecasts.csv", folder / OUTCOMES)]
        metric = " --metric choice" if any(known.payoff is not None for known in built.resolutions) else ""
        # Answers every question by its wording; a base rate would need questions that resolved before.
        steps = (
            f"foretell backtest {name} -F outside-view --out {answers}",
            f"foretell score -f {files[0]} -o {files[1]}{metric}",
        )
        return "\n".join(
            [counts, *(f"Next: {step}" for step in steps), f"Or, in the settings of a run: questions: {name}"]
        )


def write_question_set(questions: QuestionSet, folder: Path) -> list[Path]:
    """Write questions.jsonl, outcomes.csv and, if the set has them, contexts.jsonl and references.jsonl.

    Returns their paths. Every command reads the set by the folder.
    """
    file, contexts_file, contexts = folder / QUESTIONS, folder / CONTEXTS, SetContexts(questions)
    write_atomically(file, "".join(f"{to_json(question)}\n" for question in questions.questions).encode())
    lines = [f"{context.to_json()}\n" for question in questions.questions if (context := contexts.get(question))]
    if lines:
        write_atomically(contexts_file, "".join(lines).encode())
    else:
        contexts_file.unlink(missing_ok=True)  # Of another set that was written here before.
    outcomes = write_rows(outcome_rows(questions.questions, questions.resolutions), folder / OUTCOMES)
    references_file = folder / REFERENCES
    if questions.references:
        write_atomically(
            references_file, "".join(f"{json.dumps(asdict(known))}\n" for known in questions.references).encode()
        )
    else:
        references_file.unlink(missing_ok=True)
    more = ((contexts_file, bool(lines)), (references_file, bool(questions.references)))
    return [file, outcomes, *(path for path, written in more if written)]


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
        raise InputError(f"{built.name} has no questions", hint="; ".join(built.notes) or None)
    return BuiltSet(questions=built, discarded=discarded)


def _draw_sample(request: DataBuildRequest, chosen: SampleSettings) -> QuestionSet:
    """Draw a fixed-seed sample of the resolved questions of each round, and join them."""
    from foretell.data.datasets.samples import SamplePlan, build_sample

    samples: dict[str, QuestionSet] = {}
    for due in request.sources:
        try:
            plan = SamplePlan(
                due=instant(due),
                resolved_by=instant(request.resolved_by or ""),
                per_dataset_source=chosen.per_source,
                markets=chosen.markets,
                seed=chosen.seed,
            )
        except ValueError as error:
            raise InputError(str(error), hint="write dates as 2025-10-26") from None
        if due in samples:
            raise InputError(f"the round {due} is named twice", column="SOURCE")
        samples[due] = build_sample(read_pulled(_cache(), due), plan)
    drawn = [*samples.values()]
    return drawn[0] if len(drawn) == 1 else union(f"forecastbench sample {', '.join(samples)}", drawn)


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

    series_by_name: dict[str, Series] = {}
    for source in sources:
        provider, _, id = source.partition("/")
        if Path(source).exists():
            known = CsvSeries(path=Path(source))
            for name in known.ids():
                series_by_name[name] = await known.fetch(SeriesRef(provider="csv", id=name), NO_CUTOFF)
        elif id and exists("series", provider):
            async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as http:
                services = open_services(settings, http, ())
                try:
                    ref = SeriesRef(provider=provider, id=id)
                    series_by_name[source] = await services.series.fetch(ref, AsOf(at=datetime.now(UTC), mode="live"))
                except (SeriesUnavailable, SourceError) as error:
                    raise InputError(f"{source} could not be read: {error}") from None
        else:
            hint = f"write provider/id with one of {', '.join(names('series'))}"
            raise InputError("there is no such file or series", path=source, hint=hint)
    for name in only:
        if name not in series_by_name:
            hint = f"one of {', '.join(list(series_by_name)[:12])}"
            raise InputError(f"there is no series {name!r}", column="--set series", hint=hint)
    return [series for name, series in series_by_name.items() if not only or name in only]


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

    hits: tuple[CorpusHit, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """A note if nothing was found."""
        return () if self.hits else ("nothing found",)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one dictionary per document."""
        rows: list[dict[str, Any]] = []
        for hit in self.hits:
            dated = hit.document.published or hit.document.captured
            row = {"dated": dated.isoformat() if dated else None, "title": hit.document.title, "url": hit.document.url}
            rows.append({**row, "snippet": hit.snippet})
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
        return CorpusSearchResult(hits=tuple(store.search(request.query, as_of, request.limit)))


# Any question set: show it, sort it by topic, or save it to a file.


SHOWN = 20
"""How many questions are shown in a terminal."""


@dataclass(frozen=True, kw_only=True)
class QuestionsResult(Result):
    """Valid questions, with their topics if requested."""

    question_set: QuestionSet
    topics: tuple[TopicLabel, ...] = ()
    notes: tuple[str, ...] = ()
    post_cutoff: Mapping[AskedKey, tuple[PostCutoffPassage, ...]] = field(
        default_factory=dict[AskedKey, tuple[PostCutoffPassage, ...]]
    )
    """Questions whose own text is newer than their date; a backtest leaves them out."""
    refused: Mapping[AskedKey, tuple[RefusedArticle, ...]] = field(
        default_factory=dict[AskedKey, tuple[RefusedArticle, ...]]
    )
    """Sources of a question that the leakage filter refuses."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions."""
        return self.question_set.questions

    @property
    def outcomes(self) -> int:
        """The number of targets with an outcome."""
        return len(self.question_set.outcomes())

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one dictionary per question, with all fields and notes."""
        rows: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            row = json.loads(to_json(question))
            if self.topics:
                row |= {"topic": self.topics[place].topic, "topic_by": self.topics[place].by}
            if passages := self.post_cutoff.get(asked_key(question)):
                row["excluded"] = [vars(passage) for passage in passages]
            if refused := self.refused.get(asked_key(question)):
                row["refused_sources"] = [vars(article) for article in refused]
            rows.append(row)
        return rows

    def saved(self) -> QuestionSet:
        """Return the set as it is written to a file: the topic of a question, if it has one, is its category."""
        labels = [label.topic for label in self.topics] or [question.category for question in self.questions]
        pairs = zip(self.questions, labels, strict=True)
        return replace(
            self.question_set, questions=tuple(replace(question, category=label) for question, label in pairs)
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return all fields of each question, as in a file of questions."""
        return [json.loads(to_json(question)) for question in self.saved().questions]

    def write_folder(self, folder: Path) -> list[Path]:
        """Write questions.jsonl, outcomes.csv with the known outcomes, and contexts.jsonl; return their paths."""
        return write_question_set(self.saved(), folder)

    def table(self) -> list[dict[str, Any]]:
        """Return what the terminal shows, for every question."""
        rows: list[dict[str, Any]] = []
        for place, question in enumerate(self.questions):
            first = question.targets[0]
            resolves = first.resolves_at or question.closes_at
            row = {
                "id": question.id,
                "asked": question.due.date().isoformat(),
                "resolves": resolves.date().isoformat() if resolves else "",
                "targets": len(question.targets),
                "price": "" if (price := first.snapshot and first.snapshot.price) is None else percent(price),
                "text": question.text,
            }
            row |= {"topic": self.topics[place].topic} if self.topics else {}
            rows.append(row)
        return rows

    def print(self, console: Console) -> None:
        """Print the first questions as a table, and a summary of all."""
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
        known = f", {self.outcomes} of which have resolved" if self.outcomes else ""
        show_text(console, f"{len(self.questions)} questions ({kinds}) with {targets} targets{known}: well formed.\n")
        if self.post_cutoff:
            pronoun = "it" if len(self.post_cutoff) == 1 else "them"
            text = f"{excluded_note(len(self.post_cutoff))}. A backtest leaves {pronoun} out"
            show_text(console, f"{text} ({LEAKY_QUESTIONS_HINT}):\n")
        for (id, due), passages in list(self.post_cutoff.items())[:SHOWN]:
            lines = "".join(f"    {passage}\n" for passage in passages[:SHOWN])
            show_text(console, f"  {id}, asked {due.date()}\n{lines}")
        for topic, n in Counter(label.topic for label in self.topics).most_common():
            show_text(console, f"{n:5} {topic}\n")


async def read_set(name: str, wanted: SetFilter, settings: Settings) -> QuestionSet:
    """Read any question set as it is now: a file, a data set, or a market's list."""
    dataset = find_set(name)
    if dataset.kind == "datasets":
        return open_benchmark(name, wanted=wanted, live=True).questions
    if wanted.rounds:
        raise InputError(f"{name} has no rounds", column="questions.rounds")
    questions, notes = await list_questions(dataset, wanted, settings, clock_of(settings)().replace(microsecond=0))
    return QuestionSet(name=name, questions=tuple(questions), notes=notes)


async def show_questions(request: DataShowRequest, settings: Settings | None = None) -> QuestionsResult:
    """Check a question set and return its questions, with their topics if requested.

    Raises InputError if the set or a setting cannot be used, or if no question is left.
    """
    settings, wanted = settings or load_settings(), request.wanted()
    submitted = _submitted(settings) if request.new else frozenset[str]()
    result = await look_at_set(request.dataset, wanted, settings, leave_out=submitted)
    return replace(result, topics=await _topics(result.questions, request.model)) if request.topics else result


async def look_at_set(
    name: str, wanted: SetFilter, settings: Settings, *, leave_out: Container[str] = ()
) -> QuestionsResult:
    """Read a question set, and note texts that are newer than their questions and sources that are refused.

    Questions whose ids are in `leave_out` do not count towards the limit.
    """
    question_set = await read_set(name, replace(wanted, limit=None) if leave_out else wanted, settings)
    chosen = [question for question in question_set.questions if question.id not in leave_out][: wanted.limit]
    if not chosen:
        kind = "new open question for you" if question_set.questions else "such question"
        raise InputError(f"{name} has no {kind}", hint="; ".join(question_set.notes[:3]) or None)
    question_set = question_set.only(chosen)
    post_cutoff = (
        {asked_key(question): post_cutoff_passages(question) for question in question_set.questions}
        if wanted.leaky_questions != "keep"
        else {}
    )
    if wanted.leaky_questions == "redact":
        question_set = with_early_texts(question_set, "redact")
    materials = [(question, question_set.contexts.get(asked_key(question), ())) for question in question_set.questions]
    # A whole context was checked when it was gathered.
    contexts = [(question, material) for question, material in materials if not isinstance(material, str)]
    refused = {
        asked_key(question): tuple(refused_articles(question, articles)) for question, articles in contexts if articles
    }
    named = list(chain.from_iterable(refused.values()))
    return QuestionsResult(
        question_set=question_set,
        notes=(*question_set.notes, *refusal_notes(named, sum(len(articles) for _, articles in contexts), SHOWN)),
        post_cutoff={key: passages for key, passages in post_cutoff.items() if passages},
        refused={key: articles for key, articles in refused.items() if articles},
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
    """Return ids of questions that this machine has submitted; one part of a group is enough."""
    taken = [key[2] for key in SubmissionHistory.of(open_ledger(settings).entries()).taken]
    return frozenset(name for full in taken for name in (full, full.partition("#")[0]))
