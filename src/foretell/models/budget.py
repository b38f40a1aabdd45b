"""Counting what calls cost, and stopping before a hard budget breaks."""

import asyncio

from foretell.models.database.interface import Database, Statements
from foretell.models.model import AssistantMessage, BudgetExceeded, Model, Reply, Request, TokenCount, ToolResult
from foretell.models.prices import PriceList
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost

BYTES_PER_TOKEN = 3.5
"""On the careful side for English; the true count is booked when the reply is there."""
DEFAULT_OUTPUT_TOKENS = 4096
"""Tokens set aside for a reply whose request names no limit."""


class Budget:
    """A hard limit on dollars, or none; a question's budget lies within that of its run.

    A call is set aside at its estimate before it is sent, so that many at once cannot break the limit together.
    A reply that has been paid for is always handed over; the next call is refused.
    """

    def __init__(self, name: str, *, dollars: float | None = None, within: "Budget | None" = None) -> None:
        self.name = name
        self.dollars = dollars
        self.within = within
        self.spent = Cost()
        self._aside = 0.0

    def set_aside(self, estimate: Cost) -> Cost:
        """Reserve room for one call here and in every budget around this one, or raise `BudgetExceeded`."""
        budgets = self._chain()
        for budget in budgets:
            budget._check(estimate.dollars)
        for budget in budgets:
            budget._aside += estimate.dollars
        return estimate

    def settle(self, estimate: Cost, actual: Cost) -> None:
        """Replace what was set aside by what the call cost."""
        for budget in self._chain():
            budget._aside -= estimate.dollars
            budget.spent += actual

    @property
    def limited(self) -> bool:
        """Whether it, or one around it, has a limit; that needs known prices."""
        return any(budget.dollars is not None for budget in self._chain())

    def _chain(self) -> list["Budget"]:
        return [self, *(self.within._chain() if self.within else ())]

    def _check(self, wanted: float) -> None:
        used = self.spent.dollars + self._aside
        # Set-asides are added and taken away again: leave room for what floats lose in that.
        if self.dollars is not None and used + wanted > self.dollars * (1 + 1e-9):
            message = f"the budget of the {self.name} allows {self.dollars:,} dollars; {round(used, 6):,} spent"
            raise BudgetExceeded(f"{message}, {round(wanted, 6):,} more wanted")


def estimate_tokens(request: Request) -> TokenCount:
    """What a request may cost at most, before it is sent."""
    size = 0
    for message in request.messages:
        # Most texts are known to be ASCII without looking at them again.
        size += len(message.text) if message.text.isascii() else len(message.text.encode(errors="replace"))
        if isinstance(message, AssistantMessage):
            size += len(message.thoughts) + sum(len(call.arguments) + len(call.name) for call in message.calls)
        elif isinstance(message, ToolResult):
            size += len(message.name)
    size += sum(len(tool.description) + len(tool.parameters_json) for tool in request.tools)
    size += len(str(request.schema)) if request.schema else 0
    output = request.settings.max_tokens
    return TokenCount(input=int(size / BYTES_PER_TOKEN) + 1, output=DEFAULT_OUTPUT_TOKENS if output is None else output)


class BudgetedModel:
    """Books every reply, journalled or new, and refuses calls that a budget has no room for.

    It stands outside the journal, so that a replay runs out of budget at the same call as the recorded run.
    """

    def __init__(self, inner: Model, prices: PriceList, budget: Budget) -> None:
        self._inner = inner
        self._prices = prices
        self._budget = budget

    async def complete(self, request: Request) -> Reply:
        """The reply, or `BudgetExceeded` before anything is sent."""
        price = self._prices.of(request.model)
        if price is None and self._budget.limited:
            hint = "choose a model whose price is known, or set no budget"
            raise InputError(f"no price is known for {request.model}: a budget in dollars cannot hold", hint=hint)

        def cost(tokens: TokenCount) -> Cost:
            dollars = 0.0 if price is None else price.dollars(tokens)
            unpriced = int(price is None)
            return Cost(
                calls=1, input_tokens=tokens.input, output_tokens=tokens.output, dollars=dollars, unpriced=unpriced
            )

        held = self._budget.set_aside(cost(estimate_tokens(request)))
        actual = Cost()
        try:
            reply = await self._inner.complete(request)
            actual = cost(reply.tokens)
        finally:
            self._budget.settle(held, actual)
        return reply


# Waiting for calls under way before a budget is called spent.
#
# A budget sets aside what a call may cost at most; many calls at once can fill it although they will cost a tenth of
# that. A run ends such a trial in its standing belief; a study that asks each case once would lose the case.


class PendingCalls:
    """How many calls within one budget are on their way, and when the next of them is back."""

    def __init__(self) -> None:
        self.count = 0
        self._landing = asyncio.Event()

    def landed(self) -> None:
        """One is back and what it did not need is free again."""
        landing, self._landing = self._landing, asyncio.Event()
        landing.set()

    async def next(self) -> None:
        """Wait for the next one to be back."""
        await self._landing.wait()


class BudgetWaitingModel:
    """The same model; a call that finds no room waits until others are back, and is refused only when none is out."""

    def __init__(self, inner: Model, calls: PendingCalls) -> None:
        self._inner = inner
        self._calls = calls

    async def complete(self, request: Request) -> Reply:
        """The reply, or `BudgetExceeded` when even alone there is no room for the call."""
        while True:
            self._calls.count += 1
            refused = False
            try:
                return await self._inner.complete(request)
            except BudgetExceeded:
                refused = True
                if self._calls.count == 1:
                    raise
            finally:
                self._calls.count -= 1
                if not refused:
                    self._calls.landed()
            await self._calls.next()


# The budget of a run that many processes work at: each draws a little at a time, all together never more than it.

DRAW_SHARE = 0.02
"""Of the whole budget: how much is drawn at once, so that not every call asks the database."""
_READ_DRAWN = "SELECT dollars FROM drawn WHERE run = ?"
_WRITE_DRAWN = "INSERT INTO drawn VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET dollars = excluded.dollars"


class SharedBudget(Budget):
    """Allows what was drawn, and draws more where that is not enough.

    What a killed process had drawn and not spent is lost to the run: it may end early, and never costs more.
    """

    def __init__(self, name: str, database: Database, run: str, *, dollars: float) -> None:
        super().__init__(name, dollars=0.0)
        self._database = database
        self._run = run
        self._whole = dollars

    def _check(self, wanted: float) -> None:
        drawn = self.dollars or 0.0
        short = self.spent.dollars + self._aside + wanted - drawn
        if short > 0:
            self.dollars = drawn + self._draw(max(short, DRAW_SHARE * self._whole))
        super()._check(wanted)

    def give_back(self) -> None:
        """What was drawn and not spent."""
        if self.dollars:
            self._draw(self.spent.dollars - self.dollars)
            self.dollars = self.spent.dollars

    def _draw(self, wanted: float) -> float:
        def draw(statements: Statements) -> float:
            rows = statements.read(_READ_DRAWN, (self._run,))
            drawn = rows[0][0] if rows else 0.0
            got = min(wanted, max(0.0, self._whole - drawn))
            statements.write(_WRITE_DRAWN, (self._run, drawn + got))
            return got

        return self._database.together(draw, alone=f"budget/{self._run}")
