"""foretell arena score: the board of an arena."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretell.app.commands.arena_options import ARENA, AS_JSON, with_arena

if TYPE_CHECKING:
    from foretell.arena.live.arena import LiveArena
    from foretell.arena.standings.report import StandingsReport


@click.command()
@ARENA
@click.option(
    "--by", multiple=True, metavar="WHAT", help="More numbers by category, platform or lead time; repeatable."
)
@click.option(
    "--choice",
    type=click.Choice(["mean", "last", "first", "every"]),
    default="mean",
    show_default=True,
    help="How the moments of an event count.",
)
@click.option("--draws", type=click.IntRange(100), default=1000, show_default=True, help="Bootstrap draws.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page, with figures.")
@AS_JSON
def score(file: Path, html: Path | None, as_json: bool, **options: Any) -> None:
    """Rank everybody on what has come out so far; the market, the base rate and 0.5 stand in every table."""
    from foretell.app.live_arena import Opening

    async def scored(arena: "LiveArena") -> "StandingsReport":
        from foretell.app.settings import load_settings
        from foretell.arena.standings.from_book import from_book
        from foretell.arena.standings.report import standings_report

        kept = load_settings().home / "standings"
        standings = await arena.store.aside(from_book, arena.store.database, arena.name, keep=kept)
        return standings_report(standings, **options)

    found = with_arena(file, Opening(), scored)
    if html is not None:
        from foretell.app.commands.output import write_text

        write_text(html, found.page())
        click.echo(f"Wrote {html}", err=True)
    if as_json:
        import json

        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        from rich.console import Console

        found.print(Console(), by=options["by"])
