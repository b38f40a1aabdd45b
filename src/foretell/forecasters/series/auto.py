"""`auto`: backtests every model on the series' own past, at the horizon asked, and weights it by its results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from foretell.forecasters.series.changes import (
    JOINT_MODEL,
    WALK_MODEL,
    Changes,
    Motion,
    from_motion,
    independent_share,
    motion,
    offset,
)
from foretell.forecasters.series.climatology import Normals, RunningNormals, SeasonalNormal, normals, running_normals
from foretell.forecasters.series.history import AskedSeries, SeriesChances, SeriesHistory, history
from foretell.metrics.arrays import Bools, Floats

TRUST: Mapping[str, float] = {"walk": 0.31, "joint": 0.61, "season": 0.08}
"""Prior weight of each model, before it is backtested on the series."""
TRUST_OF_PRICES: Mapping[str, float] = {"walk": 0.87, "joint": 0.12, "season": 0.01}
"""Prior weights for traded prices: if anyone could predict a price, their trades have already moved it."""
CHANGE_MODELS = {"walk": WALK_MODEL, "joint": JOINT_MODEL}
LEARNING_RATE = 1.0
"""A Brier difference d near p = ½ is a log-likelihood difference of about 2 d, so this rate is half of Bayes' rule."""
SEASON_RATE = 2.0
"""Whether a series is seasonal is a yes-or-no property, so its evidence counts by Bayes' rule in full."""


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Prior beliefs about a series."""

    drift: float = 0.0
    """Yearly drift per unit of yearly spread."""
    trust: Mapping[str, float] = field(default_factory=lambda: TRUST)


NOTHING_KNOWN = Expectation()


@dataclass(frozen=True, kw_only=True)
class AutoChoice:
    """The forecast of `auto` for one resolution day, with the weight of each model."""

    above: float
    below: float
    weights: dict[str, float]
    chances: dict[str, float]
    """P(above) according to each candidate."""
    evidence: dict[str, float]
    """Log-odds that the backtest gives each candidate over the random walk."""


def choices(asked: AskedSeries, expected: Expectation = NOTHING_KNOWN) -> list[AutoChoice]:
    """Forecast P(y(r) > v) for each resolution day by the models that predicted this series best at this horizon.

    At every past origin, each candidate predicts from what was known then whether the series would be higher after the
    same time. Weights are prior · exp(−η · n_eff · mean Brier), where n_eff counts overlapping origins once, so a short
    or unpredictable series keeps the prior mixture around a random walk. The weights do not depend on the threshold, so
    P(y > v) never rises with v.
    """
    past = history(asked)
    trials = BacktestedModels(past=past, threshold=asked.threshold, expected=expected)
    ahead = zip(past.steps(asked).tolist(), past.surprise(asked.resolution).tolist(), strict=True)
    return [trials.choose(h) if h > 0 else trials.stand(early) for h, early in ahead]


def auto(asked: AskedSeries, expected: Expectation = NOTHING_KNOWN) -> SeriesChances:
    """Return only the probabilities of `choices`."""
    return SeriesChances.of([(one.above, one.below) for one in choices(asked, expected)])


@dataclass(frozen=True, kw_only=True)
class BacktestedModels:
    """The candidate models on one series: their current forecasts and their results at past origins."""

    past: SeriesHistory
    threshold: float | None
    expected: Expectation

    @cached_property
    def offset(self) -> float:
        """The change that the question asks to exceed."""
        return offset(self._motion, self.past, self.threshold)

    def choose(self, horizon: int) -> AutoChoice:
        """Return the weighted forecast at one horizon."""
        change = from_motion(self._motion, self.past, horizon, drift=self.expected.drift)
        tried: dict[str, Floats] = {}
        said: dict[str, tuple[float, float]] = {}
        for name, columns in CHANGE_MODELS.items():
            fitted = change.regression.using(columns)
            tried[name] = change.rises(fitted)
            said[name] = change.beyond(fitted, self.offset)
        evidence = {name: _gain(p, tried["walk"], change) for name, p in tried.items()}
        # Seasonal normals compare with a value that is known.
        if self._normals is not None and not self.past.wait:
            threshold = self.past.last if self.threshold is None else self.threshold
            said["season"] = SeasonalNormal(normals=self._normals, horizon=horizon).chances(threshold)
            evidence["season"] = self._seasonal(change, tried["walk"])
        weights = _weights(evidence, self.expected.trust)
        above = sum(w * said[name][0] for name, w in weights.items())
        below = sum(w * said[name][1] for name, w in weights.items())
        above = min(above, 1.0)
        return AutoChoice(
            above=above,
            below=min(below, 1 - above),
            weights=weights,
            chances={name: chance[0] for name, chance in said.items()},
            evidence=evidence,
        )

    def stand(self, surprise: float) -> AutoChoice:
        """Forecast that the last value stays, since no new one is due, apart from the chance that one comes anyway."""
        above, below = float(self.offset < 0), float(self.offset > 0)
        if surprise:
            moved = self.choose(1)
            above += surprise * (moved.above - above)
            below += surprise * (moved.below - below)
        return AutoChoice(above=above, below=below, weights={}, chances={}, evidence={})

    def _seasonal(self, change: Changes, walk: Floats) -> float:
        """Evidence for seasonal normals over the walk at this horizon, and at a quarter if that is shorter."""
        running = self._running
        if running is None:
            return 0.0
        rows = _rows(self.past, change)
        own = _gain(running.rises(change.horizon, rows), walk, change, usable=running.usable[rows])
        if change.horizon > self._quarter:
            own = min(own, 0.0) + self._quarterly
        return SEASON_RATE / LEARNING_RATE * own

    @cached_property
    def _quarter(self) -> int:
        """A quarter, in steps: it shows seasons and allows many independent tests, so longer horizons use it too."""
        return max(1, round(self.past.per_year / 4))

    @cached_property
    def _quarterly(self) -> float:
        running = self._running
        change = from_motion(self._motion, self.past, self._quarter, drift=0.0)
        if running is None or not len(change.moved):
            return 0.0
        rows = _rows(self.past, change)
        walk = change.rises(change.regression.using(WALK_MODEL))
        return _gain(running.rises(change.horizon, rows), walk, change, usable=running.usable[rows])

    @cached_property
    def _motion(self) -> Motion:
        return motion(self.past)

    @cached_property
    def _normals(self) -> Normals | None:
        return normals(self.past)

    @cached_property
    def _running(self) -> RunningNormals | None:
        return running_normals(self.past)


def _gain(p: Floats, walk: Floats, change: Changes, *, usable: Bools | None = None) -> float:
    """Log-odds that past outcomes give a candidate over the walk: η · n_eff · mean Brier gain."""
    n = len(change.moved)
    if p is walk or not n:
        return 0.0
    rose = (change.moved > 0).astype(np.float64)
    gain = (walk[:n] - rose) ** 2 - (p[:n] - rose) ** 2
    valid = change.valid if usable is None else change.valid & usable[:n]
    share = independent_share(gain, valid, least=min(1.0, change.apart / change.horizon))
    return LEARNING_RATE * share * float(gain[valid].sum())


def _rows(past: SeriesHistory, change: Changes) -> slice:
    """Select the origins at which the change over this horizon is tested."""
    hop = change.apart // change.stride
    return slice((len(past.origins) - 1) % hop, None, hop)


def _weights(evidence: dict[str, float], trust: Mapping[str, float]) -> dict[str, float]:
    """Multiply the prior weights by the evidence and normalize them to sum to one."""
    top = max(evidence.values())
    share = {name: trust[name] * float(np.exp(e - top)) for name, e in evidence.items()}
    total = sum(share.values())
    return {name: s / total for name, s in share.items()}
