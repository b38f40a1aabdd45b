import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.models.budget import Budget, BudgetedModel, estimate_tokens
from foretell.models.model import BudgetExceeded, ModelError, ModelSettings, Reply, Request, TokenCount, UserMessage
from foretell.models.prices import FREE_OF_CHARGE, PriceList, TokenPrice
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost

PRICES = PriceList({"openai:m": TokenPrice(input=10, output=100)})
UNKNOWN = "compat:x@http://example.org/v1"


def _request(model: str = "openai:m", size: int = 3500, output: int | None = 1000) -> Request:
    return Request(model=model, messages=(UserMessage(text="x" * size),), settings=ModelSettings(max_tokens=output))


def _reply(output: int = 100) -> Reply:
    return Reply(text="x", tokens=TokenCount(input=1000, output=output))


def test_price_by_hand():
    price = TokenPrice(input=2, output=12, cached=0.5, over=200_000, beyond=TokenPrice(input=4, output=18))
    assert price.dollars(TokenCount(input=100_000, cached=40_000, output=10_000)) == pytest.approx(0.12 + 0.02 + 0.12)
    writing = TokenPrice(input=3, output=15, cached=0.3, stored=3.75)
    assert writing.dollars(TokenCount(input=100_000, cached=40_000, stored=20_000)) == pytest.approx(
        0.12 + 0.012 + 0.075
    )
    assert price.dollars(TokenCount(input=300_000, output=1000)) == pytest.approx(1.2 + 0.018)


def test_public_prices_agree_with_the_list():
    genai = pytest.importorskip("genai_prices")
    for name in ("openai:gpt-5.4", "anthropic:claude-sonnet-4-6", "google:gemini-3.1-pro-preview"):
        provider, _, model = name.partition(":")
        for size in (10_000, 150_000, 900_000):
            usage = genai.Usage(input_tokens=size, output_tokens=1000, cache_read_tokens=size // 2)
            expected = float(genai.calc_price(usage, model, provider_id=provider).total_price)
            tokens = TokenCount(input=size, output=1000, cached=size // 2)
            assert PriceList().dollars(name, tokens) == pytest.approx(expected), (name, size)


def test_price_that_nobody_knows_stays_unknown():
    prices = PriceList()
    assert prices.dollars("openai:no-such-model", TokenCount(input=1)) is None
    assert prices.dollars(UNKNOWN, TokenCount(input=1)) is None
    assert prices.of("local:model.gguf") == FREE_OF_CHARGE
    assert prices.of("compat:x@http://localhost:1/v1") == FREE_OF_CHARGE


def test_budget_is_checked_before_anything_is_sent():
    script = ScriptedModel(lambda _: _reply())
    # 1,001 tokens in and at most 1,000 out: 0.01001 + 0.1 dollars set aside, 0.02 used.
    budget = Budget("question", dollars=0.15)
    model = BudgetedModel(script, PRICES, budget)

    async def main() -> None:
        for _ in range(2):
            await model.complete(_request())
        # There is room for a shorter reply than is wanted: it is asked for with that limit.
        await model.complete(_request(output=1100))
        for _ in range(3):
            await model.complete(_request(output=900))
        with pytest.raises(BudgetExceeded, match=r"the budget of the question allows 0\.15 dollars; 0\.12 spent"):
            await model.complete(_request(output=900))

    asyncio.run(main())
    assert budget.spent == Cost(calls=6, input_tokens=6000, output_tokens=600, dollars=pytest.approx(0.12))
    assert [request.max_tokens for request in script.requests] == [1000, 1000, 999, 799, 599, 399]


def test_many_at_once_cannot_break_it_together():
    async def slow(budget: Budget) -> int:
        class Slow:
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(0.01)
                return _reply(output=1000)

        model = BudgetedModel(Slow(), PRICES, budget)
        outcomes = await asyncio.gather(*[model.complete(_request()) for _ in range(50)], return_exceptions=True)
        assert all(isinstance(one, Reply | BudgetExceeded) for one in outcomes)
        return sum(isinstance(one, Reply) for one in outcomes)

    assert asyncio.run(slow(Budget("run", dollars=1.0))) == 9
    assert asyncio.run(slow(Budget("run", calls=3))) == 3
    assert asyncio.run(slow(Budget("run", tokens=2001 * 4))) == 4


def test_budget_of_a_question_lies_within_that_of_its_run():
    run = Budget("run", calls=3)
    questions = [Budget("question", calls=2, within=run) for _ in range(2)]

    async def main() -> list[str]:
        told: list[str] = []
        for budget in questions:
            model = BudgetedModel(ScriptedModel(lambda _: _reply()), PRICES, budget)
            for _ in range(3):
                try:
                    await model.complete(_request())
                except BudgetExceeded as error:
                    told.append(str(error).split(";")[0])
        return told

    assert asyncio.run(main()) == [
        "the budget of the question allows 2 calls",
        "the budget of the run allows 3 calls",
        "the budget of the run allows 3 calls",
    ]
    assert run.spent.calls == 3


def test_failed_call_gives_its_room_back():
    budget = Budget("run", calls=1)
    model = BudgetedModel(ScriptedModel([ModelError("no"), _reply()]), PRICES, budget)

    async def main() -> None:
        with pytest.raises(ModelError):
            await model.complete(_request())
        await model.complete(_request())

    asyncio.run(main())
    assert budget.spent.calls == 1


def test_dollars_cannot_be_promised_without_a_price():
    script = ScriptedModel(lambda _: _reply())

    async def ask(budget: Budget) -> None:
        await BudgetedModel(script, PRICES, budget).complete(_request(UNKNOWN))

    with pytest.raises(InputError, match="no price is known"):
        asyncio.run(ask(Budget("run", dollars=1.0)))
    budget = Budget("run", dollars=1.0, tokens=10_000)
    asyncio.run(ask(budget))
    assert (budget.spent.unpriced, budget.spent.dollars) == (1, 0.0)
    assert "1 calls of unknown price" in str(budget.spent)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 1000)), max_size=40), st.floats(0.01, 3))
def test_never_over_when_estimates_hold(calls: list[tuple[int, int]], limit: float):
    budget = Budget("run", dollars=limit)
    for estimate, share in calls:
        wanted = Cost(calls=1, dollars=estimate / 1000)
        try:
            held = budget.set_aside(wanted)
        except BudgetExceeded:
            continue
        budget.settle(held, Cost(calls=1, dollars=wanted.dollars * share / 1000))
    assert budget.spent.dollars <= limit * (1 + 1e-6)


def test_estimate_counts_everything_that_is_sent():
    small, large = estimate_tokens(_request(size=10)), estimate_tokens(_request(size=7000))
    assert (small.output, large.input) == (1000, 2001)
    assert estimate_tokens(_request(output=None)).output == 16_384
