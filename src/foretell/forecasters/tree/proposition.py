"""Data types of a tree of claims, and traversals of it."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from foretell.forecasters.tree.links import INTERCEPT_LIMIT, LinearLink, Link
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.field_checks import check_fields
from foretell.questions.forecast import Cost, Reconciliation

ROOT = "P0"
"""The id of the claim that a tree is about."""
MISSING = 0.5
"""Default probability used for claims that have none."""


@frozen
class Grounding:
    """Where a leaf's probability comes from. The order of the fields is that of tree files."""

    grounder: str = ""
    key_factor: str = ""
    """The one consideration that decided the probability, in a sentence."""
    report: str = ""
    sources: tuple[str, ...] = ()
    notebook: str = ""
    """Path of the `.ipynb` file relative to the tree file, if one was written."""
    error: str = ""
    """Why grounding failed; the leaf then has no probability of its own."""
    trials: tuple[float, ...] = ()
    """Results of several independent trials; p is their mean."""
    route: tuple[str, ...] = ()
    """Why this grounder was used, and which ones failed before it."""
    caveat: str = ""
    """What its research lacked, such as a search that worked; the probability then rests on the model alone."""


@frozen
class Proposition:
    """One claim: a leaf with a probability, or a parent whose probability follows from its children by its link.

    The order of the fields is that of tree files.
    """

    id: str
    claim: str
    p: float | None = None
    """Probability: given for leaves, computed for parents."""
    pinned: float | None = None
    """Probability that overrides the link of a parent, whatever its children are."""
    children: tuple[str, ...] = ()
    causality: str = ""
    """Why these children bear on the claim."""
    link: Link | None = None
    rule: str = ""
    """The synthesis rule that made the link; empty if a person wrote it."""
    failed: str = ""
    """Why the rule failed, if the mean of the children is used instead."""
    stale: str = ""
    """What has changed since the claim was grounded or its link was judged; empty if nothing has."""
    key_factor: str = ""
    report: str = ""
    """Report of the synthesizer on the children."""
    grounding: Grounding | None = None
    together: Mapping[str, float] = field(default_factory=dict[str, float])
    """Judged correlation of each pair of children, with keys such as "P1 P2"."""
    row: Mapping[str, float] = field(default_factory=dict[str, float])
    """Computed: the probability of each option, if the claim answers several; p is that of the first."""
    incomplete: tuple[str, ...] = ()
    """Computed: claims at or below this one that have no probability; the tree's `missing` is used for them."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def linear_form(self) -> LinearLink | None:
        """The link as a weighted sum of the children, if it is one."""
        return self.link.linear_form(self.children) if self.link is not None else None


@frozen
class TreeOrigin:
    """How a tree was grown: question, models, cost. The order of the fields is that of tree files."""

    question: str = ""
    """The question from which the root's claim was made."""
    criteria: str = ""
    """Resolution criteria."""
    closes: str = ""
    """Date when the answer will be known."""
    url: str = ""
    run: str = ""
    """Id of the run that grew it."""
    grounder: str = ""
    rule: str = ""
    models: tuple[str, ...] = ()
    """Models used, as ROLE=MODEL."""
    cost: Cost = field(default_factory=Cost)
    reconciliation: Reconciliation | None = None
    """The tree's value beside the direct estimate when it was grown, if there was one."""


@frozen
class Tree:
    """Claims by id, one of them the root. A claim may have several parents."""

    root: str
    nodes: Mapping[str, Proposition]
    as_of: AsOf | None = None
    notes: tuple[str, ...] = field(default=())
    intercept_limit: float = INTERCEPT_LIMIT
    missing: float = MISSING
    """Probability used for claims that have none: failed or ungrounded leaves, and parents without a link."""
    origin: TreeOrigin | None = None
    """How the tree was grown; None if a person wrote it."""
    cache: object = field(default=None, init=False, compare=False, repr=False)
    """Set by `evaluation.with_cache`, so that the next what-if need not compile the tree again. Not part of the tree's
    value, and not copied by `dataclasses.replace`."""

    def __post_init__(self) -> None:
        check_fields(self)


EVIDENCE_ID = pattern(r"\bE\d+\b")
"""Id of a piece of evidence on the whole question, such as E3."""


def cited_evidence(node: Proposition) -> frozenset[str]:
    """Return the ids of the evidence that a claim's report and sources cite."""
    texts = (node.grounding.report, *node.grounding.sources) if node.grounding else (node.report,)
    return frozenset(id for text in texts for id in EVIDENCE_ID.findall(text))


# Traversals of a tree.


WITHOUT_MODEL = ("average", "random")
"""Synthesis rules that need no model."""


def judged_from_text(node: Proposition) -> bool:
    """Whether the link was judged from the claims' wording, so that rewording makes it stale."""
    return node.link is not None and node.link.judged_from_text and node.rule not in WITHOUT_MODEL


def has_own_value(node: Proposition) -> bool:
    """Whether the probability is given, not computed: a leaf, a pinned or judged claim, or one without a link yet."""
    if not node.children or node.pinned is not None or node.link is None:
        return True
    return node.link.own_probability is not None


def own_value(node: Proposition, missing: float) -> float:
    """Return the probability of a claim that `has_own_value`; `missing` if it was not given."""
    if node.pinned is not None:
        return node.pinned
    if node.link is not None and node.link.own_probability is not None:
        return node.link.own_probability
    return missing if node.children or node.p is None else node.p


def post_order(tree: Tree) -> list[str]:
    """Return every claim reachable from the root, each once, children before parents.

    The order depends only on the order of the children, so that the same tree is always computed in the same sequence.
    The tree must have no cycles.
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


def pre_order(nodes: Mapping[str, Proposition], root: str) -> list[str]:
    """Return a claim and all claims below it, each once, in depth-first pre-order."""
    order: dict[str, None] = {}
    stack = [root]
    while stack:
        claim = stack.pop()
        if claim not in order:
            order[claim] = None
            stack.extend(reversed(nodes[claim].children))
    return list(order)


def parents_of(nodes: Mapping[str, Proposition]) -> dict[str, list[str]]:
    """Return the parents of each claim."""
    parents: dict[str, list[str]] = {claim: [] for claim in nodes}
    for claim, node in nodes.items():
        for child in node.children:
            parents[child].append(claim)
    return parents


@frozen(kw_only=False)
class TreeLayout:
    """The structure of a tree: its post-order, positions in it, and parents."""

    order: Sequence[str]
    rank: Mapping[str, int]
    up: Mapping[str, Sequence[str]]


def layout(tree: Tree) -> TreeLayout:
    """Compute the layout of a tree without cycles."""
    order = post_order(tree)
    return TreeLayout(order, {claim: i for i, claim in enumerate(order)}, parents_of(tree.nodes))


def leaves(tree: Tree) -> list[str]:
    """Return the claims without children, in the order of the tree."""
    return [claim for claim in post_order(tree) if not tree.nodes[claim].children]
