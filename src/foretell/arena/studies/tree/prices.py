"""What methods of a made-up world would cost: calls, dollars and seconds by simple arithmetic from given prices."""

import math
from dataclasses import dataclass

from foretell.arena.studies.tree.material import Cost
from foretell.arena.studies.tree.players import DIRECT, Method

WORKERS = 20
"""Leaves that are grounded at the same time."""


@dataclass(frozen=True, kw_only=True)
class Priced:
    """What one grounding and one call to take apart or put together take."""

    grounding: Cost
    analysis: Cost
    synthesis: Cost

    def cost(self, method: Method, *, leaves: float, parents: float, levels: float) -> Cost:
        """Of one answer: leaves are grounded side by side, levels are put together one after the other."""
        if method.rule == DIRECT:
            batches = math.ceil(method.repeats / WORKERS)
            return Cost(dollars=method.repeats * self.grounding.dollars, seconds=batches * self.grounding.seconds)
        unasked = method.rule in ("average", "random")
        together = Cost(dollars=0.0, seconds=0.0) if unasked else self.synthesis
        dollars = self.analysis.dollars + leaves * self.grounding.dollars + parents * together.dollars
        batches = math.ceil(leaves / WORKERS)
        seconds = self.analysis.seconds + batches * self.grounding.seconds + levels * together.seconds
        return Cost(dollars=method.repeats * dollars, seconds=seconds)
