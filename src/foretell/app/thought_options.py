"""What a run may say about thoughts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from foretell.app.tree_options import TreeOptions, read_options
from foretell.forecasters.agent.submit import Clamp
from foretell.forecasters.tree.growing.ground import GroundSettings
from foretell.forecasters.tree.thoughts.settings import Kind, ThoughtSettings
from foretell.questions.problems import InputError


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
        found = read_options(cls, options, "thoughts")
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
                kind=cast(Kind, self.kind),
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
