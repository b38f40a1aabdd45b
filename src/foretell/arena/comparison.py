"""Two forecasters side by side, as a study: who is better and by how much more than noise, and where they part."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from foretell.arena.pairing import Pair, compare_pair
from foretell.arena.report.figures.agreement import agreement_plot
from foretell.arena.report.figures.reliability import reliability_diagram
from foretell.arena.report.headline import pair_headline
from foretell.arena.report.ranking import group_title, low_is_better
from foretell.arena.report.wording import wording
from foretell.arena.scoring import Scoring
from foretell.arena.study import Column, Entry, Grid, Picture, Study
from foretell.arena.table import Table
from foretell.evaluate.arrays import Floats
from foretell.evaluate.significance import Comparison

MOST = 25
"""Targets listed one by one."""
LONGEST = 120
ADVICE = (
    "Scores are on what each one answered; differences only on what both did, recomputed on resamples of whole "
    "clusters, so that what makes a question hard drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, "
    "one-sided.",
    "Gained is how much smaller the first one's squared error is on that target: above 0 it was nearer to the outcome.",
)


def comparison_study(
    table: Table, first: str, second: str, *, texts: Mapping[str, str] | None = None, scoring: Scoring | None = None
) -> Study:
    """Both on the targets of a table; `texts` says what a question asks."""
    pair = compare_pair(table, first, second, replace(scoring or Scoring(), anchors=False))
    both = [table.p_of(name) for name in (first, second)]
    outcome, weight = table.targets.outcome, table.targets.weight
    common = np.isfinite(both[0]) & np.isfinite(both[1])
    agreement = agreement_plot(*both, names=(first, second))
    pictures = [Picture(name="agreement", title="Where they agree", figure=agreement)]
    pictures += [
        Picture(
            name=f"reliability-{n}",
            title=f"Reliability of {name}",
            figure=reliability_diagram(p[common], outcome[common], weight[common], name=name),
        )
        for n, (name, p) in enumerate(zip((first, second), both, strict=True), 1)
        if common.any()
    ]
    return Study(
        name="comparison",
        title=f"{first} and {second}",
        finding=pair_headline(pair),
        grids=(_differences(pair), _parted(table, pair, both, texts or {})),
        pictures=tuple(pictures),
        settings={"targets both answered": int(common.sum()), "level of intervals": pair.level},
    )


def _differences(pair: Pair) -> Grid:
    scores = {(tuple(score.group.items()), score.forecaster): score for score in pair.scores}
    metric = pair.differences[0].metric if pair.differences else "bi"
    told = wording(metric)
    columns = (
        Column(label="targets", decimals=0),
        Column(label=pair.first, decimals=told.decimals, tip=told.meaning),
        Column(label=f"{pair.second} ", decimals=told.decimals, tip=told.meaning),
        Column(label="ahead by", decimals=told.decimals, tip="above 0 the first one is better"),
    )
    entries: list[Entry] = []
    for found in pair.differences:
        key = tuple(found.group.items())
        sides = [scores.get((key, name)) for name in (pair.first, pair.second)]
        values = [side.metrics.get(metric) if side else None for side in sides]
        gap = _flipped(found.comparison) if low_is_better(metric) else found.comparison
        entries.append(Entry(name=group_title(found.group), values=(found.comparison.n, *values, gap)))
    return Grid(title=f"{told.label}, group by group", head="Group", columns=columns, entries=tuple(entries))


def _flipped(comparison: Comparison) -> Comparison:
    return replace(comparison, diff=-comparison.diff, low=-comparison.high, high=-comparison.low)


def _parted(table: Table, pair: Pair, both: list[Floats], texts: Mapping[str, str]) -> Grid:
    """The targets on which they are farthest apart."""
    apart = np.abs(both[0] - both[1])
    order = np.argsort(-np.nan_to_num(apart, nan=-1.0), kind="stable")[:MOST]
    targets = table.targets
    columns = (
        Column(label="target", numeric=False),
        Column(label=pair.first, decimals=2),
        Column(label=f"{pair.second} ", decimals=2),
        Column(label="price", decimals=2),
        Column(label="happened", decimals=0),
        Column(label="gained", decimals=3, tip="squared error of the second minus that of the first"),
    )
    entries: list[Entry] = []
    for i in (int(place) for place in order if np.isfinite(apart[place])):
        question = targets.question.names[targets.question.codes[i]]
        y = float(targets.outcome[i])
        values = (
            targets.target.names[targets.target.codes[i]],
            float(both[0][i]),
            float(both[1][i]),
            float(targets.price[i]) if np.isfinite(targets.price[i]) else None,
            int(y),
            float((both[1][i] - y) ** 2 - (both[0][i] - y) ** 2),
        )
        entries.append(Entry(name=texts.get(question, question)[:LONGEST], values=values))
    return Grid(
        title="Where they part",
        head="Question",
        columns=columns,
        entries=tuple(entries),
        caption=f"The {len(entries)} targets on which they are farthest apart, of those that have come out.",
    )
