"""foretell demo: the first minute."""

from pathlib import Path

import click

from foretell.app.commands.options import FILE

FORECASTERS = ("auto", "knn", "linear", "hybrid", "prior", "always")


@click.command()
@click.option("--html", "html_path", type=FILE, help="Also write the leaderboard as one HTML file.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Also keep the tables in this folder.")
def demo(html_path: Path | None, out: Path | None) -> None:
    """A first real job: forecast 400+ questions about real time series as of their dates, and score every answer.

    Needs no key and no network. The series (El Niño sea temperature, CO₂, the US economy, sunspots, …) ship with
    statsmodels; the questions have the form of ForecastBench's: will the value be higher on a later day?
    """
    from foretell.app.catalog import build_forecaster
    from foretell.app.commands.backtest import progress_bar
    from foretell.app.commands.output import show_board, write_leaderboard
    from foretell.app.datasets import demo_benchmark
    from foretell.arena.backtest import backtest
    from foretell.arena.joining import read_table
    from foretell.arena.long_tables import forecast_rows, outcome_rows, write_backtest
    from foretell.arena.scoring import Scoring, score_table

    benchmark = demo_benchmark()
    questions = benchmark.questions
    targets = sum(len(q.targets) for q in questions.questions)
    series = len({q.id for q in questions.questions})
    click.echo(f"{len(questions.questions)} questions with {targets} targets from {series} real series")
    forecasters = [build_forecaster(name, benchmark.resources) for name in FORECASTERS]
    with progress_bar("forecasting") as progress:
        result = backtest(questions.questions, forecasters, series=benchmark.series, progress=progress)
    table = read_table(
        forecast_rows(result.forecasts, result.questions), outcome_rows(result.questions, questions.resolutions)
    )
    board = score_table(table, Scoring(by=("source",)))
    if out is not None:
        write_backtest(result, questions.resolutions, out)
    if html_path is not None:
        write_leaderboard(board, table, html_path, title="Model-free forecasters on real series")
    show_board(board)
