"""The sums by event behind every number of an arena's leaderboard, so that one resampling of events serves them all.

Events are weighted in two ways. By event (Prophet Arena C.1), a market counts 1/m of its event and an event counts
once. By market (the paper's calibration error and average return), an event counts as often as it has markets. An event
with several forecast times still counts once: its numbers are the mean over the forecast times that were answered.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, group_sums
from foretell.metrics.metric import CALIBRATION_BINS, GAMMAS, LOG_FLOOR
from foretell.metrics.returns import FEES, STAKE_TIE, Bettor, no_fee
from foretell.scoring.arena_table import ArenaTable

# The payoffs of many forecasters at once. The results equal those of `metrics.returns.payoff`, but the work on prices
# is done only once, which is more than ten times as fast.
#
# Let h be the probability given to the side that came true, c the price of that side and d the price of the other. A
# dollar with the share a on that side came to a / c, and equation (6) of Prophet Arena (C.3) for separate prices reads
#
#     a = (h·d)^(1/γ)·c / [(h·d)^(1/γ)·c + ((1−h)·c)^(1/γ)·d]
#
# so γ = 1 gives h, γ = 0 gives all or nothing by the larger of h·d and (1−h)·c, and γ = 1/2 needs no root. A test
# compares this with the plain function.

RISK_NEUTRAL = 0.0


@frozen
class BetPrices:
    """Prices of both contracts of every market; markets without prices have price 1 on both sides."""

    hit: Floats
    """The price of the side that came true."""
    miss: Floats
    """The price of the other side, shifted slightly so that ties go to Yes."""
    worth: Floats
    """Payoff of a dollar bet on the side that came true; 0 if nobody offered it."""
    one_sided: Floats
    """Payoff of a dollar if at most one side was on offer; NaN otherwise."""
    odd: bool
    """Whether any market had at most one side on offer."""


def bet_prices(arena: ArenaTable, *, fees: bool = False) -> BetPrices:
    """Return the prices of the resolved markets, including the platforms' fees if `fees` is set."""
    yes, no = asks(arena, fees=fees)
    there = np.isfinite(yes) & np.isfinite(no)
    yes, no = np.where(there, yes, 1.0), np.where(there, no, 1.0)
    won = arena.markets.outcome == 1
    hit, miss = np.where(won, yes, no), np.where(won, no, yes)
    worth = np.divide(1.0, hit, out=np.zeros_like(hit), where=hit > 0)
    odd = (hit == 0) | (miss == 0)
    only = np.where(hit > 0, worth, np.where(miss > 0, 0.0, 1.0))
    return BetPrices(
        hit=np.where(odd, 1.0, hit),
        miss=np.where(odd, 1.0, miss) * np.where(won, 1 + STAKE_TIE, 1 - STAKE_TIE),
        worth=worth,
        one_sided=np.where(odd, only, np.nan),
        odd=bool(odd.any()),
    )


def has_prices(arena: ArenaTable) -> Bools:
    """Whether each market could be bet on."""
    return np.isfinite(asks(arena)[0]) & np.isfinite(asks(arena)[1])


def asks(arena: ArenaTable, *, fees: bool = False) -> tuple[Floats, Floats]:
    """Prices of Yes and No: both asks if the market had them, else the last price and its complement.

    NaN without a market, 0 if nobody offers the contract.
    """
    markets = arena.markets
    quoted = np.isfinite(markets.yes_ask) & np.isfinite(markets.no_ask)
    yes = np.where(quoted, markets.yes_ask, markets.last)
    no = np.where(quoted, markets.no_ask, 1 - markets.last)
    if fees:
        platform = arena.events.platform
        of_market = platform.codes[arena.market_event]
        for code, name in enumerate(platform.names):
            bettor, mine = Bettor(fee=FEES.get(name, no_fee)), of_market == code
            yes[mine], no[mine] = bettor.cost(yes[mine]), bettor.cost(no[mine])
    return yes, no


def bet_payoffs(h: Floats, prices: BetPrices) -> dict[float, Floats]:
    """Payoff of a dollar for every risk aversion in `GAMMAS`; `h` is the probability given to what happened."""
    right, wrong = h * prices.miss, (1 - h) * prices.hit
    payoffs: dict[float, Floats] = {}
    for gamma in GAMMAS:
        if gamma == 0:
            share: Floats = (right >= wrong).astype(np.float64)
        elif gamma == 1:
            share = h
        else:
            # For γ = 1/2 the exponent is 2: numpy computes squares as products, which is ten times as fast.
            good, bad = right ** (1 / gamma) * prices.hit, wrong ** (1 / gamma) * prices.miss
            share = np.divide(good, good + bad, out=np.zeros_like(h), where=good + bad > 0)
        paid = share * prices.worth
        payoffs[gamma] = np.where(np.isnan(prices.one_sided), paid, prices.one_sided) if prices.odd else paid
    return payoffs


EventWeighing = Literal["event", "market"]
BIN_EDGES = np.arange(CALIBRATION_BINS + 1) / CALIBRATION_BINS
SCORE_COLUMNS = ("brier", "log", *(f"ece{b}" for b in range(CALIBRATION_BINS)), "p", "p_square", "weight")
"""Columns computed for every forecast; the last one is the weight."""
BET_COLUMNS = (*(f"return{g:g}" for g in GAMMAS), *(f"net{g:g}" for g in GAMMAS), "yes", "won_yes", "priced")
"""Columns of forecasts with a price: payoffs before and after fees, the risk-neutral bettor's dollars on Yes, their
payoff, and the weight."""
SUM_COLUMNS = (*SCORE_COLUMNS, *BET_COLUMNS, "excess", "excess_square", "priced_square")
"""Column names, as in `metrics.metric`. The last three are for the Sharpe ratio: the risk-neutral bettor's gain beyond
the dollar, its square, and the square of the weight."""
COLUMN_INDEX = {name: place for place, name in enumerate(SUM_COLUMNS)}


@frozen
class EventSums:
    """Weighted sums by entry and event."""

    table: Floats
    """Sums, entries × columns × events, weighted by event."""
    squares: Floats
    """Entries × events: weighted squared gains of single markets."""
    markets: Floats
    """Entries × events: number of markets answered, averaged over the forecast times."""
    priced: Floats
    """Entries × events: number of markets with a price answered, averaged over the forecast times."""
    forecast_times: Ints
    """Entries × events: number of forecast times answered."""

    def of(self, weighing: EventWeighing) -> Floats:
        """Return entries × columns × events, weighted by event or by market.

        The weighting also decides whether the unit of a return, and so its square, is an event or a market.
        """
        if weighing == "event":
            return self.table
        out = np.empty_like(self.table)
        np.multiply(self.table[:, : len(SCORE_COLUMNS)], self.markets[:, None], out=out[:, : len(SCORE_COLUMNS)])
        np.multiply(self.table[:, len(SCORE_COLUMNS) :], self.priced[:, None], out=out[:, len(SCORE_COLUMNS) :])
        out[:, COLUMN_INDEX["excess_square"]] = self.squares * self.priced
        weight = self.table[:, COLUMN_INDEX["priced"]]
        out[:, COLUMN_INDEX["priced_square"]] = self.priced * weight / np.maximum(self.forecast_times, 1)
        return out


def event_sums(arena: ArenaTable) -> EventSums:
    """Compute the sums of a resolved arena."""
    summing = _EventSummer(arena)
    shape = (len(arena.entries), len(arena.events))
    out = EventSums(
        table=np.empty((shape[0], len(SUM_COLUMNS), shape[1])),
        squares=np.empty(shape),
        markets=np.empty(shape),
        priced=np.empty(shape),
        forecast_times=np.empty(shape, np.int64),
    )
    with ThreadPoolExecutor() as threads:  # numpy releases the interpreter lock.
        list(threads.map(partial(summing.fill, out), range(len(arena.entries))))
    return out


@frozen
class _Weights:
    """Weights of markets and events for one set of answered markets."""

    market: Floats
    event: Floats
    """Sum over the event's markets: 1 if it was answered, else 0."""
    forecast_times: Ints
    markets: Floats


class _EventSummer:
    """Computes the sums of one entry at a time over the same markets."""

    def __init__(self, arena: ArenaTable) -> None:
        self._arena = arena
        self._won = arena.markets.outcome == 1
        self._gross, self._net = bet_prices(arena), bet_prices(arena, fees=True)
        self._priced = has_prices(arena)
        self._event = arena.market_event
        self._starts = np.searchsorted(self._event, np.arange(len(arena.events)))
        everything = np.ones(len(arena.markets), np.bool_)
        self._whole = self._weights(everything)
        self._whole_priced = self._whole if self._priced.all() else self._weights(self._priced)

    def fill(self, out: EventSums, i: int) -> None:
        """Compute the sums of one entry and store them in `out`."""
        p = self._arena.p[i]
        answered = np.isfinite(p)
        if answered.all():
            scores, bets = self._whole, self._whole_priced
        else:
            p = np.where(answered, p, 0.5)
            scores = self._weights(answered)
            bets = scores if self._priced.all() else self._weights(answered & self._priced)
        h = np.where(self._won, p, 1 - p)
        table = out.table[i]
        self._score(table, p, h, scores)
        out.squares[i] = self._bet(table, h, bets)
        out.markets[i], out.priced[i], out.forecast_times[i] = scores.markets, bets.markets, scores.forecast_times

    def _score(self, table: Floats, p: Floats, h: Floats, weights: _Weights) -> None:
        w = weights.market
        table[COLUMN_INDEX["brier"]] = self._summed(w * (1 - h) ** 2)
        table[COLUMN_INDEX["log"]] = self._summed(w * np.log(np.maximum(h, LOG_FLOOR)))
        gap = np.where(self._won, 1 - h, h - 1) * w
        bins = np.bincount(bins_of(p) * table.shape[1] + self._event, gap, minlength=CALIBRATION_BINS * table.shape[1])
        table[COLUMN_INDEX["ece0"] : COLUMN_INDEX["ece0"] + CALIBRATION_BINS] = bins.reshape(CALIBRATION_BINS, -1)
        table[COLUMN_INDEX["p"]], table[COLUMN_INDEX["p_square"]] = self._summed(w * p), self._summed(w * p**2)
        table[COLUMN_INDEX["weight"]] = weights.event

    def _bet(self, table: Floats, h: Floats, weights: _Weights) -> Floats:
        """Fill the betting columns, and return the weighted squared gains of single markets."""
        w = weights.market
        gross, net = bet_payoffs(h, self._gross), bet_payoffs(h, self._net)
        for gamma in GAMMAS:
            table[COLUMN_INDEX[f"return{gamma:g}"]] = self._summed(w * gross[gamma])
            table[COLUMN_INDEX[f"net{gamma:g}"]] = self._summed(w * net[gamma])
        paid = gross[RISK_NEUTRAL]
        yes = np.where(self._won, paid > 0, paid == 0)
        table[COLUMN_INDEX["yes"]] = self._summed(w * yes)
        table[COLUMN_INDEX["won_yes"]] = self._summed(w * np.where(self._won, paid, 0.0))
        table[COLUMN_INDEX["priced"]] = weight = weights.event
        excess = table[COLUMN_INDEX["excess"]] = table[COLUMN_INDEX["return0"]] - weight
        table[COLUMN_INDEX["excess_square"]] = np.divide(excess**2, weight, out=np.zeros_like(excess), where=weight > 0)
        table[COLUMN_INDEX["priced_square"]] = weight**2
        return self._summed(w * (paid - 1) ** 2)

    def _summed(self, column: Floats) -> Floats:
        return np.add.reduceat(column, self._starts)

    def _weights(self, answered: Bools) -> _Weights:
        """Weight of a market: 1 / markets answered at its forecast time / forecast times answered of its event."""
        arena = self._arena
        counted = answered.astype(np.float64)
        by_time = group_sums(arena.markets.forecast_time, counted, len(arena.forecast_times))
        times_answered = group_sums(arena.forecast_times.event, (by_time > 0).astype(np.float64), len(arena.events))
        markets = group_sums(arena.forecast_times.event, by_time, len(arena.events))
        share = 1 / np.maximum(by_time, 1) / np.maximum(times_answered, 1)[arena.forecast_times.event]
        return _Weights(
            market=counted * share[arena.markets.forecast_time],
            event=np.minimum(times_answered, 1.0),
            forecast_times=times_answered.astype(np.int64),
            markets=markets / np.maximum(times_answered, 1),
        )


def bins_of(p: Floats) -> Ints:
    """Bin of each p among ten bins (low, high], the same as `metrics.calibration.bin_codes`.

    >>> bins_of(np.array([0.0, 0.1, 0.3, 0.30000001, 1.0])).tolist()
    [0, 0, 2, 3, 9]
    """
    bins = (p * CALIBRATION_BINS).astype(np.int64)
    bins -= p <= BIN_EDGES[bins]
    return np.maximum(bins, 0, out=bins)
