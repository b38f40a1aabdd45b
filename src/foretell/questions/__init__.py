"""What is asked, when, of whom, and how it came out: frozen values, no I/O."""

from foretell.questions.as_of import AsOf, AsOfMode, Clock, UtcDatetime, instant
from foretell.questions.clock_jump import ClockReading, steady_seconds
from foretell.questions.codec import from_dict, from_json, to_json
from foretell.questions.errors import InputError, MissingExtra, NoAnswer
from foretell.questions.exclusivity import EXCLUSIVITIES, Exclusivity, even_chance, read_exclusivity, scaled
from foretell.questions.forecast import Categorical, Cost, Failure, Forecast, Numeric
from foretell.questions.numeric_range import NumericRange
from foretell.questions.question import LastValue, Question, QuestionKind, SeriesRef, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.questions.trace import (
    BeliefRevised,
    EmitEvent,
    Failed,
    ForecastMade,
    LeakBlocked,
    ModelCalled,
    NodeAnalyzed,
    NodeGrounded,
    NodeSynthesized,
    ToolUsed,
    TraceEvent,
    TreeGrown,
    ignore_event,
)

__all__ = [
    "EXCLUSIVITIES",
    "AsOf",
    "AsOfMode",
    "BeliefRevised",
    "Categorical",
    "Clock",
    "ClockReading",
    "Cost",
    "EmitEvent",
    "Exclusivity",
    "Failed",
    "Failure",
    "Forecast",
    "ForecastMade",
    "InputError",
    "LastValue",
    "LeakBlocked",
    "MissingExtra",
    "ModelCalled",
    "NoAnswer",
    "NodeAnalyzed",
    "NodeGrounded",
    "NodeSynthesized",
    "Numeric",
    "NumericRange",
    "Question",
    "QuestionKind",
    "Resolution",
    "SeriesRef",
    "Snapshot",
    "Target",
    "ToolUsed",
    "TraceEvent",
    "TreeGrown",
    "UtcDatetime",
    "even_chance",
    "from_dict",
    "from_json",
    "ignore_event",
    "instant",
    "read_exclusivity",
    "scaled",
    "steady_seconds",
    "to_json",
]
