"""Prices: what is free, what nobody knows, fees for requests, and amounts that providers state themselves."""

from typing import Any

import pytest

from foretell.models import FREE_OF_CHARGE, PriceList, TokenCount, TokenPrice, read_price
from foretell.models.providers.chat import stated_dollars

OWN_SERVER = "compat:x@http://localhost:1/v1"


def test_only_what_runs_in_this_process_is_free_by_itself():
    prices = PriceList()
    assert prices.of("local:model.gguf") == prices.of("scripted:x") == prices.of("python:f") == FREE_OF_CHARGE
    # A server on this machine may pass requests on to a paid provider.
    assert prices.of(OWN_SERVER) is None
    assert not prices.free(OWN_SERVER)
    for written in ("0", "0/0", "0.0"):
        assert PriceList({OWN_SERVER: read_price(written)}).free(OWN_SERVER)
    assert prices.free("openrouter:vendor/model:free")


@pytest.mark.parametrize(
    "name", ["perplexity/sonar-deep-research", "openai/gpt-6-sol:online", "openai/gpt-4o-search-preview"]
)
def test_nobody_knows_the_price_of_what_searches_on_its_own(name: str):
    assert PriceList().of(f"openrouter:{name}") is None


def test_a_fee_for_each_request_is_part_of_the_price():
    price = TokenPrice(input=1, output=2, request=0.012)
    assert price.dollars(TokenCount(input=1_000, output=500)) == pytest.approx(0.014)
    assert price.most(1_000, 500) == pytest.approx(0.014)
    pytest.importorskip("genai_prices")
    sonar = PriceList().of("openrouter:perplexity/sonar")
    assert sonar is not None
    assert sonar.request > 0


def test_the_most_is_a_bound_also_where_reading_the_cache_costs_more():
    for price in (TokenPrice(input=1, output=2, cached=3), TokenPrice(input=1, output=2, stored=3)):
        for parts in ({"cached": 900}, {"stored": 900}, {}):
            tokens = TokenCount(input=1_000, output=500, **parts)
            assert price.dollars(tokens) <= price.most(1_000, 500)


@pytest.mark.parametrize("written", ["", "2", "1/2/3/4", "-1/2", "nan/1", "inf/1", "0/x", "free"])
def test_what_is_no_price_is_refused(written: str):
    with pytest.raises(ValueError, match="is not a price"):
        read_price(written)


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
    # Nothing that could be booked: zero is left to the list of prices.
    *[({"cost": wrong}, None) for wrong in (0, 0.0, -0.1, float("nan"), float("inf"), "0.1", True, None, [], {})],
    *[({"cost": {"total_cost": wrong}}, None) for wrong in (0, -0.1, float("nan"), "0.1", None)],
    *[({"cost_in_usd_ticks": wrong}, None) for wrong in (0, -5, "x", float("nan"), None)],
    ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": -5}}, 0.01),
    (None, None),
    ([], None),
]


@pytest.mark.parametrize(("usage", "dollars"), STATED)
def test_amounts_that_a_provider_states(usage: Any, dollars: float | None):
    assert stated_dollars(usage) == (None if dollars is None else pytest.approx(dollars))
