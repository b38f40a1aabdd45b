"""Forecasts for data-set questions from several series models, weighted by their past scores."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.stack.conflict": "ConflictModel",
    "foretell.forecasters.stack.economy": "EconomyModel ShareModel",
    "foretell.forecasters.stack.stack": "Stack",
    "foretell.forecasters.stack.temperature": "TemperatureModel",
    "foretell.forecasters.stack.wikipedia": "RankModel",
}
"""Maps each module to the names that other packages import from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
