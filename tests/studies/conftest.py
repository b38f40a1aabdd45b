"""Agents over scripted models, for studies that read their events."""

import json
from collections.abc import Callable, Sequence

import pytest

from foretell.forecasters.forecaster import Context, Models
from foretell.models.model import AssistantMessage, Model, Reply, Request, ToolCall, ToolSpec
from foretell.models.names import ModelRoles
from foretell.questions.question import Question, Target
from foretell.tools.content_filter import LeakVerdict
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import ToolFailed


class NoResults:
    """A search that finds nothing."""

    spec = ToolSpec(name="web_search", description="", parameters={"type": "object", "properties": {"query": {}}})

    async def use(self, arguments, as_of):
        raise ToolFailed("nothing found")


class KeepAll:
    async def judge(self, excerpts, as_of, question):
        return [LeakVerdict(word="KEEP", reason="")] * len(excerpts)


def stated(request: Request) -> float | None:
    """Return the belief the model stated last, from its own history."""
    beliefs = [
        call.arguments
        for message in request.messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
    ]
    return json.loads(beliefs[-1])["updated_belief"]["p"] if beliefs else None


def call(tool: str, believed: float, **arguments: object) -> Reply:
    body = {"updated_belief": {"p": believed, "reason": "r"}, **arguments}
    return Reply(calls=(ToolCall(id="c", name=tool, arguments=json.dumps(body)),))


@pytest.fixture
def questions() -> Sequence[Question]:
    return [
        Question(id=f"q{n}", source="own", text=f"Number {n}?", due="2025-10-26", targets=(Target(id="yes"),))
        for n in range(4)
    ]


@pytest.fixture
def say() -> Callable[..., Reply]:
    return call


@pytest.fixture
def last_belief() -> Callable[[Request], float | None]:
    return stated


@pytest.fixture
def context_with() -> Callable[[Model], Callable[[Question], Context]]:
    def toolbox(question: Question, context: Context) -> FilteredTools:
        return FilteredTools.around([NoResults()], LeakageRules(as_of=context.as_of, question=question), KeepAll())

    def of(model: Model) -> Callable[[Question], Context]:
        cast = ModelRoles(agent="scripted:x")
        return lambda question: Context(as_of=question.as_of, models=Models(roles=cast, model=model), tools=toolbox)

    return of
