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
from foretell.operations.run import ReplayResult as ReplayResult
from foretell.operations.run import RunResult as RunResult
from foretell.operations.run import ShowResult as ShowResult
from foretell.operations.run_plan import RunPlan as RunPlan
from foretell.operations.runs import RunsResult as RunsResult
from foretell.operations.runs import StoppedRun as StoppedRun
from foretell.operations.studies import study as study
from foretell.operations.submit import SubmissionFile as SubmissionFile
from foretell.operations.submit import SubmitResult as SubmitResult
from foretell.operations.tournament import TournamentResult as TournamentResult
from foretell.operations.tournament_results import TournamentResults as TournamentResults
from foretell.operations.tournament_round import RoundResult as RoundResult
from foretell.operations.tree import SignedReport as SignedReport
from foretell.operations.tree import TreeResult as TreeResult
from foretell.operations.tree import TreesResult as TreesResult
from foretell.operations.tree_edit import TreeDiff as TreeDiff
from foretell.operations.tree_edit import TreeEditResult as TreeEditResult
from foretell.operations.tree_edit import TreeVersions as TreeVersions
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
    "Forecast",
    "GridList",
    "GridResult",
    "InputError",
    "Question",
    "ReadOptions",
    "ReplayResult",
    "Resolution",
    "RoundResult",
    "RunPlan",
    "RunRequest",
    "RunResult",
    "RunsResult",
    "ScenarioComparison",
    "ScoringOptions",
    "ShowRequest",
    "ShowResult",
    "SignedReport",
    "Snapshot",
    "StoppedRun",
    "SubmissionFile",
    "SubmitResult",
    "Target",
    "TournamentResult",
    "TournamentResults",
    "TreeDiff",
    "TreeEditResult",
    "TreeRequest",
    "TreeResult",
    "TreeVersions",
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
    "diff_trees",
    "edit_run",
    "edit_tree",
    "enter_tournament",
    "expand_leaf",
    "grid",
    "ground_leaves",
    "grow_tree",
    "list_runs",
    "list_trees",
    "open_benchmark",
    "read_inspect_log",
    "read_table",
    "read_tree",
    "replay",
    "report_tree",
    "resolve_run",
    "resynthesize_tree",
    "run",
    "score",
    "score_arena",
    "score_table",
    "show",
    "stop_run",
    "study",
    "submit_forecasts",
    "tournament_results",
    "tree_history",
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

def diff_trees(
    tree: str | Path,
    other: str | Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    settings: Settings | None = None,
) -> TreeDiff:
    """Compare two versions of a tree, or two trees, claim by claim.

    Args:
        tree: The tree's file, or its name in `foretell tree list`.
        other: Another tree's file or name.
        start: The older version (default: the one before the last).
        end: The newer version (default: the current tree).
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
    tree: str | Path,
    *,
    set: Mapping[str, float] = ...,
    unpin: Sequence[str] = (),
    claim: Mapping[str, str] = ...,
    report: Mapping[str, str] = ...,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    move: Mapping[str, str] = ...,
    formula: Mapping[str, str] = ...,
    weights: Mapping[str, str] = ...,
    stale: Mapping[str, str] = ...,
    edits: str | Path | None = None,
    who: str | None = None,
    why: str = "",
    base_version: int | None = None,
    plan: bool = False,
    rejudge: bool = False,
    model: str | Callable[..., Any] | Model | None = None,
    budget: float | None = None,
    save_as: str | Path | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Edit a tree, judge outdated claims again if the request says so, and write the file.

    Args:
        tree: The tree's file, or its name in `foretell tree list`.
        set: Set a claim to this probability.
        unpin: Let a fixed claim follow its rule again.
        claim: Change the statement of a claim.
        report: Change the report of a claim.
        add: Add a claim under a parent; it gets its weight when the parent is judged again.
        remove: Remove a claim, and the claims below that only it uses.
        move: Move a claim under another parent.
        formula: Combine a claim's children by this formula.
        weights: Combine a claim's children by a weighted sum, such as P1=0.05+0.4*P1.1-0.2*P1.2.
        stale: Mark a claim as stale, for this reason.
        edits: A JSON list of edits, in the form of a scenario's `edits` in a tree file.
        who: Who makes the change, for the history (default: the user of this machine).
        why: Why, for the history.
        base_version: The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.
        plan: Only show what would change and what would become stale.
        rejudge: Let a model update the judgements that became stale.
        model: Model that judges, as provider:name.
        budget: Hard limit in dollars.
        save_as: Write the tree to this file instead of its own.
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

def expand_leaf(
    tree: str | Path,
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
    who: str | None = None,
    why: str = "",
    base_version: int | None = None,
    plan: bool = False,
    concurrency: int = 20,
    retries: int = 3,
    leaf_seconds: float = 1800.0,
    kernels: int = 4,
    unsandboxed: bool = False,
    grounder: str = "search",
    deep_model: str | None = None,
    rule: str = "linear",
    leaves: int = 6,
    rounds: int = 1,
    nodes: int = 200,
    depth: int | None = None,
    steps: int = 5,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Break a leaf into smaller claims, estimate and combine them, and recompute everything above it.

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
        tree: The tree's file, or its name in `foretell tree list`.
        who: Who makes the change, for the history (default: the user of this machine).
        why: Why, for the history.
        base_version: The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.
        plan: Only show what would be done and what it would cost.
        concurrency: How many claims to research at the same time.
        retries: How often to retry a leaf that failed.
        leaf_seconds: Seconds that one attempt at a leaf may work; a slow model gets more.
        kernels: How many notebooks run at the same time.
        unsandboxed: Run notebooks without a sandbox, with your full permissions.
        claim: Id of the leaf.
        grounder: How the smallest claims (leaves) are estimated.
        deep_model: A model that researches by itself, for the grounders deep and auto.
        rule: How smaller claims are combined into the larger one.
        leaves: About how many leaves to create.
        rounds: How many times leaves are broken down further.
        nodes: Maximum number of new claims.
        depth: Maximum depth of the whole tree.
        steps: Maximum number of model replies per analysis.
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

def ground_leaves(
    tree: str | Path,
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
    who: str | None = None,
    why: str = "",
    base_version: int | None = None,
    plan: bool = False,
    concurrency: int = 20,
    retries: int = 3,
    leaf_seconds: float = 1800.0,
    kernels: int = 4,
    unsandboxed: bool = False,
    grounder: str = "search",
    deep_model: str | None = None,
    trials: int = 1,
    keep_trials: bool = False,
    allocate: float | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Estimate leaves of a tree again, once or several times, and recompute everything above them.

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
        tree: The tree's file, or its name in `foretell tree list`.
        who: Who makes the change, for the history (default: the user of this machine).
        why: Why, for the history.
        base_version: The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.
        plan: Only show what would be done and what it would cost.
        concurrency: How many claims to research at the same time.
        retries: How often to retry a leaf that failed.
        leaf_seconds: Seconds that one attempt at a leaf may work; a slow model gets more.
        kernels: How many notebooks run at the same time.
        unsandboxed: Run notebooks without a sandbox, with your full permissions.
        claims: Ids of the leaves.
        grounder: How the smallest claims (leaves) are estimated.
        deep_model: A model that researches by itself, for the grounders deep and auto.
        trials: How many times to research each leaf, independently.
        keep_trials: Keep earlier trials and add the new ones.
        allocate: Spend about this much on more trials, where they reduce the uncertainty of the answer most.
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
    grounder: str = "search",
    rule: str = "linear",
    leaves: int = 10,
    rounds: int = 1,
    nodes: int = 5000,
    max_leaves: int | None = None,
    depth: int | None = None,
    steps: int = 5,
    concurrency: int = 20,
    retries: int = 3,
    leaf_seconds: float = 1800.0,
    trials: int = 1,
    deep_model: str | None = None,
    correlations: bool = False,
    bayes_net: bool = False,
    scaling: Literal["min-max", "softmax"] | None = None,
    intercept_limit: float = 0.1,
    clamp: tuple[float, float] = (0.05, 0.95),
    shortcut: bool = True,
    kernels: int = 4,
    unsandboxed: bool = False,
    out: Sequence[str | Path] = (),
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
        grounder: How the smallest claims (leaves) are estimated.
        rule: How smaller claims are combined into the larger one.
        leaves: About how many leaves one analysis creates.
        rounds: How many times leaves are broken down further.
        nodes: Maximum number of claims.
        max_leaves: About how many leaves the whole tree may have.
        depth: Maximum depth of the tree.
        steps: Maximum number of model replies per analysis.
        concurrency: How many leaves to estimate at the same time.
        retries: How often to retry a leaf that failed.
        leaf_seconds: Seconds that one attempt at a leaf may work; a slow model gets more.
        trials: How often each leaf is estimated independently; the spread gives the answer an error bar.
        deep_model: A model that researches by itself, for the grounders deep and auto.
        correlations: Have a model check which siblings are not independent.
        bayes_net: Ask the model for weights that form a Bayes net.
        scaling: Scale weights so that they form a Bayes net.
        intercept_limit: Largest intercept of a linear link, apart from its obstacles, unless the model insists on another.
        clamp: Lowest and highest probability of the answer.
        shortcut: If exactly one of two outcomes comes true, analyse only the first.
        kernels: How many notebooks run at the same time.
        unsandboxed: Run notebooks without a sandbox, with your full permissions.
        out: Also write the tree to a file that ends in .json, .html, .md, .dot, .bif or .pl; may be repeated. The tree itself is stored in the home.
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

def report_tree(
    file: str | Path,
    *,
    systematic_error: float = 0.0,
    settings: Settings | None = None,
) -> SignedReport:
    """The report on the tree in a file: the answer, what it depends on, every claim, and how it was made.

    Args:
        file: The tree's file, or its name in `foretell tree list`.
        systematic_error: Standard deviation of errors that repeat in every trial of a leaf; widens the error bar.
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

def resynthesize_tree(
    tree: str | Path,
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
    who: str | None = None,
    why: str = "",
    base_version: int | None = None,
    plan: bool = False,
    concurrency: int = 20,
    retries: int = 3,
    leaf_seconds: float = 1800.0,
    kernels: int = 4,
    unsandboxed: bool = False,
    rule: str | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Repeat outdated rules and judgements of a tree, from the leaves up; the rest is recomputed by arithmetic.

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
        tree: The tree's file, or its name in `foretell tree list`.
        who: Who makes the change, for the history (default: the user of this machine).
        why: Why, for the history.
        base_version: The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.
        plan: Only show what would be done and what it would cost.
        concurrency: How many claims to research at the same time.
        retries: How often to retry a leaf that failed.
        leaf_seconds: Seconds that one attempt at a leaf may work; a slow model gets more.
        kernels: How many notebooks run at the same time.
        unsandboxed: Run notebooks without a sandbox, with your full permissions.
        claims: Also these claims, even if nothing changed.
        rule: Combine by this rule instead of the current one.
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

def tree_history(
    tree: str | Path,
    *,
    restore: int | None = None,
    who: str | None = None,
    why: str = "",
    settings: Settings | None = None,
) -> TreeVersions:
    """List the versions of a tree, and restore one if the request says so.

    Args:
        tree: The tree's file, or its name in `foretell tree list`.
        restore: Make this version the newest one.
        who: Who makes the change, for the history (default: the user of this machine).
        why: Why, for the history.
    """

def what_if(
    tree: str | Path | Mapping[str, Any] | Any,
    *,
    set: Mapping[str, float] = ...,
    unpin: Sequence[str] = (),
    scenarios: Sequence[str] = (),
    all: bool = False,
    sd: Mapping[str, float] = ...,
    tornado: bool = False,
    save: str | None = None,
    settings: Settings | None = None,
) -> ScenarioComparison:
    """Compare other probabilities for some claims of a tree (a `Tree`, its file or its JSON) with the tree as it is.

    Args:
        tree: The tree's file or name, or the tree itself as JSON (schema foretell/tree/1).
        set: Set a claim to this probability.
        unpin: Let a fixed claim follow its rule again.
        scenarios: A scenario saved in the tree's file.
        all: Compare all scenarios saved in the tree's file.
        sd: Uncertainty (standard deviation) of an input; also prints the spread of the answer.
        tornado: Show the answer with each input at 0 and at 1 (or at ± SD).
        save: Save the changes in the tree's file as a scenario with this name.
    """
