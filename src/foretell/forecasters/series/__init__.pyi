"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.forecasters.series.climatology import harmonics as harmonics
from foretell.forecasters.series.forecasters import Auto as Auto
from foretell.forecasters.series.forecasters import Climatology as Climatology
from foretell.forecasters.series.forecasters import Hybrid as Hybrid
from foretell.forecasters.series.forecasters import LinearTrend as LinearTrend
from foretell.forecasters.series.forecasters import SeasonalKnn as SeasonalKnn
from foretell.forecasters.series.forecasters import Walk as Walk
from foretell.forecasters.series.history import AskedSeries as AskedSeries
from foretell.forecasters.series.history import SeriesChances as SeriesChances
from foretell.forecasters.series.typed_question import TOUCH as TOUCH
from foretell.forecasters.series.typed_question import price_answer as price_answer
from foretell.forecasters.series.typed_question import price_question as price_question
from foretell.forecasters.series.typed_question import weather_answer as weather_answer
from foretell.forecasters.series.typed_question import weather_question as weather_question
