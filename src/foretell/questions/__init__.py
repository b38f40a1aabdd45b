"""Questions, cutoffs, forecasts, outcomes and events: immutable values without I/O."""

from foretell.interface import offer

HOMES = {
    "foretell.questions.as_of": "AsOf AsOfMode Clock UtcDatetime instant",
    "foretell.questions.clock_jump": "ClockReading steady_seconds",
    "foretell.questions.codec": "from_dict from_json to_json",
    "foretell.questions.errors": "InputError MissingExtra NoAnswer",
    "foretell.questions.forecast": "Categorical Cost Failure Forecast Numeric",
    "foretell.questions.question": (
        "EXCLUSIVITIES Exclusivity LastValue NumericRange Question QuestionKind SeriesRef Snapshot Target even_chance "
        "read_exclusivity scaled"
    ),
    "foretell.questions.resolution": "Resolution",
    "foretell.questions.trace": (
        "BeliefRevised EmitEvent Failed ForecastMade LeakBlocked ModelCalled NodeAnalyzed NodeGrounded NodeSynthesized "
        "ToolUsed TraceEvent TreeGrown ignore_event"
    ),
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
