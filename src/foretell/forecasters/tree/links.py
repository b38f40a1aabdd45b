"""Links: how a claim's probability follows from its children's.

Everything about one kind of link is in its class: the fields as in a tree file, the validation, the arithmetic, and the
description in words. A link is data on the node, so that what-if is arithmetic and needs no model.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import neg
from typing import ClassVar, Self

from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic.gates import Body, GateBuilder, NumbersBody
from foretell.forecasters.tree.text import TreeProblem, decimal, enumeration, one_line
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.field_checks import check_fields

INTERCEPT_LIMIT = 0.1
"""Default limit of a linear link's |intercept|: children, not unexplained priors, should determine a claim.

A tree can set another limit. The weights of children that hinder a claim are added to the limit, because they are part
of the intercept without being an unexplained prior."""


@frozen
class Link:
    """How a claim follows from its children.

    Each kind is a frozen dataclass. Its fields, together with `kind`, are its form in a tree file: strings, numbers,
    flags, lists, and strings, numbers or rows of numbers by child (such as `Mapping[str, float]`). A new kind states
    its arithmetic either as a weighted sum of the children (`linear_form`) or in gates (`compile`): AND, OR and NOT
    over children, independent events with a fixed probability, and assumptions. Either way it becomes the same few
    operations as every other link, so that exact values, what-if, slopes, the web page and the exports work without
    knowing the kind. A new kind should also have `problems` and `describe`; all other methods have defaults.
    """

    kind: ClassVar[str] = ""
    """The name of the kind in tree files."""
    judged_from_text: ClassVar[bool] = True
    """Whether the link was judged from the claims' wording, so that a new wording requires a new judgement."""
    judged_together: ClassVar[bool] = False
    """Whether its children were judged together, so that one more or one fewer requires a new judgement."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def own_probability(self) -> float | None:
        """The claim's probability if it does not follow from its children's; None if it does."""
        return None

    @property
    def from_numbers(self) -> bool:
        """Whether it reads only its children's probabilities, whatever they share with each other or other branches."""
        return False

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Yield the problems of the link by itself; whether its result is a probability is checked in the tree."""
        yield from ()

    def linear_form(self, children: Sequence[str]) -> "LinearLink | None":
        """Return the link as a weighted sum; None if it is not one."""
        return None

    def option_forms(self, children: Sequence[str]) -> "Mapping[str, LinearLink]":
        """Return a weighted sum for each option, if the claim answers several; the first is that of the claim."""
        return {}

    def chain(self, p: Mapping[str, float]) -> "tuple[ChainStep, ...]":
        """Return the chances of children that depend on each other, given their probabilities; empty if none do."""
        return ()

    def compile(self, node: str, children: Sequence[str], gates: GateBuilder) -> Body:
        """Express the arithmetic in gates."""
        form = self.linear_form(children)
        if form is None:
            raise TypeError(f"{type(self).__name__} has neither a linear form nor gates")
        return gates.weighted(form.intercept, [(form.weights[child], child) for child in children])

    def assumptions(self, node: str) -> "Mapping[str, FormulaAssumption]":
        """Return the uncertain inputs of the link itself, in addition to the children, by input name."""
        return {}

    def with_assumption(self, p: float) -> Self | None:
        """Return the link with another probability of its assumption; None if it has no assumption."""
        return None

    def stated_chances(self, option: str = "") -> Mapping[tuple[str, str], float]:
        """Return the stated chances of the claim, or of one of its options, by case and child; empty if none are."""
        return {}

    def with_case(
        self, case: str, child: str, chance: float, p: Mapping[str, float], option: str = ""
    ) -> "Link | None":
        """Return the link with another chance in a stated case; None if it has no such case.

        `p` holds the children's probabilities.
        """
        return None

    def with_child(self, child: str, weight: float) -> Self:
        """Return the link with a number for one more child; unchanged if the link has no numbers by child."""
        return self

    def without_child(self, child: str, p: float) -> Self:
        """Return the link without the number of one child, which has the probability p."""
        return self

    @property
    def heading(self) -> str:
        """What the children are, in a few words; empty if only `describe` says it."""
        return ""

    def describe(self, children: Sequence[str]) -> str:
        """Describe in a sentence how the probability is computed."""
        return f"{self.kind.replace('_', ' ').capitalize()} of {enumeration(children)}."

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the arithmetic with the children's probabilities filled in; empty if it cannot be shown."""
        return ""

    def child_label(self, child: str) -> str:
        """Label of the arrow to a child in a drawing."""
        return ""

    def problog(self, node: str, children: Sequence[str], atom: Callable[[str], str]) -> Iterable[str] | None:
        """Return the clauses of a ProbLog program; `atom` returns the name of a claim in the program.

        None means a clause for every combination of the inputs, which the export writes.
        """
        form = self.linear_form(children)
        return None if form is None else _picked_child(node, form, atom)


@frozen
class ChainStep:
    """One of several children that depend on each other, read in order until one has not the value that goes on."""

    child: str
    stays: bool
    """Value of the child with which the chain still holds."""
    holds: float
    """Chance that the child is true if the chain holds."""
    broken: float
    """Chance that it is true otherwise."""


@frozen
class LinearLink(Link):
    """P = intercept + Σ weight·P(child). A child that hinders the claim has a negative weight."""

    kind: ClassVar[str] = "linear"
    intercept: float = 0.0
    weights: Mapping[str, float]

    @property
    def hindrance(self) -> float:
        """Total weight of the children that hinder the claim: the most that they can take away together."""
        return sum(-weight for weight in self.weights.values() if weight < 0)

    @property
    def base(self) -> float:
        """Probability of the claim if every child is against it."""
        return self.intercept - self.hindrance

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Check that each child has a weight in [-1, 1] and the intercept is within its limit plus the hindrance."""
        yield from every_child_problems(node, "link.weights", self.weights, children)
        for child, weight in self.weights.items():
            place = f"link.weights.{child}"
            if not math.isfinite(weight):
                yield TreeProblem(node=node, field=place, text=f"{weight} is not a finite number")
            elif abs(weight) > 1:
                hint = "a child moves its parent at most as far as it moves itself"
                yield TreeProblem(node=node, field=place, text=f"{weight:g} is outside [-1, 1]", hint=hint)
        limit = intercept_limit
        if not math.isfinite(self.intercept):
            yield TreeProblem(node=node, field="link.intercept", text=f"{self.intercept} is not a finite number")
        elif not max(0.0, self.base, -self.intercept) <= limit + 1e-9:
            yield TreeProblem(
                node=node,
                field="link.intercept",
                text=f"{self.intercept:g} is outside [-{limit:g}, {limit + self.hindrance:g}]",
                hint="let the children carry the claim, or raise intercept_limit of the tree",
            )

    def strict_problems(self, p: Mapping[str, float]) -> list[str]:
        """Why the link is outside the paper's limits at these probabilities of the children; empty if it is within.

        The limits of Analytica (2026) hold without exception: the intercept is within ±0.1, each weight within ±1, and
        the result is a probability.

        >>> LinearLink(intercept=0.11, weights={"P1": 1.0}).strict_problems({"P1": 0.5})
        ['the intercept is 0.11, outside [-0.1, 0.1]']
        """
        problems: list[str] = []
        if not abs(self.intercept) <= INTERCEPT_LIMIT:
            limits = f"[-{INTERCEPT_LIMIT:g}, {INTERCEPT_LIMIT:g}]"
            problems.append(f"the intercept is {self.intercept:g}, outside {limits}")
        problems += [
            f"the weight of {child} is {weight:g}, outside [-1, 1]"
            for child, weight in self.weights.items()
            if not abs(weight) <= 1
        ]
        problems += [problem.text for problem in every_child_problems("", "", self.weights, tuple(p))]
        if not problems:
            total = self.intercept + sum(weight * p[child] for child, weight in self.weights.items())
            if not 0 <= total <= 1:
                problems.append(f"the weighted sum is {total:.4g}, outside [0, 1]")
        return problems

    def linear_form(self, children: Sequence[str]) -> "LinearLink":
        """Return the link itself."""
        return self

    def with_child(self, child: str, weight: float) -> Self:
        """Add the weight of a child."""
        return replace(self, weights={**self.weights, child: weight})

    def without_child(self, child: str, p: float) -> Self:
        """Remove the weight of a child; the others stay as they are."""
        return replace(self, weights=_without(self.weights, child))

    def describe(self, children: Sequence[str]) -> str:
        """Describe the intercept and the weights in words."""
        natural = self.base >= -1e-9  # Describe obstacles by their absence, unless the sum has the paper's form.
        against = "the chance that {} is false" if natural else "the chance of {}"
        less = "" if natural else "less "
        parts = [
            f"{w:g} times the chance of {id}" if w >= 0 else f"{less}{-w:g} times {against.format(id)}"
            for id, w in self.weights.items()
        ]
        rest = round(self.base, 12) if natural else self.intercept
        if not rest:
            return f"{enumeration(parts)}."
        start = f"{rest:g} whatever happens"
        return f"{start}, and {parts[0]}." if len(parts) == 1 else f"{enumeration([start, *parts])}."

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the weighted sum."""
        parts = [f"{'−' if w < 0 else '+'} {abs(w):g} × {p[id]}" for id, w in self.weights.items()]
        start = f"{self.intercept:g} " if self.intercept else ""
        return (start + " ".join(parts)).removeprefix("+ ").replace("-", "−")

    def child_label(self, child: str) -> str:
        """The weight of the child."""
        return f"{self.weights[child]:g}"


@frozen
class AverageLink(Link):
    """P = the mean of the children's probabilities."""

    kind: ClassVar[str] = "average"
    judged_from_text: ClassVar[bool] = False  # The mean is not a judgement.

    def linear_form(self, children: Sequence[str]) -> LinearLink:
        """Return a linear link with equal weights."""
        return LinearLink(weights=dict.fromkeys(children, 1.0 / len(children)))

    def describe(self, children: Sequence[str]) -> str:
        """Describe the mean in words."""
        return f"The mean of {enumeration(children)}."

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the mean."""
        return f"({' + '.join(p.values())}) / {len(p)}"


@frozen
class FormulaAssumption:
    """The assumption `PA` of a formula, and its probability."""

    text: str = ""
    p: float


def assumption_name(node: str) -> str:
    """Return the name of a formula's PA among the inputs of a tree."""
    return f"{node}:{ex.ASSUMPTION}"


@frozen
class FormulaLink(Link):
    """P of a Boolean expression over the children's ids with AND, OR, NOT, parentheses and PA."""

    kind: ClassVar[str] = "formula"
    expression: str
    assumption: FormulaAssumption | None = None

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Check that the formula parses, names exactly the children, and explains PA if it uses it.

        >>> for problem in FormulaLink(expression="P1 AND P3").problems("P0", ("P1", "P2"), intercept_limit=0.1):
        ...     print(problem.with_pointer())
        node P0, link.expression: character 8: P3 is not a child; the children are P1, P2
        P1 AND P3
               ^
        node P0, link.expression: P2 is a child but does not occur (use every child, or remove it)
        """

        def wrong(problem: object, hint: str = "") -> TreeProblem:
            pointer = problem.pointer if isinstance(problem, ex.FormulaError) else ""
            return TreeProblem(node=node, field="link.expression", text=str(problem), hint=hint, pointer=pointer)

        try:
            ex.parse(self.expression)
        except ex.FormulaError as error:
            yield wrong(error)
            return
        mentioned = ex.mentions(self.expression)
        for name, position in mentioned:
            if name != ex.ASSUMPTION and name not in children:
                text = f"{name} is not a child; the children are {', '.join(children)}"
                near = [known for known in (*children, ex.ASSUMPTION) if known.lower() == name.lower()]
                hint = f"did you mean {near[0]}?" if near else ""
                yield wrong(ex.FormulaError(text, self.expression, position), hint)
        used = {name for name, _ in mentioned}
        for child in children:
            if child not in used:
                yield wrong(f"{child} is a child but does not occur", "use every child, or remove it")
        if self.assumption is None and ex.ASSUMPTION in used:
            text, hint = "PA occurs but nothing says what it is", 'give "assumption": {"text": …, "p": …}'
            yield TreeProblem(node=node, field="link.assumption", text=text, hint=hint)
        if self.assumption is not None:
            yield from _chance(node, "link.assumption.p", self.assumption.p)
            if ex.ASSUMPTION not in used:
                text = "an assumption is given, but PA does not occur in the expression"
                yield TreeProblem(node=node, field="link.assumption", text=text, warning=True)

    def compile(self, node: str, children: Sequence[str], gates: GateBuilder) -> Body:
        """Express the formula in gates."""
        for name, assumption in self.assumptions(node).items():
            gates.set_input(name, assumption.p)

        def var(name: str) -> int:
            return gates.var(assumption_name(node) if name == ex.ASSUMPTION else name)

        return gates.exactly(ex.fold(ex.parse(self.expression), var, neg, gates.all_of, gates.any_of))

    def assumptions(self, node: str) -> Mapping[str, FormulaAssumption]:
        """The assumption PA, if the formula has one."""
        return {assumption_name(node): self.assumption} if self.assumption is not None else {}

    def with_assumption(self, p: float) -> Self | None:
        """Replace the probability of PA."""
        return replace(self, assumption=replace(self.assumption, p=p)) if self.assumption is not None else None

    def describe(self, children: Sequence[str]) -> str:
        """Describe the formula in words."""
        text = self.expression.strip() if "\n" not in self.expression else one_line(self.expression)
        try:
            shown = ex.to_text(ex.parse(text))
            text = shown.replace(" AND ", " and ").replace(" OR ", " or ").replace("NOT ", "not ")
        except ex.FormulaError:
            pass  # Shown unchanged.
        assumed = self.assumption
        extra = f" {ex.ASSUMPTION}, {assumed.p:g} likely: {one_line(assumed.text)}" if assumed else ""
        return f"True exactly when {text}.{extra}"

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the formula with numbers in place of claims."""
        values = {**p, ex.ASSUMPTION: f"{self.assumption.p:g}" if self.assumption else "–"}
        text = ex.to_text(ex.parse(self.expression))
        return f"P({re.sub(ex.ID, lambda name: values.get(name[0], name[0]), text)})"

    def problog(self, node: str, children: Sequence[str], atom: Callable[[str], str]) -> Iterator[str]:
        """Yield a rule, and a probabilistic fact for the assumption."""
        assumed = atom(assumption_name(node))
        if self.assumption is not None:
            yield f"% {ex.ASSUMPTION} of {node}: {one_line(self.assumption.text)}"
            yield f"{decimal(self.assumption.p)}::{assumed}."

        def body(item: ex.Expression, wanted: bool) -> str:
            """Return the expression, or its negation, with negations only at the atoms."""
            match item:
                case ex.Var():
                    name = assumed if item.name == ex.ASSUMPTION else atom(item.name)
                    return name if wanted else f"\\+ {name}"
                case ex.Not():
                    return body(item.item, not wanted)
                case ex.And() | ex.Or():
                    separator = ", " if isinstance(item, ex.And) == wanted else " ; "
                    return f"({separator.join(body(part, wanted) for part in item.items)})"

        yield f"{atom(node)} :- {body(ex.parse(self.expression), True)}."


@frozen
class ProductLogicLink(FormulaLink):
    """A formula computed by the product t-norm, as in Analytica (2026): on numbers, mention by mention.

    A AND B = A·B, A OR B = A + B − A·B, NOT A = 1 − A. A claim that is mentioned twice counts as two independent ones,
    and so do claims that share others below them. The result is therefore not the probability of the formula, unless
    every claim occurs once. This kind exists to reproduce that paper's numbers; `formula` is exact.
    """

    kind: ClassVar[str] = "product_logic"

    @property
    def from_numbers(self) -> bool:
        """True, because a t-norm applies to numbers."""
        return True

    def compile(self, node: str, children: Sequence[str], gates: GateBuilder) -> Body:
        """Apply the t-norm to the children's numbers."""
        for name, assumption in self.assumptions(node).items():
            gates.set_input(name, assumption.p)
        return NumbersBody(ex.rename(ex.parse(self.expression), {ex.ASSUMPTION: assumption_name(node)}))

    def describe(self, children: Sequence[str]) -> str:
        """Describe in words the formula and how it is computed."""
        return (
            f"{super().describe(children)} Computed by the product t-norm, which treats every mention as independent."
        )

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the products."""
        values = {**p, ex.ASSUMPTION: f"{self.assumption.p:g}" if self.assumption else "–"}

        def either(items: list[str]) -> str:
            return f"(1 − {' × '.join(f'(1 − {item})' for item in items)})"

        return ex.fold(
            ex.parse(self.expression), values.__getitem__, "(1 − {})".format, lambda items: " × ".join(items), either
        )


@frozen
class NoisyOrLink(Link):
    """P = 1 − (1 − leak)·Π(1 − strength·child): each true child alone would bring the claim about."""

    kind: ClassVar[str] = "noisy_or"
    leak: float = 0.0
    strengths: Mapping[str, float]

    @property
    def blocking(self) -> Mapping[str, float]:
        """Children that can prevent the claim, with their probabilities of doing so."""
        return {}

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Check that every child has exactly one probability, to cause the claim or to prevent it."""
        yield from every_child_problems(node, "link.strengths", {**self.strengths, **self.blocking}, children)
        for child in self.strengths:
            if child in self.blocking:
                text = f"{child} cannot both bring the claim about and prevent it"
                yield TreeProblem(node=node, field="link.inhibitors", text=text)
        for name, numbers in (("strengths", self.strengths), ("inhibitors", self.blocking)):
            for child, number in numbers.items():
                yield from _chance(node, f"link.{name}.{child}", number)
        yield from _chance(node, "link.leak", self.leak)

    def compile(self, node: str, children: Sequence[str], gates: GateBuilder) -> Body:
        """Express the link in gates, with one independent event per child: whether it takes effect."""

        def effects(numbers: Mapping[str, float]) -> list[int]:
            chances = [(child, numbers[child]) for child in children if child in numbers]
            return [gates.all_of([gates.coin(f"{node}~{child}", p), gates.var(child)]) for child, p in chances]

        causes = [gates.coin(f"{node}~", self.leak)] if self.leak else []
        caused = gates.any_of(causes + effects(self.strengths))
        return gates.exactly(gates.all_of([caused, *(-block for block in effects(self.blocking))]))

    def with_child(self, child: str, weight: float) -> Self:
        """Add a child as a cause."""
        return replace(self, strengths={**self.strengths, child: weight})

    def without_child(self, child: str, p: float) -> Self:
        """Remove a cause."""
        return replace(self, strengths=_without(self.strengths, child))

    def describe(self, children: Sequence[str]) -> str:
        """Describe the causes, the leak and the inhibitors in words."""
        parts = [f"{id} with a chance of {percent(s)}" for id, s in self.strengths.items()]
        parts += [f"anything else with a chance of {percent(self.leak)}"] if self.leak else []
        against = [f"{id} with a chance of {percent(s)}" for id, s in self.blocking.items()]
        unless = f"; it is prevented by {enumeration(against)}" if against else ""
        return f"Each of these can bring it about by itself: {enumeration(parts)}{unless}."

    def show_arithmetic(self, p: Mapping[str, str]) -> str:
        """Show the products over causes and inhibitors with numbers filled in."""
        factors = [f"(1 − {self.leak:g})"] if self.leak else []
        caused = "1 − " + " × ".join(factors + [f"(1 − {s:g} × {p[id]})" for id, s in self.strengths.items()])
        blocks = "".join(f" × (1 − {s:g} × {p[id]})" for id, s in self.blocking.items())
        return f"[{caused}]{blocks}" if blocks else caused

    def child_label(self, child: str) -> str:
        """The strength of a cause, or the probability that an inhibitor prevents the claim."""
        return f"{self.strengths[child]:g}" if child in self.strengths else f"against: {self.blocking[child]:g}"

    def problog(self, node: str, children: Sequence[str], atom: Callable[[str], str]) -> Iterator[str]:
        """Yield a probabilistic rule for every cause."""
        yield from _causes(atom(node), self.strengths, self.leak, atom)


@frozen
class InhibitedNoisyOrLink(NoisyOrLink):
    """A noisy-or that other children can prevent: times Π(1 − inhibition·child) over the inhibitors."""

    kind: ClassVar[str] = "inhibited_noisy_or"
    inhibitors: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def blocking(self) -> Mapping[str, float]:
        """The inhibitors."""
        return self.inhibitors

    def without_child(self, child: str, p: float) -> Self:
        """Remove a cause or inhibitor."""
        return replace(self, strengths=_without(self.strengths, child), inhibitors=_without(self.inhibitors, child))

    def problog(self, node: str, children: Sequence[str], atom: Callable[[str], str]) -> Iterator[str]:
        """Yield rules for causing and for preventing the claim; it is true if it is caused and not prevented."""
        caused, prevented = atom(f"{node} caused"), atom(f"{node} prevented")
        yield from _causes(caused, self.strengths, self.leak, atom)
        yield from _causes(prevented, self.inhibitors, 0.0, atom)
        yield f"{atom(node)} :- {caused}, \\+ {prevented}."


def _causes(effect: str, strengths: Mapping[str, float], leak: float, atom: Callable[[str], str]) -> Iterator[str]:
    yield f"{decimal(leak)}::{effect}."
    for child, strength in strengths.items():
        yield f"{decimal(strength)}::{effect} :- {atom(child)}."


@frozen
class JudgedLink(Link):
    """A probability stated by a model that read the children's reports; not computed from their probabilities."""

    kind: ClassVar[str] = "judged"
    p: float
    stale: bool = False
    """Whether something below has changed since; the probability is kept until the model is asked again."""

    @property
    def own_probability(self) -> float | None:
        """The probability that the model stated."""
        return self.p

    def problems(self, node: str, children: Sequence[str], *, intercept_limit: float) -> Iterator[TreeProblem]:
        """Check the probability, and warn if it is stale."""
        yield from _chance(node, "link.p", self.p)
        if self.stale:
            text = "was judged before something below it changed"
            yield TreeProblem(node=node, field="link", text=text, warning=True)

    def describe(self, children: Sequence[str]) -> str:
        """Name the children whose reports were read, and say if something below has changed since."""
        stale = " Something below it has changed since." if self.stale else ""
        return f"Judged as a whole from the reports on {enumeration(children)}.{stale}"


def every_child_problems(
    node: str, field: str, numbers: Mapping[str, object], children: Sequence[str]
) -> Iterator[TreeProblem]:
    """Check that exactly the children have a number."""
    for child in children:
        if child not in numbers:
            yield TreeProblem(node=node, field=field, text=f"{child} is a child but has no number here")
    for name in numbers:
        if name not in children:
            text = f"{name} is not a child; the children are {', '.join(children)}"
            yield TreeProblem(node=node, field=field, text=text)


def _chance(node: str, field: str, p: float) -> Iterator[TreeProblem]:
    if not (math.isfinite(p) and 0 <= p <= 1):
        yield TreeProblem(node=node, field=field, text=f"{p:g} is outside [0, 1]")


def _without(numbers: Mapping[str, float], child: str) -> dict[str, float]:
    return {id: number for id, number in numbers.items() if id != child}


def _picked_child(node: str, form: LinearLink, atom: Callable[[str], str]) -> Iterator[str]:
    """Yield an annotated disjunction that picks the deciding child or the base; obstacles decide by being false."""
    numbers = {"": form.base, **{child: abs(weight) for child, weight in form.weights.items()}}
    chances = {key: chance for key, chance in numbers.items() if chance > 0}
    # Their floating-point sum must not exceed 1.
    while chances and sum(chances.values()) > 1:
        largest = max(chances, key=lambda key: chances[key])
        chances[largest] -= max(sum(chances.values()) - 1, 1e-16)
    picks = {child: atom(f"{node} picks {child}") for child in chances}
    if not picks:
        yield f"0.0::{atom(node)}."
        return
    yield "; ".join(f"{decimal(chance)}::{picks[child]}" for child, chance in chances.items()) + "."
    for child, pick in picks.items():
        so = "\\+ " if child and form.weights[child] < 0 else ""
        yield f"{atom(node)} :- {pick}, {so}{atom(child)}." if child else f"{atom(node)} :- {pick}."
