"""One planted piece of material: what it is, who brings it, and what must become of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.tools.doubles import CUTOFF, question

from foretell.questions import AsOf, LeakBlocked, Question, TraceEvent
from foretell.tools import FencedTools, FenceRules, FetchPrices, FetchSeries, LeakFilter, Observation, Tool

Must = Literal["drop", "keep"]
Misreader = Literal["", "rules", "stand-in"]
Decider = Literal["address", "date", "data", "content"]


@dataclass(frozen=True, kw_only=True)
class Case:
    kind: str
    name: str
    must: Must
    by: Decider
    """The layer that decides; for what must be kept, the layer that might wrongly drop it."""
    tool: Tool
    needle: str
    """Words that are in what the model sees exactly if the planted material was admitted."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: Question = field(default_factory=question)
    as_of: AsOf = CUTOFF
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    misread_by: Misreader = ""
    """Who is known to get it wrong; kept in the suite so that the figures are honest."""

    @property
    def id(self) -> str:
        return f"{self.kind}: {self.name} → {self.must}"

    def run(self, model: Any) -> "Outcome":
        """Send the case through a whole fence with the given filter model."""
        events: list[TraceEvent] = []
        fence = FenceRules(as_of=self.as_of, question=self.asked, emit=events.append, **self.options)
        leak_filter = LeakFilter(model=model, name="scripted:filter", seconds=5.0)
        tool = replace(self.tool, emit=events.append) if isinstance(self.tool, FetchSeries | FetchPrices) else self.tool
        toolbox = FencedTools.around((tool,), fence, leak_filter)
        seen = asyncio.run(toolbox.use(self.tool.spec.name, self.arguments))
        layers = [event.layer for event in events if isinstance(event, LeakBlocked)]
        return Outcome(admitted=self.needle in seen.text, layers=tuple(layers), seen=seen)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    admitted: bool
    layers: tuple[str, ...]
    seen: Observation
