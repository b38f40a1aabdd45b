"""Makes a question's probabilities consistent with the relations between its targets.

The result is the nearest set of probabilities that satisfies the relations: an order, a sum of one, implications. There
are two distances. `squared`: Σ w(q − p)². `log`: Σ w·KL(q‖p) of the binary forecasts, a projection like that of
log-odds. With either, q scores at least as well as p in the corresponding score, on every possible outcome
(Pythagoras; Csiszár 1975).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from foretell.forecasters.combine.claims import NEGATED, ClaimTemplate, NestedClaims, Order, Strike, orders, read_claim
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, as_probabilities, as_vector, as_weights, group_sums, reject
from foretell.metrics.numerics import isotonic, largest_decrease, minimum, nonnegative_least_squares, root
from foretell.metrics.transforms import logit, sigmoid
from foretell.patterns import pattern
from foretell.questions.question import Question, Target

Distance = Literal["squared", "log"]
DISTANCES: tuple[Distance, ...] = get_args(Distance)
ROUNDING = 1e-12
GRID, GRID_END = 65, 13.0
"""Number of values, and largest log-odds, that are tried for the probability of a condition."""
LARGEST_STEP = 1e18
"""Multiplier beyond which no probability changes any more."""


def check_distance(distance: Distance) -> None:
    """Raise ValueError for an unknown distance."""
    if distance not in DISTANCES:
        raise ValueError(f"distance {distance!r} is neither squared nor log")


def rising(
    p: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    level: npt.ArrayLike | None = None,
    distance: Distance = "squared",
) -> Floats:
    """Return the nearest non-decreasing probabilities, by pooling adjacent violators (Ayer et al. 1955).

    List the claims from the strongest to the weakest: "above 220" before "above 200", "by March" before "by June".
    `level` gives the order instead, and claims on one level get the same probability. Pooled claims get the weighted
    mean of their probabilities (`squared`) or of their log-odds (`log`).

    >>> rising([0.1, 0.5, 0.3, 0.8]).tolist(), rising([0.5, 0.2, 0.4], level=[2, 1, 1]).round(3).tolist()
    ([0.1, 0.4, 0.4, 0.8], [0.5, 0.3, 0.3])
    """
    check_distance(distance)
    p, weight = _checked(p, weight)
    levels = np.arange(len(p), dtype=np.float64) if level is None else as_vector(level, "level")
    if len(levels) != len(p):
        raise ValueError(f"level has length {len(levels)}, expected {len(p)}")
    return _pooled(p, weight, levels, distance)


def _pooled(p: Floats, weight: Floats, levels: Floats, distance: Distance) -> Floats:
    _, place = np.unique(levels, return_inverse=True)
    size = int(place.max()) + 1
    x, total = p if distance == "squared" else logit(p), group_sums(place, weight, size)
    alone = np.bincount(place, minlength=size) == 1
    mean = np.where(alone, group_sums(place, x, size), group_sums(place, weight * x, size) / total)
    pooled, first = isotonic(mean, total)
    steady = np.minimum.reduceat(mean, first) == np.maximum.reduceat(mean, first)
    q = pooled if distance == "squared" else sigmoid(pooled)
    # Probabilities that are not pooled stay exactly as they were.
    unmoved = alone & np.repeat(steady, np.diff(first, append=size))
    return np.clip(np.where(unmoved[place], p, q[place]), 0.0, 1.0)


def falling(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, level: npt.ArrayLike | None = None) -> Floats:
    """Return the nearest non-increasing probabilities, such as P(X > a) for increasing a."""
    levels = np.arange(len(np.atleast_1d(p))) if level is None else as_vector(level, "level")
    return rising(p, weight, level=-levels)


def exactly_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """Return the nearest probabilities that sum to one.

    squared: q_i = max(0, p_i − τ/w_i), the projection onto the simplex, exact from one sort (Held et al. 1974).
    log: logit q_i = logit p_i + τ/w_i. In both, τ makes the sum one. Small outcomes may end at 0 under `squared`,
    never under `log`.

    >>> exactly_one([0.6, 0.6, 0.1]).round(3).tolist(), exactly_one([0.6, 0.6, 0.1], distance="log").round(3).tolist()
    ([0.5, 0.5, 0.0], [0.469, 0.469, 0.061])
    """
    check_distance(distance)
    return _summing_to_one(*_checked(p, weight), distance)


def _summing_to_one(p: Floats, weight: Floats, distance: Distance) -> Floats:
    if abs(p.sum() - 1) <= ROUNDING and p.min() >= 0:
        return p
    if distance == "log":
        return _shifted(p, weight)
    # q_i is positive for τ below p_i·w_i, so the positive outcomes come first in this order.
    order = np.argsort(-p * weight, kind="stable")
    tau = (np.cumsum(p[order]) - 1) / np.cumsum(1 / weight[order])
    last = int(np.flatnonzero((p * weight)[order] > tau)[-1])
    return np.maximum(0.0, p - tau[last] / weight)


def at_most_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """Return the nearest probabilities whose sum does not exceed one."""
    check_distance(distance)
    return exclusive("at most one", *_checked(p, weight), distance=distance)


def exclusive(
    rule: Literal["exactly one", "at most one"],
    p: Floats,
    weight: Floats,
    *,
    distance: Distance = "squared",
) -> Floats:
    """Return the nearest probabilities of which exactly or at most one comes true; `p` may lie outside [0, 1]."""
    if rule == "at most one" and (positive := np.maximum(0.0, p)).sum() <= 1 + ROUNDING:
        return positive
    return _summing_to_one(p, weight, distance)


def implied(
    p: Floats,
    pairs: Sequence[tuple[int, int]],
    weight: npt.ArrayLike | None = None,
    *,
    distance: Distance = "squared",
) -> Floats:
    """Return the nearest probabilities with q_i ≤ q_j for every pair (i, j), where claim i implies claim j.

    A least-distance problem, solved exactly as nonnegative least squares (Lawson & Hanson 1974, chapter 23). The log
    distance is the squared one of log-odds (Robertson et al. 1988, theorem 1.5.1).

    >>> implied(np.array([0.7, 0.4, 0.1]), [(0, 1)]).round(3).tolist()
    [0.55, 0.55, 0.1]
    """
    check_distance(distance)
    x = p if distance == "squared" else logit(p)
    low, high = np.array(pairs).T
    violated = x[low] - x[high]
    if (violated <= ROUNDING).all():
        return np.clip(p, 0.0, 1.0)
    # In units of 1/√w, in which the weighted distance is the plain one.
    unit = 1 / np.sqrt(as_weights(weight, len(p)))
    rows = (np.eye(len(x))[high] - np.eye(len(x))[low]) * unit
    system = np.vstack([rows.T, violated])
    target = np.eye(len(system))[-1]
    residual = system @ nonnegative_least_squares(system, target) - target
    y = -residual[:-1] / residual[-1] * unit
    moved = np.abs(y) > ROUNDING
    return np.clip(np.where(moved, x + y if distance == "squared" else sigmoid(x + y), p), 0.0, 1.0)


def on_plane(
    p: Floats,
    factor: Floats,
    total: float,
    weight: npt.ArrayLike | None = None,
    *,
    distance: Distance = "squared",
) -> Floats:
    """Return the nearest probabilities with Σ factor·q = total. Raises ValueError if there are none.

    squared: q_i = p_i + τ·factor_i/w_i, within [0, 1]. log: the same with log-odds.

    >>> on_plane(np.array([0.5, 0.2]), np.array([1.0, -1.0]), 0.0).round(3).tolist()
    [0.35, 0.35]
    """
    step = factor / as_weights(weight, len(p))
    x = p if distance == "squared" else logit(p)

    def moved(tau: float) -> Floats:
        return np.clip(x + tau * step, 0.0, 1.0) if distance == "squared" else sigmoid(x + tau * step)

    def excess(tau: float) -> float:
        return float(factor @ moved(tau)) - total

    if excess(0.0) == 0:
        return p
    most = 1.0
    while excess(-most) > 0 or excess(most) < 0:
        most *= 2
        if most > LARGEST_STEP:
            raise ValueError(f"no probabilities have a sum of {total:g}")
    return moved(root(excess, -most, most, 1e-15))


def product(p: Floats, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """Return the nearest probabilities of A and B, A given B, and B, with the first the product of the others.

    For a fixed P(A given B) the others are on a line, so one search over it finds the minimum.

    >>> product(np.array([0.5, 0.5, 0.5])).round(3).tolist()
    [0.348, 0.59, 0.59]
    """
    check_distance(distance)
    weight = as_weights(weight, 3)
    if abs(p[0] - p[1] * p[2]) <= ROUNDING:
        return p

    def at(given: float) -> Floats:
        both, condition = on_plane(p[[0, 2]], np.array([1.0, -given]), 0.0, weight[[0, 2]], distance=distance)
        return np.array([both, given, condition])

    def cost(given: float) -> float:
        return float(weight @ _far(at(given), p, distance))

    # A grid first, because there may be two minima.
    grid = sigmoid(np.linspace(-GRID_END, GRID_END, GRID)) if distance == "log" else np.linspace(0.0, 1.0, GRID)
    place = int(np.argmin([cost(given) for given in grid]))
    ends = grid[max(0, place - 1)], grid[min(GRID - 1, place + 1)]
    return at(minimum(cost, float(ends[0]), float(ends[1]), 1e-12))


def _far(q: Floats, p: Floats, distance: Distance) -> Floats:
    """Return the distance of each probability."""
    if distance == "squared":
        return (q - p) ** 2
    x, y = logit(q), logit(p)
    q = sigmoid(x)
    # KL(q‖p) of two binary forecasts.
    return q * (x - y) + np.logaddexp(0.0, y) - np.logaddexp(0.0, x)


def _checked(p: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    p = as_probabilities(as_vector(p, "p"))
    weight = as_weights(weight, len(p))
    reject(weight <= 0, weight, "weight", "is not positive")
    return p, weight


def _shifted(p: Floats, weight: Floats) -> Floats:
    """Return σ(logit p + τ/w) with the τ that makes the sum one."""
    if len(p) == 1:
        return np.ones(1)
    q = on_plane(p, np.ones(len(p)), 1.0, weight, distance="log")
    return q / q.sum()


# The relations between the targets of a question, from its wording.

OWN_DAY = pattern(r"\b(by|before) (?:each|the|its) resolution date\b(?: listed below)?", re.IGNORECASE)
"""A deadline that means the day on which the target resolves."""


@frozen
class CoherentProbabilities:
    """Coherent probabilities, and the rules that made them so."""

    p: Mapping[str, float]
    rules: tuple[str, ...]
    """The relations recognised: exactly one, at most one, ladder, by date, nested; empty if none."""
    gap: float
    """The largest violation before, of the sum or of a pair; 0 if there was none."""
    moved: float
    """The largest change of a probability."""

    @property
    def rule(self) -> str:
        """The rules as a short text."""
        return " + ".join(dict.fromkeys(self.rules)) or "unchanged"


def coherent(question: Question, p: Mapping[str, float], *, distance: Distance = "squared") -> CoherentProbabilities:
    """Return the nearest probabilities consistent with the question: exclusive targets, strikes, deadlines.

    Targets are ordered only if their wording is the same except for a strike or a deadline, and if the question is not
    about the state on a day. Others stay unchanged. Targets that resolve on different days are compared by deadline
    only. If exclusive targets do not all have a probability, their sum must be at most one.

    >>> q = Question(id="q", source="own", text="Gas price?", due="2025-07-01",
    ...              targets=(Target(id="Above 3.10"), Target(id="Above 3.15"), Target(id="3.10 or below")))
    >>> result = coherent(q, {"Above 3.10": 0.5, "Above 3.15": 0.6, "3.10 or below": 0.5})
    >>> result.rule, {target: round(value, 3) for target, value in result.p.items()}
    ('ladder', {'Above 3.10': 0.533, 'Above 3.15': 0.533, '3.10 or below': 0.467})
    """
    check_distance(distance)
    if unknown := set(p) - {target.id for target in question.targets}:
        raise ValueError(f"question {question.id} has no target {min(unknown)!r}")
    if len(p) == 1 and question.exclusivity == "independent" and all(0 <= value <= 1 for value in p.values()):
        # A single target has no order, and reading its wording would take longer than all else that a run page needs.
        return CoherentProbabilities(p=dict(p), rules=(), gap=0.0, moved=0.0)
    if p:
        as_probabilities(list(p.values()))
    p = {name: float(value) for name, value in p.items()}
    after, gaps = dict(p), [0.0]
    if question.exclusivity != "independent" and p:
        whole = len(p) == len(question.targets)
        holds, values = question.exclusivity if whole else "at most one", np.array(list(p.values()))
        project, rules = exactly_one if holds == "exactly one" else at_most_one, (holds,)
        after = dict(zip(p, map(float, project(values, distance=distance)), strict=True))
        over = float(values.sum() - 1)
        gaps.append(abs(over) if holds == "exactly one" else over)
    else:
        recognised = question_orders(question, p)
        rules = tuple(order.rule for order in recognised)
        for order in recognised:
            fitted = ordered(order, np.array([p[name] for name in order.names]), distance=distance)
            gaps.append(order_gap(order, p))
            after |= dict(zip(order.names, fitted.tolist(), strict=True))
    moved = max((abs(after[name] - p[name]) for name in p), default=0.0)
    return CoherentProbabilities(p=after, rules=rules, gap=max(gaps), moved=moved)


def question_orders(question: Question, among: Collection[str] | None = None) -> list[Order]:
    """Return the orders of a question's targets, or of those in `among`; none if they exclude each other."""
    if question.exclusivity != "independent":
        return []
    targets = [target for target in question.targets if among is None or target.id in among]
    return orders({target.id: claim for target in targets if (claim := target_claim(question, target)) is not None})


def target_claim(question: Question, target: Target) -> ClaimTemplate | None:
    """Return the target's claim; its template includes the question's text and, for strikes, the day."""
    day = target.resolves_at.date().isoformat() if target.resolves_at else ""
    text = target.label or target.id
    claim = read_claim(OWN_DAY.sub(rf"\1 {day}", text) if day else text, question.due.date())
    if claim is None or NEGATED.search(question.text):
        return None
    strikes_only = all(isinstance(slot, Strike) for slot in claim.slots)
    return replace(claim, template=f"{question.text}\0{day if strikes_only else ''}\0{claim.template}")


def ordered(
    order: Order,
    p: Floats,
    weight: npt.ArrayLike | None = None,
    *,
    distance: Distance = "squared",
) -> Floats:
    """Return the nearest probabilities of an order; `p` is in the order of its names and may lie outside [0, 1]."""
    if isinstance(order, NestedClaims):
        return implied(p, _places(order), weight, distance=distance)
    line = np.where(order.flipped, 1 - p, p)
    fitted = _pooled(line, as_weights(weight, len(p)), np.array(order.level, np.float64), distance)
    # 1 − (1 − p) is not always exactly p, so unmoved probabilities are copied.
    return np.where(fitted == line, p, np.where(order.flipped, 1 - fitted, fitted))


def order_gap(order: Order, p: Mapping[str, float]) -> float:
    """Return the largest violation of an order by a pair of probabilities; 0 if there is none."""
    values = np.array([p[name] for name in order.names])
    if isinstance(order, NestedClaims):
        return max(0.0, *(float(values[i] - values[j]) for i, j in _places(order)))
    line, level = np.where(order.flipped, 1 - values, values), np.array(order.level)
    same = max(float(np.ptp(line[level == value])) for value in set(order.level))
    return max(same, largest_decrease(line[np.lexsort((line, level))]))


def _places(order: NestedClaims) -> list[tuple[int, int]]:
    return [(order.names.index(first), order.names.index(second)) for first, second in order.implications]
