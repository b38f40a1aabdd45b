"""What studies of stored runs look at: one trial, one statement, or one forecast with its reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from foretell.forecasters.agent.agent import without_numbers
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import BOTH, ContextView, render
from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent

EventTrace = Sequence[TraceEvent]
LONGEST_REASONS = 12_000


@frozen
class TracedTrial:
    """One trial, with the question it was about."""

    question: str
    trace: EventTrace
    asked: Question | None = None
    """The question itself, if it is stored."""
    outcomes: Mapping[str, float] = field(default_factory=dict[str, float])
    """Outcome of every target that is decided."""
    characters: int | None = None
    """What the agent wrote in all its replies, reasoning included; None if its replies are not stored."""


@frozen
class TreeFacts:
    """The question that a tree of a run answers, and how it ended."""

    question: Question
    target: str
    """The target that the root is about."""
    outcomes: Mapping[str, float] = field(default_factory=dict[str, float])
    """Outcome of every target of the question that is decided."""


@frozen
class StatedForecast:
    """What a forecaster stated about one question, before it was made coherent."""

    forecaster: str
    question: Question
    p: Mapping[str, float]


@frozen
class FoundResult:
    """A result of a forecaster's own search, as the forecaster read it."""

    call: str
    """The tool, and the words it was called with."""
    text: str


@frozen
class ReasoningCase:
    """One forecast to be marked: what was shown, what was answered, and why."""

    context: PredictionContext
    forecast: Forecast
    view: ContextView = BOTH
    """Which part of the context the forecaster was shown."""
    prompt: str = ""
    """The question as an agent was shown it, with what was known before research; empty for the context alone."""
    found: tuple[FoundResult, ...] = ()
    """What it found itself, in the order in which it read it."""

    @property
    def item(self) -> str:
        """An anonymous id for raters, which does not reveal the forecaster."""
        forecast = self.forecast
        parts = [self.context.digest, self.view.name, forecast.forecaster, forecast.trial, forecast.rationale]
        return content_key(["reasoning", *parts])[:16]

    @property
    def shown(self) -> str:
        """What the forecaster was shown before it searched itself."""
        return self.prompt or render(self.context, self.view)

    @property
    def reasons(self) -> str:
        """The forecaster's rationale without its numbers."""
        return without_numbers(self.forecast.rationale)[:LONGEST_REASONS]

    def sheet(self) -> str:
        """Return the text that the judge reads, for people who rate it."""
        numbers = "\n".join(f"- {target}: {p:.3f}" for target, p in self.forecast.p.items())
        found = "".join(f"\n\n# Found by {result.call}\n\n{result.text}" for result in self.found)
        return f"{self.shown}{found}\n\n# Probabilities\n\n{numbers}\n\n# Reasons\n\n{self.reasons}"
