"""Read and write tree files: versioned JSON that people can read and edit."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.arithmetic.scaling import links_without_bayes_net
from foretell.forecasters.tree.case_links import with_ratios
from foretell.forecasters.tree.edits import Edit, Scenario, SetP
from foretell.forecasters.tree.link_kinds import link_class
from foretell.forecasters.tree.links import Link
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeOrigin
from foretell.forecasters.tree.text import InvalidTree, TreeProblem, raise_errors
from foretell.forecasters.tree.validation import tree_problems
from foretell.frozen import frozen
from foretell.python_calls import python_errors
from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import parse_json
from foretell.questions.errors import InputError, said
from foretell.questions.field_checks import check_arguments

T = TypeVar("T")

EDIT_KINDS: Mapping[str, type[Edit]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in get_args(Edit)
}
"""Edit classes by name in tree files: `set_p` is `SetP`."""


# Writing.


def to_dict(value: object) -> dict[str, Any]:
    """Convert a claim, link, grounding or edit to plain JSON, without empty optional fields.

    >>> from foretell.forecasters.tree.links import LinearLink
    >>> to_dict(LinearLink(weights={"P1": 0.4, "P2": 0.5}, intercept=0.05))
    {'kind': 'linear', 'intercept': 0.05, 'weights': {'P1': 0.4, 'P2': 0.5}}
    >>> to_dict(SetP(id="P1", p=0.2))
    {'edit': 'set_p', 'id': 'P1', 'p': 0.2}
    """
    body: dict[str, Any] = {}
    if isinstance(value, Link):
        body["kind"] = value.kind
    elif isinstance(value, Edit):
        body["edit"] = next(name for name, kind in EDIT_KINDS.items() if type(value) is kind)
    for attribute in fields(cast(Any, value)):
        content = getattr(value, attribute.name)
        empty = content is None or content is False or (isinstance(content, str | tuple | Mapping) and not content)
        if not (empty and _has_default(attribute)):
            body[attribute.name] = _plain(content)
    return body


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, tuple):
        return list(cast("tuple[Any, ...]", value))
    return to_dict(value) if is_dataclass(value) else value


def scenario_to_dict(scenario: Scenario) -> dict[str, Any]:
    """Convert a scenario to plain JSON; in the short form `set` if it only sets probabilities."""
    body: dict[str, Any] = {"text": scenario.text} if scenario.text else {}
    sets = [edit for edit in scenario.edits if isinstance(edit, SetP)]
    if len(sets) == len(scenario.edits) and len({edit.id for edit in sets}) == len(sets):
        return body | {"set": {edit.id: edit.p for edit in sets}}
    return body | {"edits": [to_dict(edit) for edit in scenario.edits]}


# Reading.


class ObjectWithRepeatedKeys(dict[str, Any]):
    """A JSON object with duplicate keys."""

    names: tuple[str, ...] = ()


def object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict that remembers duplicate keys, for `parse_json(object_pairs_hook=…)`."""
    result = ObjectWithRepeatedKeys(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        result.names = tuple(name for name, _ in pairs if name in seen or seen.add(name))
    return result


class JsonObject:
    """A JSON object being read. A value of the wrong type becomes a `TreeProblem` and reads as None."""

    def __init__(self, data: object, problems: list[TreeProblem], *, node: str = "", within: str = "") -> None:
        self.node = node
        self.within = within
        self.problems = problems
        self._read: set[str] = set()
        self.data: Mapping[str, Any] = {}
        if isinstance(data, dict):
            self.data = cast("dict[str, Any]", data)
            for name in data.names if isinstance(data, ObjectWithRepeatedKeys) else ():
                self.wrong(name, "is given twice")
        else:
            self.wrong("", f"expected an object {{…}}, found {_shown(data)}")

    def wrong(self, name: str, text: str, hint: str = "") -> None:
        """Report a problem with a field."""
        self.problems.append(TreeProblem(node=self.node, field=self.path(name), text=text, hint=hint))

    def path(self, name: str) -> str:
        """Return the full name of a field for error messages."""
        return ".".join(filter(None, [self.within, name]))

    def take(self, name: str) -> Any:
        """Return the raw value of a field; None if absent."""
        self._read.add(name)
        return self.data.get(name)

    def inner(self, name: str) -> "JsonObject | None":
        """Return a nested object; None if absent."""
        value = self.take(name)
        return None if value is None else self._within(name, value)

    def _within(self, name: str, value: object) -> "JsonObject":
        return JsonObject(value, self.problems, node=self.node, within=self.path(name))

    def finish(self) -> None:
        """Report every field that was not read."""
        for name in self.data:
            if name not in self._read:
                near = get_close_matches(name, sorted(self._read), n=1)
                self.wrong(name, "is not a field here", f"did you mean {near[0]}?" if near else "")

    def get(self, name: str, kind: Any, *, required: bool = False) -> Any:
        """Return the value of a field if it has the right type; otherwise None."""
        value = self.take(name)
        if value is None:
            if required:
                self.wrong(name, "is missing")
            return None
        return self._read_value(name, value, kind)

    def _read_value(self, name: str, value: Any, kind: Any) -> Any:
        if kind is str:
            return value if isinstance(value, str) else self._unexpected(name, "a text", value)
        if kind is float:
            return self._number(name, value)
        if kind is int:
            whole = isinstance(value, int) and not isinstance(value, bool)
            return value if whole else self._unexpected(name, "a whole number", value)
        if kind is bool:
            return value if isinstance(value, bool) else self._unexpected(name, "true or false", value)
        if get_origin(kind) is tuple and get_args(kind)[0] is float:
            numbers = [self._number(name, item) for item in cast("list[Any]", value)] if isinstance(value, list) else []
            fits = isinstance(value, list) and None not in numbers
            return tuple(numbers) if fits else self._unexpected(name, "a list of numbers", value)
        if get_origin(kind) is tuple:
            texts = cast("list[Any]", value)
            fits = isinstance(value, list) and all(isinstance(item, str) for item in texts)
            return tuple(texts) if fits else self._unexpected(name, "a list of texts", value)
        inner = self._within(name, value)
        if kind is Link:
            return read_link(inner)
        if kind is Proposition:
            return read(Proposition, inner, incomplete=(), row={})
        if is_dataclass(kind):
            return read(cast(type, kind), inner)
        item_kind = get_args(kind)[1]
        items = {key: inner._read_value(key, item, item_kind) for key, item in inner.data.items()}
        return {key: item for key, item in items.items() if item is not None}

    def _number(self, name: str, value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._unexpected(name, "a number", value)
        if not math.isfinite(value):
            return self.wrong(name, f"{value} is not a finite number")
        return float(value)

    def _unexpected(self, name: str, wanted: str, value: object) -> None:
        self.wrong(name, f"expected {wanted}, found {_shown(value)}")


def _shown(value: object) -> str:
    kinds: Mapping[type, str] = {dict: "an object", list: "a list", bool: "true or false", NoneType: "nothing"}
    for kind, words in kinds.items():
        if isinstance(value, kind):
            return words
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "…"


def _has_default(attribute: "Field[Any]") -> bool:
    return attribute.default is not MISSING or attribute.default_factory is not MISSING


@cache
def _field_types(kind: type) -> dict[str, Any]:
    """Return the type of every field; `X | None` becomes X."""
    hints = get_type_hints(kind)
    return {name: _not_none(hint) for name, hint in hints.items()}


def _not_none(hint: Any) -> Any:
    parts = [part for part in get_args(hint) if part is not NoneType] if isinstance(hint, UnionType) else []
    return parts[0] if len(parts) == 1 else hint


def read(kind: type[T], reader: JsonObject, **known: Any) -> T | None:
    """Read an object as a dataclass; None if it is not valid, with the reasons added to the problems.

    Fields that are already `known` may occur in the object and are ignored.
    """
    problems = len(reader.problems)
    values: dict[str, Any] = {}
    for attribute in fields(cast(Any, kind)):
        if attribute.name in known:
            reader.take(attribute.name)
            continue
        value = reader.get(attribute.name, _field_types(kind)[attribute.name], required=not _has_default(attribute))
        if value is not None:
            values[attribute.name] = value
    reader.finish()
    return kind(**known, **values) if len(reader.problems) == problems else None


def read_link(reader: JsonObject) -> Link | None:
    """Read a link from its object; None if it is not valid."""
    kind = reader.get("kind", str, required=True)
    try:
        return read(link_class(kind), reader) if kind else None
    except InputError as error:
        reader.wrong("kind", error.problem, error.hint or "")
        return None


def read_edit(reader: JsonObject) -> Edit | None:
    """Read an edit from its object; None if it is not valid."""
    name = reader.get("edit", str, required=True)
    if name is None:
        return None
    if name not in EDIT_KINDS:
        reader.wrong("edit", f"{name!r} is not an edit", f"the edits are {', '.join(EDIT_KINDS)}")
        return None
    return read(EDIT_KINDS[name], reader)


def read_scenario(name: str, data: object, problems: list[TreeProblem]) -> Scenario:
    """Read a scenario from its object; `set` is applied first, then `edits`."""
    within = f"scenarios.{name}"
    reader = JsonObject(data, problems, within=within)
    edits: list[Edit | None] = [SetP(id=id, p=p) for id, p in (reader.get("set", Mapping[str, float]) or {}).items()]
    listed = reader.take("edits")
    if listed is not None and not isinstance(listed, list):
        reader.wrong("edits", "expected a list of edits")
        listed = None
    for place, edit in enumerate(cast("list[object]", listed or []), start=1):
        edits.append(read_edit(JsonObject(edit, problems, within=f"{within}.edits.{place}")))
    text = reader.get("text", str) or ""
    reader.finish()
    return Scenario(name=name, edits=tuple(edit for edit in edits if edit is not None), text=text)


SCHEMA = "foretell/tree/1"
LINES = {"nodes": 2, "scenarios": 2, "origin": 1}
"""For each field of the file, how many of its levels are written on separate lines."""
ONLY_FOR_EXPORT = "matters only for export to ProbLog and Bayes nets, which can scale the weights"


@frozen
class TreeFile:
    """A tree and the scenarios saved with it."""

    tree: Tree
    scenarios: Mapping[str, Scenario] = field(default_factory=dict[str, Scenario])
    warnings: tuple[TreeProblem, ...] = ()
    version: int | None = None
    """Version number, if it was requested and the file has a history."""

    def with_scenario(self, scenario: Scenario) -> "TreeFile":
        """Add a scenario, replacing one with the same name."""
        return replace(self, scenarios={**self.scenarios, scenario.name: scenario})


def read_tree_file(path: str | Path) -> TreeFile:
    """Read a tree file, validate it and compute all probabilities; raises `InvalidTree`."""
    file = _parsed(Path(path))
    try:
        done = evaluate(file.tree)
    except InputError as error:
        raise _at(error, path) from None
    return replace(file, tree=done.tree, warnings=done.warnings)


@python_errors()
@check_arguments
def read_tree(path: str | Path) -> Tree:
    """Read the tree of a tree file, with all probabilities computed.

    Args:
        path: The file.

    Returns:
        A `Tree` with `nodes` by their ids.

    Raises:
        InputError: If there is no such file, or it is no valid tree.
    """
    return read_tree_file(path).tree


def check_file(path: str | Path) -> list[TreeProblem]:
    """Return all errors and warnings about a tree file."""
    try:
        file = _parsed(Path(path))
        problems = tree_problems(file.tree)
        if any(not problem.warning for problem in problems):
            return problems
        unfit = [replace(problem, hint=ONLY_FOR_EXPORT, warning=True) for problem in links_without_bayes_net(file.tree)]
        return [*evaluate(file.tree).warnings, *unfit]
    except InvalidTree as error:
        return list(error.problems)


@check_arguments
def write_tree(path: str | Path, tree: Tree, scenarios: Mapping[str, Scenario] | None = None) -> None:
    """Write a tree to a file; a file that is there is replaced as a whole.

    Args:
        path: The file.
        tree: The tree.
        scenarios: Changes for `what_if` to store with it, by name.

    Raises:
        InputError: If it is not a `Tree`.
    """
    from foretell.data.files import write_atomically

    write_atomically(Path(path), tree_text(tree, scenarios or {}).encode())


def tree_text(tree: Tree, scenarios: Mapping[str, Scenario] | None = None) -> str:
    """Return the text of a tree file, with one line per field of each claim."""
    body = tree_to_dict(tree, scenarios or {})
    lines = [f' "{name}": {_laid_out(value, LINES.get(name, 0), " ")}' for name, value in body.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def tree_to_dict(tree: Tree, scenarios: Mapping[str, Scenario] | None = None) -> dict[str, Any]:
    """Convert the tree to plain JSON."""
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
    # The key of a claim is its id.
    body["nodes"] = {id: {k: v for k, v in to_dict(node).items() if k != "id"} for id, node in tree.nodes.items()}
    if scenarios:
        body["scenarios"] = {name: scenario_to_dict(scenario) for name, scenario in scenarios.items()}
    return body


def tree_from_text(text: str) -> TreeFile:
    """Read the text of a tree file. Only the format is checked; `evaluate` checks the rest."""
    return tree_from_dict(parse_json(text, object_pairs_hook=object_from_pairs))


def tree_from_dict(data: object) -> TreeFile:
    """Read a tree from parsed JSON. Only the format is checked; `evaluate` checks the rest."""
    problems: list[TreeProblem] = []
    reader = JsonObject(data, problems)
    schema = reader.get("schema", str)
    if schema not in (None, SCHEMA):
        reader.wrong("schema", f"{schema!r} is not {SCHEMA!r}", "written by another version?")
    values: dict[str, Any] = {
        "root": reader.get("root", str, required=True),
        "nodes": _nodes(reader),
        "as_of": _as_of(reader),
        "notes": reader.get("notes", tuple[str, ...]),
        "intercept_limit": reader.get("intercept_limit", float),
        "missing": reader.get("missing", float),
        "origin": reader.get("origin", TreeOrigin),
    }
    listed = reader.inner("scenarios")
    scenarios = {name: read_scenario(name, body, problems) for name, body in listed.data.items()} if listed else {}
    reader.finish()
    raise_errors(problems)
    return TreeFile(tree=Tree(**{k: v for k, v in values.items() if v is not None}), scenarios=scenarios)


def edits_from_json(data: object) -> list[Edit]:
    """Read edits from a parsed JSON list, in the format of a scenario's `edits`.

    >>> edits_from_json([{"edit": "set_p", "id": "P1", "p": 0.2}])
    [SetP(id='P1', p=0.2)]
    """
    problems: list[TreeProblem] = []
    scenario = read_scenario("edits", {"edits": data}, problems)
    raise_errors([replace(problem, field=problem.field.removeprefix("scenarios.edits.")) for problem in problems])
    return list(scenario.edits)


def _nodes(reader: JsonObject) -> dict[str, Proposition]:
    listed = reader.inner("nodes")
    if listed is None:
        reader.wrong("nodes", "is missing")
        return {}
    nodes: dict[str, Proposition] = {}
    for id, body in listed.data.items():
        # `incomplete` and `row` are accepted, but computed again.
        node = read(Proposition, JsonObject(body, reader.problems, node=id), id=id, incomplete=(), row={})
        if node is not None:
            nodes[id] = node
    p = {id: node.p for id, node in nodes.items()}
    links = {id: with_ratios(node.link, p) for id, node in nodes.items()}
    return {id: node if links[id] is node.link else replace(node, link=links[id]) for id, node in nodes.items()}


def _as_of(reader: JsonObject) -> AsOf | None:
    """Read `as_of`: a time with its mode, or a day."""
    value = reader.take("as_of")
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return AsOf.day(value) if len(value) == 10 else AsOf(at=instant(value))
        inner = JsonObject(value, reader.problems, within="as_of")
        at, mode = inner.get("at", str, required=True), inner.get("mode", str) or "backtest"
        inner.finish()
        if mode not in ("live", "backtest"):
            inner.wrong("mode", f"{mode!r} is neither live nor backtest")
            return None
        return AsOf(at=instant(at), mode=mode) if at else None
    except ValueError as error:
        reader.wrong("as_of", said(error))
        return None


def _parsed(path: Path) -> TreeFile:
    try:
        return tree_from_text(path.read_text(encoding="utf-8-sig"))
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
    """Format JSON with the given number of outer levels on separate lines, and the rest on one line."""
    if not isinstance(value, dict) or not value or levels == 0:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    items = cast("dict[str, object]", value).items()
    lines = [
        f"{inner}{json.dumps(name, ensure_ascii=False)}: {_laid_out(item, levels - 1, inner)}" for name, item in items
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
