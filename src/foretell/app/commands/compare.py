"""foretell compare: two forecasters on the questions both answered."""

from pathlib import Path
from typing import Any

import click

from foretell.app.commands.options import read_options, scoring_options, table_options


@click.command()
@click.argument("first")
@click.argument("second")
@table_options
@scoring_options
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write the result as JSON (- for stdout).",
)
def compare(first: str, second: str, forecasts: Path, outcomes: Path, json_path: Path | None, **options: Any) -> None:
    """Is FIRST better than SECOND, and by more than noise?

    Both are scored on the targets both answered; the difference is recomputed on resamples of whole clusters.
    """
    from dataclasses import replace

    from foretell.app.commands.output import write_json
    from foretell.arena.joining import read_table
    from foretell.arena.pairing import compare_pair

    reading, scoring = read_options(options)
    pair = compare_pair(read_table(forecasts, outcomes, reading), first, second, replace(scoring, anchors=False))
    if json_path is not None:
        write_json(pair.to_dict(), json_path)
    if str(json_path) != "-":
        from rich.console import Console

        from foretell.arena.report.terminal import print_pair

        print_pair(pair, Console())
