"""A model with prepared replies, for tests, demonstrations and dry runs. It is deterministic and offline."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from foretell.frozen import frozen
from foretell.models.model import ModelBusy, ModelError, ModelRefused, Reply, Request, TokenCount, ToolCall
from foretell.models.provider import Provider
from foretell.questions.codec import parse_json
from foretell.questions.errors import InputError, said

ScriptLine = Reply | Exception | str
_ERRORS: dict[str, Callable[[str], ModelError]] = {"busy": ModelBusy, "refused": ModelRefused, "error": ModelError}


@frozen
class ScriptCue:
    """A reply to every request whose conversation contains certain words."""

    when: str
    say: ScriptLine


class ScriptedModel:
    """Replies in order, or computed by a function of the request. Errors in the script are raised."""

    def __init__(self, script: Iterable[ScriptLine | ScriptCue] | Callable[[Request], ScriptLine]) -> None:
        self.requests: list[Request] = []
        """All requests, in order."""
        self._function = script if callable(script) else None
        lines = [] if callable(script) else list(script)
        self._cues = [line for line in lines if isinstance(line, ScriptCue)]
        self._lines = [line for line in lines if not isinstance(line, ScriptCue)][::-1]

    @classmethod
    def from_file(cls, path: str | Path) -> "ScriptedModel":
        """Read a script from a JSONL file.

        A line holds `text`, `calls` (each with `name` and `arguments`), `finish` and `tokens`, or `error` (busy,
        refused, error). With `when`, it answers every conversation that contains these words; without, it is used once.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"the script cannot be read: {error.strerror}", path=path) from None
        rows = [(row, line) for row, line in enumerate(text.splitlines(), start=1) if line.strip()]
        return cls([_line(line, path, row) for row, line in rows])

    async def complete(self, request: Request) -> Reply:
        """The next reply of the script."""
        self.requests.append(request)
        line = self._next(request)
        if isinstance(line, Exception):
            raise line
        return Reply(text=line, model=request.model) if isinstance(line, str) else line

    async def close(self) -> None:
        """Do nothing."""

    def _next(self, request: Request) -> ScriptLine:
        if self._function is not None:
            return self._function(request)
        words = "\n".join(message.text for message in request.messages) if self._cues else ""
        for cue in self._cues:
            if cue.when in words:
                return cue.say
        if not self._lines:
            raise ModelError(f"the script of {request.model} has no line left for request {len(self.requests)}")
        return self._lines.pop()


def _line(text: str, path: str | Path, row: int) -> ScriptLine | ScriptCue:
    try:
        fields: dict[str, Any] = parse_json(text)
        when = fields.pop("when", None)
        say = _script_line(fields)
    except (InputError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"not a line of a script: {said(error)}", path=path, row=row) from None
    return say if when is None else ScriptCue(when=str(when), say=say)


def _script_line(fields: dict[str, Any]) -> ScriptLine:
    if "error" in fields:
        return _ERRORS[fields["error"]](str(fields.get("text", "a scripted failure")))
    calls: list[ToolCall] = []
    for place, call in enumerate(fields.pop("calls", ())):
        raw = call.get("arguments", {})
        arguments = raw if isinstance(raw, str) else json.dumps(raw)
        calls.append(ToolCall(id=f"call_{place}", name=call["name"], arguments=arguments))
    tokens = TokenCount(**fields.pop("tokens", {}))
    finish = fields.pop("finish", "tool" if calls else "stop")
    return Reply(calls=tuple(calls), tokens=tokens, finish=finish, **fields)


SCRIPT_FILE = Provider(
    open=lambda config: ScriptedModel.from_file(config.name.name),
    form="scripted:FILE.jsonl",
    per_model=True,
    free=True,
)
"""The provider's entry in the registry."""
