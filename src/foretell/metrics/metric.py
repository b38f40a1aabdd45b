"""Every leaderboard number as a function of sums over rows, so that one bootstrap serves them all.

A metric gives each row k columns. Their sums over the rows of a population determine its number:

    metric.from_sums(metric.columns(rows).sum(axis=0)) == metric.population(rows)

A resample of clusters is then a product (draws × clusters) @ (clusters × k), with `from_sums` applied to its
rows; weights are already inside the columns. This holds for means, for functions of means (Brier index), and
also for the Sharpe ratio and the calibration error, which are no means of per-row scores.

    metric                        columns, w being the weight of the row
    brier, bi, ms, log, return    w·score, w
    sharpe                        w, w·x, w·x², w²             x = excess return
    ece                           w·(o − p) per bin of p, w    zero in the bins where p is not
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Floats, as_pairs, as_vector, as_weights, same_shape
from foretell.metrics.bootstrap import brier_index_from_sums, mean_from_sums
from foretell.metrics.calibration import bin_codes, width_edges
from foretell.metrics.returns import RISK_NEUTRAL_BETTOR, Bettor, payoff, sharpe_from_sums
from foretell.metrics.scores import brier, log_score, metaculus_baseline

LOG_FLOOR = 0.001
"""Least probability of what happened in `log` and `ms`, the limit of Metaculus: one −inf would hide all else."""


@dataclass(frozen=True, kw_only=True)
class MetricRows:
    """What scoring sees: one row per (question, target) of one forecaster. Build it with `MetricRows.of`."""

    p: Floats
    outcome: Floats
    weight: Floats
    yes_price: Floats | None = None
    """Asks; NaN where the market had no quote, None where there is no market at all."""
    no_price: Floats | None = None

    @classmethod
    def of(
        cls,
        p: npt.ArrayLike,
        outcome: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        prices: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ) -> "MetricRows":
        """Checked rows; `prices` is (yes asks, no asks).

        >>> MetricRows.of([0.7], [1]).weight
        array([1.])
        """
        forecasts, outcomes = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
        weights = as_weights(weight, len(forecasts))
        if prices is None:
            return cls(p=forecasts, outcome=outcomes, weight=weights)
        yes, no = (np.asarray(price, dtype=np.float64) for price in prices)
        same_shape(p=forecasts, yes_price=yes, no_price=no)
        return cls(p=forecasts, outcome=outcomes, weight=weights, yes_price=yes, no_price=no)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of a population of rows, with the sums it is made of."""

    name: str
    columns: Callable[[MetricRows], Floats]
    """(n, k) array of weighted columns."""
    from_sums: Callable[[Floats], Floats]
    """Sums (…, k) → numbers (…); NaN where the weights sum to 0."""
    better: Literal["low", "high"]
    per_question: Callable[[MetricRows], Floats] | None = None
    """Score of each row where the metric is a mean of such scores, NaN where a row has none; else None."""
    version: str = "1"
    """Changes whenever the number for the same rows changes, so that old and new are not compared."""

    def population(self, rows: MetricRows) -> float:
        """The metric of all rows together; raises when none of them can be scored (no prices, for a return).

        >>> round(METRICS["bi"].population(MetricRows.of([0.9, 0.2], [1, 1])), 2)
        42.99
        """
        columns = self.columns(rows)
        if not columns.any():
            raise ValueError(f"no row can be scored by {self.name!r}")
        return float(self.from_sums(columns.sum(axis=0)))


def ece_from_sums(sums: Floats) -> Floats:
    """Calibration error Σ_b |Σ_b w(o − p)| / Σw from sums (…, B + 1), the last of which is Σw.

    >>> ece_from_sums(np.array([[0.3, -0.1, 4.0]])).round(3)
    array([0.1])
    """
    gaps = np.abs(sums[..., :-1]).sum(axis=-1)
    return mean_from_sums(np.stack([gaps, sums[..., -1]], axis=-1))


def mean_metric(name: str, score: Callable[[MetricRows], Floats], better: Literal["low", "high"]) -> Metric:
    """Metric that is the weighted mean of a per-row score; rows whose score is NaN have no weight.

    >>> mean_metric("p", lambda rows: rows.p, "high").population(MetricRows.of([0.25, 0.75], [0, 1]))
    0.5
    """
    return Metric(
        name=name,
        columns=lambda rows: _weighted_columns(score(rows), rows.weight),
        from_sums=mean_from_sums,
        better=better,
        per_question=score,
    )


def ece_metric(bins: int = 10) -> Metric:
    """Calibration error over equal-width bins, as in `reliability.ece`.

    >>> round(ece_metric().population(MetricRows.of([0.95, 0.95, 0.05, 0.05], [1, 0, 0, 0])), 4)
    0.25
    """

    def columns(rows: MetricRows) -> Floats:
        out = np.zeros((len(rows.p), bins + 1))
        out[np.arange(len(rows.p)), bin_codes(rows.p, width_edges(bins))] = rows.weight * (rows.outcome - rows.p)
        out[:, bins] = rows.weight
        return out

    return Metric(name="ece", columns=columns, from_sums=ece_from_sums, better="low")


def return_metric(bettor: Bettor = RISK_NEUTRAL_BETTOR) -> Metric:
    """Average payoff of $1 per row under a bettor; rows without prices have no weight.

    >>> return_metric().population(MetricRows.of([0.6, 0.6], [1, 0], prices=([0.5, np.nan], [0.5, np.nan])))
    2.0
    """
    return mean_metric("return", lambda rows: payoffs(rows, bettor), "high")


def sharpe_metric(bettor: Bettor = RISK_NEUTRAL_BETTOR) -> Metric:
    """Sharpe ratio of the payoffs over the dollar not bet, as in `returns.sharpe`.

    >>> rows = MetricRows.of([0.6] * 4, [1, 0, 1, 1], prices=([0.5] * 4, [0.5] * 4))
    >>> round(sharpe_metric().population(rows), 3)
    0.5
    """

    def columns(rows: MetricRows) -> Floats:
        excess = payoffs(rows, bettor) - 1
        x, w = np.nan_to_num(excess), np.where(np.isnan(excess), 0.0, rows.weight)
        return np.column_stack([w, w * x, w * x * x, w * w])

    return Metric(name="sharpe", columns=columns, from_sums=sharpe_from_sums, better="high")


def payoffs(rows: MetricRows, bettor: Bettor = RISK_NEUTRAL_BETTOR) -> Floats:
    """Payoff of $1 on each row, NaN without a price; raises when no row has a market.

    >>> payoffs(MetricRows.of([0.6], [1], prices=([0.5], [0.5])))
    array([2.])
    """
    if rows.yes_price is None or rows.no_price is None:
        raise ValueError("rows carry no prices: a return needs yes_price and no_price")
    return payoff(rows.p, rows.outcome, rows.yes_price, rows.no_price, bettor)


def _weighted_columns(score: Floats, weight: Floats) -> Floats:
    out = np.empty((len(score), 2))
    missing = np.isnan(score)
    if missing.any():
        weight, score = np.where(missing, 0.0, weight), np.where(missing, 0.0, score)
    np.multiply(weight, score, out=out[:, 0])
    out[:, 1] = weight
    return out


_BRIER = mean_metric("brier", lambda rows: brier(rows.p, rows.outcome), "low")

METRICS: dict[str, Metric] = {
    "brier": _BRIER,
    "bi": Metric(name="bi", columns=_BRIER.columns, from_sums=brier_index_from_sums, better="high"),
    "ms": mean_metric("ms", lambda rows: metaculus_baseline(rows.p, rows.outcome, floor=LOG_FLOOR), "high"),
    "log": mean_metric("log", lambda rows: log_score(rows.p, rows.outcome, floor=LOG_FLOOR), "high"),
    "ece": ece_metric(),
    "return": return_metric(),
    "sharpe": sharpe_metric(),
}
"""The numbers of the scoring table, by name."""
