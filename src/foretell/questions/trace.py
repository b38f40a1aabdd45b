"""What happens while a forecast is made. Events are the only thing written on the way; every view reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foretell.questions.quick_init import quick_init


@quick_init
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


@quick_init
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


@quick_init
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


@dataclass(frozen=True, kw_only=True)
class NodeAnalyzed:
    """A claim of a tree was taken apart, or found to stand by itself."""

    node: str
    tree: str = ""
    """Which tree of the question: the id of the target it is about."""
    added: tuple[str, ...] = ()
    """Ids of all claims that were added at and below the node, parents before children."""
    claims: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their words, by id."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NodeGrounded:
    """A leaf got its probability, or none."""

    node: str
    tree: str = ""
    p: float | None = None
    """None where grounding failed for good."""
    grounder: str = ""
    attempts: int = 1
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeSynthesized:
    """The probability of a claim was put together from those of its children."""

    node: str
    tree: str = ""
    p: float | None = None
    link: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The rule with its numbers."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TreeGrown:
    """A tree is finished; this is all of it, in the form of its file."""

    tree: str
    document: Mapping[str, Any]


TraceEvent = (
    ModelCalled
    | ToolUsed
    | LeakBlocked
    | BeliefRevised
    | NodeAnalyzed
    | NodeGrounded
    | NodeSynthesized
    | TreeGrown
    | ForecastMade
    | Failed
)
EmitEvent = Callable[[TraceEvent], None]


def ignore_event(event: TraceEvent) -> None:
    """For callers that do not watch."""
