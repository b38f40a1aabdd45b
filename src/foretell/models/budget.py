"""What calls cost, and the contract of a budget: it holds, and whoever fits into it is served.

Before a call is sent, the most that it may cost is reserved. The length of the reply is capped at what was reserved, so
that even the longest reply fits. Where there is no room, a call waits for others to come back; one that is alone takes
what is left. A reply that was lost on the way may have been billed: it counts at its estimate, as money at risk.
"""

import asyncio
from dataclasses import dataclass, field, replace
from math import inf

from foretell.models.database.interface import Database, Statements
from foretell.models.facts import facts_of
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    Model,
    ModelBusy,
    ModelRefused,
    Reply,
    ReplyLost,
    Request,
    TokenCount,
    ToolResult,
)
from foretell.models.names import ModelName
from foretell.models.prices import TIER_FACTORS, PriceList, TokenPrice
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


def cost_of_call(tokens: TokenCount, dollars: float | None) -> Cost:
    """One call; its price may be unknown."""
    return Cost(
        calls=1,
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        dollars=dollars or 0.0,
        unpriced=int(dollars is None),
    )


@dataclass(frozen=True, kw_only=True)
class CallEstimate:
    """The most that a call may cost, by the length of its reply."""

    input: int
    output: int
    """Tokens the reply may have at most, if there is room."""
    price: TokenPrice | None = None
    factor: float = 1.0
    """Of the service tier."""

    def cost(self, output: int | None = None) -> Cost:
        """With a reply of so many tokens; the longest if none are given."""
        tokens = TokenCount(input=self.input, output=self.output if output is None else output)
        return cost_of_call(tokens, None if self.price is None else self.price.dollars(tokens) * self.factor)

    def longest(self, room: "Room") -> int:
        """Tokens of the longest reply for which there is room, within what was wanted."""
        dollars = self.cost(0).dollars
        per_token = (self.cost(1_000_000).dollars - dollars) / 1_000_000
        paid = (room.dollars - dollars) / per_token if per_token > 0 else inf
        fits = min(paid if dollars <= room.dollars else -1.0, room.tokens - self.input, self.output)
        # The tiny extra is what floats lose in additions.
        return int(fits + 1e-6) if room.calls >= 1 else -1


@dataclass(frozen=True, kw_only=True)
class Room:
    """What a budget has left."""

    dollars: float = inf
    tokens: float = inf
    calls: float = inf

    def within(self, other: "Room") -> "Room":
        """What both have left."""
        return Room(
            dollars=min(self.dollars, other.dollars),
            tokens=min(self.tokens, other.tokens),
            calls=min(self.calls, other.calls),
        )


class Budget:
    """A hard limit on dollars, tokens and calls; a question's budget lies within that of its run.

    A reply that has been paid for is always handed over; the next call is refused.

    >>> run = Budget("run", dollars=1.0)
    >>> question = Budget("question", calls=1, within=run)
    >>> question.settle(question.set_aside(Cost(calls=1, dollars=0.6)), Cost(calls=1, dollars=0.2))
    >>> round(run.spent.dollars, 2)
    0.2
    >>> question.set_aside(Cost(calls=1, dollars=0.1))
    Traceback (most recent call last):
    ...
    foretell.models.model.BudgetExceeded: the budget of the question allows 1 calls; 1 spent, 1 more wanted
    """

    def __init__(
        self,
        name: str,
        *,
        dollars: float | None = None,
        tokens: int | None = None,
        calls: int | None = None,
        within: "Budget | None" = None,
    ) -> None:
        self.name = name
        self.dollars = dollars
        self.tokens = tokens
        self.calls = calls
        self.within = within
        self.spent = Cost()
        self.at_risk = Cost()
        """Replies that were lost and may have been billed, at their estimate."""
        self._held = [0.0, 0, 0]
        self._under_way = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def reserved(self) -> float:
        """Dollars set aside for calls that are under way."""
        return self._held[0]

    @property
    def limited(self) -> bool:
        """Whether it, or one around it, limits dollars or tokens."""
        return any(budget.dollars is not None or budget.tokens is not None for budget in self._chain())

    def only_dollars(self) -> bool:
        """Whether some budget of the chain has no other limit than one in dollars, which needs known prices."""
        return any(b.dollars is not None and b.tokens is None and b.calls is None for b in self._chain())

    async def reserve(self, estimate: CallEstimate) -> "Reservation":
        """Room for one call, as soon as there is; `BudgetExceeded` where there will not be, even for a short reply."""
        while True:
            chain = self._chain()
            try:
                return self._taken(estimate, estimate.output)
            except BudgetExceeded as error:
                short = next((b for b in chain if b._lacks(estimate.cost())), self)
                # A limit on calls is not waited for: every call that is under way will have used one.
                if short._under_way and not short._lacks(Cost(calls=1)) and await short._next_landing():
                    continue
                room = chain[0]._room(estimate.cost())
                for budget in chain[1:]:
                    room = room.within(budget._room(estimate.cost()))
                output = estimate.longest(room)
                if output < min(LEAST_OUTPUT_TOKENS, estimate.output):
                    raise error from None
                return self._taken(estimate, output)

    def _taken(self, estimate: CallEstimate, output: int) -> "Reservation":
        held = self.set_aside(estimate.cost(output))
        for budget in self._chain():
            budget._under_way += 1
        return Reservation(budget=self, held=held, output=output)

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
        for budget in self._chain():
            budget._under_way -= 1
            waiting, budget._waiting = budget._waiting, []
            for loop, landing in waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_wake, landing)

    def set_aside(self, estimate: Cost) -> Cost:
        """Hold room here and in every budget around this one, or raise `BudgetExceeded`."""
        budgets = self._chain()
        for budget in budgets:
            budget._check(estimate)
        for budget in budgets:
            budget._hold(estimate, 1)
        return estimate

    def settle(self, held: Cost, actual: Cost, *, at_risk: bool = False) -> None:
        """Replace what was set aside by what the call cost, or may have cost."""
        for budget in self._chain():
            budget._hold(held, -1)
            if at_risk:
                budget.at_risk += actual
            else:
                budget.spent += actual

    def _chain(self) -> list["Budget"]:
        return [self, *(self.within._chain() if self.within else ())]

    def _hold(self, estimate: Cost, sign: int) -> None:
        for place, amount in enumerate(_amounts(estimate)):
            self._held[place] += sign * amount

    def _room(self, wanted: Cost) -> Room:
        """What is left. `wanted` is what somebody would like to have."""
        used = [a + b + c for a, b, c in zip(_amounts(self.spent), _amounts(self.at_risk), self._held, strict=True)]
        limits = (self.dollars, self.tokens, self.calls)
        left = [inf if limit is None else limit - amount for limit, amount in zip(limits, used, strict=True)]
        return Room(dollars=left[0], tokens=left[1], calls=left[2])

    def _lacks(self, wanted: Cost) -> str:
        """The unit of which there is too little."""
        room = self._room(wanted)
        for unit, amount in zip(("dollars", "tokens", "calls"), _amounts(wanted), strict=True):
            # Amounts are added and taken away again: leave room for what floats lose in that.
            slack = 1e-9 * (getattr(self, unit) or 0.0)
            if amount > getattr(room, unit) + slack:
                return unit
        return ""

    def _check(self, wanted: Cost) -> None:
        unit = self._lacks(wanted)
        if not unit:
            return
        limit = getattr(self, unit)
        spent, at_risk = getattr(self.spent, unit), getattr(self.at_risk, unit)
        used = limit - getattr(self._room(wanted), unit)
        message = f"the budget of the {self.name} allows {limit:,} {unit}; {round(spent, 6):,} spent"
        for what, amount in (("reserved", used - spent - at_risk), ("at risk", at_risk)):
            message += f", {round(amount, 6):,} {what}" if round(amount, 6) else ""
        raise BudgetExceeded(f"{message}, {round(getattr(wanted, unit), 6):,} more wanted")


def _wake(landing: "asyncio.Future[None]") -> None:
    if not landing.done():
        landing.set_result(None)


def _amounts(cost: Cost) -> tuple[float, int, int]:
    return cost.dollars, cost.tokens, cost.calls


@dataclass(kw_only=True)
class Reservation:
    """Room for one call. It is settled once; each attempt that was lost on the way counts at its estimate."""

    budget: Budget
    held: Cost
    output: int
    """Tokens the reply may have at most."""
    lost: int = field(default=0, init=False)

    def lose(self) -> None:
        """An attempt may have been billed: book it, and make room for the next, or raise `BudgetExceeded`."""
        self.lost += 1
        self.budget.settle(self.held, self.held, at_risk=True)
        try:
            self.budget.set_aside(self.held)
        except BudgetExceeded:
            self.held = Cost()
            raise

    def settle(self, actual: Cost, *, at_risk: bool = False) -> None:
        """The call is over."""
        self.budget.settle(self.held, actual, at_risk=at_risk)
        self.budget.landed()


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
    size += len(str(request.schema)) if request.schema else 0
    return TokenCount(
        input=int(size / BYTES_PER_TOKEN) + 1, output=request.settings.max_tokens or _longest(request.model)
    )


def _longest(model: str) -> int:
    return min(facts_of(ModelName.read(model).name).max_output or DEFAULT_OUTPUT_TOKENS, DEFAULT_OUTPUT_TOKENS)


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
        if price is None and self._budget.only_dollars():
            hint = "state its price, or limit tokens or calls as well"
            raise InputError(f"no price is known for {request.model}: a budget in dollars cannot hold", hint=hint)
        tokens = estimate_tokens(request)
        factor = TIER_FACTORS.get(request.settings.tier or "standard", 1.0)
        estimate = CallEstimate(input=tokens.input, output=tokens.output, price=price, factor=factor)
        reservation = await self._budget.reserve(estimate)
        if self._budget.limited:
            caps = [cap for cap in (request.cap, reservation.output) if cap is not None]
            request = replace(request, cap=min(caps), reservations=(*request.reservations, reservation))
        try:
            reply = await self._inner.complete(request)
        except (ModelRefused, BudgetExceeded):
            reservation.settle(Cost())
            raise
        except ReplyLost:
            # It was booked when it was lost, if somebody tried again; the last attempt was not.
            reservation.settle(reservation.held, at_risk=True)
            raise
        except ModelBusy:
            reservation.settle(Cost())
            raise
        except asyncio.CancelledError:
            # Out of time, most likely: the provider may have finished its work.
            reservation.settle(reservation.held, at_risk=True)
            raise
        except BaseException as error:
            lost = isinstance(error.__cause__, ReplyLost)
            reservation.settle(reservation.held if lost else Cost(), at_risk=lost)
            raise
        reservation.settle(cost_of_call(reply.tokens, self._prices.charged(request, reply)))
        return reply


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

    def _room(self, wanted: Cost) -> Room:
        short = wanted.dollars - super()._room(wanted).dollars
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
            rows = statements.read(_READ_DRAWN, (self._run,))
            drawn = rows[0][0] if rows else 0.0
            got = min(wanted, max(0.0, self._whole - drawn))
            statements.write(_WRITE_DRAWN, (self._run, drawn + got))
            return got

        return self._database.together(draw, alone=f"budget/{self._run}")
