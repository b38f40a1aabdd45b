"""Grounding without research: a model answers from what it knows, or numbers are given beforehand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretell.forecasters.agent.answer_format import as_probability
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.ground import CannotGround, GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    TEXT,
    StructuredClient,
    StructuredRequest,
    UnfitAnswer,
    fill_prompts,
    object_schema,
    read_report,
    sections,
)
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.model import ToolSpec
from foretell.tools.fence import SourceStore

# The end of every grounding: a report, what decided it, the sources, and a probability.

CONCLUDE = "conclude"
SOURCES_SCHEMA: Mapping[str, Any] = {"type": "array", "items": TEXT}
CONCLUSION_SCHEMA = object_schema({"report": TEXT, "key_factor": TEXT, "sources": SOURCES_SCHEMA, "p": CHANCE})
CONCLUSION_WITHOUT_SOURCES = object_schema({"report": TEXT, "key_factor": TEXT, "p": CHANCE})
CONCLUDE_TOOL = ToolSpec(
    name=CONCLUDE, description="State the result and end the research.", parameters=CONCLUSION_SCHEMA
)
MOST_SOURCES = 30


def grounding_from_answer(answer: Mapping[str, Any], grounder: str, sources: Sequence[str] = ()) -> GroundingResult:
    """The grounding in an answer, or `UnfitAnswer`."""
    report, key_factor = read_report(answer)
    try:
        p = as_probability(answer.get("p"))
    except ValueError as problem:
        raise UnfitAnswer(f"p {problem}") from None
    if not report:
        raise UnfitAnswer("report is empty: write down what the probability rests on")
    grounding = Grounding(grounder=grounder, report=report, key_factor=key_factor, sources=tuple(sources))
    return GroundingResult(p=p, grounding=grounding)


def cited_sources(answer: Mapping[str, Any], sources: SourceStore) -> tuple[str, ...]:
    """The sources an answer names, as people read them: only those that a tool has shown, each once."""
    named = [str(one).strip().strip("[]") for one in answer.get("sources") or ()]
    by_url = {sources[id].url: id for id in reversed(sources.ids) if sources[id].url}
    ids = dict.fromkeys(id for one in named if (id := one if one in sources else by_url.get(one)) is not None)
    return tuple(_citation(sources, id) for id in ids)[:MOST_SOURCES]


def _citation(sources: SourceStore, id: str) -> str:
    source = sources[id]
    when = f" ({source.published.date().isoformat()})" if source.published else ""
    return f"[{id}] {source.title}{when} {source.url}".strip()


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

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        return "plain"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """What the model thinks of the claim."""
        wanted = StructuredRequest(
            role="grounder",
            slot_suffix="plain",
            system=fill_prompts("ground_role", "ground_plain", "rules", today=leaf.tree_question.today),
            user=leaf_task(leaf),
            schema=CONCLUSION_WITHOUT_SOURCES,
        )
        client = StructuredClient(context=context, slot=leaf.slot)
        return await client.ask(wanted, lambda found: grounding_from_answer(found, self.name))


@dataclass(frozen=True, kw_only=True)
class GivenGrounder:
    """Numbers from a table by claim, or from a function: for tests, for simulations, and for experts' own numbers."""

    p: Mapping[str, float] | Callable[[Leaf], float]
    label: str = "given"

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        return self.label

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """The number, or `CannotGround` where there is none."""
        found = self.p(leaf) if callable(self.p) else self.p.get(leaf.claim)
        if found is None:
            raise CannotGround(f"no number is given for {leaf.claim!r}")
        return GroundingResult(p=float(found), grounding=Grounding(grounder=self.name))
