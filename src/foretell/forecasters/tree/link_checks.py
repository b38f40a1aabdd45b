"""Whether a link fits its claim: every child used, every number where it must be."""

import math
from collections.abc import Iterator, Mapping

from foretell.forecasters.tree.expression import ASSUMPTION, FormulaError, mentions, parse
from foretell.forecasters.tree.links import Average, Formula, InhibitedNoisyOr, Judged, Linear, Link, NoisyOr
from foretell.forecasters.tree.problems import Problem
from foretell.forecasters.tree.proposition import Proposition

INTERCEPT_LIMIT = 0.1


def link_problems(node: Proposition, link: Link, *, intercept_limit: float = INTERCEPT_LIMIT) -> list[Problem]:
    """What is wrong with `link` as the link of `node`, by itself; whether its result fits is seen in the tree.

    >>> node = Proposition(id="P0", claim="c", children=("P1", "P2"))
    >>> for problem in link_problems(node, Formula(expression="P1 AND P3")):
    ...     print(problem.told())
    node P0, link.expression: character 8: P3 is not a child; the children are P1, P2
    P1 AND P3
           ^
    node P0, link.expression: P2 is a child but does not occur (use every child, or remove it)
    """
    match link:
        case Linear():
            return list(_linear(node, link, intercept_limit))
        case Formula():
            return list(_formula(node, link))
        case NoisyOr():
            return list(_noisy_or(node, link.strengths, {}, link.leak))
        case InhibitedNoisyOr():
            return list(_noisy_or(node, link.strengths, link.inhibitors, link.leak))
        case Average():
            return []
        case Judged():
            return list(_chance(node, "link.p", link.p))


def _linear(node: Proposition, link: Linear, limit: float) -> Iterator[Problem]:
    yield from _same_ids(node, "link.weights", link.weights)
    for child, weight in link.weights.items():
        field = f"link.weights.{child}"
        if not math.isfinite(weight):
            yield Problem(node=node.id, field=field, text=f"{weight} is not a finite number")
        elif abs(weight) > 1:
            hint = "a child moves its parent at most as far as it moves itself"
            yield Problem(node=node.id, field=field, text=f"{weight:g} is outside [-1, 1]", hint=hint)
    if not math.isfinite(link.intercept):
        yield Problem(node=node.id, field="link.intercept", text=f"{link.intercept} is not a finite number")
    elif abs(link.intercept) > limit + 1e-12:
        yield Problem(
            node=node.id,
            field="link.intercept",
            text=f"{link.intercept:g} is outside [-{limit:g}, {limit:g}]",
            hint="let the children carry the claim, or raise intercept_limit of the tree",
        )


def _formula(node: Proposition, link: Formula) -> Iterator[Problem]:
    try:
        parse(link.expression)
    except FormulaError as error:
        yield _in_formula(node, error)
        return
    found = mentions(link.expression)
    for name, position in found:
        if name != ASSUMPTION and name not in node.children:
            text = f"{name} is not a child; the children are {', '.join(node.children)}"
            error = FormulaError(text, link.expression, position)
            near = [known for known in (*node.children, ASSUMPTION) if known.lower() == name.lower()]
            yield _in_formula(node, error, f"did you mean {near[0]}?" if near else "")
    named = {name for name, _ in found}
    for child in node.children:
        if child not in named:
            text = f"{child} is a child but does not occur"
            yield Problem(node=node.id, field="link.expression", text=text, hint="use every child, or remove it")
    yield from _assumption(node, link, used=ASSUMPTION in named)


def _assumption(node: Proposition, link: Formula, *, used: bool) -> Iterator[Problem]:
    if link.assumption is not None:
        yield from _chance(node, "link.assumption.p", link.assumption.p)
        if not used:
            text = "an assumption is given, but PA does not occur in the expression"
            yield Problem(node=node.id, field="link.assumption", text=text, warning=True)
    elif used:
        hint = 'give "assumption": {"text": …, "p": …}'
        yield Problem(node=node.id, field="link.assumption", text="PA occurs but nothing says what it is", hint=hint)


def _in_formula(node: Proposition, error: FormulaError, hint: str = "") -> Problem:
    return Problem(node=node.id, field="link.expression", text=str(error), hint=hint, pointed=error.pointed)


def _noisy_or(
    node: Proposition, strengths: Mapping[str, float], inhibitors: Mapping[str, float], leak: float
) -> Iterator[Problem]:
    yield from _same_ids(node, "link.strengths", {**strengths, **inhibitors})
    for child in strengths:
        if child in inhibitors:
            text = f"{child} cannot both bring the claim about and prevent it"
            yield Problem(node=node.id, field="link.inhibitors", text=text)
    for field, numbers in (("strengths", strengths), ("inhibitors", inhibitors)):
        for child, number in numbers.items():
            yield from _chance(node, f"link.{field}.{child}", number)
    yield from _chance(node, "link.leak", leak)


def _same_ids(node: Proposition, field: str, given: Mapping[str, object]) -> Iterator[Problem]:
    """Every child has a number, and nobody else has."""
    for child in node.children:
        if child not in given:
            yield Problem(node=node.id, field=field, text=f"{child} is a child but has no number here")
    for name in given:
        if name not in node.children:
            text = f"{name} is not a child; the children are {', '.join(node.children)}"
            yield Problem(node=node.id, field=field, text=text)


def _chance(node: Proposition, field: str, p: float) -> Iterator[Problem]:
    if not (math.isfinite(p) and 0 <= p <= 1):
        yield Problem(node=node.id, field=field, text=f"{p:g} is outside [0, 1]")
