"""The record of a standing question: how it was sharpened, every look, every belief, and its outcome.

The record is append-only. A belief starts from the one before and names the evidence that is new; nothing is asked anew
from nothing.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.questions.as_of import UtcDatetime
from foretell.questions.forecast import Numeric
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

StandingState = Literal["open", "paused", "resolved", "cancelled"]
Trigger = Literal["first", "clock", "price", "series", "document", "time", "user"]
"""Why a question was looked at: it was new, its time had come, its price or series moved, a document appeared.

`time` says that time alone changed the belief.
"""
NoOutcome = Literal["not yet", "cancelled", "ambiguous", "cannot tell"]
"""Answers of the resolver that give no outcome."""


@frozen
class Sharpening:
    """What makes a question resolvable, and what was changed to get there."""

    original: str
    """The question as it was typed."""
    text: str
    """The question as it was accepted."""
    decides: str = ""
    """The source that decides."""
    edge_cases: tuple[str, ...] = ()
    no_means: str = ""
    base_rate_class: str = ""
    """The past events that its base rate is counted on."""
    closes: UtcDatetime | None = None
    """The deadline; None if the question's own was kept."""
    problems: tuple[str, ...] = ()
    """What is still missing, so that the question cannot be resolved as it stands."""


@frozen
class NewEvidence:
    """A piece of evidence that a belief counts. Each is counted once for a question."""

    key: str
    """Identifies what it reports: the same fact read again, or in another document, has the same key."""
    text: str
    url: str = ""
    published: UtcDatetime | None = None
    favours: str = ""
    """The target that it makes more likely; empty if it makes the answer less likely or is neutral."""
    sentences: tuple[str, ...] = ()
    """All of a page that was read whole, to compare its next version with. Not kept with a look."""


@frozen
class Look:
    """One look at a question. It needs no model, unless something new has to be judged."""

    number: int
    at: UtcDatetime
    triggers: tuple[Trigger, ...]
    prices: Mapping[str, float] = field(default_factory=dict[str, float])
    """Target → market price at the time; empty without a market."""
    value: float | None = None
    """The newest value of the series that decides; None without one."""
    value_day: str = ""
    """The day of that value."""
    news: tuple[NewEvidence, ...] = ()
    """What had not been seen before, and what earlier looks could not judge."""
    waits: tuple[NewEvidence, ...] = ()
    """What was new but too much to judge together; the next look takes it up."""
    bears: bool | None = None
    """Whether the news bears on the question; None if there was none to judge."""
    why: str = ""
    """Why the belief was changed, or why nothing changed."""
    billed: float = 0.0


@frozen
class StandingBelief:
    """A forecast for the question, made at a look."""

    number: int
    look: int
    at: UtcDatetime
    p: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Target → 80% interval."""
    trials: int = 1
    """Number of trials behind it."""
    evidence: tuple[NewEvidence, ...] = ()
    rationale: str = ""
    prices: Mapping[str, float] = field(default_factory=dict[str, float])
    base_rates: Mapping[str, float] = field(default_factory=dict[str, float])
    coherent: Mapping[str, float] = field(default_factory=dict[str, float])
    """The probabilities made to agree with related questions, if that changed them; `p` stays as it was."""
    run: str = ""
    """The run that stores every step of the model."""
    billed: float = 0.0
    moved_by: str = ""
    """What changed it without new evidence: a price, or time alone."""
    own: Mapping[str, float] = field(default_factory=dict[str, float])
    """The probabilities before the price was counted and bounds were applied, from which the next belief starts."""
    distribution: Numeric | None = None
    """For a question about a number or a date."""

    @property
    def answer(self) -> Mapping[str, float]:
        """The probabilities that are shown and scored: those that agree with related questions, if any changed."""
        return {**self.p, **self.coherent}


@frozen
class OutcomeReading:
    """How one reader understood a source."""

    reader: str
    """"arithmetic" for a series or market, otherwise the model."""
    outcome: str | NoOutcome
    """A target that came true, "no" if none did, or why there is no outcome."""
    quote: str = ""
    url: str = ""
    published: UtcDatetime | None = None
    why: str = ""


@frozen
class OutcomeProposal:
    """What the resolver proposes. It is not scored before the user confirms it, unless the user said so."""

    at: UtcDatetime
    outcome: Mapping[str, int] | None
    """Target → 0 or 1; None if there is no outcome."""
    status: Literal["proposed"] | NoOutcome
    readings: tuple[OutcomeReading, ...] = ()
    why: str = ""
    billed: float = 0.0


@frozen
class StandingQuestion:
    """A question that is watched, and the settings it is asked with."""

    id: str
    """Short and readable, such as `halvik-terminal`."""
    question: Question
    opened_at: UtcDatetime
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The settings of a run."""
    sharpening: Sharpening | None = None
    state: StandingState = "open"


@frozen
class QuestionRecord:
    """All that is stored of a standing question, oldest first."""

    standing: StandingQuestion
    looks: tuple[Look, ...] = ()
    beliefs: tuple[StandingBelief, ...] = ()
    proposals: tuple[OutcomeProposal, ...] = ()
    outcomes: tuple[Resolution, ...] = ()
    """Confirmed by the user, or taken as proposed because the user said so: the last one of each target."""
