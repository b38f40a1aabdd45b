"""What a forecast would have earned at market prices (Prophet Arena, appendices C.3 and D.2).

A bettor has $1 per market. Yes and No contracts pay $1 if they come true and cost their ask. Rows without a price have
NaN payoffs, and every summary leaves them out.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, as_outcomes, as_probabilities, reject, same_shape
from foretell.metrics.transforms import sigmoid

# Stakes on Yes and on No, given a forecast, the asks and a risk aversion.
#
# After Prophet Arena, appendix C.3. Prices are NaN where a market had no quote: such rows have NaN stakes. A
# price of 0 means that nobody offers the contract, so it cannot be bought. Fees are paid out of the same dollar.

Fee = Callable[[Floats, float], Floats]
"""Fee in dollars for buying some contracts at a price; linear in the number of contracts."""

STAKE_TIE = 1e-12
"""Log-odds edges below this are rounding errors and count as no edge."""


def no_fee(price: Floats, contracts: float = 1.0) -> Floats:
    """Charge no fee."""
    return np.zeros_like(price) * contracts


def kalshi_fee(price: Floats, contracts: float = 1.0) -> Floats:
    """Kalshi's general trading fee 0.07·contracts·price·(1 − price), before its rounding up to a cent."""
    return 0.07 * contracts * price * (1 - price)


FEES: dict[str, Fee] = {"kalshi": kalshi_fee, "prophet_arena": kalshi_fee}
"""Fees by platform; other platforms charge no fee for buying."""


def proportional_fee(rate: float) -> Fee:
    """A fee of `rate` times the money spent on contracts."""
    if not rate >= 0:
        raise ValueError(f"rate must be >= 0, it is {rate}")
    return lambda price, contracts: rate * price * contracts


@frozen
class Bettor:
    """A strategy that turns forecasts into bets."""

    gamma: float = 0.0
    """Relative risk aversion: 0 bets everything on one side, 1 maximises log wealth."""
    fee: Fee = no_fee

    def stakes(self, p: npt.ArrayLike, yes_price: npt.ArrayLike, no_price: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the dollars put on Yes and on No, fees included."""
        return crra_stakes(p, self.cost(yes_price, "yes_price"), self.cost(no_price, "no_price"), self.gamma)

    def cost(self, price: npt.ArrayLike, name: str = "price") -> Floats:
        """Price of one contract with its fee; 0 (not on offer) stays 0."""
        ask = _prices(price, name)
        reject(ask > 1, ask, name, "lies above 1")
        return np.where(ask > 0, ask + self.fee(ask, 1.0), ask)


RISK_NEUTRAL_BETTOR = Bettor()


def normalised_price(yes_ask: npt.ArrayLike, no_ask: npt.ArrayLike) -> Floats:
    """Market probability yes/(yes + no): asks sum to more than 1, and this removes the margin evenly.

    NaN if either ask is NaN or both are 0.
    """
    yes, no = _prices(yes_ask, "yes_ask"), _prices(no_ask, "no_ask")
    same_shape(yes_ask=yes, no_ask=no)
    total = yes + no
    return np.divide(yes, total, out=np.full_like(total, np.nan), where=total > 0)


def crra_stakes(
    p: npt.ArrayLike, yes_price: npt.ArrayLike, no_price: npt.ArrayLike, gamma: float
) -> tuple[Floats, Floats]:
    """Split of $1 into (Yes, No) that maximises p·U(a/q_y) + (1−p)·U((1−a)/q_n), U(w) = w^(1−γ)/(1−γ).

    Equation (6) of Prophet Arena C.3 for separate prices: logit a = [ln(p/q_y) − ln((1−p)/q_n)]/γ + ln(q_y/q_n). γ = 1
    gives a = p whatever the prices. γ = 0 puts all on Yes if p/q_y ≥ (1−p)/q_n, else on No. All money is bet: if q_y +
    q_n > 1, a bettor who agrees with the market loses in expectation. If one contract is not on offer, all goes to the
    other.
    """
    p, yes_price, no_price = _bets(p, yes_price, no_price, gamma)
    yes = _yes_share(p, np.where(yes_price > 0, yes_price, 1.0), np.where(no_price > 0, no_price, 1.0), gamma)
    yes = np.where(yes_price == 0, 0.0, np.where(no_price == 0, 1.0, yes))
    nothing_on_offer = (yes_price == 0) & (no_price == 0)
    unknown = np.isnan(yes_price) | np.isnan(no_price)
    no = np.where(nothing_on_offer, 0.0, 1 - yes)
    return np.where(unknown, np.nan, yes), np.where(unknown, np.nan, no)


def _yes_share(p: Floats, q_yes: Floats, q_no: Floats, gamma: float) -> Floats:
    if gamma == 1:
        return p
    with np.errstate(divide="ignore", over="ignore"):
        edge = np.log(p) - np.log(q_yes) - (np.log1p(-p) - np.log(q_no))
        if gamma == 0:
            return np.where(edge >= -STAKE_TIE, 1.0, 0.0)
        edge = np.where(np.abs(edge) <= STAKE_TIE, 0.0, edge)
        return sigmoid(edge / gamma + np.log(q_yes) - np.log(q_no))


def _prices(price: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(price, dtype=np.float64)
    reject((array < 0) | np.isinf(array), array, name, "is not a price")
    return array


def _bets(
    p: npt.ArrayLike, yes_price: npt.ArrayLike, no_price: npt.ArrayLike, gamma: float
) -> tuple[Floats, Floats, Floats]:
    p = as_probabilities(p)
    yes, no = _prices(yes_price, "yes_price"), _prices(no_price, "no_price")
    same_shape(p=p, yes_price=yes, no_price=no)
    if not 0 <= gamma < np.inf:
        raise ValueError(f"gamma must be a finite number >= 0, it is {gamma}")
    return p, yes, no


def payoff(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    yes_price: npt.ArrayLike,
    no_price: npt.ArrayLike,
    bettor: Bettor = RISK_NEUTRAL_BETTOR,
) -> Floats:
    """Value of the $1 of each market after resolution; 1 is break-even, NaN without a price."""
    yes, no = bettor.stakes(p, yes_price, no_price)
    outcome = as_outcomes(outcome)
    same_shape(p=yes, outcome=outcome)
    yes_cost, no_cost = bettor.cost(yes_price), bettor.cost(no_price)
    won = outcome * _contracts(yes, yes_cost) + (1 - outcome) * _contracts(no, no_cost)
    return np.maximum(1 - yes - no, 0.0) + won


def sharpe_from_sums(sums: Floats) -> Floats:
    """Sharpe ratio from (…, 4) sums of w, w·x, w·x², w² with x the excess return; NaN without variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, square = sums[..., 1] / sums[..., 0], sums[..., 2] / sums[..., 0]
        freedom = 1 - sums[..., 3] / sums[..., 0] ** 2
        variance = (square - mean**2) / freedom
        spread = np.where((freedom > 1e-12) & (square - mean**2 > 1e-12 * square), np.sqrt(variance), np.nan)
        return mean / spread


def _contracts(stake: Floats, cost: Floats) -> Floats:
    return np.divide(stake, cost, out=np.zeros_like(stake), where=~(cost == 0))
