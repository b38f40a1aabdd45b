"""What an arena is: a file that names platforms, rules, a schedule, a searcher and everybody who takes part."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from foretell.arena.select import Schedule, SelectionRules
from foretell.data.datasets.rows import read_text
from foretell.plugins import exists, names
from foretell.questions.codec import checked_fields, parse_yaml
from foretell.questions.errors import InputError
from foretell.runs.spec import DEFAULT, BudgetSpec, QuestionsSpec, RunSpec

ARENA_PREFIX = "arena:"
"""Before the name of an arena, where a run names its questions."""
FILE_NAME = "arena.yaml"


@dataclass(frozen=True, kw_only=True)
class CollectSpec:
    """How new events are sought."""

    every_hours: float = 24.0
    """A day begins at midnight UTC."""
    limit: int = 1000
    """Most events of a platform that are looked at."""
    pages: int = 50

    def __post_init__(self) -> None:
        if not self.every_hours > 0 or self.limit < 1 or self.pages < 1:
            raise ValueError("every_hours must be above 0, limit and pages at least 1")


@dataclass(frozen=True, kw_only=True)
class ResolveSpec:
    """How results are sought."""

    every_hours: float = 1.0

    def __post_init__(self) -> None:
        if not self.every_hours > 0:
            raise ValueError("every_hours must be above 0")


@dataclass(frozen=True, kw_only=True)
class ContextSpec:
    """How the material that everybody is shown is found. Without engines it is the question and its quotes."""

    search: tuple[str, ...] = ()
    """Engines, in the order they are asked; `local` needs no key."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """By role, `summariser` or `agent`; none: extracts instead of summaries."""
    queries: int = 4
    per_query: int = 10
    compared: int = 24
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    """`question` for one context, `run` for all of them."""
    prices: Mapping[str, str] = field(default_factory=dict[str, str])
    """By model: dollars per million tokens, read/written, where the price is not known."""


@dataclass(frozen=True, kw_only=True)
class EntrySpec:
    """One who takes part."""

    forecaster: str = "context"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: bool | Mapping[str, Any] = False
    """For forecasters other than `context`: show them the shared context too; with `view` and `tools` to say how."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    search: tuple[str, ...] = ()
    trials: int = 1
    combine: Literal["mean", "default"] = "mean"
    """How its trials become one: their mean, or the default rule as markets that came out before have taught it."""
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    seed: int = 0
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How its models are sampled, as in the spec of a run: effort, temperature, max_tokens, tier, reply_seconds."""
    prices: Mapping[str, str] = field(default_factory=dict[str, str])
    """By model: dollars per million tokens, read/written, where the price is not known."""

    def __post_init__(self) -> None:
        if self.forecaster == "context" and self.context is not False:
            raise ValueError("the forecaster `context` is always shown the context: put view into its options")
        if self.trials < 1:
            raise ValueError(f"trials = {self.trials} is not a number of trials")

    def run(self, arena: str) -> RunSpec:
        """The entry as a run of the store."""
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
        # An averaged entry keeps the name of its run from before entries could learn.
        return replace(run, combine=DEFAULT if self.combine == DEFAULT else "logit-mean")


@dataclass(frozen=True, kw_only=True)
class ArenaSpec:
    """A living benchmark."""

    name: str
    entries: Mapping[str, EntrySpec]
    platforms: tuple[str, ...] = ("kalshi",)
    select: SelectionRules = field(default_factory=SelectionRules)
    schedule: Schedule = field(default_factory=Schedule)
    context: ContextSpec = field(default_factory=ContextSpec)
    collect: CollectSpec = field(default_factory=CollectSpec)
    resolve: ResolveSpec = field(default_factory=ResolveSpec)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", self.name):
            raise ValueError(f"name = {self.name!r}: use small letters, digits, - and _")
        if not self.platforms:
            raise ValueError("platforms: name at least one")
        for place, name in enumerate(self.platforms):
            if not exists("markets", name.partition(":")[0]):
                raise ValueError(f"platforms.{place}: there is no {name!r}; there are {', '.join(names('markets'))}")
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
        """The run of each entry, by its name."""
        return {name: entry.run(self.name) for name, entry in self.entries.items()}

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)


def arena_of(run: RunSpec) -> str | None:
    """The arena that a run is an entry of."""
    dataset = run.questions.dataset
    return dataset.removeprefix(ARENA_PREFIX) if dataset.startswith(ARENA_PREFIX) else None


def read_arena(path: str | Path) -> ArenaSpec:
    """Read an arena's file, or that in a folder; an unknown or wrong field raises an `InputError` that names it."""
    file = Path(path)
    file = file / FILE_NAME if file.is_dir() else file
    if not file.exists():
        raise InputError("no such file", path=file, hint="foretell arena init writes one")
    try:
        return arena_from_json(parse_yaml(read_text(file)))
    except InputError as error:
        raise error.at(path=file) from None


def arena_from_json(data: Any) -> ArenaSpec:
    """An arena from parsed JSON or YAML."""
    if isinstance(data, dict):
        data = _unabridged(cast("dict[str, Any]", data))
    return checked_fields(data, ArenaSpec)


def _unabridged(data: dict[str, Any]) -> dict[str, Any]:
    """What people write in short: `model: X` for `models: {agent: X}`, an entry as a forecaster's name alone."""
    entries = data.get("entries")
    if not isinstance(entries, dict):
        return data
    named = cast("dict[str, Any]", entries)
    return {**data, "entries": {str(name): _entry(entry) for name, entry in named.items()}}


def _entry(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"forecaster": entry}
    if isinstance(entry, dict) and "model" in entry:
        written = cast("dict[str, Any]", entry)
        rest = {name: value for name, value in written.items() if name != "model"}
        return {**rest, "models": {"agent": written["model"], **written.get("models", {})}}
    return entry
