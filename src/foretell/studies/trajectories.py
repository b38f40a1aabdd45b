"""Study: what agents do on the way to a forecast (endings, beliefs, tools, cost)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, nan

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.loop import UNUSABLE
from foretell.forecasters.forecaster import Context, attempt
from foretell.metrics.bootstrap import (
    DEFAULT_RESAMPLING,
    Interval,
    Resampling,
    mean_interval,
    rate_interval,
)
from foretell.questions.question import Question
from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, ModelCalled, ToolUsed, TraceEvent
from foretell.report.charts.timelines import paths_plot
from foretell.report.study import (
    CellValue,
    StudyChart,
    StudyResult,
    StudyTable,
    column,
    count,
    draw_settings,
    forest_chart,
    table,
)
from foretell.request import setting
from foretell.studies.inputs import (
    RunOptions,
    StudyServices,
)
from foretell.tools.tool import SUBMIT

EventTrace = Sequence[TraceEvent]
"""The events of one trial, in order."""


@dataclass(frozen=True, kw_only=True)
class TracedTrial:
    """One trial, with the question it was about."""

    question: str
    trace: EventTrace


async def run_trial(agent: BeliefAgent, question: Question, context: Context) -> list[TraceEvent]:
    """Run one trial on a question and return its events."""
    events: list[TraceEvent] = []
    await attempt(agent, question, replace(context, emit=events.append))
    return events


def belief_path(trace: EventTrace) -> dict[int, Mapping[str, float]]:
    """Return the belief after each step; the last revision within a step counts."""
    return dict(sorted({event.step: event.p for event in trace if isinstance(event, BeliefRevised)}.items()))


def failure_counts(traces: Iterable[EventTrace]) -> Counter[str]:
    """Return the number of failed trials by reason; `most_common` puts the most frequent first."""
    return Counter(event.error for trace in traces for event in trace if isinstance(event, Failed))


@dataclass(frozen=True, kw_only=True)
class TraceSummary:
    """Summary of one trial."""

    path: Mapping[int, Mapping[str, float]]
    """Belief by step."""
    tools: Mapping[str, int]
    """Number of uses by tool, not counting the submission."""
    failed_uses: int
    unusable: int
    """Number of unusable replies that had to be asked for again."""
    how: str
    """How the trial ended; empty if it failed."""
    calls: int
    dollars: float
    tokens: int
    gap: float
    """Largest |submitted − last belief| over the targets, both before clamping; NaN unless both exist."""

    @property
    def steps(self) -> int:
        """Number of tool uses, not counting the submission."""
        return sum(self.tools.values())

    @property
    def moved(self) -> float:
        """Largest |change| from the first to the last stated belief over the targets."""
        beliefs = list(self.path.values())
        return _distance(beliefs[0], beliefs[-1]) if beliefs else 0.0

    @property
    def travelled(self) -> float:
        """Sum of the largest changes at each revision; far more than `moved` if the belief went back and forth."""
        return sum(_distance(a, b) for a, b in pairwise(self.path.values()))


def summarise_trace(trace: EventTrace) -> TraceSummary:
    """Summarise one trial."""
    used = [event for event in trace if isinstance(event, ToolUsed)]
    calls = [event for event in trace if isinstance(event, ModelCalled)]
    research = [event for event in used if event.tool not in (SUBMIT, UNUSABLE)]
    endings = [event.how for event in trace if isinstance(event, ForecastMade)]
    path = belief_path(trace)
    submitted = [event.arguments.get("p") for event in used if event.tool == SUBMIT][-1:]
    answer = submitted[0] if submitted and isinstance(submitted[0], Mapping) else None
    return TraceSummary(
        path=path,
        tools=Counter(event.tool for event in research),
        failed_uses=sum(event.failed for event in research),
        unusable=sum(event.tool == UNUSABLE for event in used),
        how=endings[-1] if endings else "",
        calls=len(calls),
        dollars=sum(event.dollars or 0.0 for event in calls),
        tokens=sum(event.input_tokens + event.output_tokens for event in calls),
        gap=_distance(list(path.values())[-1], answer) if path and answer is not None else nan,
    )


def _distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return max((abs(a[target] - b[target]) for target in a.keys() & b.keys()), default=0.0)


@dataclass(frozen=True, kw_only=True)
class TrialGroup:
    """The trials of one run, each summarised once."""

    trials: Sequence[tuple[str, TraceSummary]]
    """The question and the summary of each trial."""
    resampling: Resampling

    @property
    def summaries(self) -> list[TraceSummary]:
        """The summaries of the trials."""
        return [one for _, one in self.trials]

    def mean(self, value: Callable[[TraceSummary], float]) -> Interval | None:
        """Return the mean over the trials for which the value exists."""
        return mean_interval(*self._known(value), self.resampling)

    def rate(self, holds: Callable[[TraceSummary], float]) -> Interval | None:
        """Return the share of trials for which `holds` is true; it returns NaN if that cannot be said."""
        return rate_interval(*self._known(holds), self.resampling)

    def _known(self, value: Callable[[TraceSummary], float]) -> tuple[list[float], list[str]]:
        pairs = [(number, question) for question, one in self.trials if isfinite(number := value(one))]
        return [number for number, _ in pairs], [question for _, question in pairs]


def group_trials(by_run: Mapping[str, Sequence[TracedTrial]], resampling: Resampling) -> dict[str, TrialGroup]:
    """Group trials by run, each summarised once."""
    if not all(by_run.values()):
        raise ValueError("a run without a trial has no trajectory")
    return {
        name: TrialGroup(trials=[(one.question, summarise_trace(one.trace)) for one in trials], resampling=resampling)
        for name, trials in by_run.items()
    }


TOLERANCE = 0.01
MOST_CHARTS = 6
ADVICE = (
    "A trial is completed when it ends in a forecast, and submitted when the model itself handed that in; the others "
    "live on the belief that stood when steps, time or budget were used up, or answered in one prompt. Again: replies "
    "that had to be asked for a second time because nothing could be done with them.",
    "Moved is the largest change of a probability from the first stated belief to the last, travelled the sum of the "
    "changes on the way: far more travelled than moved means going back and forth. Consistent is the share of "
    "submitted answers within the tolerance of the belief stated last.",
    "Intervals come from resampling whole questions, since trials on one question resemble each other. A share of "
    "all or none has a Wilson interval over questions: seeing no failure is not proof that there are none.",
)
ENDS = (
    count("n", "trials"),
    count("questions"),
    column("completed", "share that ended in a forecast", 2),
    column("submitted", "share whose forecast the model itself handed in", 2),
    column("again", "replies per trial that had to be asked for again", 2),
    column("failed uses", "tool uses per trial that failed", 2),
)
BELIEFS = (
    count("n", "trials that stated a belief"),
    column("beliefs", "stated per trial"),
    column("moved", "largest change from the first belief to the last", 3),
    column("travelled", "sum of the changes on the way", 3),
    column("consistent", "share of submitted answers that agree with the last belief", 2),
    column("largest gap", "between an answer and the belief before it", 3),
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

    tolerance: float = setting(
        TOLERANCE, "How far an answer may be from the belief stated last and still agree with it.", ge=0, le=1
    )


def study(inputs: StudyServices, options: TrajectoryOptions) -> StudyResult:
    """What do agents do on the way to a forecast?

    How the trials of runs ended, how beliefs moved, which tools were used and what a trial cost, read from stored
    runs; no model is called.

      foretell study trajectories RUN1 RUN2 --out trajectories.html
    """
    return trajectory_study(inputs.traces(options.runs), options.resampling, tolerance=options.tolerance)


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
        sentences=(_sentence([one for group in groups.values() for one in group.summaries], tolerance),),
        tables=trajectory_tables(groups, tolerance),
        charts=tuple(trajectory_charts(groups)),
        notes=tuple(
            f"{name}: {n} × {why}"
            for name, trials in by_run.items()
            for why, n in failure_counts(one.trace for one in trials).most_common(3)
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
            group.rate(lambda one: float(bool(one.how))),
            group.rate(lambda one: float(one.how == "submitted")),
            group.mean(lambda one: one.unusable),
            group.mean(lambda one: one.failed_uses),
        )
        for name, group in groups.items()
    }
    costs: dict[str, tuple[CellValue, ...]] = {
        name: (
            len(group.trials),
            group.mean(lambda one: one.dollars),
            group.mean(lambda one: one.tokens),
            group.mean(lambda one: one.calls),
            sum(one.dollars for one in group.summaries),
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
    stated = replace(group, trials=[(question, one) for question, one in group.trials if one.path])
    gaps = [one.gap for one in stated.summaries if isfinite(one.gap)]
    return (
        len(stated.trials),
        stated.mean(lambda one: len(one.path)),
        stated.mean(lambda one: one.moved),
        stated.mean(lambda one: one.travelled),
        stated.rate(lambda one: float(one.gap <= tolerance) if isfinite(one.gap) else nan),
        max(gaps, default=None),
    )


def _tools_table(groups: Mapping[str, TrialGroup]) -> StudyTable:
    names = sorted({tool for group in groups.values() for one in group.summaries for tool in one.tools})
    rows = {
        name: [group.mean(lambda one, name=name: one.tools.get(name, 0)) for group in groups.values()] for name in names
    }
    rows["all tools"] = [group.mean(lambda one: one.steps) for group in groups.values()]
    columns = [column(name, "mean uses per trial", 2) for name in groups]
    caption = "Mean uses per trial; handing the answer in is not counted."
    return table("Tools", "Tool", columns, rows, caption=caption)


def _endings_table(groups: Mapping[str, TrialGroup]) -> StudyTable:
    counts = {name: Counter(one.how or "failed" for one in group.summaries) for name, group in groups.items()}
    names = [ending for ending, _ in sum(counts.values(), Counter[str]()).most_common()]
    rows = {ending: [counts[name][ending] for name in groups] for ending in names}
    return table("How trials end", "Ending", [count(name, "trials") for name in groups], rows)


def trajectory_charts(groups: Mapping[str, TrialGroup]) -> Iterator[StudyChart]:
    """Charts of the cost by run, if there are several, and of the course of beliefs in each."""
    costs = {name: cost for name, group in groups.items() if (cost := group.mean(lambda one: one.dollars)) is not None}
    if len(costs) > 1:
        cheapest_first = dict(sorted(costs.items(), key=lambda item: item[1].estimate))
        yield forest_chart("cost", "Cost per trial", cheapest_first, "dollars", decimals=4)
    for number, (name, group) in enumerate(list(groups.items())[:MOST_CHARTS], start=1):
        # One target stands for a question: with several outcomes the others move against it.
        courses = [[(step, next(iter(p.values()))) for step, p in one.path.items() if p] for one in group.summaries]
        chart = paths_plot(courses, f"Belief by step: {name}")
        yield StudyChart(name=f"beliefs-{number}", title=f"Beliefs of {name}", chart=chart)


def _sentence(trials: Sequence[TraceSummary], tolerance: float) -> str:
    gaps = [one.gap for one in trials if isfinite(one.gap)]
    done, submitted = sum(bool(one.how) for one in trials), sum(one.how == "submitted" for one in trials)
    agree = f"; {sum(gap <= tolerance for gap in gaps)} of {len(gaps)} answers agree with the last belief"
    return (
        f"{done} of {len(trials)} trials ended in a forecast, {submitted} of them handed in by the model itself; "
        f"a trial cost ${sum(one.dollars for one in trials) / len(trials):.4f}{agree if gaps else ''}."
    )
