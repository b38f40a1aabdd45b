"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.forecasters.stack.conflict import ConflictModel as ConflictModel
from foretell.forecasters.stack.economy import EconomyModel as EconomyModel
from foretell.forecasters.stack.economy import ShareModel as ShareModel
from foretell.forecasters.stack.stack import Stack as Stack
from foretell.forecasters.stack.temperature import TemperatureModel as TemperatureModel
from foretell.forecasters.stack.wikipedia import RankModel as RankModel
