"""What agents do on the way, as tables by run: how trials end, how beliefs move, tools, and cost."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.loop import UNUSABLE
from foretell.forecasters.forecaster import Context, attempt
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.shares import DEFAULT_DRAWS, mean_interval, rate_interval
from foretell.questions.question import Question
from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, ModelCalled, ToolUsed, TraceEvent
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.charts.timelines import paths_plot
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.request import setting
from foretell.studies.inputs import RunOptions, StudyServices
from foretell.tools.names import SUBMIT

EventTrace = Sequence[TraceEvent]
"""The events of one trial, in order."""


async def run_trial(agent: BeliefAgent, question: Question, context: Context) -> list[TraceEvent]:
    """The events of one trial on a question."""
    events: list[TraceEvent] = []
    await attempt(agent, question, replace(context, emit=events.append))
    return events


@dataclass(frozen=True, kw_only=True)
class BeliefPoint:
    """The belief after the result of a step had been read."""

    step: int
    p: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class TraceSummary:
    """One trial."""

    path: tuple[BeliefPoint, ...]
    tools: Mapping[str, int]
    """Uses that worked or were refused by the tool; submitting is not counted."""
    failed_uses: int
    unusable: int
    """Replies that had to be asked for again."""
    how: str
    """How it ended; empty for a trial that failed."""
    calls: int
    dollars: float
    tokens: int
    gap: float
    """Largest |submitted − last belief| over the targets, both before clamping; NaN where there was not both."""

    @property
    def steps(self) -> int:
        """Tools used, the answer not counted."""
        return sum(self.tools.values())

    @property
    def moved(self) -> float:
        """Largest |change| from the first to the last stated belief over the targets."""
        return _distance(self.path[0].p, self.path[-1].p) if len(self.path) > 1 else 0.0

    @property
    def travelled(self) -> float:
        """Sum of the largest changes at each revision: far more than `moved` means going back and forth."""
        return sum(_distance(a.p, b.p) for a, b in zip(self.path, self.path[1:], strict=False))


def summarise_trace(trace: EventTrace) -> TraceSummary:
    """What one trial did."""
    used = [event for event in trace if isinstance(event, ToolUsed)]
    models = [event for event in trace if isinstance(event, ModelCalled)]
    research = [event for event in used if event.tool not in (SUBMIT, UNUSABLE)]
    made = [event for event in trace if isinstance(event, ForecastMade)]
    return TraceSummary(
        path=belief_path(trace),
        tools=Counter(event.tool for event in research),
        failed_uses=sum(event.failed for event in research),
        unusable=sum(event.tool == UNUSABLE for event in used),
        how=made[-1].how if made else "",
        calls=len(models),
        dollars=sum(event.dollars or 0.0 for event in models),
        tokens=sum(event.input_tokens + event.output_tokens for event in models),
        gap=_gap(trace),
    )


def belief_path(trace: EventTrace) -> tuple[BeliefPoint, ...]:
    """The belief by step; the last one of a step counts."""
    points = {
        event.step: BeliefPoint(step=event.step, p=event.p) for event in trace if isinstance(event, BeliefRevised)
    }
    return tuple(points[step] for step in sorted(points))


def failure_counts(traces: Iterable[EventTrace]) -> Counter[str]:
    """Why trials failed, most frequent first by `most_common`."""
    return Counter(event.error for trace in traces for event in trace if isinstance(event, Failed))


def _gap(trace: EventTrace) -> float:
    path = belief_path(trace)
    submitted = [event.arguments.get("p") for event in trace if isinstance(event, ToolUsed) and event.tool == SUBMIT]
    if not path or not submitted or not isinstance(submitted[-1], Mapping):
        return nan
    return _distance(path[-1].p, submitted[-1])


def _distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return max((abs(a[target] - b[target]) for target in a.keys() & b.keys()), default=0.0)


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
TRIALS = StudyColumn(label="n", decimals=0, tip="trials")


@dataclass(frozen=True, kw_only=True)
class TracedTrial:
    """One trial, by the question it was about."""

    question: str
    trace: EventTrace

    @property
    def summary(self) -> TraceSummary:
        """What it did."""
        return summarise_trace(self.trace)


@dataclass(frozen=True, kw_only=True)
class TrialGroup:
    """The trials of one run, read once."""

    questions: tuple[str, ...]
    seen: tuple[TraceSummary, ...]
    resampling: Resampling

    def mean(self, value: Callable[[TraceSummary], float]) -> Interval | None:
        """Over the trials where the value exists."""
        return self._over(value, lambda values, questions: mean_interval(values, questions, self.resampling))

    def rate(self, holds: Callable[[TraceSummary], float]) -> Interval | None:
        """The share of trials for which it holds, NaN where that cannot be said."""
        return self._over(holds, lambda values, questions: rate_interval(values, questions, self.resampling))

    def _over(
        self, value: Callable[[TraceSummary], float], sum_up: Callable[[list[float], list[str]], Interval | None]
    ) -> Interval | None:
        pairs = [(value(one), question) for one, question in zip(self.seen, self.questions, strict=True)]
        kept = [(number, question) for number, question in pairs if isfinite(number)]
        return sum_up([number for number, _ in kept], [question for _, question in kept])


class HabitsOptions(RunOptions):
    """Stored runs, and when an answer agrees with the belief before it."""

    tolerance: float = setting(
        TOLERANCE, "How far an answer may be from the belief stated last and still agree with it.", ge=0, le=1
    )


def study(inputs: StudyServices, options: HabitsOptions) -> StudyResult:
    """What do agents do on the way to a forecast?

    How the trials of runs ended, how beliefs moved, which tools were used and what a trial cost, read from stored
    runs; no model is called.

      foretell study habits --run 3f2a --run 91bc --out habits.html
    """
    return habits_study(inputs.traces(options.runs), options.resampling, tolerance=options.tolerance)


def habits_study(
    by_run: Mapping[str, Sequence[TracedTrial]], resampling: Resampling = DEFAULT_DRAWS, *, tolerance: float = TOLERANCE
) -> StudyResult:
    """The study of what trials did, by run; every run needs a trial."""
    groups = group_trials(by_run, resampling)
    return StudyResult(
        name="habits",
        title="What agents do on the way",
        sentences=(_sentence(groups, tolerance),),
        tables=habit_tables(groups, tolerance),
        charts=tuple(habit_charts(groups)),
        notes=tuple(_notes(by_run)),
        settings={"tolerance": tolerance, "draws": resampling.draws, "seed": resampling.seed},
        how_to_read=ADVICE,
    )


def habit_tables(groups: Mapping[str, TrialGroup], tolerance: float = TOLERANCE) -> tuple[StudyTable, ...]:
    """The tables: by run, and tools and endings by name."""
    return (_ends(groups), _beliefs(groups, tolerance), _tools(groups), _costs(groups), _endings(groups))


def group_trials(
    by_run: Mapping[str, Sequence[TracedTrial]], resampling: Resampling = DEFAULT_DRAWS
) -> dict[str, TrialGroup]:
    """Trials by run, each summarised once."""
    return {name: _group(trials, resampling) for name, trials in by_run.items()}


def _group(trials: Sequence[TracedTrial], resampling: Resampling) -> TrialGroup:
    if not trials:
        raise ValueError("a run without a trial has no habits")
    return TrialGroup(
        questions=tuple(one.question for one in trials),
        seen=tuple(one.summary for one in trials),
        resampling=resampling,
    )


def _by_run(
    title: str, columns: Sequence[StudyColumn], rows: Iterable[tuple[str, tuple[CellValue, ...]]], caption: str
) -> StudyTable:
    entries = tuple(StudyRow(name=name, values=values) for name, values in rows)
    return StudyTable(title=title, row_header="Run", columns=tuple(columns), rows=entries, caption=caption)


def _ends(groups: Mapping[str, TrialGroup]) -> StudyTable:
    columns = (
        TRIALS,
        StudyColumn(label="questions", decimals=0),
        StudyColumn(label="completed", decimals=2, tip="share that ended in a forecast"),
        StudyColumn(label="submitted", decimals=2, tip="share whose forecast the model itself handed in"),
        StudyColumn(label="again", decimals=2, tip="replies per trial that had to be asked for again"),
        StudyColumn(label="failed uses", decimals=2, tip="tool uses per trial that failed"),
    )
    rows = (
        (
            name,
            (
                len(group.seen),
                len(set(group.questions)),
                group.rate(lambda one: float(bool(one.how))),
                group.rate(lambda one: float(one.how == "submitted")),
                group.mean(lambda one: one.unusable),
                group.mean(lambda one: one.failed_uses),
            ),
        )
        for name, group in groups.items()
    )
    return _by_run("How trials go", columns, rows, "In brackets 95 % intervals, questions resampled.")


def _beliefs(groups: Mapping[str, TrialGroup], tolerance: float) -> StudyTable:
    columns = (
        StudyColumn(label="n", decimals=0, tip="trials that stated a belief"),
        StudyColumn(label="beliefs", decimals=1, tip="stated per trial"),
        StudyColumn(label="moved", decimals=3, tip="largest change from the first belief to the last"),
        StudyColumn(label="travelled", decimals=3, tip="sum of the changes on the way"),
        StudyColumn(label="consistent", decimals=2, tip="share of submitted answers that agree with the last belief"),
        StudyColumn(label="largest gap", decimals=3, tip="between an answer and the belief before it"),
    )
    rows = ((name, _belief_row(group, tolerance)) for name, group in groups.items())
    caption = f"Trials without a belief left out. An answer is consistent within {tolerance:g} of the last belief."
    return _by_run("How beliefs move", columns, rows, caption)


def _belief_row(group: TrialGroup, tolerance: float) -> tuple[CellValue, ...]:
    kept = [(one, question) for one, question in zip(group.seen, group.questions, strict=True) if one.path]
    stated = TrialGroup(
        questions=tuple(question for _, question in kept),
        seen=tuple(one for one, _ in kept),
        resampling=group.resampling,
    )
    gaps = [one.gap for one in stated.seen if isfinite(one.gap)]
    return (
        len(kept),
        stated.mean(lambda one: len(one.path)),
        stated.mean(lambda one: one.moved),
        stated.mean(lambda one: one.travelled),
        stated.rate(lambda one: float(one.gap <= tolerance) if isfinite(one.gap) else one.gap),
        max(gaps) if gaps else None,
    )


def _tools(groups: Mapping[str, TrialGroup]) -> StudyTable:
    names = sorted({tool for group in groups.values() for one in group.seen for tool in one.tools})
    entries = [
        StudyRow(
            name=name,
            values=tuple(group.mean(lambda one, name=name: one.tools.get(name, 0)) for group in groups.values()),
        )
        for name in names
    ]
    total = StudyRow(name="all tools", values=tuple(group.mean(lambda one: one.steps) for group in groups.values()))
    return StudyTable(
        title="Tools",
        row_header="Tool",
        columns=tuple(StudyColumn(label=name, decimals=2, tip="mean uses per trial") for name in groups),
        rows=(*entries, total),
        caption="Mean uses per trial; handing the answer in is not counted.",
    )


def _costs(groups: Mapping[str, TrialGroup]) -> StudyTable:
    columns = (
        TRIALS,
        StudyColumn(label="$ per trial", decimals=4),
        StudyColumn(label="tokens", decimals=0, tip="read and written, per trial"),
        StudyColumn(label="calls", decimals=1, tip="of models, per trial"),
        StudyColumn(label="$ in all", decimals=2),
    )
    rows = (
        (
            name,
            (
                len(group.seen),
                group.mean(lambda one: one.dollars),
                group.mean(lambda one: one.tokens),
                group.mean(lambda one: one.calls),
                sum(one.dollars for one in group.seen),
            ),
        )
        for name, group in groups.items()
    )
    return _by_run("Cost per trial", columns, rows, "Calls whose price is not known count as nothing.")


def _endings(groups: Mapping[str, TrialGroup]) -> StudyTable:
    counts = {name: Counter(one.how or "failed" for one in group.seen) for name, group in groups.items()}
    names = [ending for ending, _ in sum(counts.values(), Counter[str]()).most_common()]
    return StudyTable(
        title="How trials end",
        row_header="Ending",
        columns=tuple(StudyColumn(label=name, decimals=0, tip="trials") for name in groups),
        rows=tuple(StudyRow(name=one, values=tuple(counts[name][one] for name in groups)) for one in names),
    )


def habit_charts(groups: Mapping[str, TrialGroup]) -> Iterable[StudyChart]:
    """Cost by run where there are several, and the course of beliefs in each."""
    costs = [(name, group.mean(lambda one: one.dollars)) for name, group in groups.items()]
    rows = [ForestRow(name=name, interval=cost) for name, cost in costs if cost is not None]
    if len(rows) > 1:
        rows.sort(key=lambda row: row.interval.estimate)
        yield StudyChart(name="cost", title="Cost per trial", chart=forest_plot(rows, label="dollars", decimals=4))
    for number, (name, group) in enumerate(list(groups.items())[:MOST_CHARTS], start=1):
        # One target stands for a question: with several outcomes the others move against it.
        courses = [[(point.step, next(iter(point.p.values()))) for point in one.path if point.p] for one in group.seen]
        yield StudyChart(
            name=f"beliefs-{number}",
            title=f"Beliefs of {name}",
            chart=paths_plot(courses, f"Belief by step: {name}"),
        )


def _sentence(groups: Mapping[str, TrialGroup], tolerance: float) -> str:
    seen = [one for group in groups.values() for one in group.seen]
    gaps = [one.gap for one in seen if isfinite(one.gap)]
    done, handed = sum(bool(one.how) for one in seen), sum(one.how == "submitted" for one in seen)
    told = f"{done} of {len(seen)} trials ended in a forecast, {handed} of them handed in by the model itself"
    cost = f"a trial cost ${sum(one.dollars for one in seen) / len(seen):.4f}"
    agree = f"; {sum(gap <= tolerance for gap in gaps)} of {len(gaps)} answers agree with the last belief"
    return f"{told}; {cost}{agree if gaps else ''}."


def _notes(by_run: Mapping[str, Sequence[TracedTrial]]) -> list[str]:
    return [
        f"{name}: {n} × {why}"
        for name, trials in by_run.items()
        for why, n in failure_counts(one.trace for one in trials).most_common(3)
    ]
