"""What a configuration's name says: base model, effort, search, what it was shown, and which variant it is."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.questions.errors import InputError
from foretell.report.numbers import percent, plural
from foretell.studies.inputs import StudyData
from foretell.studies.scores import brier_of, index_of

PATTERN = re.compile(
    r"^(?P<model>.+?)-(?P<effort>[a-z]+)-(?P<search>[a-z]+)-c(?P<crowd>[01])(?:-p(?P<prior>[01]))?-t(?P<tools>[01])"
    r"(?:-(?P<variant>[\w-]+))?$"
)


@dataclass(frozen=True, kw_only=True)
class ConfigName:
    """One configuration, e.g. pro-high-brave-c1-p1-t1-nobelief.

    >>> found = parse_config("kimi-k2.5-high-brave-c1-t1-nobelief")
    >>> found.model, found.search, found.crowd, found.prior, found.variant
    ('kimi-k2.5', 'brave', True, False, 'nobelief')
    """

    model: str
    effort: str
    search: str
    """The engine, or none."""
    crowd: bool
    """The prompt shows the crowd's price of market questions."""
    prior: bool
    """The prompt shows the base rate of data-set questions."""
    tools: bool
    """Tools for the question's own source: series, market history, pages."""
    variant: str = ""
    """Empty for the agent with a belief state; nobelief for the one that only gathers text."""

    @property
    def regime(self) -> str:
        """c=0 or c=1, as the paper writes it."""
        return f"c={int(self.crowd)}"


def parse_config(name: str) -> ConfigName | None:
    """The parts of a name; None for one that is written otherwise."""
    found = PATTERN.match(name)
    if found is None:
        return None
    return ConfigName(
        model=found["model"],
        effort=found["effort"],
        search=found["search"],
        crowd=found["crowd"] == "1",
        prior=found["prior"] == "1",
        tools=found["tools"] == "1",
        variant=found["variant"] or "",
    )


def parse_configs(names: Iterable[str]) -> dict[str, ConfigName]:
    """The names that can be read, with their parts."""
    return {name: parts for name in names if (parts := parse_config(name)) is not None}


@dataclass(frozen=True, kw_only=True)
class ConfigAxis:
    """A change of one thing: the values before and after it, everything else being equal."""

    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def pairs(self, names: Mapping[str, ConfigName]) -> list[tuple[str, str]]:
        """All (before, after) among the names that differ in this alone."""
        by_parts = {parts: name for name, parts in names.items()}
        found: list[tuple[str, str]] = []
        for name, parts in names.items():
            if all(getattr(parts, key) == value for key, value in self.before.items()):
                other = by_parts.get(replace(parts, **self.after))
                if other is not None:
                    found.append((name, other))
        return found


def config_axes(engine: str = "brave") -> tuple[ConfigAxis, ...]:
    """Single changes of which real runs hold both sides, searches being made with that engine."""
    bare, full = {"search": engine, "variant": "nobelief"}, {"variant": ""}
    return (
        ConfigAxis(
            name="zero-shot → search, tools, no belief",
            before={"search": "none", "tools": False, "variant": ""},
            after={**bare, "tools": True},
        ),
        ConfigAxis(name="no belief → belief state", before=bare, after=full),
        ConfigAxis(name="no search → search", before={"search": "none", **full}, after={"search": engine}),
        ConfigAxis(name="no tools → tools for the source", before={"tools": False, **full}, after={"tools": True}),
        ConfigAxis(name="no price → price in the prompt", before={"crowd": False}, after={"crowd": True}),
        ConfigAxis(
            name="neither → price and base rate in the prompt",
            before={"crowd": False, "prior": False},
            after={"crowd": True, "prior": True},
        ),
        ConfigAxis(name="price → price and base rate", before={"crowd": True, "prior": False}, after={"prior": True}),
        ConfigAxis(name="default → high effort", before={"effort": "default"}, after={"effort": "high"}),
    )


@dataclass(frozen=True, kw_only=True)
class ConfigFamily:
    """The configurations of one base model in one regime that the paper's tables set side by side."""

    model: str
    regime: str
    zero_shot: str | None
    no_belief: str | None
    belief: str | None

    @property
    def name(self) -> str:
        """As tables write it."""
        return f"{self.model} {self.regime}"


def config_families(names: Mapping[str, ConfigName]) -> list[ConfigFamily]:
    """One family per base model and regime, models in the order of the names; of two candidates the one with prior."""
    found: list[ConfigFamily] = []
    for model in dict.fromkeys(parts.model for parts in names.values()):
        for crowd in (False, True):
            mine = {n: p for n, p in names.items() if p.model == model and p.crowd == crowd and p.effort == "high"}
            zero = _first(mine, search=False, tools=False, variant="")
            bare = _first(mine, search=True, tools=True, variant="nobelief")
            full = _first(mine, search=True, tools=True, variant="")
            if bare or full:
                regime = f"c={int(crowd)}"
                found.append(ConfigFamily(model=model, regime=regime, zero_shot=zero, no_belief=bare, belief=full))
    return found


def _first(names: Mapping[str, ConfigName], *, search: bool, tools: bool, variant: str) -> str | None:
    fits = [
        name
        for name, parts in names.items()
        if (parts.search != "none") == search and parts.tools == tools and parts.variant == variant
    ]
    return max(fits, key=lambda name: names[name].prior, default=None)


# Which configurations a study looks at.

ENOUGH = 0.99
"""Share of the targets that a configuration must have answered to be called complete."""
SEES_THE_FUTURE = "clairvoyant"


def complete_configs(data: StudyData) -> dict[str, Examples]:
    """The chosen configurations, or all that answered (nearly) every target and did not see the future."""
    for name in data.chosen:
        if name not in data.tables:
            near = get_close_matches(name, data.tables, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(list(data.tables)[:12])}"
            raise InputError(f"no configuration is called {name!r}", hint=hint)
    if data.chosen:
        return {name: data.tables[name] for name in data.chosen}
    kept = {name: table for name, table in data.tables.items() if is_complete(table) and SEES_THE_FUTURE not in name}
    if not kept:
        raise InputError("no configuration answered all targets", hint="name the ones to look at with --config")
    return kept


def best_config(tables: Mapping[str, Examples]) -> str:
    """The configuration whose logit mean has the best index."""
    return max(tables, key=lambda name: index_of(brier_of(tables[name].rows.raw, tables[name]), tables[name]))


def is_complete(examples: Examples) -> bool:
    """Whether (nearly) every target has an answer."""
    return float(np.mean(~np.isnan(examples.rows.raw))) >= ENOUGH


def trials_done(examples: Examples) -> float:
    """Share of trials on all targets that gave an answer."""
    return float(np.mean(~np.isnan(examples.rows.trials)))


def describe_scope(examples: Examples) -> str:
    """What the numbers rest on, e.g. "791 targets of 400 askings, 355 questions"."""
    rows = examples.rows
    askings, questions = len(np.unique(rows.asking)), len(np.unique(rows.cluster))
    return f"{plural(len(examples), 'target')} of {plural(askings, 'asking')}, {plural(questions, 'question')} apart"


def study_notes(
    data: StudyData,
    tables: Mapping[str, Examples],
    *,
    left_out: str = "Left out as incomplete or because they saw the future",
) -> tuple[str, ...]:
    """What the numbers rest on, which trials failed, and which configurations were left out."""
    told = [f"{describe_scope(next(iter(tables.values())))}. A question asked in several rounds is one cluster."]
    failed = {name: trials_done(table) for name, table in tables.items() if trials_done(table) < 1}
    if failed:
        worst = min(failed, key=lambda name: failed[name])
        told.append(
            f"Trials failed in {plural(len(failed), 'configuration')}, at worst {worst} with {percent(failed[worst])} "
            "done; the others speak for a failed trial."
        )
    left = [name for name in data.tables if name not in tables]
    if left and not data.chosen:
        told.append(f"{left_out}: {', '.join(left)}.")
    return tuple(told)


def study_settings(data: StudyData, tables: Mapping[str, Examples]) -> dict[str, Any]:
    """What it takes to reproduce the numbers."""
    how = data.resampling
    return {
        "draws": how.draws,
        "level": how.level,
        "seed": how.seed,
        "clusters": "question; two-way: question × resolution day",
        "configurations": list(tables),
    }
