"""A tree of propositions as a frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretell.forecasters.tree.links import Link
from foretell.questions.clock import AsOf


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
