"""How far to believe the trials where they differ from an anchor, the crowd's price or a base rate.

On the log-odds scale, with z for the trials and a for the anchor: slope·a + w·(z − a). The trust w starts at a given
value and is moved by examples, for all together and then for each source, subtype, lead time and liquidity as far as
they bear it. There are no offsets: those are base rates in disguise, and base rates move.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.logistic import Regression, fit
from foretell.forecasters.combine.rows import Examples, Rows, Strings, logit, sigmoid
from foretell.forecasters.priors import HORIZON_EDGES

EDGE = 1e-3
"""No price and no trial is taken for surer than this: the last ticks of a market say little."""
LIQUIDITY_EDGES = (1e3, 1e5)


def _source(rows: Rows) -> Strings:
    return rows.source.astype(str)


def _subtype(rows: Rows) -> Strings:
    return _joined(rows.source, rows.subtype)


def _lead(rows: Rows) -> Strings:
    terms = np.searchsorted(HORIZON_EDGES, np.nan_to_num(rows.horizon, nan=np.inf)).astype(str)
    return _joined(rows.source, np.where(np.isnan(rows.horizon), "lead unknown", np.char.add("lead ", terms)))


def _liquidity(rows: Rows) -> Strings:
    bins = np.array(["thin", "fair", "deep"])[np.searchsorted(LIQUIDITY_EDGES, np.nan_to_num(rows.liquidity))]
    return _joined(rows.source, np.where(np.isnan(rows.liquidity), "liquidity unknown", bins))


def _joined(left: Strings, right: Strings) -> Strings:
    return np.char.add(np.char.add(left.astype(str), "/"), right.astype(str))


LEVELS: Mapping[str, Callable[[Rows], Strings]] = {
    "source": _source,
    "subtype": _subtype,
    "lead": _lead,
    "liquidity": _liquidity,
}


@dataclass(frozen=True, kw_only=True)
class FittedTrust:
    """slope·a + w·(z − a), w being the sum of the common trust and what its levels add. Without an anchor: slope·z."""

    trust: float
    slope: float = 1.0
    moves: Mapping[str, float] = field(default_factory=dict[str, float])
    """What a level adds to the trust: "fred", "fred/all", "polymarket/lead 2"."""
    levels: tuple[str, ...] = ()
    training: Training = field(default_factory=Training)

    def trust_in(self, rows: Rows) -> Floats:
        """The trust in the trials of every row; an unseen source, subtype or lead adds nothing."""
        w = np.full(len(rows), self.trust)
        for level in self.levels:
            names, code = np.unique(LEVELS[level](rows), return_inverse=True)
            w += np.array([self.moves.get(str(name), 0.0) for name in names], np.float64)[code]
        return w

    def probabilities(self, rows: Rows) -> Floats:
        """The blend; NaN where no trial answered."""
        z, a = log_odds(rows)
        return sigmoid(self.slope * a + self.trust_in(rows) * (z - a))


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Learns the trust by penalised log loss, from a start that needs no examples.

    The spreads are those of normal priors: how far the common trust, the slope and each level may well lie from where
    they start. Outcomes of one source that become known on the same day hang together, so m of them count for
    m / (1 + (m−1)·correlation).
    """

    start: float = 0.5
    """Trust before any example. One half: the trials and a crowd are two forecasters of whom nothing is known."""
    levels: tuple[str, ...] = ("source", "lead", "liquidity")
    spread: float = 0.25
    slope_spread: float = 0.2
    level_spread: float = 0.2
    correlation: float = 0.1

    def __post_init__(self) -> None:
        if unknown := [level for level in self.levels if level not in LEVELS]:
            raise ValueError(f"levels = {unknown[0]!r} is none of {', '.join(LEVELS)}")
        if not min(self.spread, self.slope_spread, self.level_spread) > 0:
            raise ValueError("spreads must be positive")

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "trust"

    def untaught(self) -> FittedTrust:
        """The rule before any example."""
        return FittedTrust(trust=self.start, levels=self.levels)

    def fit(self, examples: Examples) -> FittedTrust:
        """The trust that past outcomes speak for; with none of them, the start."""
        problem, names = self._problem(examples)
        found = [float(value) for value in fit(problem)]
        return FittedTrust(
            trust=found[0],
            slope=found[1],
            moves=dict(zip(names, found[2:], strict=True)),
            levels=self.levels,
            training=Training.of(examples),
        )

    def _problem(self, examples: Examples) -> tuple[Regression, list[str]]:
        answered = ~np.isnan(examples.rows.raw)
        rows = examples.rows.take(answered)
        z, a = log_odds(rows)
        columns, names = [z - a, a], list[str]()
        for level in self.levels:
            found, code = np.unique(LEVELS[level](rows), return_inverse=True)
            columns += [np.where(code == i, z - a, 0.0) for i in range(len(found))]
            names += [str(name) for name in found]
        spreads = np.r_[self.spread, self.slope_spread, np.full(len(names), self.level_spread)]
        return (
            Regression.of(
                np.column_stack(columns),
                examples.outcome[answered],
                weight=examples.weight[answered] * self._worth(examples.take(answered)),
                penalty=spreads**-2,
                centre=np.r_[self.start, 1.0, np.zeros(len(names))],
            ),
            names,
        )

    def _worth(self, examples: Examples) -> Floats:
        """How much each example counts, given how many of its source became known on the same day."""
        days = np.datetime_as_string(examples.known_on, "D")
        _, code, size = np.unique(_joined(examples.rows.source, days), return_inverse=True, return_counts=True)
        return np.asarray(1.0 / (1.0 + (size - 1) * self.correlation), np.float64)[code]


def log_odds(rows: Rows) -> tuple[Floats, Floats]:
    """The trials' and the anchor's log-odds; where there is no anchor the trials are their own."""
    z = rows.log_odds(EDGE)
    a = logit(rows.anchor, EDGE)
    return z, np.where(np.isnan(a), z, a)
