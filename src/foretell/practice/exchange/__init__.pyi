"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.practice.exchange.events import SimulatedEvent as SimulatedEvent
from foretell.practice.exchange.events import SimulationSettings as SimulationSettings
from foretell.practice.exchange.events import above as above
from foretell.practice.exchange.events import first as first
from foretell.practice.exchange.forecasters import OracleForecaster as OracleForecaster
from foretell.practice.exchange.forecasters import news_reader as news_reader
from foretell.practice.exchange.server import FileClock as FileClock
from foretell.practice.exchange.server import KALSHI as KALSHI
from foretell.practice.exchange.server import KEY as KEY
from foretell.practice.exchange.server import SimulatedExchange as SimulatedExchange
from foretell.practice.exchange.world import SimulatedWorld as SimulatedWorld
