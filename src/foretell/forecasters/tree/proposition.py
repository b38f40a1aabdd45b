"""A tree of propositions as a frozen value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foretell.questions.as_of import AsOf

# How a claim's probability follows from its children's: data on the node, so that what-if is arithmetic.


@dataclass(frozen=True, kw_only=True)
class LinearLink:
    """P = intercept + Σ weight·P(child)."""

    weights: Mapping[str, float]
    intercept: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FormulaAssumption:
    """`PA` of a formula: what it takes for granted beside its children, and how likely that is."""

    text: str
    p: float


@dataclass(frozen=True, kw_only=True)
class FormulaLink:
    """P of a Boolean expression over children's ids with AND, OR, NOT, parentheses and PA."""

    expression: str
    assumption: FormulaAssumption | None = None


@dataclass(frozen=True, kw_only=True)
class NoisyOrLink:
    """P = 1 − (1 − leak)·Π(1 − strength·child): each true child alone would bring the claim about."""

    strengths: Mapping[str, float]
    leak: float = 0.0


@dataclass(frozen=True, kw_only=True)
class InhibitedNoisyOrLink:
    """A noisy-or that other children can prevent: times Π(1 − inhibition·child) over the inhibitors."""

    strengths: Mapping[str, float]
    inhibitors: Mapping[str, float] = field(default_factory=dict[str, float])
    leak: float = 0.0


@dataclass(frozen=True, kw_only=True)
class AverageLink:
    """P = mean of the children's."""


@dataclass(frozen=True, kw_only=True)
class JudgedLink:
    """P was said by a model that read the children's reports; it does not follow from their numbers."""

    p: float
    stale: bool = False
    """A child has changed since: the number stands until it is asked for again."""


Link = LinearLink | FormulaLink | NoisyOrLink | InhibitedNoisyOrLink | AverageLink | JudgedLink


@dataclass(frozen=True, kw_only=True)
class Grounding:
    """Where a leaf's probability comes from."""

    grounder: str
    report: str = ""
    key_factor: str = ""
    """The one consideration that decided it, in a sentence."""
    sources: tuple[str, ...] = ()
    notebook: str = ""
    """Path of the .ipynb relative to the tree's file, if one was written."""
    error: str = ""
    """Why grounding failed; the leaf then has no probability of its own."""


@dataclass(frozen=True, kw_only=True)
class Proposition:
    """One claim: a leaf with a probability, or a parent whose probability follows from its children by its link."""

    id: str
    claim: str
    children: tuple[str, ...] = ()
    causality: str = ""
    """Why these children bear on the claim."""
    link: Link | None = None
    p: float | None = None
    """Given for leaves; computed for parents."""
    pinned: float | None = None
    """A value set on a parent from outside: it holds in place of what the link says, whatever the children do."""
    incomplete: tuple[str, ...] = ()
    """Computed: claims at or below this one without a number of their own, for which the tree's `missing` stands in."""
    grounding: Grounding | None = None
    report: str = ""
    """What the synthesiser wrote about the children."""
    key_factor: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Propositions by id, one of them the root. A claim with two parents is one claim, not two."""

    root: str
    nodes: Mapping[str, Proposition]
    as_of: AsOf | None = None
    notes: tuple[str, ...] = field(default=())
    intercept_limit: float = 0.1
    """Largest |intercept| of a linear link: children, not unexplained priors, should carry a claim."""
    missing: float = 0.5
    """What stands in for a claim without a number: a leaf that failed or awaits grounding, a parent without a link."""
    working: object = field(default=None, init=False, compare=False, repr=False)
    """Kept by whoever worked the numbers out, so that the next what-if need not find its way again; no part of the
    value, and not carried over by `dataclasses.replace`."""


# Ways through a tree: who is above, who is below, in which order.


def has_own_value(node: Proposition) -> bool:
    """Whether the number is given rather than computed: a leaf, a pinned or judged claim, one without a link yet."""
    return not node.children or node.pinned is not None or node.link is None or isinstance(node.link, JudgedLink)


def own_value(node: Proposition, missing: float) -> float:
    """The number of a claim that `has_own_value`; `missing` where nobody gave one."""
    if node.pinned is not None:
        return node.pinned
    if isinstance(node.link, JudgedLink):
        return node.link.p
    if node.children or node.p is None:
        return missing
    return node.p


def post_order(tree: Tree) -> list[str]:
    """Every claim that can be reached from the root, children before parents, each once.

    The order follows the children's order only, so that the same tree always computes in the same sequence.
    The tree must be free of cycles.
    """
    order: list[str] = []
    seen: set[str] = set()
    stack: list[tuple[str, bool]] = [(tree.root, False)]
    while stack:
        claim, done = stack.pop()
        if done:
            order.append(claim)
        elif claim not in seen:
            seen.add(claim)
            stack.append((claim, True))
            stack.extend((child, False) for child in reversed(tree.nodes[claim].children) if child not in seen)
    return order


def parents(tree: Tree) -> dict[str, list[str]]:
    """Who each claim bears on directly, in the order of the nodes."""
    found: dict[str, list[str]] = {claim: [] for claim in tree.nodes}
    for claim, node in tree.nodes.items():
        for child in node.children:
            found[child].append(claim)
    return found


@dataclass(frozen=True)
class TreeLayout:
    """How a tree hangs together: its post-order, each claim's place in it, and who is above whom."""

    order: Sequence[str]
    rank: Mapping[str, int]
    up: Mapping[str, Sequence[str]]


def layout(tree: Tree) -> TreeLayout:
    """The layout of a tree without cycles."""
    order = post_order(tree)
    return TreeLayout(order, {claim: i for i, claim in enumerate(order)}, parents(tree))


def leaves(tree: Tree) -> list[str]:
    """Claims without children, in the order of the tree."""
    return [claim for claim in post_order(tree) if not tree.nodes[claim].children]
