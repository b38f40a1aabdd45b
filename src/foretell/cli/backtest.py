"""foretell backtest: forecasters over a question set, each question seen as of its own date."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.cli.options import FILE_PATH

if TYPE_CHECKING:
    from foretell.runs.backtest import BacktestProgress


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
    from foretell.forecasters.forecaster import build_forecaster
    from foretell.runs.backtest import backtest as run
    from foretell.runs.question_sets import open_benchmark
    from foretell.scoring.long_tables import write_backtest

    benchmark = open_benchmark(dataset, rounds=rounds, folder=folder)
    forecasters = [build_forecaster(spec) for spec in specs or ("auto",)]
    series = benchmark.series
    if series_path is not None:
        from foretell.data.series.local import CsvSeries

        series = CsvSeries(path=series_path)
    with progress_bar("forecasting") as progress:
        result = run(forecasters, benchmark.questions.questions, series=series, past=benchmark.past, progress=progress)
    for path in write_backtest(result, benchmark.questions.resolutions, out).values():
        click.echo(f"Wrote {path}")
    if result.failures:
        first = result.failures[0]
        click.echo(
            f"{len(result.failures)} of {len(result.answers)} answers failed, e.g. {first.forecaster}: {first.error}"
        )


@contextmanager
def progress_bar(what: str) -> "Generator[BacktestProgress]":
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


# foretell demo: the first minute.

FORECASTERS = ("auto", "knn", "linear", "hybrid", "prior", "always")


@click.command()
@click.option("--html", "html_path", type=FILE_PATH, help="Also write the leaderboard as one HTML file.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Also keep the tables in this folder.")
def demo(html_path: Path | None, out: Path | None) -> None:
    """A first real job: forecast 400+ questions about real time series as of their dates, and score every answer.

    Needs no key and no network. The series (El Niño sea temperature, CO₂, the US economy, sunspots, …) ship with
    statsmodels; the questions have the form of ForecastBench's: will the value be higher on a later day?
    """
    from foretell.cli.options import show_board, write_leaderboard
    from foretell.forecasters.forecaster import build_forecaster
    from foretell.runs.backtest import backtest
    from foretell.runs.question_sets import demo_benchmark
    from foretell.scoring.join import read_table
    from foretell.scoring.long_tables import forecast_rows, outcome_rows, write_backtest
    from foretell.scoring.score import ScoringOptions, score_table

    benchmark = demo_benchmark()
    questions = benchmark.questions
    targets = sum(len(q.targets) for q in questions.questions)
    count = len({q.id for q in questions.questions})
    click.echo(f"{len(questions.questions)} questions with {targets} targets from {count} real series")
    forecasters = [build_forecaster(name) for name in FORECASTERS]
    with progress_bar("forecasting") as progress:
        series, past = benchmark.series, benchmark.past
        result = backtest(forecasters, questions.questions, series=series, past=past, progress=progress)
    table = read_table(
        forecast_rows(result.forecasts, result.questions), outcome_rows(result.questions, questions.resolutions)
    )
    board = score_table(table, ScoringOptions(by=("source",)))
    if out is not None:
        write_backtest(result, questions.resolutions, out)
    if html_path is not None:
        write_leaderboard(board, table, html_path, title="Model-free forecasters on real series")
    show_board(board)
