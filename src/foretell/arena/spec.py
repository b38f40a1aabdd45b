"""The spec of an arena: a file that names platforms, rules, a schedule, search engines and entries."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, Literal, cast

from foretell.arena.select import Schedule, SelectionRules
from foretell.data.datasets.rows import read_text
from foretell.frozen import frozen
from foretell.plugins import current_name, exists, former_name, names
from foretell.questions.codec import checked_fields, parse_yaml
from foretell.questions.errors import InputError
from foretell.runs.spec import DEFAULT, BudgetSpec, QuestionsSpec, RunSpec

ARENA_PREFIX = "arena:"
"""Prefix of an arena's name in the dataset field of a run."""
FILE_NAME = "arena.yaml"


@frozen
class CollectSpec:
    """How new events are collected."""

    every_hours: float = 24.0
    """Hours between two collections. A day begins at midnight UTC."""
    limit: int = 1000
    """Maximum number of events read per platform."""
    pages: int = 50

    def __post_init__(self) -> None:
        if not self.every_hours > 0 or self.limit < 1 or self.pages < 1:
            raise ValueError("every_hours must be above 0, limit and pages at least 1")


@frozen
class ResolveSpec:
    """How results are looked up."""

    every_hours: float = 1.0

    def __post_init__(self) -> None:
        if not self.every_hours > 0:
            raise ValueError("every_hours must be above 0")


@frozen
class ContextSpec:
    """How the shared material is gathered. Without search engines it is only the question and its quotes."""

    search: tuple[str, ...] = ()
    """Search engines, in the order in which they are asked; `local` needs no key."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """Models by role, `summariser` or `agent`; without any, sources are shown as extracts instead of summaries."""
    queries: int = 4
    per_query: int = 10
    compared: int = 24
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    """Spending limits: `question` for one context, `run` for all of them."""
    prices: Mapping[str, str] = field(default_factory=dict[str, str])
    """Prices of models whose price is not known: dollars per million tokens, input/output."""


@frozen
class EntrySpec:
    """An entry of the arena: a forecaster and its settings."""

    forecaster: str = "prompt"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: bool | Mapping[str, Any] = False
    """Show the shared context to a forecaster other than `prompt` too; `view` and `tools` say how."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    search: tuple[str, ...] = ()
    trials: int = 1
    combine: Literal["mean", "default"] = "mean"
    """How trials are combined: their mean, or the default rule, fitted to markets that resolved before."""
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    seed: int = 0
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How its models are sampled, as in the spec of a run: effort, temperature, max_tokens, tier, reply_seconds."""
    prices: Mapping[str, str] = field(default_factory=dict[str, str])
    """Prices of models whose price is not known: dollars per million tokens, input/output."""

    def __post_init__(self) -> None:
        if self.forecaster == "prompt" and self.context is not False:
            raise ValueError("the forecaster `prompt` is always shown the context: put view into its options")
        if self.trials < 1:
            raise ValueError(f"trials = {self.trials} is not a number of trials")

    def run(self, arena: str) -> RunSpec:
        """Return the entry as the spec of a run."""
        options = dict(self.options)
        if self.context is not False:
            options["context"] = {} if self.context is True else dict(self.context)
        run = RunSpec(
            questions=QuestionsSpec(dataset=f"{ARENA_PREFIX}{arena}"),
            forecaster=self.forecaster,
            options=options,
            models=self.models,
            search=self.search,
            trials=self.trials,
            mode="live",
            budget=self.budget,
            seed=self.seed,
            sampling=self.sampling,
            prices=self.prices,
        )
        # Keeps the run id that averaged entries had before `combine: default` existed.
        return replace(run, combine=DEFAULT if self.combine == DEFAULT else "logit-mean")


@frozen
class ArenaSpec:
    """A live benchmark: platforms, rules, schedule and entries."""

    name: str
    entries: Mapping[str, EntrySpec]
    platforms: tuple[str, ...] = ("kalshi",)
    select: SelectionRules = field(default_factory=SelectionRules)
    schedule: Schedule = field(default_factory=Schedule)
    context: ContextSpec = field(default_factory=ContextSpec)
    collect: CollectSpec = field(default_factory=CollectSpec)
    resolve: ResolveSpec = field(default_factory=ResolveSpec)
    budget: float | None = None
    """Limit in dollars on all entries and contexts together, for the whole time; None for none."""
    coherent: bool = False
    """Whether the leaderboard shows forecasts of nested thresholds and deadlines of an event made coherent."""

    def __post_init__(self) -> None:
        if self.budget is not None and not 0 < self.budget < inf:
            raise ValueError(f"budget = {self.budget:g} is not an amount of dollars")
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", self.name):
            raise ValueError(f"name = {self.name!r}: use small letters, digits, - and _")
        if not self.platforms:
            raise ValueError("platforms: name at least one")
        for i, name in enumerate(self.platforms):
            if not exists("markets", name.partition(":")[0]):
                raise ValueError(f"platforms.{i}: there is no {name!r}; there are {', '.join(names('markets'))}")
        if len(set(self.platforms)) < len(self.platforms):
            raise ValueError("platforms: one is named twice")
        if not self.entries:
            raise ValueError("entries: name at least one")
        same: dict[str, str] = {}
        for name, run in self.runs.items():
            if (other := same.setdefault(run.id, name)) != name:
                raise ValueError(f"entries.{name} is the same as entries.{other}: change something, such as its seed")

    @cached_property
    def runs(self) -> Mapping[str, RunSpec]:
        """The run of each entry, by the entry's name."""
        return {name: entry.run(self.name) for name, entry in self.entries.items()}

    @property
    def account(self) -> str:
        """The id of the arena's account in the ledger."""
        return f"arena {self.name}"

    def to_json(self) -> str:
        """Return the spec as canonical JSON."""
        fields = asdict(self)
        # Left out at their default, so that earlier texts stay the same.
        for name, default in (("budget", None), ("coherent", False)):
            if fields[name] == default:
                del fields[name]
        for entry in fields["entries"].values():
            entry["forecaster"] = former_name("forecasters", entry["forecaster"])
        return json.dumps(fields, sort_keys=True, ensure_ascii=False)


def arena_of(run: RunSpec) -> str | None:
    """Return the name of the arena that a run is an entry of, or None."""
    dataset = run.questions.dataset
    return dataset.removeprefix(ARENA_PREFIX) if dataset.startswith(ARENA_PREFIX) else None


def read_arena(path: str | Path) -> ArenaSpec:
    """Read an arena's spec from a file or folder. Raises `InputError` if a field is unknown or wrong."""
    file = Path(path)
    file = file / FILE_NAME if file.is_dir() else file
    if not file.exists():
        raise InputError("no such file", path=file, hint="foretell init arena writes one")
    try:
        return arena_from_json(parse_yaml(read_text(file)))
    except InputError as error:
        raise error.at(path=file) from None


def arena_from_json(data: Any) -> ArenaSpec:
    """Build an arena's spec from parsed JSON or YAML."""
    if isinstance(data, dict):
        data = _unabridged(cast("dict[str, Any]", data))
    return checked_fields(data, ArenaSpec)


def _unabridged(data: dict[str, Any]) -> dict[str, Any]:
    """Expand shorthands: `model: X` for `models: {agent: X}`, and a forecaster's name for an entry."""
    entries = data.get("entries")
    if not isinstance(entries, dict):
        return data
    named = cast("dict[str, Any]", entries)
    return {**data, "entries": {str(name): _entry(entry) for name, entry in named.items()}}


def _entry(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"forecaster": current_name("forecasters", entry)}
    if isinstance(entry, dict) and isinstance(name := cast("dict[str, Any]", entry).get("forecaster"), str):
        entry = {**entry, "forecaster": current_name("forecasters", name)}
    if isinstance(entry, dict) and "model" in entry:
        fields = cast("dict[str, Any]", entry)
        rest = {name: value for name, value in fields.items() if name != "model"}
        return {**rest, "models": {"agent": fields["model"], **fields.get("models", {})}}
    return entry
