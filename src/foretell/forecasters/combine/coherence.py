"""From what a question says about its targets to probabilities that fit each other."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np
import numpy.typing as npt

from foretell.forecasters.combine.claims import (
    NEGATED,
    ClaimTemplate,
    NestedClaims,
    Order,
    OrderedClaims,
    Strike,
    orders,
    read_claim,
)
from foretell.forecasters.combine.crossfit import gain, later_splits
from foretell.forecasters.combine.projection import (
    Distance,
    at_most_one,
    check_distance,
    exactly_one,
    implies,
    nearest,
    rising,
)
from foretell.forecasters.combine.rows import Examples, TrialRows, logit, sigmoid
from foretell.forecasters.combine.rules import Training
from foretell.metrics.agreement import largest_decrease
from foretell.metrics.arrays import Floats, as_probabilities, as_vector, reject, same_shape
from foretell.metrics.clusters import factorise
from foretell.questions.question import Question, Target

# Horizons of one series: nothing orders them, but neighbouring ones should not differ much.
#
# A claim such as "higher than today" may be likely in a week and unlikely in a month, so no projection applies. What
# can be shared is noise: trials err at each horizon on their own. Smoothing is therefore learnt from the past, and
# stays off where past rounds show no gain.

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)


def smoothed(p: npt.ArrayLike, horizon: npt.ArrayLike, variance: npt.ArrayLike, *, strength: float) -> Floats:
    """Log-odds drawn to those of neighbouring horizons, the noisier the more.

    z minimises Σ (z_i − logit p_i)²/v_i + strength · Σ (z_i+1 − z_i)²/d_i, where v_i is the variance relative to its
    mean and d_i = ln(h_i+1/h_i) the distance of neighbours: a random walk over the logarithm of the horizon. Strength
    0 changes nothing; without bound, all horizons get the precision-weighted mean.

    >>> smoothed([0.2, 0.8, 0.2], [7, 30, 90], [1, 1, 1], strength=1.0).round(2).tolist()
    [0.31, 0.52, 0.34]
    """
    p, horizon = as_probabilities(as_vector(p, "p")), as_vector(horizon, "horizon")
    variance = as_vector(variance, "variance")
    same_shape(p=p, horizon=horizon, variance=variance)
    reject(~(variance > 0) | np.isinf(variance), variance, "variance", "is not a positive number")
    if not strength >= 0:
        raise ValueError(f"strength = {strength} is below 0")
    if strength == 0 or len(p) < 2:
        return p
    order = np.argsort(horizon, kind="stable")
    x, precision = logit(p[order]), variance.mean() / variance[order]
    steps = np.diff(np.log(np.maximum(horizon[order], 1.0)))
    pull = strength / np.maximum(steps, 1e-3)
    system = np.diag(precision) + np.diag(np.r_[pull, 0] + np.r_[0, pull]) - np.diag(pull, 1) - np.diag(pull, -1)
    out = np.empty(len(p))
    out[order] = sigmoid(np.linalg.solve(system, precision * x))
    return out


@dataclass(frozen=True, kw_only=True)
class FittedHorizonSmoothing:
    """Smoothing over the horizons of each asking, with the strength the past gave it; 0 leaves all as it is."""

    strength: float
    training: Training = field(default_factory=Training)
    told: str = ""

    def probabilities(self, rows: TrialRows) -> Floats:
        """The logit mean of the trials, smoothed over the rows of the same asking that have a horizon."""
        out = rows.raw.copy()
        usable = ~np.isnan(out) & ~np.isnan(rows.horizon)
        if self.strength == 0 or not usable.any():
            return out
        variance = _variance(rows)
        places = np.flatnonzero(usable)
        groups = factorise(rows.asking[usable])
        order = np.argsort(groups.codes, kind="stable")
        for group in np.split(places[order], np.cumsum(groups.sizes)[:-1]):
            out[group] = smoothed(out[group], rows.horizon[group], variance[group], strength=self.strength)
        return out


@dataclass(frozen=True, kw_only=True)
class HorizonSmoothing:
    """Learns how much to smooth: the strength that did best in the past, if choosing so paid on later rounds."""

    strengths: tuple[float, ...] = STRENGTHS
    noise: float = 1.0
    """Standard errors by which it must have paid."""

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "horizon smoothing"

    def fit(self, examples: Examples) -> FittedHorizonSmoothing:
        """The best strength on all examples, or 0 where no gain beyond noise was shown out of time."""
        training = Training.of(examples)
        if not len(examples):
            return FittedHorizonSmoothing(strength=0.0, training=training, told="off: no past")
        said = np.array(
            [FittedHorizonSmoothing(strength=s).probabilities(examples.rows) for s in (0.0, *self.strengths)]
        )
        loss = (said - examples.outcome) ** 2
        shown = np.full(len(examples), np.nan)
        for past, later in later_splits(examples):
            chosen = _best(loss[:, past], examples.weight[past])
            shown[later] = (loss[0] - loss[chosen])[later]
        found = gain(shown, examples.rows.cluster, examples.weight)
        if not found.beyond(self.noise):
            return FittedHorizonSmoothing(strength=0.0, training=training, told=f"off: it gains {found} out of time")
        strength = (0.0, *self.strengths)[_best(loss, examples.weight)]
        return FittedHorizonSmoothing(strength=strength, training=training, told=f"it gains {found} out of time")


def _best(loss: Floats, weight: Floats) -> int:
    return int(np.argmin(np.nansum(loss * weight, axis=1)))


def _variance(rows: TrialRows) -> Floats:
    """Of the mean log-odds of each row's trials, halfway to the mean over all rows; 1 where trials never differ."""
    x = logit(rows.trials)
    answered = ~np.isnan(x)
    n = np.maximum(answered.sum(axis=0), 1)
    centred = np.where(answered, x - np.where(answered, x, 0.0).sum(axis=0) / n, 0.0)
    own = (centred**2).sum(axis=0) / np.maximum(n - 1, 1) / n
    usual = float(own.mean())
    return (own + usual) / 2 if usual > 0 else np.ones(len(rows))


UNCHANGED = "unchanged"
OWN_DAY = re.compile(r"\b(by|before) (?:each|the|its) resolution date\b(?: listed below)?", re.IGNORECASE)
"""A deadline that stands for the day the target resolves."""


@dataclass(frozen=True, kw_only=True)
class CoherentProbabilities:
    """Probabilities that fit each other, and what made them."""

    p: Mapping[str, float]
    rules: tuple[str, ...]
    """What was recognised: exactly one, at most one, ladder, by date, nested; empty where nothing was."""
    gap: float
    """By how much the probabilities missed it before: the sum's distance, or the worst pair's; 0 where they fitted."""
    moved: float
    """The largest change of a probability."""

    @property
    def rule(self) -> str:
        """In one word or a few."""
        return " + ".join(dict.fromkeys(self.rules)) or UNCHANGED


def coherent(question: Question, p: Mapping[str, float], *, distance: Distance = "squared") -> CoherentProbabilities:
    """The nearest probabilities that fit what the question says: exclusive targets, strikes, deadlines.

    Targets are ordered only where their wording is the same but for a strike or a deadline, and where the question is
    not about how things stand on a day; anything else stays as it is. Targets that resolve on different days are
    compared by deadline only. Of exclusive targets some of which have no probability, at most one comes true.

    >>> q = Question(id="q", source="own", text="Gas price?", due="2025-07-01",
    ...              targets=(Target(id="Above 3.10"), Target(id="Above 3.15"), Target(id="3.10 or below")))
    >>> found = coherent(q, {"Above 3.10": 0.5, "Above 3.15": 0.6, "3.10 or below": 0.5})
    >>> found.rule, {target: round(value, 3) for target, value in found.p.items()}
    ('ladder', {'Above 3.10': 0.533, 'Above 3.15': 0.533, '3.10 or below': 0.467})
    """
    check_distance(distance)
    unknown = set(p) - {target.id for target in question.targets}
    if unknown:
        raise ValueError(f"question {question.id} has no target {min(unknown)!r}")
    values = _checked(p)
    if question.exclusive and len(question.targets) > 1 and p:
        return _exclusive(question, values, distance)
    asked = question.due.date()
    claims = {
        target.id: claim for target in question.targets if target.id in p and (claim := _claim(question, target, asked))
    }
    return _ordered(values, orders(claims), distance)


def coherent_across(
    questions: Iterable[Question], p: Mapping[str, float], *, distance: Distance = "squared"
) -> CoherentProbabilities:
    """The same for market questions with one target each, asked on one day: by question id.

    Questions of one source are compared by their texts, such as "… before April?" and "… before July?".
    """
    check_distance(distance)
    values = _checked(p)
    claims: dict[str, ClaimTemplate] = {}
    days: set[date] = set()
    for question in questions:
        if question.id not in p or question.kind != "market" or len(question.targets) != 1:
            continue
        days.add(question.due.date())
        claim = read_claim(question.text, question.due.date())
        if claim is not None:
            claims[question.id] = replace(claim, template=f"{question.source}\0{claim.template}", bare=False)
    if len(days) > 1:
        raise ValueError(f"questions were asked on {len(days)} days: compare those of one day")
    return _ordered(values, orders(claims), distance)


def _checked(p: Mapping[str, float]) -> dict[str, float]:
    if p:
        as_probabilities(list(p.values()))
    return {name: float(value) for name, value in p.items()}


def _claim(question: Question, target: Target, asked: date) -> ClaimTemplate | None:
    """The target's wording with what else must agree: the question's own words, and for strikes the day."""
    day = target.resolves_at.date().isoformat() if target.resolves_at else ""
    text = target.label or target.id
    claim = read_claim(OWN_DAY.sub(rf"\1 {day}", text) if day else text, asked)
    if claim is None or NEGATED.search(question.text):
        return None
    strikes_only = all(isinstance(slot, Strike) for slot in claim.slots)
    where = f"{question.text}\0{day if strikes_only else ''}"
    return replace(claim, template=f"{where}\0{claim.template}")


def _exclusive(question: Question, p: dict[str, float], distance: Distance) -> CoherentProbabilities:
    whole = len(p) == len(question.targets)
    before = np.array(list(p.values()))
    after = exactly_one(before, distance=distance) if whole else at_most_one(before, distance=distance)
    missed = abs(before.sum() - 1) if whole else max(0.0, before.sum() - 1)
    return CoherentProbabilities(
        p=dict(zip(p, map(float, after), strict=True)),
        rules=("exactly one" if whole else "at most one",),
        gap=float(missed),
        moved=float(np.abs(after - before).max()),
    )


def _ordered(p: dict[str, float], found: list[Order], distance: Distance) -> CoherentProbabilities:
    after, gaps = dict(p), [0.0]
    for order in found:
        gaps.append(_gap(order, p))
        after |= _chained(order, p, distance) if isinstance(order, OrderedClaims) else _nested(order, p, distance)
    return CoherentProbabilities(
        p=after,
        rules=tuple(order.rule for order in found),
        gap=max(gaps),
        moved=max((abs(after[name] - p[name]) for name in p), default=0.0),
    )


def _in_line(chain: OrderedClaims, p: Mapping[str, float]) -> Floats:
    values = np.array([p[name] for name in chain.names])
    return np.where(chain.flipped, 1 - values, values)


def _chained(chain: OrderedClaims, p: Mapping[str, float], distance: Distance) -> dict[str, float]:
    before = _in_line(chain, p)
    line = rising(before, level=chain.level, distance=distance)
    return {
        # 1 − (1 − p) is not always p: who has not moved keeps every digit.
        name: p[name] if now == then else float(1 - now if turned else now)
        for name, now, then, turned in zip(chain.names, line, before, chain.flipped, strict=True)
    }


def _nested(order: NestedClaims, p: Mapping[str, float], distance: Distance) -> dict[str, float]:
    rows = [implies(first, second) for first, second in order.implications]
    before = np.array([p[name] for name in order.names])
    if distance == "squared":
        return nearest({name: p[name] for name in order.names}, rows)
    # The log distance is the squared one of log-odds, for orders; these are moved into [0, 1] and back.
    x = logit(before)
    low, width = x.min(), max(float(np.ptp(x)), 1.0)
    found = nearest(dict(zip(order.names, ((x - low) / width).tolist(), strict=True)), rows)
    after = np.array([found[name] for name in order.names])
    moved = np.abs(after - (x - low) / width) > 1e-12
    return dict(zip(order.names, np.where(moved, sigmoid(low + width * after), before).tolist(), strict=True))


def _gap(order: Order, p: Mapping[str, float]) -> float:
    if isinstance(order, NestedClaims):
        return max(0.0, *(p[first] - p[second] for first, second in order.implications))
    line, level = _in_line(order, p), np.array(order.level)
    same = max(float(np.ptp(line[level == one])) for one in set(order.level))
    return max(same, largest_decrease(line[np.lexsort((line, level))]))
