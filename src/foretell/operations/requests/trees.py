"""Requests about trees of claims: grow, show, edit, research and export them, and ask what if."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, field_validator
from pydantic.json_schema import SkipJsonSchema

from foretell.operations.requests.asking import ModelChoice, ResearchRequest, ShortText
from foretell.request import OperationRequest, setting

Scaling = Literal["min-max", "softmax"]
Probability = Annotated[float, Field(ge=0, le=1)]
Clamp = tuple[float, float]
GROUNDER_NAMES = "foretell.forecasters.tree:GROUNDERS"
RULE_NAMES = "foretell.forecasters.tree:RULES"
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


class TreeRequest(ResearchRequest):
    """Grow a tree for CLAIM: break it into smaller claims, estimate them, and combine them.

    foretell tree "The ECB cuts its deposit rate by 31 March 2027." --closes 2027-03-31 --model openai:NAME
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"grounder=deep or grounder=auto": "deep_model"}
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
        "Also write the tree to a file that ends in .json, .html, .md, .dot, .bif or .pl; may be repeated. "
        "The tree itself is stored in the home.",
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

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"to=problog or to=bif": "scaling"}
    to: Literal["problog", "bif", "dot", "markdown", "html", "json"] = setting(help="The format.")
    out: Path | None = setting(None, "File to write to; without it, standard output.", flag="-o/--out", metavar="FILE")
    scaling: Scaling | None = setting(
        None, "For problog and bif: scale weights that are not probabilities, instead of refusing the tree."
    )


class TreeReportRequest(TreeFileRequest):
    """Write a report on the tree in FILE, to read, print and sign: --out report.html or .md.

    It contains the answer in one paragraph, how the question resolves, what pushes the answer up and down, its error
    bar, a picture of the tree, every claim with its formula and dated sources, what failed or is stale, models, cost,
    and how to reproduce it.
    """

    systematic_error: float = _SYSTEMATIC_ERROR


class TreeNotebookRequest(TreeFileRequest):
    """List the notebooks behind the leaves of FILE; copy them with their data, or run them again.

    foretell tree notebook t.json --folder notebooks; foretell tree notebook t.json P1.2 --verify

    A notebook is an ordinary .ipynb file next to the data it read. It runs in any Jupyter, without a key or a network.
    --verify runs every cell again in a sandbox without a network and compares the output. The exit code is 1 if one
    differs, or if a notebook or its data is missing.
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"verify": "unsandboxed"}
    claims: tuple[ShortText, ...] = setting((), "Only these leaves.", argument=True, metavar="[CLAIM]...")
    folder: Path | None = setting(None, "Copy the notebooks and their data into this folder.", metavar="FOLDER")
    verify: bool = setting(False, "Run every cell again and compare.")
    unsandboxed: bool = _UNSANDBOXED


TREE_FORMATS: tuple[str, ...] = get_args(TreeExportRequest.model_fields["to"].annotation)
"""Formats in which a tree can be written."""


class WhatIfRequest(OperationRequest):
    """What if some claims of TREE had other probabilities? Prints old and new values of every claim that changes.

    A claim without children gets the new probability. A claim with children is pinned to it, whatever the claims below
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


class _TreeResearchRequest(ResearchRequest):
    """Fields shared by the requests that let models work on an existing tree."""

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

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"grounder=deep or grounder=auto": "deep_model"}
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

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"grounder=deep or grounder=auto": "deep_model"}
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

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"restore": "who why"}
    tree: TreePath = _TREE
    restore: int | None = setting(None, "Make this version the newest one.", ge=1)
    who: str | None = _WHO
    why: str = _WHY
