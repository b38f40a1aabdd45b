"""Which configurations a study looks at, and what it has to say about those it does not."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from foretell.arena.report.wording import percent, plural
from foretell.arena.studies.paired import brier_of, index_of
from foretell.arena.study import Material
from foretell.forecasters.combine.rows import Examples
from foretell.questions.problems import InputError

ENOUGH = 0.99
"""Share of the targets that a configuration must have answered to be called complete."""
SEES_THE_FUTURE = "clairvoyant"


def complete(material: Material) -> dict[str, Examples]:
    """The chosen configurations, or all that answered (nearly) every target and did not see the future."""
    for name in material.chosen:
        if name not in material.tables:
            near = get_close_matches(name, material.tables, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(list(material.tables)[:12])}"
            raise InputError(f"no configuration is called {name!r}", hint=hint)
    if material.chosen:
        return {name: material.tables[name] for name in material.chosen}
    kept = {name: table for name, table in material.tables.items() if whole(table) and SEES_THE_FUTURE not in name}
    if not kept:
        raise InputError("no configuration answered all targets", hint="name the ones to look at with --config")
    return kept


def best(tables: Mapping[str, Examples]) -> str:
    """The configuration whose logit mean has the best index."""
    return max(tables, key=lambda name: index_of(brier_of(tables[name].rows.raw, tables[name]), tables[name]))


def whole(examples: Examples) -> bool:
    """Whether (nearly) every target has an answer."""
    return float(np.mean(~np.isnan(examples.rows.raw))) >= ENOUGH


def trials_done(examples: Examples) -> float:
    """Share of trials on all targets that gave an answer."""
    return float(np.mean(~np.isnan(examples.rows.trials)))


def scope(examples: Examples) -> str:
    """What the numbers rest on, e.g. "791 targets of 400 askings, 355 questions"."""
    rows = examples.rows
    askings, questions = len(np.unique(rows.asking)), len(np.unique(rows.cluster))
    return f"{plural(len(examples), 'target')} of {plural(askings, 'asking')}, {plural(questions, 'question')} apart"


def notes_of(
    material: Material,
    tables: Mapping[str, Examples],
    *,
    left_out: str = "Left out as incomplete or because they saw the future",
) -> tuple[str, ...]:
    """What the numbers rest on, which trials failed, and which configurations were left out."""
    told = [f"{scope(next(iter(tables.values())))}. A question asked in several rounds is one cluster."]
    failed = {name: trials_done(table) for name, table in tables.items() if trials_done(table) < 1}
    if failed:
        worst = min(failed, key=lambda name: failed[name])
        told.append(
            f"Trials failed in {plural(len(failed), 'configuration')}, at worst {worst} with {percent(failed[worst])} "
            "done; the others speak for a failed trial."
        )
    left = [name for name in material.tables if name not in tables]
    if left and not material.chosen:
        told.append(f"{left_out}: {', '.join(left)}.")
    return tuple(told)


def settings_of(material: Material, tables: Mapping[str, Examples]) -> dict[str, Any]:
    """What it takes to reproduce the numbers."""
    how = material.resampling
    return {
        "draws": how.draws,
        "level": how.level,
        "seed": how.seed,
        "clusters": "question; two-way: question × resolution day",
        "configurations": list(tables),
    }
