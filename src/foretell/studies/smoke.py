"""The smoke exam: a few questions before a paid run, to see whether trials come to an end, and at what price."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.forecaster import Context, attempt
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.calibration import wilson_interval
from foretell.metrics.shares import DEFAULT_DRAWS
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.questions.trace import Failed, ModelCalled, TraceEvent
from foretell.report.study import StudyColumn, StudyProgress, StudyResult, StudyRow, StudyTable, ignore_progress
from foretell.studies.habits import ADVICE as HABITS
from foretell.studies.habits import (
    EventTrace,
    TracedTrial,
    TrialHabits,
    failure_counts,
    group_trials,
    habit_charts,
    habit_tables,
    trial_habits,
)
from foretell.studies.inputs import gather_bounded


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
    """Whether to go on, why not, and what it will cost."""

    passed: bool
    reasons: tuple[str, ...]
    """What fell short; empty after a pass."""
    completed: float
    low: float
    high: float
    """95 % interval of the completion rate (Wilson 1927)."""
    habits: TrialHabits
    dollars: float
    """Spent on the exam."""

    def cost_of(self, questions: int, trials: int = 1) -> float:
        """Dollars that a run of this size will take at the exam's mean price."""
        return self.habits.dollars * questions * trials

    def __str__(self) -> str:
        """One line for people."""
        word = "passed" if self.passed else f"failed: {'; '.join(self.reasons)}"
        share = f"{self.completed:.0%} of {self.habits.trials} trials completed ({self.low:.0%} to {self.high:.0%})"
        return f"{word}. {share}, {self.habits.submit_rate:.0%} submitted, ${self.habits.dollars:.4f} a trial"


async def smoke_exam(
    agent: BeliefAgent,
    questions: Sequence[Question],
    context_of: Callable[[Question], Context],
    mark: ExamPassMark | None = None,
) -> ExamResult:
    """Run one trial of each question and judge what happened."""
    return grade_exam(await run_exam_trials(agent, questions, context_of), mark or ExamPassMark())


async def run_exam_trials(
    agent: BeliefAgent,
    questions: Sequence[Question],
    context_of: Callable[[Question], Context],
    progress: StudyProgress = ignore_progress,
) -> list[EventTrace]:
    """One trial of each question."""
    if not questions:
        raise InputError("the smoke exam needs at least one question")
    return list(await gather_bounded(questions, lambda one: _trace(agent, one, context_of(one)), progress))


def grade_exam(traces: Sequence[EventTrace], mark: ExamPassMark) -> ExamResult:
    """The verdict on trials that were run."""
    seen = trial_habits(traces)
    done = seen.trials - seen.failed
    completed = done / seen.trials
    low, high = (float(end) for end in wilson_interval(completed, seen.trials))
    return ExamResult(
        passed=not (reasons := _shortfalls(seen, completed, mark, traces)),
        reasons=reasons,
        completed=completed,
        low=low,
        high=high,
        habits=seen,
        dollars=seen.dollars * seen.trials,
    )


def _shortfalls(
    seen: TrialHabits, completed: float, mark: ExamPassMark, traces: Sequence[EventTrace]
) -> tuple[str, ...]:
    found: list[str] = []
    if completed < mark.completed:
        most = failure_counts(traces).most_common(1)
        why = f", most often: {most[0][0]}" if most else ""
        found.append(f"{seen.failed} of {seen.trials} trials failed{why}")
    if seen.submit_rate < mark.submitted:
        found.append(f"only {seen.submit_rate:.0%} of trials submitted an answer of their own")
    if seen.unusable > mark.unusable:
        found.append(f"{seen.unusable:.1f} replies a trial had to be asked for again")
    return tuple(found)


async def _trace(agent: BeliefAgent, question: Question, context: Context) -> list[TraceEvent]:
    """One trial's events. Bad input, such as a missing key, stops the exam: it would fail every question alike."""
    events: list[TraceEvent] = []
    await attempt(agent, question, replace(context, emit=events.append))
    if not events:
        events.append(Failed(error="nothing happened"))
    return events


# The smoke exam as tables: every mark beside what is asked for, what trials did, and what a run will cost.

ADVICE = (
    "The exam passes when trials come to an end, the model itself hands its answers in, and its replies can be used. "
    "It says nothing about how good forecasts are. With few trials the intervals are wide: a pass on five questions "
    "rules out a model that breaks half the time, not one that breaks one time in ten.",
    *HABITS[:2],
)
PASSED, FAILED = "yes", "no"


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
        finding=f"{str(verdict)[0].upper()}{str(verdict)[1:]}.",
        grids=tuple(grids),
        pictures=tuple(habit_charts(groups)),
        notes=tuple(_notes(trials)),
        settings={
            "model": model,
            "passed": verdict.passed,
            "dollars": round(verdict.dollars, 6),
            "draws": resampling.draws,
            "seed": resampling.seed,
        },
        advice=ADVICE,
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
        head="Mark",
        columns=columns,
        entries=tuple(entries),
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
    return StudyTable(title="What the run will cost", head="Run", columns=columns, entries=entries)


def _unpriced(trials: Sequence[TracedTrial]) -> int:
    return sum(isinstance(event, ModelCalled) and event.dollars is None for one in trials for event in one.trace)


def _notes(trials: Sequence[TracedTrial]) -> list[str]:
    lost = [f"{n} × {why}" for why, n in failure_counts(one.trace for one in trials).most_common(5)]
    unpriced = _unpriced(trials)
    return [*lost, *([f"{unpriced} calls have no known price: dollars leave them out"] if unpriced else [])]
