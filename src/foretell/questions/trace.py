"""Events of a forecast in progress, which every view of it reads."""

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
    """Whether another run paid for it. `dollars` is then the original cost."""
    uncounted: bool = False
    """Whether its token counts were not credible, so that the maximum possible cost is charged."""


@dataclass(frozen=True, kw_only=True)
class QuestionShown:
    """A model was given the question; this is its first prompt, with everything that was known before research."""

    text: str


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
    """The leakage filter withheld something from the model."""

    layer: str
    """The layer of the leakage filter that blocked it: date, address, data or content."""
    reason: str
    url: str = ""
    title: str = ""
    published: str = ""


@quick_init
@dataclass(frozen=True, kw_only=True)
class BeliefRevised:
    """The current estimate changed."""

    step: int
    p: Mapping[str, float]
    reason: str
    belief: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class EvidenceFound:
    """The research of a trial ended; this is the evidence it leaves to other trials."""

    items: tuple[Mapping[str, str], ...]
    p: Mapping[str, float] = field(default_factory=dict[str, float])
    """Its direct estimate by target."""
    distribution: Mapping[str, Any] | None = None
    """The same for a question about a number or a date: the fields of a `Numeric`."""


@dataclass(frozen=True, kw_only=True)
class ForecastMade:
    """A trial ended with a forecast."""

    p: Mapping[str, float]
    how: str
    """`submitted`, or why the current estimate counts, such as a limit on steps, time or budget."""
    stated: Mapping[str, float] | None = None
    """What was submitted or estimated, if the forecast was kept at a bound instead."""

    @property
    def in_words(self) -> str:
        """How the trial ended, with the number that was stated if it is not the forecast.

        >>> ForecastMade(p={"yes": 0.05}, how="submitted", stated={"yes": 0.01}).in_words
        'kept at a bound; submitted 0.010'
        """
        if self.stated is None:
            return self.how
        numbers = ", ".join(f"{p:.3f}" if len(self.stated) == 1 else f"{id} {p:.3f}" for id, p in self.stated.items())
        return f"kept at a bound; {self.how} {numbers}"


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A trial failed."""

    error: str


@dataclass(frozen=True, kw_only=True)
class NodeAnalyzed:
    """A claim of a tree was decomposed or found to be a leaf."""

    node: str
    tree: str = ""
    """The id of the tree's target."""
    added: tuple[str, ...] = ()
    """Ids of all claims added at and below the node, parents before children."""
    claims: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their text, by id."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NodeGrounded:
    """A leaf was grounded, or its grounding failed."""

    node: str
    tree: str = ""
    p: float | None = None
    """None if grounding failed."""
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
    | QuestionShown
    | ToolUsed
    | LeakBlocked
    | BeliefRevised
    | EvidenceFound
    | NodeAnalyzed
    | NodeGrounded
    | NodeSynthesized
    | TreeGrown
    | ForecastMade
    | Failed
)
EmitEvent = Callable[[TraceEvent], None]


def ignore_event(event: TraceEvent) -> None:
    """Do nothing."""
