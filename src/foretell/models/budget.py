"""Budgets: limits in dollars that are never exceeded.

A budget is an account of the ledger together with what this process spent from it. Before a call is sent, the most it
can cost is reserved, and its reply is capped at what the reservation pays for. If there is no room, the call waits
until other calls return. If no other call is open, it takes what is left. Replies in the journal are free. They are
looked up before anything is reserved.
"""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from secrets import token_hex
from typing import Literal, TypeVar

from foretell.models.canonical import request_key
from foretell.models.facts import facts_of
from foretell.models.journal import Journal
from foretell.models.ledger import Account, CallEstimate, CallRequest, Ledger, Money, charged_reply
from foretell.models.model import (
    BudgetExceeded,
    Model,
    ModelError,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    ReservationReleased,
    TokenCount,
)
from foretell.models.names import ModelName
from foretell.models.prices import PriceList, tier_factor
from foretell.models.reservation import Grant
from foretell.models.token_price import TokenPrice
from foretell.models.tokens import estimate_input_tokens, request_sizes
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost

MESSAGE_TOKENS = 8
"""Tokens that providers add to separate messages."""
TOOLS_TOKENS = 400
"""Tokens of the instructions that providers add to a request with tools."""
DEFAULT_OUTPUT_TOKENS = 16_384
"""Longest reply, reasoning included, when the request sets no limit and the budget has room."""
T = TypeVar("T")


class Budget:
    """Counts what calls cost in this process, within the limits of its account and of the enclosing accounts.

    A question's budget is part of its run's, a run's is part of that of its grid, arena or tournament. A reply that has
    been paid for is always returned. The next call is refused.
    """

    def __init__(
        self,
        name: str,
        *,
        dollars: float | None = None,
        within: "Budget | None" = None,
        id: str = "",
        run: str = "",
    ) -> None:
        """Processes with the same `id` share one account. Without an id and a limit, costs are only counted here.

        `run` is the id of the run that pays and of its account. The journal records it with every reply, to show which
        replies other runs paid for.
        """
        self.name = name
        self.id: str = id or run or (f"{name} {token_hex(8)}" if dollars is not None else "")
        self.run: str = run or (within.run if within else "")
        self.dollars = dollars
        self._chain: tuple[Budget, ...] = (self, *(within._chain if within else ()))
        self.billed = Cost()
        """Replies that were paid for in this process."""
        self.reused = Cost()
        """Replies that were in the journal before this process needed them, at their original cost."""
        self._needed: set[str] = within._needed if within and within.run == self.run else set()
        """Keys of all replies that this process has needed for the run."""
        self.unknown = Cost()
        """Lost replies of this process that may have been billed, at their reservations."""
        self.reserved = 0.0
        """Dollars reserved for open calls of this process."""
        self._ledger: Ledger | None = None
        self._opened: Ledger | None = None

    @property
    def limited(self) -> bool:
        """Whether this budget or an enclosing one has a limit. A limit needs known prices."""
        return any(budget.dollars is not None for budget in self._chain)

    @property
    def money(self) -> Money:
        """What this process has spent."""
        return Money(
            billed=self.billed.dollars,
            reused=self.reused.dollars,
            unknown=self.unknown.dollars,
            reserved=max(0.0, round(self.reserved, 9)),
        )

    @property
    def ledger(self) -> Ledger:
        """The ledger of this budget; by default one in memory."""
        holder = next((budget for budget in self._chain if budget._ledger is not None), self._chain[-1])
        if holder._ledger is None:
            holder._ledger = Ledger.in_memory()
        return holder._ledger

    def use(self, ledger: Ledger) -> None:
        """Keep the accounts in this ledger, unless this budget or an enclosing one already has a ledger."""
        if all(budget._ledger is None for budget in self._chain):
            self._ledger = ledger

    def open(self, ledger: Ledger | None = None) -> str:
        """Open the account and the enclosing ones in a ledger. Returns the id of the innermost one."""
        ledger = ledger or self.ledger
        if not any(budget.id for budget in self._chain):
            self._chain[-1].id = f"{self._chain[-1].name} {token_hex(8)}"
        accounts = [budget for budget in self._chain if budget.id]
        for place in reversed(range(len(accounts))):
            budget = accounts[place]
            if budget._opened is not ledger:
                around = accounts[place + 1].id if place + 1 < len(accounts) else ""
                ledger.open(Account(budget.id, budget.name, budget.dollars, around))
                budget._opened = ledger
        return accounts[0].id

    def spend(self, cost: Cost, ledger: Ledger | None = None) -> None:
        """Book a cost that does not depend on tokens, or raise `BudgetExceeded`."""
        ledger = ledger or self.ledger
        if problem := ledger.spend(self.open(ledger), cost.dollars):
            raise BudgetExceeded(problem)
        for budget in self._chain:
            budget.billed += cost

    async def reserve(self, request: Request, estimate: CallEstimate) -> "Reservation":
        """Reserve money for one call as soon as there is room. Raises `BudgetExceeded` if there will never be any."""
        ledger = self.ledger
        account = next((budget.id for budget in self._chain if budget.id), "")
        if not account or any(budget._opened is not ledger for budget in self._chain if budget.id):
            account = await ledger.database.aside(self.open)
        call_request = CallRequest(
            account, request_key(request), request.model, estimate, request.settings.tier == "batch"
        )
        grant = await ledger.reserve_soon(call_request)
        if isinstance(grant, Grant):
            self.hold(grant.dollars)
            return Reservation(budget=self, request=request, grant=grant, estimate=estimate)
        if grant.unpriced:
            hint = "state it with --set prices.MODEL=0.5/2 (0 if it is free), or set no budget"
            raise InputError(f"no price is known for {request.model}, and a budget needs one", hint=hint)
        raise BudgetExceeded(grant.message)

    def hold(self, dollars: float) -> None:
        """Count an open call of this process; a negative amount ends it."""
        for budget in self._chain:
            budget.reserved += dollars

    def book(self, how: Literal["billed", "reused", "unknown"], cost: Cost) -> None:
        """Count what a call of this process cost, here and in every enclosing budget."""
        for budget in self._chain:
            setattr(budget, how, getattr(budget, how) + cost)

    def needs_first(self, key: str) -> bool:
        """Record that a reply is needed, and return whether it is the first time: trials may need the same one."""
        known = len(self._needed)
        self._needed.add(key)
        return len(self._needed) > known


@dataclass(kw_only=True)
class Reservation:
    """Money reserved for one call, settled once. Every attempt whose reply was lost stays booked as unknown."""

    budget: Budget
    request: Request
    grant: Grant
    estimate: CallEstimate
    ended: bool = False
    """Whether the ledger knows how the call ended."""

    @property
    def payer(self) -> str:
        """The run that pays; empty if there is none."""
        return self.budget.run

    @property
    def ledger(self) -> Ledger:
        """The ledger that holds it."""
        return self.budget.ledger

    async def lose(self) -> int:
        """Book an attempt that may have been billed and reserve money for the next, or raise `BudgetExceeded`.

        Returns the maximum output tokens of the next attempt.
        """
        await self.end(lost=True)
        return await self._renew(self.estimate._replace(output=self.grant.output))

    async def reprice(self, factor: float) -> int:
        """Reserve again because the price multiplier has changed. Returns the maximum output tokens."""
        if factor <= self.estimate.factor:
            return self.grant.output
        await self.end()
        return await self._renew(self.estimate._replace(output=self.grant.output, factor=factor))

    async def renew(self) -> int:
        """Reserve again after the reservation was released elsewhere. Returns the maximum output tokens."""
        await self.end()
        return await self._renew(self.estimate._replace(output=self.grant.output))

    async def _renew(self, estimate: CallEstimate) -> int:
        again = await self.budget.reserve(self.request, estimate)
        self.grant, self.estimate, self.ended = again.grant, again.estimate, False
        return self.grant.output

    async def end(self, *, billed: float | None = None, lost: bool = False) -> None:
        """End the call in the ledger: billed, lost, or certainly not billed."""
        if not self.ended:
            self._count_end(lost=lost)
            await self.ledger.database.aside(self._end, self.grant, billed, lost)
            self.ledger.call_ended()

    def end_later(self, *, lost: bool) -> None:
        """End the call without waiting, because the caller was cancelled."""
        if not self.ended:
            self._count_end(lost=lost)
            grant, ledger = self.grant, self.ledger

            def work() -> None:
                self._end(grant, None, lost)
                ledger.call_ended()

            ledger.database.later(work)

    def ended_with_reply(self) -> None:
        """The journal has billed the call together with its reply."""
        self._count_end(lost=False)

    def _end(self, grant: Grant, billed: float | None, lost: bool) -> None:
        if lost:
            self.ledger.lose(grant)
        elif billed is None:
            self.ledger.release(grant)
        else:
            self.ledger.bill(grant, billed)

    def _count_end(self, *, lost: bool) -> None:
        self.ended = True
        self.budget.hold(-self.grant.dollars)
        if lost:
            tokens = {"input_tokens": self.estimate.input, "output_tokens": self.grant.output}
            self.budget.book("unknown", Cost(calls=1, **tokens, dollars=self.grant.dollars))


def estimate_tokens(request: Request) -> TokenCount:
    """Estimate the input tokens of a request and the maximum of its output tokens."""
    return TokenCount(input=estimate_input_tokens(request), output=_longest_reply(request))


def estimate_call(request: Request, price: TokenPrice | None) -> CallEstimate:
    """The most that a call can cost."""
    sizes = request_sizes(request)
    more = 1 + TOOLS_TOKENS * bool(request.tools)
    return CallEstimate(
        input=int(sum([size.tokens for size in sizes])) + more,
        output=_longest_reply(request),
        price=price,
        factor=tier_factor(request.model, request.settings.tier),
        bound=sum([size.bytes for size in sizes]) + more + MESSAGE_TOKENS * len(request.messages),
    )


def _longest_reply(request: Request) -> int:
    longest = facts_of(ModelName.read(request.model).name).max_output or DEFAULT_OUTPUT_TOKENS
    return request.settings.max_tokens or min(longest, DEFAULT_OUTPUT_TOKENS)


class BudgetedModel:
    """Answers from the journal for free, and pays for everything else from a budget."""

    def __init__(self, inner: Model, prices: PriceList, budget: Budget, journal: Journal | None = None) -> None:
        self._inner = inner
        self._journal = journal
        self._prices = prices
        self._budget = budget
        if journal is not None:
            budget.use(journal.ledger)

    async def complete(self, request: Request) -> Reply:
        """Return the reply. Raises `BudgetExceeded` before anything is sent.

        A reply that a smaller budget had cut off is requested again if there is more money now. Each run uses its own
        slot for this, so that a replay of one run never reads the replies of a run with a larger budget. The replies
        that were cut off stay booked.
        """
        journal, run = self._journal, self._budget.run
        if journal is None:
            return await self._paid(request)
        current, cut_off = request, tuple[Reply, ...]()
        while True:
            # Before the reply is awaited: a trial that shares it must not count it, whichever gets it first.
            paid, first = _Paid(), self._budget.needs_first(request_key(current))
            try:
                if journal.mode == "replay" and (failure := await self._failure(journal, current)) is not None:
                    raise failure
                reply = await journal.reply(current, partial(self._paid, current, paid), run)
            except ModelError as error:
                if journal.mode == "live":
                    await journal.database.aside(journal.keep_failure, request_key(current), run, error)
                if not cut_off or not isinstance(error, BudgetExceeded):
                    raise
                return replace(cut_off[-1], cut_off=cut_off[:-1])
            if first and not paid:
                self._budget.book("reused", cost_of(replace(reply, reused=False)))
            if cut_off:
                reply = replace(reply, key=request_key(current))
            current = replace(request, slot=f"{request.slot}/uncut {len(cut_off) + 1} of {run}")
            if reply.cap is None or not await self._more_to_get(journal, current, reply.cap):
                return replace(reply, cut_off=cut_off) if cut_off else reply
            cut_off += (reply,)

    async def _failure(self, journal: Journal, request: Request) -> ModelError | None:
        """The error that the recorded run got, even if another run has stored the reply since."""
        return await journal.database.aside(journal.failure, request_key(request), self._budget.run)

    async def _more_to_get(self, journal: Journal, request: Request, cap: int) -> bool:
        """Whether a longer reply is stored or can be paid for."""
        if await journal.has(request):
            return True
        if journal.mode == "replay":
            return await self._failure(journal, request) is not None
        try:
            reservation = await self._reserve(request)
        except BudgetExceeded:
            return False
        longest = request.settings.max_tokens or facts_of(ModelName.read(request.model).name).max_output or inf
        longest = reservation.grant.output if reservation.grant.limited else longest
        await reservation.end()
        return longest > cap

    async def _reserve(self, request: Request) -> Reservation:
        return await self._budget.reserve(request, estimate_call(request, self._prices.of(request.model)))

    async def _paid(self, request: Request, paid: "_Paid | None" = None) -> Reply:
        """Reserve, send and settle."""
        journal = self._journal
        if paid is not None:
            paid.now = True
        reservation = await self._reserve(request)
        if journal is None:
            reservation.ledger.sending(reservation.grant.call)
        try:
            while True:
                cap = reservation.grant.output if reservation.grant.limited else None
                try:
                    sent = request.paid_from(reservation, cap)
                    reply = charged_reply(await self._inner.complete(sent), sent, self._prices)
                    break
                except ReservationReleased:
                    # This process was suspended for so long that others released its reservation.
                    await reservation.renew()
        except BaseException as error:
            # The provider may have finished and billed the reply.
            lost = isinstance(error, ReplyLost | ReplyTooLong | asyncio.CancelledError)
            reservation.end_later(lost=lost or isinstance(error.__cause__, ReplyLost))
            raise
        estimate = reservation.estimate
        if estimate.price is not None and reply.finish != "length" and not reply.tokens.estimated:
            # Count without the cache, because the next call may miss it.
            tokens = replace(reply.tokens, output=0, reasoning=0, cached=0)
            input_dollars = estimate.price.dollars(tokens) * estimate.factor
            reservation.ledger.learn(request.model, estimate, input_dollars, reply.tokens.output)
        await reservation.end(billed=reply.charged or 0.0)
        reservation.ledger.call_ended()
        self._budget.book("billed", cost_of(reply))
        return reply


class _Paid:
    """Whether a reply was paid for now rather than read from the journal."""

    now = False

    def __bool__(self) -> bool:
        return self.now


def cost_of(reply: Reply) -> Cost:
    """The cost of a reply: billed, or reused if another run paid for it."""
    dollars = reply.charged or 0.0
    return Cost(
        calls=1,
        input_tokens=reply.tokens.input,
        output_tokens=reply.tokens.output,
        dollars=0.0 if reply.reused else dollars,
        reused=dollars if reply.reused else 0.0,
        unpriced=int(reply.charged is None),
        uncounted=int(reply.tokens.estimated and dollars > 0),
    )
