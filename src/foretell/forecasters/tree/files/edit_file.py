"""Edits and scenarios as JSON objects."""

from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from typing import Any

from foretell.forecasters.tree.files.fields import Fields
from foretell.forecasters.tree.files.link_file import link_to_dict, read_link
from foretell.forecasters.tree.files.node_file import grounding_to_dict, node_to_dict, read_grounding, read_node
from foretell.forecasters.tree.problems import Problem
from foretell.forecasters.tree.whatif.edits import (
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

NAMES: Mapping[str, type] = {
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
    body: dict[str, Any] = {"edit": next(name for name, kind in NAMES.items() if isinstance(edit, kind))}
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


def read_edit(fields: Fields) -> Edit | None:
    """The edit an object describes; None, with the reason among the problems, where it describes none."""
    name = fields.text("edit", None)
    if name not in NAMES:
        if name:
            fields.wrong("edit", f"{name!r} is no edit", f"the edits are {', '.join(NAMES)}")
        return None
    edit = _READERS[name](fields)
    fields.done()
    return edit


def _set_p(fields: Fields) -> Edit:
    return SetP(id=fields.text("id", None), p=fields.number("p", 0.0, required=True) or 0.0)


def _set_report(fields: Fields) -> Edit:
    key_factor = fields.text("key_factor") if fields.data.get("key_factor") is not None else None
    return SetReport(id=fields.text("id", None), report=fields.text("report", None), key_factor=key_factor)


def _set_grounding(fields: Fields) -> Edit | None:
    inner = fields.inner("grounding")
    id, p = fields.text("id", None), fields.number("p")
    if inner is None:
        fields.wrong("grounding", "is missing")
        return None
    return SetGrounding(id=id, p=p, grounding=read_grounding(inner))


def _set_link(fields: Fields) -> Edit | None:
    inner = fields.inner("link")
    if inner is None:
        fields.wrong("link", "is missing")
    link = read_link(inner) if inner is not None else None
    id = fields.text("id", None)
    return None if link is None else SetLink(id=id, link=link)


def _add_node(fields: Fields) -> Edit | None:
    inner = fields.inner("node")
    parent, weight = fields.text("parent", None), fields.number("weight")
    if inner is None:
        fields.wrong("node", "is missing")
        return None
    return AddNode(parent=parent, node=read_node(inner.text("id", None), inner), weight=weight)


def _share(fields: Fields) -> Edit:
    return ShareNode(id=fields.text("id", None), parent=fields.text("parent", None), weight=fields.number("weight"))


def _move(fields: Fields) -> Edit:
    out_of = fields.text("out_of") or None
    return MoveNode(
        id=fields.text("id", None), to=fields.text("to", None), weight=fields.number("weight"), out_of=out_of
    )


_READERS: Mapping[str, Callable[[Fields], Edit | None]] = {
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


def read_scenario(name: str, data: object, problems: list[Problem]) -> Scenario:
    """A scenario from its object: `set` first, then `edits`."""
    within = f"scenarios.{name}"
    fields = Fields(data, problems, within=within)
    edits: list[Edit] = [SetP(id=id, p=p) for id, p in fields.numbers("set").items()]
    given = fields.take("edits")
    if given is not None and not isinstance(given, list):
        fields.wrong("edits", "expected a list of edits")
    for i, one in enumerate(given if isinstance(given, list) else []):
        edit = read_edit(Fields(one, problems, within=f"{within}.edits.{i + 1}"))
        edits += [edit] if edit is not None else []
    text = fields.text("text")
    fields.done()
    return Scenario(name=name, edits=tuple(edits), text=text)
