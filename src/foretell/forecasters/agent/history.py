"""The conversation of a trial: it only grows, so that its beginning stays the same from request to request."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foretell.forecasters.agent.offer import Offer
from foretell.forecasters.agent.reading import Action, Turn, Unusable, read_object
from foretell.forecasters.agent.statement import BELIEF
from foretell.llm.message import Assistant, Message, Reply, ToolCall, ToolResult, User

LONGEST_ECHO = 2000
LONGEST_FOUND = 12_000
RESULT = "Result of "
DECLINED = (
    "This is a forecast from public information: nobody is advised or harmed by it, and a rough probability is better "
    "than none. "
)


class History:
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
        results += [m.text for m in self._messages if isinstance(m, User) and m.text.startswith(RESULT)]
        return "\n\n".join(results)[-LONGEST_FOUND:]

    def object_to(self, reply: Reply, problem: str, names: Sequence[str]) -> None:
        """Keep a reply that could not be used as plain text, and say what was wrong with it.

        Calls are not kept as calls: providers want a result for each, and arguments that are JSON.
        """
        calls = [f"[{call.name} {call.arguments}]"[:LONGEST_ECHO] for call in reply.calls[:1]]
        said = "\n".join(filter(None, [reply.text.strip()[:LONGEST_ECHO], *calls]))
        if said:
            self._messages.append(Assistant(text=said))
        declined = DECLINED if reply.finish == "refusal" else ""
        shorter = " Be briefer: the reply was cut off." if reply.finish == "length" else ""
        told = f"{declined}Your reply could not be used: {problem}.{shorter} Call one of: {', '.join(names)}."
        self._messages.append(User(text=told))

    def add(self, turn: Turn, results: Sequence[str]) -> None:
        """A turn with the results of its actions, in their order."""
        self._messages.append(turn.spoken)
        for action, text in zip(turn.actions, results, strict=True):
            self._messages.append(_result(action, text))


def _result(action: Action, text: str) -> Message:
    if action.call is None:
        return User(text=f"{RESULT}{action.tool}:\n{text}")
    return ToolResult(call_id=action.call.id, name=action.tool, text=text)


def restated(turn: Turn, stated: Any, offer: Offer) -> Turn:
    """The turn as if the model had stated other numbers: its own past words say so from now on."""
    actions = tuple(
        action if action.call is None else replace(action, call=_overwritten(action.call, stated, offer))
        for action in turn.actions
    )
    calls = tuple(action.call for action in actions if action.call is not None)
    text = turn.spoken.text if calls else _overwritten_text(turn.spoken.text, stated, offer)
    return replace(turn, actions=actions, spoken=Assistant(text=text, calls=calls))


def _overwritten(call: ToolCall, stated: Any, offer: Offer) -> ToolCall:
    return replace(call, arguments=_overwritten_text(call.arguments, stated, offer))


def _overwritten_text(text: str, stated: Any, offer: Offer) -> str:
    try:
        said = read_object(text)
    except Unusable:
        return text
    belief = said.get(BELIEF)
    kept = belief if isinstance(belief, dict) else {}
    return json.dumps({**said, BELIEF: {**kept, offer.form.field: stated}}, ensure_ascii=False)
