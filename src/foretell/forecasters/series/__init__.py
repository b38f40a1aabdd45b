"""Forecasters for questions about time series. They call no language model."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.series.climatology": "harmonics",
    "foretell.forecasters.series.forecasters": "Auto Climatology Hybrid LinearTrend SeasonalKnn Walk",
    "foretell.forecasters.series.history": "AskedSeries SeriesChances",
    "foretell.forecasters.series.typed_question": "TOUCH price_answer price_question weather_answer weather_question",
}
"""Maps each module to the names that other packages import from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
