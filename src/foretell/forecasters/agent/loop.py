"""The agent loop: ask, revise the belief, act, until an answer is submitted or a limit is reached."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from foretell.forecasters.agent.actions import (
    MOST_ACTIONS,
    AgentAction,
    AgentToolset,
    AgentTurn,
    UnusableTurn,
    belief_in,
    probability_in_text,
    read_reply,
    readable_call,
)
from foretell.forecasters.agent.answer_format import StatedProbabilities
from foretell.forecasters.agent.belief import BELIEF, Belief, BeliefStatement
from foretell.forecasters.agent.prompts import schema_prompt
from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.early_stop import early_stop
from foretell.frozen import frozen
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
from foretell.models.structured_output import read_object
from foretell.models.waiting import MORE_SECONDS, USUAL_SECONDS, WorkClock
from foretell.questions.forecast import Ending, Numeric
from foretell.questions.trace import BeliefRevised, EmitEvent, QuestionShown, ToolUsed
from foretell.tools.leakage_filter import FetchedResult, FilteredTools, Observation, failed_result
from foretell.tools.marks import marked
from foretell.tools.tool import SUBMIT

LONGEST_ECHO = 2000
LONGEST_RESULTS = 12_000
RESULT = "Result of "
DECLINED = (
    "This is a forecast from public information: nobody is advised or harmed by it, and a rough probability is better "
    "than none. "
)
UNUSABLE = "(unusable reply)"
"""Used in place of the tool in the event of an unusable reply."""
NUMBERS_ONLY = "Leave the tools aside. Answer now with one JSON object that holds nothing but `{}`, your best numbers."
NO_BUDGET = Observation(text="the budget is spent", failed=True)
CURRENT_ESTIMATE = "current estimate"


class StopReason(StrEnum):
    """Why the loop stopped, as recorded in `ForecastMade.how`."""

    SUBMITTED = "submitted"
    PLAIN = "stated when asked for the numbers alone"
    SALVAGED = "read from the model's text"
    STEPS = f"{CURRENT_ESTIMATE} at the step limit"
    TIME = f"{CURRENT_ESTIMATE} at the time limit"
    BUDGET = f"{CURRENT_ESTIMATE} at the budget"
    STOPPED = f"{CURRENT_ESTIMATE} when it was stopped early"
    UNUSABLE = f"{CURRENT_ESTIMATE} after unusable replies"
    MODEL = f"{CURRENT_ESTIMATE} after the model failed"
    BYPASS = "series model, no language model asked"


ENDINGS: Mapping[StopReason, Ending] = {
    StopReason.PLAIN: "salvaged",
    StopReason.SALVAGED: "salvaged",
    StopReason.STEPS: "limit",
    StopReason.TIME: "limit",
    StopReason.BUDGET: "limit",
    StopReason.STOPPED: "stopped",
    StopReason.UNUSABLE: "fallback",
    StopReason.MODEL: "fallback",
}
"""How a trial ended, by reason; with any other reason it submitted its answer."""
NEEDS_STATED_BELIEF = (StopReason.MODEL, StopReason.BUDGET, StopReason.TIME)
"""Stop reasons that yield a forecast only if the model itself had stated a belief."""
SHORTER = (4_000, 1_000, 250)
"""Lengths in characters to which messages are cut, in turn, if the conversation exceeds the model's context."""
CUT = " … (cut: the conversation is longer than the model can read)"
IN_PERCENT = "Probabilities are whole numbers from 0 to 100 from now on, in percent."
NO_TOOL_WORKED = "no tool worked: all {} calls failed"


@frozen
class TrialResult:
    """The result of a trial, before clamping."""

    stop: StopReason
    belief: Belief
    p: Mapping[str, float] | None
    """Probability by target id; None if the trial failed because none was ever stated."""
    distribution: Numeric | None = None
    reason: str = ""
    detail: str = ""
    """What went wrong, if anything did."""
    ending: Ending = "submitted"
    submitted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The arguments of `submit`, if it was called."""


@frozen
class BeliefIntervention:
    """An experiment that replaces the probabilities after the model states its belief at a step.

    Not for numeric questions, whose answers are quantiles.
    """

    step: int
    p: Mapping[str, float]


@dataclass(kw_only=True)
class AgentTrial:
    """One run of the loop: its inputs, and its state (conversation, belief and step)."""

    request: Request
    """Model, sampling and slot; the messages are the opening of the conversation."""
    toolset: AgentToolset
    belief: Belief
    model: Model
    toolbox: FilteredTools
    emit: EmitEvent
    settings: AgentSettings = field(default_factory=AgentSettings)
    allowed: Callable[[int], Collection[str] | None] = lambda _: None
    """Names of the tools allowed at a step if the policy restricts them; None allows all."""
    must_end: Callable[[], bool] = lambda: False
    """Whether the next reply must be the last, because the trial's share of a budget is nearly spent."""
    push: BeliefIntervention | None = None
    number: int = field(default=0, init=False)
    """The number of the current step."""
    messages: list[Message] = field(init=False)
    """The conversation. Normally messages are only appended, so that requests share their prefix."""
    clock: WorkClock = field(init=False)
    """The time limit of the trial; a slow model gets more time, unless the settings state a limit."""
    tools_used: int = field(default=0, init=False)
    tools_failed: int = field(default=0, init=False)
    by_schema: bool = field(default=False, init=False)
    """Whether the model is asked for JSON, because of the settings or because it ignored a forced tool call."""
    slowest: float = field(default=0.0, init=False)
    """Duration of the slowest reply, in seconds."""
    last_results: dict[int, Observation] = field(default_factory=dict[int, Observation], init=False)
    """The results that only the next reply sees in full, by the place of their messages."""

    def __post_init__(self) -> None:
        if not isinstance(self.toolbox, FilteredTools):  # pyright: ignore[reportUnnecessaryIsInstance] - also checked at run time
            raise TypeError(f"the loop accepts only a filtered toolbox, not {type(self.toolbox).__name__}")
        self.messages = list(self.request.messages)
        seconds = self.settings.seconds
        self.clock = WorkClock(USUAL_SECONDS, replies=self.steps) if seconds is None else WorkClock(seconds)
        self.by_schema = self.settings.reply_format == "schema"

    @property
    def steps(self) -> int:
        """Maximum number of generations: that of the variant, within the limit of the settings."""
        return min(self.settings.steps, self.toolset.variant.steps or self.settings.steps)

    @property
    def stated_belief(self) -> bool:
        """Whether the model has stated a belief. Before that, the belief is the initial price or base rate."""
        return self.belief.origin in ("model", "overwritten")

    async def run(self) -> TrialResult:
        """Run steps until one ends the trial. Errors of the model and limits also give a result."""
        stop = early_stop()
        self.emit(QuestionShown(text=self.request.messages[-1].text))
        try:
            async with self.clock:
                with stop.answers(self.clock):
                    while (ending := await self.step()) is None:
                        if stop.wish == "answer":
                            return self._end_with_belief(StopReason.STOPPED)
                    return ending
        except TimeoutError:
            if not self.clock.expired:
                return self._end_with_belief(StopReason.MODEL)
            if stop.wish == "answer":
                return self._end_with_belief(StopReason.STOPPED)
            return self._end_with_belief(StopReason.TIME, MORE_SECONDS.format(self.clock.seconds))
        except BudgetExceeded as spent:
            return self._end_with_belief(StopReason.BUDGET, str(spent))
        except ModelError as error:
            return self._end_with_belief(StopReason.MODEL, str(error))

    async def step(self) -> TrialResult | None:
        """Run one step: the model states its belief given all results so far, and the next action."""
        self.number += 1
        # Some time, at most a fifth of the whole, is reserved for the answer, and more if the model is slow.
        reserve = max(min(self.settings.reserve, self.clock.seconds / 5), 1.5 * self.slowest)
        last = self.number >= self.steps or self.clock.left < reserve or self.must_end()
        names = (SUBMIT,) if last else self.toolset.named(self.allowed(self.number))
        unusable: list[Reply] = []
        problem = ""
        # After an unusable reply, the model is asked again with the error, a few times.
        for attempt in range(self.settings.retries + 1):
            request = self._request(names, attempt)
            reply = await self._ask(request)
            try:
                turn = read_reply(reply, self.toolset, names)
                break
            except UnusableTurn as error:
                problem = str(error)
            unusable.insert(0, reply)
            self._believe(belief_in(reply, self.toolset))
            self._add_unusable(reply, problem, names)
            if request.force is not None and not any(isinstance(m, ToolResult) for m in self.messages):
                # The model never called a tool, although forced to: it or its server does not support tools.
                self.by_schema = True
                # A grammar can enforce bounds only for whole numbers.
                self.toolset = replace(self.toolset, form=replace(self.toolset.form, percent=True))
                scale = "" if self.toolset.form.thresholds is not None else f"\n\n{IN_PERCENT}"
                self.messages.append(UserMessage(text=schema_prompt(self.toolset) + scale))
            self._emit_tool(UNUSABLE, {"attempt": attempt + 1}, Observation(text=problem, failed=True))
        else:
            return await self._salvage(unusable, problem, last=tuple(names) == (SUBMIT,))
        notes = (*turn.notes, *self._believe(turn.statement))
        if self.toolset.variant.belief and turn.statement is None:
            notes = (*notes, "updated_belief was missing: your last belief stands")
        if turn.final is not None:
            p = self.toolset.form.coherent(turn.final.p)
            self._emit_tool(SUBMIT, {"p": p, "reason": turn.reason}, Observation(text="submitted"))
            return self._end(
                StopReason.SUBMITTED,
                p=p,
                distribution=turn.final.distribution,
                reason=turn.reason,
                submitted=turn.actions[0].arguments,
            )
        return await self._act(self._pushed(turn), notes)

    def _request(self, names: Sequence[str], attempt: int) -> Request:
        """Return the request for a step: the conversation, and the tools or the schema."""
        request = replace(
            self.request, messages=tuple(self.messages), slot=f"{self.request.slot}/step {self.number}/{attempt}"
        )
        if self.by_schema:
            return replace(request, schema=self.toolset.schema(names))
        # No call is forced at first, because that disables the reasoning of some models.
        force = names[0] if len(names) == 1 else "*" if attempt else None
        return replace(request, tools=self.toolset.tools, force=force)

    async def _ask(self, request: Request) -> Reply:
        """Ask the model; if the conversation exceeds its context, shorten the results so far and ask again."""
        start = self.clock.worked
        for length in (*SHORTER, None):
            try:
                return await self.model.complete(replace(request, messages=tuple(self.messages)))
            except ContextTooLong:
                if length is None:
                    raise
                opening = len(self.request.messages)
                self.messages[opening:] = [_cut(message, length) for message in self.messages[opening:]]
            finally:
                self.slowest = max(self.slowest, self.clock.worked - start)
        raise AssertionError("the last attempt returns or raises")

    def _add_unusable(self, reply: Reply, problem: str, names: Sequence[str]) -> None:
        """Add an unusable reply to the conversation, with the problem as the result of each of its calls."""
        calls = [
            call if call.id else replace(call, id=f"call_{n}") for n, call in enumerate(reply.calls[:MOST_ACTIONS])
        ]
        text = reply.text.strip()[:LONGEST_ECHO]
        if text or calls:
            readable = tuple(map(readable_call, calls))
            self.messages.append(AssistantMessage(text=text, calls=readable, sealed=reply.sealed if calls else ""))
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
        self.belief, notes = self.belief.revise(statement, self.toolset.form, step=self.number - 1, sources=sources)
        self._emit_belief()
        return notes

    def _pushed(self, turn: AgentTurn) -> AgentTurn:
        """Apply an experiment's intervention: the model's own messages then state the other numbers."""
        form = self.toolset.form
        if self.push is None or self.push.step != self.number or form.thresholds is not None:
            return turn
        self.belief = self.belief.overwrite(self.push.p, form)
        self._emit_belief()
        numbers = {form.field: form.write(self.belief.stated)}

        def restated(text: str) -> str:
            try:
                reply = read_object(text)
            except UnusableTurn:
                return text
            belief = reply.get(BELIEF)
            return json.dumps(
                {**reply, BELIEF: {**(belief if isinstance(belief, dict) else {}), **numbers}}, ensure_ascii=False
            )

        actions = tuple(
            action
            if action.call is None
            else replace(action, call=replace(action.call, arguments=restated(action.call.arguments)))
            for action in turn.actions
        )
        changed = {action.call.id: action.call for action in actions if action.call is not None}
        calls = tuple(changed.get(call.id, call) for call in turn.message.calls)
        text = turn.message.text if calls else restated(turn.message.text)
        return replace(turn, actions=actions, message=AssistantMessage(text=text, calls=calls))

    async def _act(self, turn: AgentTurn, notes: Sequence[str]) -> TrialResult | None:
        """Carry out the actions and add their results to the conversation."""
        fetched = await asyncio.gather(*(self._fetch(action) for action in turn.actions))
        # Ids are given in the order of the calls, however they ended.
        seen = [None if result is None else self.toolbox.present(result) for result in fetched]
        for action, result, observation in zip(turn.actions, fetched, seen, strict=True):
            self._emit_tool(action.tool, action.arguments, observation or NO_BUDGET, result)
            self.tools_used += 1
            self.tools_failed += observation is not None and observation.failed
        results = [observation.text for observation in seen if observation is not None]
        if len(results) < len(seen):
            return self._end_with_belief(StopReason.BUDGET, "while a tool was at work")
        if turn.statement is not None:
            self._shorten_results()
        note = f"(Step {self.number} of {self.steps} is done" + "".join(f"; {n}" for n in notes) + ".)"
        results[-1] += f"\n\n{marked(note, seen[-1].mark if seen[-1] is not None else '')}"
        self.messages.append(turn.message)
        answers = dict(turn.refused)
        shown: dict[str, Observation] = {}
        for action, text, observation in zip(turn.actions, results, filter(None, seen), strict=True):
            if action.call is None:
                self.last_results[len(self.messages)] = observation
                self.messages.append(UserMessage(text=f"{RESULT}{action.tool}:\n{text}"))
            else:
                answers[action.call.id], shown[action.call.id] = text, observation
        for call in turn.message.calls:
            if call.id in shown:
                self.last_results[len(self.messages)] = shown[call.id]
            self.messages.append(ToolResult(call_id=call.id, name=call.name, text=answers[call.id]))
        return None

    def _shorten_results(self) -> None:
        """Leave out the text of results that were read by now and are not cited, if the reading style says so.

        A message is changed at most once, so that requests still share most of their prefix.
        """
        cited = {item.source_id for item in (*self.belief.evidence_for, *self.belief.evidence_against)}
        for place, seen in self.last_results.items():
            message = self.messages[place]
            text = message.text.replace(seen.text, self.toolbox.shortened(seen, cited), 1)
            self.messages[place] = replace(message, text=text)
        self.last_results.clear()

    async def _fetch(self, action: AgentAction) -> FetchedResult | None:
        """Use a tool and return its result; None if the budget ran out meanwhile."""
        try:
            return await self.toolbox.fetch(action.tool, action.arguments)
        except BudgetExceeded:
            return None
        except ModelError as error:
            return failed_result(action.tool, action.arguments, error)

    async def _salvage(self, unusable: Sequence[Reply], problem: str, *, last: bool) -> TrialResult:
        """Answer with the number in the model's text if it is unambiguous, else with the current belief.

        If the model never stated a belief, it is asked once more for the numbers alone. That request has the question,
        the results so far and a schema of the numbers, but no tools, belief or conversation.
        """
        stop, stated = StopReason.SALVAGED, self._stated_in(unusable)
        if stated is None and self.belief.origin != "model":
            toolset = replace(self.toolset, form=replace(self.toolset.form, percent=True))
            results = [m.text for m in self.messages if isinstance(m, ToolResult)]
            results += [m.text for m in self.messages if isinstance(m, UserMessage) and m.text.startswith(RESULT)]
            shown = "\n\n".join(results)[-LONGEST_RESULTS:]
            scale = "" if toolset.form.thresholds is not None else f" {IN_PERCENT}"
            asked = NUMBERS_ONLY.format(toolset.form.field) + scale
            text = "\n\n".join(filter(None, [shown and f"What was found:\n{shown}", asked]))
            request = replace(
                self.request,
                messages=(*self.request.messages, UserMessage(text=text)),
                schema=toolset.numbers_alone(),
                slot=f"{self.request.slot}/step {self.number}/plain",
            )
            stop = StopReason.PLAIN
            with suppress(ModelError):
                stated = probability_in_text([await self.model.complete(request)], toolset.form)
        if stated is None:
            return self._end_with_belief(
                StopReason.STEPS if last and self.stated_belief else StopReason.UNUSABLE, problem
            )
        p = self.toolset.form.coherent(stated.p)
        return self._end(stop, p=p, distribution=stated.distribution, detail=problem)

    def _stated_in(self, replies: Sequence[Reply]) -> StatedProbabilities | None:
        return probability_in_text(replies, self.toolset.form, in_belief=self.toolset.variant.answer_in_belief)

    def _end_with_belief(self, stop: StopReason, detail: str = "") -> TrialResult:
        """End with the current belief as the answer, if it was stated.

        The initial price or base rate is not an answer if the model failed, or if the budget or time ran out before it
        stated a belief.
        """
        belief = self.belief
        formed = self.stated_belief if stop in NEEDS_STATED_BELIEF else belief.formed
        p = belief.p if formed else None
        return self._end(stop, p=p, distribution=belief.distribution, reason=belief.reason, detail=detail)

    def _end(self, stop: StopReason, *, detail: str = "", **fields: Any) -> TrialResult:
        ending = ENDINGS.get(stop, "submitted")
        if self.tools_used and self.tools_failed == self.tools_used:
            # Without any research, the number is only the model's guess.
            ending, detail = "fallback", detail or NO_TOOL_WORKED.format(self.tools_used)
        return TrialResult(stop=stop, belief=self.belief, ending=ending, detail=detail, **fields)

    def _emit_tool(
        self, tool: str, arguments: Mapping[str, Any], seen: Observation, fetched: FetchedResult | None = None
    ) -> None:
        used = ToolUsed(
            step=self.number,
            tool=tool,
            arguments=arguments,
            result=seen.text,
            sources=seen.source_ids,
            failed=seen.failed,
        )
        self.emit(used if fetched is None or fetched.at is None else used.timed(fetched.at, fetched.seconds))

    def _emit_belief(self) -> None:
        belief = self.belief
        self.emit(BeliefRevised(step=belief.step, p=belief.p, reason=belief.reason, belief=belief.as_json()))


def _cut(message: Message, length: int) -> Message:
    """Return the message with its text cut to a length."""
    return message if len(message.text) <= length + len(CUT) else replace(message, text=message.text[:length] + CUT)
