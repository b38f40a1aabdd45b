"""A desk for one agent: a question, a scripted model, a fenced toolbox over canned results, and a list of events."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from foretell.forecasters import Context, Models, attempt
from foretell.forecasters.agent import BeliefAgent
from foretell.models import Model, ModelRoles, Reply, Request, TokenCount, ToolCall, ToolSpec
from foretell.models.providers import ScriptedModel
from foretell.questions import AsOf, Failure, Forecast, Question, Target, TraceEvent, instant
from foretell.tools import Excerpt, FencedTools, FenceRules, LeakVerdict, SourceItem, Tool, ToolMaterial

DUE = "2025-10-26"


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
    """Finds two old articles and one from the future, whatever is asked."""

    queries: list[str] = field(default_factory=list)
    spec: ToolSpec = SEARCH

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        await asyncio.sleep(0)
        self.queries.append(arguments["query"])
        days = ("2025-10-01", "2025-10-20", "2025-11-05")
        items = tuple(
            SourceItem(
                title=f"Article of {day}",
                text=f"Text of {day} on {arguments['query']}",
                url=f"https://news.example/{day}",
                published=instant(day),
                dating="published",
            )
            for day in days
        )
        return ToolMaterial(heading="Results", items=items)


class KeepAll:
    """A content filter that sees no leak."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        return [LeakVerdict(word="KEEP", reason="")] * len(excerpts)


def ask_for(question: str = "q") -> Question:
    return Question(
        id=question,
        source="own",
        text="Will the strait reopen by year's end?",
        criteria="YES if the port authority announces free passage.",
        background="The strait has been closed since June.",
        due=DUE,
        targets=(Target(id="yes"),),
    )


@dataclass
class Desk:
    """Runs an agent against a script and keeps everything that happened."""

    question: Question = field(default_factory=ask_for)
    agent: BeliefAgent = field(default_factory=BeliefAgent)
    tools: Sequence[Tool] = ()
    events: list[TraceEvent] = field(default_factory=list)
    toolboxes: list[FencedTools] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    model: Model | None = None

    def context(self, model: Model) -> Context:
        self.model = model
        cast = ModelRoles(agent="scripted:x")
        as_of = self.question.as_of
        return Context(
            as_of=as_of,
            models=Models(roles=cast, model=model),
            tools=self._toolbox,
            emit=self.events.append,
            **self.extra,
        )

    def _toolbox(self, question: Question, context: Context) -> FencedTools:
        fence = FenceRules(as_of=context.as_of, question=question, emit=context.emit)
        self.toolboxes.append(FencedTools.around(self.tools or [CannedSearch()], fence, KeepAll()))
        return self.toolboxes[-1]

    def run(self, script: Any) -> Forecast | Failure:
        model = script if hasattr(script, "complete") else ScriptedModel(script)
        return asyncio.run(attempt(self.agent, self.question, self.context(model)))

    def with_agent(self, **changes: Any) -> "Desk":
        return replace(self, agent=replace(self.agent, **changes), events=[], toolboxes=[])

    @property
    def requests(self) -> list[Request]:
        assert isinstance(self.model, ScriptedModel)
        return self.model.requests

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def call(name: str, arguments: Any, *, belief: Any = None, text: str = "") -> Reply:
    """A reply that calls one tool."""
    if isinstance(arguments, Mapping) and belief is not None:
        arguments = {"updated_belief": belief, **arguments}
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    calls = (ToolCall(id="c1", name=name, arguments=written),)
    return Reply(text=text, calls=calls, finish="tool", tokens=TokenCount(input=100, output=20))


def belief(p: Any, **more: Any) -> dict[str, Any]:
    """An updated_belief with everything in it."""
    usual = {"reason": "so", "evidence_for": [], "evidence_against": [], "retract": [], "open_questions": []}
    return {**usual, "confidence": "medium", "p": p, **more}


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def new_desk() -> Callable[..., Desk]:
    return Desk


@pytest.fixture
def say() -> Callable[..., Reply]:
    return call


@pytest.fixture
def think() -> Callable[..., dict[str, Any]]:
    return belief
