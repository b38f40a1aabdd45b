"""The request to ask a question, and the fields that all requests that use models share."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from foretell.models.model import Model, ReasoningEffort
from foretell.plugins import NO_CHOICE
from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity
from foretell.request import OperationRequest, environment_values, flags, setting

ShortText = Annotated[str, Field(min_length=1, max_length=500)]
ModelChoice = Annotated[str, Field(max_length=300)] | SkipJsonSchema[Callable[..., Any]] | SkipJsonSchema[Model]
"""A model as `provider:name`, or in Python a function."""


def _engine_name(engine: Any) -> Any:
    if isinstance(engine, str):
        return engine
    from foretell.data.search.own_engine import engine_name

    return engine_name(engine)


def read_share(value: Any) -> float:
    """Read a probability that is given as a number from 0 to 1 or in percent.

    >>> read_share("62%"), read_share("62.5 %"), read_share(0.62)
    (0.62, 0.625, 0.62)
    """
    text = str(value).strip()
    try:
        p = round(float(text.removesuffix("%")) / 100, 15) if text.endswith("%") else float(text)
    except ValueError:
        p = math.nan
    if not 0 <= p <= 1:
        raise ValueError(f"must be a probability such as 62% or 0.62, not {value}")
    return p


Share = Annotated[
    float,
    BeforeValidator(read_share),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": "%$"}]}),
]
"""A probability: a number from 0 to 1, or text with a percent sign."""
EngineChoice = Annotated[ShortText, BeforeValidator(_engine_name)]
"""A search engine by name, or in Python a function or object."""
ENGINE_NAMES = "foretell.runs.services:SEARCH_ENGINES"


CONFIG: Any = setting(
    None,
    "A run's settings file (YAML) to start from; its questions and mode are not used.",
    metavar="FILE",
)
SET: Any = setting(
    {},
    "Change a setting, named as in a settings file: sampling.temperature=0.2, models.filter=openai:NAME, "
    "options.steps=5; may be repeated. null removes one.",
    metavar="KEY=VALUE",
    group="settings",
    title="Settings, one KEY=VALUE per line",
)
"""The fields `config` and `set`, by which every command that forecasts takes the settings of a run."""


class ForecastingRequest(OperationRequest):
    """Fields shared by all requests that forecast: the settings of a run, and options for the usual ones."""

    SETTING_KEYS: ClassVar[Mapping[str, str]] = {
        "model": "models.agent",
        "search": "search",
        "effort": "sampling.effort",
        "budget": "budget.run",
    }
    """Field → the setting that it sets."""
    model: ModelChoice | None = setting(None, "Model, as provider:name; none uses no model.", env="FORETELL_MODEL")
    search: tuple[EngineChoice, ...] = setting(
        (), "Search engine; may be repeated. none uses no search.", env="FORETELL_SEARCH", max_length=10,
        title="Search with", names=ENGINE_NAMES,
    )  # fmt: skip
    effort: ReasoningEffort | None = setting(
        None,
        "How much reasoning models should think; filter and summariser never more than low.",
        title="Reasoning effort",
    )
    budget: float | None = setting(
        None, "Hard limit in dollars. When it is spent, the current estimate is the answer.", metavar="DOLLARS",
        gt=0, le=10_000, title="Budget in dollars",
    )  # fmt: skip
    config: Path | None = CONFIG
    set: Mapping[str, Any] = SET

    @field_validator("model")
    @classmethod
    def _no_model(cls, model: Any) -> Any:
        return None if model in ("", NO_CHOICE) else model

    @field_validator("search")
    @classmethod
    def _no_search(cls, search: tuple[str, ...]) -> tuple[str, ...]:
        return () if NO_CHOICE in search else search

    @property
    def no_model(self) -> bool:
        """Whether the user chose no model: by the option, or in the settings file if no option names one."""
        usual = environment_values(type(self)).get("model")
        if "model" in self.model_fields_set and (usual is None or self.model != usual):
            return self.model is None
        return _stated(self._config(), "models.agent") == NO_CHOICE

    def _config(self) -> dict[str, Any]:
        from foretell.runs.spec import read_config

        return {} if self.config is None else read_config(self.config)

    @model_validator(mode="after")
    def _set_once(self) -> Any:
        for name, key in self.SETTING_KEYS.items():
            if key in self.set and self._is_set(name):
                flag = flags(name, type(self).model_fields[name])[-1]
                raise InputError(f"{key} is the same as {flag}", column="--set", hint="use one of them")
        return self

    def settings(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the settings of the run: those of the file, changed by the options, changed by `set`.

        Args:
            base: Default settings.
        """
        from foretell.runs.spec import read_changes, with_settings

        config = self._config()
        data = {**(base or {}), **config}
        environment = environment_values(type(self))
        chosen: dict[str, Any] = {}
        for name, key in self.SETTING_KEYS.items():
            value = getattr(self, name)
            # The environment sets defaults for what the file leaves out.
            stated = _stated(config, key)
            if value not in (None, (), "") and not (stated and environment.get(name) == value):
                chosen[key] = _plain_setting(value)
            elif name == "model" and stated and self.no_model:
                chosen[key] = None
        return with_settings(with_settings(data, chosen), read_changes(self.set))


def _stated(config: Mapping[str, Any], key: str) -> Any:
    """Return the value of a setting in a file; None if it is not there."""
    section, _, part = key.partition(".")
    return config.get(section) if not part else (config.get(section) or {}).get(part)


def _plain_setting(value: Any) -> Any:
    """Return a value as in a settings file; a model that is a Python function is given by its name."""
    if isinstance(value, tuple):
        return list(cast("tuple[Any, ...]", value))
    if callable(value) or hasattr(value, "complete"):
        from foretell.models.providers.function import model_name

        return model_name(value)
    return value


class ResearchRequest(ForecastingRequest):
    """Fields shared by asking a question and growing a tree: dates and rules in addition to the settings."""

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

    @field_validator("closes", "as_of")
    @classmethod
    def _valid_time(cls, text: str | None) -> str | None:
        from foretell.questions.as_of import instant

        if text:
            instant(text)
        return text or None

    @model_validator(mode="after")
    def _in_order(self) -> Any:
        from foretell.questions.as_of import instant

        if self.as_of and instant(self.as_of) > datetime.now(UTC):
            raise ValueError(f"{self.as_of} is in the future: --as-of must be a past day")
        if self.closes and self.as_of and instant(self.closes) <= instant(self.as_of):
            raise ValueError(f"{self.closes} is not after the day of asking: --closes must be later")
        return self


class NumberRange(NamedTuple):
    """The range that a number almost certainly lies in."""

    low: float
    high: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.low:g}:{self.high:g} {self.unit}".strip()


def read_range(value: Any) -> Any:
    """Read a range such as "0:100" or "0:100 dollars".

    >>> read_range("-5:40 degrees"), read_range((0, 100))
    (NumberRange(low=-5.0, high=40.0, unit='degrees'), NumberRange(low=0.0, high=100.0, unit=''))
    """
    problem = "is not a range LOW:HIGH, such as 0:100 or '0:100 dollars', with HIGH above LOW"
    if isinstance(value, str):
        numbers, _, unit = value.strip().partition(" ")
        parts = [*numbers.split(":"), unit.strip()]
    else:
        parts = [*value, ""][:3] if isinstance(value, list | tuple) else []
    try:
        low, high = float(parts[0]), float(parts[1])
    except (ValueError, TypeError, IndexError):
        raise ValueError(problem) from None
    if len(parts) != 3 or not 0 < high - low < inf:
        raise ValueError(problem)
    return NumberRange(low, high, str(parts[2])[:80])


class AskRequest(ResearchRequest):
    """Ask QUESTION: an agent researches it step by step and answers with a probability and reasons.

    foretell ask "Will it snow in Oslo before Christmas?" --closes 2026-12-24 --model openai:NAME --search brave
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "model or config or set": "search effort trials sharpen",
        "options": "exclusivity",
        "watch": "once",
    }
    SETTING_KEYS: ClassVar[Mapping[str, str]] = {**ForecastingRequest.SETTING_KEYS, "trials": "trials"}
    question: str = setting(
        "",
        "The question, worded so that anyone could check the answer.",
        argument=True,
        max_length=5000,
    )
    options: tuple[ShortText, ...] = setting(
        (), "One of several outcomes; repeat for each.", flag="--option", max_length=50, group="question",
        title="Outcomes, one per line, if it is not yes or no",
    )  # fmt: skip
    exclusivity: Exclusivity = setting(
        "exactly one", "How many of several outcomes come true.", group="question",
        title="How many of the outcomes come true",
    )  # fmt: skip
    range: Annotated[NumberRange, BeforeValidator(read_range), WithJsonSchema({"type": "string"})] | None = setting(
        None,
        "The answer is a number that almost certainly lies in this range, such as 0:100 or '0:100 dollars'. You get a "
        "distribution.",
        metavar="LOW:HIGH",
        group="question",
        title="Range of the number, if the answer is one",
    )
    price: Share | None = setting(
        None, "Current market price: 62% or 0.62.", metavar="P", title="Market price (62% or 0.62)"
    )
    trials: int | None = setting(
        None, "How many independent trials to run and combine (default: 1).", ge=1, le=50, title="Independent trials"
    )
    sharpen: Literal["propose", "accept"] | None = setting(
        None,
        "Let the model add what the question needs to be resolved, such as a deadline. propose shows the wording; "
        "accept asks it.",
    )
    plan: bool = setting(False, "Only show what it would cost and how long it would take.")
    watch: bool = setting(
        False,
        "Keep the question open: look for news, prices and values, and update the answer when they bear on it, until "
        "you interrupt it. The question may be the id of a watched one; without it, all are watched.",
    )
    once: bool = setting(False, "Look only at what is due now, for schedulers such as cron.")

    @field_validator("options")
    @classmethod
    def _distinct(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(options)) < len(options):
            raise ValueError("an outcome is named twice")
        return options

    @model_validator(mode="after")
    def _one_kind_of_answer(self) -> Any:
        if self.options and self.price is not None:
            raise InputError("is for a question with the answer yes or no", column="--price", hint="leave it out")
        if len(self.options) == 1 and self.exclusivity == "exactly one":
            raise ValueError("name at least two outcomes, or ask a question with the answer yes or no")
        if self.range is not None and (self.options or self.price is not None):
            raise ValueError("a number has neither options nor a price")
        return self

    @model_validator(mode="after")
    def _watched_or_asked(self) -> Any:
        from foretell.standing.settings import watch_changes

        watched, _ = watch_changes(self.set)
        if self.watch:
            self.refuse_set(("as_of", "plan"), "has no effect with --watch")
        elif not self.question:
            raise InputError("is empty", column="QUESTION", hint="write the question in quotes")
        elif watched:
            raise InputError("has no effect without --watch", column=f"--set watch.{next(iter(watched))}")
        if self.watch and (not self.question or self.names_watched):
            unused = [name for name in type(self).model_fields if name not in ("question", "watch", "once", "set")]
            self.refuse_set(unused, "has no effect on a question that is watched already")
            if others := [name for name in watch_changes(self.set)[1]]:
                raise InputError("has no effect on a question that is watched already", column=f"--set {others[0]}")
            if watched and not self.question:
                raise InputError("needs the id of a question", column=f"--set watch.{next(iter(watched))}")
        return self

    @property
    def names_watched(self) -> bool:
        """Whether the question is the id of a watched question: words joined by hyphens, and no sentence."""
        return re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", self.question) is not None

    def settings(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the settings of the run, without the section `watch`."""
        from foretell.standing.settings import watch_changes

        return super(AskRequest, self.model_copy(update={"set": watch_changes(self.set)[1]})).settings(base)

    def watch_section(self) -> dict[str, Any]:
        """Return the section `watch`: that of the file, changed by `set`. Raises `InputError` for a wrong key."""
        from foretell.runs.spec import WATCH, read_changes, read_section_of
        from foretell.standing.settings import read_watch_settings, watch_changes

        stored = {} if self.config is None else read_section_of(self.config, WATCH)
        try:
            read_watch_settings(stored)
        except InputError as error:
            raise error.at(path=self.config) from None
        section = {**stored, **read_changes(watch_changes(self.set)[0])}
        read_watch_settings(section)
        return {name: value for name, value in section.items() if value is not None}
