"""Results of your own rounds and tournaments: what was sent, what has resolved, and scores next to public methods."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from rich.console import Console

from foretell.frozen import frozen
from foretell.number_text import dollars
from foretell.operations.requests.tournaments import TournamentResultsRequest
from foretell.operations.score import ScoreResult
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.report.leaderboard import markdown_board
from foretell.report.provenance import Provenance
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.settings import Settings, load_settings
from foretell.scoring.join import read_table
from foretell.scoring.score import ScoringOptions, score_table
from foretell.tournaments.entered import (
    FORECASTBENCH,
    OwnTournament,
    TournamentTable,
    bring_outcomes,
    entered_tournaments,
    table_of_questions,
    table_of_rounds,
)
from foretell.tournaments.state import Row

NONE_ENTERED = (
    "no tournament was entered from this machine; try: foretell practice -- foretell tournament run forecastbench, "
    "then: foretell practice -- foretell tournament results\n"
)


@frozen
class TournamentResults(Result):
    """Your rounds and tournaments, and a leaderboard for each platform with resolved questions."""

    entered: tuple[OwnTournament, ...]
    boards: Mapping[str, ScoreResult]
    """Platform → leaderboard."""
    notes: tuple[str, ...] = ()

    def rows(self) -> list[Row]:
        """Return one row for each platform, forecaster and group."""
        return [{"tournament": name, **row} for name, board in self.boards.items() for row in board.rows()]

    def to_dict(self) -> Row:
        """Your rounds and the leaderboards."""
        return {
            "entered": plain_data(self.entered),
            "boards": {name: board.to_dict() for name, board in self.boards.items()},
            "notes": list(self.notes),
        }

    def to_html(self) -> str:
        """Return the first leaderboard as a page."""
        if not self.boards:
            raise InputError("nothing has resolved yet, so there is no leaderboard to write")
        return next(iter(self.boards.values())).to_html()

    def to_markdown(self) -> str:
        """Return the leaderboards as Markdown."""
        parts = [f"## {name}\n\n{markdown_board(board.board)}" for name, board in self.boards.items()]
        settings = next((board.board.settings for board in self.boards.values()), None)
        return "\n".join([*(parts or ["no board\n"]), Provenance.now(settings).to_markdown()])

    def print(self, console: Console) -> None:
        """Your rounds, then the leaderboards."""
        if not self.entered:
            show_text(console, NONE_ENTERED)
            return
        columns: dict[TextColumn, str | Callable[[OwnTournament], object]] = {
            TextColumn(head="tournament"): lambda row: row.platform,
            TextColumn(head="round", shrink=10): lambda row: row.name,
            TextColumn(head="entry", shrink=16, drop=2): lambda row: row.entry,
            TextColumn(head="last run", drop=1): lambda row: row.last[:16].replace("T", " "),
            TextColumn(head="answered", right=True): lambda row: str(row.answered),
            TextColumn(head="decided", right=True): lambda row: str(row.decided),
            TextColumn(head="billed", right=True, drop=3): lambda row: dollars(row.billed),
            TextColumn(head="state"): lambda row: row.state,
        }
        show_table(console, self.entered, cast("Any", columns))
        for name, board in self.boards.items():
            show_text(console, f"\n{name}\n")
            board.print(console)


async def score_tournaments(
    request: TournamentResultsRequest,
    settings: Settings | None = None,
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> TournamentResults:
    """Score your past rounds and tournaments, compared with public methods."""
    settings = settings or load_settings()
    entered = entered_tournaments(settings, request.tournament or "", request.rounds)
    notes: list[str] = []
    boards: dict[str, ScoreResult] = {}
    shown: list[OwnTournament] = []
    for platform in dict.fromkeys(tournament.platform for tournament in entered):
        own = [tournament for tournament in entered if tournament.platform == platform]
        if settings.network:
            tell(f"{platform}: looking for outcomes")
            notes += await bring_outcomes(own, settings)
        if platform == FORECASTBENCH:
            title, table = "ForecastBench", table_of_rounds(own, request.methods, settings, notes)
        else:
            title, table = platform, table_of_questions(own, settings)
        shown += table.tournaments
        if table.forecasts:
            boards[platform] = _board(table, request, title)
    return TournamentResults(entered=tuple(shown), boards=boards, notes=tuple(notes))


def _board(tournaments: TournamentTable, request: TournamentResultsRequest, title: str) -> ScoreResult:
    table = read_table(tournaments.forecasts, tournaments.outcomes)
    options = ScoringOptions(
        by=request.by,
        reference=request.reference or tournaments.newest,
        missing=request.missing,
        cluster=request.bootstrap.cluster,
        resampling=request.bootstrap.resampling,
    )
    return ScoreResult(board=score_table(table, options), table=table, scoring=options, title=title)
