"""Does a belief steer what follows? Overwrite it at one step, leave all else as it was, and watch later steps.

Two runs of the same trial share every word up to the step: with a journal the second pays only for what comes after.
On the log-odds scale, the share of a push that is still there k steps later is (x′ₜ₊ₖ − xₜ₊ₖ) / (x′ₜ − xₜ), x with
and x′ without the dash being the untouched and the pushed run. One: the belief is carried on; zero: it is ignored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, nan

import numpy as np

from foretell.arena.studies.side_by_side import side_by_side
from foretell.arena.studies.trajectory import Trace, belief_path
from foretell.arena.study import Progress, quietly
from foretell.evaluate.arrays import Floats
from foretell.evaluate.intervals import percentile_interval
from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.agent.job import Push
from foretell.questions.event import Event, ForecastMade
from foretell.questions.question import Question

EDGE = 0.005
"""Log-odds are taken this far inside 0 and 1, so that a belief near certainty does not swallow all others."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The same trial untouched and pushed."""

    question_id: str
    target: str
    step: int
    to: float
    untouched: Trace
    pushed: Trace


@dataclass(frozen=True, kw_only=True)
class Following:
    """What became of one push."""

    push: float
    """Its size in log-odds."""
    kept: tuple[float, ...]
    """Share that is left at each later belief both runs have, in order."""
    final: float
    """Share that is left in the forecast; NaN where one of the runs failed."""


def follow(pair: Pair) -> Following | None:
    """How far later steps followed; None where the untouched run has no belief to compare at that step."""
    before = {point.step: point.p.get(pair.target) for point in belief_path(pair.untouched)}
    after = {point.step: point.p.get(pair.target) for point in belief_path(pair.pushed)}
    seen = pair.step - 1
    start = before.get(seen)
    if start is None:
        return None
    push = _logit(pair.to) - _logit(start)
    if abs(push) < 1e-9:
        return None
    later = [
        (a, b) for step, a in before.items() if step > seen and a is not None and (b := after.get(step)) is not None
    ]
    kept = tuple((_logit(b) - _logit(a)) / push for a, b in later)
    ends = _forecast(pair.untouched, pair.target), _forecast(pair.pushed, pair.target)
    final = nan if None in ends else (_logit(ends[1] or 0.0) - _logit(ends[0] or 0.0)) / push
    return Following(push=push, kept=kept, final=final)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Many pushes together."""

    pairs: int
    compared: int
    kept: tuple[float, ...]
    """Mean share left one, two, … beliefs later, over the pairs that got so far."""
    final: float
    """Mean share left in the forecast."""
    low: float
    high: float
    """95 % interval of `final`, questions resampled (percentile bootstrap)."""


def effect(pairs: Sequence[Pair], *, seed: int = 0, draws: int = 2000) -> Effect:
    """How much of a push survives on average."""
    found = [(pair.question_id, one) for pair in pairs if (one := follow(pair)) is not None]
    finals = [(question, one.final) for question, one in found if one.final == one.final]
    longest = max((len(one.kept) for _, one in found), default=0)
    kept = tuple(_mean([one.kept[k] for _, one in found if len(one.kept) > k]) for k in range(longest))
    low, high = percentile_interval(_resampled(finals, seed, draws)) if finals else (nan, nan)
    final = _mean([share for _, share in finals])
    return Effect(pairs=len(pairs), compared=len(finals), kept=kept, final=final, low=low, high=high)


def opposite(p: float) -> float:
    """A push across one half: far enough to be felt, not so far that it is absurd."""
    return 0.85 if p < 0.5 else 0.15


async def intervene(
    agent: BeliefAgent,
    questions: Iterable[Question],
    context_of: Callable[[Question], AgentContext],
    *,
    step: int = 2,
    to: Callable[[float], float] = opposite,
) -> list[Pair]:
    """Run every question untouched and pushed after the model spoke at `step`; those that ended before are left out."""
    tried = await try_pushes(agent, questions, context_of, step=step, to=to)
    return [pair for _, pair in tried if pair is not None]


async def try_pushes(
    agent: BeliefAgent,
    questions: Iterable[Question],
    context_of: Callable[[Question], AgentContext],
    *,
    step: int = 2,
    to: Callable[[float], float] = opposite,
    progress: Progress = quietly,
) -> list[tuple[Trace, Pair | None]]:
    """Every question untouched, and beside it the pair where it could be pushed."""
    return await side_by_side(list(questions), lambda one: _pair(agent, one, context_of, step, to), progress)


async def _pair(
    agent: BeliefAgent,
    question: Question,
    context_of: Callable[[Question], AgentContext],
    step: int,
    to: Callable[[float], float],
) -> tuple[Trace, Pair | None]:
    untouched = await _trace(agent, question, context_of(question))
    held: Mapping[int, Mapping[str, float]] = {point.step: point.p for point in belief_path(untouched)}
    # A belief that came with the answer steers nothing: there must be a later one.
    if step - 1 not in held or max(held) <= step - 1:
        return untouched, None
    target = question.targets[0].id
    goal = to(held[step - 1][target])
    pushed = await _trace(replace(agent, push=Push(step=step, p={target: goal})), question, context_of(question))
    pair = Pair(question_id=question.id, target=target, step=step, to=goal, untouched=untouched, pushed=pushed)
    return untouched, pair


async def _trace(agent: BeliefAgent, question: Question, context: AgentContext) -> list[Event]:
    events: list[Event] = []
    await agent.attempt(question, replace(context, emit=events.append))
    return events


def _forecast(trace: Trace, target: str) -> float | None:
    made = [event for event in trace if isinstance(event, ForecastMade)]
    return made[-1].p.get(target) if made else None


def _resampled(shares: Sequence[tuple[str, float]], seed: int, draws: int) -> Floats:
    names, code = np.unique([question for question, _ in shares], return_inverse=True)
    values = np.asarray([share for _, share in shares], dtype=np.float64)
    sums, counts = np.bincount(code, weights=values), np.bincount(code).astype(np.float64)
    drawn = np.random.default_rng(seed).integers(len(names), size=(draws, len(names)))
    return sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)


def _logit(p: float) -> float:
    kept = min(1 - EDGE, max(EDGE, p))
    return log(kept / (1 - kept))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan
