"""The Python interface with its types. Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from foretell.models.model import Model
from foretell.runs.settings import Settings
from foretell.forecasters.forecaster import build_forecaster as build_forecaster
from foretell.forecasters.tree.tree_file import read_tree as read_tree
from foretell.forecasters.tree.tree_file import write_tree as write_tree
from foretell.inspect_tasks.logs import read_inspect_log as read_inspect_log
from foretell.operations.ask import AskResult as AskResult
from foretell.operations.requests import AskRequest as AskRequest
from foretell.operations.requests import RunRequest as RunRequest
from foretell.operations.requests import ShowRequest as ShowRequest
from foretell.operations.requests import TreeRequest as TreeRequest
from foretell.operations.requests import WhatIfRequest as WhatIfRequest
from foretell.operations.run import ReplayResult as ReplayResult
from foretell.operations.run import RunResult as RunResult
from foretell.operations.run import ShowResult as ShowResult
from foretell.operations.runs import RunsResult as RunsResult
from foretell.operations.studies import study as study
from foretell.operations.tree import SignedReport as SignedReport
from foretell.operations.tree import TreeResult as TreeResult
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
    "InputError",
    "Question",
    "ReadOptions",
    "ReplayResult",
    "Resolution",
    "RunRequest",
    "RunResult",
    "RunsResult",
    "ScenarioComparison",
    "ScoringOptions",
    "ShowRequest",
    "ShowResult",
    "SignedReport",
    "Snapshot",
    "Target",
    "TreeDiff",
    "TreeEditResult",
    "TreeRequest",
    "TreeResult",
    "TreeVersions",
    "WhatIfRequest",
    "ask",
    "backtest",
    "build_forecaster",
    "combine_trials",
    "compare",
    "compare_pair",
    "diff_trees",
    "edit_tree",
    "expand_leaf",
    "ground_leaves",
    "grow_tree",
    "list_runs",
    "open_benchmark",
    "read_inspect_log",
    "read_table",
    "read_tree",
    "replay",
    "report_tree",
    "resynthesize_tree",
    "run",
    "score",
    "score_arena",
    "score_table",
    "show",
    "study",
    "tree_history",
    "what_if",
    "write_tree",
]

def ask(
    question: str,
    *,
    closes: str | None = None,
    as_of: str | None = None,
    criteria: str = "",
    model: str | Callable[..., Any] | Model | None = None,
    roles: Mapping[str, str] = ...,
    search: Sequence[str] = (),
    budget: float | None = None,
    question_budget: float | None = None,
    model_price: str | None = None,
    temperature: float | None = None,
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    max_tokens: int | None = None,
    tier: Literal["standard", "flex", "priority"] | None = None,
    reply_seconds: float | None = None,
    seed: int = 0,
    late_text: Literal["quarantine", "keep", "cut"] = "quarantine",
    strict: bool = False,
    variant: Literal["full", "nobelief", "zero-shot", "batch"] = "full",
    crowd: bool = True,
    prior: bool = True,
    steps: int = 10,
    seconds: float = 600.0,
    asking: Literal["tools", "schema"] = "tools",
    clamp: tuple[float, float] = (0.05, 0.95),
    bypass: Sequence[str] = ("dbnomics",),
    fixed: bool = True,
    options: Sequence[str] = (),
    number: bool = False,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    exclusivity: Literal["exactly one", "at most one", "independent"] = "exactly one",
    price: float | None = None,
    trials: int = 1,
    combine: str = "default",
    concurrency: int = 50,
    settings: Settings | None = None,
) -> AskResult:
    """A probability with its reasons; researched by `model`, or the outside view where no model is named."""

def diff_trees(
    tree: str | Path,
    other: str | Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    settings: Settings | None = None,
) -> TreeDiff:
    """Compare two versions of a tree, or two trees, claim by claim."""

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
    base: int | None = None,
    plan: bool = False,
    rejudge: bool = False,
    model: str | Callable[..., Any] | Model | None = None,
    budget: float | None = None,
    save_as: str | Path | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Edit the tree, ask for stale judgements again where the request says so, and write the file."""

def expand_leaf(
    tree: str | Path,
    claim: str,
    *,
    closes: str | None = None,
    as_of: str | None = None,
    criteria: str = "",
    model: str | Callable[..., Any] | Model | None = None,
    roles: Mapping[str, str] = ...,
    search: Sequence[str] = (),
    budget: float | None = None,
    question_budget: float | None = None,
    model_price: str | None = None,
    temperature: float | None = None,
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    max_tokens: int | None = None,
    tier: Literal["standard", "flex", "priority"] | None = None,
    reply_seconds: float | None = None,
    seed: int = 0,
    late_text: Literal["quarantine", "keep", "cut"] = "quarantine",
    strict: bool = False,
    who: str | None = None,
    why: str = "",
    base: int | None = None,
    plan: bool = False,
    at_once: int = 20,
    retries: int = 3,
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
    """Take a leaf of a tree apart, have the parts examined and put together, and work out everything above it."""

def ground_leaves(
    tree: str | Path,
    claims: Sequence[str] = (),
    *,
    closes: str | None = None,
    as_of: str | None = None,
    criteria: str = "",
    model: str | Callable[..., Any] | Model | None = None,
    roles: Mapping[str, str] = ...,
    search: Sequence[str] = (),
    budget: float | None = None,
    question_budget: float | None = None,
    model_price: str | None = None,
    temperature: float | None = None,
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    max_tokens: int | None = None,
    tier: Literal["standard", "flex", "priority"] | None = None,
    reply_seconds: float | None = None,
    seed: int = 0,
    late_text: Literal["quarantine", "keep", "cut"] = "quarantine",
    strict: bool = False,
    who: str | None = None,
    why: str = "",
    base: int | None = None,
    plan: bool = False,
    at_once: int = 20,
    retries: int = 3,
    kernels: int = 4,
    unsandboxed: bool = False,
    grounder: str = "search",
    deep_model: str | None = None,
    trials: int = 1,
    more: bool = False,
    spend: float | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Examine leaves of a tree anew, several times where that is asked for, and work out everything above them."""

def grow_tree(
    claim: str,
    *,
    closes: str | None = None,
    as_of: str | None = None,
    criteria: str = "",
    model: str | Callable[..., Any] | Model | None = None,
    roles: Mapping[str, str] = ...,
    search: Sequence[str] = (),
    budget: float | None = None,
    question_budget: float | None = None,
    model_price: str | None = None,
    temperature: float | None = None,
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    max_tokens: int | None = None,
    tier: Literal["standard", "flex", "priority"] | None = None,
    reply_seconds: float | None = None,
    seed: int = 0,
    late_text: Literal["quarantine", "keep", "cut"] = "quarantine",
    strict: bool = False,
    grounder: str = "search",
    rule: str = "linear",
    leaves: int = 10,
    rounds: int = 1,
    nodes: int = 5000,
    most_leaves: int | None = None,
    depth: int | None = None,
    steps: int = 5,
    at_once: int = 20,
    retries: int = 3,
    deep_model: str | None = None,
    correlations: bool = False,
    bayes_net: bool = False,
    scaling: Literal["min-max", "softmax", "clip"] | None = None,
    intercept_limit: float = 0.1,
    clamp: tuple[float, float] = (0.05, 0.95),
    shortcut: bool = True,
    kernels: int = 4,
    unsandboxed: bool = False,
    out: Sequence[str | Path] = (),
    settings: Settings | None = None,
) -> TreeResult:
    """Take a claim apart into claims, have each judged by a model, and put them together again."""

def list_runs(
    *,
    find: str = "",
    tag: Sequence[str] = (),
    state: Literal["running", "stopped", "failed", "done"] | None = None,
    archived: bool = False,
    limit: int | None = None,
    offset: int = 0,
    settings: Settings | None = None,
) -> RunsResult:
    """The runs on this machine, the newest first."""

def replay(
    run: str,
    *,
    dataset: str | None = None,
    settings: Settings | None = None,
) -> ReplayResult:
    """Compute a stored run again from the journal alone, without network, keys or corpus, and compare the answers."""

def report_tree(
    file: str | Path,
    *,
    lasting: float = 0.0,
    settings: Settings | None = None,
) -> SignedReport:
    """The report on the tree in a file: the answer, what it hangs on, every claim, and how it was made."""

def resynthesize_tree(
    tree: str | Path,
    claims: Sequence[str] = (),
    *,
    closes: str | None = None,
    as_of: str | None = None,
    criteria: str = "",
    model: str | Callable[..., Any] | Model | None = None,
    roles: Mapping[str, str] = ...,
    search: Sequence[str] = (),
    budget: float | None = None,
    question_budget: float | None = None,
    model_price: str | None = None,
    temperature: float | None = None,
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None,
    max_tokens: int | None = None,
    tier: Literal["standard", "flex", "priority"] | None = None,
    reply_seconds: float | None = None,
    seed: int = 0,
    late_text: Literal["quarantine", "keep", "cut"] = "quarantine",
    strict: bool = False,
    who: str | None = None,
    why: str = "",
    base: int | None = None,
    plan: bool = False,
    at_once: int = 20,
    retries: int = 3,
    kernels: int = 4,
    unsandboxed: bool = False,
    rule: str | None = None,
    settings: Settings | None = None,
) -> TreeEditResult:
    """Have stale rules and judgements of a tree made anew, from the leaves up; everything else follows by arithmetic."""

def run(
    spec: str | Path | Mapping[str, Any],
    *,
    concurrency: int = 50,
    tier: Literal["standard", "flex", "priority"] | None = None,
    where: Literal["auto", "here", "workers", "both"] = "auto",
    extend: bool = False,
    out: str | Path | None = None,
    settings: Settings | None = None,
) -> RunResult:
    """Run a spec over its questions, here or by the workers of a shared database."""

def show(
    run: str,
    question: str | None = None,
    *,
    limit: int | None = None,
    settings: Settings | None = None,
) -> ShowResult:
    """The answers of a stored run, or with `question` every step to one answer."""

def tree_history(
    tree: str | Path,
    *,
    restore: int | None = None,
    who: str | None = None,
    why: str = "",
    settings: Settings | None = None,
) -> TreeVersions:
    """The versions of a tree; an older one is written again where that is asked for."""

def what_if(
    tree: str | Path | Mapping[str, Any] | Any,
    *,
    set: Mapping[str, float] = ...,
    unpin: Sequence[str] = (),
    scenarios: Sequence[str] = (),
    all: bool = False,
    sd: Mapping[str, float] = ...,
    correlation: float = 0.0,
    tornado: bool = False,
    draws: int = 10000,
    seed: int = 0,
    save: str | None = None,
    settings: Settings | None = None,
) -> ScenarioComparison:
    """Other probabilities at some claims of a tree (a `Tree`, its file or its JSON), compared with the tree as it is."""
