"""Does a sample look like the whole? Shares of each group in both, and how far apart they are."""

import math
from dataclasses import dataclass

import numpy as np

from foretell.arena.report.breakdown import columns_to_group
from foretell.arena.report.grouping import grouping, shares
from foretell.arena.table import Table
from foretell.evaluate.arrays import Bools

NOTABLE = 0.1
"""Standardised differences above this are commonly called an imbalance (Austin 2009)."""


@dataclass(frozen=True, kw_only=True)
class Share:
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


def representativeness(table: Table, sample: Bools) -> tuple[Share, ...]:
    """Share of every group of every readable column among the sampled targets and among all of them."""
    if not sample.any():
        return ()
    found: list[Share] = []
    for column in columns_to_group(table):
        by = grouping(column, table.targets.groups[column])
        inside, whole = shares(by.codes[sample], len(by.names)), shares(by.codes, len(by.names))
        found += [
            Share(
                column=column,
                group=name,
                in_sample=float(inside[i]),
                in_whole=float(whole[i]),
                difference=standardised_difference(float(inside[i]), float(whole[i])),
            )
            for i, name in enumerate(by.names)
        ]
    return tuple(found)


def answered(table: Table, forecaster: str) -> Bools:
    """Targets the forecaster gave a probability for."""
    return np.isfinite(table.p_of(forecaster))
