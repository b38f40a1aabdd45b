"""The types of results, options and parts of questions, for annotations and for `isinstance`."""

from typing import TYPE_CHECKING

from foretell.interface import lazy_imports

if TYPE_CHECKING:
    from foretell.agent import AnyModel, ModelFunction
    from foretell.api import (
        AskParameters,
        GridParameters,
        RunParameters,
        SubmitParameters,
        TournamentParameters,
        TreeParameters,
        Where,
    )
    from foretell.data.datasets.question_set import LeakyQuestions, QuestionSet, SetFilter, SetStatus
    from foretell.data.dates import Dating
    from foretell.data.search.engine import SearchEngine, SearchHit
    from foretell.data.search.own_engine import AnySearch, HasSearch, SearchFunction
    from foretell.data.series.series import SeriesSource
    from foretell.forecasters.agent.options import AgentOptions
    from foretell.forecasters.agent.settings import AgentSettings, ReplyFormat
    from foretell.forecasters.base_rates.outside_estimate import ReferenceQuestion
    from foretell.forecasters.base_rates.past import Past, PastAnswer, PastQuestions, PastTarget
    from foretell.forecasters.base_rates.rates import PastOutcomes, Rates
    from foretell.forecasters.combine.clamp import ClampName
    from foretell.forecasters.combine.rows import Examples, TrialRows
    from foretell.forecasters.forecaster import CannotForecast, Context, Forecaster, MatchingSource, Models
    from foretell.forecasters.prompt.prediction_context import PredictionContexts
    from foretell.forecasters.series.typed_question import SeriesAnswer
    from foretell.forecasters.tree.arithmetic.sensitivity import Sensitivity, TornadoBar, TreeSpread
    from foretell.forecasters.tree.case_links import AllLink, AnyLink, AtLeastLink, SplitLink, WeighLink
    from foretell.forecasters.tree.cases import StatedCases
    from foretell.forecasters.tree.edits import (
        AddNode,
        Edit,
        MarkStale,
        MoveNode,
        RemoveNode,
        Scenario,
        SetClaim,
        SetGrounding,
        SetLink,
        SetP,
        SetReport,
        ShareNode,
        Unpin,
    )
    from foretell.forecasters.tree.history import TreeVersion
    from foretell.forecasters.tree.links import (
        AverageLink,
        FormulaAssumption,
        FormulaLink,
        InhibitedNoisyOrLink,
        JudgedLink,
        LinearLink,
        Link,
        NoisyOrLink,
        ProductLogicLink,
    )
    from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree, TreeOrigin
    from foretell.forecasters.tree.text import TreeProblem
    from foretell.forecasters.tree.what_if import ClaimChange, WhatIfResult
    from foretell.inspect_tasks.logs import LoggedForecasts
    from foretell.metrics.bootstrap import Interval, IntervalKind, Resampling
    from foretell.metrics.comparison import McNemarTest
    from foretell.metrics.power import PilotStudy
    from foretell.metrics.returns import Bettor, Fee
    from foretell.models.budget import Budget
    from foretell.models.ledger import Money
    from foretell.models.model import (
        AssistantMessage,
        FinishReason,
        Message,
        Model,
        ModelSettings,
        ReasoningEffort,
        Reply,
        Request,
        ServiceTier,
        SystemMessage,
        TokenCount,
        ToolCall,
        ToolResult,
        ToolSpec,
        UserMessage,
    )
    from foretell.models.names import ModelRole
    from foretell.models.reservation import LosableReservation
    from foretell.models.token_price import TokenPrice
    from foretell.operations.answers import AnswerScores, RunAnswer
    from foretell.operations.ask import AskResult
    from foretell.operations.grid import GridList, GridResult, GridRow, PlannedRun, StoredGrid
    from foretell.operations.record import HistoryResult, RecordResult
    from foretell.operations.replay import ReplayResult
    from foretell.operations.resolve import ResolveResult
    from foretell.operations.run import RunResult
    from foretell.operations.runs import DeletedRuns, ListedRun, RunLabels, RunsResult, StoppedRun
    from foretell.operations.score import OptionScore, ScoreDetails, ScoreResult
    from foretell.operations.sharpen import SharpenedQuestion
    from foretell.operations.show import ShowResult
    from foretell.operations.submit import SubmissionFile, SubmissionPreview, SubmitResult
    from foretell.operations.tournament_results import TournamentResults
    from foretell.operations.tree import ShownTree
    from foretell.operations.tree_edit import TreeEditResult
    from foretell.operations.tree_grow import PlannedTree, TreeResult
    from foretell.operations.tree_list import TreesResult
    from foretell.operations.tree_log import TreeDiff, TreeLog
    from foretell.operations.tree_plan import PlannedStep, TreePlan
    from foretell.operations.watch import WatchedQuestion, WatchResult
    from foretell.operations.what_if import ScenarioComparison
    from foretell.questions.as_of import AsOfMode
    from foretell.questions.backtest import Backtest, BacktestAnswer
    from foretell.questions.errors import InputProblem, NoAnswer
    from foretell.questions.forecast import Categorical, Cost, Ending, Failure, Numeric, Reconciliation
    from foretell.questions.question import Exclusivity, LastValue, NumericRange, QuestionKind, SeriesRef, Snapshot
    from foretell.questions.resolution import Reference
    from foretell.questions.trace import (
        BeliefRevised,
        EmitEvent,
        EvidenceFound,
        Failed,
        ForecastMade,
        LeakBlocked,
        ModelCalled,
        NodeAnalyzed,
        NodeGrounded,
        NodeSynthesized,
        QuestionShown,
        ToolUsed,
        TraceEvent,
        TreeGrown,
    )
    from foretell.questions.value_age import ValueAge
    from foretell.report.arena_report import ArenaReport
    from foretell.report.charts.svg import Chart
    from foretell.report.document import ReportDocument
    from foretell.report.numbers import CellUnit, CellValue
    from foretell.report.result import Result
    from foretell.report.run_plan import RunPlan
    from foretell.report.study import RowStyle, StudyChart, StudyColumn, StudyFile, StudyRow, StudyTable
    from foretell.report.study_result import StudyResult
    from foretell.report.tournament_page import TournamentRow
    from foretell.runs.backtest import AnyForecaster, AnyQuestions, BacktestProgress, ForecastFunction, HasForecast
    from foretell.runs.combine import AnswerStep, CombinationSettings, CombinedAnswer, QuestionEstimates
    from foretell.runs.executor import RunProgress
    from foretell.runs.public_answer import Basis
    from foretell.runs.public_sources import MarketMatch, SeriesReading
    from foretell.runs.question_sets import Benchmark, SetContexts
    from foretell.runs.settings import Settings
    from foretell.runs.spec import RunState
    from foretell.runs.store import RunRow
    from foretell.runs.tree_files import ListedTree
    from foretell.runs.tree_notebooks import NotebookState
    from foretell.runs.trial_costs import SpecPrompt
    from foretell.scoring.answers import Rule, ScoredAnswer
    from foretell.scoring.arena_leaderboard import (
        ArenaLeaderboardGroup,
        ArenaLeaderboardRow,
        RebalancedScores,
        ScoredArena,
    )
    from foretell.scoring.arena_table import ArenaEntry
    from foretell.scoring.arena_view import ArenaCounts, ArenaLeaderboard, ArenaPairs, CurvePoint, LeadTimeCurve
    from foretell.scoring.role_columns import ColumnNames
    from foretell.scoring.run_scores import QuestionAnswer, RunPart, RunScores, TargetAnswer
    from foretell.scoring.score import PairComparison, ScoringOptions
    from foretell.scoring.scoreboard import Group, Score, Scoreboard
    from foretell.scoring.sources import Trials, Weights
    from foretell.scoring.table import ForecastCost, ForecastTable, Labels, Targets, Weighing
    from foretell.scoring.table_input import TableSource
    from foretell.scoring.verdict import Finding, Verdict
    from foretell.standing.history import QuestionHistory, RelatedQuestion, Spent
    from foretell.standing.learning import LearntWeight
    from foretell.standing.own_record import HowResolved, OwnRecord, ScoredQuestion, ScorePoint, Update, UpdateWorth
    from foretell.standing.post_mortem import Fault, FoundFact, PostMortem, PostMortems, ResearchScore
    from foretell.standing.record import (
        Look,
        NewEvidence,
        NoOutcome,
        OutcomeProposal,
        OutcomeReading,
        QuestionRecord,
        Sharpening,
        StandingBelief,
        StandingQuestion,
        StandingState,
        Trigger,
    )
    from foretell.standing.watcher import LookReport
    from foretell.studies.cases import TreeFacts
    from foretell.studies.inputs import DataInputs, StudyData, StudyProgress, TableOptions
    from foretell.tools.leakage_filter import FilteredTools
    from foretell.tools.own_tool import AnyTool
    from foretell.tools.tool import SourceItem, Tool, ToolFailed, ToolMaterial
    from foretell.tournaments.entered import OwnTournament
    from foretell.tournaments.question_visit import TournamentResult
    from foretell.tournaments.round_visit import RoundResult
    from foretell.tournaments.submission import ItemPart, ItemResult, ItemStatus, SubmissionItem, SubmissionPlan

__all__ = [
    "AddNode",
    "AgentOptions",
    "AgentSettings",
    "AllLink",
    "AnswerScores",
    "AnswerStep",
    "AnyForecaster",
    "AnyLink",
    "AnyModel",
    "AnyQuestions",
    "AnySearch",
    "AnyTool",
    "ArenaCounts",
    "ArenaEntry",
    "ArenaLeaderboard",
    "ArenaLeaderboardGroup",
    "ArenaLeaderboardRow",
    "ArenaPairs",
    "ArenaReport",
    "AsOfMode",
    "AskParameters",
    "AskResult",
    "AssistantMessage",
    "AtLeastLink",
    "AverageLink",
    "Backtest",
    "BacktestAnswer",
    "BacktestProgress",
    "Basis",
    "BeliefRevised",
    "Benchmark",
    "Bettor",
    "Budget",
    "CannotForecast",
    "Categorical",
    "CellUnit",
    "CellValue",
    "Chart",
    "ClaimChange",
    "ClampName",
    "ColumnNames",
    "CombinationSettings",
    "CombinedAnswer",
    "Context",
    "Cost",
    "CurvePoint",
    "DataInputs",
    "Dating",
    "DeletedRuns",
    "Edit",
    "EmitEvent",
    "Ending",
    "EvidenceFound",
    "Examples",
    "Exclusivity",
    "Failed",
    "Failure",
    "Fault",
    "Fee",
    "FilteredTools",
    "Finding",
    "FinishReason",
    "ForecastCost",
    "ForecastFunction",
    "ForecastMade",
    "ForecastTable",
    "Forecaster",
    "FormulaAssumption",
    "FormulaLink",
    "FoundFact",
    "GridList",
    "GridParameters",
    "GridResult",
    "GridRow",
    "Grounding",
    "Group",
    "HasForecast",
    "HasSearch",
    "HistoryResult",
    "HowResolved",
    "InhibitedNoisyOrLink",
    "InputProblem",
    "Interval",
    "IntervalKind",
    "ItemPart",
    "ItemResult",
    "ItemStatus",
    "JudgedLink",
    "Labels",
    "LastValue",
    "LeadTimeCurve",
    "LeakBlocked",
    "LeakyQuestions",
    "LearntWeight",
    "LinearLink",
    "Link",
    "ListedRun",
    "ListedTree",
    "LoggedForecasts",
    "Look",
    "LookReport",
    "LosableReservation",
    "MarkStale",
    "MarketMatch",
    "MatchingSource",
    "McNemarTest",
    "Message",
    "Model",
    "ModelCalled",
    "ModelFunction",
    "ModelRole",
    "ModelSettings",
    "Models",
    "Money",
    "MoveNode",
    "NewEvidence",
    "NoAnswer",
    "NoOutcome",
    "NodeAnalyzed",
    "NodeGrounded",
    "NodeSynthesized",
    "NoisyOrLink",
    "NotebookState",
    "Numeric",
    "NumericRange",
    "OptionScore",
    "OutcomeProposal",
    "OutcomeReading",
    "OwnRecord",
    "OwnTournament",
    "PairComparison",
    "Past",
    "PastAnswer",
    "PastOutcomes",
    "PastQuestions",
    "PastTarget",
    "PilotStudy",
    "PlannedRun",
    "PlannedStep",
    "PlannedTree",
    "PostMortem",
    "PostMortems",
    "PredictionContexts",
    "ProductLogicLink",
    "Proposition",
    "QuestionAnswer",
    "QuestionEstimates",
    "QuestionHistory",
    "QuestionKind",
    "QuestionRecord",
    "QuestionSet",
    "QuestionShown",
    "Rates",
    "ReasoningEffort",
    "RebalancedScores",
    "Reconciliation",
    "RecordResult",
    "Reference",
    "ReferenceQuestion",
    "RelatedQuestion",
    "RemoveNode",
    "ReplayResult",
    "Reply",
    "ReplyFormat",
    "ReportDocument",
    "Request",
    "Resampling",
    "ResearchScore",
    "ResolveResult",
    "Result",
    "RoundResult",
    "RowStyle",
    "Rule",
    "RunAnswer",
    "RunLabels",
    "RunParameters",
    "RunPart",
    "RunPlan",
    "RunProgress",
    "RunResult",
    "RunRow",
    "RunScores",
    "RunState",
    "RunsResult",
    "Scenario",
    "ScenarioComparison",
    "Score",
    "ScoreDetails",
    "ScorePoint",
    "ScoreResult",
    "Scoreboard",
    "ScoredAnswer",
    "ScoredArena",
    "ScoredQuestion",
    "ScoringOptions",
    "SearchEngine",
    "SearchFunction",
    "SearchHit",
    "Sensitivity",
    "SeriesAnswer",
    "SeriesReading",
    "SeriesRef",
    "SeriesSource",
    "ServiceTier",
    "SetClaim",
    "SetContexts",
    "SetFilter",
    "SetGrounding",
    "SetLink",
    "SetP",
    "SetReport",
    "SetStatus",
    "Settings",
    "ShareNode",
    "SharpenedQuestion",
    "Sharpening",
    "ShowResult",
    "ShownTree",
    "Snapshot",
    "SourceItem",
    "SpecPrompt",
    "Spent",
    "SplitLink",
    "StandingBelief",
    "StandingQuestion",
    "StandingState",
    "StatedCases",
    "StoppedRun",
    "StoredGrid",
    "StudyChart",
    "StudyColumn",
    "StudyData",
    "StudyFile",
    "StudyProgress",
    "StudyResult",
    "StudyRow",
    "StudyTable",
    "SubmissionFile",
    "SubmissionItem",
    "SubmissionPlan",
    "SubmissionPreview",
    "SubmitParameters",
    "SubmitResult",
    "SystemMessage",
    "TableOptions",
    "TableSource",
    "TargetAnswer",
    "Targets",
    "TokenCount",
    "TokenPrice",
    "Tool",
    "ToolCall",
    "ToolFailed",
    "ToolMaterial",
    "ToolResult",
    "ToolSpec",
    "ToolUsed",
    "TornadoBar",
    "TournamentParameters",
    "TournamentResult",
    "TournamentResults",
    "TournamentRow",
    "TraceEvent",
    "Tree",
    "TreeDiff",
    "TreeEditResult",
    "TreeFacts",
    "TreeGrown",
    "TreeLog",
    "TreeOrigin",
    "TreeParameters",
    "TreePlan",
    "TreeProblem",
    "TreeResult",
    "TreeSpread",
    "TreeVersion",
    "TreesResult",
    "TrialRows",
    "Trials",
    "Trigger",
    "Unpin",
    "Update",
    "UpdateWorth",
    "UserMessage",
    "ValueAge",
    "Verdict",
    "WatchResult",
    "WatchedQuestion",
    "WeighLink",
    "Weighing",
    "Weights",
    "WhatIfResult",
    "Where",
]
__getattr__, __dir__ = lazy_imports(__name__)
