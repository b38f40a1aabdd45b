"""The smoke exam as tables: every mark beside what is asked for, what trials did, and what a run will cost."""

from collections.abc import Sequence

from foretell.arena.studies.habits_report import ADVICE as HABITS
from foretell.arena.studies.habits_report import Traced, grouped, habit_grids, habit_pictures
from foretell.arena.studies.shares import DRAWS
from foretell.arena.studies.smoke import PassMark, judge
from foretell.arena.studies.trajectory import errors
from foretell.arena.study import Column, Entry, Grid, Study
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval
from foretell.questions.event import ModelCalled

ADVICE = (
    "The exam passes when trials come to an end, the model itself hands its answers in, and its replies can be used. "
    "It says nothing about how good forecasts are. With few trials the intervals are wide: a pass on five questions "
    "rules out a model that breaks half the time, not one that breaks one time in ten.",
    *HABITS[:2],
)
PASSED, FAILED = "yes", "no"


def smoke_study(
    model: str,
    trials: Sequence[Traced],
    *,
    mark: PassMark | None = None,
    planned: int | None = None,
    resampling: Resampling = DRAWS,
) -> Study:
    """The study of an exam; `planned` trials are what the run after it would have."""
    mark = mark or PassMark()
    verdict = judge([one.trace for one in trials], mark)
    groups = grouped({model: trials}, resampling)
    grids = [_marks(model, trials, mark, resampling), *habit_grids(groups)]
    if planned is not None:
        each = None if _unpriced(trials) else groups[model].mean(lambda one: one.dollars)
        grids.insert(1, _planned(planned, each))
    return Study(
        name="smoke",
        title=f"Smoke exam of {model}",
        finding=f"{str(verdict)[0].upper()}{str(verdict)[1:]}.",
        grids=tuple(grids),
        pictures=tuple(habit_pictures(groups)),
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


def _marks(model: str, trials: Sequence[Traced], mark: PassMark, resampling: Resampling) -> Grid:
    group = grouped({model: trials}, resampling)[model]
    rows = (
        ("trials completed", group.rate(lambda one: float(bool(one.how))), mark.completed, True),
        ("answers submitted", group.rate(lambda one: float(one.how == "submitted")), mark.submitted, True),
        ("replies asked for again, per trial", group.mean(lambda one: one.unusable), mark.unusable, False),
    )
    entries = [
        Entry(
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
        Column(label="n", decimals=0),
        Column(label="found", decimals=2),
        Column(label="asked for", numeric=False),
        Column(label="passed", numeric=False),
    )
    return Grid(
        title="The exam",
        head="Mark",
        columns=columns,
        entries=tuple(entries),
        caption="Found values decide; in brackets 95 % intervals, questions resampled.",
    )


def _planned(trials: int, each: Interval | None) -> Grid:
    """What the run costs at the exam's mean price; nothing is said where a price is not known."""
    ends = f"${trials * each.low:.2f} to ${trials * each.high:.2f}" if each else None
    values = (trials, each, trials * each.estimate if each else None, ends)
    columns = (
        Column(label="trials", decimals=0),
        Column(label="$ per trial", decimals=4),
        Column(label="$ in all", decimals=2),
        Column(label="95 % interval", numeric=False),
    )
    entries = (Entry(name="planned", values=values),)
    return Grid(title="What the run will cost", head="Run", columns=columns, entries=entries)


def _unpriced(trials: Sequence[Traced]) -> int:
    return sum(isinstance(event, ModelCalled) and event.dollars is None for one in trials for event in one.trace)


def _notes(trials: Sequence[Traced]) -> list[str]:
    lost = [f"{n} × {why}" for why, n in errors(one.trace for one in trials).most_common(5)]
    unpriced = _unpriced(trials)
    return [*lost, *([f"{unpriced} calls have no known price: dollars leave them out"] if unpriced else [])]
