"""Prediction markets: what their prices were at a moment. Outcome, status, volume and close never leave here."""

from foretell.sources.markets.reference import market_ref

__all__ = ["market_ref"]
