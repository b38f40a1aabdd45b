"""How the BLF paper came to its cross-model table, from the trials: for reproducing it, not for numbers to publish.

What its published forecasts show, beside what it says: where a question has several dates, the forecast that was
calibrated is the first trial that answered, not the mean; shrinkage was tuned on the questions it is scored on, and
drew data-set questions to one past rate per source; the calibration left out single events, so that other dates of the
same question stayed in the training set.
"""

from dataclasses import replace

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.chain import Chain
from foretell.forecasters.combine.crossfit import leave_last_out, leave_one_out
from foretell.forecasters.combine.platt import HierarchicalPlatt
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.shrink import Shrink

SOURCE_RATES = {
    ("acled", "2025-10-26"): 0.2109375,
    ("acled", "2025-11-09"): 0.21747968,
    ("fred", "2025-10-26"): 0.40826873,
    ("fred", "2025-11-09"): 0.38743455,
    ("wikipedia", "2025-10-26"): 0.0,
    ("wikipedia", "2025-11-09"): 0.0,
    ("yfinance", "2025-10-26"): 0.75987654,
    ("yfinance", "2025-11-09"): 0.73073702,
}
"""What the paper shrinks data-set questions toward, by source and due date; the rounds behind them are not public."""
NOT_SHRUNK = ("pro-high-brave-c1-p1-t1",)


def first_answers(examples: Examples) -> Examples:
    """What the paper calibrated: the first answer on data-set questions, the logit mean on markets."""
    rows = examples.rows
    first = np.take_along_axis(rows.trials, np.argmax(~np.isnan(rows.trials), axis=0)[None], axis=0)[0]
    return replace(examples, rows=rows.with_trials(np.where(rows.kind == "dataset", first, rows.raw)))


def calibrated(examples: Examples) -> Floats:
    """Hierarchical Platt scaling of those answers, single events left out."""
    return leave_one_out(HierarchicalPlatt(), first_answers(examples), by="event")


def shrunk(examples: Examples) -> Floats:
    """In-sample shrinkage to price and source rates, then hierarchical Platt scaling, single events left out."""
    rows = examples.rows
    days = np.datetime_as_string(rows.due, "D").tolist()
    rates = [SOURCE_RATES.get(key, np.nan) for key in zip(rows.source.tolist(), days, strict=True)]
    # Where the paper's rates are unknown, whatever prior the examples carry stands in.
    known = any(key in SOURCE_RATES for key in zip(rows.source.tolist(), days, strict=True))
    prior = np.array(rates, np.float64) if known else rows.prior
    asked = replace(examples, rows=replace(rows, prior=prior))
    return leave_last_out(Chain(methods=(Shrink(), HierarchicalPlatt())), asked)


def blf(config: str, examples: Examples) -> Floats:
    """The paper's full stack for a configuration; its headline one was not shrunk."""
    return calibrated(examples) if config in NOT_SHRUNK else shrunk(examples)
