"""What agents do on the way, as tables by run: how trials end, how beliefs move, tools, and cost."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from foretell.arena.report.figures.forest import ForestRow, forest_plot
from foretell.arena.report.figures.paths import paths_plot
from foretell.arena.studies.shares import DRAWS, mean, rate
from foretell.arena.studies.trajectory import Trace, TraceSummary, errors, summarise
from foretell.arena.study import Column, Entry, Grid, Picture, Study, Value
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval

TOLERANCE = 0.01
MOST_PICTURES = 6
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
TRIALS = Column(label="n", decimals=0, tip="trials")


@dataclass(frozen=True, kw_only=True)
class Traced:
    """One trial, by the question it was about."""

    question: str
    trace: Trace

    @property
    def summary(self) -> TraceSummary:
        """What it did."""
        return summarise(self.trace)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The trials of one run, read once."""

    questions: tuple[str, ...]
    seen: tuple[TraceSummary, ...]
    resampling: Resampling

    def mean(self, value: Callable[[TraceSummary], float]) -> Interval | None:
        """Over the trials where the value exists."""
        return self._over(value, lambda values, questions: mean(values, questions, self.resampling))

    def rate(self, holds: Callable[[TraceSummary], float]) -> Interval | None:
        """The share of trials for which it holds, NaN where that cannot be said."""
        return self._over(holds, lambda values, questions: rate(values, questions, self.resampling))

    def _over(
        self, value: Callable[[TraceSummary], float], sum_up: Callable[[list[float], list[str]], Interval | None]
    ) -> Interval | None:
        pairs = [(value(one), question) for one, question in zip(self.seen, self.questions, strict=True)]
        kept = [(number, question) for number, question in pairs if isfinite(number)]
        return sum_up([number for number, _ in kept], [question for _, question in kept])


def habits_study(
    by_run: Mapping[str, Sequence[Traced]], resampling: Resampling = DRAWS, *, tolerance: float = TOLERANCE
) -> Study:
    """The study of what trials did, by run; every run needs a trial."""
    groups = grouped(by_run, resampling)
    return Study(
        name="habits",
        title="What agents do on the way",
        finding=_finding(groups, tolerance),
        grids=habit_grids(groups, tolerance),
        pictures=tuple(habit_pictures(groups)),
        notes=tuple(_notes(by_run)),
        settings={"tolerance": tolerance, "draws": resampling.draws, "seed": resampling.seed},
        advice=ADVICE,
    )


def habit_grids(groups: Mapping[str, Group], tolerance: float = TOLERANCE) -> tuple[Grid, ...]:
    """The tables: by run, and tools and endings by name."""
    return (_ends(groups), _beliefs(groups, tolerance), _tools(groups), _costs(groups), _endings(groups))


def grouped(by_run: Mapping[str, Sequence[Traced]], resampling: Resampling = DRAWS) -> dict[str, Group]:
    """Trials by run, each summarised once."""
    return {name: _group(trials, resampling) for name, trials in by_run.items()}


def _group(trials: Sequence[Traced], resampling: Resampling) -> Group:
    if not trials:
        raise ValueError("a run without a trial has no habits")
    return Group(
        questions=tuple(one.question for one in trials),
        seen=tuple(one.summary for one in trials),
        resampling=resampling,
    )


def _by_run(title: str, columns: Sequence[Column], rows: Iterable[tuple[str, tuple[Value, ...]]], caption: str) -> Grid:
    entries = tuple(Entry(name=name, values=values) for name, values in rows)
    return Grid(title=title, head="Run", columns=tuple(columns), entries=entries, caption=caption)


def _ends(groups: Mapping[str, Group]) -> Grid:
    columns = (
        TRIALS,
        Column(label="questions", decimals=0),
        Column(label="completed", decimals=2, tip="share that ended in a forecast"),
        Column(label="submitted", decimals=2, tip="share whose forecast the model itself handed in"),
        Column(label="again", decimals=2, tip="replies per trial that had to be asked for again"),
        Column(label="failed uses", decimals=2, tip="tool uses per trial that failed"),
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


def _beliefs(groups: Mapping[str, Group], tolerance: float) -> Grid:
    columns = (
        Column(label="n", decimals=0, tip="trials that stated a belief"),
        Column(label="beliefs", decimals=1, tip="stated per trial"),
        Column(label="moved", decimals=3, tip="largest change from the first belief to the last"),
        Column(label="travelled", decimals=3, tip="sum of the changes on the way"),
        Column(label="consistent", decimals=2, tip="share of submitted answers that agree with the last belief"),
        Column(label="largest gap", decimals=3, tip="between an answer and the belief before it"),
    )
    rows = ((name, _belief_row(group, tolerance)) for name, group in groups.items())
    caption = f"Trials without a belief left out. An answer is consistent within {tolerance:g} of the last belief."
    return _by_run("How beliefs move", columns, rows, caption)


def _belief_row(group: Group, tolerance: float) -> tuple[Value, ...]:
    kept = [(one, question) for one, question in zip(group.seen, group.questions, strict=True) if one.path]
    stated = Group(
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


def _tools(groups: Mapping[str, Group]) -> Grid:
    names = sorted({tool for group in groups.values() for one in group.seen for tool in one.tools})
    entries = [
        Entry(
            name=name,
            values=tuple(group.mean(lambda one, name=name: one.tools.get(name, 0)) for group in groups.values()),
        )
        for name in names
    ]
    total = Entry(name="all tools", values=tuple(group.mean(lambda one: one.steps) for group in groups.values()))
    return Grid(
        title="Tools",
        head="Tool",
        columns=tuple(Column(label=name, decimals=2, tip="mean uses per trial") for name in groups),
        entries=(*entries, total),
        caption="Mean uses per trial; handing the answer in is not counted.",
    )


def _costs(groups: Mapping[str, Group]) -> Grid:
    columns = (
        TRIALS,
        Column(label="$ per trial", decimals=4),
        Column(label="tokens", decimals=0, tip="read and written, per trial"),
        Column(label="calls", decimals=1, tip="of models, per trial"),
        Column(label="$ in all", decimals=2),
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


def _endings(groups: Mapping[str, Group]) -> Grid:
    counts = {name: Counter(one.how or "failed" for one in group.seen) for name, group in groups.items()}
    names = [ending for ending, _ in sum(counts.values(), Counter[str]()).most_common()]
    return Grid(
        title="How trials end",
        head="Ending",
        columns=tuple(Column(label=name, decimals=0, tip="trials") for name in groups),
        entries=tuple(Entry(name=one, values=tuple(counts[name][one] for name in groups)) for one in names),
    )


def habit_pictures(groups: Mapping[str, Group]) -> Iterable[Picture]:
    """Cost by run where there are several, and the course of beliefs in each."""
    costs = [(name, group.mean(lambda one: one.dollars)) for name, group in groups.items()]
    rows = [ForestRow(name=name, interval=cost) for name, cost in costs if cost is not None]
    if len(rows) > 1:
        rows.sort(key=lambda row: row.interval.estimate)
        yield Picture(name="cost", title="Cost per trial", figure=forest_plot(rows, label="dollars", decimals=4))
    for number, (name, group) in enumerate(list(groups.items())[:MOST_PICTURES], start=1):
        # One target stands for a question: with several outcomes the others move against it.
        courses = [[(point.step, next(iter(point.p.values()))) for point in one.path if point.p] for one in group.seen]
        yield Picture(
            name=f"beliefs-{number}",
            title=f"Beliefs of {name}",
            figure=paths_plot(courses, f"Belief by step: {name}"),
        )


def _finding(groups: Mapping[str, Group], tolerance: float) -> str:
    seen = [one for group in groups.values() for one in group.seen]
    gaps = [one.gap for one in seen if isfinite(one.gap)]
    done, handed = sum(bool(one.how) for one in seen), sum(one.how == "submitted" for one in seen)
    told = f"{done} of {len(seen)} trials ended in a forecast, {handed} of them handed in by the model itself"
    cost = f"a trial cost ${sum(one.dollars for one in seen) / len(seen):.4f}"
    agree = f"; {sum(gap <= tolerance for gap in gaps)} of {len(gaps)} answers agree with the last belief"
    return f"{told}; {cost}{agree if gaps else ''}."


def _notes(by_run: Mapping[str, Sequence[Traced]]) -> list[str]:
    return [
        f"{name}: {n} × {why}"
        for name, trials in by_run.items()
        for why, n in errors(one.trace for one in trials).most_common(3)
    ]
