"""A simulated world: a tree of claims whose true links and true chances are known, and questions that come out.

One world is one way in which claims hang together. A question in it is a draw of the leaves' true chances; how it
comes out is drawn claim by claim from the leaves up, by the very chances that the tree gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic.circuit import Circuit, run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.grow.analyze import ROOT, child_id, depth_of
from foretell.forecasters.tree.links import FormulaAssumption, FormulaLink, LinearLink, Link
from foretell.forecasters.tree.proposition import Proposition, Tree, leaves, post_order
from foretell.metrics.arrays import Bools, Floats

# The shape of a simulated tree.

TreeShape = Mapping[str, tuple[str, ...]]
"""By claim, its children; leaves have none."""


def draw_shape(
    leaves: int, rng: np.random.Generator, *, children: tuple[int, int] = (2, 4), shared: float = 0.0
) -> TreeShape:
    """A tree with at least so many leaves, taken apart from the top down as an analyzer does: shallow claims first.

    Each parent has a random number of children within the bounds. With `shared`, a parent's last child is with that
    chance a leaf that serves another parent already: one claim, used twice.

    >>> shape = draw_shape(5, np.random.default_rng(0))
    >>> list(shape)[:3], sum(not below for below in shape.values()) >= 5
    (['P0', 'P1', 'P2'], True)
    """
    if leaves < 1 or not 2 <= children[0] <= children[1]:
        raise ValueError(f"no tree has {leaves} leaves and {children[0]} to {children[1]} children")
    found: dict[str, tuple[str, ...]] = {ROOT: ()}
    open_ends, sealed = [ROOT], list[str]()
    while len(open_ends) + len(sealed) < leaves:
        shallow = min(map(depth_of, open_ends))
        candidates = [claim for claim in open_ends if depth_of(claim) == shallow]
        parent = candidates[int(rng.integers(len(candidates)))]
        open_ends.remove(parent)
        count = int(rng.integers(children[0], children[1] + 1))
        new = [child_id(parent, place) for place in range(1, count + 1)]
        if open_ends and rng.random() < shared:
            # It stays a leaf from now on, so that no claim comes to rest on itself.
            new[-1] = open_ends[int(rng.integers(len(open_ends)))]
            open_ends.remove(new[-1])
            sealed.append(new[-1])
        found[parent] = tuple(new)
        open_ends += [claim for claim in new if claim not in found]
        found |= {claim: () for claim in new if claim not in found}
    return found


LinkKind = Literal["linear", "logic"]
LINK_KINDS: tuple[LinkKind, ...] = ("linear", "logic")
INTERCEPT_LIMIT = 0.1
LEAST_WEIGHT = 0.8
"""Of what a true linear link has to give, the children have at least this part; the rest keeps the claim from true."""


@dataclass(frozen=True, kw_only=True)
class TreeWorldSettings:
    """What kind of world."""

    kind: LinkKind = "linear"
    """What every true link is: a weighted sum that is a conditional chance, or a formula."""
    leaves: int = 10
    children: tuple[int, int] = (2, 4)
    level: float = 0.5
    """Mean chance of a leaf."""
    size: float = 1.0
    """Leaves' chances are Beta(level·size, (1 − level)·size): 2 is uniform, less is surer, more is nearer the level."""
    obstacles: float = 0.1
    """Share of children that stand in the way, in formulas."""
    assumptions: float = 0.5
    """Share of formulas that take something for granted beside their children."""
    shared: float = 0.0
    """Chance that a claim rests on a leaf that serves another claim already."""

    def __post_init__(self) -> None:
        if not 0 < self.level < 1 or self.size <= 0:
            raise ValueError(f"no chances have the mean {self.level} and the size {self.size}")


@dataclass(frozen=True, kw_only=True)
class TreeWorld:
    """One world."""

    tree: Tree
    """With the true links; leaves stand at their mean chance."""
    settings: TreeWorldSettings

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Claims without children: the columns of every array of leaves."""
        return tuple(leaves(self.tree))

    @cached_property
    def circuit(self) -> Circuit:
        """The tree's operations."""
        return compile_tree(self.tree)

    def chances(self, leaf: Floats) -> dict[str, Floats]:
        """The true chance of every claim in each question (row) of `leaf`, questions × leaves."""
        inputs = {claim: leaf[:, place] for place, claim in enumerate(self.leaves)}
        values = run_many(self.circuit, inputs, len(leaf))
        return {claim: values[place] for claim, place in self.circuit.claims.items()}


@dataclass(frozen=True, kw_only=True)
class SimulatedQuestions:
    """Questions in one world."""

    leaf: Floats
    """True chances, questions × leaves."""
    chances: Mapping[str, Floats]
    """True chance of every claim, by question."""
    outcome: Floats
    """Whether the root came true, 0 or 1."""

    @property
    def truth(self) -> Floats:
        """True chance of the root."""
        return self.chances[ROOT]


def draw_world(settings: TreeWorldSettings, rng: np.random.Generator) -> TreeWorld:
    """A world of that kind."""
    shape = draw_shape(settings.leaves, rng, children=settings.children, shared=settings.shared)
    nodes: dict[str, Proposition] = {}
    for claim, children in shape.items():
        nodes[claim] = Proposition(id=claim, claim=f"Claim {claim}.", p=settings.level)
        if children:
            linear = settings.kind == "linear"
            link: Link = true_weights(children, rng) if linear else true_formula(children, settings, rng)
            nodes[claim] = Proposition(id=claim, claim=f"Claim {claim}.", children=children, link=link)
    return TreeWorld(tree=Tree(root=ROOT, nodes=nodes, intercept_limit=INTERCEPT_LIMIT), settings=settings)


def draw_questions(world: TreeWorld, questions: int, rng: np.random.Generator) -> SimulatedQuestions:
    """So many questions, with how they came out."""
    settings = world.settings
    a, b = settings.level * settings.size, (1 - settings.level) * settings.size
    leaf = rng.beta(a, b, (questions, len(world.leaves)))
    outcome = draw_outcomes(world, leaf, rng)[ROOT].astype(np.float64)
    return SimulatedQuestions(leaf=leaf, chances=world.chances(leaf), outcome=outcome)


def draw_outcomes(world: TreeWorld, leaf: Floats, rng: np.random.Generator) -> dict[str, Bools]:
    """Which claims came true, drawn from the leaves up; one row of `leaf` is one question."""
    so: dict[str, Bools] = {}
    for claim in post_order(world.tree):
        node = world.tree.nodes[claim]
        if not node.children:
            so[claim] = rng.random(len(leaf)) < leaf[:, world.leaves.index(claim)]
        elif isinstance(node.link, LinearLink):
            parts = [weight * so[child] for child, weight in node.link.weights.items()]
            so[claim] = rng.random(len(leaf)) < node.link.intercept + np.sum(parts, axis=0)
        else:
            assert isinstance(node.link, FormulaLink)
            given = node.link.assumption
            granted = rng.random(len(leaf)) < (given.p if given is not None else 0.0)
            known = {**so, ex.ASSUMPTION: granted}
            both, either = np.logical_and.reduce, np.logical_or.reduce
            so[claim] = ex.fold(ex.parse(node.link.expression), known.__getitem__, np.logical_not, both, either)
    return so


def true_weights(children: tuple[str, ...], rng: np.random.Generator) -> LinearLink:
    """Weights and intercept that are a conditional chance: none negative, together at most one."""
    intercept = float(rng.uniform(0, INTERCEPT_LIMIT))
    total = (1 - intercept) * rng.uniform(LEAST_WEIGHT, 1)
    parts = rng.dirichlet(np.ones(len(children))) * total
    return LinearLink(weights=dict(zip(children, parts.tolist(), strict=True)), intercept=intercept)


def true_formula(children: tuple[str, ...], settings: TreeWorldSettings, rng: np.random.Generator) -> FormulaLink:
    """Every child once, some of them as obstacles, joined by AND and OR at random; PA among them or not."""
    parts: list[ex.Expression] = [
        ex.Not(ex.Var(child)) if rng.random() < settings.obstacles else ex.Var(child) for child in children
    ]
    assumption = None
    if rng.random() < settings.assumptions:
        assumption = FormulaAssumption(text="The rest goes as it usually goes.", p=float(rng.uniform(0.05, 0.95)))
        parts.append(ex.Var(ex.ASSUMPTION))
    order = rng.permutation(len(parts)).tolist()
    return FormulaLink(expression=ex.to_text(_joined([parts[i] for i in order], rng)), assumption=assumption)


def _joined(parts: list[ex.Expression], rng: np.random.Generator) -> ex.Expression:
    if len(parts) == 1:
        return parts[0]
    cut = int(rng.integers(1, len(parts)))
    kind = ex.And if rng.random() < 0.5 else ex.Or
    return ex.joined(kind, [_joined(parts[:cut], rng), _joined(parts[cut:], rng)])
