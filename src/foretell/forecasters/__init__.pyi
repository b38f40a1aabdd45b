"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.forecasters.forecaster import CannotForecast as CannotForecast
from foretell.forecasters.forecaster import Context as Context
from foretell.forecasters.forecaster import EventLog as EventLog
from foretell.forecasters.forecaster import Forecaster as Forecaster
from foretell.forecasters.forecaster import Models as Models
from foretell.forecasters.forecaster import NoSeries as NoSeries
from foretell.forecasters.forecaster import TracedModel as TracedModel
from foretell.forecasters.forecaster import as_forecaster as as_forecaster
from foretell.forecasters.forecaster import attempt as attempt
from foretell.forecasters.forecaster import build_forecaster as build_forecaster
from foretell.forecasters.forecaster import forecast_of as forecast_of
from foretell.forecasters.forecaster import make_forecaster as make_forecaster
from foretell.forecasters.topics import TOPICS as TOPICS
from foretell.forecasters.topics import TopicClassifier as TopicClassifier
from foretell.forecasters.topics import TopicLabel as TopicLabel
from foretell.forecasters.topics import by_words as by_words
