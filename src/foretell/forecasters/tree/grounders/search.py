"""The grounders `plain`, `search` and `agent`, and helpers that all grounders share."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from foretell.forecasters.agent.agent import BeliefAgent, without_numbers
from foretell.forecasters.agent.answer_format import as_probability
from foretell.forecasters.agent.settings import FULL, AgentSettings
from foretell.forecasters.combine.clamp import Clamp
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
from foretell.frozen import frozen
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
from foretell.questions.forecast import UNFILTERED_SUFFIX, Failure
from foretell.questions.question import Question
from foretell.questions.trace import Failed, ForecastMade, QuestionShown, ToolUsed, TraceEvent
from foretell.tools.leakage_filter import FetchedResult, FilteredTools, SourceStore, failed_result
from foretell.tools.reading import BRIEF, ReadingStyle

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
    named = [str(name).strip().strip("[]") for name in answer.get("sources") or ()]
    by_url = {sources[id].url: id for id in reversed(sources.ids) if sources[id].url}
    ids = dict.fromkeys(id for name in named if (id := name if name in sources else by_url.get(name)) is not None)
    cited: list[str] = []
    for id in list(ids)[:MOST_SOURCES]:
        source = sources[id]
        when = f" ({source.published.date().isoformat()})" if source.published else ""
        cited.append(f"[{id}] {source.title}{when} {source.url}".strip())
    return tuple(cited)


def leaf_task(leaf: Leaf) -> str:
    """Return the prompt text about a leaf: the claim, the question it is a part of, the date, and what is known."""
    task = sections(
        ("Claim", leaf.claim),
        ("What it is a part of", leaf.tree_question.question.text),
        ("Today", f"Today is {leaf.tree_question.today}."),
    )
    return f"{task}\n\n{leaf.material}" if leaf.material else task


@frozen
class PlainGrounder:
    """Asks a model once, without tools: the fastest and cheapest grounder, but without access to recent news."""

    name: str = "plain"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Ask the model about the claim and return the grounding."""
        request = StructuredRequest(
            role="grounder",
            slot=f"{leaf.slot}/plain",
            system=fill_prompts("ground_role", "ground_plain", "rules", **leaf.tree_question.rule_values),
            user=leaf_task(leaf),
            schema=CONCLUSION_WITHOUT_SOURCES,
        )
        return await request.ask(context, lambda answer: grounding_from_answer(answer, self.name))


CONCLUDE = "conclude"
CONCLUDE_TOOL = ToolSpec(
    name=CONCLUDE, description="State the result and end the research.", parameters=CONCLUSION_SCHEMA
)
MOST_CALLS = 4
"""Maximum number of tool calls that are run per reply."""
AGAIN = 3
"""Maximum number of consecutive unusable replies."""


@frozen
class SearchGrounder:
    """Lets a model search and read with filtered tools, then conclude."""

    steps: int = 5
    """Maximum number of rounds; in the last one the model can only conclude."""
    reading: ReadingStyle = BRIEF
    """How the results of tools are shown."""
    name: str = "search"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps = {self.steps}: at least one is needed, for the conclusion")

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Research the claim and return its grounding."""
        toolbox = context.tools_for(leaf.tool_question).read_in(self.reading)
        if toolbox.as_of != context.as_of:
            raise ValueError(f"the toolbox is filtered at {toolbox.as_of}, the claim is examined at {context.as_of}")
        system = fill_prompts(
            "ground_role", "ground_search", "rules", steps=self.steps, **leaf.tree_question.rule_values
        )
        opening = (SystemMessage(text=system), UserMessage(text=leaf_task(leaf), cached=True))
        conversation = _SearchConversation(leaf, context, toolbox, opening)
        grounder = toolbox.marked_name(self.name)
        for step in range(1, self.steps + 1):
            last = step == self.steps or leaf.budget.nearly_spent
            answer = await conversation.round(step, last=last)
            if answer is not None:
                return grounding_from_answer(answer, grounder, cited_sources(answer, toolbox.sources))
        raise AssertionError("the last round concludes or raises")


class _SearchConversation:
    """The model's conversation about one leaf."""

    def __init__(self, leaf: Leaf, context: Context, toolbox: FilteredTools, opening: Sequence[Message]) -> None:
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
                    await self._run_calls(reply, step, last=last)
                return conclusion
            except UnusableReply as error:
                problem = str(error)
            self._ask_again(reply, problem)
        raise NoUsableAnswer(f"no usable reply in round {step}: {problem}")

    async def _run_calls(self, reply: Reply, step: int, *, last: bool) -> None:
        """Run the tool calls of a reply and add the results to the conversation and the trace."""
        if last or not reply.calls:
            raise UnusableReply(f"{CONCLUDE} must be called now" if last else "it called no tool")
        calls = [call if call.id else replace(call, id=f"call_{n}") for n, call in enumerate(reply.calls[:MOST_CALLS])]
        arguments_by_call = [self._arguments(call) for call in calls]
        pairs = zip(calls, arguments_by_call, strict=True)
        fetched = await asyncio.gather(*(self._fetch(call.name, arguments) for call, arguments in pairs))
        # Ids are given in the order of the calls, however they ended.
        seen = [self._toolbox.present(result) for result in fetched]
        self._messages.append(AssistantMessage(text=reply.text, calls=tuple(calls), sealed=reply.sealed))
        for call, arguments, result, observation in zip(calls, arguments_by_call, fetched, seen, strict=True):
            self._messages.append(ToolResult(call_id=call.id, name=call.name, text=observation.text))
            self._context.emit(
                ToolUsed(
                    step=step,
                    tool=call.name,
                    arguments=arguments,
                    result=observation.text,
                    sources=observation.source_ids,
                    failed=observation.failed,
                ).timed(result.at or time.time(), result.seconds)
            )

    def _arguments(self, call: ToolCall) -> dict[str, Any]:
        if call.name not in self._research:
            raise UnusableReply(f"there is no tool {call.name[:60]!r}")
        arguments = read_object(call.arguments or "{}")
        shape = self._research[call.name].parameters
        arguments = {name: value for name, value in arguments.items() if name in shape.get("properties", arguments)}
        if wrong := schema_errors(arguments, shape):
            raise UnusableReply(f"the arguments of {call.name} cannot be used: {'; '.join(wrong)}")
        return arguments

    async def _fetch(self, name: str, arguments: dict[str, Any]) -> FetchedResult:
        try:
            return await self._toolbox.fetch(name, arguments)
        except BudgetExceeded:
            raise
        except ModelError as error:
            return failed_result(name, arguments, error)

    def _ask_again(self, reply: Reply, problem: str) -> None:
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
    answer = read_answer(Reply(text=call.arguments or "{}") if call is not None else reply, CONCLUSION_SCHEMA)
    grounding_from_answer(answer, "")
    return answer


# The belief agent as a grounder: it researches one claim and updates its belief at every step.


SOURCES = "Sources:\n"


def _agent() -> BeliefAgent:
    """Create an agent without price and base rate, which belong to the question, and without clamping."""
    return BeliefAgent(variant=FULL, settings=AgentSettings(clamp=Clamp(low=0.0, high=1.0)))


@frozen
class AgentGrounder:
    """Runs the belief agent with the claim as its question."""

    agent: BeliefAgent = field(default_factory=_agent)
    name: str = "agent"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Run the agent on the claim; its rationale becomes the report."""

        def tools(_: Question, inner: Context) -> FilteredTools:
            return context.tools(leaf.tool_question, inner)

        def emit(event: TraceEvent) -> None:
            # A leaf must not be mistaken for the question, nor its probability for the forecast.
            if not isinstance(event, QuestionShown | ForecastMade | Failed):
                context.emit(event)

        question = replace(leaf.question, id=leaf.slot)
        models = context.models.with_model("agent", context.models.name("grounder"))
        forecast = await attempt(self.agent, question, replace(context, tools=tools, emit=emit, models=models))
        if isinstance(forecast, Failure):
            if "budget" in forecast.error:
                raise BudgetExceeded(forecast.error)
            raise CannotGround(forecast.error)
        report, _, listed = without_numbers(forecast.rationale).partition(SOURCES)
        suffix = UNFILTERED_SUFFIX if forecast.forecaster.endswith(UNFILTERED_SUFFIX) else ""
        grounding = Grounding(
            grounder=self.name + suffix,
            report=report.strip()[:LONGEST_REPORT],
            key_factor=report.strip().partition("\n")[0][:LONGEST_SENTENCE],
            sources=tuple(listed.strip().splitlines()),
        )
        return GroundingResult(p=forecast.p["yes"], grounding=grounding)
