"""Stores the results of a tool in the journal before they are used, so that a crash does not lose them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.questions.trace import EmitEvent, LeakBlocked, TraceEvent, ignore_event
from foretell.tools.tool import LeakRefused, Refusal, SourceItem, Tool, ToolFailed, ToolMaterial

_NOTED: ContextVar[list[TraceEvent] | None] = ContextVar("noted", default=None)


def note_event(event: TraceEvent) -> None:
    """Record an event of a journalled tool. It is stored with the result and emitted each time."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(event)


class RecordedFailure(Exception):
    """Replaces the original failure in a replay."""


def journal_scope(question: str, trial: int, engine: str | None) -> str:
    """What a result depends on besides arguments and cutoff, as part of the journal key.

    >>> journal_scope("fred/DGS10", 2, None)
    'fred/DGS10/trial 2/no engine'
    """
    return f"{question}/trial {trial}/{engine or 'no engine'}"


async def stored_result(
    journal: Journal,
    request: Sequence[Any],
    kind: str,
    produce: Callable[[], Awaitable[dict[str, Any]]],
    emit: EmitEvent = ignore_event,
) -> dict[str, Any]:
    """Return the stored result, or that of `produce`. A failure is also stored and raised again."""

    async def attempt() -> dict[str, Any]:
        events: list[TraceEvent] = []
        token = _NOTED.set(events)
        try:
            result = await produce()
        except LeakRefused as error:
            result = {"failed": str(error), "layer": error.refusal.layer, "reason": error.refusal.reason}
        except ToolFailed as error:
            result = {"failed": str(error), "cause": None if error.__cause__ is None else str(error.__cause__)}
        finally:
            _NOTED.reset(token)
        blocked = [vars(event) for event in events if isinstance(event, LeakBlocked)]
        return {**result, "blocked": blocked} if blocked else result

    stored = await journal.once_json(content_key(list(request)), kind, attempt)
    for blocked in stored.get("blocked", ()):
        emit(LeakBlocked(**blocked))
    raise_stored_failure(stored)
    return stored


def raise_stored_failure(stored: Mapping[str, Any]) -> None:
    """Raise the stored failure, if there is one."""
    if "layer" in stored:
        raise LeakRefused(stored["failed"], Refusal(layer=stored["layer"], reason=stored["reason"]))
    if "failed" in stored:
        raise ToolFailed(stored["failed"]) from (None if stored["cause"] is None else RecordedFailure(stored["cause"]))


@frozen
class JournaledTool:
    """A tool that uses the network, with its unchecked material in the journal.

    The leakage filter wraps this tool and judges again in a replay, so a stricter filter can be tried on the same
    material.
    `SummarizeResults` needs no journal of its own, because it only uses models, whose replies are journalled.
    """

    tool: Tool
    journal: Journal
    scope: str = ""
    """What the result depends on besides arguments and cutoff: the engine, the question, the trial."""
    emit: EmitEvent = ignore_event
    """Receives the recorded events, even if the material comes from the journal."""

    @property
    def spec(self) -> ToolSpec:
        """The spec of the tool."""
        return self.tool.spec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the stored material, or fetch it. Failures are stored as well."""
        request = [self.spec.name, dict(arguments), as_of.at.isoformat(), as_of.mode, self.scope]

        async def produce() -> dict[str, Any]:
            return material_to_json(await self.tool.use(arguments, as_of))

        return material_from_json(await stored_result(self.journal, request, "tool", produce, self.emit))


_MOMENTS = ("published", "captured")


def material_to_json(material: ToolMaterial) -> dict[str, Any]:
    """Material as JSON."""
    items = [dict(vars(item)) for item in material.items]
    for item in items:
        item["hops"] = list(item["hops"])
        if not item["rewritten"]:
            del item["rewritten"]
        item |= {name: item[name] and item[name].isoformat() for name in _MOMENTS}
    return {"heading": material.heading, "items": items}


def material_from_json(stored: Mapping[str, Any]) -> ToolMaterial:
    """Return the stored material. Raises the stored failure if there is one."""
    raise_stored_failure(stored)
    items = [
        SourceItem(
            **item
            | {"hops": tuple(item["hops"])}
            | {name: item[name] and datetime.fromisoformat(item[name]) for name in _MOMENTS}
        )
        for item in stored["items"]
    ]
    return ToolMaterial(heading=stored["heading"], items=tuple(items))
