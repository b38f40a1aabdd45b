"""Setup for tests of trees: a question, a scripted model for all roles, a filtered toolbox and recorded events."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foretell.forecasters.forecaster import Context, Models
from foretell.forecasters.tree.grow.ground import CannotGround, GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import TreeQuestion
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.canonical import request_key
from foretell.models.model import AssistantMessage, Model, Reply, Request, TokenCount, ToolCall, ToolSpec
from foretell.models.names import ModelRoles
from foretell.models.prices import PriceList
from foretell.models.providers.scripted import ScriptedModel
from foretell.practice.models.formats import ModelQuery, RequestedTool, ScriptedReply
from foretell.practice.models.scripts import tree_script as play
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, Target
from foretell.questions.trace import TraceEvent
from foretell.tools.content_filter import Excerpt, LeakVerdict
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem, ToolMaterial

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
    """Returns an old article, one that the content filter drops and one from the future for every query."""

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
    """A content filter that drops marked texts."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        return [LeakVerdict(word="DROP" if "LEAK ME" in excerpt.text else "KEEP", reason="") for excerpt in excerpts]


def question(**fields: Any) -> Question:
    defaults: dict[str, Any] = {
        "id": "q",
        "source": "own",
        "text": "Will the harbour bridge open?",
        "criteria": "YES if the port authority opens it to traffic.",
        "background": "It was closed in June.",
        "due": "2025-10-26",
        "targets": (Target(id="yes"),),
    }
    return Question(**{**defaults, **fields})


def model_query(request: Request) -> ModelQuery:
    """Convert a request to the query that a practice model receives."""
    texts = [message.text for message in request.messages]
    roles = ["assistant" if isinstance(message, AssistantMessage) else "user" for message in request.messages]
    return ModelQuery(
        format="none",
        hash=request_key(request),
        json={"messages": [{"role": role} for role in roles]},
        model=request.model.partition(":")[2],
        words="\n".join(texts),
        last=texts[-1] if texts else "",
        tools=tuple(RequestedTool(name=tool.name, schema=tool.parameters) for tool in request.tools),
        force=request.force,
        schema=request.schema,
    )


def reply_of(scripted: ScriptedReply, request: Request) -> Reply:
    """Convert a scripted reply to a reply."""
    calls = tuple(
        ToolCall(
            id=f"call_{request_key(request)[:12]}_{place}",
            name=call.name,
            arguments=call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
        )
        for place, call in enumerate(scripted.calls)
    )
    return Reply(text=scripted.text, calls=calls, finish=scripted.ending, tokens=TokenCount(input=100, output=20))


def playing(override: Callable[[Request], Reply | Exception | str | None] | None = None) -> ScriptedModel:
    """Create a model that plays all roles of a tree; `override` may answer first."""

    def answer(request: Request) -> Reply | Exception | str:
        reply = override(request) if override is not None else None
        return reply_of(play(model_query(request)), request) if reply is None else reply

    return ScriptedModel(answer)


@dataclass
class FixedGrounder:
    """Computes probabilities with a function, which may raise `CannotGround`."""

    p: Callable[[Leaf], float]
    name: str = "given"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        return GroundingResult(p=self.p(leaf), grounding=Grounding(grounder=self.name))


def cannot_ground(reason: str) -> Callable[[Leaf], float]:
    """Return a function for `FixedGrounder` that always fails."""

    def fail(leaf: Leaf) -> float:
        raise CannotGround(reason)

    return fail


@dataclass
class TreeSetup:
    """Everything that parts of a tree need, and the events they emitted."""

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

    def _toolbox(self, question: Question, context: Context) -> FilteredTools:
        rules = LeakageRules(as_of=context.as_of, question=question, emit=context.emit)
        return FilteredTools.around([self.search], rules, DropMarked())
