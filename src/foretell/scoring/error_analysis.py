"""Where a forecaster loses: by group, by round, by question and by what it said (Analytica D.6, BLF H)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval
from foretell.metrics.calibration import reliability_bins
from foretell.scoring.breakdown import (
    BRIER_INDEX,
    Breakdown,
    breakdown,
    columns_to_group,
    differences,
    group_labels,
    overall,
)
from foretell.scoring.score import ScoringOptions
from foretell.scoring.table import ForecastTable, Targets

# Does a sample look like the whole? Shares of each group in both, and how far apart they are.

NOTABLE_DIFFERENCE = 0.1
"""Standardised differences above this are commonly called an imbalance (Austin 2009)."""


@dataclass(frozen=True, kw_only=True)
class GroupShare:
    """One group of one column, in the sample and in the whole."""

    column: str
    group: str
    in_sample: float
    in_whole: float
    difference: float
    """(s − w) / √((s(1−s) + w(1−w)) / 2): the gap in units of its own spread (Austin 2009)."""


def standardised_difference(sample: float, whole: float) -> float:
    """The gap of two shares over their pooled spread; 0 where both are the same certainty.

    >>> round(standardised_difference(0.6, 0.5), 3), standardised_difference(1.0, 1.0)
    (0.202, 0.0)
    """
    spread = math.sqrt((sample * (1 - sample) + whole * (1 - whole)) / 2)
    if spread == 0:
        return 0.0 if sample == whole else math.copysign(math.inf, sample - whole)
    return (sample - whole) / spread


def representativeness(table: ForecastTable, sample: Bools) -> tuple[GroupShare, ...]:
    """Share of every group of every readable column among the sampled targets and among all of them."""
    if not sample.any():
        return ()
    found: list[GroupShare] = []
    for column in columns_to_group(table):
        by = group_labels(column, table.targets.groups[column])
        inside, whole = (
            np.bincount(codes, minlength=len(by.names)) / len(codes) for codes in (by.codes[sample], by.codes)
        )
        found += [
            GroupShare(
                column=column,
                group=name,
                in_sample=float(inside[i]),
                in_whole=float(whole[i]),
                difference=standardised_difference(float(inside[i]), float(whole[i])),
            )
            for i, name in enumerate(by.names)
        ]
    return tuple(found)


TITLE_COLUMNS = ("title", "question_text", "text")
WORST_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class WorstForecast:
    """One target as the forecaster saw it and as it came out."""

    question: str
    target: str
    title: str
    """The question's text where the table has one, else empty."""
    p: float
    outcome: int
    brier: float
    field: float
    """Mean Brier score of all forecasters on this target: was it hard for everyone?"""
    price: float


@dataclass(frozen=True, kw_only=True)
class CalibrationGap:
    """A range of forecasts and how far it was off."""

    low: float
    high: float
    mean_p: float
    frequency: float
    frequency_low: float
    frequency_high: float
    count: int
    share_of_error: float
    """Part of the calibration error that comes from this bin."""


@dataclass(frozen=True, kw_only=True)
class ErrorAnalysis:
    """Everything the error pages and tables of one forecaster show."""

    forecaster: str
    reference: str | None
    scoring: ScoringOptions
    overall: Interval | None
    in_sample: Interval | None
    """The score within the sample, where one was given."""
    breakdowns: tuple[Breakdown, ...]
    """By every readable column."""
    differences: tuple[Breakdown, ...]
    """The same for forecaster minus reference on shared targets; empty without a reference."""
    shares: tuple[GroupShare, ...]
    """The sample (by default: what the forecaster answered) against all targets."""
    p: Floats
    """Per target, NaN where not answered."""
    targets: Targets
    easiest: tuple[WorstForecast, ...]
    hardest: tuple[WorstForecast, ...]
    worst_bins: tuple[CalibrationGap, ...]
    """Bins of the reliability diagram, the largest part of the calibration error first."""

    @property
    def brier(self) -> Floats:
        """Brier score of every target, NaN where not answered."""
        return (self.p - self.targets.outcome) ** 2


def error_analysis(
    table: ForecastTable,
    forecaster: str,
    reference: str | None = None,
    *,
    scoring: ScoringOptions = BRIER_INDEX,
    sample: Bools | None = None,
) -> ErrorAnalysis:
    """Take one forecaster's errors apart, beside a reference where one is named.

    `sample` marks the targets of a sub-sample (a tranche, a pilot) to be held against the whole; without it the
    targets the forecaster answered are.
    """
    for name in filter(None, (forecaster, reference)):
        table.require(name)
    columns = columns_to_group(table)
    p = table.p_of(forecaster)
    brier = (p - table.targets.outcome) ** 2
    order = np.argsort(brier, kind="stable")[: int(np.isfinite(p).sum())]  # What was not answered sorts last.
    return ErrorAnalysis(
        forecaster=forecaster,
        reference=reference,
        scoring=scoring,
        overall=overall(table, forecaster, scoring),
        in_sample=None if sample is None else overall(_restricted(table, sample), forecaster, scoring),
        breakdowns=tuple(breakdown(table, column, [forecaster], scoring) for column in columns),
        differences=()
        if reference is None
        else tuple(differences(table, column, forecaster, reference, scoring) for column in columns),
        shares=representativeness(table, np.isfinite(p) if sample is None else sample),
        p=p,
        targets=table.targets,
        easiest=_cases(table, forecaster, order[:WORST_SHOWN]),
        hardest=_cases(table, forecaster, order[::-1][:WORST_SHOWN]),
        worst_bins=_worst_bins(table, forecaster),
    )


def _restricted(table: ForecastTable, sample: Bools) -> ForecastTable:
    """The table without forecasts outside the sample."""
    rows = sample[table.target]
    return replace(table, forecaster=table.forecaster[rows], target=table.target[rows], p=table.p[rows])


def _cases(table: ForecastTable, forecaster: str, rows: Ints) -> tuple[WorstForecast, ...]:
    targets, p = table.targets, table.p_of(forecaster)
    total = np.bincount(table.target, (table.p - targets.outcome[table.target]) ** 2, minlength=len(targets))
    count = np.bincount(table.target, minlength=len(targets))
    titles = next((targets.groups[c] for c in TITLE_COLUMNS if c in targets.groups), None)
    return tuple(
        WorstForecast(
            question=targets.question.names[targets.question.codes[i]],
            target=targets.target.names[targets.target.codes[i]],
            title="" if titles is None else titles.names[titles.codes[i]],
            p=float(p[i]),
            outcome=int(targets.outcome[i]),
            brier=float((p[i] - targets.outcome[i]) ** 2),
            field=float(total[i] / count[i]),
            price=float(targets.price[i]),
        )
        for i in rows.tolist()
    )


def _worst_bins(table: ForecastTable, forecaster: str) -> tuple[CalibrationGap, ...]:
    p, targets = table.p_of(forecaster), table.targets
    kept = np.isfinite(p) & (targets.weight > 0)
    if not kept.any():
        return ()
    bins = reliability_bins(p[kept], targets.outcome[kept], targets.weight[kept])
    part = bins.weight * np.abs(bins.frequency - bins.mean_p)
    part = part / part.sum() if part.sum() > 0 else part
    return tuple(
        CalibrationGap(
            low=float(bins.low[i]),
            high=float(bins.high[i]),
            mean_p=float(bins.mean_p[i]),
            frequency=float(bins.frequency[i]),
            frequency_low=float(bins.frequency_low[i]),
            frequency_high=float(bins.frequency_high[i]),
            count=int(bins.count[i]),
            share_of_error=float(part[i]),
        )
        for i in np.argsort(-part, kind="stable")
    )
