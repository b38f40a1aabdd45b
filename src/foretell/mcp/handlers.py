"""What each tool does: check what this server permits, answer the request, return the result as JSON."""

import asyncio
from typing import Any

from foretell.forecasters.tree.problems import InvalidTree
from foretell.mcp.arguments import ScoreArguments
from foretell.mcp.permissions import ServerPermissions
from foretell.operations.ask import answer_question
from foretell.operations.requests import (
    AskRequest,
    ReplayRequest,
    RunRequest,
    RunsRequest,
    ShowRequest,
    TreeRequest,
    WhatIfRequest,
)
from foretell.questions.errors import InputError

MAX_CLAIMS = 20_000
"""Claims of a tree that is sent."""
MAX_TREE_PROBLEMS = 10
"""Problems of a tree that are listed at once."""


async def ask(permissions: ServerPermissions, request: AskRequest) -> dict[str, Any]:
    """A probability: researched by a model, or the outside view where none is named or permitted."""
    permissions.check_research(request)
    result = await answer_question(request, permissions.settings)
    return {**result.to_dict(), "server_spending": permissions.spending()}


async def grow_tree(permissions: ServerPermissions, request: TreeRequest) -> dict[str, Any]:
    """A tree of claims behind a claim, with its numbers, its file and its cost."""
    from foretell.operations.tree import grow

    permissions.check_research(request)
    result = await grow(request, permissions.settings)
    return {**result.to_dict(), "server_spending": permissions.spending()}


async def run(permissions: ServerPermissions, request: RunRequest) -> dict[str, Any]:
    """A run over many questions, here and now."""
    from foretell.operations.run import prepare, run_prepared

    request = permissions.check_run(request)
    result = await run_prepared(prepare(request, permissions.settings), request, permissions.settings)
    return {**result.to_dict(), "server_spending": permissions.spending()}


async def list_runs(permissions: ServerPermissions, request: RunsRequest) -> dict[str, Any]:
    """The newest first."""
    from foretell.operations import run

    return (await asyncio.to_thread(run.list_runs, request, permissions.settings)).to_dict()


async def show_run(permissions: ServerPermissions, request: ShowRequest) -> dict[str, Any]:
    """Its answers, or one question with every step."""
    from foretell.operations.run import show

    return (await asyncio.to_thread(show, request, permissions.settings)).to_dict()


async def replay_run(permissions: ServerPermissions, request: ReplayRequest) -> dict[str, Any]:
    """How many answers are the same."""
    from foretell.operations.run import replay

    return (await asyncio.to_thread(replay, request, permissions.settings)).to_dict()


async def what_if(permissions: ServerPermissions, request: WhatIfRequest) -> dict[str, Any]:
    """Old and new probabilities; no model is asked."""
    from foretell.operations.what_if import compare_edits

    if isinstance(request.tree, dict):
        claims = len(request.tree.get("nodes", ()))
        if claims > MAX_CLAIMS:
            raise InputError(f"the tree has {claims:,} claims; at most {MAX_CLAIMS:,} can be sent")
    else:
        request = request.model_copy(update={"tree": permissions.files.find(str(request.tree))})
    try:
        return (await asyncio.to_thread(compare_edits, request)).to_dict()
    except InvalidTree as error:
        # An assistant repairs several things at once more easily than one after the other.
        raise InputError("; ".join(str(one) for one in error.problems[:MAX_TREE_PROBLEMS])) from None


# `score`: forecasts against outcomes.


async def score(permissions: ServerPermissions, arguments: ScoreArguments) -> dict[str, Any]:
    """The board, best first, with intervals and the difference to the reference."""
    return await asyncio.to_thread(_score_tables, permissions, arguments)


def _score_tables(permissions: ServerPermissions, arguments: ScoreArguments) -> dict[str, Any]:
    from foretell.metrics.bootstrap import Resampling
    from foretell.scoring.join import ReadOptions, read_table
    from foretell.scoring.score import ScoringOptions, score_table

    scoring = ScoringOptions(
        by=tuple(arguments.by),
        metric=arguments.metric,
        reference=arguments.reference,
        missing=arguments.missing,
        resampling=Resampling(draws=arguments.draws),
    )
    forecasts = _rows_or_file(permissions, arguments.forecasts, arguments.forecasts_file, "forecasts")
    outcomes = _rows_or_file(permissions, arguments.outcomes, arguments.outcomes_file, "outcomes")
    board = score_table(read_table(forecasts, outcomes, ReadOptions(trials=arguments.trials)), scoring).to_dict()
    return {
        **board,
        "scores": board["scores"][: arguments.top],
        "differences": board["differences"][: arguments.top],
        "rows": len(board["scores"]),
    }


def _rows_or_file(permissions: ServerPermissions, rows: list[dict[str, Any]], file: str | None, name: str) -> Any:
    if bool(rows) == (file is not None):
        raise InputError(f"give either rows of {name} or {name}_file", column=name)
    return rows if file is None else permissions.files.find(file)
