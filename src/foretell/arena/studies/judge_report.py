"""Marks as tables: by forecaster with intervals, and how far people agree with the judge."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from foretell.arena.report.figures.forest import ForestRow, forest_plot
from foretell.arena.report.study_page import study_page
from foretell.arena.studies.agreement import Agreement, agreement
from foretell.arena.studies.judge import Marked
from foretell.arena.studies.ratings import Rating
from foretell.arena.studies.rubric import DIMENSIONS
from foretell.arena.studies.shares import DRAWS, mean
from foretell.arena.study import Column, Entry, Grid, Picture, Study, Value
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval

MEAN = "mean"
ADVICE = (
    "Marks go from 1 to 5. They say how a forecast was reasoned, not how good it was; read them beside the scores.",
    "Intervals come from resampling whole events, since forecasts of one event share their material. Two forecasters "
    "are told apart by the same judge only as far as people agree with it: see the table of agreement.",
    "Kappa is 1 for perfect agreement and 0 for what chance alone would give, with disagreements weighted by their "
    "square (κ²) or their size (κ). A kappa near that between people is as much as can be asked for.",
    "Where nearly all marks are the same, kappa and correlation say little, even if raters hardly ever differ: look "
    "at the distance and the share of equal marks then.",
)
Pair = tuple[int, int, str]
"""Two marks for one item."""


def judge_study(marked: Sequence[Marked], ratings: Sequence[Rating] = (), resampling: Resampling = DRAWS) -> Study:
    """The study of a judge's marks, with people's ratings of the same items where there are any."""
    done = [one for one in marked if one.scores]
    grids = [_by_forecaster(done, resampling)]
    known = {one.case.item for one in marked}
    if ratings:
        grids += _agreements(done, ratings, resampling)
    rows = [
        ForestRow(name=entry.name, interval=overall)
        for entry in grids[0].entries
        if isinstance(overall := entry.values[-1], Interval)
    ]
    figure = forest_plot(rows, label="mean mark, 1 to 5", decimals=2)
    return Study(
        name="reasoning",
        title="How well forecasts are reasoned",
        finding=_finding(done),
        grids=tuple(grids),
        pictures=(Picture(name="marks", title="Mean marks", figure=figure),) if rows else (),
        notes=tuple(_notes(marked, ratings, known)),
        settings={"draws": resampling.draws, "level": resampling.level, "seed": resampling.seed},
        advice=ADVICE,
    )


def judge_page(study: Study) -> str:
    """The study as a web page."""
    return study_page(study)


def _by_forecaster(done: Sequence[Marked], resampling: Resampling) -> Grid:
    groups: dict[str, list[Marked]] = {}
    for one in done:
        groups.setdefault(one.case.forecast.forecaster, []).append(one)
    ordered = sorted(groups.items(), key=lambda pair: -sum(one.mean for one in pair[1]) / len(pair[1]))
    columns = [
        Column(label="n", decimals=0),
        *(Column(label=name, decimals=2, tip=d.asks) for name, d in DIMENSIONS.items()),
    ]
    return Grid(
        title="Marks by forecaster",
        head="Forecaster",
        columns=(*columns, Column(label=MEAN, decimals=2)),
        entries=tuple(Entry(name=name, values=_means(group, resampling)) for name, group in ordered),
        caption="Mean marks from 1 to 5, the best mean first; in brackets 95 % intervals, events resampled.",
    )


def _means(group: Sequence[Marked], resampling: Resampling) -> tuple[Value, ...]:
    cluster = [one.case.context.question.cluster for one in group]
    marks = [mean([one.scores[name] for one in group], cluster, resampling) for name in DIMENSIONS]
    return (len(group), *marks, mean([one.mean for one in group], cluster, resampling))


def _agreements(done: Sequence[Marked], ratings: Sequence[Rating], resampling: Resampling) -> list[Grid]:
    judged = {one.case.item: one.scores for one in done}
    columns = (
        Column(label="items", decimals=0),
        Column(label="ratings", decimals=0),
        Column(label="κ²", decimals=2, tip="weighted kappa, quadratic weights"),
        Column(label="κ", decimals=2, tip="weighted kappa, linear weights"),
        Column(label="r", decimals=2, tip="Pearson's correlation"),
        Column(label="ρ", decimals=2, tip="Spearman's rank correlation"),
        Column(label="distance", decimals=2, tip="mean absolute difference of marks"),
        Column(label="variance", decimals=2, tip="of the absolute difference, over items"),
        Column(label="bias", decimals=2, tip="mean of person minus judge"),
        Column(label="same", decimals=2, tip="share of equal marks"),
        Column(label="±1", decimals=2, tip="share within one mark"),
    )
    titles = (
        ("People and judge", {name: _with_judge(name, ratings, judged) for name in DIMENSIONS}),
        ("People among themselves", {name: _among_people(name, ratings) for name in DIMENSIONS}),
    )
    return [
        Grid(
            title=title,
            head="Dimension",
            columns=columns,
            entries=tuple(Entry(name=name, values=_row(pairs, resampling)) for name, pairs in by_name.items()),
            caption="Every item counts once; in brackets 95 % intervals, items resampled.",
        )
        for title, by_name in titles
        if any(by_name.values())
    ]


def _with_judge(name: str, ratings: Sequence[Rating], judged: Mapping[str, Mapping[str, int]]) -> list[Pair]:
    return [
        (one.scores[name], judged[one.item][name], one.item)
        for one in ratings
        if name in one.scores and name in judged.get(one.item, {})
    ]


def _among_people(name: str, ratings: Sequence[Rating]) -> list[Pair]:
    """Every pair of raters of an item, both ways round: neither of two people is the first."""
    by_item: dict[str, list[int]] = {}
    for one in ratings:
        if name in one.scores:
            by_item.setdefault(one.item, []).append(one.scores[name])
    pairs = [(a, b, item) for item, marks in by_item.items() for a, b in combinations(marks, 2)]
    return [*pairs, *((b, a, item) for a, b, item in pairs)]


def _row(pairs: Sequence[Pair], resampling: Resampling) -> tuple[Value, ...]:
    if not pairs:
        return (0, 0, *[None] * 9)
    first, second, items = zip(*pairs, strict=True)
    found: Agreement = agreement(first, second, items, resampling=resampling)
    means: list[Value] = [found.kappa, found.linear, found.pearson, found.spearman, found.distance]
    return (found.items, found.ratings, *means, found.variance, found.bias, found.exact, found.within_one)


def _finding(done: Sequence[Marked]) -> str:
    if not done:
        return "No forecast was marked."
    weakest = min(DIMENSIONS, key=lambda name: sum(one.scores[name] for one in done))
    overall = sum(one.mean for one in done) / len(done)
    return f"{len(done)} forecasts have a mean mark of {overall:.2f}; they are weakest in {DIMENSIONS[weakest].label}."


def _notes(marked: Sequence[Marked], ratings: Sequence[Rating], known: set[str]) -> list[str]:
    lost = Counter(one.problem for one in marked if not one.scores)
    told = [f"{n} forecasts could not be marked: {why}" for why, n in lost.most_common(5)]
    strangers = sum(one.item not in known for one in ratings)
    return [*told, *([f"{strangers} ratings are of items that were not judged"] if strangers else [])]
