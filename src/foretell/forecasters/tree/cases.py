"""Stated cases: the chance of a claim in imagined situations, and the table over all situations that follows from them.

In a situation, exactly some children have turned out in the claim's favour and the others against it. A child that
helps is in its favour if it is true, one that hinders if it is false. Stated are the situations in which none, all,
only one, or all but one of the children are favourable. They stand as stated; the kind of the claim fills the others.

Situations are numbered like the rows of a truth table: the first child varies slowest, and favourable comes before
unfavourable. So the first situation is that all children are favourable, and the last that none is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import exp, log, prod
from typing import Literal

from foretell.frozen import frozen
from foretell.number_text import brief_percent

CasesKind = Literal["all", "any", "at_least", "weigh"]
KINDS: tuple[CasesKind, ...] = ("all", "any", "at_least", "weigh")
HELPS, HINDERS = "helps", "hinders"
LEAST, MOST = 0.005, 0.995
"""Chances are kept between these before `weigh` takes their log-odds."""
FARTHEST = 6.0
"""Largest log-odds, in absolute value, of either sum in `weigh`."""
MOST_CHILDREN = 8
"""Maximum number of children of a link by cases, because its table has 2ⁿ entries."""
SMALLEST_RATIO, LARGEST_RATIO = 1e-9, 1e9
"""Odds ratios are kept between these, so that a child whose chance is set to 0 or 1 stays there."""


@frozen
class StatedCases:
    """What a synthesizer states about a claim and its children."""

    kind: str
    """One of `KINDS`, unless the reply is not valid."""
    direction: Mapping[str, str]
    """`helps` or `hinders` for every child, in the order of the children."""
    none: float | None
    all: float | None
    """Chance if no child is favourable (`none`), and if all are (`all`); None if it is missing."""
    only: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    but: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    """Chance if only this child is favourable (`only`), and if all but this one are (`but`); None if that cannot
    happen, as when one child contains another."""
    k: int | None = None
    """How many favourable children suffice, for the kind `at_least`."""
    order: tuple[str, ...] = ()
    """Order in which `given` reads the children; empty for their own order."""
    given: Mapping[str, float] = field(default_factory=dict[str, float])
    """Chance that a child is favourable if all earlier ones are, or, for the kind `any`, if none of them is."""
    outside: str = ""
    """What else decides."""

    @property
    def children(self) -> tuple[str, ...]:
        """The children in their order."""
        return tuple(self.direction)

    @property
    def chain(self) -> tuple[str, ...]:
        """The children in the order in which `given` reads them."""
        return self.order or self.children

    def with_case(self, case: str, child: str, chance: float) -> "StatedCases":
        """Return the cases with another chance in one of them. Of two children, all but one is only the other."""
        if not child:
            return replace(self, **{case: chance})
        if case == "but" and len(self.children) == 2:
            case, child = "only", next(other for other in self.children if other != child)
        return replace(self, **{case: {**getattr(self, case), child: chance}})

    def favourable(self, child: str, p: float) -> float:
        """Return the chance that a child is favourable, given the chance that it is true."""
        return p if self.direction[child] == HELPS else 1.0 - p


Situation = frozenset[str]
"""The children that are favourable."""


def situations(children: Sequence[str]) -> list[Situation]:
    """Return all situations in the order of a table.

    >>> [sorted(situation) for situation in situations(("P1", "P2"))]
    [['P1', 'P2'], ['P1'], ['P2'], []]
    """
    rows: list[Situation] = [frozenset()]
    for child in reversed(children):
        rows = [*(row | {child} for row in rows), *rows]
    return rows


def stated_situations(cases: StatedCases) -> dict[Situation, float]:
    """Return the chances that were stated, by situation. With two children, `only` one is `but` the other.

    >>> cases = StatedCases(kind="all", direction={"P1": "helps"}, none=0.1, all=0.8, only={"P1": 0.8}, but={"P1": 0.1})
    >>> {tuple(situation): p for situation, p in stated_situations(cases).items()}
    {('P1',): 0.8, (): 0.1}
    """
    whole = frozenset(cases.children)
    stated: dict[Situation, float | None] = {whole: cases.all, frozenset(): cases.none}
    for child in cases.children:
        stated.setdefault(frozenset({child}), cases.only.get(child))
    for child in cases.children:
        if stated.get(whole - {child}) is None:
            stated[whole - {child}] = cases.but.get(child)
    return {situation: p for situation, p in stated.items() if p is not None}


# How each kind continues the stated cases.

Continuation = Callable[[Situation], float]


def _continue_all(cases: StatedCases, stated: Mapping[Situation, float]) -> Continuation:
    """Without one of the children, the claim is as likely as without any."""
    whole, none = frozenset(cases.children), stated[frozenset()]
    return lambda situation: stated[whole] if situation == whole else none


def _continue_any(cases: StatedCases, stated: Mapping[Situation, float]) -> Continuation:
    """Each favourable child brings the claim about independently of the others."""
    without = 1.0 - stated[frozenset()]
    alone = {child: stated[frozenset({child})] for child in cases.children if frozenset({child}) in stated}
    typical = sum(alone.values()) / len(alone) if alone else stated[frozenset(cases.children)]

    def chance(situation: Situation) -> float:
        if without <= 0.0:
            return 1.0
        return 1.0 - without * prod((1.0 - alone.get(child, typical)) / without for child in situation)

    return chance


def _continue_at_least(cases: StatedCases, stated: Mapping[Situation, float]) -> Continuation:
    """The claim is as likely as in the stated cases on the same side of k, on average."""
    enough = cases.k or 1
    sides: dict[bool, list[float]] = {True: [], False: []}
    for situation, p in stated.items():
        sides[len(situation) >= enough].append(p)

    def chance(situation: Situation) -> float:
        side = sides[len(situation) >= enough]
        return sum(side) / len(side)

    return chance


def _continue_weigh(cases: StatedCases, stated: Mapping[Situation, float]) -> Continuation:
    """Log-odds add up: from `none` in situations with few favourable children, from `all` in those with many."""
    whole, n = frozenset(cases.children), len(cases.children)
    z = {situation: logit(kept(p)) for situation, p in stated.items()}
    none, top = z[frozenset()], z[whole]
    gains = {child: z[frozenset({child})] - none for child in cases.children if frozenset({child}) in z}
    losses = {child: top - z[whole - {child}] for child in cases.children if whole - {child} in z}
    # A child of which one case cannot happen counts as in its other case; failing both, as the average child.
    usual = (top - none) / n

    def chance(situation: Situation) -> float:
        share = (len(situation) - 1) / (n - 2) if n > 2 else 0.5
        up = none + sum(gains.get(child, losses.get(child, usual)) for child in situation)
        down = top - sum(losses.get(child, gains.get(child, usual)) for child in whole - situation)
        up, down = (min(max(value, -FARTHEST), FARTHEST) for value in (up, down))
        return 1.0 / (1.0 + exp(-((1.0 - share) * up + share * down)))

    return chance


_CONTINUATIONS: Mapping[str, Callable[[StatedCases, Mapping[Situation, float]], Continuation]] = {
    "all": _continue_all,
    "any": _continue_any,
    "at_least": _continue_at_least,
    "weigh": _continue_weigh,
}


def kept(p: float) -> float:
    """Return the chance within [0.005, 0.995], so that it has log-odds."""
    return min(max(p, LEAST), MOST)


def logit(p: float) -> float:
    """Return the log-odds."""
    return log(p / (1.0 - p))


def situation_table(cases: StatedCases) -> tuple[float, ...]:
    """Return the chance of the claim in every situation. The stated cases must be complete.

    A situation that was not stated is never less likely than one with fewer favourable children, nor more likely than a
    stated one with more, so that the table is monotone if the stated cases are.

    >>> cases = StatedCases(kind="all", direction={"P1": "helps", "P2": "helps"}, none=0.0, all=0.9, only={"P1": 0.1})
    >>> situation_table(cases)
    (0.9, 0.1, 0.0, 0.0)
    """
    stated = stated_situations(cases)
    raw = _CONTINUATIONS[cases.kind](cases, stated)
    # `weigh` does not tell chances beyond its limits apart.
    limit = kept if cases.kind == "weigh" else float
    table: dict[Situation, float] = {}
    for situation in sorted(situations(cases.children), key=len):
        if situation in stated:
            table[situation] = stated[situation]
            continue
        low = max(table[situation - {child}] for child in situation)
        high = min(limit(p) for other, p in stated.items() if situation < other)
        table[situation] = min(max(raw(situation), low), high)
    return tuple(table[situation] for situation in situations(cases.children))


def misfits(cases: StatedCases) -> dict[Situation, float]:
    """Return for every stated case by how much the kind misses it. `weigh` fits all cases."""
    if cases.kind == "weigh":
        return {}
    stated = stated_situations(cases)
    raw = _CONTINUATIONS[cases.kind](cases, stated)
    return {situation: abs(raw(situation) - p) for situation, p in stated.items()}


# Children that depend on each other.


@frozen
class GivenStep:
    """One child of a chain: what its chance can be once the earlier ones are known."""

    child: str
    p: float
    """Chance that it is favourable."""
    prefix: float
    """Chance π that all earlier children are favourable; for the kind `any`, that none of them is."""
    low: float
    high: float
    """Bounds of the chance in that case: (p + π − 1)/π and p/π, within [0, 1]."""
    stated: float | None
    """The chance that was stated for that case; None if it was not."""
    given: float
    """The chance used: as stated, but within the bounds, and p if nothing was stated."""
    rest: float
    """The chance otherwise, (p − π·given)/(1 − π), so that p stays the chance overall."""


def given_steps(cases: StatedCases, p: Mapping[str, float]) -> list[GivenStep]:
    """Return the chain of the children in its order. `p` holds the chance that each child is true."""
    steps: list[GivenStep] = []
    prefix = 1.0
    for child in cases.chain:
        own = cases.favourable(child, p[child])
        low, high = (max(0.0, (own + prefix - 1.0) / prefix), min(1.0, own / prefix)) if prefix > 0 else (0.0, 1.0)
        stated = cases.given.get(child)
        given = own if stated is None else min(max(stated, low), high)
        rest = min(max((own - prefix * given) / (1.0 - prefix), 0.0), 1.0) if prefix < 1 else own
        steps.append(
            GivenStep(child=child, p=own, prefix=prefix, low=low, high=high, stated=stated, given=given, rest=rest)
        )
        prefix *= 1.0 - given if cases.kind == "any" else given
    return steps


def odds_ratio(chance: float, p: float) -> float:
    """Return the odds of `chance` divided by the odds of `p`, within limits; 1 if p is 0 or 1.

    >>> odds_ratio(0.75, 0.5), odds_ratio(1.0, 0.5), odds_ratio(0.3, 1.0)
    (3.0, 1000000000.0, 1.0)
    """
    if not 0 < p < 1:
        return 1.0
    above, below = chance * (1.0 - p), (1.0 - chance) * p
    return min(max(above / below if below > 0 else LARGEST_RATIO, SMALLEST_RATIO), LARGEST_RATIO)


def with_odds(p: float, ratio: float) -> float:
    """Return the chance whose odds are `ratio` times those of p; 0 and 1 stay.

    >>> with_odds(0.5, 9.0), with_odds(1.0, 1e-9)
    (0.9, 1.0)
    """
    return p * ratio / (1.0 - p + ratio * p)


def given_ratios(cases: StatedCases, p: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return for every child the odds ratios of its chance as `given` and of its chance otherwise to its own chance."""
    return {
        step.child: (odds_ratio(step.given, step.p), odds_ratio(step.rest, step.p)) for step in given_steps(cases, p)
    }


# Cases in words, for prompts, pages and reports.

_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")
assert len(_NUMBERS) > MOST_CHILDREN


def _one_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


@frozen(kw_only=False)
class CaseWords:
    """Names the situations of a claim in words."""

    cases: StatedCases
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """How to call each child; its id if it has no entry."""

    @property
    def _plain(self) -> bool:
        """Whether favourable means true for all children."""
        return all(direction == HELPS for direction in self.cases.direction.values())

    def name(self, child: str) -> str:
        """Return the name of a child."""
        return self.names.get(child, child)

    def situation(self, situation: Situation, also: Sequence[Situation] = ()) -> str:
        """Name a stated situation, and others like it, such as "if only P1 or P2 fails"."""
        children = self.cases.children
        several = "come true" if self._plain else "turn out in its favour"
        single = "comes true" if self._plain else "turns out in its favour"
        against = "fails" if self._plain else "turns out against it"
        if len(situation) == len(children):
            count = "both" if len(children) == 2 else f"all {_NUMBERS[len(children)]}"
            return f"if {count} {several}" if len(children) > 1 else f"if {self.name(*children)} {single}"
        if not situation:
            return f"if none {single}" if len(children) > 1 else f"if {self.name(*children)} {against}"
        alike = (situation, *also)
        if len(situation) == 1:
            return f"if only {_one_of([self.name(*item) for item in alike])} {single}"
        missing = [self.name(*(frozenset(children) - item)) for item in alike]
        return f"if only {_one_of(missing)} {against}"


def cases_in_words(cases: StatedCases, names: Mapping[str, str] | None = None) -> str:
    """Say the stated cases in a sentence; equal cases are named together.

    >>> one = dict.fromkeys(("P1", "P2", "P3"), 0.02)
    >>> print(cases_in_words(StatedCases(
    ...     kind="all", direction=dict.fromkeys(one, "helps"), none=0.0, all=0.97, only=one, but={**one, "P1": 0.1}
    ... ), {"P1": "the court"}))
    If all three come true the claim has 97 %; if only the court fails, 10 %; if only P2 or P3 fails, 2 %; if only \
the court, P2 or P3 comes true, 2 %; if none comes true, 0 %.
    """
    words, stated = CaseWords(cases, names or {}), stated_situations(cases)
    children = frozenset(cases.children)
    parts: list[str] = []
    if children in stated:
        parts.append(f"{words.situation(children)} the claim has {brief_percent(stated[children])}")
    singles = [frozenset({child}) for child in cases.children if len(children) > 1]
    all_but_single = [children - single for single in singles] if len(children) > 2 else []
    rows = (all_but_single, singles, [frozenset[str]()])
    for row in rows:
        alike: dict[float, list[Situation]] = {}
        for situation in row:
            if situation in stated:
                alike.setdefault(stated[situation], []).append(situation)
        parts += [f"{words.situation(first, others)}, {brief_percent(p)}" for p, (first, *others) in alike.items()]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def kind_in_words(kind: str, k: int | None = None) -> str:
    """Say how the children of a claim of this kind bear on it."""
    at_least = f"at least {k} of them are needed"
    words = {"all": "all of them are needed", "any": "any one of them suffices", "at_least": at_least}
    return words.get(kind, "each of them counts")


def kind_heading(kind: str, count: int, k: int | None = None, *, ordered: bool = False) -> str:
    """Say in a few words what the children of a claim of this kind are.

    >>> kind_heading("all", 4, ordered=True), kind_heading("any", 3), kind_heading("at_least", 3, 2)
    ('four conditions in sequence', 'three ways, one is enough', 'three conditions, two are enough')
    """
    number, enough = (
        _NUMBERS[many] if 0 <= many < len(_NUMBERS) else str(many) for many in (count, 1 if kind == "any" else k or 1)
    )
    nouns = {"any": "way", "weigh": "consideration", "split": "scenario"}
    counted = f"{number} {nouns.get(kind, 'condition')}{'' if count == 1 else 's'}"
    if count == 1 or kind not in KINDS[:3]:
        return counted
    if kind == "all":
        return f"{counted} in sequence" if ordered else f"{counted}, {'both' if count == 2 else 'all'} needed"
    return f"{counted}, {enough} {'is' if enough == _NUMBERS[1] else 'are'} enough"
