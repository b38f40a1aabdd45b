"""foretell score: a table of forecasts against a table of outcomes."""

from pathlib import Path
from typing import Any

import click

from foretell.app.commands.options import FILE, read_options, scoring_options, table_options


@click.command()
@table_options
@scoring_options
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write everything as JSON (- for stdout).",
)
@click.option("--html", "html_path", type=FILE, help="Write the leaderboard as one HTML file.")
def score(forecasts: Path, outcomes: Path, json_path: Path | None, html_path: Path | None, **options: Any) -> None:
    """Score a table of forecasts against a table of outcomes.

    Tables are CSV, Parquet or JSONL; their columns are described in docs/formats.md. Every number comes with a 95 %
    interval from a bootstrap that resamples whole clusters, and with the share of targets that were answered.
    """
    from foretell.app.commands.output import show_board, write_json, write_leaderboard
    from foretell.arena.joining import read_table
    from foretell.arena.scoring import score_table

    reading, scoring = read_options(options)
    table = read_table(forecasts, outcomes, reading)
    board = score_table(table, scoring)
    if json_path is not None:
        write_json(board.to_dict(), json_path)
    if html_path is not None:
        write_leaderboard(board, table, html_path, title=f"Scores of {forecasts.name}")
    if str(json_path) != "-":
        show_board(board)
