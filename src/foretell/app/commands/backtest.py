"""foretell backtest: forecasters over a question set, each question seen as of its own date."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from foretell.arena.backtest import Progress


@click.command()
@click.argument("dataset")
@click.option("--forecaster", "-F", "specs", multiple=True, help="Name, or name:option=value,…; may be repeated.")
@click.option("--round", "rounds", multiple=True, metavar="DATE", help="Only these rounds of forecastbench.")
@click.option("--data", "folder", type=click.Path(path_type=Path, file_okay=False), help="Where pulled rounds are.")
@click.option("--series", "series_path", type=click.Path(path_type=Path), help="CSV file or folder of time series.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("backtest"), show_default=True)
def backtest(
    dataset: str,
    specs: tuple[str, ...],
    rounds: tuple[str, ...],
    folder: Path | None,
    series_path: Path | None,
    out: Path,
) -> None:
    """Run forecasters over DATASET (demo, forecastbench, a file of questions, a folder of tables) as of their dates.

    Writes forecasts.csv, outcomes.csv and failures.csv, the tables that `foretell score` reads:

      foretell backtest demo -F auto -F knn -F prior --out run

      foretell score -f run/forecasts.csv -o run/outcomes.csv
    """
    from foretell.app.catalog import build_forecaster
    from foretell.app.datasets import open_benchmark
    from foretell.arena.backtest import backtest as run
    from foretell.arena.long_tables import write_backtest

    benchmark = open_benchmark(dataset, rounds=rounds, folder=folder)
    forecasters = [build_forecaster(spec, benchmark.resources) for spec in specs or ("auto",)]
    series = benchmark.series
    if series_path is not None:
        from foretell.sources.series_from.csv import CsvSeries

        series = CsvSeries(path=series_path)
    with progress_bar("forecasting") as progress:
        result = run(benchmark.questions.questions, forecasters, series=series, progress=progress)
    for path in write_backtest(result, benchmark.questions.resolutions, out).values():
        click.echo(f"Wrote {path}")
    if result.failures:
        first = result.failures[0]
        click.echo(
            f"{len(result.failures)} of {len(result.answers)} answers failed, e.g. {first.forecaster}: {first.error}"
        )


@contextmanager
def progress_bar(what: str) -> "Generator[Progress]":
    """A bar with the time left on the error stream, shown only to a person at a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance
