"""The agent loop: ask, revise the belief, act, until an answer is submitted or a limit is reached."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from foretell.data.untrusted import for_prompt
from foretell.forecasters.agent.actions import (
    MOST_ACTIONS,
    AgentAction,
    AgentToolset,
    AgentTurn,
    UnusableTurn,
    belief_in,
    probability_in_text,
    read_object,
    read_reply,
    readable_call,
)
from foretell.forecasters.agent.belief import BELIEF, Belief, BeliefStatement
from foretell.forecasters.agent.prompts import schema_prompt
from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.early_stop import early_stop
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    ContextTooLong,
    Message,
    Model,
    ModelError,
    Reply,
    Request,
    ToolResult,
    UserMessage,
)
from foretell.models.waiting import MORE_SECONDS, USUAL_SECONDS, WorkClock
from foretell.questions.forecast import Ending, Numeric
from foretell.questions.trace import BeliefRevised, EmitEvent, ToolUsed
from foretell.tools.fence import FencedTools, Observation, marked
from foretell.tools.tool import SUBMIT

LONGEST_ECHO = 2000
LONGEST_FOUND = 12_000
RESULT = "Result of "
DECLINED = (
    "This is a forecast from public information: nobody is advised or harmed by it, and a rough probability is better "
    "than none. "
)
UNUSABLE = "(unusable reply)"
"""Stands in for the tool in the event of a reply that asked for nothing that could be done."""
PLAINLY = "Leave the tools aside. Answer now with one JSON object that holds nothing but `{}`, your best numbers."
NO_BUDGET = Observation(text="the budget is spent", failed=True)


class StopReason(StrEnum):
    """Why the loop stopped, in the words that `ForecastMade.how` records."""

    SUBMITTED = "submitted"
    PLAIN = "stated when asked for the numbers alone"
    SALVAGED = "read from the model's text"
    STEPS = "standing belief at the step limit"
    TIME = "standing belief at the time limit"
    BUDGET = "standing belief at the budget"
    STOPPED = "standing belief when it was stopped early"
    UNUSABLE = "standing belief after unusable replies"
    MODEL = "standing belief after the model failed"
    BYPASS = "series model, no language model asked"


ENDINGS: Mapping[StopReason, Ending] = {
    StopReason.PLAIN: "salvaged",
    StopReason.SALVAGED: "salvaged",
    StopReason.STEPS: "limit",
    StopReason.TIME: "limit",
    StopReason.BUDGET: "limit",
    StopReason.STOPPED: "stopped",
    StopReason.UNUSABLE: "degraded",
    StopReason.MODEL: "degraded",
}
"""How a trial ended, by reason; for all other reasons it gave its answer itself."""
NEEDS_A_BELIEF = (StopReason.MODEL, StopReason.BUDGET, StopReason.TIME)
"""Stop reasons that yield a forecast only if the model itself had stated a belief."""
SHORTER = (4_000, 1_000, 250)
"""Lengths in characters to which messages are cut, tried in turn, if the conversation exceeds the model's context."""
CUT = " … (cut: the conversation is longer than the model can read)"
IN_PERCENT = "Probabilities are whole numbers from 0 to 100 from now on, in percent."
NO_TOOL_WORKED = "no tool worked: all {} calls failed"


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """The outcome of a trial, before it is clamped: always a value, never an exception."""

    stop: StopReason
    belief: Belief
    p: Mapping[str, float] | None
    """Probability by target id; None if none was ever stated, which means that the trial failed."""
    distribution: Numeric | None = None
    reason: str = ""
    detail: str = ""
    """What went wrong, if anything did."""
    ending: Ending = "submitted"


@dataclass(frozen=True, kw_only=True)
class BeliefIntervention:
    """An experiment: after the model states its belief at a step, its probabilities are replaced.

    Not for numeric questions, whose answers are quantiles.
    """

    step: int
    p: Mapping[str, float]


@dataclass(kw_only=True)
class AgentTrial:
    """One run of the loop: its inputs and its state, which is the conversation, the current belief and the step."""

    request: Request
    """Model, sampling and slot; the messages are the opening of the conversation."""
    offer: AgentToolset
    belief: Belief
    model: Model
    toolbox: FencedTools
    emit: EmitEvent
    settings: AgentSettings = field(default_factory=AgentSettings)
    allowed: Callable[[int], Collection[str] | None] = lambda _: None
    """Names of the tools allowed at a step if the policy restricts them; None allows all."""
    push: BeliefIntervention | None = None
    number: int = field(default=0, init=False)
    """The number of the current step."""
    messages: list[Message] = field(init=False)
    """The conversation, which is normally only appended to, so that requests share their prefix."""
    clock: WorkClock = field(init=False)
    """How long the trial may work; a slow model gets more time, unless the settings state a limit."""
    tools_used: int = field(default=0, init=False)
    tools_failed: int = field(default=0, init=False)
    by_schema: bool = field(default=False, init=False)
    """Whether the model is asked for JSON: the settings say so, or it called no tool when told to."""
    slowest: float = field(default=0.0, init=False)
    """Duration of the slowest reply, in seconds."""

    def __post_init__(self) -> None:
        if not isinstance(self.toolbox, FencedTools):  # pyright: ignore[reportUnnecessaryIsInstance] - the rule of the house
            raise TypeError(f"the loop accepts only a fenced toolbox, not {type(self.toolbox).__name__}")
        self.messages = list(self.request.messages)
        given = self.settings.seconds
        self.clock = WorkClock(USUAL_SECONDS, replies=self.steps) if given is None else WorkClock(given)
        self.by_schema = self.settings.reply_format == "schema"

    @property
    def steps(self) -> int:
        """Maximum number of generations: the variant's own number, within the limit of the settings."""
        return min(self.settings.steps, self.offer.variant.steps or self.settings.steps)

    @property
    def spoke(self) -> bool:
        """Whether the model has stated a belief; until then the belief is the price or base rate it started from."""
        return self.belief.origin in ("model", "overwritten")

    async def run(self) -> TrialResult:
        """Run steps until one ends the trial; every way to end returns a result."""
        stop = early_stop()
        try:
            async with self.clock:
                with stop.answers(self.clock):
                    while (ending := await self.step()) is None:
                        if stop.wish == "answer":
                            return self._standing(StopReason.STOPPED)
                    return ending
        except TimeoutError:
            if not self.clock.expired:
                return self._standing(StopReason.MODEL)
            if stop.wish == "answer":
                return self._standing(StopReason.STOPPED)
            return self._standing(StopReason.TIME, MORE_SECONDS.format(self.clock.seconds))
        except BudgetExceeded as spent:
            return self._standing(StopReason.BUDGET, str(spent))
        except ModelError as error:
            return self._standing(StopReason.MODEL, str(error))

    async def step(self) -> TrialResult | None:
        """Run one step: one generation states the belief in view of all results so far, and what to do next."""
        self.number += 1
        # Some time, at most a fifth of the whole, is left for the answer; more where the model is seen to be slow.
        reserve = max(min(self.settings.reserve, self.clock.seconds / 5), 1.5 * self.slowest)
        last = self.number >= self.steps or self.clock.left < reserve
        names = (SUBMIT,) if last else self.offer.named(self.allowed(self.number))
        unusable: list[Reply] = []
        problem = ""
        # An unusable reply is asked for again with what was wrong, a few times.
        for attempt in range(self.settings.retries + 1):
            request = self._request(names, attempt)
            reply = await self._ask(request)
            try:
                turn = read_reply(reply, self.offer, names)
                break
            except UnusableTurn as error:
                problem = str(error)
            unusable.insert(0, reply)
            self._believe(belief_in(reply, self.offer))
            self._add_unusable(reply, problem, names)
            if request.force is not None and not any(isinstance(m, ToolResult) for m in self.messages):
                # A call was asked for and none came, now or before: the model or its server has no tools.
                self.by_schema = True
                # Whole numbers are what a grammar can keep within bounds.
                self.offer = replace(self.offer, form=replace(self.offer.form, percent=True))
                scale = "" if self.offer.form.thresholds is not None else f"\n\n{IN_PERCENT}"
                self.messages.append(UserMessage(text=schema_prompt(self.offer) + scale))
            self._emit_tool(UNUSABLE, {"attempt": attempt + 1}, Observation(text=problem, failed=True))
        else:
            return await self._salvage(unusable, problem, last=tuple(names) == (SUBMIT,))
        notes = (*turn.notes, *self._believe(turn.statement))
        if self.offer.variant.belief and turn.statement is None:
            notes = (*notes, "updated_belief was missing: your last belief stands")
        if turn.final is not None:
            p = self.offer.form.coherent(turn.final.p)
            self._emit_tool(SUBMIT, {"p": p, "reason": turn.reason}, Observation(text="submitted"))
            return self._end(StopReason.SUBMITTED, p=p, distribution=turn.final.distribution, reason=turn.reason)
        return await self._act(self._pushed(turn), notes)

    def _request(self, names: Sequence[str], attempt: int) -> Request:
        """The request for a step: the conversation, and the tools or the schema."""
        request = replace(
            self.request, messages=tuple(self.messages), slot=f"{self.request.slot}/step {self.number}/{attempt}"
        )
        if self.by_schema:
            return replace(request, schema=self.offer.schema(names))
        # Asked freely at first: forcing a call switches the thinking of some models off.
        force = names[0] if len(names) == 1 else "*" if attempt else None
        return replace(request, tools=self.offer.tools, force=force)

    async def _ask(self, request: Request) -> Reply:
        """Ask the model; if the conversation exceeds its context, shorten the results so far and ask again."""
        began = self.clock.worked
        for length in (*SHORTER, None):
            try:
                return await self.model.complete(replace(request, messages=tuple(self.messages)))
            except ContextTooLong:
                if length is None:
                    raise
                opening = len(self.request.messages)
                self.messages[opening:] = [_cut(message, length) for message in self.messages[opening:]]
            finally:
                self.slowest = max(self.slowest, self.clock.worked - began)
        raise AssertionError("the last attempt returns or raises")

    def _add_unusable(self, reply: Reply, problem: str, names: Sequence[str]) -> None:
        """Add an unusable reply to the conversation, and what was wrong with it as the result of each of its calls."""
        calls = [
            call if call.id else replace(call, id=f"call_{n}") for n, call in enumerate(reply.calls[:MOST_ACTIONS])
        ]
        text = reply.text.strip()[:LONGEST_ECHO]
        if text or calls:
            spoken = tuple(map(readable_call, calls))
            self.messages.append(AssistantMessage(text=text, calls=spoken, sealed=reply.sealed if calls else ""))
        declined = DECLINED if reply.finish == "refusal" else ""
        shorter = " Be briefer: the reply was cut off." if reply.finish == "length" else ""
        text = f"{declined}Your reply could not be used: {problem}.{shorter} Call one of: {', '.join(names)}."
        for call in calls:
            self.messages.append(ToolResult(call_id=call.id, name=call.name, text=text))
        if not calls:
            self.messages.append(UserMessage(text=text))

    def _believe(self, statement: BeliefStatement | None) -> tuple[str, ...]:
        """Revise the belief by a statement and return notes for the model."""
        if statement is None:
            return ()
        sources = self.toolbox.sources.ids
        self.belief, notes = self.belief.revise(statement, self.offer.form, step=self.number - 1, sources=sources)
        self._emit_belief()
        return notes

    def _pushed(self, turn: AgentTurn) -> AgentTurn:
        """Apply an experiment's intervention: from now on the model's own past words state the other numbers."""
        form = self.offer.form
        if self.push is None or self.push.step != self.number or form.thresholds is not None:
            return turn
        self.belief = self.belief.overwrite(self.push.p, form)
        self._emit_belief()
        numbers = {form.field: form.write(self.belief.stated)}

        def restated(text: str) -> str:
            try:
                said = read_object(text)
            except UnusableTurn:
                return text
            belief = said.get(BELIEF)
            return json.dumps(
                {**said, BELIEF: {**(belief if isinstance(belief, dict) else {}), **numbers}}, ensure_ascii=False
            )

        actions = tuple(
            action
            if action.call is None
            else replace(action, call=replace(action.call, arguments=restated(action.call.arguments)))
            for action in turn.actions
        )
        changed = {action.call.id: action.call for action in actions if action.call is not None}
        calls = tuple(changed.get(call.id, call) for call in turn.spoken.calls)
        text = turn.spoken.text if calls else restated(turn.spoken.text)
        return replace(turn, actions=actions, spoken=AssistantMessage(text=text, calls=calls))

    async def _act(self, turn: AgentTurn, notes: Sequence[str]) -> TrialResult | None:
        """Carry out the actions and add their results to the conversation."""
        seen = await asyncio.gather(*(self._use(action) for action in turn.actions))
        for action, observation in zip(turn.actions, seen, strict=True):
            self._emit_tool(action.tool, action.arguments, observation or NO_BUDGET)
            self.tools_used += 1
            self.tools_failed += observation is not None and observation.failed
        results = [observation.text for observation in seen if observation is not None]
        if len(results) < len(seen):
            return self._standing(StopReason.BUDGET, "while a tool was at work")
        note = f"(Step {self.number} of {self.steps} is done" + "".join(f"; {n}" for n in notes) + ".)"
        results[-1] += f"\n\n{marked(note, seen[-1].mark if seen[-1] is not None else '')}"
        self.messages.append(turn.spoken)
        answers = dict(turn.refused)
        for action, text in zip(turn.actions, results, strict=True):
            if action.call is None:
                self.messages.append(UserMessage(text=f"{RESULT}{action.tool}:\n{text}"))
            else:
                answers[action.call.id] = text
        for call in turn.spoken.calls:
            self.messages.append(ToolResult(call_id=call.id, name=call.name, text=answers[call.id]))
        return None

    async def _use(self, action: AgentAction) -> Observation | None:
        """Use a tool and return its observation; None if the budget ran out meanwhile."""
        try:
            return await self.toolbox.use(action.tool, action.arguments)
        except BudgetExceeded:
            return None
        except ModelError as error:
            return Observation(text=f"{action.tool} failed: {for_prompt(str(error))}. Try another way.", failed=True)

    async def _salvage(self, unusable: Sequence[Reply], problem: str, *, last: bool) -> TrialResult:
        """Answer with the number in the model's text if it can be read in only one way, else with the current belief.

        If the model never formed one, it is asked a last time for the numbers alone: no tools, no belief and no
        conversation, only the question, what was found, and a schema that holds the numbers.
        """
        stop, stated = StopReason.SALVAGED, probability_in_text(unusable, self.offer.form)
        if stated is None and self.belief.origin != "model":
            offer = replace(self.offer, form=replace(self.offer.form, percent=True))
            results = [m.text for m in self.messages if isinstance(m, ToolResult)]
            results += [m.text for m in self.messages if isinstance(m, UserMessage) and m.text.startswith(RESULT)]
            shown = "\n\n".join(results)[-LONGEST_FOUND:]
            text = "\n\n".join(filter(None, [shown and f"What was found:\n{shown}", PLAINLY.format(offer.form.field)]))
            request = replace(
                self.request,
                messages=(*self.request.messages, UserMessage(text=text)),
                schema=offer.numbers_alone(),
                slot=f"{self.request.slot}/step {self.number}/plain",
            )
            stop = StopReason.PLAIN
            with suppress(ModelError):
                stated = probability_in_text([await self.model.complete(request)], offer.form)
        if stated is None:
            return self._standing(StopReason.STEPS if last and self.spoke else StopReason.UNUSABLE, problem)
        p = self.offer.form.coherent(stated.p)
        return self._end(stop, p=p, distribution=stated.distribution, detail=problem)

    def _standing(self, stop: StopReason, detail: str = "") -> TrialResult:
        """End with the current belief as the answer, unless nobody formed it.

        If the model failed, or money or time ran out before it stated anything, the price or base rate that the trial
        started from is not its forecast either.
        """
        belief = self.belief
        formed = self.spoke if stop in NEEDS_A_BELIEF else belief.formed
        p = belief.p if formed else None
        return self._end(stop, p=p, distribution=belief.distribution, reason=belief.reason, detail=detail)

    def _end(self, stop: StopReason, *, detail: str = "", **fields: Any) -> TrialResult:
        ending = ENDINGS.get(stop, "submitted")
        if self.tools_used and self.tools_failed == self.tools_used:
            # It was asked to research and could not: its number is what the model would have guessed anyway.
            ending, detail = "degraded", detail or NO_TOOL_WORKED.format(self.tools_used)
        return TrialResult(stop=stop, belief=self.belief, ending=ending, detail=detail, **fields)

    def _emit_tool(self, tool: str, arguments: Mapping[str, Any], seen: Observation) -> None:
        self.emit(
            ToolUsed(
                step=self.number,
                tool=tool,
                arguments=arguments,
                result=seen.text,
                sources=seen.source_ids,
                failed=seen.failed,
            )
        )

    def _emit_belief(self) -> None:
        belief = self.belief
        self.emit(BeliefRevised(step=belief.step, p=belief.p, reason=belief.reason, belief=belief.as_json()))


def _cut(message: Message, length: int) -> Message:
    """The message with its text cut to a length."""
    return message if len(message.text) <= length + len(CUT) else replace(message, text=message.text[:length] + CUT)
