"""All operations: everything a user can ask for, by the words of its command.

The commands and the typed stub of the Python interface are made from this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import wraps
from inspect import BoundArguments, Parameter, Signature, cleandoc, iscoroutine
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from foretell.operations.requests import asking, audit, data, runs, scoring, setup, tournaments, trees
from foretell.operations.result import Result
from foretell.plugins import load_object
from foretell.report.provenance import command_text, current_command, made_by
from foretell.request import OperationRequest, errors_name_fields, hints

ROWS = (".json", ".csv", ".parquet")
PAGES = (*ROWS, ".html", ".md")
STUDY = (".html", ".md", *ROWS, ".svg", ".png", "")
"""Files of a study: a page, its tables, its charts, or all of them in a folder."""
TREES = (*PAGES, ".svg", ".png", ".dot", ".bif", ".pl", "")


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
    "ask": Operation(asking.AskRequest, "ask:answer_question"),
    "tree grow": Operation(trees.TreeRequest, "tree:grow", TREES),
    "tree list": Operation(trees.TreeListRequest, "tree:list_trees", ROWS),
    "tree show": Operation(trees.TreeShowRequest, "tree:show_tree", TREES),
    "tree edit": Operation(trees.TreeEditRequest, "tree_edit:edit_tree"),
    "tree update": Operation(trees.TreeUpdateRequest, "tree_update:update"),
    "tree whatif": Operation(trees.WhatIfRequest, "what_if:what_if"),
    "tree log": Operation(trees.TreeLogRequest, "tree_edit:tree_log"),
    "demo": Operation(setup.DemoRequest, "example:demo", (*PAGES, "")),
    "score": Operation(scoring.ScoreRequest, "score:score", PAGES),
    "compare": Operation(scoring.CompareRequest, "compare:compare", PAGES),
    "audit": Operation(audit.AuditRequest, "audit:audit", STUDY),
    "backtest": Operation(data.BacktestRequest, "run:backtest", (*ROWS, "")),
    "run": Operation(runs.RunRequest, "run:run_spec", (".json", "")),
    "runs list": Operation(runs.RunsRequest, "runs:list_runs"),
    "runs stop": Operation(runs.RunsStopRequest, "runs:stop_run"),
    "runs edit": Operation(runs.RunsEditRequest, "runs:edit_run"),
    "runs delete": Operation(runs.RunsDeleteRequest, "runs:delete_runs"),
    "runs resolve": Operation(runs.RunsResolveRequest, "runs:resolve_run"),
    "show": Operation(runs.ShowRequest, "run:show", PAGES),
    "replay": Operation(runs.ReplayRequest, "run:replay"),
    "models list": Operation(setup.ModelsListRequest, "models:show_models", ROWS),
    "models check": Operation(setup.ModelsCheckRequest, "models:check_model", (".json",)),
    "doctor": Operation(setup.DoctorRequest, "doctor:run_doctor", ROWS),
    "calibrate fit": Operation(scoring.CalibrateFitRequest, "calibrate:fit", (".json",)),
    "calibrate apply": Operation(
        scoring.CalibrateApplyRequest, "calibrate:apply", (".json", ".csv", ".jsonl", ".parquet")
    ),
    "arena run": Operation(tournaments.ArenaRunRequest, "arena:run_arena"),
    "arena score": Operation(tournaments.ArenaScoreRequest, "arena:score_arena", (".json", ".html")),
    "arena show": Operation(tournaments.ArenaShowRequest, "arena:show_arena"),
    "data pull": Operation(data.DataPullRequest, "data:pull"),
    "data list": Operation(data.DataListRequest, "data:list_rounds", ROWS),
    "data show": Operation(data.DataShowRequest, "data:show_questions", (".jsonl", "")),
    "data build": Operation(data.DataBuildRequest, "data:build", ("",), "question_set"),
    "corpus add": Operation(data.CorpusAddRequest, "data:add_documents"),
    "corpus search": Operation(data.CorpusSearchRequest, "data:search_corpus", ROWS),
    "submit": Operation(tournaments.SubmitRequest, "submit:submit"),
    "tournament run": Operation(tournaments.TournamentRunRequest, "tournament_platforms:enter", (".json", ".csv")),
    "tournament results": Operation(
        tournaments.TournamentResultsRequest, "tournament_results:score_tournaments", PAGES
    ),
    "ledger": Operation(tournaments.LedgerRequest, "submit:read_ledger", (".json", ".jsonl")),
    "init": Operation(setup.InitRequest, "init_files:init"),
    "grid": Operation(runs.GridRequest, "grid:run_grid", PAGES),
}
"""Words of the command → operation."""

PYTHON_NAMES = {
    "ask": "ask",
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
}
"""Function of the Python interface, also the name of the MCP tool → words of its operation."""


def operation(kind: type[OperationRequest]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Allow a function to be called with its request, or with the fields of the request as parameters.

    The positional parameters are the arguments of the command; `settings` can be given beside them. A coroutine
    function is run to its end, even inside a notebook.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = operation_signature(kind)
        words = next(words for words, one in OPERATIONS.items() if one.request is kind)
        public = next((name for name, known in PYTHON_NAMES.items() if known == words), function.__name__)

        @wraps(function)
        def called(*given: Any, **fields: Any) -> Any:
            if given and isinstance(given[0], kind):
                with made_by(command_text(words, given[0])):
                    return _finished(function(*given, **fields))
            values = _bound(public, signature, given, fields).arguments
            settings = values.pop("settings", None)
            with errors_name_fields(kind):
                request = kind.read(values)
                with made_by(command_text(words, request)):
                    return _finished(function(request, settings))

        # `help` and tab completion show what a user can write.
        called.__name__ = called.__qualname__ = public
        called.__doc__ = _documentation(function.__doc__ or "", kind)
        called.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
        return called

    return decorate


def _finished(result: Any) -> Any:
    """Return a result, which remembers the command; a coroutine is run to its end first."""
    if iscoroutine(result):
        from foretell.runs import event_loop
        from foretell.runs.event_loop import run_sync

        result = run_sync(result, event_loop.run)
    if isinstance(result, Result):
        object.__setattr__(result, "command", current_command())
    return result


def operation_signature(kind: type[OperationRequest]) -> Signature:
    """The parameters made from a request's fields, with types and defaults."""
    found: list[Parameter] = []
    for name, info in kind.model_fields.items():
        place = Parameter.POSITIONAL_OR_KEYWORD if hints(info).get("argument") else Parameter.KEYWORD_ONLY
        default = Parameter.empty if info.is_required() else info.get_default(call_default_factory=True)
        annotation = _without_limits(info.annotation)
        if hints(info).get("metavar") == "DATE":
            annotation = Union[annotation, date]  # noqa: UP007 - made at run time
        found.append(Parameter(name, place, default=default, annotation=annotation))
    settings = Parameter("settings", Parameter.KEYWORD_ONLY, default=None)
    return Signature([*sorted(found, key=lambda one: (one.kind, one.default is not Parameter.empty)), settings])


def _bound(name: str, signature: Signature, given: tuple[Any, ...], fields: Mapping[str, Any]) -> BoundArguments:
    """The arguments of a call; a wrong one raises a `TypeError` that names the function, as for any other function."""
    try:
        return signature.bind(*given, **fields)
    except TypeError as error:
        unknown = next((field for field in fields if field not in signature.parameters), "")
        near = get_close_matches(unknown, signature.parameters, n=1)
        raise TypeError(f"{name}() {error}" + (f"; did you mean {near[0]!r}?" if near else "")) from None


def _documentation(text: str, kind: type[OperationRequest]) -> str:
    """A docstring with the fields of the request as its arguments."""
    told = {name: " ".join((info.description or "").split()) for name, info in kind.model_fields.items()}
    arguments = [f"    {name}: {said}" for name, said in told.items() if said]
    return "\n".join([cleandoc(text), "", "Args:", *arguments]) if arguments else cleandoc(text)


def _without_limits(annotation: Any) -> Any:
    """A type without the limits that pydantic checks, as people write it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _without_limits(arguments[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(_without_limits, arguments))]  # noqa: UP007 - made at run time
    if origin in (tuple, list, dict, Mapping):
        return cast("Any", origin)[tuple(map(_without_limits, arguments))]
    return annotation
