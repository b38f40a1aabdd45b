"""The specification of a run: written as YAML, identified by its content."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from foretell.data.datasets.question_set import SetFilter
from foretell.data.datasets.rows import read_text
from foretell.models.prices import read_price
from foretell.questions.codec import checked_fields, parse_yaml
from foretell.questions.errors import InputError, known_names

AUTO, DEFAULT = "auto", "default"
COMBINATIONS = (AUTO, "logit-mean", "mean", "median", "trimmed", "extremised", "judged", DEFAULT)
"""Ways to combine trials that have a name."""
COMBINE_HELP = (
    "How to combine trials: logit-mean, mean, median, trimmed, extremised, judged (a model reads the reasons), default "
    "(starts from the price or base rate and trusts trials as far as their track record supports it), auto (default "
    "once a track record has tested it, logit-mean until then), or a fitted FILE."
)


RunState = Literal["running", "waiting", "stopped", "crashed", "error", "partial", "done"]
"""In order: a process is working on it; its cells are queued; somebody stopped it; its process died; it ended with an
error; every cell has ended, some without an answer; every cell is answered."""
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


TOURNAMENT = "tournament"
"""Section of a settings file that is no part of a run: how to take part in a tournament."""
FOUND_OUT = ("efforts", "marked")
"""Fields of a spec that are determined when a run is created."""
DEFAULT_CONCURRENCY = 50
SAMPLING = ("temperature", "effort", "max_tokens", "tier", "reply_seconds")
"""Parts of `sampling`."""


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
    concurrency: int = DEFAULT_CONCURRENCY
    """How many trials run at the same time. Not part of the run's id."""
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
        if not 1 <= self.concurrency <= 2000:
            raise ValueError(f"concurrency = {self.concurrency} is not between 1 and 2000")
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
        questions = replace(self.questions, quarantined=0)
        return replace(self, efforts={}, marked=False, concurrency=DEFAULT_CONCURRENCY, questions=questions)

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
        if self.concurrency == DEFAULT_CONCURRENCY:
            del fields["concurrency"]
        usual = QuestionsSpec(dataset="")
        for name in ("digest", "closes_after", "closes_before", "category", "status", "minimum_volume", "again"):
            if not fields["questions"][name]:
                del fields["questions"][name]
        for name in ("late_text", "quarantined"):
            if fields["questions"][name] == getattr(usual, name):
                del fields["questions"][name]
        return json.dumps(fields, sort_keys=True, ensure_ascii=False)


def read_spec(path: str | Path, changes: Mapping[str, Any] | None = None) -> RunSpec:
    """Read a YAML or JSON file. An unknown or wrong field raises an `InputError` that names it.

    Args:
        path: The file.
        changes: Settings to change, as `with_settings` takes them.
    """
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file, hint="foretell init run writes one")
    try:
        written = parse_yaml(read_text(file))
        if isinstance(written, dict):
            cast("dict[str, Any]", written).pop(TOURNAMENT, None)
        if not changes or not isinstance(written, dict):
            return spec_from_mapping(written)
    except InputError as error:
        raise error.at(path=file) from None
    return spec_from_mapping(with_settings(current_names(cast("dict[str, Any]", written)), changes))


def read_config(path: Path) -> dict[str, Any]:
    """Read from a settings file how to forecast. What it says about questions, mode and tournament is left out."""
    settings = current_names(_config_data(path))
    settings.pop(TOURNAMENT, None)
    try:
        spec_from_mapping({"questions": "demo", **settings})
    except InputError as error:
        raise error.at(path=path) from None
    return {name: value for name, value in settings.items() if name not in ("questions", "mode")}


def read_tournament_section(path: Path) -> dict[str, Any]:
    """Read from a settings file how to take part in a tournament; empty if it does not say."""
    section = _config_data(path).get(TOURNAMENT) or {}
    if not isinstance(section, dict):
        raise InputError("is not a section with keys", path=path, column=TOURNAMENT)
    return cast("dict[str, Any]", section)


def _config_data(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise InputError("no such file", path=path, hint="foretell init run writes one")
    data = parse_yaml(read_text(path))
    if not isinstance(data, dict):
        raise InputError("is not a settings file of a run", path=path)
    return cast("dict[str, Any]", data)


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
    """Expand abbreviations: a data set as a single word, dates without quotes, prices by role."""
    models, prices = data.get("models"), data.get("prices")
    if isinstance(models, dict) and isinstance(prices, dict):
        names = cast("dict[str, Any]", models)
        stated = {str(names.get(who, who)): price for who, price in cast("dict[str, Any]", prices).items()}
        data = {**data, "prices": {who: f"{price:g}" if _is_number(price) else price for who, price in stated.items()}}
    questions = data.get("questions")
    if isinstance(questions, str):
        return {**data, "questions": {"dataset": questions}}
    if not isinstance(questions, dict):
        return data
    written = {
        name: value.isoformat() if isinstance(value, date) else value
        for name, value in cast("dict[str, Any]", questions).items()
    }
    if (rounds := written.get("rounds")) is not None:
        days = cast("list[Any]", rounds) if isinstance(rounds, list) else [rounds]
        written["rounds"] = [str(day) for day in days]
    return {**data, "questions": written}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Read the values of changed settings: text, as the command line has it, is read as YAML."""
    return {name: parse_yaml(value) if isinstance(value, str) else value for name, value in changes.items()}


def with_settings(written: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec, as a user writes it, with some settings changed; None removes one.

    A setting is named as in the YAML file, with dots between the parts. Raises InputError if there is no such setting.

    >>> with_settings({"questions": "demo", "models": {"agent": "a:b"}}, {"budget.run": 2, "models.filter": "c:d.5"})
    {'questions': 'demo', 'models': {'agent': 'a:b', 'filter': 'c:d.5'}, 'budget': {'run': 2}}
    """
    data: dict[str, Any] = json.loads(json.dumps(dict(written), default=str))
    if isinstance(questions := data.get("questions"), str) and any(name.startswith("questions.") for name in changes):
        data["questions"] = {"dataset": questions}
    known = [name for name in RunSpec.__dataclass_fields__ if name not in FOUND_OUT]
    for name, value in current_names(changes).items():
        field, _, rest = name.partition(".")  # The rest may have dots: names of models do.
        if field not in known:
            nested = [f"{section}.{key}" for section, keys in _section_keys().items() for key in keys]
            raise InputError("there is no such setting", column=name, hint=_nearest(name, [*known, *nested]))
        if rest and not isinstance(data.setdefault(field, {}), dict):
            raise InputError("it has no parts", column=name, hint=f"write {field}=VALUE")
        within, key = (data[field], rest) if rest else (data, field)
        if value is None:
            within.pop(key, None)
        else:
            within[key] = value
    return data


def _section_keys() -> dict[str, tuple[str, ...]]:
    return {
        "questions": tuple(QuestionsSpec.__dataclass_fields__),
        "budget": tuple(BudgetSpec.__dataclass_fields__),
        "sampling": SAMPLING,
    }


def _nearest(name: str, known: Sequence[str]) -> str:
    """A hint for an unknown setting: a similar name, the section that has it, or all settings."""
    inside = [one for one in known if one.rpartition(".")[2] == name]
    return f"did you mean {' or '.join(inside)}?" if inside else known_names(name, known)


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
