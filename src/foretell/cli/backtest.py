"""foretell backtest and demo: forecasters that need no model, over questions as of their dates."""

from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result, progress_bar
from foretell.cli.request_options import request_options
from foretell.operations.requests import BacktestRequest, DemoRequest

if TYPE_CHECKING:
    from foretell.operations.result import Result

__all__ = ["backtest", "demo", "progress_bar"]


@click.command()
@request_options(BacktestRequest)
@prints_result(".json", ".csv", ".parquet")
def backtest(request: BacktestRequest) -> "Result":
    """Run forecasters over DATASET (demo, forecastbench, a file of questions, a folder of tables) as of their dates.

    Writes forecasts.csv, outcomes.csv and failures.csv, the tables that `foretell score` reads:

      foretell backtest demo -F auto -F knn -F prior --tables run

      foretell score -f run/forecasts.csv -o run/outcomes.csv
    """
    from foretell.operations.backtest import backtest

    with progress_bar("forecasting") as progress:
        return backtest(request, progress)


@click.command()
@request_options(DemoRequest)
@prints_result(".json", ".csv", ".parquet", ".html", ".md")
def demo(request: DemoRequest) -> "Result":
    """A first real job: forecast 400+ questions about real time series as of their dates, and score every answer.

    Needs no key and no network. The series (El Niño sea temperature, CO₂, the US economy, sunspots, …) ship with
    statsmodels; the questions have the form of ForecastBench's: will the value be higher on a later day?
    """
    from foretell.operations.backtest import demo

    with progress_bar("forecasting") as progress:
        return demo(request, progress)
