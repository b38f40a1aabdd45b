"""Events of a forecast in progress. They are all that is recorded on the way; every view reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foretell.questions.quick_init import quick_init


@quick_init
@dataclass(frozen=True, kw_only=True)
class ModelCalled:
    """A model answered, or its answer was read from the journal."""

    role: str
    model: str
    key: str
    """The journal key of request and reply."""
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None
    reused: bool = False
    """Whether another run had paid for it: `dollars` is then what it cost when it came."""
    uncounted: bool = False
    """Whether its tokens were not counted credibly, so that it is charged at the most it can have cost."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class ToolUsed:
    """A tool was called; this is what the model saw of its result."""

    step: int
    tool: str
    arguments: Mapping[str, Any]
    result: str
    sources: tuple[str, ...] = ()
    """Ids of sources that may be cited from now on."""
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class LeakBlocked:
    """Something was withheld from the model, and why."""

    layer: str
    """The layer of the fence that refused it: date, address, data, content."""
    reason: str
    url: str = ""
    title: str = ""
    published: str = ""


@quick_init
@dataclass(frozen=True, kw_only=True)
class BeliefRevised:
    """The current belief changed."""

    step: int
    p: Mapping[str, float]
    reason: str
    belief: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ForecastMade:
    """A trial ended with a forecast."""

    p: Mapping[str, float]
    how: str
    """submitted, or the current belief at the limit of steps, time or budget, …"""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A trial failed."""

    error: str


@dataclass(frozen=True, kw_only=True)
class NodeAnalyzed:
    """A claim of a tree was decomposed or found to be a leaf."""

    node: str
    tree: str = ""
    """Which tree of the question: the id of its target."""
    added: tuple[str, ...] = ()
    """Ids of all claims added at and below the node, parents before children."""
    claims: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their text, by id."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NodeGrounded:
    """A leaf got its probability, or none."""

    node: str
    tree: str = ""
    p: float | None = None
    """None if grounding failed for good."""
    grounder: str = ""
    attempts: int = 1
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeSynthesized:
    """The probability of a claim was synthesised from those of its children."""

    node: str
    tree: str = ""
    p: float | None = None
    link: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The rule with its parameters."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TreeGrown:
    """A finished tree in the form of its file."""

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
    """Does nothing; for callers that do not watch."""
