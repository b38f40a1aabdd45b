"""The Python interface with its types. Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, overload

from foretell.models.model import Model
from foretell.runs.settings import Settings

HOMES: Mapping[str, str]
from foretell.forecasters.forecaster import build_forecaster as build_forecaster
from foretell.forecasters.tree.tree_file import read_tree as read_tree
from foretell.forecasters.tree.tree_file import write_tree as write_tree
from foretell.inspect_tasks.logs import read_inspect_log as read_inspect_log
from foretell.operations.ask import AskResult as AskResult
from foretell.operations.audit import audit as audit
from foretell.operations.grid import GridList as GridList
from foretell.operations.grid import GridResult as GridResult
from foretell.operations.requests.asking import AskRequest as AskRequest
from foretell.operations.requests.runs import RunRequest as RunRequest
from foretell.operations.requests.runs import ShowRequest as ShowRequest
from foretell.operations.requests.trees import TreeRequest as TreeRequest
from foretell.operations.requests.trees import WhatIfRequest as WhatIfRequest
from foretell.operations.result import Result as Result
from foretell.operations.run import ReplayResult as ReplayResult
from foretell.operations.run import RunResult as RunResult
from foretell.operations.run import ShowResult as ShowResult
from foretell.operations.run_plan import RunPlan as RunPlan
from foretell.operations.runs import DeletedRuns as DeletedRuns
from foretell.operations.runs import ResolveResult as ResolveResult
from foretell.operations.runs import RunLabels as RunLabels
from foretell.operations.runs import RunsResult as RunsResult
from foretell.operations.runs import StoppedRun as StoppedRun
from foretell.operations.studies import study as study
from foretell.operations.submit import SubmissionFile as SubmissionFile
from foretell.operations.submit import SubmitResult as SubmitResult
from foretell.operations.tournament import TournamentResult as TournamentResult
from foretell.operations.tournament_results import TournamentResults as TournamentResults
from foretell.operations.tournament_round import RoundResult as RoundResult
from foretell.operations.tree import ShownTree as ShownTree
from foretell.operations.tree import TreeResult as TreeResult
from foretell.operations.tree import TreesResult as TreesResult
from foretell.operations.tree_edit import TreeEditResult as TreeEditResult
from foretell.operations.tree_edit import TreeLog as TreeLog
from foretell.operations.what_if import ScenarioComparison as ScenarioComparison
from foretell.questions import AsOf as AsOf
from foretell.questions import Forecast as Forecast
from foretell.questions import InputError as InputError
from foretell.questions import Question as Question
from foretell.questions import Resolution as Resolution
from foretell.questions import Snapshot as Snapshot
from foretell.questions import Target as Target
from foretell.report.arena_report import score_arena as score_arena
from foretell.runs.backtest import backtest as backtest
from foretell.runs.combine import CombinationSettings as CombinationSettings
from foretell.runs.combine import combine_trials as combine_trials
from foretell.runs.question_sets import open_benchmark as open_benchmark
from foretell.scoring.join import ReadOptions as ReadOptions
from foretell.scoring.join import read_table as read_table
from foretell.scoring.score import ScoringOptions as ScoringOptions
from foretell.scoring.score import compare as compare
from foretell.scoring.score import compare_pair as compare_pair
from foretell.scoring.score import score as score
from foretell.scoring.score import score_table as score_table

__all__ = [
    "AsOf",
    "AskRequest",
    "AskResult",
    "CombinationSettings",
    "DeletedRuns",
    "Forecast",
    "GridList",
    "GridResult",
    "InputError",
    "Question",
    "ReadOptions",
    "ReplayResult",
    "Resolution",
    "ResolveResult",
    "Result",
    "RoundResult",
    "RunLabels",
    "RunPlan",
    "RunRequest",
    "RunResult",
    "RunsResult",
    "ScenarioComparison",
    "ScoringOptions",
    "ShowRequest",
    "ShowResult",
    "ShownTree",
    "Snapshot",
    "StoppedRun",
    "SubmissionFile",
    "SubmitResult",
    "Target",
    "TournamentResult",
    "TournamentResults",
    "TreeEditResult",
    "TreeLog",
    "TreeRequest",
    "TreeResult",
    "TreesResult",
    "WhatIfRequest",
    "ask",
    "audit",
    "backtest",
    "build_forecaster",
    "combine_trials",
    "compare",
    "compare_pair",
    "delete_runs",
    "edit_run",
    "edit_tree",
    "enter_tournament",
    "grid",
    "grow_tree",
    "list_runs",
    "list_trees",
    "open_benchmark",
    "read_inspect_log",
    "read_table",
    "read_tree",
    "replay",
    "resolve_run",
    "run",
    "score",
    "score_arena",
    "score_table",
    "show",
    "show_tree",
    "stop_run",
    "study",
    "submit_forecasts",
    "tournament_results",
    "tree_log",
    "update_tree",
    "what_if",
    "write_tree",
]

@overload
def ask(
    question: str,
    *,
    model: str | Callable[..., Any] | Model | None = None,
    search: Sequence[str] = (),
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] = ...,
    closes: str | None | date = None,
    as_of: str | None | date = None,
    criteria: str = "",
    options: Sequence[str] = (),
    exclusivity: Literal["exactly one", "at most one", "independent"] = "exactly one",
    range: str | tuple[float, float] | tuple[float, float, str] | None = None,
    price: float | None = None,
    trials: int | None = None,
    plan: Literal[True],
    settings: Settings | None = None,
) -> RunPlan: ...
@overload
def ask(
    question: str,
    *,
    model: str | Callable[..., Any] | Model | None = None,
    search: Sequence[str] = (),
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] = ...,
    closes: str | None | date = None,
    as_of: str | None | date = None,
    criteria: str = "",
    options: Sequence[str] = (),
    exclusivity: Literal["exactly one", "at most one", "independent"] = "exactly one",
    range: str | tuple[float, float] | tuple[float, float, str] | None = None,
    price: float | None = None,
    trials: int | None = None,
    plan: Literal[False] = False,
    settings: Settings | None = None,
) -> AskResult:
    """A probability with reasons, researched by `model`, or from public markets and series if none is named.

    Args:
        model: Model, as provider:name; none uses no model.
        search: Search engine; may be repeated. none uses no search.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A run's settings file (YAML) to start from; what it says about questions and mode is not used.
        set: Change a setting, named as in a settings file: sampling.temperature=0.2, models.filter=openai:NAME, options.steps=5; may be repeated. null removes one.
        closes: When the answer will be known.
        as_of: Ask as if it were that day; nothing later is used.
        criteria: Exact rules for how the question resolves.
        question: The question, worded so that anyone could check the answer.
        options: One of several outcomes; repeat for each.
        exclusivity: How many of several outcomes come true.
        range: The answer is a number that almost certainly lies in this range, such as 0:100 or '0:100 dollars'. You get a distribution.
        price: Current market price, 0 to 1.
        trials: How many independent trials to run and combine (default: 1).
        plan: Only show what it would cost and how long it would take.
    """

def delete_runs(
    runs: Sequence[str],
    *,
    yes: bool = False,
    settings: Settings | None = None,
) -> DeletedRuns:
    """Delete runs with everything stored about them.

    Args:
        runs: Names or ids; the beginning of an id is enough.
        yes: Really delete; without it, the runs are only listed.
    """

def edit_run(
    run: str,
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    untag: Sequence[str] = (),
    note: str | None = None,
    archive: bool | None = None,
    settings: Settings | None = None,
) -> RunLabels:
    """Change the name, tags or note of a run, or archive it.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        name: New name; an empty one removes it.
        tags: Add this tag; may be repeated.
        untag: Remove this tag; may be repeated.
        note: New note; an empty one removes it.
        archive: Hide the run from lists; --archive=no shows it again.
    """

def edit_tree(
    tree: str | Path | Any,
    *,
    set: Mapping[str, float | str] = ...,
    text: Mapping[str, str] = ...,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    rule: Mapping[str, str] = ...,
    edits: list[Mapping[str, Any]] | str | Path | None = None,
    restore: int | None = None,
    message: str = "",
    plan: bool = False,
    author: str | None = None,
    base_version: int | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Edit a stored tree or restore one of its versions, and write it as a new version.

    Args:
        tree: The tree's file, its name in `foretell tree list`, or the id of its run.
        set: Set a claim to this probability; auto clears an override.
        text: Change the statement of a claim.
        add: Add a claim under a parent; it gets its weight when the parent is judged again.
        remove: Remove a claim, and the claims below that only it uses.
        rule: Combine a claim's children by a named rule, a formula such as 'P1=P1.1 AND P1.2' or a weighted sum such as P1=0.05+0.4*P1.1-0.2*P1.2.
        edits: A JSON file with a list of edits, as in a scenario of a tree file, which can also move a claim, change its report or mark it stale; in Python and JSON the list itself.
        restore: Make this version the newest one.
        message: Why, for the history.
        plan: Only show what would change and what would become stale.
        author: Who makes the change, for the history (default: the user of this machine).
        base_version: The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.
    """

def enter_tournament(
    tournament: str,
    *,
    model: str | Callable[..., Any] | Model | None = None,
    search: Sequence[str] = (),
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] = ...,
    trials: int | None = None,
    plan: bool = False,
    dry_run: bool = False,
    sandbox: bool = False,
    limit: int | None = None,
    summary: str | Path | None = None,
    include_fallback: bool = False,
    settings: Settings | None = None,
) -> TournamentResult | RoundResult:
    """Forecast what is open and unanswered in a tournament, and submit it.

    Args:
        model: Model, as provider:name; none uses no model.
        search: Search engine; may be repeated. none uses no search.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A run's settings file (YAML) to start from; what it says about questions and mode is not used.
        set: Change a setting, named as in a settings file: sampling.temperature=0.2, models.filter=openai:NAME, options.steps=5; may be repeated. null removes one.
        tournament: The platform, and which tournament of it.
        trials: Trials per question (default: 1).
        plan: Only show the questions, the cost and the time.
        dry_run: Forecast, print what would be sent, and send nothing.
        sandbox: Try it where it does not count: in the testing area of Metaculus, or on a past round of ForecastBench as of its due date, of which nothing is sent.
        limit: Maximum number of questions; those that close first come first.
        summary: Append the day's summary to this file, as Markdown.
        include_fallback: Also use fallback forecasts, which rest on a failure of the model or of all its tools.
    """

def grid(
    grid: str | Path | None = None,
    *,
    plan: bool = False,
    budget: float | None = None,
    where: Literal["auto", "here", "workers", "both"] = "auto",
    settings: Settings | None = None,
) -> GridResult | GridList:
    """Run a grid, or with `plan` estimate its cost; for a name or nothing, show the grids that were run.

    Args:
        grid: A grid (YAML or JSON file) to run, or the name of one to show; none lists them.
        plan: Only show what it would cost.
        budget: Limit in dollars for all runs together, including earlier starts.
        where: Who does the work: this process (here), the workers of the shared database (workers), both, or workers if a shared database is set (auto).
    """

def grow_tree(
    claim: str,
    *,
    model: str | Callable[..., Any] | Model | None = None,
    search: Sequence[str] = (),
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] = ...,
    closes: str | None | date = None,
    as_of: str | None | date = None,
    criteria: str = "",
    grounder: str | None = None,
    rule: str | None = None,
    leaves: int | None = None,
    trials: int | None = None,
    plan: bool = False,
    settings: Settings | None = None,
) -> TreeResult:
    """Break a claim into smaller claims, have a model estimate each, and combine them.

    Args:
        model: Model, as provider:name; none uses no model.
        search: Search engine; may be repeated. none uses no search.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A run's settings file (YAML) to start from; what it says about questions and mode is not used.
        set: Change a setting, named as in a settings file: sampling.temperature=0.2, models.filter=openai:NAME, options.steps=5; may be repeated. null removes one.
        closes: When the answer will be known.
        as_of: Ask as if it were that day; nothing later is used.
        criteria: Exact rules for how the question resolves.
        claim: A claim that will turn out true or false.
        grounder: How the smallest claims (leaves) are estimated (default: search).
        rule: How smaller claims are combined into the larger one (default: linear).
        leaves: About how many leaves one analysis creates (default: 10).
        trials: How often each leaf is estimated independently; the spread gives the answer an error bar (default: 1).
        plan: Only show what would be asked and what it would cost.
    """

def list_runs(
    *,
    find: str = "",
    sort: Literal["date", "score", "cost", "name"] = "date",
    limit: int | None = None,
    settings: Settings | None = None,
) -> RunsResult:
    """List the runs on this machine.

    Args:
        find: Only runs whose name, note, tag, model or questions contain this text. tag:NAME, state:NAME, model:NAME and set:NAME narrow it further; archived:yes lists archived runs, archived:any all.
        sort: Order: date (newest first), score (best first), cost (highest first) or name (A to Z).
        limit: Maximum number of runs.
    """

def list_trees(
    *,
    settings: Settings | None = None,
) -> TreesResult:
    """List the tree files of this machine, the last changed first; a file that cannot be read says why."""

def replay(
    run: str,
    *,
    dataset: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """Recompute a stored run from the journal alone, without network, keys or corpus, and compare the answers.

    Args:
        run: Name or id of a run, or a tree's file or name in `foretell tree list`.
        dataset: The questions of a run, if their file has moved.
    """

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
    """

@overload
def run(
    spec: str | Path | Mapping[str, Any],
    *,
    again: bool = False,
    pilot: int | None = None,
    plan: Literal[True],
    prompts: bool = False,
    extend: bool = False,
    only_failed: str | None = None,
    where: Literal["auto", "here", "workers", "both"] = "auto",
    set: Mapping[str, Any] = ...,
    settings: Settings | None = None,
) -> RunPlan: ...
@overload
def run(
    spec: str | Path | Mapping[str, Any],
    *,
    again: bool = False,
    pilot: int | None = None,
    plan: Literal[False] = False,
    prompts: bool = False,
    extend: bool = False,
    only_failed: str | None = None,
    where: Literal["auto", "here", "workers", "both"] = "auto",
    set: Mapping[str, Any] = ...,
    settings: Settings | None = None,
) -> RunResult:
    """Run a settings file on its questions, or continue or repeat a stored run.

    Args:
        spec: A settings file (YAML or JSON), the same as a mapping, or the name or id of a stored run.
        again: Start a new run with the settings of RUN and the next free seed.
        pilot: Only ask the first N questions once, and say whether the run would work and what it would cost.
        plan: Only show what there is to do, what it would cost and how long it would take.
        prompts: Also show the prompts that the models would receive.
        extend: Add new questions to the existing run of SPEC, instead of starting another.
        only_failed: Only retry what failed in RUN; with REASON, only what failed for that reason.
        where: Who does the work: this process (here), the workers of the shared database (workers), both, or workers if a shared database is set (auto).
        set: Change a setting, named as in a settings file: sampling.temperature=0.2, models.filter=openai:NAME, options.steps=5; may be repeated. null removes one.
    """

def show(
    run: str,
    question: str | None = None,
    *,
    as_of: str | None | date = None,
    limit: int | None = None,
    settings: Settings | None = None,
) -> ShowResult:
    """The answers of a stored run, or with `question` every step to one answer.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        question: One question, with every step.
        as_of: For a report on a question that was asked on several dates: which one (default: the newest).
        limit: Maximum number of answers, and of steps for each trial.
    """

def show_tree(
    tree: str | Path | Mapping[str, Any] | Any,
    *,
    inputs: bool = False,
    scaling: Literal["min-max", "softmax"] | None = None,
    bias_sd: float = 0.0,
    settings: Settings | None = None,
) -> ShownTree:
    """Read a tree, check it and compute every probability from its leaves.

    Args:
        tree: The tree's file, its name in `foretell tree list`, or the id of its run; in Python and JSON also the tree itself.
        inputs: Also show how much the answer depends on each input, and by which paths.
        scaling: Scale weights so that they form a Bayes net.
        bias_sd: Standard deviation of errors that repeat in every trial of a leaf; widens the error bar.
    """

def stop_run(
    run: str,
    *,
    discard: bool = False,
    settings: Settings | None = None,
) -> StoppedRun:
    """Stop a run early, whichever process is running it, and use what there is.

    Args:
        run: Name or id of the run; the beginning of the id is enough.
        discard: Record nothing for trials in progress, and take the run out of the queue of the shared database; `foretell run RUN` continues them.
    """

def submit_forecasts(
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
    set: Mapping[str, Any] = ...,
    out: str | Path | None = None,
    settings: Settings | None = None,
) -> SubmitResult | SubmissionFile:
    """Submit the forecasts of a run or a file. A Python program is not asked before they are sent.

    Args:
        source: Id of a run, or a file of forecasts.
        to: The platform: metaculus, prophet-arena or forecastbench; forecastbench:DATE if there are several rounds.
        include_fallback: Also use fallback forecasts, which rest on a failure of the model or of all its tools.
        comment: Also send the reasons; on Metaculus as a comment, private by default.
        clip: Change probabilities that the platform does not accept to the nearest allowed value.
        questions: Only this question; may be repeated.
        post: Metaculus: the post that the run's only question answers.
        resend: Send forecasts again that were already sent.
        dry_run: Print exactly what would be sent, and send nothing.
        yes: Send without asking.
        set: Set combine or a key of tournament; may be repeated.
        out: ForecastBench: only write the file, to this path.
    """

def tournament_results(
    tournament: str | None = None,
    *,
    rounds: Sequence[str] = (),
    methods: Sequence[str | Path] = (),
    by: Sequence[str] = (),
    reference: str | None = None,
    missing: float | None = None,
    bootstrap: str | Mapping[str, Any] = ...,
    settings: Settings | None = None,
) -> TournamentResults:
    """Score your past rounds and tournaments beside public methods.

    Args:
        tournament: Only this platform, or this round or tournament of it.
        rounds: Only this round or tournament; may be repeated.
        methods: Public ForecastBench methods; may be repeated.
        by: Also score each combination of these columns, e.g. source,horizon.
        reference: Compare all others with this forecaster (default: your newest entry).
        missing: Probability to use for missing forecasts; the official leaderboard uses 0.5.
        bootstrap: How intervals are computed: draws=2000,seed=0,level=0.95,interval=percentile|symmetric,cluster=COLUMN+COLUMN; parts may be left out.
    """

def tree_log(
    tree: str | Path | Any,
    other: str | Path | Any | None = None,
    *,
    diff: str | None = None,
    settings: Settings | None = None,
) -> TreeLog:
    """List the versions of a tree, or compare two of them, or two trees, claim by claim.

    Args:
        tree: The tree's file, its name in `foretell tree list`, or the id of its run.
        other: Another tree to compare it with.
        diff: Compare these versions instead.
    """

def update_tree(
    tree: str | Path | Any,
    claims: Sequence[str] = (),
    *,
    model: str | Callable[..., Any] | Model | None = None,
    search: Sequence[str] = (),
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    budget: float | None = None,
    config: str | Path | None = None,
    set: Mapping[str, Any] = ...,
    closes: str | None | date = None,
    as_of: str | None | date = None,
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
    settings: Settings | None = None,
) -> TreeEditResult:
    """Research the leaves of a tree that are stale, failed or named, and judge outdated rules again.

    Args:
        model: Model, as provider:name; none uses no model.
        search: Search engine; may be repeated. none uses no search.
        effort: How much reasoning models should think; filter and summariser never more than low.
        budget: Hard limit in dollars. When it is spent, the current estimate is the answer.
        config: A run's settings file (YAML) to start from; what it says about questions and mode is not used.
        set: Change a setting, named as in a settings file: sampling.temperature=0.2, models.filter=openai:NAME, options.steps=5; may be repeated. null removes one.
        closes: When the answer will be known.
        as_of: Work as if it were that day; nothing later is used.
        criteria: Exact rules for how the claim resolves.
        tree: The tree's file, its name in `foretell tree list`, or the id of its run.
        claims: Ids of the claims.
        expand: Break this leaf into smaller claims, research them and combine them.
        research: Research leaves; without, rules are only judged again.
        trials: How many times to research each leaf, independently (default: 1).
        adaptive: Spend about this much on more trials, where they reduce the uncertainty of the answer most.
        grounder: How the smallest claims (leaves) are estimated (default: search).
        rule: Combine by this rule what is broken down or judged again (default: its current rule, or linear).
        message: Why, for the history.
        plan: Only show what would be done and what it would cost.
        author: Who makes the change, for the history (default: the user of this machine).
        base_version: The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.
    """

def what_if(
    tree: str | Path | Mapping[str, Any] | Any,
    *,
    set: Mapping[str, float | str] = ...,
    scenarios: Sequence[str] = (),
    sd: Mapping[str, float] = ...,
    tornado: bool = False,
    save: str | None = None,
    settings: Settings | None = None,
) -> ScenarioComparison:
    """Compare other probabilities for some claims of a tree (a `Tree`, its file or its JSON) with the tree as it is.

    Args:
        tree: The tree's file, its name in `foretell tree list`, or the id of its run; in Python and JSON also the tree itself.
        set: Set a claim to this probability; auto clears an override.
        scenarios: A scenario saved in the tree's file; all compares all of them.
        sd: Uncertainty (standard deviation) of an input; also prints the spread of the answer.
        tornado: Show the answer with each input at 0 and at 1 (or at ± SD).
        save: Save the changes in the tree's file as a scenario with this name.
    """
