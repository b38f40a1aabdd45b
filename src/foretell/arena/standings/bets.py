"""Payoffs of many forecasters at once: what `evaluate.returns.payoff` gives, with the work on prices done once.

Seen from what happened, a market is simple. Let h be the probability given to the side that came true, c the price of
that side and d the price of the other. A dollar with the share a on that side came to a / c, and equation (6) of
Prophet Arena (C.3) for separate prices reads

    a = (h·d)^(1/γ)·c / [(h·d)^(1/γ)·c + ((1−h)·c)^(1/γ)·d]

so γ = 1 gives h, γ = 0 all or nothing by the larger of h·d and (1−h)·c, and γ = 1/2 takes no root. A test holds this
against the plain function.
"""

from dataclasses import dataclass

import numpy as np

from foretell.arena.standings.standings import Standings
from foretell.evaluate.arrays import Bools, Floats
from foretell.evaluate.stakes import TIE, Bettor, Fee, kalshi_fee, no_fee

FEES: dict[str, Fee] = {"kalshi": kalshi_fee, "prophet_arena": kalshi_fee}
"""By platform; the others take no fee for buying."""
RISK_NEUTRAL = 0.0
GAMMAS = (RISK_NEUTRAL, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What contracts cost, seen from what happened; markets without a price have price 1 on either side."""

    hit: Floats
    """Of the side that came true."""
    miss: Floats
    """Of the other side, a hair up where Yes came true and down where No did: ties go to Yes."""
    worth: Floats
    """What a dollar on the side that came true came to; 0 where nobody offered it."""
    one_sided: Floats
    """What a dollar came to where only one side, or none, was on offer; NaN elsewhere."""
    odd: bool
    """Whether there is any such market."""


def prices_of(standings: Standings, *, fees: bool = False) -> Prices:
    """Prices of scored standings, with the fees of the platform where wanted."""
    yes, no = asks(standings, fees=fees)
    there = np.isfinite(yes) & np.isfinite(no)
    yes, no = np.where(there, yes, 1.0), np.where(there, no, 1.0)
    won = standings.markets.outcome == 1
    hit, miss = np.where(won, yes, no), np.where(won, no, yes)
    worth = np.divide(1.0, hit, out=np.zeros_like(hit), where=hit > 0)
    odd = (hit == 0) | (miss == 0)
    only = np.where(hit > 0, worth, np.where(miss > 0, 0.0, 1.0))
    return Prices(
        hit=np.where(odd, 1.0, hit),
        miss=np.where(odd, 1.0, miss) * np.where(won, 1 + TIE, 1 - TIE),
        worth=worth,
        one_sided=np.where(odd, only, np.nan),
        odd=bool(odd.any()),
    )


def priced(standings: Standings) -> Bools:
    """Markets that could be bet on."""
    return np.isfinite(asks(standings)[0]) & np.isfinite(asks(standings)[1])


def asks(standings: Standings, *, fees: bool = False) -> tuple[Floats, Floats]:
    """What Yes and No cost: both asks where the market had them, else the last price and what it leaves of a dollar.

    NaN without a market, 0 where nobody offers the contract.
    """
    markets = standings.markets
    quoted = np.isfinite(markets.yes_ask) & np.isfinite(markets.no_ask)
    yes = np.where(quoted, markets.yes_ask, markets.last)
    no = np.where(quoted, markets.no_ask, 1 - markets.last)
    if fees:
        platform = standings.events.platform
        of_market = platform.codes[standings.market_event]
        for code, name in enumerate(platform.names):
            bettor, mine = Bettor(fee=FEES.get(name, no_fee)), of_market == code
            yes[mine], no[mine] = bettor.cost(yes[mine]), bettor.cost(no[mine])
    return yes, no


def payoffs(h: Floats, prices: Prices) -> dict[float, Floats]:
    """What a dollar came to for every taste of risk in `GAMMAS`; `h` is the probability given to what happened."""
    ours, theirs = h * prices.miss, (1 - h) * prices.hit
    found: dict[float, Floats] = {}
    for gamma in GAMMAS:
        if gamma == 0:
            share: Floats = (ours >= theirs).astype(np.float64)
        elif gamma == 1:
            share = h
        else:
            # Powers of two for γ = 1/2 are plain products, ten times as fast as others.
            good, bad = ours ** (1 / gamma) * prices.hit, theirs ** (1 / gamma) * prices.miss
            share = np.divide(good, good + bad, out=np.zeros_like(h), where=good + bad > 0)
        paid = share * prices.worth
        found[gamma] = np.where(np.isnan(prices.one_sided), paid, prices.one_sided) if prices.odd else paid
    return found
