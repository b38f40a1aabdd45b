"""Forecasts for data-set questions from several series models, weighted by their past scores."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.stack.conflict": "ConflictModel",
    "foretell.forecasters.stack.economy": "EconomyModel ShareModel",
    "foretell.forecasters.stack.stack": "Stack",
    "foretell.forecasters.stack.temperature": "TemperatureModel",
    "foretell.forecasters.stack.wikipedia": "RankModel",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
