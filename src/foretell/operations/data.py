"""Question sets and documents on this machine: download, list, build, import, search."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.operations.requests import (
    ClaimsRequest,
    CorpusImportRequest,
    CorpusSearchRequest,
    DataListRequest,
    DataPullRequest,
    FinancialTasksRequest,
    OptionTasksRequest,
    TrancheRequest,
)
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.report.terminal import TextColumn, text_table

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.data.corpus import CorpusHit
    from foretell.data.datasets.cache import DownloadCache
    from foretell.data.datasets.forecastbench_download import PulledFile
    from foretell.data.datasets.question_set import QuestionSet
    from foretell.data.http import Progress

WatchDownload = Callable[[str], "Progress"]
"""File name → what is told how much of it has come."""


def _cache(folder: Path | None) -> "DownloadCache":
    from foretell.data.datasets.cache import DownloadCache, cache_home

    return DownloadCache(folder or cache_home() / "forecastbench")


# Public question sets.


@dataclass(frozen=True, kw_only=True)
class PullResult(Result):
    """Files that were downloaded or were there already."""

    files: "tuple[PulledFile, ...]"
    folder: Path

    def to_dict(self) -> Any:
        """The folder and its files."""
        return {"folder": str(self.folder), "files": [asdict(one) for one in self.files]}

    def __str__(self) -> str:
        """A line for each file."""
        lines: list[str] = []
        for one in self.files:
            size = f", {one.bytes / 1e6:.1f} MB" if one.bytes else ""
            revised = f", {one.revised} outcomes revised" if one.revised else ""
            lines.append(f"{one.name}: {one.state}{size}{revised}")
        return "\n".join([*lines, f"in {self.folder}"])


def pull(request: DataPullRequest, watch: WatchDownload) -> PullResult:
    """Download rounds with their outcomes so far; what is here and intact is not downloaded again."""
    from foretell.data.datasets.forecastbench_download import FORECASTBENCH_URL, ForecastBenchDownload
    from foretell.data.http import AsyncHttpClient, HttpLimits
    from foretell.runs import event_loop
    from foretell.runs.backtest import run_sync

    cache = _cache(request.folder)

    async def download() -> PullResult:
        async with AsyncHttpClient(limits=HttpLimits()) as client:
            bench = ForecastBenchDownload(cache, client, url=request.url or FORECASTBENCH_URL)
            newest = [await bench.latest()] if request.latest or not request.rounds else []
            files = await bench.pull(sorted({*request.rounds, *newest}), watch)
        return PullResult(files=tuple(files), folder=cache.root)

    return run_sync(download(), event_loop.run)


@dataclass(frozen=True, kw_only=True)
class RoundsResult(Result):
    """Rounds on this machine."""

    rounds: tuple[dict[str, Any], ...]
    folder: Path

    def to_dict(self) -> Any:
        """The folder and its rounds."""
        return {"folder": str(self.folder), "rounds": list(self.rounds)}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each round."""
        return list(self.rounds)

    def print(self, console: "Console") -> None:
        """A table."""
        if not self.rounds:
            console.file.write(f"nothing in {self.folder}; try: foretell data pull forecastbench --latest\n")
            return
        columns = [
            TextColumn(head="source"),
            TextColumn(head="round"),
            *(TextColumn(head=head, right=True) for head in ("questions", "targets", "resolved")),
            TextColumn(head="files", shrink=20),
        ]
        lines = [["" if cell is None else cell for cell in row.values()] for row in self.rounds]
        console.file.write(f"{text_table(columns, lines, console.width)}\nin {self.folder}\n")


def list_rounds(request: DataListRequest) -> RoundsResult:
    """The rounds on this machine, with how many targets have an outcome."""
    from foretell.data.datasets.forecastbench_download import pulled_rounds

    cache = _cache(request.folder)
    return RoundsResult(rounds=tuple(_round(cache, day) for day in pulled_rounds(cache)), folder=cache.root)


def _round(cache: "DownloadCache", day: str) -> dict[str, Any]:
    from foretell.data.datasets.forecastbench_download import read_pulled

    row: dict[str, Any] = {"source": "forecastbench", "round": day, "questions": None, "targets": None}
    try:
        found = read_pulled(cache, day)
    except InputError as error:
        return row | {"resolved": None, "files": f"{error.problem}: {error.hint}"}
    targets = sum(len(question.targets) for question in found.questions)
    counts = {"questions": len(found.questions), "targets": targets, "resolved": len(found.outcomes())}
    return row | counts | {"files": "intact"}


# Question sets made here.


@dataclass(frozen=True, kw_only=True)
class BuiltSet(Result):
    """A set of questions with their outcomes, and the files it was written to."""

    found: "QuestionSet"
    files: tuple[Path, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        return self.found.notes

    def to_dict(self) -> Any:
        """How many there are, and where."""
        return {
            "name": self.found.name,
            "questions": len(self.found.questions),
            "outcomes": len(self.found.outcomes()),
            "files": [str(path) for path in self.files],
            "notes": list(self.found.notes),
        }

    def __str__(self) -> str:
        """How many there are, and where."""
        counts = f"{len(self.found.questions)} questions with {len(self.found.outcomes())} outcomes"
        return "\n".join([*(f"Wrote {path}" for path in self.files), f"{self.found.name}: {counts}"])


def _written(found: "QuestionSet", folder: Path) -> BuiltSet:
    from foretell.data.atomic_file import write_atomically
    from foretell.questions.codec import to_json
    from foretell.scoring.long_tables import outcome_rows, write_rows

    if not found.questions:
        raise InputError(f"{found.name} holds no question", hint="; ".join(found.notes) or None)
    folder.mkdir(parents=True, exist_ok=True)
    questions = folder / "questions.jsonl"
    write_atomically(questions, "".join(f"{to_json(one)}\n" for one in found.questions).encode())
    outcomes = write_rows(outcome_rows(found.questions, found.resolutions), folder / "outcomes.csv")
    return BuiltSet(found=found, files=(questions, outcomes))


def build_tranche(request: TrancheRequest) -> BuiltSet:
    """A fixed-seed sample of the resolved questions of a round."""
    from foretell.data.datasets.forecastbench_download import read_pulled
    from foretell.data.datasets.tranches import TranchePlan
    from foretell.data.datasets.tranches import build_tranche as draw
    from foretell.questions.as_of import instant

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
    return _written(draw(read_pulled(_cache(request.data), request.round), plan), request.tables)


def build_claims(request: ClaimsRequest) -> BuiltSet:
    """Claims that a publication later found true or false."""
    from foretell.data.datasets.claims import read_claims

    return _written(read_claims(request.source, request.split), request.tables)


def build_options(request: OptionTasksRequest) -> BuiltSet:
    """Tasks in which one of several options pays most."""
    from foretell.data.datasets.payoff_tasks import read_options

    return _written(read_options(request.source), request.tables)


def build_financial(request: FinancialTasksRequest) -> BuiltSet:
    """Tasks made from a series of prices."""
    from foretell.data.datasets.payoff_tasks import (
        HIGHER_LOWER,
        LONG_SHORT,
        FinancialTaskPlan,
        build_financial_tasks,
    )
    from foretell.data.series.local import CsvSeries
    from foretell.questions.as_of import AsOf
    from foretell.questions.question import SeriesRef
    from foretell.runs import event_loop

    known = CsvSeries(path=request.source)
    ids = known.ids()
    if request.series is None and len(ids) != 1:
        raise InputError(f"the file holds {len(ids)} series", column="--series", hint=f"one of {', '.join(ids[:12])}")
    name = request.series or ids[0]
    if name not in ids:
        raise InputError(f"there is no series {name!r}", column="--series", hint=f"one of {', '.join(ids[:12])}")
    try:
        cutoffs = [date.fromisoformat(day) for day in request.cutoffs]
    except ValueError as error:
        raise InputError(str(error), column="--cutoff") from None
    kind = LONG_SHORT if request.kind == "long-short" else HIGHER_LOWER
    plan = FinancialTaskPlan(horizon_days=request.horizon, min_history=request.history)
    series = event_loop.run(known.fetch(SeriesRef(provider="csv", id=name), AsOf.day("9999-12-31", mode="live")))
    return _written(build_financial_tasks(series, cutoffs, kind, plan), request.tables)


# The corpus: dated documents of one's own.


def _corpus_path(path: Path | None) -> Path:
    """Where runs look for it as well."""
    from foretell.runs.settings import load_settings

    return path or load_settings().corpus


@dataclass(frozen=True, kw_only=True)
class CorpusImport(Result):
    """What was brought into the corpus."""

    added: int
    known: int
    undated: int
    total: int
    corpus: Path

    @property
    def warnings(self) -> tuple[str, ...]:
        """Documents without a date are of no use to a backtest."""
        return (f"{self.undated} have no date: a backtest never sees them",) if self.undated else ()

    def to_dict(self) -> Any:
        """Counts."""
        return asdict(self)

    def __str__(self) -> str:
        """A line."""
        return f"{self.added} added, {self.known} already there, {self.total} in {self.corpus}"


def import_documents(request: CorpusImportRequest) -> CorpusImport:
    """Import files or folders; what is in the corpus already is not stored twice."""
    from foretell.data.corpus import Corpus, CorpusCounts, read_documents

    for source in request.sources:
        if not source.exists():
            raise InputError("there is no such file or folder", path=source)
    path = _corpus_path(request.corpus)
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(Corpus(path)) as store:
        counts = sum((store.add(read_documents(source)) for source in request.sources), CorpusCounts())
        return CorpusImport(
            added=counts.added, known=counts.known, undated=counts.undated, total=len(store), corpus=path
        )


@dataclass(frozen=True, kw_only=True)
class CorpusSearchResult(Result):
    """Documents of the corpus, best matches first."""

    found: "tuple[CorpusHit, ...]"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where there is none."""
        return () if self.found else ("nothing found",)

    def to_dict(self) -> Any:
        """One dictionary for each document."""
        return [
            {
                "dated": dated.isoformat() if (dated := one.document.published or one.document.captured) else None,
                "title": one.document.title,
                "url": one.document.url,
                "snippet": one.snippet,
            }
            for one in self.found
        ]

    def __str__(self) -> str:
        """Three lines for each document."""
        return "\n".join(
            f"{row['dated'][:10] if row['dated'] else 'undated'}  {row['title']}\n"
            f"            {row['url']}\n            {row['snippet']}"
            for row in self.rows()
        )


def search_corpus(request: CorpusSearchRequest) -> CorpusSearchResult:
    """Search the corpus as of a date; without one, all of it."""
    from foretell.data.corpus import Corpus
    from foretell.questions.as_of import AsOf

    try:
        # Without a date there is no cutoff: every document is shown, whatever it says of its age.
        as_of = AsOf.day(request.as_of) if request.as_of else AsOf.day("9999-12-31", mode="live")
    except ValueError as error:
        raise InputError(str(error), column="--as-of") from None
    with closing(Corpus(_corpus_path(request.corpus), must_exist=True)) as store:
        return CorpusSearchResult(found=tuple(store.search(request.query, as_of, request.limit)))
