"""The specification of a run: written as YAML, identified by its content."""

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
"""In order: somebody is working on it; its cells are queued; somebody stopped it; its process died; it gave up and says
why; every cell has ended, some without an answer; every cell is answered."""
TYPED_PREFIX = "asked "
"""Prefix of the name of a typed question set, which exists only in the store."""


@dataclass(frozen=True, kw_only=True)
class QuestionsSpec(SetFilter):
    """Which questions to ask."""

    dataset: str
    """A question set by name, or a question file."""
    digest: str = ""
    """Digest of the questions, so that other questions in a file of the same name make another run. Computed when a run
    is prepared; if a user sets it, the questions must match."""
    quarantined: int = 0
    """Questions that were left out when the run was prepared because their own text was written later. Not part of the
    run's id."""

    def __post_init__(self) -> None:
        if "\x00" in self.dataset:
            raise ValueError("the name of a data set holds no null character")
        super().__post_init__()

    @property
    def typed(self) -> bool:
        """Whether a person typed the question, so that it exists only in the store."""
        return self.dataset.startswith(TYPED_PREFIX)


@dataclass(frozen=True, kw_only=True)
class BudgetSpec:
    """Hard limits in dollars. When a budget is spent, the current belief is the answer."""

    run: float | None = None
    question: float | None = None

    def __post_init__(self) -> None:
        for name, dollars in asdict(self).items():
            if dollars is not None and not 0 <= dollars < math.inf:
                raise ValueError(f"{name} = {dollars:g} is not an amount of dollars")


FOUND_OUT = ("efforts", "marked")
"""Fields of a spec that are determined when a run is created."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that determines what a run computes. The same spec over the same questions is the same run."""

    questions: QuestionsSpec
    forecaster: str = "agent"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the forecaster: variant, steps, crowd, prior, …"""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """Models by role, at least `agent`; the others default to it."""
    search: tuple[str, ...] = ()
    """Search engines, in the order in which they are asked."""
    trials: int = 1
    combine: str = AUTO
    """How trials are combined: one of `COMBINATIONS`, or the file of a fitted rule."""
    mode: Literal["backtest", "live"] = "backtest"
    strict: bool = False
    """Refuse questions that opened before a model's knowledge cutoff, instead of warning."""
    clairvoyant: bool = False
    """Filters off, for an upper bound; marked in every result."""
    archive_check: bool = False
    """Ask the archive whether pages found by a search are rewritten under the same address; such pages count only as
    stored versions. Takes three requests per page at the archive's rate."""
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    seed: int = 0
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Sampling settings: temperature, effort, max_tokens; anything unset is the provider's default."""
    prices: Mapping[str, str] = field(default_factory=dict[str, str])
    """By model: dollars per million tokens, input/output (such as 0.5/2), if the price is unknown or differs."""
    efforts: Mapping[str, str] = field(default_factory=dict[str, str])
    """By role: the effort of its model, where `sampling` does not set it. Chosen when a run is made and stored with it,
    but not part of its id, so that the same file stays the same run when more is known about its models."""
    marked: bool = False
    """Whether our ids and notes carry a mark and questions are shown without anything that imitates ours. True for
    every new run; runs of older versions continue as they began, so that their replies are found."""

    def __post_init__(self) -> None:
        for written in self.prices.values():
            read_price(written)
        if self.trials < 1:
            raise ValueError(f"trials = {self.trials} is not a number of trials")
        if self.combine not in COMBINATIONS and Path(self.combine).suffix != ".json":
            raise ValueError(f"there is no way to combine called {self.combine!r}; write {', '.join(COMBINATIONS)}")

    @cached_property
    def id(self) -> str:
        """A short hash of the content: equal specs share it.

        >>> RunSpec(questions=QuestionsSpec(dataset="demo")).id == RunSpec(questions=QuestionsSpec(dataset="demo")).id
        True
        """
        return hashlib.sha256(self.bare().to_json().encode()).hexdigest()[:12]

    def bare(self) -> "RunSpec":
        """The spec without what was determined when the run was made and is not part of its identity."""
        return replace(self, efforts={}, marked=False, questions=replace(self.questions, quarantined=0))

    def with_digest(self, digest: str) -> "RunSpec":
        """The spec with the digest of these questions."""
        return replace(self, questions=replace(self.questions, digest=digest))

    def to_json(self) -> str:
        """Canonical JSON as written by earlier versions, so that a run keeps its id.

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
    """Read a YAML or JSON file. An unknown or wrong field raises an `InputError` that names it."""
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file, hint="foretell init run writes one")
    try:
        return spec_from_mapping(parse_yaml(read_text(file)))
    except InputError as error:
        raise error.at(path=file) from None


def spec_from_mapping(data: Any) -> RunSpec:
    """A spec as written by a user, in full or abbreviated. A wrong field raises an `InputError` that names it."""
    if isinstance(data, dict) and "marked" in data:
        raise InputError("marks are chosen when a run is made", column="marked", hint="leave it out")
    if isinstance(data, dict) and "efforts" in data:
        raise InputError(
            "efforts by role are chosen when a run is made", column="efforts", hint="write sampling.effort"
        )
    return spec_from_json(_unabridged(cast("dict[str, Any]", data)) if isinstance(data, dict) else data)


def _unabridged(data: dict[str, Any]) -> dict[str, Any]:
    """Expand abbreviations: a data set as a single word, dates without quotes."""
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
    """A spec from parsed JSON or YAML. A wrong field raises an `InputError` that names it."""
    return checked_fields(current_names(cast("dict[str, Any]", data)) if isinstance(data, dict) else data, RunSpec)


FORMER_NAMES = {"aggregate": "combine"}
"""Former names of fields, still in stored specs, and their current names."""


def current_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a spec under their current names."""
    for former, current in FORMER_NAMES.items():
        if former in data and current in data:
            raise InputError(f"is the former name of {current}; write only {current}", column=former)
    return {FORMER_NAMES.get(name, name): value for name, value in data.items()}
