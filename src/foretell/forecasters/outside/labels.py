"""What past questions teach, free of the bias that early answers are mostly yes.

A yes is known on the day it happens, a no only at the deadline. Whoever counts the questions known so far counts too
many yeses. So an outcome counts only once its deadline is over. Until then the crowd's price speaks for the question,
corrected by what past prices were worth; without a price, the question counts as "did it come true up to now?", with
the time elapsed as its horizon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from foretell.evaluate.arrays import Bools, Floats
from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.forecasters.outside.past import PastQuestions
from foretell.forecasters.outside.seen import Seen

EDGE = 0.005
PRIOR_SD = (0.3, 0.2)
"""How far prices are believed to be off beforehand: standard deviations of the shift and of the slope."""


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What a price is worth: σ(shift + slope · logit price)."""

    shift: float = 0.0
    slope: float = 1.0

    def of(self, price: Floats) -> Floats:
        """The corrected prices."""
        return sigmoid(self.shift + self.slope * logit(price, EDGE))


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """One row per past question that teaches something."""

    row: Bools
    """Which of the past questions these are."""
    seen: list[Seen]
    target: Floats
    weight: Floats


def worth_of_prices(price: Floats, outcome: Floats, weight: Floats) -> Worth:
    """Shift and slope of outcomes on prices, with a normal prior around taking prices as they are.

    >>> worth_of_prices(np.full(200, 0.3), (np.arange(200) % 10 < 2) * 1.0, np.ones(200)).of(np.array([0.3])).round(2)
    array([0.22])
    """
    columns = np.column_stack([np.ones(len(price)), logit(price, EDGE)])
    start = np.array([0.0, 1.0])
    precision = np.diag(1 / np.square(PRIOR_SD))
    beta = start
    for _ in range(50):
        p = sigmoid(columns @ beta)
        slope = columns.T @ (weight * (outcome - p)) - precision @ (beta - start)
        step = np.linalg.solve((columns * (weight * p * (1 - p))[:, None]).T @ columns + precision, slope)
        beta = beta + step
        if np.abs(step).max() < 1e-9:
            break
    return Worth(shift=float(beta[0]), slope=float(beta[1]))


def lessons(past: PastQuestions, rows: Sequence[Seen], share: Floats, day: date) -> tuple[Lessons, Worth]:
    """What is to be learnt on `day` from questions known by then (see `PastQuestions.before`); `share` weighs them."""
    age = (np.datetime64(day, "D") - past.due).astype(np.int64).astype(np.float64)
    days = np.array([np.nan if s.days is None else s.days for s in rows])
    known, priced = ~np.isnan(past.outcome), ~np.isnan(past.price)
    over = known & (days < age)
    both = over & priced
    worth = worth_of_prices(past.price[both], past.outcome[both], share[both]) if both.any() else Worth()
    price = worth.of(np.where(priced, past.price, 0.5))
    outcome = np.where(known, past.outcome, 0.0)
    target = np.where(both, (outcome + price) / 2, np.where(over, outcome, price))
    weight = np.where(both, 2.0, 1.0) * share
    # No price and no deadline: its outcome is all there is. No price and a deadline ahead: so far, yes or no.
    loose = ~priced & ~over & known & np.isnan(days)
    target = np.where(loose, outcome, target)
    course = np.array([s.course for s in rows], str)
    sofar = ~priced & (days >= age) & np.isin(course, ("by", "still"))
    target = np.where(sofar, np.where(known, outcome, (course == "still") * 1.0), target)
    kept = priced | over | loose | sofar
    elapsed = [replace(s, days=max(1.0, float(a))) if f else s for s, a, f in zip(rows, age, sofar, strict=True)]
    chosen = [s for s, keep in zip(elapsed, kept, strict=True) if keep]
    return Lessons(row=kept, seen=chosen, target=target[kept], weight=weight[kept]), worth
