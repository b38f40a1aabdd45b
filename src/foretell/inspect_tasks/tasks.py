"""Question sets as Inspect tasks."""

from dataclasses import replace
from datetime import date
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser
from inspect_ai.solver import generate

from foretell.inspect_tasks.samples import InspectSample, read_outcomes, rounds_of, samples_of
from foretell.inspect_tasks.scorers import answered, brier, log_score
from foretell.questions.errors import InputError
from foretell.runs.question_sets import open_benchmark


@task(name="questions")
def foretell_questions(
    dataset: str = "demo",
    rounds: str | date | list[str] | None = None,
    limit: int | None = None,
    view: str = "market",
    outcomes: str | None = None,
    data: str | None = None,
) -> Task:
    """Resolved questions, each asked as of its date without tools; probabilities scored by proper scores.

    `dataset` is what `foretell backtest` takes: demo, forecastbench, a file or a folder of tables. `view` says what of
    the market is shown: market or none. `outcomes` is a table of question, target, outcome for questions of your own,
    and `data` is where pulled rounds are.
    """
    folder = None if data is None else Path(data)
    found = open_benchmark(dataset, rounds=rounds_of(rounds), folder=folder).questions
    if outcomes is not None:
        found = replace(found, resolutions=(*found.resolutions, *read_outcomes(outcomes)))
    asked = samples_of(found, limit=limit, view=view)
    if not asked:
        raise InputError(f"no question of {dataset} has come out yet", hint="name a table of outcomes")
    return Task(
        dataset=MemoryDataset([_sample(one) for one in asked], name=f"foretell {dataset}"),
        solver=generate(),
        scorer=[brier(), log_score(), answered()],
        metadata={"foretell_dataset": dataset, "foretell_view": view},
    )


def _sample(asked: InspectSample) -> Sample:
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    messages: list[ChatMessage] = [kinds[role](content=words) for role, words in asked.messages]
    return Sample(id=asked.id, input=messages, target=asked.target, metadata=dict(asked.metadata))
