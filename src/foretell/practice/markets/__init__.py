"""Prediction markets for practice."""

from foretell.interface import offer

HOMES = {
    "foretell.practice.markets.kalshi": (
        "KalshiCatalogue PracticeKalshi SampleKalshiBook SampleKalshiEvent SampleKalshiMarket Schema "
        "kalshi_event_body kalshi_market_body kalshi_series_body"
    ),
    "foretell.practice.markets.manifold": "ManifoldCatalogue PracticeManifold SampleManifoldBet",
    "foretell.practice.markets.metaculus": "MetaculusCatalogue MetaculusInbox PracticeMetaculus refusal",
    "foretell.practice.markets.polymarket": "PolymarketCatalogue PracticePolymarket TokenTrades",
    "foretell.practice.markets.prophet_arena": "PracticeProphetArena",
}
"""Module → the names that the rest of foretell uses."""

__getattr__, __dir__ = offer(__name__, HOMES)
