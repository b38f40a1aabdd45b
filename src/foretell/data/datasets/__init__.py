"""Public question sets and files of questions."""

from foretell.interface import offer

HOMES = {
    "foretell.data.datasets.analytica": (
        "FinancialTaskPlan HIGHER_LOWER LONG_SHORT build_financial_tasks read_claims read_options"
    ),
    "foretell.data.datasets.demo": "DEMO",
    "foretell.data.datasets.forecastbench": (
        "read_question_set read_resolution_set read_round read_rounds read_submission resolution_revisions subtype_of"
    ),
    "foretell.data.datasets.forecastbench_download": (
        "FORECASTBENCH_URL ForecastBenchDownload PulledFile price_file pulled_rounds read_pulled"
    ),
    "foretell.data.datasets.forecastbench_tables": "QUESTION_COLUMNS read_question_tables",
    "foretell.data.datasets.prophet_arena": "download_events read_arena_file read_events_csv read_events_jsonl",
    "foretell.data.datasets.question_files": "read_questions",
    "foretell.data.datasets.question_set": (
        "ContextSource DatasetRequest LateText OutcomeKey QuestionSet SetFilter asked_key quarantine_note "
        "questions_digest union"
    ),
    "foretell.data.datasets.rows": "Row csv_rows read_text",
    "foretell.data.datasets.tranches": "TranchePlan build_tranche",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
