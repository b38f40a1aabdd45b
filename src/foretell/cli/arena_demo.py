"""foretell arena demo: a month of a live arena in about a minute, on a made-up exchange."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from foretell.operations.arena_demo import ArenaSimulation, SimulatedArena
    from foretell.report.study import StudyResult

PAGE, HOME = "leaderboard.html", "home"
COLUMNS = ("Brier", "crowd − entry", "ECE", "events")
LEAST_WIDTH = 110


@click.command()
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="Days to take up events on.")
@click.option(
    "--events-per-day", type=click.IntRange(1, 100), default=8, show_default=True, help="Events taken up in a day."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, another world.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("arena-demo"),
    show_default=True,
    help="Where the page of the leaderboard goes.",
)
@click.option("--keep", is_flag=True, help="Keep runs, journal and arena.yaml there as well, to look into them.")
def demo(days: int, events_per_day: int, seed: int, out: Path, keep: bool) -> None:
    """A month of an arena in about a minute: no key, no network, nothing real.

    An exchange on this machine lists made-up events over Kalshi's wire, with prices of noisy traders; a search engine
    finds made-up news about them. Scripted models behind a provider's socket read both, forecasters without a model
    take part, and all stages of an arena run in simulated time until every event has come out. The world knows the
    true probabilities: a row of the board says them, which nobody can beat but by luck.
    """
    import shutil

    from foretell.operations.arena_demo import ArenaSimulation
    from foretell.questions.errors import InputError
    from foretell.runs import event_loop

    home = (out / HOME).absolute()
    if home.exists():
        raise InputError("an earlier demo is kept here", path=home, hint="name another folder with --out")
    season = ArenaSimulation(days=days, events_per_day=events_per_day, seed=seed)
    try:
        event_loop.run(_played(season, out))
        if keep:
            _leave(season, out)
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)


async def _played(season: "ArenaSimulation", out: Path) -> None:
    from time import monotonic

    from foretell.operations.arena_demo import open_simulation

    began = monotonic()
    async with open_simulation(season, (out / HOME).absolute()) as run:
        entries = len(run.arena.spec.entries)
        click.echo(f"{season.days} days of a made-up exchange, {season.events_per_day} events a day, {entries} entries")
        asked = calls = 0
        async for day in run.days():
            asked, calls = asked + day.asked, calls + day.calls
            click.echo(day)
        click.echo(f"{asked} questions asked, {calls} calls of models, {monotonic() - began:.0f} seconds\n")
        _scored(run, out / PAGE)


def _scored(run: "SimulatedArena", page: Path) -> None:
    """The leaderboard in the terminal and as a page."""
    from rich.console import Console

    from foretell.arena.score_data import read_arena_table
    from foretell.cli.options import write_text
    from foretell.report.arena_report import arena_report
    from foretell.report.study_report import print_study

    report = arena_report(read_arena_table(run.arena.store.database, run.arena.name))
    console = Console()
    print_study(_narrowed(report.study()), Console(width=max(console.width, LEAST_WIDTH)))
    write_text(page, report.page())
    click.echo(f"Wrote {page}", err=True)


def _narrowed(study: "StudyResult") -> "StudyResult":
    """The leaderboard alone, and of it the numbers that matter most, so that their intervals have room."""
    from dataclasses import replace

    board = study.tables[0]
    kept = [place for place, column in enumerate(board.columns) if column.label in COLUMNS]
    entries = tuple(replace(one, values=tuple(one.values[place] for place in kept)) for one in board.rows)
    narrow = replace(board, columns=tuple(board.columns[place] for place in kept), entries=entries)
    return replace(study, tables=(narrow,))


def _leave(season: "ArenaSimulation", out: Path) -> None:
    """The arena's file, and how to look around."""
    import json

    import yaml

    from foretell.arena.spec import FILE_NAME
    from foretell.cli.options import write_text

    spec = json.loads(season.spec().to_json())
    write_text(out / FILE_NAME, yaml.safe_dump(spec, sort_keys=False, allow_unicode=True))
    home = (out / HOME).absolute()
    click.echo(f"\nTo look into it:\n  export FORETELL_HOME={home} FORETELL_CLOCK=file:{home / 'clock.txt'}")
    click.echo(f"  foretell arena status {out}\n  foretell runs")
