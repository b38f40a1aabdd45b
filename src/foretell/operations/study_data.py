"""Runs of this machine as what studies read: trials with outcomes, costs, who played which part, and trees."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from foretell.arena.spec import arena_of, read_arena
from foretell.arena.store import ArenaStore
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunStore, find_run
from foretell.studies.consistency import OutcomeStructure, plain_structure
from foretell.studies.stored_runs import read_cases, read_statements, read_traces
from foretell.studies.trees.inputs import ROLES, ForecastCost, TreeStudyInput, read_trees

if TYPE_CHECKING:
    from foretell.report.study import StudyInput, StudyProgress
    from foretell.runs.spec import RunSpec
    from foretell.scoring.table import ForecastTable
    from foretell.studies.consistency import StatedForecast
    from foretell.studies.habits import TracedTrial
    from foretell.studies.reasoning import ReasoningCase


TREE_RUN = "tree"


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One run, under the name that studies show."""

    name: str
    spec: "RunSpec"
    forecasts: tuple[Forecast, ...]

    @property
    def cost(self) -> ForecastCost:
        """Mean of one trial."""
        usages = [forecast.usage for forecast in self.forecasts]
        return ForecastCost(
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
    from foretell.forecasters.combine.trials import PANEL
    from foretell.runs.spec import spec_from_json
    from foretell.runs.store import RunStore, find_run

    found: list[StoredRun] = []
    with closing(RunStore(settings.store)) as store:
        for start in starts:
            run = find_run(store, start)
            row = next(row for row in store.runs() if row.id == run)
            said = [answer for answer in store.answers(run) if isinstance(answer, Forecast)]
            said = [forecast for forecast in said if forecast.forecaster != PANEL]
            if not said:
                raise InputError(f"run {run} has no forecast", hint="start it again with foretell run")
            found.append(StoredRun(name=said[0].forecaster, spec=spec_from_json(row.spec), forecasts=tuple(said)))
    return _distinct_run_names(found)


def _distinct_run_names(runs: Sequence[StoredRun]) -> list[StoredRun]:
    names = [run.name for run in runs]
    return [replace(run, name=f"{run.name} ({run.spec.id[:6]})") if names.count(run.name) > 1 else run for run in runs]


def material_of_runs(
    settings: "Settings", starts: Sequence[str], given: Mapping[str, Any], *, outcomes: Path | None = None
) -> TreeStudyInput:
    """All that studies can use of these runs; without a table of outcomes, those of their question sets."""
    runs, trees = stored_runs(settings, starts), settings.home / "trees"
    return TreeStudyInput(
        tables=_run_tables(runs, outcomes),
        costs={run.name: run.cost for run in runs},
        cast={run.name: run.cast for run in runs if run.spec.forecaster == TREE_RUN},
        trees={run.name: read_trees(folder) for run in runs if (folder := trees / run.spec.id).is_dir()},
        **given,
    )


def run_table(settings: "Settings", starts: Sequence[str]) -> "tuple[ForecastTable, list[str], dict[str, str]]":
    """Runs over common questions as one table, each under its name with its trials combined; and what was asked."""
    from foretell.scoring.join import ReadOptions, read_table
    from foretell.scoring.long_tables import run_rows

    found = run_rows(settings, starts)
    table = read_table(found.forecasts, found.outcomes, ReadOptions(drop_unknown=True))
    return table, list(found.names), dict(found.texts)


def _questions_of_run(runs: Sequence[StoredRun]) -> "tuple[list[dict[str, Any]], dict[tuple[str, str], Question]]":
    """The targets of all runs with their outcomes, and the questions they belong to."""
    from foretell.runs.question_sets import open_benchmark
    from foretell.scoring.long_tables import outcome_rows

    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    chosen: dict[tuple[str, str], Question] = {}
    for run in runs:
        found = open_benchmark(run.spec.questions.dataset, rounds=run.spec.questions.rounds).questions
        mine = found.questions[: run.spec.questions.limit]
        chosen |= {(question.id, question.due.isoformat()): question for question in mine}
        for row in outcome_rows(mine, found.resolutions):
            rows.setdefault((row["question"], row["target"], row["due"]), row)
    return list(rows.values()), chosen


def _run_tables(runs: Sequence[StoredRun], outcomes: Path | None) -> dict[str, Examples]:
    """Trials of every run on the targets that have come out."""
    from foretell.scoring.examples import read_examples
    from foretell.scoring.long_tables import forecast_rows

    rows, chosen = _questions_of_run(runs)
    said = [{**row, "forecaster": run.name} for run in runs for row in forecast_rows(run.forecasts, chosen.values())]
    if outcomes is None and all(row["outcome"] is None for row in rows):
        hint = "give --outcomes with question, target, due, outcome and resolved_on"
        raise InputError("none of the questions has an outcome", hint=hint)
    return read_examples(cast(list[object], said), outcomes or cast(list[object], rows), drop_unknown=True)


# What studies of runs and arenas look at: traces, statements, and cases for a judge.


@dataclass(frozen=True, kw_only=True)
class NamedRun:
    """A stored run under the name that tables show."""

    id: str
    name: str
    spec: RunSpec


def named_runs(store: RunStore, starts: Sequence[str]) -> list[NamedRun]:
    """The runs whose ids begin so: forecaster and model, with the id where two would be called the same."""
    if not starts:
        raise InputError("no run is named", hint="give --run RUN; foretell runs lists them")
    found: dict[str, NamedRun] = {}
    for start in starts:
        id = find_run(store, start)
        row = store.run(id)
        assert row is not None
        spec = spec_from_json(row.spec)
        found[id] = NamedRun(id=id, name=" ".join(filter(None, [spec.forecaster, spec.models.get("agent")])), spec=spec)
    return _distinct_names(list(found.values()))


def arena_runs(store: RunStore, arena: str) -> list[NamedRun]:
    """The entries of an arena, by its file, its folder or its name."""
    name = read_arena(arena).name if Path(arena).exists() else arena
    ArenaStore(store.database, name)  # Makes the tables where no arena was ever opened.
    known = [known for (known,) in store.database.read("select name from arena order by name")]
    if name not in known:
        hint = f"there are: {', '.join(known)}" if known else "there is none on this machine"
        raise InputError(f"there is no arena {name[:80]!r}", column="--arena", hint=hint)
    rows = {row.id: row for row in store.runs()}
    entries = [one for one in ArenaStore(store.database, name).entries() if one.run in rows]
    return _distinct_names(
        [NamedRun(id=one.run, name=one.name, spec=spec_from_json(rows[one.run].spec)) for one in entries]
    )


def _distinct_names(runs: Sequence[NamedRun]) -> list[NamedRun]:
    names = [run.name for run in runs]
    return [replace(run, name=f"{run.name} ({run.id[:6]})") if names.count(run.name) > 1 else run for run in runs]


def traces_of_runs(settings: Settings, starts: Sequence[str]) -> "dict[str, list[TracedTrial]]":
    """What the trials of runs did, by name."""
    with closing(RunStore(settings.store)) as store:
        found = {run.name: read_traces(store, run.id, trials=run.spec.trials) for run in named_runs(store, starts)}
    for name, traces in found.items():
        if not traces:
            raise InputError(f"run {name} has no trial yet", hint="start it with foretell run")
    return found


def statements_of_runs(settings: Settings, starts: Sequence[str], arena: str | None) -> "list[StatedForecast]":
    """What was stated in runs or by the entries of an arena, before it was made to fit."""
    if bool(starts) == bool(arena):
        raise InputError("one thing is looked at", hint="give --run RUN (it may be repeated) or --arena ARENA")
    with closing(RunStore(settings.store)) as store:
        runs = arena_runs(store, arena) if arena else named_runs(store, starts)
        found = [one for run in runs for one in read_statements(store, run.id, name=run.name)]
    if not found:
        raise InputError("nothing has been stated yet", column="--arena" if arena else "--run")
    return found


def fullest_run(statements: "Sequence[StatedForecast]") -> list[Question]:
    """Every question once, as it was asked with most outcomes: their structure holds for the others too."""
    found: dict[str, Question] = {}
    for one in statements:
        known = found.get(one.question.id)
        if known is None or len(one.question.targets) > len(known.targets):
            found[one.question.id] = one.question
    return list(found.values())


def plain_structures(questions: Sequence[Question]) -> dict[str, OutcomeStructure]:
    """What questions declare and what their wording shows."""
    return {one.id: plain_structure(one) for one in questions}


def judge_cases(settings: Settings, starts: Sequence[str], limit: int | None) -> "list[ReasoningCase]":
    """Forecasts of runs with reasons and what they were shown; a larger sample contains a smaller one."""
    found: list[ReasoningCase] = []
    with closing(RunStore(settings.store)) as store:
        for run in named_runs(store, starts):
            for case in read_cases(store, run.id, _contexts(store, run)):
                named = replace(case.forecast, forecaster=run.name)
                found.append(replace(case, forecast=named))
    if not found:
        raise InputError("no forecast of these runs gives a reason", column="--run")
    return sorted(found, key=lambda case: case.item)[:limit]


def _contexts(store: RunStore, run: NamedRun) -> Callable[[str], PredictionContext | None]:
    """What a run was shown, by digest: the book of its arena, or its questions alone."""
    arena = arena_of(run.spec)
    if arena is not None:
        return ArenaStore(store.database, arena).context
    alone: dict[str, PredictionContext] = {}
    for question in store.questions(run.id):
        as_of = question.as_of_in(run.spec.mode)
        made = PredictionContext(question=known_at(question, as_of), as_of=as_of)
        alone[made.digest] = made
    return alone.get


# What a study looks at, as the command line says it: tables, runs of this machine, trees, or a made-up world.

TREES, WORLD, SIDES = "tree", ("worlds", "leaves"), ("costs", "cast")
"""The first word of studies of trees; options that say how large a made-up world is; tables beside forecasts."""


def study_named(words: tuple[str, ...], others: Iterable[str] = ()) -> str:
    """The study that is meant: `tree noise` is tree-noise, and `tree stability` is stability.

    `others` are names that may be meant where there is no such study.

    >>> study_named(("tree", "noise")), study_named(("tree", "stability")), study_named(("trials",))
    ('tree-noise', 'stability', 'trials')
    """
    from foretell.studies.registry import SIMULATED, require_study

    whole, rest = "-".join(words), "-".join(words[1:])
    if words[0] == TREES and rest in SIMULATED:
        return rest
    require_study(whole, others)
    return whole


def study_material(name: str, options: Mapping[str, Any], progress: "StudyProgress") -> "StudyInput":
    """What the options give; a made-up world where they give nothing and the study has one."""
    from foretell.metrics.bootstrap import Resampling
    from foretell.studies.registry import SIMULATED

    how = Resampling(draws=options["draws"], seed=options["seed"])
    given: dict[str, Any] = {"chosen": options["chosen"], "resampling": how, "progress": progress}
    ways = [way for way in ("folder", "forecasts", "runs", "trees") if options[way]]
    if len(ways) > 1:
        raise InputError("a study looks at one thing", hint="give one of --data, --forecasts, --run and --trees")
    for option in (*WORLD, *SIDES):
        if options[option] and (name not in SIMULATED or (option in WORLD) == bool(ways)):
            where = "a made-up world" if option in WORLD else "the forecasts of a study of trees"
            raise InputError(f"--{option} is about {where}", hint="leave it out, or see foretell study --help")
    if name in SIMULATED:
        return _with_sides(_of_trees(options, given), options)
    if options["runs"]:
        return _of_runs(options, given)
    if not (options["folder"] or options["forecasts"]):
        raise InputError("a study needs trials", hint="give --data DIR, --forecasts and --outcomes, or --run RUN")
    from foretell.report.study import StudyInput

    return StudyInput(**_trial_tables(options), **given)


def _of_trees(options: Mapping[str, Any], given: Mapping[str, Any]) -> "StudyInput":
    from foretell.studies.trees.inputs import TreeStudyInput, read_trees
    from foretell.studies.trees.simulation import Simulation

    if options["runs"]:
        return _of_runs(options, given)
    if options["trees"]:
        folders = {folder.name: read_trees(folder) for folder in options["trees"]}
        return TreeStudyInput(tables={}, trees=folders, **given)
    if options["folder"] or options["forecasts"]:
        return TreeStudyInput(**_trial_tables(options), **given)
    scene = Simulation()
    scene = replace(
        scene,
        worlds=options["worlds"] or scene.worlds,
        settings=replace(scene.settings, leaves=options["leaves"] or scene.settings.leaves),
    )
    return TreeStudyInput(tables={}, scene=scene, **given)


def _of_runs(options: Mapping[str, Any], given: Mapping[str, Any]) -> "StudyInput":
    from foretell.runs.settings import load_settings

    return material_of_runs(load_settings(), options["runs"], given, outcomes=options["outcomes"])


def _with_sides(material: "StudyInput", options: Mapping[str, Any]) -> "StudyInput":
    """With what the tables beside the forecasts say; they go before what runs have noted themselves."""
    from foretell.studies.trees.inputs import TreeStudyInput, read_cast_table, read_cost_table

    assert isinstance(material, TreeStudyInput)
    costs = read_cost_table(options["costs"]) if options["costs"] else {}
    cast = read_cast_table(options["cast"]) if options["cast"] else {}
    for path, table in ((options["costs"], costs), (options["cast"], cast)):
        for name in table:
            if name not in material.tables:
                raise InputError(f"no forecaster is called {name!r}", path=path, column="forecaster")
    return replace(material, costs={**material.costs, **costs}, cast={**material.cast, **cast})


def _trial_tables(options: Mapping[str, Any]) -> dict[str, Any]:
    if options["folder"]:
        from foretell.studies.published_trials import AS_PUBLISHED, TrialAssumptions, read_trial_tables

        outcome = "paper_outcome" if options["paper_outcomes"] else "outcome"
        known = TrialAssumptions(price=options["price"], prior=options["prior"], outcome=outcome)
        folder, prefix = options["folder"], options["prefix"]
        return {
            "tables": read_trial_tables(folder, prefix, known),
            "paper": lambda: read_trial_tables(folder, prefix, AS_PUBLISHED),
        }
    if not options["outcomes"]:
        raise InputError("a study needs outcomes", hint="give --outcomes beside --forecasts")
    from foretell.scoring.examples import read_examples

    return {"tables": read_examples(options["forecasts"], options["outcomes"])}
