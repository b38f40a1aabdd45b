"""Submit forecasts to Metaculus, Prophet Arena and ForecastBench, and keep a ledger of what was submitted."""

from foretell.interface import offer

HOMES = {
    "foretell.submit.forecastbench": (
        "BucketFolder ForecastBenchSubmitter ForecastBenchTeam build_submission check_submission file_bytes "
        "files_of require_coverage"
    ),
    "foretell.submit.ledger": (
        "FIRST_PREVIOUS LedgerDraft LedgerEntry LedgerHead SubmissionHistory SubmissionLedger digest_of verify_ledger"
    ),
    "foretell.submit.metaculus": (
        "COMMENT FORECAST MetaculusOptions MetaculusSubmitter MetaculusWriter post_of questions_in_post read_posts"
    ),
    "foretell.submit.prophet_arena": (
        "ProphetArenaEvent ProphetArenaOptions ProphetArenaSubmitter ProphetArenaWriter read_events seal_fits "
        "signature_fits"
    ),
    "foretell.submit.submission": (
        "ItemResult Poster ProbabilityLimits SEND_ONCE SendOptions SubmissionItem SubmissionPlan "
        "SubmissionRefused SubmissionSender SubmissionUnconfirmed Submitter fit_to_limits read_forecasts"
    ),
}
"""Module → its public names."""

__getattr__, __dir__ = offer(__name__, HOMES)
