"""Parses a model's reply into a turn that can be carried out, or an error that explains what is wrong with it."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property
from typing import Any, cast

from foretell.forecasters.agent.answer_format import AnswerFormat, StatedProbabilities, as_probability
from foretell.forecasters.agent.belief import (
    BELIEF,
    LONGEST_REASON,
    BeliefStatement,
    as_text,
    belief_schema,
    read_statement,
)
from foretell.forecasters.agent.settings import AgentVariant
from foretell.frozen import frozen
from foretell.models.model import AssistantMessage, Reply, ToolCall, ToolSpec
from foretell.models.structured_output import (
    LONGEST_REPLY,
    UnusableReply,
    closed_object,
    read_object,
    schema_errors,
    without_repeats,
)
from foretell.patterns import pattern
from foretell.tools.tool import SUBMIT

# What a model gets at a step: tools with the belief as an argument, or one schema with both.
# The schema of the belief is only in the last tool. In every tool, it took three quarters of the prompt.

TOOL = "tool"
ACTION = "action"
ACTIONS = "actions"
"""Fields of an answer by schema: an action or a list of actions, each with its `tool`."""

LONGEST_TEXT = 400
MOST_ITEMS = 5


@frozen
class AgentToolset:
    """The tools of one trial. They stay the same at every step, so that the prompt's prefix does too."""

    form: AnswerFormat
    variant: AgentVariant
    research: tuple[ToolSpec, ...] = ()
    """The tools of the toolbox; `submit` is added here."""

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The research tools and `submit`, each with the belief as its first argument if the variant has one."""
        research = tuple(spec for spec in self.research if spec.name != SUBMIT) if self.variant.tools else ()
        reason = {"type": "string", "description": "The case for this answer in two to five sentences."}
        own: dict[str, Any] = {"reason": reason, self.form.field: self.form.schema()}
        answer = "Give the final answer and end the research."
        if self.variant.belief and (self.form.many or self.variant.answer_in_belief):
            # The belief of the same call has the numbers; missing ones are taken from there.
            own = {} if self.variant.answer_in_belief else {"reason": reason}
            answer = f"Give the final answer, the `{self.form.field}` of your belief, and end the research."
        parameters = closed_object(own)
        plain = (*research, ToolSpec(name=SUBMIT, description=answer, parameters=parameters))
        if not self.variant.belief:
            return plain
        # With several calls in one reply, the text says where the belief stands.
        here = {"type": "object"} if self.variant.parallel else BELIEF_HERE
        return tuple(_with_belief(spec, belief_schema(self.form) if spec.name == SUBMIT else here) for spec in plain)

    @cached_property
    def by_name(self) -> Mapping[str, ToolSpec]:
        """The tools by name."""
        return {spec.name: spec for spec in self.tools}

    def named(self, allowed: Collection[str] | None = None) -> tuple[str, ...]:
        """Names of the tools offered at a step: all of them, or those the policy allows."""
        return tuple(name for name in self.by_name if allowed is None or name in allowed) or (SUBMIT,)

    def schema(self, names: Sequence[str]) -> dict[str, Any]:
        """JSON schema of an answer that holds action and belief, for models that are asked without tools."""
        actions = [_as_action(self.by_name[name]) for name in names]
        action = actions[0] if len(actions) == 1 else {"anyOf": actions}
        properties: dict[str, Any] = {BELIEF: belief_schema(self.form)} if self.variant.belief else {}
        if self.variant.parallel and len(names) > 1:
            properties[ACTIONS] = {"type": "array", "items": action, "minItems": 1}
        else:
            properties[ACTION] = action
        return without_repeats(_bounded(closed_object(properties)))

    def numbers_alone(self) -> dict[str, Any]:
        """JSON schema of the shortest possible answer, for a model that managed nothing else."""
        return without_repeats(closed_object({self.form.field: self.form.schema()}))


BELIEF_HERE = {"type": "object", "description": f"Where you stand now; its fields as in `{SUBMIT}`."}
"""Schema of the belief in all other tools. An open object: providers accept it, and parsing is lenient."""


def _with_belief(spec: ToolSpec, belief: Mapping[str, Any]) -> ToolSpec:
    """The same tool with the belief as first argument, so that it is stated before the action is chosen in detail."""
    own = spec.parameters
    parameters = {
        **own,
        "type": "object",
        "properties": {BELIEF: belief, **own.get("properties", {})},
        "required": [BELIEF, *own.get("required", ())],
    }
    return ToolSpec(name=spec.name, description=spec.description, parameters=parameters)


def _as_action(spec: ToolSpec) -> dict[str, Any]:
    # The text that lists the tools explains the arguments.
    own = {
        name: {key: part for key, part in value.items() if key != "description"}
        for name, value in spec.parameters.get("properties", {}).items()
        if name != BELIEF
    }
    required = [name for name in spec.parameters.get("required", ()) if name != BELIEF]
    action = closed_object({TOOL: {"type": "string", "enum": [spec.name]}, **own})
    return {**action, "required": [TOOL, *required]}


def _bounded(schema: Any) -> Any:
    """Return the schema with limits on all texts and lists: with a grammar, a small model may not stop by itself."""
    if isinstance(schema, list):
        return [_bounded(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _bounded(part) for name, part in cast("dict[str, Any]", schema).items()}
    if parts.get("type") == "string" and "enum" not in parts:
        return {"maxLength": LONGEST_TEXT, **parts}
    return {"maxItems": MOST_ITEMS, **parts} if parts.get("type") == "array" else parts


MOST_ACTIONS = 8
NOT_RUN = "Not run: {}."


UnusableTurn = UnusableReply
"""The reply cannot be carried out; the model is sent the message."""


@frozen
class AgentAction:
    """One tool with its arguments, without the belief that was among them."""

    tool: str
    arguments: dict[str, Any]
    call: ToolCall | None = None
    """The call as the model made it; None if the model wrote the action as text."""
    belief: Any = None


@frozen
class AgentTurn:
    """The parsed reply of the model at one step."""

    actions: tuple[AgentAction, ...]
    """One action; several only if the variant runs them at once."""
    message: AssistantMessage
    """The message for the history, with every call that was made: providers require an answer to each of them."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reasons by call id, for calls that are not carried out."""
    statement: BeliefStatement | None = None
    final: StatedProbabilities | None = None
    """The final answer, if the action is to submit."""
    reason: str = ""
    notes: tuple[str, ...] = ()


def read_reply(reply: Reply, toolset: AgentToolset, names: Sequence[str]) -> AgentTurn:
    """Parse a reply into a turn, given the tools offered. Raises `UnusableTurn` if it cannot be used."""
    proposals = _proposals(reply, names)[:MOST_ACTIONS]
    checked = [_checked(action, toolset, names) for action in proposals]
    usable = [action for action in checked if isinstance(action, AgentAction)]
    if not usable:
        raise UnusableTurn("; ".join(str(problem) for problem in checked))
    # A submission beside other calls would come before their results.
    actions = [action for action in usable if action.tool != SUBMIT] or usable[:1]
    most = toolset.variant.calls if toolset.variant.parallel else 1
    actions = actions[:most]
    limit = "one call at a time" if most in (None, 1) else f"at most {most} calls at a time"
    refused = {
        action.call.id: NOT_RUN.format(limit if isinstance(outcome, AgentAction) else outcome)
        for action, outcome in zip(proposals, checked, strict=True)
        if action.call is not None and outcome not in actions
    }
    notes = [str(outcome) for outcome in checked if not isinstance(outcome, AgentAction)]
    if len(usable) > len(actions):
        notes.append(f"{limit}: only {', '.join(action.tool for action in actions)} was run")
    calls = tuple(readable_call(action.call) for action in proposals if action.call is not None)
    message = AssistantMessage(text=reply.text[:LONGEST_REPLY], calls=calls, sealed=reply.sealed)
    beliefs = [action.belief for action in actions if action.belief is not None]
    stated = next(filter(None, beliefs), beliefs[0] if beliefs else None)
    statement = read_statement(stated, toolset.form) if toolset.variant.belief else None
    turn = AgentTurn(actions=tuple(actions), message=message, refused=refused, statement=statement, notes=tuple(notes))
    return _answered(turn, toolset) if actions[0].tool == SUBMIT else turn


def belief_in(reply: Reply, toolset: AgentToolset) -> BeliefStatement | None:
    """Return the numbers in a reply whose action could not be used; the next reply must state its evidence again."""
    if not toolset.variant.belief:
        return None
    for text in (*(call.arguments for call in reply.calls), reply.text):
        try:
            statement = read_statement(read_object(text).get(BELIEF), toolset.form)
        except UnusableTurn:
            continue
        if statement is not None and statement.stated.p:
            return replace(statement, evidence_for=(), evidence_against=(), retracted=())
    return None


def _proposals(reply: Reply, names: Sequence[str]) -> list[AgentAction]:
    """Return all actions in the reply, unchecked; the arguments of calls are not parsed yet."""
    if reply.calls:
        calls = [call if call.id else replace(call, id=f"call_{n}") for n, call in enumerate(reply.calls)]
        return [AgentAction(tool=call.name, arguments={}, call=call) for call in calls]
    if reply.finish == "refusal":
        raise UnusableTurn("it was declined")
    if not reply.text.strip():
        raise UnusableTurn("it was empty" + (" because the length limit was reached" * (reply.finish == "length")))
    try:
        return _actions_in_text(read_object(reply.text), names)
    except UnusableTurn as problem:
        raise UnusableTurn(f"it called no tool, and in its text {problem}") from None


def _actions_in_text(reply: dict[str, Any], names: Sequence[str]) -> list[AgentAction]:
    """Parse actions from a JSON text: by our schema, or in the forms in which models often write a call as text."""
    many, belief = reply.get(ACTIONS) or reply.get(ACTION) or reply, reply.get(BELIEF)
    actions: list[AgentAction] = []
    for item in cast("list[Any]", many) if isinstance(many, list) else [many]:
        fields = dict(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else {}
        name = next((fields.pop(key) for key in (TOOL, "name") if isinstance(fields.get(key), str)), None)
        if name is not None:
            keys = ("arguments", "parameters", "args")
            inner = next((fields[key] for key in keys if isinstance(fields.get(key), dict)), fields)
            actions.append(AgentAction(tool=name, arguments=inner, belief=inner.get(BELIEF, belief)))
    if not actions and tuple(names) == (SUBMIT,):
        actions = [AgentAction(tool=SUBMIT, arguments=reply, belief=belief)]
    if not actions:
        raise UnusableTurn(f"no `{TOOL}` is named")
    return actions


def readable_call(call: ToolCall) -> ToolCall:
    """Return the call for the history, with invalid arguments wrapped in an object: some providers reject them."""
    try:
        read_object(call.arguments or "{}")
    except UnusableTurn:
        return replace(call, arguments=json.dumps({"unreadable": call.arguments[:LONGEST_TEXT]}))
    return call


def _checked(action: AgentAction, toolset: AgentToolset, names: Sequence[str]) -> AgentAction | UnusableTurn:
    """Return the action if it can be carried out, else the error."""
    try:
        return _checked_one(action, toolset, names)
    except UnusableTurn as problem:
        return problem


def _checked_one(action: AgentAction, toolset: AgentToolset, names: Sequence[str]) -> AgentAction:
    if action.tool not in names:
        raise UnusableTurn(f"there is no tool {action.tool[:60]!r} at this step; there is {', '.join(names)}")
    try:
        arguments = read_object(action.call.arguments or "{}") if action.call else dict(action.arguments)
    except UnusableTurn as problem:
        raise UnusableTurn(f"the arguments of {action.tool} cannot be used: {problem}") from None
    belief = arguments.pop(BELIEF, action.belief)
    shape = toolset.by_name[action.tool].parameters
    known: Mapping[str, Any] = {name: part for name, part in shape.get("properties", {}).items() if name != BELIEF}
    if action.tool != SUBMIT:
        arguments = {name: value for name, value in arguments.items() if name in known}
        required = [name for name in shape.get("required", ()) if name != BELIEF]
        if wrong := schema_errors(arguments, {**shape, "properties": known, "required": required}):
            raise UnusableTurn(f"the arguments of {action.tool} cannot be used: {'; '.join(wrong)}")
    return AgentAction(tool=action.tool, arguments=arguments, call=action.call, belief=belief)


def _answered(turn: AgentTurn, toolset: AgentToolset) -> AgentTurn:
    """Return the turn with its answer. Numbers missing there are taken from the belief in the same reply."""
    action = turn.actions[0]
    final = toolset.form.read(action.arguments)
    if turn.statement is not None and toolset.form.missing(final.p):
        stated = turn.statement.stated
        final = StatedProbabilities(
            p={**stated.p, **final.p}, distribution=final.distribution or stated.distribution, problems=final.problems
        )
    if toolset.form.missing(final.p):
        raise UnusableTurn(f"the answer is not complete: {'; '.join(final.problems)}")
    reason = as_text(action.arguments.get("reason"))[:LONGEST_REASON]
    if not reason and toolset.variant.answer_in_belief and turn.statement is not None:
        reason = turn.statement.reason
    return replace(turn, final=final, reason=reason)


# The last resort before a trial fails: a probability in plain text, if it is unambiguous.

_NUMBER = r"(?<![\d.])(\d{1,3}(?:\.\d+)?\s*%|0?\.\d+|1\.0+)(?![\d.]*\d)"
_SAID = pattern(
    r"""\b(?:probability|chance|likelihood|p|(?:my|final)\s+(?:answer|forecast|estimate|prediction))\b["'*]*"""
    r"""(?:\s+(?:of|that|for|it|this|yes|resolves?|is|at|to|be|would|about|around|roughly))*"""
    rf"""\s*[=:≈~]?\s*["'*]*\s*{_NUMBER}""",
    re.IGNORECASE,
)
_NEAR = pattern(rf"\b(?:probability|chance|likelihood|odds)[^.\d%]{{0,60}}{_NUMBER}", re.IGNORECASE)
"""Not used as a statement of a probability, but a second number here makes the text ambiguous."""
_CHANCE = pattern(rf"{_NUMBER}\s+(?:chance|probability|likelihood)\b", re.IGNORECASE)
_ALONE = pattern(rf"[\s*`\"]*{_NUMBER}[\s*`\".]*")


def probability_in_text(
    replies: Iterable[Reply], form: AnswerFormat, *, in_belief: bool = False
) -> StatedProbabilities | None:
    """Return the numbers of the first reply that states every target unambiguously; pass the latest reply first.

    With `in_belief`, an answer may state them in its belief alone.

    >>> from foretell.questions.question import Question, Target
    >>> q = Question(id="q", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> probability_in_text([Reply(text="I put the probability at 35% for now.")], AnswerFormat.of(q)).p
    {'yes': 0.35}
    """
    for reply in replies:
        for text in (*(call.arguments for call in reply.calls), reply.text):
            with suppress(UnusableTurn):
                answer = read_object(text)
                belief = answer.get(BELIEF)
                for place in (answer, belief) if in_belief and isinstance(belief, dict) else (answer,):
                    stated = form.read(place)
                    if not form.missing(stated.p):
                        return stated
        if (words := _in_words(reply.text, form)) is not None:
            return words
    return None


def _in_words(text: str, form: AnswerFormat) -> StatedProbabilities | None:
    """Return the probability stated in prose; None with several targets, where it would be ambiguous."""
    if len(form.targets) != 1 or form.thresholds is not None:
        return None
    text = text[:LONGEST_REPLY]
    alone = _ALONE.fullmatch(text)
    matches = [alone[1]] if alone else [*_SAID.findall(text), *_CHANCE.findall(text)]
    try:
        numbers = {as_probability(number) for number in [*matches, *_NEAR.findall(text)]} if matches else set[float]()
    except ValueError:
        return None
    target = next(iter(form.targets.values()))
    return StatedProbabilities(p={target: numbers.pop()}) if len(numbers) == 1 else None
