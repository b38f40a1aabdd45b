"""From forecasts as columns to the table of entries × markets."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foretell.arena.standings.said import PACKED, Said
from foretell.arena.standings.standings import Standings
from foretell.evaluate.arrays import Floats, Ints, group_sums


@dataclass(frozen=True, kw_only=True)
class Costs:
    """By entry."""

    said: Ints
    dollars: Floats
    """Mean of a forecast; NaN without any."""
    seconds: Floats


@dataclass(frozen=True, kw_only=True)
class Gathering:
    """Where forecasts go."""

    frame: Standings
    place: Ints
    """By the id of a moment its place in the frame; −1 where it has none, and always at the end."""
    entry: Mapping[int, int]
    """By the id of an entry its place."""

    @cached_property
    def _entry(self) -> Ints:
        found = np.full(max(self.entry, default=0) + 1, -1, np.int64)
        found[list(self.entry)] = list(self.entry.values())
        return found

    @cached_property
    def _sizes(self) -> Ints:
        """Markets of each moment; 0 for the place −1."""
        return np.append(np.bincount(self.frame.markets.moment, minlength=len(self.frame.moments)), 0)

    def table(self, said: Said) -> Floats:
        """Entries × markets, trials averaged, NaN where nothing was said."""
        shape = (len(self.entry), len(self.frame.markets))
        at, p = self._cells(said)
        if said.trials == 1:  # Every place occurs once.
            once = np.full(shape, np.nan)
            once.reshape(-1)[at] = p
            return once
        times = np.bincount(at, minlength=shape[0] * shape[1])
        total = group_sums(at, p, shape[0] * shape[1])
        return np.divide(total, times, out=np.full(len(total), np.nan), where=times > 0).reshape(shape)

    def costs(self, said: Said) -> Costs:
        """What it cost."""
        n, entry = len(self.entry), self._entry[said.ids // PACKED]
        count = group_sums(entry, np.ones(len(entry)), n)
        dollars = group_sums(entry, said.costs // PACKED / 1e6, n)
        seconds = group_sums(entry, said.costs % PACKED / 1e3, n)
        dollars, seconds = (
            np.divide(total, count, out=np.full(n, np.nan), where=count > 0) for total in (dollars, seconds)
        )
        return Costs(said=count.astype(np.int64), dollars=dollars, seconds=seconds)

    def _cells(self, said: Said) -> tuple[Ints, Floats]:
        """Places in the flat table of entries × markets, and the probabilities for them."""
        moment = self.place[np.minimum(said.ids % PACKED, len(self.place) - 1)]
        # Of moments that are not scored, and answers that do not fit their moment, nothing is kept.
        fits = (moment >= 0) & (said.sizes == self._sizes[moment]) & (said.sizes > 0)
        length = said.sizes[fits]
        first = self._entry[said.ids[fits] // PACKED] * len(self.frame.markets) + self.frame.starts[moment[fits]]
        # The places of one forecast follow each other: steps of one, and a leap from each forecast to the next.
        ends = np.cumsum(length)
        steps = np.arange(ends[-1] if len(ends) else 0)
        at = steps + np.repeat(first - (ends - length), length)
        if fits.all():
            return at, said.p
        start = (np.cumsum(said.sizes) - said.sizes)[fits]
        return at, said.p[steps + np.repeat(start - (ends - length), length)]
