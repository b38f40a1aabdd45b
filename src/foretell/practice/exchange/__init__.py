"""A simulated exchange: events with a hidden truth, traders who half know it, news about it, and Kalshi's wire."""

from foretell.interface import offer

HOMES = {
    "foretell.practice.exchange.events": "SimulatedEvent SimulationSettings above first",
    "foretell.practice.exchange.forecasters": "OracleForecaster news_reader",
    "foretell.practice.exchange.server": "FileClock KALSHI KEY SimulatedExchange",
    "foretell.practice.exchange.world": "SimulatedWorld",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
