"""Runs: spec, cells, store, executor, workers, and the runtime that puts model, tools and forecaster together."""

from foretell.interface import offer

HOMES = {
    "foretell.runs.backtest": "Backtest",
    "foretell.runs.cell_queue": "CellQueue QueuedCell RunFollower enqueue not_queued",
    "foretell.runs.claims": "ClaimTable",
    "foretell.runs.combine": (
        "CombinationSettings average_distributions combine_trials combining_by_name combining_of_run "
        "one_forecast_per_question"
    ),
    "foretell.runs.due_prices": "keep_due_prices",
    "foretell.runs.event_loop": "run_sync",
    "foretell.runs.executor": "AnswerCell Executor RunProgress",
    "foretell.runs.grid": "factors_of_specs grid_from_mapping read_grid",
    "foretell.runs.outcomes": "RunOutcomes StoredRates past_of rates_of",
    "foretell.runs.question_sets": (
        "Benchmark LATE_TEXT_HINT SetName Tournament find_set open_benchmark open_listing questions_of_run set_names"
    ),
    "foretell.runs.runner": (
        "PreparedRun WatchProgress asks_models begin_run check_options check_run execute_run find_run_of "
        "match_questions open_answers prepare_run"
    ),
    "foretell.runs.runtime": "forecaster_options models_of_run open_runtime prices_of",
    "foretell.runs.services": "SEARCH_ENGINES SeriesOnDemand Services open_markets open_services plugin_tools",
    "foretell.runs.settings": "CHECKED_MODELS KEYS KNOWN_MODELS Settings clock_of load_settings",
    "foretell.runs.spec": "BudgetSpec QuestionsSpec RunSpec TYPED_PREFIX read_spec spec_from_json spec_from_mapping",
    "foretell.runs.store": (
        "CELL_COLUMNS CellKey MIGRATIONS RunCell RunRow RunStore cells_each cells_of find_run panel_cells"
    ),
    "foretell.runs.tree_runtime": "TreeOptions",
    "foretell.runs.worker": "Worker WorkerCapacity WorkerSignals executor_name",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
