"""Counting what calls cost, and stopping before a hard budget breaks."""

from dataclasses import dataclass, field

from foretell.llm.message import Assistant, Reply, Request, Tokens, ToolResult
from foretell.llm.model import BudgetSpent, Model
from foretell.llm.prices import Prices
from foretell.questions.problems import InputError

BYTES_PER_TOKEN = 3.5
"""On the careful side for English; the true count is booked when the reply is there."""
USUAL_OUTPUT = 4096
"""Tokens set aside for a reply whose request names no limit."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What calls added up to.

    >>> Spend(calls=1, dollars=0.5) + Spend(calls=2, dollars=0.25)
    Spend(calls=3, tokens=Tokens(input=0, output=0, cached=0, stored=0), dollars=0.75, unpriced=0)
    """

    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    dollars: float = 0.0
    """Of the calls whose price is known."""
    unpriced: int = 0
    """Calls whose price is unknown: `dollars` is then a lower bound."""

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(
            calls=self.calls + other.calls,
            tokens=Tokens(
                input=self.tokens.input + other.tokens.input,
                output=self.tokens.output + other.tokens.output,
                cached=self.tokens.cached + other.tokens.cached,
                stored=self.tokens.stored + other.tokens.stored,
            ),
            dollars=self.dollars + other.dollars,
            unpriced=self.unpriced + other.unpriced,
        )

    def __str__(self) -> str:
        """For people: `$0.12, 3 calls, 4,200 tokens`."""
        dollars = f"${self.dollars:.4f}" + (f" and {self.unpriced} calls of unknown price" if self.unpriced else "")
        return f"{dollars}, {self.calls} calls, {self.tokens.input + self.tokens.output:,} tokens"


def spend_of(tokens: Tokens, dollars: float | None) -> Spend:
    """One call."""
    return Spend(calls=1, tokens=tokens, dollars=dollars or 0.0, unpriced=int(dollars is None))


class Budget:
    """A hard limit on dollars, tokens and calls; a question's budget lies within that of its run.

    A call is set aside at its estimate before it is sent, so that many at once cannot break the limit together.
    A reply that has been paid for is always handed over; the next call is refused.

    >>> run = Budget("run", dollars=1.0)
    >>> question = Budget("question", calls=1, within=run)
    >>> question.settle(question.set_aside(Spend(calls=1, dollars=0.6)), Spend(calls=1, dollars=0.2))
    >>> round(run.spent.dollars, 2)
    0.2
    >>> question.set_aside(Spend(calls=1, dollars=0.1))
    Traceback (most recent call last):
    ...
    foretell.llm.model.BudgetSpent: the budget of the question allows 1 calls; 1 spent, 1 more wanted
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
        self.spent = Spend()
        self._aside = [0.0, 0, 0]

    def set_aside(self, estimate: Spend) -> Spend:
        """Reserve room for one call here and in every budget around this one, or raise `BudgetSpent`."""
        budgets = self._chain()
        for budget in budgets:
            budget._check(estimate)
        for budget in budgets:
            budget._hold(estimate, 1)
        return estimate

    def settle(self, estimate: Spend, actual: Spend) -> None:
        """Replace what was set aside by what the call cost."""
        for budget in self._chain():
            budget._hold(estimate, -1)
            budget.spent += actual

    def only_dollars(self) -> bool:
        """Whether some budget of the chain has no other limit than one in dollars, which needs known prices."""
        return any(b.dollars is not None and b.tokens is None and b.calls is None for b in self._chain())

    def _chain(self) -> list["Budget"]:
        return [self, *(self.within._chain() if self.within else ())]

    def _hold(self, estimate: Spend, sign: int) -> None:
        for place, amount in enumerate(_amounts(estimate)):
            self._aside[place] += sign * amount

    def _check(self, estimate: Spend) -> None:
        limits = (self.dollars, self.tokens, self.calls)
        spends = zip(_amounts(self.spent), self._aside, _amounts(estimate), strict=True)
        for unit, limit, (spent, aside, wanted) in zip(("dollars", "tokens", "calls"), limits, spends, strict=True):
            # Set-asides are added and taken away again: leave room for what floats lose in that.
            if limit is not None and spent + aside + wanted > limit * (1 + 1e-9):
                told = f"the budget of the {self.name} allows {limit:,} {unit}; {round(spent + aside, 6):,} spent"
                raise BudgetSpent(f"{told}, {round(wanted, 6):,} more wanted")


def _amounts(spend: Spend) -> tuple[float, int, int]:
    return spend.dollars, spend.tokens.input + spend.tokens.output, spend.calls


def estimate_tokens(request: Request) -> Tokens:
    """What a request may cost at most, before it is sent."""
    size = sum(_bytes(message.text) for message in request.messages)
    for message in request.messages:
        if isinstance(message, Assistant):
            size += len(message.thoughts) + sum(len(call.arguments) + len(call.name) for call in message.calls)
        elif isinstance(message, ToolResult):
            size += len(message.name)
    size += sum(len(tool.description) + len(tool.parameters_json) for tool in request.tools)
    size += len(str(request.schema)) if request.schema else 0
    output = request.settings.max_tokens
    return Tokens(input=int(size / BYTES_PER_TOKEN) + 1, output=USUAL_OUTPUT if output is None else output)


def _bytes(text: str) -> int:
    """Its length when sent; most texts are known to be ASCII without looking at them again."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


class Metered:
    """Books every reply, journalled or new, and refuses calls that a budget has no room for.

    It stands outside the journal, so that a replay runs out of budget at the same call as the recorded run.
    """

    def __init__(self, inner: Model, prices: Prices, budget: Budget) -> None:
        self._inner = inner
        self._prices = prices
        self._budget = budget

    async def complete(self, request: Request) -> Reply:
        """The reply, or `BudgetSpent` before anything is sent."""
        price = self._prices.of(request.model)
        if price is None and self._budget.only_dollars():
            hint = "state its price, or limit tokens or calls as well"
            raise InputError(f"no price is known for {request.model}: a budget in dollars cannot hold", hint=hint)
        tokens = estimate_tokens(request)
        held = self._budget.set_aside(spend_of(tokens, price.dollars(tokens) if price else None))
        actual = Spend()
        try:
            reply = await self._inner.complete(request)
            actual = spend_of(reply.tokens, price.dollars(reply.tokens) if price else None)
        finally:
            self._budget.settle(held, actual)
        return reply
