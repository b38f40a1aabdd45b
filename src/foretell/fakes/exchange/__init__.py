"""A simulated exchange: events with a hidden truth, traders who half know it, news about it, and Kalshi's wire."""

from foretell.fakes.exchange.exchange import Exchange
from foretell.fakes.exchange.settings import WorldSettings
from foretell.fakes.exchange.world import World

__all__ = ["Exchange", "World", "WorldSettings"]
