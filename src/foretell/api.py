"""The operations as functions: ask, run, grow trees, look at runs, and enter tournaments.

Every parameter is a field of the operation's request, which checks it. Importing this module is cheap: an operation is
loaded when it is called. The functions with names that begin with `a` are awaited; the others also work while an event
loop is running, as in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Required, TypedDict, TypeVar, Unpack, cast, overload

from foretell.interface import suggesting

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from foretell.agent import Agent, AnyModel
    from foretell.data.search.own_engine import AnySearch
    from foretell.forecasters.tree.proposition import Tree
    from foretell.models.model import ReasoningEffort
    from foretell.operations.ask import AskResult
    from foretell.operations.grid import GridList, GridResult
    from foretell.operations.record import HistoryResult, RecordResult
    from foretell.operations.replay import ReplayResult
    from foretell.operations.resolve import ResolveResult
    from foretell.operations.run import RunResult
    from foretell.operations.runs import DeletedRuns, RunLabels, RunsResult, StoppedRun
    from foretell.operations.sharpen import SharpenedQuestion
    from foretell.operations.show import ShowResult
    from foretell.operations.submit import SubmissionFile, SubmitResult
    from foretell.operations.tournament_results import TournamentResults
    from foretell.operations.tree import ShownTree
    from foretell.operations.tree_edit import TreeEditResult
    from foretell.operations.tree_grow import PlannedTree, TreeResult
    from foretell.operations.tree_list import TreesResult
    from foretell.operations.tree_log import TreeLog
    from foretell.operations.watch import WatchResult
    from foretell.operations.what_if import ScenarioComparison
    from foretell.questions.question import Exclusivity
    from foretell.questions.trace import TraceEvent
    from foretell.report.run_plan import RunPlan
    from foretell.report.study_result import StudyResult
    from foretell.request import OperationRequest
    from foretell.runs.executor import RunProgress
    from foretell.runs.settings import Settings
    from foretell.tournaments.question_visit import TournamentResult
    from foretell.tournaments.round_visit import RoundResult

P = ParamSpec("P")
R = TypeVar("R")
Where = Literal["auto", "here", "workers", "both"]


def call(name: str, fields: Mapping[str, Any]) -> Any:
    """Return the result of an operation, given the parameters of its function."""
    from foretell.operations.table import finished

    with _begun(name, fields) as (request, result):
        return _named_fields(finished(result), request)


def awaited(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the form of a function that is awaited. Cancelling it cancels the work."""
    from inspect import signature, unwrap

    async def called(*positional: P.args, **fields: P.kwargs) -> R:
        from foretell.operations.table import named_by_command

        bound = signature(function).bind(*positional, **fields)
        bound.apply_defaults()
        with _begun(function.__name__, bound.arguments) as (request, result):
            return _named_fields(named_by_command(await result), request)

    wraps(unwrap(function))(called)
    called.__name__ = called.__qualname__ = f"a{function.__name__}"
    summary, _, rest = str(function.__doc__).partition("\n")
    waiting = f"The form of `{function.__name__}` that is awaited. Cancelling it cancels the work."
    called.__doc__ = f"{summary}\n\n    {waiting}\n{rest.partition('    >>> ')[0]}"
    return suggesting(called)


@contextmanager
def _begun(name: str, fields: Mapping[str, Any]) -> Generator[tuple[type[OperationRequest], Any]]:
    """Read a request and yield its class with the result, or with the coroutine that returns it."""
    from foretell.operations.table import OPERATIONS, PYTHON_NAMES, reading

    given = {key: _plain(value) for key, value in fields.items()}
    settings, agent, progress = (given.pop(key, None) for key in ("settings", "agent", "progress"))
    _check_objects(settings, agent, progress)
    operation = OPERATIONS[PYTHON_NAMES[name]]
    known = operation.request.model_fields
    # What is not given may be set by the agent or an environment variable.
    given = {key: value for key, value in given.items() if not _is_default(value, known[key])}
    with reading(operation.request, given if agent is None else _completed(agent, given, known)) as request:
        watching = {} if progress is None else {"watch": progress}
        try:
            yield type(request), operation.function(request, settings, **watching)
        except ExceptionGroup as group:
            raise _only(group) from group.__cause__


def _named_fields(result: Any, request: type[OperationRequest]) -> Any:
    """Return a result whose notes and text name calls and parameters instead of commands and flags."""
    from foretell.python_calls import in_python

    for name in ("cautions", "notes", "problems"):
        if isinstance(written := vars(result).get(name), tuple):
            texts = cast("tuple[Any, ...]", written)
            named = (in_python(text, request) if isinstance(text, str) else text for text in texts)
            object.__setattr__(result, name, tuple(named))
    object.__setattr__(result, "in_python", True)
    return result


def _completed(agent: Agent, given: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Return the parameters of a call with what they leave out. `known` has the fields of its request."""
    from foretell.questions.errors import InputError

    if agent.options is not None and "grounder" in known:
        hint = "leave out `options`, and choose how leaves are estimated by `grounder` and `set`"
        raise InputError("the options of an agent do not apply to a tree", column="agent", hint=hint)
    changes, own = agent.settings, dict[str, Any]()
    for name, setting in AGENT_SETTINGS.items():
        if name in known and setting in changes:
            value = changes.pop(setting)
            if setting not in given.get("set", {}):
                own[name] = value
    changes |= given.get("set", {})
    return {**own, **given, **({"set": changes} if changes else {})}


AGENT_SETTINGS: Mapping[str, str] = {
    "model": "models.agent",
    "search": "search",
    "effort": "sampling.effort",
    "trials": "trials",
    "budget": "budget.run",
}
"""Fields that an agent and requests have, and the settings of a run that they set."""


def _check_objects(settings: Any, agent: Any, progress: Any) -> None:
    from foretell.agent import Agent
    from foretell.questions.errors import InputError
    from foretell.runs.settings import check_settings

    if agent is not None and not isinstance(agent, Agent):
        raise InputError("must be a foretell.Agent", column="agent", hint="name a model with the parameter `model`")
    if settings is not None:
        check_settings(settings)
    if progress is not None and not callable(progress):
        raise InputError("must be a function", column="progress")


def _plain(value: Any) -> Any:
    """Return arrays, series and numbers of NumPy and pandas as Python's own."""
    return value.tolist() if callable(getattr(value, "tolist", None)) else value


def _only(error: Exception) -> Exception:
    """Return the error of a group that has only one, such as that of a function which reports progress."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _is_default(value: Any, field: Any) -> bool:
    if value is None or field.is_required():
        return value is None
    default = field.get_default(call_default_factory=True)
    return isinstance(value, type(default)) and bool(value == default)  # A data frame is compared by its cells.


class _ModelParameters(TypedDict, total=False):
    """The keyword parameters of everything that asks models."""

    agent: Agent | None
    model: AnyModel | None
    search: Sequence[AnySearch]
    effort: ReasoningEffort | None
    budget: float | None
    config: str | Path | None
    set: Mapping[str, Any] | None
    trials: int | None
    settings: Settings | None


class AskParameters(_ModelParameters, total=False):
    """The keyword parameters of `ask` that do not decide what it returns, to type functions that pass them on."""

    closes: str | date | None
    as_of: str | date | None
    criteria: str
    options: Sequence[str]
    exclusivity: Exclusivity
    range: str | tuple[float, float] | tuple[float, float, str] | None
    price: float | str | None
    progress: Callable[[int, TraceEvent], None] | None


@overload
def ask(
    question: str,
    *,
    plan: Literal[False] = False,
    watch: Literal[False] = False,
    sharpen: Literal["accept"] | None = None,
    **parameters: Unpack[AskParameters],
) -> AskResult: ...
@overload
def ask(
    question: str,
    *,
    plan: Literal[True],
    sharpen: Literal["propose", "accept"] | None = None,
    **parameters: Unpack[AskParameters],
) -> RunPlan: ...
@overload
def ask(
    question: str = "",
    *,
    watch: Literal[True],
    once: bool = False,
    sharpen: Literal["accept"] | None = None,
    **parameters: Unpack[AskParameters],
) -> WatchResult: ...
@overload
def ask(question: str, *, sharpen: Literal["propose"], **parameters: Unpack[AskParameters]) -> SharpenedQuestion: ...
@overload
def ask(
    question: str,
    *,
    plan: bool,
    sharpen: Literal["accept"] | None = None,
    **parameters: Unpack[AskParameters],
) -> AskResult | RunPlan: ...


@suggesting
def ask(  # noqa: PLR0913 - one parameter per setting
    question: str = "",
    *,
    agent: Agent | None = None,
    model: AnyModel | None = None,
    search: Sequence[AnySearch] = (),
    effort: ReasoningEffort | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    closes: str | date | None = None,
    as_of: str | date | None = None,
    criteria: str = "",
    options: Sequence[str] = (),
    exclusivity: Exclusivity = "exactly one",
    range: str | tuple[float, float] | tuple[float, float, str] | None = None,
    price: float | str | None = None,
    trials: int | None = None,
    sharpen: Literal["propose", "accept"] | None = None,
    plan: bool = False,
    watch: bool = False,
    once: bool = False,
    progress: Callable[[int, TraceEvent], None] | None = None,
    settings: Settings | None = None,
) -> AskResult | RunPlan | WatchResult | SharpenedQuestion:
    """Return a probability with reasons, researched by `model`, or from public markets and series without a model.

    Args:
        question: The question, worded so that anyone could check the answer.
        agent: Model, tools, search, budget and settings as one object, for what is not given here.
        model: The model, as "provider:name", or a function or object that answers prompts. Without one, the
            answer comes from public markets and series.
        search: Search engines: names, functions of a query and a date, or objects with a method `search`.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A settings file of a run (YAML) to start from; its questions and mode are not used.
        set: Settings of the run by name, such as {"sampling.temperature": 0.2, "options.steps": 5}. None
            removes one.
        closes: When the answer will be known.
        as_of: Ask as if it were that day; nothing later is used.
        criteria: Exact rules for how the question resolves.
        options: The outcomes of a question with several.
        exclusivity: How many of several outcomes come true.
        range: For a number: the range it almost certainly lies in, such as (0, 100), (0, 100, "dollars") or
            "0:100 dollars". The answer is a distribution.
        price: Current market price: 0.62 or "62%".
        trials: How many independent trials to run and combine (default: 1).
        sharpen: Let the model add what the question needs to be resolved: "propose" returns the wording, "accept"
            asks it.
        plan: Only show what it would cost and how long it would take.
        watch: Keep the question open, and return when it is no longer open. `question` may be the id of a watched
            question; without one, all are watched.
        once: With `watch`: look only at what is due now, and return.
        progress: Called with the number of the trial and every event of it.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        An `AskResult`: `p` has a probability for each outcome, `rationale` the reasons, `run` the id of the stored run.
            With `plan` a `RunPlan`, with `watch` a `WatchResult`, and with `sharpen="propose"` a `SharpenedQuestion`.

    Raises:
        InputError: If a parameter is wrong or a key is missing; a `foretell.types.NoAnswer` if no trial gave an answer.

    >>> ask("Will it rain in Oslo on 1 July 2099?", closes="2099-07-01", price=0.35).p
    {'yes': 0.35}
    >>> def cautious(prompt: str) -> dict[str, object]:
    ...     return {"probability": 0.4, "reason": "It rains on four days in ten."}
    >>> ask("Will it rain in Oslo on 1 July 2099?", closes="2099-07-01", model=cautious).p
    {'yes': 0.4}
    """
    return call("ask", locals())


class RunParameters(TypedDict, total=False):
    """The keyword parameters of `run` that do not decide what it returns."""

    agent: Agent | None
    again: bool
    pilot: int | None
    prompts: bool
    extend: bool
    only_failed: str | None
    where: Where
    set: Mapping[str, Any] | None
    progress: Callable[[RunProgress], None] | None
    settings: Settings | None


@overload
def run(
    spec: str | Path | Mapping[str, Any], *, plan: Literal[False] = False, **parameters: Unpack[RunParameters]
) -> RunResult: ...
@overload
def run(
    spec: str | Path | Mapping[str, Any], *, plan: Literal[True], **parameters: Unpack[RunParameters]
) -> RunPlan: ...
@overload
def run(
    spec: str | Path | Mapping[str, Any], *, plan: bool, **parameters: Unpack[RunParameters]
) -> RunResult | RunPlan: ...


@suggesting
def run(  # noqa: PLR0913 - one parameter per setting
    spec: str | Path | Mapping[str, Any],
    *,
    agent: Agent | None = None,
    again: bool = False,
    pilot: int | None = None,
    plan: bool = False,
    prompts: bool = False,
    extend: bool = False,
    only_failed: str | None = None,
    where: Where = "auto",
    set: Mapping[str, Any] | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    settings: Settings | None = None,
) -> RunResult | RunPlan:
    """Run a settings file on its questions, or continue or repeat a stored run.

    Args:
        spec: A settings file (YAML or JSON), the same as a mapping, or the name or id of a stored run.
        agent: Model, tools, search, budget and settings as one object; they replace those of `spec`.
        again: Start a new run with the settings of a stored one and the next free seed.
        pilot: Ask only this many questions once, and report whether the run would work and what it would cost.
        plan: Only show what there is to do, what it would cost and how long it would take.
        prompts: Also return the prompts that the models would receive.
        extend: Add new questions to the existing run of these settings, instead of starting another.
        only_failed: Retry only what failed in a stored run: "any", or what failed for this reason.
        where: Who does the work: this process ("here"), the workers of the shared database ("workers"), "both",
            or workers if a shared database is set ("auto").
        set: Settings of the run by name, such as {"sampling.temperature": 0.2, "options.steps": 5}. None
            removes one.
        progress: Called with the state of the work after every step.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `RunResult`, or with `plan` a `RunPlan`. `foretell.score` takes the id of the run.

    Raises:
        InputError: If a setting is wrong, a needed key is missing, or models may cost money and there is no budget.

    >>> run({"questions": {"dataset": "demo", "limit": 2}, "forecaster": "constant"}).progress.done
    2
    """
    return call("run", locals())


class GridParameters(TypedDict, total=False):
    """The keyword parameters of `grid`."""

    agent: Agent | None
    plan: bool
    budget: float | None
    where: Where
    set: Mapping[str, Any] | None
    progress: Callable[[RunProgress], None] | None
    settings: Settings | None


@overload
def grid(*, settings: Settings | None = None) -> GridList: ...
@overload
def grid(grid: str | Path, **parameters: Unpack[GridParameters]) -> GridResult: ...


@suggesting
def grid(  # noqa: PLR0913 - one parameter per setting
    grid: str | Path | None = None,
    *,
    agent: Agent | None = None,
    plan: bool = False,
    budget: float | None = None,
    where: Where = "auto",
    set: Mapping[str, Any] | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    settings: Settings | None = None,
) -> GridResult | GridList:
    """Run a grid, or with `plan` estimate its cost; for a name or nothing, show the grids that were run.

    Args:
        grid: A grid (YAML or JSON file) to run, or the name of one to show; none lists them.
        agent: Model, tools, search, budget and settings as one object; they replace those of the grid's `base`.
        plan: Only show what it would cost.
        budget: Limit in dollars for all runs together, including earlier starts.
        where: Who does the work: this process ("here"), the workers of the shared database ("workers"), "both",
            or workers if a shared database is set ("auto").
        set: Settings that replace those of the grid's `base`, by name, such as {"trials": 3}.
        progress: Called with the state of the work after every step.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `GridResult`: the planned runs, their results as a study, and `stored` with the state and score of each. For a
            name it has only `stored`; without `grid`, a `GridList` has all of them.

    Raises:
        InputError: If a setting is wrong, a name is unknown, or models may cost money and there is no budget.
    """
    return call("grid", locals())


class TreeParameters(_ModelParameters, total=False):
    """The keyword parameters of `grow_tree` that do not decide what it returns."""

    closes: str | date | None
    as_of: str | date | None
    criteria: str
    grounder: str | None
    rule: str | None
    leaves: int | None
    progress: Callable[[TraceEvent], None] | None


@overload
def grow_tree(claim: str, *, plan: Literal[True], **parameters: Unpack[TreeParameters]) -> PlannedTree: ...
@overload
def grow_tree(claim: str, *, plan: bool = False, **parameters: Unpack[TreeParameters]) -> TreeResult: ...


@suggesting
def grow_tree(  # noqa: PLR0913 - one parameter per setting
    claim: str,
    *,
    agent: Agent | None = None,
    model: AnyModel | None = None,
    search: Sequence[AnySearch] = (),
    effort: ReasoningEffort | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    closes: str | date | None = None,
    as_of: str | date | None = None,
    criteria: str = "",
    grounder: str | None = None,
    rule: str | None = None,
    leaves: int | None = None,
    trials: int | None = None,
    plan: bool = False,
    progress: Callable[[TraceEvent], None] | None = None,
    settings: Settings | None = None,
) -> TreeResult:
    """Break a claim into smaller claims, have a model estimate each, and combine them.

    Args:
        claim: A claim that will turn out true or false.
        agent: Model, tools, search, budget and settings as one object, for what is not given here.
        model: The model, as "provider:name", or a function or object that answers prompts. Without one, the
            answer comes from public markets and series.
        search: Search engines: names, functions of a query and a date, or objects with a method `search`.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A settings file of a run (YAML) to start from; its questions and mode are not used.
        set: Settings of the run by name, such as {"sampling.temperature": 0.2, "options.steps": 5}. None
            removes one.
        closes: When the answer will be known.
        as_of: Ask as if it were that day; nothing later is used.
        criteria: Exact rules for how the question resolves.
        grounder: How the smallest claims (leaves) are estimated (default: search).
        rule: How smaller claims are combined into the larger one (default: by cases).
        leaves: About how many leaves one analysis creates (default: 10).
        trials: How often each leaf is estimated independently; the spread gives the answer an error bar
            (default: 1).
        plan: Only show what would be asked and what it would cost.
        progress: Called with every event.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `TreeResult` with the `tree`, the file that it is stored in, and what it cost; with `plan`, a `PlannedTree`.

    Raises:
        InputError: If a parameter is wrong or a needed key is missing.
    """
    return call("grow_tree", locals())


@suggesting
def update_tree(  # noqa: PLR0913 - one parameter per setting
    tree: Tree | str | Path,
    claims: Sequence[str] = (),
    *,
    agent: Agent | None = None,
    model: AnyModel | None = None,
    search: Sequence[AnySearch] = (),
    effort: ReasoningEffort | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    closes: str | date | None = None,
    as_of: str | date | None = None,
    criteria: str = "",
    expand: str | None = None,
    research: bool = True,
    trials: int | None = None,
    adaptive: float | None = None,
    grounder: str | None = None,
    rule: str | None = None,
    message: str = "",
    plan: bool = False,
    author: str | None = None,
    base_version: int | None = None,
    progress: Callable[[TraceEvent], None] | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Research the leaves of a tree that are stale, failed or named, and judge outdated rules again.

    Args:
        tree: The tree's file, its name in `list_trees()`, or the id of its run.
        claims: Ids of the claims to update, if not all that are stale, failed or new.
        agent: Model, tools, search, budget and settings as one object, for what is not given here.
        model: The model, as "provider:name", or a function or object that answers prompts. Without one, the
            answer comes from public markets and series.
        search: Search engines: names, functions of a query and a date, or objects with a method `search`.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A settings file of a run (YAML) to start from; its questions and mode are not used.
        set: Settings of the run by name, such as {"sampling.temperature": 0.2, "options.steps": 5}. None
            removes one.
        closes: When the answer will be known.
        as_of: Work as if it were that day; nothing later is used.
        criteria: Exact rules for how the claim resolves.
        expand: Break this leaf into smaller claims, research them and combine them.
        research: Whether to research leaves; if not, rules are only judged again.
        trials: How many times to research each leaf, independently (default: 1).
        adaptive: Spend about this much on more trials, where they reduce the uncertainty of the answer most.
        grounder: How the smallest claims (leaves) are estimated (default: search).
        rule: Combine by this rule what is broken down or judged again (default: its current rule).
        message: Why, for the history.
        plan: Only show what would be done and what it would cost.
        author: Who makes the change, for the history (default: the user of this machine).
        base_version: The version you looked at. Later changes by others are kept; if they concern the same
            claims, yours is refused.
        progress: Called with every event.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `TreeEditResult` with the changed probabilities and the new version.

    Raises:
        InputError: If a parameter is wrong, or others have changed the same claims since `base_version`.
    """
    return call("update_tree", locals())


class TournamentParameters(_ModelParameters, total=False):
    """The keyword parameters of `enter_tournament`."""

    plan: bool
    dry_run: bool
    sandbox: bool
    limit: int | None
    summary: str | Path | None
    include_fallback: bool
    accept_stale: bool
    progress: Callable[[RunProgress], None] | None


@overload
def enter_tournament(
    tournament: Literal["forecastbench"], **parameters: Unpack[TournamentParameters]
) -> RoundResult: ...
@overload
def enter_tournament(
    tournament: Literal["metaculus:minibench", "prophet-arena:weekly", "prophet-arena:live"],
    **parameters: Unpack[TournamentParameters],
) -> TournamentResult: ...
@overload
def enter_tournament(tournament: str, **parameters: Unpack[TournamentParameters]) -> TournamentResult | RoundResult: ...


@suggesting
def enter_tournament(  # noqa: PLR0913 - one parameter per setting
    tournament: str,
    *,
    agent: Agent | None = None,
    model: AnyModel | None = None,
    search: Sequence[AnySearch] = (),
    effort: ReasoningEffort | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    trials: int | None = None,
    plan: bool = False,
    dry_run: bool = False,
    sandbox: bool = False,
    limit: int | None = None,
    summary: str | Path | None = None,
    include_fallback: bool = False,
    accept_stale: bool = False,
    progress: Callable[[RunProgress], None] | None = None,
    settings: Settings | None = None,
) -> TournamentResult | RoundResult:
    """Forecast what is open and unanswered in a tournament, and submit it.

    Args:
        tournament: The platform, and which tournament of it.
        agent: Model, tools, search, budget and settings as one object, for what is not given here.
        model: The model, as "provider:name", or a function or object that answers prompts. Without one, the
            answer comes from public markets and series.
        search: Search engines: names, functions of a query and a date, or objects with a method `search`.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A settings file of a run (YAML) to start from; its questions and mode are not used.
        set: Settings of the run by name, such as {"sampling.temperature": 0.2, "options.steps": 5}. None
            removes one.
        trials: Trials per question (default: 1).
        plan: Only show the questions, the cost and the time.
        dry_run: Forecast, show what would be sent, and send nothing.
        sandbox: Try it where it does not count: in the testing area of Metaculus, or on a past round of
            ForecastBench as of its due date, of which nothing is sent.
        limit: Maximum number of questions; those that close first come first.
        summary: A Markdown file to append the day's summary to.
        include_fallback: Also use fallback forecasts, made after a failure of the model or of all its tools.
        accept_stale: Send a round although more than a tenth of its values are stale.
        progress: Called with the state of the work after every step.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `RoundResult` of ForecastBench, or a `TournamentResult` of Metaculus and Prophet Arena.

    Raises:
        InputError: If a parameter is wrong, a key is missing, or the platform cannot be reached.
    """
    return call("enter_tournament", locals())


@suggesting
def show_tree(
    tree: Tree | str | Path | Mapping[str, Any],
    *,
    inputs: bool = False,
    scaling: Literal["min-max", "softmax"] | None = None,
    bias_sd: float = 0.0,
    settings: Settings | None = None,
) -> ShownTree:
    """Read a tree, check it and compute every probability from its leaves.

    Args:
        tree: The tree's file, its name in `list_trees()`, or the id of its run; in Python and JSON also
            the tree itself.
        inputs: Also show how much the answer depends on each input, and by which paths.
        scaling: Scale weights so that they form a Bayes net.
        bias_sd: Standard deviation of errors that repeat in every trial of a leaf; widens the error bar.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `ShownTree` with the `tree` and its problems; a file with errors is described instead of refused.

    Raises:
        InputError: If there is no such tree.
    """
    return call("show_tree", locals())


@suggesting
def edit_tree(  # noqa: PLR0913 - one parameter per setting
    tree: Tree | str | Path,
    *,
    set: Mapping[str, float | str] | None = None,
    text: Mapping[str, str] | None = None,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    rule: Mapping[str, str] | None = None,
    edits: Sequence[Mapping[str, Any]] | str | Path | None = None,
    restore: int | None = None,
    message: str = "",
    plan: bool = False,
    author: str | None = None,
    base_version: int | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Edit a stored tree or restore one of its versions, and write it as a new version.

    Args:
        tree: The tree's file, its name in `list_trees()`, or the id of its run.
        set: Claim → its probability; "auto" clears an override.
        text: Claim → its new statement.
        add: Claims to add, as "PARENT=statement"; each gets its weight when its parent is judged again.
        remove: Claims to remove, with the claims below that only they use.
        rule: Claim → how its children are combined: a named rule, a formula such as "P1.1 AND P1.2", or a
            weighted sum such as "0.05+0.4*P1.1-0.2*P1.2".
        edits: A list of edits, or a JSON file with one. It can also move a claim, change its report or mark it
            stale.
        restore: Make this version the newest one.
        message: Why, for the history.
        plan: Only show what would change and what would become stale.
        author: Who makes the change, for the history (default: the user of this machine).
        base_version: The version you looked at. Later changes by others are kept; if they concern the same
            claims, yours is refused.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `TreeEditResult` with the changed probabilities and the new version.

    Raises:
        InputError: If there is no such tree or claim, or others have changed the same claims since `base_version`.
    """
    return call("edit_tree", locals())


@suggesting
def what_if(  # noqa: PLR0913 - one parameter per setting
    tree: Tree | str | Path | Mapping[str, Any],
    *,
    set: Mapping[str, float | str] | None = None,
    scenarios: Sequence[str] = (),
    sd: Mapping[str, float] | None = None,
    tornado: bool = False,
    save: str | None = None,
    settings: Settings | None = None,
) -> ScenarioComparison:
    """Compare other probabilities for some claims of a tree (a `Tree`, its file or its JSON) with the tree as it is.

    Args:
        tree: The tree's file, its name in `list_trees()`, or the id of its run; in Python and JSON also
            the tree itself.
        set: Claim → its probability; "auto" clears an override.
        scenarios: Names of scenarios saved in the tree's file; "all" compares all of them.
        sd: Input → its uncertainty (standard deviation); the result then has the spread of the answer.
        tornado: Show the answer with each input at 0 and at 1 (or at ± SD).
        save: Save the changes in the tree's file as a scenario with this name.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `ScenarioComparison`: `p` is the answer with the changes, and `outcomes` have every scenario.

    Raises:
        InputError: If there is no such tree, claim or scenario.
    """
    return call("what_if", locals())


@suggesting
def tree_log(
    tree: Tree | str | Path,
    other: Tree | str | Path | None = None,
    *,
    diff: str | None = None,
    settings: Settings | None = None,
) -> TreeLog:
    """List the versions of a tree, or compare two of them, or two trees, claim by claim.

    Args:
        tree: The tree's file, its name in `list_trees()`, or the id of its run.
        other: Another tree to compare it with.
        diff: Compare these versions instead.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `TreeLog` with the versions, and the `diff` of two of them or of both trees.

    Raises:
        InputError: If there is no such tree or version.
    """
    return call("tree_log", locals())


@suggesting
def list_trees(
    *,
    settings: Settings | None = None,
) -> TreesResult:
    """List the tree files of this machine, the last changed first, with the reason if one cannot be read.

    Args:
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `TreesResult`; `trees` has one entry for each file.
    """
    return call("list_trees", locals())


@suggesting
def list_runs(
    *,
    find: str = "",
    sort: Literal["date", "score", "cost", "name"] = "date",
    limit: int | None = None,
    settings: Settings | None = None,
) -> RunsResult:
    """List the runs on this machine.

    Args:
        find: Only runs whose name, note, tag, model or questions contain this text. tag:NAME, state:NAME,
            model:NAME and set:NAME narrow it further; archived:yes lists archived runs, archived:any all.
        sort: Order: date (newest first), score (best first), cost (highest first) or name (A to Z).
        limit: Maximum number of runs.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `RunsResult`; `stored` has one entry for each run.

    Raises:
        InputError: If `find` has a word such as `state:NAME` that means nothing.
    """
    return call("list_runs", locals())


@suggesting
def show(
    run: str,
    question: str | None = None,
    *,
    as_of: str | date | None = None,
    limit: int | None = None,
    settings: Settings | None = None,
) -> ShowResult:
    """Return the answers of a stored run, or with `question` every step to one answer.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        question: One question, with every step.
        as_of: For a report on a question that was asked on several dates: which one (default: the newest).
        limit: Maximum number of answers, and of steps for each trial.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `ShowResult`: `trials` and `scores` of all questions, or with `question` the `answers` and `steps` of one.

    Raises:
        InputError: If there is no such run or question.
    """
    return call("show", locals())


@suggesting
def replay(
    run: str,
    *,
    dataset: str | None = None,
    settings: Settings | None = None,
) -> ReplayResult:
    """Recompute a stored run from the journal alone, without network, keys or corpus, and compare the answers.

    Args:
        run: Name or id of a run, or a tree's file or name in `list_trees()`.
        dataset: The questions of a run, if their file has moved.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `ReplayResult` with the number of answers, or of notebooks, that are the same.

    Raises:
        InputError: If there is no such run, or its journal is gone.
    """
    return call("replay", locals())


@suggesting
def stop_run(
    run: str,
    *,
    discard: bool = False,
    settings: Settings | None = None,
) -> StoppedRun:
    """Stop a run early, whichever process is running it, and keep its answers so far.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        discard: Record nothing for trials in progress, and take the run out of the queue of the shared
            database.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `StoppedRun`.

    Raises:
        InputError: If there is no such run, or it is not running.
    """
    return call("stop_run", locals())


@suggesting
def edit_run(  # noqa: PLR0913 - one parameter per setting
    run: str,
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    untag: Sequence[str] = (),
    note: str | None = None,
    archive: bool | None = None,
    restore: bool = False,
    settings: Settings | None = None,
) -> RunLabels:
    """Change the name, tags or note of a run, archive it, or restore it from the bin.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        name: New name; an empty one removes it.
        tags: Tags to add.
        untag: Tags to remove.
        note: New note; an empty one removes it.
        archive: True hides the run from lists, False shows it again.
        restore: Bring the run back that was deleted.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `RunLabels` with the name, tags and note of the run afterwards.

    Raises:
        InputError: If there is no such run.
    """
    return call("edit_run", locals())


@overload
def record(*, settings: Settings | None = None) -> RecordResult: ...
@overload
def record(
    id: str,
    *,
    confirm: str | None = None,
    state: Literal["open", "paused"] | None = None,
    settings: Settings | None = None,
) -> HistoryResult: ...


@suggesting
def record(
    id: str | None = None,
    *,
    confirm: str | None = None,
    state: Literal["open", "paused"] | None = None,
    settings: Settings | None = None,
) -> RecordResult | HistoryResult:
    """Return the record of your own questions, or the history of one of them.

    Args:
        id: Id of a question, or how it begins; without one, the record of all questions.
        confirm: Confirm the outcome: `yes`, `no`, the outcome that came true, or `proposed` for what was proposed;
            `cancelled` or `ambiguous` end the question unscored, `not-yet` leaves it open.
        state: Pause the question, or open it again.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `RecordResult` of all questions, or the `HistoryResult` of one.

    Raises:
        InputError: If there is no such question, or the outcome is none of its own.
    """
    return call("record", locals())


@suggesting
def resolve_run(
    run: str,
    *,
    outcomes: str | Path | None = None,
    settings: Settings | None = None,
) -> ResolveResult:
    """Look up the outcomes of a run in its question set, on markets, or in a table.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        outcomes: A table with the columns question, target and outcome (0 or 1).
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `ResolveResult` with the numbers of outcomes that are known and new.

    Raises:
        InputError: If there is no such run, or the table has other questions.
    """
    return call("resolve_run", locals())


@suggesting
def delete_runs(
    runs: Sequence[str],
    *,
    yes: bool = False,
    settings: Settings | None = None,
) -> DeletedRuns:
    """Move runs to the bin, from which they are removed after some weeks.

    Args:
        runs: Names or ids; the beginning of an id is enough.
        yes: Really delete; without it, the runs are only listed.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `DeletedRuns` with the runs that are deleted, or would be.

    Raises:
        InputError: If there is no such run.
    """
    return call("delete_runs", locals())


@suggesting
def tournament_results(  # noqa: PLR0913 - one parameter per setting
    tournament: str | None = None,
    *,
    rounds: Sequence[str] = (),
    methods: Sequence[str | Path] = (),
    by: Sequence[str] = (),
    reference: str | None = None,
    missing: float | None = None,
    bootstrap: str | Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> TournamentResults:
    """Score your past rounds and tournaments, compared with public methods.

    Args:
        tournament: Only this platform, or this round or tournament of it.
        rounds: Only these rounds or tournaments.
        methods: Public methods of ForecastBench to compare with.
        by: Columns whose combinations are also scored, such as ("source", "horizon").
        reference: Compare all others with this forecaster (default: your newest entry).
        missing: Probability to use for missing forecasts; the official leaderboard uses 0.5.
        bootstrap: How intervals are computed: {"draws": 2000, "seed": 0, "level": 0.95, "interval":
            "percentile", "cluster": "question"}; keys may be left out.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `TournamentResults`; `boards` has the leaderboard of each platform.

    Raises:
        InputError: If there is no such platform, method or column.
    """
    return call("tournament_results", locals())


class SubmitParameters(TypedDict, total=False):
    """The keyword parameters of `submit_forecasts` that do not decide what it returns."""

    to: Required[str]
    include_fallback: bool
    comment: Literal["private", "public"] | None
    clip: bool
    questions: Sequence[str]
    post: str | None
    resend: bool
    dry_run: bool
    yes: bool
    set: Mapping[str, Any] | None
    settings: Settings | None


@overload
def submit_forecasts(source: str, *, out: None = None, **parameters: Unpack[SubmitParameters]) -> SubmitResult: ...
@overload
def submit_forecasts(source: str, *, out: str | Path, **parameters: Unpack[SubmitParameters]) -> SubmissionFile: ...


@suggesting
def submit_forecasts(  # noqa: PLR0913 - one parameter per setting
    source: str,
    *,
    to: str,
    include_fallback: bool = False,
    comment: Literal["private", "public"] | None = None,
    clip: bool = False,
    questions: Sequence[str] = (),
    post: str | None = None,
    resend: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    set: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    settings: Settings | None = None,
) -> SubmitResult | SubmissionFile:
    """Submit the forecasts of a run or a file. Python programs are not asked for confirmation.

    Args:
        source: Id of a run, or a file of forecasts.
        to: The platform: metaculus, prophet-arena or forecastbench; forecastbench:DATE if there are several
            rounds.
        include_fallback: Also use fallback forecasts, made after a failure of the model or of all its tools.
        comment: Also send the reasons; on Metaculus as a comment, private by default.
        clip: Change probabilities that the platform does not accept to the nearest allowed value.
        questions: Only these questions.
        post: Metaculus: the post that the run's only question answers.
        resend: Send forecasts again that were already sent.
        dry_run: Return exactly what would be sent, and send nothing.
        set: Settings named combine or of the tournament.
        out: ForecastBench: only write the file, to this path.
        yes: Not needed: programs are not asked for confirmation.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `SubmitResult` with what became of every forecast, or with `out` a `SubmissionFile`.

    Raises:
        InputError: If there is nothing to submit, a key is missing, or the platform cannot be reached.
    """
    return call("submit_forecasts", locals())


@suggesting
def audit(  # noqa: PLR0913 - one parameter per setting
    run: str | None = None,
    *,
    auditor: str | None = None,
    sample: int | None = None,
    no_tools: str | None = None,
    no_filter: str | None = None,
    filter: Sequence[str] = (),
    budget: float | None = None,
    outcomes: str | Path | None = None,
    allow_same_model: bool = False,
    bootstrap: str | Mapping[str, Any] | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    settings: Settings | None = None,
) -> StudyResult:
    """Return the report of the audit of a run, or of models as the leakage filter.

    Args:
        run: The run to audit.
        auditor: Model that audits (default: the auditor in the run's spec).
        sample: Judge only this many texts; a larger sample contains a smaller one.
        no_tools: A run of the same questions without tools, to estimate leakage in score points.
        no_filter: A run of the same questions without the leakage filter, for the same purpose.
        filter: Models to test as the leakage filter instead of a run; "rules" for the rules alone.
        budget: Hard limit in dollars; texts beyond it stay unaudited.
        outcomes: Table of outcomes (question, target, outcome), if the questions have none.
        allow_same_model: Allow the model that filtered the run to audit it.
        bootstrap: How intervals are computed, as for `tournament_results`.
        progress: Called with the state of the work after every step.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `StudyResult` with sentences, tables and notes.

    Raises:
        InputError: If there is no such run, or its own model would have to audit it.
    """
    return call("audit", locals())


aask = awaited(ask)
arun = awaited(run)
agrid = awaited(grid)
agrow_tree = awaited(grow_tree)
aupdate_tree = awaited(update_tree)
aenter_tournament = awaited(enter_tournament)
