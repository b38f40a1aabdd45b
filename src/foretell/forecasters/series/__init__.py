"""Forecasters for questions about time series; they ask no model."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.series.climatology": "harmonics",
    "foretell.forecasters.series.forecasters": "Auto Climatology Hybrid LinearTrend SeasonalKnn Walk",
    "foretell.forecasters.series.history": "AskedSeries SeriesChances",
    "foretell.forecasters.series.typed_question": "TOUCH price_answer price_question weather_answer weather_question",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
