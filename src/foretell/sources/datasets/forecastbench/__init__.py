"""ForecastBench: question sets, resolution sets and submissions, exactly as they are published."""

from foretell.sources.datasets.forecastbench.questions import read_question_set
from foretell.sources.datasets.forecastbench.resolutions import Revision, read_resolution_set, revisions
from foretell.sources.datasets.forecastbench.rounds import read_round, read_rounds
from foretell.sources.datasets.forecastbench.submissions import Submission, read_submission
from foretell.sources.datasets.forecastbench.templates import MARKETS, subtype_of

__all__ = [
    "MARKETS",
    "Revision",
    "Submission",
    "read_question_set",
    "read_resolution_set",
    "read_round",
    "read_rounds",
    "read_submission",
    "revisions",
    "subtype_of",
]
