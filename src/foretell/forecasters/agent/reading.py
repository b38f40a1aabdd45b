"""From what a model replied to what it wants done: a turn that can be carried out, or words on what was wrong."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from foretell.forecasters.agent.form import Stated
from foretell.forecasters.agent.offer import ACTION, ACTIONS, TOOL, Offer
from foretell.forecasters.agent.statement import BELIEF, LONGEST_REASON, Statement, as_text, read_statement
from foretell.llm.json_text import NoJson, read_json
from foretell.llm.message import Assistant, Reply, ToolCall
from foretell.llm.shape import faults
from foretell.tools.names import SUBMIT

LONGEST_REPLY = 100_000
"""Characters of a reply that are looked at; nobody states a belief at greater length."""
MOST_ACTIONS = 8


class Unusable(ValueError):
    """A reply cannot be carried out; the text tells the model why."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """One tool with its arguments; the belief that came along is taken out."""

    tool: str
    arguments: dict[str, Any]
    call: ToolCall | None = None
    """As the model made it; None where it wrote the action as text."""
    belief: Any = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What the model said at one step."""

    actions: tuple[Action, ...]
    """One; several only where the variant runs them at once."""
    spoken: Assistant
    """What goes into the history: only the calls that are answered."""
    statement: Statement | None = None
    final: Stated | None = None
    """The answer, where the action is to submit."""
    reason: str = ""
    notes: tuple[str, ...] = ()


def read_reply(reply: Reply, offer: Offer, names: Sequence[str]) -> Turn:
    """The turn in a reply, given what was on offer; `Unusable` where there is none."""
    proposals = _proposals(reply, names)
    wanted = proposals[:MOST_ACTIONS] if offer.variant.parallel and proposals[0].tool != SUBMIT else proposals[:1]
    actions, notes = _checked(wanted, offer, names)
    if len(proposals) > len(wanted):
        notes.append("one call at a time: only the first was run")
    calls = tuple(action.call for action in actions if action.call is not None)
    spoken = Assistant(text=reply.text[:LONGEST_REPLY], calls=calls, thoughts=reply.thoughts)
    stated = next((action.belief for action in actions if action.belief is not None), None)
    statement = read_statement(stated, offer.form) if offer.variant.belief else None
    turn = Turn(actions=tuple(actions), spoken=spoken, statement=statement, notes=tuple(notes))
    return _answered(turn, offer) if actions[0].tool == SUBMIT else turn


def belief_in(reply: Reply, offer: Offer) -> Statement | None:
    """The belief in a reply whose action could not be used: what it states still counts."""
    if not offer.variant.belief:
        return None
    for text in (*(call.arguments for call in reply.calls), reply.text):
        try:
            statement = read_statement(read_object(text).get(BELIEF), offer.form)
        except Unusable:
            continue
        if statement is not None and statement.stated.p:
            return statement
    return None


def read_object(text: str) -> dict[str, Any]:
    """The JSON object in a text, free of what no file or database takes (NaN, broken characters); or `Unusable`."""
    try:
        found = read_json(text[:LONGEST_REPLY])
        clean = json.dumps(found, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
        found = json.loads(clean)
    except NoJson as problem:
        raise Unusable(str(problem)) from None
    except (ValueError, TypeError, RecursionError):
        raise Unusable("it holds values that are not JSON, such as NaN") from None
    if not isinstance(found, dict):
        raise Unusable("a JSON object was expected, not a list")
    return cast("dict[str, Any]", found)


def _proposals(reply: Reply, names: Sequence[str]) -> list[Action]:
    """Everything the reply asks for, unchecked; arguments that are no object stand as text."""
    if reply.calls:
        return [Action(tool=call.name, arguments={}, call=_named(call, n)) for n, call in enumerate(reply.calls)]
    if reply.finish == "refusal":
        raise Unusable("it was declined")
    if not reply.text.strip():
        raise Unusable("it was empty" + (" because the length limit was reached" * (reply.finish == "length")))
    try:
        return _written(read_object(reply.text), names)
    except Unusable as problem:
        raise Unusable(f"it called no tool, and in its text {problem}") from None


def _named(call: ToolCall, place: int) -> ToolCall:
    return call if call.id else ToolCall(id=f"call_{place}", name=call.name, arguments=call.arguments)


def _written(said: dict[str, Any], names: Sequence[str]) -> list[Action]:
    """Actions in a JSON text: by our schema, or in the shapes models fall into when they write a call out."""
    many = said.get(ACTIONS) or said.get(ACTION) or said
    belief = said.get(BELIEF)
    found = [_write(one, belief) for one in (cast("list[Any]", many) if isinstance(many, list) else [many])]
    actions = [action for action in found if action is not None]
    if not actions and tuple(names) == (SUBMIT,):
        actions = [Action(tool=SUBMIT, arguments=said, belief=belief)]
    if not actions:
        raise Unusable(f"no `{TOOL}` is named")
    return actions


def _write(one: Any, belief: Any) -> Action | None:
    if not isinstance(one, Mapping):
        return None
    said = dict(cast("Mapping[str, Any]", one))
    name = next((said.pop(key) for key in (TOOL, "name") if isinstance(said.get(key), str)), None)
    if name is None:
        return None
    inner = next((said[key] for key in ("arguments", "parameters", "args") if isinstance(said.get(key), dict)), said)
    return Action(tool=name, arguments=inner, belief=inner.get(BELIEF, belief))


def _checked(wanted: Sequence[Action], offer: Offer, names: Sequence[str]) -> tuple[list[Action], list[str]]:
    """The actions that can be carried out and what was wrong with the others; `Unusable` if none can."""
    actions: list[Action] = []
    problems: list[str] = []
    for action in wanted:
        try:
            actions.append(_checked_one(action, offer, names))
        except Unusable as problem:
            problems.append(str(problem))
    research = [action for action in actions if action.tool != SUBMIT]
    if not actions:
        raise Unusable("; ".join(problems))
    return (research or actions[:1]) if len(actions) > 1 else actions, problems


def _checked_one(action: Action, offer: Offer, names: Sequence[str]) -> Action:
    if action.tool not in names:
        raise Unusable(f"there is no tool {action.tool[:60]!r} at this step; there is {', '.join(names)}")
    try:
        given = read_object(action.call.arguments or "{}") if action.call else dict(action.arguments)
    except Unusable as problem:
        raise Unusable(f"the arguments of {action.tool} cannot be used: {problem}") from None
    belief = given.pop(BELIEF, action.belief)
    shape = offer.by_name[action.tool].parameters
    known: Mapping[str, Any] = {name: part for name, part in shape.get("properties", {}).items() if name != BELIEF}
    if action.tool != SUBMIT:
        given = {name: value for name, value in given.items() if name in known}
        required = [name for name in shape.get("required", ()) if name != BELIEF]
        if wrong := faults(given, {**shape, "properties": known, "required": required}):
            raise Unusable(f"the arguments of {action.tool} cannot be used: {'; '.join(wrong)}")
    return Action(tool=action.tool, arguments=given, call=action.call, belief=belief)


def _answered(turn: Turn, offer: Offer) -> Turn:
    """The turn with its answer. A number missing from it is taken from the belief stated in the same breath."""
    action = turn.actions[0]
    final = offer.form.read(action.arguments)
    if turn.statement is not None and offer.form.missing(final.p):
        said = turn.statement.stated
        final = Stated(
            p={**said.p, **final.p}, distribution=final.distribution or said.distribution, problems=final.problems
        )
    if offer.form.missing(final.p):
        raise Unusable(f"the answer is not complete: {'; '.join(final.problems)}")
    reason = as_text(action.arguments.get("reason"))[:LONGEST_REASON]
    return Turn(
        actions=turn.actions,
        spoken=turn.spoken,
        statement=turn.statement,
        final=final,
        reason=reason,
        notes=turn.notes,
    )
