"""The versions of a tree: list them, and compare two of them or two trees claim by claim."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from foretell.forecasters.tree.exports import one_line
from foretell.forecasters.tree.history import TreeVersion, read_history, tree_at
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.forecasters.tree.what_if import ClaimChange, claim_changes, field_of
from foretell.frozen import frozen
from foretell.number_text import percent, plural
from foretell.operations.requests.trees import TreeLogRequest
from foretell.questions.errors import InputError
from foretell.report.result import Result
from foretell.report.terminal import show_text
from foretell.runs.settings import Settings
from foretell.runs.tree_files import find_tree


@frozen
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
        """Return one row per claim that differs."""
        return [{**row, "words": self._words(row["id"])} for row in change_rows(self.changes)]

    def _words(self, id: str) -> dict[str, list[str]]:
        """Field → its text before and after."""
        old, new = self.before.nodes.get(id), self.after.nodes.get(id)
        fields = next((change.fields for change in self.changes if change.id == id), ())
        return {name: [_shown(old, name), _shown(new, name)] for name in fields}

    def to_dict(self) -> dict[str, Any]:
        """Return both answers, and every claim that differs."""
        roots = [tree.nodes[tree.root].p for tree in (self.before, self.after)]
        return {"from": self.names[0], "to": self.names[1], "was": roots[0], "is": roots[1], "changes": self.rows()}

    def print(self, console: "Console") -> None:
        """Print the numbers of each claim, and every changed field before and after."""
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


@frozen
class TreeLog(Result):
    """The versions of a tree, and a comparison of two of them or of two trees if requested."""

    path: Path
    versions: tuple[TreeVersion, ...]
    diff: TreeDiff | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per version, oldest first; or one per claim that differs."""
        if self.diff is not None:
            return self.diff.rows()
        return [
            {
                "version": version.version,
                "at": version.at.isoformat(),
                "author": version.author,
                "message": version.message,
                "p": version.p,
                "changed": list(version.changed),
            }
            for version in self.versions
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the file, and its versions or the comparison."""
        content = {"versions": self.rows()} if self.diff is None else self.diff.to_dict()
        return {"file": str(self.path), **content}

    def print(self, console: "Console") -> None:
        """Print one line per version, or the comparison claim by claim."""
        if self.diff is not None:
            return self.diff.print(console)
        lines = [
            f"{version.version}  {version.at:%Y-%m-%d %H:%M}  {percent(version.p, 1)}"
            f"  {one_line(version.author) or '–'}  {one_line(version.message) or '–'}"
            + (f"  ({_some(version.changed)})" if version.changed else "")
            for version in self.versions
        ]
        show_text(console, "\n".join(lines or ["There are no edits yet."]) + "\n")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")


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


def change_rows(changes: Iterable[ClaimChange]) -> list[dict[str, Any]]:
    """Return the changed claims as plain data."""
    return [
        {
            "id": change.id,
            "claim": change.claim,
            "was": change.before,
            "is": change.after,
            "changed": list(change.fields),
        }
        for change in changes
    ]


def change_lines(changes: Iterable[ClaimChange], after: Tree | None = None) -> list[str]:
    """Return the changed claims, one line each. In `after`, the changed tree, a claim may be no longer stale."""
    lines: list[str] = []
    for change in changes:
        node = None if after is None else after.nodes.get(change.id)
        current = node is not None and not node.stale
        parts = ["was stale" if name == "stale" and current else name for name in change.fields]
        line = f"{change.id} {percent(change.before, 1)} → {percent(change.after, 1)}"
        lines.append(line + (f" ({', '.join(parts)})" if parts else ""))
    return lines
