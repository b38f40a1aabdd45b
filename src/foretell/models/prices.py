"""What tokens cost. A price that is not known stays unknown: it never counts as zero."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from foretell.models.model import TokenCount
from foretell.models.names import ModelName
from foretell.models.provider import load_provider


@dataclass(frozen=True, kw_only=True)
class TokenPrice:
    """Dollars per million tokens.

    >>> TokenPrice(input=2, output=12, cached=0.2).dollars(TokenCount(input=1_000_000, cached=500_000, output=100_000))
    2.3
    """

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
    """Price by model name: our own table first, then what the provider says or runs for nothing, then the public list.

    Store `table()` with a run: a replay then counts the same dollars whatever the public list says by then.
    """

    def __init__(self, own: Mapping[str, TokenPrice] | None = None, *, public: bool = True) -> None:
        """Without `public` only the own table counts, as in a replay."""
        self._known: dict[str, TokenPrice | None] = dict(own or {})
        self._public = public

    def of(self, model: str) -> TokenPrice | None:
        """The price, or None where nobody knows it."""
        if model not in self._known:
            name = ModelName.read(model)
            own = FREE_OF_CHARGE if name.free else load_provider(name.provider).price(name.name)
            self._known[model] = own or (public_price(name) if self._public else None)
        return self._known[model]

    def dollars(self, model: str, tokens: TokenCount) -> float | None:
        """What a call cost, or None where the price is unknown."""
        price = self.of(model)
        return None if price is None else price.dollars(tokens)

    def table(self) -> dict[str, TokenPrice | None]:
        """Every price looked up so far."""
        return dict(self._known)


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
        return _price(info.get_prices(listed.timestamp.astimezone(UTC)))
    return None


def _price(listed: Any) -> TokenPrice | None:
    names = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
    fields: list[Any] = [getattr(listed, name, None) for name in names]
    if fields[0] is None or fields[1] is None:
        return None
    starts = [tier.start for field in fields for tier in getattr(field, "tiers", ())]
    base = [None if field is None else float(getattr(field, "base", field)) for field in fields]
    if not starts:
        return _plain(base)
    start = min(starts)
    above = [_above(field, start) for field in fields]
    return replace(_plain(base), over=start, beyond=_plain(above))


def _plain(prices: list[float | None]) -> TokenPrice:
    return TokenPrice(input=prices[0] or 0.0, output=prices[1] or 0.0, cached=prices[2], stored=prices[3])


def _above(field: Any, start: int) -> float | None:
    if field is None:
        return None
    tiers = [tier for tier in getattr(field, "tiers", ()) if tier.start >= start]
    return float(tiers[0].price if tiers else getattr(field, "base", field))
