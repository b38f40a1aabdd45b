"""Study: which of two forecasters is better, by how much more than noise, and where do they differ most?"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.metrics.comparison import Comparison
from foretell.report.charts.calibration import agreement_plot, reliability_diagram
from foretell.report.headline import pair_headline
from foretell.report.numbers import metric_text
from foretell.report.study import StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.request import setting
from foretell.scoring.join import ReadOptions, read_table
from foretell.scoring.ranking import group_title, low_is_better
from foretell.scoring.score import PairComparison, ScoringOptions, compare_pair
from foretell.scoring.table import ForecastTable
from foretell.studies.inputs import DataInputs, StudyOptions

MAX_TARGETS = 25
"""Targets listed one by one."""
MAX_TEXT = 120
ADVICE = (
    "Scores are on what each one answered; differences only on what both did, recomputed on resamples of whole "
    "clusters, so that what makes a question hard drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, "
    "one-sided.",
    "Gained is how much smaller the first one's squared error is on that target: above 0 it was nearer to the outcome.",
)


class ComparisonOptions(StudyOptions):
    """The table of forecasts, and which two forecasters are compared."""

    first: str = setting(help="A forecaster.", argument=True, metavar="FIRST")
    second: str = setting(help="The one it is compared with.", argument=True, metavar="SECOND")
    forecasts: Path = setting(
        help="Table of forecasts: forecaster, question, target, p.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Path = setting(
        help="Table of outcomes: question, target, outcome, and columns to group by.",
        flag="-o/--outcomes",
        metavar="FILE",
    )
    by: tuple[str, ...] = setting((), "Also compare within the groups of this column; repeatable.", metavar="COLUMN")


def study(inputs: DataInputs, options: ComparisonOptions) -> StudyResult:
    """Which of two forecasters is better, and where?

    Paired differences by group, the targets on which they are farthest apart, and how well both are calibrated.

      foretell study comparison knn linear -f run/forecasts.csv -o run/outcomes.csv --by source
    """
    table = read_table(options.forecasts, options.outcomes, ReadOptions())
    scoring = ScoringOptions(by=options.by, resampling=options.resampling)
    return comparison_study(table, options.first, options.second, scoring=scoring)


def comparison_study(
    table: ForecastTable,
    first: str,
    second: str,
    *,
    texts: Mapping[str, str] | None = None,
    scoring: ScoringOptions | None = None,
) -> StudyResult:
    """Both on the targets of a table; `texts` says what a question asks."""
    pair = compare_pair(table, first, second, replace(scoring or ScoringOptions(), anchors=False))
    both = [table.p_of(name) for name in (first, second)]
    outcome, weight = table.targets.outcome, table.targets.weight
    common = np.isfinite(both[0]) & np.isfinite(both[1])
    agreement = agreement_plot(*both, names=(first, second))
    charts = [StudyChart(name="agreement", title="Where they agree", chart=agreement)]
    charts += [
        StudyChart(
            name=f"reliability-{n}",
            title=f"Reliability of {name}",
            chart=reliability_diagram(p[common], outcome[common], weight[common], name=name),
        )
        for n, (name, p) in enumerate(zip((first, second), both, strict=True), 1)
        if common.any()
    ]
    return StudyResult(
        name="comparison",
        title=f"{first} and {second}",
        sentences=(pair_headline(pair),),
        tables=(_differences(pair), _disagreements(table, pair, both, texts or {})),
        charts=tuple(charts),
        settings={"targets both answered": int(common.sum()), "level of intervals": pair.level},
    )


def _differences(pair: PairComparison) -> StudyTable:
    scores = {(tuple(score.group.items()), score.forecaster): score for score in pair.scores}
    metric = pair.differences[0].metric if pair.differences else "bi"
    told = metric_text(metric)
    columns = (
        StudyColumn(label="targets", decimals=0),
        StudyColumn(label=pair.first, decimals=told.decimals, tip=told.meaning),
        StudyColumn(label=f"{pair.second} ", decimals=told.decimals, tip=told.meaning),
        StudyColumn(label="ahead by", decimals=told.decimals, tip="above 0 the first one is better"),
    )
    entries: list[StudyRow] = []
    for found in pair.differences:
        key = tuple(found.group.items())
        sides = [scores.get((key, name)) for name in (pair.first, pair.second)]
        values = [side.metrics.get(metric) if side else None for side in sides]
        gap = _flipped(found.comparison) if low_is_better(metric) else found.comparison
        entries.append(StudyRow(name=group_title(found.group), values=(found.comparison.n, *values, gap)))
    return StudyTable(title=f"{told.label}, group by group", row_header="Group", columns=columns, rows=tuple(entries))


def _flipped(comparison: Comparison) -> Comparison:
    return replace(comparison, diff=-comparison.diff, low=-comparison.high, high=-comparison.low)


def _disagreements(
    table: ForecastTable, pair: PairComparison, both: list[Floats], texts: Mapping[str, str]
) -> StudyTable:
    """The targets on which they are farthest apart."""
    apart = np.abs(both[0] - both[1])
    order = np.argsort(-np.nan_to_num(apart, nan=-1.0), kind="stable")[:MAX_TARGETS]
    targets = table.targets
    columns = (
        StudyColumn(label="target", numeric=False),
        StudyColumn(label=pair.first, decimals=2),
        StudyColumn(label=f"{pair.second} ", decimals=2),
        StudyColumn(label="price", decimals=2),
        StudyColumn(label="happened", decimals=0),
        StudyColumn(label="gained", decimals=3, tip="squared error of the second minus that of the first"),
    )
    entries: list[StudyRow] = []
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
        entries.append(StudyRow(name=texts.get(question, question)[:MAX_TEXT], values=values))
    return StudyTable(
        title="Where they differ",
        row_header="Question",
        columns=columns,
        rows=tuple(entries),
        caption=f"The {len(entries)} targets on which they are farthest apart, of those that have come out.",
    )
