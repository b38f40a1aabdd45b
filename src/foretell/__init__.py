"""Forecast the future, see the reasons, and measure how good the forecasts are.

Forecast:         ask, record, run, grid, backtest, enter_tournament; Agent
Score:            score, compare, read_table, score_arena, study, audit
Look at runs:     list_runs, show, replay, stop_run, edit_run, resolve_run, delete_runs
Work with trees:  grow_tree, read_tree, write_tree, show_tree, edit_tree, update_tree, what_if, tree_log, list_trees
Tournaments:      enter_tournament, tournament_results, submit_forecasts
Describe data:    Question, Target, Forecast, Resolution, AsOf; open_benchmark, combine_trials, read_inspect_log

`ask`, `run`, `grid`, `backtest`, `grow_tree`, `update_tree` and `enter_tournament` also have a form that is awaited,
with `a` before the name: `await aask(…)`. The types of results and options are in `foretell.types`, metrics of arrays
in `foretell.metrics`. Wrong input raises `InputError`.
"""

from typing import TYPE_CHECKING

from foretell.interface import lazy_imports

if TYPE_CHECKING:
    from foretell import metrics as metrics
    from foretell import types as types
    from foretell.agent import Agent as Agent
    from foretell.api import aask as aask
    from foretell.api import aenter_tournament as aenter_tournament
    from foretell.api import agrid as agrid
    from foretell.api import agrow_tree as agrow_tree
    from foretell.api import arun as arun
    from foretell.api import ask as ask
    from foretell.api import audit as audit
    from foretell.api import delete_runs as delete_runs
    from foretell.api import edit_run as edit_run
    from foretell.api import edit_tree as edit_tree
    from foretell.api import enter_tournament as enter_tournament
    from foretell.api import grid as grid
    from foretell.api import grow_tree as grow_tree
    from foretell.api import list_runs as list_runs
    from foretell.api import list_trees as list_trees
    from foretell.api import record as record
    from foretell.api import replay as replay
    from foretell.api import resolve_run as resolve_run
    from foretell.api import run as run
    from foretell.api import show as show
    from foretell.api import show_tree as show_tree
    from foretell.api import stop_run as stop_run
    from foretell.api import submit_forecasts as submit_forecasts
    from foretell.api import tournament_results as tournament_results
    from foretell.api import tree_log as tree_log
    from foretell.api import update_tree as update_tree
    from foretell.api import what_if as what_if
    from foretell.forecasters.tree.tree_file import read_tree as read_tree
    from foretell.forecasters.tree.tree_file import write_tree as write_tree
    from foretell.inspect_tasks.logs import read_inspect_log as read_inspect_log
    from foretell.operations.studies import study as study
    from foretell.questions.as_of import AsOf as AsOf
    from foretell.questions.errors import InputError as InputError
    from foretell.questions.forecast import Forecast as Forecast
    from foretell.questions.question import Question as Question
    from foretell.questions.question import Target as Target
    from foretell.questions.resolution import Resolution as Resolution
    from foretell.report.arena_report import score_arena as score_arena
    from foretell.runs.backtest import abacktest as abacktest
    from foretell.runs.backtest import backtest as backtest
    from foretell.runs.combine import combine_trials as combine_trials
    from foretell.runs.question_sets import open_benchmark as open_benchmark
    from foretell.scoring.sources import compare as compare
    from foretell.scoring.sources import read_table as read_table
    from foretell.scoring.sources import score as score

__version__ = "0.3.0"
__getattr__, __dir__ = lazy_imports(__name__, others="foretell.types")
