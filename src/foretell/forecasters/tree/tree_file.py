"""Tree files: JSON that a person can read and edit, with a version."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.arithmetic.scaling import links_without_bayes_net
from foretell.forecasters.tree.edits import Edit, Scenario
from foretell.forecasters.tree.problems import InvalidTree, TreeProblem, raise_errors
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeOrigin
from foretell.forecasters.tree.tree_json import (
    JsonObject,
    object_from_pairs,
    read,
    read_scenario,
    scenario_to_dict,
    to_dict,
)
from foretell.forecasters.tree.validation import tree_problems
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError

SCHEMA = "foretell/tree/1"
LINES = {"nodes": 2, "scenarios": 2, "origin": 1}
"""How many levels within a field of the file get lines of their own."""
ONLY_FOR_EXPORT = "matters only for export to ProbLog and Bayes nets, which can scale the weights"


@dataclass(frozen=True, kw_only=True)
class TreeFile:
    """A tree and the scenarios saved with it."""

    tree: Tree
    scenarios: Mapping[str, Scenario] = field(default_factory=dict[str, Scenario])
    warnings: tuple[TreeProblem, ...] = ()
    version: int | None = None
    """The number of its version, where somebody keeps them and asked for it."""

    def with_scenario(self, scenario: Scenario) -> "TreeFile":
        """One more scenario, in place of an older one of that name."""
        return replace(self, scenarios={**self.scenarios, scenario.name: scenario})


def read_tree_file(path: str | Path) -> TreeFile:
    """A tree file, checked and with every number worked out; what cannot be used is an `InvalidTree`."""
    file = _parsed(Path(path))
    try:
        done = evaluate(file.tree)
    except InputError as error:
        raise _at(error, path) from None
    return replace(file, tree=done.tree, warnings=done.warnings)


def read_tree(path: str | Path) -> Tree:
    """The tree of a tree file, with every number worked out."""
    return read_tree_file(path).tree


def check_file(path: str | Path) -> list[TreeProblem]:
    """Everything wrong with a tree file and everything worth knowing, instead of the first thing only."""
    try:
        file = _parsed(Path(path))
        found = tree_problems(file.tree)
        if any(not problem.warning for problem in found):
            return found
        unfit = [replace(one, hint=ONLY_FOR_EXPORT, warning=True) for one in links_without_bayes_net(file.tree)]
        return [*evaluate(file.tree).warnings, *unfit]
    except InvalidTree as error:
        return list(error.problems)


def write_tree(path: str | Path, tree: Tree, scenarios: Mapping[str, Scenario] | None = None) -> None:
    """Write a tree file; it appears whole or not at all."""
    from foretell.data.atomic_file import write_atomically

    write_atomically(Path(path), tree_text(tree, scenarios or {}).encode())


def tree_text(tree: Tree, scenarios: Mapping[str, Scenario] | None = None) -> str:
    """The text of a tree file: a line for each field of each claim."""
    body = tree_to_dict(tree, scenarios or {})
    lines = [f' "{name}": {_laid_out(value, LINES.get(name, 0), " ")}' for name, value in body.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def tree_to_dict(tree: Tree, scenarios: Mapping[str, Scenario] | None = None) -> dict[str, Any]:
    """The tree as plain JSON."""
    usual = Tree(root="", nodes={})
    body: dict[str, Any] = {"schema": SCHEMA, "root": tree.root}
    if tree.as_of is not None:
        body["as_of"] = {"at": tree.as_of.at.isoformat(), "mode": tree.as_of.mode}
    if tree.intercept_limit != usual.intercept_limit:
        body["intercept_limit"] = tree.intercept_limit
    if tree.missing != usual.missing:
        body["missing"] = tree.missing
    if tree.notes:
        body["notes"] = list(tree.notes)
    if tree.origin is not None:
        body["origin"] = to_dict(tree.origin)
    # A claim stands under its id.
    body["nodes"] = {id: {k: v for k, v in to_dict(node).items() if k != "id"} for id, node in tree.nodes.items()}
    if scenarios:
        body["scenarios"] = {name: scenario_to_dict(scenario) for name, scenario in scenarios.items()}
    return body


def tree_from_text(text: str) -> TreeFile:
    """Read the text of a tree file. Only its form is checked: see `evaluate` for the rest."""
    try:
        data = json.loads(text, object_pairs_hook=object_from_pairs)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from None
    return tree_from_dict(data)


def tree_from_dict(data: object) -> TreeFile:
    """Read a tree from a parsed JSON object. Only its form is checked: see `evaluate` for the rest."""
    found: list[TreeProblem] = []
    given = JsonObject(data, found)
    schema = given.get("schema", str)
    if schema not in (None, SCHEMA):
        given.wrong("schema", f"{schema!r} is not {SCHEMA!r}", "written by another version?")
    values: dict[str, Any] = {
        "root": given.get("root", str, required=True),
        "nodes": _nodes(given),
        "as_of": _as_of(given),
        "notes": given.get("notes", tuple[str, ...]),
        "intercept_limit": given.get("intercept_limit", float),
        "missing": given.get("missing", float),
        "origin": given.get("origin", TreeOrigin),
    }
    listed = given.inner("scenarios")
    scenarios = {name: read_scenario(name, body, found) for name, body in listed.data.items()} if listed else {}
    given.finish()
    raise_errors(found)
    return TreeFile(tree=Tree(**{k: v for k, v in values.items() if v is not None}), scenarios=scenarios)


def edits_from_json(data: object) -> list[Edit]:
    """Edits from a parsed JSON list, as they stand under `edits` of a scenario in a tree file.

    >>> edits_from_json([{"edit": "set_p", "id": "P1", "p": 0.2}])
    [SetP(id='P1', p=0.2)]
    """
    problems: list[TreeProblem] = []
    scenario = read_scenario("edits", {"edits": data}, problems)
    raise_errors([replace(one, field=one.field.removeprefix("scenarios.edits.")) for one in problems])
    return list(scenario.edits)


def _nodes(given: JsonObject) -> dict[str, Proposition]:
    listed = given.inner("nodes")
    if listed is None:
        given.wrong("nodes", "is missing")
        return {}
    nodes: dict[str, Proposition] = {}
    for id, body in listed.data.items():
        # What is computed (`incomplete`) is accepted and computed anew.
        node = read(Proposition, JsonObject(body, given.problems, node=id), id=id, incomplete=())
        if node is not None:
            nodes[id] = node
    return nodes


def _as_of(given: JsonObject) -> AsOf | None:
    """A moment with its mode, or just a day."""
    value = given.take("as_of")
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return AsOf.day(value) if len(value) == 10 else AsOf(at=instant(value))
        inner = JsonObject(value, given.problems, within="as_of")
        at, mode = inner.get("at", str, required=True), inner.get("mode", str) or "backtest"
        inner.finish()
        if mode not in ("live", "backtest"):
            inner.wrong("mode", f"{mode!r} is neither live nor backtest")
            return None
        return AsOf(at=instant(at), mode=mode) if at else None
    except ValueError as error:
        given.wrong("as_of", str(error))
        return None


def _parsed(path: Path) -> TreeFile:
    try:
        return tree_from_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "foretell tree list shows the trees of this machine" if isinstance(error, FileNotFoundError) else None
        raise InputError(error.strerror or "cannot be read", path=path, hint=hint) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", path=path) from None
    except InputError as error:
        raise _at(error, path) from None


def _at(error: InputError, path: str | Path) -> InputError:
    return InvalidTree(error.problems, path=path) if isinstance(error, InvalidTree) else error.at(path=path)


def _laid_out(value: object, levels: int, indent: str) -> str:
    """JSON with that many outer levels on lines of their own and everything within on one line."""
    if not isinstance(value, dict) or not value or levels == 0:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    items = cast("dict[str, object]", value).items()
    lines = [
        f"{inner}{json.dumps(name, ensure_ascii=False)}: {_laid_out(item, levels - 1, inner)}" for name, item in items
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
