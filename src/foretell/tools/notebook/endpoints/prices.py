"""Prices of prediction markets up to the cutoff."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.questions.clock import AsOf
from foretell.questions.event import Emit, LeakBlocked, ignore
from foretell.sources.http import SourceError
from foretell.sources.market import MarketRef, PriceSource, PricesUnavailable
from foretell.tools.clamp import clamp_prices
from foretell.tools.notebook.endpoint import EndpointFailed, Parameter

DAYS = 60
MOST_DAYS = 365


@dataclass(frozen=True, kw_only=True)
class MarketPrices:
    """Reads moments and prices, and nothing else of a market: all other fields are told as of today."""

    sources: Mapping[str, PriceSource]
    """By platform."""
    emit: Emit = ignore

    path = "/market/prices"

    @property
    def documentation(self) -> str:
        """As shown to the notebook."""
        return (
            "Prices at which a prediction market traded, as probabilities of yes, oldest first.\n"
            f"Platforms: {', '.join(self.sources)}. The id is the platform's own.\n"
            'Answer: {"platform", "id", "rows": [{"at": "2025-10-24T12:00:00+00:00", "p": 0.41}, …]}.'
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes."""
        return (
            Parameter(name="platform", meaning=f"one of {', '.join(self.sources)}", needed=True),
            Parameter(name="id", meaning="the platform's id of the market", needed=True),
            Parameter(name="days", meaning=f"how many days back, {DAYS} if not given", kind="number"),
        )

    async def call(self, params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        """The known prices of a market."""
        source = self.sources.get(params["platform"])
        if source is None:
            raise EndpointFailed(f"there is no platform {params['platform']!r}; platforms: {', '.join(self.sources)}")
        ref = MarketRef(platform=params["platform"], id=params["id"])
        days = int(min(max(params.get("days", DAYS), 1), MOST_DAYS))
        try:
            points = await source.prices(ref, as_of, days)
        except (PricesUnavailable, SourceError) as error:
            raise EndpointFailed(f"the prices cannot be read: {error}") from error
        known, late = clamp_prices(points, as_of)
        if late:
            name = f"{ref.platform}/{ref.id}"
            self.emit(LeakBlocked(layer="data", reason=f"{late} prices of {name} after the cutoff", title=name))
        if not known:
            raise EndpointFailed("no price was known at the cutoff")
        rows = [{"at": point.at.isoformat(), "p": point.p} for point in known]
        return {"platform": ref.platform, "id": ref.id, "rows": rows}
