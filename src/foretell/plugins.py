"""The registry: every kind of plug-in by name. A name leads to "module:attribute", loaded when it is first used.

Built-in plug-ins stand in `BUILT_IN`. Another package announces its own in the entry-point group `foretell.<kind>`,
for example `[project.entry-points."foretell.forecasters"]`, and a program registers an object with `register`.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from foretell.questions.errors import InputError

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "forecasters": {
        "always": "foretell.forecasters.base_rates.baselines:ConstantForecaster",
        "crowd": "foretell.forecasters.base_rates.baselines:CrowdForecaster",
        "market": "foretell.forecasters.base_rates.baselines:MarketForecaster",
        "prior": "foretell.forecasters.base_rates.baselines:BaseRateForecaster",
        "crowd-else-prior": "foretell.forecasters.base_rates.baselines:CrowdElseBaseRate",
        "knn": "foretell.forecasters.series.forecasters:SeasonalKnn",
        "linear": "foretell.forecasters.series.forecasters:LinearTrend",
        "hybrid": "foretell.forecasters.series.forecasters:Hybrid",
        "climatology": "foretell.forecasters.series.forecasters:Climatology",
        "walk": "foretell.forecasters.series.forecasters:Walk",
        "auto": "foretell.forecasters.series.forecasters:Auto",
        "outside": "foretell.forecasters.base_rates.outside_view:OutsideView",
        "stack": "foretell.forecasters.stack.stack:Stack",
        "agent": "foretell.forecasters.agent.settings:AgentOptions",
        "context": "foretell.forecasters.prompt.forecaster:PromptForecaster",
        "tree": "foretell.runs.tree_options:TreeOptions",
        "thoughts": "foretell.runs.tree_options:ThoughtOptions",
        "tree-views": "foretell.forecasters.tree.views:ViewsForecaster",
        "tree-file": "foretell.forecasters.tree.stored_trees:stored_trees",
    },
    "synthesis_rules": {
        "linear": "foretell.forecasters.tree.grow.rules:LINEAR",
        "logic": "foretell.forecasters.tree.grow.rules:LOGIC",
        "vanilla": "foretell.forecasters.tree.grow.rules:VANILLA",
        "average": "foretell.forecasters.tree.grow.rules:AVERAGE",
        "random": "foretell.forecasters.tree.grow.rules:RANDOM",
        "noisy-or": "foretell.forecasters.tree.grow.rules:NOISY_OR",
        "inhibited-noisy-or": "foretell.forecasters.tree.grow.rules:INHIBITED",
    },
    "grounders": {
        "search": "foretell.forecasters.tree.grounders.search:SearchGrounder",
        "agent": "foretell.forecasters.tree.grounders.agent:AgentGrounder",
        "notebook": "foretell.forecasters.tree.grounders.notebook:NotebookGrounder",
        "deep": "foretell.forecasters.tree.grounders.deep_research:DeepResearchGrounder",
        "plain": "foretell.forecasters.tree.grounders.plain:PlainGrounder",
        "auto": "foretell.forecasters.tree.grounders.adaptive:AdaptiveGrounder",
    },
    "live_questions": {"arena": "foretell.arena.forecast:ArenaQuestions"},
}
"""Kind → name → "module:attribute"."""
_REGISTERED: dict[tuple[str, str], Any] = {}


@cache
def _announced(kind: str) -> Mapping[str, str]:
    """What other packages announce; a built-in name cannot be taken."""
    return {point.name: point.value for point in entry_points(group=f"foretell.{kind}")}


def places(kind: str) -> dict[str, str]:
    """Name → "module:attribute" of everything of this kind that is installed, built-in ones first."""
    built_in = dict(BUILT_IN.get(kind, {}))
    return built_in | {name: place for name, place in _announced(kind).items() if name not in built_in}


def names(kind: str) -> list[str]:
    """The names of this kind, built-in ones first."""
    return [*places(kind), *(name for other, name in _REGISTERED if other == kind)]


def register(kind: str, name: str, plugin: Any) -> None:
    """Make an object of this program known by name, in this process."""
    if name in places(kind):
        raise InputError(f"the name {name!r} is taken among {kind}", hint="register it under another name")
    _REGISTERED[kind, name] = plugin


def load(kind: str, name: str) -> Any:
    """The plug-in of this name; an unknown name raises an `InputError` that says which there are."""
    if (kind, name) in _REGISTERED:
        return _REGISTERED[kind, name]
    known = places(kind)
    if name not in known:
        near = get_close_matches(name, names(kind), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names(kind)) or 'none'}"
        raise InputError(f"no {kind.removesuffix('s').replace('_', ' ')} is called {name!r}", hint=hint)
    module, attribute = known[name].split(":")
    return getattr(import_module(module), attribute)
