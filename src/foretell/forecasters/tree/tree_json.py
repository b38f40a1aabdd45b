"""Edits and scenarios as JSON objects."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from difflib import get_close_matches
from typing import Any, cast

from foretell.forecasters.tree.edits import (
    AddNode,
    Edit,
    MoveNode,
    RemoveNode,
    Scenario,
    SetClaim,
    SetGrounding,
    SetLink,
    SetP,
    SetReport,
    ShareNode,
    Unpin,
)
from foretell.forecasters.tree.proposition import (
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    Grounding,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
    Proposition,
)
from foretell.forecasters.tree.validation import TreeProblem

# Reading JSON objects field by field, collecting what is wrong instead of stopping at the first.


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


class ObjectFields:
    """The fields of one object. Whatever does not fit becomes a `TreeProblem` and reads as its default."""

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
            self.wrong("", f"expected an object {{…}}, found {_told(data)}")

    def wrong(self, name: str, text: str, hint: str = "") -> None:
        """Something does not fit."""
        field = ".".join(filter(None, [self.within, name]))
        self.problems.append(TreeProblem(node=self.node, field=field, text=text, hint=hint))

    def take(self, name: str) -> Any:
        """The raw value; None where absent."""
        self._read.add(name)
        return self.data.get(name)

    def text(self, name: str, default: str | None = "") -> str:
        """A text; without a default it must be there."""
        value = self.take(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.wrong(name, "is missing" if value is None else f"expected a text, found {_told(value)}")
            return default or ""
        return value

    def number(self, name: str, default: float | None = None, *, required: bool = False) -> float | None:
        """A finite number."""
        value = self.take(name)
        if value is None:
            if required:
                self.wrong(name, "is missing")
            return default
        return default if not self._is_number(name, value) else float(value)

    def flag(self, name: str) -> bool:
        """True or false; false where absent."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, f"expected true or false, found {_told(value)}")
        return value is True

    def numbers(self, name: str, *, required: bool = False) -> dict[str, float]:
        """Numbers by id."""
        value = self.take(name)
        if value is None:
            if required:
                self.wrong(name, "is missing")
            return {}
        inner = ObjectFields(value, self.problems, node=self.node, within=".".join(filter(None, [self.within, name])))
        return {key: float(item) for key, item in inner.data.items() if inner._is_number(key, item)}

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self.take(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
            self.wrong(name, f"expected a list of texts, found {_told(value)}")
            return ()
        return tuple(cast("list[str]", value))

    def inner(self, name: str) -> "ObjectFields | None":
        """An object within this one; None where absent."""
        value = self.take(name)
        within = ".".join(filter(None, [self.within, name]))
        return None if value is None else ObjectFields(value, self.problems, node=self.node, within=within)

    def done(self) -> None:
        """Every field that nobody asked for is a mistake worth telling."""
        for name in self.data:
            if name not in self._read:
                near = get_close_matches(name, sorted(self._read), n=1)
                self.wrong(name, "is not a field here", f"did you mean {near[0]}?" if near else "")

    def _is_number(self, name: str, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(name, f"expected a number, found {_told(value)}")
            return False
        if not math.isfinite(value):
            self.wrong(name, f"{value} is not a finite number")
            return False
        return True


def _told(value: object) -> str:
    kinds: Mapping[type, str] = {dict: "an object", list: "a list", bool: "true or false"}
    if value is None:
        return "nothing"
    for kind, words in kinds.items():
        if isinstance(value, kind):
            return words
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "…"


# Links as JSON objects.

LINK_KINDS: Mapping[str, type] = {
    "linear": LinearLink,
    "formula": FormulaLink,
    "noisy_or": NoisyOrLink,
    "inhibited_noisy_or": InhibitedNoisyOrLink,
    "average": AverageLink,
    "judged": JudgedLink,
}


def link_kind(link: Link) -> str:
    """The name of a link's kind, as in files."""
    return next(name for name, kind in LINK_KINDS.items() if isinstance(link, kind))


def link_to_dict(link: Link) -> dict[str, Any]:
    """The link as plain JSON.

    >>> link_to_dict(LinearLink(weights={"P1": 0.4, "P2": 0.5}, intercept=0.05))
    {'kind': 'linear', 'intercept': 0.05, 'weights': {'P1': 0.4, 'P2': 0.5}}
    """
    body: dict[str, Any] = {"kind": link_kind(link)}
    match link:
        case LinearLink():
            body |= {"intercept": link.intercept, "weights": dict(link.weights)}
        case FormulaLink():
            body |= {"expression": link.expression}
            if link.assumption is not None:
                body |= {"assumption": {"text": link.assumption.text, "p": link.assumption.p}}
        case NoisyOrLink():
            body |= {"leak": link.leak, "strengths": dict(link.strengths)}
        case InhibitedNoisyOrLink():
            body |= {"leak": link.leak, "strengths": dict(link.strengths), "inhibitors": dict(link.inhibitors)}
        case AverageLink():
            pass
        case JudgedLink():
            body |= {"p": link.p} | ({"stale": True} if link.stale else {})
    return body


def read_link(fields: ObjectFields) -> Link | None:
    """The link an object describes; None, with the reason among the problems, where it describes none."""
    kind = fields.text("kind", None)
    link = _LINK_READERS[kind](fields) if kind in _LINK_READERS else None
    if link is None:
        if kind:
            fields.wrong("kind", f"{kind!r} is no kind of link", f"the kinds are {', '.join(LINK_KINDS)}")
        return None
    fields.done()
    return link


def _linear(fields: ObjectFields) -> Link:
    return LinearLink(
        intercept=fields.number("intercept", 0.0) or 0.0, weights=fields.numbers("weights", required=True)
    )


def _formula(fields: ObjectFields) -> Link:
    assumption = None
    inner = fields.inner("assumption")
    if inner is not None:
        assumption = FormulaAssumption(text=inner.text("text"), p=inner.number("p", 0.5, required=True) or 0.0)
        inner.done()
    return FormulaLink(expression=fields.text("expression", None), assumption=assumption)


def _noisy_or(fields: ObjectFields) -> Link:
    return NoisyOrLink(strengths=fields.numbers("strengths", required=True), leak=fields.number("leak") or 0.0)


def _inhibited(fields: ObjectFields) -> Link:
    return InhibitedNoisyOrLink(
        strengths=fields.numbers("strengths", required=True),
        inhibitors=fields.numbers("inhibitors"),
        leak=fields.number("leak") or 0.0,
    )


def _average(_: ObjectFields) -> Link:
    return AverageLink()


def _judged(fields: ObjectFields) -> Link:
    return JudgedLink(p=fields.number("p", required=True) or 0.0, stale=fields.flag("stale"))


_LINK_READERS = {
    "linear": _linear,
    "formula": _formula,
    "noisy_or": _noisy_or,
    "inhibited_noisy_or": _inhibited,
    "average": _average,
    "judged": _judged,
}


# Claims as JSON objects.


def node_to_dict(node: Proposition) -> dict[str, Any]:
    """The claim as plain JSON, without its id and without what is empty."""
    body: dict[str, Any] = {
        "claim": node.claim,
        "p": node.p,
        "pinned": node.pinned,
        "children": list(node.children),
        "causality": node.causality,
        "link": link_to_dict(node.link) if node.link is not None else None,
        "key_factor": node.key_factor,
        "report": node.report,
        "grounding": grounding_to_dict(node.grounding) if node.grounding is not None else None,
        "incomplete": list(node.incomplete),
        "notes": list(node.notes),
    }
    return {name: value for name, value in body.items() if value not in (None, "", [])}


def grounding_to_dict(grounding: Grounding) -> dict[str, Any]:
    """A grounding as plain JSON, without what is empty."""
    body: dict[str, Any] = {
        "grounder": grounding.grounder,
        "key_factor": grounding.key_factor,
        "report": grounding.report,
        "sources": list(grounding.sources),
        "notebook": grounding.notebook,
        "error": grounding.error,
    }
    return {name: value for name, value in body.items() if name == "grounder" or value not in ("", [])}


def read_node(id: str, fields: ObjectFields) -> Proposition:
    """A claim from its object. What is computed (`incomplete`) is accepted and computed anew."""
    inner = fields.inner("link")
    grounding = fields.inner("grounding")
    fields.texts("incomplete")
    fields.take("id")
    node = Proposition(
        id=id,
        claim=fields.text("claim", None),
        children=fields.texts("children"),
        causality=fields.text("causality"),
        link=read_link(inner) if inner is not None else None,
        p=fields.number("p"),
        pinned=fields.number("pinned"),
        grounding=read_grounding(grounding) if grounding is not None else None,
        report=fields.text("report"),
        key_factor=fields.text("key_factor"),
        notes=fields.texts("notes"),
    )
    fields.done()
    return node


def read_grounding(fields: ObjectFields) -> Grounding:
    """A grounding from its object."""
    found = Grounding(
        grounder=fields.text("grounder"),
        report=fields.text("report"),
        key_factor=fields.text("key_factor"),
        sources=fields.texts("sources"),
        notebook=fields.text("notebook"),
        error=fields.text("error"),
    )
    fields.done()
    return found


EDIT_KINDS: Mapping[str, type] = {
    "set_p": SetP,
    "unpin": Unpin,
    "set_claim": SetClaim,
    "set_report": SetReport,
    "set_grounding": SetGrounding,
    "set_link": SetLink,
    "add_node": AddNode,
    "share_node": ShareNode,
    "remove_node": RemoveNode,
    "move_node": MoveNode,
}


def edit_to_dict(edit: Edit) -> dict[str, Any]:
    """The edit as plain JSON.

    >>> edit_to_dict(SetP(id="P1", p=0.2))
    {'edit': 'set_p', 'id': 'P1', 'p': 0.2}
    """
    body: dict[str, Any] = {"edit": next(name for name, kind in EDIT_KINDS.items() if isinstance(edit, kind))}
    for field in dataclass_fields(edit):
        value = getattr(edit, field.name)
        if isinstance(edit, SetLink) and field.name == "link":
            value = link_to_dict(edit.link)
        if isinstance(edit, SetGrounding) and field.name == "grounding":
            value = grounding_to_dict(edit.grounding)
        if isinstance(edit, AddNode) and field.name == "node":
            value = {"id": edit.node.id, **node_to_dict(edit.node)}
        if value is not None:
            body[field.name] = value
    return body


def read_edit(fields: ObjectFields) -> Edit | None:
    """The edit an object describes; None, with the reason among the problems, where it describes none."""
    name = fields.text("edit", None)
    if name not in EDIT_KINDS:
        if name:
            fields.wrong("edit", f"{name!r} is no edit", f"the edits are {', '.join(EDIT_KINDS)}")
        return None
    edit = _EDIT_READERS[name](fields)
    fields.done()
    return edit


def _set_p(fields: ObjectFields) -> Edit:
    return SetP(id=fields.text("id", None), p=fields.number("p", 0.0, required=True) or 0.0)


def _set_report(fields: ObjectFields) -> Edit:
    key_factor = fields.text("key_factor") if fields.data.get("key_factor") is not None else None
    return SetReport(id=fields.text("id", None), report=fields.text("report", None), key_factor=key_factor)


def _set_grounding(fields: ObjectFields) -> Edit | None:
    inner = fields.inner("grounding")
    id, p = fields.text("id", None), fields.number("p")
    if inner is None:
        fields.wrong("grounding", "is missing")
        return None
    return SetGrounding(id=id, p=p, grounding=read_grounding(inner))


def _set_link(fields: ObjectFields) -> Edit | None:
    inner = fields.inner("link")
    if inner is None:
        fields.wrong("link", "is missing")
    link = read_link(inner) if inner is not None else None
    id = fields.text("id", None)
    return None if link is None else SetLink(id=id, link=link)


def _add_node(fields: ObjectFields) -> Edit | None:
    inner = fields.inner("node")
    parent, weight = fields.text("parent", None), fields.number("weight")
    if inner is None:
        fields.wrong("node", "is missing")
        return None
    return AddNode(parent=parent, node=read_node(inner.text("id", None), inner), weight=weight)


def _share(fields: ObjectFields) -> Edit:
    return ShareNode(id=fields.text("id", None), parent=fields.text("parent", None), weight=fields.number("weight"))


def _move(fields: ObjectFields) -> Edit:
    out_of = fields.text("out_of") or None
    return MoveNode(
        id=fields.text("id", None), to=fields.text("to", None), weight=fields.number("weight"), out_of=out_of
    )


_EDIT_READERS: Mapping[str, Callable[[ObjectFields], Edit | None]] = {
    "set_p": _set_p,
    "unpin": lambda fields: Unpin(id=fields.text("id", None)),
    "set_claim": lambda fields: SetClaim(id=fields.text("id", None), claim=fields.text("claim", None)),
    "set_report": _set_report,
    "set_grounding": _set_grounding,
    "set_link": _set_link,
    "add_node": _add_node,
    "share_node": _share,
    "remove_node": lambda fields: RemoveNode(id=fields.text("id", None)),
    "move_node": _move,
}


def scenario_to_dict(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain JSON; new probabilities, if that is all there is, in the short form `set`."""
    body: dict[str, Any] = {"text": scenario.text} if scenario.text else {}
    sets = [edit for edit in scenario.edits if isinstance(edit, SetP)]
    if len(sets) == len(scenario.edits) and len({edit.id for edit in sets}) == len(sets):
        return body | {"set": {edit.id: edit.p for edit in sets}}
    return body | {"edits": [edit_to_dict(edit) for edit in scenario.edits]}


def read_scenario(name: str, data: object, problems: list[TreeProblem]) -> Scenario:
    """A scenario from its object: `set` first, then `edits`."""
    within = f"scenarios.{name}"
    fields = ObjectFields(data, problems, within=within)
    edits: list[Edit] = [SetP(id=id, p=p) for id, p in fields.numbers("set").items()]
    given = fields.take("edits")
    if given is not None and not isinstance(given, list):
        fields.wrong("edits", "expected a list of edits")
    for i, one in enumerate(given if isinstance(given, list) else []):
        edit = read_edit(ObjectFields(one, problems, within=f"{within}.edits.{i + 1}"))
        edits += [edit] if edit is not None else []
    text = fields.text("text")
    fields.done()
    return Scenario(name=name, edits=tuple(edits), text=text)
