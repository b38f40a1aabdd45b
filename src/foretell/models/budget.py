"""What calls cost, and the contract of a budget: it holds, and whoever fits into it is served.

Before a call is sent, the most that it may cost is reserved. The length of the reply is capped at what was reserved, so
that even the longest reply fits. Where there is no room, a call waits for others to come back; one that is alone takes
what is left. A reply that was lost on the way may have been billed: it counts at its estimate, as money at risk.
"""

import asyncio
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from foretell.models.canonical import quick_json, request_key
from foretell.models.database.interface import Database, Statements
from foretell.models.facts import facts_of
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    Model,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    TokenCount,
    ToolResult,
)
from foretell.models.names import ModelName
from foretell.models.prices import PriceList, TokenPrice, tier_factor
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost

BYTES_PER_TOKEN = 3.5
"""On the careful side for English; the true count is booked when the reply is there."""
DEFAULT_OUTPUT_TOKENS = 16_384
"""Longest reply within a budget, thoughts included, where the request names no limit and there is room for it."""
LEAST_OUTPUT_TOKENS = 256
"""A shorter reply is of no use: rather than be cut off there, a call is not made."""
LONGEST_WAIT = 120.0
"""Seconds without any call coming back, after which a waiting call stops waiting: those ahead may be waiting for it."""


class CallEstimate(NamedTuple):
    """The most that a call may cost, by the length of its reply."""

    input: int
    output: int
    """Tokens the reply may have at most, if there is room."""
    price: TokenPrice | None = None
    factor: float = 1.0
    """Of the service tier."""

    def dollars(self, output: float | None = None) -> float:
        """With a reply of so many tokens; the longest if none are given."""
        if self.price is None:
            return 0.0
        return self.price.most(self.input, int(self.output if output is None else output)) * self.factor

    def longest(self, dollars: float) -> int:
        """Tokens of the longest reply that so much pays for, within what was wanted."""
        reading = self.dollars(0)
        per_token = (self.dollars(1_000_000) - reading) / 1_000_000
        affordable = (dollars - reading) / per_token if per_token > 0 else inf
        # The tiny extra is what floats lose in additions.
        return int(min(affordable + 1e-6, self.output))


class Budget:
    """A hard limit on dollars, or none; a question's budget lies within that of its run.

    A reply that has been paid for is always handed over; the next call is refused.
    """

    def __init__(
        self, name: str, *, dollars: float | None = None, within: "Budget | None" = None, run: str = ""
    ) -> None:
        """`run` is the id of the run it belongs to: the journal notes it with every call that is paid from here."""
        self.name = name
        self.run: str = run or (within.run if within else "")
        self.dollars = dollars
        self.within = within
        self._chain: tuple[Budget, ...] = (self, *(within._chain if within else ()))
        self.spent = Cost()
        self.at_risk = Cost()
        """Replies that were lost and may have been billed, at their estimate."""
        self.checks = Cost()
        """The part of what is spent that went into finding out how models can be asked."""
        self.reserved = 0.0
        """Dollars set aside for calls that are under way."""
        self._under_way = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def limited(self) -> bool:
        """Whether it, or one around it, has a limit; that needs known prices."""
        return any(budget.dollars is not None for budget in self._chain)

    def spend(self, cost: Cost) -> None:
        """Book something that is not paid by length, or raise `BudgetExceeded`."""
        self.hold(cost.dollars)
        self.release(cost.dollars, cost)

    async def reserve(self, estimate: CallEstimate) -> "Reservation":
        """Room for one call, as soon as there is; `BudgetExceeded` where there will not be, even for a short reply."""
        most = estimate.dollars()
        while True:
            output, dollars = estimate.output, most
            short = next((budget for budget in self._chain if budget._lacks(most)), None)
            if short is not None:
                if short._under_way and await short._next_landing():
                    continue
                output = estimate.longest(min(budget._room(most) for budget in self._chain))
                if output < min(LEAST_OUTPUT_TOKENS, estimate.output):
                    output = min(LEAST_OUTPUT_TOKENS, estimate.output)
                dollars = estimate.dollars(output)
            self.hold(dollars)
            for budget in self._chain:
                budget._under_way += 1
            return Reservation(budget=self, dollars=dollars, estimate=estimate, output=output)

    async def _next_landing(self) -> bool:
        """Wait for a call under way to come back; False where none does for long."""
        loop = asyncio.get_running_loop()
        landing: asyncio.Future[None] = loop.create_future()
        self._waiting.append((loop, landing))
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await landing
        except TimeoutError:
            return False
        return True

    def landed(self) -> None:
        """One call is back, here and in every budget around this one: whoever waits looks again."""
        for budget in self._chain:
            budget._under_way -= 1
            waiting, budget._waiting = budget._waiting, []
            for loop, landing in waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_wake, landing)

    def hold(self, dollars: float) -> None:
        """Hold room here and in every budget around this one, or raise `BudgetExceeded`."""
        for budget in self._chain:
            if budget._lacks(dollars):
                raise BudgetExceeded(budget._shortage(dollars))
        for budget in self._chain:
            budget.reserved += dollars

    def release(self, dollars: float, actual: Cost, *, at_risk: bool = False) -> None:
        """Replace what was held by what the call cost, or may have cost."""
        for budget in self._chain:
            budget.reserved -= dollars
            if at_risk:
                budget.at_risk += actual
            else:
                budget.spent += actual

    def _room(self, wanted: float) -> float:
        """Dollars that are left. `wanted` is what somebody would like to have."""
        used = self.spent.dollars + self.at_risk.dollars + self.reserved
        return inf if self.dollars is None else self.dollars - used

    def _lacks(self, wanted: float) -> bool:
        # Amounts are added and taken away again: leave room for what floats lose in that.
        return wanted > self._room(wanted) + 1e-9 * (self.dollars or 0.0)

    def _shortage(self, wanted: float) -> str:
        message = (
            f"the budget of the {self.name} allows {self.dollars:,} dollars; {round(self.spent.dollars, 6):,} spent"
        )
        for what, amount in (("reserved", self.reserved), ("at risk", self.at_risk.dollars)):
            message += f", {round(amount, 6):,} {what}" if round(amount, 6) else ""
        return f"{message}, {round(wanted, 6):,} more wanted"


def _wake(landing: "asyncio.Future[None]") -> None:
    if not landing.done():
        landing.set_result(None)


@dataclass(kw_only=True)
class Reservation:
    """Room for one call. It is settled once; each attempt that was lost on the way counts at its estimate."""

    budget: Budget
    dollars: float
    estimate: CallEstimate
    output: int
    """Tokens the reply may have at most."""

    @property
    def run(self) -> str:
        """The run that pays, or nothing."""
        return self.budget.run

    def lose(self) -> None:
        """An attempt may have been billed: book it, and make room for the next, or raise `BudgetExceeded`."""
        self.budget.release(self.dollars, self._maximum(), at_risk=True)
        lost, self.dollars = self.dollars, 0.0
        self.budget.hold(lost)
        self.dollars = lost

    def settle(self, actual: Cost | None) -> None:
        """The call is over. None where its reply was lost and may have been billed."""
        cost = self._maximum() if actual is None else actual
        self.budget.release(self.dollars, cost, at_risk=actual is None)
        self.budget.landed()

    def _maximum(self) -> Cost:
        return Cost(calls=1, input_tokens=self.estimate.input, output_tokens=self.output, dollars=self.dollars)


def estimate_tokens(request: Request) -> TokenCount:
    """What a request reads, and what it may write at most."""
    size = 0
    for message in request.messages:
        # Most texts are known to be ASCII without looking at them again.
        size += len(message.text) if message.text.isascii() else len(message.text.encode(errors="replace"))
        if isinstance(message, AssistantMessage):
            size += len(message.sealed) + sum(len(call.arguments) + len(call.name) for call in message.calls)
        elif isinstance(message, ToolResult):
            size += len(message.name)
    size += sum(len(tool.description) + len(tool.parameters_json) for tool in request.tools)
    size += len(quick_json(request.schema)) if request.schema else 0
    longest = facts_of(ModelName.read(request.model).name).max_output or DEFAULT_OUTPUT_TOKENS
    output = request.settings.max_tokens or min(longest, DEFAULT_OUTPUT_TOKENS)
    return TokenCount(input=int(size / BYTES_PER_TOKEN) + 1, output=output)


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
        request_key(request)  # Remembered by the copy that is paid for, and by the one that the caller has.
        price = self._prices.of(request.model)
        if price is None and self._budget.limited:
            hint = "choose a model whose price is known, state its price, or set no budget"
            raise InputError(f"no price is known for {request.model}: a budget in dollars cannot hold", hint=hint)
        tokens = estimate_tokens(request)
        factor = tier_factor(request.model, request.settings.tier)
        estimate = CallEstimate(input=tokens.input, output=tokens.output, price=price, factor=factor)
        reservation = await self._budget.reserve(estimate)
        cap = request.cap
        if self._budget.limited:
            cap = reservation.output if cap is None else min(cap, reservation.output)
        request = request.paid_from(reservation, cap)
        try:
            reply = await self._inner.complete(request)
        except BaseException as error:
            # Out of time or cut off on the way: the provider may have finished its work.
            lost = isinstance(error, ReplyLost | ReplyTooLong | asyncio.CancelledError) or isinstance(
                error.__cause__, ReplyLost
            )
            reservation.settle(None if lost else Cost())
            raise
        reservation.settle(self._cost(request, reply))
        return reply

    def _cost(self, request: Request, reply: Reply) -> Cost:
        dollars = self._prices.charged(request, reply)
        return Cost(
            calls=1,
            input_tokens=reply.tokens.input,
            output_tokens=reply.tokens.output,
            dollars=dollars or 0.0,
            unpriced=int(dollars is None),
        )


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
        super().__init__(name, dollars=0.0, run=run)
        self._database = database
        self._whole = dollars

    def _room(self, wanted: float) -> float:
        short = wanted - super()._room(wanted)
        if short > 0:
            self.dollars = (self.dollars or 0.0) + self._draw(max(short, DRAW_SHARE * self._whole))
        return super()._room(wanted)

    def give_back(self) -> None:
        """What was drawn and not spent."""
        used = self.spent.dollars + self.at_risk.dollars
        if self.dollars:
            self._draw(used - self.dollars)
            self.dollars = used

    def _draw(self, wanted: float) -> float:
        def draw(statements: Statements) -> float:
            rows = statements.read(_READ_DRAWN, (self.run,))
            drawn = rows[0][0] if rows else 0.0
            got = min(wanted, max(0.0, self._whole - drawn))
            statements.write(_WRITE_DRAWN, (self.run, drawn + got))
            return got

        return self._database.together(draw, alone=f"budget/{self.run}")
