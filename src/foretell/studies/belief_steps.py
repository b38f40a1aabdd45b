"""Section of the study of trajectories: the Brier score after each step of the agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, mean_interval
from foretell.number_text import number
from foretell.questions.errors import InputError
from foretell.questions.trace import BeliefRevised, ForecastMade, ToolUsed
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.svg import Chart
from foretell.report.numbers import CellValue
from foretell.report.study import StudyChart, StudyTable, column, draw_settings, table
from foretell.report.study_result import StudyResult
from foretell.scoring.baselines import ALWAYS_HALF
from foretell.studies.cases import TracedTrial
from foretell.studies.scores import step_scores

MOST_STEPS = 30
"""Maximum number of steps that are shown; later answers count in the last one."""
MOST_QUESTIONS = 4
"""Number of questions that get a chart of their own: those on which the answers differ most."""
TargetKey = tuple[str, str, str]
"""Question id, the day it was asked, and target."""
NOTES = (
    "The Brier score is that of the mean of a question's trials after each step. A trial that has stated nothing yet "
    "counts as 0.5, or as equal chances of options that exclude each other; one that has ended keeps its answer in all "
    "later steps. Failed trials are left out.",
)


@dataclass(kw_only=True)
class TargetSteps:
    """The probabilities of one target after each step, one row for each trial."""

    text: str
    cluster: str
    outcome: float
    trials: list[Floats] = field(default_factory=list[Floats])

    @property
    def mean(self) -> Floats:
        """The mean over the trials after each step."""
        return np.mean(self.trials, axis=0)

    @property
    def loss(self) -> Floats:
        """The squared error of the mean after each step."""
        return (self.mean - self.outcome) ** 2


def last_step(trial: TracedTrial) -> int:
    """Return the step at which a trial ended."""
    return max((event.step for event in trial.trace if isinstance(event, ToolUsed | BeliefRevised)), default=0)


def carried_forward(trial: TracedTrial, target: str, steps: int) -> Floats | None:
    """Return the probability of a target after each step 0 … `steps`; None if the trial has no answer.

    Until a belief is stated, all options are equally likely; the answer stays in all later steps.
    """
    answers = [event.p for event in trial.trace if isinstance(event, ForecastMade)]
    if not answers or target not in answers[-1]:
        return None
    exclusive = trial.asked is not None and trial.asked.exclusivity == "exactly one"
    p = np.full(steps + 1, 1 / len(answers[-1]) if exclusive else 0.5)
    for event in trial.trace:
        if isinstance(event, BeliefRevised) and target in event.p:
            p[min(event.step, steps) :] = event.p[target]
    p[min(last_step(trial), steps) :] = answers[-1][target]
    return p


def target_steps(trials: Sequence[TracedTrial], steps: int) -> dict[TargetKey, TargetSteps]:
    """Return the course of every target that is decided."""
    courses: dict[TargetKey, TargetSteps] = {}
    for trial in trials:
        for target, outcome in trial.outcomes.items():
            p = carried_forward(trial, target, steps)
            if p is not None and trial.asked is not None:
                asked = trial.asked
                text = asked.text if len(asked.targets) == 1 else f"{target}: {asked.text}"
                key = (asked.id, asked.due.date().isoformat(), target)
                course = courses.setdefault(key, TargetSteps(text=text, cluster=asked.cluster, outcome=outcome))
                course.trials.append(p)
    return courses


def steps_section(by_run: Mapping[str, Sequence[TracedTrial]], resampling: Resampling) -> StudyResult:
    """Score the mean of the trials after each step of the agent.

    Raises InputError if nothing is decided yet, or no trial had a step.
    """
    steps = min(MOST_STEPS, max(last_step(trial) for trials in by_run.values() for trial in trials))
    runs = {name: target_steps(trials, steps) for name, trials in by_run.items()}
    runs = {name: courses for name, courses in runs.items() if courses}
    if not runs:
        raise InputError("none of the questions has an outcome", hint="foretell score RUN looks for them")
    if not steps:
        raise InputError("no trial took a step", hint="give runs of an agent")
    scores = {name: _by_step(courses, resampling) for name, courses in runs.items()}
    differing, most = _differing(runs), max(map(len, runs.values()))
    return StudyResult(
        name="trajectories",
        title="Brier score by step of the agent",
        sentences=tuple(_sentence(name, line) for name, line in scores.items()),
        tables=(_steps_table(scores), _differing_table(runs, differing)),
        charts=(
            StudyChart(name="steps", title="Brier score by step", chart=_chart(scores, most)),
            *(
                StudyChart(name=f"steps-{place}", title=_text(runs, key), chart=_chart(_alone(runs, key), 1))
                for place, key in enumerate(differing, start=1)
            ),
        ),
        notes=NOTES,
        settings=draw_settings(resampling),
    )


def _by_step(courses: Mapping[TargetKey, TargetSteps], how: Resampling) -> tuple[Interval, ...]:
    losses, clusters = np.array([course.loss for course in courses.values()]), [c.cluster for c in courses.values()]
    means = (mean_interval(losses[:, step].tolist(), clusters, how) for step in range(losses.shape[1]))
    return tuple(mean for mean in means if mean is not None)


def _alone(runs: Mapping[str, Mapping[TargetKey, TargetSteps]], key: TargetKey) -> dict[str, tuple[Interval, ...]]:
    """Return the losses of one target by run and step, without intervals."""
    return {
        name: tuple(_number(loss) for loss in courses[key].loss.tolist())
        for name, courses in runs.items()
        if key in courses
    }


def _number(value: float) -> Interval:
    return Interval(estimate=value, low=nan, high=nan, se=nan, n_clusters=1, draws=0)


def _chart(scores: Mapping[str, tuple[Interval, ...]], targets: int) -> Chart:
    """Plot the scores by step, with the score of 0.5 as a line."""
    size = len(next(iter(scores.values())))
    groups, half = [str(step) for step in range(size)], (_number(0.25),) * size
    steps = step_scores("step", groups, {**scores, ALWAYS_HALF: half}, [targets] * size)
    return score_by_group(steps, label="Brier score", decimals=3)


def _differing(runs: Mapping[str, Mapping[TargetKey, TargetSteps]]) -> list[TargetKey]:
    """Return the targets on which the answers of the runs differ most; with one run, those of its trials."""
    spread: dict[TargetKey, float] = {}
    for key in dict.fromkeys(key for courses in runs.values() for key in courses):
        shared = [courses[key] for courses in runs.values() if key in courses]
        answers = [course.mean[-1] for course in shared] if len(runs) > 1 else [p[-1] for p in shared[0].trials]
        spread[key] = float(max(answers) - min(answers))
    return sorted((key for key in spread if spread[key] > 0), key=lambda key: -spread[key])[:MOST_QUESTIONS]


def _steps_table(scores: Mapping[str, tuple[Interval, ...]]) -> StudyTable:
    columns = [column(name, "Brier score of the mean of a question's trials", 3) for name in scores]
    size = len(next(iter(scores.values())))
    rows: dict[str, list[CellValue]] = {str(step): [line[step] for line in scores.values()] for step in range(size)}
    return table("Brier score by step", "Step", columns, rows, caption="Step 0 is before any research.")


def _differing_table(runs: Mapping[str, Mapping[TargetKey, TargetSteps]], keys: Sequence[TargetKey]) -> StudyTable:
    columns = [column("outcome", decimals=0)]
    for name in runs:
        columns += [column(f"{name}: first", "loss after step 0", 3), column(f"{name}: last", "loss of the answer", 3)]
    rows: list[tuple[str, list[CellValue]]] = []
    for key in keys:
        shared = [courses.get(key) for courses in runs.values()]
        known = next(course for course in shared if course is not None)
        losses = [course.loss if course is not None else None for course in shared]
        ends = [None if loss is None else float(loss[place]) for loss in losses for place in (0, -1)]
        rows.append((known.text, [known.outcome, *ends]))
    between = "runs" if len(runs) > 1 else "trials"
    return table(f"Questions on which {between} differ most", "Question", columns, rows)


def _text(runs: Mapping[str, Mapping[TargetKey, TargetSteps]], key: TargetKey) -> str:
    return next(courses[key].text for courses in runs.values() if key in courses)


def _sentence(name: str, scores: Sequence[Interval]) -> str:
    first, last = scores[0].estimate, scores[-1].estimate
    return f"The Brier score of {name} is {number(first, 3)} before research and {number(last, 3)} at the end."
