"""Tournaments entered from here: their rounds and state, and scores compared with others."""

import asyncio
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response

from foretell.operations.requests.tournaments import TournamentResultsRequest
from foretell.operations.tournament_results import TournamentResults, score_tournaments
from foretell.report.document import study_parts
from foretell.report.leaderboard import LEADERBOARD_ADVICE, board_study
from foretell.report.provenance import Provenance
from foretell.web.rendering import html_page
from foretell.web.state import CurrentState, WebState

router = APIRouter()
PLATFORMS = {"forecastbench": "ForecastBench", "metaculus": "Metaculus", "prophet-arena": "Prophet Arena"}


def _results(here: WebState) -> TournamentResults:
    """Return the results from the outcomes stored here: viewing a page requests none from elsewhere."""
    states = sorted((here.settings.home / "tournaments").glob("*/state.json"))
    seen = (*((str(path), path.stat().st_mtime_ns) for path in states), str(sorted(here.outcomes.count().items())))
    request, settings = TournamentResultsRequest(), replace(here.settings, network=False)
    return here.boards.kept(("tournaments",), seen, lambda: asyncio.run(score_tournaments(request, settings)))


@router.get("/api/tournaments", tags=["tournaments"])
def read_tournaments(here: CurrentState) -> dict[str, Any]:
    """Tournament rounds entered from here, with boards, from the outcomes that are stored here."""
    return _results(here).to_dict()


@router.get("/tournaments", include_in_schema=False)
def show_tournaments(request: Request, here: CurrentState) -> Response:
    """Show the page of tournaments."""
    found = _results(here)
    boards = [
        (PLATFORMS.get(platform, platform), study, study_parts(study, LEADERBOARD_ADVICE))
        for platform, result in found.boards.items()
        for study in [board_study(result.board, PLATFORMS.get(platform, platform))]
    ]
    made = Provenance.now(next((result.board.settings for result in found.boards.values()), None))
    return html_page(request, "tournaments.html", found, made=made, boards=boards, platforms=PLATFORMS)
