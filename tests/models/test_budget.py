"""Budgets as a contract: they hold with many calls at once, long, lost and repeated replies, and enough is enough."""

import asyncio
import random

import pytest

from foretell.models.budget import Budget, BudgetedModel, BudgetExceeded
from foretell.models.limits import LimitedModel, ModelLimits
from foretell.models.model import ModelSettings, Reply, ReplyLost, Request, TokenCount, UserMessage
from foretell.models.prices import PriceList, TokenPrice

PRICE = TokenPrice(input=2, output=10)
PRICES = PriceList({"openai:x": PRICE})
AT_ONCE = 50


class Provider:
    """Bills what it writes: as much as it likes within the limit, or all of it where a reply is lost on the way."""

    def __init__(self, *, wants: int = 40_000, lose: float = 0.0, seed: int = 0) -> None:
        self.wants, self.lose, self.rng = wants, lose, random.Random(seed)
        self.bill, self.calls, self.longest = 0.0, 0, 0.0

    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(0.0005 * self.rng.random())
        self.calls += 1
        written = min(self.wants, request.max_tokens or self.wants)
        tokens = TokenCount(input=80, output=written)
        cost = PRICE.dollars(tokens)
        self.bill += cost
        self.longest = max(self.longest, cost)
        if self.rng.random() < self.lose:
            raise ReplyLost("the connection broke")
        return Reply(text="yes", tokens=tokens, finish="length" if written < self.wants else "stop")


def run(provider: Provider, budget: Budget, cells: int, *, steps: int = 4) -> list[object]:
    """Cells with a budget of their own within that of the run, fifty at once, some steps each."""

    async def main() -> list[object]:
        limits = ModelLimits(first_pause=0.0, attempts=3)
        limited = LimitedModel(provider, limits)
        slots = asyncio.Semaphore(AT_ONCE)

        async def cell(number: int) -> Reply:
            model = BudgetedModel(limited, PRICES, Budget("question", within=budget))
            async with slots:
                for step in range(steps):
                    message = UserMessage(text=f"{number} {step} " + "x" * 300)
                    reply = await model.complete(Request(model="openai:x", messages=(message,)))
            return reply

        return list(await asyncio.gather(*map(cell, range(cells)), return_exceptions=True))

    return asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("lose", [0.0, 0.3])
@pytest.mark.parametrize("dollars", [0.05, 0.5, 3.0])
def test_a_budget_holds_however_long_the_replies(dollars: float, lose: float):
    provider, budget = Provider(lose=lose), Budget("run", dollars=dollars)
    results = run(provider, budget, cells=60)
    assert any(isinstance(one, BudgetExceeded) for one in results)
    assert provider.bill <= dollars + provider.longest
    # What may have been billed is known: spent and at risk together are the bill, or above it.
    assert provider.bill <= budget.spent.dollars + budget.at_risk.dollars + 1e-9
    assert budget.spent.dollars + budget.at_risk.dollars <= dollars * (1 + 1e-6)
    assert budget.reserved == pytest.approx(0)


def test_a_sufficient_budget_completes_everything():
    needed = 60 * 4 * PRICE.dollars(TokenCount(input=80, output=900))
    provider, budget = Provider(wants=900), Budget("run", dollars=needed * 1.11)
    results = run(provider, budget, cells=60)
    assert all(isinstance(one, Reply) and one.finish == "stop" for one in results)


def test_a_small_budget_of_a_question_is_used():
    provider = Provider(wants=2_000)
    model = BudgetedModel(provider, PRICES, Budget("question", dollars=0.05))
    request = Request(model="openai:x", messages=(UserMessage(text="x"),))
    assert asyncio.run(model.complete(request)).finish == "stop"


def test_money_at_risk_counts_and_is_shown_apart():
    provider, budget = Provider(lose=1.0, wants=1_000), Budget("run", dollars=1.0)
    settings = ModelSettings(max_tokens=1_000)
    model = BudgetedModel(LimitedModel(provider, ModelLimits(first_pause=0.0, attempts=3)), PRICES, budget)
    with pytest.raises(Exception, match="gave up after 3 attempts"):
        asyncio.run(model.complete(Request(model="openai:x", messages=(UserMessage(text="x"),), settings=settings)))
    assert (budget.spent.dollars, budget.reserved) == (0.0, pytest.approx(0.0))
    assert budget.at_risk.calls == 3
    assert provider.bill == pytest.approx(budget.at_risk.dollars, rel=0.05)


def test_a_call_that_is_cut_off_by_the_clock_counts_as_maybe_billed():
    class Slow:
        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(10)
            raise AssertionError

    budget = Budget("run", dollars=1.0)

    async def main() -> None:
        model = BudgetedModel(Slow(), PRICES, budget)
        async with asyncio.timeout(0.01):
            await model.complete(Request(model="openai:x", messages=(UserMessage(text="x"),)))

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert budget.at_risk.calls == 1
    assert budget.reserved == pytest.approx(0.0)
