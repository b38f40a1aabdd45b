"""Runs of this machine as what studies read: trials with outcomes, costs, who played which part, and trees."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from foretell.arena.studies.tree.material import ROLES, Cost, TreeMaterial, read_trees
from foretell.forecasters.combine.rows import Examples
from foretell.questions.forecast import Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question

if TYPE_CHECKING:
    from foretell.app.settings import Settings
    from foretell.arena.spec import RunSpec
    from foretell.arena.table import Table

TREE = "tree"


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One run, under the name that studies show."""

    name: str
    spec: "RunSpec"
    forecasts: tuple[Forecast, ...]

    @property
    def cost(self) -> Cost:
        """Mean of one trial."""
        usages = [forecast.usage for forecast in self.forecasts]
        return Cost(
            dollars=float(np.mean([one.dollars for one in usages])),
            seconds=float(np.mean([one.seconds for one in usages])),
        )

    @property
    def cast(self) -> Mapping[str, str]:
        """Which model had which part; the agent's where no other is named."""
        agent = self.spec.models.get("agent", "")
        return {role: self.spec.models.get(role, agent) for role in ROLES}


def stored_runs(settings: "Settings", starts: Sequence[str]) -> list[StoredRun]:
    """The runs whose ids begin so. Runs whose forecasters have one name are told apart by their ids."""
    from foretell.app.commands.show import find_run
    from foretell.arena.spec import spec_from_json
    from foretell.arena.store import Store
    from foretell.forecasters.combine.panel import PANEL

    found: list[StoredRun] = []
    with closing(Store(settings.store)) as store:
        for start in starts:
            run = find_run(store, start)
            row = next(row for row in store.runs() if row.id == run)
            said = [answer for answer in store.answers(run) if isinstance(answer, Forecast)]
            said = [forecast for forecast in said if forecast.forecaster != PANEL]
            if not said:
                raise InputError(f"run {run} has no forecast", hint="start it again with foretell run")
            found.append(StoredRun(name=said[0].forecaster, spec=spec_from_json(row.spec), forecasts=tuple(said)))
    return _told_apart(found)


def _told_apart(runs: Sequence[StoredRun]) -> list[StoredRun]:
    names = [run.name for run in runs]
    return [replace(run, name=f"{run.name} ({run.spec.id[:6]})") if names.count(run.name) > 1 else run for run in runs]


def material_of_runs(
    settings: "Settings", starts: Sequence[str], given: Mapping[str, Any], *, outcomes: Path | None = None
) -> TreeMaterial:
    """All that studies can use of these runs; without a table of outcomes, those of their question sets."""
    runs, trees = stored_runs(settings, starts), settings.home / "trees"
    return TreeMaterial(
        tables=_tables(runs, outcomes),
        costs={run.name: run.cost for run in runs},
        cast={run.name: run.cast for run in runs if run.spec.forecaster == TREE},
        trees={run.name: read_trees(folder) for run in runs if (folder := trees / run.spec.id).is_dir()},
        **given,
    )


def run_table(settings: "Settings", starts: Sequence[str]) -> "tuple[Table, list[str], dict[str, str]]":
    """Runs over common questions as one table, each under its name with its trials combined; and what was asked."""
    from foretell.arena.joining import Reading, read_table
    from foretell.arena.long_tables import forecast_rows
    from foretell.arena.results import Combining, combined

    runs = stored_runs(settings, starts)
    asked, chosen = _asked(runs)
    said: list[dict[str, Any]] = []
    for run in runs:
        how = Combining(rule="logit-mean" if run.spec.aggregate == "judged" else run.spec.aggregate)
        together = combined(run.forecasts, chosen.values(), how)
        said += [{**row, "forecaster": run.name} for row in forecast_rows(together, chosen.values())]
    if all(row["outcome"] is None for row in asked):
        raise InputError("none of the questions has an outcome yet")
    table = read_table(cast(list[object], said), cast(list[object], asked), Reading(drop_unknown=True))
    return table, [run.name for run in runs], {question.id: question.text for question in chosen.values()}


def _asked(runs: Sequence[StoredRun]) -> "tuple[list[dict[str, Any]], dict[tuple[str, str], Question]]":
    """The targets of all runs with their outcomes, and the questions they belong to."""
    from foretell.app.datasets import open_benchmark
    from foretell.arena.long_tables import outcome_rows

    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    chosen: dict[tuple[str, str], Question] = {}
    for run in runs:
        found = open_benchmark(run.spec.questions.dataset, rounds=run.spec.questions.rounds).questions
        mine = found.questions[: run.spec.questions.limit]
        chosen |= {(question.id, question.due.isoformat()): question for question in mine}
        for row in outcome_rows(mine, found.resolutions):
            rows.setdefault((row["question"], row["target"], row["due"]), row)
    return list(rows.values()), chosen


def _tables(runs: Sequence[StoredRun], outcomes: Path | None) -> dict[str, Examples]:
    """Trials of every run on the targets that have come out."""
    from foretell.arena.examples import read_examples
    from foretell.arena.long_tables import forecast_rows

    rows, chosen = _asked(runs)
    said = [{**row, "forecaster": run.name} for run in runs for row in forecast_rows(run.forecasts, chosen.values())]
    if outcomes is None and all(row["outcome"] is None for row in rows):
        hint = "give --outcomes with question, target, due, outcome and resolved_on"
        raise InputError("none of the questions has an outcome", hint=hint)
    return read_examples(cast(list[object], said), outcomes or cast(list[object], rows), drop_unknown=True)
