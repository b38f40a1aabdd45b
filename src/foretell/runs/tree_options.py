"""The options of the forecasters `tree` and `thoughts`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.tree.forecaster import TreeSettings
from foretell.forecasters.tree.grow.analyze import AnalyzeSettings
from foretell.forecasters.tree.grow.ground import GroundSettings, TreeSizeSettings
from foretell.forecasters.tree.grow.rules import rule_named
from foretell.forecasters.tree.grow.synthesize import SynthesizeSettings
from foretell.forecasters.tree.thoughts import ThoughtKind, ThoughtSettings
from foretell.models.limits import ModelLimits
from foretell.plugins import load
from foretell.questions.errors import InputError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from foretell.forecasters.forecaster import Forecaster
    from foretell.runs.runtime import Runtime

T = TypeVar("T")
RESEARCH_SECONDS = 3600.0
"""Longest time for a deep research."""


@dataclass(frozen=True, kw_only=True)
class GroundingOptions:
    """How leaves are judged: what trees and thoughts share."""

    asks_models: ClassVar[bool] = True

    grounder: str = "search"
    at_once: int = 20
    retries: int = 3
    clamp: tuple[float, float] = (0.05, 0.95)
    shortcut: bool = True
    deep_model: str | None = None
    """A model that researches by itself, such as openai:gpt-6.1-sol."""
    kernels: int = 4
    """Notebooks at work at the same time."""
    unsandboxed: bool = False
    """Let notebooks run with all the rights of the user."""

    def __post_init__(self) -> None:
        load("grounders", self.grounder)

    def open(self, runtime: "Runtime") -> "AbstractAsyncContextManager[tuple[Forecaster, Runtime]]":
        """The forecaster, with the grounders it needs open."""
        from foretell.runs.tree_runtime import open_forecaster

        return open_forecaster(self, runtime)

    def limits(self, usual: ModelLimits | None = None) -> ModelLimits:
        """What the provider is asked to bear: every leaf at once, and long researches."""
        limits = usual or ModelLimits()
        limits = replace(limits, at_once=max(limits.at_once, 2 * self.at_once))
        if self.deep_model is None:
            return limits
        return replace(limits, seconds=RESEARCH_SECONDS, total_seconds=2 * RESEARCH_SECONDS)

    @property
    def ground(self) -> GroundSettings:
        """As the forecaster reads them."""
        return GroundSettings(at_once=self.at_once, retries=self.retries)


def _fitting(make: Callable[[], T], of: str) -> T:
    try:
        return make()
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"the options of {of} do not fit: {error}", column="options") from None


@dataclass(frozen=True, kw_only=True)
class TreeOptions(GroundingOptions):
    """The options of the forecaster `tree`, as a run or the command line gives them."""

    rule: str = "linear"
    rounds: int = 1
    leaves: int = 10
    most_leaves: int | None = None
    nodes: int = 5_000
    depth: int | None = None
    steps: int = 5
    correlations: bool = False
    bayes_net: bool = False
    scaling: str | None = None
    intercept_limit: float = 0.1
    trials: int = 1
    """How often each leaf is examined."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rule_named(self.rule)

    def settings(self, dollars: float | None, seed: int = 0) -> TreeSettings:
        """As the forecaster reads them."""

        def make() -> TreeSettings:
            size = TreeSizeSettings(
                rounds=self.rounds,
                leaves=self.leaves,
                most_leaves=self.most_leaves,
                nodes=self.nodes,
                depth=self.depth,
                dollars=dollars,
            )
            synthesize = SynthesizeSettings(
                rule=rule_named(self.rule),
                intercept_limit=self.intercept_limit,
                bayes_net=self.bayes_net,
                scaling=self.scaling,
                seed=seed,
            )
            return TreeSettings(
                size=size,
                analyze=AnalyzeSettings(steps=self.steps, correlations=self.correlations),
                ground=replace(self.ground, trials=self.trials),
                synthesize=synthesize,
                clamp=Clamp.read(self.clamp),
                shortcut=self.shortcut,
            )

        return _fitting(make, "the tree")


@dataclass(frozen=True, kw_only=True)
class ThoughtOptions(GroundingOptions):
    """The options of the forecaster `thoughts`: chains, trees, graphs and forests of thoughts."""

    kind: str = "chain"
    depth: int = 3
    width: int = 3
    keep: int = 2
    trees: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings(None)

    def settings(self, dollars: float | None) -> ThoughtSettings:
        """As the forecaster reads them."""

        def make() -> ThoughtSettings:
            return ThoughtSettings(
                kind=cast(ThoughtKind, self.kind),
                depth=self.depth,
                width=self.width,
                keep=self.keep,
                trees=self.trees,
                ground=self.ground,
                dollars=dollars,
                clamp=Clamp.read(self.clamp),
                shortcut=self.shortcut,
            )

        return _fitting(make, "thoughts")
