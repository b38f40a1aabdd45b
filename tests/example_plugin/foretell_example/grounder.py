"""A way to judge the leaves of a tree."""

from typing import Any

from foretell.forecasters.tree import Grounding, GroundingResult, Leaf


class ExampleGrounder:
    """Finds every claim as likely as not."""

    name = "example_grounder"

    async def ground(self, leaf: Leaf, context: Any) -> GroundingResult:
        """Probability, report and sources."""
        return GroundingResult(p=0.5, grounding=Grounding(grounder=self.name, report="nothing is known"))
