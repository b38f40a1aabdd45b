"""Question sets as Inspect tasks, and proper scores as their scorers."""

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from math import ceil
from pathlib import Path
from typing import Any

import click
import numpy as np
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, Model, ModelAPI, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from foretell.data.datasets.question_files import read_outcomes
from foretell.data.datasets.question_set import LateText, SetFilter
from foretell.data.untrusted import for_terminal
from foretell.forecasters.prompt.elicitation import ElicitationCall, call_of
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.forecasters.prompt.rendering import read_view, readable
from foretell.inspect_tasks.logs import CLUSTER_KEY, QUESTION_KEY, outcomes_of, probabilities_in
from foretell.metrics import scores
from foretell.metrics.metric import LOG_FLOOR
from foretell.metrics.scores import brier_index as index_of
from foretell.models.budget import BYTES_PER_TOKEN
from foretell.models.structured_output import UnusableReply
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.question_sets import open_benchmark

# Metrics of forecasting for Inspect: the Brier index, and standard errors clustered by question.


@metric
def brier_index() -> Metric:
    """100·(1 − √Brier) over all samples, never a mean of parts. Always saying 0.5 scores 50; higher is better."""

    def compute(scores: list[SampleScore]) -> float:
        values, _ = _values(scores)
        return float(index_of(float(np.mean(values)))) if len(values) else math.nan

    return compute


@metric
def brier_index_stderr(cluster: str = CLUSTER_KEY) -> Metric:
    """Standard error of the Brier index by the delta method: 100·se(Brier)/(2·√Brier)."""

    def compute(scores: list[SampleScore]) -> float:
        values, groups = _values(scores, cluster)
        mean = float(np.mean(values)) if len(values) else 0.0
        return 100 * clustered(values, groups) / (2 * math.sqrt(mean)) if mean > 0 else 0.0

    return compute


@metric
def clustered_stderr(cluster: str = CLUSTER_KEY) -> Metric:
    """Standard error of the mean, allowing for correlation within clusters.

    The cluster is read from the sample's metadata; a sample without one is a cluster of its own.
    """

    def compute(scores: list[SampleScore]) -> float:
        return clustered(*_values(scores, cluster))

    return compute


def clustered(values: Sequence[float] | Any, groups: Sequence[str]) -> float:
    """√(C/(C−1)·Σ_c(Σ_{i∈c}(x_i − x̄))²)/n, the cluster-robust standard error of a mean (Liang and Zeger 1986).

    >>> round(clustered([0.0, 0.2, 0.4, 0.6], ["a", "a", "b", "b"]), 4)
    0.2
    """
    x = np.asarray(values, dtype=np.float64)
    _, codes = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    count = int(codes.max()) + 1 if len(x) else 0
    if count < 2:
        return 0.0
    sums = np.bincount(codes, weights=x - x.mean())
    return float(math.sqrt(count / (count - 1) * float(np.sum(sums**2))) / len(x))


def _values(scores: list[SampleScore], cluster: str = CLUSTER_KEY) -> tuple[Any, list[str]]:
    """Return the values and clusters of the samples that could be scored."""
    rows = [(score.score.as_float(), _cluster(score, cluster)) for score in scores]
    rows = [(value, group) for value, group in rows if math.isfinite(value)]
    return np.array([value for value, _ in rows]), [group for _, group in rows]


def _cluster(score: SampleScore, cluster: str) -> str:
    found = (score.sample_metadata or {}).get(cluster)
    return f"sample {score.sample_id}" if found is None else f"cluster {found}"


P = "p"
"""Metadata key of a score that holds the probabilities by target."""
UNREADABLE = "unreadable_answer"


@scorer(metrics=[mean(), clustered_stderr(), brier_index(), brier_index_stderr()])
def brier() -> Scorer:
    """(p − outcome)², the mean over the targets of a sample; lower is better."""
    return _scored(lambda p, o: float(np.mean(scores.brier(p, o))))


@scorer(metrics=[mean(), clustered_stderr()])
def log_score() -> Scorer:
    """The logarithm of the probability given to what happened, floored at 0.001; higher is better."""
    return _scored(lambda p, o: float(np.mean(scores.log_score(p, o, floor=LOG_FLOOR))))


@scorer(metrics=[mean()])
def answered() -> Scorer:
    """1 if every target has a probability, else 0; its mean is the completion rate."""

    async def score(state: TaskState, target: Target) -> Score:
        try:
            p, _ = read(state, target)
        except UnusableReply as problem:
            return Score(value=0.0, explanation=str(problem))
        return Score(value=1.0, answer=_shown(p), metadata={P: p})

    return score


def _scored(rule: Callable[[list[float], list[int]], float]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        try:
            p, outcomes = read(state, target)
        except UnusableReply as problem:
            return Score.unscored(reason=UNREADABLE, explanation=str(problem))
        chosen = list(outcomes)
        value = rule([p[name] for name in chosen], [outcomes[name] for name in chosen])
        return Score(value=value, answer=_shown(p), metadata={P: p})

    return score


def read(state: TaskState, target: Target) -> tuple[dict[str, float], dict[str, int]]:
    """Return the probabilities and outcomes of a sample; raise `UnusableReply` if a probability is missing."""
    outcomes = outcomes_of(target.text)
    p = probabilities_in(state.output.completion, state.metadata)
    missing = outcomes.keys() - p.keys()
    if missing:
        raise UnusableReply(f"no probability for {min(missing)}")
    return p, outcomes


def _shown(p: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in p.items())


# The tasks.


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
    """Resolved questions, each asked as of its date without tools; probabilities are scored by proper scores.

    `dataset` is what `foretell backtest` accepts: demo, forecastbench, a file or a folder of tables. `view` sets
    whether the market is shown: market or none. `outcomes` is a table of question, target and outcome for questions of
    your own, and `data` is the folder of downloaded rounds. Questions whose own text was written after the date they
    are asked as of are left out unless `late_text` is keep or cut.
    """
    with _problems_in_one_line():
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
            raise InputError(f"no question of {dataset} has resolved yet", hint="name a table of outcomes")
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


@contextmanager
def _problems_in_one_line() -> Generator[None]:
    """Make `inspect eval`, which is a Click command, print a problem with the input as one line, not as a traceback."""
    try:
        yield
    except InputError as problem:
        if click.get_current_context(silent=True) is None:
            raise
        raise click.ClickException(for_terminal(str(problem))) from None


@solver
def ask_once() -> Solver:
    """Ask the model once per sample. Token counts are estimated if needed, so that nothing is downloaded."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        estimate_tokens_of(get_model())
        return await generate(state)

    return solve


def estimate_tokens_of(model: Model) -> None:
    """Make a model estimate token counts by length if it would download a vocabulary to count them.

    A model with its own count is left unchanged. Inspect's default downloads tiktoken's vocabulary, so a machine
    without a network would fail in its first sample.
    """

    async def count(text: str) -> int:
        return ceil(len(text.encode()) / BYTES_PER_TOKEN)

    if type(model.api).count_text_tokens is ModelAPI.count_text_tokens:
        model.api.count_text_tokens = count  # pyright: ignore[reportAttributeAccessIssue] - of this model alone


def sample_of(question: Question, outcomes: Mapping[str, int], view: str) -> Sample:
    """Create a sample that asks a resolved question as of its date, without tools."""
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
    """Parse rounds from a command line: one, several separated by commas, or a list.

    >>> rounds_of("2025-10-26,2025-11-09"), rounds_of(None), rounds_of(date(2025, 10, 26))
    (('2025-10-26', '2025-11-09'), (), ('2025-10-26',))
    """
    if given is None:
        return ()
    parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, date) else list(given)
    return tuple(str(part).strip() for part in parts if str(part).strip())
