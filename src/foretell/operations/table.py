"""All operations, by the words of their commands. The commands are generated from this table."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from inspect import iscoroutine
from typing import Any, TypeVar

from foretell.frozen import frozen
from foretell.plugins import load_object
from foretell.python_calls import python_errors
from foretell.report.provenance import command_text, current_command, running_command
from foretell.report.result import Result
from foretell.request import OperationRequest

Request = TypeVar("Request", bound=OperationRequest)
ROWS = (".json", ".csv", ".parquet")
PAGES = (*ROWS, ".html", ".md")
STUDY = (".html", ".md", *ROWS, ".svg", ".png", "")
"""Files of a study: a page, its tables, its charts, or all of them in a folder."""
TREES = (*PAGES, ".svg", ".png", ".dot", ".bif", ".pl", "")


@frozen(kw_only=False)
class Operation:
    """One operation. The docstring of its request is the help of its command."""

    request_place: str
    """module:class of its request in `operations.requests`, so that a command loads no requests of other commands."""
    answer: str
    """module:attribute of the function that answers. It may be a coroutine function and is loaded when called."""
    files: tuple[str, ...] = ()
    """Suffixes of the files that the result can be written to."""
    default_file: str | None = None
    """The file that the command writes if no other is named."""

    @property
    def request(self) -> type[OperationRequest]:
        """The class of its request."""
        return load_object(f"foretell.operations.requests.{self.request_place}")

    @property
    def function(self) -> Callable[..., Any]:
        """The function that answers the request."""
        return load_object(self.answer)


OPERATIONS = {
    "ask": Operation("asking:AskRequest", "foretell.operations.ask_or_watch:ask_or_watch"),
    "record": Operation("record:RecordRequest", "foretell.operations.record:record", PAGES),
    "tree grow": Operation("trees:TreeRequest", "foretell.operations.tree_grow:grow", TREES),
    "tree list": Operation("trees:TreeListRequest", "foretell.operations.tree_list:list_trees", ROWS),
    "tree show": Operation("trees:TreeShowRequest", "foretell.operations.tree:show_tree", TREES),
    "tree edit": Operation("trees:TreeEditRequest", "foretell.operations.tree_edit:edit_tree"),
    "tree update": Operation("trees:TreeUpdateRequest", "foretell.operations.tree_update:update"),
    "tree whatif": Operation("trees:WhatIfRequest", "foretell.operations.what_if:what_if"),
    "tree log": Operation("trees:TreeLogRequest", "foretell.operations.tree_log:tree_log"),
    "demo": Operation("setup:DemoRequest", "foretell.operations.example:demo", (*PAGES, "")),
    "score": Operation("scoring:ScoreRequest", "foretell.operations.score:score", PAGES),
    "compare": Operation("scoring:CompareRequest", "foretell.operations.compare:compare", PAGES),
    "audit": Operation("audit:AuditRequest", "foretell.operations.audit:audit", STUDY),
    "backtest": Operation("data:BacktestRequest", "foretell.operations.backtest:backtest", (*ROWS, "")),
    "run": Operation("runs:RunRequest", "foretell.operations.run:run_spec", (".json", "")),
    "runs list": Operation("runs:RunsRequest", "foretell.operations.runs:list_runs"),
    "runs stop": Operation("runs:RunsStopRequest", "foretell.operations.runs:stop_run"),
    "runs edit": Operation("runs:RunsEditRequest", "foretell.operations.runs:edit_run"),
    "runs delete": Operation("runs:RunsDeleteRequest", "foretell.operations.runs:delete_runs"),
    "runs resolve": Operation("runs:RunsResolveRequest", "foretell.operations.resolve:resolve_run"),
    "show": Operation("runs:ShowRequest", "foretell.operations.show:show", PAGES),
    "replay": Operation("runs:ReplayRequest", "foretell.operations.replay:replay"),
    "models list": Operation("setup:ModelsListRequest", "foretell.operations.models:show_models", ROWS),
    "models check": Operation("setup:ModelsCheckRequest", "foretell.operations.model_check:check_model", (".json",)),
    "doctor": Operation("setup:DoctorRequest", "foretell.operations.doctor:run_doctor", ROWS),
    "calibrate fit": Operation("scoring:CalibrateFitRequest", "foretell.operations.calibrate:fit", (".json",)),
    "calibrate apply": Operation(
        "scoring:CalibrateApplyRequest", "foretell.operations.calibrate:apply", (".json", ".csv", ".jsonl", ".parquet")
    ),
    "arena run": Operation("tournaments:ArenaRunRequest", "foretell.operations.arena:run_arena"),
    "arena score": Operation(
        "tournaments:ArenaScoreRequest", "foretell.operations.arena:score_arena", (".json", ".html")
    ),
    "arena show": Operation("tournaments:ArenaShowRequest", "foretell.operations.arena:show_arena"),
    "data pull": Operation("data:DataPullRequest", "foretell.operations.data:pull"),
    "data list": Operation("data:DataListRequest", "foretell.operations.data:list_rounds", ROWS),
    "data show": Operation("data:DataShowRequest", "foretell.operations.data_show:show_questions", (".jsonl", "")),
    "data build": Operation("data:DataBuildRequest", "foretell.operations.data_build:build", ("",), "question_set"),
    "corpus add": Operation("data:CorpusAddRequest", "foretell.operations.corpus:add_documents"),
    "corpus search": Operation("data:CorpusSearchRequest", "foretell.operations.corpus:search_corpus", ROWS),
    "submit": Operation("tournaments:SubmitRequest", "foretell.operations.submit:submit"),
    "tournament run": Operation(
        "tournaments:TournamentRunRequest", "foretell.operations.tournament:enter", (".json", ".csv")
    ),
    "tournament results": Operation(
        "tournaments:TournamentResultsRequest", "foretell.operations.tournament_results:score_tournaments", PAGES
    ),
    "ledger": Operation("tournaments:LedgerRequest", "foretell.operations.ledger:read_ledger", (".json", ".jsonl")),
    "init": Operation("setup:InitRequest", "foretell.operations.init_files:init"),
    "grid": Operation("runs:GridRequest", "foretell.operations.grid:run_grid", PAGES),
}
"""Words of the command → operation."""

PYTHON_NAMES = {
    "ask": "ask",
    "record": "record",
    "grow_tree": "tree grow",
    "list_trees": "tree list",
    "show_tree": "tree show",
    "edit_tree": "tree edit",
    "update_tree": "tree update",
    "what_if": "tree whatif",
    "tree_log": "tree log",
    "run": "run",
    "list_runs": "runs list",
    "grid": "grid",
    "stop_run": "runs stop",
    "edit_run": "runs edit",
    "delete_runs": "runs delete",
    "resolve_run": "runs resolve",
    "show": "show",
    "replay": "replay",
    "enter_tournament": "tournament run",
    "tournament_results": "tournament results",
    "submit_forecasts": "submit",
    "audit": "audit",
}
"""Function of the Python interface → words of its operation."""


@contextmanager
def reading(kind: type[Request], values: Mapping[str, Any]) -> Generator[Request]:
    """Yield the request of a Python program; errors name its parameters, and results remember the command."""
    with python_errors(kind):
        request = kind.read(values)
        with running_command(command_text(_words(kind), request)):
            yield request


def _words(kind: type[OperationRequest]) -> str:
    """Return the words of the command with this request."""
    place = f"{kind.__module__.rpartition('.')[2]}:{kind.__name__}"
    return next(words for words, known in OPERATIONS.items() if known.request_place == place)


def finished(result: Any) -> Any:
    """Return a result, which remembers the command; a coroutine is run to completion first."""
    if iscoroutine(result):
        from foretell.runs import event_loop
        from foretell.runs.event_loop import run_sync

        result = run_sync(result, event_loop.run)
    return named_by_command(result)


def named_by_command(result: Any) -> Any:
    """Return a result, which remembers the command that is running."""
    if isinstance(result, Result):
        object.__setattr__(result, "command", current_command())
    return result
