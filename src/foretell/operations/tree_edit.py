"""Edit a stored tree: recompute the claims above a change and mark outdated judgements."""

import getpass
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from foretell.forecasters.tree.arithmetic.evaluation import stale_claims
from foretell.forecasters.tree.edits import (
    AddNode,
    Edit,
    MarkStale,
    MoveNode,
    RemoveNode,
    SetClaim,
    SetLink,
    number_edits,
)
from foretell.forecasters.tree.exports import one_line, stale_parts, tree_failures
from foretell.forecasters.tree.formula import ID
from foretell.forecasters.tree.grow.synthesize import ModelFreeRule, rule_named, rule_of
from foretell.forecasters.tree.history import TreeAuthor, TreeVersion, commit_edits, open_version, replace_tree, tree_at
from foretell.forecasters.tree.links import AverageLink, FormulaLink, JudgedLink, LinearLink, Link
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.tree_file import edits_from_json, read_tree_file
from foretell.forecasters.tree.what_if import ClaimChange, claim_changes, next_ids, resynthesize
from foretell.frozen import frozen
from foretell.operations.requests.trees import TreeEditRequest
from foretell.operations.tree_log import change_lines, change_rows
from foretell.operations.tree_plan import TreePlan
from foretell.patterns import pattern
from foretell.plugins import exists
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.report.result import Result
from foretell.runs.settings import Settings
from foretell.runs.tree_files import find_tree

_TERM = pattern(rf"\s*([+-]?)\s*(?:(\d*\.?\d+)\s*(?:[*×·]\s*({ID}))?|({ID}))")
LONGEST_SUM = 5_000


@frozen
class TreeEditResult(Result):
    """An edited tree, and how its claims changed."""

    tree: Tree
    path: Path
    """The file it was written to."""
    changes: tuple[ClaimChange, ...]
    stale: tuple[str, ...]
    """Claims whose judgement is older than a change beneath them."""
    version: int | None = None
    """The number of the new version; None for a plan."""
    merged: tuple[TreeVersion, ...] = ()
    """Versions that others wrote in the meantime, with changes to other claims."""
    failed: tuple[str, ...] = ()
    """Claims that a model could not answer, and why."""
    notes: tuple[str, ...] = ()
    plan: TreePlan | None = None
    """The steps that models would take, if only a plan was requested; nothing is written then."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What others changed, what failed, and where the tree is."""
        others = (
            f"kept the changes of {version.author or 'somebody'} in version {version.version}"
            for version in self.merged
        )
        wrote = f"Wrote {self.path}, version {self.version}" if self.version else "Nothing was written"
        return (*self.failed, *others, *self.notes, wrote)

    @property
    def exit_code(self) -> int:
        """3 if a model could not answer."""
        return 3 if self.failed else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the answer, every changed claim, and what is stale or failed."""
        return {
            "p": self.tree.nodes[self.tree.root].p,
            "file": str(self.path),
            "version": self.version,
            "changes": change_rows(self.changes),
            "stale": list(self.stale),
            "stale_parts": stale_parts(self.tree),
            "failures": [*self.failed, *tree_failures(self.tree)],
            "merged": [version.version for version in self.merged],
            "notes": list(self.notes),
            **({} if self.plan is None else self.plan.to_dict()),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per changed claim, or per step of a plan."""
        return change_rows(self.changes) if self.plan is None else self.plan.to_dict()["plan"]

    def __str__(self) -> str:
        if self.plan is not None and self.plan.steps:
            return str(self.plan)
        lines = change_lines(self.changes, self.tree)
        nodes = self.tree.nodes
        if judged := [id for id in self.stale if not nodes[id].stale]:
            lines.append(f"note: judged before a change beneath them: {', '.join(judged)}")
        lines += [f"note: {id} is stale: {one_line(node.stale)}" for id, node in nodes.items() if node.stale]
        return "\n".join(lines or ["Nothing changed."])


def author_name(name: str | None) -> str:
    """Return the author of a change: the given name, or the user of this machine."""
    if name:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def known_at(tree: Tree) -> AsOf | None:
    """Return the date of a manual change: now, unless the tree is as of a past date."""
    if tree.as_of is None or tree.as_of.mode != "live":
        return None
    return AsOf(at=datetime.now(UTC).replace(microsecond=0), mode="live")


def edit_tree(request: TreeEditRequest, settings: Settings | None = None) -> TreeEditResult:
    """Edit a stored tree or restore one of its versions, and write it as a new version.

    Raises InputError if an edit does not fit, and ConflictingEdits if others have changed the same claims since
    `base_version`.
    """
    path = find_tree(request.tree, settings)
    before = read_tree_file(path).tree
    author = TreeAuthor(name=author_name(request.author), message=request.message)
    if request.restore is not None:
        after = tree_at(path, request.restore)
        if request.plan:
            return _result(path, before, after)
        open_version(path)
        message = request.message or f"back to version {request.restore}"
        return _result(path, before, after, version=replace_tree(path, after, replace(author, message=message)))
    base = before if request.base_version is None else tree_at(path, request.base_version)
    edits = edits_of(request, base)
    if request.plan:
        return _result(path, base, resynthesize(base, edits))
    done = commit_edits(path, edits, author, base=request.base_version, as_of=known_at(before) if edits else None)
    return _result(path, before, done.after, version=done.version, merged=done.merged)


def _result(path: Path, before: Tree, after: Tree, **more: Any) -> TreeEditResult:
    changes = tuple(claim_changes(before, after))
    return TreeEditResult(tree=after, path=path, changes=changes, stale=tuple(stale_claims(after)), **more)


def edits_of(request: TreeEditRequest, tree: Tree) -> list[Edit]:
    """Return the edits of a request: first those in the list, then texts, claims, numbers and rules."""
    edits = _listed_edits(request, tree)
    edits += [SetClaim(id=id, claim=text.strip()) for id, text in request.text.items()]
    edits += [RemoveNode(id=id) for id in request.remove]
    taken: dict[str, int] = {}
    for text in request.add:
        parent, sign, claim = text.partition("=")
        if not sign or not claim.strip() or parent.strip() not in tree.nodes:
            raise InputError(f"{text[:80]!r} is not PARENT=TEXT", column="--add", hint="name a claim and a statement")
        edits += _added(tree, parent.strip(), claim.strip(), taken)
    edits += number_edits(request.set)
    edits += [_ruled(tree, id.strip(), text.strip()) for id, text in request.rule.items()]
    linked = {edit.id for edit in edits if isinstance(edit, SetLink)}
    removed = [edit.id for edit in edits if isinstance(edit, RemoveNode) and edit.id in tree.nodes]
    return [*edits, *_unlinked(tree, removed, linked)]


def _listed_edits(request: TreeEditRequest, tree: Tree) -> list[Edit]:
    data: Any = request.edits
    if isinstance(path := request.edits, Path):
        try:
            data = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read as JSON: {error}", path=path) from None
    edits = edits_from_json(data) if data else []
    linked = {edit.id for edit in edits if isinstance(edit, SetLink)} | {id.strip() for id in request.rule}
    return [part for edit in edits for part in _complete(tree, edit, linked)]


def _complete(tree: Tree, edit: Edit, linked: Collection[str]) -> list[Edit]:
    """Return an edit. A move without a weight also gets what its parents need until they are judged again."""
    if not isinstance(edit, MoveNode) or edit.weight is not None or edit.to not in tree.nodes:
        return [edit]
    above = tree.nodes[edit.to]
    if isinstance(above.link, AverageLink):  # It has no weights.
        return [edit]
    left = [node for node in tree.nodes.values() if edit.id in node.children and node.id not in (edit.to, *linked)]
    loosened = [_current_link(node) for node in left if isinstance(node.link, FormulaLink) and len(node.children) > 1]
    moved = replace(edit, weight=0.0)
    if edit.to in linked:
        return [moved, *loosened]
    unlinked = not above.children or isinstance(above.link, FormulaLink)
    stale = MarkStale(id=edit.to, why=f"{edit.id} was moved here")
    return [moved, *loosened, *([_current_link(above)] if unlinked else []), stale]


def _added(tree: Tree, parent: str, claim: str, taken: dict[str, int]) -> list[Edit]:
    """Add a leaf. It has no effect until its weight is judged, and its parent is stale."""
    place = taken[parent] = taken.get(parent, 0) + 1
    id = next_ids(tree, parent, place)[-1]
    node, above = Proposition(id=id, claim=claim), tree.nodes[parent]
    add: list[Edit] = [AddNode(parent=parent, node=node, weight=0.0)]
    if not above.children or isinstance(above.link, FormulaLink):
        add.append(_current_link(above))
    return [*add, MarkStale(id=parent, why=f"{id} was added")]


def _unlinked(tree: Tree, removed: Sequence[str], linked: Iterable[str]) -> list[Edit]:
    """Replace formulas that name a removed claim by their last value until they are judged again."""
    gone, relinked = set(removed), set(linked)
    return [
        _current_link(node)
        for node in tree.nodes.values()
        if isinstance(node.link, FormulaLink)
        and gone & set(node.children)
        and set(node.children) - gone
        and node.id not in relinked | gone
    ]


def _current_link(node: Proposition) -> SetLink:
    """Keep a claim at its current number, as judged before the change."""
    p = node.p if node.p is not None else 0.5
    return SetLink(id=node.id, link=JudgedLink(p=p, stale=True), rule=rule_of(node))


def _ruled(tree: Tree, id: str, text: str) -> SetLink:
    """Read how the children of a claim are combined: by a named rule, a weighted sum or a formula."""
    node = tree.nodes.get(id)
    if exists("synthesis_rules", text):
        if node is None or not node.children:
            raise InputError("has no children to combine", column=f"--rule {id}", hint="add claims under it first")
        rule = rule_named(text)
        # Until a model has judged it by the new rule, the claim keeps its number.
        link: Link = JudgedLink(p=node.p if node.p is not None else 0.5, stale=True)
        if isinstance(rule, ModelFreeRule):
            link = rule.make(node.children, Random(0))
        return SetLink(id=id, link=link, rule=rule.name)
    if re.search(r"[-+*×·−\d]", re.sub(ID, "", text)):
        return SetLink(id=id, link=read_sum(text, f"--rule {id}"))
    old = node.link if node is not None else None
    assumption = old.assumption if isinstance(old, FormulaLink) else None
    return SetLink(id=id, link=FormulaLink(expression=text, assumption=assumption))


def read_sum(text: str, column: str = "--rule") -> LinearLink:
    """Read a weighted sum.

    >>> read_sum("0.05 + 0.4*P1.1 - 0.2*P1.2")
    LinearLink(intercept=0.05, weights={'P1.1': 0.4, 'P1.2': -0.2})
    """
    at, intercept, weights = 0, 0.0, dict[str, float]()
    text = text.strip().replace("−", "-")[:LONGEST_SUM]
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or (at and not match[1]):
            raise InputError(
                f"{text[at : at + 30]!r} is not a term", column=column, hint="write 0.05+0.4*P1.1-0.2*P1.2"
            )
        number = float(match[2] or 1.0) * (-1.0 if match[1] == "-" else 1.0)
        id = match[3] or match[4]
        if id is None:
            intercept += number
        else:
            weights[id] = weights.get(id, 0.0) + number
        at = match.end()
    if not weights:
        raise InputError("names no claim", column=column, hint="write 0.05+0.4*P1.1-0.2*P1.2")
    return LinearLink(intercept=intercept, weights=weights)
