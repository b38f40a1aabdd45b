"""The end of every grounding: a report, what decided it, the sources, and a probability."""

from collections.abc import Mapping, Sequence
from typing import Any

from foretell.forecasters.agent.form import as_probability
from foretell.forecasters.tree.growing.asking import CHANCE, TEXT, Unfit, report_in, shape
from foretell.forecasters.tree.growing.ground import Grounded
from foretell.forecasters.tree.proposition import Grounding
from foretell.llm.message import ToolSpec
from foretell.tools.shelf import Shelf

CONCLUDE = "conclude"
SOURCES: Mapping[str, Any] = {"type": "array", "items": TEXT}
SCHEMA = shape({"report": TEXT, "key_factor": TEXT, "sources": SOURCES, "p": CHANCE})
WITHOUT_SOURCES = shape({"report": TEXT, "key_factor": TEXT, "p": CHANCE})
SPEC = ToolSpec(name=CONCLUDE, description="State the result and end the research.", parameters=SCHEMA)
MOST_SOURCES = 30


def concluded(found: Mapping[str, Any], grounder: str, sources: Sequence[str] = ()) -> Grounded:
    """The grounding in an answer, or `Unfit`."""
    report, key_factor = report_in(found)
    try:
        p = as_probability(found.get("p"))
    except ValueError as problem:
        raise Unfit(f"p {problem}") from None
    if not report:
        raise Unfit("report is empty: write down what the probability rests on")
    grounding = Grounding(grounder=grounder, report=report, key_factor=key_factor, sources=tuple(sources))
    return Grounded(p=p, grounding=grounding)


def cited(found: Mapping[str, Any], shelf: Shelf) -> tuple[str, ...]:
    """The sources an answer names, as people read them: only those that a tool has shown, each once."""
    named = [str(one).strip().strip("[]") for one in found.get("sources") or ()]
    by_url = {shelf[id].url: id for id in reversed(shelf.ids) if shelf[id].url}
    ids = dict.fromkeys(id for one in named if (id := one if one in shelf else by_url.get(one)) is not None)
    return tuple(_written(shelf, id) for id in ids)[:MOST_SOURCES]


def _written(shelf: Shelf, id: str) -> str:
    source = shelf[id]
    when = f" ({source.published.date().isoformat()})" if source.published else ""
    return f"[{id}] {source.title}{when} {source.url}".strip()
