"""What every reader of a data set returns: questions, their outcomes, and what was left out and why."""

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from foretell.data.series.series import SeriesSource
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

AskedKey = tuple[str, datetime]
"""One asking of a question: its id and due time. The same market may be asked in several rounds."""
OutcomeKey = tuple[str, datetime | None, str]
"""Key that joins forecasts to outcomes everywhere: question id, due time, target id."""


@dataclass(frozen=True, kw_only=True)
class ContextSource:
    """An article given to every forecaster of an event, as it was summarised then."""

    title: str
    url: str
    summary: str
    rank: int = 0


def asked_key(question: Question) -> AskedKey:
    """Return the key of one asking of a question."""
    return (question.id, question.due)


def wording(question: Question, now: datetime | None = None) -> str:
    """Return everything that is asked as one line: texts, dates, options, quotes; the time `now` becomes "now"."""
    text = to_json(question)
    return text if now is None else text.replace(json.dumps(_written(now)), '"now"')


def questions_digest(questions: Iterable[Question], now: datetime | None = None) -> str:
    """Return a digest of the questions that depends on neither their order nor their file nor their outcomes.

    Args:
        questions: The questions.
        now: The time at which questions without a date are asked. It does not count, so that a file without dates has
            the same digest tomorrow.
    """
    lines = sorted(wording(one, now if one.due == now else None) for one in questions)
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def _written(moment: datetime) -> str:
    """Format a UTC time as JSON does."""
    return moment.isoformat().replace("+00:00", "Z")


def outcome_key(resolution: Resolution) -> OutcomeKey:
    """Return the join key of an outcome."""
    return (resolution.question_id, resolution.due, resolution.target_id)


@dataclass(frozen=True, kw_only=True)
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
    contexts: Mapping[AskedKey, tuple[ContextSource, ...]] = field(
        default_factory=dict[AskedKey, tuple[ContextSource, ...]]
    )
    """Articles by asking, for events that were published with them."""
    quarantined: tuple[Question, ...] = ()
    """Questions that a backtest leaves out, because their own text was written after the time they are asked."""

    def __post_init__(self) -> None:
        _unique((asked_key(q) for q in self.questions), f"set {self.name} asks question")
        _unique((outcome_key(r) for r in self.resolutions), f"set {self.name} resolves target")

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
        )


@dataclass(kw_only=True)
class QuestionSetBuilder:
    """A question set under construction while its file is being read."""

    questions: dict[AskedKey, Question] = field(default_factory=dict[AskedKey, Question])
    resolutions: list[Resolution] = field(default_factory=list[Resolution])
    contexts: dict[AskedKey, tuple[ContextSource, ...]] = field(
        default_factory=dict[AskedKey, tuple[ContextSource, ...]]
    )
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
    )


def count_notes(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Convert counted reasons to notes, the most frequent first.

    >>> count_notes({"combination questions dropped": 2, "rows seen": 0})
    ('2 combination questions dropped',)
    """
    return tuple(f"{n} {reason}" for reason, n in sorted(counts.items(), key=lambda item: -item[1]) if n)


QUARANTINED = "quarantined"
"""Name of a column of outcomes: 1 for targets of questions that were left out because their own text was written later.
They are never scored, but counted."""


def quarantine_note(count: int) -> str:
    """Return a note with how many questions were left out, and why.

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
"""What a backtest does with a question whose own text was written after the time it is asked."""


@dataclass(frozen=True, kw_only=True)
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
    late_text: LateText = "quarantine"
    """What a backtest does with questions whose own text mentions days after they are asked: leave them out, keep them
    as they are, or cut what was written later."""

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
        """The times between which a question must end."""
        return (
            instant(self.closes_after) if self.closes_after else None,
            instant(self.closes_before) if self.closes_before else None,
        )

    def changed(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, by name."""
        return {one.name: value for one in fields(SetFilter) if (value := getattr(self, one.name)) != one.default}


# A data set in the registry: a function from a request to questions with their outcomes.

Online = Callable[[Callable[[ServiceConfig], Coroutine[Any, Any, None]]], None]
"""Runs a coroutine that needs the network, with an HTTP client and the settings of the service."""


@dataclass(frozen=True, kw_only=True)
class DatasetRequest:
    """Which part of a data set is requested. Written `NAME` or `NAME:ARGUMENT`."""

    argument: str = ""
    """Text after the colon: a file, a tournament, or whatever the data set defines."""
    rounds: tuple[str, ...] = ()
    """Due dates of the requested rounds; empty for all."""
    folder: Path | None = None
    """Folder of downloaded files, instead of the default."""
    live: bool = False
    """Whether this is for a live run, whose questions are open now."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    online: Online | None = field(default=None, repr=False)
    """Downloads what is missing locally; None to use local files only."""

    @property
    def path(self) -> Path:
        """The argument as the path of an existing file or folder."""
        if not self.argument:
            raise InputError("the data set needs a file", hint="write NAME:FILE")
        path = Path(self.argument)
        if not path.exists():
            raise InputError("no such file", path=path)
        return path


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Questions, the history from which base rates are computed, and the series that some questions are about."""

    questions: QuestionSet
    history: QuestionSet
    """Past questions; each question sees only the part that was known before its date."""
    series: SeriesSource | None = None
    grows: bool = False
    """Whether this is a listing of what is open now: its run is identified by name, and also asks later arrivals."""

    @classmethod
    def alone(cls, questions: QuestionSet) -> "Dataset":
        """Return a data set whose questions are their own history."""
        return cls(questions=questions, history=questions)

    @classmethod
    def rounds_of(cls, history: QuestionSet, rounds: tuple[str, ...], *, path: Path) -> "Dataset":
        """Return some rounds of a set, by due date, with the whole set as history."""
        present = {question.due.date().isoformat() for question in history.questions}
        if missing := [day for day in rounds if day not in present]:
            hint = f"there are {', '.join(sorted(present))}"
            raise InputError(f"no round of {missing[0]}", path=path, column="questions.rounds", hint=hint)
        chosen = set(rounds or present)
        return cls(
            questions=history.only(q for q in history.questions if q.due.date().isoformat() in chosen), history=history
        )


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """A data set read from a user's file: how to read it, and how to recognise it if no format is given."""

    read: Callable[[DatasetRequest], Dataset | QuestionSet]
    recognises: Callable[[Path], bool] = lambda path: False
    """Whether a file given without a format has this format."""
    known: Callable[[str], bool] = lambda argument: False
    """Whether an argument is a known name, such as that of a downloaded set, rather than a file path."""

    def __call__(self, request: DatasetRequest) -> Dataset | QuestionSet:
        """Read the file named by the request."""
        return self.read(request)
