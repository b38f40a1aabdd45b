"""What can be changed about a tree, as values, so that a list of changes can be saved, repeated and compared."""

from collections.abc import Sequence
from dataclasses import dataclass

from foretell.forecasters.tree.links import Link
from foretell.forecasters.tree.proposition import Grounding, Proposition


@dataclass(frozen=True, kw_only=True)
class SetP:
    """A new probability.

    Of a leaf: its p. Of a parent: it is pinned (an intervention: what lies beneath no longer matters to what lies
    above). Of "P1:PA": the assumption in the formula of P1.
    """

    id: str
    p: float


@dataclass(frozen=True, kw_only=True)
class Unpin:
    """A pinned parent follows its link again."""

    id: str


@dataclass(frozen=True, kw_only=True)
class SetClaim:
    """Other words for the claim. Numbers stay; judged claims above become stale."""

    id: str
    claim: str


@dataclass(frozen=True, kw_only=True)
class SetReport:
    """Another report. Numbers stay; judged claims above become stale."""

    id: str
    report: str
    key_factor: str | None = None


@dataclass(frozen=True, kw_only=True)
class SetGrounding:
    """A leaf grounded (anew): its probability, or None where that failed, and where it comes from."""

    id: str
    grounding: Grounding
    p: float | None = None


@dataclass(frozen=True, kw_only=True)
class SetLink:
    """Another link: how the claim follows from its children."""

    id: str
    link: Link


@dataclass(frozen=True, kw_only=True)
class AddNode:
    """A new claim under `parent`.

    `weight` is its weight or strength in the parent's link; a formula needs a new link (`SetLink`) beside it, and so
    does a leaf that gets its first child.
    """

    parent: str
    node: Proposition
    weight: float | None = None


@dataclass(frozen=True, kw_only=True)
class ShareNode:
    """Let one more claim rest on a claim that is already in the tree; it stays one claim."""

    id: str
    parent: str
    weight: float | None = None


@dataclass(frozen=True, kw_only=True)
class RemoveNode:
    """Take a claim out, and whatever beneath it nobody else rests on.

    Its weight or strength goes with it and the others stay as they are; a formula that names it needs a new link. A
    parent without children left becomes a leaf with the probability it had.
    """

    id: str


@dataclass(frozen=True, kw_only=True)
class MoveNode:
    """Take a claim, with what is beneath it, from all its parents (or only from `out_of`) and put it under `to`."""

    id: str
    to: str
    weight: float | None = None
    out_of: str | None = None


Edit = SetP | Unpin | SetClaim | SetReport | SetGrounding | SetLink | AddNode | ShareNode | RemoveNode | MoveNode


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A named list of edits."""

    name: str
    edits: Sequence[Edit]
    text: str = ""
    """What it supposes, in words."""
