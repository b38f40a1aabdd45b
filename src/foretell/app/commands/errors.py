"""foretell errors: where a forecaster wins and loses."""

from pathlib import Path
from typing import Any

import click

from foretell.app.commands.options import FILE, columns, table_options


@click.command()
@click.argument("forecaster")
@table_options
@click.option("--reference", metavar="NAME", help="Show the difference to this forecaster too.")
@click.option("--metric", default="bi", show_default=True, type=click.Choice(["bi", "brier", "ms", "log", "ece"]))
@click.option("--cluster", default="", metavar="COLUMNS", help="What is resampled as a whole; two columns are crossed.")
@click.option(
    "--html", "html_path", type=FILE, default=Path("errors.html"), show_default=True, help="Where to write it."
)
def errors(
    forecaster: str,
    forecasts: Path,
    outcomes: Path,
    reference: str | None,
    metric: str,
    cluster: str,
    html_path: Path,
    **options: Any,
) -> None:
    """Where FORECASTER wins and loses: by source, horizon, round and every other column, as one HTML page."""
    from foretell.app.commands.output import write_text
    from foretell.arena.anchors import with_anchors
    from foretell.arena.joining import Reading, read_table
    from foretell.arena.report.breakdown import Method
    from foretell.arena.report.error_analysis import error_analysis, error_analysis_page

    table = with_anchors(read_table(forecasts, outcomes, Reading(**options)))
    for name in filter(None, (forecaster, reference)):
        table.require(name)
    analysis = error_analysis(table, forecaster, reference, method=Method(metric=metric, cluster=columns(cluster)))
    write_text(html_path, error_analysis_page(analysis))
    click.echo(f"Wrote {html_path}")
