"""Prices: free models, unknown prices, request fees, and amounts stated by providers."""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from foretell.models.facts import facts_of
from foretell.models.model import TokenCount
from foretell.models.names import ModelName
from foretell.models.prices import PriceList, public_price, tier_factor
from foretell.models.providers.chat import stated_dollars
from foretell.models.token_price import FREE_OF_CHARGE, TokenPrice, read_price

OWN_SERVER = "compat:x@http://localhost:1/v1"


def test_only_models_in_this_process_are_free_by_default():
    prices = PriceList()
    assert prices.of("local:model.gguf") == prices.of("scripted:x") == prices.of("python:f") == FREE_OF_CHARGE
    # A server on this machine may pass requests on to a paid provider.
    assert prices.of(OWN_SERVER) is None
    assert not prices.free(OWN_SERVER)
    for price in ("0", "0/0", "0.0"):
        assert PriceList({OWN_SERVER: read_price(price)}).free(OWN_SERVER)
    assert prices.free("openrouter:vendor/model:free")


@pytest.mark.parametrize(
    "name", ["perplexity/sonar-deep-research", "openai/gpt-6-sol:online", "openai/gpt-4o-search-preview"]
)
def test_price_of_searching_models_is_unknown(name: str):
    assert PriceList().of(f"openrouter:{name}") is None


@pytest.mark.parametrize(
    ("tier", "factor"),
    [(None, 1), ("standard", 1), ("flex", 0.5), ("batch", 0.5), ("priority", 2), ("ultrafast", 6), ("no such", 1)],
)
def test_a_service_tier_multiplies_the_price(tier: str | None, factor: float):
    assert tier_factor("openai:gpt-6.1-sol", tier) == factor


def test_request_fee_is_part_of_the_price():
    price = TokenPrice(input=1, output=2, request=0.012)
    assert price.dollars(TokenCount(input=1_000, output=500)) == pytest.approx(0.014)
    assert price.most(1_000, 500) == pytest.approx(0.014)
    pytest.importorskip("genai_prices")
    sonar = PriceList().of("openrouter:perplexity/sonar")
    assert sonar is not None
    assert sonar.request > 0


def test_cached_and_stored_tokens_have_prices_of_their_own():
    price = TokenPrice(input=10, output=20, cached=1, stored=12)
    tokens = TokenCount(input=1_000, output=100, cached=300, stored=200)
    assert price.dollars(tokens) == pytest.approx((500 * 10 + 300 * 1 + 200 * 12 + 100 * 20) / 1e6)
    assert TokenPrice(input=10, output=20).dollars(tokens) == pytest.approx((1_000 * 10 + 100 * 20) / 1e6)
    # Some providers count stored tokens besides the input.
    beside = TokenCount(input=100, output=0, cached=300, stored=200)
    assert price.dollars(beside) == pytest.approx((300 * 1 + 200 * 12) / 1e6)


def test_a_request_beyond_the_threshold_is_charged_entirely_at_the_higher_price():
    price = TokenPrice(input=10, output=20, over=1_000, beyond=TokenPrice(input=30, output=50, request=0.5))
    for input, dollars in ((1_000, 0.012), (1_001, 0.5 + (1_001 * 30 + 100 * 50) / 1e6)):
        assert price.dollars(TokenCount(input=input, output=100)) == pytest.approx(dollars)
        assert price.most(input, 100) == pytest.approx(dollars)


def test_long_prompts_multiply_the_prices_of_the_dated_table(monkeypatch: pytest.MonkeyPatch):
    listed = replace(
        facts_of("gpt-6.1-sol"), price=(10.0, 1.0, 20.0), cache_write=1.25, long=(200_000, 2.0, 1.5), request=0.01
    )
    monkeypatch.setattr("foretell.models.prices.facts_of", lambda name: listed)
    price = PriceList().of("openai:gpt-6.1-sol")
    assert price is not None
    assert price.over == 200_000
    assert replace(price, over=None, beyond=None) == TokenPrice(
        input=10, output=20, cached=1, stored=12.5, request=0.01
    )
    assert price.beyond == TokenPrice(input=20, output=30, cached=2, stored=25, request=0.01)


def test_tiers_of_the_public_list_begin_beyond_their_thresholds(monkeypatch: pytest.MonkeyPatch):
    def tiered(base: float, *tiers: tuple[int, float]) -> SimpleNamespace:
        return SimpleNamespace(base=base, tiers=[SimpleNamespace(start=start, price=price) for start, price in tiers])

    prices = SimpleNamespace(
        input_mtok=tiered(3, (200_000, 6), (500_000, 9)),
        output_mtok=tiered(15, (200_000, 22)),
        cache_read_mtok=0.3,
        requests_kcount=12,
    )
    library = ModuleType("genai_prices.data_snapshot")
    info = SimpleNamespace(get_prices=lambda at: prices)
    library.get_snapshot = lambda: SimpleNamespace(  # pyright: ignore[reportAttributeAccessIssue]
        timestamp=datetime(2026, 11, 1, tzinfo=UTC), find_provider_model=lambda *_: (None, info)
    )
    monkeypatch.setitem(sys.modules, "genai_prices", ModuleType("genai_prices"))
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", library)
    name = ModelName.read("openai:gpt-6.1-sol")
    price = public_price(name)
    assert price is not None
    assert price.over == 200_000
    assert replace(price, over=None, beyond=None) == TokenPrice(input=3, output=15, cached=0.3, request=0.012)
    assert price.beyond == TokenPrice(input=6, output=22, cached=0.3, request=0.012)
    prices.output_mtok = None
    assert public_price(name) is None, "a price without one of its parts is unknown"


def test_maximum_price_is_a_bound_for_expensive_caches():
    for price in (TokenPrice(input=1, output=2, cached=3), TokenPrice(input=1, output=2, stored=3)):
        for parts in ({"cached": 900}, {"stored": 900}, {}):
            tokens = TokenCount(input=1_000, output=500, **parts)
            assert price.dollars(tokens) <= price.most(1_000, 500)


@pytest.mark.parametrize("text", ["", "2", "1/2/3/4", "-1/2", "nan/1", "inf/1", "0/x", "free"])
def test_invalid_price_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a price"):
        read_price(text)


STATED: list[tuple[Any, float | None]] = [
    # OpenRouter, with its own key and with the user's.
    ({"cost": 0.0123, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.01}}, 0.0123),
    ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, 0.021),
    ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, 0.02),
    # Perplexity.
    ({"cost": {"input_tokens_cost": 8.9e-05, "request_cost": 0.008, "total_cost": 0.008203}}, 0.008203),
    ({"cost": {"currency": "USD", "total_cost": 0.5}}, 0.5),
    ({"cost": {"currency": "EUR", "total_cost": 0.5}}, None),
    # xAI.
    ({"cost_in_usd_ticks": 37_500_000}, 0.00375),
    # No amount to book. Zero is ignored in favour of the price list.
    *[({"cost": wrong}, None) for wrong in (0, 0.0, -0.1, float("nan"), float("inf"), "0.1", True, None, [], {})],
    *[({"cost": {"total_cost": wrong}}, None) for wrong in (0, -0.1, float("nan"), "0.1", None)],
    *[({"cost_in_usd_ticks": wrong}, None) for wrong in (0, -5, "x", float("nan"), None)],
    ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": -5}}, 0.01),
    (None, None),
    ([], None),
]


@pytest.mark.parametrize(("usage", "dollars"), STATED)
def test_stated_amounts_are_read(usage: Any, dollars: float | None):
    assert stated_dollars(usage) == (None if dollars is None else pytest.approx(dollars))
