"""foretell data and corpus: question sets and documents on this machine."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result
from foretell.cli.request_options import request_options
from foretell.operations.requests import (
    ClaimsRequest,
    CorpusImportRequest,
    CorpusSearchRequest,
    DataListRequest,
    DataPullRequest,
    FinancialTasksRequest,
    InspectLogRequest,
    OptionTasksRequest,
    TrancheRequest,
)

if TYPE_CHECKING:
    from foretell.data.http import Progress
    from foretell.operations.result import Result


@click.group()
def corpus() -> None:
    """Your own dated documents: bring them in, search them as of a date."""


@corpus.command("import")
@request_options(CorpusImportRequest)
@prints_result()
def import_documents(request: CorpusImportRequest) -> "Result":
    """Import files or folders (.txt, .md, .html, .jsonl, .warc, .warc.gz) into the corpus.

    What is in it already is not stored twice.
    """
    from foretell.operations.data import import_documents

    return import_documents(request)


@corpus.command()
@request_options(CorpusSearchRequest)
@prints_result(".json", ".csv", ".parquet")
def search(request: CorpusSearchRequest) -> "Result":
    """Search the corpus, best matches first."""
    from foretell.operations.data import search_corpus

    return search_corpus(request)


@click.group()
def data() -> None:
    """Question sets: download public ones, list what is here, build your own."""


@data.command()
@request_options(DataPullRequest)
@prints_result()
def pull(request: DataPullRequest) -> "Result":
    """Download rounds of SOURCE with their outcomes so far.

    Files that are here and intact are not downloaded again; outcomes are brought up to date.
    """
    from foretell.data.http import SourceError
    from foretell.operations.data import pull

    try:
        with _download_progress() as watch:
            return pull(request, watch)
    except SourceError as error:
        raise click.ClickException(str(error)) from None


@data.command("list")
@request_options(DataListRequest)
@prints_result(".json", ".csv", ".parquet")
def list_rounds(request: DataListRequest) -> "Result":
    """Show the rounds on this machine, with how many targets have an outcome."""
    from foretell.operations.data import list_rounds

    return list_rounds(request)


@data.command("inspect-log")
@request_options(InspectLogRequest)
@prints_result()
def inspect_log(request: InspectLogRequest) -> "Result":
    """Turn an Inspect AI LOG (.eval or .json, or a folder of them) into the tables that `foretell score` reads.

    foretell data inspect-log logs/ --tables run; foretell score -f run/forecasts.csv -o run/outcomes.csv
    """
    from foretell.inspect_tasks.logs import convert_log

    return convert_log(request)


@data.group()
def build() -> None:
    """Make a question set: a folder with questions.jsonl, to run, and outcomes.csv, to score against."""


@build.command()
@request_options(TrancheRequest)
@prints_result()
def tranche(request: TrancheRequest) -> "Result":
    """Draw a fixed-seed sample of the resolved questions of ROUND, as the BLF study drew its test sets.

    foretell data build tranche 2025-10-26 --resolved-by 2026-01-05 --tables tranche
    """
    from foretell.operations.data import build_tranche

    return build_tranche(request)


@build.command()
@request_options(ClaimsRequest)
@prints_result()
def claims(request: ClaimsRequest) -> "Result":
    """Turn CLAIMS, statements that a publication later found true or false, into questions asked the day before."""
    from foretell.operations.data import build_claims

    return build_claims(request)


@build.command()
@request_options(OptionTasksRequest)
@prints_result()
def options(request: OptionTasksRequest) -> "Result":
    """Turn TASKS, choices with what a dollar on each of them returned, into questions: which one pays most?"""
    from foretell.operations.data import build_options

    return build_options(request)


@build.command()
@request_options(FinancialTasksRequest)
@prints_result()
def financial(request: FinancialTasksRequest) -> "Result":
    """Make tasks from SERIES, a file of prices: long or short, higher or lower, asked on each --cutoff day."""
    from foretell.operations.data import build_financial

    return build_financial(request)


@contextmanager
def _download_progress() -> "Generator[Callable[[str], Progress]]":
    """A progress bar per file on the error stream, shown only to a person at a terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    with Bars(console=console, transient=True, disable=not console.is_terminal) as bars:

        def watch(name: str) -> "Progress":
            task = bars.add_task(name, total=None)

            def advance(received: int, total: int | None) -> None:
                bars.update(task, completed=received, total=total)

            return advance

        yield watch
