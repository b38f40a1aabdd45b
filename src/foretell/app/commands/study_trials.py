"""foretell study NAME: studies of scores, on the trials of real configurations and on trees in made-up worlds."""

from typing import Any

import click

from foretell.app.commands.options import FILE
from foretell.app.commands.study_output import FOLDER, deliver, study_options


@click.command("NAME")
@click.argument("words", metavar="", nargs=-1)
@click.option("--data", "folder", type=FOLDER, help="Folder with PREFIXquestions, PREFIXresolutions and PREFIXtrials.")
@click.option("--prefix", default="ab_", show_default=True, help="What the names of those tables begin with.")
@click.option("--forecasts", "-f", type=FILE, help="Instead of --data: your own forecasts with their trials.")
@click.option("--outcomes", "-o", type=FILE, help="How they came out, with due and resolved_on.")
@click.option("--run", "runs", multiple=True, help="Instead of --data: a run of this machine; may be repeated.")
@click.option(
    "--trees",
    type=FOLDER,
    multiple=True,
    help="For tree noise and tree weights: a folder of tree files; may be repeated.",
)
@click.option("--costs", type=FILE, help="For frontier and tree roles: forecaster, dollars and perhaps seconds.")
@click.option("--cast", type=FILE, help="For tree roles: forecaster, analyzer, grounder and synthesizer.")
@click.option("--worlds", type=click.IntRange(2), help="How many made-up worlds, where nothing else is given.")
@click.option("--leaves", type=click.IntRange(1), help="Leaves of the trees in made-up worlds.")
@click.option("--config", "chosen", multiple=True, help="Look at this configuration; may be repeated (default: all).")
@click.option("--price", type=click.Choice(["due", "freeze"]), default="due", show_default=True, help="Crowd's price.")
@click.option(
    "--prior", type=click.Choice(["past", "paper"]), default="past", show_default=True, help="Base rates to use."
)
@click.option("--paper-outcomes", is_flag=True, help="Answers as they stood when the BLF paper was written.")
@study_options
def of_trials(words: tuple[str, ...], **options: Any) -> None:
    """Run a study of the trials of many configurations; foretell study lists their names.

    Every difference is paired and comes with an interval from resampling whole questions, and beside it one that
    resamples resolution days as well:

      foretell study trials --data tables --config pro-high-brave-c0-t1

      foretell study calibration -f forecasts.csv -o outcomes.csv --html calibration.html

    Studies of trees (foretell study tree lists them) need no data and no model: where nothing is given they play in a
    made-up world whose truth is known.

      foretell study tree noise

      foretell study tree frontier --run 3f2a --run 91bc
    """
    from foretell.app.study_material import TREES, study_material, study_named
    from foretell.arena.studies.catalog import SIMULATED, STUDIES, run_study

    if words in ((), (TREES,)):
        list_studies({key: told for key, (_, told) in STUDIES.items() if not words or key in SIMULATED})
        return
    from foretell.app.commands.study import ANY, COMMANDS

    name = study_named(words, [one for one in COMMANDS if one != ANY])
    from foretell.app.commands.backtest import progress_bar

    with progress_bar(name) as progress:
        found = run_study(name, study_material(name, options, progress))
    deliver(found, options)


def list_studies(studies: dict[str, str]) -> None:
    """Name and question of each, one line each."""
    width = max(map(len, studies))
    for name, told in studies.items():
        click.echo(f"{name.ljust(width)}  {told}")
