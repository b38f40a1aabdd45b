"""What a question's outcomes say about each other: which imply which, and which exclude each other.

Chains and exclusive sets are those of Prophet Arena (2025, appendix D.4). They come from the question itself, from its
wording, or from a model that reads it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from foretell.forecasters.combine.coherence.claims import NEGATED, Claim, read_claim
from foretell.forecasters.combine.coherence.orders import Chain as Line
from foretell.forecasters.combine.coherence.orders import Order, orders
from foretell.forecasters.combine.coherence.questions import OWN_DAY
from foretell.forecasters.combine.coherence.strikes import Strike
from foretell.questions.question import Question, Target

Origin = Literal["declared", "wording", "judge"]
MOST_CHAINS = 200
"""Of one question; a dense order has more paths than anybody would average."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """One claim of a chain: an outcome, or that it does not come true."""

    target: str
    negated: bool = False

    def chance(self, p: Mapping[str, float]) -> float:
        """Its probability."""
        return 1 - p[self.target] if self.negated else p[self.target]


Chain = tuple[Link, ...]
"""Claims from the strongest to the weakest: each implies the next, so probabilities may not fall."""


@dataclass(frozen=True, kw_only=True)
class Structure:
    """What is known about the outcomes of one question."""

    chains: tuple[Chain, ...] = ()
    chains_by: Origin = "wording"
    exclusive: tuple[str, ...] = ()
    """Outcomes of which exactly one comes true; empty where there is no such set."""
    exclusive_by: Origin = "declared"
    notes: tuple[str, ...] = ()


def plain_structure(question: Question) -> Structure:
    """What the question declares and what its wording shows; nothing is guessed.

    >>> q = Question(id="q", source="own", text="Gas price?", due="2025-07-01",
    ...              targets=(Target(id="Above 3.10"), Target(id="Above 3.15"), Target(id="Above 3.20")))
    >>> [link.target for link in plain_structure(q).chains[0]]
    ['Above 3.20', 'Above 3.15', 'Above 3.10']
    """
    if question.exclusive and len(question.targets) > 1:
        return Structure(exclusive=tuple(target.id for target in question.targets))
    claims = {target.id: claim for target in question.targets if (claim := _claim(question, target)) is not None}
    return Structure(chains=tuple(chain for order in orders(claims) for chain in _chains(order)))


def _claim(question: Question, target: Target) -> Claim | None:
    """The target's wording; strikes are compared only where they are about the same day."""
    day = target.resolves_at.date().isoformat() if target.resolves_at else ""
    text = target.label or target.id
    claim = read_claim(OWN_DAY.sub(rf"\1 {day}", text) if day else text, question.due.date())
    if claim is None or NEGATED.search(question.text):
        return None
    strikes_only = all(isinstance(slot, Strike) for slot in claim.slots)
    return replace(claim, template=f"{day if strikes_only else ''}\0{claim.template}")


def _chains(order: Order) -> list[Chain]:
    if not isinstance(order, Line):
        return [tuple(Link(target=name) for name in path) for path in maximal_paths(order.implications)]
    # Claims on one level say the same: the first stands for all.
    first: dict[int, Link] = {}
    for name, level, flipped in zip(order.names, order.level, order.flipped, strict=True):
        first.setdefault(level, Link(target=name, negated=flipped))
    chain = tuple(first[level] for level in sorted(first))
    return [chain] if len(chain) > 1 else []


def maximal_paths(implications: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Every maximal chain of an order given by pairs (stronger, weaker); pairs that go in a circle are left out.

    >>> maximal_paths([("a", "b"), ("b", "c"), ("a", "c"), ("x", "c")])
    [('a', 'b', 'c'), ('x', 'c')]
    """
    reached = _reached(implications)
    below = {
        one: {other for other in weaker if one not in reached.get(other, set())} for one, weaker in reached.items()
    }
    direct = {
        one: sorted(other for other in weaker if not any(other in below.get(mid, set()) for mid in weaker))
        for one, weaker in below.items()
    }
    starts = sorted(one for one, weaker in direct.items() if weaker and not any(one in b for b in below.values()))
    paths: list[tuple[str, ...]] = []
    open_paths = [(one,) for one in reversed(starts)]
    while open_paths and len(paths) < MOST_CHAINS:
        path = open_paths.pop()
        further = direct.get(path[-1], [])
        if further:
            open_paths += [(*path, one) for one in reversed(further)]
        else:
            paths.append(path)
    return paths


def circular(implications: Iterable[tuple[str, str]]) -> bool:
    """Whether some claim would imply itself through others.

    >>> circular([("a", "b"), ("b", "a")]), circular([("a", "b"), ("b", "c")])
    (True, False)
    """
    return any(one in weaker for one, weaker in _reached(implications).items())


def _reached(implications: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """What each claim implies, directly or through others."""
    steps: dict[str, set[str]] = {}
    for stronger, weaker in implications:
        if stronger != weaker:
            steps.setdefault(stronger, set()).add(weaker)
    found: dict[str, set[str]] = {}
    for start in steps:
        seen: set[str] = set()
        waiting = list(steps[start])
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += steps.get(one, ())
        found[start] = seen
    return found


def links(chains: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """The implications of chains, step by step."""
    return [pair for chain in chains for pair in pairwise(chain)]
