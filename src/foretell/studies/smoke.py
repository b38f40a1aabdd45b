"""Study: the smoke exam, a few questions before a paid run, to see whether trials come to an end, and at what price."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.forecaster import Context
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.shares import DEFAULT_DRAWS, share_interval
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.trace import Failed, ModelCalled
from foretell.report.study import CellValue, StudyResult, StudyTable, column, count, draw_settings, table, words
from foretell.request import setting
from foretell.studies.habits import ADVICE as HABITS
from foretell.studies.habits import (
    TracedTrial,
    TrialGroup,
    failure_counts,
    group_trials,
    habit_charts,
    habit_tables,
    run_trial,
)
from foretell.studies.inputs import (
    AgentStudyOptions,
    StudyProgress,
    StudyServices,
    evenly_spaced,
    gather_bounded,
    ignore_progress,
)

COMPLETED = 0.95
"""Share of trials that must end in a forecast."""
SUBMITTED = 0.8
"""Share of trials in which the model itself must hand the answer in; the rest live on what was salvaged."""
UNUSABLE = 1.0
"""Replies per trial that had to be asked for again, at most."""
EXAM_QUESTIONS = "demo"
"""The questions of an exam where none are named."""
ADVICE = (
    "The exam passes when trials come to an end, the model itself hands its answers in, and its replies can be used. "
    "It says nothing about how good forecasts are. With few trials the intervals are wide: a pass on five questions "
    "rules out a model that breaks half the time, not one that breaks one time in ten.",
    *HABITS[:2],
)
MARKS = (count("n"), column("found", decimals=2), words("asked for"), words("passed"))
PLANNED = (
    count("trials"),
    column("$ per trial", decimals=4),
    column("$ in all", decimals=2),
    words("95 % interval"),
)


class SmokeOptions(AgentStudyOptions):
    """The agent that is examined, and on how many questions."""

    limit: int = setting(10, "Questions, at equal distances.", ge=1)


async def study(inputs: StudyServices, options: SmokeOptions) -> StudyResult:
    """Is a model fit for a big run, and what will that cost?

    One trial on a few questions: do trials end, in answers, and at what price? With SPEC, the file of the run to come,
    it also says what all of that will cost. A model that fails the exam ends the command with exit code 1.

      foretell study smoke run.yaml

      foretell study smoke --model openai:NAME
    """
    whole = options.spec is not None and not options.questions
    if options.spec is None and not options.questions:
        options = options.model_copy(update={"questions": EXAM_QUESTIONS})
    async with inputs.agent(options) as setup:
        questions = evenly_spaced(setup.questions, options.limit)
        trials = await run_exam_trials(setup.agent, questions, setup.context, setup.progress)
        cost = setup.cost
    planned = len(setup.questions) * setup.trials if whole else None
    return replace(smoke_study(setup.name, trials, planned=planned, resampling=options.resampling), cost=cost)


async def run_exam_trials(
    agent: BeliefAgent,
    questions: Sequence[Question],
    context_of: Callable[[Question], Context],
    progress: StudyProgress = ignore_progress,
) -> list[TracedTrial]:
    """One trial of each question. Bad input, such as a missing key, stops the exam: it would fail all of them alike."""
    if not questions:
        raise InputError("the smoke exam needs at least one question")

    async def trial(question: Question) -> TracedTrial:
        trace = await run_trial(agent, question, context_of(question))
        return TracedTrial(question=question.id, trace=trace or [Failed(error="nothing happened")])

    return await gather_bounded(questions, trial, progress)


def smoke_study(
    model: str, trials: Sequence[TracedTrial], *, planned: int | None = None, resampling: Resampling = DEFAULT_DRAWS
) -> StudyResult:
    """The study of an exam; `planned` trials are what the run after it would have."""
    groups = group_trials({model: trials}, resampling)
    reasons = _shortcomings(groups[model], trials)
    unpriced = sum(isinstance(event, ModelCalled) and event.dollars is None for one in trials for event in one.trace)
    tables = [_marks(groups[model]), *habit_tables(groups)]
    if planned is not None:
        # Nothing is said of the price of the run where that of a call is not known.
        tables.insert(1, _planned(planned, None if unpriced else groups[model].mean(lambda one: one.dollars)))
    notes = [f"{n} × {why}" for why, n in failure_counts(one.trace for one in trials).most_common(5)]
    notes += [f"{unpriced} calls have no known price: dollars leave them out"] if unpriced else []
    return StudyResult(
        name="smoke",
        title=f"Smoke exam of {model}",
        sentences=(_sentence(groups[model], reasons),),
        tables=tuple(tables),
        charts=tuple(habit_charts(groups)),
        notes=tuple(notes),
        settings={"model": model, **draw_settings(resampling)},
        how_to_read=ADVICE,
        passed=not reasons,
    )


def _shortcomings(group: TrialGroup, trials: Sequence[TracedTrial]) -> list[str]:
    """What keeps the model from passing."""
    n, failed = len(trials), sum(not one.how for one in group.summaries)
    submitted = sum(one.how == "submitted" for one in group.summaries) / n
    unusable = sum(one.unusable for one in group.summaries) / n
    reasons: list[str] = []
    if (n - failed) / n < COMPLETED:
        most = failure_counts(one.trace for one in trials).most_common(1)
        reasons.append(f"{failed} of {n} trials failed{f', most often: {most[0][0]}' if most else ''}")
    if submitted < SUBMITTED:
        reasons.append(f"only {submitted:.0%} of trials submitted an answer of their own")
    if unusable > UNUSABLE:
        reasons.append(f"{unusable:.1f} replies a trial had to be asked for again")
    return reasons


def _sentence(group: TrialGroup, reasons: Sequence[str]) -> str:
    trials = group.summaries
    completed = share_interval(sum(bool(one.how) for one in trials), len(trials))
    assert completed is not None
    verdict = f"Failed: {'; '.join(reasons)}" if reasons else "Passed"
    return (
        f"{verdict}. {completed.estimate:.0%} of {len(trials)} trials completed ({completed.low:.0%} to "
        f"{completed.high:.0%}), {sum(one.how == 'submitted' for one in trials) / len(trials):.0%} submitted, "
        f"${sum(one.dollars for one in trials) / len(trials):.4f} a trial."
    )


def _marks(group: TrialGroup) -> StudyTable:
    marks = (
        ("trials completed", group.rate(lambda one: float(bool(one.how))), COMPLETED, True),
        ("answers submitted", group.rate(lambda one: float(one.how == "submitted")), SUBMITTED, True),
        ("replies asked for again, per trial", group.mean(lambda one: one.unusable), UNUSABLE, False),
    )
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, found, bound, least in marks:
        passed = found and (found.estimate >= bound if least else found.estimate <= bound)
        asked = f"at {'least' if least else 'most'} {bound:g}"
        rows[name] = (len(group.trials), found, asked, "yes" if passed else "no")
    caption = "Found values decide; in brackets 95 % intervals, questions resampled."
    return table("The exam", "Mark", MARKS, rows, caption=caption)


def _planned(trials: int, each: Interval | None) -> StudyTable:
    """What the run costs at the exam's mean price."""
    row: tuple[CellValue, ...] = (trials, None, None, None)
    if each is not None:
        row = (trials, each, trials * each.estimate, f"${trials * each.low:.2f} to ${trials * each.high:.2f}")
    return table("What the run will cost", "Run", PLANNED, {"planned": row})
