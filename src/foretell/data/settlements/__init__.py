"""How market events came out. Apart from the rest, because who forecasts never sees an answer."""

from foretell.interface import offer

HOMES = {
    "foretell.data.settlements.kalshi": "KalshiSettlements",
    "foretell.data.settlements.manifold": "ManifoldSettlements",
    "foretell.data.settlements.metaculus": "MetaculusResolution MetaculusSettlements",
    "foretell.data.settlements.polymarket": "PolymarketSettlements",
    "foretell.data.settlements.prophet_arena": "ProphetArenaSettlements",
    "foretell.data.settlements.settlement": "SettledOutcome SettlementTarget",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
