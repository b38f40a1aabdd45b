"""The tool interface: a tool fetches outside material, and the fence decides whether a model may see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, cast

from foretell.data.search.engine import Dating
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.questions.trace import LeakBlocked


class ToolFailed(Exception):
    """The call failed; the message tells the model what to do instead."""


@dataclass(frozen=True, kw_only=True)
class SourceItem:
    """One piece of outside material, not yet checked."""

    title: str
    text: str
    """The full text; the model sees `snippet` first and may ask for the rest."""
    snippet: str = ""
    url: str = ""
    hops: tuple[str, ...] = ()
    """Every address it was redirected through."""
    published: datetime | None = None
    dating: Dating = "none"
    captured: datetime | None = None
    """When this very version was stored; a version stored before the cutoff cannot know what came after."""
    clamped: bool = False
    """Whether it consists of dated numbers that were already cut at the cutoff, point by point."""
    rewritten: bool = False
    """Whether stored versions of its address differ, so that its date says nothing about today's text."""


@dataclass(frozen=True, kw_only=True)
class ToolMaterial:
    """The material a tool returns."""

    heading: str
    items: tuple[SourceItem, ...]


class Tool(Protocol):
    """An action an agent can take."""

    @property
    def spec(self) -> ToolSpec:
        """Name, purpose and arguments, as shown to the model."""
        ...

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the material found as of the cutoff, or raise `ToolFailed`."""
        ...


# Reading the arguments of a tool call; what is wrong is told to the model.


def required_text(arguments: Mapping[str, Any], name: str) -> str:
    """Return a text argument; raise `ToolFailed` if it is missing."""
    text = optional_text(arguments, name)
    if text is None:
        raise ToolFailed(f"The argument {name!r} is missing: give it as a text.")
    return text


def optional_text(arguments: Mapping[str, Any], name: str) -> str | None:
    """Return a text argument, or None if it is absent or empty."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str | int):
        raise ToolFailed(f"The argument {name!r} must be a text, not {type(value).__name__}.")
    return str(value).strip() or None


def required_texts(arguments: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts; a single text counts as a list of one."""
    value = arguments.get(name)
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise ToolFailed(f"The argument {name!r} must be a list of texts with at least one entry.")
    return [str(one).strip().strip("[]") for one in cast("list[Any]", found)]


# Why something is kept from a model.

FenceLayer = Literal["address", "date", "data", "content"]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The layer that refused an item, and its reason. The reason is for people: the model never reads it."""

    layer: FenceLayer
    reason: str

    def of(self, item: SourceItem) -> LeakBlocked:
        """Return the event to record for an item."""
        published = item.published.isoformat() if item.published is not None else ""
        return LeakBlocked(
            layer=self.layer, reason=self.reason, url=item.url, title=item.title[:200], published=published
        )


class LeakRefused(ToolFailed):
    """A tool noticed by itself that its answer would leak. The message is for the model, the refusal for the record."""

    def __init__(self, text: str, refusal: Refusal) -> None:
        super().__init__(text)
        self.refusal = refusal
