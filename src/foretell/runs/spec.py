"""What a run is: written as YAML, identified by its content."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from foretell.data.datasets.question_set import SetFilter
from foretell.data.datasets.rows import read_text
from foretell.models.prices import read_price
from foretell.questions.codec import checked_fields, parse_yaml
from foretell.questions.errors import InputError

AUTO, DEFAULT = "auto", "default"
COMBINATIONS = (AUTO, "logit-mean", "mean", "median", "trimmed", "extremised", "judged", DEFAULT)
"""Ways to combine trials that have a name."""
COMBINE_HELP = (
    "How to combine trials: logit-mean, mean, median, trimmed, extremised, judged (a model reads the reasons), default "
    "(starts from the price or base rate and trusts trials as far as their track record supports it), auto (default "
    "once a track record has tested it, logit-mean until then), or a fitted FILE."
)


RunState = Literal["running", "waiting", "stopped", "dead", "broken", "failed", "done"]
"""Somebody works at it; its cells are queued and nobody does; somebody ended it; its process ended without a word; it
gave up, and says why; every cell has ended, some without an answer; every cell is answered."""
TYPED_PREFIX = "asked "
"""Begins the name of a question set that a person typed: it is nowhere but in the store."""


@dataclass(frozen=True, kw_only=True)
class QuestionsSpec(SetFilter):
    """Which questions to ask."""

    dataset: str
    """A question set by name, or a file of questions."""
    digest: str = ""
    """Of the questions themselves, so that other questions in a file of the same name are another run. It is found out
    when a run is prepared; written down by a person, it holds the questions to it."""
    quarantined: int = 0
    """Questions that were left out when the run was prepared, because their own text was written later. Known from then
    on, and no part of the run's id."""

    def __post_init__(self) -> None:
        if "\x00" in self.dataset:
            raise ValueError("the name of a data set holds no null character")
        super().__post_init__()

    @property
    def typed(self) -> bool:
        """Whether a person typed the question, so that it is nowhere but in the store."""
        return self.dataset.startswith(TYPED_PREFIX)


@dataclass(frozen=True, kw_only=True)
class BudgetSpec:
    """Hard limits in dollars; a spent budget ends in the standing belief."""

    run: float | None = None
    question: float | None = None

    def __post_init__(self) -> None:
        for name, dollars in asdict(self).items():
            if dollars is not None and not 0 <= dollars < math.inf:
                raise ValueError(f"{name} = {dollars:g} is not an amount of dollars")


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that decides what a run computes. The same spec over the same questions is the same run."""

    questions: QuestionsSpec
    forecaster: str = "agent"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the forecaster: variant, steps, crowd, prior, …"""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """By role, at least `agent`; the others fall back to it."""
    search: tuple[str, ...] = ()
    """Engines, in the order they are asked."""
    trials: int = 1
    combine: str = AUTO
    """How trials are combined: one of `COMBINATIONS`, or the file of a fitted rule."""
    mode: Literal["backtest", "live"] = "backtest"
    strict: bool = False
    """Refuse questions that opened before a model's knowledge ends, instead of warning."""
    clairvoyant: bool = False
    """Filters off, for an upper bound; marked in every result."""
    archive_check: bool = False
    """Ask the archive whether pages that a search finds are rewritten under their address; such pages count only as a
    stored version. Three requests for each page, at the archive's pace."""
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    seed: int = 0
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How the models are sampled: temperature, effort, max_tokens; what is not said is the provider's default."""
    prices: Mapping[str, str] = field(default_factory=dict[str, str])
    """By model: dollars per million tokens, read/written (such as 0.5/2), where the price is not known or another."""
    efforts: Mapping[str, str] = field(default_factory=dict[str, str])
    """By role: how long its model thinks, where `sampling` does not say. Chosen when a run is made and stored with it;
    no part of its id, so that the same file stays the same run when more is known of its models."""
    marked: bool = False
    """Whether ids and notes of ours carry a mark, and questions are shown without anything that looks like ours: so it
    is in every run that is made now. Runs of older versions go on as they began, so that their replies are found."""

    def __post_init__(self) -> None:
        for written in self.prices.values():
            read_price(written)
        if self.trials < 1:
            raise ValueError(f"trials = {self.trials} is not a number of trials")
        if self.combine not in COMBINATIONS and Path(self.combine).suffix != ".json":
            raise ValueError(f"there is no way to combine called {self.combine!r}; write {', '.join(COMBINATIONS)}")

    @cached_property
    def id(self) -> str:
        """A short name of the content: equal specs share it.

        >>> RunSpec(questions=QuestionsSpec(dataset="demo")).id == RunSpec(questions=QuestionsSpec(dataset="demo")).id
        True
        """
        return hashlib.sha256(self.bare().to_json().encode()).hexdigest()[:12]

    def bare(self) -> "RunSpec":
        """The same without what was only found out when the run was made, and is no part of what it is."""
        return replace(self, efforts={}, marked=False, questions=replace(self.questions, quarantined=0))

    def with_digest(self, digest: str) -> "RunSpec":
        """The same for these questions."""
        return replace(self, questions=replace(self.questions, digest=digest))

    def to_json(self) -> str:
        """Canonical JSON, the same as earlier versions wrote, so that a run keeps its id.

        Fields added later are left out at their default, and `combine` has its former name, `aggregate`.
        """
        fields = asdict(self)
        fields["aggregate"] = fields.pop("combine")
        for name in ("sampling", "prices", "efforts", "marked", "archive_check"):
            if not fields[name]:
                del fields[name]
        usual = QuestionsSpec(dataset="")
        for name in ("digest", "closes_after", "closes_before", "category", "status", "minimum_volume", "again"):
            if not fields["questions"][name]:
                del fields["questions"][name]
        for name in ("late_text", "quarantined"):
            if fields["questions"][name] == getattr(usual, name):
                del fields["questions"][name]
        return json.dumps(fields, sort_keys=True, ensure_ascii=False)


def read_spec(path: str | Path) -> RunSpec:
    """Read a YAML or JSON file; an unknown or wrong field raises an `InputError` that names it."""
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file)
    try:
        return spec_from_mapping(parse_yaml(read_text(file)))
    except InputError as error:
        raise error.at(path=file) from None


def spec_from_mapping(data: Any) -> RunSpec:
    """A spec as a person writes it, in full or in short; a wrong field raises an `InputError` that names it."""
    if isinstance(data, dict) and "marked" in data:
        raise InputError("marks are chosen when a run is made", column="marked", hint="leave it out")
    if isinstance(data, dict) and "efforts" in data:
        raise InputError(
            "efforts by role are chosen when a run is made", column="efforts", hint="write sampling.effort"
        )
    return spec_from_json(_unabridged(cast("dict[str, Any]", data)) if isinstance(data, dict) else data)


def _unabridged(data: dict[str, Any]) -> dict[str, Any]:
    """What people write in short: a data set as one word, dates without quotes."""
    questions = data.get("questions")
    if isinstance(questions, str):
        return {**data, "questions": {"dataset": questions}}
    if not isinstance(questions, dict):
        return data
    written = {
        name: value.isoformat() if isinstance(value, date) else value
        for name, value in cast("dict[str, Any]", questions).items()
    }
    if isinstance(rounds := written.get("rounds"), list):
        written["rounds"] = [str(day) for day in cast("list[Any]", rounds)]
    return {**data, "questions": written}


def spec_from_json(data: Any) -> RunSpec:
    """A spec from parsed JSON or YAML; a wrong field raises an `InputError` that names it."""
    return checked_fields(current_names(cast("dict[str, Any]", data)) if isinstance(data, dict) else data, RunSpec)


FORMER_NAMES = {"aggregate": "combine"}
"""Field of a spec in earlier versions, and still in stored ones → its current name."""


def current_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a spec under their current names."""
    for former, current in FORMER_NAMES.items():
        if former in data and current in data:
            raise InputError(f"is the former name of {current}; write only {current}", column=former)
    return {FORMER_NAMES.get(name, name): value for name, value in data.items()}
