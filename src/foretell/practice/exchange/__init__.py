"""A simulated exchange: events with a hidden truth, partly informed traders, news, and Kalshi's API."""

from foretell.interface import offer

HOMES = {
    "foretell.practice.exchange.events": "SimulatedEvent SimulationSettings above first",
    "foretell.practice.exchange.forecasters": "OracleForecaster news_reader",
    "foretell.practice.exchange.server": "FileClock KALSHI KEY SimulatedExchange",
    "foretell.practice.exchange.world": "SimulatedWorld",
}
"""Module → the names that the rest of foretell uses."""

__getattr__, __dir__ = offer(__name__, HOMES)
