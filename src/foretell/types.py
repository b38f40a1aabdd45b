"""The types of results, options and parts of questions, for annotations and for `isinstance`."""

from typing import TYPE_CHECKING

from foretell.interface import lazy_imports

if TYPE_CHECKING:
    from foretell.agent import AnyModel, ModelFunction
    from foretell.api import AskParameters
    from foretell.data.search.engine import SearchEngine, SearchHit
    from foretell.data.search.own_engine import AnySearch
    from foretell.forecasters.agent.options import AgentOptions
    from foretell.forecasters.forecaster import Context, Forecaster
    from foretell.forecasters.tree.proposition import Tree
    from foretell.models.model import Model, Reply, Request, ToolSpec
    from foretell.models.token_price import TokenPrice
    from foretell.operations.answers import AnswerScores
    from foretell.operations.ask import AskResult
    from foretell.operations.grid import GridList, GridResult
    from foretell.operations.record import HistoryResult, RecordResult
    from foretell.operations.replay import ReplayResult
    from foretell.operations.resolve import ResolveResult
    from foretell.operations.run import RunResult
    from foretell.operations.runs import DeletedRuns, RunLabels, RunsResult, StoppedRun
    from foretell.operations.sharpen import SharpenedQuestion
    from foretell.operations.show import ShowResult
    from foretell.operations.submit import SubmissionFile, SubmitResult
    from foretell.operations.tournament_results import TournamentResults
    from foretell.operations.tree import ShownTree
    from foretell.operations.tree_edit import TreeEditResult
    from foretell.operations.tree_grow import TreeResult
    from foretell.operations.tree_list import TreesResult
    from foretell.operations.tree_log import TreeLog
    from foretell.operations.watch import WatchResult
    from foretell.operations.what_if import ScenarioComparison
    from foretell.questions.backtest import Backtest
    from foretell.questions.forecast import Failure
    from foretell.questions.question import Snapshot
    from foretell.questions.trace import TraceEvent
    from foretell.report.result import Result
    from foretell.report.run_plan import RunPlan
    from foretell.report.study_result import StudyResult
    from foretell.runs.combine import CombinationSettings
    from foretell.runs.executor import RunProgress
    from foretell.runs.settings import Settings
    from foretell.scoring.join import ReadOptions
    from foretell.scoring.score import PairComparison, ScoringOptions
    from foretell.scoring.scoreboard import Scoreboard
    from foretell.scoring.table import ForecastTable
    from foretell.tools.own_tool import AnyTool
    from foretell.tools.tool import SourceItem, Tool, ToolFailed, ToolMaterial
    from foretell.tournaments.question_visit import TournamentResult
    from foretell.tournaments.round_visit import RoundResult

__all__ = [
    "AgentOptions",
    "AnswerScores",
    "AnyModel",
    "AnySearch",
    "AnyTool",
    "AskParameters",
    "AskResult",
    "Backtest",
    "CombinationSettings",
    "Context",
    "DeletedRuns",
    "Failure",
    "ForecastTable",
    "Forecaster",
    "GridList",
    "GridResult",
    "HistoryResult",
    "Model",
    "ModelFunction",
    "PairComparison",
    "ReadOptions",
    "RecordResult",
    "ReplayResult",
    "Reply",
    "Request",
    "ResolveResult",
    "Result",
    "RoundResult",
    "RunLabels",
    "RunPlan",
    "RunProgress",
    "RunResult",
    "RunsResult",
    "ScenarioComparison",
    "Scoreboard",
    "ScoringOptions",
    "SearchEngine",
    "SearchHit",
    "Settings",
    "SharpenedQuestion",
    "ShowResult",
    "ShownTree",
    "Snapshot",
    "SourceItem",
    "StoppedRun",
    "StudyResult",
    "SubmissionFile",
    "SubmitResult",
    "TokenPrice",
    "Tool",
    "ToolFailed",
    "ToolMaterial",
    "ToolSpec",
    "TournamentResult",
    "TournamentResults",
    "TraceEvent",
    "Tree",
    "TreeEditResult",
    "TreeLog",
    "TreeResult",
    "TreesResult",
    "WatchResult",
]
__getattr__, __dir__ = lazy_imports(__name__)
