"""A grounder, which estimates the leaves of a tree."""

from typing import Any

from foretell.forecasters.tree.grow.ground import GroundingResult, Leaf
from foretell.forecasters.tree.proposition import Grounding


class ExampleGrounder:
    """Gives every claim a probability of 0.5."""

    name = "example_grounder"

    async def ground(self, leaf: Leaf, context: Any) -> GroundingResult:
        """Return probability, report and sources."""
        return GroundingResult(p=0.5, grounding=Grounding(grounder=self.name, report="nothing is known"))
