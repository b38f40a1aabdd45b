"""Edit the tree in a file: recompute what lies above a change, mark outdated judgements, keep every version."""

import getpass
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
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
    SetReport,
    Unpin,
)
from foretell.forecasters.tree.exports import format_probability, one_line, stale_parts, tree_failures
from foretell.forecasters.tree.formula import ID
from foretell.forecasters.tree.grow.synthesize import rule_of
from foretell.forecasters.tree.history import (
    TreeAuthor,
    TreeVersion,
    commit_edits,
    open_version,
    read_history,
    replace_tree,
    tree_at,
)
from foretell.forecasters.tree.links import FormulaLink, JudgedLink, LinearLink
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.tree_file import edits_from_json, read_tree_file, write_tree
from foretell.forecasters.tree.what_if import ClaimChange, claim_changes, next_ids, resynthesize
from foretell.operations.requests.trees import (
    TreeDiffRequest,
    TreeEditRequest,
    TreeHistoryRequest,
    TreeResynthesizeRequest,
)
from foretell.operations.result import Result
from foretell.operations.table import operation
from foretell.questions.as_of import AsOf
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.report.numbers import dollars, plural
from foretell.report.terminal import show_text
from foretell.runs.settings import Settings

_TERM = re.compile(rf"\s*([+-]?)\s*(?:(\d*\.?\d+)\s*(?:[*×·]\s*({ID}))?|({ID}))")
LONGEST_SUM = 5_000


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of a plan."""

    claim: str
    do: str
    """Ground, break down, judge or compute."""
    calls: int
    """Approximate number of model calls; 0 for arithmetic."""
    dollars: float | None
    """Approximate cost; None if the price is not known."""


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
    steps: tuple[PlannedStep, ...] = ()
    """The steps of a plan, in which nothing is asked, paid or written."""

    @property
    def calls(self) -> int:
        """Approximate number of model calls of a plan."""
        return sum(step.calls for step in self.steps)

    @property
    def dollars(self) -> float | None:
        """Approximate cost of a plan; None if a price is not known."""
        paid = [step.dollars for step in self.steps if step.calls]
        return None if None in paid else sum(one or 0.0 for one in paid)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What others changed, what failed, and where the tree is."""
        others = (f"kept what {one.who or 'somebody'} changed in version {one.version}" for one in self.merged)
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
            **({"plan": plain_data(self.steps), "calls": self.calls, "dollars": self.dollars} if self.steps else {}),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per changed claim, or per step of a plan."""
        return plain_data(self.steps) if self.steps else change_rows(self.changes)

    def _plan(self) -> list[str]:
        lines = [
            f"{step.claim}: {step.do}, about {plural(step.calls, 'call')}"
            + ("" if step.dollars is None else f", about {dollars(step.dollars)}")
            for step in self.steps
            if step.calls
        ]
        total = "price not known" if self.dollars is None else f"about {dollars(self.dollars)}"
        computed = sum(not step.calls for step in self.steps)
        return [*lines, f"{plural(self.calls, 'call')}, {total}; {plural(computed, 'claim')} by arithmetic"]

    def __str__(self) -> str:
        if self.steps:
            return "\n".join(self._plan())
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


def editor(who: str | None) -> str:
    """Who makes a change: the name given, or the user of this machine."""
    if who:
        return who
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def known_at(tree: Tree) -> AsOf | None:
    """The date of a manual change: now, unless the tree is about a moment in the past."""
    if tree.as_of is None or tree.as_of.mode != "live":
        return None
    return AsOf(at=datetime.now(UTC).replace(microsecond=0), mode="live")


async def edit(request: TreeEditRequest, settings: Settings | None = None) -> TreeEditResult:
    """Edit a tree, judge outdated claims again if the request says so, and write the file."""
    if request.rejudge and request.model is None and not request.plan:
        raise InputError(
            "no model is named", column="--model", hint="e.g. openai:NAME; FORETELL_MODEL stands in for it"
        )
    file = read_tree_file(request.tree)
    base = file.tree if request.base_version is None else tree_at(request.tree, request.base_version)
    edits = edits_of(request, base)
    after = resynthesize(base, edits)
    if request.plan:
        return _result(request.tree, base, after)
    path = request.save_as or request.tree
    if request.save_as is not None:
        write_tree(path, file.tree, file.scenarios)
    start = request.base_version if request.save_as is None else None
    author = TreeAuthor(who=editor(request.who), why=request.why)
    done = commit_edits(path, edits, author, base=start, as_of=known_at(file.tree) if edits else None)
    result = _result(path, file.tree, done.after, version=done.version, merged=done.merged)
    if not request.rejudge or not stale_claims(done.after):
        return result
    from foretell.operations.tree_research import resynthesize_judgements

    fields = {"tree": path, "model": request.model, "budget": request.budget, "who": request.who, "why": request.why}
    judged = await resynthesize_judgements(TreeResynthesizeRequest.read(fields), settings)
    return _result(path, file.tree, judged.tree, version=judged.version, merged=done.merged, failed=judged.failed)


edit_tree = operation(TreeEditRequest)(edit)


def _result(path: Path, before: Tree, after: Tree, **more: Any) -> TreeEditResult:
    changes = tuple(claim_changes(before, after))
    return TreeEditResult(tree=after, path=path, changes=changes, stale=tuple(stale_claims(after)), **more)


def edits_of(request: TreeEditRequest, tree: Tree) -> list[Edit]:
    """The edits that a request asks for: first those in a file, then texts, numbers and links."""
    found = [*_from_file(request.edits), *(SetClaim(id=id, claim=text.strip()) for id, text in request.claim.items())]
    found += [SetReport(id=id, report=text) for id, text in request.report.items()]
    found += [RemoveNode(id=id) for id in request.remove]
    found += [edit for id, to in request.move.items() for edit in _moved(tree, id, to)]
    taken: dict[str, int] = {}
    for text in request.add:
        parent, sign, claim = text.partition("=")
        if not sign or not claim.strip() or parent.strip() not in tree.nodes:
            raise InputError(f"{text[:80]!r} is not PARENT=TEXT", column="--add", hint="name a claim and a statement")
        found += _added(tree, parent.strip(), claim.strip(), taken)
    found += [SetP(id=id.strip(), p=p) for id, p in request.set.items()]
    found += [Unpin(id=id) for id in request.unpin]
    found += [SetLink(id=id, link=_formula(tree, id, text)) for id, text in request.formula.items()]
    found += [SetLink(id=id, link=read_sum(text, f"--weights {id}")) for id, text in request.weights.items()]
    found += [MarkStale(id=id, why=why) for id, why in request.stale.items()]
    linked = {edit.id for edit in found if isinstance(edit, SetLink)}
    removed = [id for id in request.remove if id in tree.nodes]
    return [*found, *_loosened(tree, removed, linked)]


def _from_file(path: Path | None) -> list[Edit]:
    if path is None:
        return []
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read as JSON: {error}", path=path) from None
    return edits_from_json(written)


def _added(tree: Tree, parent: str, claim: str, taken: dict[str, int]) -> list[Edit]:
    """Add a leaf. Until its weight is judged it does not count, and its parent is stale."""
    place = taken[parent] = taken.get(parent, 0) + 1
    id = next_ids(tree, parent, place)[-1]
    node, above = Proposition(id=id, claim=claim), tree.nodes[parent]
    add: list[Edit] = [AddNode(parent=parent, node=node, weight=0.0)]
    if not above.children or isinstance(above.link, FormulaLink):
        add.append(_standing(above))
    return [*add, MarkStale(id=parent, why=f"{id} was added")]


def _moved(tree: Tree, id: str, to: str) -> list[Edit]:
    if to not in tree.nodes:
        raise InputError(f"{to[:80]} is not in the tree", column="--move")
    above = tree.nodes[to]
    left = [other for other in tree.nodes.values() if id in other.children and other.id != to]
    loosened = [_standing(one) for one in left if isinstance(one.link, FormulaLink) and len(one.children) > 1]
    held = [_standing(above)] if not above.children or isinstance(above.link, FormulaLink) else []
    return [MoveNode(id=id, to=to, weight=0.0), *loosened, *held, MarkStale(id=to, why=f"{id} was moved here")]


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


def _formula(tree: Tree, id: str, text: str) -> FormulaLink:
    old = tree.nodes[id].link if id in tree.nodes else None
    assumption = old.assumption if isinstance(old, FormulaLink) else None
    return FormulaLink(expression=text, assumption=assumption)


def read_sum(text: str, column: str = "--weights") -> LinearLink:
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
class TreeDiff(Result):
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
    value: Any = getattr(node, name) if node is not None else ""
    if name == "link" and value is not None and node is not None:
        return value.describe(node.children)
    if name == "grounding" and value is not None:
        return one_line(f"{value.grounder}: {value.key_factor or value.report or value.error}")[:300]
    if isinstance(value, tuple):
        return ", ".join(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "" if value is None else one_line(str(value))[:300]


@operation(TreeDiffRequest)
def diff_trees(request: TreeDiffRequest, settings: Settings | None = None) -> TreeDiff:
    """Compare two versions of a tree, or two trees, claim by claim."""
    if request.other is not None:
        trees = [read_tree_file(path).tree for path in (request.tree, request.other)]
        return TreeDiff(before=trees[0], after=trees[1], names=(str(request.tree), str(request.other)))
    known = read_history(request.tree)
    if request.start is None and len(known) < 2:
        raise InputError("has no older version", path=request.tree, hint="name another tree's file, or edit it first")
    start = request.start if request.start is not None else known[-2].version
    end = f"version {request.end}" if request.end is not None else "as it is"
    trees = [tree_at(request.tree, start), tree_at(request.tree, request.end)]
    return TreeDiff(before=trees[0], after=trees[1], names=(f"version {start}", end))


@dataclass(frozen=True, kw_only=True)
class TreeVersions(Result):
    """The versions of a tree."""

    path: Path
    versions: tuple[TreeVersion, ...]
    restored: int | None = None
    """The number of the new version that restores an older one."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was written."""
        return (f"Wrote {self.path}, version {self.restored}",) if self.restored is not None else ()

    def rows(self) -> list[dict[str, Any]]:
        """One row per version, oldest first."""
        return [
            {
                "version": one.version,
                "at": one.at.isoformat(),
                "who": one.who,
                "why": one.why,
                "p": one.p,
                "changed": list(one.changed),
            }
            for one in self.versions
        ]

    def to_dict(self) -> dict[str, Any]:
        """The file and its versions."""
        return {"file": str(self.path), "versions": self.rows(), "restored": self.restored}

    def __str__(self) -> str:
        lines = [
            f"{one.version}  {one.at:%Y-%m-%d %H:%M}  {format_probability(one.p)}  {one_line(one.who) or '–'}"
            f"  {one_line(one.why) or '–'}" + (f"  ({_some(one.changed)})" if one.changed else "")
            for one in self.versions
        ]
        return "\n".join(lines or ["Nobody has edited it yet."])


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")


@operation(TreeHistoryRequest)
def tree_history(request: TreeHistoryRequest, settings: Settings | None = None) -> TreeVersions:
    """List the versions of a tree, and restore one if the request says so."""
    restored = None
    if request.restore is not None:
        why = request.why or f"back to version {request.restore}"
        open_version(request.tree)
        restored = replace_tree(
            request.tree, tree_at(request.tree, request.restore), TreeAuthor(who=editor(request.who), why=why)
        )
    else:
        read_tree_file(request.tree)
    return TreeVersions(path=request.tree, versions=tuple(read_history(request.tree)), restored=restored)
