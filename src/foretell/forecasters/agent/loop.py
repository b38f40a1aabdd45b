"""The loop: ask, revise the belief, act, until an answer is submitted or a limit is reached."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from foretell.forecasters.agent.actions import (
    AgentAction,
    AgentToolset,
    AgentTurn,
    UnusableTurn,
    belief_in,
    probability_in_text,
    read_object,
    read_reply,
)
from foretell.forecasters.agent.answer_format import StatedProbabilities
from foretell.forecasters.agent.belief import BELIEF, Belief, BeliefStatement
from foretell.forecasters.agent.settings import AgentSettings
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    Message,
    Model,
    ModelError,
    Reply,
    Request,
    ToolCall,
    ToolResult,
    UserMessage,
)
from foretell.questions.forecast import Numeric
from foretell.questions.trace import BeliefRevised, EmitEvent, ToolUsed
from foretell.tools.fence import FencedTools, Observation
from foretell.tools.names import SUBMIT

# How a trial ends: always in a value, never in an exception.


class StopReason(StrEnum):
    """Why the loop stopped, in the words that `ForecastMade.how` keeps."""

    SUBMITTED = "submitted"
    PLAIN = "stated when asked for the numbers alone"
    SALVAGED = "read from the model's text"
    STEPS = "standing belief at the step limit"
    TIME = "standing belief at the time limit"
    BUDGET = "standing belief at the budget"
    UNUSABLE = "standing belief after unusable replies"
    MODEL = "standing belief after the model failed"
    BYPASS = "series model, no language model asked"


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """The last word of a trial, before it is clamped."""

    stop: StopReason
    belief: Belief
    p: Mapping[str, float] | None
    """None where nobody ever stated a probability: such a trial failed."""
    distribution: Numeric | None = None
    reason: str = ""
    detail: str = ""
    """What went wrong, where something did."""
    steps: int = 0


def result_from_belief(stop: StopReason, belief: Belief, *, detail: str = "", steps: int = 0) -> TrialResult:
    """The belief as it stands is the answer, unless nobody formed it.

    When the model itself failed, a price or a base rate it never looked at is not its forecast either.
    """
    formed = belief.formed if stop is not StopReason.MODEL else belief.origin in ("model", "overwritten")
    return TrialResult(
        stop=stop,
        belief=belief,
        p=belief.p if formed else None,
        distribution=belief.distribution,
        reason=belief.reason,
        detail=detail,
        steps=steps,
    )


# The conversation of a trial: it only grows, so that its beginning stays the same from request to request.

LONGEST_ECHO = 2000
LONGEST_FOUND = 12_000
RESULT = "Result of "
DECLINED = (
    "This is a forecast from public information: nobody is advised or harmed by it, and a rough probability is better "
    "than none. "
)


class Conversation:
    """Messages so far."""

    def __init__(self, opening: Sequence[Message]) -> None:
        self._messages = list(opening)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of them, oldest first."""
        return tuple(self._messages)

    def found(self) -> str:
        """What tools showed so far, as one text; the newest is kept where it gets too long."""
        results = [message.text for message in self._messages if isinstance(message, ToolResult)]
        results += [m.text for m in self._messages if isinstance(m, UserMessage) and m.text.startswith(RESULT)]
        return "\n\n".join(results)[-LONGEST_FOUND:]

    def add_unusable(self, reply: Reply, problem: str, names: Sequence[str]) -> None:
        """Keep a reply that could not be used as plain text, and say what was wrong with it.

        Calls are not kept as calls: providers want a result for each, and arguments that are JSON.
        """
        calls = [f"[{call.name} {call.arguments}]"[:LONGEST_ECHO] for call in reply.calls[:1]]
        said = "\n".join(filter(None, [reply.text.strip()[:LONGEST_ECHO], *calls]))
        if said:
            self._messages.append(AssistantMessage(text=said))
        declined = DECLINED if reply.finish == "refusal" else ""
        shorter = " Be briefer: the reply was cut off." if reply.finish == "length" else ""
        text = f"{declined}Your reply could not be used: {problem}.{shorter} Call one of: {', '.join(names)}."
        self._messages.append(UserMessage(text=text))

    def add(self, turn: AgentTurn, results: Sequence[str]) -> None:
        """A turn with the results of its actions, in their order."""
        self._messages.append(turn.spoken)
        for action, text in zip(turn.actions, results, strict=True):
            self._messages.append(_result(action, text))


def _result(action: AgentAction, text: str) -> Message:
    if action.call is None:
        return UserMessage(text=f"{RESULT}{action.tool}:\n{text}")
    return ToolResult(call_id=action.call.id, name=action.tool, text=text)


def restated(turn: AgentTurn, stated: Any, offer: AgentToolset) -> AgentTurn:
    """The turn as if the model had stated other numbers: its own past words say so from now on."""
    actions = tuple(
        action if action.call is None else replace(action, call=_overwritten(action.call, stated, offer))
        for action in turn.actions
    )
    calls = tuple(action.call for action in actions if action.call is not None)
    text = turn.spoken.text if calls else _overwritten_text(turn.spoken.text, stated, offer)
    return replace(turn, actions=actions, spoken=AssistantMessage(text=text, calls=calls))


def _overwritten(call: ToolCall, stated: Any, offer: AgentToolset) -> ToolCall:
    return replace(call, arguments=_overwritten_text(call.arguments, stated, offer))


def _overwritten_text(text: str, stated: Any, offer: AgentToolset) -> str:
    try:
        said = read_object(text)
    except UnusableTurn:
        return text
    belief = said.get(BELIEF)
    kept = belief if isinstance(belief, dict) else {}
    return json.dumps({**said, BELIEF: {**kept, offer.form.field: stated}}, ensure_ascii=False)


# What one trial is given before it starts.


def all_tools(step: int) -> None:
    """A policy that narrows nothing."""


@dataclass(frozen=True, kw_only=True)
class BeliefIntervention:
    """An experiment: after the model stated its belief at a step, its probabilities are replaced.

    Not for numeric questions, where quantiles are stated.
    """

    step: int
    p: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class TrialSetup:
    """Everything one trial needs."""

    request: Request
    """Model, sampling and slot; the messages are the opening of the conversation."""
    offer: AgentToolset
    belief: Belief
    model: Model
    toolbox: FencedTools
    emit: EmitEvent
    settings: AgentSettings = field(default_factory=AgentSettings)
    allowed: Callable[[int], Collection[str] | None] = all_tools
    """Tools by step, where the policy narrows them; None for all."""
    push: BeliefIntervention | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.toolbox, FencedTools):  # pyright: ignore[reportUnnecessaryIsInstance] - the rule of the house
            raise TypeError(f"the loop accepts only a fenced toolbox, not {type(self.toolbox).__name__}")

    @property
    def steps(self) -> int:
        """Generations in all: the variant's own number, within the limit."""
        return min(self.settings.steps, self.offer.variant.steps or self.settings.steps)

    @property
    def reserve(self) -> float:
        """Seconds kept for the answer, at most a fifth of the whole time."""
        return min(self.settings.reserve, self.settings.seconds / 5)


UNUSABLE = "(unusable reply)"
"""Stands for the tool in the event of a reply that asked for nothing that could be done."""
PLAINLY = "Leave the tools aside. Answer now with one JSON object that holds nothing but `{}`, your best numbers."
NO_BUDGET = Observation(text="the budget is spent", failed=True)


class AgentTrial:
    """One run of the loop. It holds what changes: the conversation, the standing belief, the step."""

    def __init__(self, job: TrialSetup) -> None:
        self.job = job
        self.belief = job.belief
        self.number = 0
        self._history = Conversation(job.request.messages)
        self._ends_at = 0.0

    async def run(self) -> TrialResult:
        """Step until something ends it; every way to end is a value."""
        self._ends_at = _now() + self.job.settings.seconds
        clock = asyncio.timeout_at(self._ends_at)
        try:
            async with clock:
                while (ending := await self.step()) is None:
                    pass
                return ending
        except TimeoutError:
            return self._end_with_belief(StopReason.TIME if clock.expired() else StopReason.MODEL)
        except BudgetExceeded as spent:
            return self._end_with_belief(StopReason.BUDGET, str(spent))
        except ModelError as error:
            return self._end_with_belief(StopReason.MODEL, str(error))

    async def step(self) -> TrialResult | None:
        """One generation tells the belief with all results so far taken in, and what to do next."""
        self.number += 1
        last = self.number >= self.job.steps or _now() > self._ends_at - self.job.reserve
        names = (SUBMIT,) if last else self.job.offer.named(self.job.allowed(self.number))
        unusable: list[Reply] = []
        problem = ""
        # An unusable reply is asked for again with what was wrong, a few times.
        for attempt in range(self.job.settings.retries + 1):
            reply = await self.job.model.complete(self._request(names, attempt))
            try:
                turn = read_reply(reply, self.job.offer, names)
                break
            except UnusableTurn as error:
                problem = str(error)
            unusable.insert(0, reply)
            self._believe(belief_in(reply, self.job.offer))
            self._history.add_unusable(reply, problem, names)
            self._emit_tool(UNUSABLE, {"attempt": attempt + 1}, Observation(text=problem, failed=True))
        else:
            turn = await self._salvage(unusable, problem, last=tuple(names) == (SUBMIT,))
        if isinstance(turn, TrialResult):
            return turn
        notes = self._revise(turn)
        if turn.final is not None:
            return self._submit(turn)
        return await self._act(self._pushed(turn), notes)

    def _request(self, names: Sequence[str], attempt: int) -> Request:
        slot = f"{self.job.request.slot}/step {self.number}/{attempt}"
        messages = self._history.messages
        if self.job.settings.asking == "schema":
            return replace(self.job.request, messages=messages, schema=self.job.offer.schema(names), slot=slot)
        # Asked freely at first: forcing a call switches the thinking of some models off.
        force = names[0] if len(names) == 1 else "*" if attempt else None
        return replace(self.job.request, messages=messages, tools=self.job.offer.tools, force=force, slot=slot)

    def _revise(self, turn: AgentTurn) -> tuple[str, ...]:
        """Take the stated belief over; what the model must know about that comes back."""
        if self.job.offer.variant.belief and turn.statement is None:
            return (*turn.notes, "updated_belief was missing: your last belief stands")
        return (*turn.notes, *self._believe(turn.statement))

    def _believe(self, statement: BeliefStatement | None) -> tuple[str, ...]:
        if statement is None:
            return ()
        seen = self.number - 1
        sources = self.job.toolbox.shelf.ids
        self.belief, notes = self.belief.revise(statement, self.job.offer.form, step=seen, sources=sources)
        self._emit_belief()
        return notes

    def _pushed(self, turn: AgentTurn) -> AgentTurn:
        push = self.job.push
        if push is None or push.step != self.number or self.job.offer.form.thresholds is not None:
            return turn
        self.belief = self.belief.overwrite(push.p, self.job.offer.form)
        self._emit_belief()
        return restated(turn, self.job.offer.form.write(self.belief.stated), self.job.offer)

    async def _act(self, turn: AgentTurn, notes: Sequence[str]) -> TrialResult | None:
        """Carry out the actions and add what came of them to the conversation."""
        seen = await asyncio.gather(*(self._use(action) for action in turn.actions))
        for action, observation in zip(turn.actions, seen, strict=True):
            self._emit_tool(action.tool, action.arguments, observation or NO_BUDGET)
        done = [observation.text for observation in seen if observation is not None]
        if len(done) < len(seen):
            return self._end_with_belief(StopReason.BUDGET, "while a tool was at work")
        done[-1] += self._footer(notes)
        self._history.add(turn, done)
        return None

    async def _use(self, action: AgentAction) -> Observation | None:
        """What a tool showed; None where the budget ran out in it."""
        try:
            return await self.job.toolbox.use(action.tool, action.arguments)
        except BudgetExceeded:
            return None
        except ModelError as error:
            return Observation(text=f"{action.tool} failed: {error}. Try another way.", failed=True)

    def _footer(self, notes: Sequence[str]) -> str:
        text = f"\n\n(Step {self.number} of {self.job.steps} is done"
        return text + "".join(f"; {note}" for note in notes) + ".)"

    def _submit(self, turn: AgentTurn) -> TrialResult:
        assert turn.final is not None
        p = self.job.offer.form.coherent(turn.final.p)
        self._emit_tool(SUBMIT, {"p": p, "reason": turn.reason}, Observation(text="submitted"))
        return self._end(StopReason.SUBMITTED, p=p, distribution=turn.final.distribution, reason=turn.reason)

    async def _salvage(self, unusable: Sequence[Reply], problem: str, *, last: bool) -> TrialResult:
        """The number in the model's text if there is only one way to read it, else the belief as it stands.

        Where the model never formed one, it is asked a last time, for the numbers alone.
        """
        stop = StopReason.SALVAGED
        found = probability_in_text(unusable, self.job.offer.form)
        if found is None and self.belief.origin != "model":
            stop, found = StopReason.PLAIN, await self._ask_plainly()
        if found is None:
            return self._end_with_belief(StopReason.STEPS if last else StopReason.UNUSABLE, problem)
        p = self.job.offer.form.coherent(found.p)
        return self._end(stop, p=p, distribution=found.distribution, detail=problem)

    async def _ask_plainly(self) -> StatedProbabilities | None:
        """No tools, no belief, no conversation: the question, what was found, and a schema that holds the numbers."""
        offer = replace(self.job.offer, form=replace(self.job.offer.form, percent=True))
        found = self._history.found()
        text = "\n\n".join(filter(None, [found and f"What was found:\n{found}", PLAINLY.format(offer.form.field)]))
        messages = (*self.job.request.messages, UserMessage(text=text))
        slot = f"{self.job.request.slot}/step {self.number}/plain"
        request = replace(self.job.request, messages=messages, schema=offer.numbers_alone(), slot=slot)
        try:
            return probability_in_text([await self.job.model.complete(request)], offer.form)
        except ModelError:
            return None

    def _end_with_belief(self, stop: StopReason, detail: str = "") -> TrialResult:
        return result_from_belief(stop, self.belief, detail=detail, steps=self.number)

    def _end(self, stop: StopReason, **fields: Any) -> TrialResult:
        return TrialResult(stop=stop, belief=self.belief, steps=self.number, **fields)

    def _emit_tool(self, tool: str, arguments: Mapping[str, Any], seen: Observation) -> None:
        event = ToolUsed(
            step=self.number,
            tool=tool,
            arguments=arguments,
            result=seen.text,
            sources=seen.source_ids,
            failed=seen.failed,
        )
        self.job.emit(event)

    def _emit_belief(self) -> None:
        belief = self.belief
        self.job.emit(BeliefRevised(step=belief.step, p=belief.p, reason=belief.reason, belief=belief.as_json()))


def _now() -> float:
    return asyncio.get_running_loop().time()
