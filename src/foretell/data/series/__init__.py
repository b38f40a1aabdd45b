"""Time series by provider, cut off at a date."""

from foretell.interface import offer

HOMES = {
    "foretell.data.series.acled": "AcledSeries",
    "foretell.data.series.dbnomics": "DbnomicsSeries LAGS",
    "foretell.data.series.fred": "FredSeries",
    "foretell.data.series.local": "CsvSeries OwnSeries PackagedSeries",
    "foretell.data.series.open_meteo": "OpenMeteoSeries",
    "foretell.data.series.series": (
        "FetchedSeries Series SeriesByProvider SeriesInMemory SeriesSource SeriesUnavailable WebSeries"
    ),
    "foretell.data.series.wikipedia": "WikipediaSeries",
    "foretell.data.series.yahoo": "YahooSeries",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
