"""The journal around a tool: its results are stored before they are used and not fetched again after a crash."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.questions.trace import EmitEvent, LeakBlocked, TraceEvent, ignore_event
from foretell.tools.tool import LeakRefused, Refusal, SourceItem, Tool, ToolFailed, ToolMaterial

_NOTED: ContextVar[list[TraceEvent] | None] = ContextVar("noted", default=None)


def note_event(event: TraceEvent) -> None:
    """Passed as `emit` to a journalled tool: what it withheld is stored with its result and emitted each time."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(event)


class RecordedFailure(Exception):
    """In a replay, stands for the original failure."""


def journal_scope(question: str, trial: int, engine: str | None) -> str:
    """What a result depends on besides arguments and cutoff, as part of the journal key.

    >>> journal_scope("fred/DGS10", 2, None)
    'fred/DGS10/trial 2/no engine'
    """
    return f"{question}/trial {trial}/{engine or 'no engine'}"


async def stored_result(
    journal: Journal,
    asked: Sequence[Any],
    kind: str,
    produce: Callable[[], Awaitable[dict[str, Any]]],
    emit: EmitEvent = ignore_event,
) -> dict[str, Any]:
    """The result of `produce`, now or from the journal. A failure is stored and raised again as well."""

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

    stored = await journal.once_json(content_key(list(asked)), kind, attempt)
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


@dataclass(frozen=True, kw_only=True)
class JournaledTool:
    """A tool that uses the network, with its unchecked material in the journal.

    The fence is outside and judges again in a replay, so a stricter fence can be tried on the same material.
    `SummarizeResults` needs no journal of its own: it only asks models, whose replies are journalled.
    """

    tool: Tool
    journal: Journal
    scope: str = ""
    """What the result depends on besides arguments and cutoff: the engine, the question, the trial."""
    emit: EmitEvent = ignore_event
    """Receives what the tool recorded, even if its material comes from the journal."""

    @property
    def spec(self) -> ToolSpec:
        """The spec of the tool."""
        return self.tool.spec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """The tool's material, now or from the journal. Failures are stored as well."""
        asked = [self.spec.name, dict(arguments), as_of.at.isoformat(), as_of.mode, self.scope]

        async def produce() -> dict[str, Any]:
            return material_to_json(await self.tool.use(arguments, as_of))

        return material_from_json(await stored_result(self.journal, asked, "tool", produce, self.emit))


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
    """The stored material, equal in every field, or the failure that took its place."""
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
