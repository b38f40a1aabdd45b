"""foretell leaderboard: the ranking as a page."""

from pathlib import Path
from typing import Any

import click

from foretell.app.commands.options import FILE, read_options, scoring_options, table_options


@click.command()
@table_options
@scoring_options
@click.option(
    "--html", "html_path", type=FILE, default=Path("leaderboard.html"), show_default=True, help="Where to write it."
)
@click.option("--title", default="Leaderboard", show_default=True)
@click.option("--costs", type=FILE, help="A table forecaster, dollars: adds the frontier of score against cost.")
def leaderboard(
    forecasts: Path, outcomes: Path, html_path: Path, title: str, costs: Path | None, **options: Any
) -> None:
    """Rank all forecasters on one HTML page: intervals, reliability, paired differences, frontier."""
    from foretell.app.commands.output import write_text
    from foretell.arena.costs import read_costs
    from foretell.arena.joining import read_table
    from foretell.arena.report.leaderboard import leaderboard_page
    from foretell.arena.scoring import score_table

    reading, scoring = read_options(options)
    table = read_table(forecasts, outcomes, reading)
    dollars = read_costs(costs, table.forecasters) if costs else None
    write_text(html_path, leaderboard_page(score_table(table, scoring), table, title, costs=dollars))
    click.echo(f"Wrote {html_path}")
