"""An agent assembled from a model, tools, search engines and settings, to be used for several questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from foretell.frozen import changed_fields, frozen
from foretell.models.model import Model, ReasoningEffort, Reply
from foretell.models.names import ModelRole
from foretell.questions.errors import InputError
from foretell.questions.field_checks import check_fields

if TYPE_CHECKING:
    from foretell.data.search.own_engine import AnySearch
    from foretell.forecasters.agent.options import AgentOptions
    from foretell.tools.own_tool import AnyTool

ModelAnswer = str | Mapping[str, Any] | Reply
ModelFunction = Callable[[Any], ModelAnswer] | Callable[[Any], Awaitable[ModelAnswer]]
"""A function of the prompt, the messages or the whole `Request`, as its first parameter says. It may be `async`."""
AnyModel = str | ModelFunction | Model
"""A model as "provider:name", a function, or an object with `async complete(request) -> Reply`."""


@frozen(kw_only=False)
class Agent:
    """A model with tools, search engines and settings that answers questions.

    Give it to `ask`, `run`, `grid`, `grow_tree`, `update_tree` or `enter_tournament` as `agent`, or to `backtest` as a
    forecaster. What is given to the function itself takes precedence. Tools and search engines work behind the leakage
    filter: in a backtest, the agent sees only what was published before the date of the question.

    Args:
        model: The model, as "provider:name", or a function or object that answers prompts.
        tools: Functions that the model may call, described by their docstrings and annotations. A parameter `as_of`
            gets the date of the forecast. They return text, data or, in a backtest, `foretell.types.SourceItem` with a
            date. An object with `spec` and `async use(arguments, as_of)` is a tool too.
        search: Search engines: names, functions of a query and a date, or objects with a method `search`.
        models: Other models by role, such as {"filter": "openai:NAME"}; a role without one uses `model`.
        options: How the agent works: its number of steps, its variant, the bounds of its answer. Without them, a
            question is also broken down into smaller ones where that helps.
        effort: How much models should think.
        temperature: The sampling temperature; by default that of the provider.
        trials: How many independent trials to run and combine.
        budget: Hard limit in dollars of a question that is asked, or of a whole run or backtest.
        name: The name in the results of a backtest; by default that of the model.
        set: Other settings of the run by name.

    >>> from foretell.types import AgentOptions
    >>> def careful(prompt: str) -> dict[str, Any]:
    ...     return {"probability": 0.3, "reason": "It rains on one day in three."}
    >>> agent = Agent(careful, options=AgentOptions(steps=4), trials=3)
    >>> agent
    Agent(careful, options=AgentOptions(steps=4), trials=3)

    `dataclasses.replace(agent, trials=1)` is the same agent with another setting.
    """

    model: AnyModel
    _: KW_ONLY
    tools: Sequence[AnyTool] = ()
    search: Sequence[AnySearch] = ()
    models: Mapping[ModelRole, AnyModel] = field(default_factory=dict[ModelRole, AnyModel])
    options: AgentOptions | None = None
    effort: ReasoningEffort | None = None
    temperature: float | None = None
    trials: int | None = None
    budget: float | None = None
    name: str = ""
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        """Raise InputError for values of another type, which would only be noticed when the agent is used."""
        from foretell.forecasters.agent.options import AgentOptions

        for name in ("tools", "search"):
            if not isinstance(getattr(self, name), list | tuple):
                raise InputError("must be a list", column=name)
        for name in ("models", "set"):
            if not isinstance(getattr(self, name), Mapping):
                raise InputError("must be a mapping", column=name)
        if self.options is not None and not isinstance(self.options, AgentOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("must be foretell.types.AgentOptions", column="options")
        if not (isinstance(self.model, str) or callable(self.model) or hasattr(self.model, "complete")):
            hint = 'write "provider:name", or give a function of the prompt'
            raise InputError(f"{self.model!r} is not a model", column="model", hint=hint)
        check_fields(self)

    @property
    def label(self) -> str:
        """The name, or that of the model."""
        return self.name or (self.model if isinstance(self.model, str) else _written(self.model))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a run by name, such as `models.agent`; functions and objects are given by their names."""
        from foretell.data.search.own_engine import engine_name
        from foretell.models.providers.function import model_name
        from foretell.tools.own_tool import tool_name

        chosen: dict[str, Any] = {"models.agent": model_name(self.model)}
        chosen |= {f"models.{role}": model_name(model) for role, model in self.models.items()}
        listed = {"search": list(map(engine_name, self.search)), "tools": list(map(tool_name, self.tools))}
        plain = {"sampling.effort": self.effort, "sampling.temperature": self.temperature}
        plain |= {"trials": self.trials, "budget.run": self.budget}
        chosen |= {name: value for name, value in listed.items() if value}
        chosen |= {name: value for name, value in plain.items() if value is not None}
        if self.options is not None:
            chosen["forecaster"] = "agent"
            chosen |= {f"options.{name}": value for name, value in changed_fields(self.options).items()}
        return {**chosen, **self.set}

    def __repr__(self) -> str:
        shown: list[str] = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value not in (None, "", (), [], {}):
                shown.append(_written(value) if each.name == "model" else f"{each.name}={_written(value)}")
        return f"Agent({', '.join(shown)})"


def _written(value: Any) -> str:
    """Return a value for the text of an agent: functions by name, options without those at their default."""
    if isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_written, value)) + "]"
    if callable(value) or hasattr(value, "complete") or hasattr(value, "search") or hasattr(value, "use"):
        return str(getattr(value, "__name__", type(value).__name__))
    if not is_dataclass(value):
        return repr(value)
    return f"{type(value).__name__}({', '.join(f'{name}={each!r}' for name, each in changed_fields(value).items())})"
