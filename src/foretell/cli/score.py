"""foretell score, compare, errors, plan: tables of forecasts and outcomes."""

from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result
from foretell.cli.request_options import request_options
from foretell.operations.requests import CompareRequest, ErrorsRequest, PlanRequest, ScoreRequest

if TYPE_CHECKING:
    from foretell.operations.result import Result


@click.command()
@request_options(ScoreRequest)
@prints_result(".json", ".csv", ".parquet", ".html", ".md")
def score(request: ScoreRequest) -> "Result":
    """Score a table of forecasts against a table of outcomes.

    Tables are CSV, Parquet or JSONL; their columns are described in docs/formats.md. Every number comes with an
    interval from a bootstrap that resamples whole clusters, and with the share of targets that were answered. Columns
    to group by are those of the outcomes, and `difficulty`: how hard a question was for everybody.

    A table of quantiles (forecaster, question, level, value) against outcomes with a column value is scored by CRPS.

      foretell score -f forecasts.csv -o outcomes.csv --by source,horizon --out board.html
    """
    from foretell.operations.score import score

    return score(request)


@click.command()
@request_options(CompareRequest)
@prints_result(".json", ".csv", ".parquet")
def compare(request: CompareRequest) -> "Result":
    """Is one FORECASTER better than another, and by more than noise?

    Both are scored on the targets both answered; the difference is recomputed on resamples of whole clusters. Name
    more than two, and each is compared with the last, with p-values corrected for the number of comparisons.
    """
    from foretell.operations.score import compare

    return compare(request)


@click.command()
@request_options(ErrorsRequest)
@prints_result(".json", ".csv", ".parquet", ".html")
def errors(request: ErrorsRequest) -> "Result":
    """Where FORECASTER wins and loses: its worst misses, and its score by source, horizon and every other column."""
    from foretell.operations.score import errors

    return errors(request)


@click.command()
@request_options(PlanRequest)
@prints_result(".json")
def plan(request: PlanRequest) -> "Result":
    """How many questions it takes to see a gain of a given size.

    Name two forecasters of a past comparison as the pilot, or give the standard deviation yourself:

      foretell plan mine base --gain 1 -f forecasts.csv -o outcomes.csv

      foretell plan --gain 1 --sd 0.12
    """
    from foretell.operations.score import plan

    return plan(request)
