"""The journal around a tool: what it brought is stored before it is used, and not fetched again after a crash."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from foretell.llm.canonical import content_key
from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.questions.event import Emit, Event, LeakBlocked, ignore
from foretell.tools.refusal import Refusal, Refused
from foretell.tools.tool import Item, Material, Tool, ToolFailed

_NOTED: ContextVar[list[Event] | None] = ContextVar("noted", default=None)


def note(event: Event) -> None:
    """Given as `emit` to a tool that is kept: what it withheld is stored with its material and told each time."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(event)


class Once(Protocol):
    """The part of the journal that is used here."""

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        """The stored value for a key, or a new one."""
        ...


class FailedAtSource(Exception):
    """Stands, in a replay, for the failure that was the cause then."""


def scope_of(question: str, trial: int, engine: str | None) -> str:
    """What a result depends on besides arguments and cutoff, as it enters the journal's key.

    >>> scope_of("fred/DGS10", 2, None)
    'fred/DGS10/trial 2/no engine'
    """
    return f"{question}/trial {trial}/{engine or 'no engine'}"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A tool that reaches off this machine, with its unchecked material in the journal.

    The fence stands outside and judges again in a replay, so a stricter fence can be tried on the same material.
    `SummarizeResults` needs no keeping: it only asks models, whose replies are journalled.
    """

    tool: Tool
    journal: Once
    scope: str = ""
    """Whatever the result depends on besides arguments and cutoff: the engine, the question, the trial."""
    emit: Emit = ignore
    """Hears what the tool noted, also where its material comes from the journal."""

    @property
    def spec(self) -> ToolSpec:
        """That of the tool."""
        return self.tool.spec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> Material:
        """What the tool brought, now or when it was first asked. Failures are kept as well."""
        asked = [self.spec.name, dict(arguments), as_of.at.isoformat(), as_of.mode, self.scope]

        async def produce() -> dict[str, Any]:
            noted: list[Event] = []
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
        return unpacked(found)

    async def _fetched(self, arguments: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        try:
            return packed(await self.tool.use(arguments, as_of))
        except Refused as error:
            return {"failed": str(error), "layer": error.refusal.layer, "reason": error.refusal.reason}
        except ToolFailed as error:
            return {"failed": str(error), "cause": None if error.__cause__ is None else str(error.__cause__)}


def packed(material: Material) -> dict[str, Any]:
    """Material as JSON can hold it."""
    return {"heading": material.heading, "items": [_item(item) for item in material.items]}


def _item(item: Item) -> dict[str, Any]:
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


def unpacked(found: Mapping[str, Any]) -> Material:
    """The material that was packed, equal in every field, or the failure that took its place."""
    if "layer" in found:
        raise Refused(found["failed"], Refusal(layer=found["layer"], reason=found["reason"]))
    if "failed" in found:
        raise ToolFailed(found["failed"]) from (None if found["cause"] is None else FailedAtSource(found["cause"]))
    items = tuple(map(_read_item, found["items"]))
    return Material(heading=found["heading"], items=items)


def _read_item(found: Mapping[str, Any]) -> Item:
    read: dict[str, Any] = {name: _moment(found[name]) for name in ("published", "captured")}
    read["hops"] = tuple(found["hops"])
    return Item(**{**dict[str, Any](found), **read})


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
