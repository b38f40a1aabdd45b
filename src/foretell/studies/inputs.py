"""The inputs of studies: their options, the data they analyse, and the services of this machine.

A study is a function `study(inputs, options) -> StudyResult` (it may be a coroutine function) whose options are a
`StudyOptions` class. From its fields the command line makes the options of `foretell study NAME`.
"""

import ast
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_type_hints

from foretell import plugins
from foretell.forecasters.combine.rows import Examples
from foretell.metrics.bootstrap import Resampling
from foretell.models.journal import Journal
from foretell.models.model import Model
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.question import Question
from foretell.request import OperationRequest, setting
from foretell.scoring.role_columns import ROLE_COLUMNS, RoleColumns

if TYPE_CHECKING:
    from foretell.forecasters.agent.agent import BeliefAgent
    from foretell.forecasters.forecaster import Context
    from foretell.forecasters.tree.proposition import Tree
    from foretell.runs.runtime import Runtime
    from foretell.runs.store import RunStore
    from foretell.studies.consistency import StatedForecast
    from foretell.studies.habits import TracedTrial
    from foretell.studies.reasoning import ReasoningCase
    from foretell.studies.stored_runs import ForecastCost

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 50
"""Number of concurrent cases. A trial's time limit runs while it waits, so more at once would only make trials late."""
StudyProgress = Callable[[int, int], None]


def ignore_progress(done: int, total: int) -> None:
    """Ignore progress."""


# Options that studies share.

BUDGET: Any = setting(None, "Hard limit in dollars for the whole study.", metavar="DOLLARS", gt=0)
ROUNDS: Any = setting((), "Only this round of the questions; may be repeated.", flag="--round", metavar="DATE")
FORECASTS: Any = setting(
    help="Table of forecasts: forecaster, question, target, p, trial.", flag="-f/--forecasts", metavar="FILE"
)
KNOWN_OUTCOMES: Any = setting(
    None, "Table of outcomes (question, target, outcome), if the questions have none.", flag="-o/--outcomes",
    metavar="FILE",
)  # fmt: skip


class StudyOptions(OperationRequest):
    """Options of every study: how intervals are resampled."""

    draws: int = setting(2000, "Number of bootstrap draws.", ge=100)
    seed: int = setting(0, "Seed of the bootstrap.")

    @property
    def resampling(self) -> Resampling:
        """How intervals are resampled."""
        return Resampling(draws=self.draws, seed=self.seed)


class TableOptions(StudyOptions):
    """Where the trials of several forecasters and their outcomes come from."""

    data: Path | None = setting(None, "Folder of published tables of trials.", metavar="DIR")
    prefix: str = setting("ab_", "Prefix of the names of those tables.")
    forecasts: Path | None = setting(
        None, "Instead of --data: your own forecasts, with trials.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Path | None = setting(
        None,
        "Their outcomes; studies that learn from the past need due and resolved_on.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    columns: RoleColumns = ROLE_COLUMNS
    runs: tuple[str, ...] = setting(
        (), "Instead of --data: a stored run; may be repeated.", flag="--run", metavar="RUN"
    )
    grid: Path | None = setting(None, "Instead of --data: the runs of a grid, with their factors.", metavar="FILE")
    factors: Path | None = setting(
        None, "Factors of the forecasters of --forecasts: a table with forecaster and a column per factor.",
        metavar="FILE",
    )  # fmt: skip
    config: tuple[str, ...] = setting((), "Only this configuration; may be repeated (default: all).", metavar="NAME")
    price: Literal["due", "freeze"] = setting("due", "Crowd price: on the due date, or when the question was frozen.")
    prior: Literal["past", "paper"] = setting("past", "Base rates: from the past only, or as in the BLF paper.")
    paper_outcomes: bool = setting(False, "Use outcomes as known when the BLF paper was written.")


class CostOptions(TableOptions):
    """Tables and what each forecaster costs."""

    costs: Path | None = setting(None, "Table with forecaster, dollars and optionally seconds.", metavar="FILE")


class SimulationOptions(StudyOptions):
    """The size of a simulated world whose truth is known."""

    worlds: int = setting(60, "Number of simulated worlds.", ge=2)
    leaves: int = setting(10, "Minimum number of leaves of each simulated tree.", ge=1)


class TreeStudyOptions(SimulationOptions):
    """Trees from files or runs; without any, simulated worlds."""

    trees: tuple[Path, ...] = setting((), "Folder of tree files; may be repeated.", metavar="DIR")
    runs: tuple[str, ...] = setting((), "A stored run that grew trees; may be repeated.", flag="--run")


class RunOptions(StudyOptions):
    """Stored runs."""

    runs: tuple[str, ...] = setting((), "A stored run; may be repeated.", flag="--run", metavar="RUN")


class AgentStudyOptions(StudyOptions):
    """An agent and the questions it is tried on."""

    spec: Path | None = setting(None, "A run's spec (YAML).", argument=True, metavar="[SPEC]")
    questions: str | None = setting(None, "A file of questions, or a question set by name.", metavar="DATASET")
    model: str | None = setting(None, "Model of the agent, as provider:name (default: that of SPEC).", metavar="MODEL")
    search: tuple[str, ...] = setting((), "Search engine; may be repeated.")
    rounds: tuple[str, ...] = ROUNDS
    budget: float | None = BUDGET


# What studies look at.


@dataclass(frozen=True, kw_only=True)
class StudyData:
    """Tables by configuration, all over the same targets, with the costs and factors of each configuration."""

    tables: Mapping[str, Examples]
    paper: Callable[[], Mapping[str, Examples]] | None = None
    """Reads the same tables with the prices, priors and outcomes of the paper; None if there is only one version."""
    chosen: tuple[str, ...] = ()
    """Configurations to show in detail; empty leaves the choice to the study."""
    resampling: Resampling = field(default_factory=Resampling)
    progress: StudyProgress = ignore_progress
    trees: Mapping[str, Sequence["Tree"]] = field(default_factory=dict[str, Sequence["Tree"]])
    """Finished trees, by the run or the rule they come from."""
    costs: Mapping[str, "ForecastCost"] = field(default_factory=dict[str, "ForecastCost"])
    """Cost of a forecast, by forecaster."""
    factors: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Level of every applicable factor, by forecaster."""

    def data(self, options: StudyOptions) -> "StudyData":
        """Return these data, so that a program can pass its own tables as the inputs of a study."""
        return self


class DataInputs(Protocol):
    """What a study of tables or trees needs."""

    def data(self, options: StudyOptions) -> StudyData:
        """Return the tables and trees that the options name."""
        ...


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class AgentTrials(StudyModels):
    """An agent with the questions it will be tried on."""

    agent: "BeliefAgent"
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

    def store(self) -> AbstractContextManager["RunStore"]:
        """Open the store of runs."""
        ...

    def check_models(self, names: Sequence[str]) -> None:
        """Raise an error for a missing key before the first of several models has been paid."""
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
    turns, done = asyncio.Semaphore(AT_ONCE), 0
    progress(0, len(cases))

    async def one(case: T) -> R:
        nonlocal done
        async with turns:
            result = await work(case)
        done += 1
        progress(done, len(cases))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(case)) for case in cases]
    except BaseExceptionGroup as broken:
        raise broken.exceptions[0] from None
    return [task.result() for task in tasks]


# Every study by name, from the kind "studies" of `foretell.plugins`.


KIND = "studies"


@dataclass(frozen=True, kw_only=True)
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


def study_of(function: Callable[[Any, Any], Any], name: str | None = None) -> Study:
    """Wrap a function as a study; the type of its parameter `options` says which options it takes."""
    options = get_type_hints(function).get("options", StudyOptions)
    return Study(name=name or function.__name__, run=function, options=options)


def study_questions(within: str = "") -> dict[str, str]:
    """Return what every study asks, by name, without importing their modules.

    `within` is a part of the module's name.
    """
    places = plugins.places(KIND)
    return {
        name: _first_line(places[name]) if name in places else load_study(name).question
        for name in plugins.names(KIND)
        if within in places.get(name, "")
    }


@cache
def _first_line(place: str) -> str:
    """Return the first line of a function's docstring, read from the source: a list must not load 30 modules."""
    module, attribute = place.split(":")
    spec = find_spec(module)
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == attribute:
                return (ast.get_docstring(node) or "").partition("\n")[0]
    return (getdoc(getattr(import_module(module), attribute)) or "").partition("\n")[0]
