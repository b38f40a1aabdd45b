"""All operations: everything that a user can ask for, by the words of its command.

The command line makes its commands from this table, and the stub of the Python interface is written from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, iscoroutine
from typing import Any

from foretell.operations import requests
from foretell.plugins import load_object
from foretell.request import OperationRequest, hints

ROWS = (".json", ".csv", ".parquet")
PAGES = (*ROWS, ".html", ".md")


@dataclass(frozen=True)
class Operation:
    """One thing that a user can ask for. What its request says of itself is the help of its command."""

    request: type[OperationRequest]
    place: str
    """module:attribute of the function that answers; loaded when it is called. It may be a coroutine function."""
    files: tuple[str, ...] = ()
    """Suffixes of the files that the result can be written to."""
    default_file: str | None = None
    """A file that the command writes where nothing else is asked for."""

    @property
    def function(self) -> Callable[..., Any]:
        """What answers the request."""
        return load_object(self.place)


OPERATIONS = {
    "ask": Operation(requests.AskRequest, "foretell.operations.ask:answer_question"),
    "tree grow": Operation(requests.TreeRequest, "foretell.operations.tree:grow"),
    "tree list": Operation(requests.TreeListRequest, "foretell.operations.tree:list_trees", ROWS),
    "tree show": Operation(
        requests.TreeShowRequest, "foretell.operations.tree:show_tree", (".svg", ".png", ".pdf", *ROWS)
    ),
    "tree check": Operation(requests.TreeCheckRequest, "foretell.operations.tree:check_tree"),
    "tree edit": Operation(requests.TreeEditRequest, "foretell.operations.tree_edit:edit"),
    "tree ground": Operation(requests.TreeGroundRequest, "foretell.operations.tree_research:ground"),
    "tree expand": Operation(requests.TreeExpandRequest, "foretell.operations.tree_research:expand"),
    "tree resynthesize": Operation(
        requests.TreeResynthesizeRequest, "foretell.operations.tree_research:resynthesize_judgements"
    ),
    "tree diff": Operation(requests.TreeDiffRequest, "foretell.operations.tree_edit:diff"),
    "tree history": Operation(requests.TreeHistoryRequest, "foretell.operations.tree_edit:history"),
    "tree report": Operation(
        requests.TreeReportRequest, "foretell.operations.tree:report", (".html", ".md", ".pdf", ".json")
    ),
    "tree notebook": Operation(
        requests.TreeNotebookRequest, "foretell.operations.tree:check_notebooks", (".json", ".csv")
    ),
    "tree export": Operation(requests.TreeExportRequest, "foretell.operations.tree:export_tree"),
    "whatif": Operation(requests.WhatIfRequest, "foretell.operations.what_if:compare_edits"),
    "demo": Operation(requests.DemoRequest, "foretell.operations.example:demo", PAGES),
    "score": Operation(requests.ScoreRequest, "foretell.operations.score:score", PAGES),
    "compare": Operation(requests.CompareRequest, "foretell.operations.score:compare", ROWS),
    "errors": Operation(requests.ErrorsRequest, "foretell.operations.score:errors", (*ROWS, ".html")),
    "plan": Operation(requests.PlanRequest, "foretell.operations.score:plan", (".json",)),
    "backtest": Operation(requests.BacktestRequest, "foretell.operations.run:backtest", ROWS),
    "run": Operation(requests.RunRequest, "foretell.operations.run:run_spec"),
    "runs list": Operation(requests.RunsRequest, "foretell.operations.runs:list_runs"),
    "runs stop": Operation(requests.RunsStopRequest, "foretell.operations.runs:stop_run"),
    "runs resume": Operation(requests.RunsResumeRequest, "foretell.operations.run:resume_stored_run"),
    "runs mv": Operation(requests.RunsRenameRequest, "foretell.operations.runs:rename_run"),
    "runs tag": Operation(requests.RunsTagRequest, "foretell.operations.runs:tag_run"),
    "runs rm": Operation(requests.RunsRemoveRequest, "foretell.operations.runs:remove_runs"),
    "runs resolve": Operation(requests.RunsResolveRequest, "foretell.operations.runs:resolve_run"),
    "prompts": Operation(requests.PromptsRequest, "foretell.operations.prompts:show_prompts"),
    "show": Operation(requests.ShowRequest, "foretell.operations.run:show", (*PAGES, ".pdf")),
    "replay": Operation(requests.ReplayRequest, "foretell.operations.run:replay"),
    "models list": Operation(requests.ModelsListRequest, "foretell.operations.models:list_models", ROWS),
    "models check": Operation(requests.ModelsCheckRequest, "foretell.operations.models:check_model", (".json",)),
    "models update": Operation(requests.ModelsUpdateRequest, "foretell.operations.models:update_models"),
    "services list": Operation(requests.ServicesListRequest, "foretell.operations.services:list_services", ROWS),
    "services check": Operation(
        requests.ServicesCheckRequest, "foretell.operations.services:check_services", (*ROWS, ".md")
    ),
    "doctor": Operation(requests.DoctorRequest, "foretell.operations.doctor:doctor", (".json",)),
    "calibrate fit": Operation(requests.CalibrateFitRequest, "foretell.operations.calibrate:fit", (".json",)),
    "calibrate apply": Operation(
        requests.CalibrateApplyRequest, "foretell.operations.calibrate:apply", (".json", ".csv", ".jsonl", ".parquet")
    ),
    "calibrate ensemble": Operation(
        requests.EnsembleRequest, "foretell.operations.calibrate:fit_ensemble", (".json", ".csv")
    ),
    "calibrate threshold": Operation(requests.ThresholdRequest, "foretell.operations.calibrate:fit_thresholds", ROWS),
    "calibrate decide": Operation(requests.DecideRequest, "foretell.operations.calibrate:decide", ROWS),
    "arena init": Operation(requests.ArenaInitRequest, "foretell.operations.arena:init_arena"),
    "arena demo": Operation(requests.ArenaDemoRequest, "foretell.operations.practice:arena_demo", (".json",)),
    "arena collect": Operation(requests.ArenaCollectRequest, "foretell.operations.arena:collect_events"),
    "arena context": Operation(requests.ArenaContextRequest, "foretell.operations.arena:build_contexts"),
    "arena forecast": Operation(requests.ArenaForecastRequest, "foretell.operations.arena:forecast_events"),
    "arena resolve": Operation(requests.ArenaResolveRequest, "foretell.operations.arena:resolve_events"),
    "arena score": Operation(requests.ArenaScoreRequest, "foretell.operations.arena:score_arena", (".json", ".html")),
    "arena status": Operation(requests.ArenaStatusRequest, "foretell.operations.arena:status_of_arena"),
    "arena show": Operation(requests.ArenaShowRequest, "foretell.operations.arena:show_event"),
    "export forecastbench": Operation(requests.ExportRequest, "foretell.operations.submit:export_forecastbench"),
    "data pull": Operation(requests.DataPullRequest, "foretell.operations.data:pull"),
    "data list": Operation(requests.DataListRequest, "foretell.operations.data:list_rounds", ROWS),
    "data inspect-log": Operation(requests.InspectLogRequest, "foretell.inspect_tasks.logs:convert_log"),
    "data build tranche": Operation(requests.TrancheRequest, "foretell.operations.data:build_tranche"),
    "data build claims": Operation(requests.ClaimsRequest, "foretell.operations.data:build_claims"),
    "data build options": Operation(requests.OptionTasksRequest, "foretell.operations.data:build_options"),
    "data build financial": Operation(requests.FinancialTasksRequest, "foretell.operations.data:build_financial"),
    "corpus import": Operation(requests.CorpusImportRequest, "foretell.operations.data:import_documents"),
    "corpus search": Operation(requests.CorpusSearchRequest, "foretell.operations.data:search_corpus", ROWS),
    "questions": Operation(requests.QuestionsRequest, "foretell.operations.data:check_questions", (*ROWS, ".jsonl")),
    "fetch": Operation(requests.FetchRequest, "foretell.operations.data:fetch", (".jsonl", ".json"), "questions.jsonl"),
    "submit": Operation(requests.SubmitRequest, "foretell.operations.submit:submit"),
    "tournament metaculus": Operation(
        requests.TournamentRequest, "foretell.operations.tournament:tournament", (".json", ".csv")
    ),
    "tournament forecastbench": Operation(
        requests.ForecastBenchRoundRequest, "foretell.operations.tournament_round:enter_round", (".json", ".csv")
    ),
    "tournament prophet_arena": Operation(
        requests.ProphetArenaTournamentRequest, "foretell.operations.tournament_arena:visit_arena", (".json", ".csv")
    ),
    "tournament results": Operation(
        requests.TournamentResultsRequest, "foretell.operations.tournament_results:score_tournaments", PAGES
    ),
    "ledger verify": Operation(requests.LedgerVerifyRequest, "foretell.operations.submit:verify_ledger"),
    "ledger head": Operation(requests.LedgerRequest, "foretell.operations.submit:ledger_head"),
    "ledger show": Operation(
        requests.LedgerShowRequest, "foretell.operations.submit:ledger_entries", (".json", ".jsonl")
    ),
    "init bot": Operation(requests.InitBotRequest, "foretell.operations.init_files:init_bot"),
    "init run": Operation(requests.InitRunRequest, "foretell.operations.init_files:init_run"),
    "init grid": Operation(requests.InitGridRequest, "foretell.operations.init_files:init_grid"),
    "init arena": Operation(requests.ArenaInitRequest, "foretell.operations.arena:init_arena"),
    "grid": Operation(requests.GridRequest, "foretell.operations.grid:run_grid", PAGES),
    "grids": Operation(requests.GridsRequest, "foretell.operations.grid:list_grids", ROWS),
}
"""Words of the command → operation."""

PYTHON_NAMES = {
    "ask": "ask",
    "grow_tree": "tree grow",
    "what_if": "whatif",
    "list_trees": "tree list",
    "edit_tree": "tree edit",
    "ground_leaves": "tree ground",
    "expand_leaf": "tree expand",
    "resynthesize_tree": "tree resynthesize",
    "diff_trees": "tree diff",
    "tree_history": "tree history",
    "report_tree": "tree report",
    "run": "run",
    "list_runs": "runs list",
    "list_grids": "grids",
    "resume_run": "runs resume",
    "show": "show",
    "replay": "replay",
    "enter_forecastbench": "tournament forecastbench",
    "enter_metaculus": "tournament metaculus",
    "enter_prophet_arena": "tournament prophet_arena",
    "tournament_results": "tournament results",
}
"""Function of the Python interface, which is the tool of MCP too → the operation behind it."""


def operation(kind: type[OperationRequest]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function of a request be called with the request, or with its fields as parameters.

    The positional parameters are those that the command line takes as arguments. `settings` goes beside them. A
    coroutine function is run to its end, also inside a notebook.

    Args:
        kind: The request that the function answers.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = operation_signature(kind)

        @wraps(function)
        def called(*given: Any, **fields: Any) -> Any:
            if given and isinstance(given[0], kind):
                result = function(*given, **fields)
            else:
                values = signature.bind(*given, **fields).arguments
                settings = values.pop("settings", None)
                result = function(kind.read(values), settings)
            if not iscoroutine(result):
                return result
            from foretell.runs import event_loop
            from foretell.runs.event_loop import run_sync

            return run_sync(result, event_loop.run)

        called.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
        return called

    return decorate


def operation_signature(kind: type[OperationRequest]) -> Signature:
    """The parameters that a request's fields make, with types and defaults."""
    found: list[Parameter] = []
    for name, info in kind.model_fields.items():
        place = Parameter.POSITIONAL_OR_KEYWORD if hints(info).get("argument") else Parameter.KEYWORD_ONLY
        default = Parameter.empty if info.is_required() else info.get_default(call_default_factory=True)
        found.append(Parameter(name, place, default=default, annotation=info.annotation))
    settings = Parameter("settings", Parameter.KEYWORD_ONLY, default=None)
    return Signature([*sorted(found, key=lambda one: (one.kind, one.default is not Parameter.empty)), settings])
