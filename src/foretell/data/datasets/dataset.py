"""A data set in the registry: a function from a request to questions with their outcomes."""

from collections.abc import Callable, Coroutine
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import QuestionSet
from foretell.data.series.series import SeriesSource
from foretell.data.service import ServiceConfig
from foretell.frozen import frozen
from foretell.questions.errors import InputError

Online = Callable[[Callable[[ServiceConfig], Coroutine[Any, Any, None]]], None]
"""Runs a coroutine that needs the network, with an HTTP client and the settings of the service."""


@frozen
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


@frozen
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


@frozen
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
