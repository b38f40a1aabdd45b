"""foretell study habits and consistency: what stored runs did and said, without a model."""

from typing import Any

import click

from foretell.app.commands.study_options import BUDGET, RUNS, purse, resampling, tell_spending
from foretell.app.commands.study_output import deliver, study_options


@click.command()
@RUNS
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="How far an answer may be from the belief stated last and still agree with it.",
)
@study_options
def habits(runs: tuple[str, ...], tolerance: float, **options: Any) -> None:
    """What the trials of runs did: how they ended, how beliefs moved, which tools were used, what a trial cost.

    Read from what runs have noted; no model is asked.

      foretell study habits --run 3f2a --run 91bc --html habits.html
    """
    from foretell.app.settings import load_settings
    from foretell.app.study_cases import traced
    from foretell.arena.studies.habits_report import habits_study

    found = habits_study(traced(load_settings(), runs), resampling(options), tolerance=tolerance)
    deliver(found, options)


@click.command()
@RUNS
@click.option("--arena", metavar="ARENA", help="Instead of runs: the entries of an arena, by its file or its name.")
@click.option("--judge", metavar="MODEL", help="Let a model read what wording rules do not see (provider:name).")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="How far exclusive outcomes may sum from one.",
)
@BUDGET
@study_options
def consistency(
    runs: tuple[str, ...],
    arena: str | None,
    judge: str | None,
    tolerance: float,
    budget: float | None,
    **options: Any,
) -> None:
    """Do the probabilities of one event fit each other? Chains ("above 220" implies "above 200") and exclusive sets.

    What is looked at are statements as they were made, before anything was made to fit. Structure comes from what
    questions declare and from their wording; --judge lets a model look for more, from the question alone.

      foretell study consistency --arena arena.yaml --judge openai:NAME --budget 1
    """
    from dataclasses import replace

    from foretell.app import loop
    from foretell.app.settings import load_settings
    from foretell.app.study_cases import fullest, plain_structures, stated
    from foretell.arena.studies.consistency import consistency_study

    statements = stated(load_settings(), runs, arena)
    asked = fullest(statements)
    told: dict[str, Any] = {}
    if judge is None:
        structures = plain_structures(asked)
    else:
        from foretell.app.study_asking import judged_structures

        with purse(budget) as within:
            structures, told = loop.run(judged_structures(asked, judge, within))
        tell_spending(told)
    found = consistency_study(statements, structures, tolerance=tolerance, resampling=resampling(options))
    deliver(replace(found, settings={**told, **found.settings}), options)
