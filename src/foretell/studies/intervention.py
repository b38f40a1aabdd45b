"""Does a belief steer what follows? Overwrite it at one step, leave all else as it was, and watch later steps.

Two runs of the same trial share every word up to the step: with a journal the second pays only for what comes after.
On the log-odds scale, the share of a push that is still there k steps later is (x′ₜ₊ₖ − xₜ₊ₖ) / (x′ₜ − xₜ), x with
and x′ without the dash being the untouched and the pushed run. One: the belief is carried on; zero: it is ignored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log, nan

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.answer_format import thresholds_of
from foretell.forecasters.agent.loop import BeliefIntervention
from foretell.forecasters.forecaster import Context
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.shares import DEFAULT_DRAWS, mean_interval, rate_interval
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.trace import ForecastMade
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.charts.timelines import paths_plot
from foretell.report.numbers import number
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.request import setting
from foretell.studies.habits import EventTrace, belief_path, failure_counts, run_trial
from foretell.studies.inputs import (
    AgentStudyOptions,
    StudyProgress,
    StudyServices,
    evenly_spaced,
    gather_bounded,
    ignore_progress,
    refuse_if_all_failed,
    unpriced_note,
)

EDGE = 0.005
"""Log-odds are taken this far inside 0 and 1, so that a belief near certainty does not swallow all others."""


@dataclass(frozen=True, kw_only=True)
class PushPair:
    """The same trial untouched and pushed."""

    question_id: str
    target: str
    step: int
    to: float
    untouched: EventTrace
    pushed: EventTrace


@dataclass(frozen=True, kw_only=True)
class PushOutcome:
    """What became of one push."""

    push: float
    """Its size in log-odds."""
    shares_left: tuple[float, ...]
    """Share that is left at each later belief both runs have, in order."""
    final: float
    """Share that is left in the forecast; NaN where one of the runs failed."""


def measure_push(pair: PushPair) -> PushOutcome | None:
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
    shares_left = tuple((_logit(b) - _logit(a)) / push for a, b in later)
    ends = _forecast(pair.untouched, pair.target), _forecast(pair.pushed, pair.target)
    final = nan if None in ends else (_logit(ends[1] or 0.0) - _logit(ends[0] or 0.0)) / push
    return PushOutcome(push=push, shares_left=shares_left, final=final)


def opposite(p: float) -> float:
    """A push across one half: far enough to be felt, not so far that it is absurd."""
    return 0.85 if p < 0.5 else 0.15


async def try_pushes(
    agent: BeliefAgent,
    questions: Iterable[Question],
    context_of: Callable[[Question], Context],
    *,
    step: int = 2,
    to: Callable[[float], float] = opposite,
    progress: StudyProgress = ignore_progress,
) -> list[tuple[EventTrace, PushPair | None]]:
    """Every question untouched, and beside it the pair where it could be pushed."""
    return await gather_bounded(list(questions), lambda one: _pair(agent, one, context_of, step, to), progress)


async def _pair(
    agent: BeliefAgent,
    question: Question,
    context_of: Callable[[Question], Context],
    step: int,
    to: Callable[[float], float],
) -> tuple[EventTrace, PushPair | None]:
    untouched = await run_trial(agent, question, context_of(question))
    held: Mapping[int, Mapping[str, float]] = {point.step: point.p for point in belief_path(untouched)}
    # A belief that came with the answer steers nothing: there must be a later one.
    if step - 1 not in held or max(held) <= step - 1:
        return untouched, None
    target = question.targets[0].id
    goal = to(held[step - 1][target])
    pushed = await run_trial(
        replace(agent, push=BeliefIntervention(step=step, p={target: goal})), question, context_of(question)
    )
    pair = PushPair(question_id=question.id, target=target, step=step, to=goal, untouched=untouched, pushed=pushed)
    return untouched, pair


def _forecast(trace: EventTrace, target: str) -> float | None:
    made = [event for event in trace if isinstance(event, ForecastMade)]
    return made[-1].p.get(target) if made else None


def _logit(p: float) -> float:
    kept = min(1 - EDGE, max(EDGE, p))
    return log(kept / (1 - kept))


FINAL = "in the forecast"
ADVICE = (
    "Every question is run twice with the same words up to a step. There the second run's belief is overwritten, and "
    "what follows is compared on the log-odds scale: 1 means that all of the push is still there, 0 that it is "
    "forgotten, below 0 that the model went the other way.",
    "Mostly followed: the share of pairs in which more than half of the push is left in the forecast. A belief that "
    "steers nothing is decoration; one that is followed blindly makes early mistakes last.",
    "Intervals come from resampling whole questions. Trials that ended before a belief could be overwritten are not "
    "compared; they may be the easy ones.",
)
PushOutcomes = Sequence[tuple[str, PushOutcome]]


class InterventionOptions(AgentStudyOptions):
    """The agent, how many questions, and where its belief is overwritten."""

    limit: int = setting(20, "Questions, at equal distances.", ge=1)
    step: int = setting(2, "Overwrite the belief it states there.", ge=1)


async def study(inputs: StudyServices, options: InterventionOptions) -> StudyResult:
    """Does a stated belief steer what follows?

    Every question is run twice; in one run the belief is overwritten at a step. The agent is that of SPEC, the file of
    a run, or the usual one with --questions and --model. Both trials share every word up to the step, so that the
    second costs only what comes after.

      foretell study intervention run.yaml --limit 30 --budget 5
    """
    async with inputs.agent(options) as setup:
        suitable = [one for one in setup.questions if thresholds_of(one) is None]
        questions = evenly_spaced(suitable, options.limit)
        if not questions:
            raise InputError("none of the questions asks for probabilities", column="questions")
        tried = await try_pushes(setup.agent, questions, setup.context, step=options.step, progress=setup.progress)
        cost = setup.cost
    failures = failure_counts(trace for trace, _ in tried)
    if failures.total() == len(tried):
        refuse_if_all_failed(setup.name, list(failures), 0)
    result = intervention_study(tried, step=options.step, resampling=options.resampling)
    settings = {"model": setup.name, **result.settings}
    return replace(result, settings=settings, notes=(*result.notes, *unpriced_note(cost)), cost=cost)


def intervention_study(
    tried: Sequence[tuple[EventTrace, PushPair | None]], *, step: int, resampling: Resampling = DEFAULT_DRAWS
) -> StudyResult:
    """The study of many pushes; trials that ended before the step have no pair and are counted."""
    pairs = [pair for _, pair in tried if pair is not None]
    found = [(pair.question_id, one) for pair in pairs if (one := measure_push(pair)) is not None]
    return StudyResult(
        name="intervention",
        title="Does a belief steer what follows?",
        sentences=(_sentence(found, resampling),),
        tables=(_later(found, resampling), _directions(found, resampling), _pushes(pairs)),
        charts=tuple(_charts(found, resampling)),
        notes=tuple(_notes(tried, step)),
        settings={"step": step, "draws": resampling.draws, "seed": resampling.seed},
        how_to_read=ADVICE,
    )


def _places(found: PushOutcomes) -> list[tuple[str, list[tuple[str, float]]]]:
    """What is left, by how many beliefs later, and in the forecast."""
    longest = max((len(one.shares_left) for _, one in found), default=0)
    later = [
        (
            f"{k + 1} belief{'s' * (k > 0)} later",
            [(q, one.shares_left[k]) for q, one in found if len(one.shares_left) > k],
        )
        for k in range(longest)
    ]
    return [*later, (FINAL, [(q, one.final) for q, one in found if isfinite(one.final)])]


def _left(shares: Sequence[tuple[str, float]], resampling: Resampling) -> Interval | None:
    return mean_interval([share for _, share in shares], [question for question, _ in shares], resampling)


def _followed(shares: Sequence[tuple[str, float]], resampling: Resampling) -> Interval | None:
    return rate_interval([float(share > 0.5) for _, share in shares], [question for question, _ in shares], resampling)


def _row(shares: Sequence[tuple[str, float]], resampling: Resampling) -> tuple[CellValue, ...]:
    return len(shares), _left(shares, resampling), _followed(shares, resampling)


COLUMNS = (
    StudyColumn(label="n", decimals=0, tip="pairs that got so far"),
    StudyColumn(label="left", decimals=2, tip="mean share of the push that is left"),
    StudyColumn(label="mostly followed", decimals=2, tip="share of pairs with more than half of the push left"),
)


def _later(found: PushOutcomes, resampling: Resampling) -> StudyTable:
    return StudyTable(
        title="What is left of a push",
        row_header="Where",
        columns=COLUMNS,
        rows=tuple(StudyRow(name=name, values=_row(shares, resampling)) for name, shares in _places(found)),
        caption="On the log-odds scale; in brackets 95 % intervals, questions resampled.",
    )


def _directions(found: PushOutcomes, resampling: Resampling) -> StudyTable:
    ways = (("pushed up", [x for x in found if x[1].push > 0]), ("pushed down", [x for x in found if x[1].push < 0]))
    entries = tuple(
        StudyRow(name=name, values=_row([(q, one.final) for q, one in part if isfinite(one.final)], resampling))
        for name, part in ways
    )
    return StudyTable(title="In the forecast, by direction", row_header="Push", columns=COLUMNS, rows=entries)


def _pushes(pairs: Sequence[PushPair]) -> StudyTable:
    """Every pair, so that odd ones can be looked up."""
    entries: list[StudyRow] = []
    for pair in pairs:
        one = measure_push(pair)
        kept: CellValue = " ".join(number(share, 2) for share in one.shares_left) if one else None
        final: CellValue = one.final if one and isfinite(one.final) else None
        values: tuple[CellValue, ...] = (pair.target, one.push if one else None, pair.to, kept, final)
        entries.append(StudyRow(name=pair.question_id, values=values))
    columns = (
        StudyColumn(label="target", numeric=False),
        StudyColumn(label="push", decimals=2, tip="in log-odds"),
        StudyColumn(label="to", decimals=2, tip="the probability that was put in"),
        StudyColumn(label="left later", numeric=False, tip="share left at each later belief"),
        StudyColumn(label="left at the end", decimals=2),
    )
    return StudyTable(title="Every push", row_header="Question", columns=columns, rows=tuple(entries))


def _charts(found: PushOutcomes, resampling: Resampling) -> list[StudyChart]:
    rows = [
        ForestRow(name=name, interval=left)
        for name, shares in _places(found)
        if (left := _left(shares, resampling)) is not None
    ]
    courses = [[(0, 1.0), *((k + 1, share) for k, share in enumerate(one.shares_left))] for _, one in found]
    return [
        StudyChart(
            name="left",
            title="Share of the push that is left",
            chart=forest_plot(rows, label="share of the push left", decimals=2, reference=0.0),
        ),
        StudyChart(
            name="followed",
            title="Push by push",
            chart=paths_plot(courses, "Share of each push that is left", label="beliefs later", level=0.0, unit=False),
        ),
    ]


def _sentence(found: PushOutcomes, resampling: Resampling) -> str:
    shares = [(question, one.final) for question, one in found if isfinite(one.final)]
    left = _left(shares, resampling)
    if left is None:
        return "No pair of trials could be compared."
    ends = f"95 % interval {number(left.low, 2)} to {number(left.high, 2)}"
    followed = sum(share > 0.5 for _, share in shares)
    told = f"{number(left.estimate, 2)} of a push is left in the forecast ({ends})"
    return f"{told}; {followed} of {len(shares)} were mostly followed."


def _notes(tried: Sequence[tuple[EventTrace, PushPair | None]], step: int) -> list[str]:
    early = sum(pair is None for _, pair in tried)
    told = f"{early} of {len(tried)} trials ended at step {step} or before, failed, or stated no belief there"
    why = failure_counts(trace for trace, _ in tried).most_common(3)
    return [*([told] if early else []), *(f"{n} × {error}" for error, n in why)]
