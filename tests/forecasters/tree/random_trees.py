"""Random trees with shared claims, and their probabilities by enumerating all possible worlds."""

import random
from collections.abc import Sequence
from operator import not_

from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.case_links import CasesLink, cases_link
from foretell.forecasters.tree.cases import StatedCases
from foretell.forecasters.tree.links import (
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
)
from foretell.forecasters.tree.proposition import Proposition, Tree, has_own_value, own_value, post_order

CASE_KINDS = ("all", "any", "at_least", "weigh")
KINDS = ("linear", "formula", "noisy_or", "inhibited_noisy_or", "average", "judged")


def claim(id: str, **fields: object) -> Proposition:
    return Proposition(id=id, claim=f"Claim {id}.", **fields)


def tree_of(*nodes: Proposition, **fields: object) -> Tree:
    """Build a tree whose root is the first node."""
    return Tree(root=nodes[0].id, nodes={node.id: node for node in nodes}, **fields)


def formula_tree(expression: str, p: dict[str, float], assumed: float | None = None) -> Tree:
    assumption = None if assumed is None else FormulaAssumption(text="the rest", p=assumed)
    top = claim("P0", children=tuple(p), link=FormulaLink(expression=expression, assumption=assumption))
    return tree_of(top, *(claim(id, p=value) for id, value in p.items()))


def random_expression(rng: random.Random, names: Sequence[str], depth: int = 0) -> ex.Expression:
    """Return an expression that mentions every name at least once."""
    kind = rng.choice([ex.And, ex.Or])
    if len(names) == 1:
        parts = [ex.Var(names[0])]
        if depth < 3 and rng.random() < 0.25:
            parts.append(random_expression(rng, names, depth + 2))
    else:
        cut = rng.randint(1, len(names) - 1)
        again = [rng.choice(names[:cut])] if rng.random() < 0.4 else []
        parts = [random_expression(rng, part, depth + 1) for part in (names[:cut], [*names[cut:], *again])]
    joined = ex.joined(kind, parts)
    return ex.Not(joined) if rng.random() < 0.2 else joined


def random_link(rng: random.Random, children: Sequence[str], kinds: Sequence[str], *, proper: bool) -> Link:
    match rng.choice(kinds):
        case "linear" if proper:
            raw, intercept = [rng.random() for _ in children], rng.random() * 0.1
            shrink = (1 - intercept) * rng.uniform(0.3, 1) / sum(raw)
            return LinearLink(weights={c: w * shrink for c, w in zip(children, raw, strict=True)}, intercept=intercept)
        case "linear":
            return LinearLink(weights={c: rng.uniform(-1, 1) for c in children}, intercept=rng.uniform(-0.1, 0.1))
        case "formula":
            names = [*children, *(["PA"] if rng.random() < 0.4 else [])]
            assumption = FormulaAssumption(text="the rest", p=rng.random()) if "PA" in names else None
            rng.shuffle(names)
            return FormulaLink(expression=ex.to_text(random_expression(rng, names)), assumption=assumption)
        case "noisy_or":
            return NoisyOrLink(
                strengths={c: rng.random() for c in children}, leak=rng.choice([0.0, rng.random() * 0.3])
            )
        case "inhibited_noisy_or":
            cut = rng.randint(1, len(children))
            inhibitors = {c: rng.random() for c in children[cut:]}
            return InhibitedNoisyOrLink(
                strengths={c: rng.random() for c in children[:cut]}, inhibitors=inhibitors, leak=0.1
            )
        case "average":
            return AverageLink()
        case ("all" | "any" | "at_least" | "weigh") as kind:
            return cases_link(random_cases(rng, children, kind), dict.fromkeys(children, 0.5))
        case _:
            return JudgedLink(p=rng.random())


def random_cases(rng: random.Random, children: Sequence[str], kind: str) -> StatedCases:
    """Return cases of which each is at least as likely as those with fewer favourable children."""
    low, *between, high = sorted(rng.random() for _ in range(2 * len(children) + 2))
    half = len(children)
    return StatedCases(
        kind=kind,
        direction={child: rng.choice(["helps", "hinders"]) for child in children},
        none=low,
        all=high,
        only=dict(zip(children, between[:half], strict=True)),
        but=dict(zip(children, between[half:], strict=True)),
        k=rng.randint(1, len(children)),
    )


def random_tree(
    rng: random.Random, leaves: int, inner: int, kinds: Sequence[str] = KINDS, *, proper: bool = True, prefix: str = ""
) -> Tree:
    """Return a tree whose claims depend on any earlier claims, so that many are shared."""
    names = [f"{prefix}L{i}" for i in range(leaves)]
    nodes = {n: claim(n, p=rng.choice([rng.random(), rng.random(), rng.random(), 0.0, 1.0])) for n in names}
    unused = list(names)
    for i in range(inner):
        id = f"{prefix}N{i}"
        chosen = set(rng.sample(list(nodes), min(len(nodes), rng.randint(1, 3))))
        chosen |= set(unused) if i == inner - 1 else {rng.choice(unused)}
        children = sorted(chosen)
        rng.shuffle(children)
        unused = [n for n in unused if n not in chosen] + [id]
        pinned = rng.random() if rng.random() < 0.05 and i < inner - 1 else None
        link = random_link(rng, children, kinds, proper=proper)
        nodes[id] = claim(id, children=tuple(children), link=link, pinned=pinned)
    return Tree(root=f"{prefix}N{inner - 1}", nodes=nodes)


def wide_tree(
    rng: random.Random, size: int, kinds: Sequence[str] = ("linear", "formula", "noisy_or", "average")
) -> Tree:
    """Return a tree of about `size` claims with two to four children each and no shared claims."""
    children: dict[str, list[str]] = {}
    waiting, names = ["P0"], ["P0"]
    while len(names) < size:
        parent = waiting.pop(0)
        stem = "P" if parent == "P0" else f"{parent}."
        children[parent] = [f"{stem}{i + 1}" for i in range(rng.randint(2, 4))]
        waiting += children[parent]
        names += children[parent]
    nodes = {n: claim(n, p=rng.random()) for n in names if n not in children}
    for parent, kids in children.items():
        nodes[parent] = claim(parent, children=tuple(kids), link=random_link(rng, kids, kinds, proper=True))
    return Tree(root="P0", nodes=nodes)


def chance(node: Proposition, world: dict[str, bool]) -> float:
    """Return the probability of a claim given its children, directly from the definition of its link."""
    link = node.link
    match link:
        case CasesLink():
            favourable = [world[child] == (way == "helps") for child, way in link.direction.items()]
            position = sum(2**place for place, so in enumerate(reversed(favourable)) if not so)
            return link.chances[position]
        case LinearLink():
            return link.intercept + sum(link.weights[c] * world[c] for c in node.children)
        case AverageLink():
            return sum(world[c] for c in node.children) / len(node.children)
        case NoisyOrLink() | InhibitedNoisyOrLink():
            none = 1 - link.leak
            for c, strength in link.strengths.items():
                none *= 1 - strength * world[c]
            p = 1 - none
            for c, strength in (link.inhibitors if isinstance(link, InhibitedNoisyOrLink) else {}).items():
                p *= 1 - strength * world[c]
            return p
        case FormulaLink():
            expression = ex.parse(link.expression)
            p = link.assumption.p if link.assumption else 0.0
            worlds = ({**world, "PA": value} for value in (True, False))
            if_true, if_false = (ex.fold(expression, values.__getitem__, not_, all, any) for values in worlds)
            return p * if_true + (1 - p) * if_false
        case _:
            raise AssertionError


def by_worlds(tree: Tree) -> dict[str, float]:
    """Return every claim's probability as the total weight of the worlds in which it is true."""
    worlds: list[tuple[dict[str, bool], float]] = [({}, 1.0)]
    for id in post_order(tree):
        node = tree.nodes[id]
        grown: list[tuple[dict[str, bool], float]] = []
        for world, weight in worlds:
            p = own_value(node, tree.missing) if has_own_value(node) else chance(node, world)
            grown += [({**world, id: True}, weight * p)] if p else []
            grown += [({**world, id: False}, weight * (1 - p))] if p != 1 else []
        worlds = grown
    return {id: sum(weight for world, weight in worlds if world[id]) for id in post_order(tree)}
