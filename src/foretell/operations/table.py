"""All operations: everything a user can ask for, by the words of its command.

The commands and the typed stub of the Python interface are made from this table.
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
    """One thing a user can ask for. The docstring of its request is the help of its command."""

    request: type[OperationRequest]
    answer: str
    """module:attribute, in this package, of the function that answers. It may be a coroutine function."""
    files: tuple[str, ...] = ()
    """Suffixes of the files that the result can be written to."""
    default_file: str | None = None
    """The file that the command writes if no other is named."""

    @property
    def place(self) -> str:
        """The function that answers, as module:attribute; it is loaded when called."""
        return self.answer if self.answer.startswith("foretell.") else f"foretell.operations.{self.answer}"

    @property
    def function(self) -> Callable[..., Any]:
        """The function that answers the request."""
        return load_object(self.place)


OPERATIONS = {
    "ask": Operation(requests.AskRequest, "ask:answer_question"),
    "tree grow": Operation(requests.TreeRequest, "tree:grow"),
    "tree list": Operation(requests.TreeListRequest, "tree:list_trees", ROWS),
    "tree show": Operation(requests.TreeShowRequest, "tree:show_tree", (".svg", ".png", ".pdf", *ROWS)),
    "tree check": Operation(requests.TreeCheckRequest, "tree:check_tree"),
    "tree edit": Operation(requests.TreeEditRequest, "tree_edit:edit"),
    "tree ground": Operation(requests.TreeGroundRequest, "tree_research:ground"),
    "tree expand": Operation(requests.TreeExpandRequest, "tree_research:expand"),
    "tree resynthesize": Operation(requests.TreeResynthesizeRequest, "tree_research:resynthesize_judgements"),
    "tree diff": Operation(requests.TreeDiffRequest, "tree_edit:diff"),
    "tree history": Operation(requests.TreeHistoryRequest, "tree_edit:history"),
    "tree report": Operation(requests.TreeReportRequest, "tree:report", (".html", ".md", ".pdf", ".json")),
    "tree notebook": Operation(requests.TreeNotebookRequest, "tree:check_notebooks", (".json", ".csv")),
    "tree export": Operation(requests.TreeExportRequest, "tree:export_tree"),
    "whatif": Operation(requests.WhatIfRequest, "what_if:compare_edits"),
    "demo": Operation(requests.DemoRequest, "example:demo", PAGES),
    "score": Operation(requests.ScoreRequest, "score:score", PAGES),
    "compare": Operation(requests.CompareRequest, "score:compare", ROWS),
    "errors": Operation(requests.ErrorsRequest, "score:errors", (*ROWS, ".html")),
    "plan": Operation(requests.PlanRequest, "score:plan", (".json",)),
    "backtest": Operation(requests.BacktestRequest, "run:backtest", ROWS),
    "run": Operation(requests.RunRequest, "run:run_spec"),
    "runs list": Operation(requests.RunsRequest, "runs:list_runs"),
    "runs stop": Operation(requests.RunsStopRequest, "runs:stop_run"),
    "runs resume": Operation(requests.RunsResumeRequest, "run:resume_stored_run"),
    "runs mv": Operation(requests.RunsRenameRequest, "runs:rename_run"),
    "runs tag": Operation(requests.RunsTagRequest, "runs:tag_run"),
    "runs rm": Operation(requests.RunsRemoveRequest, "runs:remove_runs"),
    "runs resolve": Operation(requests.RunsResolveRequest, "runs:resolve_run"),
    "prompts": Operation(requests.PromptsRequest, "prompts:show_prompts"),
    "show": Operation(requests.ShowRequest, "run:show", (*PAGES, ".pdf")),
    "replay": Operation(requests.ReplayRequest, "run:replay"),
    "models list": Operation(requests.ModelsListRequest, "models:list_models", ROWS),
    "models check": Operation(requests.ModelsCheckRequest, "models:check_model", (".json",)),
    "models update": Operation(requests.ModelsUpdateRequest, "models:update_models"),
    "services list": Operation(requests.ServicesListRequest, "services:list_services", ROWS),
    "services check": Operation(requests.ServicesCheckRequest, "services:check_services", (*ROWS, ".md")),
    "doctor": Operation(requests.DoctorRequest, "doctor:doctor", (".json",)),
    "calibrate fit": Operation(requests.CalibrateFitRequest, "calibrate:fit", (".json",)),
    "calibrate apply": Operation(
        requests.CalibrateApplyRequest, "calibrate:apply", (".json", ".csv", ".jsonl", ".parquet")
    ),
    "calibrate ensemble": Operation(requests.EnsembleRequest, "calibrate:fit_ensemble", (".json", ".csv")),
    "calibrate threshold": Operation(requests.ThresholdRequest, "calibrate:fit_thresholds", ROWS),
    "arena init": Operation(requests.ArenaInitRequest, "arena:init_arena"),
    "arena demo": Operation(requests.ArenaDemoRequest, "practice:arena_demo", (".json",)),
    "arena collect": Operation(requests.ArenaCollectRequest, "arena:collect_events"),
    "arena context": Operation(requests.ArenaContextRequest, "arena:build_contexts"),
    "arena forecast": Operation(requests.ArenaForecastRequest, "arena:forecast_events"),
    "arena resolve": Operation(requests.ArenaResolveRequest, "arena:resolve_events"),
    "arena score": Operation(requests.ArenaScoreRequest, "arena:score_arena", (".json", ".html")),
    "arena status": Operation(requests.ArenaStatusRequest, "arena:status_of_arena"),
    "arena show": Operation(requests.ArenaShowRequest, "arena:show_event"),
    "export forecastbench": Operation(requests.ExportRequest, "submit:export_forecastbench"),
    "data pull": Operation(requests.DataPullRequest, "data:pull"),
    "data list": Operation(requests.DataListRequest, "data:list_rounds", ROWS),
    "data inspect-log": Operation(requests.InspectLogRequest, "foretell.inspect_tasks.logs:convert_log"),
    "data build tranche": Operation(requests.TrancheRequest, "data:build_tranche"),
    "data build claims": Operation(requests.ClaimsRequest, "data:build_claims"),
    "data build options": Operation(requests.OptionTasksRequest, "data:build_options"),
    "data build financial": Operation(requests.FinancialTasksRequest, "data:build_financial"),
    "corpus import": Operation(requests.CorpusImportRequest, "data:import_documents"),
    "corpus search": Operation(requests.CorpusSearchRequest, "data:search_corpus", ROWS),
    "questions": Operation(requests.QuestionsRequest, "data:check_questions", (*ROWS, ".jsonl")),
    "fetch": Operation(requests.FetchRequest, "data:fetch", (".jsonl", ".json"), "questions.jsonl"),
    "submit": Operation(requests.SubmitRequest, "submit:submit"),
    "tournament metaculus": Operation(requests.TournamentRequest, "tournament_platforms:tournament", (".json", ".csv")),
    "tournament forecastbench": Operation(
        requests.ForecastBenchRoundRequest, "tournament_round:enter_round", (".json", ".csv")
    ),
    "tournament prophet_arena": Operation(
        requests.ProphetArenaTournamentRequest, "tournament_platforms:visit_arena", (".json", ".csv")
    ),
    "tournament results": Operation(requests.TournamentResultsRequest, "tournament_results:score_tournaments", PAGES),
    "ledger verify": Operation(requests.LedgerVerifyRequest, "submit:verify_ledger"),
    "ledger head": Operation(requests.LedgerRequest, "submit:ledger_head"),
    "ledger show": Operation(requests.LedgerShowRequest, "submit:ledger_entries", (".json", ".jsonl")),
    "init bot": Operation(requests.InitBotRequest, "init_files:init_bot"),
    "init run": Operation(requests.InitRunRequest, "init_files:init_run"),
    "init grid": Operation(requests.InitGridRequest, "init_files:init_grid"),
    "init arena": Operation(requests.ArenaInitRequest, "arena:init_arena"),
    "grid": Operation(requests.GridRequest, "grid:run_grid", PAGES),
    "grids": Operation(requests.GridsRequest, "grid:list_grids", ROWS),
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
"""Function of the Python interface, also the name of the MCP tool → words of its operation."""


def operation(kind: type[OperationRequest]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Allow a function to be called with its request, or with the fields of the request as parameters.

    The positional parameters are the arguments of the command; `settings` can be given beside them. A coroutine
    function is run to its end, even inside a notebook.

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
    """The parameters made from a request's fields, with types and defaults."""
    found: list[Parameter] = []
    for name, info in kind.model_fields.items():
        place = Parameter.POSITIONAL_OR_KEYWORD if hints(info).get("argument") else Parameter.KEYWORD_ONLY
        default = Parameter.empty if info.is_required() else info.get_default(call_default_factory=True)
        found.append(Parameter(name, place, default=default, annotation=info.annotation))
    settings = Parameter("settings", Parameter.KEYWORD_ONLY, default=None)
    return Signature([*sorted(found, key=lambda one: (one.kind, one.default is not Parameter.empty)), settings])
