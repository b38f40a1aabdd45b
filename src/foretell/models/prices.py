"""What tokens cost. A price that is not known stays unknown: it never counts as zero."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from math import inf
from typing import Any

from foretell.models.model import TokenCount
from foretell.models.names import ModelName
from foretell.models.provider import load_provider


@dataclass(frozen=True, kw_only=True)
class TokenPrice:
    """Dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """For input read from the provider's cache; the full price where there is no special one."""
    stored: float | None = None
    """For input written to the provider's cache, likewise."""
    over: int | None = None
    """Requests with more input tokens than this cost `beyond`, all of them."""
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


FREE_OF_CHARGE = TokenPrice(input=0.0, output=0.0)


class PriceList:
    """Prices by model name: our own table first, then what the provider says or runs for free, then the public list."""

    def __init__(self, own: Mapping[str, TokenPrice] | None = None) -> None:
        self._known: dict[str, TokenPrice | None] = dict(own or {})

    def of(self, model: str) -> TokenPrice | None:
        """The price, or None where nobody knows it."""
        if model not in self._known:
            name = ModelName.read(model)
            own = FREE_OF_CHARGE if name.free else load_provider(name.provider).price(name.name)
            self._known[model] = own or public_price(name)
        return self._known[model]

    def dollars(self, model: str, tokens: TokenCount) -> float | None:
        """What a call cost, or None where the price is unknown."""
        price = self.of(model)
        return None if price is None else price.dollars(tokens)


def public_price(name: ModelName) -> TokenPrice | None:
    """The price in the list that genai-prices ships; None where it is not installed or does not know the model."""
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
    """A listed price in our form: its base, and beyond the first threshold what the tier there costs."""
    names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
    fields: list[Any] = [getattr(listed, name, None) for name in names]
    if fields[0] is None or fields[1] is None:
        return None

    def price(start: float) -> TokenPrice:
        """With the first tier that begins at or above `start`, else the base price."""
        found: list[float | None] = []
        for field in fields:
            tiers = [tier.price for tier in getattr(field, "tiers", ()) if tier.start >= start]
            found.append(None if field is None else float(tiers[0] if tiers else getattr(field, "base", field)))
        return TokenPrice(input=found[0] or 0.0, output=found[1] or 0.0, cached=found[2], stored=found[3])

    starts = [tier.start for field in fields for tier in getattr(field, "tiers", ())]
    if not starts:
        return price(inf)
    return replace(price(inf), over=min(starts), beyond=price(min(starts)))
