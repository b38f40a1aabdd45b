"""foretell study intervention and smoke: trials of the agent that are made for the study."""

from pathlib import Path
from typing import Any

import click

from foretell.app.commands.options import FILE
from foretell.app.commands.study_options import BUDGET, ROUNDS, SEARCH, purse, resampling, tell_spending
from foretell.app.commands.study_output import deliver, study_options

MODEL = click.option("--model", metavar="MODEL", help="provider:name of the agent (default: that of SPEC).")
QUESTIONS = click.option("--questions", metavar="DATASET", help="A file of questions, or a set by name.")
EXAM = "demo"
"""The questions of an exam where none are named."""


@click.command()
@click.argument("spec", type=FILE, required=False)
@QUESTIONS
@MODEL
@SEARCH
@ROUNDS
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Questions, at equal distances.")
@click.option("--step", type=click.IntRange(1), default=2, show_default=True, help="Overwrite what it states there.")
@BUDGET
@study_options
def intervention(spec: Path | None, limit: int, step: int, budget: float | None, **options: Any) -> None:
    """Does a belief steer what follows? Every question is run twice; in one the belief is overwritten at a step.

    The agent is that of SPEC, the file of a run, or the usual one with --questions and --model. Both trials share
    every word up to the step, so that the second costs only what comes after.

      foretell study intervention run.yaml --limit 30 --budget 5
    """
    from foretell.app import loop
    from foretell.app.study_asking import agent_spec
    from foretell.app.study_asking import intervention as pushed

    asked = agent_spec(spec, options)
    with purse(budget) as within:
        found = loop.run(pushed(asked, within, limit=limit, step=step, how=resampling(options)))
    tell_spending(dict(found.settings))
    deliver(found, options)


@click.command()
@click.argument("spec", type=FILE, required=False)
@MODEL
@QUESTIONS
@SEARCH
@ROUNDS
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="Questions, at equal distances.")
@BUDGET
@study_options
@click.pass_context
def smoke(context: click.Context, spec: Path | None, limit: int, budget: float | None, **options: Any) -> None:
    """Is a model fit for a big run? One trial on a few questions: do trials end, in answers, and at what price?

    With SPEC, the file of the run to come, it also says what all of that will cost. A model that fails the exam ends
    the command with exit code 1.

      foretell study smoke run.yaml

      foretell study smoke --model openai:NAME
    """
    from foretell.app import loop
    from foretell.app.study_asking import agent_spec
    from foretell.app.study_asking import smoke as examined

    whole = spec is not None and not options["questions"]
    asked = agent_spec(spec, {**options, "questions": options["questions"] or (None if spec else EXAM)})
    with purse(budget) as within:
        found = loop.run(examined(asked, within, limit=limit, whole=whole, how=resampling(options)))
    tell_spending(dict(found.settings))
    deliver(found, options)
    if not found.settings["passed"]:
        context.exit(1)
