"""Where results go: the terminal, a JSON file, an HTML page."""

import json
from pathlib import Path
from typing import Any

import click

from foretell.arena.scoreboard import Scoreboard
from foretell.arena.table import Table


def show_board(board: Scoreboard) -> None:
    """The leaderboard in the terminal."""
    from rich.console import Console

    from foretell.arena.report.terminal import print_board

    print_board(board, Console())


def write_json(data: Any, path: Path) -> None:
    """To a file, or to standard output for `-`."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    if str(path) == "-":
        click.echo(text)
    else:
        write_text(path, text)


def write_leaderboard(board: Scoreboard, table: Table, path: Path, *, title: str) -> None:
    """The leaderboard as one HTML file, and a line that says where it is."""
    from foretell.arena.report.leaderboard import leaderboard_page

    write_text(path, leaderboard_page(board, table, title))
    click.echo(f"Wrote {path}", err=True)


def write_text(path: Path, text: str) -> None:
    """The file appears whole or not at all."""
    from foretell.sources.whole_file import write_whole

    write_whole(path, text.encode())
