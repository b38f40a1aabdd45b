"""A tree as a Bayes net, in the two formats that most programs read: BIF and XMLBIF 0.3."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from foretell.forecasters.tree import expression as ex
from foretell.forecasters.tree.export.names import Names, decimal, one_line
from foretell.forecasters.tree.links import Average, Formula, InhibitedNoisyOr, Linear, NoisyOr
from foretell.forecasters.tree.problems import InvalidTree, Problem
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.scaling import insist_on_bayes_net
from foretell.forecasters.tree.walk import has_own_value, own_value, post_order

MOST_PARENTS = 16
"""A table has 2ⁿ rows."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One binary variable and its table."""

    name: str
    id: str
    """Of the claim, or "P1:PA"."""
    text: str
    parents: tuple[str, ...] = ()
    """Names of the variables it hangs on: what is a child in the tree is a parent in the net."""
    chances: tuple[float, ...] = ()
    """P(true) for every combination of the parents, the first parent slowest, true before false."""


def bayes_net(tree: Tree) -> list[Variable]:
    """The variables, parents before those that hang on them.

    Linear links that are no conditional chance have no table: `InvalidTree` names them and offers scaling.
    """
    insist_on_bayes_net(tree)
    names = Names()
    found: list[Variable] = []
    for claim in post_order(tree):
        node = tree.nodes[claim]
        assumption = node.link.assumption if isinstance(node.link, Formula) else None
        if assumption is not None and not has_own_value(node):
            key = f"{claim}:{ex.ASSUMPTION}"
            found.append(Variable(name=names.of(key), id=key, text=assumption.text, chances=(assumption.p,)))
        found.append(_variable(tree, node, names))
    return found


def _variable(tree: Tree, node: Proposition, names: Names) -> Variable:
    if has_own_value(node):
        p = own_value(node, tree.missing)
        return Variable(name=names.of(node.id), id=node.id, text=node.claim, chances=(p,))
    keys = list(node.children)
    if isinstance(node.link, Formula) and node.link.assumption is not None:
        keys.append(f"{node.id}:{ex.ASSUMPTION}")
    if len(keys) > MOST_PARENTS:
        text = f"has {len(keys)} children: a table of 2^{len(keys)} rows is too large"
        raise InvalidTree([Problem(node=node.id, field="children", text=text, hint="put some of them under one claim")])
    worlds = (dict(zip(keys, world, strict=True)) for world in product((True, False), repeat=len(keys)))
    chances = tuple(min(max(_chance(node, world), 0.0), 1.0) for world in worlds)
    parents = tuple(names.of(key) for key in keys)
    return Variable(name=names.of(node.id), id=node.id, text=node.claim, parents=parents, chances=chances)


def _chance(node: Proposition, world: Mapping[str, bool]) -> float:
    """The chance of a claim where its children are so."""
    match node.link:
        case Linear(weights=weights, intercept=intercept):
            return intercept + sum(weights[child] for child in node.children if world[child])
        case Average():
            return sum(world[child] for child in node.children) / len(node.children)
        case Formula(expression=text):
            assumed = world.get(f"{node.id}:{ex.ASSUMPTION}", False)
            return float(ex.truth(ex.parse(text), {**world, ex.ASSUMPTION: assumed}))
        case NoisyOr(strengths=strengths, leak=leak):
            return 1 - (1 - leak) * _none_works(strengths, world)
        case InhibitedNoisyOr(strengths=strengths, inhibitors=inhibitors, leak=leak):
            return (1 - (1 - leak) * _none_works(strengths, world)) * _none_works(inhibitors, world)
        case _:
            raise TypeError(f"{node.id} has a number of its own")


def _none_works(strengths: Mapping[str, float], world: Mapping[str, bool]) -> float:
    left = 1.0
    for child, strength in strengths.items():
        left *= 1 - strength * world[child]
    return left


def to_bif(tree: Tree) -> str:
    """The net in the Bayesian Interchange Format."""
    variables = bayes_net(tree)
    lines = ["network tree {", "}"]
    for variable in variables:
        lines += [f"// {variable.id}: {one_line(variable.text)}", f"variable {variable.name} {{"]
        lines += ["  type discrete [ 2 ] { true, false };", "}"]
    for variable in variables:
        given = f" | {', '.join(variable.parents)}" if variable.parents else ""
        lines.append(f"probability ( {variable.name}{given} ) {{")
        lines += [f"  {row}" for row in _rows(variable)]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _rows(variable: Variable) -> Iterator[str]:
    for world, chance in zip(product(("true", "false"), repeat=len(variable.parents)), variable.chances, strict=True):
        head = f"({', '.join(world)})" if world else "table"
        yield f"{head} {decimal(chance)}, {decimal(1 - chance)};"


def to_xmlbif(tree: Tree) -> str:
    """The net as XMLBIF 0.3."""
    variables = bayes_net(tree)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>tree</NAME>"]
    for variable in variables:
        # A comment, since readers disagree about what a property may hold; it must not contain two hyphens.
        lines.append(f"<!-- {one_line(f'{variable.id}: {variable.text}').replace('-', '‐')} -->")
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{variable.name}</NAME>"]
        lines += ["  <OUTCOME>true</OUTCOME>", "  <OUTCOME>false</OUTCOME>", "</VARIABLE>"]
    for variable in variables:
        table = " ".join(f"{decimal(chance)} {decimal(1 - chance)}" for chance in variable.chances)
        lines += ["<DEFINITION>", f"  <FOR>{variable.name}</FOR>"]
        lines += [f"  <GIVEN>{parent}</GIVEN>" for parent in variable.parents]
        lines += [f"  <TABLE>{table}</TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"
