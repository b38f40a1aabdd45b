"""`foretell data`: bring public question sets to this machine and see what is here."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from foretell.data.datasets.cache import DownloadCache
    from foretell.data.datasets.forecastbench_download import PulledFile
    from foretell.data.http import Progress


# `foretell corpus`: dated documents of one's own, to search as of a date.


def _default_corpus() -> Path:
    """Where runs look for it as well."""
    from foretell.runs.settings import load_settings

    return load_settings().corpus


CORPUS_OPTION = click.option(
    "--corpus",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=_default_corpus,
    show_default="corpus.db in FORETELL_HOME",
    envvar="FORETELL_CORPUS",
    show_envvar=True,
    help="The file that holds the corpus.",
)


@click.group()
def corpus() -> None:
    """Your own dated documents: bring them in, search them as of a date."""


@corpus.command("import")
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@CORPUS_OPTION
def import_documents(sources: tuple[Path, ...], path: Path) -> None:
    """Import files or folders (.txt, .md, .html, .jsonl, .warc, .warc.gz) into the corpus.

    What is in it already is not stored twice.
    """
    from foretell.data.corpus import Corpus, CorpusCounts, read_documents

    path.parent.mkdir(parents=True, exist_ok=True)
    store = Corpus(path)
    counts = sum((store.add(read_documents(source)) for source in sources), CorpusCounts())
    click.echo(f"{counts.added} added, {counts.known} already there, {len(store)} in {path}")
    if counts.undated:
        click.echo(f"{counts.undated} have no date: a backtest never sees them", err=True)
    store.close()


@corpus.command()
@click.argument("query")
@click.option("--as-of", "day", metavar="DATE", help="Show only what was dated by the end of this day.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many to show.")
@CORPUS_OPTION
def search(query: str, day: str | None, limit: int, path: Path) -> None:
    """Search the corpus, best matches first."""
    from foretell.data.corpus import Corpus
    from foretell.questions.as_of import AsOf
    from foretell.questions.errors import InputError

    try:
        # Without a date there is no cutoff: every document is shown, whatever it says of its age.
        as_of = AsOf.day(day) if day else AsOf.day("9999-12-31", mode="live")
    except ValueError as error:
        raise InputError(str(error), column="--as-of") from None
    store = Corpus(path, must_exist=True)
    found = store.search(query, as_of, limit)
    for one in found:
        dated = one.document.published or one.document.captured
        click.echo(f"{dated:%Y-%m-%d}" if dated else "undated", nl=False)
        click.echo(f"  {one.document.title}\n            {one.document.url}\n            {one.snippet}")
    if not found:
        click.echo("nothing found", err=True)
    store.close()


# foretell data inspect-log: the logs of Inspect AI as tables of forecasts.


@click.command("inspect-log")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("inspect"), show_default=True)
@click.option("--name", metavar="FORECASTER", help="Who forecast (default: the model of each log).")
def inspect_log(log: Path, out: Path, name: str | None) -> None:
    """Turn an Inspect AI LOG (.eval or .json, or a folder of them) into the tables that `foretell score` reads.

    foretell data inspect-log logs/ --out run; foretell score -f run/forecasts.csv -o run/outcomes.csv
    """
    from foretell.inspect_tasks.logs import read_inspect_log

    found = read_inspect_log(log, name=name)
    for path in found.write(out):
        click.echo(f"Wrote {path}")
    if found.failures:
        first = found.failures[0]
        told = f"{len(found.failures)} samples hold no forecast, e.g. {first['question']}: {first['error']}"
        click.echo(told, err=True)


SOURCES = ("forecastbench",)
DESTINATION_OPTION = click.option(
    "--dest", type=click.Path(file_okay=False, path_type=Path), help="Directory to use instead of the user cache."
)


@click.group()
def data() -> None:
    """Public question sets: download them, list what is here."""


data.add_command(inspect_log)


@data.command()
@click.argument("source", type=click.Choice(SOURCES))
@click.option("--round", "rounds", multiple=True, metavar="DATE", help="Due date of a round; may be repeated.")
@click.option("--latest", is_flag=True, help="The newest round (also when no round is named).")
@click.option("--url", envvar="FORETELL_FORECASTBENCH_URL", show_envvar=True, help="Where the files are published.")
@DESTINATION_OPTION
def pull(source: str, rounds: tuple[str, ...], latest: bool, url: str | None, dest: Path | None) -> None:
    """Download rounds of SOURCE with their outcomes so far.

    Files that are here and intact are not downloaded again; outcomes are brought up to date.
    """
    from foretell.data.datasets.forecastbench_download import FORECASTBENCH_URL, ForecastBenchDownload
    from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
    from foretell.runs import event_loop

    cache = _cache(source, dest)

    async def download() -> "list[PulledFile]":
        async with AsyncHttpClient(limits=HttpLimits()) as client:
            bench = ForecastBenchDownload(cache, client, url=url or FORECASTBENCH_URL)
            newest = [await bench.latest()] if latest or not rounds else []
            return await bench.pull(sorted({*rounds, *newest}), watch)

    try:
        with _download_progress() as watch:
            pulled = event_loop.run(download())
    except SourceError as error:
        raise click.ClickException(str(error)) from None
    for one in pulled:
        click.echo(_line(one))
    click.echo(f"in {cache.root}")


@data.command("list")
@DESTINATION_OPTION
def list_rounds(dest: Path | None) -> None:
    """Show the rounds on this machine, with how many targets have an outcome."""
    from rich.console import Console
    from rich.table import Table

    from foretell.data.datasets.forecastbench_download import pulled_rounds

    cache = _cache("forecastbench", dest)
    days = pulled_rounds(cache)
    if not days:
        click.echo(f"nothing in {cache.root}; try: foretell data pull forecastbench --latest")
        return
    table = Table("source", "round", "questions", "targets", "resolved", "files")
    for day in days:
        table.add_row("forecastbench", day, *_cells(cache, day))
    Console().print(table)
    click.echo(f"in {cache.root}")


def _cache(source: str, dest: Path | None) -> "DownloadCache":
    from foretell.data.datasets.cache import DownloadCache, cache_home

    return DownloadCache(dest or cache_home() / source)


def _cells(cache: "DownloadCache", day: str) -> tuple[str, str, str, str]:
    from foretell.data.datasets.forecastbench_download import read_pulled
    from foretell.questions.errors import InputError

    try:
        found = read_pulled(cache, day)
    except InputError as error:
        return "", "", "", f"{error.problem}: {error.hint}"
    targets = sum(len(question.targets) for question in found.questions)
    return str(len(found.questions)), str(targets), str(len(found.outcomes())), "intact"


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


def _line(one: "PulledFile") -> str:
    size = f", {one.bytes / 1e6:.1f} MB" if one.bytes else ""
    revised = f", {one.revised} outcomes revised" if one.revised else ""
    return f"{one.name}: {one.state}{size}{revised}"
