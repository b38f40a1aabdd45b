"""foretell score: a table of forecasts against a table of outcomes."""

from pathlib import Path
from typing import Any

import click

from foretell.cli.options import FILE_PATH, columns, read_options, scoring_options, table_options

# foretell compare: two forecasters on the questions both answered.


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

    from foretell.cli.options import write_json
    from foretell.scoring.join import read_table
    from foretell.scoring.score import compare_pair

    reading, scoring = read_options(options)
    pair = compare_pair(read_table(forecasts, outcomes, reading), first, second, replace(scoring, anchors=False))
    if json_path is not None:
        write_json(pair.to_dict(), json_path)
    if str(json_path) != "-":
        from rich.console import Console

        from foretell.report.leaderboard_text import print_pair

        print_pair(pair, Console())


# foretell errors: where a forecaster wins and loses.


@click.command()
@click.argument("forecaster")
@table_options
@click.option("--reference", metavar="NAME", help="Show the difference to this forecaster too.")
@click.option("--metric", default="bi", show_default=True, type=click.Choice(["bi", "brier", "ms", "log", "ece"]))
@click.option("--cluster", default="", metavar="COLUMNS", help="What is resampled as a whole; two columns are crossed.")
@click.option(
    "--html", "html_path", type=FILE_PATH, default=Path("errors.html"), show_default=True, help="Where to write it."
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
    from foretell.cli.options import write_text
    from foretell.report.error_page import error_analysis_page
    from foretell.scoring.breakdown import BreakdownMethod
    from foretell.scoring.error_analysis import error_analysis
    from foretell.scoring.join import ReadOptions, read_table
    from foretell.scoring.table import with_anchors

    table = with_anchors(read_table(forecasts, outcomes, ReadOptions(**options)))
    for name in filter(None, (forecaster, reference)):
        table.require(name)
    analysis = error_analysis(
        table, forecaster, reference, method=BreakdownMethod(metric=metric, cluster=columns(cluster))
    )
    write_text(html_path, error_analysis_page(analysis))
    click.echo(f"Wrote {html_path}")


# foretell leaderboard: the ranking as a page.


@click.command()
@table_options
@scoring_options
@click.option(
    "--html",
    "html_path",
    type=FILE_PATH,
    default=Path("leaderboard.html"),
    show_default=True,
    help="Where to write it.",
)
@click.option("--title", default="Leaderboard", show_default=True)
@click.option("--costs", type=FILE_PATH, help="A table forecaster, dollars: adds the frontier of score against cost.")
def leaderboard(
    forecasts: Path, outcomes: Path, html_path: Path, title: str, costs: Path | None, **options: Any
) -> None:
    """Rank all forecasters on one HTML page: intervals, reliability, paired differences, frontier."""
    from foretell.cli.options import write_text
    from foretell.report.leaderboard_page import leaderboard_page
    from foretell.scoring.join import read_costs, read_table
    from foretell.scoring.score import score_table

    reading, scoring = read_options(options)
    table = read_table(forecasts, outcomes, reading)
    dollars = read_costs(costs, table.forecasters) if costs else None
    write_text(html_path, leaderboard_page(score_table(table, scoring), table, title, costs=dollars))
    click.echo(f"Wrote {html_path}")


# foretell plan: how many questions it takes.


@click.command()
@click.option("--gain", type=float, required=True, help="The difference to be seen, in points of the Brier index.")
@click.option(
    "--level", "index", type=float, default=70.0, show_default=True, help="Brier index around which it is expected."
)
@click.option(
    "--sd", type=click.FloatRange(0, min_open=True), help="Standard deviation of the paired Brier differences."
)
@click.option(
    "--pilot", nargs=2, metavar="FIRST SECOND", help="Estimate the spread from two forecasters of the tables."
)
@click.option("--forecasts", "-f", type=FILE_PATH, help="Table of the pilot's forecasts.")
@click.option("--outcomes", "-o", type=FILE_PATH, help="Table of the pilot's outcomes.")
@click.option("--power", type=click.FloatRange(0.05, 0.999), default=0.8, show_default=True, help="Chance to see it.")
@click.option(
    "--alpha", type=click.FloatRange(0.0001, 0.5), default=0.05, show_default=True, help="Chance of a false alarm."
)
def plan(
    gain: float,
    index: float,
    sd: float | None,
    pilot: tuple[str, str] | None,
    forecasts: Path | None,
    outcomes: Path | None,
    power: float,
    alpha: float,
) -> None:
    """How many questions it takes to see a gain of a given size.

    Name two forecasters of a past comparison as the pilot, or give the standard deviation yourself:

      foretell plan --gain 1 --pilot mine base -f forecasts.csv -o outcomes.csv

      foretell plan --gain 1 --sd 0.12
    """
    from foretell.metrics.power import PowerTarget, questions_needed

    aim = PowerTarget(power=power, alpha=alpha)
    # Around index I the Brier score is b = (1 − I/100)², so a small gain of g points is worth g·√b/50 of Brier score.
    brier_gain = abs(gain) * (1 - index / 100) / 50
    spread, inflation, source = _spread(sd, pilot, forecasts, outcomes)
    needed = questions_needed(brier_gain, spread, aim, inflation=inflation)
    click.echo(
        f"{needed:,} targets to see {abs(gain):g} points of Brier index with {power:.0%} chance (alpha {alpha:g})."
    )
    click.echo(f"Paired Brier differences: sd {spread:.3f}, design effect {inflation:.2f} ({source}).")


def _spread(
    sd: float | None, names: tuple[str, str] | None, forecasts: Path | None, outcomes: Path | None
) -> tuple[float, float, str]:
    from foretell.questions.errors import InputError
    from foretell.scoring.join import read_table
    from foretell.scoring.score import pilot_of

    if sd is not None:
        return sd, 1.0, "as given, targets taken as independent"
    if names is None or forecasts is None or outcomes is None:
        raise InputError("the spread is unknown", hint="give --sd, or --pilot FIRST SECOND with both tables")
    table = read_table(forecasts, outcomes)
    for name in names:
        table.require(name)
    found = pilot_of(table, *names)
    if found is None:
        raise InputError(f"{names[0]} and {names[1]} never differ: there is no spread to plan from")
    return found.sd, max(1.0, found.inflation), f"from {found.n} targets in {found.n_clusters} clusters"


@click.command()
@table_options
@scoring_options
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write everything as JSON (- for stdout).",
)
@click.option("--html", "html_path", type=FILE_PATH, help="Write the leaderboard as one HTML file.")
def score(forecasts: Path, outcomes: Path, json_path: Path | None, html_path: Path | None, **options: Any) -> None:
    """Score a table of forecasts against a table of outcomes.

    Tables are CSV, Parquet or JSONL; their columns are described in docs/formats.md. Every number comes with a 95 %
    interval from a bootstrap that resamples whole clusters, and with the share of targets that were answered.
    """
    from foretell.cli.options import show_board, write_json, write_leaderboard
    from foretell.scoring.join import read_table
    from foretell.scoring.score import score_table

    reading, scoring = read_options(options)
    table = read_table(forecasts, outcomes, reading)
    board = score_table(table, scoring)
    if json_path is not None:
        write_json(board.to_dict(), json_path)
    if html_path is not None:
        write_leaderboard(board, table, html_path, title=f"Scores of {forecasts.name}")
    if str(json_path) != "-":
        show_board(board)
