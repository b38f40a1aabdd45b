"""Rules by name, and the protocols under which they are judged: from the honest one to what nobody should publish."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from foretell import plugins
from foretell.forecasters.combine.calibration import HierarchicalPlatt
from foretell.forecasters.combine.crossfit import groups_by, leave_last_out, leave_one_out, raw, rolling
from foretell.forecasters.combine.default import UNTAUGHT, DefaultMethod
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.rules import ChainedMethod, CombinationMethod, SupportsLeaveOut, apply, left_out
from foretell.forecasters.combine.shrink import Shrink
from foretell.metrics.arrays import Floats
from foretell.scoring.table import ALWAYS_HALF, BASE_RATE, CROWD, Labels, Targets, base_rate

# How the BLF paper came to its cross-model table, from the trials: for reproducing it, not for numbers to publish.
#
# What its published forecasts show, beside what it says: where a question has several dates, the forecast that was
# calibrated is the first trial that answered, not the mean; shrinkage was tuned on the questions it is scored on, and
# drew data-set questions to one past rate per source; the calibration left out single events, so that other dates of
# the same question stayed in the training set.

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


def paper_calibrated(examples: Examples) -> Floats:
    """Hierarchical Platt scaling of those answers, single events left out."""
    return leave_one_out(HierarchicalPlatt(), first_answers(examples), by="event")


def paper_shrunk(examples: Examples) -> Floats:
    """In-sample shrinkage to price and source rates, then hierarchical Platt scaling, single events left out."""
    rows = examples.rows
    asked_on = zip(rows.source.tolist(), np.datetime_as_string(rows.due, "D").tolist(), strict=True)
    rates = np.array([SOURCE_RATES.get(key, np.nan) for key in asked_on])
    # Where the paper's rates are unknown, whatever prior the examples carry stands in.
    prior = rates if np.isfinite(rates).any() else rows.prior
    asked = replace(examples, rows=replace(rows, prior=prior))
    return leave_last_out(ChainedMethod(methods=(Shrink(), HierarchicalPlatt())), asked)


def paper_forecasts(config: str, examples: Examples) -> Floats:
    """The paper's full stack for a configuration; its headline one was not shrunk."""
    return paper_calibrated(examples) if config in NOT_SHRUNK else paper_shrunk(examples)


METHODS = tuple(plugins.names("combiners"))
"""Names of the methods that learn from the past how to combine and correct trials."""
Protocol = Literal["past only", "question out", "event out", "in-sample"]
PROTOCOLS: Mapping[Protocol, str] = {
    "past only": "each round by a rule fitted on what was asked and known before it: what a user would have had",
    "question out": "each question by a rule fitted on all other questions, later ones among them",
    "event out": "each target by a rule fitted on all others, its question's other dates among them (BLF 2026)",
    "in-sample": "fitted on the very targets it is scored on: flattered, shown for contrast only",
}
"""From the most honest on: a narrow terminal drops columns at the end."""
MODEL_FREE = "crowd, else base rate"
FOLDS, REFITS = 10, 24
"""Parts in which slow methods leave questions out, and how often a rule is fitted again on the way through time."""
BASELINES = (CROWD, BASE_RATE, MODEL_FREE, ALWAYS_HALF)


def build_method(name: str) -> CombinationMethod:
    """The method of that name.

    >>> build_method("hierarchical").name
    'platt by source'
    """
    return plugins.load("combiners", name)()


@dataclass(frozen=True, kw_only=True)
class ProtocolForecasts:
    """What a rule says of every target under a protocol."""

    p: Floats
    past: Floats
    """How many examples the rule for each target had learnt from."""


def fit_under_protocol(method: CombinationMethod, examples: Examples, protocol: Protocol) -> ProtocolForecasts:
    """The rule's probabilities under the protocol; NaN where no trial answered.

    Methods that know no shortcut leave questions out in at most `FOLDS` parts: no question is ever judged by a rule
    that saw it, but the rule saw a few others less.
    """
    if protocol == "in-sample":
        p = method.fit(examples).probabilities(examples.rows)
        return ProtocolForecasts(p=p, past=np.full(len(examples), float(len(examples))))
    if protocol == "past only":
        return _past_only(method, examples)
    return _left_out(method, examples, "event" if protocol == "event out" else "question")


def _past_only(method: CombinationMethod, examples: Examples) -> ProtocolForecasts:
    """Round after round; where there are many, a rule serves several rounds before it is fitted again."""
    # Before there is a past the logit mean speaks; only the default has a rule of its own for that.
    untaught = UNTAUGHT.probabilities if isinstance(method, DefaultMethod) else raw
    days = np.unique(examples.rows.due)
    if len(days) <= REFITS:
        found = rolling(method, examples, fallback=untaught)
        return ProtocolForecasts(p=found.p, past=found.past.astype(np.float64))
    p, past = np.full(len(examples), np.nan), np.zeros(len(examples))
    for stretch in np.array_split(days, REFITS):
        now = np.isin(examples.rows.due, stretch)
        known = examples.take((examples.known_on < stretch[0]) & (examples.rows.due < stretch[0]))
        rows = examples.rows.take(now)
        p[now], past[now] = apply(method.fit(known), rows) if len(known) else untaught(rows), len(known)
    return ProtocolForecasts(p=p, past=past)


def _left_out(method: CombinationMethod, examples: Examples, by: str) -> ProtocolForecasts:
    groups = groups_by(examples, by)
    if not isinstance(method, SupportsLeaveOut):
        groups = np.random.default_rng(0).permutation(int(groups.max(initial=0)) + 1)[groups] % FOLDS
    past = len(examples) - np.bincount(groups)[groups].astype(np.float64)
    return ProtocolForecasts(p=left_out(method, examples, groups), past=past)


def baseline_forecasts(examples: Examples) -> dict[str, Floats]:
    """What needs no forecaster: the crowd's price, past-only base rates, both together, and 0.5."""
    rows, nothing = examples.rows, np.full(len(examples), np.nan)
    days = {"due": rows.due, "resolved_on": examples.known_on}
    targets = Targets(
        outcome=examples.outcome,
        weight=examples.weight,
        question=_labels(rows.question),
        target=_labels(rows.target),
        price=rows.price,
        yes_ask=nothing,
        no_ask=nothing,
        groups={
            "source": _labels(rows.source),
            **{name: _labels(np.datetime_as_string(day, "D")) for name, day in days.items()},
        },
    )
    rate = np.where(np.isnan(rows.prior), base_rate(targets), rows.prior)
    columns = {CROWD: rows.price, BASE_RATE: rate}
    priced = np.isfinite(rows.price)
    if priced.any() and not priced.all():
        columns[MODEL_FREE] = np.where(priced, rows.price, rate)
    columns[ALWAYS_HALF] = np.full(len(rows), 0.5)
    return {name: p for name, p in columns.items() if np.isfinite(p).any()}


def _labels(column: "np.ndarray") -> Labels:
    names, codes = np.unique(column.astype(str), return_inverse=True)
    return Labels(codes=codes.astype(np.int64), names=tuple(names.tolist()))
