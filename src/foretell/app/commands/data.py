"""`foretell data`: bring public question sets to this machine and see what is here."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app.commands.inspect_log import inspect_log

if TYPE_CHECKING:
    from foretell.sources.datasets.cache import Cache
    from foretell.sources.datasets.pull import Pulled
    from foretell.sources.http import Progress

SOURCES = ("forecastbench",)
DEST = click.option(
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
@DEST
def pull(source: str, rounds: tuple[str, ...], latest: bool, url: str | None, dest: Path | None) -> None:
    """Download rounds of SOURCE with their outcomes so far.

    Files that are here and intact are not downloaded again; outcomes are brought up to date.
    """
    from foretell.sources.datasets.pull import FORECASTBENCH_URL, ForecastBench
    from foretell.sources.http import HttpClient, SourceError

    try:
        with HttpClient() as client, _watching() as watch:
            bench = ForecastBench(_cache(source, dest), client, url=url or FORECASTBENCH_URL)
            newest = [bench.latest()] if latest or not rounds else []
            pulled = bench.pull(sorted({*rounds, *newest}), watch)
    except SourceError as error:
        raise click.ClickException(str(error)) from None
    for one in pulled:
        click.echo(_line(one))
    click.echo(f"in {bench.cache.root}")


@data.command("list")
@DEST
def list_rounds(dest: Path | None) -> None:
    """Show the rounds on this machine, with how many targets have an outcome."""
    from rich.console import Console
    from rich.table import Table

    from foretell.sources.datasets.pull import pulled_rounds

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


def _cache(source: str, dest: Path | None) -> "Cache":
    from foretell.sources.datasets.cache import Cache, cache_home

    return Cache(dest or cache_home() / source)


def _cells(cache: "Cache", day: str) -> tuple[str, str, str, str]:
    from foretell.questions.problems import InputError
    from foretell.sources.datasets.pull import read_pulled

    try:
        found = read_pulled(cache, day)
    except InputError as error:
        return "", "", "", f"{error.problem}: {error.hint}"
    targets = sum(len(question.targets) for question in found.questions)
    return str(len(found.questions)), str(targets), str(len(found.outcomes())), "intact"


@contextmanager
def _watching() -> "Generator[Callable[[str], Progress]]":
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


def _line(one: "Pulled") -> str:
    size = f", {one.bytes / 1e6:.1f} MB" if one.bytes else ""
    revised = f", {one.revised} outcomes revised" if one.revised else ""
    return f"{one.name}: {one.state}{size}{revised}"
