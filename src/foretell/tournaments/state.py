"""The state that the visits to a tournament share: one file, rewritten as a whole at every step."""

import json
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Self

from foretell.data.files import write_atomically
from foretell.questions.codec import from_dict, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.runs.settings import Settings
from foretell.tournaments.connection import SERVICES

VISITS_KEPT = 2000
Row = dict[str, Any]


def tournament_folder(settings: Settings, platform: str, name: str) -> Path:
    """Return the folder for the state of a tournament or a round."""
    return settings.home / "tournaments" / f"{SERVICES.get(platform, platform)}-{name}"


@dataclass(kw_only=True)
class StoredState:
    """The state that the visits to a tournament share, stored in a file."""

    path: Path
    visits: list[Row] = field(default_factory=list[Row])
    """What each visit did."""

    @property
    def paid_runs(self) -> list[str]:
        """The runs that may have cost money, for counting what was spent."""
        raise NotImplementedError

    @classmethod
    def read(cls, path: Path, **new: Any) -> Self:
        """Read the state from its file, or create one with these fields if there is none."""
        if not path.is_file():
            return cls(path=path, **new)
        try:
            return cls(path=path, **cls._decoded(json.loads(path.read_text(encoding="utf-8"))))
        except (ValueError, TypeError, KeyError, AttributeError, InputError):
            hint = "delete it; answers and submissions are also stored in the runs, the ledger and the platform"
            raise InputError("is damaged", path=path, hint=hint) from None

    @classmethod
    def _decoded(cls, body: Row) -> Row:
        """Return the fields of the state from parsed JSON."""
        return body

    def save(self) -> None:
        """Write the whole state at once."""
        body = {name: value for name, value in vars(self).items() if name != "path"}
        body["visits"] = self.visits[-VISITS_KEPT:]
        write_atomically(self.path, json.dumps(body, ensure_ascii=False, default=_encoded).encode())


def _encoded(value: Any) -> Any:
    if isinstance(value, Question | Forecast):
        return json.loads(to_json(value))
    return vars(value) if is_dataclass(value) else str(value)


@dataclass(kw_only=True)
class PendingQuestion:
    """An unanswered question, as it was when it was first seen."""

    question: Question
    attempts: int = 0
    problem: str = ""


@dataclass(kw_only=True)
class TournamentState(StoredState):
    """The state that the runs of a tournament with single questions share."""

    pending: dict[str, PendingQuestion] = field(default_factory=dict[str, PendingQuestion])
    """By question id."""
    outbox: list[Forecast] = field(default_factory=list[Forecast])
    """Forecasts that are not sent yet. Their rationale is the text of the comment."""
    texts: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """For each question in the outbox: its text and the answer in short."""
    made: dict[str, str] = field(default_factory=dict[str, str])
    """When each question was last forecast. The ledger does not record a forecast that equals the one before."""
    runs: list[str] = field(default_factory=list[str])
    """Every run of this tournament."""

    @property
    def paid_runs(self) -> list[str]:
        """All runs."""
        return self.runs

    @classmethod
    def _decoded(cls, body: Row) -> Row:
        pending = {
            id: PendingQuestion(question=from_dict(row.pop("question"), Question), **row)
            for id, row in body["pending"].items()
        }
        outbox = [from_dict(row, Forecast) for row in body["outbox"]]
        return {**body, "pending": pending, "outbox": outbox}

    def day(self, day: str) -> list[Row]:
        """Return what the runs of one day did."""
        return [run for run in self.visits if run["at"].startswith(day)]


@dataclass(kw_only=True)
class RoundState(StoredState):
    """The state of a round: what its runs share, and what the results report."""

    round: str
    organization: str = ""
    entry: str = ""
    number: int = 1
    rehearsal: bool = False
    runs: dict[str, str] = field(default_factory=dict[str, str])
    """Who answers (`model_free` or `agents`) → run id."""
    paid: list[str] = field(default_factory=list[str])
    """Every run of agents, including those of other models."""
    file: str = ""
    """The written file; empty until then."""
    uploaded: str = ""
    """The address it was uploaded to; empty until then."""

    @property
    def paid_runs(self) -> list[str]:
        """The runs of agents."""
        return self.paid

    @classmethod
    def _decoded(cls, body: Row) -> Row:
        body.pop("platform", None)  # Written by the first version.
        return body
