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
from typing import Any

from foretell.forecasters.forecaster import make_forecaster
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.names import ModelName
from foretell.models.router import api_key_for
from foretell.operations.study_data import judge_cases, read_study_data, statements_of_runs
from foretell.questions.errors import InputError
from foretell.report.charts.svg import Chart, chart_of
from foretell.report.markup import Markup
from foretell.report.study import StudyChart, StudyResult, chart_titles, study_from_dict
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync
from foretell.runs.executor import RunProgress
from foretell.runs.runner import WatchProgress, prepare_run
from foretell.runs.runtime import forecaster_options, open_runtime
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec, read_spec
from foretell.runs.store import RunStore
from foretell.studies.consistency import StatedForecast
from foretell.studies.habits import TracedTrial
from foretell.studies.inputs import AgentStudyOptions, AgentTrials, StudyData, StudyModels, StudyOptions
from foretell.studies.reasoning import ReasoningCase
from foretell.studies.registry import Study, load_study, study_of
from foretell.studies.stored_runs import traces_of_runs


def study(name: str | Callable[[Any, Any], Any], inputs: StudyData | None = None, **options: Any) -> StudyResult:
    """The result of a study by name, or of a function `study(inputs, options) -> StudyResult`.

    >>> study("tree-scale", worlds=2, draws=100).name
    'tree-scale'

    Args:
        name: A study that `foretell study` lists, or a function.
        inputs: Tables that the program already has; else what the options name on this machine.
        options: The options of the study, as `foretell study NAME --help` lists them, with _ for -.
    """
    chosen = load_study(name) if isinstance(name, str) else study_of(name)
    return run_study(chosen, chosen.options.read(options), inputs=inputs)


def run_study(
    study: Study,
    options: StudyOptions,
    *,
    inputs: StudyData | None = None,
    settings: Settings | None = None,
    watch: WatchProgress | None = None,
) -> StudyResult:
    """Run a study with the services of this machine.

    Args:
        study: The study.
        options: Its options.
        inputs: Tables to use instead of those that the options name.
        settings: The settings of this machine.
        watch: Called with the progress and what was spent so far.
    """
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
        """What the trials of stored runs did, by name of the run."""
        with self.store() as store:
            return traces_of_runs(store, runs)

    def statements(self, runs: Sequence[str], arena: str | None) -> list[StatedForecast]:
        """What was stated in runs or by the entries of an arena, before it was made coherent."""
        with self.store() as store:
            return statements_of_runs(store, runs, arena)

    def cases(self, runs: Sequence[str], limit: int | None) -> list[ReasoningCase]:
        """Forecasts of runs with their reasons and what they were shown."""
        with self.store() as store:
            return judge_cases(store, runs, limit)

    def check_models(self, names: Sequence[str]) -> None:
        """Refuse a missing key before the first of several models has been paid."""
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
                    spent = runtime.budget.spent
                    self.watch(RunProgress(total=total, done=done, dollars=spent.dollars, calls=spent.calls))

                yield StudyModels(
                    name=spec.models["agent"],
                    model=runtime.router.within(runtime.budget),
                    journal=journal,
                    progress=progress,
                    runtime=runtime,
                )

    def _settings_within(self, dollars: float | None) -> Settings:
        """The settings with one budget around everything the study calls; None is without a limit."""
        if dollars is None:
            return self.settings
        if dollars not in self._within:
            budget = Budget("study", dollars=dollars, within=self.settings.budget)
            self._within[dollars] = replace(self.settings, budget=budget)
        return self._within[dollars]


def agent_spec(options: AgentStudyOptions) -> RunSpec:
    """The run that a study of the agent looks at: that of a file, changed by options, or one made of options."""
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
"""How the file of a chart ends that is drawn for a phone."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
OWN_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
"""What a figure in a file of its own carries and one inside a page does not."""


def save_study(settings: Settings, study: StudyResult) -> Path:
    """Save it whole in a folder of its name, in place of an earlier one of that name; returns the folder."""
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
    """Their names in alphabetical order."""
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
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
        raise InputError(f"the study cannot be read: {error}", path=path, hint="save it again with --keep") from None


def _named(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InputError(f"{name[:80]!r} cannot name a file", hint="use small letters, digits, - and _")
    return name


def _figure(path: Path) -> Chart:
    """A chart as it stands inside a page, which has the colours; older ones have no drawing for a phone."""
    svg = OWN_STYLE.sub("", path.read_text(encoding="utf-8"), count=1)
    svg = svg[svg.index("<svg") :].rstrip()
    phone = path.with_suffix(NARROW)
    return chart_of(Markup(svg), Markup(phone.read_text(encoding="utf-8")) if phone.is_file() else None)
