"""Spending the money of a tree: shares for its parts, and patience while calls under way hold more than they cost."""

import asyncio
from dataclasses import replace

from foretell.forecasters.agent.context import AgentContext
from foretell.llm.cost import Budget, Metered
from foretell.llm.message import Reply, Request, Tokens
from foretell.llm.model import BudgetSpent, Model

FOR_LEAVES = 0.75
"""Share of a tree's budget that goes to grounding; the rest pays for taking apart and putting together."""
USUAL_LEAF = Tokens(input=6_000, output=2_000)
"""What grounding a leaf usually takes at least: a tree is not made larger than its budget can pay for."""
LOW = 0.5
"""Once this part of a leaf's share is spent, it is time to conclude: the conclusion costs something too."""


def cost_of_leaf(context: AgentContext) -> float:
    """What a leaf usually costs at least, in dollars; 0 where prices are not known."""
    price = context.prices.of(context.models.name("grounder")) if context.prices is not None else None
    return price.dollars(USUAL_LEAF) if price is not None else 0.0


class Patient:
    """A model within a budget, asked by many at once.

    A budget sets aside what a call may cost at most, so calls that run side by side can use it up without spending it.
    One that is refused for that waits until another has been settled, and is refused only when none is under way.
    """

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self._under_way = 0
        self._settled = asyncio.Event()

    async def complete(self, request: Request) -> Reply:
        """The reply, as soon as the budget has room for it."""
        while True:
            self._under_way += 1
            refused = False
            try:
                return await self._inner.complete(request)
            except BudgetSpent:
                refused = True
                if self._under_way == 1:
                    raise
            finally:
                self._under_way -= 1
                if not refused:
                    self._tell()
            await self._settled.wait()

    def _tell(self) -> None:
        self._settled.set()
        self._settled = asyncio.Event()


class Purse:
    """The share of one leaf: counted, so that research ends in time, but not a wall.

    A hard limit sets the most a call may cost aside before it is made, which for a small share is more than all of it.
    Hard are the budgets of the question and the run.
    """

    def __init__(self, leaf: str = "", dollars: float | None = None) -> None:
        self.dollars = dollars
        """The whole share; None for no limit of its own."""
        self._counted = Budget(f"leaf {leaf}")

    @property
    def spent(self) -> float:
        """What was spent of it, in dollars."""
        return self._counted.spent.dollars

    @property
    def low(self) -> bool:
        """Whether it is time to conclude."""
        return self.dollars is not None and self.spent >= LOW * self.dollars

    def within(self, context: AgentContext) -> AgentContext:
        """The context with a model whose calls are counted. Without prices there is nothing to count."""
        if self.dollars is None or context.prices is None:
            return context
        return replace(context, model=Metered(context.model, context.prices, self._counted))
