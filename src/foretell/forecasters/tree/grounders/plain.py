"""Grounding without research: a model answers from what it knows. And what all grounders have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretell.forecasters.agent.answer_format import as_probability
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.ground import GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    TEXT,
    StructuredRequest,
    fill_prompts,
    object_schema,
    read_report,
    sections,
)
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.structured_output import UnusableReply
from foretell.tools.fence import SourceStore

CONCLUSION_SCHEMA = object_schema(
    {"report": TEXT, "key_factor": TEXT, "sources": {"type": "array", "items": TEXT}, "p": CHANCE}
)
"""The end of every grounding: a report, what decided it, the sources, and a probability."""
CONCLUSION_WITHOUT_SOURCES = object_schema({"report": TEXT, "key_factor": TEXT, "p": CHANCE})
MOST_SOURCES = 30


def grounding_from_answer(answer: Mapping[str, Any], grounder: str, sources: Sequence[str] = ()) -> GroundingResult:
    """The grounding in an answer, or `UnusableReply`."""
    report, key_factor = read_report(answer)
    try:
        p = as_probability(answer.get("p"))
    except ValueError as problem:
        raise UnusableReply(f"p {problem}") from None
    if not report:
        raise UnusableReply("report is empty: write down what the probability rests on")
    grounding = Grounding(grounder=grounder, report=report, key_factor=key_factor, sources=tuple(sources))
    return GroundingResult(p=p, grounding=grounding)


def cited_sources(answer: Mapping[str, Any], sources: SourceStore) -> tuple[str, ...]:
    """The sources an answer names, as people read them: only those that a tool has shown, each once."""
    named = [str(one).strip().strip("[]") for one in answer.get("sources") or ()]
    by_url = {sources[id].url: id for id in reversed(sources.ids) if sources[id].url}
    ids = dict.fromkeys(id for one in named if (id := one if one in sources else by_url.get(one)) is not None)
    cited: list[str] = []
    for id in list(ids)[:MOST_SOURCES]:
        source = sources[id]
        when = f" ({source.published.date().isoformat()})" if source.published else ""
        cited.append(f"[{id}] {source.title}{when} {source.url}".strip())
    return tuple(cited)


def leaf_task(leaf: Leaf) -> str:
    """A leaf as every grounder's model reads it: the claim, and what it is a part of."""
    return sections(
        ("Claim", leaf.claim),
        ("What it is a part of", leaf.tree_question.question.text),
        ("Today", f"Today is {leaf.tree_question.today}."),
    )


@dataclass(frozen=True, kw_only=True)
class PlainGrounder:
    """One question to the model, no tools. The quickest and cheapest grounder, blind to all that is new."""

    name: str = "plain"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """What the model thinks of the claim."""
        request = StructuredRequest(
            role="grounder",
            slot=f"{leaf.slot}/plain",
            system=fill_prompts("ground_role", "ground_plain", "rules", today=leaf.tree_question.today),
            user=leaf_task(leaf),
            schema=CONCLUSION_WITHOUT_SOURCES,
        )
        return await request.ask(context, lambda found: grounding_from_answer(found, self.name))
