"""A tool brings material from outside; whether a model may see it is decided by the fence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.sources.search import Dating


class ToolFailed(Exception):
    """The call did not work; the text tells the model what to do instead."""


@dataclass(frozen=True, kw_only=True)
class Item:
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


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a tool brought back."""

    heading: str
    items: tuple[Item, ...]


class Tool(Protocol):
    """One thing an agent may do."""

    @property
    def spec(self) -> ToolSpec:
        """Name, purpose and arguments, as shown to the model."""
        ...

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> Material:
        """The material found as of the cutoff, or `ToolFailed`."""
        ...
