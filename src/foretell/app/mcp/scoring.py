"""`score`: forecasts against outcomes."""

import asyncio
from typing import Any

from foretell.app.mcp.desk import Desk
from foretell.app.mcp.wishes import ScoreWish
from foretell.questions.problems import InputError


async def score(desk: Desk, wish: ScoreWish) -> dict[str, Any]:
    """The board, best first, with intervals and the difference to the reference."""
    return await asyncio.to_thread(_scored, desk, wish)


def _scored(desk: Desk, wish: ScoreWish) -> dict[str, Any]:
    from foretell.arena.joining import Reading, read_table
    from foretell.arena.scoring import Scoring, score_table
    from foretell.evaluate.bootstrap import Resampling

    scoring = Scoring(
        by=tuple(wish.by),
        metric=wish.metric,
        reference=wish.reference,
        missing=wish.missing,
        resampling=Resampling(draws=wish.draws),
    )
    forecasts = _source(desk, wish.forecasts, wish.forecasts_file, "forecasts")
    outcomes = _source(desk, wish.outcomes, wish.outcomes_file, "outcomes")
    board = score_table(read_table(forecasts, outcomes, Reading(trials=wish.trials)), scoring).to_dict()
    return {
        **board,
        "scores": board["scores"][: wish.top],
        "differences": board["differences"][: wish.top],
        "rows": len(board["scores"]),
    }


def _source(desk: Desk, rows: list[dict[str, Any]], file: str | None, name: str) -> Any:
    if bool(rows) == (file is not None):
        raise InputError(f"give either rows of {name} or {name}_file", column=name)
    return rows if file is None else desk.files.find(file)
