"""foretell plan: how many questions it takes."""

from pathlib import Path

import click

from foretell.app.commands.options import FILE


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
@click.option("--forecasts", "-f", type=FILE, help="Table of the pilot's forecasts.")
@click.option("--outcomes", "-o", type=FILE, help="Table of the pilot's outcomes.")
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
    from foretell.evaluate.power import Aim, questions_needed

    aim = Aim(power=power, alpha=alpha)
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
    from foretell.arena.joining import read_table
    from foretell.arena.pairing import pilot_of
    from foretell.questions.problems import InputError

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
