"""The smoke exam: a few questions before a paid run, to see whether trials come to an end, and at what price."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.forecaster import Context
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.calibration import wilson_interval
from foretell.metrics.shares import DEFAULT_DRAWS
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.trace import Failed, ModelCalled
from foretell.report.study import StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.request import setting
from foretell.studies.habits import ADVICE as HABITS
from foretell.studies.habits import (
    EventTrace,
    TracedTrial,
    failure_counts,
    group_trials,
    habit_charts,
    habit_tables,
    run_trial,
    summarise_trace,
)
from foretell.studies.inputs import (
    AgentStudyOptions,
    StudyProgress,
    StudyServices,
    evenly_spaced,
    gather_bounded,
    ignore_progress,
)


@dataclass(frozen=True, kw_only=True)
class ExamPassMark:
    """What a model must manage before money is spent on it."""

    completed: float = 0.95
    """Share of trials that end in a forecast."""
    submitted: float = 0.8
    """Share of trials in which the model itself hands the answer in; the rest live on what was salvaged."""
    unusable: float = 1.0
    """Replies per trial that had to be asked for again, at most."""


@dataclass(frozen=True, kw_only=True)
class ExamResult:
    """Whether to go on, and why not."""

    passed: bool
    reasons: tuple[str, ...]
    """What fell short; empty after a pass."""
    trials: int
    completed: float
    low: float
    high: float
    """95 % interval of the completion rate (Wilson 1927)."""
    submitted: float
    """Share of all trials that ended in an answer the model itself handed in."""
    dollars: float
    """Mean cost of a trial."""

    def __str__(self) -> str:
        """One line for people."""
        word = "passed" if self.passed else f"failed: {'; '.join(self.reasons)}"
        share = f"{self.completed:.0%} of {self.trials} trials completed ({self.low:.0%} to {self.high:.0%})"
        return f"{word}. {share}, {self.submitted:.0%} submitted, ${self.dollars:.4f} a trial"


async def run_exam_trials(
    agent: BeliefAgent,
    questions: Sequence[Question],
    context_of: Callable[[Question], Context],
    progress: StudyProgress = ignore_progress,
) -> list[EventTrace]:
    """One trial of each question."""
    if not questions:
        raise InputError("the smoke exam needs at least one question")
    return list(await gather_bounded(questions, lambda one: _exam_trial(agent, one, context_of(one)), progress))


def grade_exam(traces: Sequence[EventTrace], mark: ExamPassMark) -> ExamResult:
    """The verdict on trials that were run."""
    trials = [summarise_trace(trace) for trace in traces]
    n = len(trials)
    failed = sum(not one.how for one in trials)
    completed = (n - failed) / n
    submitted = sum(one.how == "submitted" for one in trials) / n
    unusable = sum(one.unusable for one in trials) / n
    reasons: list[str] = []
    if completed < mark.completed:
        most = failure_counts(traces).most_common(1)
        why = f", most often: {most[0][0]}" if most else ""
        reasons.append(f"{failed} of {n} trials failed{why}")
    if submitted < mark.submitted:
        reasons.append(f"only {submitted:.0%} of trials submitted an answer of their own")
    if unusable > mark.unusable:
        reasons.append(f"{unusable:.1f} replies a trial had to be asked for again")
    low, high = (float(end) for end in wilson_interval(completed, n))
    return ExamResult(
        passed=not reasons,
        reasons=tuple(reasons),
        trials=n,
        completed=completed,
        low=low,
        high=high,
        submitted=submitted,
        dollars=sum(one.dollars for one in trials) / n,
    )


async def _exam_trial(agent: BeliefAgent, question: Question, context: Context) -> EventTrace:
    """One trial's events. Bad input, such as a missing key, stops the exam: it would fail every question alike."""
    return await run_trial(agent, question, context) or [Failed(error="nothing happened")]


ADVICE = (
    "The exam passes when trials come to an end, the model itself hands its answers in, and its replies can be used. "
    "It says nothing about how good forecasts are. With few trials the intervals are wide: a pass on five questions "
    "rules out a model that breaks half the time, not one that breaks one time in ten.",
    *HABITS[:2],
)
PASSED, FAILED = "yes", "no"


EXAM_QUESTIONS = "demo"
"""The questions of an exam where none are named."""


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
        traces = await run_exam_trials(setup.agent, questions, setup.context, setup.progress)
        cost = setup.cost
    trials = [TracedTrial(question=one.id, trace=trace) for one, trace in zip(questions, traces, strict=True)]
    planned = len(setup.questions) * setup.trials if whole else None
    result = smoke_study(setup.name, trials, planned=planned, resampling=options.resampling)
    return replace(result, cost=cost)


def smoke_study(
    model: str,
    trials: Sequence[TracedTrial],
    *,
    mark: ExamPassMark | None = None,
    planned: int | None = None,
    resampling: Resampling = DEFAULT_DRAWS,
) -> StudyResult:
    """The study of an exam; `planned` trials are what the run after it would have."""
    mark = mark or ExamPassMark()
    verdict = grade_exam([one.trace for one in trials], mark)
    groups = group_trials({model: trials}, resampling)
    grids = [_marks(model, trials, mark, resampling), *habit_tables(groups)]
    if planned is not None:
        each = None if _unpriced(trials) else groups[model].mean(lambda one: one.dollars)
        grids.insert(1, _planned(planned, each))
    return StudyResult(
        name="smoke",
        title=f"Smoke exam of {model}",
        sentences=(f"{str(verdict)[0].upper()}{str(verdict)[1:]}.",),
        tables=tuple(grids),
        charts=tuple(habit_charts(groups)),
        notes=tuple(_notes(trials)),
        settings={
            "model": model,
            "draws": resampling.draws,
            "seed": resampling.seed,
        },
        how_to_read=ADVICE,
        passed=verdict.passed,
    )


def _marks(model: str, trials: Sequence[TracedTrial], mark: ExamPassMark, resampling: Resampling) -> StudyTable:
    group = group_trials({model: trials}, resampling)[model]
    rows = (
        ("trials completed", group.rate(lambda one: float(bool(one.how))), mark.completed, True),
        ("answers submitted", group.rate(lambda one: float(one.how == "submitted")), mark.submitted, True),
        ("replies asked for again, per trial", group.mean(lambda one: one.unusable), mark.unusable, False),
    )
    entries = [
        StudyRow(
            name=name,
            values=(
                len(trials),
                found,
                f"at {'least' if least else 'most'} {bound:g}",
                PASSED if found and (found.estimate >= bound if least else found.estimate <= bound) else FAILED,
            ),
        )
        for name, found, bound, least in rows
    ]
    columns = (
        StudyColumn(label="n", decimals=0),
        StudyColumn(label="found", decimals=2),
        StudyColumn(label="asked for", numeric=False),
        StudyColumn(label="passed", numeric=False),
    )
    return StudyTable(
        title="The exam",
        row_header="Mark",
        columns=columns,
        rows=tuple(entries),
        caption="Found values decide; in brackets 95 % intervals, questions resampled.",
    )


def _planned(trials: int, each: Interval | None) -> StudyTable:
    """What the run costs at the exam's mean price; nothing is said where a price is not known."""
    ends = f"${trials * each.low:.2f} to ${trials * each.high:.2f}" if each else None
    values = (trials, each, trials * each.estimate if each else None, ends)
    columns = (
        StudyColumn(label="trials", decimals=0),
        StudyColumn(label="$ per trial", decimals=4),
        StudyColumn(label="$ in all", decimals=2),
        StudyColumn(label="95 % interval", numeric=False),
    )
    entries = (StudyRow(name="planned", values=values),)
    return StudyTable(title="What the run will cost", row_header="Run", columns=columns, rows=entries)


def _unpriced(trials: Sequence[TracedTrial]) -> int:
    return sum(isinstance(event, ModelCalled) and event.dollars is None for one in trials for event in one.trace)


def _notes(trials: Sequence[TracedTrial]) -> list[str]:
    lost = [f"{n} × {why}" for why, n in failure_counts(one.trace for one in trials).most_common(5)]
    unpriced = _unpriced(trials)
    return [*lost, *([f"{unpriced} calls have no known price: dollars leave them out"] if unpriced else [])]
