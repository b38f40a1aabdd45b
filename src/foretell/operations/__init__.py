"""All operations: one function for everything a user can do, called by the command line, web app, MCP and Python."""

from foretell.interface import offer

HOMES = {
    "foretell.operations.arena": "ArenaParts open_arena",
    "foretell.operations.ask": "AskResult prepare_ask",
    "foretell.operations.calibrate": "FitResult",
    "foretell.operations.compare": "CompareResult PowerAnalysis",
    "foretell.operations.data": "build show_questions",
    "foretell.operations.doctor": "DoctorResult look_at_databases run_doctor",
    "foretell.operations.example": "demo serving_example",
    "foretell.operations.grid": "list_grids run_grid",
    "foretell.operations.init_files": "BOT_FILES cron init packed_wheel spec_schema",
    "foretell.operations.models": "ModelCheck check_model list_models show_models",
    "foretell.operations.practice": (
        "ArenaSeason BOLD BOTH HASTY NEWS ORACLE OUTSIDE_ENTRY UNSET arena_demo demo_spec demo_world "
        "practice_environment shell_lines"
    ),
    "foretell.operations.prompts": "prompts_of",
    "foretell.operations.run_plan": "SpecPrompt",
    "foretell.operations.question_view": "combination_of what_moved",
    "foretell.operations.requests.asking": "AskRequest",
    "foretell.operations.requests.data": ("BacktestRequest DataBuildRequest DataShowRequest ListingFields"),
    "foretell.operations.requests.runs": "GridRequest RunRequest RunsRequest ShowRequest",
    "foretell.operations.requests.scoring": "CalibrateApplyRequest CalibrateFitRequest CompareRequest ScoreRequest",
    "foretell.operations.requests.setup": (
        "DemoRequest DoctorRequest InitRequest ModelsCheckRequest ModelsListRequest"
    ),
    "foretell.operations.requests.tournaments": ("SubmitRequest TournamentResultsRequest TournamentRunRequest"),
    "foretell.operations.requests.trees": (
        "TreeLogRequest TreeRequest TreeShowRequest TreeUpdateRequest WhatIfRequest"
    ),
    "foretell.operations.result": "Result",
    "foretell.operations.run": "RunResult prepare replay resume show",
    "foretell.operations.runs": "delete_runs edit_run list_runs read_query resolve_run stop_run",
    "foretell.operations.score": "ErrorsResult ScoreResult",
    "foretell.operations.score_numbers": "NumberScores",
    "foretell.operations.services": "ServiceChecks check_services list_services service_names",
    "foretell.operations.shared_runs": "ClusterStatus settings_for shared_url",
    "foretell.operations.studies": "study",
    "foretell.operations.table": "OPERATIONS PYTHON_NAMES",
    "foretell.operations.thresholds": "DecidedForecasts ThresholdResult",
    "foretell.operations.tournament": "ATTEMPTS TournamentResult",
    "foretell.operations.tournament_platforms": "TESTING_AREA enter",
    "foretell.operations.tournament_results": "TournamentResults score_tournaments",
    "foretell.operations.tournament_round": "RoundResult",
    "foretell.operations.tree": "grow_tree show_tree verify_notebooks",
    "foretell.operations.tree_edit": "TreeEditResult edit_tree tree_log",
    "foretell.operations.tree_update": "update_tree",
}
"""Module → its public names."""

__getattr__, __dir__ = offer(__name__, HOMES)
