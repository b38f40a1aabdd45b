"""What a forecast would have earned against market prices (Prophet Arena, appendices C.3 and D.2).

A bettor has $1 per market. Yes and No contracts pay $1 if they come true and cost their ask (see `stakes` for
prices, fees and the choice of bets). Rows without a price have NaN payoffs, and every summary leaves them out.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_outcomes, as_weights, same_shape
from foretell.evaluate.stakes import RISK_NEUTRAL, Bettor


def payoff(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    yes_price: npt.ArrayLike,
    no_price: npt.ArrayLike,
    bettor: Bettor = RISK_NEUTRAL,
) -> Floats:
    """What the $1 of each market is worth after resolution; 1 is break-even, NaN without a price.

    >>> payoff([0.6, 0.6], [1, 0], [0.5, 0.5], [0.5, 0.5])
    array([2., 0.])
    """
    yes, no = bettor.stakes(p, yes_price, no_price)
    outcome = as_outcomes(outcome)
    same_shape(p=yes, outcome=outcome)
    yes_cost, no_cost = bettor.cost(yes_price), bettor.cost(no_price)
    won = outcome * _contracts(yes, yes_cost) + (1 - outcome) * _contracts(no, no_cost)
    return np.maximum(1 - yes - no, 0.0) + won


def average_return(payoffs: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Weighted mean payoff of a dollar; rows without a market (NaN) are left out.

    >>> average_return([2.0, 0.0, 0.7, float("nan")])
    0.9
    """
    payoffs, weight = _priced(payoffs, weight)
    return float(np.average(payoffs, weights=weight))


def sharpe(payoffs: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, benchmark: float = 1.0) -> float:
    """Sharpe ratio mean(R − R_b) / sd(R − R_b), R_b = 1 being the dollar not bet (Sharpe 1994; PA Eq. 8).

    The variance is the unbiased one, Σ w(x − x̄)² / (Σ w − Σ w²/Σ w): the usual n − 1 for equal weights. NaN
    when payoffs do not vary or fewer than two rows have a price. Rows without a market are left out.

    >>> round(sharpe([2.0, 0.0, 2.0, 2.0]), 3)
    0.5
    """
    payoffs, weight = _priced(payoffs, weight)
    excess = payoffs - benchmark
    sums = np.array([weight.sum(), weight @ excess, weight @ excess**2, weight @ weight])
    return float(sharpe_from_sums(sums))


def sharpe_from_sums(sums: Floats) -> Floats:
    """Sharpe ratio from (…, 4) sums of w, w·x, w·x², w² with x the excess return; NaN without variance.

    >>> float(sharpe_from_sums(np.array([4.0, 2.0, 4.0, 4.0])))
    0.5
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, square = sums[..., 1] / sums[..., 0], sums[..., 2] / sums[..., 0]
        freedom = 1 - sums[..., 3] / sums[..., 0] ** 2
        variance = (square - mean**2) / freedom
        spread = np.where((freedom > 1e-12) & (square - mean**2 > 1e-12 * square), np.sqrt(variance), np.nan)
        return mean / spread


@dataclass(frozen=True, kw_only=True)
class SideReturns:
    """Return per dollar staked on each side; NaN for a side on which nothing was staked."""

    yes: float
    no: float
    yes_staked: float
    """Weighted dollars staked on Yes."""
    no_staked: float


def by_side(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    quotes: tuple[npt.ArrayLike, npt.ArrayLike],
    bettor: Bettor = RISK_NEUTRAL,
    *,
    weight: npt.ArrayLike | None = None,
) -> SideReturns:
    """Returns of the Yes dollars and of the No dollars apart, `quotes` being (yes prices, no prices).

    For the all-in bettor these are the mean payoffs of the markets where it bought Yes, and where it bought No:
    equal in expectation for a calibrated forecaster that errs to both sides of the market alike (PA C.6).

    >>> sides = by_side([0.9, 0.9, 0.1], [1, 0, 0], ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]))
    >>> sides.yes, sides.no
    (1.0, 2.0)
    """
    yes, no = bettor.stakes(p, *quotes)
    outcome = as_outcomes(outcome)
    same_shape(p=yes, outcome=outcome)
    weight = np.where(np.isnan(yes), 0.0, as_weights(weight, len(yes)))
    won_yes = outcome * _contracts(yes, bettor.cost(quotes[0]))
    won_no = (1 - outcome) * _contracts(no, bettor.cost(quotes[1]))
    staked = [float(weight @ np.nan_to_num(side)) for side in (yes, no)]
    won = [float(weight @ np.nan_to_num(side)) for side in (won_yes, won_no)]
    ratio = [w / s if s > 0 else float("nan") for w, s in zip(won, staked, strict=True)]
    return SideReturns(yes=ratio[0], no=ratio[1], yes_staked=staked[0], no_staked=staked[1])


def _contracts(stake: Floats, cost: Floats) -> Floats:
    return np.divide(stake, cost, out=np.zeros_like(stake), where=~(cost == 0))


def _priced(payoffs: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    array = np.atleast_1d(np.asarray(payoffs, dtype=np.float64))
    weights = as_weights(weight, len(array))
    known = ~np.isnan(array)
    if not weights[known].any():
        raise ValueError("payoffs holds no priced row: there is nothing to average")
    return array[known], weights[known]
