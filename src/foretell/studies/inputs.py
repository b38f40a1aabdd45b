"""The inputs of studies: their options, the data they analyse, and the services of this machine.

A study is a function `study(inputs, options) -> StudyResult` (it may be a coroutine function) whose options are a
`StudyOptions` class. From its fields the command line makes the options of `foretell study NAME`.
"""

import ast
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, get_type_hints

from pydantic import field_validator, model_validator

from foretell import plugins
from foretell.forecasters.combine.rows import Examples
from foretell.frozen import frozen
from foretell.metrics.bootstrap import Resampling
from foretell.models.journal import Journal
from foretell.models.model import Model
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.question import Question
from foretell.request import OperationRequest, setting
from foretell.scoring.bootstrap_options import BOOTSTRAP, Bootstrap, BootstrapOptions
from foretell.scoring.role_columns import ROLE_COLUMNS, RoleColumns

if TYPE_CHECKING:
    from foretell.forecasters.agent.agent import BeliefAgent
    from foretell.forecasters.forecaster import Context, Forecaster
    from foretell.forecasters.tree.proposition import Tree
    from foretell.runs.runtime import Runtime
    from foretell.scoring.table import ForecastCost
    from foretell.studies.cases import ReasoningCase, StatedForecast, TracedTrial, TreeFacts

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 50
"""Number of concurrent cases. A trial's time limit runs while it waits, so more at once would only cause timeouts."""
StudyProgress = Callable[[int, int], None]


def ignore_progress(done: int, total: int) -> None:
    """Ignore progress."""


# Options that studies share.

BUDGET: Any = setting(None, "Hard limit in dollars for the whole study.", metavar="DOLLARS", gt=0)


class StudyOptions(OperationRequest):
    """Options of every study: how intervals are computed."""

    bootstrap: Bootstrap = BOOTSTRAP

    @field_validator("bootstrap")
    @classmethod
    def _own_clusters(cls, bootstrap: BootstrapOptions) -> BootstrapOptions:
        if bootstrap.cluster:
            hint = "studies resample whole questions, and the days that questions share"
            raise InputError("a study chooses its own clusters", column="--bootstrap cluster", hint=hint)
        return bootstrap

    @property
    def resampling(self) -> Resampling:
        """How intervals are resampled."""
        return self.bootstrap.resampling


class TableOptions(StudyOptions):
    """Forecasts with their outcomes: stored runs, the runs of a grid, or tables; shared by all studies of forecasts."""

    sources: tuple[str, ...] = setting(
        (), "Stored runs, or files of forecasts.", argument=True, metavar="[RUN_OR_FILE]..."
    )
    forecasts: Any = setting(
        None,
        "Table of forecasts: forecaster, question, target, p, trial; dollars and seconds if known. Other columns that "
        "describe a forecaster are its factors.",
        flag="-f/--forecasts",
        metavar="FILE",
    )
    outcomes: Any = setting(
        None,
        "Table of outcomes: question, target, outcome, and due and resolved_on for what learns from the past; runs, "
        "and forecasts with a column outcome, need none.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    columns: RoleColumns = ROLE_COLUMNS
    grid: Path | None = setting(None, "The runs of a grid, with their factors.", metavar="FILE")


class TreeStudyOptions(StudyOptions):
    """Trees from folders or stored runs; without any, simulated worlds whose truth is known."""

    sources: tuple[str, ...] = setting(
        (),
        "Folders of tree files, or stored runs that grew trees (default: simulated worlds).",
        argument=True,
        metavar="[RUN_OR_FOLDER]...",
    )
    worlds: int = setting(40, "Number of simulated worlds.", ge=2)
    leaves: int = setting(10, "Minimum number of leaves of each simulated tree.", ge=1)

    @model_validator(mode="after")
    def _simulated_or_given(self) -> Self:
        for name in ("worlds", "leaves"):
            if self.sources and self._is_set(name):
                raise InputError("has no effect on given trees", column=f"--{name}", hint="leave it out")
        return self


class RunOptions(StudyOptions):
    """Stored runs."""

    runs: tuple[str, ...] = setting((), "Stored runs.", argument=True, metavar="[RUN]...")


class AgentStudyOptions(StudyOptions):
    """An agent and the questions it is tried on."""

    spec: Path = setting(help="The settings of a run of the agent (YAML).", argument=True, metavar="SPEC")
    set: Mapping[str, str] = setting(
        {}, "Change a setting, such as questions=demo or models.agent=openai:NAME.", metavar="KEY=VALUE"
    )
    budget: float | None = BUDGET


# The data of studies.


@frozen
class StudyData:
    """Tables by configuration, all over the same targets, with the costs and factors of each configuration."""

    tables: Mapping[str, Examples]
    resampling: Resampling = field(default_factory=Resampling)
    progress: StudyProgress = ignore_progress
    trees: Mapping[str, Sequence["Tree"]] = field(default_factory=dict[str, Sequence["Tree"]])
    """Finished trees, by the run or the rule they come from."""
    tree_facts: Mapping[str, Sequence["TreeFacts"]] = field(default_factory=dict[str, Sequence["TreeFacts"]])
    """The questions behind the trees of runs, in the order of the trees."""
    costs: Mapping[str, "ForecastCost"] = field(default_factory=dict[str, "ForecastCost"])
    """Cost of a forecast, by forecaster."""
    factors: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Level of every applicable factor, by forecaster."""
    notes: tuple[str, ...] = ()
    """What was left out of the tables."""

    def data(self, options: StudyOptions) -> "StudyData":
        """Return these data, so that a program can pass its own tables as the inputs of a study."""
        return self


class DataInputs(Protocol):
    """What a study of tables or trees needs."""

    def data(self, options: StudyOptions) -> StudyData:
        """Return the tables and trees that the options name."""
        ...


@frozen
class StudyModels:
    """Models within the budget of a study, and what their calls cost."""

    name: str
    model: Model
    journal: Journal
    progress: StudyProgress
    runtime: "Runtime"

    def context(self, question: Question) -> "Context":
        """Return the context for a trial on a question."""
        return self.runtime.context(question, 0)

    @property
    def cost(self) -> Cost:
        """Cost so far; replies from the journal are reused."""
        budget = self.runtime.budget
        reused = budget.reused
        return budget.billed + replace(reused, dollars=0.0, reused=reused.dollars)


@frozen
class AgentTrials(StudyModels):
    """An agent with the questions it will be tried on."""

    agent: "BeliefAgent"
    shown: "Callable[[BeliefAgent], Forecaster]"
    """Returns the agent, or a changed one, with the contexts that the run shows it."""
    questions: Sequence[Question]
    trials: int
    """Number of trials of each question in the whole run."""


class StudyServices(DataInputs, Protocol):
    """Services of this machine that a study may use; `foretell.operations.studies` implements them."""

    progress: StudyProgress

    def traces(self, runs: Sequence[str]) -> "Mapping[str, Sequence[TracedTrial]]":
        """Return the traces of the trials of stored runs, by name of the run."""
        ...

    def statements(self, runs: Sequence[str], arena: str | None) -> "Sequence[StatedForecast]":
        """Return what runs or the entries of an arena stated, before it was made coherent."""
        ...

    def cases(self, runs: Sequence[str], limit: int | None) -> "Sequence[ReasoningCase]":
        """Return the forecasts of runs with their reasons and what they were shown."""
        ...

    def check_models(self, names: Sequence[str]) -> None:
        """Raise an error for a missing key before any model is called."""
        ...

    def model(self, study: str, name: str, budget: float | None) -> AbstractAsyncContextManager[StudyModels]:
        """Open a model by name; all models of a study share one budget in dollars."""
        ...

    def agent(self, options: AgentStudyOptions) -> AbstractAsyncContextManager[AgentTrials]:
        """Open the agent that the options describe, with its questions."""
        ...


def evenly_spaced(items: Sequence[T], count: int | None) -> list[T]:
    """`count` of the items, evenly spaced, so that not all of them come from the first source.

    >>> evenly_spaced("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    if count is None or len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]


def refuse_if_all_failed(model: str, problems: Sequence[str], answered: int) -> None:
    """Raise an error if a model gave no usable answer, because a table of dashes would look like a result."""
    if problems and not answered:
        raise InputError(f"{model} gave no usable answer to {len(problems)} cases", hint=problems[0][:300])


async def gather_bounded(
    cases: Sequence[T],
    work: Callable[[T], Awaitable[R]],
    progress: StudyProgress = ignore_progress,
) -> list[R]:
    """Return the results of `work` for every case, in order, with bounded concurrency.

    The first exception stops all.
    """
    semaphore, done = asyncio.Semaphore(AT_ONCE), 0
    progress(0, len(cases))

    async def run_case(case: T) -> R:
        nonlocal done
        async with semaphore:
            result = await work(case)
        done += 1
        progress(done, len(cases))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run_case(case)) for case in cases]
    except BaseExceptionGroup as group_error:
        raise group_error.exceptions[0] from None
    return [task.result() for task in tasks]


# Every study by name, from the kind "studies" of `foretell.plugins`.


KIND = "studies"


@frozen
class Study:
    """One study: what it asks, its options, and the function that runs it."""

    name: str
    run: Callable[[Any, Any], Any]
    """study(inputs, options) → StudyResult, or a coroutine of one."""
    options: type[StudyOptions]

    @property
    def help(self) -> str:
        """The docstring of the function."""
        return getdoc(self.run) or ""

    @property
    def question(self) -> str:
        """The first line of the docstring: what the study asks."""
        return self.help.partition("\n")[0]


def load_study(name: str) -> Study:
    """Return the study with that name; for an unknown name, the error suggests the nearest one."""
    return study_of(plugins.load(KIND, name), name)


def study_of(function: Callable[..., Any], name: str | None = None) -> Study:
    """Wrap a function of tables, or of inputs and options, as a study.

    The type of its parameter `options` is the class of its options. A function of one parameter gets the tables that
    the options name, or the inputs if they name none.
    """
    of_tables = not plugins.takes_arguments(function, 2)
    own = getattr(function, "__name__", type(function).__name__)
    try:
        options = TableOptions if of_tables else get_type_hints(function).get("options", StudyOptions)
    except NameError as error:
        raise InputError(f"the types of the study {own!r} cannot be read: {error}", column="name") from None

    def without_options(inputs: DataInputs, options: TableOptions) -> Any:
        named = options.sources or options.forecasts is not None or options.grid
        return function(inputs.data(options) if named else inputs)

    return Study(name=name or own, run=without_options if of_tables else function, options=options)


def study_questions() -> dict[str, str]:
    """Return what every study asks, by name, without importing their modules."""
    places = plugins.places(KIND)
    return {
        name: _first_line(places[name]) if name in places else load_study(name).question for name in plugins.names(KIND)
    }


@cache
def _first_line(place: str) -> str:
    """Return the first line of a function's docstring, read from the source without importing the module."""
    module, attribute = place.split(":")
    spec = find_spec(module)
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == attribute:
                return (ast.get_docstring(node) or "").partition("\n")[0]
    return (getdoc(getattr(import_module(module), attribute)) or "").partition("\n")[0]
