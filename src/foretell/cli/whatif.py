"""`foretell whatif`: other numbers at some claims of a tree, and what that does to all the others."""

from typing import TYPE_CHECKING

import click

from foretell.cli.request_options import request_options
from foretell.operations.requests import WhatIfRequest

if TYPE_CHECKING:
    from foretell.operations.what_if import ScenarioComparison


@click.command()
@request_options(WhatIfRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def whatif(request: WhatIfRequest, as_json: bool) -> None:
    """What if some claims of TREE had other probabilities? Prints old and new for every claim that changes.

    A leaf gets the new probability. A claim with children is pinned: it holds that value whatever lies beneath it.
    P1:PA stands for the assumption in the formula of P1. Only the claims above are recomputed, and no model is asked;
    claims that a model judged keep their number and are marked.
    """
    from foretell.operations.what_if import compare_edits

    result = compare_edits(request)
    if result.saved is not None:
        click.echo(f"Saved {result.saved!r} in {request.tree}", err=True)
    if as_json:
        click.echo(result.to_json())
        return
    _print(result)
    for note in result.notes:
        click.echo(f"note: {note}", err=True)


def _print(result: "ScenarioComparison") -> None:
    """Old and new for every claim that changes, a column for each scenario; then tornado and spread."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from foretell.forecasters.tree.description import format_probability, one_line

    console = Console(highlight=False)
    rows = result.rows()
    if rows:
        heads = [Column(Text(one_line(outcome.name))) for outcome in result.outcomes]
        table = Table("claim", "was", *heads, Column("", overflow="fold"), box=None)
        for row in rows:
            now = [row[outcome.name] for outcome in result.outcomes]
            cells = [format_probability(p) if p != row["was"] else "·" for p in now]
            table.add_row(row["id"], format_probability(row["was"]), *cells, Text(one_line(row["claim"])))
        console.print(table)
    else:
        click.echo(str(result))
    if result.bars:
        table = Table("input", "from", "to", "answer", "", Column("", overflow="fold"), box=None)
        for bar in result.bars:
            ends = map(format_probability, (bar.low, bar.high, bar.at_low, bar.at_high))
            table.add_row(bar.id, *ends, Text(one_line(bar.claim)))
        console.print(table)
    if result.spread is not None:
        click.echo(result.spread_text())
