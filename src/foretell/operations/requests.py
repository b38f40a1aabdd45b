"""All requests: every option that a user can give, with its default and one sentence about it.

Only light imports here: the command line loads this file for `--help`. The functions that answer a request are named
in `foretell.operations.table`.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from foretell.operations.request import Request, setting
from foretell.runs.spec import COMBINE_HELP

NO_CHOICE = "none"
"""Written for a model or a search engine where none is wanted although an environment variable names one."""
TREE_FORMATS = ("problog", "bif", "xmlbif", "dot", "mermaid", "markdown", "html", "json", "circuit")
"""Forms in which a tree can be written."""
ShortText = Annotated[str, Field(min_length=1, max_length=500)]
Probability = Annotated[float, Field(ge=0, le=1)]
Clamp = tuple[float, float]
ModelChoice = Annotated[str, Field(max_length=300)] | SkipJsonSchema[Callable[..., Any]]
"""A model as `provider:name`, or in Python a function that answers in its place."""

# ---------------------------------------------------------------- ask, tree: a question and the models that answer it


class _ResearchRequest(Request):
    """What asking a question and growing a tree have in common: when, by whom, how expensive."""

    closes: str | None = setting(None, "When it will be known.", metavar="DATE", max_length=40, title="Known by")
    as_of: str | None = setting(
        None, "Ask as if it were that day: nothing later is seen.", metavar="DATE", max_length=40, title="As of"
    )
    criteria: str = setting(
        "", "How exactly it resolves.", max_length=20_000, title="How exactly it resolves", group="question"
    )
    model: ModelChoice | None = setting(
        None, "provider:name of the model; none: no model is asked.", env="FORETELL_MODEL"
    )
    roles: Mapping[str, str] = setting(
        {}, "Another model for one role, such as filter or summariser.", flag="--role", metavar="ROLE=MODEL",
        group="models", title="Models by role",
    )  # fmt: skip
    search: tuple[ShortText, ...] = setting(
        (), "Search engine, in the order they are asked: brave, exa, tavily, serper, asknews, gdelt, local; none.",
        env="FORETELL_SEARCH", max_length=10, title="Search with",
    )  # fmt: skip
    budget: float | None = setting(
        None, "Hard limit in dollars; a spent budget ends in the belief at that moment.", metavar="DOLLARS",
        gt=0, le=10_000, title="At most, in dollars",
    )  # fmt: skip
    question_budget: float | None = setting(
        None, "Hard limit in dollars for each trial.", metavar="DOLLARS", gt=0, le=10_000, group="models",
        title="At most for each trial, in dollars",
    )  # fmt: skip
    temperature: float | None = setting(None, "Of the models; else their own default.", ge=0, le=2, group="models")
    effort: Literal["none", "low", "medium", "high"] | None = setting(
        None, "How long models that can reason are to do so.", group="models", title="Reasoning effort"
    )
    max_tokens: int | None = setting(None, "Longest reply of a model.", ge=1, group="models", title="Longest reply")
    seed: int = setting(0, "Sent to the model, plus the number of the trial.", group="models")
    strict: bool = setting(
        False, "Refuse a question that opened before a model's knowledge ends, instead of warning.", group="models"
    )

    @field_validator("model")
    @classmethod
    def _no_model(cls, model: Any) -> Any:
        return None if model in ("", NO_CHOICE) else model

    @field_validator("search")
    @classmethod
    def _no_search(cls, search: tuple[str, ...]) -> tuple[str, ...]:
        return () if NO_CHOICE in search else search

    @field_validator("closes", "as_of")
    @classmethod
    def _moment(cls, written: str | None) -> str | None:
        from foretell.questions.as_of import instant

        if written:
            instant(written)
        return written or None

    @model_validator(mode="after")
    def _in_order(self) -> Any:
        from foretell.questions.as_of import instant

        if self.closes and self.as_of and instant(self.closes) <= instant(self.as_of):
            raise ValueError(
                f"{self.closes} is not after the day of asking: --closes, the `closes` date, must be later"
            )
        return self


class AskRequest(_ResearchRequest):
    """A question to be answered with a probability, and who is to answer it."""

    question: str = setting(
        help="The question, in words that anyone could settle.", argument=True, min_length=1, max_length=5000
    )
    options: tuple[ShortText, ...] = setting(
        (), "One of several exclusive outcomes; repeat for each.", flag="--option", max_length=50, group="question",
        title="Outcomes, one per line, if it is not yes or no",
    )  # fmt: skip
    price: float | None = setting(None, "What a market says now.", ge=0, le=1, title="A market says (0 to 1)")
    trials: int = setting(1, "Independent trials to combine.", ge=1, le=50, title="Independent trials")
    combine: str = setting("default", COMBINE_HELP, max_length=1000, title="Combine trials by")
    variant: Literal["full", "nobelief", "zero-shot", "batch"] = setting(
        "full", "Which form of the agent researches.", group="agent"
    )
    steps: int = setting(10, "Replies of the agent at most; at the last one it can only submit.", ge=1, group="agent")
    seconds: float = setting(600.0, "Time at most; the last minute is kept for submitting.", gt=0, group="agent")
    crowd: bool = setting(True, "Tell the agent the market's price, where there is one.", group="agent")
    prior: bool = setting(True, "Tell the agent how often such questions came true before.", group="agent")
    asking: Literal["tools", "schema"] = setting(
        "tools", "schema: for models that cannot call tools.", group="agent", title="How the agent answers"
    )
    clamp: Clamp = setting((0.05, 0.95), "How near to certainty an answer may come.", metavar="LOW HIGH", group="agent")
    bypass: tuple[str, ...] = setting(
        ("dbnomics",), "Sources answered by the series model, without any language model.", group="agent"
    )
    fixed: bool = setting(True, "Obey sources whose steps are laid down.", group="agent")
    concurrency: int = setting(50, "Trials at once.", ge=1, le=2000, group="models")

    @field_validator("options")
    @classmethod
    def _distinct(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(given)) < len(given):
            raise ValueError("an outcome is named twice")
        return given


class TreeRequest(_ResearchRequest):
    """A claim to grow a tree for, and how."""

    claim: str = setting(help="A claim that will turn out true or false.", argument=True, min_length=1, max_length=5000)
    grounder: Literal["search", "agent", "notebook", "deep", "plain", "auto"] = setting(
        "search", "Who judges the leaves.", group="tree"
    )
    rule: Literal["linear", "logic", "vanilla", "average", "random", "noisy-or", "inhibited-noisy-or"] = setting(
        "linear", "How children are joined into their parent.", group="tree"
    )
    leaves: int = setting(10, "About how many leaves one analysis makes.", ge=2, le=100, group="tree")
    rounds: int = setting(1, "How often leaves are analysed again.", ge=1, le=6, group="tree")
    nodes: int = setting(5000, "Claims in all at most.", ge=3, group="tree")
    most_leaves: int | None = setting(None, "Leaves of one analysis at most.", ge=1, group="tree")
    depth: int | None = setting(None, "Levels of claims at most.", ge=1, group="tree")
    steps: int = setting(5, "Replies of one analysis at most.", ge=1, group="tree")
    at_once: int = setting(20, "Leaves judged at a time.", flag="--concurrency", ge=1, le=1000, group="tree")
    retries: int = setting(3, "How often a leaf that failed is judged again.", ge=0, group="tree")
    deep_model: str | None = setting(
        None, "A model that researches by itself, for the grounders deep and auto.", metavar="MODEL", group="tree"
    )
    correlations: bool = setting(False, "Have a model check which siblings are not independent.", group="tree")
    bayes_net: bool = setting(False, "Ask for weights that are those of a Bayes net.", group="tree")
    scaling: Literal["min-max", "softmax", "clip"] | None = setting(
        None, "Scale weights to those of a Bayes net.", group="tree"
    )
    intercept_limit: float = setting(0.1, "Largest intercept of a linear link.", ge=0, le=1, group="tree")
    clamp: Clamp = setting((0.05, 0.95), "How near to certainty the answer may come.", metavar="LOW HIGH", group="tree")
    shortcut: bool = setting(True, "Of two exclusive outcomes, analyse only the first.", group="tree")
    kernels: int = setting(4, "Notebooks at work at the same time.", ge=1, group="tree")
    unsandboxed: bool = setting(False, "Run notebooks without a sandbox, with all your rights.", group="tree")
    out: Path | None = setting(None, "The tree's file (default: in the home of foretell).", metavar="FILE")


# ---------------------------------------------------------------- run, show, runs, replay


class RunRequest(Request):
    """Many questions, several trials: a run described by its spec, started or continued."""

    spec: Path | dict[str, Any] = setting(
        help="A YAML or JSON file, or the same as a mapping: questions, models, search, trials, …", argument=True
    )
    concurrency: int = setting(50, "Cells at once.", ge=1, le=2000)
    where: Literal["auto", "here", "workers", "both"] = setting(
        "auto",
        "Who answers: this process (here), the workers of the shared database (workers), both of them, or workers "
        "wherever a shared database is set (auto).",
    )
    out: Path | None = setting(None, "Also write the tables for scoring into this folder.", metavar="FOLDER")

    @field_validator("spec", mode="before")
    @classmethod
    def _spec_value(cls, given: Any) -> Any:
        return json.loads(given.to_json()) if hasattr(given, "to_json") else given


class ShowRequest(Request):
    """The answers of a run, or one question with every step to its answer."""

    run: str = setting(help="The run's id, or how that begins.", argument=True, min_length=1, max_length=64)
    question: str | None = setting(None, "One question, with every step.", argument=True, max_length=2000)
    limit: int | None = setting(None, "At most so many answers, and so many steps of each trial.", ge=1)


class RunsRequest(Request):
    """The runs on this machine, the newest first."""

    limit: int | None = setting(None, "At most so many runs.", ge=1)
    offset: int = setting(0, "Leave out so many from the start.", ge=0)


class ReplayRequest(Request):
    """A run computed again from the journal alone."""

    run: str = setting(help="The run's id, or how that begins.", argument=True, min_length=1, max_length=64)
    dataset: str | None = setting(None, "The questions, where they are not in the spec's own place any more.")


# ---------------------------------------------------------------- what-if


class WhatIfRequest(Request):
    """Other probabilities at some claims of a tree."""

    tree: Path | dict[str, Any] | SkipJsonSchema[Any] = setting(
        help="The tree's file, or the tree itself as JSON (schema foretell/tree/1).", argument=True
    )
    set: Mapping[str, Probability] = setting(
        {}, "Give a claim this probability; a claim with children is pinned.", metavar="ID=P"
    )
    unpin: tuple[ShortText, ...] = setting((), "Let a pinned claim follow its link again.", metavar="ID")
    scenarios: tuple[ShortText, ...] = setting(
        (), "A scenario saved in the tree's file.", flag="--scenario", metavar="NAME"
    )
    all: bool = setting(False, "All scenarios saved in the tree's file, compared.")
    sd: Mapping[str, Annotated[float, Field(gt=0, le=1)]] = setting(
        {}, "How unsure an input's probability is: adds the spread of the answer.", metavar="ID=SD"
    )
    correlation: float = setting(0.0, "Between the errors of the inputs with an SD.", ge=-1, le=1)
    tornado: bool = setting(False, "The answer with every input at 0 and at 1 (or at ± SD).")
    draws: int = setting(10_000, "Draws for the percentiles of the spread.", ge=0, le=1_000_000)
    seed: int = setting(0, "Seed of the draws.")
    save: str | None = setting(
        None, "Keep the changes in the tree's file as a scenario of this name.", metavar="NAME", min_length=1,
        max_length=80,
    )  # fmt: skip

    @field_validator("tree")
    @classmethod
    def _tree_file(cls, given: Any) -> Any:
        return Path(given) if isinstance(given, str) else given


# ---------------------------------------------------------------- score, compare, backtest, submit, arena
