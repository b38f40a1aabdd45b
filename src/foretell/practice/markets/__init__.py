"""Prediction markets for practice."""

from foretell.interface import offer

HOMES = {
    "foretell.practice.markets.kalshi": (
        "KalshiCatalogue PracticeKalshi SampleKalshiBook SampleKalshiEvent SampleKalshiMarket Schema "
        "kalshi_event_body kalshi_market_body kalshi_series_body"
    ),
    "foretell.practice.markets.manifold": (
        "ManifoldCatalogue PracticeManifold SampleManifoldAnswer SampleManifoldBet SampleManifoldMarket "
        "manifold_market_body"
    ),
    "foretell.practice.markets.metaculus": (
        "MetaculusCatalogue MetaculusInbox PracticeMetaculus SampleCommunityPrediction SampleMetaculusQuestion "
        "SampleMetaculusScale metaculus_conditional_body metaculus_post_body refusal"
    ),
    "foretell.practice.markets.polymarket": (
        "PolymarketCatalogue PracticePolymarket SamplePolymarketEvent SamplePolymarketMarket TokenTrades "
        "polymarket_event_body polymarket_tokens"
    ),
    "foretell.practice.markets.prophet_arena": (
        "PracticeProphetArena prophet_arena_body weekly_event_body weekly_release_body"
    ),
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
