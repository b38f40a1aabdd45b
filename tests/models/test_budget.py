"""Costs of calls and budgets, with concurrent calls and several processes."""

import asyncio
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from string import ascii_letters, digits, punctuation

import pytest

from foretell.models.budget import Budget, BudgetedModel, estimate_call, estimate_tokens
from foretell.models.journal import Journal
from foretell.models.limited_model import LimitedModel
from foretell.models.limits import ModelLimits
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    ModelError,
    ModelSettings,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    TokenCount,
    ToolCall,
    ToolResult,
    UserMessage,
)
from foretell.models.prices import PriceList
from foretell.models.providers.api_format import answered_tier
from foretell.models.providers.function import model_name
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.router import ModelRouter
from foretell.models.token_price import FREE_OF_CHARGE, TokenPrice
from foretell.models.waiting import WorkClock
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost

PRICES = PriceList({"openai:m": TokenPrice(input=10, output=100)})
UNKNOWN = "compat:x@http://example.org/v1"


def _request(model: str = "openai:m", size: int = 3500, output: int | None = 1000) -> Request:
    return Request(model=model, messages=(UserMessage(text="x" * size),), settings=ModelSettings(max_tokens=output))


def _reply(output: int = 100) -> Reply:
    return Reply(text="x", tokens=TokenCount(input=1000, output=output))


def test_price_of_a_call_matches_manual_calculation():
    price = TokenPrice(input=2, output=12, cached=0.5, over=200_000, beyond=TokenPrice(input=4, output=18))
    assert price.dollars(TokenCount(input=100_000, cached=40_000, output=10_000)) == pytest.approx(0.12 + 0.02 + 0.12)
    writing = TokenPrice(input=3, output=15, cached=0.3, stored=3.75)
    assert writing.dollars(TokenCount(input=100_000, cached=40_000, stored=20_000)) == pytest.approx(
        0.12 + 0.012 + 0.075
    )
    assert price.dollars(TokenCount(input=300_000, output=1000)) == pytest.approx(1.2 + 0.018)


def test_service_tiers_have_their_own_prices():
    tokens = TokenCount(input=100_000, output=100_000)
    request = replace(_request("openai:gpt-6.1-sol"), settings=ModelSettings(tier="ultrafast"))
    assert PriceList().charged(request, Reply(tokens=tokens)) == pytest.approx(6 * 1.2)
    # The provider used another tier than the requested one because of the account's settings.
    tier = answered_tier("ultrafast", _request("openai:gpt-6.1-sol"))
    assert PriceList().charged(_request("openai:gpt-6.1-sol"), Reply(tokens=tokens, tier=tier)) == pytest.approx(7.2)


def test_public_prices_agree_with_the_list():
    genai = pytest.importorskip("genai_prices")
    for name in ("openai:gpt-5.4", "anthropic:claude-sonnet-4-6", "google:gemini-3.1-pro-preview"):
        provider, _, model = name.partition(":")
        for size in (10_000, 150_000, 900_000):
            usage = genai.Usage(input_tokens=size, output_tokens=1000, cache_read_tokens=size // 2)
            expected = float(genai.calc_price(usage, model, provider_id=provider).total_price)
            tokens = TokenCount(input=size, output=1000, cached=size // 2)
            assert PriceList().dollars(name, tokens) == pytest.approx(expected), (name, size)


def test_a_reply_that_two_trials_need_is_paid_once_and_not_reused(tmp_path: Path):
    name = model_name(lambda prompt: _reply())
    prices = PriceList({name: TokenPrice(input=10, output=100)})

    async def trials(budget: Budget) -> None:
        async with ModelRouter({}, journal=journal, prices=prices) as router:
            first, second, third = (router.within(Budget("question", within=budget)) for _ in range(3))
            await asyncio.gather(first.complete(_request(name)), second.complete(_request(name)))
            await third.complete(_request(name))

    with closing(Journal(tmp_path / "journal.db")) as journal:
        for run, billed, reused in (("a", 0.02, 0.0), ("b", 0.0, 0.02), ("a", 0.0, 0.02)):
            budget = Budget("run", run=run)
            asyncio.run(trials(budget))
            assert (budget.money.billed, budget.money.reused) == (pytest.approx(billed), pytest.approx(reused))


def test_unknown_price_stays_unknown():
    prices = PriceList()
    assert prices.dollars("openai:no-such-model", TokenCount(input=1)) is None
    assert prices.dollars(UNKNOWN, TokenCount(input=1)) is None
    assert prices.of("local:model.gguf") == FREE_OF_CHARGE


def test_budget_is_checked_before_anything_is_sent():
    script = ScriptedModel(lambda _: _reply())
    # 1,001 tokens in and at most 1,000 out: 0.01001 + 0.1 dollars reserved, 0.02 used.
    budget = Budget("question", dollars=0.15)
    model = BudgetedModel(script, PRICES, budget)

    async def main() -> None:
        # If there is only room for a shorter reply, the request has a lower limit.
        for output in (1000, 1000, 1100, 900, 900, 900, 900):
            await model.complete(_request(output=output))
        # The billed amount and the rest add up to the limit.
        message = r"the question allows 0\.15 dollars: 0\.14 billed, 0\.01 left; the next call needs 0\.0141"
        with pytest.raises(BudgetExceeded, match=message):
            await model.complete(_request(output=900))

    asyncio.run(main())
    assert budget.billed == Cost(calls=7, input_tokens=7000, output_tokens=700, dollars=pytest.approx(0.14))
    # 1,251 input tokens are reserved: a quarter more than the measured ratio of 1,000 to 1,001.
    assert [request.max_tokens for request in script.requests] == [1000, 1000, 975, 775, 575, 375, 175]


def test_concurrent_calls_stay_within_the_budget():
    async def slow(budget: Budget) -> int:
        class Slow:
            async def complete(self, request: Request) -> Reply:
                await asyncio.sleep(0.01)
                return _reply(output=1000)

        model = BudgetedModel(Slow(), PRICES, budget)
        outcomes = await asyncio.gather(*[model.complete(_request()) for _ in range(50)], return_exceptions=True)
        assert all(isinstance(outcome, Reply | BudgetExceeded) for outcome in outcomes)
        return sum(isinstance(outcome, Reply) for outcome in outcomes)

    assert asyncio.run(slow(Budget("run", dollars=1.0))) == 9


def test_question_budget_is_part_of_the_run_budget():
    # A call costs 0.02 dollars, and needs no more room than that.
    run = Budget("run", dollars=0.07)
    questions = [Budget("question", dollars=0.05, within=run) for _ in range(2)]

    async def main() -> list[str]:
        messages: list[str] = []
        for budget in questions:
            model = BudgetedModel(ScriptedModel(lambda _: _reply()), PRICES, budget)
            for _ in range(3):
                try:
                    await model.complete(_request())
                except BudgetExceeded as error:
                    messages.append(str(error).split(":")[0])
        return messages

    assert asyncio.run(main()) == [
        "the budget of the question allows 0.05 dollars",
        "the budget of the run allows 0.07 dollars",
        "the budget of the run allows 0.07 dollars",
    ]
    assert run.billed.calls == 3


def test_failed_call_releases_its_reservation():
    budget = Budget("run", dollars=0.12)
    model = BudgetedModel(ScriptedModel([ModelError("no"), _reply()]), PRICES, budget)

    async def main() -> None:
        with pytest.raises(ModelError):
            await model.complete(_request())
        await model.complete(_request())

    asyncio.run(main())
    assert budget.billed.calls == 1


def test_budget_needs_a_known_price():
    script = ScriptedModel(lambda _: _reply())

    async def ask(budget: Budget) -> None:
        await BudgetedModel(script, PRICES, budget).complete(_request(UNKNOWN))

    with pytest.raises(InputError, match="no price is known"):
        asyncio.run(ask(Budget("run", dollars=1.0)))
    budget = Budget("run")
    asyncio.run(ask(budget))
    assert (budget.billed.unpriced, budget.billed.dollars) == (1, 0.0)
    assert "1 calls of unknown price" in str(budget.billed)


def test_estimate_counts_everything_that_is_sent():
    small, large = estimate_tokens(_request(size=10)), estimate_tokens(_request(size=7000))
    assert (small.output, large.input) == (1000, 2001)
    assert estimate_tokens(_request(output=None)).output == 16_384
    # 7 bytes of a question, 7 + 7 of a turn, 7 + 28 of its call and 7 of its result are 63, of which a token has 3.5.
    call = ToolCall(id="1", name="search!", arguments='{"query": "seats in spring"}')
    turn = AssistantMessage(text="I look.", sealed="sealed.", calls=(call,))
    messages = (UserMessage(text="Who is?"), turn, ToolResult(call_id="1", name="", text="Nobody."))
    assert estimate_tokens(Request(model="openai:m", messages=messages)).input == 18 + 1


def test_every_letter_counts_alike_for_the_estimate():
    estimates = {
        estimate_call(Request(model="openai:m", messages=(UserMessage(text=letter * 700),)), None).input
        for letter in ascii_letters
    }
    assert estimates == {200 + 1}
    apart = Request(model="openai:m", messages=(UserMessage(text=(punctuation + digits) * 10),))
    assert estimate_call(apart, None).input == 10 * (32 + 10) + 1, "each of these may be a token of its own"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The council votes on the budget in the spring, and most members have said how. ", 17),
        ("2026-01-05,4.05\n", 12),
        ("会議は来週の月曜日に開かれる予定です。", 19),
        ("Совет проголосует за бюджет весной. ", 13),
    ],
)
def test_token_estimate_is_above_real_token_counts(text: str, tokens: int):
    """The expected counts come from common tokenizers, which need more tokens for digits and other scripts."""
    request = Request(model="openai:m", messages=(UserMessage(text=text * 100),))
    estimate = estimate_call(request, None)
    assert 100 * tokens <= estimate.input <= 250 * tokens
    assert estimate.bound >= len(text.encode()) * 100


DOLLAR_A_MILLION = PriceList({"openai:x": TokenPrice(input=0, output=1)})
ASIDE = 16_384 / 1_000_000
"""The most a call may cost."""


class Thrifty:
    """Uses only a few of the reserved tokens."""

    def __init__(self, tokens: int = 100, broken: int = 0) -> None:
        self.tokens, self.broken, self.out, self.peak = tokens, broken, 0, 0

    async def complete(self, request: Request) -> Reply:
        self.out += 1
        self.peak = max(self.peak, self.out)
        await asyncio.sleep(0.001)
        self.out -= 1
        if self.broken:
            self.broken -= 1
            raise ModelError("down")
        return Reply(text="yes", tokens=TokenCount(output=min(self.tokens, request.max_tokens or self.tokens)))


def _ask_many(model: Thrifty, budget: Budget, count: int) -> list[object]:
    async def work() -> list[object]:
        budgeted_model = BudgetedModel(model, DOLLAR_A_MILLION, budget)
        requests = [Request(model="openai:x", messages=(UserMessage(text=str(n)),)) for n in range(count)]
        return list(
            await asyncio.gather(*(budgeted_model.complete(request) for request in requests), return_exceptions=True)
        )

    return asyncio.run(asyncio.wait_for(work(), 30))


def _refused(results: list[object]) -> int:
    return sum(isinstance(result, BudgetExceeded) for result in results)


def test_calls_wait_until_others_release_money():
    model = Thrifty()
    assert _refused(_ask_many(model, Budget("study", dollars=2.5 * ASIDE), 20)) == 0
    assert model.peak == 2


def test_used_up_budget_refuses_further_calls():
    budget = Budget("study", dollars=2.5 * ASIDE)
    results = _ask_many(Thrifty(tokens=4000), budget, 20)
    assert 0 < _refused(results) < 20
    assert budget.billed.dollars == pytest.approx(2.5 * ASIDE, rel=0.01)
    assert _refused(_ask_many(Thrifty(), Budget("study", dollars=ASIDE / 2), 3)) == 0
    assert _refused(_ask_many(Thrifty(), Budget("study", dollars=ASIDE / 100), 3)) == 1
    assert _refused(_ask_many(Thrifty(), Budget("study", dollars=ASIDE / 2000), 3)) == 3


@pytest.mark.parametrize("broken", [1, 5])
def test_failing_calls_release_their_reservations(broken: int):
    many = _ask_many(Thrifty(broken=broken), Budget("study", dollars=1.5 * ASIDE), 8)
    assert sum(isinstance(result, ModelError) for result in many) == broken
    assert sum(isinstance(result, Reply) for result in many) == 8 - broken


def test_spent_dollars_are_booked():
    budget = Budget("study", dollars=1.5 * ASIDE)
    _ask_many(Thrifty(), budget, 5)
    assert (budget.billed.calls, budget.billed.output_tokens) == (5, 500)
    assert budget.billed.dollars == pytest.approx(0.0005)


# Budgets with fifty concurrent trials, long replies, lost replies and retries.

PRICE = TokenPrice(input=2, output=10)
CHEAP = PriceList({"openai:x": PRICE})
AT_ONCE = 50


class Provider:
    """Bills its output, which has `wants` tokens within the limit. Lost replies are billed too."""

    def __init__(self, *, wants: int = 40_000, lose: float = 0.0, seed: int = 0) -> None:
        self.wants, self.lose, self.rng = wants, lose, random.Random(seed)
        self.bill, self.calls, self.longest = 0.0, 0, 0.0

    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(0.0005 * self.rng.random())
        self.calls += 1
        output = min(self.wants, request.max_tokens or self.wants)
        tokens = TokenCount(input=80, output=output)
        cost = PRICE.dollars(tokens)
        self.bill += cost
        self.longest = max(self.longest, cost)
        if self.rng.random() < self.lose:
            raise ReplyLost("the connection broke")
        return Reply(text="yes", tokens=tokens, finish="length" if output < self.wants else "stop")


def run(provider: Provider, budget: Budget, trials: int, *, steps: int = 4) -> list[object]:
    """Run trials with their own budgets within that of the run, fifty at a time, with some steps each."""

    async def main() -> list[object]:
        limits = ModelLimits(first_pause=0.0, attempts=3)
        limited = LimitedModel(provider, limits)
        slots = asyncio.Semaphore(AT_ONCE)

        async def trial(number: int) -> Reply:
            model = BudgetedModel(limited, CHEAP, Budget("question", within=budget))
            async with slots:
                for step in range(steps):
                    message = UserMessage(text=f"{number} {step} " + "x" * 300)
                    reply = await model.complete(Request(model="openai:x", messages=(message,)))
            return reply

        return list(await asyncio.gather(*map(trial, range(trials)), return_exceptions=True))

    return asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("lose", [0.0, 0.3])
@pytest.mark.parametrize("dollars", [0.05, 0.5, 3.0])
def test_budget_holds_with_long_and_lost_replies(dollars: float, lose: float):
    provider, budget = Provider(lose=lose), Budget("run", dollars=dollars)
    results = run(provider, budget, trials=60)
    assert any(isinstance(result, BudgetExceeded) for result in results)
    assert provider.bill <= dollars + provider.longest
    # Billed and unknown dollars together are at least the bill.
    assert provider.bill <= budget.billed.dollars + budget.unknown.dollars + 1e-9
    assert budget.billed.dollars + budget.unknown.dollars <= dollars * (1 + 1e-6)
    assert budget.reserved == pytest.approx(0)


def test_a_sufficient_budget_completes_everything():
    needed = 60 * 4 * PRICE.dollars(TokenCount(input=80, output=900))
    provider, budget = Provider(wants=900), Budget("run", dollars=needed * 1.11)
    results = run(provider, budget, trials=60)
    assert all(isinstance(result, Reply) and result.finish == "stop" for result in results)


@pytest.mark.parametrize("trials", [1, 12, 60])
@pytest.mark.parametrize("wants", [3, 40, 900])
def test_budget_is_used_up_to_the_estimate_of_one_call(wants: int, trials: int):
    """A small budget needs only the final bill plus the cautious estimate of one input."""
    provider = Provider(wants=wants)
    # The first call is admitted if there is money for a token per byte and 16 output tokens.
    caution = TokenCount(input=320 - 80, output=max(0, 16 - wants))
    total = TokenCount(input=trials * 4 * 80 + 8, output=trials * 4 * wants)
    budget = Budget("run", dollars=PRICE.dollars(total) + PRICE.dollars(caution))
    results = run(provider, budget, trials=trials)
    assert all(isinstance(result, Reply) and result.finish == "stop" for result in results)
    assert provider.bill <= budget.billed.dollars + 1e-9


def test_cached_input_leaves_room_for_more_calls():
    """Estimates ignore the cache. A budget that only covers cached input must still be used up."""
    price = TokenPrice(input=10, output=10, cached=1)
    prices = PriceList({"openai:x": price})
    tokens = TokenCount(input=10_000, cached=9_900, output=50)
    script = ScriptedModel(lambda _: Reply(text="yes", tokens=tokens))
    budget = Budget("run", dollars=0.351 + 20 * price.dollars(tokens))
    model = BudgetedModel(script, prices, budget)

    async def main() -> None:
        for _ in range(20):
            await model.complete(Request(model="openai:x", messages=(UserMessage(text="x" * 35_000),)))

    asyncio.run(main())
    assert budget.billed.calls == 20


def test_retry_after_a_lost_reply_waits_for_money_of_other_calls():
    """The reply to the first of two calls is lost. Its retry has room as soon as the other call returns."""
    settings = ModelSettings(max_tokens=1000)

    class Loses:
        def __init__(self) -> None:
            self.asked = list[str]()

        async def complete(self, request: Request) -> Reply:
            name = request.messages[0].text
            self.asked.append(name)
            await asyncio.sleep(0.05 if name == "slow" else 0.0)
            if self.asked == ["lost", "slow"] and name == "lost":
                raise ReplyLost("the connection broke")
            return Reply(text="yes", tokens=TokenCount(input=1, output=10))

    inner, budget = Loses(), Budget("run", dollars=2.5 * 0.01)
    limited = LimitedModel(inner, ModelLimits(first_pause=0.0, attempts=3))

    async def main() -> list[Reply]:
        model = BudgetedModel(limited, CHEAP, budget)
        requests = [
            Request(model="openai:x", messages=(UserMessage(text=name),), settings=settings)
            for name in ("lost", "slow")
        ]
        return await asyncio.gather(*map(model.complete, requests))

    assert len(asyncio.run(main())) == 2
    assert inner.asked == ["lost", "slow", "lost"]
    assert budget.unknown.calls == 1
    assert budget.reserved == pytest.approx(0)


def test_calls_that_lost_their_replies_do_not_wait_for_each_other():
    provider, budget = Provider(wants=900, lose=1.0), Budget("run", dollars=0.5)
    results = run(provider, budget, trials=50, steps=1)
    assert all(isinstance(result, ModelError) for result in results)
    assert budget.reserved == pytest.approx(0)


def test_waiting_for_money_does_not_count_as_work_time():
    class Slow:
        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(0.05)
            return Reply(text="yes", tokens=TokenCount(output=10))

    budget = Budget("run", dollars=1.5 * ASIDE)
    model = BudgetedModel(Slow(), DOLLAR_A_MILLION, budget)

    async def trial(number: int) -> Reply:
        async with WorkClock(0.2):
            return await model.complete(Request(model="openai:x", messages=(UserMessage(text=str(number)),)))

    async def main() -> list[Reply]:
        return await asyncio.gather(*map(trial, range(10)))

    assert len(asyncio.run(main())) == 10


def test_small_question_budget_is_used():
    provider = Provider(wants=2_000)
    model = BudgetedModel(provider, CHEAP, Budget("question", dollars=0.05))
    request = Request(model="openai:x", messages=(UserMessage(text="x"),))
    assert asyncio.run(model.complete(request)).finish == "stop"


def test_possibly_billed_money_counts_and_is_shown_separately():
    provider, budget = Provider(lose=1.0, wants=1_000), Budget("run", dollars=1.0)
    settings = ModelSettings(max_tokens=1_000)
    model = BudgetedModel(LimitedModel(provider, ModelLimits(first_pause=0.0, attempts=3)), CHEAP, budget)
    with pytest.raises(Exception, match="gave up after 3 attempts"):
        asyncio.run(model.complete(Request(model="openai:x", messages=(UserMessage(text="x"),), settings=settings)))
    assert (budget.billed.dollars, budget.reserved) == (0.0, pytest.approx(0.0))
    assert budget.unknown.calls == 3
    assert provider.bill == pytest.approx(budget.unknown.dollars, rel=0.05)


def test_call_cut_off_by_timeout_counts_as_possibly_billed():
    class Slow:
        """Sets the time limit to now when a call has been sent, and never replies."""

        limit: asyncio.Timeout

        async def complete(self, request: Request) -> Reply:
            self.limit.reschedule(asyncio.get_running_loop().time())
            await asyncio.sleep(60)
            raise AssertionError

    budget = Budget("run", dollars=1.0)

    async def main() -> None:
        slow = Slow()
        model = BudgetedModel(slow, CHEAP, budget)
        async with asyncio.timeout(60) as slow.limit:
            await model.complete(Request(model="openai:x", messages=(UserMessage(text="x"),)))

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert budget.unknown.calls == 1
    assert budget.reserved == pytest.approx(0.0)


def test_reply_too_long_to_store_counts_as_possibly_billed():
    budget = Budget("run", dollars=1.0)
    model = BudgetedModel(ScriptedModel([ReplyTooLong("larger than 16 MiB")]), CHEAP, budget)
    with pytest.raises(ReplyTooLong):
        asyncio.run(model.complete(Request(model="openai:x", messages=(UserMessage(text="x"),))))
    assert budget.unknown.calls == 1
    assert budget.unknown.dollars > 0
