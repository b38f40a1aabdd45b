"""Forecast the future, see the reasons, and measure how good the forecasts are.

Forecast:         ask, record, run, grid, backtest, enter_tournament; Agent
Score:            score, compare, read_table, score_arena, study, audit
Look at runs:     list_runs, show, replay, stop_run, edit_run, resolve_run, delete_runs
Work with trees:  grow_tree, read_tree, write_tree, show_tree, edit_tree, update_tree, what_if, tree_log, list_trees
Tournaments:      enter_tournament, tournament_results, submit_forecasts
Describe data:    Question, Target, Forecast, Resolution, AsOf; open_benchmark, combine_trials, read_inspect_log

Functions that wait have a form with `a` before the name that is awaited, such as `await aask(…)`. The types of results
and options are in `foretell.types`, metrics of arrays in `foretell.metrics`. Wrong input raises `InputError`.
"""

from typing import TYPE_CHECKING

from foretell.interface import lazy_imports

if TYPE_CHECKING:
    from foretell import metrics as metrics
    from foretell import types as types
    from foretell.agent import Agent
    from foretell.api import (
        aask,
        aenter_tournament,
        agrid,
        agrow_tree,
        arun,
        ask,
        audit,
        delete_runs,
        edit_run,
        edit_tree,
        enter_tournament,
        grid,
        grow_tree,
        list_runs,
        list_trees,
        record,
        replay,
        resolve_run,
        run,
        show,
        show_tree,
        stop_run,
        submit_forecasts,
        tournament_results,
        tree_log,
        update_tree,
        what_if,
    )
    from foretell.forecasters.tree.tree_file import read_tree, write_tree
    from foretell.inspect_tasks.logs import read_inspect_log
    from foretell.operations.studies import study
    from foretell.questions.as_of import AsOf
    from foretell.questions.errors import InputError
    from foretell.questions.forecast import Forecast
    from foretell.questions.question import Question, Target
    from foretell.questions.resolution import Resolution
    from foretell.report.arena_report import score_arena
    from foretell.runs.backtest import abacktest, backtest
    from foretell.runs.combine import combine_trials
    from foretell.runs.question_sets import open_benchmark
    from foretell.scoring.sources import compare, read_table, score

__version__ = "0.3.0"
__all__ = [
    "Agent",
    "AsOf",
    "Forecast",
    "InputError",
    "Question",
    "Resolution",
    "Target",
    "aask",
    "abacktest",
    "aenter_tournament",
    "agrid",
    "agrow_tree",
    "arun",
    "ask",
    "audit",
    "backtest",
    "combine_trials",
    "compare",
    "delete_runs",
    "edit_run",
    "edit_tree",
    "enter_tournament",
    "grid",
    "grow_tree",
    "list_runs",
    "list_trees",
    "open_benchmark",
    "read_inspect_log",
    "read_table",
    "read_tree",
    "record",
    "replay",
    "resolve_run",
    "run",
    "score",
    "score_arena",
    "show",
    "show_tree",
    "stop_run",
    "study",
    "submit_forecasts",
    "tournament_results",
    "tree_log",
    "update_tree",
    "what_if",
    "write_tree",
]
__getattr__, __dir__ = lazy_imports(__name__, others="foretell.types")
