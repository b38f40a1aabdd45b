"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.data.series.acled import AcledSeries as AcledSeries
from foretell.data.series.dbnomics import DbnomicsSeries as DbnomicsSeries
from foretell.data.series.dbnomics import LAGS as LAGS
from foretell.data.series.fred import FredSeries as FredSeries
from foretell.data.series.local import CsvSeries as CsvSeries
from foretell.data.series.local import OwnSeries as OwnSeries
from foretell.data.series.local import PackagedSeries as PackagedSeries
from foretell.data.series.open_meteo import OpenMeteoSeries as OpenMeteoSeries
from foretell.data.series.series import FetchedSeries as FetchedSeries
from foretell.data.series.series import Series as Series
from foretell.data.series.series import SeriesByProvider as SeriesByProvider
from foretell.data.series.series import SeriesInMemory as SeriesInMemory
from foretell.data.series.series import SeriesSource as SeriesSource
from foretell.data.series.series import SeriesUnavailable as SeriesUnavailable
from foretell.data.series.series import WebSeries as WebSeries
from foretell.data.series.wikipedia import WikipediaSeries as WikipediaSeries
from foretell.data.series.yahoo import YahooSeries as YahooSeries
