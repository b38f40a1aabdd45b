"""The setup of one tree: a question, a model that plays all parts, a fenced toolbox over canned results, events."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foretell.forecasters import Context, Models
from foretell.forecasters.tree import CannotGround, Grounding, GroundingResult, Leaf, TreeQuestion
from foretell.models import (
    AssistantMessage,
    Model,
    ModelRoles,
    PriceList,
    Reply,
    Request,
    TokenCount,
    ToolCall,
    ToolSpec,
    request_key,
)
from foretell.models.providers import ScriptedModel
from foretell.practice.models import ModelQuery, OfferedTool, ScriptedReply
from foretell.practice.models import tree_script as play
from foretell.questions import AsOf, Question, Target, TraceEvent, instant
from foretell.tools import Excerpt, FencedTools, FenceRules, LeakVerdict, SourceItem, ToolMaterial

SEARCH = ToolSpec(
    name="web_search",
    description="Search the web.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


@dataclass
class CannedSearch:
    """Finds one old article, one that the filter drops and one from the future, whatever is asked."""

    queries: list[str] = field(default_factory=list)
    spec: ToolSpec = SEARCH

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        await asyncio.sleep(0)
        self.queries.append(arguments["query"])
        days = ("2025-10-01", "2025-10-20", "2025-11-05")
        items = tuple(
            SourceItem(
                title=f"Article of {day}",
                text=f"Text of {day}{' LEAK ME' if day == '2025-10-20' else ''}",
                url=f"https://news.example/{day}",
                published=instant(day),
                dating="published",
            )
            for day in days
        )
        return ToolMaterial(heading="Results", items=items)


class DropMarked:
    """A content filter that sees a leak in marked texts."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        return [LeakVerdict(word="DROP" if "LEAK ME" in one.text else "KEEP", reason="") for one in excerpts]


def question(**fields: Any) -> Question:
    given: dict[str, Any] = {
        "id": "q",
        "source": "own",
        "text": "Will the harbour bridge open?",
        "criteria": "YES if the port authority opens it to traffic.",
        "background": "It was closed in June.",
        "due": "2025-10-26",
        "targets": (Target(id="yes"),),
    }
    return Question(**{**given, **fields})


def heard_of(request: Request) -> ModelQuery:
    """A request as a fake provider hears it."""
    texts = [message.text for message in request.messages]
    roles = ["assistant" if isinstance(message, AssistantMessage) else "user" for message in request.messages]
    return ModelQuery(
        format="none",
        hash=request_key(request),
        json={"messages": [{"role": role} for role in roles]},
        model=request.model.partition(":")[2],
        words="\n".join(texts),
        last=texts[-1] if texts else "",
        tools=tuple(OfferedTool(name=tool.name, schema=tool.parameters) for tool in request.tools),
        force=request.force,
        schema=request.schema,
    )


def reply_of(said: ScriptedReply, request: Request) -> Reply:
    """What a fake says as a reply."""
    calls = tuple(
        ToolCall(
            id=f"call_{request_key(request)[:12]}_{place}",
            name=call.name,
            arguments=call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
        )
        for place, call in enumerate(said.calls)
    )
    return Reply(text=said.text, calls=calls, finish=said.ending, tokens=TokenCount(input=100, output=20))


def playing(override: Callable[[Request], Reply | Exception | str | None] | None = None) -> ScriptedModel:
    """A model that plays all parts of a tree; `override` may answer first."""

    def answer(request: Request) -> Reply | Exception | str:
        found = override(request) if override is not None else None
        return reply_of(play(heard_of(request)), request) if found is None else found

    return ScriptedModel(answer)


@dataclass
class GivenGrounder:
    """Numbers by a function; what it cannot tell cannot be grounded."""

    p: Callable[[Leaf], float]
    name: str = "given"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        return GroundingResult(p=self.p(leaf), grounding=Grounding(grounder=self.name))


def cannot_ground(reason: str) -> Callable[[Leaf], float]:
    """For `GivenGrounder`: no leaf has a number, for this reason."""

    def fail(leaf: Leaf) -> float:
        raise CannotGround(reason)

    return fail


@dataclass
class TreeSetup:
    """Everything a part of a tree needs, and what happened."""

    question: Question = field(default_factory=question)
    model: Model = field(default_factory=playing)
    name: str = "scripted:planner"
    search: CannedSearch = field(default_factory=CannedSearch)
    events: list[TraceEvent] = field(default_factory=list)
    prices: PriceList | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        return Context(
            as_of=self.question.as_of,
            models=Models(roles=ModelRoles(agent=self.name), model=self.model, prices=self.prices),
            tools=self._toolbox,
            emit=self.events.append,
            **self.extra,
        )

    @property
    def tree_question(self) -> TreeQuestion:
        target = self.question.targets[0].id
        return TreeQuestion(question=self.question, as_of=self.question.as_of, target=target, slot="slot")

    @property
    def requests(self) -> list[Request]:
        assert isinstance(self.model, ScriptedModel)
        return self.model.requests

    def leaf(self, claim: str = "The bridge is painted by 31 December 2025.", **fields: Any) -> Leaf:
        return Leaf(id="P1", claim=claim, tree_question=self.tree_question, slot="slot/P1", **fields)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def _toolbox(self, asked: Question, context: Context) -> FencedTools:
        fence = FenceRules(as_of=context.as_of, question=asked, emit=context.emit)
        return FencedTools.around([self.search], fence, DropMarked())
