"""What is asked, when, of whom, and how it came out: frozen values, no I/O."""

from foretell.questions.clock import AsOf, instant
from foretell.questions.codec import from_dict, from_json, to_json
from foretell.questions.distribution import Categorical, Numeric
from foretell.questions.forecast import Failure, Forecast, Usage
from foretell.questions.problems import InputError, MissingExtra
from foretell.questions.question import Kind, LastValue, Question, SeriesRef, Target
from foretell.questions.resolution import Resolution
from foretell.questions.snapshot import Snapshot

__all__ = [
    "AsOf",
    "Categorical",
    "Failure",
    "Forecast",
    "InputError",
    "Kind",
    "LastValue",
    "MissingExtra",
    "Numeric",
    "Question",
    "Resolution",
    "SeriesRef",
    "Snapshot",
    "Target",
    "Usage",
    "from_dict",
    "from_json",
    "instant",
    "to_json",
]
