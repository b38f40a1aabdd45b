"""Claims, links, groundings, edits and scenarios as JSON objects.

The dataclasses themselves say which fields there are and what they hold, so that a new field, edit or kind of link is
read and written without a line here. Reading collects everything that is wrong instead of stopping at the first.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from foretell.forecasters.tree import edits
from foretell.forecasters.tree.edits import Edit, Scenario, SetP
from foretell.forecasters.tree.links import Link, link_class
from foretell.forecasters.tree.problems import TreeProblem
from foretell.forecasters.tree.proposition import Proposition
from foretell.questions.errors import InputError

T = TypeVar("T")

EDIT_KINDS: Mapping[str, type[Edit]] = {
    "set_p": edits.SetP,
    "unpin": edits.Unpin,
    "set_claim": edits.SetClaim,
    "set_report": edits.SetReport,
    "set_grounding": edits.SetGrounding,
    "set_link": edits.SetLink,
    "add_node": edits.AddNode,
    "share_node": edits.ShareNode,
    "remove_node": edits.RemoveNode,
    "move_node": edits.MoveNode,
    "mark_stale": edits.MarkStale,
}


# Writing.


def to_dict(value: object) -> dict[str, Any]:
    """A claim, link, grounding or edit as plain JSON, without what is empty and need not be there.

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
    for one in fields(cast(Any, value)):
        given = getattr(value, one.name)
        empty = given is None or given is False or (isinstance(given, str | tuple | Mapping) and not given)
        if not (empty and _has_default(one)):
            body[one.name] = _plain(given)
    return body


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, tuple):
        return list(cast("tuple[Any, ...]", value))
    return to_dict(value) if is_dataclass(value) else value


def scenario_to_dict(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain JSON; new probabilities, if that is all there is, in the short form `set`."""
    body: dict[str, Any] = {"text": scenario.text} if scenario.text else {}
    sets = [edit for edit in scenario.edits if isinstance(edit, SetP)]
    if len(sets) == len(scenario.edits) and len({edit.id for edit in sets}) == len(sets):
        return body | {"set": {edit.id: edit.p for edit in sets}}
    return body | {"edits": [to_dict(edit) for edit in scenario.edits]}


# Reading.


class ObjectWithRepeatedKeys(dict[str, Any]):
    """A JSON object in which some names occur twice."""

    names: tuple[str, ...] = ()


def object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads(object_pairs_hook=…)`: a dict that knows which names were given twice."""
    found = ObjectWithRepeatedKeys(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        found.names = tuple(name for name, _ in pairs if name in seen or seen.add(name))
    return found


class JsonObject:
    """One JSON object while it is read. Whatever does not fit becomes a `TreeProblem` and reads as None."""

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
        """Something does not fit."""
        self.problems.append(TreeProblem(node=self.node, field=self.path(name), text=text, hint=hint))

    def path(self, name: str) -> str:
        """The field as errors name it."""
        return ".".join(filter(None, [self.within, name]))

    def take(self, name: str) -> Any:
        """The raw value; None where absent."""
        self._read.add(name)
        return self.data.get(name)

    def inner(self, name: str) -> "JsonObject | None":
        """An object within this one; None where absent."""
        value = self.take(name)
        return None if value is None else self._within(name, value)

    def _within(self, name: str, value: object) -> "JsonObject":
        return JsonObject(value, self.problems, node=self.node, within=self.path(name))

    def finish(self) -> None:
        """Every field that nothing has read is a mistake worth reporting."""
        for name in self.data:
            if name not in self._read:
                near = get_close_matches(name, sorted(self._read), n=1)
                self.wrong(name, "is not a field here", f"did you mean {near[0]}?" if near else "")

    def get(self, name: str, kind: Any, *, required: bool = False) -> Any:
        """The value of a field of that type; None where it is absent or does not fit."""
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
            return read(Proposition, inner, incomplete=())
        if is_dataclass(kind):
            return read(cast(type, kind), inner)
        return {key: number for key, item in inner.data.items() if (number := inner._number(key, item)) is not None}

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


def _has_default(one: "Field[Any]") -> bool:
    return one.default is not MISSING or one.default_factory is not MISSING


@cache
def _field_types(kind: type) -> dict[str, Any]:
    """The type of every field, `X | None` as X."""
    hints = get_type_hints(kind)
    return {name: _not_none(hint) for name, hint in hints.items()}


def _not_none(hint: Any) -> Any:
    parts = [part for part in get_args(hint) if part is not NoneType] if isinstance(hint, UnionType) else []
    return parts[0] if len(parts) == 1 else hint


def read(kind: type[T], given: JsonObject, **known: Any) -> T | None:
    """An object as a dataclass of that kind; None, with the reasons among the problems, where it is not one.

    Fields that are `known` already are accepted in the object and not used.
    """
    problems = len(given.problems)
    values: dict[str, Any] = {}
    for one in fields(cast(Any, kind)):
        if one.name in known:
            given.take(one.name)
            continue
        value = given.get(one.name, _field_types(kind)[one.name], required=not _has_default(one))
        if value is not None:
            values[one.name] = value
    given.finish()
    return kind(**known, **values) if len(given.problems) == problems else None


def read_link(given: JsonObject) -> Link | None:
    """The link an object describes."""
    kind = given.get("kind", str, required=True)
    try:
        return read(link_class(kind), given) if kind else None
    except InputError as error:
        given.wrong("kind", error.problem, error.hint or "")
        return None


def read_edit(given: JsonObject) -> Edit | None:
    """The edit an object describes."""
    name = given.get("edit", str, required=True)
    if name is None:
        return None
    if name not in EDIT_KINDS:
        given.wrong("edit", f"{name!r} is no edit", f"the edits are {', '.join(EDIT_KINDS)}")
        return None
    return read(EDIT_KINDS[name], given)


def read_scenario(name: str, data: object, problems: list[TreeProblem]) -> Scenario:
    """A scenario from its object: `set` first, then `edits`."""
    within = f"scenarios.{name}"
    given = JsonObject(data, problems, within=within)
    found: list[Edit | None] = [SetP(id=id, p=p) for id, p in (given.get("set", Mapping[str, float]) or {}).items()]
    listed = given.take("edits")
    if listed is not None and not isinstance(listed, list):
        given.wrong("edits", "expected a list of edits")
        listed = None
    for place, one in enumerate(cast("list[object]", listed or []), start=1):
        found.append(read_edit(JsonObject(one, problems, within=f"{within}.edits.{place}")))
    text = given.get("text", str) or ""
    given.finish()
    return Scenario(name=name, edits=tuple(edit for edit in found if edit is not None), text=text)
