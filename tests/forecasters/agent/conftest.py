"""A harness for one agent: a question, a scripted model, a toolbox with fixed results, and a list of events."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.forecaster import Context, Models, attempt
from foretell.models.model import Model, Reply, Request, TokenCount, ToolCall, ToolSpec
from foretell.models.names import ModelRoles
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import TraceEvent
from foretell.tools.content_filter import Excerpt, LeakVerdict
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem, Tool, ToolMaterial

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
class FixedSearch:
    """Returns two old articles and one from after the cutoff for every query."""

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
    """A content filter that keeps everything."""

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
class AgentHarness:
    """Runs an agent against a scripted model and records events, toolboxes and requests."""

    question: Question = field(default_factory=ask_for)
    agent: BeliefAgent = field(default_factory=BeliefAgent)
    tools: Sequence[Tool] = ()
    events: list[TraceEvent] = field(default_factory=list)
    toolboxes: list[FilteredTools] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    model: Model | None = None

    def context(self, model: Model) -> Context:
        self.model = model
        roles = ModelRoles(agent="scripted:x")
        as_of = self.question.as_of
        return Context(
            as_of=as_of,
            models=Models(roles=roles, model=model),
            tools=self._toolbox,
            emit=self.events.append,
            **self.extra,
        )

    def _toolbox(self, question: Question, context: Context) -> FilteredTools:
        rules = LeakageRules(as_of=context.as_of, question=question, emit=context.emit)
        self.toolboxes.append(FilteredTools.around(self.tools or [FixedSearch()], rules, KeepAll()))
        return self.toolboxes[-1]

    def run(self, script: Any) -> Forecast | Failure:
        model = script if hasattr(script, "complete") else ScriptedModel(script)
        return asyncio.run(attempt(self.agent, self.question, self.context(model)))

    def with_agent(self, **changes: Any) -> "AgentHarness":
        return replace(self, agent=replace(self.agent, **changes), events=[], toolboxes=[])

    @property
    def requests(self) -> list[Request]:
        assert isinstance(self.model, ScriptedModel)
        return self.model.requests

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def call(name: str, arguments: Any, *, belief: Any = None, text: str = "") -> Reply:
    """Return a reply that calls one tool."""
    if isinstance(arguments, Mapping) and belief is not None:
        arguments = {"updated_belief": belief, **arguments}
    text_arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
    calls = (ToolCall(id="c1", name=name, arguments=text_arguments),)
    return Reply(text=text, calls=calls, finish="tool", tokens=TokenCount(input=100, output=20))


def belief(p: Any, **more: Any) -> dict[str, Any]:
    """Return an `updated_belief` with all fields."""
    defaults = {"reason": "so", "evidence_for": [], "evidence_against": [], "retract": [], "open_questions": []}
    return {**defaults, "confidence": "medium", "p": p, **more}


@pytest.fixture
def harness() -> AgentHarness:
    return AgentHarness()


@pytest.fixture
def new_harness() -> Callable[..., AgentHarness]:
    return AgentHarness


@pytest.fixture
def call_tool() -> Callable[..., Reply]:
    return call


@pytest.fixture
def make_belief() -> Callable[..., dict[str, Any]]:
    return belief
