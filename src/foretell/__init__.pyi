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
from foretell.operations.tree import TreeResult as TreeResult
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
    "Snapshot",
    "Target",
    "TreeRequest",
    "TreeResult",
    "WhatIfRequest",
    "ask",
    "backtest",
    "build_forecaster",
    "combine_trials",
    "compare",
    "compare_pair",
    "grow_tree",
    "list_runs",
    "open_benchmark",
    "read_inspect_log",
    "read_table",
    "read_tree",
    "replay",
    "run",
    "score",
    "score_arena",
    "score_table",
    "show",
    "study",
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
