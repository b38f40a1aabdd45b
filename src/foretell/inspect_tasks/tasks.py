"""Question sets as Inspect tasks, and proper scores as their scorers."""

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
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
from foretell.data.datasets.question_set import LeakyQuestions, SetFilter
from foretell.data.untrusted import for_terminal
from foretell.forecasters.prompt.elicitation import ElicitationCall, call_of
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.forecasters.prompt.rendering import SOURCES, missing_part, read_view, readable
from foretell.frozen import frozen
from foretell.inspect_tasks.logs import CLUSTER_KEY, QUESTION_KEY, complete, outcomes_of, probabilities_in
from foretell.metrics import scores
from foretell.metrics.arrays import Floats
from foretell.metrics.metric import LOG_FLOOR
from foretell.metrics.scores import brier_index as index_of
from foretell.models.structured_output import UnusableReply
from foretell.models.tokens import BYTES_PER_TOKEN
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.question_sets import open_benchmark

# Forecasting metrics for Inspect. They count as `foretell score` does: the epochs of a sample are combined into one
# forecast, the mean of their probabilities; every target counts once; and where questions are of several kinds, the
# overall number is the mean over kinds.

P = "p"
"""Metadata key of a score for the probabilities by target."""
OUTCOMES = "outcomes"
"""Metadata key of a score for the outcomes by target."""
RowRule = Callable[[Floats, Floats], Floats]
"""Probabilities and outcomes of targets → the score of each."""
RULES: Mapping[str, RowRule] = {
    "brier": scores.brier,
    "log": lambda p, outcome: scores.log_score(p, outcome, floor=LOG_FLOOR),
}


@metric(name="mean", scores="unreduced")
def target_mean(rule: str = "brier") -> Metric:
    """Mean of a score over all targets, as `foretell score` counts them."""

    def compute(scores: list[SampleScore]) -> float:
        return _over_kinds([float(np.mean(kind.values)) for kind in _kinds(scores, rule)])

    return compute


@metric(scores="unreduced")
def brier_index() -> Metric:
    """100·(1 − √Brier) over all targets, as `foretell score` counts them. Always 0.5 scores 50; higher is better."""

    def compute(scores: list[SampleScore]) -> float:
        return _over_kinds([index_of(float(np.mean(kind.values))) for kind in _kinds(scores, "brier")])

    return compute


@metric(scores="unreduced")
def brier_index_stderr(cluster: str = CLUSTER_KEY) -> Metric:
    """Standard error of the Brier index by the delta method: 100·se(Brier)/(2·√Brier)."""

    def compute(scores: list[SampleScore]) -> float:
        kinds = [(float(np.mean(kind.values)), kind.stderr) for kind in _kinds(scores, "brier", cluster)]
        return _error_over_kinds([100 * se / (2 * math.sqrt(mean)) if mean > 0 else 0.0 for mean, se in kinds])

    return compute


@metric(scores="unreduced")
def clustered_stderr(cluster: str = CLUSTER_KEY, rule: str = "brier") -> Metric:
    """Standard error of the mean, allowing for correlation within clusters.

    The cluster is read from the sample's metadata; a sample without one is a cluster of its own.
    """

    def compute(scores: list[SampleScore]) -> float:
        return _error_over_kinds([kind.stderr for kind in _kinds(scores, rule, cluster)])

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


@frozen
class KindScores:
    """The targets of one kind of question: the score and the cluster of each."""

    values: list[float] = field(default_factory=list[float])
    clusters: list[str] = field(default_factory=list[str])

    @property
    def stderr(self) -> float:
        """Standard error of the mean, with targets of one cluster correlated."""
        return clustered(self.values, self.clusters)


def _kinds(scores: list[SampleScore], rule: str, cluster: str = CLUSTER_KEY) -> list[KindScores]:
    """Return the scored targets by kind of question; a score without probabilities counts as that of one target."""
    epochs: dict[str, list[SampleScore]] = {}
    for score in scores:
        if math.isfinite(score.score.as_float()):
            epochs.setdefault(str(score.sample_id), []).append(score)
    kinds: dict[str, KindScores] = {}
    for sample in epochs.values():
        about = sample[0].sample_metadata or {}
        outcomes = (sample[0].score.metadata or {}).get(OUTCOMES)
        if outcomes is None:
            values = [float(np.mean([epoch.score.as_float() for epoch in sample]))]
        else:
            values = _target_scores([(epoch.score.metadata or {})[P] for epoch in sample], outcomes, rule)
        kind = kinds.setdefault(str(about.get("kind")) if QUESTION_KEY in about else "", KindScores())
        kind.values.extend(values)
        kind.clusters.extend([_cluster(sample[0], cluster)] * len(values))
    return list(kinds.values())


def _target_scores(epochs: Sequence[Mapping[str, float]], outcomes: Mapping[str, int], rule: str) -> list[float]:
    """Return the score of each target of a sample, for the mean of the probabilities of its epochs."""
    p = np.array([[epoch[name] for name in outcomes] for epoch in epochs]).mean(axis=0)
    return RULES[rule](p, np.array([*outcomes.values()], np.float64)).tolist()


def _over_kinds(numbers: Sequence[float]) -> float:
    return float(np.mean(numbers)) if numbers else math.nan


def _error_over_kinds(errors: Sequence[float]) -> float:
    return math.hypot(*errors) / len(errors) if errors else 0.0


def _cluster(score: SampleScore, cluster: str) -> str:
    name = (score.sample_metadata or {}).get(cluster)
    return f"sample {score.sample_id}" if name is None else f"cluster {name}"


UNREADABLE = "unreadable_answer"


@scorer(metrics=[target_mean(), clustered_stderr(), brier_index(), brier_index_stderr()])
def brier() -> Scorer:
    """(p − outcome)², the mean over the targets of a sample; lower is better."""
    return _scored("brier")


@scorer(metrics=[target_mean(rule="log"), clustered_stderr(rule="log")])
def log_score() -> Scorer:
    """The logarithm of the probability given to what happened, floored at 0.001; higher is better."""
    return _scored("log")


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


def _scored(rule: str) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        try:
            p, outcomes = read(state, target)
        except UnusableReply as problem:
            return Score.unscored(reason=UNREADABLE, explanation=str(problem))
        value = float(np.mean(_target_scores([p], outcomes, rule)))
        return Score(value=value, answer=_shown(p), metadata={P: p, OUTCOMES: outcomes})

    return score


def read(state: TaskState, target: Target) -> tuple[dict[str, float], dict[str, int]]:
    """Return the probabilities and outcomes of a sample; raise `UnusableReply` if a probability is missing."""
    outcomes = outcomes_of(target.text)
    return complete(probabilities_in(state.output.completion, state.metadata), outcomes), outcomes


def _shown(p: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in p.items())


# The tasks.


@task(name="questions")
def foretell_questions(  # noqa: PLR0913 - the parameters of the task
    dataset: str = "demo",
    rounds: str | date | list[str] | None = None,
    limit: int | None = None,
    view: str = "market",
    outcomes: str | None = None,
    data: str | None = None,
    leaky_questions: LeakyQuestions = "exclude",
) -> Task:
    """Resolved questions, each asked as of its date without tools; probabilities are scored by proper scores.

    `dataset` is what `foretell backtest` accepts: demo, forecastbench, a file or a folder of tables. `view` sets
    what is shown with the question: market, none, and sources or both if the set comes with sources. `outcomes` is
    a table of question, target and outcome for questions of your own, and `data` is the folder of downloaded
    rounds. Questions whose own text was written after the date they are asked as of are left out unless
    `leaky_questions` is keep or cut.
    """
    with _problems_in_one_line():
        folder = None if data is None else Path(data)
        benchmark = open_benchmark(
            dataset, wanted=SetFilter(leaky_questions=leaky_questions), rounds=rounds_of(rounds), folder=folder
        )
        question_set = benchmark.questions
        if outcomes is not None:
            question_set = replace(
                question_set, resolutions=(*question_set.resolutions, *read_outcomes(Path(outcomes)))
            )
        outcome_of = question_set.outcomes()
        samples: list[Sample] = []
        for question in question_set.questions:
            id, due = question.id, question.due
            outcomes_by_target = {
                target.id: outcome_of.get((id, due, target.id), outcome_of.get((id, None, target.id)))
                for target in question.targets
            }
            if resolved := {target: outcome for target, outcome in outcomes_by_target.items() if outcome is not None}:
                samples.append(sample_of(question, resolved, view, benchmark.contexts.get(question)))
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
            "foretell_excluded": len(question_set.excluded),
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


def sample_of(
    question: Question, outcomes: Mapping[str, int], view: str, stored: PredictionContext | None = None
) -> Sample:
    """Create a sample that asks a resolved question as of its date, without tools, with its context if there is one."""
    context = stored or PredictionContext(question=known_at(question, question.as_of), as_of=question.as_of)
    if read_view(view).sources and (missing := missing_part(context, SOURCES)):
        hint = "view: market and none need no sources"
        raise InputError(f"the view {view!r} cannot be shown: {missing}", column="view", hint=hint)
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


def rounds_of(rounds: str | date | Sequence[str | date] | None) -> tuple[str, ...]:
    """Parse rounds from a command line: one, several separated by commas, or a list.

    >>> rounds_of("2025-10-26,2025-11-09"), rounds_of(None), rounds_of(date(2025, 10, 26))
    (('2025-10-26', '2025-11-09'), (), ('2025-10-26',))
    """
    if rounds is None:
        return ()
    parts = rounds.split(",") if isinstance(rounds, str) else [rounds] if isinstance(rounds, date) else list(rounds)
    return tuple(str(part).strip() for part in parts if str(part).strip())
