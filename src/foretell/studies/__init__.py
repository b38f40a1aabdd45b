"""Experiments: each takes runs or tables and returns tables, charts and a sentence."""

from foretell.interface import offer

HOMES = {
    "foretell.studies.configurations": "complete_configs study_notes study_settings",
    "foretell.studies.consistency": "StatedForecast",
    "foretell.studies.habits": "TracedTrial",
    "foretell.studies.inputs": (
        "AT_ONCE DataInputs StudyData StudyOptions StudyProgress TableOptions TreeStudyOptions gather_bounded "
        "ignore_progress load_study study_questions"
    ),
    "foretell.studies.layout": "column count table",
    "foretell.studies.protocols": "build_method",
    "foretell.studies.reasoning": "ReasoningCase",
    "foretell.studies.scores": (
        "brier_of groups_of index_of mean_gain mean_index mean_of_runs paired_gains paired_gap "
        "rule_score_table rule_scores"
    ),
    "foretell.studies.stored_runs": (
        "AS_PUBLISHED OUT_OF_SAMPLE TrialAssumptions read_cases read_statements read_trial_tables"
    ),
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
