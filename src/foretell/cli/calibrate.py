"""foretell calibrate: learn from resolved forecasts how to combine and correct the next ones."""

from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result, progress_bar
from foretell.cli.request_options import request_options
from foretell.operations.requests import (
    CalibrateApplyRequest,
    CalibrateFitRequest,
    CalibrateReportRequest,
    EnsembleRequest,
)

if TYPE_CHECKING:
    from foretell.operations.result import Result


@click.group()
def calibrate() -> None:
    """Learn from resolved forecasts how to combine and correct the next ones.

    What is learnt is a file of numbers that knows what it learnt from and refuses to judge it.
    """


@calibrate.command()
@request_options(CalibrateFitRequest)
@prints_result(".json")
def fit(request: CalibrateFitRequest) -> "Result":
    """Fit a rule on forecasts whose outcomes are known.

    The outcomes need the columns due (when it was asked) and resolved_on (when the answer became known):

      foretell calibrate fit -f f.csv -o o.csv --method hierarchical --out rule.json
    """
    from foretell.operations.calibrate import fit

    return fit(request)


@calibrate.command()
@request_options(CalibrateApplyRequest)
@prints_result(".json", ".csv", ".jsonl", ".parquet")
def apply(request: CalibrateApplyRequest) -> "Result":
    """Apply the rule in FITTED to new forecasts.

    It refuses what it was fitted on, and questions asked before the last outcome it learnt from was known. Without
    --outcomes the columns it needs (due, and source, kind, price, prior, horizon where it uses them) are those of the
    forecasts.

      foretell calibrate apply rule.json -f new.csv -o questions.csv --out calibrated.csv
    """
    from foretell.operations.calibrate import apply

    return apply(request)


@calibrate.command()
@request_options(EnsembleRequest)
@prints_result(".json", ".csv")
def ensemble(request: EnsembleRequest) -> "Result":
    """Choose weights for several forecasters whose mean would have been good.

    How far to go is judged on later rounds than the weights came from; where that shows no gain beyond noise, everybody
    counts the same. The file is applied like any other rule:

      foretell calibrate ensemble -f past.csv -o outcomes.csv --out rule.json

      foretell calibrate apply rule.json -f new.csv -o questions.csv --out combined.csv
    """
    from foretell.operations.calibrate import fit_ensemble

    return fit_ensemble(request)


@calibrate.command()
@request_options(CalibrateReportRequest)
@prints_result(".json", ".html", ".md")
def report(request: CalibrateReportRequest) -> "Result":
    """Show what every method would have brought: in-sample, by other questions, and by the past alone.

    Only the last is what you would have had. Each number is compared with the plain logit mean of the trials, on the
    same resamples of whole questions; crowd, base rate and 0.5 stand beside it.
    """
    from foretell.operations.calibrate import report

    with progress_bar("fitting") as progress:
        return report(request, progress)
