"""The result of reading a data set: questions, their outcomes, and notes on what was left out."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.number_text import plural
from foretell.questions.as_of import instant
from foretell.questions.codec import to_json
from foretell.questions.field_checks import check_fields
from foretell.questions.question import Question
from foretell.questions.resolution import Reference, Resolution

AskedKey = tuple[str, datetime]
"""One asking of a question: its id and due time. The same market may be asked in several rounds."""
OutcomeKey = tuple[str, datetime | None, str]
"""Key that joins forecasts to outcomes everywhere: question id, due time, target id."""


MOST_SOURCES = 10
"""Maximum number of sources that a context shows."""


@frozen
class ContextSource:
    """An article given to every forecaster of an event, as it was summarised then."""

    title: str
    url: str
    summary: str
    rank: int = 0


ContextMaterial = tuple[ContextSource, ...] | str
"""What was gathered for a question: its articles, or a whole context as JSON."""


def asked_key(question: Question) -> AskedKey:
    """Return the key of one asking of a question."""
    return (question.id, question.due)


def wording(question: Question, now: datetime | None = None) -> str:
    """Return everything that is asked as one line: texts, dates, options, quotes; the time `now` becomes "now"."""
    text = to_json(question)
    return text if now is None else text.replace(json.dumps(now.isoformat().replace("+00:00", "Z")), '"now"')


def questions_digest(questions: Iterable[Question], now: datetime | None = None) -> str:
    """Return a digest of the questions that depends on neither their order nor their file nor their outcomes.

    The time `now`, at which questions without a date are asked, does not count either: the digest is the same tomorrow.
    """
    lines = sorted(wording(question, now if question.due == now else None) for question in questions)
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def outcome_key(resolution: Resolution) -> OutcomeKey:
    """Return the join key of an outcome."""
    return (resolution.question_id, resolution.due, resolution.target_id)


@frozen
class QuestionSet:
    """Questions with separate outcomes, and a note for every kind of row that was left out.

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
    contexts: Mapping[AskedKey, ContextMaterial] = field(default_factory=dict[AskedKey, ContextMaterial])
    """What was gathered beforehand by asking, for questions that come with it."""
    references: tuple[Reference, ...] = ()
    """The right answers of questions that are answered in words."""
    excluded: tuple[Question, ...] = ()
    """Questions that a backtest leaves out, because their own text was written after the time they are asked."""

    def __post_init__(self) -> None:
        _unique((asked_key(q) for q in self.questions), f"set {self.name} asks question")
        _unique((outcome_key(r) for r in self.resolutions), f"set {self.name} resolves target")

    def __repr__(self) -> str:
        counts = f"{plural(len(self.questions), 'question')}, {plural(len(self.outcomes()), 'outcome')}"
        return f"<{type(self).__name__} {self.name}: {counts}>"

    def outcomes(self) -> dict[OutcomeKey, int]:
        """Return the known outcomes by join key; unresolved targets are absent."""
        return {outcome_key(r): r.outcome for r in self.resolutions if r.outcome is not None}

    def only(self, chosen: Iterable[Question], *, name: str | None = None) -> "QuestionSet":
        """Return a set of the given questions in the given order, with their outcomes and articles."""
        questions = tuple(chosen)
        keys: set[tuple[str, datetime | None]] = {asked_key(q) for q in questions}
        keys |= {(q.id, None) for q in questions}  # An outcome without a date is that of every asking.
        return replace(
            self,
            name=name or self.name,
            questions=questions,
            resolutions=tuple(r for r in self.resolutions if (r.question_id, r.due) in keys),
            contexts={k: v for k, v in self.contexts.items() if k in keys},
            references=tuple(r for r in self.references if (r.question_id, None) in keys),
        )


@dataclass(kw_only=True)
class QuestionSetBuilder:
    """A question set under construction while its file is being read."""

    questions: dict[AskedKey, Question] = field(default_factory=dict[AskedKey, Question])
    resolutions: list[Resolution] = field(default_factory=list[Resolution])
    contexts: dict[AskedKey, ContextMaterial] = field(default_factory=dict[AskedKey, ContextMaterial])
    references: list[Reference] = field(default_factory=list[Reference])
    counts: Counter[str] = field(default_factory=Counter[str])
    """Number of items left out, by reason."""

    def build(self, name: str) -> QuestionSet:
        """Return the finished set."""
        return QuestionSet(
            name=name,
            questions=tuple(self.questions.values()),
            resolutions=tuple(self.resolutions),
            notes=count_notes(self.counts),
            contexts=self.contexts,
            references=tuple(self.references),
        )


def union(name: str, sets: Iterable[QuestionSet]) -> QuestionSet:
    """Combine several sets into one; each note says which set it came from. An asking may occur only once."""
    parts = tuple(sets)
    return QuestionSet(
        name=name,
        questions=tuple(q for part in parts for q in part.questions),
        resolutions=tuple(r for part in parts for r in part.resolutions),
        notes=tuple(f"{part.name}: {note}" for part in parts for note in part.notes),
        contexts={key: sources for part in parts for key, sources in part.contexts.items()},
        references=tuple(r for part in parts for r in part.references),
    )


def count_notes(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Convert counted reasons to notes, the most frequent first.

    >>> count_notes({"combination questions dropped": 2, "rows seen": 0})
    ('2 combination questions dropped',)
    """
    return tuple(f"{n} {reason}" for reason, n in sorted(counts.items(), key=lambda item: -item[1]) if n)


EXCLUDED = "excluded"
"""Name of a column of outcomes: 1 for targets of questions that were left out because their own text was written later.
They are never scored, but counted."""


def excluded_note(count: int) -> str:
    """Return a note with how many questions were left out, and why.

    >>> excluded_note(1)
    '1 excluded: its own text was written after the forecast date'
    """
    return f"{count} excluded: {'its' if count == 1 else 'their'} own text was written after the forecast date"


def _unique(keys: Iterable[tuple[object, ...]], what: str) -> None:
    seen: set[tuple[object, ...]] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"{what} {' / '.join(str(part) for part in key)} twice")
        seen.add(key)


# Which questions of a set are wanted.

SetStatus = Literal["unopened", "open", "closed", "resolved"]
LeakyQuestions = Literal["exclude", "keep", "redact"]
"""What a backtest does with a question whose own text was written after the time it is asked."""


@frozen
class SetFilter:
    """Which questions of a set to use. A set rejects options that have no meaning for it."""

    rounds: tuple[str, ...] = ()
    """Due dates of the requested rounds; empty for all."""
    limit: int | None = None
    """Maximum number of questions, taken from the start, for a cheap first look."""
    closes_after: str | None = None
    """Only questions that end on this day or later."""
    closes_before: str | None = None
    """Only questions that end by this day."""
    category: str = ""
    """Only this category or market tag, ignoring case."""
    status: SetStatus | None = None
    """Status of a market's events; open by default."""
    minimum_volume: float = 0.0
    """Minimum volume of a market's events, in its own unit; an event of unknown volume never reaches a minimum."""
    again: float | None = None
    """Days after which a question that is asked "now" is asked again; None asks it once."""
    leaky_questions: LeakyQuestions = "exclude"
    """What a backtest does with questions whose own text mentions days after they are asked: leave them out, keep them
    as they are, or cut what was written later."""

    def __post_init__(self) -> None:
        check_fields(self)
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
        """The times between which a question must end."""
        return (
            instant(self.closes_after) if self.closes_after else None,
            instant(self.closes_before) if self.closes_before else None,
        )

    def changed(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, by name."""
        return {
            option.name: value
            for option in fields(SetFilter)
            if (value := getattr(self, option.name)) != option.default
        }
