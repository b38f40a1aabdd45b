"""foretell study judge: a model marks the reasoning of forecasts, and people check the judge."""

from pathlib import Path
from typing import Any

import click

from foretell.app.commands.options import FILE
from foretell.app.commands.study_options import BUDGET, RUNS, purse, resampling, tell_spending
from foretell.app.commands.study_output import deliver, study_options


@click.command()
@RUNS
@click.option("--model", metavar="MODEL", help="The judge, provider:name; best not one that is judged.")
@click.option("--ratings", type=FILE, help="A sheet that people have filled in: how far do they agree with the judge?")
@click.option("--sheet", type=FILE, help="Write an empty sheet for raters with the same cases, as CSV.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only N forecasts; larger samples contain them.")
@BUDGET
@study_options
def judge(
    runs: tuple[str, ...],
    model: str | None,
    ratings: Path | None,
    sheet: Path | None,
    limit: int | None,
    **options: Any,
) -> None:
    """Let a model mark the reasoning of forecasts from 1 to 5 on five sides, by a fixed rubric at temperature 0.

    First write a sheet and let people rate some of the same forecasts, then judge and see whether they agree:

      foretell study judge --run 3f2a --limit 40 --sheet rate_me.csv

      foretell study judge --run 3f2a --model openai:NAME --ratings rated.csv

    The judge is not told who made a forecast. Marks are journalled: a forecast is paid for once.
    """
    from foretell.app import loop
    from foretell.app.settings import load_settings
    from foretell.app.study_asking import judged
    from foretell.app.study_cases import cases
    from foretell.arena.studies.ratings import read_ratings, write_sheet
    from foretell.questions.problems import InputError

    if model is None and sheet is None:
        raise InputError(
            "there is no judge", hint="give --model MODEL, or --sheet FILE for a sheet that people fill in"
        )
    rated = read_ratings(ratings) if ratings else ()
    chosen = cases(load_settings(), runs, limit)
    if sheet is not None:
        write_sheet([(case.item, case.sheet()) for case in chosen], sheet)
        click.echo(f"Wrote {sheet}: {len(chosen)} forecasts to rate", err=True)
    if model is not None:
        with purse(options["budget"]) as within:
            found = loop.run(judged(chosen, model, within, ratings=rated, how=resampling(options)))
        tell_spending(dict(found.settings))
        deliver(found, options)
