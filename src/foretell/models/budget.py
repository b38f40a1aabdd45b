"""Budgets: limits in dollars that are never exceeded and that pay for everything they can pay for.

A budget is an account of the ledger together with what this process spent from it. Before a call is sent, the most it
can cost is reserved, and its reply is capped at what the reservation pays for. If there is no room, the call waits
until other calls return. A call with nothing to wait for takes what is left. Replies in the journal are free: they are
looked up before anything is reserved.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from secrets import token_hex
from typing import Literal, NamedTuple, TypeVar

from foretell.models.canonical import quick_json, request_key
from foretell.models.facts import facts_of
from foretell.models.journal import Journal
from foretell.models.ledger import Account, CallEstimate, CallRequest, Grant, Ledger, Money, charged_reply
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    Message,
    Model,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    ReservationReleased,
    TokenCount,
    ToolResult,
    ToolSpec,
)
from foretell.models.names import ModelName
from foretell.models.prices import PriceList, TokenPrice, tier_factor
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost

BYTES_PER_TOKEN = 3.5
"""A cautious ratio for English words. The true count is booked when the reply arrives."""
MESSAGE_TOKENS = 8
"""Tokens with which providers set a message apart from the others."""
TOOLS_TOKENS = 400
"""Tokens of the instructions that providers add to a request with tools."""
DEFAULT_OUTPUT_TOKENS = 16_384
"""Longest reply, reasoning included, when the request sets no limit and the budget has room."""
T = TypeVar("T")
_WORDS = bytes(range(ord("a"), ord("z") + 1)) + bytes(range(ord("A"), ord("Z") + 1)) + b" "


class Budget:
    """Counts what calls cost in this process, and keeps to the limits of its account and of those around it.

    A question's budget lies within its run's, a run's within that of its grid, arena or tournament. A reply that has
    been paid for is always returned; it is the next call that is refused.
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
        """Processes with the same `id` share one account. Without an id and a limit, costs are counted here alone.

        `run` is the id of the run that pays, and that of its account. The journal records it with every reply, so that
        what other runs paid for is known.
        """
        self.name = name
        self.id: str = id or run or (f"{name} {token_hex(8)}" if dollars is not None else "")
        self.run: str = run or (within.run if within else "")
        self.dollars = dollars
        self._chain: tuple[Budget, ...] = (self, *(within._chain if within else ()))
        self.billed = Cost()
        """Replies that were paid for in this process."""
        self.reused = Cost()
        """Replies that this process took from the journal, at what they cost when they came."""
        self.unknown = Cost()
        """Lost replies of this process that may have been billed, at their reservations."""
        self.reserved = 0.0
        """Dollars reserved for open calls of this process."""
        self._ledger: Ledger | None = None
        self._opened: Ledger | None = None

    @property
    def limited(self) -> bool:
        """Whether this budget or one around it has a limit. A limit needs known prices."""
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
        """The ledger of this budget; one in memory if it was given none."""
        holder = next((budget for budget in self._chain if budget._ledger is not None), self._chain[-1])
        if holder._ledger is None:
            holder._ledger = Ledger.in_memory()
        return holder._ledger

    def use(self, ledger: Ledger) -> None:
        """Keep the accounts in this ledger, unless the budget, or one around it, has one."""
        if all(budget._ledger is None for budget in self._chain):
            self._ledger = ledger

    def open(self, ledger: Ledger | None = None) -> str:
        """Open the account, and those around it, in a ledger. Returns the id of the innermost one."""
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
        """Reserve money for one call as soon as there is room, or raise `BudgetExceeded` if there will never be any."""
        ledger = self.ledger
        account = next((budget.id for budget in self._chain if budget.id), "")
        if not account or any(budget._opened is not ledger for budget in self._chain if budget.id):
            account = await ledger.database.aside(self.open)
        asked = CallRequest(account, request_key(request), request.model, estimate, request.settings.tier == "batch")
        grant = await ledger.reserve_soon(asked)
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
        """Count what a call of this process cost, here and in every budget around."""
        for budget in self._chain:
            setattr(budget, how, getattr(budget, how) + cost)


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
    """Roughly the input tokens of a request, and the maximum of its output tokens."""
    size = sum([_remembered(message, _message_sizes).bytes for message in request.messages])
    size += sum([_remembered(tool, _tool_sizes).bytes for tool in request.tools])
    size += len(quick_json(request.schema)) if request.schema else 0
    return TokenCount(input=int(size / BYTES_PER_TOKEN) + 1, output=_longest_reply(request))


def estimate_call(request: Request, price: TokenPrice | None) -> CallEstimate:
    """The most that a call can cost."""
    sizes = [_remembered(message, _message_sizes) for message in request.messages]
    sizes += [_remembered(tool, _tool_sizes) for tool in request.tools]
    sizes += [_text_sizes(quick_json(request.schema).decode())] if request.schema else []
    more = 1 + TOOLS_TOKENS * bool(request.tools)
    return CallEstimate(
        input=int(sum([one.tokens for one in sizes])) + more,
        output=_longest_reply(request),
        price=price,
        factor=tier_factor(request.model, request.settings.tier),
        bound=sum([one.bytes for one in sizes]) + more + MESSAGE_TOKENS * len(request.messages),
    )


def _longest_reply(request: Request) -> int:
    longest = facts_of(ModelName.read(request.model).name).max_output or DEFAULT_OUTPUT_TOKENS
    return request.settings.max_tokens or min(longest, DEFAULT_OUTPUT_TOKENS)


class _Sizes(NamedTuple):
    """The size of a text in bytes, and the most tokens that common tokenizers make of it."""

    bytes: int
    tokens: float

    def __add__(self, other: "_Sizes") -> "_Sizes":  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Sizes(self.bytes + other.bytes, self.tokens + other.tokens)


def _remembered(value: T, sizes: Callable[[T], _Sizes]) -> _Sizes:
    """The size of a message or tool, found once: a conversation grows, but its earlier messages stay the same."""
    known = vars(value)
    if _SIZES not in known:
        known[_SIZES] = sizes(value)
    return known[_SIZES]


def _message_sizes(message: Message) -> _Sizes:
    sizes = _text_sizes(message.text)
    if isinstance(message, AssistantMessage):
        for text in (message.sealed, *(call.arguments + call.name for call in message.calls)):
            sizes += _text_sizes(text)
    return sizes + _text_sizes(message.name) if isinstance(message, ToolResult) else sizes


def _tool_sizes(tool: ToolSpec) -> _Sizes:
    return _text_sizes(tool.description + tool.parameters_json)


def _text_sizes(text: str) -> _Sizes:
    """The size of a text.

    English words have at least `BYTES_PER_TOKEN` bytes per token. Digits and punctuation may be tokens of their own,
    and other scripts have a token for every two bytes at the most.
    """
    whole = text.encode(errors="replace")
    rest = whole.translate(None, _WORDS)
    plain = len(rest) if text.isascii() else len(rest.translate(None, _HIGH))
    tokens = (len(whole) - len(rest)) / BYTES_PER_TOKEN + plain + (len(rest) - plain) / 2
    return _Sizes(len(whole), tokens)


_SIZES = "_sizes"
_HIGH = bytes(range(128, 256))


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
        """The reply, or `BudgetExceeded` before anything is sent.

        A reply that a smaller budget had cut off is asked for again, if there is more money now. Each run uses its own
        slot for this, so that a replay of one run never reads what another run with a larger budget got. The replies
        that were cut off stay booked.
        """
        journal, run = self._journal, self._budget.run
        if journal is None:
            return await self._paid(request)
        asked, cut_off = request, tuple[Reply, ...]()
        while True:
            paid = _Paid()
            try:
                if journal.mode == "replay":
                    await self._refuse_again(journal, asked)
                reply = await journal.reply(asked, partial(self._paid, asked, paid), run)
            except BudgetExceeded:
                if not cut_off:
                    raise
                return replace(cut_off[-1], cut_off=cut_off[:-1])
            if not paid:
                self._budget.book("reused", cost_of(replace(reply, reused=False)))
            if cut_off:
                reply = replace(reply, key=request_key(asked))
            asked = replace(request, slot=f"{request.slot}/uncut {len(cut_off) + 1} of {run}")
            if reply.cap is None or not await self._more_to_get(journal, asked, reply.cap):
                return replace(reply, cut_off=cut_off) if cut_off else reply
            cut_off += (reply,)

    async def _refuse_again(self, journal: Journal, request: Request) -> None:
        """A replay ends where the recorded run had no money, even if other runs have paid for the reply since."""
        key, run = request_key(request), self._budget.run
        why = await journal.database.aside(journal.refusal, key, run)
        if why and await journal.database.aside(journal.payer, key) != run:
            raise BudgetExceeded(why)

    async def _more_to_get(self, journal: Journal, request: Request, cap: int) -> bool:
        """Whether a longer reply than the one that was cut off is stored, or there is money for one."""
        if await journal.has(request):
            return True
        if journal.mode == "replay":
            return False
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
        try:
            reservation = await self._reserve(request)
        except BudgetExceeded as error:
            if journal is not None:
                key, run = request_key(request), self._budget.run
                await journal.database.aside(journal.keep_refusal, key, run, str(error))
            raise
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
                    # This process was suspended for so long that others released its money: it reserves again.
                    await reservation.renew()
        except BaseException as error:
            # Cut off on the way: the provider may have finished its work.
            lost = isinstance(error, ReplyLost | ReplyTooLong | asyncio.CancelledError)
            reservation.end_later(lost=lost or isinstance(error.__cause__, ReplyLost))
            raise
        estimate = reservation.estimate
        if estimate.price is not None and reply.finish != "length" and not reply.tokens.estimated:
            # Without a cache: the next call may miss it.
            tokens = replace(reply.tokens, output=0, reasoning=0, cached=0)
            read = estimate.price.dollars(tokens) * estimate.factor
            reservation.ledger.learn(request.model, estimate, read, reply.tokens.output)
        await reservation.end(billed=reply.charged or 0.0)
        reservation.ledger.call_ended()
        self._budget.book("billed", cost_of(reply))
        return reply


class _Paid:
    """Whether a reply was paid for now, instead of found in the journal."""

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
        uncounted=int(reply.tokens.estimated),
    )
