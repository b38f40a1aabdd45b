"""All requests: every option that a user can give, with its default and one sentence about it.

Only light imports here: the command line loads this file for `--help`. The functions that answer a request are named
in `foretell.operations.table`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from foretell.data.datasets.question_set import LateText, SetFilter, SetStatus
from foretell.forecasters.agent.settings import AgentOptions
from foretell.models.model import Model, ReasoningEffort, ServiceTier
from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity
from foretell.request import OperationRequest, fields_of, setting
from foretell.runs.spec import COMBINE_HELP, RunState

NO_CHOICE = "none"
"""Written for a model or a search engine where none is wanted although an environment variable names one."""
Scaling = Literal["min-max", "softmax"]
ShortText = Annotated[str, Field(min_length=1, max_length=500)]
Probability = Annotated[float, Field(ge=0, le=1)]
Clamp = tuple[float, float]
ModelChoice = Annotated[str, Field(max_length=300)] | SkipJsonSchema[Callable[..., Any]] | SkipJsonSchema[Model]
"""A model as `provider:name`, or in Python a function that answers in its place."""

METRIC_NAMES, ENGINE_NAMES = "foretell.metrics.metric:METRICS", "foretell.runs.services:SEARCH_ENGINES"
GROUNDER_NAMES, RULE_NAMES = "foretell.forecasters.tree:GROUNDERS", "foretell.forecasters.tree:RULES"

# Ask, tree: a question and the models that answer it.


class _ResearchRequest(OperationRequest):
    """What asking a question and growing a tree have in common: when, by whom, how expensive."""

    closes: str | None = setting(
        None, "When the answer will be known.", metavar="DATE", max_length=40, title="Answer known by"
    )
    as_of: str | None = setting(
        None, "Ask as if it were that day; nothing later is used.", metavar="DATE", max_length=40, title="As of"
    )
    criteria: str = setting(
        "",
        "Exact rules for how the question resolves.",
        max_length=20_000,
        title="How exactly it resolves",
        group="question",
    )
    model: ModelChoice | None = setting(None, "Model, as provider:name; none uses no model.", env="FORETELL_MODEL")
    roles: Mapping[str, str] = setting(
        {}, "Another model for one role, such as filter or summariser.", flag="--role", metavar="ROLE=MODEL",
        group="models", title="Models by role",
    )  # fmt: skip
    search: tuple[ShortText, ...] = setting(
        (), "Search engine; may be repeated. none uses no search.", env="FORETELL_SEARCH", max_length=10,
        title="Search with", names=ENGINE_NAMES,
    )  # fmt: skip
    budget: float | None = setting(
        None, "Hard limit in dollars. When it is spent, the current estimate is the answer.", metavar="DOLLARS",
        gt=0, le=10_000, title="Budget in dollars",
    )  # fmt: skip
    question_budget: float | None = setting(
        None, "Hard limit in dollars for each trial.", metavar="DOLLARS", gt=0, le=10_000, group="models",
        title="Budget for each trial, in dollars",
    )  # fmt: skip
    model_price: str | None = setting(
        None,
        "Price of a model that foretell does not know, in dollars per million input/output tokens, such as 0.5/2. For "
        "other roles: 0.5/2,filter=0.1/0.4.",
        metavar="[ROLE=]IN/OUT,…", max_length=2_000, group="models",
        title="Price of the models, per million input/output tokens",
    )  # fmt: skip
    temperature: float | None = setting(
        None, "Temperature of the models; by default, their own.", ge=0, le=2, group="models"
    )
    effort: ReasoningEffort | None = setting(
        None,
        "How much reasoning models should think; filter and summariser never more than low.",
        group="models",
        title="Reasoning effort",
    )
    max_tokens: int | None = setting(
        None,
        "Longest reply of a model in tokens, including its reasoning.",
        ge=1,
        group="models",
        title="Longest reply",
    )
    tier: ServiceTier | None = setting(
        None,
        "Service tier: flex costs half and may take minutes, batch half and up to a day, priority double, "
        "ultrafast six times.",
        group="models",
    )
    reply_seconds: float | None = setting(
        None, "Longest wait for one reply (default: 300 seconds).", metavar="SECONDS", gt=0, le=86_400, group="models",
        title="Longest wait for one reply, in seconds",
    )  # fmt: skip
    seed: int = setting(0, "Sent to the model, plus the number of the trial.", group="models")
    late_text: LateText = setting(
        "quarantine", "With --as-of, if your own text is newer than that day: refuse it (quarantine), keep it, or "
        "cut those passages.", group="question",
    )  # fmt: skip
    strict: bool = setting(
        False, "Refuse a question from before the model's knowledge cutoff instead of warning.", group="models"
    )

    @field_validator("model")
    @classmethod
    def _no_model(cls, model: Any) -> Any:
        return None if model in ("", NO_CHOICE) else model

    @field_validator("model_price")
    @classmethod
    def _price(cls, written: str | None) -> str | None:
        from foretell.models.prices import read_price

        for part in (written or "").split(","):
            if written:
                read_price(part.rpartition("=")[2].strip())
        return written or None

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


class AskRequest(fields_of(AgentOptions, group="agent"), _ResearchRequest):  # pyright: ignore[reportGeneralTypeIssues, reportUntypedBaseClass]
    """Ask QUESTION: an agent researches it step by step and answers with a probability and reasons.

    foretell ask "Will it snow in Oslo before Christmas?" --closes 2026-12-24 --model openai:NAME --search brave
    """

    question: str = setting(
        help="The question, worded so that anyone could check the answer.", argument=True, min_length=1, max_length=5000
    )
    options: tuple[ShortText, ...] = setting(
        (), "One of several outcomes; repeat for each.", flag="--option", max_length=50, group="question",
        title="Outcomes, one per line, if it is not yes or no",
    )  # fmt: skip
    number: bool = setting(
        False, "The answer is a number; give --low and --high. You get a distribution.", group="question",
        title="The answer is a number",
    )  # fmt: skip
    unit: str = setting("", "Unit of the number.", max_length=80, group="question")
    low: float | None = setting(
        None,
        "The number is almost certainly above this.",
        allow_inf_nan=False,
        group="question",
        title="Lowest value",
    )
    high: float | None = setting(
        None,
        "The number is almost certainly below this.",
        allow_inf_nan=False,
        group="question",
        title="Highest value",
    )
    exclusivity: Exclusivity = setting(
        "exactly one", "How many of several outcomes come true.", group="question",
        title="How many of the outcomes come true",
    )  # fmt: skip
    price: float | None = setting(None, "Current market price, 0 to 1.", ge=0, le=1, title="Market price (0 to 1)")
    network: bool = setting(
        True, "Without a model, look up public markets, weather and price data; --no-network uses nothing "
        "from the internet.", env="FORETELL_NETWORK", group="question",
        title="Without a model, look at public markets and series",
    )  # fmt: skip
    trials: int = setting(1, "How many independent trials to run and combine.", ge=1, le=50, title="Independent trials")
    combine: str = setting("default", COMBINE_HELP, max_length=1000, title="Combine trials by")
    concurrency: int = setting(50, "How many trials run at the same time.", ge=1, le=2000, group="models")

    @field_validator("options")
    @classmethod
    def _distinct(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(given)) < len(given):
            raise ValueError("an outcome is named twice")
        return given

    @model_validator(mode="after")
    def _number_has_a_range(self) -> Any:
        if not self.number:
            if self.unit or self.low is not None or self.high is not None:
                raise ValueError("unit, low and high are for numbers: add --number, the field `number`")
            return self
        if self.low is None or self.high is None or not 0 < self.high - self.low < inf:
            raise ValueError("a number needs a range that almost certainly contains it: --low and a larger --high")
        if self.options or self.price is not None:
            raise ValueError("a number has neither options nor a price")
        return self


_GROUNDER: Any = setting(
    "search", "How the smallest claims (leaves) are estimated.", metavar="NAME", names=GROUNDER_NAMES, group="tree"
)
_DEEP_MODEL: Any = setting(
    None, "A model that researches by itself, for the grounders deep and auto.", metavar="MODEL", group="tree"
)
_RULE: Any = setting(
    "linear", "How smaller claims are combined into the larger one.", metavar="NAME", names=RULE_NAMES, group="tree"
)
_ROUNDS: Any = setting(1, "How many times leaves are broken down further.", ge=1, le=6, group="tree")
_STEPS: Any = setting(5, "Maximum number of model replies per analysis.", ge=1, group="tree")
_LEAF_SECONDS: Any = setting(
    1800.0, "Seconds that one attempt at a leaf may work; a slow model gets more.", gt=0, le=86_400, group="tree",
    metavar="SECONDS",
)  # fmt: skip
_RETRIES: Any = setting(3, "How often to retry a leaf that failed.", ge=0, group="tree")
_KERNELS: Any = setting(4, "How many notebooks run at the same time.", ge=1, group="tree")
_UNSANDBOXED: Any = setting(False, "Run notebooks without a sandbox, with your full permissions.", group="tree")


class TreeRequest(_ResearchRequest):
    """Grow a tree for CLAIM: break it into smaller claims, estimate them, and combine them.

    foretell tree "The ECB cuts its deposit rate by 31 March 2027." --closes 2027-03-31 --model openai:NAME
    """

    claim: str = setting(help="A claim that will turn out true or false.", argument=True, min_length=1, max_length=5000)
    grounder: str = _GROUNDER
    rule: str = _RULE
    leaves: int = setting(10, "About how many leaves one analysis creates.", ge=2, le=100, group="tree")
    rounds: int = _ROUNDS
    nodes: int = setting(5000, "Maximum number of claims.", ge=3, group="tree")
    max_leaves: int | None = setting(None, "About how many leaves the whole tree may have.", ge=1, group="tree")
    depth: int | None = setting(None, "Maximum depth of the tree.", ge=1, group="tree")
    steps: int = _STEPS
    concurrency: int = setting(20, "How many leaves to estimate at the same time.", ge=1, le=1000, group="tree")
    retries: int = _RETRIES
    leaf_seconds: float = _LEAF_SECONDS
    trials: int = setting(
        1, "How often each leaf is estimated independently; the spread gives the answer an error bar.", ge=1, le=100,
        group="tree", title="Estimates of each leaf",
    )  # fmt: skip
    deep_model: str | None = _DEEP_MODEL
    correlations: bool = setting(False, "Have a model check which siblings are not independent.", group="tree")
    bayes_net: bool = setting(False, "Ask the model for weights that form a Bayes net.", group="tree")
    scaling: Scaling | None = setting(None, "Scale weights so that they form a Bayes net.", group="tree")
    intercept_limit: float = setting(
        0.1,
        "Largest intercept of a linear link, apart from its obstacles, unless the model insists on another.",
        ge=0,
        le=1,
        group="tree",
    )
    clamp: Clamp = setting(
        (0.05, 0.95), "Lowest and highest probability of the answer.", metavar="LOW HIGH", group="tree"
    )
    shortcut: bool = setting(True, "If exactly one of two outcomes comes true, analyse only the first.", group="tree")
    kernels: int = _KERNELS
    unsandboxed: bool = _UNSANDBOXED
    out: tuple[Path, ...] = setting(
        (),
        "Also write the tree to a file that ends in .json, .html, .md, .dot, .mmd, .bif or .pl; may be repeated.",
        metavar="FILE",
    )


def tree_path(given: Path) -> Path:
    """A tree's file, which may be named as `foretell tree list` names it."""
    from foretell.runs.settings import load_settings

    stored = load_settings().home / "trees" / f"{given}.json"
    return stored if not given.exists() and stored.is_file() else given


TreePath = Annotated[Path, AfterValidator(tree_path)]


class TreeListRequest(OperationRequest):
    """List your trees, most recently changed first: claim, probability and size."""


class TreeFileRequest(OperationRequest):
    """A tree in a file."""

    file: TreePath = setting(help="The tree's file, or its name in `foretell tree list`.", argument=True)


_SYSTEMATIC_ERROR: Any = setting(
    0.0,
    "Standard deviation of errors that repeat in every trial of a leaf; widens the error bar.",
    metavar="SD",
    ge=0,
    le=0.5,
)


class TreeShowRequest(TreeFileRequest):
    """Print the tree in FILE with every probability, computed from its leaves.

    --out tree.svg or .png draws the tree; with --inputs, a tornado chart of what the answer depends on.
    """

    inputs: bool = setting(False, "Also show how much the answer depends on each input.")
    paths: bool = setting(False, "Also show the path from the top to each leaf, with its total effect.")
    systematic_error: float = _SYSTEMATIC_ERROR


class TreeCheckRequest(TreeFileRequest):
    """Check the tree in FILE: list all errors and remarks.

    The exit code is 1 if it cannot be used, 3 if its answer depends on a claim that failed.
    """


class TreeExportRequest(TreeFileRequest):
    """Write the tree in FILE as a logic program, a Bayes net, a graph or a report.

    problog and bif give the same probabilities as the tree. This requires linear links whose weights and
    intercept are in [0, 1] and add up to at most 1. Other trees are refused unless you choose a --scaling, which
    changes numbers.
    """

    to: Literal["problog", "bif", "dot", "mermaid", "markdown", "html", "json"] = setting(help="The format.")
    out: Path | None = setting(None, "File to write to; without it, standard output.", flag="-o/--out", metavar="FILE")
    scaling: Scaling | None = setting(
        None, "For problog and bif: scale weights that are not probabilities, instead of refusing the tree."
    )


class TreeReportRequest(TreeFileRequest):
    """Write a report on the tree in FILE, to read, print and sign: --out report.html, .md or .pdf.

    It contains the answer in one paragraph, how the question resolves, what pushes the answer up and down, its error
    bar, a picture of the tree, every claim with its formula and dated sources, what failed or is stale, models, cost,
    and how to reproduce it. PDF needs Chromium on this machine; otherwise print the HTML from your browser.
    """

    systematic_error: float = _SYSTEMATIC_ERROR


class TreeNotebookRequest(TreeFileRequest):
    """List the notebooks behind the leaves of FILE; copy them with their data, or run them again.

    foretell tree notebook t.json --folder notebooks; foretell tree notebook t.json P1.2 --verify

    A notebook is an ordinary .ipynb file next to the data it read. It runs in any Jupyter, without a key or a network.
    --verify runs every cell again in a sandbox without a network and compares the output. The exit code is 1 if one
    differs, or if a notebook or its data is missing.
    """

    claims: tuple[ShortText, ...] = setting((), "Only these leaves.", argument=True, metavar="[CLAIM]...")
    folder: Path | None = setting(None, "Copy the notebooks and their data into this folder.", metavar="FOLDER")
    verify: bool = setting(False, "Run every cell again and compare.")
    unsandboxed: bool = _UNSANDBOXED


TREE_FORMATS: tuple[str, ...] = get_args(TreeExportRequest.model_fields["to"].annotation)
"""Forms in which a tree can be written."""

# Run, show, runs, replay.


RunPlace = Literal["auto", "here", "workers", "both"]


class RunRequest(OperationRequest):
    """Run the forecaster described in SPEC (a YAML file) on its questions.

    Every model reply is saved before it is used. You can stop the run at any time and start it again: it continues
    where it stopped and pays for nothing twice. The same SPEC with the same questions is the same run. If you add or
    change questions, a new run starts, unless you use --extend to add them to the existing run.

    With FORETELL_DATABASE_URL set, the work is shared with every `foretell worker`, and this command shows progress.
    """

    spec: Path | dict[str, Any] = setting(
        help="A YAML or JSON file, or the same as a mapping: questions, models, search, trials, …", argument=True
    )
    concurrency: int = setting(50, "How many questions to work on at the same time.", ge=1, le=2000)
    tier: ServiceTier | None = setting(
        None,
        "Service tier, instead of the spec's: flex costs half and may take minutes, batch half and up to a day.",
    )
    where: RunPlace = setting(
        "auto",
        "Who does the work: this process (here), the workers of the shared database (workers), both, or workers "
        "if a shared database is set (auto).",
    )
    extend: bool = setting(False, "Add new questions to the existing run of this spec, instead of starting another.")
    folder: Path | None = setting(
        None, "Also write tables of forecasts and outcomes into this folder.", metavar="FOLDER"
    )

    @field_validator("spec", mode="before")
    @classmethod
    def _spec_value(cls, given: Any) -> Any:
        if isinstance(given, str) and "\x00" in given:
            raise ValueError("the name of a file holds no null character")
        to_json: Any = getattr(given, "to_json", None)
        return given if to_json is None else json.loads(to_json())


_RUN: Any = setting(
    help="Name or id of the run; the beginning of the id is enough.", argument=True, min_length=1, max_length=64
)


class ShowRequest(OperationRequest):
    """Show the answers of RUN, or every step of one QUESTION: searches, estimates, what was held back, and the answer.

    --out report.html, .md or .pdf writes a report you can send or print. For one question it has the answer next to
    market, base rate and outcome, and the evidence with sources; for a run, its scores and every question. PDF needs
    Chromium on this machine.
    """

    run: str = _RUN
    question: str | None = setting(None, "One question, with every step.", argument=True, max_length=2000)
    as_of: str | None = setting(
        None, "For a report on a question that was asked on several dates: which one (default: the newest).",
        metavar="DATE", max_length=64,
    )  # fmt: skip
    limit: int | None = setting(None, "Maximum number of answers, and of steps for each trial.", ge=1)


class RunsRequest(OperationRequest):
    """List your runs, newest first, with progress, cost and score.

    A run has a score as soon as two of its questions have resolved: its Brier index, next to those of the market price
    and the base rate on the same questions.
    """

    find: str = setting("", "Only runs whose name, note, tag, model or questions contain this text.", max_length=200)
    tag: tuple[ShortText, ...] = setting((), "Only runs with this tag; may be repeated.")
    state: RunState | None = setting(None, "Only runs in this state.")
    archived: bool = setting(False, "Include archived runs.")
    limit: int | None = setting(None, "Maximum number of runs.", ge=1)
    offset: int = setting(0, "Skip this many.", ge=0)


class RunsRenameRequest(OperationRequest):
    """Rename RUN to NAME; without NAME, remove its name."""

    run: str = _RUN
    name: str = setting("", "The new name.", argument=True, max_length=80)


class RunsTagRequest(OperationRequest):
    """Add TAGS to RUN, remove tags, write a note, or archive the run."""

    run: str = _RUN
    tags: tuple[ShortText, ...] = setting((), "Tags to add.", argument=True)
    remove: tuple[ShortText, ...] = setting((), "Remove this tag; may be repeated.", metavar="TAG")
    note: str | None = setting(None, "A note; an empty one removes it.", max_length=2000)
    archive: bool = setting(False, "Hide the run from lists.")
    unarchive: bool = setting(False, "Show the run in lists again.")


class RunsRemoveRequest(OperationRequest):
    """Delete RUNS with their answers, steps and scores. Needs `--yes`.

    Paid model replies are kept, so starting the same run again costs nothing. The record of submissions is kept too.
    """

    runs: tuple[ShortText, ...] = setting(
        help="Names or ids; the beginning of an id is enough.", argument=True, min_length=1
    )
    yes: bool = setting(False, "Really delete; without it, the runs are only listed.")


class RunsStopRequest(OperationRequest):
    """Stop RUN early and use what there is.

    Trials in progress answer with their current estimate, marked as stopped early. Trials without an estimate stay
    open; `foretell runs resume` continues them. Works from any terminal, whichever process is running it.
    """

    run: str = _RUN
    pause: bool = setting(False, "Record nothing for trials in progress; `foretell runs resume` continues them.")


class RunsResumeRequest(OperationRequest):
    """Continue RUN: answer what is missing and retry what failed. Nothing is paid for twice.

    Use --set to fix a setting first, such as `--set budget.run=20`, `--set models.agent=openai:gpt-5` or
    `--set prices.openai:own=0.5/2`. The run keeps its questions, name, note and tags. Saved replies that fit the new
    settings are reused. Earlier answers are archived.
    """

    run: str = _RUN
    set: Mapping[str, ShortText] = setting(
        {}, "Change a setting, such as budget.run=20; null removes it.", metavar="NAME=VALUE"
    )
    concurrency: int = setting(50, "How many questions to work on at the same time.", ge=1, le=2000)
    where: RunPlace = setting("auto", "Where to run, as in `foretell run`.")


class RunsResolveRequest(OperationRequest):
    """Look up the outcomes of RUN's questions and score it.

    Outcomes come from the question set of the run, from the question's market, or from a table you give.
    """

    run: str = _RUN
    outcomes: Path | None = setting(
        None, "A table with the columns question, target and outcome (0 or 1).", flag="-o/--outcomes", metavar="FILE"
    )


class ReplayRequest(OperationRequest):
    """Recompute RUN from saved replies, without network or keys, and check that every answer is the same.

    If a reply is missing, you get an error that names the request. Nothing is paid.
    """

    run: str = _RUN
    dataset: str | None = setting(None, "The questions, if the file has moved.")


# What-if.


class WhatIfRequest(OperationRequest):
    """What if some claims of TREE had other probabilities? Prints old and new values of every claim that changes.

    A claim without children gets the new probability. A claim with children is fixed at it, whatever the claims below
    say. P1:PA is the assumption in the formula of P1. No model is used: only the claims above are recomputed. Claims
    that a model judged as a whole keep their number and are marked as out of date.
    """

    tree: Path | dict[str, Any] | SkipJsonSchema[Any] = setting(
        help="The tree's file or name, or the tree itself as JSON (schema foretell/tree/1).", argument=True
    )
    set: Mapping[str, Probability] = setting({}, "Set a claim to this probability.", metavar="ID=P")
    unpin: tuple[ShortText, ...] = setting((), "Let a fixed claim follow its rule again.", metavar="ID")
    scenarios: tuple[ShortText, ...] = setting(
        (), "A scenario saved in the tree's file.", flag="--scenario", metavar="NAME"
    )
    all: bool = setting(False, "Compare all scenarios saved in the tree's file.")
    sd: Mapping[str, Annotated[float, Field(gt=0, le=1)]] = setting(
        {}, "Uncertainty (standard deviation) of an input; also prints the spread of the answer.", metavar="ID=SD"
    )
    tornado: bool = setting(False, "Show the answer with each input at 0 and at 1 (or at ± SD).")
    save: str | None = setting(
        None, "Save the changes in the tree's file as a scenario with this name.", metavar="NAME", min_length=1,
        max_length=80,
    )  # fmt: skip

    @field_validator("tree")
    @classmethod
    def _tree_file(cls, given: Any) -> Any:
        return Path(given) if isinstance(given, str) else given


_TREE: Any = setting(help="The tree's file, or its name in `foretell tree list`.", argument=True)
_WHO: Any = setting(
    None,
    "Who makes the change, for the history (default: the user of this machine).",
    metavar="NAME",
    env="FORETELL_USER",
    max_length=200,
)
_WHY: Any = setting("", "Why, for the history.", metavar="TEXT", max_length=500)
_BASE_VERSION: Any = setting(
    None,
    "The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.",
    metavar="VERSION",
    ge=1,
)
_PLAN: Any = setting(False, "Only show what would be done and what it would cost.")


class TreeEditRequest(OperationRequest):
    """Edit the tree in TREE: change numbers, wording, reports and links; add, move or remove claims.

    foretell tree edit t.json --claim P1.2="The bill passes by 30 June." --set P3=0.4 --why "Vote postponed"

    Only the claims above a change are recomputed. Judgements that a model made from the old wording keep their number
    and are marked stale until you run `foretell tree resynthesize` or use --rejudge. Every version is kept.
    """

    tree: TreePath = _TREE
    set: Mapping[str, Probability] = setting({}, "Set a claim to this probability.", metavar="ID=P")
    unpin: tuple[ShortText, ...] = setting((), "Let a fixed claim follow its rule again.", metavar="ID")
    claim: Mapping[str, str] = setting({}, "Change the statement of a claim.", metavar="ID=TEXT")
    report: Mapping[str, str] = setting({}, "Change the report of a claim.", metavar="ID=TEXT")
    add: tuple[str, ...] = setting(
        (), "Add a claim under a parent; it gets its weight when the parent is judged again.", metavar="PARENT=TEXT"
    )
    remove: tuple[ShortText, ...] = setting((), "Remove a claim, and the claims below that only it uses.", metavar="ID")
    move: Mapping[str, str] = setting({}, "Move a claim under another parent.", metavar="ID=PARENT")
    formula: Mapping[str, str] = setting({}, "Combine a claim's children by this formula.", metavar="ID=FORMULA")
    weights: Mapping[str, str] = setting(
        {}, "Combine a claim's children by a weighted sum, such as P1=0.05+0.4*P1.1-0.2*P1.2.", metavar="ID=SUM"
    )
    stale: Mapping[str, str] = setting({}, "Mark a claim as stale, for this reason.", metavar="ID=WHY")
    edits: Path | None = setting(
        None, "A JSON list of edits, in the form of a scenario's `edits` in a tree file.", metavar="FILE"
    )
    who: str | None = _WHO
    why: str = _WHY
    base_version: int | None = _BASE_VERSION
    plan: bool = setting(False, "Only show what would change and what would become stale.")
    rejudge: bool = setting(False, "Let a model update the judgements that became stale.")
    model: ModelChoice | None = setting(None, "Model that judges, as provider:name.", env="FORETELL_MODEL")
    budget: float | None = setting(None, "Hard limit in dollars.", metavar="DOLLARS", gt=0, le=10_000)
    save_as: Path | None = setting(None, "Write the tree to this file instead of its own.", metavar="FILE")


class _TreeResearchRequest(_ResearchRequest):
    """What the requests that let models work on an existing tree have in common."""

    tree: TreePath = _TREE
    who: str | None = _WHO
    why: str = _WHY
    base_version: int | None = _BASE_VERSION
    plan: bool = _PLAN
    concurrency: int = setting(20, "How many claims to research at the same time.", ge=1, le=1000, group="tree")
    retries: int = _RETRIES
    leaf_seconds: float = _LEAF_SECONDS
    kernels: int = _KERNELS
    unsandboxed: bool = _UNSANDBOXED


class TreeGroundRequest(_TreeResearchRequest):
    """Research leaves of the tree in TREE again: with another grounder or model, or several times.

    foretell tree ground t.json P1.2 P3 --trials 5 --model openai:NAME --search brave

    Without CLAIM, it researches the leaves that are stale, failed or new. With several trials, the spread of the
    leaves gives the answer an error bar. With --allocate, the money goes to the leaves that contribute most to the
    uncertainty. Numbers above are recomputed; claims judged as a whole from the old reports are marked stale.
    """

    claims: tuple[ShortText, ...] = setting((), "Ids of the leaves.", argument=True, metavar="[CLAIM]...")
    grounder: str = _GROUNDER
    deep_model: str | None = _DEEP_MODEL
    trials: int = setting(1, "How many times to research each leaf, independently.", ge=1, le=100)
    keep_trials: bool = setting(False, "Keep earlier trials and add the new ones.")
    allocate: float | None = setting(
        None, "Spend about this much on more trials, where they reduce the uncertainty of the answer most.",
        metavar="DOLLARS", gt=0, le=10_000,
    )  # fmt: skip


class TreeExpandRequest(_TreeResearchRequest):
    """Break one leaf of the tree in TREE into smaller claims, research them, and recompute the claims above.

    foretell tree expand t.json P1.2 --leaves 5 --model openai:NAME --search brave
    """

    claim: str = setting(help="Id of the leaf.", argument=True, min_length=1, max_length=200)
    grounder: str = _GROUNDER
    deep_model: str | None = _DEEP_MODEL
    rule: str = _RULE
    leaves: int = setting(6, "About how many leaves to create.", ge=2, le=100, group="tree")
    rounds: int = _ROUNDS
    nodes: int = setting(200, "Maximum number of new claims.", ge=3, group="tree")
    depth: int | None = setting(None, "Maximum depth of the whole tree.", ge=1, group="tree")
    steps: int = _STEPS


class TreeResynthesizeRequest(_TreeResearchRequest):
    """Let a model update the stale judgements in the tree in TREE, and recompute the rest.

    A model is only asked about claims whose rule was judged from other wording, or that were judged as a whole before
    something below changed. Everything else is arithmetic. Failed judgements are tried again.
    """

    claims: tuple[ShortText, ...] = setting(
        (), "Also these claims, even if nothing changed.", argument=True, metavar="[CLAIM]..."
    )
    rule: str | None = setting(
        None, "Combine by this rule instead of the current one.", metavar="NAME", names=RULE_NAMES, group="tree"
    )


TreeResearchRequest = TreeGroundRequest | TreeExpandRequest | TreeResynthesizeRequest


class TreeDiffRequest(OperationRequest):
    """Compare two versions of the tree in TREE, or TREE with OTHER, claim by claim."""

    tree: TreePath = _TREE
    other: TreePath | None = setting(None, "Another tree's file or name.", argument=True)
    start: int | None = setting(None, "The older version (default: the one before the last).", flag="--from", ge=1)
    end: int | None = setting(None, "The newer version (default: the current tree).", flag="--to", ge=1)


class TreeHistoryRequest(OperationRequest):
    """List the versions of the tree in TREE: who changed what, when and why. With --restore, go back to one."""

    tree: TreePath = _TREE
    restore: int | None = setting(None, "Make this version the newest one.", ge=1)
    who: str | None = _WHO
    why: str = _WHY


# Scoring tables, and what is made of them.


def _columns(value: Any) -> Any:
    """Names given one by one or with commas between them, as a tuple.

    >>> _columns("source, horizon"), _columns(("source,horizon", "kind"))
    (('source', 'horizon'), ('source', 'horizon', 'kind'))
    """
    parts = (value,) if isinstance(value, str) else value
    return tuple(name.strip() for part in parts for name in str(part).split(",") if name.strip())


Columns = Annotated[tuple[str, ...], BeforeValidator(_columns)]
"""Names of columns: repeated, or with commas between them."""

_FORECASTS: Any = setting(
    help="Table of forecasts: forecaster, question, target, p, trial.", flag="-f/--forecasts", metavar="FILE"
)
_OUTCOMES: Any = setting(
    help="Table of outcomes: question, target, outcome, due, resolved_on.", flag="-o/--outcomes", metavar="FILE"
)
_DROP_UNKNOWN: Any = setting(False, "Leave out forecasts whose target is not in the outcomes.")
_FORECASTER: Any = setting(None, "Which forecaster; required if the table has several.", metavar="NAME")
_CLUSTER: Any = setting(
    (),
    "Columns that define clusters, which are resampled as a whole; two columns are crossed.",
    metavar="COLUMNS",
    group="statistics",
)
_BUILT: Any = "Folder for questions.jsonl and outcomes.csv."
CombineTrials = Literal["mean", "logit-mean", "separate"]
Correction = Literal["none", "holm", "bh"]
CalibrationMethod = Literal["default", "platt", "hierarchical", "isotonic", "beta", "shrink", "bayes-shrink", "paper"]


class TablesRequest(OperationRequest):
    """A table of forecasts and a table of outcomes. In Python, each can also be a data frame or a list of rows."""

    forecasts: Any = setting(
        help="Table of forecasts: forecaster, question, target, p.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Any = setting(
        help="Table of outcomes: question, target, outcome, and columns to group by.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    combine: CombineTrials = setting("mean", "How several trials of one forecaster become one forecast.")
    weights: Literal["equal", "question"] = setting(
        "equal", "Without a weight column: count every target once (equal), or every question once (question)."
    )
    drop_unknown: bool = _DROP_UNKNOWN


class ScoringRequest(TablesRequest):
    """Tables or stored runs, what to compute from them, and how to compute intervals.

    Runs and tables can be combined on one leaderboard: `--run autumn --run winter -f mine.csv`.
    """

    forecasts: Any = setting(
        None, "Table of forecasts: forecaster, question, target, p.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Any = setting(
        None,
        "Table of outcomes: question, target, outcome, and columns to group by; runs, and forecasts with a column "
        "outcome, need none.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    runs: tuple[ShortText, ...] = setting(
        (), "A stored run, by name or by the beginning of its id; may be repeated.", flag="--run", metavar="RUN"
    )

    by: Columns = setting((), "Also score each combination of these columns, e.g. source,horizon.", metavar="COLUMNS")
    metric: str = setting("bi", "The metric that ranks the table.", metavar="NAME", names=METRIC_NAMES)
    reference: str | None = setting(
        None, "Compare all others with this forecaster (default: the leader).", metavar="NAME"
    )
    cluster: Columns = _CLUSTER
    missing: float | None = setting(None, "Probability to use for missing forecasts.", metavar="P", ge=0, le=1)
    gamma: float = setting(
        0.0, "Risk aversion of the bettor in return and sharpe, 0 to 1.", ge=0, le=1, group="statistics"
    )
    fee: str = setting("none", "Fee the bettor pays: none, kalshi or a rate.", metavar="FEE", group="statistics")
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100, group="statistics")
    seed: int = setting(0, "Seed of the bootstrap.", group="statistics")
    level: float = setting(0.95, "Confidence level of the intervals.", gt=0, lt=1, group="statistics")
    interval: Literal["percentile", "symmetric"] = setting(
        "percentile",
        "How to compute intervals: percentiles, or symmetric about the estimate (Algorithm 1 of Prophet Arena).",
        group="statistics",
    )


class ScoreRequest(ScoringRequest):
    """Score a table of forecasts against a table of outcomes.

    Tables are CSV, Parquet or JSONL; docs/formats.md describes their columns. Every number comes with an interval from
    a bootstrap that resamples whole clusters, and with the share of targets that were answered. You can group by any
    column of the outcomes, and by `difficulty`: how hard a question was for everyone.

    A table of quantiles (forecaster, question, level, value) against outcomes with a column value is scored by CRPS.

      foretell score -f forecasts.csv -o outcomes.csv --by source,horizon --out board.html

      foretell score --run autumn --run winter -f mine.csv
    """

    metrics: Literal["usual", "all"] = setting(
        "usual",
        "With all: every metric, and the recalibration line, in pages and files; docs/metrics.md explains them.",
    )
    anchors: bool = setting(True, "Add the rows 0.5, base rate and crowd price.")
    title: str | None = setting(None, "Title of the page written by --out FILE.html.")
    costs: Any = setting(None, "Table of forecaster and dollars, to plot score against cost.", metavar="FILE")


class CompareRequest(ScoringRequest):
    """Is one FORECASTER better than another, and is it more than chance?

    Both are scored on the questions that both answered. The interval comes from resampling groups of related
    questions. If you name more than two, each is compared with the last, and p-values are corrected for their number.
    """

    forecasters: tuple[str, ...] = setting(help="The forecasters to compare.", argument=True, metavar="FORECASTER...")
    reference: str | None = setting(None, "Compare with this forecaster (default: the last one named).", metavar="NAME")
    correction: Correction = setting(
        "holm",
        "Correction of p-values for the number of comparisons: holm, bh (Benjamini-Hochberg) or none.",
        group="statistics",
    )


class ErrorsRequest(TablesRequest):
    """Where FORECASTER does well and badly: its worst misses, and its score by source, horizon and other columns."""

    forecaster: str = setting(help="Whose errors to analyse.", argument=True)
    reference: str | None = setting(None, "Also show the difference from this forecaster.", metavar="NAME")
    metric: str = setting("bi", "Metric for the groups.", metavar="NAME", names=METRIC_NAMES)
    cluster: Columns = _CLUSTER


class PlanRequest(OperationRequest):
    """How many questions you need to detect an improvement of a given size.

    Name two forecasters of a past comparison as the pilot, or give the standard deviation yourself:

      foretell plan mine base --gain 1 -f forecasts.csv -o outcomes.csv

      foretell plan --gain 1 --sd 0.12
    """

    pilot: tuple[str, ...] = setting(
        (), "Two forecasters of a past comparison.", argument=True, metavar="[FIRST SECOND]"
    )
    gain: float = setting(help="The improvement to detect, in points of the Brier index.")
    index: float | None = setting(
        None, "The Brier index around which to look (default: the pilot's own, or 70).", lt=100
    )
    sd: float | None = setting(None, "Standard deviation of the paired Brier differences.", gt=0)
    forecasts: Any = setting(None, "Table of the pilot's forecasts.", flag="-f/--forecasts", metavar="FILE")
    outcomes: Any = setting(None, "Table of the pilot's outcomes.", flag="-o/--outcomes", metavar="FILE")
    power: float = setting(0.8, "Probability of detecting the gain.", ge=0.05, le=0.999)
    alpha: float = setting(0.05, "Probability of a false alarm.", ge=0.0001, le=0.5)


# Backtests without models, and calibration.


_ROUNDS_FOLDER: Any = setting(None, "Folder of the pulled rounds (default: your foretell home).", metavar="FOLDER")


SET_HELP = (
    "A file, a data set or a market: FILE, demo, forecastbench:DATE, prophet_arena:FILE, kalshi:SERIES, "
    "polymarket:SLUG, manifold:SLUG, metaculus:TOURNAMENT, the address of a market's page; an unknown name lists them."
)


class QuestionSetFields(OperationRequest):
    """Which part of a question set to use."""

    rounds: tuple[str, ...] = setting(
        (), "Only this round of forecastbench or of a folder of tables; may be repeated.", flag="--round",
        metavar="DATE",
    )  # fmt: skip
    limit: int | None = setting(None, "Only the first N questions.", ge=1)
    closes_after: str | None = setting(
        None, "Only questions that close on this day or later.", metavar="DATE", max_length=40
    )
    closes_before: str | None = setting(None, "Only questions that close by this day.", metavar="DATE", max_length=40)
    category: str = setting("", "Only this category or market tag.", max_length=200)
    late_text: LateText = setting(
        "quarantine",
        "Questions whose own text was written after their date: leave them out (quarantine), ask them as they are "
        "(keep), or remove those passages (cut).",
    )

    def wanted(self) -> SetFilter:
        """The same as a value; a wrong one raises an `InputError` that names it."""
        given = {one.name: getattr(self, one.name) for one in fields(SetFilter) if hasattr(self, one.name)}
        try:
            return SetFilter(**given)
        except ValueError as error:
            raise InputError(str(error), column="--closes-after") from None


class ListingFields(QuestionSetFields):
    """Which part of a question set to use, including markets."""

    status: SetStatus | None = setting(None, "Status of a market's events (default: open).")
    minimum_volume: float = setting(
        0.0,
        "Minimum volume of a market's events, in the market's own unit.",
        flag="--min-volume",
        metavar="VOLUME",
        ge=0,
    )


class BacktestRequest(QuestionSetFields):
    """Test forecasters on DATASET (demo, forecastbench, a file of questions, a folder of tables), each as of its date.

    Writes forecasts.csv, outcomes.csv and failures.csv, the tables that `foretell score` reads:

      foretell backtest demo -F auto -F knn -F prior --folder run

      foretell score -f run/forecasts.csv -o run/outcomes.csv
    """

    dataset: str = setting(help=SET_HELP, argument=True)
    forecasters: tuple[str, ...] = setting(
        ("auto",), "A forecaster, as NAME or NAME:option=value; may be repeated.", flag="-F/--forecaster"
    )
    data: Path | None = _ROUNDS_FOLDER
    series: Path | None = setting(
        None,
        "CSV file or folder of time series; by default, the series your questions name are read from their publisher.",
        metavar="PATH",
    )
    fetch_series: bool = setting(
        False,
        "Also read the series of published rounds from their sources, as known on the due date: FRED's vintages, "
        "Yahoo, DBnomics, ACLED, Wikipedia.",
    )
    folder: Path | None = setting(Path("backtest"), "Folder for the tables.", metavar="FOLDER")


class DemoRequest(OperationRequest):
    """See everything in a minute: a scored backtest, an agent's research, a tree of claims and a month of an arena.

    Needs no key and no network. The backtest is real: 400+ questions about series that ship with statsmodels (El Niño
    sea temperature, CO₂, the US economy, sunspots, …), answered as of their dates. The other parts are marked as
    examples: scripted replies, made-up news, a simulated market. The results are saved apart from your own data;
    `foretell serve --example` opens them.
    """

    folder: Path | None = setting(None, "Also write the tables of the backtest into this folder.", metavar="FOLDER")
    home: Path | None = setting(
        None, "Folder for the example (default: where foretell serve --example looks for it).",
        metavar="FOLDER",
    )  # fmt: skip
    questions: int | None = setting(None, "Only the first N questions of the backtest, for a quick look.", ge=2)
    days: int = setting(30, "Number of days of the arena.", ge=1, le=366)


class _PastRequest(OperationRequest):
    """Resolved forecasts to learn from."""

    forecasts: Path = _FORECASTS
    outcomes: Path = _OUTCOMES
    drop_unknown: bool = _DROP_UNKNOWN


class CalibrateFitRequest(_PastRequest):
    """Fit a calibration rule on forecasts with known outcomes.

    The outcomes need the columns due (when it was asked) and resolved_on (when the answer became known):

      foretell calibrate fit -f f.csv -o o.csv --method hierarchical --out rule.json
    """

    forecaster: str | None = _FORECASTER
    method: CalibrationMethod = setting("default", "The method.")


class CalibrateApplyRequest(OperationRequest):
    """Apply the rule in FITTED to new forecasts.

    It refuses the questions it was fitted on, and questions asked before its last training outcome was known. Without
    --outcomes, the columns it needs (due and, if used, source, kind, price, prior, horizon) are taken from the
    forecasts.

      foretell calibrate apply rule.json -f new.csv -o questions.csv --out calibrated.csv
    """

    fitted: Path = setting(help="File of the fitted rule.", argument=True)
    forecasts: Path = _FORECASTS
    outcomes: Path | None = setting(
        None, "Table with due, source, kind and price of the questions.", flag="-o/--outcomes", metavar="FILE"
    )
    forecaster: str | None = _FORECASTER
    drop_unknown: bool = _DROP_UNKNOWN
    name: str | None = setting(
        None, "Name of the result (default: the forecaster's name plus calibrated, or ensemble)."
    )
    check: Literal["time", "ids"] = setting(
        "time",
        "With ids, the rule accepts questions asked before its training ended: for a check, not for publication.",
    )


class ThresholdRequest(_PastRequest):
    """Choose the probability above which a claim is called True: on validation rows, judged on test rows.

    The outcomes say which is which in a column split (for claims: subtype).

      foretell calibrate threshold -f f.csv -o o.csv --out cut.json
    """

    split: str | None = setting(
        None, "Column of the outcomes with the split (default: split, or else subtype).", metavar="COLUMN"
    )
    validation: str = setting("validation", "The rows on which the threshold is chosen.", metavar="NAME")
    test: str = setting("test", "The rows on which it is judged.", metavar="NAME")
    criterion: Literal["accuracy", "balanced", "f1"] = setting(
        "accuracy", "What to maximise: accuracy, balanced accuracy over true and false claims, or F1."
    )
    combine: Literal["mean", "logit-mean"] = setting("mean", "How several trials become one forecast.")
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100)
    seed: int = setting(0, "Seed of the bootstrap.")


class EnsembleRequest(_PastRequest):
    """Fit weights for combining several forecasters.

    Later rounds decide how far to move away from equal weights; if there is no gain beyond noise, weights stay equal.
    Apply the file like any other rule:

      foretell calibrate ensemble -f past.csv -o outcomes.csv --out rule.json

      foretell calibrate apply rule.json -f new.csv -o questions.csv --out combined.csv
    """

    method: Literal["greedy", "skill", "pooled", "best", "equal"] = setting(
        "greedy", "Add the best step by step, weight by past skill, stack log-odds, take the best so far, or use "
        "equal weights.",
    )  # fmt: skip
    steps: int = setting(20, "Maximum number of steps of the greedy selection.", ge=1)
    replacement: bool = setting(True, "Allow the greedy selection to add a member again, which gives it more weight.")


# Questions and data.


class QuestionsRequest(ListingFields):
    """Check a question set and show its contents: a file, a data set, or a market's current questions.

    foretell questions mine.csv

    foretell questions kalshi:KXFED --closes-before 2027-01-01
    """

    dataset: str = setting(help=SET_HELP, argument=True)
    as_of: str | None = setting(None, "Date for rows without one (default: now).", metavar="DATE")
    topics: bool = setting(False, "Sort every question into one of ten topics.")
    model: str | None = setting(
        None, "Model that assigns topics, as provider:name; without it, the wording decides.", metavar="MODEL"
    )


class FetchRequest(ListingFields):
    """Save a question set to a file as it is now, one JSON line per question: any market, tournament or data set.

    For a market, these are the open questions: yes/no, multiple choice, groups, conditional pairs, numbers and dates.
    Run the file with a spec that says mode: live, then submit the run; or use it later as of this day.

      foretell fetch metaculus:minibench --new

      foretell fetch polymarket --min-volume 100000 --limit 50
    """

    dataset: str = setting(help=SET_HELP, argument=True)
    limit: int | None = setting(200, "Maximum number of questions.", ge=1, le=5000)
    new: bool = setting(False, "Only questions that were not submitted from this machine before.")


class DataPullRequest(OperationRequest):
    """Download ForecastBench rounds with their outcomes so far, or a Prophet Arena data set.

    Intact files are not downloaded again; outcomes are updated.
    """

    source: Literal["forecastbench", "prophet-arena"] = setting(help="The source.", argument=True)
    dataset: str = setting("", "Prophet Arena: the data set.", metavar="SLUG[@VERSION]")
    rounds: tuple[str, ...] = setting((), "Due date of a round; may be repeated.", flag="--round", metavar="DATE")
    latest: bool = setting(False, "The newest round; this is the default if no round is named.")
    prices: bool = setting(True, "Also read each market's price at the due date; published prices are ten days old.")
    url: str | None = setting(None, "Where the files are published.", env="FORETELL_FORECASTBENCH_URL")
    folder: Path | None = _ROUNDS_FOLDER


class PromptsRequest(OperationRequest):
    """Show the prompts for every kind of question, agent variant and role, with estimated tokens.

    Without KIND, a list; with it, the full texts. No model is used.

    foretell prompts number --role agent
    """

    kind: Literal["own", "market", "dates", "wikipedia", "options", "many", "separate", "number"] | None = setting(
        None, "Kind of question.", argument=True, metavar="[KIND]"
    )
    role: (
        Literal["agent", "context", "filter", "summariser", "judge", "analyzer", "grounder", "synthesizer", "auditor"]
        | None
    ) = setting(None, "Only this role.")


class DataListRequest(OperationRequest):
    """List the downloaded rounds, with the number of resolved targets."""

    folder: Path | None = _ROUNDS_FOLDER


class TrancheRequest(OperationRequest):
    """Draw a fixed-seed sample of the resolved questions of ROUND, as the BLF study drew its test sets.

    foretell data build tranche 2025-10-26 --resolved-by 2026-01-05 --folder tranche
    """

    round: str = setting(help="Due date of a pulled round.", argument=True, metavar="ROUND")
    resolved_by: str = setting(help="Ignore outcomes after this day.", metavar="DATE")
    per_source: int | None = setting(20, "Questions per data-set source.", ge=1)
    markets: int | None = setting(None, "Maximum number of market questions (default: all).", ge=0)
    seed: int = setting(42, "Seed of the draw.")
    data: Path | None = _ROUNDS_FOLDER
    folder: Path = setting(Path("tranche"), _BUILT, metavar="FOLDER")


class ClaimsRequest(OperationRequest):
    """Turn CLAIMS, statements that a publication later confirmed or refuted, into questions asked the day before."""

    source: Path = setting(help="One JSON object per line: claim, label, published.", argument=True, metavar="CLAIMS")
    split: Literal["validation", "test"] | None = setting(None, "Only this part of the claims.")
    folder: Path = setting(Path("claims"), _BUILT, metavar="FOLDER")


class OptionTasksRequest(OperationRequest):
    """Turn TASKS, choices with the return on each option, into questions: which one pays most?"""

    source: Path = setting(help="One JSON object per line: options with payoffs.", argument=True, metavar="TASKS")
    folder: Path = setting(Path("options"), _BUILT, metavar="FOLDER")


class FinancialTasksRequest(OperationRequest):
    """Create tasks from price SERIES: long or short, or higher or lower, asked on each --cutoff day.

    SERIES is a CSV file (date, value; or series, date, value), a folder of them, or a series by its name, such as
    yahoo/AAPL. A task needs enough history, a price at both ends and options that pay differently; discarded.csv lists
    every discarded one with its reason.

      foretell data build financial yahoo/AAPL yahoo/MSFT --cutoff 2024-06-01 --folder tasks
    """

    sources: tuple[str, ...] = setting(
        help="A CSV file, a folder of them, or provider/id.", argument=True, metavar="SERIES...", min_length=1
    )
    kind: Literal["long-short", "higher-lower"] = setting("long-short", "The options of each task.")
    series: tuple[str, ...] = setting((), "Only this series of the files; may be repeated.", metavar="ID")
    cutoffs: tuple[str, ...] = setting(
        (), "A day on which the question is asked; may be repeated.", flag="--cutoff", metavar="DATE", min_length=1
    )
    horizon: int = setting(365, "Days from the question to its answer.", ge=1)
    history: int = setting(250, "Minimum number of observations before the question.", ge=1)
    folder: Path = setting(Path("financial"), _BUILT, metavar="FOLDER")


class InspectLogRequest(OperationRequest):
    """Turn an Inspect AI LOG (.eval or .json, or a folder of them) into the tables that `foretell score` reads.

    foretell data inspect-log logs/ --folder run; foretell score -f run/forecasts.csv -o run/outcomes.csv
    """

    log: Path = setting(help="A log (.eval or .json), or a folder of them.", argument=True)
    folder: Path = setting(Path("inspect"), "Folder for the tables.", metavar="FOLDER")
    name: str | None = setting(None, "Name of the forecaster (default: the model of each log).", metavar="FORECASTER")


_CORPUS: Any = setting(
    None, "File of the corpus (default: corpus.db in FORETELL_HOME).", env="FORETELL_CORPUS", metavar="FILE"
)


class CorpusImportRequest(OperationRequest):
    """Import files or folders (.txt, .md, .html, .jsonl, .warc, .warc.gz) into the corpus.

    Documents that are already there are not stored twice.
    """

    sources: tuple[Path, ...] = setting(
        help="Files or folders of documents.", argument=True, metavar="SOURCES...", min_length=1
    )
    corpus: Path | None = _CORPUS


class CorpusSearchRequest(OperationRequest):
    """Search the corpus, best matches first."""

    query: str = setting(help="What to look for.", argument=True)
    as_of: str | None = setting(None, "Only documents dated up to the end of this day.", metavar="DATE")
    limit: int = setting(10, "Maximum number of documents.", ge=1, le=100)
    corpus: Path | None = _CORPUS


# Handing forecasts in.

_COMBINE_HELP = "How trials are combined (default: the run's own rule)."


class ForecastBenchTeamFields(OperationRequest):
    """The team, and the content of the ForecastBench file."""

    organization: str = setting("", "ForecastBench: your team, as registered.")
    model: str = setting("", "ForecastBench: the name to show on the leaderboard.")
    model_organization: str = setting("", "ForecastBench: who made the model (default: the organization).")
    file_number: int = setting(1, "ForecastBench: which of your three files this is.", ge=1, le=3)
    round: str | None = setting(None, "ForecastBench: due date, if there are several rounds.", metavar="DATE")
    reasoning: bool = setting(False, "ForecastBench: include the reasons in the file.")
    incomplete: bool = setting(False, "ForecastBench: write the file even if it is too incomplete to be ranked.")
    folder: Path = setting(Path(), "ForecastBench: folder for the file.", metavar="FOLDER")


_DEGRADED = setting(False, "Also use forecasts based on a failure of the model or of all its tools.")


class ExportRequest(ForecastBenchTeamFields):
    """Write RUN as a ForecastBench submission, checked against the round's question set.

    Trials are combined by the run's own rule, or as --combine says. The benchmark only ranks files with at least 95 %
    of the market and 95 % of the data-set forecasts. With less, nothing is written unless you use --incomplete.
    """

    run: str = _RUN
    combine: str | None = setting(None, _COMBINE_HELP)
    degraded: bool = _DEGRADED


_BUCKET = setting(
    None,
    "ForecastBench: your team's upload folder; {round} in it is replaced by the due date.",
    metavar="gs://BUCKET/FOLDER",
    env="FORECASTBENCH_BUCKET",
)


class SubmitRequest(ForecastBenchTeamFields):
    """Submit the forecasts of RUN, or of a FILE of forecasts.

    A forecast that was already submitted is not sent again. Every forecast is recorded in a ledger (foretell ledger)
    before it is sent, and again when the platform accepts it. Look first, then send:

      foretell submit RUN --to metaculus --comment --dry-run

      foretell submit RUN --to metaculus --comment --yes

    You need a key: METACULUS_TOKEN, or ARENA_API_KEY for Prophet Arena. For ForecastBench, a file is written. With
    --bucket and FORECASTBENCH_TOKEN it is uploaded to your team's folder; without them, you upload it.
    """

    source: str = setting(help="Id of a run, or a file of forecasts.", argument=True, metavar="RUN|FILE")
    to: Literal["forecastbench", "metaculus", "prophet-arena"] = setting(help="The platform.")
    degraded: bool = _DEGRADED
    comment: Literal["private", "public"] | None = setting(
        None, "Also send the reasons; on Metaculus as a comment, private by default.", alone="private"
    )
    clip: bool = setting(False, "Change probabilities that the platform does not accept to the nearest allowed value.")
    questions: tuple[str, ...] = setting((), "Only this question; may be repeated.", flag="--question", metavar="ID")
    post: str | None = setting(None, "Metaculus: the post that the run's only question answers.", metavar="POST")
    combine: str | None = setting(None, _COMBINE_HELP)
    resend: bool = setting(False, "Send forecasts again that were already sent.")
    agent: str = setting("", "Prophet Arena: your agent's name (default: your weekly-track agent).")
    window: int | None = setting(None, "Prophet Arena: the round of the event (default: the open one).")
    bucket: str | None = _BUCKET
    dry_run: bool = setting(False, "Print exactly what would be sent, and send nothing.")
    yes: bool = setting(False, "Send without asking.")


class TournamentFields(OperationRequest):
    """What all tournaments have in common: how to forecast, what it may cost, and whether it counts."""

    spec: Path | None = setting(
        None,
        "A run's spec (YAML) that says how to forecast; the questions come from the tournament.",
        metavar="FILE",
    )
    model: str | None = setting(
        None, "Model, as provider:name (default: the spec's, or FORETELL_MODEL).", min_length=1, max_length=300
    )
    search: tuple[ShortText, ...] = setting(
        (), "Search engine; may be repeated (default: the spec's, or FORETELL_SEARCH).", names=ENGINE_NAMES
    )
    trials: int | None = setting(None, "Trials per question (default: the spec's, or 1).", ge=1, le=50)
    budget: float | None = setting(
        None, "Hard limit in dollars for this visit (default: the spec's).", metavar="DOLLARS", gt=0
    )
    question_budget: float | None = setting(
        None, "Hard limit in dollars for one trial of one question (default: the spec's).", metavar="DOLLARS", gt=0
    )
    tournament_budget: float | None = setting(
        None, "Hard limit in dollars for the whole tournament, including earlier visits.", metavar="DOLLARS", gt=0
    )
    model_price: str | None = setting(
        None,
        "Price of a model that foretell does not know, in dollars per million input/output tokens, such as 0.5/2.",
        metavar="IN/OUT",
        max_length=200,
    )
    degraded: bool = setting(False, "Also send forecasts based on a failure of the model or of all its tools.")
    plan: bool = setting(False, "Only show the questions, the cost and the time.")
    dry_run: bool = setting(False, "Forecast, print what would be sent, and send nothing.")
    practice: bool = setting(False, "Use a practice world on this machine: no key, no cost, nothing leaves it.")
    concurrency: int = setting(4, "How many trials run at the same time.", ge=1, le=2000)
    summary: Path | None = setting(
        None, "Append the day's summary to this file, as Markdown.", metavar="FILE", env="GITHUB_STEP_SUMMARY"
    )

    @field_validator("model")
    @classmethod
    def _no_model(cls, model: str | None) -> str | None:
        return None if model in ("", NO_CHOICE) else model


class VisitFields(TournamentFields):
    """For tournaments in which questions open and close: which ones to answer, and when to update them."""

    update_after: float | None = setting(
        None, "Update a forecast after this many days (default: never).", metavar="DAYS", gt=0
    )
    before_close: float | None = setting(
        None, "Update a forecast once more in this many hours before the close.", metavar="HOURS", gt=0
    )
    limit: int | None = setting(
        None, "Maximum number of questions in this visit; those that close first come first.", ge=1
    )


class TournamentRequest(VisitFields):
    """Visit a Metaculus tournament: forecast the open questions you have not answered, and submit them with reasons.

    Run it regularly, for example every 20 minutes from a scheduler. Only one visit runs at a time, answered questions
    are skipped, nothing is paid for or sent twice, even after a crash, and a page shows what was done today.

      foretell tournament metaculus minibench --practice      # no key needed, in a practice world

      foretell tournament metaculus minibench --rehearse      # for real, in the platform's testing area

      foretell tournament metaculus minibench --budget 1 --tournament-budget 50

    Keys: METACULUS_TOKEN, and your model's key. `foretell init bot` writes a repository that does this on GitHub.
    """

    tournament: str = setting(help="Slug or number of the tournament.", argument=True, min_length=1, max_length=80)
    comment: Literal["private", "public"] = setting("private", "Who can read the comment with the reasons.")
    rehearse: bool = setting(False, "Use the platform's testing area instead of the tournament.")


class ForecastBenchRoundRequest(TournamentFields):
    """Take part in a ForecastBench round: download, update values, forecast, check, write the file, upload it.

    Without a model, `stack` answers every question for free, from prices, series and the outcomes of earlier rounds.
    With --model, agents answer too, and both are combined based on earlier rounds. If money or time runs out, the
    stack's answer is used, so the file is always complete. If it is interrupted, start it again and it continues.

      foretell tournament forecastbench --practice            # no key needed, in a practice world

      foretell tournament forecastbench 2026-08-02 --rehearse # a past round as of its day; nothing is sent

      foretell tournament forecastbench --organization "My team" --bucket gs://BUCKET/FOLDER

    A round is open from 00:00 to 23:59:59 UTC on its due date. Uploading needs FORECASTBENCH_TOKEN, an access token
    such as `gcloud auth print-access-token` prints. Without --bucket, you are told where the file is.
    """

    round: str = setting(
        "latest", "Due date of the round, or latest.", argument=True, metavar="[DATE|latest]", max_length=20
    )
    organization: str = setting("", "Your team, as registered.", env="FORECASTBENCH_ORGANIZATION", max_length=200)
    entry: str = setting(
        "", "Name on the leaderboard (default: foretell with its model).", metavar="NAME", max_length=200
    )
    model_organization: str = setting("", "Who made the model (default: the organization).", max_length=200)
    file_number: int = setting(1, "Which of your three files this is.", ge=1, le=3)
    reasoning: bool = setting(False, "Include the reasons in the file.")
    incomplete: bool = setting(False, "Write the file even if it is too incomplete to be ranked.")
    folder: Path | None = setting(None, "Folder for the file (default: the round's own).", metavar="FOLDER")
    bucket: str | None = _BUCKET
    past_rounds: int = setting(26, "How many earlier rounds to learn from; missing ones are downloaded.", ge=0, le=200)
    stop_before: float = setting(
        30.0,
        "Agents stop this many minutes before the round closes, and the file is sent.",
        metavar="MINUTES",
        ge=0,
    )
    rehearse: bool = setting(False, "Answer a past round as of its due date: nothing later is used, nothing is sent.")
    when_open: bool = setting(False, "If no round is open today, exit successfully; for schedulers.")
    overwrite: bool = setting(False, "Replace an uploaded file that this machine did not write.")


class ProphetArenaTournamentRequest(VisitFields):
    """Visit Prophet Arena: forecast the open questions of a track that you have not answered, and submit them.

    The weekly track is a release of about a hundred questions with one deadline, Saturday 23:59 New York time. The live
    track has every event that currently accepts forecasts. You can run it as often as you like: only one visit runs at
    a time, and nothing is paid for or sent twice. Forecasts over the daily quota are sent the next day.

      foretell tournament prophet_arena weekly --practice

      foretell tournament prophet_arena weekly --model openai:NAME --search gdelt --budget 5

      foretell tournament prophet_arena live --agent my-agent --tournament-budget 50 --budget 2

    Keys: ARENA_API_KEY, and your model's key.
    """

    track: Literal["weekly", "live"] = setting("weekly", "weekly or live.", argument=True, metavar="[weekly|live]")
    agent: str = setting("", "Your agent's name (default: your weekly-track agent).", env="ARENA_AGENT", max_length=200)
    reasons: bool = setting(True, "Send the reasons with every forecast.")


class TournamentResultsRequest(OperationRequest):
    """Score your past rounds and tournaments, next to public methods.

    Shows every score with its interval (resampling resolution days and questions), the share answered, and the rows
    crowd price, base rate and 0.5. Outcomes are updated first. For public ForecastBench methods, --methods takes files
    as teams send them, a folder of them, the published archive (forecast_sets.tar.gz), or a table; the default is
    forecast_sets next to the pulled rounds.

      foretell tournament results forecastbench --methods forecast_sets.tar.gz --by source,horizon
    """

    platform: Literal["forecastbench", "metaculus", "prophet_arena"] | None = setting(
        None, "Only this platform.", argument=True, metavar="[PLATFORM]"
    )
    rounds: tuple[str, ...] = setting((), "Only this round or tournament; may be repeated.", flag="--round")
    methods: tuple[Path, ...] = setting(
        (), "Public ForecastBench methods; may be repeated.", metavar="FILE|FOLDER", flag="--methods"
    )
    by: Columns = setting((), "Also score each combination of these columns, e.g. source,horizon.", metavar="COLUMNS")
    reference: str | None = setting(
        None, "Compare all others with this forecaster (default: your newest entry).", metavar="NAME"
    )
    missing: float | None = setting(
        None, "Probability to use for missing forecasts; the official leaderboard uses 0.5.", metavar="P", ge=0, le=1
    )
    draws: int = setting(2000, "Number of bootstrap draws.", ge=100)
    offline: bool = setting(False, "Use only the outcomes on this machine; no network.")


class LedgerRequest(OperationRequest):
    """Print the number and hash of the last entry. Note it elsewhere to be able to prove that nothing was changed."""

    file: Path | None = setting(None, "Another ledger file.", metavar="FILE")


class LedgerVerifyRequest(LedgerRequest):
    """Check every entry; name the first that was changed, removed or moved.

    Entries removed at the end cannot be detected from the ledger alone; for that, pass a head that you noted elsewhere.
    """

    head: str | None = setting(
        None, "A head that you noted; checks that nothing up to it is missing.", metavar="NUMBER:HASH"
    )


class LedgerShowRequest(LedgerRequest):
    """List the entries: what was to be sent, and what happened."""

    platform: str | None = setting(None, "Only this platform.")
    question: str | None = setting(None, "Only questions whose id begins with this.")
    last: int | None = setting(None, "Only the last N entries.", metavar="N", ge=1)


# The live arena.

_ARENA_FILE: Any = setting(Path(), "The arena's file, or its folder.", argument=True, metavar="[ARENA]")


class ArenaRequest(OperationRequest):
    """An arena, by its file."""

    file: Path = _ARENA_FILE


class ArenaCollectRequest(ArenaRequest):
    """Read the platforms' open events, select new ones by the arena's rules, and update those already selected.

    Every rejected event is counted with its reason. You can repeat it: it never takes more events than the
    rules allow for the day.
    """


class ArenaContextRequest(ArenaRequest):
    """For every event that is due, store fresh prices and the sources that all entries will see.

    What could not be stored in time, before the next round or before the event closed, is listed as missed.
    """


class ArenaResolveRequest(ArenaRequest):
    """Look up the outcomes of events that have closed."""


class ArenaStatusRequest(ArenaRequest):
    """Show what is open, done and missed, when the next forecasts are due, and what was spent."""


class ArenaInitRequest(OperationRequest):
    """Write arena.yaml, with every field explained, into the folder PLACE.

    PLACE may also be a file that ends in .yaml. The arena works as it is, without a key: public events from Kalshi,
    forecasters without language models, and the market price as the one to beat. The first line of the file names a
    JSON schema, written next to it, so that your editor can check what you type.
    """

    place: Path = setting(Path(), "A folder, or a file that ends in .yaml.", argument=True, metavar="[PLACE]")
    name: str | None = setting(None, "Name of the arena (default: the name of its folder).")
    force: bool = setting(False, "Overwrite an existing file.")


class _AnsweringRequest(ArenaRequest):
    """How the entries of an arena answer."""

    concurrency: int = setting(50, "How many forecasts to make at the same time.", ge=1, le=2000)
    where: Literal["auto", "here"] = setting(
        "auto", "With a shared database: answer in this process (here) instead of using its workers (auto)."
    )


class ArenaForecastRequest(_AnsweringRequest):
    """Let every entry forecast the events that are ready and that it has not answered yet.

    If FORETELL_DATABASE_URL is set, forecasts by language models are put into a queue for `foretell worker`, and this
    command waits for them.
    """

    entries: tuple[str, ...] = setting((), "Only this entry; may be repeated.", flag="--entry", metavar="NAME")


class ArenaScoreRequest(ArenaRequest):
    """Rank all entries on resolved events, next to the market, the base rate and 0.5."""

    by: Columns = setting((), "Also score by category, platform or lead_time.", metavar="COLUMNS")
    draws: int = setting(1000, "Number of bootstrap draws.", ge=100)
    seed: int = setting(0, "Seed of the bootstrap.")


class ArenaShowRequest(OperationRequest):
    """Show one event: prices, every forecast, and the outcome.

    EVENT is its id, or the end of it: kalshi/KXFED-26DEC or KXFED-26DEC.
    """

    event: str = setting(help="Id of the event, or the end of it.", argument=True)
    file: Path = setting(Path(), "The arena's file or folder.", flag="--arena", metavar="PATH")


class ArenaRunRequest(_AnsweringRequest):
    """Keep an arena going: collect events, forecast them on schedule, look up outcomes. Ctrl-C ends it.

    You can start it several times, also on other machines with a shared database: each step is done only once. You can
    stop it at any time: the next start continues and pays for no reply twice. With --rehearse, every stage is done once
    in a separate arena, named like yours plus "-rehearsal": real events and real answers that do not count.
    """

    poll_interval: float | None = setting(
        None, "Seconds between two checks of what is due.", metavar="SECONDS", ge=0.01
    )
    once: bool = setting(False, "Do what is due now, then exit: for cron.")
    rehearse: bool = setting(False, "Try every stage once, in an arena that does not count.")


class ArenaDemoRequest(OperationRequest):
    """Play a month of an arena in about a minute: no key, no network, made-up events.

    A simulated exchange lists made-up events with the prices of imperfect traders, and a simulated search engine finds
    made-up news about them. Scripted models and forecasters without a model take part. All stages of an arena run in
    simulated time until every event has resolved. Because the world is simulated, its true probabilities are known: one
    row of the leaderboard shows them. It can only be beaten by luck.
    """

    days: int = setting(30, "Days on which new events are selected.", ge=1, le=366)
    events_per_day: int = setting(8, "Events selected per day.", ge=1, le=100)
    seed: int = setting(0, "Another seed makes another world.")
    folder: Path = setting(Path("arena-demo"), "Folder for the leaderboard page.", metavar="FOLDER")
    keep: bool = setting(False, "Also keep runs, journal and arena.yaml there, so that you can explore them.")


# Servers, sites and bots.


class WorkerRequest(OperationRequest):
    """Work on the runs that `foretell run` has queued in the shared database (FORETELL_DATABASE_URL).

    Start as many as you like, on as many machines as you like. If one is killed, the others take over its work and get
    the replies it had received from the journal. Ctrl-C finishes the current work first; press it twice to exit now.
    """

    concurrency: int = setting(50, "How many trials to run at the same time in this worker.", ge=1, le=2000)
    total_concurrency: int | None = setting(
        None, "How many trials to run at the same time in all workers together.", ge=1
    )
    idle: float | None = setting(None, "Exit after this long without work.", metavar="SECONDS", ge=0)
    status: bool = setting(False, "Only show the workers and what is waiting.")
    drop: str | None = setting(None, "Only remove RUN from the queue, including work in progress.", metavar="RUN")


class ServeRequest(OperationRequest):
    """Open foretell in a browser: ask questions, watch runs, explore trees and leaderboards.

    Only this machine can reach it unless you set --host. To spend money or save changes, open the printed link: it
    contains the access token. Everything is also available as JSON, see /openapi.json.
    """

    host: str = setting("127.0.0.1", "Address to listen on. With any other address, every request needs the token.")
    port: int = setting(8400, "Port to listen on; 0 picks a free one.", ge=0, le=65535)
    token: str | None = setting(
        None,
        "Access token for spending money and saving changes; by default, a new one is printed.",
        env="FORETELL_TOKEN",
    )
    open: bool = setting(False, "Open a browser.")
    example: bool = setting(
        False, "Show example data instead of your own; created on first use. Nothing costs money there."
    )
    home: Path | None = setting(None, "With --example: the folder given to foretell demo --home.", metavar="FOLDER")


class SiteRequest(OperationRequest):
    """Write the pages of `foretell serve` into FOLDER as static files.

    Open them from disk or put them on any web server. What-if on trees still works.
    """

    folder: Path = setting(help="Folder for the pages.", argument=True)
    runs: tuple[str, ...] = setting((), "Only this run; may be repeated.", flag="--run")
    trees: tuple[str, ...] = setting((), "Only this tree; may be repeated.", flag="--tree")
    arenas: tuple[str, ...] = setting((), "Only this arena; may be repeated.", flag="--arena")
    max_pages: int = setting(20_000, "Maximum number of pages.", ge=1)


class McpRequest(OperationRequest):
    """Make foretell available to AI assistants over the Model Context Protocol.

    Tools: ask, grow_tree, run, what_if, edit_tree, ground_leaves, expand_leaf, resynthesize_tree, diff_trees,
    tree_history, score, search_as_of, list_runs, list_grids, show_run, replay_run. Spends nothing unless you allow it:

      foretell mcp --allow-spending 2 --model openai:NAME --search brave --files ~/forecasts

    The limit is for all calls of this process together. With --http, every request needs the token in
    FORETELL_MCP_TOKEN; without one, a token is generated and printed.
    """

    allow_spending: float | None = setting(
        None, "Hard limit in dollars for all calls together.", metavar="DOLLARS", ge=0
    )
    models: tuple[str, ...] = setting(
        (),
        "A model that assistants may use, as provider:name, the default one first (default: FORETELL_MODEL).",
        flag="--model",
    )
    search: tuple[str, ...] = setting(
        (), "A search engine that assistants may use (default: FORETELL_SEARCH, or else local)."
    )
    files: tuple[Path, ...] = setting((), "Allow reading tables and trees in this folder.", metavar="FOLDER")
    http: bool = setting(False, "Serve on http://127.0.0.1 instead of standard input and output.")
    port: int = setting(8766, "Port with --http; 0 picks a free one.", ge=0, le=65535)


class InitBotRequest(OperationRequest):
    """Create a bot: a repository that takes part in a tournament by itself, on GitHub.

    It needs two secrets, the platform's and the model's key, and spends no more than you say. For ForecastBench it uses
    no model unless you name one. README.md in the folder explains the rest.

      foretell init bot my-bot --tournament minibench

      foretell init bot my-bot --for forecastbench --organization "My team" --bucket gs://BUCKET/FOLDER
    """

    folder: Path = setting(Path(), "Folder for the bot (default: the current one).", argument=True, metavar="[FOLDER]")
    platform: Literal["metaculus", "forecastbench", "prophet_arena"] = setting(
        "metaculus", "The platform.", flag="--for"
    )
    tournament: str = setting(
        "", "Metaculus tournament by slug or number (default: minibench), or Prophet Arena track (default: weekly)."
    )
    organization: str = setting("", "ForecastBench: your team, as registered.", max_length=200)
    bucket: str | None = setting(None, "ForecastBench: the folder to upload to.", metavar="gs://BUCKET/FOLDER")
    model: str = setting(
        "", "Model, as provider:name, with a known price (default: openrouter:openai/gpt-5-mini; ForecastBench: none)."
    )
    search: tuple[str, ...] = setting(("gdelt",), "Search engine; gdelt needs no key.")
    budget: float = setting(1.0, "Hard limit in dollars for one run.", metavar="DOLLARS", ge=0.01)
    tournament_budget: float = setting(
        50.0, "Hard limit in dollars for the whole tournament.", metavar="DOLLARS", ge=0.01
    )
    interval: int = setting(
        20, "Minutes between two runs; must divide an hour, or be whole hours that divide a day.",
        metavar="MINUTES", ge=5, le=1440,
    )  # fmt: skip
    trials: int = setting(3, "Trials per question.", ge=1, le=20)
    install: str | None = setting(
        None,
        "Where the bot installs foretell from: a git address, or a wheel that is copied into the repository (default: "
        "this installation, packed into a wheel).",
        metavar="ADDRESS|FILE",
    )


class InitRunRequest(OperationRequest):
    """Write a settings file for a run, with every field explained. It works as it is, without a key.

    Its first line names a JSON schema, written next to it, so that your editor can complete and check the file.
    """

    file: Path = setting(Path("run.yaml"), "The file to write.", argument=True, metavar="[FILE]")


class InitGridRequest(OperationRequest):
    """Write a settings file for an experiment (grid), with every field explained.

    It works as it is, without a key. Its first line names a JSON schema, written next to it, for your editor.
    """

    file: Path = setting(Path("grid.yaml"), "The file to write.", argument=True, metavar="[FILE]")


class GridRequest(OperationRequest):
    """Run the experiment in FILE: every combination of settings is one run.

    It shows the price first; --plan does only that. You can stop it at any time and start it again: it continues and
    pays for nothing twice. At the end it shows the effect of each setting. Studies read the same file, such as
    foretell study variance --grid FILE.

      foretell init grid grid.yaml

      foretell grid grid.yaml --plan
    """

    file: Path = setting(help="The grid, a YAML or JSON file.", argument=True)
    plan: bool = setting(False, "Only show what it would cost.")
    budget: float | None = setting(
        None, "Limit in dollars for all runs together, including earlier starts.", metavar="DOLLARS", gt=0
    )
    concurrency: int = setting(50, "How many questions to work on at the same time.", ge=1, le=2000)
    where: Literal["auto", "here", "workers", "both"] = setting(
        "auto", "Who does the work: this process, the workers of the shared database, or both; as in foretell run."
    )
    keep: bool = setting(False, "Save the tables for the web app, in place of earlier ones.")


class GridsRequest(OperationRequest):
    """List your experiments: every combination of settings with its state, score, interval and cost.

    Also on the web page under Runs. `foretell grid FILE` runs one.
    """

    name: str | None = setting(None, "Only the experiment with this name.", argument=True, max_length=200)


class PracticeRequest(OperationRequest):
    """Start a practice world on this machine: no key, no network, no cost.

    It has models, search engines, web pages, Wikipedia, series, markets, deep research, and inboxes that act like
    Metaculus and Prophet Arena. Run one command in it:

      foretell practice -- foretell ask "Will Norges Bank cut its rate before 2027?"

    Or open a shell in it, and leave it with exit:

      foretell practice -- bash

    Without a command, it runs until Ctrl-C and prints the lines to use in other shells. The world is small and made up,
    and its models know nothing: it shows how things work, not how good forecasts are.
    """

    port: int = setting(0, "First of 13 consecutive ports (default: free ones).", metavar="PORT", ge=0, le=65522)
    latency: float = setting(0.0, "Delay of every response.", metavar="SECONDS", ge=0)
    home: Path | None = setting(
        None, "FORETELL_HOME of the practice world (default: a folder next to your runs).", metavar="FOLDER"
    )
    env_file: Path | None = setting(None, "Also write the lines to this file.", metavar="FILE")
    command: tuple[str, ...] = setting((), "A command to run in it.", argument=True, metavar="[COMMAND]...")


# Models.


class ModelsListRequest(OperationRequest):
    """List the known models: prices, knowledge cutoffs and abilities.

    Models whose key is set come first. You can use any other model of a provider by its name, too.
    """

    provider: str | None = setting(None, "Only models of this provider.", metavar="NAME", max_length=40)
    usable: bool = setting(False, "Only models whose key is set.")


class ModelsCheckRequest(OperationRequest):
    """Test MODEL with five short requests: does it answer, call tools, continue after them, follow a schema?

    The result is stored and used by later runs. This costs a few hundred tokens.

      foretell models check compat:qwen3:8b@http://localhost:11434/v1
    """

    model: str = setting(help="Model, as provider:name.", argument=True, min_length=1, max_length=300)
    seconds: float = setting(120.0, "Longest wait for one reply.", gt=0)


class ModelsUpdateRequest(OperationRequest):
    """Install a newer table of models from SOURCE, a file or https address, in the format of known_models.toml.

    Its entries take precedence over those in the package: newer prices and models without a new version.
    """

    source: str = setting(help="A file or an https address.", argument=True, min_length=1, metavar="FILE|URL")


# Outside services, and what is set up here.


class ServicesListRequest(OperationRequest):
    """List the outside services: key, rate limit, last success, last error, and the date of the facts.

    For model providers, see foretell models. All processes with the same FORETELL_HOME share the rate limits;
    FORETELL_PACE changes them, e.g. gdelt=1/10s,wayback/pages=100/min.
    """

    name: str | None = setting(None, "Only this service, with its limits and where they come from.", argument=True)


class ServicesCheckRequest(OperationRequest):
    """Send one to three cheap requests to every service, or only to NAME, with the adapters that a run uses.

    You can paste the table into an issue: it contains no keys. Services without a key are skipped. The exit code is 1
    if a check fails.
    """

    name: str | None = setting(None, "Only this service.", argument=True)
    seconds: float = setting(60.0, "Longest time for one check, including waiting for the rate limit.", gt=0)


class DoctorRequest(OperationRequest):
    """Check your set-up: what works, what is missing, what is wrong, and how to fix it.

    Checks installed extras, API keys (never printed), sandbox, databases, clock, disk and versions. Uses no network
    unless you ask for it. The exit code is 1 if something is wrong.

      foretell doctor --contact you@example.org
    """

    online: bool = setting(False, "Also send one cheap request to every service you set up, and compare clocks.")
    repair: bool = setting(False, "Rebuild damaged databases from what is readable; the damaged files are kept.")
    contact: str | None = setting(
        None,
        "Your e-mail or web address; stored, and sent to services that want to know who is asking.",
        metavar="ADDRESS",
        max_length=200,
    )
