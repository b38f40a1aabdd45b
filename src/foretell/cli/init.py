"""foretell init: begin something of one's own."""

from pathlib import Path

import click


@click.group()
def init() -> None:
    """Begin something of your own."""


@init.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--tournament", default="minibench", show_default=True, help="Of Metaculus, by its slug or number.")
@click.option(
    "--model", default="openrouter:openai/gpt-5-mini", show_default=True, help="provider:name; needs a price."
)
@click.option("--search", "engines", multiple=True, help="Search engine; default gdelt, which needs no key.")
@click.option(
    "--budget-per-day", "dollars", type=click.FloatRange(0.01), default=3.0, show_default=True, metavar="DOLLARS"
)
@click.option("--every", "hours", type=click.IntRange(1, 24), default=8, show_default=True, metavar="HOURS")
@click.option("--trials", type=click.IntRange(1, 20), default=3, show_default=True, help="Of every question.")
def bot(
    folder: Path, tournament: str, model: str, engines: tuple[str, ...], dollars: float, hours: int, trials: int
) -> None:
    """Write a bot into DIR: a repository that forecasts a Metaculus tournament on a schedule, on GitHub.

    It needs two secrets, a model's key and METACULUS_TOKEN, and spends no more a day than you say. DIR/README.md tells
    the rest.
    """
    from foretell.operations.init_bot import BotSettings, write_bot
    from foretell.questions.errors import InputError

    if dollars * hours / 24 < 0.01:
        raise InputError("less than a cent a run", column="--budget-per-day", hint="allow more, or run less often")
    made = BotSettings(
        name=folder.resolve().name,
        tournament=tournament,
        model=model,
        search=engines or ("gdelt",),
        dollars_per_day=dollars,
        hours=hours,
        trials=trials,
    )
    for path in write_bot(made, folder):
        click.echo(f"Wrote {path}")
    secrets = " and ".join(made.secrets)
    click.echo(f"Next: {folder / 'README.md'}; it takes {len(made.secrets)} secrets, {secrets}.", err=True)
