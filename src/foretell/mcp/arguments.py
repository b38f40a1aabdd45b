"""Arguments of the tools that have no request of their own yet, and how arguments are read."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from foretell.questions.errors import InputError
from foretell.request import OperationRequest

RequestType = TypeVar("RequestType", bound=OperationRequest)
Probability = Annotated[float, Field(ge=0, le=1)]
ShortName = Annotated[str, Field(min_length=1, max_length=200)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}", max_length=40)]
DAY_FORMAT = "ISO date such as 2027-03-31, or a moment with its zone"
MAX_PROBLEMS = 5
"""Problems listed at once."""


class ScoreArguments(OperationRequest):
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


class SearchArguments(OperationRequest):
    """Of `search_as_of`."""

    query: str = Field(min_length=2, max_length=400, description="A few concrete words.")
    as_of: Day | None = Field(None, description=f"Only what was known by then: {DAY_FORMAT}. Needed unless `live`.")
    live: bool = Field(False, description="Search the present instead, without any fence; must be said.")
    question: str = Field("", max_length=2_000, description="What it is for: its own pages are closed, leaks dropped.")
    engine: str | None = Field(None, description="Which of the server's engines to ask.")
    limit: int = Field(5, ge=1, le=20, description="Results.")
    characters: int = Field(1_000, ge=100, le=6_000, description="Of each text.")


def read_arguments(kind: type[RequestType], arguments: dict[str, Any]) -> RequestType:
    """The request, or an `InputError` that names everything that is wrong."""
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        problems = [
            f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg'].removeprefix('Value error, ')}"
            for one in found[:MAX_PROBLEMS]
        ]
        raise InputError("; ".join(problems), hint=f"arguments are {', '.join(kind.model_fields)}") from None
