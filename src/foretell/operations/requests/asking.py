"""The request to ask a question, and the fields that all requests that use models share."""

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from math import inf
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from foretell.data.datasets.question_set import LateText
from foretell.forecasters.agent.settings import AgentOptions
from foretell.models.model import Model, ReasoningEffort, ServiceTier
from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity
from foretell.request import OperationRequest, fields_of, setting
from foretell.runs.spec import COMBINE_HELP

NO_CHOICE = "none"
"""Value for no model or no search engine, even if an environment variable names one."""
ShortText = Annotated[str, Field(min_length=1, max_length=500)]
ModelChoice = Annotated[str, Field(max_length=300)] | SkipJsonSchema[Callable[..., Any]] | SkipJsonSchema[Model]
"""A model as `provider:name`, or in Python a function."""
ENGINE_NAMES = "foretell.runs.services:SEARCH_ENGINES"


class ResearchRequest(OperationRequest):
    """Fields shared by asking a question and growing a tree: dates, models, search and budgets."""

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
        None, "Hard limit in dollars for the trials of a question together.", metavar="DOLLARS", gt=0, le=10_000,
        group="models", title="Budget for the question, in dollars",
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

        if self.as_of and instant(self.as_of) > datetime.now(UTC):
            raise ValueError(f"{self.as_of} is in the future: --as-of must be a past day")
        if self.closes and self.as_of and instant(self.closes) <= instant(self.as_of):
            raise ValueError(f"{self.closes} is not after the day of asking: --closes must be later")
        return self


class AskRequest(fields_of(AgentOptions, group="agent"), ResearchRequest):  # pyright: ignore[reportGeneralTypeIssues, reportUntypedBaseClass]
    """Ask QUESTION: an agent researches it step by step and answers with a probability and reasons.

    foretell ask "Will it snow in Oslo before Christmas?" --closes 2026-12-24 --model openai:NAME --search brave
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "model": (
            "roles search model_price temperature effort max_tokens tier reply_seconds seed trials combine "
            + " ".join(one.name for one in fields(AgentOptions))
        ),
        "as_of": "late_text",
        "options": "exclusivity",
    }
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
    def _several_options(self) -> Any:
        if self.options and self.price is not None:
            raise InputError("is for a question with the answer yes or no", column="--price", hint="leave it out")
        if not self.network and self.model is not None and not os.environ.get("FORETELL_NETWORK"):
            problem = "has no effect with --model: a model and its search engines decide what they contact"
            raise InputError(problem, column="--no-network", hint="leave one of them out")
        if len(self.options) == 1 and self.exclusivity == "exactly one":
            raise ValueError("one of how many? name at least two outcomes, or ask a question with the answer yes or no")
        return self

    @model_validator(mode="after")
    def _number_has_a_range(self) -> Any:
        if not self.number:
            if self.unit or self.low is not None or self.high is not None:
                raise ValueError("unit, low and high are for numbers: add --number")
            return self
        if self.low is None or self.high is None or not 0 < self.high - self.low < inf:
            raise ValueError("a number needs a range that almost certainly contains it: --low and a larger --high")
        if self.options or self.price is not None:
            raise ValueError("a number has neither options nor a price")
        return self
