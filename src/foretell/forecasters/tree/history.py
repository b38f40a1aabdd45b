"""Version history of tree files: who changed what and why, and how concurrent edits are merged.

Next to `tree.json` is `tree.json.history`, a JSON Lines file with one line for each version, which holds what changed.
Lines are appended under a lock. A line that was cut off by a crash is ignored; a tree file that was changed by other
means becomes a version of its own.
"""

import hashlib
import json
import os
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.data.files import BINARY
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.edits import Edit, MarkStale, SetLink
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.tree_file import read_tree_file, to_dict, tree_from_dict, tree_to_dict, write_tree
from foretell.forecasters.tree.what_if import resynthesize
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf
from foretell.questions.codec import checked_fields, plain_data
from foretell.questions.errors import InputError
from foretell.questions.file_lock import lock_open_file
from foretell.questions.forecast import Cost

FOUND, OUTSIDE = "as it was found", "changed by other means than foretell"
LONGEST = 500
"""Maximum length of an author's name and of a message, in characters."""
FORMER_NAMES = {"who": "author", "why": "message"}
"""Fields of a version as version 0.2 wrote them, and their current names."""


class ConflictingEdits(InputError):
    """Raised if someone else has changed the same claims; nothing was written."""


@frozen
class TreeVersion:
    """One version of a tree: who made it, when, why, and what changed since the previous one."""

    version: int
    at: datetime
    author: str
    message: str
    p: float | None
    """Probability of the root."""
    changed: tuple[str, ...] = ()
    """Claims that were added or removed, or whose own wording, children, link, report or probability changed."""
    edits: tuple[Mapping[str, Any], ...] = ()
    """The edits, in the format of tree files."""
    delta: Mapping[str, Any] = field(repr=False)
    """The claims that differ from the previous version, in the format of tree files."""
    digest: str
    models: tuple[str, ...] = ()
    """Models that made the change, as ROLE=MODEL."""
    cost: Cost = field(default_factory=Cost)
    """Total cost of the models."""


@frozen
class TreeAuthor:
    """Who changes a tree and why, and which models helped."""

    name: str = ""
    message: str = ""
    models: tuple[str, ...] = ()
    """Models that helped, as ROLE=MODEL."""
    cost: Cost = field(default_factory=Cost)


def history_path(path: Path) -> Path:
    """Path of the history file of a tree file."""
    return path.with_name(f"{path.name}.history")


def tree_digest(tree: Tree) -> str:
    """Return a hash of a tree's content; equal trees have equal hashes."""
    return hashlib.sha256(json.dumps(tree_to_dict(tree), sort_keys=True).encode()).hexdigest()


def own_part(node: Proposition) -> Proposition:
    """Return the claim without fields that are computed from other claims or track their changes."""
    link = replace(node.link, stale=False) if isinstance(node.link, JudgedLink) else node.link
    return replace(node, p=None if node.children else node.p, row={}, incomplete=(), stale="", link=link)


def changed_claims(before: Tree, after: Tree) -> list[str]:
    """Claims that were added or removed, or whose own part changed."""
    ids = dict.fromkeys([*after.nodes, *before.nodes])
    old = {id: own_part(before.nodes[id]) for id in ids if id in before.nodes}
    return [id for id in ids if id not in after.nodes or old.get(id) != own_part(after.nodes[id])]


def read_history(path: Path) -> list[TreeVersion]:
    """Read the versions of a tree file, oldest first; empty if it was never edited."""
    file = history_path(path)
    if not file.is_file():
        return []
    versions: list[TreeVersion] = []
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        try:
            fields = {FORMER_NAMES.get(name, name): value for name, value in json.loads(line).items()}
            versions.append(checked_fields(fields, TreeVersion))
        except (ValueError, AttributeError, RecursionError, InputError):
            if not versions:
                raise InputError("is not a history of a tree", path=file, row=number) from None
            break  # The line was cut off by a crash, and its edits were never reported as done.
    return versions


def tree_at(path: Path, version: int | None = None) -> Tree:
    """Return the tree at a version, or the tree in the file if no version is given."""
    if version is None:
        return read_tree_file(path).tree
    versions = read_history(path)
    if version not in {entry.version for entry in versions}:
        hint = f"there are versions 1 to {versions[-1].version}" if versions else "it was never edited"
        raise InputError(f"there is no version {version}", path=path, hint=hint)
    head: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    for entry in versions:
        if entry.version > version:
            break
        head = dict(entry.delta["tree"])
        nodes = {**nodes, **entry.delta["nodes"]}
        nodes = {id: node for id, node in nodes.items() if node is not None}
    return evaluated(tree_from_dict({**head, "nodes": nodes}).tree)


def _delta(before: Tree | None, after: Tree) -> dict[str, Any]:
    old = tree_to_dict(before)["nodes"] if before is not None else {}
    body = tree_to_dict(after)
    new = body.pop("nodes")
    nodes: dict[str, Any] = {id: node for id, node in new.items() if old.get(id) != node}
    return {"tree": body, "nodes": {**nodes, **{id: None for id in old if id not in new}}}


@contextmanager
def _locked(path: Path) -> Generator[int]:
    """Open the history for appending, under an exclusive lock."""
    file = os.open(history_path(path), os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY, 0o666)
    try:
        lock_open_file(file)
        yield file
    finally:
        os.close(file)


def _append(file: int, path: Path, version: TreeVersion) -> None:
    body = plain_data(version) | {"at": version.at.isoformat()}
    whole = history_path(path).read_bytes()
    if not whole.endswith(b"\n"):
        # The last line was cut off by a crash.
        os.ftruncate(file, whole.rfind(b"\n") + 1)
    os.write(file, (json.dumps(body, ensure_ascii=False) + "\n").encode())
    os.fsync(file)


def _next(
    versions: Sequence[TreeVersion], before: Tree | None, after: Tree, author: TreeAuthor, edits: Sequence[Edit] = ()
) -> TreeVersion:
    return TreeVersion(
        version=versions[-1].version + 1 if versions else 1,
        at=datetime.now(UTC).replace(microsecond=0),
        author=author.name[:LONGEST],
        message=author.message[:LONGEST],
        p=after.nodes[after.root].p,
        changed=tuple(changed_claims(before, after)) if before is not None else (),
        edits=tuple(to_dict(edit) for edit in edits),
        delta=_delta(before, after),
        digest=tree_digest(after),
        models=author.models,
        cost=author.cost,
    )


def _up_to_date(file: int, path: Path, tree: Tree) -> list[TreeVersion]:
    """Return the versions; if the file was changed outside the history, append a version for its tree first."""
    versions = read_history(path)
    if versions and versions[-1].digest == tree_digest(tree):
        return versions
    before = tree_at(path, versions[-1].version) if versions else None
    new = _next(versions, before, tree, TreeAuthor(message=OUTSIDE if versions else FOUND))
    _append(file, path, new)
    return [*versions, new]


def current_version(path: Path) -> int | None:
    """Return the latest version number of a tree file; None if it was never edited."""
    versions = read_history(path)
    return versions[-1].version if versions else None


def open_version(path: Path) -> tuple[Tree, int]:
    """Read a tree and its version number before a long edit."""
    with _locked(path) as lock:
        tree = read_tree_file(path).tree
        return tree, _up_to_date(lock, path, tree)[-1].version


@frozen
class TreeCommit:
    """A tree before and after a committed list of edits."""

    before: Tree
    after: Tree
    version: int
    """The current version number; unchanged if the edits changed nothing."""
    merged: tuple[TreeVersion, ...] = ()
    """Versions by others, about other claims, onto which the edits were merged."""


def commit_edits(
    path: Path, edits: Sequence[Edit], author: TreeAuthor, *, base: int | None = None, as_of: AsOf | None = None
) -> TreeCommit:
    """Apply edits to a tree file atomically and record the new version.

    `base` is the version that the edits were made for. If others have written since, edits of other claims are applied
    on top of theirs; edits of the same claims raise `ConflictingEdits`, and nothing is written. `as_of` is the cutoff
    of the information in the edits; it becomes the tree's cutoff if it is later than that.
    """
    with _locked(path) as lock:
        file = read_tree_file(path)
        versions = _up_to_date(lock, path, file.tree)
        others: tuple[TreeVersion, ...] = ()
        if base is not None and base != versions[-1].version:
            edits, others = _merged(path, versions, file.tree, edits, base)
        after = resynthesize(file.tree, edits)
        if as_of is not None and (after.as_of is None or as_of.at > after.as_of.at):
            after = replace(after, as_of=as_of)
        if tree_digest(after) == versions[-1].digest:
            return TreeCommit(before=file.tree, after=after, version=versions[-1].version, merged=others)
        write_tree(path, after, file.scenarios)
        version = _next(versions, file.tree, after, author, edits)
        _append(lock, path, version)
    return TreeCommit(before=file.tree, after=after, version=version.version, merged=others)


def replace_tree(path: Path, tree: Tree, author: TreeAuthor) -> int:
    """Write a tree as the file's next version and return the version number."""
    with _locked(path) as lock:
        file = read_tree_file(path)
        versions = _up_to_date(lock, path, file.tree)
        write_tree(path, tree, file.scenarios)
        version = _next(versions, file.tree, tree, author)
        _append(lock, path, version)
        return version.version


def _merged(
    path: Path, versions: Sequence[TreeVersion], current: Tree, edits: Sequence[Edit], base: int
) -> tuple[list[Edit], tuple[TreeVersion, ...]]:
    """Adapt the edits to the current tree, and return them with the versions by others. Raises `ConflictingEdits`."""
    old = tree_at(path, base)
    mine = set(changed_claims(old, resynthesize(old, edits)))
    theirs = set(changed_claims(old, current))
    others = tuple(other for other in versions if other.version > base)
    if both := [id for id in current.nodes if id in mine & theirs] + sorted(mine & theirs - current.nodes.keys()):
        raise _conflict(path, base, both, others)
    try:
        resynthesize(current, edits)
    except InvalidTree as error:
        text = f"{error.problems[0]}; the current version is {versions[-1].version}, not {base}"
        raise ConflictingEdits(text, path=path, hint=_look(path, base)) from None
    return [*edits, *_outdated(edits, old, current, theirs)], others


def _outdated(edits: Sequence[Edit], old: Tree, current: Tree, theirs: Collection[str]) -> Iterator[Edit]:
    """Mark links as stale that were judged from wording that someone else has changed since."""
    for id in dict.fromkeys(edit.id for edit in edits if isinstance(edit, SetLink)):
        for child in current.nodes[id].children if id in current.nodes else ():
            if child in theirs and child in old.nodes and old.nodes[child].claim != current.nodes[child].claim:
                yield MarkStale(id=id, why=f"the statement of {child} was changed in the meantime")
                break


def _look(path: Path, base: int) -> str:
    return f"see what changed with foretell tree log {path} --diff {base}.., and edit again"


def _conflict(path: Path, base: int, both: Sequence[str], others: Sequence[TreeVersion]) -> ConflictingEdits:
    changes: list[str] = []
    for other in others:
        if claims := [id for id in both if id in other.changed]:
            message = f": {other.message}" if other.message else ""
            changes.append(
                f"{', '.join(claims)} by {other.author or 'an unknown author'} in version {other.version}{message}"
            )
    text = f"changed since version {base}: {'; '.join(changes) or ', '.join(both)}. Nothing was written"
    return ConflictingEdits(text, path=path, hint=_look(path, base))
