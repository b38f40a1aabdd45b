"""The grounders `plain`, `search` and `agent`, and helpers that all grounders share."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.data.untrusted import for_prompt
from foretell.forecasters.agent.agent import BeliefAgent, without_numbers
from foretell.forecasters.agent.answer_format import as_probability
from foretell.forecasters.agent.settings import FULL, AgentSettings, Clamp
from foretell.forecasters.forecaster import Context, attempt
from foretell.forecasters.tree.grow.ground import CannotGround, GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    LONGEST_REPORT,
    LONGEST_SENTENCE,
    TEXT,
    StructuredRequest,
    fill_prompts,
    read_answer,
    read_report,
    sections,
)
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    Message,
    ModelError,
    Reply,
    SystemMessage,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.structured_output import NoUsableAnswer, UnusableReply, closed_object, read_object, schema_errors
from foretell.questions.forecast import Failure
from foretell.questions.question import Question
from foretell.questions.trace import Failed, ForecastMade, ToolUsed, TraceEvent
from foretell.tools.fence import FencedTools, Observation, SourceStore

CONCLUSION_SCHEMA = closed_object(
    {"report": TEXT, "key_factor": TEXT, "sources": {"type": "array", "items": TEXT}, "p": CHANCE}
)
"""Schema of a grounding's conclusion: a report, the key factor, the sources, and a probability."""
CONCLUSION_WITHOUT_SOURCES = closed_object({"report": TEXT, "key_factor": TEXT, "p": CHANCE})
MOST_SOURCES = 30


def grounding_from_answer(answer: Mapping[str, Any], grounder: str, sources: Sequence[str] = ()) -> GroundingResult:
    """Read the grounding from an answer. Raises `UnusableReply` if the answer lacks a report or a valid probability."""
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
    """Return the sources that an answer cites: only those that a tool has returned, without duplicates."""
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
    """Prompt text about a leaf: the claim, the question it is a part of, and the date."""
    return sections(
        ("Claim", leaf.claim),
        ("What it is a part of", leaf.tree_question.question.text),
        ("Today", f"Today is {leaf.tree_question.today}."),
    )


@dataclass(frozen=True, kw_only=True)
class PlainGrounder:
    """Asks a model once, without tools: the fastest and cheapest grounder, but without access to recent news."""

    name: str = "plain"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Ask the model about the claim and return the grounding."""
        request = StructuredRequest(
            role="grounder",
            slot=f"{leaf.slot}/plain",
            system=fill_prompts("ground_role", "ground_plain", "rules", today=leaf.tree_question.today),
            user=leaf_task(leaf),
            schema=CONCLUSION_WITHOUT_SOURCES,
        )
        return await request.ask(context, lambda found: grounding_from_answer(found, self.name))


CONCLUDE = "conclude"
CONCLUDE_TOOL = ToolSpec(
    name=CONCLUDE, description="State the result and end the research.", parameters=CONCLUSION_SCHEMA
)
MOST_CALLS = 4
"""Maximum number of tool calls that are run per reply."""
AGAIN = 3
"""Maximum number of consecutive unusable replies."""


@dataclass(frozen=True, kw_only=True)
class SearchGrounder:
    """Lets a model search and read with fenced tools, then conclude."""

    steps: int = 5
    """Maximum number of rounds; in the last one the model can only conclude."""
    name: str = "search"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps = {self.steps}: at least one is needed, for the conclusion")

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Research the claim and return its grounding."""
        toolbox = context.tools_for(leaf.fenced)
        if toolbox.as_of != context.as_of:
            raise ValueError(f"the toolbox is fenced at {toolbox.as_of}, the claim is examined at {context.as_of}")
        system = fill_prompts("ground_role", "ground_search", "rules", steps=self.steps, today=leaf.tree_question.today)
        opening = (SystemMessage(text=system), UserMessage(text=leaf_task(leaf), cached=True))
        conversation = _SearchConversation(leaf, context, toolbox, opening)
        grounder = f"{self.name}+clairvoyant" if toolbox.clairvoyant else self.name
        for step in range(1, self.steps + 1):
            last = step == self.steps or leaf.budget.nearly_spent
            answer = await conversation.round(step, last=last)
            if answer is not None:
                return grounding_from_answer(answer, grounder, cited_sources(answer, toolbox.sources))
        raise AssertionError("the last round concludes or raises")


class _SearchConversation:
    """The model's conversation about one leaf."""

    def __init__(self, leaf: Leaf, context: Context, toolbox: FencedTools, opening: Sequence[Message]) -> None:
        self._leaf = leaf
        self._context = context
        self._toolbox = toolbox
        self._messages = list(opening)
        self._research = {spec.name: spec for spec in toolbox.specs() if spec.name != CONCLUDE}
        self._model = context.model("grounder")

    async def round(self, step: int, *, last: bool) -> dict[str, Any] | None:
        """Get one usable reply and return its conclusion, or None after running its tool calls."""
        problem = ""
        for again in range(AGAIN):
            slot = f"{self._leaf.slot}/step {step}/{again}"
            request = self._context.request("grounder", self._messages, slot=slot)
            force = CONCLUDE if last or not self._research else "*" if again else None
            tools = (*self._research.values(), CONCLUDE_TOOL)
            reply = await self._model.complete(replace(request, tools=tools, force=force))
            try:
                conclusion = _conclusion(reply)
                if conclusion is None:
                    await self._carry_out(reply, step, last=last)
                return conclusion
            except UnusableReply as error:
                problem = str(error)
            self._object_to(reply, problem)
        raise NoUsableAnswer(f"no usable reply in round {step}: {problem}")

    async def _carry_out(self, reply: Reply, step: int, *, last: bool) -> None:
        """Run the tool calls of a reply and add the results to the conversation and the trace."""
        if last or not reply.calls:
            raise UnusableReply(f"{CONCLUDE} must be called now" if last else "it called no tool")
        calls = [call if call.id else replace(call, id=f"call_{n}") for n, call in enumerate(reply.calls[:MOST_CALLS])]
        given = [self._arguments(call) for call in calls]
        pairs = zip(calls, given, strict=True)
        seen = await asyncio.gather(*(self._use(call.name, arguments) for call, arguments in pairs))
        self._messages.append(AssistantMessage(text=reply.text, calls=tuple(calls), sealed=reply.sealed))
        for call, arguments, observation in zip(calls, given, seen, strict=True):
            self._messages.append(ToolResult(call_id=call.id, name=call.name, text=observation.text))
            self._context.emit(
                ToolUsed(
                    step=step,
                    tool=call.name,
                    arguments=arguments,
                    result=observation.text,
                    sources=observation.source_ids,
                    failed=observation.failed,
                )
            )

    def _arguments(self, call: ToolCall) -> dict[str, Any]:
        if call.name not in self._research:
            raise UnusableReply(f"there is no tool {call.name[:60]!r}")
        given = read_object(call.arguments or "{}")
        shape = self._research[call.name].parameters
        given = {name: value for name, value in given.items() if name in shape.get("properties", given)}
        if wrong := schema_errors(given, shape):
            raise UnusableReply(f"the arguments of {call.name} cannot be used: {'; '.join(wrong)}")
        return given

    async def _use(self, name: str, arguments: dict[str, Any]) -> Observation:
        try:
            return await self._toolbox.use(name, arguments)
        except BudgetExceeded:
            raise
        except ModelError as error:
            return Observation(text=f"{name} failed: {for_prompt(str(error))}. Try another way.", failed=True)

    def _object_to(self, reply: Reply, problem: str) -> None:
        """Ask again, quoting the reply as plain text: providers require a result for every call in the conversation."""
        calls = [f"[{call.name} {call.arguments}]"[:2000] for call in reply.calls[:1]]
        text = "\n".join(filter(None, [reply.text.strip()[:2000], *calls]))
        if text:
            self._messages.append(AssistantMessage(text=text))
        names = ", ".join([*self._research, CONCLUDE])
        self._messages.append(UserMessage(text=f"Your reply could not be used: {problem}. Call one of: {names}."))


def _conclusion(reply: Reply) -> dict[str, Any] | None:
    """Read the conclusion from a tool call or from the text of a reply; None if it has none.

    Raises `UnusableReply`, which is returned to the model, if the conclusion is not valid.
    """
    call = next((call for call in reply.calls if call.name == CONCLUDE), None)
    if call is None and (reply.calls or not reply.text.strip()):
        return None
    found = read_answer(Reply(text=call.arguments or "{}") if call is not None else reply, CONCLUSION_SCHEMA)
    grounding_from_answer(found, "")
    return found


# The belief agent as a grounder: it researches one claim step by step and keeps a belief all the way.


SOURCES = "Sources:\n"


def _agent() -> BeliefAgent:
    """Create an agent without price and base rate, which belong to the question, and without clamping."""
    return BeliefAgent(variant=FULL, settings=AgentSettings(clamp=Clamp(low=0.0, high=1.0)))


@dataclass(frozen=True, kw_only=True)
class AgentGrounder:
    """Runs the belief agent with the claim as its question."""

    agent: BeliefAgent = field(default_factory=_agent)
    name: str = "agent"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Run the agent on the claim; its rationale becomes the report."""

        def tools(_: Question, inner: Context) -> FencedTools:
            return context.tools(leaf.fenced, inner)

        def emit(event: TraceEvent) -> None:
            # A leaf's number is no forecast: who reads events must not take it for the question's.
            if not isinstance(event, ForecastMade | Failed):
                context.emit(event)

        question = replace(leaf.question, id=leaf.slot)
        models = context.models.with_model("agent", context.models.name("grounder"))
        found = await attempt(self.agent, question, replace(context, tools=tools, emit=emit, models=models))
        if isinstance(found, Failure):
            if "budget" in found.error:
                raise BudgetExceeded(found.error)
            raise CannotGround(found.error)
        report, _, listed = without_numbers(found.rationale).partition(SOURCES)
        clairvoyant = "+clairvoyant" if found.forecaster.endswith("+clairvoyant") else ""
        grounding = Grounding(
            grounder=self.name + clairvoyant,
            report=report.strip()[:LONGEST_REPORT],
            key_factor=report.strip().partition("\n")[0][:LONGEST_SENTENCE],
            sources=tuple(listed.strip().splitlines()),
        )
        return GroundingResult(p=found.p["yes"], grounding=grounding)
