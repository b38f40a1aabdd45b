"""foretell study habits and consistency: what stored runs did and said, without a model."""

from pathlib import Path
from typing import Any

import click

from foretell.cli.options import FILE_PATH
from foretell.cli.study import (
    BUDGET,
    ROUNDS,
    RUNS,
    SEARCH,
    print_spending,
    resampling,
    study_budget,
    study_options,
    write_study,
)

# foretell study intervention and smoke: trials of the agent that are made for the study.

MODEL = click.option("--model", metavar="MODEL", help="provider:name of the agent (default: that of SPEC).")
QUESTIONS = click.option("--questions", metavar="DATASET", help="A file of questions, or a set by name.")
EXAM = "demo"
"""The questions of an exam where none are named."""


@click.command()
@click.argument("spec", type=FILE_PATH, required=False)
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
    from foretell.operations.model_studies import agent_spec
    from foretell.operations.model_studies import intervention as pushed
    from foretell.runs import event_loop

    asked = agent_spec(spec, options)
    with study_budget(budget) as within:
        found = event_loop.run(pushed(asked, within, limit=limit, step=step, how=resampling(options)))
    print_spending(dict(found.settings))
    write_study(found, options)


@click.command()
@click.argument("spec", type=FILE_PATH, required=False)
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
    from foretell.operations.model_studies import agent_spec
    from foretell.operations.model_studies import smoke as examined
    from foretell.runs import event_loop

    whole = spec is not None and not options["questions"]
    asked = agent_spec(spec, {**options, "questions": options["questions"] or (None if spec else EXAM)})
    with study_budget(budget) as within:
        found = event_loop.run(examined(asked, within, limit=limit, whole=whole, how=resampling(options)))
    print_spending(dict(found.settings))
    write_study(found, options)
    if not found.settings["passed"]:
        context.exit(1)


# foretell study judge: a model marks the reasoning of forecasts, and people check the judge.


@click.command()
@RUNS
@click.option("--model", metavar="MODEL", help="The judge, provider:name; best not one that is judged.")
@click.option(
    "--ratings", type=FILE_PATH, help="A sheet that people have filled in: how far do they agree with the judge?"
)
@click.option("--sheet", type=FILE_PATH, help="Write an empty sheet for raters with the same cases, as CSV.")
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
    from foretell.operations.model_studies import judge_reasoning
    from foretell.operations.study_data import judge_cases
    from foretell.questions.errors import InputError
    from foretell.runs import event_loop
    from foretell.runs.settings import load_settings
    from foretell.studies.rubric import read_ratings, write_sheet

    if model is None and sheet is None:
        raise InputError(
            "there is no judge", hint="give --model MODEL, or --sheet FILE for a sheet that people fill in"
        )
    rated = read_ratings(ratings) if ratings else ()
    chosen = judge_cases(load_settings(), runs, limit)
    if sheet is not None:
        write_sheet([(case.item, case.sheet()) for case in chosen], sheet)
        click.echo(f"Wrote {sheet}: {len(chosen)} forecasts to rate", err=True)
    if model is not None:
        with study_budget(options["budget"]) as within:
            found = event_loop.run(judge_reasoning(chosen, model, within, ratings=rated, how=resampling(options)))
        print_spending(dict(found.settings))
        write_study(found, options)


# foretell study recall: what models remember of past events.


@click.command()
@click.option(
    "--questions",
    "--data",
    "dataset",
    required=True,
    metavar="DATASET",
    help="Past events with outcomes: a file of questions, a published file of an arena, a folder of tables, or a name.",
)
@click.option("--model", "models", multiple=True, required=True, metavar="MODEL", help="provider:name; repeatable.")
@ROUNDS
@click.option("--outcomes", "-o", type=FILE_PATH, help="question, target, outcome: where the questions bring none.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only N events, at equal distances.")
@BUDGET
@study_options
def recall(
    dataset: str,
    models: tuple[str, ...],
    rounds: tuple[str, ...],
    limit: int | None,
    budget: float | None,
    **options: Any,
) -> None:
    """What do models remember? Every event is put three times: recall, forecast without sources, forecast with them.

    Choose events that ended before the models' knowledge does. Who remembers much cannot be tested on such events;
    who claims to remember and is wrong makes memories up.

      foretell study recall --questions subset.csv --model openai:NAME --model google:NAME --budget 2
    """
    from foretell.operations.model_studies import measure_recall, past_events
    from foretell.runs import event_loop

    events = past_events(dataset, rounds=rounds, outcomes=options.pop("outcomes"), limit=limit)
    with study_budget(budget) as within:
        found = event_loop.run(measure_recall(events, models, within, how=resampling(options)))
    print_spending(dict(found.settings))
    write_study(found, options)


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
    from foretell.operations.study_data import traces_of_runs
    from foretell.runs.settings import load_settings
    from foretell.studies.habits import habits_study

    found = habits_study(traces_of_runs(load_settings(), runs), resampling(options), tolerance=tolerance)
    write_study(found, options)


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

    from foretell.operations.study_data import fullest_run, plain_structures, statements_of_runs
    from foretell.runs import event_loop
    from foretell.runs.settings import load_settings
    from foretell.studies.consistency import consistency_study

    statements = statements_of_runs(load_settings(), runs, arena)
    asked = fullest_run(statements)
    told: dict[str, Any] = {}
    if judge is None:
        structures = plain_structures(asked)
    else:
        from foretell.operations.model_studies import judge_structures

        with study_budget(budget) as within:
            structures, told = event_loop.run(judge_structures(asked, judge, within))
        print_spending(told)
    found = consistency_study(statements, structures, tolerance=tolerance, resampling=resampling(options))
    write_study(replace(found, settings={**told, **found.settings}), options)
