"""Edits of a tree, as values that can be saved, replayed and compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from foretell.forecasters.tree.case_links import SUM_LIMIT, SplitLink
from foretell.forecasters.tree.formula import ASSUMPTION
from foretell.forecasters.tree.links import JudgedLink, LinearLink, Link
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree, judged_from_text, pre_order
from foretell.forecasters.tree.text import InvalidTree, TreeProblem, raise_errors
from foretell.forecasters.tree.validation import node_problems, structural_problems
from foretell.frozen import frozen


@frozen
class SetP:
    """Set a probability.

    A leaf gets a new p. If it is a scenario that excludes others, those share what is left to them, unless they are set
    as well. A parent is pinned (an intervention: the claims above no longer depend on those below it). An id such as
    "P1:PA" names the assumption in the formula of P1; "P0:all", "P0:only:P1" and "P0:given:P2" name what was stated
    about the children of P0, and "P0:only:P1:Red" one option of it.
    """

    id: str
    p: float


@frozen
class Unpin:
    """Unpin a parent, so that its probability follows from its link again."""

    id: str


@frozen
class SetClaim:
    """Reword a claim. Numbers stay; judgements based on the old wording become stale."""

    id: str
    claim: str


@frozen
class SetReport:
    """Replace the report. Numbers stay; judgements based on the old report become stale."""

    id: str
    report: str
    key_factor: str | None = None
    causality: str | None = None
    """New text on why the children bear on the claim; None leaves it unchanged."""


@frozen
class SetGrounding:
    """Set the grounding of a leaf: its probability (None if grounding failed) and where it comes from."""

    id: str
    grounding: Grounding
    p: float | None = None


@frozen
class SetLink:
    """Replace the link: how the claim follows from its children."""

    id: str
    link: Link
    rule: str = ""
    """The synthesis rule that made it; empty if a person wrote it."""
    failed: str = ""
    """Why the rule failed, if the mean of the children is used instead."""


@frozen
class AddNode:
    """Add a claim under `parent`.

    `weight` is its weight or strength in the parent's link. If that link is a formula, or if the parent is a leaf that
    gets its first child, a new link (`SetLink`) is needed as well. If the parent's children were judged together, the
    new one changes nothing until they are judged again.
    """

    parent: str
    node: Proposition
    weight: float | None = None


@frozen
class ShareNode:
    """Make an existing claim a child of one more parent."""

    id: str
    parent: str
    weight: float | None = None


@frozen
class RemoveNode:
    """Remove a claim, and the claims below it that have no other parent.

    Its weight or strength is removed too, and the others stay as they are; cases are averaged over it, and a formula
    that names it needs a new link. A parent that has no children left becomes a leaf with the probability it had.
    """

    id: str


@frozen
class MoveNode:
    """Move a claim and its subtree from all its parents (or only from `out_of`) to the parent `to`."""

    id: str
    to: str
    weight: float | None = None
    out_of: str | None = None


@frozen
class MarkStale:
    """Mark a claim as stale, because its grounding or link must be redone."""

    id: str
    why: str


Rebuilding = AddNode | ShareNode | RemoveNode | MoveNode
Edit = SetP | Unpin | SetClaim | SetReport | SetGrounding | SetLink | MarkStale | Rebuilding


@frozen
class Scenario:
    """A named list of edits."""

    name: str
    edits: Sequence[Edit]
    text: str = ""
    """What the scenario assumes, in words."""


# Apply edits to a tree, and track which claims get another number and which get another text.


class EditSession:
    """Applies edits to a tree one after the other, and validates the result at the end."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.nodes = dict(tree.nodes)
        self.changed_numbers: set[str] = set()
        """Claims whose own probability, children or link changed."""
        self.changed_texts: set[str] = set()
        """Claims with a new wording or report."""
        self.relinked: set[str] = set()
        """Claims whose link or children changed, so that their result must be checked to be a probability."""
        self.judged: set[str] = set()
        """Claims whose link was set explicitly."""
        self.set_leaves: set[str] = set()
        """Leaves whose probability was set."""
        self.assumed: dict[str, float] = {}
        """New probabilities of assumptions ("P1:PA")."""
        self.rebuilt = False
        """Whether claims were added, removed or moved."""

    def _stale(self, id: str, why: str) -> None:
        """Mark the claim's grounding or link as stale because of `why`; the first reason is kept."""
        node = self.nodes[id]
        judged = judged_from_text(node) if node.children else node.grounding is not None or node.p is not None
        # Claims judged as a whole have their own flag, `JudgedLink.stale`.
        if judged and not node.stale and not isinstance(node.link, JudgedLink):
            self._put(replace(node, stale=why), self.changed_texts)

    def _stale_above(self, id: str, why: str) -> None:
        for parent in self._parents(id):
            self._stale(parent, why)

    def apply(self, edits: Iterable[Edit]) -> Tree:
        """Return the tree after all edits; raises `InvalidTree` if the result is not valid."""
        for edit in edits:
            if isinstance(edit, Rebuilding):
                self.rebuilt = True
                self._rebuild(edit)
            elif isinstance(edit, SetClaim | SetReport | MarkStale):
                self._reword(edit)
            else:
                self._change(edit)
        if self.rebuilt:
            self._drop_unreachable()
        self._share_rest()
        tree = replace(self.tree, nodes=self.nodes)
        raise_errors(structural_problems(tree) if self.rebuilt else [])
        touched = [self.nodes[id] for id in sorted(self.changed_numbers | self.changed_texts) if id in self.nodes]
        raise_errors([problem for node in touched for problem in node_problems(tree, node)])
        text, hint = "has children but no link", "set a link in the same list of edits"
        unlinked = [node.id for node in touched if node.children and node.link is None and node.pinned is None]
        raise_errors([TreeProblem(node=id, field="link", text=text, hint=hint) for id in unlinked])
        return tree

    def _reword(self, edit: SetClaim | SetReport | MarkStale) -> None:
        """Apply an edit of a claim's text."""
        match edit:
            case SetClaim():
                if self._node(edit.id).claim != edit.claim:
                    self._put(replace(self._node(edit.id), claim=edit.claim), self.changed_texts)
                    self._stale(edit.id, "its statement was changed")
                    self._stale_above(edit.id, f"the statement of {edit.id} was changed")
            case MarkStale():
                node = self._node(edit.id)
                self._put(replace(node, stale=edit.why or "marked by hand"), self.changed_texts)
            case SetReport():
                node = self._node(edit.id)
                of = node if node.grounding is None else node.grounding
                key_factor = of.key_factor if edit.key_factor is None else edit.key_factor
                of = replace(of, report=edit.report, key_factor=key_factor)
                new = of if isinstance(of, Proposition) else replace(node, grounding=of)
                new = new if edit.causality is None else replace(new, causality=edit.causality)
                rewritten = (node.report, node.grounding) != (new.report, new.grounding)
                self._put(new, self.changed_texts)
                # A parent's report comes from its synthesis, so a new one makes no other claim stale.
                if rewritten and not node.children:
                    self._stale_above(edit.id, f"the report on {edit.id} was changed")

    def _change(self, edit: SetP | Unpin | SetGrounding | SetLink) -> None:
        """Apply an edit of a claim's number or link."""
        match edit:
            case SetP():
                self._set_p(edit)
            case Unpin():
                self._put(replace(self._node(edit.id), pinned=None), self.changed_numbers)
            case SetLink():
                if edit.rule and isinstance(edit.link, LinearLink):
                    # The synthesizer has confirmed a base above the limit.
                    limit = max(self.tree.intercept_limit, edit.link.base)
                    self.tree = replace(self.tree, intercept_limit=limit)
                self.judged.add(edit.id)
                new = replace(self._node(edit.id), link=edit.link, rule=edit.rule, failed=edit.failed, stale="")
                self._put(new, self.changed_numbers, self.relinked)
            case SetGrounding():
                node = self._node(edit.id)
                if node.children:
                    raise _problem(node.id, "only leaves are grounded", "grounding")
                new = replace(node, p=edit.p, grounding=edit.grounding, stale="")
                self._put(new, self.changed_texts, *([self.changed_numbers] if new.p != node.p else []))

    def _set_p(self, edit: SetP) -> None:
        value = float(edit.p)
        id, _, stated = (edit.id, "", "") if edit.id in self.nodes else edit.id.partition(":")
        node = self._node(id)
        if stated and stated != ASSUMPTION:
            self._set_case(node, stated, value)
            return
        if node.id == edit.id:
            new = replace(node, pinned=value) if node.children else replace(node, p=value, stale="")
            self._put(new, self.changed_numbers)
            if not node.children:
                self.set_leaves.add(node.id)
            return
        link = node.link.with_assumption(value) if node.link is not None else None
        if link is None:
            raise _problem(node.id, "has no assumption to change", "link")
        self.assumed[edit.id] = value
        self._put(replace(node, link=link), self.changed_numbers)

    def _set_case(self, node: Proposition, stated: str, value: float) -> None:
        """State another chance in a case; `stated` is the case, then its child and option if it has them."""
        case, child, option = (*stated.split(":", 2), "", "")[:3]
        # As the tree stood, so that the order of edits does not matter.
        known = {id: self.tree.nodes.get(id, self.nodes[id]).p for id in node.children}
        p = {id: self.tree.missing if own is None else own for id, own in known.items()}
        link = node.link.with_case(case, child, value, p, option) if node.link is not None else None
        if link is None or not 0 <= value <= 1:
            problem = f"nothing was stated as {stated}" if link is None else f"{value:g} is outside [0, 1]"
            raise _problem(node.id, problem, "link")
        self._put(replace(node, link=link), self.changed_numbers, self.relinked)

    def _share_rest(self) -> None:
        """Let scenarios that exclude each other share what those leave that were set, in their proportions."""
        for node in list(self.nodes.values()) if self.set_leaves else ():
            known = [child for child in node.children if child in self.nodes and child in self.tree.nodes]
            moved = [child for child in known if child in self.set_leaves]
            scenarios = isinstance(node.link, SplitLink) and not any(self.nodes[child].children for child in known)
            if not scenarios or not moved:
                continue
            after = sum(self.nodes[child].p or 0.0 for child in moved)
            if after > SUM_LIMIT:
                raise _problem(node.id, f"{', '.join(moved)} exclude each other, but add up to {after:g}")
            before = sum(self.tree.nodes[child].p or 0.0 for child in moved)
            share = max(0.0, 1.0 - after) / (1.0 - before) if before < 1.0 else 1.0
            for other in known:
                p = self.nodes[other].p
                if other not in moved and p is not None:
                    self._put(replace(self.nodes[other], p=p * share), self.changed_numbers)

    def _rebuild(self, edit: AddNode | ShareNode | RemoveNode | MoveNode) -> None:
        """Apply an edit that adds, removes or moves a claim."""
        match edit:
            case AddNode():
                if edit.node.id in self.nodes:
                    hint = "to give it another parent, share it"
                    raise _problem(edit.node.id, "is already in the tree", hint=hint)
                self._node(edit.parent)
                self._put(edit.node, self.changed_numbers)
                self._attach(edit.node.id, edit.parent, edit.weight)
            case ShareNode():
                self._attach(self._node(edit.id).id, edit.parent, edit.weight)
            case RemoveNode():
                self._node(edit.id)
                if edit.id == self.tree.root:
                    raise _problem(edit.id, "is the root and cannot be removed")
                for parent in self._parents(edit.id):
                    self._detach(edit.id, parent)
            case MoveNode():
                self._move(edit)

    def _move(self, edit: MoveNode) -> None:
        self._node(edit.id)
        self._node(edit.to)
        if edit.to in pre_order(self.nodes, edit.id):
            # Otherwise the two would form a cycle that the root cannot reach.
            raise _problem(edit.id, f"cannot be moved below itself: {edit.to} is below it", "children")
        above = self._parents(edit.id)
        if edit.out_of is not None and edit.out_of not in above:
            raise _problem(edit.out_of, f"is not a parent of {edit.id}")
        for parent in above if edit.out_of is None else [edit.out_of]:
            self._detach(edit.id, parent)
        self._attach(edit.id, edit.to, edit.weight)

    def _node(self, id: str) -> Proposition:
        if id not in self.nodes:
            raise _problem(id, "is not in the tree")
        return self.nodes[id]

    def _parents(self, id: str) -> list[str]:
        return [parent for parent, node in self.nodes.items() if id in node.children]

    def _put(self, node: Proposition, *marks: set[str]) -> None:
        if self.nodes.get(node.id) != node:
            self.nodes[node.id] = node
            for mark in marks:
                mark.add(node.id)

    def _attach(self, id: str, parent: str, weight: float | None) -> None:
        node = self._node(parent)
        if id in node.children:
            raise _problem(parent, f"{id} is already a child", "children")
        link = node.link
        if link is not None and (weight is not None or link.judged_together):
            link = link.with_child(id, weight or 0.0)
        # A leaf that becomes a parent loses its grounding, which is still in the history.
        leaf = {} if node.children else {"grounding": None, "stale": ""}
        self._put(replace(node, children=(*node.children, id), link=link, **leaf), self.changed_numbers, self.relinked)
        if link is not None and link.judged_together:
            self._stale(parent, f"{id} was added")

    def _detach(self, id: str, parent: str) -> None:
        node = self.nodes[parent]
        left = tuple(child for child in node.children if child != id)
        if left:
            p = self.nodes[id].p
            link = node.link and node.link.without_child(id, self.tree.missing if p is None else p)
            node = replace(node, children=left, link=link)
        else:
            last = node.p if node.pinned is None else node.pinned
            node = replace(
                node, children=(), link=None, p=last, pinned=None, incomplete=(), rule="", failed="", stale=""
            )
        self._put(node, self.changed_numbers, self.relinked)
        if left:
            self._stale(parent, f"{id} was removed")

    def _drop_unreachable(self) -> None:
        """Remove claims without a parent. Missing children are left for the validation to report."""
        known = {
            id: replace(n, children=tuple(c for c in n.children if c in self.nodes)) for id, n in self.nodes.items()
        }
        reached = set(pre_order(known, self.tree.root))
        self.nodes = {id: node for id, node in self.nodes.items() if id in reached}


def _problem(node: str, text: str, field: str = "", hint: str = "") -> InvalidTree:
    return InvalidTree([TreeProblem(node=node, field=field, text=text, hint=hint)])


def number_edits(numbers: Mapping[str, float | str]) -> list[Edit]:
    """Return the edits that set claims to probabilities, or clear an override where the value is "auto"."""
    return [
        Unpin(id=id.strip()) if isinstance(value, str) else SetP(id=id.strip(), p=value)
        for id, value in numbers.items()
    ]
