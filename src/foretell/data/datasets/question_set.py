"""What every reader of a data set returns: questions, how they came out, and what was left out and why."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from foretell.questions.as_of import instant
from foretell.questions.codec import to_json
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

AskedKey = tuple[str, datetime]
"""One asking of a question: its id and the due moment. The same market may be asked in several rounds."""
OutcomeKey = tuple[str, datetime | None, str]
"""What joins forecasts to outcomes everywhere: question id, due moment, target id."""


@dataclass(frozen=True, kw_only=True)
class ContextSource:
    """An article handed to every forecaster of an event, as it was summarised then."""

    title: str
    url: str
    summary: str
    rank: int = 0


def asked_key(question: Question) -> AskedKey:
    """The key of one asking of a question."""
    return (question.id, question.due)


def wording(question: Question, now: datetime | None = None) -> str:
    """Everything that is asked, in one line: texts, dates, options, quotes; `now` stands for a moment nobody stated."""
    text = to_json(question)
    return text if now is None else text.replace(json.dumps(_written(now)), '"now"')


def questions_digest(questions: Iterable[Question], now: datetime | None = None) -> str:
    """The same for the same questions in any order, whatever file they are in and however they came out.

    Args:
        questions: What is asked.
        now: The moment that questions without a date are asked at: it does not count, so that a file without dates has
            the same digest tomorrow.
    """
    lines = sorted(wording(one, now if one.due == now else None) for one in questions)
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def _written(moment: datetime) -> str:
    """As JSON writes a moment in UTC."""
    return moment.isoformat().replace("+00:00", "Z")


def outcome_key(resolution: Resolution) -> OutcomeKey:
    """The join key of an outcome."""
    return (resolution.question_id, resolution.due, resolution.target_id)


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """Questions with their outcomes kept apart, and a note for every kind of row that was not taken over.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="a", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),))
    >>> s = QuestionSet(name="mine", questions=(q,), resolutions=(
    ...     Resolution(question_id="a", target_id="yes", due="2026-01-01", outcome=None),))
    >>> len(s.questions), s.outcomes()
    (1, {})
    """

    name: str
    questions: tuple[Question, ...] = ()
    resolutions: tuple[Resolution, ...] = ()
    notes: tuple[str, ...] = ()
    """What was dropped and why, with counts, as shown to a user."""
    contexts: Mapping[AskedKey, tuple[ContextSource, ...]] = field(
        default_factory=dict[AskedKey, tuple[ContextSource, ...]]
    )
    """Articles by asking, for events that were published together with them."""
    quarantined: tuple[Question, ...] = ()
    """What a backtest leaves out, because a question's own text was written after the moment it is asked."""

    def __post_init__(self) -> None:
        _unique((asked_key(q) for q in self.questions), f"set {self.name} asks question")
        _unique((outcome_key(r) for r in self.resolutions), f"set {self.name} resolves target")

    def outcomes(self) -> dict[OutcomeKey, int]:
        """The outcomes that are known, by join key; unresolved targets are absent."""
        return {outcome_key(r): r.outcome for r in self.resolutions if r.outcome is not None}

    def only(self, chosen: Iterable[Question], *, name: str | None = None) -> "QuestionSet":
        """The given questions of this set in the given order, with their outcomes and articles."""
        questions = tuple(chosen)
        keys: set[tuple[str, datetime | None]] = {asked_key(q) for q in questions}
        keys |= {(q.id, None) for q in questions}  # An outcome without a date is that of every asking.
        return replace(
            self,
            name=name or self.name,
            questions=questions,
            resolutions=tuple(r for r in self.resolutions if (r.question_id, r.due) in keys),
            contexts={k: v for k, v in self.contexts.items() if k in keys},
        )


@dataclass(kw_only=True)
class QuestionSetBuilder:
    """A set while its file is being read."""

    questions: dict[AskedKey, Question] = field(default_factory=dict[AskedKey, Question])
    resolutions: list[Resolution] = field(default_factory=list[Resolution])
    contexts: dict[AskedKey, tuple[ContextSource, ...]] = field(
        default_factory=dict[AskedKey, tuple[ContextSource, ...]]
    )
    counts: Counter[str] = field(default_factory=Counter[str])
    """What was left out, by reason."""

    def build(self, name: str) -> QuestionSet:
        """The finished set."""
        return QuestionSet(
            name=name,
            questions=tuple(self.questions.values()),
            resolutions=tuple(self.resolutions),
            notes=count_notes(self.counts),
            contexts=self.contexts,
        )


def union(name: str, sets: Iterable[QuestionSet]) -> QuestionSet:
    """Several sets as one; each note says which set it came from. An asking may occur only once."""
    parts = tuple(sets)
    return QuestionSet(
        name=name,
        questions=tuple(q for part in parts for q in part.questions),
        resolutions=tuple(r for part in parts for r in part.resolutions),
        notes=tuple(f"{part.name}: {note}" for part in parts for note in part.notes),
        contexts={key: sources for part in parts for key, sources in part.contexts.items()},
    )


def count_notes(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Notes out of counted reasons, the most frequent first.

    >>> count_notes({"combination questions dropped": 2, "rows seen": 0})
    ('2 combination questions dropped',)
    """
    return tuple(f"{n} {reason}" for reason, n in sorted(counts.items(), key=lambda item: -item[1]) if n)


QUARANTINED = "quarantined"
"""A column of outcomes: 1 for targets of questions that were left out, because their own text was written later. They
are never scored, but counted."""


def quarantine_note(count: int) -> str:
    """How many questions were left out, and why.

    >>> quarantine_note(1)
    '1 quarantined: its own text was written after the moment of asking'
    """
    return f"{count} quarantined: {'its' if count == 1 else 'their'} own text was written after the moment of asking"


def _unique(keys: Iterable[tuple[object, ...]], what: str) -> None:
    seen: set[tuple[object, ...]] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"{what} {' / '.join(str(part) for part in key)} twice")
        seen.add(key)


# Which questions of a set are wanted.

SetStatus = Literal["unopened", "open", "closed", "resolved"]
LateText = Literal["quarantine", "keep", "cut"]
"""What is done in a backtest with a question whose own text was written after the moment it is asked."""


@dataclass(frozen=True, kw_only=True)
class SetFilter:
    """What is wanted of a question set. Where an option has no meaning for a set, the set refuses it."""

    rounds: tuple[str, ...] = ()
    """Due dates of the rounds wanted; all of them where none is named."""
    limit: int | None = None
    """Only the first so many, for a cheap first look."""
    closes_after: str | None = None
    """Only what ends on this day or later."""
    closes_before: str | None = None
    """Only what ends by this day."""
    category: str = ""
    """Only this category, or what a market tags so; upper and lower case are the same."""
    status: SetStatus | None = None
    """Of a market's events; open where nothing is said."""
    minimum_volume: float = 0.0
    """Of a market's events, in its own unit; an event whose volume is not told reaches no minimum."""
    again: float | None = None
    """Days after which a question that is asked "now" is asked anew; None asks it once."""
    late_text: LateText = "quarantine"
    """In a backtest, of questions whose own text tells of days after they are asked: leave them out, keep them as they
    are, or cut what was written later."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit = {self.limit} is not a number of questions")
        if self.again is not None and not self.again > 0:
            raise ValueError(f"again = {self.again:g} is not a number of days")
        if self.minimum_volume < 0:
            raise ValueError("a minimum cannot be below 0")
        after, before = self.window
        if after and before and after > before:
            raise ValueError("closes_after is later than closes_before")

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        """Between which moments a question must end."""
        return (
            instant(self.closes_after) if self.closes_after else None,
            instant(self.closes_before) if self.closes_before else None,
        )

    def changed(self) -> dict[str, Any]:
        """The options that are not at their default, by name."""
        return {one.name: value for one in fields(SetFilter) if (value := getattr(self, one.name)) != one.default}
