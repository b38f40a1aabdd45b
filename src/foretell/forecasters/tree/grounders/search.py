"""The search grounder: a few rounds of fenced research by tool calls, then a conclusion with its sources."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foretell.forecasters.agent.actions import UnusableTurn, read_object
from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grounders.plain import (
    CONCLUDE,
    CONCLUDE_TOOL,
    CONCLUSION_SCHEMA,
    cited_sources,
    grounding_from_answer,
    leaf_task,
)
from foretell.forecasters.tree.grow.ground import GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import (
    NoStructuredAnswer,
    StructuredClient,
    UnfitAnswer,
    fill_prompts,
    read_answer,
)
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
from foretell.models.structured_output import schema_errors
from foretell.questions.trace import ToolUsed
from foretell.tools.fence import FencedTools, Observation

MOST_CALLS = 4
"""Calls of one reply that are carried out."""
AGAIN = 3
"""Unusable replies in a row that are put up with."""


@dataclass(frozen=True, kw_only=True)
class SearchGrounder:
    """Searches, reads, concludes."""

    steps: int = 5
    """Rounds in all; in the last one only the conclusion is left."""
    label: str = "search"
    wording: str = "ground_search"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps = {self.steps}: at least one is needed, for the conclusion")

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        return self.label

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """What the research came to."""
        toolbox = context.tools_for(leaf.fenced)
        if toolbox.as_of != context.as_of:
            raise ValueError(f"the toolbox is fenced at {toolbox.as_of}, the claim is examined at {context.as_of}")
        system = fill_prompts("ground_role", self.wording, "rules", steps=self.steps, today=leaf.tree_question.today)
        conversation = SearchConversation(
            leaf, context, toolbox, (SystemMessage(text=system), UserMessage(text=leaf_task(leaf), cached=True))
        )
        grounder = f"{self.name}+clairvoyant" if toolbox.clairvoyant else self.name
        for step in range(1, self.steps + 1):
            last = step == self.steps or leaf.budget.nearly_spent
            answer = await conversation.round(step, last=last)
            if answer is not None:
                return grounding_from_answer(answer, grounder, cited_sources(answer, toolbox.shelf))
        raise AssertionError("the last round concludes or raises")


class SearchConversation:
    """The conversation of one leaf."""

    def __init__(self, leaf: Leaf, context: Context, toolbox: FencedTools, opening: Sequence[Message]) -> None:
        self._leaf = leaf
        self._context = context
        self._toolbox = toolbox
        self._messages = list(opening)
        self._research = tuple(spec for spec in toolbox.specs() if spec.name != CONCLUDE)
        self._model = context.model("grounder")
        self._client = StructuredClient(context=context, slot=leaf.slot)

    async def round(self, step: int, *, last: bool) -> dict[str, Any] | None:
        """One reply that can be used: its conclusion, or None once its calls are carried out."""
        problem = ""
        for attempt in range(AGAIN):
            reply = await self._ask(step, attempt, last=last)
            try:
                conclusion = self._conclusion(reply)
                if conclusion is not None:
                    return conclusion
                await self._research_by(self._calls(reply, last=last), reply, step)
                return None
            except (UnusableTurn, UnfitAnswer) as error:
                problem = str(error)
            self._object_to(reply, problem)
        raise NoStructuredAnswer(f"no usable reply in round {step}: {problem}")

    async def _ask(self, step: int, attempt: int, *, last: bool) -> Reply:
        slot = f"{self._leaf.slot}/step {step}/{attempt}"
        request = self._client.request("grounder", tuple(self._messages), slot=slot)
        force = CONCLUDE if last or not self._research else "*" if attempt else None
        return await self._model.complete(replace(request, tools=(*self._research, CONCLUDE_TOOL), force=force))

    def _conclusion(self, reply: Reply) -> dict[str, Any] | None:
        """The conclusion in a reply, by a call or written out; one that cannot be used goes back to the model."""
        call = next((call for call in reply.calls if call.name == CONCLUDE), None)
        if call is None and (reply.calls or not reply.text.strip()):
            return None
        found = read_answer(Reply(text=call.arguments or "{}") if call is not None else reply, CONCLUSION_SCHEMA)
        grounding_from_answer(found, "")
        return found

    def _calls(self, reply: Reply, *, last: bool) -> list[tuple[ToolCall, dict[str, Any]]]:
        if last or not reply.calls:
            raise UnusableTurn(f"{CONCLUDE} must be called now" if last else "it called no tool")
        offered = {spec.name: spec for spec in self._research}
        return [(_named(call, n), _arguments(call, offered)) for n, call in enumerate(reply.calls[:MOST_CALLS])]

    async def _research_by(self, calls: Sequence[tuple[ToolCall, dict[str, Any]]], reply: Reply, step: int) -> None:
        seen = await asyncio.gather(*(self._use(call.name, arguments) for call, arguments in calls))
        self._messages.append(
            AssistantMessage(text=reply.text, calls=tuple(call for call, _ in calls), sealed=reply.sealed)
        )
        for (call, arguments), observation in zip(calls, seen, strict=True):
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

    async def _use(self, name: str, arguments: dict[str, Any]) -> Observation:
        try:
            return await self._toolbox.use(name, arguments)
        except BudgetExceeded:
            raise
        except ModelError as error:
            return Observation(text=f"{name} failed: {error}. Try another way.", failed=True)

    def _object_to(self, reply: Reply, problem: str) -> None:
        """As plain text: providers want a result for every call that stays in the conversation."""
        calls = [f"[{call.name} {call.arguments}]"[:2000] for call in reply.calls[:1]]
        text = "\n".join(filter(None, [reply.text.strip()[:2000], *calls]))
        if text:
            self._messages.append(AssistantMessage(text=text))
        names = ", ".join([*(spec.name for spec in self._research), CONCLUDE])
        self._messages.append(UserMessage(text=f"Your reply could not be used: {problem}. Call one of: {names}."))


def _named(call: ToolCall, place: int) -> ToolCall:
    return call if call.id else ToolCall(id=f"call_{place}", name=call.name, arguments=call.arguments)


def _arguments(call: ToolCall, offered: dict[str, ToolSpec]) -> dict[str, Any]:
    if call.name not in offered:
        raise UnusableTurn(f"there is no tool {call.name[:60]!r}")
    given = read_object(call.arguments or "{}")
    shape = offered[call.name].parameters
    given = {name: value for name, value in given.items() if name in shape.get("properties", given)}
    if wrong := schema_errors(given, shape):
        raise UnusableTurn(f"the arguments of {call.name} cannot be used: {'; '.join(wrong)}")
    return given
