"""A simulated world: a tree of claims whose true links and true chances are known, and questions that come out.

One world is one way in which claims hang together. A question in it is a draw of the leaves' true chances; how it
comes out is drawn claim by claim from the leaves up, by the very chances that the tree gives.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic.circuit import Circuit, run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.formula import ASSUMPTION
from foretell.forecasters.tree.grow.analyze import ROOT, child_id, depth_of
from foretell.forecasters.tree.links import AverageLink, FormulaAssumption, FormulaLink, LinearLink, Link, NoisyOrLink
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


# A tree in which every number of a link is an input of the circuit, so that a thousand synthesizers cost one compile.


# What a synthesizer who knows the world would answer: for each rule, the link nearest to the true one.
#


# A tree in which every number of a link is an input of the circuit, so that a thousand synthesizers cost one compile.
# A weight is written as a claim of its own: w·x is the chance of "w AND x". The operations are the ordinary ones of the
# tree; only the numbers come from outside, and may differ from question to question and from run to run.


# Nearest over the questions of the world, claim by claim, by the squared error of the claim's chance. Where the true
# link is of the rule's own kind it is the answer.


STIFF = 1e4
"""Weight of an equation that has to hold."""
TrueChances = Mapping[str, Floats]
"""By claim, its true chance in each of the questions a link is fitted on."""


def fitted_tree(world: TreeWorld, rule: str, known: TrueChances) -> Tree:
    """The world's tree with every link as that rule would have it."""
    fit = FITS[rule]
    nodes = {
        claim: replace(node, link=fit(node, known)) if node.children else node
        for claim, node in world.tree.nodes.items()
    }
    return replace(world.tree, nodes=nodes)


def nearest_weights(node: Proposition, known: TrueChances) -> LinearLink:
    """Weights within [−1, 1] and an intercept within ±0.1 by least squares."""
    from scipy.optimize import lsq_linear

    if isinstance(node.link, LinearLink):
        return node.link
    columns = np.column_stack([np.ones(len(known[node.id])), *(known[child] for child in node.children)])
    most = np.array([INTERCEPT_LIMIT, *np.ones(len(node.children))])
    found = lsq_linear(columns, known[node.id], (-most, most)).x.tolist()
    return LinearLink(weights=dict(zip(node.children, found[1:], strict=True)), intercept=found[0])


def nearest_chances(node: Proposition, known: TrueChances) -> LinearLink:
    """The nearest weights that are a conditional chance: none negative, with the intercept at most one together.

    Non-negative least squares, the two bounds as equations with a slack of their own.
    """
    from scipy.optimize import nnls

    if isinstance(node.link, LinearLink):
        return node.link
    y, width = known[node.id], len(node.children) + 1
    columns = np.column_stack([np.ones(len(y)), *(known[child] for child in node.children), np.zeros((len(y), 2))])
    bounds = np.zeros((2, width + 2))
    bounds[0, [0, width]] = STIFF
    bounds[1, [*range(width), width + 1]] = STIFF
    right = np.concatenate([y, [STIFF * INTERCEPT_LIMIT, STIFF]])
    found = nnls(np.vstack([columns, bounds]), right)[0][:width]
    found = found / max(1.0, float(found.sum()))
    intercept, *weights = found.tolist()
    return LinearLink(weights=dict(zip(node.children, weights, strict=True)), intercept=min(intercept, INTERCEPT_LIMIT))


def nearest_formula(node: Proposition, known: TrueChances) -> FormulaLink:
    """The best of the plain formulas over all children, with the chance of its assumption that suits it best.

    Children that speak against the claim stand behind NOT; those that matter most stand at the head.
    """
    if isinstance(node.link, FormulaLink):
        return node.link
    y, best = known[node.id], (np.inf, FormulaLink(expression=""))
    for expression in plain_formulas(_by_weight(node, known)):
        without, granted = (chance_of(expression, {**known, ex.ASSUMPTION: np.full(len(y), p)}) for p in (0.0, 1.0))
        step = granted - without
        size = float(step @ step)
        p = float(np.clip(step @ (y - without) / size, 0, 1)) if size else 0.0
        error = float(np.mean((without + p * step - y) ** 2))
        if error < best[0]:
            assumption = FormulaAssumption(text="The rest goes as it usually goes.", p=p)
            best = error, FormulaLink(expression=ex.to_text(expression), assumption=assumption)
    return best[1]


def _by_weight(node: Proposition, known: TrueChances) -> list[ex.Expression]:
    y = known[node.id] - known[node.id].mean()
    pull = {child: float(y @ (known[child] - known[child].mean())) for child in node.children}
    order = sorted(node.children, key=lambda child: -abs(pull[child]))
    return [ex.Var(child) if pull[child] >= 0 else ex.Not(ex.Var(child)) for child in order]


def plain_formulas(parts: Sequence[ex.Expression]) -> Iterator[ex.Expression]:
    """Formulas as people write them: all or any of the children, a head and a tail, and the assumption somewhere.

    >>> [ex.to_text(one) for one in plain_formulas([ex.Var("A"), ex.Var("B")])][:3]
    ['A AND B AND PA', '(A AND B) OR PA', '(A OR B) AND PA']
    """
    both, either = ex.And, ex.Or
    given = ex.Var(ex.ASSUMPTION)
    for whole in (ex.joined(both, parts), ex.joined(either, parts)):
        yield ex.joined(both, [whole, given])
        yield ex.joined(either, [whole, given])
    for cut in range(1, len(parts)):
        for within in (both, either):
            head, tail = ex.joined(within, parts[:cut]), ex.joined(within, parts[cut:])
            yield ex.joined(both, [head, ex.joined(either, [tail, given])])
            yield ex.joined(either, [head, ex.joined(both, [tail, given])])


def chance_of(expression: ex.Expression, known: TrueChances) -> Floats:
    """The chance of an expression in which no claim occurs twice, its claims independent."""

    def both(parts: list[Floats]) -> Floats:
        return np.prod(parts, axis=0)

    def either(parts: list[Floats]) -> Floats:
        return 1 - np.prod([1 - part for part in parts], axis=0)

    return ex.fold(expression, known.__getitem__, lambda chance: 1 - chance, both, either)


def nearest_noisy_or(node: Proposition, known: TrueChances) -> NoisyOrLink:
    """Strengths and leak by bounded least squares."""
    from scipy.optimize import least_squares

    x = np.column_stack([known[child] for child in node.children])
    y = known[node.id]

    def off(numbers: Floats) -> Floats:
        return 1 - (1 - numbers[0]) * np.prod(1 - numbers[1:] * x, axis=1) - y

    start = np.full(x.shape[1] + 1, 0.3)
    found = least_squares(off, start, bounds=(0, 1), max_nfev=30).x.tolist()
    return NoisyOrLink(strengths=dict(zip(node.children, found[1:], strict=True)), leak=found[0])


BAYES_NET = "bayes-net"
"""The linear rule with weights that are those of a Bayes net."""
FITS: Mapping[str, Callable[[Proposition, TrueChances], Link]] = {
    "linear": nearest_weights,
    BAYES_NET: nearest_chances,
    "logic": nearest_formula,
    "noisy-or": nearest_noisy_or,
    "vanilla": nearest_weights,
    "average": lambda node, known: AverageLink(),
    "random": lambda node, known: LinearLink(weights=dict.fromkeys(node.children, 1 / len(node.children))),
}
"""By rule. A judge (vanilla) who looks at numbers weighs them as `linear` does; `random` weights are drawn later."""


NumberRole = Literal["weight", "intercept", "chance"]
HALF = 0.5
UNSURE_INTERCEPT = 0.05
"""How much an intercept varies where weights vary by a factor of e."""


@dataclass(frozen=True, kw_only=True)
class LinkNumber:
    """One number of a link."""

    input: str
    """Its name in the circuit."""
    node: str
    child: str
    """Empty for an intercept, a leak or an assumption."""
    role: NumberRole
    value: float

    def as_input(self, values: Floats) -> Floats:
        """As a chance, which is all that a claim can have: weights without their sign, intercepts from −1/2 up."""
        if self.role == "intercept":
            return values + HALF
        return np.abs(values)


@dataclass(frozen=True, kw_only=True)
class ParametricTree:
    """A tree ready to be run with other numbers."""

    circuit: Circuit
    leaves: tuple[str, ...]
    numbers: tuple[LinkNumber, ...]

    def run(self, leaf: Floats, numbers: Mapping[str, Floats] | None = None) -> Floats:
        """The root for each row of `leaf`, questions × leaves; numbers that are not given are as they were.

        A weight keeps the sign it had.
        """
        inputs = {claim: leaf[:, place] for place, claim in enumerate(self.leaves)}
        given = numbers or {}
        inputs |= {n.input: n.as_input(given[n.input]) for n in self.numbers if n.input in given}
        values = run_many(self.circuit, inputs, len(leaf))
        return values[self.circuit.claims[self.circuit.root]]

    def shaken(self, noise: float, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """The numbers as `count` synthesizers would give them, who are unsure by `noise`.

        Weights are off by factors exp(noise·z), but add up to what they did; chances (strengths, leaks, assumptions)
        by noise·z in their log-odds; intercepts by 0.05·noise·z.
        """
        found: dict[str, Floats] = {}
        for number in self.numbers:
            z = noise * rng.standard_normal(count)
            match number.role:
                case "weight":
                    found[number.input] = number.value * np.exp(z)
                case "intercept":
                    found[number.input] = number.value + UNSURE_INTERCEPT * z
                case "chance":
                    found[number.input] = sigmoid(logit(np.full(count, number.value)) + z)
        return self._rescaled(found)

    def drawn(self, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Weights that are equally likely to be any that add up to one, and no intercepts."""
        found: dict[str, Floats] = {}
        for node in dict.fromkeys(number.node for number in self.numbers):
            names = [number.input for number in self.numbers if number.node == node and number.role == "weight"]
            found |= dict(zip(names, rng.dirichlet(np.ones(len(names)), count).T, strict=True))
        return found | {n.input: np.zeros(count) for n in self.numbers if n.role == "intercept"}

    def _rescaled(self, found: dict[str, Floats]) -> dict[str, Floats]:
        """Weights of each claim so that their sizes add up to what they did before."""
        for node in dict.fromkeys(number.node for number in self.numbers):
            mine = [number for number in self.numbers if number.node == node and number.role == "weight"]
            total = np.sum([np.abs(found[number.input]) for number in mine], axis=0)
            before = sum(abs(number.value) for number in mine)
            for number in mine if before > 0 else ():
                found[number.input] = found[number.input] * before / total
        return found


def parametric_tree(tree: Tree) -> ParametricTree:
    """The tree with its links' numbers as inputs. Averages have none; assumptions are inputs already."""
    draft = _TreeDraft()
    for node in tree.nodes.values():
        draft.add(node)
    circuit = compile_tree(Tree(root=tree.root, nodes=draft.nodes, missing=tree.missing))
    return ParametricTree(circuit=circuit, leaves=tuple(leaves(tree)), numbers=tuple(draft.numbers))


class _TreeDraft:
    """Claims rewritten one by one."""

    def __init__(self) -> None:
        self.nodes: dict[str, Proposition] = {}
        self.numbers: list[LinkNumber] = []

    def add(self, node: Proposition) -> None:
        match node.link:
            case LinearLink():
                parts = [self._product(node.id, child, "weight", w) for child, w in node.link.weights.items()]
                signs = [-1.0 if w < 0 else 1.0 for w in node.link.weights.values()]
                parts.append(self._number(node.id, "", "intercept", node.link.intercept))
                self._keep(
                    node, parts, LinearLink(weights=dict(zip(parts, [*signs, 1.0], strict=True)), intercept=-HALF)
                )
            case NoisyOrLink():
                parts = [self._product(node.id, child, "chance", s) for child, s in node.link.strengths.items()]
                parts.append(self._number(node.id, "", "chance", node.link.leak))
                self._keep(node, parts, FormulaLink(expression=" OR ".join(parts)))
            case FormulaLink() if node.link.assumption is not None:
                given = node.link.assumption.p
                name = f"{node.id}:{ASSUMPTION}"
                self.numbers.append(LinkNumber(input=name, node=node.id, child="", role="chance", value=given))
                self.nodes[node.id] = node
            case _:
                self.nodes[node.id] = node

    def _keep(self, node: Proposition, parts: list[str], link: Link) -> None:
        self.nodes[node.id] = replace(node, children=tuple(parts), link=link)

    def _product(self, node: str, child: str, role: NumberRole, value: float) -> str:
        """A claim with the chance value·x."""
        number = self._number(node, child, role, value)
        name = f"{number}_times"
        link = FormulaLink(expression=f"{number} AND {child}")
        self.nodes[name] = Proposition(id=name, claim=name, children=(number, child), link=link)
        return name

    def _number(self, node: str, child: str, role: NumberRole, value: float) -> str:
        name = f"number_{len(self.numbers)}"
        number = LinkNumber(input=name, node=node, child=child, role=role, value=value)
        self.numbers.append(number)
        self.nodes[name] = Proposition(id=name, claim=name, p=float(number.as_input(np.array(value))))
        return name


# Synthesizers at work on the trees of simulated worlds. How good they are is set: a simulation shows how errors travel.


SIMULATED_RULES = ("linear", BAYES_NET, "vanilla", "logic", "noisy-or", "average", "random")


@dataclass(frozen=True, kw_only=True)
class SimulatedSynthesizer:
    """Gives the numbers of links that fit the world best, each off by `noise` (see `ParametricTree.shaken`)."""

    noise: float = 0.3
    judgement: float = 0.15
    """Error of a judge (rule `vanilla`) who reads reports: the standard deviation of what is said of each claim."""
    numbers: float = 0.2
    """How far such a judge goes by the children's numbers instead."""


class WorldSolver:
    """What a synthesizer makes of one world by any rule; the fitted links are computed when first needed."""

    def __init__(self, world: TreeWorld, known: TrueChances) -> None:
        self.world = world
        self._known = known
        self._sketches: dict[str, ParametricTree] = {}

    def sketch(self, rule: str) -> ParametricTree:
        """The world's tree as that rule has it."""
        if rule not in self._sketches:
            self._sketches[rule] = parametric_tree(fitted_tree(self.world, rule, self._known))
        return self._sketches[rule]

    def numbers(
        self, rule: str, how: SimulatedSynthesizer, asked: SimulatedQuestions, rng: np.random.Generator
    ) -> dict[str, Floats]:
        """The numbers of the rule's links as the synthesizer gives them, anew for every question."""
        made, count = self.sketch(rule), len(asked.leaf)
        if rule == "random":
            return made.drawn(count, rng)
        numbers = made.shaken(how.noise, count, rng)
        return _judge_claims(made, numbers, asked, how, rng) if rule == "vanilla" else numbers


def _judge_claims(
    made: ParametricTree,
    numbers: dict[str, Floats],
    asked: SimulatedQuestions,
    how: SimulatedSynthesizer,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """A claim as a judge has it: mostly its true chance with an error of the judge's own, partly the weighted sum."""
    found = {name: how.numbers * value for name, value in numbers.items()}
    for number in made.numbers:
        if number.role == "intercept":
            said = asked.chances[number.node] + how.judgement * rng.standard_normal(len(asked.leaf))
            found[number.input] = found[number.input] + (1 - how.numbers) * np.clip(said, 0.0, 1.0)
    return found


FITTED_ON = 256
"""Questions on which links are fitted, apart from those that are asked."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How many worlds, questions and runs are simulated."""

    worlds: int = 60
    questions: int = 100
    """In each world."""
    kinds: tuple[LinkKind, ...] = LINK_KINDS
    """Of the worlds, in turn."""
    settings: TreeWorldSettings = field(default_factory=TreeWorldSettings)
    seed: int = 0

    def stage(self, place: int) -> tuple[TreeWorld, WorldSolver, SimulatedQuestions]:
        """One world with its fitted links and its questions; the same for the same seed and place."""
        rng = np.random.default_rng([self.seed, place])
        world = draw_world(replace(self.settings, kind=self.kinds[place % len(self.kinds)]), rng)
        solver = WorldSolver(world, draw_questions(world, FITTED_ON, rng).chances)
        return world, solver, draw_questions(world, self.questions, rng)

    @property
    def description(self) -> dict[str, object]:
        """What it takes to run it again."""
        return {
            "worlds": self.worlds,
            "questions per world": self.questions,
            "kinds": list(self.kinds),
            "leaves": self.settings.leaves,
            "seed": self.seed,
        }
