"""Brier scores by moment: what pairs, lead times and histories are made of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foretell.arena.standings.standings import Standings
from foretell.arena.standings.sums import Choice, chosen_moments
from foretell.evaluate.arrays import Bools, Floats, Ints, group_sums


@dataclass(frozen=True, kw_only=True)
class MomentScores:
    """Of scored standings; each part is computed when it is first asked for."""

    standings: Standings
    choice: Choice = "mean"

    @cached_property
    def answered(self) -> Bools:
        """Entries × markets."""
        return np.isfinite(self.standings.p)

    @cached_property
    def counts(self) -> Floats:
        """Entries × moments: markets answered."""
        return self._summed(self.answered.astype(np.float64))

    @cached_property
    def squares(self) -> Floats:
        """Entries × markets: squared errors, 0 where unanswered."""
        return np.where(self.answered, (self.standings.p - self.standings.markets.outcome) ** 2, 0.0)

    @cached_property
    def brier(self) -> Floats:
        """Entries × moments; NaN where unanswered."""
        known = self.counts > 0
        return np.divide(self._summed(self.squares), self.counts, out=np.full(known.shape, np.nan), where=known)

    @cached_property
    def whole(self) -> Bools:
        """By entry: whether it answered all markets of every moment that it answered at all."""
        sizes = np.bincount(self.standings.markets.moment, minlength=len(self.standings.moments))
        return ((self.counts == 0) | (self.counts == sizes)).all(axis=1)

    @cached_property
    def admitted(self) -> Bools:
        """Moments that count."""
        return chosen_moments(self.standings, self.choice)

    @cached_property
    def complete(self) -> Bools:
        """Entries × events: whether the entry answered all markets of all moments that count."""
        sizes = np.bincount(self.standings.markets.moment, minlength=len(self.standings.moments))
        short = (self.counts != sizes) & self.admitted
        return ~np.logical_or.reduceat(short, self.standings.event_starts, axis=1)

    def difference(self, i: int, j: int) -> tuple[Floats, Floats]:
        """By event: the weighted Brier score of one minus that of the other on what both answered, and the weight."""
        both = self.complete[i] & self.complete[j]
        gap, weight = self.scores[i] - self.scores[j], self.weights * both
        gap *= both
        if both.all():
            return gap, weight
        # Only events that one of them answered in part need a look at their moments.
        event = self.standings.moments.event
        rest = np.flatnonzero(~both[event] & self.admitted)
        apart = self._apart(i, j, rest)
        known = np.isfinite(apart)
        n = len(self.standings.events)
        times = group_sums(event[rest[known]], np.ones(int(known.sum())), n)
        total = group_sums(event[rest[known]], apart[known], n)
        if self.choice == "every":
            return gap + total, weight + times
        return gap + total / np.maximum(times, 1.0), weight + np.minimum(times, 1.0)

    @cached_property
    def weights(self) -> Floats:
        """What every event counts that was answered in full."""
        times = np.add.reduceat(self.admitted.astype(np.float64), self.standings.event_starts)
        return times if self.choice == "every" else np.minimum(times, 1.0)

    @cached_property
    def scores(self) -> Floats:
        """Entries × events: weighted Brier scores of those answered in full; the others have no meaning."""
        counted = np.where(self.admitted, np.nan_to_num(self.brier), 0.0)
        total = np.add.reduceat(counted, self.standings.event_starts, axis=1)
        times = np.add.reduceat(self.admitted.astype(np.float64), self.standings.event_starts)
        return total if self.choice == "every" else total / np.maximum(times, 1.0)

    def _apart(self, i: int, j: int, moments: Ints) -> Floats:
        """Brier score of one minus that of the other at some moments, on the markets both answered; NaN for none."""
        if self.whole[i] and self.whole[j]:
            return self.brier[i, moments] - self.brier[j, moments]
        n = len(self.standings.moments)
        common = (self.answered[i] & self.answered[j]).astype(np.float64)
        times = group_sums(self.standings.markets.moment, common, n)
        total = group_sums(self.standings.markets.moment, common * (self.squares[i] - self.squares[j]), n)
        return np.divide(total, times, out=np.full(n, np.nan), where=times > 0)[moments]

    def by_event(self, values: Floats) -> tuple[Floats, Floats]:
        """Numbers of moments (NaN: none) as weighted sums and weights of events."""
        known, starts = np.isfinite(values), self.standings.event_starts
        times = np.add.reduceat(known.astype(np.float64), starts)
        total = np.add.reduceat(np.where(known, values, 0.0), starts)
        if self.choice == "every":
            return total, times
        return total / np.maximum(times, 1.0), np.minimum(times, 1.0)

    def _summed(self, table: Floats) -> Floats:
        return np.add.reduceat(table, self.standings.starts, axis=1)
