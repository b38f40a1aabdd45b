"""Three kinds of noise on the leaves of trees (Analytica 2026, section 5.3), and a measure of their effect."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.svg import Chart
from foretell.report.study import column
from foretell.studies.scores import step_scores

RATIOS = (0.1, 0.25, 0.5, 0.75, 1.0)
AT = 0.25
"""Noise ratio that the summary sentence reports."""
RATIO_COLUMNS = tuple(column(f"{ratio:g}", f"noise ratio {ratio:g}") for ratio in RATIOS)
Disturbance = Callable[[Floats, float, np.random.Generator], Floats]


def add_uniform_noise(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """Add U(0, ratio), with a maximum of 1: the paper's "normal" noise, which is not normal and only ever adds."""
    return np.minimum(p + rng.uniform(0, ratio, p.shape), 1.0)


def replace_by_chance(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """Replace p by a draw from U(0, 1) with probability `ratio`."""
    hit = rng.random(p.shape) < ratio
    return np.where(hit, rng.random(p.shape), p)


def reverse_by_chance(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """Replace p by its opposite, 1 − p, with probability `ratio`."""
    return np.where(rng.random(p.shape) < ratio, 1 - p, p)


DISTURBANCES: Mapping[str, Disturbance] = {
    "normal": add_uniform_noise,
    "uncertain": replace_by_chance,
    "reverse": reverse_by_chance,
}


def variance_lost(before: Floats, after: Floats) -> float:
    """Return the share of the answers' variance lost to noise: 1 − r², with r the correlation of before and after.

    It is the squared error that remains after the best recalibration a + b·after, relative to the variance. So an
    answer that hardly ever moves does not count as robust, nor one that is merely shifted as spoilt. NaN if all answers
    are the same.

    For any rule of ours the answer is linear in each leaf by itself. If leaves are independent, and so are their
    disturbances, with one correlation ρ between a leaf before and after, then |r| ≤ |ρ|, and a weighted sum of the
    leaves has r = ρ: no rule is spoilt less than a linear one. Proof: write the answer as Σ c_S·Π_{i∈S}(x_i − μ_i). The
    terms are uncorrelated, each keeps ρ^|S| of its correlation, and |ρ|^|S| ≤ |ρ|; the rest is Cauchy–Schwarz.

    >>> x = np.array([0.1, 0.4, 0.7, 0.8])
    >>> round(variance_lost(x, 0.5 * x + 0.3), 9), round(variance_lost(x, 1 - x), 9)
    (0.0, 0.0)
    """
    a, b = before - before.mean(), after - after.mean()
    size = float(a @ a) * float(b @ b)
    return 1 - float(a @ b) ** 2 / size if size > 0 else float("nan")


def noise_curves(scores: Mapping[str, Sequence[Interval]], ratios: Sequence[float], n: int, label: str) -> Chart:
    """Plot a score of several rules by noise ratio."""
    lines = {rule: tuple(line) for rule, line in scores.items()}
    groups = [f"{ratio:g}" for ratio in ratios]
    return score_by_group(step_scores("noise_ratio", groups, lines, [n] * len(groups)), label=label)
