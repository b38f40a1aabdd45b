"""A simulated world for studies of trees: a random tree of claims whose links and probabilities are known exactly.

A question in a world is one draw of the leaves' true probabilities. Its outcome is drawn claim by claim from the leaves
up, with the probabilities that the tree's links give.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import numpy as np

from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic.circuit import Circuit, run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.grow.analyze import child_id, depth_of
from foretell.forecasters.tree.links import (
    INTERCEPT_LIMIT,
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    LinearLink,
    Link,
    NoisyOrLink,
)
from foretell.forecasters.tree.proposition import ROOT, Proposition, Tree, leaves, post_order
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats

WorldRule = Literal["linear", "logic", "noisy-or", "average"]
"""The rule that combines the children of every claim in a world."""
WORLD_RULES: tuple[WorldRule, ...] = ("linear", "logic", "noisy-or", "average")
FEWEST_CHILDREN, MOST_CHILDREN = 2, 4
LEAST_WEIGHT = 0.8
"""Minimum share of the probability left by the intercept that the children of a linear claim carry."""
OBSTACLES = 0.1
"""Share of children that a formula negates."""
ASSUMPTIONS = 0.5
"""Share of formulas with an assumption of their own."""


def draw_shape(leaves: int, rng: np.random.Generator) -> dict[str, tuple[str, ...]]:
    """Draw the children of every claim in a random tree with at least that many leaves, expanding shallow claims first.

    >>> shape = draw_shape(5, np.random.default_rng(0))
    >>> list(shape)[:3], sum(not below for below in shape.values()) >= 5
    (['P0', 'P1', 'P2'], True)
    """
    shape: dict[str, tuple[str, ...]] = {ROOT: ()}
    open_ends = [ROOT]
    while len(open_ends) < leaves:
        shallow = min(map(depth_of, open_ends))
        candidates = [claim for claim in open_ends if depth_of(claim) == shallow]
        parent = candidates[int(rng.integers(len(candidates)))]
        count = int(rng.integers(FEWEST_CHILDREN, MOST_CHILDREN + 1))
        shape[parent] = tuple(child_id(parent, place) for place in range(1, count + 1))
        shape |= dict.fromkeys(shape[parent], ())
        open_ends.remove(parent)
        open_ends += shape[parent]
    return shape


@frozen
class TreeWorld:
    """A tree with its true links."""

    tree: Tree

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Claims without children: the columns of every array of leaves."""
        return tuple(leaves(self.tree))

    @cached_property
    def circuit(self) -> Circuit:
        """The tree's operations."""
        return compile_tree(self.tree)

    def chances(self, leaf: Floats) -> dict[str, Floats]:
        """Return the true probability of every claim, for each row (question) of `leaf`."""
        inputs = {claim: leaf[:, place] for place, claim in enumerate(self.leaves)}
        values = run_many(self.circuit, inputs, len(leaf))
        return {claim: values[place] for claim, place in self.circuit.claims.items()}


@frozen
class SimulatedQuestions:
    """Questions in one world, with their outcomes."""

    leaf: Floats
    """True probabilities, questions × leaves."""
    truth: Floats
    """True probability of the root, by question."""
    outcome: Floats
    """Whether the root came true, 0 or 1."""


@frozen
class Simulation:
    """How many worlds and questions to simulate."""

    worlds: int = 60
    questions: int = 400
    """Number of questions in each world."""
    leaves: int = 10
    seed: int = 0

    def world(self, rule: WorldRule, place: int) -> tuple[TreeWorld, SimulatedQuestions]:
        """Return one world and its questions.

        Worlds at the same place share the tree and its leaves, whatever their rule.
        """
        world = draw_world(rule, self.leaves, np.random.default_rng([self.seed, place]))
        return world, draw_questions(world, self.questions, np.random.default_rng([self.seed, place, 1]))


def draw_world(rule: WorldRule, leaves: int, rng: np.random.Generator) -> TreeWorld:
    """Draw a random tree whose links all follow one rule."""
    nodes: dict[str, Proposition] = {}
    for claim, children in draw_shape(leaves, rng).items():
        link = _draw_link(rule, children, rng) if children else None
        p = None if children else 0.5
        nodes[claim] = Proposition(id=claim, claim=f"Claim {claim}.", p=p, children=children, link=link)
    return TreeWorld(tree=Tree(root=ROOT, nodes=nodes))


def draw_questions(world: TreeWorld, count: int, rng: np.random.Generator) -> SimulatedQuestions:
    """Draw questions whose leaves have uniformly distributed probabilities."""
    leaf = rng.random((count, len(world.leaves)))
    outcome = draw_outcomes(world, leaf, rng)[ROOT].astype(np.float64)
    return SimulatedQuestions(leaf=leaf, truth=world.chances(leaf)[ROOT], outcome=outcome)


def draw_outcomes(world: TreeWorld, leaf: Floats, rng: np.random.Generator) -> dict[str, Bools]:
    """Draw which claims come true, from the leaves up; each row of `leaf` is one question."""
    outcomes: dict[str, Bools] = {}
    for claim in post_order(world.tree):
        node = world.tree.nodes[claim]
        match node.link:
            case None:
                chance = leaf[:, world.leaves.index(claim)]
            case FormulaLink():
                outcomes[claim] = _draw_formula(node.link, outcomes, rng.random(len(leaf)))
                continue
            case NoisyOrLink():
                fails = [1 - strength * outcomes[child] for child, strength in node.link.strengths.items()]
                chance = 1 - (1 - node.link.leak) * np.prod(fails, axis=0)
            case _:
                form = node.linear_form
                assert form is not None
                chance = form.intercept + np.sum([w * outcomes[child] for child, w in form.weights.items()], axis=0)
        outcomes[claim] = rng.random(len(leaf)) < chance
    return outcomes


def _draw_formula(link: FormulaLink, outcomes: Mapping[str, Bools], draw: Floats) -> Bools:
    assumed = draw < (link.assumption.p if link.assumption is not None else 0.0)
    values = {**outcomes, ex.ASSUMPTION: assumed}
    both, either = np.logical_and.reduce, np.logical_or.reduce
    return ex.fold(ex.parse(link.expression), values.__getitem__, np.logical_not, both, either)


def _draw_link(rule: WorldRule, children: tuple[str, ...], rng: np.random.Generator) -> Link:
    match rule:
        case "linear":
            # A conditional probability: no weight is negative, and all of them add up to one at most.
            intercept = float(rng.uniform(0, INTERCEPT_LIMIT))
            total = (1 - intercept) * rng.uniform(LEAST_WEIGHT, 1)
            weights = (rng.dirichlet(np.ones(len(children))) * total).tolist()
            return LinearLink(weights=dict(zip(children, weights, strict=True)), intercept=intercept)
        case "logic":
            return _draw_expression(children, rng)
        case "noisy-or":
            strengths = rng.random(len(children)).tolist()
            leak = float(rng.uniform(0, INTERCEPT_LIMIT))
            return NoisyOrLink(strengths=dict(zip(children, strengths, strict=True)), leak=leak)
        case "average":
            return AverageLink()


def _draw_expression(children: tuple[str, ...], rng: np.random.Generator) -> FormulaLink:
    """Draw a formula that mentions every child once, in any order, with AND, OR and NOT at random."""
    parts: list[ex.Expression] = [
        ex.Not(ex.Var(child)) if rng.random() < OBSTACLES else ex.Var(child) for child in children
    ]
    assumption = None
    if rng.random() < ASSUMPTIONS:
        assumption = FormulaAssumption(text="Everything else goes as usual.", p=float(rng.uniform(0.05, 0.95)))
        parts.append(ex.Var(ex.ASSUMPTION))
    order = rng.permutation(len(parts)).tolist()
    return FormulaLink(expression=ex.to_text(_joined([parts[i] for i in order], rng)), assumption=assumption)


def _joined(parts: list[ex.Expression], rng: np.random.Generator) -> ex.Expression:
    if len(parts) == 1:
        return parts[0]
    cut = int(rng.integers(1, len(parts)))
    kind = ex.And if rng.random() < 0.5 else ex.Or
    return ex.joined(kind, [_joined(parts[:cut], rng), _joined(parts[cut:], rng)])
