"""foretell arena show: one event, from its first price to its result."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app.commands.arena_options import AS_JSON, with_arena

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.arena.live.arena import LiveArena
    from foretell.arena.live.biography import Biography


@click.command()
@click.argument("event")
@click.option("--arena", "file", type=click.Path(path_type=Path), default=Path(), help="The arena's file or folder.")
@AS_JSON
def show(event: str, file: Path, as_json: bool) -> None:
    """Show the prices of EVENT, the moments at which it was asked, what everybody said, and how it came out.

    EVENT is its id, or the end of it: kalshi/KXFED-26DEC or KXFED-26DEC.
    """
    from rich.console import Console

    from foretell.app.live_arena import Opening

    async def read(arena: "LiveArena") -> "Biography":
        from foretell.arena.live.biography import biography

        return await arena.store.aside(biography, arena.book, event)

    found = with_arena(file, Opening(), read)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=1))
    else:
        _print(found, Console())


def _print(found: "Biography", console: "Console") -> None:
    from rich.table import Column, Table
    from rich.text import Text

    console.print(Text(f"{found.question.text}  ({found.event}, {found.status})", style="bold"))
    if found.question.url:
        console.print(Text(found.question.url))
    for target, prices in found.prices.items():
        path = " → ".join(f"{price:.2f}" for _, price in _thinned(prices))
        came = f"  came out {found.outcomes[target]}" if target in found.outcomes else ""
        console.print(Text(f"{found.labels[target]}: {path or 'no price'}{came}"))
    table = Table("", "asked at (UTC)", "to close", "state", "who", Column("said", overflow="fold"), box=None)
    for moment in found.moments:
        head = (str(moment.number), f"{moment.at:%Y-%m-%d %H:%M}", moment.to_close, moment.state)
        rows = [(name, _numbers(p, found.labels)) for name, p in moment.said.items()] or [("", moment.reason)]
        for place, (name, told) in enumerate(rows):
            table.add_row(*(head if not place else ("", "", "", "")), Text(name), Text(told))
    console.print(table)


def _thinned(prices: list[tuple[str, float]], most: int = 12) -> list[tuple[str, float]]:
    """The first, the last and some between."""
    if len(prices) <= most:
        return prices
    return [prices[round(place * (len(prices) - 1) / (most - 1))] for place in range(most)]


def _numbers(said: dict[str, float], labels: dict[str, str]) -> str:
    return ", ".join(f"{labels.get(target, target)} {p:.0%}" for target, p in said.items())
