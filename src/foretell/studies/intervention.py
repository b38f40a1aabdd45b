"""Study: does a belief influence later steps? Overwrite it at one step, change nothing else, and compare later steps.

Two runs of the same trial are identical up to that step, so with a journal the second pays only for later steps. On the
log-odds scale, the share of a push that remains k steps later is (x′ₜ₊ₖ − xₜ₊ₖ) / (x′ₜ − xₜ), where x is the belief
in the untouched run and x′ that in the pushed run. One means that later beliefs keep the push, zero that they lose it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite, log, nan

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.loop import BeliefIntervention
from foretell.forecasters.forecaster import Context, Forecaster
from foretell.frozen import frozen
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Interval, Resampling, mean_interval, rate_interval
from foretell.number_text import number
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.thresholds import thresholds_of
from foretell.questions.trace import ForecastMade
from foretell.report.charts.timelines import paths_plot
from foretell.report.numbers import CellValue
from foretell.report.study import (
    StudyChart,
    StudyTable,
    column,
    count,
    draw_settings,
    forest_chart,
    share,
    table,
    with_cost,
    words,
)
from foretell.report.study_result import StudyResult
from foretell.request import setting
from foretell.studies.cases import EventTrace
from foretell.studies.inputs import (
    AgentStudyOptions,
    StudyProgress,
    StudyServices,
    evenly_spaced,
    gather_bounded,
    ignore_progress,
    refuse_if_all_failed,
)
from foretell.studies.trace_summary import belief_path, failure_counts, run_trial

EDGE = 0.005
"""Probabilities are clipped this far inside 0 and 1, so that a belief near certainty does not dominate all others."""
FINAL = "in the forecast"
ADVICE = (
    "Every question is run twice with the same words up to a step. There the second run's belief is overwritten, and "
    "later steps are compared on the log-odds scale: 1 means that all of the push is still there, 0 that none is left, "
    "below 0 that the model moved in the opposite direction.",
    "Mostly followed: the share of pairs in which more than half of the push is left in the forecast. A low share "
    "means that the stated belief has little influence, a high one that early mistakes persist.",
    "Intervals come from resampling whole questions. Trials that ended before a belief could be overwritten are not "
    "compared; they may be the easy ones.",
)
SHARES = (
    count("n", "pairs with a belief there"),
    share("left", "mean share of the push that is left"),
    share("mostly followed", "share of pairs with more than half of the push left"),
)
PUSHES = (
    words("target"),
    column("push", "in log-odds", 2),
    share("to", "the probability that was put in"),
    words("left later", "share left at each later belief"),
    share("left at the end"),
)


@frozen
class PushPair:
    """The same trial untouched and pushed."""

    question_id: str
    target: str
    step: int
    to: float
    untouched: EventTrace
    pushed: EventTrace


@frozen
class PushOutcome:
    """How much of one push remained later."""

    push: float
    """Size of the push in log-odds."""
    shares_left: tuple[float, ...]
    """Share of the push that remains at each later belief that both runs have, in order."""
    final: float
    """Share of the push that remains in the forecast; NaN if one of the runs failed."""


def measure_push(pair: PushPair) -> PushOutcome | None:
    """Measure how far later steps followed; None if the untouched run has no belief to compare at that step."""
    before, after = (_beliefs(trace, pair.target) for trace in (pair.untouched, pair.pushed))
    at = pair.step - 1
    push = _logit(pair.to) - _logit(before[at]) if at in before else 0.0
    if abs(push) < 1e-9:
        return None
    ends = [
        [event.p[pair.target] for event in trace if isinstance(event, ForecastMade) and pair.target in event.p][-1:]
        for trace in (pair.untouched, pair.pushed)
    ]
    return PushOutcome(
        push=push,
        shares_left=tuple((_logit(after[s]) - _logit(p)) / push for s, p in before.items() if s > at and s in after),
        final=(_logit(ends[1][0]) - _logit(ends[0][0])) / push if all(ends) else nan,
    )


def _beliefs(trace: EventTrace, target: str) -> dict[int, float]:
    return {step: p[target] for step, p in belief_path(trace).items() if target in p}


def _logit(p: float) -> float:
    inside = min(1 - EDGE, max(EDGE, p))
    return log(inside / (1 - inside))


def opposite(p: float) -> float:
    """Return a belief on the other side of one half, at a moderate distance from it."""
    return 0.85 if p < 0.5 else 0.15


async def try_pushes(
    agent: BeliefAgent,
    questions: Sequence[Question],
    context_of: Callable[[Question], Context],
    *,
    step: int,
    shown: Callable[[BeliefAgent], Forecaster] = lambda agent: agent,
    progress: StudyProgress = ignore_progress,
) -> list[tuple[EventTrace, PushPair | None]]:
    """Run every question untouched and, if possible, again with its belief pushed.

    `shown` returns an agent that is shown what was gathered for the questions.
    """

    async def pair(question: Question) -> tuple[EventTrace, PushPair | None]:
        untouched = await run_trial(shown(agent), question, context_of(question))
        target = question.targets[0].id
        beliefs = belief_path(untouched)
        # The last belief has no later step to influence, so there must be a later one.
        if step - 1 not in beliefs or max(beliefs) <= step - 1:
            return untouched, None
        to = opposite(beliefs[step - 1][target])
        pushing = replace(agent, push=BeliefIntervention(step=step, p={target: to}))
        pushed = await run_trial(shown(pushing), question, context_of(question))
        return untouched, PushPair(
            question_id=question.id, target=target, step=step, to=to, untouched=untouched, pushed=pushed
        )

    return await gather_bounded(questions, pair, progress)


class InterventionOptions(AgentStudyOptions):
    """The agent, how many questions, and where its belief is overwritten."""

    limit: int = setting(20, "Number of questions, evenly spaced.", ge=1)
    step: int = setting(2, "The step at which the belief is overwritten.", ge=1)


async def study(inputs: StudyServices, options: InterventionOptions) -> StudyResult:
    """Does a stated belief steer what follows?

    Every question is run twice; in one of the runs the belief is overwritten at a step. The agent is that of SPEC, the
    settings of a run. Both trials share every word up to that step, so the second costs only what comes after it.

      foretell study intervention run.yaml --limit 30 --budget 5
    """
    async with inputs.agent(options) as setup:
        suitable = [question for question in setup.questions if thresholds_of(question) is None]
        questions = evenly_spaced(suitable, options.limit)
        if not questions:
            raise InputError("none of the questions asks for probabilities", column="questions")
        tried = await try_pushes(
            setup.agent, questions, setup.context, step=options.step, shown=setup.shown, progress=setup.progress
        )
        cost = setup.cost
    failures = failure_counts(trace for trace, _ in tried)
    refuse_if_all_failed(setup.name, list(failures), len(tried) - failures.total())
    result = intervention_study(tried, step=options.step, resampling=options.resampling)
    return with_cost(result, cost, model=setup.name)


Shares = Sequence[tuple[str, float]]
"""Question, and the share of a push that remains."""


def intervention_study(
    tried: Sequence[tuple[EventTrace, PushPair | None]], *, step: int, resampling: Resampling = DEFAULT_RESAMPLING
) -> StudyResult:
    """Study many pushes; trials that ended before the step have no pair and are counted."""
    pairs = [(pair, measure_push(pair)) for _, pair in tried if pair is not None]
    pushes = [(pair.question_id, outcome) for pair, outcome in pairs if outcome is not None]
    longest = max((len(outcome.shares_left) for _, outcome in pushes), default=0)
    places: dict[str, Shares] = {
        f"{k + 1} belief{'s' * (k > 0)} later": [
            (question, outcome.shares_left[k]) for question, outcome in pushes if len(outcome.shares_left) > k
        ]
        for k in range(longest)
    }
    places[FINAL] = [(question, outcome.final) for question, outcome in pushes if isfinite(outcome.final)]
    ways: dict[str, Shares] = {
        name: [
            (question, outcome.final)
            for question, outcome in pushes
            if isfinite(outcome.final) and outcome.push * sign > 0
        ]
        for name, sign in (("pushed up", 1), ("pushed down", -1))
    }
    later, directions = ({name: _row(shares, resampling) for name, shares in group.items()} for group in (places, ways))
    remaining = {name: _left(shares, resampling) for name, shares in places.items()}
    courses = [[(0, 1.0), *enumerate(outcome.shares_left, start=1)] for _, outcome in pushes]
    title = "Share of each push that is left"
    followed = paths_plot(courses, title, label="beliefs later", level=0.0, unit=False)
    caption = "On the log-odds scale; in brackets intervals, questions resampled."
    early = sum(pair is None for _, pair in tried)
    notes = [f"{early} of {len(tried)} trials ended at step {step} or before, failed, or stated no belief there"]
    failures = failure_counts(trace for trace, _ in tried).most_common(3)
    return StudyResult(
        name="intervention",
        title="Does a belief influence later steps?",
        sentences=(_sentence(places[FINAL], remaining[FINAL]),),
        tables=(
            table("What is left of a push", "Where", SHARES, later, caption=caption),
            table("In the forecast, by direction", "Push", SHARES, directions),
            _every_push(pairs),
        ),
        charts=(
            forest_chart(
                "left", "Share of the push that is left", remaining, "share of the push left", decimals=2, reference=0.0
            ),
            StudyChart(name="followed", title="Push by push", chart=followed),
        ),
        notes=(*(notes if early else ()), *(f"{n} × {error}" for error, n in failures)),
        settings={"step": step, **draw_settings(resampling)},
        how_to_read=ADVICE,
    )


def _left(shares: Shares, resampling: Resampling) -> Interval | None:
    return mean_interval([share for _, share in shares], [question for question, _ in shares], resampling)


def _row(shares: Shares, resampling: Resampling) -> tuple[CellValue, ...]:
    mostly = [float(share > 0.5) for _, share in shares]
    followed = rate_interval(mostly, [question for question, _ in shares], resampling)
    return len(shares), _left(shares, resampling), followed


def _every_push(pairs: Sequence[tuple[PushPair, PushOutcome | None]]) -> StudyTable:
    """Return a table of every pair."""
    rows: list[tuple[str, tuple[CellValue, ...]]] = []
    for pair, outcome in pairs:
        later = " ".join(number(share, 2) for share in outcome.shares_left) if outcome else None
        final = outcome.final if outcome and isfinite(outcome.final) else None
        rows.append((pair.question_id, (pair.target, outcome.push if outcome else None, pair.to, later, final)))
    return table("Every push", "Question", PUSHES, rows)


def _sentence(shares: Shares, remaining: Interval | None) -> str:
    if remaining is None:
        return "No pair of trials could be compared."
    followed = sum(share > 0.5 for _, share in shares)
    return (
        f"{number(remaining.estimate, 2)} of a push is left in the forecast (interval {number(remaining.low, 2)} to "
        f"{number(remaining.high, 2)}); {followed} of {len(shares)} were mostly followed."
    )
