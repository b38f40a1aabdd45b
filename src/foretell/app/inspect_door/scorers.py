"""Proper scores as Inspect scorers. What cannot be read is left out of the mean and counted by `answered`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState

from foretell.app.inspect_door.metrics import brier_index, brier_index_stderr, clustered_stderr
from foretell.app.inspect_door.reading import outcomes_of, probabilities_in
from foretell.evaluate import proper
from foretell.evaluate.metric import FLOOR
from foretell.llm.answer import BadAnswer

P = "p"
"""Where a score keeps the probabilities it read, by target."""
UNREAD = "unreadable_answer"


@scorer(metrics=[mean(), clustered_stderr(), brier_index(), brier_index_stderr()])
def brier() -> Scorer:
    """(p − outcome)², the mean over the targets of a sample; lower is better."""
    return _scored(lambda p, o: float(np.mean(proper.brier(p, o))))


@scorer(metrics=[mean(), clustered_stderr()])
def log_score() -> Scorer:
    """The logarithm of the probability given to what happened, at least 0.001; higher is better."""
    return _scored(lambda p, o: float(np.mean(proper.log_score(p, o, floor=FLOOR))))


@scorer(metrics=[mean()])
def answered() -> Scorer:
    """1 where there is a probability for every target, else 0: the completion rate."""

    async def score(state: TaskState, target: Target) -> Score:
        try:
            p, _ = read(state, target)
        except BadAnswer as problem:
            return Score(value=0.0, explanation=str(problem))
        return Score(value=1.0, answer=_shown(p), metadata={P: p})

    return score


def _scored(rule: Callable[[list[float], list[int]], float]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        try:
            p, outcomes = read(state, target)
        except BadAnswer as problem:
            return Score.unscored(reason=UNREAD, explanation=str(problem))
        chosen = list(outcomes)
        value = rule([p[name] for name in chosen], [outcomes[name] for name in chosen])
        return Score(value=value, answer=_shown(p), metadata={P: p})

    return score


def read(state: TaskState, target: Target) -> tuple[dict[str, float], dict[str, int]]:
    """Probabilities and outcomes of a sample, or `BadAnswer`."""
    outcomes = outcomes_of(target.text)
    p = probabilities_in(state.output.completion, state.metadata)
    missing = outcomes.keys() - p.keys()
    if missing:
        raise BadAnswer(f"no probability for {min(missing)}")
    return p, outcomes


def _shown(p: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in p.items())
