"""A tool brings material from outside; whether a model may see it is decided by the fence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, cast

from foretell.data.search.engine import Dating
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.questions.trace import LeakBlocked


class ToolFailed(Exception):
    """The call did not work; the text tells the model what to do instead."""


@dataclass(frozen=True, kw_only=True)
class SourceItem:
    """One piece of outside material, unchecked."""

    title: str
    text: str
    """All of it; the model sees `snippet` first and may ask for the rest."""
    snippet: str = ""
    url: str = ""
    hops: tuple[str, ...] = ()
    """Every address it passed through."""
    published: datetime | None = None
    dating: Dating = "none"
    captured: datetime | None = None
    """When this very version was stored; a version stored before the cutoff cannot know what came after."""
    clamped: bool = False
    """Made of dated numbers that were already cut at the cutoff, point by point."""
    rewritten: bool = False
    """Stored versions of its address differ: its date says nothing about the words that stand there today."""


@dataclass(frozen=True, kw_only=True)
class ToolMaterial:
    """What a tool brought back."""

    heading: str
    items: tuple[SourceItem, ...]


class Tool(Protocol):
    """One thing an agent may do."""

    @property
    def spec(self) -> ToolSpec:
        """Name, purpose and arguments, as shown to the model."""
        ...

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """The material found as of the cutoff, or `ToolFailed`."""
        ...


# Reading the arguments of a tool call; what is wrong is told to the model.


def required_text(arguments: Mapping[str, Any], name: str) -> str:
    """A text that must be there."""
    text = optional_text(arguments, name)
    if text is None:
        raise ToolFailed(f"The argument {name!r} is missing: give it as a text.")
    return text


def optional_text(arguments: Mapping[str, Any], name: str) -> str | None:
    """A text, or None where it is absent or empty."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str | int):
        raise ToolFailed(f"The argument {name!r} must be a text, not {type(value).__name__}.")
    return str(value).strip() or None


def required_texts(arguments: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts; a single text counts as a list of one."""
    value = arguments.get(name)
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise ToolFailed(f"The argument {name!r} must be a list of texts with at least one entry.")
    return [str(one).strip().strip("[]") for one in cast("list[Any]", found)]


# Why something is kept from a model.

FenceLayer = Literal["address", "date", "data", "content"]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The layer that said no, and its reason. The reason is for people: the model never reads it."""

    layer: FenceLayer
    reason: str

    def of(self, item: SourceItem) -> LeakBlocked:
        """The event to record for an item."""
        published = item.published.isoformat() if item.published is not None else ""
        return LeakBlocked(
            layer=self.layer, reason=self.reason, url=item.url, title=item.title[:200], published=published
        )


class LeakRefused(ToolFailed):
    """A tool noticed by itself that an answer would leak. The text is for the model, the refusal for the record."""

    def __init__(self, text: str, refusal: Refusal) -> None:
        super().__init__(text)
        self.refusal = refusal
