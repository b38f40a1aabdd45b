"""Where a forecaster loses: by group, by round, by question and by what it said (Analytica D.6, BLF H)."""

from dataclasses import dataclass

import numpy as np

from foretell.arena.report.breakdown import (
    BRIER_INDEX,
    Breakdown,
    Method,
    breakdown,
    columns_to_group,
    differences,
    overall,
)
from foretell.arena.report.error_analysis.representativeness import Share, answered, representativeness
from foretell.arena.table import Table, Targets
from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.evaluate.intervals import Interval
from foretell.evaluate.reliability import reliability_bins

TITLES = ("title", "question_text", "text")
SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Case:
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
class BinGap:
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
    method: Method
    overall: Interval | None
    in_sample: Interval | None
    """The score within the sample, where one was given."""
    breakdowns: tuple[Breakdown, ...]
    """By every readable column."""
    differences: tuple[Breakdown, ...]
    """The same for forecaster minus reference on shared targets; empty without a reference."""
    shares: tuple[Share, ...]
    """The sample (by default: what the forecaster answered) against all targets."""
    p: Floats
    """Per target, NaN where not answered."""
    targets: Targets
    easiest: tuple[Case, ...]
    hardest: tuple[Case, ...]
    worst_bins: tuple[BinGap, ...]
    """Bins of the reliability diagram, the largest part of the calibration error first."""

    @property
    def brier(self) -> Floats:
        """Brier score of every target, NaN where not answered."""
        return (self.p - self.targets.outcome) ** 2


def error_analysis(
    table: Table,
    forecaster: str,
    reference: str | None = None,
    *,
    method: Method = BRIER_INDEX,
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
    order = _by_brier((p - table.targets.outcome) ** 2)
    return ErrorAnalysis(
        forecaster=forecaster,
        reference=reference,
        method=method,
        overall=overall(table, forecaster, method),
        in_sample=None if sample is None else overall(_restricted(table, sample), forecaster, method),
        breakdowns=tuple(breakdown(table, column, [forecaster], method) for column in columns),
        differences=()
        if reference is None
        else tuple(differences(table, column, forecaster, reference, method) for column in columns),
        shares=representativeness(table, answered(table, forecaster) if sample is None else sample),
        p=p,
        targets=table.targets,
        easiest=_cases(table, forecaster, order[:SHOWN]),
        hardest=_cases(table, forecaster, order[::-1][:SHOWN]),
        worst_bins=_worst_bins(table, forecaster),
    )


def _by_brier(brier: Floats) -> Ints:
    """Answered targets from best to worst; equal ones in the order of the table."""
    kept = np.flatnonzero(np.isfinite(brier))
    return kept[np.argsort(brier[kept], kind="stable")].astype(np.int64)


def _restricted(table: Table, sample: Bools) -> Table:
    """The table without forecasts outside the sample."""
    rows = sample[table.target]
    return Table(
        targets=table.targets,
        forecasters=table.forecasters,
        forecaster=table.forecaster[rows],
        target=table.target[rows],
        p=table.p[rows],
    )


def _cases(table: Table, forecaster: str, rows: Ints) -> tuple[Case, ...]:
    targets, p = table.targets, table.p_of(forecaster)
    total = np.bincount(table.target, (table.p - targets.outcome[table.target]) ** 2, minlength=len(targets))
    count = np.bincount(table.target, minlength=len(targets))
    titles = next((targets.groups[c] for c in TITLES if c in targets.groups), None)
    return tuple(
        Case(
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


def _worst_bins(table: Table, forecaster: str) -> tuple[BinGap, ...]:
    p, targets = table.p_of(forecaster), table.targets
    kept = np.isfinite(p) & (targets.weight > 0)
    if not kept.any():
        return ()
    bins = reliability_bins(p[kept], targets.outcome[kept], targets.weight[kept])
    part = bins.weight * np.abs(bins.frequency - bins.mean_p)
    part = part / part.sum() if part.sum() > 0 else part
    return tuple(
        BinGap(
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
