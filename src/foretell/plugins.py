"""The plug-in registry: each kind of plug-in by name. A name maps to "module:attribute", loaded on first use.

Built-in plug-ins are listed in `BUILT_IN`. Another package announces its own in the entry-point group
`foretell.<kind>`, for example `[project.entry-points."foretell.forecasters"]`, and a program registers an object with
`register`. docs/plugins.md describes the interface of each kind.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from inspect import Signature, signature
from typing import Any, overload

from foretell.questions.errors import InputError

NO_CHOICE = "none"
"""Name that stands for no model or no search engine."""
BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "forecasters": {
        "constant": "foretell.forecasters.base_rates.baselines:ConstantForecaster",
        "market-price": "foretell.forecasters.base_rates.baselines:MarketPriceForecaster",
        "market": "foretell.forecasters.base_rates.baselines:MarketForecaster",
        "prior": "foretell.forecasters.base_rates.baselines:BaseRateForecaster",
        "market-or-base-rate": "foretell.forecasters.base_rates.baselines:MarketOrBaseRate",
        "knn": "foretell.forecasters.series.forecasters:SeasonalKnn",
        "linear": "foretell.forecasters.series.forecasters:LinearTrend",
        "hybrid": "foretell.forecasters.series.forecasters:Hybrid",
        "climatology": "foretell.forecasters.series.forecasters:Climatology",
        "random-walk": "foretell.forecasters.series.forecasters:Walk",
        "auto": "foretell.forecasters.series.forecasters:Auto",
        "outside-view": "foretell.forecasters.base_rates.outside_view:OutsideView",
        "model_free": "foretell.forecasters.model_free.model_free:ModelFree",
        "agent": "foretell.forecasters.agent.options:AgentOptions",
        "prompt": "foretell.forecasters.prompt.forecaster:PromptForecaster",
        "tree": "foretell.runs.tree_runtime:TreeOptions",
        "thoughts": "foretell.runs.tree_runtime:ThoughtOptions",
        "reason": "foretell.runs.tree_runtime:ReasonOptions",
        "tree-file": "foretell.forecasters.tree.forecaster:stored_trees",
    },
    "models": {
        "openai": "foretell.models.providers.services:OPENAI",
        "anthropic": "foretell.models.providers.services:ANTHROPIC",
        "google": "foretell.models.providers.services:GOOGLE",
        "xai": "foretell.models.providers.services:XAI",
        "deepseek": "foretell.models.providers.services:DEEPSEEK",
        "mistral": "foretell.models.providers.services:MISTRAL",
        "groq": "foretell.models.providers.services:GROQ",
        "moonshot": "foretell.models.providers.services:MOONSHOT",
        "openrouter": "foretell.models.providers.services:OPENROUTER",
        "compat": "foretell.models.providers.services:COMPATIBLE_SERVER",
        "local": "foretell.models.providers.llama_cpp:GGUF_FILE",
        "scripted": "foretell.models.providers.scripted:SCRIPT_FILE",
        "python": "foretell.models.providers.function:PYTHON",
    },
    "search_engines": {
        "brave": "foretell.data.search.web:BraveSearch",
        "exa": "foretell.data.search.web:ExaSearch",
        "perplexity": "foretell.data.search.web:PerplexitySearch",
        "tavily": "foretell.data.search.web:TavilySearch",
        "serper": "foretell.data.search.web:SerperSearch",
        "asknews": "foretell.data.search.news:AskNewsSearch",
        "gdelt": "foretell.data.search.news:GdeltSearch",
        "local": "foretell.data.corpus:CorpusSearch",
    },
    "series": {
        "fred": "foretell.data.series.fred:FredSeries",
        "yahoo": "foretell.data.series.yahoo:YahooSeries",
        "yfinance": "foretell.data.series.yahoo:YahooSeries",
        "dbnomics": "foretell.data.series.dbnomics:DbnomicsSeries",
        "open_meteo": "foretell.data.series.open_meteo:OpenMeteoSeries",
        "acled": "foretell.data.series.acled:AcledSeries",
        "wikipedia": "foretell.data.series.wikipedia:WikipediaSeries",
        "csv": "foretell.data.series.local:OwnSeries",
    },
    "markets": {
        "kalshi": "foretell.data.markets.kalshi:MARKET",
        "manifold": "foretell.data.markets.manifold:MARKET",
        "polymarket": "foretell.data.markets.polymarket:MARKET",
        "metaculus": "foretell.data.markets.metaculus:MARKET",
        "prophet_arena": "foretell.data.markets.prophet_arena:MARKET",
    },
    "datasets": {
        "arena": "foretell.arena.dataset:arena_questions",
        "demo": "foretell.data.datasets.demo:demo",
        "forecastbench": "foretell.data.datasets.forecastbench_download:forecastbench",
        "prophet_arena": "foretell.data.datasets.prophet_arena:prophet_arena",
        "built": "foretell.data.datasets.question_files:built",
        "btf": "foretell.data.datasets.btf:btf",
        "claims": "foretell.data.datasets.analytica:claims",
        "futurex": "foretell.data.datasets.futurex:futurex",
        "kalshibench": "foretell.data.datasets.kalshibench:kalshibench",
        "openforesight": "foretell.data.datasets.openforesight:openforesight",
        "options": "foretell.data.datasets.analytica:options",
        "questions": "foretell.data.datasets.question_files:questions",
        "tables": "foretell.data.datasets.forecastbench_tables:tables",
        "timeseek": "foretell.data.datasets.timeseek:timeseek",
    },
    "synthesis_rules": {
        "analytica-linear": "foretell.forecasters.tree.grow.synthesize:ANALYTICA_LINEAR",
        "logic": "foretell.forecasters.tree.grow.synthesize:LOGIC",
        "product-logic": "foretell.forecasters.tree.grow.synthesize:PRODUCT_LOGIC",
        "vanilla": "foretell.forecasters.tree.grow.synthesize:VANILLA",
        "average": "foretell.forecasters.tree.grow.synthesize:AVERAGE",
        "random": "foretell.forecasters.tree.grow.synthesize:RANDOM",
        "noisy-or": "foretell.forecasters.tree.grow.synthesize:NOISY_OR",
        "inhibited-noisy-or": "foretell.forecasters.tree.grow.synthesize:INHIBITED",
        "cases": "foretell.forecasters.tree.grow.case_rules:CASES",
        "split": "foretell.forecasters.tree.grow.case_rules:SPLIT",
    },
    "grounders": {
        "search": "foretell.forecasters.tree.grounders.search:SearchGrounder",
        "agent": "foretell.forecasters.tree.grounders.search:AgentGrounder",
        "notebook": "foretell.forecasters.tree.grounders.notebook:NotebookGrounder",
        "deep": "foretell.forecasters.tree.grounders.deep_research:DeepResearchGrounder",
        "plain": "foretell.forecasters.tree.grounders.search:PlainGrounder",
        "auto": "foretell.forecasters.tree.grounders.adaptive:AdaptiveGrounder",
    },
    "combiners": {
        "default": "foretell.forecasters.combine.default:DefaultMethod",
        "platt": "foretell.forecasters.combine.calibration:Platt",
        "hierarchical": "foretell.forecasters.combine.calibration:HierarchicalPlatt",
        "isotonic": "foretell.forecasters.combine.calibration:Isotonic",
        "beta": "foretell.forecasters.combine.calibration:Beta",
        "shrink": "foretell.forecasters.combine.shrink:Shrink",
        "bayes-shrink": "foretell.forecasters.combine.shrink:BayesShrink",
        "paper": "foretell.forecasters.combine.shrink:shrink_then_calibrate",
    },
    "studies": {
        "trials": "foretell.studies.trials:study",
        "calibration": "foretell.studies.calibration:study",
        "ensemble": "foretell.studies.ensemble:study",
        "ablation": "foretell.studies.ablation:study",
        "variance": "foretell.studies.variance:study",
        "decisions": "foretell.studies.decisions:study",
        "tree-noise": "foretell.studies.tree_noise:study",
        "trajectories": "foretell.studies.trajectories:study",
        "intervention": "foretell.studies.intervention:study",
        "consistency": "foretell.studies.consistency:study",
        "reasoning": "foretell.studies.reasoning:study",
        "memorization": "foretell.studies.memorization:study",
    },
    "live_questions": {"arena": "foretell.arena.forecast:ArenaQuestions"},
    "logs": {
        "inspect": "foretell.inspect_tasks.logs:read_inspect_log",
        "forecasting-tools": "foretell.forecasting_tools:read_reports",
    },
}
"""Kind → name → "module:attribute"."""
KINDS = (
    *("forecasters", "models", "search_engines", "series", "markets", "settlements", "datasets", "tools"),
    *("grounders", "synthesis_rules", "combiners", "metrics", "studies", "live_questions", "logs"),
)
"""All kinds of plug-in. A market names the source of its outcomes in its own entry; `settlements` is for markets whose
entry names none. The built-in tools and metrics are listed by the packages that use them."""
KEYED_KINDS = ("models", "search_engines", "series", "markets", "tools")
"""Kinds whose plug-ins may need a key. A name means the same service in all of these kinds."""
_TYPES: Mapping[str, tuple[str, ...]] = {
    "markets": ("foretell.data.markets.market:Market",),
    "metrics": ("foretell.metrics.metric:Metric",),
    "synthesis_rules": (
        "foretell.forecasters.tree.grow.synthesize:SynthesisRule",
        "foretell.forecasters.tree.grow.synthesize:ModelFreeRule",
    ),
}
"""Kinds whose plug-ins are instances of a class."""
_METHODS: Mapping[str, str] = {"search_engines": "search", "series": "fetch", "tools": "use", "grounders": "ground"}
"""Kinds whose plug-ins are classes, and the method that these must have."""
_CALLED = ("forecasters", "combiners", "studies")
"""Kinds whose plug-ins are called to create the object that is used."""
_REGISTERED: dict[tuple[str, str], Any] = {}


@cache
def _announcements() -> Mapping[str, Mapping[str, EntryPoint]]:
    """Map group → name → entry point, reading all installed packages once instead of once per kind."""
    announcements: dict[str, dict[str, EntryPoint]] = {}
    for package in distributions():
        for point in package.entry_points:
            announcements.setdefault(point.group, {}).setdefault(point.name, point)
    return announcements


def _announced(kind: str) -> Mapping[str, EntryPoint]:
    """Return the entry points that other packages announce for this kind; they cannot override a built-in name."""
    return _announcements().get(f"foretell.{kind}", {})


FORMER_NAMES: Mapping[str, Mapping[str, str]] = {
    "forecasters": {
        "always": "constant",
        "context": "prompt",
        "crowd": "market-price",
        "crowd-else-prior": "market-or-base-rate",
        "outside": "outside-view",
        "stack": "model_free",
        "walk": "random-walk",
    },
    "synthesis_rules": {"linear": "analytica-linear"},
}
"""Names of earlier versions, which stored runs and old files still use, and their current names."""


def current_name(kind: str, name: str) -> str:
    """Return the current name of a plug-in that may be given by a former one.

    >>> current_name("forecasters", "stack"), current_name("forecasters", "agent")
    ('model_free', 'agent')
    """
    return FORMER_NAMES.get(kind, {}).get(name, name)


def former_name(kind: str, name: str) -> str:
    """Return the name under which specs store a plug-in: that of earlier versions, so that run ids do not change."""
    return next((old for old, new in FORMER_NAMES.get(kind, {}).items() if new == name), name)


def places(kind: str) -> dict[str, str]:
    """Map the name of every installed plug-in of this kind to its "module:attribute", built-in ones first."""
    built_in = dict(BUILT_IN.get(kind, {}))
    return built_in | {name: point.value for name, point in _announced(kind).items() if name not in built_in}


def names(kind: str) -> list[str]:
    """Return the names of this kind: built-in, from other packages, and registered in this process."""
    return [*places(kind), *(name for other, name in _REGISTERED if other == kind)]


def added(kind: str) -> list[str]:
    """Return the names of this kind that are not built in."""
    return [name for name in names(kind) if name not in BUILT_IN.get(kind, {})]


def exists(kind: str, name: str) -> bool:
    """Whether a plug-in of this name exists. Other packages are searched only if it is not built in or registered."""
    name = current_name(kind, name)
    return name in BUILT_IN.get(kind, {}) or (kind, name) in _REGISTERED or name in _announced(kind)


class Names(Sequence[str]):
    """The names of a kind as a sequence that is looked up on every access, so it includes names registered later."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return names(self._kind)[index]

    def __len__(self) -> int:
        return len(names(self._kind))


def register(kind: str, name: str, plugin: Any) -> None:
    """Register an object under a name in this process; registering the name again replaces the object."""
    if kind not in KINDS:
        raise InputError(f"there is no kind of plug-in {kind!r}", hint=f"kinds are {', '.join(KINDS)}")
    if name in places(kind) or name in FORMER_NAMES.get(kind, {}):
        raise InputError(f"the name {name!r} is taken among {kind}", hint="register it under another name")
    _check_shape(kind, name, plugin)
    _REGISTERED[kind, name] = plugin


def _check_shape(kind: str, name: str, plugin: Any) -> None:
    """Raise an `InputError` if a plug-in is not what its kind needs, before it is used."""
    wanted = ""
    if kind in _TYPES:
        classes = tuple(load_object(place) for place in _TYPES[kind])
        wanted = "" if isinstance(plugin, classes) else " or ".join(f"a {expected.__name__}" for expected in classes)
    elif kind in _METHODS:
        lacking = isinstance(plugin, type) and not hasattr(plugin, _METHODS[kind])
        wanted = f"a class with a method {_METHODS[kind]!r}" if lacking or not callable(plugin) else ""
    elif kind in _CALLED and not callable(plugin):
        wanted = "a class or a function"
    if wanted:
        actual = getattr(plugin, "__name__", None) or f"a {type(plugin).__name__}"
        problem = f"the {describe(kind)} {name!r} must be {wanted}, not {actual}"
        raise InputError(problem, hint="docs/plugins.md has an example of each kind")


def unregister(kind: str, name: str) -> None:
    """Remove a plug-in that was registered in this process."""
    _REGISTERED.pop((kind, name), None)


def load(kind: str, name: str) -> Any:
    """Load the plug-in of this name; an unknown name raises an `InputError` that suggests or lists known names."""
    name = current_name(kind, name)
    if (kind, name) in _REGISTERED:
        return _REGISTERED[kind, name]
    if name in BUILT_IN.get(kind, {}):
        return load_object(BUILT_IN[kind][name])
    point = _announced(kind).get(name)
    if point is None:
        near = get_close_matches(name, [*names(kind), *FORMER_NAMES.get(kind, {})], n=1)
        hint = (
            f"did you mean {current_name(kind, near[0])!r}?"
            if near
            else f"there are {', '.join(names(kind)) or 'none'}"
        )
        raise InputError(f"no {describe(kind)} is called {name!r}", hint=hint)
    try:
        plugin = point.load()
        _check_shape(kind, name, plugin)
        return plugin
    except InputError:
        raise
    except Exception as error:
        package = point.dist.name if point.dist is not None else point.module
        problem = f"the {describe(kind)} {name!r} of the package {package} cannot be loaded"
        raise InputError(f"{problem}: {type(error).__name__}: {error}", hint=f"fix or uninstall {package}") from None


def load_object(place: str) -> Any:
    """Import and return the object at "module:attribute"."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def describe(kind: str) -> str:
    """Return the singular of a kind in plain English.

    >>> describe("search_engines"), describe("series")
    ('search engine', 'series source')
    """
    special = {"series": "series source", "models": "model provider", "studies": "study"}
    return special.get(kind, kind.removesuffix("s").replace("_", " "))


PAIR = "+"
"""Joins two variable names, such as `ASKNEWS_CLIENT_ID+ASKNEWS_SECRET`, if the key is both values joined by a colon."""


def key_in(variable: str, values: Mapping[str, str]) -> str:
    """Return the key held by one variable, or by two together; empty if any of them is not set.

    >>> key_in("NAME+SECRET", {"NAME": "n", "SECRET": "s"}), key_in("NAME+SECRET", {"NAME": "n"})
    ('n:s', '')
    """
    parts = [values.get(name, "") for name in variable.split(PAIR)]
    return values.get(variable, "") or (":".join(parts) if all(parts) else "")


def variables_in_words(variables: Sequence[str]) -> str:
    """Return the variable names as text for a sentence.

    >>> variables_in_words(("KEY", "NAME+SECRET"))
    'KEY or NAME and SECRET'
    """
    return " or ".join(variables).replace(PAIR, " and ")


class KeyVariables(Mapping[str, tuple[str, ...]]):
    """Service → environment variables that may hold its key, for every plug-in that declares `key_variables`."""

    def __getitem__(self, service: str) -> tuple[str, ...]:
        for kind in KEYED_KINDS:
            if not exists(kind, service):
                continue
            try:
                variables = getattr(load(kind, service), "key_variables", ())
            except InputError:
                continue  # A broken plug-in is reported when it is used; it must not stop the others.
            if variables:
                return tuple(variables)
        raise KeyError(service)

    def __iter__(self) -> Iterator[str]:
        seen = dict.fromkeys(name for kind in KEYED_KINDS for name in names(kind))
        return (name for name in seen if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function. Types that it imports only for type checkers stay names, as they are written.

    Python 3.14 evaluates types when they are asked for, and would raise a NameError for such a type.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return signature(function, annotation_format=Format.FORWARDREF)
    return signature(function)


def takes_arguments(function: Callable[..., Any], *counts: int) -> bool:
    """Whether a function can be called with one of these numbers of positional arguments.

    >>> [takes_arguments(f, 1, 2) for f in (lambda: 0, lambda a: a, lambda a, b, c: a, lambda a, *, b: a)]
    [False, True, False, False]
    """
    try:
        parameters = signature_of(function)
    except (TypeError, ValueError):
        return True  # The signature of this built-in function is unknown.
    for count in counts:
        try:
            parameters.bind(*range(count))
        except TypeError:
            continue
        return True
    return False
