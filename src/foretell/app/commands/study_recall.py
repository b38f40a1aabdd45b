"""foretell study recall: what models remember of past events."""

from typing import Any

import click

from foretell.app.commands.options import FILE
from foretell.app.commands.study_options import BUDGET, ROUNDS, purse, resampling, tell_spending
from foretell.app.commands.study_output import deliver, study_options


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
@click.option("--outcomes", "-o", type=FILE, help="question, target, outcome: where the questions bring none.")
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
    from foretell.app import loop
    from foretell.app.past_events import past_events
    from foretell.app.study_asking import recalled

    events = past_events(dataset, rounds=rounds, outcomes=options.pop("outcomes"), limit=limit)
    with purse(budget) as within:
        found = loop.run(recalled(events, models, within, how=resampling(options)))
    tell_spending(dict(found.settings))
    deliver(found, options)
