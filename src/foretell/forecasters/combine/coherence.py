"""Makes a question's probabilities consistent with what it says about its targets."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from foretell.forecasters.combine.claims import NEGATED, ClaimTemplate, NestedClaims, Order, Strike, orders, read_claim
from foretell.forecasters.combine.projection import Distance, at_most_one, check_distance, exactly_one, implied, rising
from foretell.metrics.agreement import largest_decrease
from foretell.metrics.arrays import as_probabilities
from foretell.questions.question import Question, Target

OWN_DAY = re.compile(r"\b(by|before) (?:each|the|its) resolution date\b(?: listed below)?", re.IGNORECASE)
"""A deadline that stands for the day on which the target resolves."""


@dataclass(frozen=True, kw_only=True)
class CoherentProbabilities:
    """Coherent probabilities, and the rules that made them so."""

    p: Mapping[str, float]
    rules: tuple[str, ...]
    """The relations recognised: exactly one, at most one, ladder, by date, nested; empty if none."""
    gap: float
    """The largest violation before: the sum's distance, or the worst pair's; 0 if there was none."""
    moved: float
    """The largest change of a probability."""

    @property
    def rule(self) -> str:
        """The rules as a short text."""
        return " + ".join(dict.fromkeys(self.rules)) or "unchanged"


def coherent(question: Question, p: Mapping[str, float], *, distance: Distance = "squared") -> CoherentProbabilities:
    """The nearest probabilities consistent with the question: exclusive targets, strikes, deadlines.

    Targets are ordered only if their wording is the same except for a strike or a deadline, and if the question is not
    about the state on a day; anything else stays as it is. Targets that resolve on different days are compared by
    deadline only. If targets exclude each other and some of them have no probability, at most one is assumed to come
    true.

    >>> q = Question(id="q", source="own", text="Gas price?", due="2025-07-01",
    ...              targets=(Target(id="Above 3.10"), Target(id="Above 3.15"), Target(id="3.10 or below")))
    >>> found = coherent(q, {"Above 3.10": 0.5, "Above 3.15": 0.6, "3.10 or below": 0.5})
    >>> found.rule, {target: round(value, 3) for target, value in found.p.items()}
    ('ladder', {'Above 3.10': 0.533, 'Above 3.15': 0.533, '3.10 or below': 0.467})
    """
    check_distance(distance)
    if unknown := set(p) - {target.id for target in question.targets}:
        raise ValueError(f"question {question.id} has no target {min(unknown)!r}")
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
        claims = {t.id: claim for t in question.targets if t.id in p and (claim := target_claim(question, t))}
        recognised = orders(claims)
        rules = tuple(order.rule for order in recognised)
        for order in recognised:
            fitted, gap = _ordered(order, p, distance)
            gaps.append(gap)
            after |= fitted
    moved = max((abs(after[name] - p[name]) for name in p), default=0.0)
    return CoherentProbabilities(p=after, rules=rules, gap=max(gaps), moved=moved)


def target_claim(question: Question, target: Target) -> ClaimTemplate | None:
    """The target's claim, with all that must agree in its template: the question's text, and for strikes the day."""
    day = target.resolves_at.date().isoformat() if target.resolves_at else ""
    text = target.label or target.id
    claim = read_claim(OWN_DAY.sub(rf"\1 {day}", text) if day else text, question.due.date())
    if claim is None or NEGATED.search(question.text):
        return None
    strikes_only = all(isinstance(slot, Strike) for slot in claim.slots)
    return replace(claim, template=f"{question.text}\0{day if strikes_only else ''}\0{claim.template}")


def _ordered(order: Order, p: Mapping[str, float], distance: Distance) -> tuple[dict[str, float], float]:
    """The probabilities of one order made coherent, and by how much they violated it."""
    before = np.array([p[name] for name in order.names])
    if isinstance(order, NestedClaims):
        pairs = [(order.names.index(first), order.names.index(second)) for first, second in order.implications]
        gap = max(0.0, *(float(before[i] - before[j]) for i, j in pairs))
        return dict(zip(order.names, implied(before, pairs, distance=distance).tolist(), strict=True)), gap
    line, level = np.where(order.flipped, 1 - before, before), np.array(order.level)
    fitted = rising(line, level=level, distance=distance)
    # 1 − (1 − p) is not always p: who has not moved keeps every digit.
    after = np.where(fitted == line, before, np.where(order.flipped, 1 - fitted, fitted))
    same = max(float(np.ptp(line[level == one])) for one in set(order.level))
    gap = max(same, largest_decrease(line[np.lexsort((line, level))]))
    return dict(zip(order.names, after.tolist(), strict=True)), gap
