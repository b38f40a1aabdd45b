"""`auto`: backtests every model on the series' own past, at the horizon asked, and weights it by its results."""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

import numpy as np

from foretell.forecasters.series.changes import (
    JOINT_MODEL,
    REVERSION_MODEL,
    TREND_MODEL,
    WALK_MODEL,
    Changes,
    Motion,
    from_motion,
    independent_share,
    motion,
    offset,
)
from foretell.forecasters.series.climatology import Normals, RunningNormals, SeasonalNormal, normals, running_normals
from foretell.forecasters.series.history import SeriesChances, SeriesHistory, SeriesQuery, history
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats

TRUST: Mapping[str, float] = {"walk": 0.31, "joint": 0.61, "season": 0.08}
"""Prior weight of each model, before it is backtested on the series."""
TRUST_OF_PRICES: Mapping[str, float] = {"walk": 0.87, "joint": 0.12, "season": 0.01}
"""Prior weights for traded prices, which are hardly predictable."""
CHANGE_MODELS = {"walk": WALK_MODEL, "joint": JOINT_MODEL}
CLASS_MODELS = {"trending": TREND_MODEL, "mean-reverting": REVERSION_MODEL}
CLEAR, SEASONAL = 1.0, 0.2
"""Log-odds over a random walk without drift from which a series belongs to another class, and the least share of its
variance that the yearly wave of a seasonal series explains."""
LEARNING_RATE = 1.0
"""A Brier difference d near p = ½ is a log-likelihood difference of about 2 d, so this rate is half of Bayes' rule."""
SEASON_RATE = 2.0
"""A series is either seasonal or not, so the evidence counts in full by Bayes' rule."""


@frozen
class Expectation:
    """Prior beliefs about a series."""

    drift: float = 0.0
    """Yearly drift per unit of yearly spread."""
    trust: Mapping[str, float] = field(default_factory=lambda: TRUST)


NOTHING_KNOWN = Expectation()


@frozen
class AutoChoice:
    """The forecast of `auto` for one resolution day, with the weight of each model."""

    above: float
    below: float
    weights: dict[str, float]
    chances: dict[str, float]
    """P(above) according to each candidate."""
    evidence: dict[str, float]
    """Log-odds of each candidate over the random walk, from the backtest."""
    series_class: str
    """What the series is: a random walk, trending, mean-reverting or seasonal."""


def choices(query: SeriesQuery, expected: Expectation = NOTHING_KNOWN) -> list[AutoChoice]:
    """Forecast P(y(r) > v) for each resolution day by the models that predicted this series best at this horizon.

    At every past origin, each candidate predicts from what was known then whether the series would be higher after the
    same time. Weights are prior · exp(−η · n_eff · mean Brier), where n_eff counts overlapping origins once, so a short
    or unpredictable series keeps the prior mixture around a random walk. The weights do not depend on the threshold, so
    P(y > v) never rises with v.
    """
    past = history(query)
    models = BacktestedModels(past=past, threshold=query.threshold, expected=expected)
    ahead = zip(past.steps(query).tolist(), past.early_chance(query.resolution).tolist(), strict=True)
    return [models.choose(h) if h > 0 else models.unchanged(early) for h, early in ahead]


def auto(query: SeriesQuery, expected: Expectation = NOTHING_KNOWN) -> SeriesChances:
    """Return only the probabilities of `choices`."""
    return SeriesChances.of([(choice.above, choice.below) for choice in choices(query, expected)])


@frozen
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
        backtests: dict[str, Floats] = {}
        forecasts: dict[str, tuple[float, float]] = {}
        for name, columns in CHANGE_MODELS.items():
            fitted = change.regression.using(columns)
            backtests[name] = change.rises(fitted)
            forecasts[name] = change.beyond(fitted, self.offset)
        evidence = {name: _gain(p, backtests["walk"], change) for name, p in backtests.items()}
        # Seasonal normals need a reference value that is known.
        if self._normals is not None and not self.past.wait:
            threshold = self.past.last if self.threshold is None else self.threshold
            forecasts["season"] = SeasonalNormal(normals=self._normals, horizon=horizon).chances(threshold)
            evidence["season"] = self._seasonal(change, backtests["walk"])
        weights = _weights(evidence, self.expected.trust)
        above = sum(w * forecasts[name][0] for name, w in weights.items())
        below = sum(w * forecasts[name][1] for name, w in weights.items())
        above = min(above, 1.0)
        return AutoChoice(
            above=above,
            below=min(below, 1 - above),
            weights=weights,
            chances={name: chance[0] for name, chance in forecasts.items()},
            evidence=evidence,
            series_class=self.series_class,
        )

    def unchanged(self, early: float) -> AutoChoice:
        """Forecast that the last value stays, because no new one is due; `early` is the chance of an early one."""
        above, below = float(self.offset < 0), float(self.offset > 0)
        if early:
            moved = self.choose(1)
            above += early * (moved.above - above)
            below += early * (moved.below - below)
        empty: dict[str, float] = {}
        return AutoChoice(
            above=above, below=below, weights=empty, chances=empty, evidence=empty, series_class=self.series_class
        )

    @cached_property
    def series_class(self) -> str:
        """The kind of model that predicted the series best over a quarter, if it clearly beat a random walk."""
        change, running = self._over_quarter, self._running
        if not len(change.moved):
            return "a random walk"
        level = (1 - change.stillness) / 2
        evidence = {
            name: _gain(change.rises(change.regression.using(columns)), level, change)
            for name, columns in CLASS_MODELS.items()
        }
        if running is not None:
            rows = _rows(self.past, change)
            evidence["seasonal"] = _gain(
                running.rises(change.horizon, rows), level, change, usable=running.usable[rows]
            )
        name, most = max(evidence.items(), key=lambda item: item[1])
        if name == "seasonal" and (self._normals is None or self._normals.share < SEASONAL):
            name = "mean-reverting"  # Normals without a wave are a mean.
        return name if most > CLEAR else "a random walk"

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
        """A quarter, in steps. It shows seasons and allows many independent tests, so longer horizons use it too."""
        return max(1, round(self.past.per_year / 4))

    @cached_property
    def _quarterly(self) -> float:
        running, change = self._running, self._over_quarter
        if running is None or not len(change.moved):
            return 0.0
        rows = _rows(self.past, change)
        walk = change.rises(change.regression.using(WALK_MODEL))
        return _gain(running.rises(change.horizon, rows), walk, change, usable=running.usable[rows])

    @cached_property
    def _over_quarter(self) -> Changes:
        return from_motion(self._motion, self.past, self._quarter, drift=0.0)

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
    """Return the log-odds of a candidate over the walk from past outcomes: η · n_eff · mean Brier gain."""
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
