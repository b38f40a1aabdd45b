"""A forecaster that sends one prompt with a shared prediction context, in several elicitation variants."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.prompt.adapter": "ContextAdapter context_toolbox on_context",
    "foretell.forecasters.prompt.builder": (
        "ContextBuild ContextBuildSettings ContextBuilder ContextUnavailable NOT_TELLING SUMMARY_LEAKS TOO_LATE "
        "TOO_MANY"
    ),
    "foretell.forecasters.prompt.elicitation": (
        "ASKED ELICITATIONS Elicitation ElicitationCall ElicitedAnswer OutcomeNames PROMPTS call_of read_elicitation "
        "read_probabilities read_votes"
    ),
    "foretell.forecasters.prompt.forecaster": "PromptForecaster fit",
    "foretell.forecasters.prompt.prediction_context": (
        "PredictionContext QuestionOnly RankedSource StoredContexts from_articles key_of known_at one_line ranked "
        "refusal_notes refused_articles"
    ),
    "foretell.forecasters.prompt.rendering": (
        "BOTH ContextView MARKET NONE SOURCES VIEWS material outcomes read_view readable render"
    ),
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
