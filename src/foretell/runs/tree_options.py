"""The options of the forecasters `tree` and `thoughts`."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.tree.forecaster import TreeSettings
from foretell.forecasters.tree.grow.analyze import AnalyzeSettings
from foretell.forecasters.tree.grow.budget import TreeSizeSettings
from foretell.forecasters.tree.grow.ground import GroundSettings
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

RESEARCH_SECONDS = 3600.0
"""Longest time for a deep research."""


@dataclass(frozen=True, kw_only=True)
class TreeOptions:
    """The options of the forecaster `tree`, as a run or the command line gives them."""

    asks_models: ClassVar[bool] = True

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
    """A model that researches by itself, such as openai:gpt-6.1-sol."""
    kernels: int = 4
    """Notebooks at work at the same time."""
    unsandboxed: bool = False
    """Let notebooks run with all the rights of the user."""

    def __post_init__(self) -> None:
        load("grounders", self.grounder)
        rule_named(self.rule)

    def open(self, runtime: "Runtime") -> "AbstractAsyncContextManager[tuple[Forecaster, Runtime]]":
        """The forecaster, with the grounders it needs open."""
        from foretell.runs.tree_runtime import open_tree

        return open_tree(self, runtime)

    def settings(self, dollars: float | None, seed: int = 0) -> TreeSettings:
        """As the forecaster reads them."""
        try:
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
                clamp=Clamp.read(self.clamp),
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


@dataclass(frozen=True, kw_only=True)
class ThoughtOptions:
    """The options of the forecaster `thoughts`: chains, trees, graphs and forests of thoughts."""

    asks_models: ClassVar[bool] = True

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
    """A model that researches by itself, such as openai:gpt-6.1-sol."""
    kernels: int = 4
    """Notebooks at work at the same time."""
    unsandboxed: bool = False
    """Let notebooks run with all the rights of the user."""

    def __post_init__(self) -> None:
        self.settings(None)
        self.grounding  # noqa: B018 - raises now what does not fit

    def open(self, runtime: "Runtime") -> "AbstractAsyncContextManager[tuple[Forecaster, Runtime]]":
        """The forecaster, with the grounders it needs open."""
        from foretell.runs.tree_runtime import open_thoughts

        return open_thoughts(self, runtime)

    def limits(self, usual: ModelLimits | None = None) -> ModelLimits:
        """What the provider is asked to bear."""
        return self.grounding.limits(usual)

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
        """As the forecaster reads them."""
        try:
            return ThoughtSettings(
                kind=cast(ThoughtKind, self.kind),
                depth=self.depth,
                width=self.width,
                keep=self.keep,
                trees=self.trees,
                ground=GroundSettings(at_once=self.at_once, retries=self.retries),
                dollars=dollars,
                clamp=Clamp.read(self.clamp),
                shortcut=self.shortcut,
            )
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the options of thoughts do not fit: {error}", column="options") from None
