"""Forecasters turn a question, seen as of a moment, into a forecast."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.forecaster": (
        "CannotForecast Context EventLog Forecaster Models NoSeries TracedModel as_forecaster attempt "
        "build_forecaster forecast_of make_forecaster"
    ),
    "foretell.forecasters.topics": "TOPICS TopicClassifier TopicLabel by_words",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
