"""The result of scoring: numbers with their intervals, ready to print, plot or save."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.scoring.table import OVERALL

SCHEMA = "foretell/score/1"


@dataclass(frozen=True, kw_only=True)
class Score:
    """One forecaster on one group of targets."""

    forecaster: str
    group: Mapping[str, str]
    """Which targets, e.g. {"kind": "market", "source": "manifold"}; {"kind": "overall"} is the mean over kinds."""
    n: int
    """Targets scored."""
    questions: int
    completion: float
    """Share of the group's resolved targets that the forecaster answered."""
    metrics: Mapping[str, Interval]
    """By metric name: brier, bi, ms, log, ece, return, sharpe; a metric that cannot be computed is absent."""


@dataclass(frozen=True, kw_only=True)
class ScoreDifference:
    """One forecaster against the reference on the targets both answered."""

    forecaster: str
    reference: str
    group: Mapping[str, str]
    metric: str
    comparison: Comparison


@dataclass(frozen=True, kw_only=True)
class Scoreboard:
    """Everything `foretell score` knows about a set of forecasts."""

    scores: tuple[Score, ...]
    differences: tuple[ScoreDifference, ...]
    reference: str
    metric: str
    """The metric the board is ranked by."""
    settings: Mapping[str, Any]
    """What it takes to reproduce the numbers: draws, seed, clusters, weights, treatment of trials and gaps."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that do not exist are null."""
        return {"schema": SCHEMA, **_plain(asdict(self))}

    def group(self, **group: str) -> tuple[Score, ...]:
        """The scores of one group, best first."""
        from foretell.metrics.metric import METRICS

        chosen = [s for s in self.scores if dict(s.group) == group and self.metric in s.metrics]
        return tuple(
            sorted(chosen, key=lambda s: s.metrics[self.metric].estimate, reverse=METRICS[self.metric].better == "high")
        )

    def groups(self) -> tuple[dict[str, str], ...]:
        """Every group once, the overall one first."""
        seen = {tuple(sorted(s.group.items())): dict(s.group) for s in self.scores}
        return tuple(sorted(seen.values(), key=lambda g: (g.get("kind") != OVERALL, len(g))))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
