"""Forecasts for Metaculus, Prophet Arena and ForecastBench, and the ledger of what was submitted."""

from foretell.interface import offer

HOMES = {
    "foretell.submit.forecastbench": (
        "BucketFolder ForecastBenchSubmitter ForecastBenchTeam build_submission check_submission file_bytes files_of "
        "require_coverage"
    ),
    "foretell.submit.ledger": (
        "FIRST_PREVIOUS LedgerDraft LedgerEntry LedgerHead SubmissionHistory SubmissionLedger digest_of verify_ledger"
    ),
    "foretell.submit.metaculus": "MetaculusOptions MetaculusSubmitter post_of read_posts",
    "foretell.submit.metaculus_client": "COMMENT FORECAST MetaculusWriter questions_in_post",
    "foretell.submit.prophet_arena": (
        "ProphetArenaEvent ProphetArenaOptions ProphetArenaSubmitter ProphetArenaWriter read_events seal_fits "
        "signature_fits"
    ),
    "foretell.submit.sending": (
        "ItemResult Poster SEND_ONCE SendOptions SubmissionRefused SubmissionSender SubmissionUnconfirmed"
    ),
    "foretell.submit.submission": (
        "ProbabilityLimits SendResult SubmissionItem SubmissionPlan Submitter fit_to_limits read_forecasts"
    ),
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
