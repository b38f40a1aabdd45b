"""Forecasters on a context from the options of a run: one prompt, or another forecaster handed the same material."""

from collections.abc import Mapping
from typing import Any

from foretell.forecasters.agent.submit import Clamp
from foretell.forecasters.context.adapter import OnContext
from foretell.forecasters.context.contexts import Contexts
from foretell.forecasters.context.prompt import ContextForecaster
from foretell.forecasters.forecaster import Forecaster
from foretell.questions.problems import InputError

PROMPT_OPTIONS = ("view", "elicitation", "attempts", "distance", "clamp", "label")
ADAPTER_OPTIONS = ("view", "tools", "label")


def context_forecaster(options: Mapping[str, Any], contexts: Contexts) -> ContextForecaster:
    """The single-prompt forecaster that options describe; an unknown or wrong option is named."""
    _known(options, PROMPT_OPTIONS, "the context forecaster")
    given = dict(options)
    try:
        if "clamp" in given:
            given["clamp"] = _clamp(given["clamp"])
        return ContextForecaster(contexts=contexts, **given)
    except (TypeError, ValueError) as error:
        raise InputError(f"the options of the context forecaster do not fit: {error}", column="options") from None


def on_context(forecaster: Forecaster, options: Mapping[str, Any], contexts: Contexts) -> OnContext:
    """Another forecaster on the same contexts; an unknown or wrong option is named."""
    _known(options, ADAPTER_OPTIONS, "a forecaster on a context")
    if not isinstance(options.get("tools", True), bool):
        raise InputError(f"tools is {options['tools']!r}, write true or false", column="options")
    return OnContext(forecaster=forecaster, contexts=contexts, **options)


def _known(options: Mapping[str, Any], known: tuple[str, ...], who: str) -> None:
    for name in options:
        if name not in known:
            raise InputError(f"{who} has no option {name!r}", column="options", hint=f"options are {', '.join(known)}")


def _clamp(given: Any) -> Clamp:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(f"clamp is {given!r}, write two numbers such as [0.01, 0.99]")
    low, high = given
    return Clamp(low=float(low), high=float(high))
