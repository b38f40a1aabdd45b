"""Every plug-in by name. Built-ins and strangers take the same road: a name leads to "module:attribute"."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from foretell.forecasters.forecaster import Forecaster
from foretell.questions.problems import InputError

FORECASTERS = {
    "always": "foretell.forecasters.baselines:AlwaysP",
    "crowd": "foretell.forecasters.baselines:Crowd",
    "market": "foretell.forecasters.baselines:MarketBaseline",
    "prior": "foretell.forecasters.baselines:EmpiricalPrior",
    "crowd-else-prior": "foretell.forecasters.baselines:CrowdElsePrior",
    "knn": "foretell.forecasters.series.forecasters:SeasonalKnn",
    "linear": "foretell.forecasters.series.forecasters:LinearTrend",
    "hybrid": "foretell.forecasters.series.forecasters:Hybrid",
    "climatology": "foretell.forecasters.series.forecasters:Climatology",
    "walk": "foretell.forecasters.series.forecasters:Walk",
    "auto": "foretell.forecasters.series.forecasters:Auto",
    "outside": "foretell.forecasters.outside.view:OutsideView",
    "stack": "foretell.forecasters.stack.stack:Stack",
    "tree-views": "foretell.forecasters.tree.views:Views",
    "tree-file": "foretell.forecasters.tree.stored:stored_trees",
}
ASKING = {
    "agent": "",
    "tree": "; without a model there are tree-views and tree-file",
    "thoughts": "",
}
"""Those that ask models: a run has roles, keys, a budget and a journal for them, a list of names has not."""
GROUP = "foretell.forecasters"
"""Entry-point group in which other packages announce forecasters."""


@cache
def forecasters() -> dict[str, str]:
    """Name → "module:attribute", the built-in ones first; a stranger cannot take a built-in name."""
    return {point.name: point.value for point in entry_points(group=GROUP)} | FORECASTERS


def build_forecaster(spec: str, resources: Mapping[str, Callable[[], Any]] | None = None) -> Forecaster:
    """A forecaster from "name" or "name:option=value,…"; resources (base rates, …) are made for those that ask.

    >>> build_forecaster("always:p=0.3").name
    'always 0.3'
    """
    name, _, written = spec.partition(":")
    known = forecasters()
    if name in ASKING and name not in known:
        hint = f"write a spec with forecaster: {name}, models and search, and start foretell run SPEC{ASKING[name]}"
        raise InputError(f"the forecaster {name!r} asks a model", hint=hint)
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise InputError(f"no forecaster is called {name!r}", hint=hint)
    module, attribute = known[name].split(":")
    factory = getattr(import_module(module), attribute)
    accepted = inspect.signature(factory).parameters
    options = _options(spec, written, accepted.keys())
    made = {key: make() for key, make in (resources or {}).items() if key in accepted and key not in options}
    given = {key: value for key, value in made.items() if value is not None}
    try:
        return factory(**given, **options)
    except (TypeError, ValueError) as error:
        raise InputError(f"forecaster {spec!r}: {error}") from None


def _options(spec: str, written: str, accepted: Any) -> dict[str, Any]:
    import yaml

    options: dict[str, Any] = {}
    for part in filter(None, written.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key not in accepted:
            hint = f"options are {', '.join(accepted) or 'none'}"
            raise InputError(f"forecaster {spec!r}: cannot use {part!r}", hint=hint)
        options[key] = yaml.safe_load(value)
    return options
