"""Token prices. An unknown price stays unknown: it never counts as zero."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from math import inf
from typing import Any

from foretell.models.facts import facts_of
from foretell.models.model import Reply, Request, TokenCount, load_provider
from foretell.models.names import ModelName


@dataclass(frozen=True, kw_only=True)
class TokenPrice:
    """Dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """For input read from the provider's cache; the full price if there is no special one."""
    stored: float | None = None
    """For input written to the provider's cache; the full price if there is no special one."""
    over: int | None = None
    """Requests with more input tokens than this are charged entirely at the price `beyond`."""
    beyond: "TokenPrice | None" = None

    def dollars(self, tokens: TokenCount) -> float:
        """The price of one call."""
        if self.over is not None and self.beyond is not None and tokens.input > self.over:
            return self.beyond.dollars(tokens)
        cached = self.input if self.cached is None else self.cached
        stored = self.input if self.stored is None else self.stored
        fresh = max(0, tokens.input - tokens.cached - tokens.stored)
        read = fresh * self.input + tokens.cached * cached + tokens.stored * stored
        return (read + tokens.output * self.output) / 1_000_000

    def most(self, read: int, written: int) -> float:
        """The most this many tokens can cost: read uncached or, if that costs more, written to the cache."""
        if self.over is not None and self.beyond is not None and read > self.over:
            return self.beyond.most(read, written)
        return (read * max(self.input, self.stored or 0.0) + written * self.output) / 1_000_000


def read_price(written: str) -> TokenPrice:
    """Parse a price in dollars per million tokens: "input/output" or "input/cached/output".

    >>> read_price("0.5/2"), read_price("3/0.3/15").cached
    (TokenPrice(input=0.5, output=2.0, cached=None, stored=None, over=None, beyond=None), 0.3)
    """
    try:
        reading, *cached, writing = (float(part) for part in written.split("/"))
    except ValueError:
        reading, cached, writing = -1.0, [], 0.0
    if len(cached) > 1 or not all(0 <= price < inf for price in (reading, *cached, writing)):
        raise ValueError(f"{written!r} is not a price: write dollars per million tokens read / written, e.g. 0.5/2")
    return TokenPrice(input=reading, output=writing, cached=cached[0] if cached else None)


FREE_OF_CHARGE = TokenPrice(input=0.0, output=0.0)
TIER_FACTORS = {"flex": 0.5, "batch": 0.5, "standard": 1.0, "priority": 2.0, "ultrafast": 6.0}
"""Price multipliers of the service tiers."""


def tier_factor(model: str, tier: str | None) -> float:
    """The price multiplier of a model in a service tier; 1 if its provider does not have that tier.

    >>> [tier_factor("anthropic:claude-opus-5-5", tier) for tier in ("batch", "flex")]
    [0.5, 1.0]
    """
    return TIER_FACTORS[tier] if tier and tier in load_provider(ModelName.read(model).provider).tiers else 1.0


class PriceList:
    """Prices by model. The user's own come first, then the provider's, our dated table and the public list."""

    def __init__(self, own: Mapping[str, TokenPrice] | None = None) -> None:
        self._known: dict[str, TokenPrice | None] = dict(own or {})

    def of(self, model: str) -> TokenPrice | None:
        """The price, or None if it is unknown."""
        if model not in self._known:
            name = ModelName.read(model)
            own = FREE_OF_CHARGE if name.free else load_provider(name.provider).price(name.name)
            self._known[model] = own or _known_price(name) or public_price(name)
        return self._known[model]

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
        return TokenPrice(input=fresh * reading, output=output * writing, cached=cached * reading, stored=stored)

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

    def price(start: float) -> TokenPrice:
        """The price in the first tier that begins at or above `start`, else the base price."""
        found: list[float | None] = []
        for field in fields:
            tiers = [tier.price for tier in getattr(field, "tiers", ()) if tier.start >= start]
            found.append(None if field is None else float(tiers[0] if tiers else getattr(field, "base", field)))
        return TokenPrice(input=found[0] or 0.0, output=found[1] or 0.0, cached=found[2], stored=found[3])

    starts = [tier.start for field in fields for tier in getattr(field, "tiers", ())]
    if not starts:
        return price(inf)
    return replace(price(inf), over=min(starts), beyond=price(min(starts)))
