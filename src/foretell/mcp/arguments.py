"""What each tool may be asked for. The JSON schemas that assistants see are made from these."""

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foretell.questions.errors import InputError

Probability = Annotated[float, Field(ge=0, le=1)]
ShortName = Annotated[str, Field(min_length=1, max_length=200)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}", max_length=40)]
DAY_FORMAT = "ISO date such as 2027-03-31, or a moment with its zone"
MAX_PROBLEMS = 5
"""Problems told at once."""


class ToolArguments(BaseModel):
    """Arguments of a tool: nothing else is accepted."""

    model_config = ConfigDict(extra="forbid", strict=False)


class AskArguments(ToolArguments):
    """Of `ask`."""

    question: str = Field(min_length=3, max_length=2_000, description="The question, in words anyone could settle.")
    by: Day | None = Field(None, description=f"When it will be known: {DAY_FORMAT}.")
    as_of: Day | None = Field(None, description=f"Ask as if it were that day; nothing later is seen: {DAY_FORMAT}.")
    options: list[ShortName] = Field(
        default_factory=list, max_length=50, description="Outcomes of which one comes true."
    )
    criteria: str = Field("", max_length=8_000, description="How exactly it is decided.")
    price: Probability | None = Field(None, description="What a market says now.")
    research: Literal["auto", "never", "always"] = Field(
        "auto",
        description="Have a model research it: where the server may spend, never, or always (an error where not).",
    )
    model: str | None = Field(None, description="Which of the server's models to ask.")
    trials: int = Field(1, ge=1, le=10, description="Independent trials to combine.")
    budget: float | None = Field(None, gt=0, description="Dollars for this question, within the server's own limit.")


class TreeArguments(ToolArguments):
    """Of `grow_tree`."""

    claim: str = Field(min_length=3, max_length=2_000, description="A claim that will turn out true or false.")
    by: Day | None = Field(None, description=f"When it will be known: {DAY_FORMAT}.")
    as_of: Day | None = Field(None, description=f"Grow it as if it were that day: {DAY_FORMAT}.")
    criteria: str = Field("", max_length=8_000, description="How exactly it is decided.")
    model: str | None = Field(None, description="Which of the server's models to ask.")
    rule: Literal["linear", "logic", "noisy-or", "inhibited-noisy-or", "average", "vanilla"] = Field(
        "linear", description="How children are joined into their parent."
    )
    grounder: Literal["search", "agent", "plain"] = Field("search", description="Who judges the leaves.")
    leaves: int = Field(10, ge=2, le=40, description="About how many leaves one analysis makes.")
    rounds: int = Field(1, ge=1, le=3, description="How often leaves are taken apart again.")
    budget: float | None = Field(None, gt=0, description="Dollars for this tree, within the server's own limit.")


class WhatIfArguments(ToolArguments):
    """Of `what_if`."""

    tree: dict[str, Any] | None = Field(None, description="A tree as JSON (schema foretell/tree/1).")
    file: str | None = Field(None, max_length=1_000, description="A tree file under the directories on offer.")
    set: dict[str, Probability] = Field(
        default_factory=dict, description='New probabilities by claim id, e.g. {"P1.2": 0.8}. A parent is pinned.'
    )
    unpin: list[ShortName] = Field(
        default_factory=list, max_length=500, description="Claims that follow their link again."
    )
    scenarios: list[ShortName] = Field(default_factory=list, max_length=50, description="Scenarios saved in the tree.")
    sd: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(
        default_factory=dict, description="How unsure inputs are: adds the spread of the answer."
    )
    tornado: bool = Field(False, description="The answer with every input at both ends of its range.")


class ScoreArguments(ToolArguments):
    """Of `score`."""

    forecasts: list[dict[str, Any]] = Field(
        default_factory=list, max_length=20_000, description="Rows of forecaster, question, target, p (trial, due)."
    )
    outcomes: list[dict[str, Any]] = Field(
        default_factory=list, max_length=20_000, description="Rows of question, target, outcome (0, 1 or null), …"
    )
    forecasts_file: str | None = Field(None, max_length=1_000, description="A .csv, .jsonl or .parquet instead.")
    outcomes_file: str | None = Field(None, max_length=1_000, description="Likewise.")
    metric: Literal["bi", "brier", "ms", "log", "ece", "return", "sharpe"] = Field(
        "bi", description="What ranks the board: Brier index, Brier, Metaculus baseline, log score, …"
    )
    by: list[ShortName] = Field(default_factory=list, max_length=4, description="Also score each combination of these.")
    reference: str | None = Field(None, max_length=200, description="Compare all others with this forecaster.")
    trials: Literal["mean", "logit-mean", "separate"] = Field("mean", description="What becomes of several trials.")
    missing: Probability | None = Field(None, description="Put this in where a forecast is missing.")
    draws: int = Field(1_000, ge=100, le=10_000, description="Bootstrap draws.")
    top: int = Field(20, ge=1, le=100, description="Rows shown.")


class SearchArguments(ToolArguments):
    """Of `search_as_of`."""

    query: str = Field(min_length=2, max_length=400, description="A few concrete words.")
    as_of: Day | None = Field(None, description=f"Only what was known by then: {DAY_FORMAT}. Needed unless `live`.")
    live: bool = Field(False, description="Search the present instead, without any fence; must be said.")
    question: str = Field("", max_length=2_000, description="What it is for: its own pages are closed, leaks dropped.")
    engine: str | None = Field(None, description="Which of the server's engines to ask.")
    limit: int = Field(5, ge=1, le=20, description="Results.")
    characters: int = Field(1_000, ge=100, le=6_000, description="Of each text.")


class ListRunsArguments(ToolArguments):
    """Of `list_runs`."""

    limit: int = Field(20, ge=1, le=200, description="Runs shown, the newest first.")


class ShowRunArguments(ToolArguments):
    """Of `show_run`."""

    run: str = Field(min_length=1, max_length=64, description="Its id, or how that begins.")
    question: str | None = Field(None, max_length=500, description="One question, with every step to its answer.")
    limit: int = Field(20, ge=1, le=200, description="Answers, or steps of each trial.")


def read_arguments(kind: type[ToolArguments], arguments: dict[str, Any]) -> Any:
    """The wish, or an `InputError` that names what is wrong."""
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        told = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in found[:MAX_PROBLEMS]]
        raise InputError("; ".join(told), hint=f"arguments are {', '.join(kind.model_fields)}") from None


def schema_of(kind: type[ToolArguments]) -> dict[str, Any]:
    """Its JSON schema, in as few words as it takes: an argument that may be left out need not also be null."""
    made = cast("dict[str, Any]", _simplified(kind.model_json_schema()))
    return {name: part for name, part in made.items() if name != "description"}


def _simplified(value: Any) -> Any:
    if isinstance(value, list):
        return [_simplified(part) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found = cast("dict[str, Any]", value)
    choices = [part for part in found.get("anyOf", ()) if part != {"type": "null"}]
    if len(choices) == 1:
        rest = {name: part for name, part in found.items() if name not in ("anyOf", "default")}
        found = {**choices[0], **rest}
    # A property may be called title; what titles a schema is a text.
    return {name: _simplified(part) for name, part in found.items() if not (name == "title" and isinstance(part, str))}
