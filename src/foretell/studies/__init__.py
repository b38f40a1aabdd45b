"""Studies: each takes runs or tables and returns tables, charts and a sentence."""

from foretell.interface import offer

HOMES = {
    "foretell.studies.configurations": "build_method study_configs",
    "foretell.studies.consistency": "StatedForecast",
    "foretell.studies.forecaster_facts": "ForecasterFacts read_forecaster_facts",
    "foretell.studies.inputs": (
        "AT_ONCE DataInputs StudyData StudyOptions StudyProgress TableOptions TreeStudyOptions gather_bounded "
        "ignore_progress load_study study_questions"
    ),
    "foretell.studies.reasoning": "ReasoningCase",
    "foretell.studies.scores": (
        "brier_of groups_of index_of mean_gain mean_index mean_of_runs paired_gains paired_verdict rule_score_table "
        "rule_scores"
    ),
    "foretell.studies.sections": "run_sections",
    "foretell.studies.stored_runs": "read_cases read_statements read_trees",
    "foretell.studies.trajectories": "TracedTrial",
    "foretell.studies.tree_noise": (
        "DISTURBANCES DRAWS NoiseEffects RATIOS add_uniform_noise noise_effects replace_by_chance reverse_by_chance "
        "variance_lost variance_lost_among"
    ),
    "foretell.studies.tree_world": (
        "Simulation TreeWorld WORLD_RULES WorldRule draw_outcomes draw_questions draw_shape draw_world"
    ),
}
"""Maps each module to its public names."""

__getattr__, __dir__ = offer(__name__, HOMES)
