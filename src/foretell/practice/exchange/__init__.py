"""A simulated exchange: events with a hidden truth, traders who half know it, news about it, and Kalshi's wire."""

from foretell.practice.exchange.chance import SimulationSettings
from foretell.practice.exchange.server import SimulatedExchange
from foretell.practice.exchange.world import SimulatedWorld

__all__ = ["SimulatedExchange", "SimulatedWorld", "SimulationSettings"]
