"""Outcomes of market events. Kept separate, because forecasters must never see an answer."""

from foretell.interface import offer

HOMES = {
    "foretell.data.settlements.kalshi": "KalshiSettlements",
    "foretell.data.settlements.manifold": "ManifoldSettlements",
    "foretell.data.settlements.metaculus": "MetaculusResolution MetaculusSettlements",
    "foretell.data.settlements.polymarket": "PolymarketSettlements",
    "foretell.data.settlements.prophet_arena": "ProphetArenaSettlements",
    "foretell.data.settlements.settlement": "SettledOutcome SettlementTarget",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
