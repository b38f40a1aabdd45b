"""What happens while a forecast is made. Events are the only thing written on the way; every view reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ModelCalled:
    """A model answered (or its answer was taken from the journal)."""

    role: str
    model: str
    key: str
    """Where the journal keeps request and reply."""
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class ToolUsed:
    """A tool was called and this is what the model saw of it."""

    step: int
    tool: str
    arguments: Mapping[str, Any]
    result: str
    sources: tuple[str, ...] = ()
    """Ids of the material that may be cited from now on."""
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class LeakBlocked:
    """Something was kept from the model, and why."""

    layer: str
    """Which layer of the fence refused it: date, address, data, content."""
    reason: str
    url: str = ""
    title: str = ""
    published: str = ""


@dataclass(frozen=True, kw_only=True)
class BeliefRevised:
    """The standing belief changed."""

    step: int
    p: Mapping[str, float]
    reason: str
    belief: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ForecastMade:
    """A trial ended in a forecast."""

    p: Mapping[str, float]
    how: str
    """submitted, standing belief at the step limit, at the time limit, at the budget, …"""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A trial broke."""

    error: str


Event = ModelCalled | ToolUsed | LeakBlocked | BeliefRevised | ForecastMade | Failed
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """For callers that do not watch."""
