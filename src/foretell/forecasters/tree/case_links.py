"""Links by cases: the claim's chance is stated for imagined situations of its children, or for exclusive scenarios."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from math import isfinite
from typing import Any, ClassVar, Self

from foretell.forecasters.tree.arithmetic.gates import Body, GateBuilder, SeparateBody
from foretell.forecasters.tree.cases import (
    HELPS,
    HINDERS,
    MOST_CHILDREN,
    CaseWords,
    StatedCases,
    cases_in_words,
    given_ratios,
    kind_heading,
    kind_in_words,
    situation_table,
    situations,
    stated_situations,
    with_odds,
)
from foretell.forecasters.tree.links import ChainStep, LinearLink, Link, every_child_problems
from foretell.forecasters.tree.text import TreeProblem, enumeration
from foretell.frozen import frozen
from foretell.number_text import brief_percent
from foretell.questions.forecast import Numeric
from foretell.questions.thresholds import LEVELS, date_of

SHOWN = 3
"""Number of situations that the arithmetic of a claim shows, those that contribute most."""
NONE, ALL, ONLY, BUT = CASES = ("none", "all", "only", "but")
"""Names of the stated cases. Of scenarios, `only` is what follows from one of them, and `none` if none happens."""
GIVEN = "given"
"""Name of the chance of a child after the earlier ones of a chain."""
SUM_LIMIT = 1.02
"""Largest sum of the chances of exclusive scenarios; above it they are scaled."""


@frozen
class CasesLink(Link):
    """P = Σ P(situation)·chance(situation) over all situations of the children. Each kind is a subclass.

    The children of the link are those of `direction`, in that order, which is also the order of the table.
    """

    judged_together: ClassVar[bool] = True  # A situation says something about every child.
    direction: Mapping[str, str]
    none: float
    all: float
    only: Mapping[str, float] = field(default_factory=dict[str, float])
    but: Mapping[str, float] = field(default_factory=dict[str, float])
    """Chance of the claim if none or all of the children are favourable, only this one, or all but this one."""
    table: tuple[float, ...] = ()
    """Chance of the claim in every situation, in the order of `situations`; empty to compute it from the cases."""
    outside: str = ""
    """What else decides."""

    @property
    def stated(self) -> StatedCases:
        """The cases as they were stated."""
        return StatedCases(
            kind=self.kind,
            direction=self.direction,
            none=self.none,
            all=self.all,
            only=self.only,
            but=self.but,
            outside=self.outside,
        )

    @property
    def chances(self) -> tuple[float, ...]:
        """The table, computed if it is not stored."""
        return self.table or situation_table(self.stated)

    def stated_chances(self, option: str = "") -> dict[tuple[str, str], float]:
        """Return the chance in every stated case."""
        chances = {(NONE, ""): self.none, (ALL, ""): self.all}
        for case, stated in ((ONLY, self.only), (BUT, self.but)):
            chances |= {(case, child): p for child, p in stated.items()}
        return chances

    def with_case(
        self, case: str, child: str, chance: float, p: Mapping[str, float], option: str = ""
    ) -> "CasesLink | None":
        """State another chance for one case; the kind fills the situations that were not stated again."""
        chained = [GIVEN] if self.stated.given else []
        named = case in (NONE, ALL) if not child else case in (ONLY, BUT, *chained) and child in self.direction
        return cases_link(self.stated.with_case(case, child, chance), p) if named else None

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Check that the cases are chances of these children, and that the table agrees with them."""
        problems = [*every_child_problems(node, "link.direction", self.direction, children), *self._wrong_cases(node)]
        if len(self.direction) > MOST_CHILDREN:
            text, hint = f"{len(self.direction)} children are too many for cases", "put some of them under one claim"
            problems.append(TreeProblem(node=node, field="link.direction", text=text, hint=hint))
        yield from problems
        if not problems and self.table:
            yield from self._wrong_table(node)

    def _wrong_cases(self, node: str) -> Iterator[TreeProblem]:
        for child, direction in self.direction.items():
            if direction not in (HELPS, HINDERS):
                text = f"{direction!r} is neither {HELPS} nor {HINDERS}"
                yield TreeProblem(node=node, field=f"link.direction.{child}", text=text)
        own = {"none": self.none, "all": self.all}
        cases = {f"{name}.{child}": p for name in ("only", "but") for child, p in getattr(self, name).items()}
        for place, p in {**own, **cases}.items():
            if place.partition(".")[2] not in ("", *self.direction):
                yield TreeProblem(node=node, field=f"link.{place}", text="is not a child with a direction")
            if not (isfinite(p) and 0 <= p <= 1):
                yield TreeProblem(node=node, field=f"link.{place}", text=f"{p:g} is outside [0, 1]")

    def _wrong_table(self, node: str) -> Iterator[TreeProblem]:
        hint, place = "remove the table, and it is computed again", "link.table"
        if len(self.table) != 2 ** len(self.direction):
            text = f"has {len(self.table)} entries instead of {2 ** len(self.direction)}"
            yield TreeProblem(node=node, field=place, text=text, hint=hint)
            return
        if not all(isfinite(p) and 0 <= p <= 1 for p in self.table):
            yield TreeProblem(node=node, field=place, text="has entries outside [0, 1]", hint=hint)
        stored = dict(zip(situations(self.stated.children), self.table, strict=True))
        if any(abs(stored[situation] - p) > 1e-9 for situation, p in stated_situations(self.stated).items()):
            yield TreeProblem(node=node, field=place, text="differs from the stated cases", hint=hint)

    def compile(self, node: str, children: Sequence[str], gates: GateBuilder) -> Body:
        """Express the table as nested decisions on the children, with one independent event per situation."""
        literals = [gates.var(child) if way == HELPS else -gates.var(child) for child, way in self.direction.items()]
        return gates.exactly(_decision(node, gates, self.chances, lambda place, _: literals[place]))

    def with_child(self, child: str, weight: float) -> Self:
        """Add a child that changes nothing, until the cases are stated again; the weight is not used."""
        return self._of({**self.direction, child: HELPS}, tuple(chain.from_iterable((p, p) for p in self.chances)))

    def without_child(self, child: str, p: float) -> Self:
        """Average over a child, so that the claim keeps its probability until the cases are stated again."""
        rows = dict(zip(situations(self.stated.children), self.chances, strict=True))
        own = self.stated.favourable(child, p)
        direction = {other: way for other, way in self.direction.items() if other != child}
        return self._of(
            direction, tuple(own * rows[row | {child}] + (1 - own) * rows[row] for row in situations(tuple(direction)))
        )

    def _of(self, direction: Mapping[str, str], table: tuple[float, ...]) -> Self:
        """Return the link for other children, with the cases that stand in their table."""
        rows = dict(zip(situations(tuple(direction)), table, strict=True))
        whole, some = frozenset(direction), len(direction) > 1
        return replace(
            self,
            direction=direction,
            none=rows[frozenset()],
            all=rows[whole],
            only={child: rows[frozenset({child})] for child in direction if some},
            but={child: rows[whole - {child}] for child in direction if len(direction) > 2},
            table=table,
        )

    @property
    def heading(self) -> str:
        """How many children there are, and how many of them are needed."""
        return kind_heading(self.kind, len(self.direction), self.stated.k, ordered=bool(self.stated.given))

    def describe(self, children: Sequence[str]) -> str:
        """Say the kind and the cases in words, and what else decides."""
        kind = kind_in_words(self.kind, self.stated.k)
        outside = f" What else decides: {self.outside.strip().rstrip('.')}." if self.outside.strip() else ""
        return f"Of {enumeration(list(self.direction))}, {kind}. {cases_in_words(self.stated)}{outside}"

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the situations that contribute most: how likely each is, times the chance of the claim in it."""
        try:
            numbers = {child: float(p[child]) for child in self.direction}
        except ValueError:
            return ""  # A child has no probability.
        rows = situations(self.stated.children)
        weights = situation_weights(self, numbers)
        parts = sorted(zip(weights, self.chances, rows, strict=True), key=lambda part: -part[0] * part[1])
        shown = [f"{weight:.3g} × {chance:.3g} ({self.situation_name(row)})" for weight, chance, row in parts[:SHOWN]]
        rest = sum(weight * chance for weight, chance, _ in parts[SHOWN:])
        return " + ".join([*shown, *([f"{rest:.3g} (others)"] if rest >= 0.0005 else [])])

    def situation_name(self, situation: frozenset[str]) -> str:
        """Name a situation, whether it was stated or not."""
        if situation in stated_situations(self.stated):
            return CaseWords(self.stated).situation(situation).removeprefix("if ")
        return f"only {enumeration([child for child in self.direction if child in situation])}"

    def child_label(self, child: str) -> str:
        """Whether the child hinders the claim."""
        return HINDERS if self.direction[child] == HINDERS else ""


@frozen
class ChainedCasesLink(CasesLink):
    """Cases whose children may depend on each other: each child's chance is given the earlier ones.

    The children are favourable with the chances of a chain (see `given_steps`), which keeps each child's own
    probability. Stored are odds ratios to the children's probabilities, so that a child that is set to 0 or 1 stays
    there. The link then reads nothing but the children's probabilities: what the children share with each other or
    with other branches is part of what was judged.
    """

    order: tuple[str, ...] = ()
    given: Mapping[str, float] = field(default_factory=dict[str, float])
    ratios: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    """Odds ratio of each child while the chain holds, and after it is broken; empty if children are independent."""

    @property
    def stated(self) -> StatedCases:
        """The cases as they were stated, with the chain."""
        return replace(super().stated, order=self.order, given=self.given)

    @property
    def from_numbers(self) -> bool:
        """Whether the children depend on each other as stated."""
        return bool(self.ratios)

    def _wrong_cases(self, node: str) -> Iterator[TreeProblem]:
        yield from super()._wrong_cases(node)
        if self.order:
            yield from every_child_problems(node, "link.order", dict.fromkeys(self.order, 0), tuple(self.direction))
        if self.given and not self.ratios:
            text, hint = (
                "`given` has no odds ratios",
                "give every child a `p`, from which they follow, or remove `given`",
            )
            yield TreeProblem(node=node, field="link.ratios", text=text, hint=hint)
        if self.ratios:
            yield from every_child_problems(node, "link.ratios", self.ratios, tuple(self.direction))
        for child, ratios in self.ratios.items():
            if len(ratios) != 2 or not all(isfinite(ratio) and ratio > 0 for ratio in ratios):
                text = f"{list(ratios)} are not two positive odds ratios"
                yield TreeProblem(node=node, field=f"link.ratios.{child}", text=text)

    def _stays(self, child: str) -> bool:
        """Value of a child with which the chain still holds."""
        return (self.direction[child] == HELPS) == (self.kind == "all")

    def compile(self, node: str, children: Sequence[str], gates: GateBuilder) -> Body:
        """Decide on the children in the order of the chain, each with the odds of its place in the chain."""
        if not self.ratios:
            return super().compile(node, children, gates)
        order = self.stated.chain
        rows = dict(zip(situations(self.stated.children), self.chances, strict=True))

        def literal(place: int, holds: bool) -> int:
            child, ratio = order[place], self.ratios[order[place]][0 if holds else 1]
            name = f"{node}~{child}{'+' if holds else '-'}"
            # An odds ratio of the chance to be false is the inverse ratio of the chance to be true.
            helps = self.direction[child] == HELPS
            return gates.odds(name, child, ratio) if helps else -gates.odds(name, child, 1.0 / ratio)

        table = tuple(rows[situation] for situation in situations(order))
        goes_on = self.kind == "all"
        return SeparateBody(gates.exactly(_decision(node, gates, table, literal, goes_on=goes_on)))

    def with_case(
        self, case: str, child: str, chance: float, p: Mapping[str, float], option: str = ""
    ) -> "CasesLink | None":
        """State another chance for one case; only another `given` changes how the children depend on each other."""
        link = super().with_case(case, child, chance, p, option)
        return replace(link, ratios=self.ratios) if isinstance(link, ChainedCasesLink) and case != GIVEN else link

    def chain(self, p: Mapping[str, float]) -> tuple[ChainStep, ...]:
        """Return the chance of each child given the earlier ones."""
        if not self.ratios:
            return ()
        steps: list[ChainStep] = []
        for child in self.stated.chain:
            own = self.stated.favourable(child, p[child])
            chances = [self.stated.favourable(child, with_odds(own, ratio)) for ratio in self.ratios[child]]
            steps.append(ChainStep(child=child, stays=self._stays(child), holds=chances[0], broken=chances[1]))
        return tuple(steps)

    def with_child(self, child: str, weight: float) -> Self:
        """Add a child that changes nothing and does not depend on the others."""
        link = super().with_child(child, weight)
        order = (*self.order, child) if self.order else ()
        return replace(link, order=order, ratios={**self.ratios, child: (1.0, 1.0)} if self.ratios else {})

    def without_child(self, child: str, p: float) -> Self:
        """Average over a child; the others keep their odds ratios."""
        link = super().without_child(child, p)
        return replace(
            link,
            order=tuple(other for other in self.order if other != child),
            given={other: chance for other, chance in self.given.items() if other != child},
            ratios={other: ratios for other, ratios in self.ratios.items() if other != child},
        )

    def describe(self, children: Sequence[str]) -> str:
        """Say the kind, the cases and the chain in words."""
        text = super().describe(children)
        if not self.given:
            return text
        after = "while all earlier ones are favourable" if self.kind == "all" else "while none earlier is favourable"
        later = [child for child in self.stated.chain[1:] if child in self.given]
        chances = [f"{child} {brief_percent(self.given[child])}" for child in later]
        return f"{text} Judged {after}: {enumeration(chances)}." if chances else text


@frozen
class AllLink(ChainedCasesLink):
    """All children are needed: situations that were not stated are as likely as `none`."""

    kind: ClassVar[str] = "all"


@frozen
class AnyLink(ChainedCasesLink):
    """Any child suffices: situations that were not stated are those of a noisy-or."""

    kind: ClassVar[str] = "any"


@frozen
class AtLeastLink(CasesLink):
    """At least k children are needed: situations that were not stated are as the stated ones on the same side of k."""

    kind: ClassVar[str] = "at_least"
    k: int

    @property
    def stated(self) -> StatedCases:
        """The cases as they were stated, with k."""
        return replace(super().stated, k=self.k)

    def _wrong_cases(self, node: str) -> Iterator[TreeProblem]:
        yield from super()._wrong_cases(node)
        if not 1 <= self.k <= len(self.direction):
            yield TreeProblem(node=node, field="link.k", text=f"{self.k} is outside 1 to {len(self.direction)}")

    def without_child(self, child: str, p: float) -> Self:
        """Average over a child; of fewer children, at most all can be needed."""
        return replace(super().without_child(child, p), k=min(self.k, max(len(self.direction) - 1, 1)))


@frozen
class WeighLink(CasesLink):
    """Each child counts: log-odds add up in situations that were not stated."""

    kind: ClassVar[str] = "weigh"


def cases_link(cases: StatedCases, p: Mapping[str, float]) -> CasesLink:
    """Build the link of stated cases that are complete. `p` holds the chance that each child is true.

    >>> stated = StatedCases(kind="all", direction={"P1": "helps", "P2": "helps"}, none=0.0, all=1.0,
    ...                      only={"P1": 0.0, "P2": 0.0}, given={"P1": 0.5, "P2": 0.75})
    >>> link = cases_link(stated, {"P1": 0.5, "P2": 0.5})
    >>> link.table, link.chain({"P1": 0.5, "P2": 0.5})[1].holds
    ((1.0, 0.0, 0.0, 0.0), 0.75)
    """
    assert cases.none is not None
    assert cases.all is not None
    large = len(cases.children) > 2
    common: dict[str, Any] = {
        "direction": dict(cases.direction),
        "none": cases.none,
        "all": cases.all,
        "only": {child: p for child, p in cases.only.items() if p is not None and len(cases.children) > 1},
        "but": {child: p for child, p in cases.but.items() if p is not None and large},
        "table": situation_table(cases),
        "outside": cases.outside,
    }
    if cases.kind in ("all", "any"):
        kind = AllLink if cases.kind == "all" else AnyLink
        ratios = given_ratios(cases, p) if cases.given else {}
        return kind(**common, order=cases.order, given=dict(cases.given), ratios=ratios)
    if cases.kind == "at_least":
        return AtLeastLink(**common, k=cases.k or 1)
    return WeighLink(**common)


def with_ratios(link: Link | None, p: Mapping[str, float | None]) -> Link | None:
    """Return a link with the odds ratios that follow from its `given`, if it has none, as in a file written by hand.

    `p` holds the probabilities of the claims. If that of a child is missing, the link stays as it is.
    """
    if not isinstance(link, ChainedCasesLink) or link.ratios or not link.given:
        return link
    known = {child: value for child in link.direction if (value := p.get(child)) is not None and 0 <= value <= 1}
    if not {*link.direction, *link.stated.chain} <= known.keys():
        return link
    return replace(link, ratios=given_ratios(link.stated, known))


def situation_weights(link: CasesLink, p: Mapping[str, float]) -> list[float]:
    """Return the probability of every situation, in the order of the table."""
    steps = link.chain(p)
    if not steps:
        chances = {child: link.stated.favourable(child, p[child]) for child in link.direction}
        steps_of = {child: (chance, chance) for child, chance in chances.items()}
        order, stays = tuple(link.direction), True
    else:
        steps_of = {
            step.child: tuple(link.stated.favourable(step.child, chance) for chance in (step.holds, step.broken))
            for step in steps
        }
        order, stays = tuple(step.child for step in steps), link.kind == "all"
    weights: list[float] = []
    for situation in situations(link.stated.children):
        weight, holds = 1.0, True
        for child in order:
            chance = steps_of[child][0 if holds else 1]
            weight *= chance if child in situation else 1.0 - chance
            holds = holds and (child in situation) == stays
        weights.append(weight)
    return weights


def _decision(
    node: str,
    gates: GateBuilder,
    table: Sequence[float],
    literal: Callable[[int, bool], int],
    *,
    goes_on: bool = True,
) -> int:
    """Return the literal of nested decisions: at each place on a literal, with an event of the table at the end.

    `literal` gets the place and whether all earlier literals had the value `goes_on`.
    """

    def decide(place: int, start: int, size: int, holds: bool) -> int:
        rows = table[start : start + size]
        if len(set(rows)) == 1:
            return gates.coin(f"{node}~{start}:{size}", rows[0])
        half, own = size // 2, literal(place, holds)
        yes = decide(place + 1, start, half, holds and goes_on)
        no = decide(place + 1, start + half, half, holds and not goes_on)
        return gates.any_of([gates.all_of([own, yes]), gates.all_of([-own, no])])

    return decide(0, 0, len(table), True)


# Scenarios, and the distribution of a number or a date in each of them.


def spread_of(distribution: Numeric) -> tuple[float, ...]:
    """Return the quantiles of a distribution at the usual levels, if the value exists, and the chance of never."""
    exists = 1.0 - distribution.never
    return (*(distribution.quantile(exists * level) for level in LEVELS.values()), distribution.never)


def distribution_of(spread: Sequence[float]) -> Numeric:
    """Return the distribution through the quantiles of a spread.

    >>> number_in_words(distribution_of((60, 64, 70, 75, 81, 88, 93, 0)))
    '75 (80 %: 64 to 88)'
    """
    *quantiles, never = spread
    return Numeric.from_quantiles(dict(zip(LEVELS.values(), quantiles, strict=True)), never=never)


def number_in_words(distribution: Numeric, *, dates: bool = False) -> str:
    """Return the median of a number or a date, its 80 % interval, and the chance of never."""
    exists = 1.0 - distribution.never
    low, middle, high = (distribution.quantile(exists * level) for level in (0.1, 0.5, 0.9))
    # Four digits of a number, without an exponent.
    texts = [date_of(value)[:10] if dates else f"{float(f'{value:.4g}'):.10g}" for value in (low, middle, high)]
    never = f", never {brief_percent(distribution.never)}" if distribution.never else ""
    return f"{texts[1]} (80 %: {texts[0]} to {texts[2]}{never})"


def _spread_problems(node: str, place: str, spread: Sequence[float]) -> Iterator[TreeProblem]:
    """Check that a spread is a distribution."""
    try:
        distribution_of(spread)
    except ValueError as problem:
        hint = f"{len(LEVELS)} quantiles from 5 to 95 %, each larger than the one before it, then the chance of never"
        yield TreeProblem(node=node, field=place, text=str(problem), hint=hint)


@frozen
class SplitLink(Link):
    """P = Σ P(child)·then + (1 − Σ P(child))·otherwise, for children that are scenarios which exclude each other.

    With `options`, every row holds the chance of each option, and the claim answers a row: its probability is that of
    the first option, and `Proposition.row` holds all of them. A number or a date has its thresholds as options, and a
    spread for every scenario: its quantiles at the usual levels, then the chance that it never comes.
    """

    kind: ClassVar[str] = "split"
    judged_together: ClassVar[bool] = True  # The scenarios share the whole.
    options: tuple[str, ...] = ()
    then: Mapping[str, tuple[float, ...]]
    """Chance of the claim, or of each option, in every scenario."""
    otherwise: tuple[float, ...] = ()
    """The same if none of the scenarios happens; empty for the mean of the rows."""
    spreads: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    spread_otherwise: tuple[float, ...] = ()
    """Spread of the number in every scenario, and if none of them happens; empty if the claim is about no number."""
    dates: bool = False
    """Whether the number is a date, in Unix seconds."""

    def mixture(self, p: Mapping[str, float]) -> Numeric | None:
        """Return the distribution of the number, given the chances of the scenarios; None without a number."""
        if not self.spreads:
            return None
        parts = [(p[child], distribution_of(spread)) for child, spread in self.spreads.items()]
        left = 1.0 - sum(weight for weight, _ in parts)
        return Numeric.mixture([*parts, (max(left, 0.0), distribution_of(self.spread_otherwise))])

    @property
    def from_numbers(self) -> bool:
        """True, because scenarios exclude each other and are not independent events."""
        return True

    @property
    def rest(self) -> tuple[float, ...]:
        """The row if none of the scenarios happens."""
        return self.otherwise or tuple(sum(column) / len(column) for column in zip(*self.then.values(), strict=True))

    def stated_chances(self, option: str = "") -> dict[tuple[str, str], float]:
        """Return the chance in every scenario and without them; none for a number, which has distributions."""
        if self.spreads:
            return {}
        place = self.options.index(option) if option in self.options else 0
        chances = {(ONLY, child): row[place] for child, row in self.then.items()}
        return {**chances, (NONE, ""): self.rest[place]}

    def with_case(
        self, case: str, child: str, chance: float, p: Mapping[str, float], option: str = ""
    ) -> "SplitLink | None":
        """State another chance in a scenario, or without them; options that exclude each other share the rest."""
        if (case, child) not in self.stated_chances():
            return None
        place = self.options.index(option) if option in self.options else 0
        row = self.rest if case == NONE else self.then[child]
        others = sum(row) - row[place]
        exclusive = others > 0 and abs(sum(row) - 1.0) < 1e-6
        share = (1.0 - chance) / others if exclusive else 1.0
        new = tuple(chance if place == other else value * share for other, value in enumerate(row))
        return replace(self, otherwise=new) if case == NONE else replace(self, then={**self.then, child: new})

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Check that every scenario has a row of chances, as long as there are options."""
        yield from every_child_problems(node, "link.then", self.then, children)
        width = len(self.options) or 1
        rows = {f"then.{child}": row for child, row in self.then.items()}
        for place, row in {**rows, **({"otherwise": self.otherwise} if self.otherwise else {})}.items():
            if len(row) != width:
                text = f"has {len(row)} numbers instead of {width}"
                yield TreeProblem(node=node, field=f"link.{place}", text=text, hint="one for every option")
            if not all(isfinite(p) and 0 <= p <= 1 for p in row):
                yield TreeProblem(node=node, field=f"link.{place}", text="has numbers outside [0, 1]")
        if len(set(self.options)) < len(self.options):
            yield TreeProblem(node=node, field="link.options", text="an option is named twice")
        if self.spreads or self.spread_otherwise:
            yield from every_child_problems(node, "link.spreads", self.spreads, children)
            spreads = {f"spreads.{child}": spread for child, spread in self.spreads.items()}
            for place, spread in {**spreads, "spread_otherwise": self.spread_otherwise}.items():
                yield from _spread_problems(node, f"link.{place}", spread)

    def option_forms(self, children: Sequence[str]) -> Mapping[str, LinearLink]:
        """Return the weighted sum of every option."""
        return {option: self._form(place) for place, option in enumerate(self.options)}

    def _form(self, place: int) -> LinearLink:
        rest = self.rest[place]
        return LinearLink(intercept=rest, weights={child: row[place] - rest for child, row in self.then.items()})

    def linear_form(self, children: Sequence[str]) -> LinearLink:
        """Return the weighted sum of the claim, or of its first option."""
        return self._form(0)

    def compile(self, node: str, children: Sequence[str], gates: GateBuilder) -> Body:
        """Add up the scenarios."""
        form = self._form(0)
        terms = [(form.weights[child], child) for child in children]
        return SeparateBody(gates.weighted(form.intercept, terms))

    def chain(self, p: Mapping[str, float]) -> tuple[ChainStep, ...]:
        """Return the chance of each scenario given that none of the earlier ones happens."""
        steps: list[ChainStep] = []
        left = 1.0
        for child in self.then:
            chance = min(p[child] / left, 1.0) if left > 1e-12 else 0.0
            steps.append(ChainStep(child=child, stays=False, holds=chance, broken=0.0))
            left -= p[child]
        return tuple(steps)

    def with_child(self, child: str, weight: float) -> Self:
        """Add a scenario in which nothing differs from `otherwise`; the weight is not used."""
        spreads = {**self.spreads, child: self.spread_otherwise} if self.spreads else {}
        return replace(self, then={**self.then, child: self.rest}, spreads=spreads)

    def without_child(self, child: str, p: float) -> Self:
        """Remove a scenario; what it had falls to `otherwise`."""
        rows = {id: row for id, row in self.then.items() if id != child}
        spreads = {id: spread for id, spread in self.spreads.items() if id != child}
        return replace(self, then=rows, otherwise=self.rest, spreads=spreads)

    @property
    def heading(self) -> str:
        """How many scenarios there are."""
        return kind_heading(self.kind, len(self.then))

    def describe(self, children: Sequence[str]) -> str:
        """Say what follows from each scenario."""

        def row(chances: Sequence[float]) -> str:
            if not self.options:
                return brief_percent(chances[0])
            return ", ".join(f"{option} {brief_percent(p)}" for option, p in zip(self.options, chances, strict=True))

        texts = {child: row(chances) for child, chances in self.then.items()} | {"": row(self.rest)}
        if self.spreads:
            spreads = {**self.spreads, "": self.spread_otherwise}
            texts = {child: number_in_words(distribution_of(s), dates=self.dates) for child, s in spreads.items()}
        parts = [f"if {child} happens, {text}" for child, text in texts.items() if child]
        parts.append(f"otherwise {texts['']}")
        return f"At most one of {enumeration(list(self.then))} happens: {'; '.join(parts)}."

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the sum over the scenarios."""
        total = " + ".join(f"{p[child]} × {row[0]:g}" for child, row in self.then.items())
        try:
            left = 1.0 - sum(float(p[child]) for child in self.then)
        except ValueError:
            return ""  # A scenario has no probability.
        return f"{total} + {left:.3g} × {self.rest[0]:g}" if left >= 0.0005 else total

    def child_label(self, child: str) -> str:
        """What follows from the scenario."""
        if self.spreads:
            return number_in_words(distribution_of(self.spreads[child]), dates=self.dates)
        return "/".join(f"{p:g}" for p in self.then[child])
