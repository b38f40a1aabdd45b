"""What the registry knows of a data set: a function from a request to questions with their outcomes."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import QuestionSet
from foretell.data.series.series import SeriesSource
from foretell.data.service import ServiceConfig
from foretell.questions.errors import InputError

Online = Callable[[Callable[[ServiceConfig], Coroutine[Any, Any, None]]], None]
"""Carries out work that needs the network, with a connection and what the settings say of the service."""


@dataclass(frozen=True, kw_only=True)
class DatasetRequest:
    """Which part of a data set is wanted. Written `NAME` or `NAME:ARGUMENT`."""

    argument: str = ""
    """What follows the colon: a file, a tournament, whatever the data set makes of it."""
    rounds: tuple[str, ...] = ()
    """Due dates of the rounds wanted; all of them where none is named."""
    folder: Path | None = None
    """Where downloaded files are, instead of the usual place."""
    live: bool = False
    """Whether it is for a live run, whose questions are open now."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    online: Online | None = field(default=None, repr=False)
    """How to fetch what is not here yet; None where only what is here counts."""

    @property
    def path(self) -> Path:
        """The argument as a file or folder that exists."""
        if not self.argument:
            raise InputError("the data set needs a file", hint="write NAME:FILE")
        path = Path(self.argument)
        if not path.exists():
            raise InputError("no such file", path=path)
        return path


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Questions, the past that base rates are counted from, and the series that some of the questions are about."""

    questions: QuestionSet
    history: QuestionSet
    """Each question sees only the part that was known before its date."""
    series: SeriesSource | None = None
    grows: bool = False
    """Whether it is a listing of what is open now: its run is known by its name, and asks what comes in later too."""

    @classmethod
    def alone(cls, questions: QuestionSet) -> "Dataset":
        """Questions that are their own history."""
        return cls(questions=questions, history=questions)

    @classmethod
    def rounds_of(cls, history: QuestionSet, rounds: tuple[str, ...], *, path: Path) -> "Dataset":
        """Some of the rounds of a set, by due date, with all of it as history."""
        present = {question.due.date().isoformat() for question in history.questions}
        if missing := [day for day in rounds if day not in present]:
            hint = f"there are {', '.join(sorted(present))}"
            raise InputError(f"no round of {missing[0]}", path=path, column="--round", hint=hint)
        chosen = set(rounds or present)
        return cls(
            questions=history.only(q for q in history.questions if q.due.date().isoformat() in chosen), history=history
        )


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """A data set that is a file of the user's: how to read it, and how to know it without being told its format."""

    read: Callable[[DatasetRequest], Dataset | QuestionSet]
    recognises: Callable[[Path], bool] = lambda path: False
    """Asked about files that are named without a format."""
    known: Callable[[str], bool] = lambda argument: False
    """Whether an argument is known by name, such as that of a downloaded set, and not the path of a file."""

    def __call__(self, request: DatasetRequest) -> Dataset | QuestionSet:
        """Read the file named by the request."""
        return self.read(request)
