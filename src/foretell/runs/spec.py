"""The specification of a run: written as YAML, identified by its content."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from datetime import date
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any, Literal, cast

from foretell.data.datasets.question_set import SetFilter
from foretell.data.datasets.rows import read_text
from foretell.frozen import frozen
from foretell.models.token_price import read_price
from foretell.plugins import NO_CHOICE, current_name, former_name, load
from foretell.questions.codec import DERIVED, checked_fields, parse_yaml
from foretell.questions.errors import InputError, known_names

AUTO, DEFAULT = "auto", "default"
COMBINATIONS = (AUTO, "logit-mean", "mean", "median", "trimmed", "extremised", "judged", DEFAULT)
"""Ways to combine trials that have a name."""
COMBINE_HELP = (
    "How to combine trials: logit-mean, mean, median, trimmed, extremised, judged (a model reads the reasons), default "
    "(starts from the price, or an estimate without a model, and trusts trials as far as their track record supports "
    "it), auto (default if models are asked, else logit-mean), or a fitted FILE."
)


RunState = Literal["running", "waiting", "stopped", "crashed", "error", "partial", "done", "deleted"]
"""In order: a process is working on it; its trials are queued; a user stopped it; its process died; it ended with an
error; every trial has ended, some without an answer; every trial is answered; it is in the bin."""
TYPED_PREFIX = "asked "
"""Prefix of the name of a typed question set, which exists only in the store."""


@frozen
class QuestionsSpec(SetFilter):
    """Which questions to ask."""

    dataset: str
    """A question set by name, or a question file."""
    digest: str = ""
    """Digest of the questions, so that other questions in a file of the same name make another run. Computed when a run
    is prepared; if a user sets it, the questions must match."""
    excluded: int = field(default=0, metadata=DERIVED)
    """Questions that were left out when the run was prepared because their own text was written later. Not part of the
    run's id."""

    def __post_init__(self) -> None:
        if "\x00" in self.dataset:
            raise ValueError("the name of a data set must not contain a null character")
        super().__post_init__()

    @property
    def typed(self) -> bool:
        """Whether a person typed the question, so that it exists only in the store."""
        return self.dataset.startswith(TYPED_PREFIX)


@frozen
class BudgetSpec:
    """Hard limits in dollars. When a budget is spent, the current estimate is the answer."""

    run: float | None = None
    question: float | None = None

    def __post_init__(self) -> None:
        for name, dollars in asdict(self).items():
            if dollars is not None and not 0 <= dollars < math.inf:
                raise ValueError(f"{name} = {dollars:g} is not an amount of dollars")


TOURNAMENT = "tournament"
"""Section of a settings file about tournaments. It is not part of a run."""
WATCH = "watch"
"""Section of a settings file about watched questions. It is not part of a run."""
OTHER_SECTIONS = (TOURNAMENT, WATCH)
DEFAULT_CONCURRENCY = 50
SAMPLING = ("temperature", "effort", "max_tokens", "tier", "reply_seconds")
"""Parts of `sampling`."""


@frozen
class RunSpec:
    """Everything that determines what a run computes. The same spec over the same questions is the same run."""

    questions: QuestionsSpec
    forecaster: str = "agent"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the forecaster, such as variant, steps or prior."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """Models by role, at least `agent`; the others default to it."""
    search: tuple[str, ...] = ()
    """Search engines, in the order in which they are asked."""
    tools: tuple[str, ...] = ()
    """Functions of a program that an agent may call, by their names, `python:NAME`."""
    trials: int = 1
    combine: str = AUTO
    """How trials are combined: one of `COMBINATIONS`, or the file of a fitted rule."""
    mode: Literal["backtest", "live"] = "backtest"
    strict: bool = False
    """Reject questions that opened before a model's knowledge cutoff, instead of warning."""
    leakage_filter: bool = True
    """Whether a backtest withholds what was published after the cutoff. False gives an upper bound; every result is
    marked."""
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
    efforts: Mapping[str, str] = field(default_factory=dict[str, str], metadata=DERIVED)
    """By role: the effort of its model, where `sampling` does not set it. Chosen when a run is made and stored with it,
    but not part of its id, so that the same file stays the same run when more is known about its models."""
    marked: bool = field(default=False, metadata=DERIVED)
    """Whether our ids and notes in prompts carry a mark, and text that imitates them is removed from questions. True
    for every new run. Runs of older versions continue without, so that their replies are found."""

    def __post_init__(self) -> None:
        for price in self.prices.values():
            read_price(price)
        if self.trials < 1:
            raise ValueError(f"trials = {self.trials} is not a number of trials")
        if not 1 <= self.concurrency <= 2000:
            raise ValueError(f"concurrency = {self.concurrency} is not between 1 and 2000")
        if self.combine not in COMBINATIONS and Path(self.combine).suffix != ".json":
            raise ValueError(f"there is no way to combine called {self.combine!r}; write {', '.join(COMBINATIONS)}")

    @cached_property
    def id(self) -> str:
        """A short hash of the content. Equal specs have equal ids.

        >>> RunSpec(questions=QuestionsSpec(dataset="demo")).id == RunSpec(questions=QuestionsSpec(dataset="demo")).id
        True
        """
        return hashlib.sha256(self.bare().to_json().encode()).hexdigest()[:12]

    def bare(self) -> "RunSpec":
        """Return the spec without fields that were determined when the run was made and are not part of its id."""
        questions = replace(self.questions, excluded=0)
        return replace(self, efforts={}, marked=False, concurrency=DEFAULT_CONCURRENCY, questions=questions)

    def with_digest(self, digest: str) -> "RunSpec":
        """Return the spec with the digest of its questions."""
        return replace(self, questions=replace(self.questions, digest=digest))

    def to_json(self) -> str:
        """Return canonical JSON as written by earlier versions, so that a run keeps its id.

        Fields added later are left out at their default, and renamed fields have their former names.
        """
        fields = asdict(self)
        fields["aggregate"] = fields.pop("combine")
        fields["clairvoyant"] = not fields.pop("leakage_filter")
        fields["forecaster"] = former_name("forecasters", self.forecaster)
        for name in ("sampling", "prices", "efforts", "marked", "archive_check", "tools"):
            if not fields[name]:
                del fields[name]
        if self.concurrency == DEFAULT_CONCURRENCY:
            del fields["concurrency"]
        defaults = QuestionsSpec(dataset="")
        for name in ("digest", "closes_after", "closes_before", "category", "status", "minimum_volume", "again"):
            if not fields["questions"][name]:
                del fields["questions"][name]
        for name in ("leaky_questions", "excluded"):
            if fields["questions"][name] == getattr(defaults, name):
                del fields["questions"][name]
        fields["questions"] = _former_question_names(fields["questions"])
        return json.dumps(fields, sort_keys=True, ensure_ascii=False)


DERIVED_SETTINGS = tuple(attribute.name for attribute in fields(RunSpec) if attribute.metadata.get("derived"))
"""Fields of a spec that are determined when a run is created."""


def read_spec(path: str | Path, changes: Mapping[str, Any] | None = None, *, usual: str | None = None) -> RunSpec:
    """Read a YAML or JSON file. Raises `InputError` if a field is unknown or wrong.

    Args:
        path: The file.
        changes: Settings to change, as `with_settings` takes them.
        usual: Forecaster of a file that names none, if it is not the usual one.
    """
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file, hint="foretell init run writes one")
    try:
        data = parse_yaml(read_text(file))
        if isinstance(data, dict):
            if "base" in data:
                raise InputError("describes a grid of runs, not one run", hint=f"foretell grid {file}")
            for section in OTHER_SECTIONS:
                cast("dict[str, Any]", data).pop(section, None)
            data = data if usual is None else {"forecaster": usual, **cast("dict[str, Any]", data)}
        if not changes or not isinstance(data, dict):
            return spec_from_mapping(data)
    except InputError as error:
        raise error.at(path=file) from None
    return spec_from_mapping(with_settings(current_names(cast("dict[str, Any]", data)), changes))


def read_config(path: Path) -> dict[str, Any]:
    """Read from a settings file how to forecast, without its questions, mode and other sections."""
    settings = {name: value for name, value in _config_data(path).items() if name not in OTHER_SECTIONS}
    settings = current_names(settings)
    try:
        spec_from_mapping({"questions": "demo", **settings})
    except InputError as error:
        raise error.at(path=path) from None
    return {name: value for name, value in settings.items() if name not in ("questions", "mode")}


def read_section_of(path: Path, name: str) -> dict[str, Any]:
    """Read a section of a settings file that is not part of a run; empty if the file has none."""
    section = _config_data(path).get(name) or {}
    if not isinstance(section, dict):
        raise InputError("is not a section with keys", path=path, column=name)
    return cast("dict[str, Any]", section)


def _config_data(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise InputError("no such file", path=path, hint="foretell init run writes one")
    try:
        data = parse_yaml(read_text(path))
    except InputError as error:
        raise error.at(path=path) from None
    if not isinstance(data, dict):
        raise InputError("is not a settings file of a run", path=path)
    return cast("dict[str, Any]", data)


def spec_from_mapping(data: Any) -> RunSpec:
    """Return the spec that a user wrote, in full or abbreviated. Raises `InputError` if a field is wrong."""
    if isinstance(data, dict) and "marked" in data:
        raise InputError("marks are chosen when a run is made", column="marked", hint="leave it out")
    if isinstance(data, dict) and "efforts" in data:
        raise InputError(
            "efforts by role are chosen when a run is made", column="efforts", hint="write sampling.effort"
        )
    return spec_from_json(_unabridged(cast("dict[str, Any]", data)) if isinstance(data, dict) else data)


USUAL_FORECASTER = "reason"
"""Forecaster of settings that name none."""


def usual_forecaster(options: Mapping[str, Any], preset: str = "agent") -> str:
    """Return the forecaster of settings that name none: `reason`, or the preset if an option is one of its own.

    So settings for the belief agent or for a tree of the paper, such as `steps` or `rule`, need not name it.

    >>> usual_forecaster({"take_apart": "never"}), usual_forecaster({"steps": 5})
    ('reason', 'agent')
    """
    own, other = (signature(load("forecasters", name)).parameters for name in (USUAL_FORECASTER, preset))
    return preset if any(name in other and name not in own for name in options) else USUAL_FORECASTER


def _unabridged(data: dict[str, Any]) -> dict[str, Any]:
    """Expand abbreviations, such as a data set as a single word, and add the usual forecaster."""
    options = data.get("options")
    if "forecaster" not in data:
        stated = cast("dict[str, Any]", options) if isinstance(options, dict) else {}
        data = {**data, "forecaster": usual_forecaster(stated)}
    models, prices = data.get("models"), data.get("prices")
    if isinstance(models, dict) and cast("dict[str, Any]", models).get("agent") == NO_CHOICE:
        models = {role: name for role, name in cast("dict[str, Any]", models).items() if role != "agent"}
        data = {**data, "models": models}
    if isinstance(models, dict) and isinstance(prices, dict):
        names = cast("dict[str, Any]", models)
        by_model = {
            str(names.get(role_or_model, role_or_model)): price
            for role_or_model, price in cast("dict[str, Any]", prices).items()
        }
        data = {
            **data,
            "prices": {
                role_or_model: f"{price:g}" if _is_number(price) else price for role_or_model, price in by_model.items()
            },
        }
    questions = data.get("questions")
    if isinstance(questions, str):
        return {**data, "questions": {"dataset": questions}}
    if not isinstance(questions, dict):
        return data
    fields = {
        name: value.isoformat() if isinstance(value, date) else value
        for name, value in cast("dict[str, Any]", questions).items()
    }
    if (rounds := fields.get("rounds")) is not None:
        days = cast("list[Any]", rounds) if isinstance(rounds, list) else [rounds]
        fields["rounds"] = [str(day) for day in days]
    return {**data, "questions": fields}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Read changed settings: values given as text are read as YAML, and former names become the current ones."""
    values = {name: parse_yaml(value) if isinstance(value, str) else value for name, value in changes.items()}
    return current_names(values)


def with_settings(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec, as a user writes it, with some settings changed; None removes one.

    A setting is named as in the YAML file, with dots between the parts. Raises InputError if there is no such setting.

    >>> with_settings({"questions": "demo", "models": {"agent": "a:b"}}, {"budget.run": 2, "models.filter": "c:d.5"})
    {'questions': 'demo', 'models': {'agent': 'a:b', 'filter': 'c:d.5'}, 'budget': {'run': 2}}
    """
    data: dict[str, Any] = json.loads(json.dumps(dict(spec), default=str))
    if isinstance(questions := data.get("questions"), str) and any(name.startswith("questions.") for name in changes):
        data["questions"] = {"dataset": questions}
    known = [name for name in RunSpec.__dataclass_fields__ if name not in DERIVED_SETTINGS]
    for name, value in current_names(changes).items():
        field, _, rest = name.partition(".")  # The rest may contain dots, as names of models do.
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
    matches = [setting for setting in known if setting.rpartition(".")[2] == name]
    return f"did you mean {' or '.join(matches)}?" if matches else known_names(name, known)


def spec_from_json(data: Any) -> RunSpec:
    """Return a spec from parsed JSON or YAML. Raises `InputError` if a field is wrong."""
    return checked_fields(current_names(cast("dict[str, Any]", data)) if isinstance(data, dict) else data, RunSpec)


# Names of earlier versions. Stored specs use them, so that a run keeps its id, and old files can still be read.

FORMER_NAMES = {"aggregate": "combine", "clairvoyant": "leakage_filter"}
FORMER_QUESTION_NAMES = {"late_text": "leaky_questions", "quarantined": "excluded"}
FORMER_LEAKY_QUESTIONS = {"quarantine": "exclude", "cut": "redact"}


def current_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under their current names; settings may be nested or have dots in their names."""
    settings: dict[str, Any] = {}
    for former, value in data.items():
        name = _current_name(former)
        if name in settings or (name != former and name in data):
            raise InputError(f"is the former name of {name}; write only {name}", column=former)
        settings[name] = _current_value(former, name, value)
    return settings


def _current_name(name: str) -> str:
    section, dot, rest = name.partition(".")
    if section == "questions" and dot:
        return f"questions.{FORMER_QUESTION_NAMES.get(rest, rest)}"
    return FORMER_NAMES.get(name, name)


def _current_value(former: str, name: str, value: Any) -> Any:
    if former == "clairvoyant" and value is not None:
        unfiltered = parse_yaml(value) if isinstance(value, str) else value
        if not isinstance(unfiltered, bool):
            raise InputError("is not true or false", column="clairvoyant", hint="write leakage_filter: false instead")
        return not unfiltered
    if name == "forecaster" and isinstance(value, str):
        return current_name("forecasters", value)
    if name == "questions.leaky_questions" and isinstance(value, str):
        return FORMER_LEAKY_QUESTIONS.get(value, value)
    if name == "questions" and isinstance(value, Mapping):
        dotted = {f"questions.{part}": inner for part, inner in cast("Mapping[str, Any]", value).items()}
        return {part.removeprefix("questions."): inner for part, inner in current_names(dotted).items()}
    return value


def _former_question_names(questions: Mapping[str, Any]) -> dict[str, Any]:
    names = {current: former for former, current in FORMER_QUESTION_NAMES.items()}
    values = {current: former for former, current in FORMER_LEAKY_QUESTIONS.items()}
    return {
        names.get(name, name): values.get(value, value) if name == "leaky_questions" else value
        for name, value in questions.items()
    }


@frozen
class SpecPrompt:
    """A request as it would be sent, with its approximate length."""

    role: str
    model: str
    tokens: int
    text: str

    def __str__(self) -> str:
        return f"===== {self.role} ({self.model}), about {self.tokens:,} tokens =====\n\n{self.text}"
