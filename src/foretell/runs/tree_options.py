"""What a run or the command line may say about trees."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.tree.forecaster import TreeSettings
from foretell.forecasters.tree.grow.analyze import AnalyzeSettings
from foretell.forecasters.tree.grow.budget import TreeSizeSettings
from foretell.forecasters.tree.grow.ground import GroundSettings
from foretell.forecasters.tree.grow.synthesize import SynthesizeSettings, rule_named
from foretell.forecasters.tree.thought_search import ThoughtKind, ThoughtSettings
from foretell.models.limits import ModelLimits
from foretell.plugins import load
from foretell.questions.errors import InputError

OptionsType = TypeVar("OptionsType")


def options_from_mapping(kind: type[OptionsType], options: Mapping[str, Any], whose: str) -> OptionsType:
    """The options of a run as a dataclass of that kind; an unknown or unfitting one is named."""
    known = {field.name for field in fields(cast("type[Any]", kind))}
    for name in options:
        if name not in known:
            hint = f"options are {', '.join(sorted(known))}"
            raise InputError(f"{whose} have no option {name!r}", column="options", hint=hint)
    try:
        given = dict(options)
        if "clamp" in given:
            given["clamp"] = tuple(given["clamp"])
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise InputError(f"the options of {whose} do not fit: {error}", column="options") from None


GROUNDERS = ("search", "agent", "notebook", "deep", "plain", "auto")
RESEARCH_SECONDS = 3600.0
"""Longest time for a deep research."""


@dataclass(frozen=True, kw_only=True)
class TreeOptions:
    """What a run or the command line may say about trees."""

    grounder: str = "search"
    rule: str = "linear"
    rounds: int = 1
    leaves: int = 10
    most_leaves: int | None = None
    nodes: int = 5_000
    depth: int | None = None
    steps: int = 5
    at_once: int = 20
    retries: int = 3
    correlations: bool = False
    bayes_net: bool = False
    scaling: str | None = None
    intercept_limit: float = 0.1
    clamp: tuple[float, float] = (0.05, 0.95)
    shortcut: bool = True
    deep_model: str | None = None
    """A model that researches by itself, such as openai:o4-mini-deep-research."""
    kernels: int = 4
    """Notebooks at work at the same time."""
    unsandboxed: bool = False
    """Let notebooks run with all the rights of the user."""

    def __post_init__(self) -> None:
        if self.grounder not in GROUNDERS:
            load("grounders", self.grounder)
        rule_named(self.rule)

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "TreeOptions":
        """From the options of a run; an unknown or unfitting one is named."""
        return options_from_mapping(cls, options, "trees")

    def settings(self, dollars: float | None, seed: int = 0) -> TreeSettings:
        """How the forecaster is told."""
        try:
            low, high = self.clamp
            return TreeSettings(
                size=TreeSizeSettings(
                    rounds=self.rounds,
                    leaves=self.leaves,
                    most_leaves=self.most_leaves,
                    nodes=self.nodes,
                    depth=self.depth,
                    dollars=dollars,
                ),
                analyze=AnalyzeSettings(steps=self.steps, correlations=self.correlations),
                ground=GroundSettings(at_once=self.at_once, retries=self.retries),
                synthesize=SynthesizeSettings(
                    rule=rule_named(self.rule),
                    intercept_limit=self.intercept_limit,
                    bayes_net=self.bayes_net,
                    scaling=self.scaling,
                    seed=seed,
                ),
                clamp=Clamp(low=float(low), high=float(high)),
                shortcut=self.shortcut,
            )
        except (TypeError, ValueError) as error:
            raise InputError(f"the options of the tree do not fit: {error}", column="options") from None

    def limits(self, usual: ModelLimits | None = None) -> ModelLimits:
        """What the provider is asked to bear: every leaf at once, and long researches."""
        limits = usual or ModelLimits()
        limits = replace(limits, at_once=max(limits.at_once, 2 * self.at_once))
        if self.deep_model is None:
            return limits
        return replace(limits, seconds=RESEARCH_SECONDS, total_seconds=2 * RESEARCH_SECONDS)


# What a run may say about thoughts.


@dataclass(frozen=True, kw_only=True)
class ThoughtOptions:
    """What a run may say about chains, trees, graphs and forests of thoughts."""

    kind: str = "chain"
    grounder: str = "search"
    depth: int = 3
    width: int = 3
    keep: int = 2
    trees: int = 3
    at_once: int = 20
    retries: int = 3
    clamp: tuple[float, float] = (0.05, 0.95)
    shortcut: bool = True
    deep_model: str | None = None
    """A model that researches by itself, such as openai:o4-mini-deep-research."""
    kernels: int = 4
    """Notebooks at work at the same time."""
    unsandboxed: bool = False
    """Let notebooks run with all the rights of the user."""

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "ThoughtOptions":
        """From the options of a run; an unknown or unfitting one is named."""
        found = options_from_mapping(cls, options, "thoughts")
        found.settings(None)
        return found

    @property
    def grounding(self) -> TreeOptions:
        """What the grounder needs to know, as a tree would say it."""
        return TreeOptions(
            grounder=self.grounder,
            at_once=self.at_once,
            retries=self.retries,
            deep_model=self.deep_model,
            kernels=self.kernels,
            unsandboxed=self.unsandboxed,
        )

    def settings(self, dollars: float | None) -> ThoughtSettings:
        """How the forecaster is told."""
        try:
            low, high = self.clamp
            return ThoughtSettings(
                kind=cast(ThoughtKind, self.kind),
                depth=self.depth,
                width=self.width,
                keep=self.keep,
                trees=self.trees,
                ground=GroundSettings(at_once=self.at_once, retries=self.retries),
                dollars=dollars,
                clamp=Clamp(low=float(low), high=float(high)),
                shortcut=self.shortcut,
            )
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the options of thoughts do not fit: {error}", column="options") from None
