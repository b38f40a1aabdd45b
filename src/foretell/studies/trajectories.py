"""Study: what agents do on the way to a forecast (endings, beliefs, tools, cost)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite, nan
from typing import Literal

from foretell.frozen import frozen
from foretell.metrics.bootstrap import (
    DEFAULT_RESAMPLING,
    Interval,
    Resampling,
    mean_interval,
    rate_interval,
)
from foretell.number_text import dollars
from foretell.report.charts.timelines import paths_plot
from foretell.report.numbers import CellValue
from foretell.report.study import (
    StudyChart,
    StudyTable,
    column,
    count,
    draw_settings,
    forest_chart,
    points,
    share,
    table,
)
from foretell.report.study_result import StudyResult
from foretell.request import setting
from foretell.studies.agent_statistics import medians_section, tools_section
from foretell.studies.belief_steps import steps_section
from foretell.studies.cases import TracedTrial
from foretell.studies.inputs import RunOptions, StudyServices
from foretell.studies.question_spans import spans_section
from foretell.studies.sections import SECTION, run_sections
from foretell.studies.trace_summary import TraceSummary, failure_counts, summarise_trace


@frozen
class TrialGroup:
    """The trials of one run, each summarised once."""

    trials: Sequence[tuple[str, TraceSummary]]
    """The question and the summary of each trial."""
    resampling: Resampling

    @property
    def summaries(self) -> list[TraceSummary]:
        """The summaries of the trials."""
        return [summary for _, summary in self.trials]

    def mean(self, value: Callable[[TraceSummary], float]) -> Interval | None:
        """Return the mean over the trials for which the value exists."""
        return mean_interval(*self._known(value), self.resampling)

    def rate(self, holds: Callable[[TraceSummary], float]) -> Interval | None:
        """Return the share of trials for which `holds` is true; it returns NaN for trials that do not count."""
        return rate_interval(*self._known(holds), self.resampling)

    def _known(self, value: Callable[[TraceSummary], float]) -> tuple[list[float], list[str]]:
        pairs = [(number, question) for question, summary in self.trials if isfinite(number := value(summary))]
        return [number for number, _ in pairs], [question for _, question in pairs]


def group_trials(by_run: Mapping[str, Sequence[TracedTrial]], resampling: Resampling) -> dict[str, TrialGroup]:
    """Group trials by run, each summarised once."""
    if not all(by_run.values()):
        raise ValueError("a run without a trial has no trajectory")
    return {
        name: TrialGroup(
            trials=[(trial.question, summarise_trace(trial.trace)) for trial in trials], resampling=resampling
        )
        for name, trials in by_run.items()
    }


TOLERANCE = 0.01
MOST_CHARTS = 6
ADVICE = (
    "A trial is completed if it ends in a forecast, and submitted if the model itself submitted it; the others use "
    "the last belief before steps, time or budget were used up, or an answer to a single prompt. Again: replies that "
    "had to be requested a second time because they were not usable.",
    "Moved is the largest change of a probability from the first stated belief to the last, travelled the sum of the "
    "changes on the way: far more travelled than moved means going back and forth. Consistent is the share of "
    "submitted answers within the tolerance of the belief stated last.",
    "Intervals come from resampling whole questions, since trials on one question are correlated. A share of "
    "all or none has a Wilson interval over questions: seeing no failure is not proof that there are none.",
)
ENDS = (
    count("n", "trials"),
    count("questions"),
    share("completed", "share that ended in a forecast"),
    share("submitted", "share whose forecast the model itself submitted"),
    column("again", "replies per trial that had to be asked for again", 2),
    column("failed uses", "tool uses per trial that failed", 2),
)
BELIEFS = (
    count("n", "trials that stated a belief"),
    column("beliefs", "stated per trial"),
    points("moved", "largest change from the first belief to the last"),
    points("travelled", "sum of the changes on the way"),
    share("consistent", "share of submitted answers that agree with the last belief"),
    points("largest gap", "between an answer and the belief before it"),
)
COSTS = (
    count("n", "trials"),
    column("$ per trial", decimals=4),
    count("tokens", "read and written, per trial"),
    column("calls", "of models, per trial"),
    column("$ in all", decimals=2),
)


class TrajectoryOptions(RunOptions):
    """Stored runs, and when an answer agrees with the belief before it."""

    section: Literal["course", "steps", "tools", "medians", "spans"] | None = SECTION
    tolerance: float = setting(
        TOLERANCE, "How far an answer may be from the belief stated last and still agree with it.", ge=0, le=1
    )


def study(inputs: StudyServices, options: TrajectoryOptions) -> StudyResult:
    """What do agents do on the way to a forecast?

    Read from stored runs; no model is called. course: how trials ended, how beliefs moved, which tools were used and
    what a trial cost. steps: the Brier score of the mean of the trials after each step. tools: their uses by source of
    the questions. medians: steps, tokens, characters and evidence of a trial. spans: the questions as a time line.

      foretell study trajectories RUN1 RUN2 --out trajectories.html

      foretell study trajectories RUN --section steps
    """
    by_run = inputs.traces(options.runs)
    sections = {
        "course": partial(trajectory_study, by_run, options.resampling, tolerance=options.tolerance),
        "steps": partial(steps_section, by_run, options.resampling),
        "tools": partial(tools_section, by_run),
        "medians": partial(medians_section, by_run),
        "spans": partial(spans_section, by_run),
    }
    result = run_sections("trajectories", "What agents do on the way", sections, options.section)
    return replace(result, how_to_read=ADVICE)


def trajectory_study(
    by_run: Mapping[str, Sequence[TracedTrial]],
    resampling: Resampling = DEFAULT_RESAMPLING,
    *,
    tolerance: float = TOLERANCE,
) -> StudyResult:
    """Study what trials did, by run; every run needs at least one trial."""
    groups = group_trials(by_run, resampling)
    return StudyResult(
        name="trajectories",
        title="What agents do on the way",
        sentences=(_sentence([summary for group in groups.values() for summary in group.summaries], tolerance),),
        tables=trajectory_tables(groups, tolerance),
        charts=tuple(trajectory_charts(groups)),
        notes=tuple(
            f"{name}: {n} × {why}"
            for name, trials in by_run.items()
            for why, n in failure_counts(trial.trace for trial in trials).most_common(3)
        ),
        settings={"tolerance": tolerance, **draw_settings(resampling)},
        how_to_read=ADVICE,
    )


def trajectory_tables(groups: Mapping[str, TrialGroup], tolerance: float = TOLERANCE) -> tuple[StudyTable, ...]:
    """Tables of what trials did by run, and of tools and endings by name."""
    ends: dict[str, tuple[CellValue, ...]] = {
        name: (
            len(group.trials),
            len({question for question, _ in group.trials}),
            group.rate(lambda summary: float(bool(summary.how))),
            group.rate(lambda summary: float(summary.how == "submitted")),
            group.mean(lambda summary: summary.unusable),
            group.mean(lambda summary: summary.failed_uses),
        )
        for name, group in groups.items()
    }
    costs: dict[str, tuple[CellValue, ...]] = {
        name: (
            len(group.trials),
            group.mean(lambda summary: summary.dollars),
            group.mean(lambda summary: summary.tokens),
            group.mean(lambda summary: summary.calls),
            sum(summary.dollars for summary in group.summaries),
        )
        for name, group in groups.items()
    }
    beliefs = {name: _belief_row(group, tolerance) for name, group in groups.items()}
    stated = f"Trials without a belief left out. An answer is consistent within {tolerance:g} of the last belief."
    return (
        table("How trials go", "Run", ENDS, ends, caption="In brackets intervals, questions resampled."),
        table("How beliefs move", "Run", BELIEFS, beliefs, caption=stated),
        _tools_table(groups),
        table("Cost per trial", "Run", COSTS, costs, caption="Calls whose price is not known count as nothing."),
        _endings_table(groups),
    )


def _belief_row(group: TrialGroup, tolerance: float) -> tuple[CellValue, ...]:
    stated = replace(group, trials=[(question, summary) for question, summary in group.trials if summary.path])
    gaps = [summary.gap for summary in stated.summaries if isfinite(summary.gap)]
    return (
        len(stated.trials),
        stated.mean(lambda summary: len(summary.path)),
        stated.mean(lambda summary: summary.moved),
        stated.mean(lambda summary: summary.travelled),
        stated.rate(lambda summary: float(summary.gap <= tolerance) if isfinite(summary.gap) else nan),
        max(gaps, default=None),
    )


def _tools_table(groups: Mapping[str, TrialGroup]) -> StudyTable:
    names = sorted({tool for group in groups.values() for summary in group.summaries for tool in summary.tools})
    rows = {
        name: [group.mean(lambda summary, name=name: summary.tools.get(name, 0)) for group in groups.values()]
        for name in names
    }
    rows["all tools"] = [group.mean(lambda summary: summary.steps) for group in groups.values()]
    columns = [column(name, "mean uses per trial", 2) for name in groups]
    caption = "Mean uses per trial; the submission is not counted."
    return table("Tools", "Tool", columns, rows, caption=caption)


def _endings_table(groups: Mapping[str, TrialGroup]) -> StudyTable:
    counts = {name: Counter(summary.how or "failed" for summary in group.summaries) for name, group in groups.items()}
    names = [ending for ending, _ in sum(counts.values(), Counter[str]()).most_common()]
    rows = {ending: [counts[name][ending] for name in groups] for ending in names}
    return table("How trials end", "Ending", [count(name, "trials") for name in groups], rows)


def trajectory_charts(groups: Mapping[str, TrialGroup]) -> Iterator[StudyChart]:
    """Charts of the cost by run, if there are several, and of the course of beliefs in each."""
    costs = {
        name: cost
        for name, group in groups.items()
        if (cost := group.mean(lambda summary: summary.dollars)) is not None
    }
    if len(costs) > 1:
        cheapest_first = dict(sorted(costs.items(), key=lambda item: item[1].estimate))
        yield forest_chart("cost", "Cost per trial", cheapest_first, "dollars", decimals=4)
    for number, (name, group) in enumerate(list(groups.items())[:MOST_CHARTS], start=1):
        # Draw one target per question.
        courses = [
            [(step, next(iter(p.values()))) for step, p in summary.path.items() if p] for summary in group.summaries
        ]
        chart = paths_plot(courses, f"Belief by step: {name}")
        yield StudyChart(name=f"beliefs-{number}", title=f"Beliefs of {name}", chart=chart)


def _sentence(trials: Sequence[TraceSummary], tolerance: float) -> str:
    gaps = [trial.gap for trial in trials if isfinite(trial.gap)]
    done, submitted = sum(bool(trial.how) for trial in trials), sum(trial.how == "submitted" for trial in trials)
    agree = f"; {sum(gap <= tolerance for gap in gaps)} of {len(gaps)} answers agree with the last belief"
    return (
        f"{done} of {len(trials)} trials ended in a forecast, {submitted} of them submitted by the model itself; "
        f"a trial cost {dollars(sum(trial.dollars for trial in trials) / len(trials))}{agree if gaps else ''}."
    )
