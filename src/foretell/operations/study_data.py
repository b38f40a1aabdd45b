"""What studies read on this machine: tables of trials, stored runs with outcomes and costs, trees, and arenas."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from foretell.arena.spec import arena_of, read_arena
from foretell.arena.store import ArenaStore
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.combine.trials import PANEL
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.runs.grid import RunFactors, factors_of_specs, read_grid, run_name
from foretell.runs.runner import prepare_run
from foretell.runs.same_questions import find_run_of
from foretell.runs.settings import Settings
from foretell.runs.spec import spec_from_json
from foretell.runs.store import RunStore
from foretell.scoring.examples import read_examples
from foretell.scoring.join import ReadOptions, read_table
from foretell.scoring.long_tables import forecast_rows, questions_of_runs, run_rows
from foretell.scoring.table import ForecastTable
from foretell.scoring.table_input import TableSource, check_rules, open_table, refuse_repeats, text_rules
from foretell.studies.consistency import StatedForecast
from foretell.studies.inputs import (
    RoleOptions,
    SimulationOptions,
    StudyData,
    StudyOptions,
    StudyProgress,
    TableOptions,
    TreeStudyOptions,
    WorldOptions,
)
from foretell.studies.published_trials import AS_PUBLISHED, TrialAssumptions, read_trial_tables
from foretell.studies.reasoning import ReasoningCase
from foretell.studies.stored_runs import (
    StoredRun,
    find_stored_run,
    find_stored_runs,
    read_cases,
    read_statements,
    with_distinct_names,
)
from foretell.studies.trees.inputs import ROLES, ForecastCost, read_cost_table, read_role_table, read_trees
from foretell.studies.trees.simulation import Simulation

TREE_RUN = "tree"
FactoredRun = tuple[StoredRun, list[Forecast], RunFactors]
"""A run with its forecasts, and its level of every factor."""


def read_study_data(settings: Settings, options: StudyOptions, progress: StudyProgress) -> StudyData:
    """What the options name; a simulated world where they name nothing and the study has one."""
    data = StudyData(tables={}, resampling=options.resampling, progress=progress)
    if isinstance(options, SimulationOptions | TreeStudyOptions | WorldOptions):
        usual = Simulation()
        world = replace(usual.settings, leaves=options.leaves or usual.settings.leaves)
        data = replace(data, simulation=replace(usual, worlds=options.worlds or usual.worlds, settings=world))
    if isinstance(options, TreeStudyOptions):
        if options.trees and options.runs:
            raise InputError("a study looks at one thing", hint="give one of --trees and --run")
        data = replace(data, trees={folder.name: read_trees(folder) for folder in options.trees})
        if options.runs:
            data = replace(data, trees=_trees_of_runs(settings, options.runs))
    if isinstance(options, TableOptions):
        data = _with_tables(settings, options, replace(data, chosen=options.config))
    return data


def _with_tables(settings: Settings, options: TableOptions, data: StudyData) -> StudyData:
    """The data with the tables that the options name, and what is known of the forecasters in them."""
    sources = [name for name in ("data", "forecasts", "runs", "grid") if getattr(options, name)]
    if len(sources) > 1:
        raise InputError("a study looks at one thing", hint="give one of --data, --forecasts, --run and --grid")
    simulated = isinstance(options, SimulationOptions)
    if not sources and not simulated:
        raise InputError(
            "a study needs trials", hint="give --data DIR, --forecasts and --outcomes, --run RUN, or --grid FILE"
        )
    if sources and isinstance(options, SimulationOptions) and (options.worlds or options.leaves):
        raise InputError("--worlds and --leaves are about a simulated world", hint="leave them out")
    if sources:
        data = _read_tables(settings, options, data)
    return _with_facts(options, data)


def _read_tables(settings: Settings, options: TableOptions, data: StudyData) -> StudyData:
    """The data with the tables of the one source that is named."""
    if options.grid:
        return _with_runs(_runs_of_grid(settings, options.grid), settings, options, data)
    if options.runs:
        runs = _forecasts_of_runs(settings, options.runs)
        return _with_runs(_named_by_factors(runs), settings, options, data)
    return replace(data, **_trial_tables(options))


def _with_facts(options: TableOptions, data: StudyData) -> StudyData:
    """The data with what tables say of the forecasters: costs, roles and factors."""
    factors = read_factor_table(options.factors) if options.factors else {}
    priced: Path | None = getattr(options, "costs", None)
    costs = read_cost_table(priced) if priced else {}
    roles = read_role_table(options.roles) if isinstance(options, RoleOptions) and options.roles else {}
    for flag, table in (("--costs", costs), ("--roles", roles), ("--factors", factors)):
        if table and not data.tables:
            raise InputError(f"{flag} is about the forecasters of a table", hint="give --forecasts and --outcomes")
        for name in table:
            if name not in data.tables:
                raise InputError(f"no forecaster is called {name!r}", column=f"{flag} forecaster")
    merged = {"costs": {**data.costs, **costs}, "roles": {**data.roles, **roles}}
    return replace(data, **merged, factors={**data.factors, **factors})


def _trial_tables(options: TableOptions) -> dict[str, Any]:
    if options.data:
        outcome = "paper_outcome" if options.paper_outcomes else "outcome"
        known = TrialAssumptions(price=options.price, prior=options.prior, outcome=outcome)
        folder, prefix = options.data, options.prefix
        return {
            "tables": read_trial_tables(folder, prefix, known),
            "paper": lambda: read_trial_tables(folder, prefix, AS_PUBLISHED),
        }
    if not options.outcomes:
        raise InputError("a study needs outcomes", hint="give --outcomes beside --forecasts")
    return {"tables": read_examples(cast(Path, options.forecasts), options.outcomes)}


# Stored runs.


def _forecasts_of_runs(settings: Settings, starts: Sequence[str]) -> list[tuple[StoredRun, list[Forecast]]]:
    """The forecasts of runs, each run under the name of its forecaster; a panel after the trials is none of them."""
    found: dict[str, tuple[StoredRun, list[Forecast]]] = {}
    with closing(RunStore(settings.store)) as store:
        for start in starts:
            run = find_stored_run(store, start)
            answers = [answer for answer in store.answers(run.id) if isinstance(answer, Forecast)]
            forecasts = [forecast for forecast in answers if forecast.forecaster != PANEL]
            if not forecasts:
                raise InputError(f"run {run.id} has no forecast", hint="start it again with foretell run")
            found[run.id] = replace(run, name=forecasts[0].forecaster), forecasts
    named = with_distinct_names([run for run, _ in found.values()])
    return [(run, found[run.id][1]) for run in named]


def _named_by_factors(runs: Sequence[tuple[StoredRun, list[Forecast]]]) -> dict[str, FactoredRun]:
    """Runs under the names of their forecasters, or under their levels where those would be the same."""
    factors = factors_of_specs({run.id: run.spec for run, _ in runs})
    plain = [forecasts[0].forecaster for _, forecasts in runs]
    levels = [run_name(factors[run.id]) for run, _ in runs]
    short = len(set(plain)) < len(plain) and len(set(levels)) == len(levels)
    names = levels if short else [run.name for run, _ in runs]
    return {name: (run, found, factors[run.id]) for name, (run, found) in zip(names, runs, strict=True)}


def _runs_of_grid(settings: Settings, file: Path) -> dict[str, FactoredRun]:
    """The runs of a grid that have forecasts, by their names in the grid."""
    grid = read_grid(file)
    found: dict[str, FactoredRun] = {}
    with closing(RunStore(settings.store)) as store:
        for run in grid.runs():
            prepared = find_run_of(store, prepare_run(run.spec, folders=(Path(), file.parent)), extend=False)
            id = prepared.spec.id
            if store.run(id) is None:
                raise InputError(f"{run.name} was not run yet", path=file, hint=f"foretell grid {file}")
            answers = [one for one in store.answers(id) if isinstance(one, Forecast) and one.forecaster != PANEL]
            if not answers:
                raise InputError(f"{run.name} has no forecast", path=file, hint=f"foretell grid {file}")
            found[run.name] = StoredRun(id=id, name=run.name, spec=prepared.spec), answers, run.factors
    return found


def read_factor_table(source: TableSource) -> dict[str, dict[str, str]]:
    """By forecaster, the level of every factor; an empty cell is a factor that does not concern it.

    >>> read_factor_table([{"forecaster": "a", "rule": "linear", "leaves": 10}])
    {'a': {'rule': 'linear', 'leaves': '10'}}
    """
    import duckdb

    with duckdb.connect(":memory:") as con, open_table(source, "factors", con) as table:
        table.require("forecaster")
        check_rules(table, list(text_rules(table, "forecaster")))
        refuse_repeats(table, {"forecaster": table.text("forecaster")})
        names = [column for column in table.columns if column != "forecaster"]
        wanted = ", ".join(table.text(column) for column in ("forecaster", *names))
        rows = con.execute(f"select {wanted} from {table.table} order by _row").fetchall()
    return {
        forecaster: {name: level for name, level in zip(names, levels, strict=True) if level}
        for forecaster, *levels in rows
    }


def _with_runs(
    found: Mapping[str, FactoredRun], settings: Settings, options: TableOptions, data: StudyData
) -> StudyData:
    """The data with all that studies can use of stored runs: trials, cost of a trial, models by role, and factors."""
    runs = [(replace(run, name=name), forecasts) for name, (run, forecasts, _) in found.items()]
    factors = {name: levels for name, (_, _, levels) in found.items()}
    costs: dict[str, ForecastCost] = {}
    roles: dict[str, dict[str, str]] = {}
    for run, forecasts in runs:
        spent = [one.usage for one in forecasts]
        costs[run.name] = ForecastCost(
            dollars=float(np.mean([one.dollars for one in spent])),
            seconds=float(np.mean([one.seconds for one in spent])),
        )
        if run.spec.forecaster == TREE_RUN:
            agent = run.spec.models.get("agent", "")
            roles[run.name] = {role: run.spec.models.get(role, agent) for role in ROLES}
    tables = _run_tables(settings, runs, options.outcomes)
    return replace(data, tables=tables, costs=costs, roles=roles, factors=factors)


def _trees_of_runs(settings: Settings, starts: Sequence[str]) -> dict[str, Any]:
    folder = settings.home / "trees"
    with closing(RunStore(settings.store)) as store:
        return {run.name: read_trees(folder / run.spec.id) for run in find_stored_runs(store, starts)}


def _run_tables(
    settings: Settings, runs: Sequence[tuple[StoredRun, Sequence[Forecast]]], outcomes: Path | None
) -> dict[str, Examples]:
    """Trials of every run on the targets that have resolved; without a table of outcomes, by their question sets."""
    with closing(RunStore(settings.store)) as store:
        questions, targets = questions_of_runs(store, [run.id for run, _ in runs])
    rows = [{**row, "forecaster": run.name} for run, forecasts in runs for row in forecast_rows(forecasts, questions)]
    if outcomes is None and all(row["outcome"] is None for row in targets):
        hint = "give --outcomes with question, target, due, outcome and resolved_on"
        raise InputError("none of the questions has an outcome", hint=hint)
    return read_examples(cast(list[object], rows), outcomes or cast(list[object], targets), drop_unknown=True)


def run_table(settings: Settings, starts: Sequence[str]) -> tuple[ForecastTable, list[str], dict[str, str]]:
    """Runs over common questions as one table, each under its name with its trials combined; and the question texts."""
    found = run_rows(settings, starts)
    table = read_table(found.forecasts, found.outcomes, ReadOptions(drop_unknown=True))
    return table, list(found.names), dict(found.texts)


# Arenas.


def _arena_runs(store: RunStore, arena: str) -> list[StoredRun]:
    """The entries of an arena, by its file, its folder or its name."""
    name = read_arena(arena).name if Path(arena).exists() else arena
    ArenaStore(store.database, name)  # Makes the tables where no arena was ever opened.
    known = [known for (known,) in store.database.read("select name from arena order by name")]
    if name not in known:
        hint = f"there are: {', '.join(known)}" if known else "there is none on this machine"
        raise InputError(f"there is no arena {name[:80]!r}", column="--arena", hint=hint)
    rows = {row.id: row for row in store.runs()}
    entries = [one for one in ArenaStore(store.database, name).entries() if one.run in rows]
    return with_distinct_names(
        [StoredRun(id=one.run, name=one.name, spec=spec_from_json(rows[one.run].spec)) for one in entries]
    )


def statements_of_runs(store: RunStore, starts: Sequence[str], arena: str | None) -> list[StatedForecast]:
    """What was stated in runs or by the entries of an arena, before it was made coherent."""
    if bool(starts) == bool(arena):
        raise InputError("a study looks at one thing", hint="give --run RUN (it may be repeated) or --arena ARENA")
    runs = _arena_runs(store, arena) if arena else find_stored_runs(store, starts)
    statements = [one for run in runs for one in read_statements(store, run.id, name=run.name)]
    if not statements:
        raise InputError("nothing has been stated yet", column="--arena" if arena else "--run")
    return statements


def judge_cases(store: RunStore, starts: Sequence[str], limit: int | None) -> list[ReasoningCase]:
    """Forecasts of runs with reasons and what they were shown; a larger sample contains a smaller one."""
    cases = [
        replace(case, forecast=replace(case.forecast, forecaster=run.name))
        for run in find_stored_runs(store, starts)
        for case in read_cases(store, run.id, _contexts(store, run))
    ]
    if not cases:
        raise InputError("no forecast of these runs gives a reason", column="--run")
    return sorted(cases, key=lambda case: case.item)[:limit]


def _contexts(store: RunStore, run: StoredRun) -> Callable[[str], PredictionContext | None]:
    """What a run was shown, by digest: the contexts of its arena, or its questions alone."""
    arena = arena_of(run.spec)
    if arena is not None:
        return ArenaStore(store.database, arena).context
    contexts: dict[str, PredictionContext] = {}
    for question in store.questions(run.id):
        as_of = question.as_of_in(run.spec.mode)
        context = PredictionContext(question=known_at(question, as_of), as_of=as_of)
        contexts[context.digest] = context
    return contexts.get
