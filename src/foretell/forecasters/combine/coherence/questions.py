"""From what a question says about its targets to probabilities that fit each other."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from foretell.evaluate.arrays import Floats, as_probabilities
from foretell.evaluate.consistency import worst_fall
from foretell.forecasters.combine.coherence.chains import rising
from foretell.forecasters.combine.coherence.claims import NEGATED, Claim, read_claim
from foretell.forecasters.combine.coherence.distance import Distance, check_distance
from foretell.forecasters.combine.coherence.exclusive import at_most_one, exactly_one
from foretell.forecasters.combine.coherence.orders import Chain, Nested, Order, orders
from foretell.forecasters.combine.coherence.relations import implies, nearest
from foretell.forecasters.combine.coherence.strikes import Strike
from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.questions.question import Question, Target

UNCHANGED = "unchanged"
OWN_DAY = re.compile(r"\b(by|before) (?:each|the|its) resolution date\b(?: listed below)?", re.IGNORECASE)
"""A deadline that stands for the day the target resolves."""


@dataclass(frozen=True, kw_only=True)
class Coherent:
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


def coherent(question: Question, p: Mapping[str, float], *, distance: Distance = "squared") -> Coherent:
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
) -> Coherent:
    """The same for market questions with one target each, asked on one day: by question id.

    Questions of one source are compared by their texts, such as "… before April?" and "… before July?".
    """
    check_distance(distance)
    values = _checked(p)
    claims: dict[str, Claim] = {}
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


def _claim(question: Question, target: Target, asked: date) -> Claim | None:
    """The target's wording with what else must agree: the question's own words, and for strikes the day."""
    day = target.resolves_at.date().isoformat() if target.resolves_at else ""
    text = target.label or target.id
    claim = read_claim(OWN_DAY.sub(rf"\1 {day}", text) if day else text, asked)
    if claim is None or NEGATED.search(question.text):
        return None
    strikes_only = all(isinstance(slot, Strike) for slot in claim.slots)
    where = f"{question.text}\0{day if strikes_only else ''}"
    return replace(claim, template=f"{where}\0{claim.template}")


def _exclusive(question: Question, p: dict[str, float], distance: Distance) -> Coherent:
    whole = len(p) == len(question.targets)
    before = np.array(list(p.values()))
    after = exactly_one(before, distance=distance) if whole else at_most_one(before, distance=distance)
    missed = abs(before.sum() - 1) if whole else max(0.0, before.sum() - 1)
    return Coherent(
        p=dict(zip(p, map(float, after), strict=True)),
        rules=("exactly one" if whole else "at most one",),
        gap=float(missed),
        moved=float(np.abs(after - before).max()),
    )


def _ordered(p: dict[str, float], found: list[Order], distance: Distance) -> Coherent:
    after, gaps = dict(p), [0.0]
    for order in found:
        gaps.append(_gap(order, p))
        after |= _chained(order, p, distance) if isinstance(order, Chain) else _nested(order, p, distance)
    return Coherent(
        p=after,
        rules=tuple(order.rule for order in found),
        gap=max(gaps),
        moved=max((abs(after[name] - p[name]) for name in p), default=0.0),
    )


def _in_line(chain: Chain, p: Mapping[str, float]) -> Floats:
    values = np.array([p[name] for name in chain.names])
    return np.where(chain.flipped, 1 - values, values)


def _chained(chain: Chain, p: Mapping[str, float], distance: Distance) -> dict[str, float]:
    before = _in_line(chain, p)
    line = rising(before, level=chain.level, distance=distance)
    return {
        # 1 − (1 − p) is not always p: who has not moved keeps every digit.
        name: p[name] if now == then else float(1 - now if turned else now)
        for name, now, then, turned in zip(chain.names, line, before, chain.flipped, strict=True)
    }


def _nested(order: Nested, p: Mapping[str, float], distance: Distance) -> dict[str, float]:
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
    if isinstance(order, Nested):
        return max(0.0, *(p[first] - p[second] for first, second in order.implications))
    line, level = _in_line(order, p), np.array(order.level)
    same = max(float(np.ptp(line[level == one])) for one in set(order.level))
    return max(same, worst_fall(line[np.lexsort((line, level))]))
