"""Prices of model calls. An unknown price never counts as zero."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from math import inf
from typing import Any

from foretell.models.facts import facts_of
from foretell.models.model import Reply, Request, TokenCount
from foretell.models.names import ModelName
from foretell.models.providers.loading import load_provider
from foretell.models.token_price import FREE_OF_CHARGE, TokenPrice
from foretell.patterns import pattern

TIER_FACTORS = {"flex": 0.5, "batch": 0.5, "standard": 1.0, "priority": 2.0, "ultrafast": 6.0}
"""Price multipliers of the service tiers."""


def tier_factor(model: str, tier: str | None) -> float:
    """The price multiplier of a model in a service tier; 1 if its provider does not have that tier.

    >>> [tier_factor("anthropic:claude-opus-5-5", tier) for tier in ("batch", "flex")]
    [0.5, 1.0]
    """
    return TIER_FACTORS[tier] if tier and tier in load_provider(ModelName.read(model).provider).tiers else 1.0


SEARCHING = pattern(r":online$|-search-(preview|api)|-pro-search|sonar-deep-research")
"""Models that are billed for every search they make. Their price is unknown, because no listed price bounds it."""


class PriceList:
    """Prices by model. The user's own come first, then the provider's, our dated table and the public list."""

    def __init__(self, own: Mapping[str, TokenPrice] | None = None) -> None:
        self._known: dict[str, TokenPrice | None] = dict(own or {})

    def of(self, model: str) -> TokenPrice | None:
        """The price, or None if it is unknown."""
        if model not in self._known:
            name = ModelName.read(model)
            own = FREE_OF_CHARGE if name.free else load_provider(name.provider).price(name.name)
            listed = None if SEARCHING.search(name.name) else _known_price(name) or public_price(name)
            self._known[model] = own or listed
        return self._known[model]

    def free(self, model: str) -> bool:
        """Whether a model is known to be free, because it runs in this process or the user set its price to 0."""
        price = self.of(model)
        return price is not None and price.most(1_000_000, 1_000_000) == 0

    def charged(self, request: Request, reply: Reply) -> float | None:
        """The cost of a call: as stated by the provider, else by its tokens. None if the price is unknown."""
        if reply.dollars is not None:
            return reply.dollars
        dollars = self.dollars(request.model, reply.tokens)
        factor = tier_factor(request.model, reply.tier or request.settings.tier)
        return None if dollars is None else dollars * factor

    def dollars(self, model: str, tokens: TokenCount) -> float | None:
        """The cost of a call by its tokens, or None if the price is unknown."""
        price = self.of(model)
        return None if price is None else price.dollars(tokens)


def _known_price(name: ModelName) -> TokenPrice | None:
    """The price in our own dated table. It does not apply to servers that the user names by address."""
    facts = facts_of(name.name)
    if name.url or not facts.price:
        return None

    def price(reading: float = 1.0, writing: float = 1.0) -> TokenPrice:
        fresh, cached, output = facts.price
        stored = fresh * facts.cache_write * reading
        return TokenPrice(
            input=fresh * reading,
            output=output * writing,
            cached=cached * reading,
            stored=stored,
            request=facts.request,
        )

    if not facts.long:
        return price()
    return replace(price(), over=int(facts.long[0]), beyond=price(*facts.long[1:]))


def public_price(name: ModelName) -> TokenPrice | None:
    """The price in the list shipped by genai-prices; None if it is not installed or does not know the model."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    listed = get_snapshot()
    for provider, model in load_provider(name.provider).price_ids(name.name):
        try:
            _, info = listed.find_provider_model(model, None, provider, None)
        except LookupError:
            continue
        return _token_price(info.get_prices(listed.timestamp.astimezone(UTC)))
    return None


def _token_price(listed: Any) -> TokenPrice | None:
    """A listed price in our form: its base and the tier beyond the first threshold."""
    names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
    fields: list[Any] = [getattr(listed, name, None) for name in names]
    if fields[0] is None or fields[1] is None:
        return None

    request = float(getattr(listed, "requests_kcount", None) or 0.0) / 1_000

    def price(start: float) -> TokenPrice:
        """The price in the first tier that begins at or above `start`, else the base price."""
        prices: list[float | None] = []
        for field in fields:
            tiers = [tier.price for tier in getattr(field, "tiers", ()) if tier.start >= start]
            prices.append(None if field is None else float(tiers[0] if tiers else getattr(field, "base", field)))
        return TokenPrice(
            input=prices[0] or 0.0, output=prices[1] or 0.0, cached=prices[2], stored=prices[3], request=request
        )

    starts = [tier.start for field in fields for tier in getattr(field, "tiers", ())]
    if not starts:
        return price(inf)
    return replace(price(inf), over=min(starts), beyond=price(min(starts)))
