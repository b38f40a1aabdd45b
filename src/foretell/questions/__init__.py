"""What is asked, when, of whom, and how it came out: frozen values, no I/O."""

from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import from_dict, from_json, to_json
from foretell.questions.errors import InputError, MissingExtra
from foretell.questions.exclusivity import Exclusivity
from foretell.questions.forecast import Categorical, Cost, Failure, Forecast, Numeric
from foretell.questions.numeric_range import NumericRange
from foretell.questions.question import LastValue, Question, QuestionKind, SeriesRef, Snapshot, Target
from foretell.questions.resolution import Resolution

__all__ = [
    "AsOf",
    "Categorical",
    "Cost",
    "Exclusivity",
    "Failure",
    "Forecast",
    "InputError",
    "LastValue",
    "MissingExtra",
    "Numeric",
    "NumericRange",
    "Question",
    "QuestionKind",
    "Resolution",
    "SeriesRef",
    "Snapshot",
    "Target",
    "from_dict",
    "from_json",
    "instant",
    "to_json",
]
