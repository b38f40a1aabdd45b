"""Budgets: hard limits on dollars that are never overspent and that pay for everything they can pay for.

Before a call is sent, the most it can cost is reserved, and its reply is capped at what the reservation pays for. If
there is no room, the call waits until other calls return. A call with nothing to wait for takes what is left; its input
is then priced at the share measured so far instead of the cautious estimate, so that a sufficient budget is not refused
for costs that will not occur. A lost reply may still have been billed, so it is booked at its estimate, as money at
risk.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from foretell.models.canonical import quick_json, request_key
from foretell.models.database.interface import Statements
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
from foretell.models.waiting import StandingStill
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost

if TYPE_CHECKING:
    from foretell.models.journal import Journal, JournalReadingModel

T = TypeVar("T")
BYTES_PER_TOKEN = 3.5
"""A cautious ratio for English text. The true count is booked when the reply arrives."""
DEFAULT_OUTPUT_TOKENS = 16_384
"""Longest reply, reasoning included, when the request sets no limit and the budget has room."""
LEAST_OUTPUT_TOKENS = 16
"""No call is made for a shorter reply unless replies this short were seen. OpenAI accepts no lower limit."""
LOOK_ELSEWHERE = 1.0
"""Seconds between checks whether calls of other processes have returned."""


class CallEstimate(NamedTuple):
    """The most a call can cost, as a function of the reply's length."""

    input: int
    output: int
    """Maximum output tokens if the budget has room."""
    price: TokenPrice | None = None
    factor: float = 1.0
    """Price multiplier of the service tier."""

    def dollars(self, output: float | None = None) -> float:
        """The cost with a reply of this many tokens, or of the longest reply if no number is given."""
        if self.price is None:
            return 0.0
        return self.price.most(self.input, int(self.output if output is None else output)) * self.factor

    def longest(self, dollars: float, reading: float = 1.0) -> int:
        """Tokens of the longest reply this amount pays for, if the input costs this share of its estimate."""
        most = self.dollars(0)
        read = ceil(reading * self.input - 1e-9) * most / self.input if self.input else 0.0
        per_token = (self.dollars(1_000_000) - most) / 1_000_000
        free = inf if read <= dollars else 0.0
        affordable = (dollars - read) / per_token if per_token > 0 else free
        # The tiny extra is what floats lose in additions.
        return int(min(affordable + 1e-6, self.output))


class Budget:
    """A hard limit in dollars, or no limit. A question's budget is nested in its run's budget.

    A reply that has been paid for is always returned; it is the next call that is refused.
    """

    def __init__(
        self,
        name: str,
        *,
        dollars: float | None = None,
        within: "Budget | None" = None,
        run: str = "",
        counted: Collection[str] = (),
    ) -> None:
        """`run` is the id of the run that pays; the journal records it with every call paid from this budget.

        With `run`, the budget starts with what that run has already paid. A budget without it starts with the payments
        of the `counted` runs. Stored replies of those runs are not booked again, neither here nor in an enclosing
        budget.
        """
        self.name = name
        self._counted = {run, *counted} - {""}
        self.run: str = run or (within.run if within else "")
        self.dollars = dollars
        self.within = within
        self._chain: tuple[Budget, ...] = (self, *(within._chain if within else ()))
        self.spent = Cost()
        self.at_risk = Cost()
        """Lost replies that may have been billed, at their estimates."""
        self.checks = Cost()
        """The part of the spending that went into probing models."""
        self.reserved = 0.0
        """Dollars set aside for calls in flight."""
        self._under_way = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._reading: float | None = None
        """The largest share of its estimate that input has cost so far; None before the first reply."""
        self._least = LEAST_OUTPUT_TOKENS
        """Tokens of the shortest reply worth asking for."""

    @property
    def limited(self) -> bool:
        """Whether this budget or an enclosing one has a limit. A limit needs known prices."""
        return any(budget.dollars is not None for budget in self._chain)

    def spend(self, cost: Cost) -> None:
        """Book a cost that does not depend on tokens, or raise `BudgetExceeded`."""
        self.hold(cost.dollars)
        self.release(cost.dollars, cost)

    async def reserve(
        self, estimate: CallEstimate, is_paid: Callable[[], Awaitable[bool]] | None = None
    ) -> "Reservation":
        """Reserve money for one call as soon as there is room, or raise `BudgetExceeded` if there will never be any.

        A call that `is_paid`, because its reply is stored, needs no room.
        """
        most = estimate.dollars()
        output, dollars = estimate.output, most
        while short := [budget for budget in self._chain if budget._lacks(most)]:
            if is_paid is not None and await is_paid():
                dollars = 0.0
                break
            busy = next((budget for budget in short if budget._under_way), None)
            if busy is not None:
                await busy._next_landing()
            elif any(budget._busy_elsewhere() for budget in short):
                with StandingStill():
                    await asyncio.sleep(LOOK_ELSEWHERE)
            else:
                output, dollars = self._what_is_left(estimate, short)
                break
        self.hold(dollars)
        for budget in self._chain:
            budget._under_way += 1
        return Reservation(budget=self, dollars=dollars, estimate=estimate, output=output)

    def _what_is_left(self, estimate: CallEstimate, short: "Sequence[Budget]") -> tuple[int, float]:
        """The tokens and dollars for a call when no other call is in flight."""
        tightest = min(short, key=lambda budget: budget._room(0.0))
        room, outermost = tightest._room(0.0), self._chain[-1]
        output = estimate.longest(room, 1.0 if outermost._reading is None else outermost._reading)
        least = min(outermost._least, estimate.output)
        if output < least:
            raise BudgetExceeded(tightest._shortage(estimate.dollars(least)))
        return output, min(room, estimate.dollars(output))

    def learn(self, reading: float, written: int) -> None:
        """Learn from a complete reply: the share of its estimate that the input cost, and its length in tokens."""
        outermost = self._chain[-1]
        outermost._reading = max(outermost._reading or 0.0, reading)
        outermost._least = max(1, min(outermost._least, written))

    async def _next_landing(self) -> None:
        """Wait until a call in flight returns. Every call has its own time limit."""
        loop = asyncio.get_running_loop()
        landing: asyncio.Future[None] = loop.create_future()
        self._waiting.append((loop, landing))
        with StandingStill():
            await landing

    def landed(self) -> None:
        """A call has returned: wake everyone who waits for this budget or an enclosing one."""
        for budget in self._chain:
            budget._under_way -= 1
            budget._make_room()
            waiting, budget._waiting = budget._waiting, []
            for loop, landing in waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_wake, landing)

    def _make_room(self) -> None:
        """Return money that others could use."""

    def _busy_elsewhere(self) -> bool:
        """Whether other processes have calls in flight that this budget pays for."""
        return False

    def hold(self, dollars: float) -> None:
        """Hold money here and in every enclosing budget, or raise `BudgetExceeded`."""
        for budget in self._chain:
            if budget._lacks(dollars):
                raise BudgetExceeded(budget._shortage(dollars))
        for budget in self._chain:
            budget.reserved += dollars

    def release(self, dollars: float, actual: Cost, *, at_risk: bool = False, paid_by: str = "") -> None:
        """Replace the amount held by what the call cost, or may have cost. `paid_by` is the run that paid earlier."""
        known = False
        for budget in self._chain:
            budget.reserved -= dollars
            known = known or paid_by in budget._counted
            if at_risk:
                budget.at_risk += actual
            else:
                # The dollars of a stored reply are among those that the budget began with; the call is counted.
                budget.spent += replace(actual, dollars=0.0) if known else actual

    def _room(self, wanted: float) -> float:
        """Dollars left. `wanted` is the amount somebody asks for."""
        used = self.spent.dollars + self.at_risk.dollars + self.reserved
        return inf if self.dollars is None else self.dollars - used

    def _lacks(self, wanted: float) -> bool:
        # Amounts are added and taken away again: leave room for what floats lose in that.
        return wanted > self._room(wanted) + 1e-9 * (self.dollars or 0.0)

    def _shortage(self, wanted: float) -> str:
        return self._shortage_text(self.dollars or 0.0, wanted)

    def _shortage_text(self, allowed: float, wanted: float, by_others: float = 0.0) -> str:
        message = f"the budget of the {self.name} allows {allowed:,} dollars; {round(self.spent.dollars, 6):,} spent"
        others = "by earlier or other processes"
        for what, amount in ((others, by_others), ("reserved", self.reserved), ("at risk", self.at_risk.dollars)):
            message += f", {round(amount, 6):,} {what}" if round(amount, 6) else ""
        return f"{message}, {round(wanted, 6):,} more wanted"


def _wake(landing: "asyncio.Future[None]") -> None:
    if not landing.done():
        landing.set_result(None)


@dataclass(kw_only=True)
class Reservation:
    """Money reserved for one call, settled once. Every attempt whose reply was lost is booked at its estimate."""

    budget: Budget
    dollars: float
    estimate: CallEstimate
    output: int
    """Maximum output tokens."""
    under_way: bool = True
    """False while the call waits for money again."""
    paid_by: str = ""
    """The run that paid for the reply earlier, if the reply came from the journal."""

    @property
    def run(self) -> str:
        """Id of the run that pays; empty if there is none."""
        return self.budget.run

    async def lose(self) -> int:
        """Book an attempt that may have been billed and reserve money for the next, or raise `BudgetExceeded`.

        Returns the maximum output tokens of the next attempt.
        """
        return await self._renew(self._maximum(), self.estimate._replace(output=self.output))

    async def reprice(self, factor: float) -> int:
        """Reserve again because the price multiplier has changed. Returns the maximum output tokens."""
        if factor <= self.estimate.factor:
            return self.output
        return await self._renew(None, self.estimate._replace(output=self.output, factor=factor))

    async def _renew(self, lost: Cost | None, estimate: CallEstimate) -> int:
        self.budget.release(self.dollars, lost or Cost(), at_risk=lost is not None)
        self.dollars, self.under_way = 0.0, False
        self.budget.landed()
        again = await self.budget.reserve(estimate)
        self.estimate, self.dollars, self.output, self.under_way = estimate, again.dollars, again.output, True
        return again.output

    def settle(self, actual: Cost | None) -> None:
        """End the reservation with the call's cost, or with None if its reply was lost and may have been billed."""
        lost = actual is None and self.under_way
        cost = self._maximum() if lost else actual or Cost()
        self.budget.release(self.dollars, cost, at_risk=lost, paid_by=self.paid_by)
        if self.under_way:
            self.budget.landed()

    def found(self, paid_by: str) -> None:
        """The reply is stored: a run paid for it earlier."""
        self.paid_by = paid_by

    def _maximum(self) -> Cost:
        return Cost(calls=1, input_tokens=self.estimate.input, output_tokens=self.output, dollars=self.dollars)


def estimate_tokens(request: Request) -> TokenCount:
    """Estimated input tokens of a request and the maximum of its output tokens."""
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


class _PaidCall:
    """A request as it is sent, and its reply once it has arrived."""

    __slots__ = ("reply", "request")
    reply: Reply

    def __init__(self, request: Request) -> None:
        self.request = request


class BudgetedModel:
    """Books every reply, stored or new, and refuses calls that the budget has no room for.

    It wraps the journal, so that a replay exceeds the budget at the same call as the recorded run.
    """

    def __init__(
        self, inner: Model, prices: PriceList, budget: Budget, kept: "JournalReadingModel | None" = None
    ) -> None:
        """`kept` knows which replies are stored."""
        self._inner = inner
        self._kept = kept
        self._prices = prices
        self._budget = budget

    async def complete(self, request: Request) -> Reply:
        """The reply, or `BudgetExceeded` before anything is sent."""
        request_key(request)  # Remembered by the copy that is paid for, and by the one that the caller has.
        with self._paying(request, await self._reserve(request)) as call:
            call.reply = await self._inner.complete(call.request)
        reply = call.reply
        return reply if reply.cap is None or self._kept is None else await self._uncut(request, reply, self._kept)

    async def _uncut(self, request: Request, reply: Reply, kept: "JournalReadingModel") -> Reply:
        """Ask again, now that there is more money, for a reply that a budget had cut off.

        Each run uses its own slot for this, so that a replay of one run never reads what another run with a larger
        budget got. The replies that were cut off stay booked.
        """
        cut_off: tuple[Reply, ...] = ()
        while reply.cap is not None:
            again = replace(request, slot=f"{request.slot}/uncut {len(cut_off) + 1} of {self._budget.run}")
            stored = await kept.has(again)
            if not stored and kept.mode == "replay":
                break
            try:
                reservation = await self._reserve(again)
            except BudgetExceeded:
                if stored:
                    raise
                break
            if not stored and self._longest(again, reservation) <= reply.cap:
                reservation.settle(Cost())
                break
            cut_off += (reply,)
            with self._paying(again, reservation) as call:
                call.reply = await self._inner.complete(call.request)
            reply = replace(call.reply, key=request_key(again))
        return replace(reply, cut_off=cut_off) if cut_off else reply

    async def _reserve(self, request: Request) -> Reservation:
        """Reserve money for a request. Stored replies need none, except in a replay, which pays like the first run."""
        price = self._prices.of(request.model)
        if price is None and self._budget.limited:
            hint = "choose a model whose price is known, state its price, or set no budget"
            raise InputError(f"no price is known for {request.model}: a budget in dollars cannot hold", hint=hint)
        tokens = estimate_tokens(request)
        factor = tier_factor(request.model, request.settings.tier)
        estimate = CallEstimate(input=tokens.input, output=tokens.output, price=price, factor=factor)
        has = self._kept.has if self._kept is not None and self._kept.mode == "live" else None
        return await self._budget.reserve(estimate, None if has is None else lambda: has(request))

    def _longest(self, request: Request, reservation: Reservation) -> float:
        """Maximum output tokens of a request."""
        if self._budget.limited:
            return reservation.output
        return request.settings.max_tokens or facts_of(ModelName.read(request.model).name).max_output or inf

    @contextmanager
    def _paying(self, request: Request, reservation: Reservation) -> Generator["_PaidCall"]:
        """Send a request inside this block after money was reserved; its cost is booked at the end."""
        cap, estimate = request.cap, reservation.estimate
        if self._budget.limited:
            cap = reservation.output if cap is None else min(cap, reservation.output)
        call = _PaidCall(request.paid_from(reservation, cap))
        try:
            yield call
        except BaseException as error:
            # Out of time or cut off on the way: the provider may have finished its work.
            lost = isinstance(error, ReplyLost | ReplyTooLong | asyncio.CancelledError) or isinstance(
                error.__cause__, ReplyLost
            )
            reservation.settle(None if lost else Cost())
            raise
        reply = call.reply
        cost = sum((self._cost(call.request, one) for one in reply.cut_off), self._cost(call.request, reply))
        counted = reply.finish != "length" and not reply.tokens.estimated
        if self._budget.limited and estimate.price is not None and counted:
            self._budget.learn(_reading_share(estimate.price, estimate, reply), reply.tokens.output)
        reservation.settle(cost)

    def _cost(self, request: Request, reply: Reply) -> Cost:
        dollars = self._prices.charged(request, reply)
        return Cost(
            calls=1,
            input_tokens=reply.tokens.input,
            output_tokens=reply.tokens.output,
            dollars=dollars or 0.0,
            unpriced=int(dollars is None),
        )


def _reading_share(price: TokenPrice, estimate: CallEstimate, reply: Reply) -> float:
    """Cost of the input without a cache, as a share of its estimate: the next call may miss the cache."""
    estimated = estimate.dollars(0)
    read = price.dollars(replace(reply.tokens, output=0, reasoning=0, cached=0)) * estimate.factor
    return read / estimated if estimated else 1.0


# The budget of a run that many processes work at: each draws a little at a time, all together never more than it.

DRAW_SHARE = 0.02
"""Share of the whole budget that a process draws at once, so that not every call queries the database."""
_READ_ALLOWANCES = "SELECT owner, dollars FROM allowance WHERE run = ?"
_SET_ALLOWANCE = """
INSERT INTO allowance VALUES (?, ?, ?) ON CONFLICT (run, owner) DO UPDATE SET dollars = excluded.dollars"""
_NOBODY = 0
"""Owner id for amounts used by processes that have ended."""


class SharedBudget(Budget):
    """A budget shared by several processes: each draws a part in advance and draws more when that is used up.

    When a process was killed, what it had drawn and not used becomes free when the next process opens the budget. In a
    database shared by several machines this cannot be known, because a process that seems dead may return: there, the
    money stays drawn.
    """

    def __init__(
        self, name: str, journal: "Journal", run: str, *, dollars: float, within: Budget | None = None
    ) -> None:
        super().__init__(name, dollars=0.0, within=within, run=run)
        self._journal = journal
        self._owner = journal.database.life.id
        self._whole = dollars
        if not journal.database.shared:
            self._together(self._settle_gone)

    def _together(self, work: Callable[[Statements], T]) -> T:
        return self._journal.database.together(work, alone=f"budget/{self.run}")

    def _settle_gone(self, statements: Statements) -> None:
        drawn = dict[int, float](statements.read(_READ_ALLOWANCES, (self.run,)))
        if gone := self._journal.database.life.gone(drawn.keys() - {_NOBODY}):
            most = sum(drawn[owner] for owner in gone) + drawn.get(_NOBODY, 0.0)
            used = min(most, self._journal.used_by_gone(self.run))
            statements.write(_SET_ALLOWANCE, (self.run, _NOBODY, used))
            for owner in gone:
                statements.write("DELETE FROM allowance WHERE run = ? AND owner = ?", (self.run, owner))

    def _room(self, wanted: float) -> float:
        short = wanted - super()._room(wanted)
        if short > 0:
            self.dollars = (self.dollars or 0.0) + self._draw(max(short, DRAW_SHARE * self._whole))
        return super()._room(wanted)

    def _make_room(self) -> None:
        spare = super()._room(0.0)
        kept = DRAW_SHARE * self._whole if self._under_way else 0.0
        if spare > 2 * kept:
            self.dollars = (self.dollars or 0.0) + self._draw(kept - spare)

    def _busy_elsewhere(self) -> bool:
        return self._journal.unsettled(self.run).reserved > 0

    def give_back(self) -> None:
        """Return what was drawn and not spent."""
        used = self.spent.dollars + self.at_risk.dollars
        if self.dollars:
            self._draw(used - self.dollars)
            self.dollars = used

    def _draw(self, wanted: float) -> float:
        def draw(statements: Statements) -> float:
            drawn = dict[int, float](statements.read(_READ_ALLOWANCES, (self.run,)))
            got = min(wanted, max(0.0, self._whole - sum(drawn.values())))
            statements.write(_SET_ALLOWANCE, (self.run, self._owner, drawn.get(self._owner, 0.0) + got))
            return got

        return self._together(draw)

    def _shortage(self, wanted: float) -> str:
        drawn = sum(dollars for _, dollars in self._journal.database.read(_READ_ALLOWANCES, (self.run,)))
        others = drawn - (self.dollars or 0.0)
        return self._shortage_text(self._whole, wanted, by_others=others)
