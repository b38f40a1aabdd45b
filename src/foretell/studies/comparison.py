"""Study: which of two forecasters is better, by how much more than noise, and where do they differ most?"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from foretell.report.charts.calibration import agreement_plot, reliability_diagram
from foretell.report.headline import pair_headline
from foretell.report.numbers import metric_text
from foretell.report.study import CellValue, StudyChart, StudyResult, StudyTable
from foretell.request import setting
from foretell.scoring.join import ReadOptions, read_table
from foretell.scoring.score import PairComparison, ScoringOptions, compare_pair
from foretell.scoring.scoreboard import group_title, low_is_better
from foretell.scoring.table import ForecastTable
from foretell.studies.inputs import DataInputs, StudyOptions
from foretell.studies.layout import column, count, table, words

MAX_TARGETS = 25
"""Targets listed one by one."""
MAX_TEXT = 120
ADVICE = (
    "Scores are on what each one answered; differences only on what both did, recomputed on resamples of whole "
    "clusters, so that what makes a question hard drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, "
    "two-sided.",
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
    forecasts = read_table(options.forecasts, options.outcomes, ReadOptions())
    scoring = ScoringOptions(by=options.by, resampling=options.resampling)
    return comparison_study(forecasts, options.first, options.second, scoring=scoring)


def comparison_study(
    forecasts: ForecastTable,
    first: str,
    second: str,
    *,
    texts: Mapping[str, str] | None = None,
    scoring: ScoringOptions | None = None,
) -> StudyResult:
    """Both on the targets of a table; `texts` says what a question asks."""
    pair = compare_pair(forecasts, first, second, replace(scoring or ScoringOptions(), anchors=False))
    both = {name: forecasts.p_of(name) for name in (first, second)}
    outcome, weight = forecasts.targets.outcome, forecasts.targets.weight
    common = np.all([np.isfinite(p) for p in both.values()], axis=0)
    agreement = agreement_plot(both[first], both[second], names=(first, second))
    charts = [StudyChart(name="agreement", title="Where they agree", chart=agreement)]
    for place, (name, p) in enumerate(both.items() if common.any() else (), 1):
        drawn = reliability_diagram(p[common], outcome[common], weight[common], name=name)
        charts.append(StudyChart(name=f"reliability-{place}", title=f"Reliability of {name}", chart=drawn))
    return StudyResult(
        name="comparison",
        title=f"{first} and {second}",
        sentences=(pair_headline(pair),),
        tables=(_differences(pair), _disagreements(forecasts, pair, texts or {})),
        charts=tuple(charts),
        settings={"targets both answered": int(common.sum()), "level of intervals": pair.level},
    )


def _differences(pair: PairComparison) -> StudyTable:
    scores = {(tuple(one.group.items()), one.forecaster): one.metrics for one in pair.scores}
    metric = pair.differences[0].metric if pair.differences else "bi"
    text = metric_text(metric)
    columns = (
        count("targets"),
        column(pair.first, text.meaning, text.decimals),
        column(f"{pair.second} ", text.meaning, text.decimals),
        column("ahead by", "above 0 the first one is better", text.decimals),
    )
    rows: list[tuple[str, tuple[CellValue, ...]]] = []
    for one in pair.differences:
        group = tuple(one.group.items())
        sides = [scores.get((group, name), {}).get(metric) for name in (pair.first, pair.second)]
        ahead = one.comparison.times(-1) if low_is_better(metric) else one.comparison
        rows.append((group_title(one.group), (one.comparison.n, *sides, ahead)))
    # The whole is one question, its groups are many: only their stars are corrected for each other.
    whole, groups = (table(f"{text.label}, group by group", "Group", columns, part) for part in (rows[:1], rows[1:]))
    return replace(whole, rows=(*whole.rows, *groups.rows))


def _disagreements(forecasts: ForecastTable, pair: PairComparison, texts: Mapping[str, str]) -> StudyTable:
    """The targets on which they are farthest apart."""
    a, b, targets = forecasts.p_of(pair.first), forecasts.p_of(pair.second), forecasts.targets
    apart = np.abs(a - b)
    order = np.argsort(-np.nan_to_num(apart, nan=-1.0), kind="stable")[:MAX_TARGETS]
    columns = (
        words("target"),
        column(pair.first, decimals=2),
        column(f"{pair.second} ", decimals=2),
        column("price", decimals=2),
        count("happened"),
        column("gained", "squared error of the second minus that of the first", 3),
    )
    rows: list[tuple[str, tuple[CellValue, ...]]] = []
    for i in order[np.isfinite(apart[order])].tolist():
        question = targets.question.names[targets.question.codes[i]]
        p, q, y = float(a[i]), float(b[i]), float(targets.outcome[i])
        price = float(targets.price[i]) if np.isfinite(targets.price[i]) else None
        target = targets.target.names[targets.target.codes[i]]
        values = (target, p, q, price, int(y), (q - y) ** 2 - (p - y) ** 2)
        rows.append((texts.get(question, question)[:MAX_TEXT], values))
    caption = f"The {len(rows)} targets on which they are farthest apart, of those that have come out."
    return table("Where they differ", "Question", columns, rows, caption=caption)
