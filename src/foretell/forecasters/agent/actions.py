"""Parses a model's reply into a turn that can be carried out, or an explanation of what was wrong with it."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from foretell.models.model import AssistantMessage, Reply, ToolCall, ToolSpec
from foretell.models.structured_output import (
    LONGEST_REPLY,
    UnusableReply,
    closed_object,
    read_object,
    schema_errors,
    without_repeats,
)
from foretell.tools.tool import SUBMIT

# What a model is offered at a step: tools with the belief as an argument, or one schema that holds both.
# The belief is defined once, in the last tool: sent with each, it was three quarters of the prompt.

TOOL = "tool"
ACTION = "action"
ACTIONS = "actions"
"""Fields of an answer by schema: the belief, and one action or a list of them, each naming its `tool`."""

LONGEST_TEXT = 400
MOST_ITEMS = 5


@dataclass(frozen=True, kw_only=True)
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
        numbers = {self.form.field: self.form.schema()}
        answer = "Give the final answer and end the research."
        if self.variant.belief and self.form.many:
            # They stand in the belief of the same call, from which missing ones are taken.
            numbers, answer = (
                {},
                f"Give the final answer, the `{self.form.field}` of your belief, and end the research.",
            )
        parameters = closed_object({"reason": reason, **numbers})
        plain = (*research, ToolSpec(name=SUBMIT, description=answer, parameters=parameters))
        if not self.variant.belief:
            return plain
        return tuple(
            _with_belief(spec, belief_schema(self.form) if spec.name == SUBMIT else BELIEF_HERE) for spec in plain
        )

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
        one = actions[0] if len(actions) == 1 else {"anyOf": actions}
        properties: dict[str, Any] = {BELIEF: belief_schema(self.form)} if self.variant.belief else {}
        if self.variant.parallel and len(names) > 1:
            properties[ACTIONS] = {"type": "array", "items": one, "minItems": 1}
        else:
            properties[ACTION] = one
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
    # What the arguments mean is in the text that lists the tools.
    own = {
        name: {key: said for key, said in value.items() if key != "description"}
        for name, value in spec.parameters.get("properties", {}).items()
        if name != BELIEF
    }
    required = [name for name in spec.parameters.get("required", ()) if name != BELIEF]
    action = closed_object({TOOL: {"type": "string", "enum": [spec.name]}, **own})
    return {**action, "required": [TOOL, *required]}


def _bounded(schema: Any) -> Any:
    """The same schema with limits on every text and list: a small model held by a grammar may never stop by itself."""
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
"""A reply cannot be carried out; the message tells the model why."""


@dataclass(frozen=True, kw_only=True)
class AgentAction:
    """One tool with its arguments; the belief that came with them has been taken out."""

    tool: str
    arguments: dict[str, Any]
    call: ToolCall | None = None
    """The call as the model made it; None if the model wrote the action as text."""
    belief: Any = None


@dataclass(frozen=True, kw_only=True)
class AgentTurn:
    """The parsed reply of the model at one step."""

    actions: tuple[AgentAction, ...]
    """One action; several only if the variant runs them at once."""
    spoken: AssistantMessage
    """The message for the history, with every call that was made: providers require an answer to each of them."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each call that is not carried out, the reason by call id."""
    statement: BeliefStatement | None = None
    final: StatedProbabilities | None = None
    """The final answer, if the action is to submit."""
    reason: str = ""
    notes: tuple[str, ...] = ()


def read_reply(reply: Reply, offer: AgentToolset, names: Sequence[str]) -> AgentTurn:
    """Parse a reply into a turn, given the tools offered; raise `UnusableTurn` if there is none."""
    proposals = _proposals(reply, names)[:MOST_ACTIONS]
    checked = [_checked(action, offer, names) for action in proposals]
    usable = [action for action in checked if isinstance(action, AgentAction)]
    if not usable:
        raise UnusableTurn("; ".join(str(problem) for problem in checked))
    # To submit beside other calls would be to answer before their results are there.
    actions = [action for action in usable if action.tool != SUBMIT] or usable[:1]
    actions = actions if offer.variant.parallel else actions[:1]
    refused = {
        action.call.id: NOT_RUN.format("one call at a time" if isinstance(one, AgentAction) else one)
        for action, one in zip(proposals, checked, strict=True)
        if action.call is not None and one not in actions
    }
    notes = [str(one) for one in checked if not isinstance(one, AgentAction)]
    if len(usable) > len(actions):
        notes.append(f"one call at a time: only {actions[0].tool} was run")
    calls = tuple(readable_call(action.call) for action in proposals if action.call is not None)
    spoken = AssistantMessage(text=reply.text[:LONGEST_REPLY], calls=calls, sealed=reply.sealed)
    stated = next((action.belief for action in actions if action.belief is not None), None)
    statement = read_statement(stated, offer.form) if offer.variant.belief else None
    turn = AgentTurn(actions=tuple(actions), spoken=spoken, refused=refused, statement=statement, notes=tuple(notes))
    return _answered(turn, offer) if actions[0].tool == SUBMIT else turn


def belief_in(reply: Reply, offer: AgentToolset) -> BeliefStatement | None:
    """The numbers in a reply whose action could not be used; the next reply has to state its evidence again."""
    if not offer.variant.belief:
        return None
    for text in (*(call.arguments for call in reply.calls), reply.text):
        try:
            statement = read_statement(read_object(text).get(BELIEF), offer.form)
        except UnusableTurn:
            continue
        if statement is not None and statement.stated.p:
            return replace(statement, evidence_for=(), evidence_against=(), retracted=())
    return None


def _proposals(reply: Reply, names: Sequence[str]) -> list[AgentAction]:
    """All actions the reply asks for, unchecked; the arguments of a call are not parsed yet."""
    if reply.calls:
        calls = [call if call.id else replace(call, id=f"call_{n}") for n, call in enumerate(reply.calls)]
        return [AgentAction(tool=call.name, arguments={}, call=call) for call in calls]
    if reply.finish == "refusal":
        raise UnusableTurn("it was declined")
    if not reply.text.strip():
        raise UnusableTurn("it was empty" + (" because the length limit was reached" * (reply.finish == "length")))
    try:
        return _written(read_object(reply.text), names)
    except UnusableTurn as problem:
        raise UnusableTurn(f"it called no tool, and in its text {problem}") from None


def _written(said: dict[str, Any], names: Sequence[str]) -> list[AgentAction]:
    """Actions in a JSON text: by our schema, or in the forms that models often use when they write a call out."""
    many, belief = said.get(ACTIONS) or said.get(ACTION) or said, said.get(BELIEF)
    actions: list[AgentAction] = []
    for one in cast("list[Any]", many) if isinstance(many, list) else [many]:
        written = dict(cast("Mapping[str, Any]", one)) if isinstance(one, Mapping) else {}
        name = next((written.pop(key) for key in (TOOL, "name") if isinstance(written.get(key), str)), None)
        if name is not None:
            keys = ("arguments", "parameters", "args")
            inner = next((written[key] for key in keys if isinstance(written.get(key), dict)), written)
            actions.append(AgentAction(tool=name, arguments=inner, belief=inner.get(BELIEF, belief)))
    if not actions and tuple(names) == (SUBMIT,):
        actions = [AgentAction(tool=SUBMIT, arguments=said, belief=belief)]
    if not actions:
        raise UnusableTurn(f"no `{TOOL}` is named")
    return actions


def readable_call(call: ToolCall) -> ToolCall:
    """The call for the history; arguments that are not a JSON object are wrapped, as some providers reject them."""
    try:
        read_object(call.arguments or "{}")
    except UnusableTurn:
        return replace(call, arguments=json.dumps({"unreadable": call.arguments[:LONGEST_TEXT]}))
    return call


def _checked(action: AgentAction, offer: AgentToolset, names: Sequence[str]) -> AgentAction | UnusableTurn:
    """The action if it can be carried out, or the error that says what is wrong with it."""
    try:
        return _checked_one(action, offer, names)
    except UnusableTurn as problem:
        return problem


def _checked_one(action: AgentAction, offer: AgentToolset, names: Sequence[str]) -> AgentAction:
    if action.tool not in names:
        raise UnusableTurn(f"there is no tool {action.tool[:60]!r} at this step; there is {', '.join(names)}")
    try:
        given = read_object(action.call.arguments or "{}") if action.call else dict(action.arguments)
    except UnusableTurn as problem:
        raise UnusableTurn(f"the arguments of {action.tool} cannot be used: {problem}") from None
    belief = given.pop(BELIEF, action.belief)
    shape = offer.by_name[action.tool].parameters
    known: Mapping[str, Any] = {name: part for name, part in shape.get("properties", {}).items() if name != BELIEF}
    if action.tool != SUBMIT:
        given = {name: value for name, value in given.items() if name in known}
        required = [name for name in shape.get("required", ()) if name != BELIEF]
        if wrong := schema_errors(given, {**shape, "properties": known, "required": required}):
            raise UnusableTurn(f"the arguments of {action.tool} cannot be used: {'; '.join(wrong)}")
    return AgentAction(tool=action.tool, arguments=given, call=action.call, belief=belief)


def _answered(turn: AgentTurn, offer: AgentToolset) -> AgentTurn:
    """The turn with its answer. A number missing from the answer is taken from the belief stated in the same reply."""
    action = turn.actions[0]
    final = offer.form.read(action.arguments)
    if turn.statement is not None and offer.form.missing(final.p):
        said = turn.statement.stated
        final = StatedProbabilities(
            p={**said.p, **final.p}, distribution=final.distribution or said.distribution, problems=final.problems
        )
    if offer.form.missing(final.p):
        raise UnusableTurn(f"the answer is not complete: {'; '.join(final.problems)}")
    return replace(turn, final=final, reason=as_text(action.arguments.get("reason"))[:LONGEST_REASON])


# The last resort before a trial is given up: a probability in plain text, if there is only one way to read it.

_NUMBER = r"(?<![\d.])(\d{1,3}(?:\.\d+)?\s*%|0?\.\d+|1\.0+)(?![\d.]*\d)"
_SAID = re.compile(
    r"""\b(?:probability|chance|likelihood|p|(?:my|final)\s+(?:answer|forecast|estimate|prediction))\b["'*]*"""
    r"""(?:\s+(?:of|that|for|it|this|yes|resolves?|is|at|to|be|would|about|around|roughly))*"""
    rf"""\s*[=:≈~]?\s*["'*]*\s*{_NUMBER}""",
    re.IGNORECASE,
)
_NEAR = re.compile(rf"\b(?:probability|chance|likelihood|odds)[^.\d%]{{0,60}}{_NUMBER}", re.IGNORECASE)
"""Does not state a probability by itself, but a second number here makes the text ambiguous."""
_CHANCE = re.compile(rf"{_NUMBER}\s+(?:chance|probability|likelihood)\b", re.IGNORECASE)
_ALONE = re.compile(rf"[\s*`\"]*{_NUMBER}[\s*`\".]*")


def probability_in_text(replies: Iterable[Reply], form: AnswerFormat) -> StatedProbabilities | None:
    """Return the numbers of the first reply that states every target in exactly one way; pass the latest reply first.

    >>> from foretell.questions.question import Question, Target
    >>> q = Question(id="q", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> probability_in_text([Reply(text="I put the probability at 35% for now.")], AnswerFormat.of(q)).p
    {'yes': 0.35}
    """
    for reply in replies:
        for text in (*(call.arguments for call in reply.calls), reply.text):
            with suppress(UnusableTurn):
                stated = form.read(read_object(text))
                if not form.missing(stated.p):
                    return stated
        if (found := _in_words(reply.text, form)) is not None:
            return found
    return None


def _in_words(text: str, form: AnswerFormat) -> StatedProbabilities | None:
    """The probability stated in prose; only for one target, because with several it is a guess which one is meant."""
    if len(form.targets) != 1 or form.thresholds is not None:
        return None
    text = text[:LONGEST_REPLY]
    alone = _ALONE.fullmatch(text)
    said = [alone[1]] if alone else [*_SAID.findall(text), *_CHANCE.findall(text)]
    try:
        numbers = {as_probability(number) for number in [*said, *_NEAR.findall(text)]} if said else set[float]()
    except ValueError:
        return None
    target = next(iter(form.targets.values()))
    return StatedProbabilities(p={target: numbers.pop()}) if len(numbers) == 1 else None
