"""An agent assembled from a model, search engines and settings, to be used for several questions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from foretell.forecasters.agent.options import AgentOptions
from foretell.models.model import Model, ReasoningEffort, Reply
from foretell.models.names import ModelRole

ModelAnswer = str | Mapping[str, Any] | Reply
ModelFunction = Callable[[Any], ModelAnswer] | Callable[[Any], Awaitable[ModelAnswer]]
"""A function of the prompt, the messages or the whole `Request`, as its first parameter says. It may be `async`."""
AnyModel = str | ModelFunction | Model
"""A model as "provider:name", a function, or an object with `async complete(request) -> Reply`."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """Model, search engines and settings that answer questions: `foretell.ask(question, agent=agent)`.

    What is given to `ask` itself takes precedence.

    >>> def careful(prompt: str) -> dict[str, Any]:
    ...     return {"probability": 0.3, "reason": "It rains on one day in three."}
    >>> agent = Agent(model=careful, options=AgentOptions(steps=4), trials=3)
    >>> agent.options.steps
    4
    """

    model: AnyModel
    search: Sequence[str] = ()
    """Names of search engines."""
    models: Mapping[ModelRole, AnyModel] = field(default_factory=dict[ModelRole, AnyModel])
    """Other models by role, such as {"filter": "openai:NAME"}; a role without one uses `model`."""
    options: AgentOptions = field(default_factory=AgentOptions)
    """How the agent works: its number of steps, its variant, the bounds of its answer."""
    effort: ReasoningEffort | None = None
    """How much models should think."""
    temperature: float | None = None
    trials: int | None = None
    """How many independent trials to run and combine."""
    budget: float | None = None
    """Hard limit in dollars for each question."""
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Other settings of the run by name."""

    def completing(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a call with what they leave out."""
        from foretell.models.providers.function import model_name

        usual = AgentOptions()
        chosen = {option.name: getattr(self.options, option.name) for option in fields(AgentOptions)}
        changes = {f"options.{name}": value for name, value in chosen.items() if value != getattr(usual, name)}
        changes |= {f"models.{role}": model_name(model) for role, model in self.models.items()}
        changes |= {} if self.temperature is None else {"sampling.temperature": self.temperature}
        own = {name: getattr(self, name) for name in ("model", "search", "effort", "trials", "budget")}
        own = {name: value for name, value in own.items() if value not in (None, ())}
        settings = {**changes, **self.set, **given.get("set", {})}
        return {**own, **given, **({"set": settings} if settings else {})}
