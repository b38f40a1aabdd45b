"""Sums that every number of a leaderboard is made of, by event, so that one resampling of events serves them all.

Two ways of weighing. By event (Prophet Arena C.1): a market counts 1/m of its event, an event once. By market (the
paper's calibration error and average return): an event counts as often as it has markets. An event asked at several
moments still counts once: its numbers are the mean over the moments that were answered, unless `every` moment is to
count on its own.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from foretell.arena.standings.bets import GAMMAS, RISK_NEUTRAL, payoffs, priced, prices_of
from foretell.arena.standings.standings import Standings
from foretell.evaluate.arrays import Bools, Floats, Ints, group_sums
from foretell.evaluate.metric import FLOOR

Choice = Literal["mean", "last", "first", "every"]
"""Which moments of an event count: the mean of all, the last or first only, or every one as if it were an event."""
Weighing = Literal["event", "market"]
BINS = 10
EDGES = np.arange(BINS + 1) / BINS
SCORES = ("brier", "log", *(f"ece{b}" for b in range(BINS)), "n")
"""Columns that every forecast has; the last one is the weight."""
BETS = (*(f"return{g:g}" for g in GAMMAS), *(f"net{g:g}" for g in GAMMAS), "yes", "won_yes", "priced")
"""Columns that only forecasts with a price have: payoffs without and with fees, the risk-neutral bettor's dollars on
Yes, what those came to, and the weight."""
COLUMNS = (*SCORES, *BETS, "square", "priced_square")
"""The last two make the spread of returns: squares of risk-neutral payoffs, and of their weights."""
AT = {name: place for place, name in enumerate(COLUMNS)}


@dataclass(frozen=True, kw_only=True)
class EventSums:
    """Weighted sums by entry and event."""

    table: Floats
    """Entries × columns × events, weighed by event."""
    squares: Floats
    """Entries × events: weighted squares of the payoffs of single markets."""
    markets: Floats
    """Entries × events: markets answered, as a mean over the moments."""
    priced: Floats
    """The same of those with a price."""
    moments: Ints
    """Entries × events: moments answered."""

    def of(self, weighing: Weighing) -> Floats:
        """Entries × columns × events in one way of weighing.

        By event the unit of a return is the event, and its square that of its mean payoff; by market it is the market.
        """
        if weighing == "event":
            return self.table
        out = np.empty_like(self.table)
        np.multiply(self.table[:, : len(SCORES)], self.markets[:, None], out=out[:, : len(SCORES)])
        np.multiply(self.table[:, len(SCORES) :], self.priced[:, None], out=out[:, len(SCORES) :])
        out[:, AT["square"]] = self.squares * self.priced
        weight = self.table[:, AT["priced"]]
        out[:, AT["priced_square"]] = self.priced * weight / np.maximum(self.moments, 1)
        return out


def chosen_moments(standings: Standings, choice: Choice) -> Bools:
    """The moments that count."""
    n = len(standings.moments)
    chosen = np.ones(n, np.bool_)
    if choice in ("first", "last"):
        chosen[:] = False
        ends = np.append(standings.event_starts[1:], n) - 1
        chosen[standings.event_starts if choice == "first" else ends] = True
    return chosen


def event_sums(standings: Standings, choice: Choice = "mean") -> EventSums:
    """Sums of scored standings; only moments that the choice admits count."""
    summing = _Summing(standings, choice)
    shape = (len(standings.entries), len(standings.events))
    out = EventSums(
        table=np.empty((shape[0], len(COLUMNS), shape[1])),
        squares=np.empty(shape),
        markets=np.empty(shape),
        priced=np.empty(shape),
        moments=np.empty(shape, np.int64),
    )
    with ThreadPoolExecutor() as threads:  # numpy lets others compute while it does.
        list(threads.map(partial(summing.fill, out), range(len(standings.entries))))
    return out


@dataclass(frozen=True, kw_only=True)
class _Weights:
    """What every market counts, which markets count, and what that makes of an event."""

    market: Floats
    event: Floats
    """Sum over the event's markets: 1 where it was answered, or the number of moments."""
    moments: Ints
    markets: Floats


class _Summing:
    """Sums of one entry after the other over the same markets."""

    def __init__(self, standings: Standings, choice: Choice) -> None:
        self._standings, self._choice = standings, choice
        self._won = standings.markets.outcome == 1
        self._gross, self._net = prices_of(standings), prices_of(standings, fees=True)
        self._priced = priced(standings)
        self._event = standings.market_event
        self._starts = np.searchsorted(self._event, np.arange(len(standings.events)))
        self._admitted = chosen_moments(standings, choice)[standings.markets.moment]
        everything = np.ones(len(standings.markets), np.bool_)
        self._whole = self._weights(everything)
        self._whole_priced = self._whole if self._priced.all() else self._weights(self._priced)

    def fill(self, out: EventSums, i: int) -> None:
        """The sums of one entry."""
        p = self._standings.p[i]
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
        out.markets[i], out.priced[i], out.moments[i] = scores.markets, bets.markets, scores.moments

    def _score(self, table: Floats, p: Floats, h: Floats, weights: _Weights) -> None:
        w = weights.market
        table[AT["brier"]] = self._summed(w * (1 - h) ** 2)
        table[AT["log"]] = self._summed(w * np.log(np.maximum(h, FLOOR)))
        gap = np.where(self._won, 1 - h, h - 1) * w
        bins = np.bincount(bins_of(p) * table.shape[1] + self._event, gap, minlength=BINS * table.shape[1])
        table[AT["ece0"] : AT["ece0"] + BINS] = bins.reshape(BINS, -1)
        table[AT["n"]] = weights.event

    def _bet(self, table: Floats, h: Floats, weights: _Weights) -> Floats:
        """Fills the columns of bets and gives the weighted squares of single markets' payoffs."""
        w = weights.market
        gross, net = payoffs(h, self._gross), payoffs(h, self._net)
        for gamma in GAMMAS:
            table[AT[f"return{gamma:g}"]] = self._summed(w * gross[gamma])
            table[AT[f"net{gamma:g}"]] = self._summed(w * net[gamma])
        paid = gross[RISK_NEUTRAL]
        yes = np.where(self._won, paid > 0, paid == 0)
        table[AT["yes"]] = self._summed(w * yes)
        table[AT["won_yes"]] = self._summed(w * np.where(self._won, paid, 0.0))
        table[AT["priced"]] = weight = weights.event
        mean = table[AT["return0"]]
        table[AT["square"]] = np.divide(mean**2, weight, out=np.zeros_like(mean), where=weight > 0)
        table[AT["priced_square"]] = weight**2
        return self._summed(w * paid**2)

    def _summed(self, column: Floats) -> Floats:
        return np.add.reduceat(column, self._starts)

    def _weights(self, answered: Bools) -> _Weights:
        """A market counts one over the markets answered at its moment and over the moments answered of its event."""
        standings = self._standings
        counted = (answered & self._admitted).astype(np.float64)
        by_moment = group_sums(standings.markets.moment, counted, len(standings.moments))
        moments = group_sums(standings.moments.event, (by_moment > 0).astype(np.float64), len(standings.events))
        markets = group_sums(standings.moments.event, by_moment, len(standings.events))
        share = 1 / np.maximum(by_moment, 1)
        if self._choice != "every":
            share /= np.maximum(moments, 1)[standings.moments.event]
        return _Weights(
            market=counted * share[standings.markets.moment],
            event=moments if self._choice == "every" else np.minimum(moments, 1.0),
            moments=moments.astype(np.int64),
            markets=markets / np.maximum(moments, 1),
        )


def bins_of(p: Floats) -> Ints:
    """The place of each p among ten bins (low, high], as `evaluate.reliability.bin_codes` gives it.

    >>> bins_of(np.array([0.0, 0.1, 0.3, 0.30000001, 1.0])).tolist()
    [0, 0, 2, 3, 9]
    """
    found = (p * BINS).astype(np.int64)
    found -= p <= EDGES[found]
    return np.maximum(found, 0, out=found)
