"""One planted item: its content, the tool that returns it, and the expected verdict."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.tools.doubles import CUTOFF, question

from foretell.questions.as_of import AsOf
from foretell.questions.question import Question
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.leakage_filter import FilteredTools, Observation
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.series import FetchPrices, FetchSeries
from foretell.tools.tool import Tool

Must = Literal["drop", "keep"]
Misreader = Literal["", "rules", "stand-in"]
Decider = Literal["address", "date", "data", "content"]


@dataclass(frozen=True, kw_only=True)
class Case:
    kind: str
    name: str
    must: Must
    by: Decider
    """The layer that decides. For clean items, the layer that might wrongly drop it."""
    tool: Tool
    needle: str
    """Words that the model sees if and only if the planted material was admitted."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    about: Question = field(default_factory=question)
    as_of: AsOf = CUTOFF
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    misread_by: Misreader = ""
    """The filter that is known to misjudge it. Such cases stay in the suite so that the figures are honest."""

    @property
    def id(self) -> str:
        return f"{self.kind}: {self.name} → {self.must}"

    def run(self, model: Any) -> "Outcome":
        """Send the case through a whole leakage filter with the given filter model."""
        events: list[TraceEvent] = []
        rules = LeakageRules(as_of=self.as_of, question=self.about, emit=events.append, **self.options)
        content_filter = ModelContentFilter(model=model, name="scripted:filter", seconds=5.0)
        tool = replace(self.tool, emit=events.append) if isinstance(self.tool, FetchSeries | FetchPrices) else self.tool
        toolbox = FilteredTools.around((tool,), rules, content_filter)
        observation = asyncio.run(toolbox.use(self.tool.spec.name, self.arguments))
        layers = [event.layer for event in events if isinstance(event, LeakBlocked)]
        return Outcome(admitted=self.needle in observation.text, layers=tuple(layers), seen=observation)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    admitted: bool
    layers: tuple[str, ...]
    seen: Observation
