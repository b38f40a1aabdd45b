"""Many calls within a small budget: all are made that there is money for, one after the other where need be."""

import asyncio

import pytest

from foretell.models.budget import Budget, BudgetedModel
from foretell.models.model import BudgetExceeded, ModelError, Reply, Request, TokenCount, UserMessage
from foretell.models.prices import PriceList, TokenPrice

PRICES = PriceList({"openai:x": TokenPrice(input=0, output=1)})
ASIDE = 16_384 / 1_000_000
"""What a call may cost at most."""


class Thrifty:
    """Needs a few of the tokens that were set aside for it."""

    def __init__(self, tokens: int = 100, broken: int = 0) -> None:
        self.tokens, self.broken, self.out, self.peak = tokens, broken, 0, 0
        self.caps: list[int | None] = []

    async def complete(self, request: Request) -> Reply:
        self.out += 1
        self.caps.append(request.max_tokens)
        self.peak = max(self.peak, self.out)
        await asyncio.sleep(0.001)
        self.out -= 1
        if self.broken:
            self.broken -= 1
            raise ModelError("down")
        return Reply(text="yes", tokens=TokenCount(output=min(self.tokens, request.max_tokens or self.tokens)))


def ask(model: Thrifty, budget: Budget, count: int) -> list[object]:
    async def work() -> list[object]:
        one = BudgetedModel(model, PRICES, budget)
        requests = [Request(model="openai:x", messages=(UserMessage(text=str(n)),)) for n in range(count)]
        return list(await asyncio.gather(*(one.complete(each) for each in requests), return_exceptions=True))

    return asyncio.run(asyncio.wait_for(work(), 30))


def refused(found: list[object]) -> int:
    return sum(isinstance(one, BudgetExceeded) for one in found)


def test_calls_wait_for_each_other():
    model = Thrifty()
    assert refused(ask(model, Budget("study", dollars=2.5 * ASIDE), 20)) == 0
    assert model.peak == 2


def test_a_spent_budget_is_spent():
    budget = Budget("study", dollars=2.5 * ASIDE)
    results = ask(Thrifty(tokens=4000), budget, 20)
    assert 0 < refused(results) < 20
    assert budget.spent.dollars == pytest.approx(2.5 * ASIDE, rel=0.01)


def test_the_last_call_takes_what_is_left():
    model = Thrifty()
    assert refused(ask(model, Budget("study", dollars=ASIDE / 2), 3)) == 0
    assert model.caps == [8192, 8092, 7992]
    assert refused(ask(Thrifty(), Budget("study", dollars=ASIDE / 100), 3)) == 3


@pytest.mark.parametrize("broken", [1, 5])
def test_calls_that_break_make_room_too(broken: int):
    found = ask(Thrifty(broken=broken), Budget("study", dollars=1.5 * ASIDE), 8)
    assert sum(isinstance(one, ModelError) for one in found) == broken
    assert sum(isinstance(one, Reply) for one in found) == 8 - broken


def test_what_was_spent_is_booked():
    budget = Budget("study", dollars=1.5 * ASIDE)
    ask(Thrifty(), budget, 5)
    assert (budget.spent.calls, budget.spent.output_tokens) == (5, 500)
    assert budget.spent.dollars == pytest.approx(0.0005)
