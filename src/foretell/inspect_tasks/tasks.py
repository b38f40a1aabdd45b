"""Question sets as Inspect tasks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from math import ceil
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, Model, ModelAPI, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from foretell.data.datasets.question_files import read_outcomes
from foretell.data.datasets.set_filter import LateText, SetFilter
from foretell.forecasters.prompt.elicitation import ElicitationCall, call_of
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.forecasters.prompt.rendering import read_view, readable
from foretell.inspect_tasks.samples import CLUSTER_KEY, QUESTION_KEY
from foretell.inspect_tasks.scorers import answered, brier, log_score
from foretell.models.budget import BYTES_PER_TOKEN
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.question_sets import open_benchmark


@task(name="questions")
def foretell_questions(  # noqa: PLR0913 - what a task may be asked for
    dataset: str = "demo",
    rounds: str | date | list[str] | None = None,
    limit: int | None = None,
    view: str = "market",
    outcomes: str | None = None,
    data: str | None = None,
    late_text: LateText = "quarantine",
) -> Task:
    """Resolved questions, each asked as of its date without tools; probabilities scored by proper scores.

    `dataset` is what `foretell backtest` takes: demo, forecastbench, a file or a folder of tables. `view` says what of
    the market is shown: market or none. `outcomes` is a table of question, target, outcome for questions of your own,
    and `data` is where pulled rounds are. Questions whose own text was written after they are asked are left out unless
    `late_text` says keep or cut.
    """
    folder = None if data is None else Path(data)
    found = open_benchmark(
        dataset, wanted=SetFilter(late_text=late_text), rounds=rounds_of(rounds), folder=folder
    ).questions
    if outcomes is not None:
        found = replace(found, resolutions=(*found.resolutions, *read_outcomes(Path(outcomes))))
    known = found.outcomes()
    samples: list[Sample] = []
    for question in found.questions:
        id, due = question.id, question.due
        came_out = {one.id: known.get((id, due, one.id), known.get((id, None, one.id))) for one in question.targets}
        if resolved := {target: outcome for target, outcome in came_out.items() if outcome is not None}:
            samples.append(sample_of(question, resolved, view))
        if len(samples) == limit:
            break
    if not samples:
        raise InputError(f"no question of {dataset} has come out yet", hint="name a table of outcomes")
    return Task(
        dataset=MemoryDataset(samples, name=f"foretell {dataset}"),
        solver=ask_once(),
        scorer=[brier(), log_score(), answered()],
        metadata={
            "foretell_dataset": dataset,
            "foretell_view": view,
            "foretell_quarantined": len(found.quarantined),
        },
    )


@solver
def ask_once() -> Solver:
    """One reply to each sample. Tokens that nobody has counted are estimated here, so that nothing is downloaded."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        estimate_tokens_of(get_model())
        return await generate(state)

    return solve


def estimate_tokens_of(model: Model) -> None:
    """Let a model that would fetch a vocabulary to count tokens estimate them by length; one that counts is left alone.

    Inspect's own count downloads tiktoken's vocabulary, and a machine without a network fails in its first sample.
    """

    async def count(text: str) -> int:
        return ceil(len(text.encode()) / BYTES_PER_TOKEN)

    if type(model.api).count_text_tokens is ModelAPI.count_text_tokens:
        model.api.count_text_tokens = count  # pyright: ignore[reportAttributeAccessIssue] - of this model alone


def sample_of(question: Question, outcomes: Mapping[str, int], view: str) -> Sample:
    """A question whose outcomes are known, as of its date; no tool and no fence stand behind it."""
    context = PredictionContext(question=known_at(question, question.as_of), as_of=question.as_of)
    system, user = call_of(ElicitationCall(wording="default"), readable(context), read_view(view)).messages
    return Sample(
        id=f"{question.id}@{question.due.date().isoformat()}",
        input=[ChatMessageSystem(content=system.text), ChatMessageUser(content=user.text)],
        target=json.dumps(dict(outcomes)),
        metadata={
            CLUSTER_KEY: question.cluster,
            "source": question.source,
            "kind": question.kind,
            "due": question.due.isoformat(),
            QUESTION_KEY: to_json(question),
        },
    )


def rounds_of(given: str | date | Sequence[str | date] | None) -> tuple[str, ...]:
    """Rounds as a person writes them on a command line: one, several with commas between, or a list.

    >>> rounds_of("2025-10-26,2025-11-09"), rounds_of(None), rounds_of(date(2025, 10, 26))
    (('2025-10-26', '2025-11-09'), (), ('2025-10-26',))
    """
    if given is None:
        return ()
    parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, date) else list(given)
    return tuple(str(part).strip() for part in parts if str(part).strip())
