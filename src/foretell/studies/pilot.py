"""A pilot: a few questions of a run, to check whether trials end with a forecast, and at what cost."""

from collections.abc import Sequence

from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Interval, Resampling, share_interval
from foretell.number_text import dollars, percent
from foretell.questions.errors import InputError
from foretell.questions.trace import ModelCalled
from foretell.report.numbers import CellValue
from foretell.report.study import StudyTable, column, count, draw_settings, table, words
from foretell.report.study_result import StudyResult
from foretell.studies.cases import TracedTrial
from foretell.studies.trace_summary import failure_counts
from foretell.studies.trajectories import (
    ADVICE,
    TrialGroup,
    group_trials,
    trajectory_charts,
    trajectory_tables,
)

COMPLETED = 0.95
"""Share of trials that must end in a forecast."""
SUBMITTED = 0.8
"""Share of trials in which the model itself must submit; in the others, its last belief is used."""
MOST_UNUSABLE = 1.0
"""Maximum number of replies per trial that had to be asked for again."""
PILOT_ADVICE = (
    "The pilot passes if trials end with a forecast, the model submits its answers, and its replies can be used. "
    "It says nothing about how good forecasts are. With few trials the intervals are wide: a pass on five questions "
    "rules out a model that fails half the time, not one that fails one time in ten.",
    *ADVICE[:2],
)
SUBMISSIONS = "answers submitted"
MARKS = (count("n"), column("found", decimals=2), words("asked for"), words("passed"))
PLANNED = (
    count("trials"),
    column("$ per trial", decimals=4),
    column("$ in all", decimals=2),
    words("95 % interval"),
)


def judge_pilot(
    model: str,
    trials: Sequence[TracedTrial],
    *,
    planned: int | None = None,
    submits: bool = True,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> StudyResult:
    """Return whether a model is fit for a run of `planned` trials and what it will cost, judged by a few of its trials.

    `submits` says whether trials should end with an answer that the model submits. Raises InputError without trials.
    """
    if not trials:
        raise InputError("a pilot needs at least one question", column="--pilot")
    groups = group_trials({model: trials}, resampling)
    reasons = _shortcomings(groups[model], trials, submits=submits)
    unpriced = sum(
        isinstance(event, ModelCalled) and event.dollars is None for trial in trials for event in trial.trace
    )
    # Without the price of every call, the cost of the run cannot be estimated.
    each = None if unpriced else groups[model].mean(lambda summary: summary.dollars)
    cost = [] if planned is None else [_planned(planned, each)]
    tables = [_marks(groups[model], submits=submits), *cost, *trajectory_tables(groups)]
    notes = [f"{n} × {why}" for why, n in failure_counts(trial.trace for trial in trials).most_common(5)]
    notes += [f"{unpriced} calls have no known price and are not included in the dollars"] if unpriced else []
    return StudyResult(
        name="pilot",
        title=f"Pilot of {model}",
        sentences=(_verdict(groups[model], reasons),),
        tables=tuple(tables),
        charts=tuple(trajectory_charts(groups)),
        notes=tuple(notes),
        settings={"model": model, **draw_settings(resampling)},
        how_to_read=PILOT_ADVICE,
        passed=not reasons,
    )


def _shortcomings(group: TrialGroup, trials: Sequence[TracedTrial], *, submits: bool) -> list[str]:
    """Return the reasons why the model does not pass."""
    n, failed = len(trials), sum(not summary.how for summary in group.summaries)
    submitted = sum(summary.how == "submitted" for summary in group.summaries) / n
    unusable = sum(summary.unusable for summary in group.summaries) / n
    reasons: list[str] = []
    if (n - failed) / n < COMPLETED:
        most = failure_counts(trial.trace for trial in trials).most_common(1)
        reasons.append(f"{failed} of {n} trials failed{f', most often: {most[0][0]}' if most else ''}")
    if submits and submitted < SUBMITTED:
        reasons.append(f"only {percent(submitted)} of trials submitted an answer of their own")
    if unusable > MOST_UNUSABLE:
        reasons.append(f"{unusable:.1f} replies a trial had to be asked for again")
    return reasons


def _verdict(group: TrialGroup, reasons: Sequence[str]) -> str:
    trials = group.summaries
    completed = share_interval(sum(bool(trial.how) for trial in trials), len(trials))
    assert completed is not None
    verdict = f"Failed: {'; '.join(reasons)}" if reasons else "Passed"
    submitted = percent(sum(trial.how == "submitted" for trial in trials) / len(trials))
    return (
        f"{verdict}. {percent(completed.estimate)} of {len(trials)} trials completed ({percent(completed.low)} to "
        f"{percent(completed.high)}), {submitted} submitted, "
        f"{dollars(sum(trial.dollars for trial in trials) / len(trials))} a trial."
    )


def _marks(group: TrialGroup, *, submits: bool) -> StudyTable:
    marks = (
        ("trials completed", group.rate(lambda summary: float(bool(summary.how))), COMPLETED, True),
        (SUBMISSIONS, group.rate(lambda summary: float(summary.how == "submitted")), SUBMITTED, True),
        ("replies asked for again, per trial", group.mean(lambda summary: summary.unusable), MOST_UNUSABLE, False),
    )
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, interval, bound, least in marks:
        if name == SUBMISSIONS and not submits:
            continue
        passed = interval and (interval.estimate >= bound if least else interval.estimate <= bound)
        required = f"at {'least' if least else 'most'} {bound:g}"
        rows[name] = (len(group.trials), interval, required, "yes" if passed else "no")
    caption = "Found values decide; in brackets 95 % intervals, questions resampled."
    return table("The pilot", "Mark", MARKS, rows, caption=caption)


def _planned(trials: int, each: Interval | None) -> StudyTable:
    """Return what the planned run would cost at the mean cost of a trial of the pilot."""
    row: tuple[CellValue, ...] = (trials, None, None, None)
    if each is not None:
        row = (trials, each, trials * each.estimate, f"{dollars(trials * each.low)} to {dollars(trials * each.high)}")
    return table("What the run will cost", "Run", PLANNED, {"planned": row})
