"""Run a study: what `foretell study NAME`, `foretell.study(...)` and the web application call.

Studies that call models work behind the same journal, limits and budget as runs, so that the same study again is free.
"""

import json
import re
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from inspect import iscoroutine
from pathlib import Path
from typing import Any, cast

import numpy as np

from foretell.arena.spec import arena_of, read_arena
from foretell.arena.store import ArenaStore
from foretell.data.files import open_duckdb
from foretell.forecasters.combine.aggregate import PANEL
from foretell.forecasters.combine.rows import Examples
from foretell.forecasters.forecaster import make_forecaster
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.names import ModelName
from foretell.models.router import api_key_for
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.report.charts.svg import Chart, chart_of
from foretell.report.markup import Markup
from foretell.report.provenance import call_text, command_text, made_by
from foretell.report.study import StudyChart, StudyResult, chart_titles, study_from_dict
from foretell.request import errors_name_fields
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.executor import RunProgress
from foretell.runs.grid import RunFactors, factors_of_specs, read_grid, run_name
from foretell.runs.runner import WatchProgress, find_run_of, prepare_run
from foretell.runs.runtime import forecaster_options, open_runtime
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec, read_spec, spec_from_json
from foretell.runs.store import RunStore
from foretell.scoring.join import ReadOptions, read_examples, read_table
from foretell.scoring.long_tables import forecast_rows, questions_of_runs, run_rows
from foretell.scoring.table import ForecastTable
from foretell.scoring.table_input import TableSource, check_rules, open_table, refuse_repeats, text_rules
from foretell.studies.consistency import StatedForecast
from foretell.studies.habits import TracedTrial
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
from foretell.studies.reasoning import ReasoningCase
from foretell.studies.stored_runs import (
    AS_PUBLISHED,
    ForecastCost,
    StoredRun,
    TrialAssumptions,
    find_stored_run,
    find_stored_runs,
    read_cases,
    read_cost_table,
    read_statements,
    read_trees,
    read_trial_tables,
    traces_of_runs,
    with_distinct_names,
)

# What studies read on this machine: tables of trials, stored runs with outcomes and costs, trees, and arenas.


FactoredRun = tuple[StoredRun, list[Forecast], RunFactors]
"""A run with its forecasts, and its level of every factor."""


def read_study_data(settings: Settings, options: StudyOptions, progress: StudyProgress) -> StudyData:
    """The tables or trees that the options name."""
    data = StudyData(tables={}, resampling=options.resampling, progress=progress)
    if isinstance(options, TreeStudyOptions):
        if options.trees and options.runs:
            raise InputError("a study takes data from one source", hint="give one of --trees and --run")
        data = replace(data, trees={folder.name: read_trees(folder) for folder in options.trees})
        if options.runs:
            data = replace(data, trees=_trees_of_runs(settings, options.runs))
    if isinstance(options, TableOptions):
        data = _with_facts(options, _with_tables(settings, options, replace(data, chosen=options.config)))
    return data


def _with_tables(settings: Settings, options: TableOptions, data: StudyData) -> StudyData:
    """Add the tables from the source that the options name."""
    sources = [name for name in ("data", "forecasts", "runs", "grid") if getattr(options, name)]
    if len(sources) > 1:
        raise InputError("a study takes data from one source", hint="give one of --data, --forecasts, --run and --grid")
    if not sources:
        raise InputError(
            "a study needs trials", hint="give --data DIR, --forecasts and --outcomes, --run RUN, or --grid FILE"
        )
    if options.grid:
        return _with_runs(_runs_of_grid(settings, options.grid), settings, options, data)
    if options.runs:
        runs = _forecasts_of_runs(settings, options.runs)
        return _with_runs(_named_by_factors(runs), settings, options, data)
    return replace(data, **_trial_tables(options))


def _with_facts(options: TableOptions, data: StudyData) -> StudyData:
    """Add costs and factors of the forecasters from tables."""
    factors = read_factor_table(options.factors) if options.factors else {}
    priced: Path | None = getattr(options, "costs", None)
    costs = read_cost_table(priced) if priced else {}
    for flag, table in (("--costs", costs), ("--factors", factors)):
        for name in table:
            if name not in data.tables:
                raise InputError(f"no forecaster is called {name!r}", column=f"{flag} forecaster")
    return replace(data, costs={**data.costs, **costs}, factors={**data.factors, **factors})


def _trial_tables(options: TableOptions) -> dict[str, Any]:
    if options.data:
        outcome = "paper_outcome" if options.paper_outcomes else "outcome"
        known = TrialAssumptions(price=options.price, prior=options.prior, outcome=outcome)
        folder, prefix = options.data, options.prefix
        return {
            "tables": read_trial_tables(folder, prefix, known),
            "paper": lambda: read_trial_tables(folder, prefix, AS_PUBLISHED),
        }
    tables = read_examples(cast(Path, options.forecasts), options.outcomes, columns=options.columns, dated=False)
    return {"tables": tables}


# Stored runs.


def _forecasts_of_runs(settings: Settings, starts: Sequence[str]) -> list[tuple[StoredRun, list[Forecast]]]:
    """The forecasts of runs by the name of their forecaster, without panels."""
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
    """Name runs by their forecasters, or by their levels if the names would be the same."""
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
    """Forecaster → its level of every factor; an empty cell means that the factor does not apply.

    >>> read_factor_table([{"forecaster": "a", "rule": "linear", "leaves": 10}])
    {'a': {'rule': 'linear', 'leaves': '10'}}
    """
    with open_duckdb() as con, open_table(source, "factors", con) as table:
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
    """Add trials, costs and factors of stored runs."""
    runs = [(replace(run, name=name), forecasts) for name, (run, forecasts, _) in found.items()]
    factors = {name: levels for name, (_, _, levels) in found.items()}
    costs: dict[str, ForecastCost] = {}
    for run, forecasts in runs:
        spent = [one.usage for one in forecasts]
        costs[run.name] = ForecastCost(
            dollars=float(np.mean([one.worth for one in spent])),
            seconds=float(np.mean([one.seconds for one in spent])),
        )
    tables = _run_tables(settings, runs, options.outcomes)
    return replace(data, tables=tables, costs=costs, factors=factors)


def _trees_of_runs(settings: Settings, starts: Sequence[str]) -> dict[str, Any]:
    folder = settings.home / "trees"
    with closing(RunStore(settings.store)) as store:
        return {run.name: read_trees(folder / run.spec.id) for run in find_stored_runs(store, starts)}


def _run_tables(
    settings: Settings, runs: Sequence[tuple[StoredRun, Sequence[Forecast]]], outcomes: Path | None
) -> dict[str, Examples]:
    """Trials of every run on resolved targets, with outcomes from a table or from the question sets."""
    with closing(RunStore(settings.store)) as store:
        questions, targets = questions_of_runs(store, [run.id for run, _ in runs])
    rows = [{**row, "forecaster": run.name} for run, forecasts in runs for row in forecast_rows(forecasts, questions)]
    if outcomes is None and all(row["outcome"] is None for row in targets):
        hint = "give --outcomes with question, target, due, outcome and resolved_on"
        raise InputError("none of the questions has an outcome", hint=hint)
    return read_examples(cast(list[object], rows), outcomes or cast(list[object], targets), drop_unknown=True)


def run_table(settings: Settings, starts: Sequence[str]) -> tuple[ForecastTable, list[str], dict[str, str]]:
    """Combine runs over common questions into one table, with trials combined; also returns the question texts."""
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


def _contexts(store: RunStore, run: StoredRun) -> Callable[[str], PredictionContext | None]:
    """Contexts that a run was shown, by digest."""
    arena = arena_of(run.spec)
    if arena is not None:
        return ArenaStore(store.database, arena).context
    contexts: dict[str, PredictionContext] = {}
    for question in store.questions(run.id):
        as_of = question.as_of_in(run.spec.mode)
        context = PredictionContext(question=known_at(question, as_of), as_of=as_of)
        contexts[context.digest] = context
    return contexts.get


# Running a study.


def study(name: str | Callable[[Any, Any], Any], inputs: StudyData | None = None, **options: Any) -> StudyResult:
    """The result of a study by name, or of a function `study(inputs, options) -> StudyResult`.

    >>> study("tree-uncertainty", worlds=2, draws=100).name
    'tree-uncertainty'

    Args:
        name: A study that `foretell study` lists, or a function.
        inputs: Tables that the program already has; else what the options name on this machine.
        options: The options of the study, as `foretell study NAME --help` lists them, with _ for -.
    """
    chosen = load_study(name) if isinstance(name, str) else study_of(name)
    with errors_name_fields(chosen.options):
        request = chosen.options.read(options)
        by_name = isinstance(name, str) and inputs is None
        given = {} if inputs is None else {"inputs": inputs}
        call = command_text(f"study {name}", request) if by_name else call_text("study", name, **given, **options)
        with made_by(call):
            return run_study(chosen, request, inputs=inputs)


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
    return run_sync(result, event_loop.run) if iscoroutine(result) else result


@dataclass(kw_only=True)
class MachineServices:
    """The runs, arenas, models and settings of this machine; implements `foretell.studies.inputs.StudyServices`."""

    settings: Settings
    watch: WatchProgress
    _within: dict[float, Settings] = field(default_factory=dict[float, Settings])

    def progress(self, done: int, total: int) -> None:
        """Progress of a study that calls no model."""
        self.watch(RunProgress(total=total, done=done))

    def data(self, options: StudyOptions) -> StudyData:
        """The tables, trees and simulated worlds that the options name."""
        return read_study_data(self.settings, options, self.progress)

    @contextmanager
    def store(self) -> Generator[RunStore]:
        """The store of runs."""
        with closing(RunStore(self.settings.store)) as store:
            yield store

    def traces(self, runs: Sequence[str]) -> dict[str, list[TracedTrial]]:
        """Traces of the trials of stored runs, by run."""
        with self.store() as store:
            return traces_of_runs(store, runs)

    def statements(self, runs: Sequence[str], arena: str | None) -> list[StatedForecast]:
        """Forecasts as stated in runs or by the entries of an arena, before they were made coherent."""
        if bool(runs) == bool(arena):
            raise InputError(
                "a study takes data from one source", hint="give --run RUN (it may be repeated) or --arena ARENA"
            )
        with self.store() as store:
            found = _arena_runs(store, arena) if arena else find_stored_runs(store, runs)
            statements = [one for run in found for one in read_statements(store, run.id, name=run.name)]
        if not statements:
            raise InputError("nothing has been stated yet", column="--arena" if arena else "--run")
        return statements

    def cases(self, runs: Sequence[str], limit: int | None) -> list[ReasoningCase]:
        """Forecasts of runs with their reasons and what they were shown; a larger sample contains a smaller one."""
        with self.store() as store:
            cases = [
                replace(case, forecast=replace(case.forecast, forecaster=run.name))
                for run in find_stored_runs(store, runs)
                for case in read_cases(store, run.id, _contexts(store, run))
            ]
        if not cases:
            raise InputError("no forecast of these runs gives a reason", column="--run")
        return sorted(cases, key=lambda case: case.item)[:limit]

    def check_models(self, names: Sequence[str]) -> None:
        """Check all keys before the first model is paid."""
        for name in names:
            api_key_for(ModelName.read(name), self.settings.keys)

    @asynccontextmanager
    async def model(self, study: str, name: str, budget: float | None) -> AsyncGenerator[StudyModels]:
        """A model by name; all models of a study share one budget of dollars."""
        spec = RunSpec(questions=QuestionsSpec(dataset=f"study {study}"), models={"agent": name})
        async with self._open(spec, budget) as models:
            yield models

    @asynccontextmanager
    async def agent(self, options: AgentStudyOptions) -> AsyncGenerator[AgentTrials]:
        """The agent that the options describe, with its questions."""
        spec = agent_spec(options)
        prepared = prepare_run(spec)
        async with self._open(spec, options.budget, past=lambda: prepared.benchmark.past) as models:
            yield AgentTrials(
                **vars(replace(models, name=models.runtime.models.agent)),
                agent=make_forecaster("agent", forecaster_options(spec)).build(),
                questions=prepared.questions,
                trials=spec.trials,
            )

    @asynccontextmanager
    async def _open(self, spec: RunSpec, budget: float | None, **resources: Any) -> AsyncGenerator[StudyModels]:
        settings = self._settings_within(budget)
        with closing(Journal(settings.journal)) as journal:
            async with open_runtime(spec, settings, journal, **resources) as runtime:

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
        """The settings with one budget for all calls of the study; None for no limit."""
        if dollars is None:
            return self.settings
        if dollars not in self._within:
            budget = Budget("study", dollars=dollars, within=self.settings.budget)
            self._within[dollars] = replace(self.settings, budget=budget)
        return self._within[dollars]


def agent_spec(options: AgentStudyOptions) -> RunSpec:
    """The spec for a study of the agent: from a file, changed by options, or from options alone."""
    if options.spec is None and not (options.model and options.questions):
        raise InputError("there is nobody to ask", hint="give the SPEC of a run, or --questions and --model")
    if options.spec is not None:
        spec = read_spec(options.spec)
    else:
        spec = RunSpec(questions=QuestionsSpec(dataset="study agent"), models={"agent": str(options.model)})
    if spec.forecaster != "agent":
        raise InputError(
            f"this is a study of the agent, not of {spec.forecaster}", path=options.spec, column="forecaster"
        )
    if options.questions:
        spec = replace(spec, questions=QuestionsSpec(dataset=options.questions, rounds=options.rounds))
    if options.model:
        spec = replace(spec, models={**spec.models, "agent": options.model})
    if options.search:
        spec = replace(spec, search=options.search)
    # The study has a budget of its own: that of the run is for the run.
    return replace(spec, budget=BudgetSpec(question=spec.budget.question))


# Studies that are saved for the web app: one folder by name with the tables and one file per chart.

TABLES = "study.json"
NARROW = ".narrow.svg"
"""Suffix of chart files drawn for phones."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
OWN_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
"""Style that only standalone figures carry."""


def save_study(settings: Settings, study: StudyResult) -> Path:
    """Save a study in a folder of its name, replacing an earlier one; returns the folder."""
    folder = settings.home / "studies" / _named(study.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as made:
        new, old = Path(made, "new"), Path(made, "old")
        new.mkdir()
        for one in study.charts:
            one.chart.save(new / f"{_named(one.name)}.svg")
            if one.chart.narrow is not None:
                (new / f"{one.name}{NARROW}").write_text(one.chart.narrow, encoding="utf-8")
        (new / TABLES).write_text(study.to_json(), encoding="utf-8")
        if folder.is_dir():
            folder.rename(old)
        new.rename(folder)
    return folder


def saved_studies(settings: Settings) -> list[str]:
    """Names of saved studies in alphabetical order."""
    home = settings.home / "studies"
    if not home.is_dir():
        return []
    return sorted(one.name for one in home.iterdir() if NAME.fullmatch(one.name) and (one / TABLES).is_file())


def open_study(settings: Settings, name: str) -> tuple[StudyResult, Mapping[str, Path]]:
    """The study with its charts, and the files of the charts by name."""
    names = saved_studies(settings)
    if name not in names:
        hint = f"there are: {', '.join(names)}" if names else "save one with foretell study … --keep"
        raise InputError(f"no study {name[:80]!r} was saved", hint=hint)
    folder = settings.home / "studies" / name
    study, titles = _read(folder / TABLES)
    paths = {one: path for one in titles if (path := folder / f"{one}.svg").is_file()}
    charts = [StudyChart(name=one, title=titles[one], chart=_figure(path)) for one, path in paths.items()]
    return replace(study, charts=tuple(charts)), paths


def _read(path: Path) -> tuple[StudyResult, dict[str, str]]:
    """The tables and the titles of the charts by name."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        titles = {name: title for name, title in chart_titles(data).items() if NAME.fullmatch(name)}
        return study_from_dict(data), titles
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError) as error:
        raise InputError(f"the study cannot be read: {error}", path=path, hint="save it again with --keep") from None


def _named(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InputError(f"{name[:80]!r} cannot name a file", hint="use small letters, digits, - and _")
    return name


def _figure(path: Path) -> Chart:
    """A chart for embedding in a page, which provides the colours; older studies have no version for phones."""
    svg = OWN_STYLE.sub("", path.read_text(encoding="utf-8"), count=1)
    svg = svg[svg.index("<svg") :].rstrip()
    phone = path.with_suffix(NARROW)
    return chart_of(Markup(svg), Markup(phone.read_text(encoding="utf-8")) if phone.is_file() else None)
