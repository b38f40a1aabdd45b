"""Edit a stored tree: recompute what lies above a change, mark outdated judgements, and list all versions."""

import getpass
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.text import Text

from foretell.forecasters.tree.arithmetic.evaluation import stale_claims
from foretell.forecasters.tree.edits import (
    AddNode,
    Edit,
    MarkStale,
    MoveNode,
    RemoveNode,
    SetClaim,
    SetLink,
    SetP,
    Unpin,
)
from foretell.forecasters.tree.exports import format_probability, one_line, stale_parts, tree_failures
from foretell.forecasters.tree.formula import ID
from foretell.forecasters.tree.grow.synthesize import ModelFreeRule, rule_named, rule_of
from foretell.forecasters.tree.history import (
    TreeAuthor,
    TreeVersion,
    commit_edits,
    open_version,
    read_history,
    replace_tree,
    tree_at,
)
from foretell.forecasters.tree.links import AverageLink, FormulaLink, JudgedLink, LinearLink, Link
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.tree_file import edits_from_json, read_tree_file
from foretell.forecasters.tree.what_if import ClaimChange, claim_changes, field_of, next_ids, resynthesize
from foretell.operations.requests.trees import TreeEditRequest, TreeLogRequest
from foretell.operations.result import Result
from foretell.operations.table import operation
from foretell.operations.tree import find_tree
from foretell.operations.tree_plan import TreePlan
from foretell.plugins import names
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.report.numbers import plural
from foretell.report.terminal import show_text
from foretell.runs.settings import Settings

_TERM = re.compile(rf"\s*([+-]?)\s*(?:(\d*\.?\d+)\s*(?:[*×·]\s*({ID}))?|({ID}))")
LONGEST_SUM = 5_000


@dataclass(frozen=True, kw_only=True)
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
    """Versions of other people, about other claims, that were written in the meantime."""
    failed: tuple[str, ...] = ()
    """Claims that a model could not answer, and why."""
    notes: tuple[str, ...] = ()
    plan: TreePlan | None = None
    """The steps that models would take, if only these were asked for; nothing is written then."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What others changed, what failed, and where the tree is."""
        others = (f"kept what {one.author or 'somebody'} changed in version {one.version}" for one in self.merged)
        wrote = f"Wrote {self.path}, version {self.version}" if self.version else "Nothing was written"
        return (*self.failed, *others, *self.notes, wrote)

    @property
    def exit_code(self) -> int:
        """3 if a model could not answer."""
        return 3 if self.failed else 0

    def to_dict(self) -> dict[str, Any]:
        """The answer, every changed claim, and what is stale or failed."""
        return {
            "p": self.tree.nodes[self.tree.root].p,
            "file": str(self.path),
            "version": self.version,
            "changes": change_rows(self.changes),
            "stale": list(self.stale),
            "stale_parts": stale_parts(self.tree),
            "failures": [*self.failed, *tree_failures(self.tree)],
            "merged": [one.version for one in self.merged],
            "notes": list(self.notes),
            **({} if self.plan is None else self.plan.to_dict()),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per changed claim, or per step of a plan."""
        return change_rows(self.changes) if self.plan is None else self.plan.to_dict()["plan"]

    def __str__(self) -> str:
        if self.plan is not None and self.plan.steps:
            return str(self.plan)
        lines = change_lines(self.changes)
        nodes = self.tree.nodes
        if judged := [id for id in self.stale if not nodes[id].stale]:
            lines.append(f"note: judged before a change beneath them: {', '.join(judged)}")
        lines += [f"note: {id} is stale: {one_line(node.stale)}" for id, node in nodes.items() if node.stale]
        return "\n".join(lines or ["Nothing changed."])


def change_rows(changes: Iterable[ClaimChange]) -> list[dict[str, Any]]:
    """The changed claims as plain data."""
    return [
        {"id": one.id, "claim": one.claim, "was": one.before, "is": one.after, "changed": list(one.fields)}
        for one in changes
    ]


def change_lines(changes: Iterable[ClaimChange]) -> list[str]:
    """The changed claims, one line each."""
    return [
        f"{one.id} {format_probability(one.before)} → {format_probability(one.after)}"
        + (f" ({', '.join(one.fields)})" if one.fields else "")
        for one in changes
    ]


def author_name(given: str | None) -> str:
    """Who makes a change: the name given, or the user of this machine."""
    if given:
        return given
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def known_at(tree: Tree) -> AsOf | None:
    """The date of a manual change: now, unless the tree is about a moment in the past."""
    if tree.as_of is None or tree.as_of.mode != "live":
        return None
    return AsOf(at=datetime.now(UTC).replace(microsecond=0), mode="live")


@operation(TreeEditRequest)
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
    """The edits that a request asks for: first those in the list, then texts, claims, numbers and rules."""
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
    return [*edits, *_loosened(tree, removed, linked)]


def number_edits(numbers: Mapping[str, float | str]) -> list[Edit]:
    """The edits that set claims to probabilities, or clear an override where the value is "auto"."""
    return [
        Unpin(id=id.strip()) if isinstance(value, str) else SetP(id=id.strip(), p=value)
        for id, value in numbers.items()
    ]


def _listed_edits(request: TreeEditRequest, tree: Tree) -> list[Edit]:
    data: Any = request.edits
    if isinstance(path := request.edits, Path):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read as JSON: {error}", path=path) from None
    edits = edits_from_json(data) if data else []
    linked = {edit.id for edit in edits if isinstance(edit, SetLink)} | {id.strip() for id in request.rule}
    return [part for edit in edits for part in _complete(tree, edit, linked)]


def _complete(tree: Tree, edit: Edit, linked: Collection[str]) -> list[Edit]:
    """An edit; a move without a weight gets what its old and new parent need until they are judged again."""
    if not isinstance(edit, MoveNode) or edit.weight is not None or edit.to not in tree.nodes:
        return [edit]
    above = tree.nodes[edit.to]
    if isinstance(above.link, AverageLink):  # It has no weights.
        return [edit]
    left = [node for node in tree.nodes.values() if edit.id in node.children and node.id not in (edit.to, *linked)]
    loosened = [_standing(node) for node in left if isinstance(node.link, FormulaLink) and len(node.children) > 1]
    moved = replace(edit, weight=0.0)
    if edit.to in linked:
        return [moved, *loosened]
    unlinked = not above.children or isinstance(above.link, FormulaLink)
    stale = MarkStale(id=edit.to, why=f"{edit.id} was moved here")
    return [moved, *loosened, *([_standing(above)] if unlinked else []), stale]


def _added(tree: Tree, parent: str, claim: str, taken: dict[str, int]) -> list[Edit]:
    """Add a leaf. Until its weight is judged it does not count, and its parent is stale."""
    place = taken[parent] = taken.get(parent, 0) + 1
    id = next_ids(tree, parent, place)[-1]
    node, above = Proposition(id=id, claim=claim), tree.nodes[parent]
    add: list[Edit] = [AddNode(parent=parent, node=node, weight=0.0)]
    if not above.children or isinstance(above.link, FormulaLink):
        add.append(_standing(above))
    return [*add, MarkStale(id=parent, why=f"{id} was added")]


def _loosened(tree: Tree, removed: Sequence[str], linked: Iterable[str]) -> list[Edit]:
    """A formula that names a removed claim is replaced by its last value until it is judged again."""
    gone, kept = set(removed), set(linked)
    return [
        _standing(node)
        for node in tree.nodes.values()
        if isinstance(node.link, FormulaLink)
        and gone & set(node.children)
        and set(node.children) - gone
        and node.id not in kept | gone
    ]


def _standing(node: Proposition) -> SetLink:
    """Keep a claim at its current number, as judged before the change."""
    p = node.p if node.p is not None else 0.5
    return SetLink(id=node.id, link=JudgedLink(p=p, stale=True), rule=rule_of(node) if node.children else "linear")


def _ruled(tree: Tree, id: str, text: str) -> SetLink:
    """Read how the children of a claim are combined: by a named rule, a weighted sum or a formula."""
    node = tree.nodes.get(id)
    if text in names("synthesis_rules"):
        if node is None or not node.children:
            raise InputError("has no children to combine", column=f"--rule {id}", hint="add claims under it first")
        rule = rule_named(text)
        # Until a model has judged it by the new rule, the claim keeps its number.
        link: Link = JudgedLink(p=node.p if node.p is not None else 0.5, stale=True)
        if isinstance(rule, ModelFreeRule):
            link = rule.make(node.children, Random(0))
        return SetLink(id=id, link=link, rule=text)
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


# Versions.


@dataclass(frozen=True, kw_only=True)
class TreeDiff:
    """Two versions of a tree, or two trees, compared claim by claim."""

    before: Tree
    after: Tree
    names: tuple[str, str]

    @property
    def changes(self) -> list[ClaimChange]:
        """Every claim that differs."""
        return claim_changes(self.before, self.after)

    def rows(self) -> list[dict[str, Any]]:
        """One row per claim that differs."""
        return [{**row, "words": self._words(row["id"])} for row in change_rows(self.changes)]

    def _words(self, id: str) -> dict[str, list[str]]:
        """Field → its text before and after."""
        old, new = self.before.nodes.get(id), self.after.nodes.get(id)
        fields = next((one.fields for one in self.changes if one.id == id), ())
        return {name: [_shown(old, name), _shown(new, name)] for name in fields}

    def to_dict(self) -> dict[str, Any]:
        """Both answers, and every claim that differs."""
        roots = [tree.nodes[tree.root].p for tree in (self.before, self.after)]
        return {"from": self.names[0], "to": self.names[1], "was": roots[0], "is": roots[1], "changes": self.rows()}

    def print(self, console: "Console") -> None:
        """Claim by claim: the numbers, and every changed field before and after."""
        head = f"{self.names[0]} → {self.names[1]}"
        show_text(console, f"{head}: {plural(len(self.changes), 'claim')} changed\n")
        for change, line in zip(self.changes, change_lines(self.changes), strict=True):
            new = "new " if change.id not in self.before.nodes else ""
            gone = "gone " if change.id not in self.after.nodes else ""
            console.print(Text(f"{new}{gone}{line}  {one_line(change.claim)}"), highlight=False)
            for name, (was, now) in self._words(change.id).items():
                console.print(Text(f"    {name}: {was or '–'} → {now or '–'}", style="dim"), highlight=False)


def _shown(node: Proposition | None, name: str) -> str:
    value: Any = field_of(node, name) if node is not None else ""
    if name == "link" and value is not None and node is not None:
        return value.describe(node.children)
    if name == "grounding" and value is not None:
        return one_line(f"{value.grounder}: {value.key_factor or value.report or value.error}")[:300]
    if isinstance(value, tuple):
        return ", ".join(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "" if value is None else one_line(str(value))[:300]


@dataclass(frozen=True, kw_only=True)
class TreeLog(Result):
    """The versions of a tree, and a comparison of two of them or of two trees if one was asked for."""

    path: Path
    versions: tuple[TreeVersion, ...]
    diff: TreeDiff | None = None

    def rows(self) -> list[dict[str, Any]]:
        """One row per version, oldest first; or one per claim that differs."""
        if self.diff is not None:
            return self.diff.rows()
        return [
            {
                "version": one.version,
                "at": one.at.isoformat(),
                "author": one.author,
                "message": one.message,
                "p": one.p,
                "changed": list(one.changed),
            }
            for one in self.versions
        ]

    def to_dict(self) -> dict[str, Any]:
        """The file, and its versions or the comparison."""
        found = {"versions": self.rows()} if self.diff is None else self.diff.to_dict()
        return {"file": str(self.path), **found}

    def print(self, console: "Console") -> None:
        """One line per version, or the comparison claim by claim."""
        if self.diff is not None:
            return self.diff.print(console)
        lines = [
            f"{one.version}  {one.at:%Y-%m-%d %H:%M}  {format_probability(one.p)}  {one_line(one.author) or '–'}"
            f"  {one_line(one.message) or '–'}" + (f"  ({_some(one.changed)})" if one.changed else "")
            for one in self.versions
        ]
        show_text(console, "\n".join(lines or ["Nobody has edited it yet."]) + "\n")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")


@operation(TreeLogRequest)
def tree_log(request: TreeLogRequest, settings: Settings | None = None) -> TreeLog:
    """List the versions of a tree, or compare two of them, or two trees, claim by claim.

    Raises InputError if there is no such version, or no older one to compare with.
    """
    path = find_tree(request.tree, settings)
    tree, versions = read_tree_file(path).tree, read_history(path)
    diff = None
    if request.other is not None:
        other = find_tree(request.other, settings)
        diff = TreeDiff(before=tree, after=read_tree_file(other).tree, names=(str(path), str(other)))
    elif request.diff is not None:
        first, _, last = request.diff.partition("..")
        if not first and len(versions) < 2:
            raise InputError("has no older version", path=path, hint="name another tree, or edit this one first")
        start = int(first) if first else versions[-2].version
        end = f"version {last}" if last else "as it is"
        after = tree_at(path, int(last)) if last else tree
        diff = TreeDiff(before=tree_at(path, start), after=after, names=(f"version {start}", end))
    return TreeLog(path=path, versions=tuple(versions), diff=diff)
