"""What commands of studies that ask models share."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from foretell.app.study_asking import Purse
    from foretell.evaluate.bootstrap import Resampling

RUNS = click.option("--run", "runs", multiple=True, metavar="RUN", help="A run of this machine; may be repeated.")
BUDGET = click.option(
    "--budget", type=click.FloatRange(0, min_open=True), metavar="DOLLARS", help="Hard limit for the whole study."
)
SEARCH = click.option(
    "--search", "engines", multiple=True, help="Search engine: brave, exa, tavily, serper, asknews, gdelt, local."
)
ROUNDS = click.option("--round", "rounds", multiple=True, metavar="DATE", help="Only these rounds of the questions.")


@contextmanager
def purse(dollars: float | None) -> "Generator[Purse]":
    """What a study may spend, with a bar that shows progress, spending and the time left."""
    from foretell.app.commands.run import progress_of_run
    from foretell.app.settings import load_settings
    from foretell.app.study_asking import Purse

    with progress_of_run() as watch:
        yield Purse.of(load_settings(), dollars, watch)


def resampling(options: dict[str, Any]) -> "Resampling":
    """How sure to be."""
    from foretell.evaluate.bootstrap import Resampling

    return Resampling(draws=options["draws"], seed=options["seed"])


def tell_spending(settings: "dict[str, Any]") -> None:
    """What the models' answers are worth; kept ones cost nothing again."""
    if "dollars" in settings:
        told = f"{settings['calls']} calls of models, ${settings['dollars']:.4f}"
        click.echo(f"{told}; asked again, kept replies cost nothing", err=True)
