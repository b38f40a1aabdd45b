"""Requests about trees of claims: grow, list, show, edit and update them, ask what if, and read their history."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from foretell.operations.requests.asking import ForecastingRequest, ResearchRequest, ShortText, read_share
from foretell.questions.errors import InputError
from foretell.request import OperationRequest, flags, setting

Scaling = Literal["min-max", "softmax"]
GROUNDER_NAMES = "foretell.forecasters.tree.settings:GROUNDERS"
RULE_NAMES = "foretell.forecasters.tree.settings:RULES"
AUTO = "auto"
"""Value of `set` that clears the override of a claim, so that it follows its rule again."""


def read_probability(value: Any) -> float | str:
    """Read a probability, or "auto".

    >>> read_probability("0.3"), read_probability("30%"), read_probability("auto")
    (0.3, 0.3, 'auto')
    """
    if value == AUTO:
        return AUTO
    try:
        return read_share(value)
    except ValueError as error:
        raise ValueError(f"{error}; or {AUTO}") from None


def tree_reference(tree: Any) -> Any:
    """Return the file or name of a tree that is given as text, as a result of another function, or as its JSON.

    Other values, such as a `Tree`, are returned as they are.
    """
    if isinstance(tree, str):
        return Path(tree)
    if isinstance(tree, Path):
        return tree
    if isinstance(tree, Mapping):
        mapping = cast("Mapping[str, Any]", tree)
        file = mapping.get("file") if "nodes" not in mapping else None
        return Path(file) if isinstance(file, str) else tree
    path = getattr(tree, "path", None)
    return path if isinstance(path, Path) else tree


Override = Annotated[
    float | str,
    BeforeValidator(read_probability),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"const": AUTO}]}),
]
TreeFileChoice = Annotated[Path | SkipJsonSchema[Any], BeforeValidator(tree_reference)]
"""A stored tree: its file, its name or the id of its run; in Python also a result that has a file."""
TreeChoice = Annotated[Path | dict[str, Any] | SkipJsonSchema[Any], BeforeValidator(tree_reference)]
"""A tree: stored, or itself as JSON or in Python as a `Tree`."""
_TREE: Any = setting(help="The tree's file, its name in `foretell tree list`, or the id of its run.", argument=True)
_ANY_TREE: Any = setting(
    help="The tree's file, its name in `foretell tree list`, or the id of its run; in Python and JSON also the tree "
    "itself.",
    argument=True,
)
_GROUNDER: Any = setting(
    None, "How the smallest claims (leaves) are estimated (default: search).", metavar="NAME", names=GROUNDER_NAMES,
    group="tree",
)  # fmt: skip
_SET: Any = setting({}, "Set a claim to this probability; auto clears an override.", metavar="ID=P|auto")
_MESSAGE: Any = setting(
    "", "Why, for the history.", flag="-m/--message", metavar="TEXT", max_length=500, title="Message"
)
_AUTHOR: Any = setting(
    None, "Who makes the change, for the history (default: the user of this machine).", metavar="NAME",
    max_length=200, interface="api",
)  # fmt: skip
_BASE_VERSION: Any = setting(
    None,
    "The version you looked at. Later changes by others are kept; if they concern the same claims, yours is refused.",
    metavar="VERSION",
    ge=1,
    interface="api",
)
TREE_KEYS: Mapping[str, str] = {
    **ForecastingRequest.SETTING_KEYS,
    "grounder": "options.grounder",
    "rule": "options.rule",
    "trials": "options.trials",
}
"""Field → the setting that it sets, in requests that let models work on a tree."""


class TreeRequest(ResearchRequest):
    """Grow a tree for CLAIM: break it into smaller claims, estimate them, and combine them.

    foretell tree grow "The ECB cuts its deposit rate by 31 March 2027." --closes 2027-03-31 --model openai:NAME

    The tree is stored in the home. --out tree.json copies it; other suffixes write what `foretell tree show` writes.
    """

    SETTING_KEYS: ClassVar[Mapping[str, str]] = {**TREE_KEYS, "leaves": "options.leaves"}
    claim: str = setting(help="A claim that will turn out true or false.", argument=True, min_length=1, max_length=5000)
    grounder: str | None = _GROUNDER
    rule: str | None = setting(
        None, "How smaller claims are combined into the larger one (default: by cases).", metavar="NAME",
        names=RULE_NAMES, group="tree",
    )  # fmt: skip
    leaves: int | None = setting(
        None, "About how many leaves one analysis creates (default: 10).", ge=2, le=100, group="tree"
    )
    trials: int | None = setting(
        None,
        "How often each leaf is estimated independently; the spread gives the answer an error bar (default: 1).",
        ge=1,
        le=100,
        group="tree",
        title="Estimates of each leaf",
    )
    plan: bool = setting(False, "Only show what would be asked and what it would cost.")


class TreeListRequest(OperationRequest):
    """List your trees, most recently changed first: claim, probability and size."""


class TreeShowRequest(OperationRequest):
    """Check the tree in TREE and print every probability, computed from its leaves.

    --out report.html or .md writes a report; tree.svg or .png a picture (with --inputs, a tornado chart); tree.dot,
    .bif or .pl a graph, a Bayes net or a ProbLog program; tree.json the tree; a folder its notebooks with their data.

    .bif and .pl give the same probabilities as the tree. This requires linear links whose weights and intercept are in
    [0, 1] and add up to at most 1; --scaling changes other trees so that they fit. The exit code is 1 if the tree
    cannot be used, 3 if its answer depends on a claim that failed.
    """

    tree: TreeChoice = _ANY_TREE
    inputs: bool = setting(False, "Also show how much the answer depends on each input, and by which paths.")
    scaling: Scaling | None = setting(None, "Scale weights so that they form a Bayes net.")
    bias_sd: float = setting(
        0.0,
        "Standard deviation of errors that repeat in every trial of a leaf; widens the error bar.",
        metavar="SD",
        ge=0,
        le=0.5,
    )


class TreeEditRequest(OperationRequest):
    """Edit the tree in TREE: change numbers, wording and rules; add or remove claims; restore a version.

    foretell tree edit t.json --text P1.2="The bill passes by 30 June." --set P3=0.4 -m "Vote postponed"

    Only the claims above a change are recomputed. Judgements that a model made from the old wording keep their number
    and are marked stale until you run `foretell tree update`. Every version is stored; `foretell tree log` lists them.
    """

    tree: TreeFileChoice = _TREE
    set: Mapping[str, Override] = _SET
    text: Mapping[str, str] = setting({}, "Change the statement of a claim.", metavar="ID=TEXT")
    add: tuple[str, ...] = setting(
        (), "Add a claim under a parent; it gets its weight when the parent is judged again.", metavar="PARENT=TEXT"
    )
    remove: tuple[ShortText, ...] = setting((), "Remove a claim, and the claims below that only it uses.", metavar="ID")
    rule: Mapping[str, str] = setting(
        {},
        "Combine a claim's children by a named rule, a formula such as 'P1=P1.1 AND P1.2' or a weighted sum such as "
        "P1=0.05+0.4*P1.1-0.2*P1.2.",
        metavar="ID=RULE",
    )
    edits: list[dict[str, Any]] | SkipJsonSchema[Path] | None = setting(
        None,
        "A JSON file with a list of edits, as in a scenario of a tree file, which can also move a claim, change its "
        "report or mark it stale; in Python and JSON the list itself.",
        metavar="FILE",
    )
    restore: int | None = setting(None, "Make this version the newest one.", metavar="VERSION", ge=1)
    message: str = _MESSAGE
    plan: bool = setting(False, "Only show what would change and what would become stale.")
    author: str | None = _AUTHOR
    base_version: int | None = _BASE_VERSION

    @model_validator(mode="after")
    def _restore_alone(self) -> Any:
        for name in ("set", "text", "add", "remove", "rule", "edits"):
            if self.restore is not None and self._is_set(name):
                column = flags(name, type(self).model_fields[name])[-1]
                raise InputError("cannot be combined with --restore", column=column, hint="restore first, then edit")
        return self


class TreeUpdateRequest(ResearchRequest):
    """Bring the tree in TREE up to date: research its leaves and judge its rules again.

    foretell tree update t.json P1.2 P3 --trials 5 --model openai:NAME --search brave

    Without CLAIM, it researches the leaves that are stale, failed or new, then lets a model judge every rule that is
    stale or failed, and recomputes the rest. With CLAIM, it updates only these claims and stale judgements above them.
    With several trials, the spread of the leaves gives the answer an error bar. --expand breaks a leaf into smaller
    claims.
    """

    SETTING_KEYS: ClassVar[Mapping[str, str]] = TREE_KEYS
    tree: TreeFileChoice = _TREE
    claims: tuple[ShortText, ...] = setting((), "Ids of the claims.", argument=True, metavar="[CLAIM]...")
    expand: str | None = setting(
        None, "Break this leaf into smaller claims, research them and combine them.", metavar="CLAIM", max_length=200
    )
    research: bool = setting(True, "Research leaves; without, rules are only judged again.")
    trials: int | None = setting(
        None, "How many times to research each leaf, independently (default: 1).", ge=1, le=100
    )
    adaptive: float | None = setting(
        None, "Spend about this much on more trials, where they reduce the uncertainty of the answer most.",
        metavar="DOLLARS", gt=0, le=10_000,
    )  # fmt: skip
    grounder: str | None = _GROUNDER
    rule: str | None = setting(
        None, "Combine by this rule what is broken down or judged again (default: its current rule).",
        metavar="NAME", names=RULE_NAMES, group="tree",
    )  # fmt: skip
    message: str = _MESSAGE
    plan: bool = setting(False, "Only show what would be done and what it would cost.")
    author: str | None = _AUTHOR
    base_version: int | None = _BASE_VERSION
    # The tree contains these, so only programs need to set them.
    closes: str | None = setting(
        None, "When the answer will be known.", metavar="DATE", max_length=40, interface="api", title="Answer known by"
    )
    as_of: str | None = setting(
        None, "Work as if it were that day; nothing later is used.", metavar="DATE", max_length=40, interface="api"
    )
    criteria: str = setting("", "Exact rules for how the claim resolves.", max_length=20_000, interface="api")

    @model_validator(mode="after")
    def _one_kind_of_work(self) -> Any:
        unused: dict[str, str] = {}
        if not self.research:
            unused |= dict.fromkeys(("expand", "trials", "adaptive", "grounder", "search"), "--no-research")
        if self.expand is not None:
            unused |= dict.fromkeys(("claims", "adaptive"), "--expand")
        if self.adaptive is not None:
            unused |= {"trials": "--adaptive"}
        for name, other in unused.items():
            if self._is_set(name):
                column = "CLAIM" if name == "claims" else flags(name, type(self).model_fields[name])[-1]
                raise InputError(f"has no effect with {other}", column=column, hint="leave one of them out")
        return self


class WhatIfRequest(OperationRequest):
    """What if some claims of TREE had other probabilities? Prints old and new values of every claim that changes.

    A claim without children gets the new probability. A claim with children is overridden, regardless of the claims
    below. P1:PA is the assumption in the formula of P1. No model is used: only the claims above are recomputed. Claims
    that a model judged as a whole keep their number and are marked as out of date.
    """

    tree: TreeChoice = _ANY_TREE
    set: Mapping[str, Override] = _SET
    scenarios: tuple[ShortText, ...] = setting(
        (), "A scenario saved in the tree's file; all compares all of them.", flag="--scenario", metavar="NAME|all"
    )
    sd: Mapping[str, Annotated[float, Field(gt=0, le=1)]] = setting(
        {}, "Uncertainty (standard deviation) of an input; also prints the spread of the answer.", metavar="ID=SD"
    )
    tornado: bool = setting(False, "Show the answer with each input at 0 and at 1 (or at ± SD).")
    save: str | None = setting(
        None, "Save the changes in the tree's file as a scenario with this name.", metavar="NAME", min_length=1,
        max_length=80,
    )  # fmt: skip


class TreeLogRequest(OperationRequest):
    """List the versions of the tree in TREE: who changed what, when and why. With OTHER, compare the two trees.

    foretell tree log t.json --diff 2..4 compares two versions claim by claim, --diff 2.. version 2 with the current
    tree, and --diff alone the last change.
    """

    tree: TreeFileChoice = _TREE
    other: TreeFileChoice | None = setting(None, "Another tree to compare it with.", argument=True, metavar="[OTHER]")
    diff: str | None = setting(
        None, "Compare these versions instead.", metavar="A..B", alone="..", pattern=r"^\d*\.\.\d*$", max_length=20
    )

    @model_validator(mode="after")
    def _versions_of_one_tree(self) -> Any:
        if self.other is not None and self.diff is not None:
            raise InputError("compares versions of one tree", column="--diff", hint="leave out OTHER or --diff")
        return self
