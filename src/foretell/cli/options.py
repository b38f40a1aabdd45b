"""Options that several commands share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastTable

Command = TypeVar("Command", bound=Callable[..., Any])

FILE_PATH = click.Path(path_type=Path, dir_okay=False)


def table_options(command: Command) -> Command:
    """The two tables and how to read them."""
    for option in reversed(
        [
            click.option("--forecasts", "-f", required=True, type=FILE_PATH, help="forecaster, question, target, p"),
            click.option(
                "--outcomes", "-o", required=True, type=FILE_PATH, help="question, target, outcome (+ columns)"
            ),
            click.option(
                "--trials",
                type=click.Choice(["mean", "logit-mean", "separate"]),
                default="mean",
                show_default=True,
                help="What to do with several trials of one forecaster.",
            ),
            click.option(
                "--weights",
                type=click.Choice(["equal", "question"]),
                default="equal",
                show_default=True,
                help="Without a weight column: count every target once, or every question once.",
            ),
            click.option("--drop-unknown", is_flag=True, help="Leave out forecasts of targets without an outcome row."),
        ]
    ):
        command = option(command)
    return command


def scoring_options(command: Command) -> Command:
    """What to compute and how sure to be of it."""
    for option in reversed(
        [
            click.option(
                "--by", default="", metavar="COLUMNS", help="Also score each combination, e.g. source,horizon."
            ),
            click.option(
                "--metric",
                default="bi",
                show_default=True,
                type=click.Choice(["bi", "brier", "ms", "log", "ece", "return", "sharpe"]),
                help="Ranks the board and is compared.",
            ),
            click.option("--reference", metavar="NAME", help="Compare all others with this one (default: the leader)."),
            click.option(
                "--cluster",
                default="",
                metavar="COLUMNS",
                help="What is resampled as a whole (default: cluster, else question); two columns are crossed.",
            ),
            click.option(
                "--missing", type=float, metavar="P", help="Probability to put in where a forecast is missing."
            ),
            click.option(
                "--gamma",
                type=click.FloatRange(0, 1),
                default=0.0,
                show_default=True,
                help="Risk aversion of the bettor behind return and sharpe; 0 goes all in.",
            ),
            click.option(
                "--fee",
                default="none",
                show_default=True,
                metavar="none|kalshi|RATE",
                help="Fee paid by the bettor; RATE is a share of the money spent.",
            ),
            click.option("--draws", type=click.IntRange(100), default=2000, show_default=True, help="Bootstrap draws."),
            click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap."),
            click.option("--anchors/--no-anchors", default=True, help="Add the rows 0.5, base rate and crowd price."),
        ]
    ):
        command = option(command)
    return command


def read_options(options: dict[str, Any]) -> tuple[Any, Any]:
    """The `ReadOptions` and `ScoringOptions` that the shared options describe."""
    from foretell.metrics.bootstrap import Resampling
    from foretell.metrics.returns import Bettor
    from foretell.scoring.join import ReadOptions
    from foretell.scoring.score import ScoringOptions

    reading = ReadOptions(trials=options["trials"], weights=options["weights"], drop_unknown=options["drop_unknown"])
    scoring = ScoringOptions(
        by=columns(options["by"]),
        metric=options["metric"],
        reference=options["reference"],
        cluster=columns(options["cluster"]),
        missing=_probability(options["missing"]),
        anchors=options["anchors"],
        bettor=Bettor(gamma=options["gamma"], fee=_fee(options["fee"])),
        resampling=Resampling(draws=options["draws"], seed=options["seed"]),
    )
    return reading, scoring


def columns(text: str) -> tuple[str, ...]:
    """A comma-separated list of column names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _probability(value: float | None) -> float | None:
    from foretell.questions.errors import InputError

    if value is not None and not 0 <= value <= 1:
        raise InputError(f"--missing {value:g} is outside [0, 1]")
    return value


def _fee(text: str) -> Any:
    from foretell.metrics.returns import kalshi_fee, no_fee, proportional_fee
    from foretell.questions.errors import InputError

    if text in ("none", "kalshi"):
        return no_fee if text == "none" else kalshi_fee
    try:
        return proportional_fee(float(text))
    except ValueError:
        raise InputError(f"--fee {text} is neither none, kalshi nor a rate such as 0.02") from None


# Where results go: the terminal, a JSON file, an HTML page.


def show_board(board: Scoreboard) -> None:
    """The leaderboard in the terminal."""
    from rich.console import Console

    from foretell.report.leaderboard_text import print_board

    print_board(board, Console())


def write_json(data: Any, path: Path) -> None:
    """To a file, or to standard output for `-`."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    if str(path) == "-":
        click.echo(text)
    else:
        write_text(path, text)


def write_leaderboard(board: Scoreboard, table: ForecastTable, path: Path, *, title: str) -> None:
    """The leaderboard as one HTML file, and a line that says where it is."""
    from foretell.report.leaderboard_page import leaderboard_page

    write_text(path, leaderboard_page(board, table, title))
    click.echo(f"Wrote {path}", err=True)


def write_text(path: Path, text: str) -> None:
    """The file appears whole or not at all."""
    from foretell.data.atomic_file import write_atomically

    write_atomically(path, text.encode())
