"""The journal around a tool: what it brought is stored before it is used, and not fetched again after a crash."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from foretell.models.canonical import content_key
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.questions.trace import EmitEvent, LeakBlocked, TraceEvent, ignore_event
from foretell.tools.tool import LeakRefused, Refusal, SourceItem, Tool, ToolFailed, ToolMaterial

_NOTED: ContextVar[list[TraceEvent] | None] = ContextVar("noted", default=None)


def note_event(event: TraceEvent) -> None:
    """Given as `emit` to a tool that is kept: what it withheld is stored with its material and told each time."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(event)


class ToolJournal(Protocol):
    """The part of the journal that is used here."""

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        """The stored value for a key, or a new one."""
        ...


class RecordedFailure(Exception):
    """Stands, in a replay, for the failure that was the cause then."""


def journal_scope(question: str, trial: int, engine: str | None) -> str:
    """What a result depends on besides arguments and cutoff, as it enters the journal's key.

    >>> journal_scope("fred/DGS10", 2, None)
    'fred/DGS10/trial 2/no engine'
    """
    return f"{question}/trial {trial}/{engine or 'no engine'}"


@dataclass(frozen=True, kw_only=True)
class JournaledTool:
    """A tool that reaches off this machine, with its unchecked material in the journal.

    The fence stands outside and judges again in a replay, so a stricter fence can be tried on the same material.
    `SummarizeResults` needs no keeping: it only asks models, whose replies are journalled.
    """

    tool: Tool
    journal: ToolJournal
    scope: str = ""
    """Whatever the result depends on besides arguments and cutoff: the engine, the question, the trial."""
    emit: EmitEvent = ignore_event
    """Hears what the tool noted, also where its material comes from the journal."""

    @property
    def spec(self) -> ToolSpec:
        """That of the tool."""
        return self.tool.spec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """What the tool brought, now or when it was first asked. Failures are kept as well."""
        asked = [self.spec.name, dict(arguments), as_of.at.isoformat(), as_of.mode, self.scope]

        async def produce() -> dict[str, Any]:
            noted: list[TraceEvent] = []
            token = _NOTED.set(noted)
            try:
                found = await self._fetched(arguments, as_of)
            finally:
                _NOTED.reset(token)
            blocked = [vars(event) for event in noted if isinstance(event, LeakBlocked)]
            return {**found, "blocked": blocked} if blocked else found

        found = await self.journal.once_json(content_key(asked), "tool", produce)
        for blocked in found.get("blocked", ()):
            self.emit(LeakBlocked(**blocked))
        return material_from_json(found)

    async def _fetched(self, arguments: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        try:
            return material_to_json(await self.tool.use(arguments, as_of))
        except LeakRefused as error:
            return {"failed": str(error), "layer": error.refusal.layer, "reason": error.refusal.reason}
        except ToolFailed as error:
            return {"failed": str(error), "cause": None if error.__cause__ is None else str(error.__cause__)}


def material_to_json(material: ToolMaterial) -> dict[str, Any]:
    """Material as JSON can hold it."""
    return {"heading": material.heading, "items": [_item(item) for item in material.items]}


def _item(item: SourceItem) -> dict[str, Any]:
    return {
        "title": item.title,
        "text": item.text,
        "snippet": item.snippet,
        "url": item.url,
        "hops": list(item.hops),
        "published": None if item.published is None else item.published.isoformat(),
        "dating": item.dating,
        "captured": None if item.captured is None else item.captured.isoformat(),
        "clamped": item.clamped,
    }


def material_from_json(found: Mapping[str, Any]) -> ToolMaterial:
    """The material that was packed, equal in every field, or the failure that took its place."""
    if "layer" in found:
        raise LeakRefused(found["failed"], Refusal(layer=found["layer"], reason=found["reason"]))
    if "failed" in found:
        raise ToolFailed(found["failed"]) from (None if found["cause"] is None else RecordedFailure(found["cause"]))
    items = tuple(map(_read_item, found["items"]))
    return ToolMaterial(heading=found["heading"], items=items)


def _read_item(found: Mapping[str, Any]) -> SourceItem:
    read: dict[str, Any] = {name: _moment(found[name]) for name in ("published", "captured")}
    read["hops"] = tuple(found["hops"])
    return SourceItem(**{**dict[str, Any](found), **read})


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
