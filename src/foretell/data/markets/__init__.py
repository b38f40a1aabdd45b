"""Prediction markets: what their prices were at a moment, and what they list now.

Price histories never tell outcome, status, volume or close. Listings do, and therefore refuse backtests.
"""

from foretell.data.markets.prices import market_ref

__all__ = ["market_ref"]
