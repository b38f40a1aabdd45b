"""Events of a forecast in progress, which every view of it reads."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from math import fsum
from typing import Any, Self

from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.forecast import Cost


class TimedEvent:
    """An event knows when it happened and how long it took.

    Neither is a field: events that differ only in time are equal, are sorted and stored alike, and replays do not
    compare them.
    """

    __slots__ = ("at", "seconds")

    at: float | None
    """When it ended, in seconds since 1970; None for events that were stored without a time."""
    seconds: float | None
    """How long the model or tool took, including waiting for its turn; None if nothing was waited for."""

    def __new__(cls, *_: Any, **fields: Any) -> Self:
        """Create an event that happens now."""
        return super().__new__(cls).timed(time.time(), None)

    def timed(self, at: float | None, seconds: float | None) -> Self:
        """Set when the event happened, and return it."""
        object.__setattr__(self, "at", at)  # The events are frozen.
        object.__setattr__(self, "seconds", seconds)
        return self

    def __setstate__(self, state: tuple[Mapping[str, Any], Mapping[str, Any]]) -> None:
        """Restore a copy or a pickled event, whose times cannot be assigned because it is frozen."""
        values, times = state
        vars(self).update(values)
        self.timed(**times)

    @property
    def time_fields(self) -> dict[str, Any]:
        """When it happened and how long it took, for JSON."""
        at = None if self.at is None else datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        return {"at": at, "seconds": None if self.seconds is None else round(self.seconds, 3)}

    def since(self, start: float) -> Self:
        """Set that the event took from `start`, in seconds since 1970, until now, and return it."""
        now = time.time()
        return self.timed(now, max(0.0, now - start))


@frozen
class ModelCalled(TimedEvent):
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


@frozen
class QuestionShown(TimedEvent):
    """A model was given the question; this is its first prompt, with everything that was known before research."""

    text: str


@frozen
class ToolUsed(TimedEvent):
    """A tool was called; this is what the model saw of its result."""

    step: int
    tool: str
    arguments: Mapping[str, Any]
    result: str
    sources: tuple[str, ...] = ()
    """Ids of sources that may be cited from now on."""
    failed: bool = False


@frozen
class LeakBlocked(TimedEvent):
    """The leakage filter withheld something from the model."""

    layer: str
    """The layer of the leakage filter that blocked it: date, address, data or content."""
    reason: str
    url: str = ""
    title: str = ""
    published: str = ""


@frozen
class BeliefRevised(TimedEvent):
    """The current estimate changed."""

    step: int
    p: Mapping[str, float]
    reason: str
    belief: Mapping[str, Any]


@frozen
class EvidenceFound(TimedEvent):
    """The research of a trial ended; this is the evidence it leaves to other trials."""

    items: tuple[Mapping[str, str], ...]
    p: Mapping[str, float] = field(default_factory=dict[str, float])
    """Its direct estimate by target."""
    distribution: Mapping[str, Any] | None = None
    """The same for a question about a number or a date: the fields of a `Numeric`."""


@frozen
class ForecastMade(TimedEvent):
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
        'kept at a bound; submitted 1.0 %'
        """
        if self.stated is None:
            return self.how
        several = len(self.stated) > 1
        numbers = ", ".join(f"{id} {percent(p, 1)}" if several else percent(p, 1) for id, p in self.stated.items())
        return f"kept at a bound; {self.how} {numbers}"


@frozen
class Failed(TimedEvent):
    """A trial failed."""

    error: str


@frozen
class NodeAnalyzed(TimedEvent):
    """A claim of a tree was decomposed or found to be a leaf."""

    node: str
    tree: str = ""
    """The id of the tree's target."""
    added: tuple[str, ...] = ()
    """Ids of all claims added at and below the node, parents before children."""
    claims: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their text, by id."""
    notes: tuple[str, ...] = ()


@frozen
class NodeGrounded(TimedEvent):
    """A leaf was grounded, or its grounding failed."""

    node: str
    tree: str = ""
    p: float | None = None
    """None if grounding failed."""
    grounder: str = ""
    attempts: int = 1
    error: str = ""


@frozen
class NodeSynthesized(TimedEvent):
    """The probability of a claim was synthesised from those of its children."""

    node: str
    tree: str = ""
    p: float | None = None
    link: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The rule with its parameters."""
    notes: tuple[str, ...] = ()


@frozen
class TreeGrown(TimedEvent):
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


class CallMeter:
    """Adds up the cost of model calls. A reply that several trials or steps use counts once."""

    def __init__(self) -> None:
        self._keys = set[str]()
        self._billed, self._reused = list[float](), list[float]()
        self._input = self._output = self._unpriced = self._uncounted = 0

    def count(self, event: TraceEvent) -> bool:
        """Count the event if it is the first use of a reply, and say whether it is."""
        if not isinstance(event, ModelCalled):
            return False
        tokens = event.input_tokens, event.output_tokens
        return self.add(event.key, event.dollars, tokens, reused=event.reused, uncounted=event.uncounted)

    def add(
        self, key: str, dollars: float | None, tokens: tuple[int, int], *, reused: bool, uncounted: bool = False
    ) -> bool:
        """Count a reply with its input and output tokens, and say whether it is its first use."""
        if key in self._keys:
            return False
        self._keys.add(key)
        (self._reused if reused else self._billed).append(dollars or 0.0)
        self._input += tokens[0]
        self._output += tokens[1]
        self._unpriced += dollars is None
        self._uncounted += uncounted
        return True

    @property
    def cost(self) -> Cost:
        """The cost of all calls so far."""
        return Cost(
            # Calls end in any order. Unlike a plain sum, fsum does not depend on it.
            dollars=round(fsum(self._billed), 12),
            reused=round(fsum(self._reused), 12),
            input_tokens=self._input,
            output_tokens=self._output,
            calls=len(self._keys),
            unpriced=self._unpriced,
            uncounted=self._uncounted,
        )


def cost_of_calls(events: Iterable[TraceEvent]) -> Cost:
    """Return the cost of the model calls among events, each reply once."""
    meter = CallMeter()
    for event in events:
        meter.count(event)
    return meter.cost
