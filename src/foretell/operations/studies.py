"""Run a study: what `foretell study NAME`, `foretell.study(...)` and the web application call.

Studies that call models use the same journal, limits and budget as runs, so that repeating a study is free.
"""

import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import iscoroutine
from pathlib import Path
from typing import Any, cast

import numpy as np

from foretell.arena.listing import check_arena
from foretell.arena.spec import arena_of, read_arena
from foretell.arena.store import ArenaStore
from foretell.data.datasets.question_set import AskedKey
from foretell.forecasters.combine.aggregate import PANEL
from foretell.forecasters.forecaster import make_forecaster
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.forecasters.prompt.rendering import BOTH
from foretell.interface import suggesting
from foretell.models.budget import Budget
from foretell.models.canonical import unpack_reply
from foretell.models.journal import Journal
from foretell.models.names import ModelName
from foretell.models.router import api_key_for
from foretell.python_calls import in_python, python_errors
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.report.provenance import call_text, command_text, running_command
from foretell.report.study_result import StudyResult
from foretell.runs import event_loop
from foretell.runs.contexts import RunContexts, gathers_sources, named_view, stored_contexts
from foretell.runs.event_loop import run_sync
from foretell.runs.executor import RunProgress
from foretell.runs.grid import Grid, RunFactors, factors_of_specs, read_grid, run_name
from foretell.runs.runner import PreparedRun, WatchProgress, find_run_of, prepare_run
from foretell.runs.runtime import forecaster_options, open_runtime, shown_context
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import (
    BudgetSpec,
    QuestionsSpec,
    RunSpec,
    read_changes,
    read_spec,
    spec_from_json,
    spec_from_mapping,
    with_settings,
)
from foretell.runs.store import RunStore
from foretell.scoring.added_tables import RunRows, add_tables
from foretell.scoring.forecaster_facts import read_forecaster_facts
from foretell.scoring.join import read_examples
from foretell.scoring.long_tables import forecast_rows
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.run_scores import questions_of_runs
from foretell.scoring.table import ForecastCost
from foretell.scoring.table_input import TableSource
from foretell.studies.cases import ReasoningCase, StatedForecast, TracedTrial, TreeFacts
from foretell.studies.inputs import (
    AgentStudyOptions,
    AgentTrials,
    Study,
    StudyData,
    StudyModels,
    StudyOptions,
    StudyProgress,
    TableOptions,
    TreeStudyOptions,
    load_study,
    study_of,
)
from foretell.studies.stored_runs import (
    FindContext,
    StoredRun,
    find_stored_run,
    find_stored_runs,
    read_cases,
    read_statements,
    read_trees,
    traces_of_runs,
    trees_of_run,
    with_distinct_names,
)

# What studies read on this machine: tables of trials, stored runs with outcomes and costs, trees, and arenas.


FactoredRun = tuple[StoredRun, list[Forecast], RunFactors]
"""A run with its forecasts, and its level of every factor."""


def read_study_data(settings: Settings, options: StudyOptions, progress: StudyProgress) -> StudyData:
    """Return the tables or trees that the options name."""
    data = StudyData(tables={}, resampling=options.resampling, progress=progress)
    if isinstance(options, TreeStudyOptions):
        return _with_trees(settings, options.sources, data)
    return _with_tables(settings, options, data) if isinstance(options, TableOptions) else data


def _with_tables(settings: Settings, options: TableOptions, data: StudyData) -> StudyData:
    """Add the forecasts of the runs, the grid or the tables that the options name."""
    files = {source: Path(source) for source in options.sources if Path(source).suffix or Path(source).exists()}
    starts = [source for source in options.sources if source not in files]
    if files and options.forecasts is not None:
        hint = "give both files as arguments, or outcomes with -o"
        raise InputError(f"{next(iter(files))} is given in addition to --forecasts", column="--forecasts", hint=hint)
    tables: dict[str, TableSource] = {**files} if options.forecasts is None else {"forecasts": options.forecasts}
    if options.grid and (tables or starts):
        raise InputError("a study takes a grid, or runs and files", hint="leave out --grid or the others")
    if not (tables or starts or options.grid):
        hint = "give RUN, a file of forecasts, -f FILE with -o FILE, or --grid FILE"
        raise InputError("a study needs forecasts", hint=hint)
    runs = _runs_of_grid(settings, read_grid(options.grid)) if options.grid else {}
    if starts:
        runs = _named_by_factors(_forecasts_of_runs(settings, starts))
    return _joined(settings, runs, tables, options, data)


def grid_data(settings: Settings, grid: Grid, options: StudyOptions) -> StudyData:
    """Return the forecasts of the runs of a grid as inputs of a study. Raises `InputError` if one was not run."""
    assert isinstance(options, TableOptions)
    data = StudyData(tables={}, resampling=options.resampling)
    return _joined(settings, _runs_of_grid(settings, grid), {}, options, data)


def _joined(
    settings: Settings,
    runs: Mapping[str, FactoredRun],
    tables: Mapping[str, TableSource],
    options: TableOptions,
    data: StudyData,
) -> StudyData:
    """Add the forecasts of runs and tables, joined with their outcomes."""
    data = _with_facts(runs, tables, options, data)
    if not runs and len(tables) == 1:
        (table,) = tables.values()
        notes = list[str]()
        examples = read_examples(table, options.outcomes, columns=options.columns, dated=False, notes=notes)
        return replace(data, tables=examples, notes=notes)
    run_data = _run_rows(settings, runs)
    if not tables and options.outcomes is None and all(row["outcome"] is None for row in run_data.outcomes):
        hint = "give --outcomes with question, target, due, outcome and resolved_on"
        raise InputError("none of the questions has an outcome", hint=hint)
    run_data = add_tables(run_data, tables or None, options.outcomes, options.columns)
    rows, outcomes = cast(list[object], run_data.forecasts), cast(list[object], run_data.outcomes)
    notes = list[str]()
    examples = read_examples(rows, outcomes, dated=False, notes=notes)
    return replace(data, tables=examples, notes=(*run_data.notes, *notes))


def _with_facts(
    runs: Mapping[str, FactoredRun], tables: Mapping[str, TableSource], options: TableOptions, data: StudyData
) -> StudyData:
    """Add the costs and factors of all forecasters, from runs and from columns of tables."""
    factors: dict[str, RunFactors] = {name: levels for name, (_, _, levels) in runs.items()}
    costs: dict[str, ForecastCost] = {}
    for name, (_, forecasts, _) in runs.items():
        usage = [forecast.usage for forecast in forecasts]
        dollars, seconds = (
            float(np.mean(values)) for values in zip(*((u.worth, u.seconds) for u in usage), strict=True)
        )
        costs[name] = ForecastCost(dollars=dollars, seconds=seconds)
    for table in tables.values():
        facts = read_forecaster_facts(table, options.columns)
        factors |= facts.factors
        costs |= facts.costs
    return replace(data, costs=costs, factors=factors)


# Stored runs.


def _forecasts_of_runs(settings: Settings, starts: Sequence[str]) -> list[tuple[StoredRun, list[Forecast]]]:
    """Return the forecasts of runs by the name of their forecaster, without panels."""
    by_id: dict[str, tuple[StoredRun, list[Forecast]]] = {}
    with closing(RunStore(settings.store)) as store:
        for start in starts:
            run = find_stored_run(store, start)
            answers = [answer for answer in store.costed_answers(run.id) if isinstance(answer, Forecast)]
            forecasts = [forecast for forecast in answers if forecast.forecaster != PANEL]
            if not forecasts:
                raise InputError(f"run {run.id} has no forecast", hint="start it again with foretell run")
            by_id[run.id] = replace(run, name=forecasts[0].forecaster), forecasts
    named = with_distinct_names([run for run, _ in by_id.values()])
    return [(run, by_id[run.id][1]) for run in named]


def _named_by_factors(runs: Sequence[tuple[StoredRun, list[Forecast]]]) -> dict[str, FactoredRun]:
    """Name runs by their forecasters, or by their levels if the names would be the same."""
    factors = factors_of_specs({run.id: run.spec for run, _ in runs})
    plain = [forecasts[0].forecaster for _, forecasts in runs]
    levels = [run_name(factors[run.id]) for run, _ in runs]
    short = len(set(plain)) < len(plain) and len(set(levels)) == len(levels)
    names = levels if short else [run.name for run, _ in runs]
    return {name: (run, forecasts, factors[run.id]) for name, (run, forecasts) in zip(names, runs, strict=True)}


def _runs_of_grid(settings: Settings, grid: Grid) -> dict[str, FactoredRun]:
    """Return the runs of a grid that have forecasts, by their names in the grid."""
    file = grid.path
    factored_runs: dict[str, FactoredRun] = {}
    with closing(RunStore(settings.store)) as store:
        for run in grid.runs():
            prepared = find_run_of(store, prepare_run(run.spec, folders=(Path(), file.parent)), extend=False)
            id = prepared.spec.id
            if store.run(id) is None:
                raise InputError(f"{run.name} was not run yet", path=file, hint=f"foretell grid {file}")
            answers = [
                answer
                for answer in store.costed_answers(id)
                if isinstance(answer, Forecast) and answer.forecaster != PANEL
            ]
            if not answers:
                raise InputError(f"{run.name} has no forecast", path=file, hint=f"foretell grid {file}")
            factored_runs[run.name] = StoredRun(id=id, name=run.name, spec=prepared.spec), answers, run.factors
    return factored_runs


def _run_rows(settings: Settings, runs: Mapping[str, FactoredRun]) -> RunRows:
    """Return the trials of runs under their names, with the outcomes of their question sets."""
    with closing(RunStore(settings.store)) as store:
        questions, targets = questions_of_runs(store, [run.id for run, _, _ in runs.values()])
    rows = [
        {**row, "forecaster": name}
        for name, (_, forecasts, _) in runs.items()
        for row in forecast_rows(forecasts, questions)
    ]
    return RunRows(forecasts=rows, outcomes=targets, combined=[], names=tuple(runs), texts={})


def _with_trees(settings: Settings, sources: Sequence[str], data: StudyData) -> StudyData:
    """Add the trees of folders and runs, by name of the folder or run, and the questions behind the trees of runs."""
    folders = {source: Path(source) for source in sources if Path(source).is_dir()}
    trees = {folder.name: read_trees(folder) for folder in folders.values()}
    facts: dict[str, list[TreeFacts]] = {}
    if starts := [source for source in sources if source not in folders]:
        with closing(RunStore(settings.store)) as store:
            runs = find_stored_runs(store, starts)
            levels = factors_of_specs({run.id: run.spec for run in runs})
            for run in runs:
                # Runs of one forecaster and model are named by what they differ in, such as their rule.
                alike = run.name.endswith(f"({run.id[:6]})") and levels[run.id]
                name = run_name(levels[run.id]) if alike else run.name
                trees[name], facts[name] = trees_of_run(store, run)
    return replace(data, trees=trees, tree_facts=facts)


# Arenas.


def _arena_runs(store: RunStore, arena: str) -> list[StoredRun]:
    """Return the entries of an arena, by its file, its folder or its name."""
    name = read_arena(arena).name if Path(arena).exists() else arena
    check_arena(store.database, name, "--arena")
    rows = {row.id: row for row in store.runs()}
    entries = [entry for entry in ArenaStore(store.database, name).entries() if entry.run in rows]
    return with_distinct_names(
        [StoredRun(id=entry.run, name=entry.name, spec=spec_from_json(rows[entry.run].spec)) for entry in entries]
    )


def contexts_of_run(store: RunStore, run: StoredRun) -> FindContext:
    """Return contexts that a run was shown, by digest."""
    arena = arena_of(run.spec)
    contexts = {context.digest: context for context in stored_contexts(store, run.id)}
    if arena is not None and not contexts:
        return ArenaStore(store.database, arena).context
    for question in store.questions(run.id):
        as_of = question.as_of_in(run.spec.mode)
        context = PredictionContext(question=known_at(question, as_of), as_of=as_of)
        contexts[context.digest] = context
    return contexts.get


# Running a study.


@suggesting
def study(  # noqa: PLR0913 - one parameter per option of the studies
    name: str | Callable[..., Any],
    inputs: StudyData | None = None,
    *,
    sources: Sequence[str | Path] | None = None,
    forecasts: TableSource | None = None,
    outcomes: TableSource | None = None,
    columns: ColumnNames | None = None,
    grid: str | Path | None = None,
    runs: Sequence[str] | None = None,
    arena: str | Path | None = None,
    spec: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    questions: str | Path | None = None,
    section: str | None = None,
    methods: Sequence[str] | None = None,
    reference: str | None = None,
    cross: str | None = None,
    worlds: int | None = None,
    leaves: int | None = None,
    tolerance: float | None = None,
    step: int | None = None,
    limit: int | None = None,
    model: str | None = None,
    models: Sequence[str] | None = None,
    judge: str | None = None,
    ratings: str | Path | None = None,
    sheet: str | Path | None = None,
    budget: float | None = None,
    bootstrap: str | Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    settings: Settings | None = None,
) -> StudyResult:
    """Run a study by its name, or a function of tables, or of inputs and options, as a study.

    trials, calibration, ensemble, ablation, variance and decisions take forecasts with outcomes. The others are
    tree-noise, trajectories, consistency, reasoning, memorization and intervention. A parameter that a study does not
    have is refused.

    Args:
        name: The name of a study, or a function. One of a single parameter gets the tables that `sources`, `forecasts`
            or `grid` name, as a `foretell.types.StudyData`.
        inputs: Tables that the program already has, instead of those that parameters name.
        sources: Stored runs, or files of forecasts; for tree-noise, folders of trees or runs that grew trees.
        forecasts: A table of forecasts, as in `score`. Columns that describe a forecaster are its factors.
        outcomes: A table of outcomes. Runs, and forecasts with a column `outcome`, need none.
        columns: Role → its column, if that has no usual name: {"forecaster": "model", "p": "prob"}; several for `p` if
            each column is a forecaster.
        grid: The file of a grid, for its runs with their factors.
        runs: Stored runs, for trajectories, consistency and reasoning.
        arena: consistency: the entries of an arena, by its file or name, instead of runs.
        spec: intervention: the settings file of a run of the agent.
        set: intervention: settings of that run by name, such as {"questions": "demo"}.
        questions: memorization: past events with outcomes, as a file, a folder of tables or the name of a set.
        section: Only this section of the study (default: all that the input allows).
        methods: calibration: only these methods, such as ("platt", "isotonic").
        reference: decisions: measure improvement from this configuration.
        cross: decisions: two factors, such as "rule,grounder"; the first makes the rows of the crossed table.
        worlds: tree-noise: number of simulated worlds (default: 40).
        leaves: tree-noise: minimum number of leaves of each simulated tree (default: 10).
        tolerance: trajectories: how far an answer may be from the belief stated last (default: 0.01); consistency:
            how far the sum of exclusive outcomes may be from one (default: 0.02).
        step: intervention: the step at which the belief is overwritten (default: 2).
        limit: intervention (default: 20), reasoning and memorization: use only this many questions or forecasts.
        model: tree-noise: the model that judges claims again; reasoning: the model that judges.
        models: memorization: the models to test.
        judge: consistency: a model that finds more structure than the wording rules.
        ratings: reasoning: a sheet filled in by people, to compare with the judge.
        sheet: reasoning: write an empty sheet for raters with the same cases to this file.
        budget: Hard limit in dollars for a study that asks models.
        bootstrap: How intervals are computed: {"draws": 2000, "seed": 0, "level": 0.95, "interval": "percentile"};
            keys may be left out.
        options: What only a study of your own or of a plug-in has, by name.
        progress: Called with the state of the work after every step.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `StudyResult` with sentences, tables, charts and notes.

    Raises:
        InputError: If there is no such study or run, a table is invalid, or a parameter has no effect on the study.

    >>> study("tree-noise", section="error-bars", worlds=2, bootstrap="draws=100").name
    'tree-noise'
    """
    given = {key: value for key, value in locals().items() if key not in NO_OPTIONS and value is not None}
    given |= options or {}
    if not isinstance(name, str) and not callable(name):
        raise InputError("must be the name of a study or a function", column="name")
    chosen = load_study(name) if isinstance(name, str) else study_of(name)
    with python_errors(chosen.options):
        request = chosen.options.read(given)
        if inputs is not None:
            named = next((name for name in ("sources", "forecasts", "outcomes", "grid") if name in given), None)
            if named:
                raise InputError("has no effect together with inputs", column=named, hint="leave one of them out")
            inputs = replace(inputs, resampling=request.resampling) if "bootstrap" in given else inputs
        by_name = isinstance(name, str) and inputs is None
        passed = {} if inputs is None else {"inputs": inputs}
        call = command_text(f"study {name}", request) if by_name else call_text("study", name, **passed, **given)
        with running_command(call):
            done = run_study(chosen, request, inputs=inputs, settings=settings, watch=progress)
    return replace(done, notes=tuple(in_python(note, chosen.options) for note in done.notes))


NO_OPTIONS = frozenset(("name", "inputs", "options", "progress", "settings"))
"""Parameters of `study` that are no options of a study."""


def run_study(
    study: Study,
    options: StudyOptions,
    *,
    inputs: StudyData | None = None,
    settings: Settings | None = None,
    watch: WatchProgress | None = None,
) -> StudyResult:
    """Run a study with the services of this machine, or on `inputs` instead of the tables that the options name."""
    services = inputs or MachineServices(settings=settings or load_settings(), watch=watch or (lambda progress: None))
    result = study.run(services, options)
    result = run_sync(result, event_loop.run) if iscoroutine(result) else result
    if not isinstance(result, StudyResult):
        problem = f"the study {study.name} returned {type(result).__name__}, not a StudyResult"
        raise InputError(problem, hint="import it from foretell.types")
    return result


@dataclass(kw_only=True)
class MachineServices:
    """The runs, arenas, models and settings of this machine; implements `foretell.studies.inputs.StudyServices`."""

    settings: Settings
    watch: WatchProgress
    _within: dict[float, Settings] = field(default_factory=dict[float, Settings])

    def progress(self, done: int, total: int) -> None:
        """Report the progress of a study that calls no model."""
        self.watch(RunProgress(total=total, done=done))

    def data(self, options: StudyOptions) -> StudyData:
        """Return the tables, trees and simulated worlds that the options name."""
        return read_study_data(self.settings, options, self.progress)

    @contextmanager
    def store(self) -> Generator[RunStore]:
        """Yield the store of runs."""
        with closing(RunStore(self.settings.store)) as store:
            yield store

    def traces(self, runs: Sequence[str]) -> dict[str, list[TracedTrial]]:
        """Return traces of the trials of stored runs, by run."""
        with self.store() as store, closing(Journal(self.settings.journal)) as journal:
            return traces_of_runs(store, runs, partial(_characters, journal))

    def statements(self, runs: Sequence[str], arena: str | None) -> list[StatedForecast]:
        """Return forecasts as stated in runs or by the entries of an arena, before they were made coherent."""
        if bool(runs) == bool(arena):
            raise InputError("a study takes data from one source", hint="give RUN or --arena ARENA")
        with self.store() as store:
            arena_runs = _arena_runs(store, arena) if arena else find_stored_runs(store, runs)
            statements = [
                statement for run in arena_runs for statement in read_statements(store, run.id, name=run.name)
            ]
        if not statements:
            raise InputError("there are no forecasts yet", column="--arena" if arena else "RUN")
        return statements

    def cases(self, runs: Sequence[str], limit: int | None) -> list[ReasoningCase]:
        """Return forecasts with their reasons and what they were shown. A larger sample contains the smaller ones."""
        with self.store() as store:
            cases = [
                replace(case, forecast=replace(case.forecast, forecaster=run.name))
                for run in find_stored_runs(store, runs)
                for case in read_cases(store, run.id, contexts_of_run(store, run), named_view(run.spec) or BOTH)
            ]
        if not cases:
            raise InputError("no forecast of these runs gives a reason", column="RUN")
        return sorted(cases, key=lambda case: case.item)[:limit]

    def check_models(self, names: Sequence[str]) -> None:
        """Check all keys before the first paid call."""
        for name in names:
            api_key_for(ModelName.read(name), self.settings.keys)

    @asynccontextmanager
    async def model(self, study: str, name: str, budget: float | None) -> AsyncGenerator[StudyModels]:
        """Yield a model by name; all models of a study share one budget of dollars."""
        spec = RunSpec(questions=QuestionsSpec(dataset=f"study {study}"), models={"agent": name})
        async with self._open(spec, budget, {}) as models:
            yield models

    @asynccontextmanager
    async def agent(self, options: AgentStudyOptions) -> AsyncGenerator[AgentTrials]:
        """Yield the agent that the options describe, with its questions."""
        async with self.agent_of(prepare_run(agent_spec(options)), options.budget) as trials:
            yield trials

    @asynccontextmanager
    async def agent_of(self, prepared: PreparedRun, budget: float | None) -> AsyncGenerator[AgentTrials]:
        """Yield the agent of a prepared run, with its questions."""
        spec = prepared.spec
        async with self._open(spec, budget, prepared.contexts, past=lambda: prepared.past) as models:
            yield AgentTrials(
                **vars(replace(models, name=models.runtime.models.agent)),
                agent=make_forecaster("agent", forecaster_options(spec)).build(),
                shown=lambda agent: shown_context(agent, spec),
                questions=prepared.questions,
                trials=spec.trials,
            )

    @asynccontextmanager
    async def _open(
        self, spec: RunSpec, budget: float | None, contexts: Mapping[AskedKey, PredictionContext], **resources: Any
    ) -> AsyncGenerator[StudyModels]:
        settings = self._settings_within(budget)
        with closing(Journal(settings.journal)) as journal:
            async with open_runtime(spec, settings, journal, **resources) as opened:
                gathers = not contexts and gathers_sources(spec)
                runtime = replace(opened, contexts=RunContexts(runtime=opened, gathers=gathers, given=contexts))

                def progress(done: int, total: int) -> None:
                    budget = runtime.budget
                    calls = budget.billed.calls + budget.reused.calls
                    self.watch(RunProgress(total=total, done=done, money=budget.money, calls=calls))

                yield StudyModels(
                    name=spec.models["agent"],
                    model=runtime.router.within(runtime.budget),
                    journal=journal,
                    progress=progress,
                    runtime=runtime,
                )

    def _settings_within(self, dollars: float | None) -> Settings:
        """Return the settings with one budget for all calls of the study; None for no limit."""
        if dollars is None:
            return self.settings
        if dollars not in self._within:
            budget = Budget("study", dollars=dollars, within=self.settings.budget)
            self._within[dollars] = replace(self.settings, budget=budget)
        return self._within[dollars]


def _characters(journal: Journal, key: str) -> int | None:
    """Return how many characters a stored reply has: text, reasoning and the arguments of its calls."""
    stored = journal.find(key)
    if stored is None:
        return None
    reply = unpack_reply(stored)
    return len(reply.text) + len(reply.thinking) + sum(len(call.arguments) for call in reply.calls)


def agent_spec(options: AgentStudyOptions) -> RunSpec:
    """Return the spec of the agent that a study is about: that of the file, with the changed settings."""
    spec = read_spec(options.spec, usual="agent")
    if options.set:
        try:
            spec = spec_from_mapping(with_settings(json.loads(spec.to_json()), read_changes(options.set)))
        except InputError as error:
            raise error.at(column=f"--set {error.column or ''}".strip()) from None
    if spec.forecaster != "agent":
        raise InputError(
            f"this is a study of the agent, not of {spec.forecaster}", path=options.spec, column="forecaster"
        )
    # The study has its own budget, which replaces that of the run.
    return replace(spec, budget=BudgetSpec(question=spec.budget.question))
