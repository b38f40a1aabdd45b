"""Claims as JSON objects."""

from typing import Any

from foretell.forecasters.tree.files.fields import Fields
from foretell.forecasters.tree.files.link_file import link_to_dict, read_link
from foretell.forecasters.tree.proposition import Grounding, Proposition


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


def read_node(id: str, fields: Fields) -> Proposition:
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


def read_grounding(fields: Fields) -> Grounding:
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
