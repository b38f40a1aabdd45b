"""Prediction markets: their prices at a point in time, and the events they list now.

Price histories never reveal outcome, status, volume or close time. Listings do, and therefore refuse backtests.
"""

from foretell.interface import offer

HOMES = {
    "foretell.data.markets.kalshi": "KalshiClient KalshiEvents KalshiPrices",
    "foretell.data.markets.listing": (
        "CataloguePage EventListing ListedEvent ListingFilter ListingReport LiveOnly MarketEvents MarketState "
        "MarketStatus OnSkipped SkippedEntry UnsupportedEvent event_state ignore_skipped recurrence_template "
        "require_live"
    ),
    "foretell.data.markets.manifold": "ManifoldClient ManifoldEvents ManifoldPrices",
    "foretell.data.markets.market": (
        "Market MarketRef NamedEvents PART PricePoint PriceSource PricesUnavailable daily_history events_named "
        "market_ref read_open"
    ),
    "foretell.data.markets.metaculus": (
        "CONTINUOUS MetaculusClient MetaculusEvents MetaculusNamed MetaculusPrices questions_of"
    ),
    "foretell.data.markets.polymarket": "PolymarketClient PolymarketEvents PolymarketHosts PolymarketPrices",
    "foretell.data.markets.prophet_arena": (
        "PLATFORM ProphetArenaClient ProphetArenaListing ProphetArenaWeekly ProphetArenaWindows"
    ),
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
