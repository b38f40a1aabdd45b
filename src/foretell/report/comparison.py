"""Presentation of a comparison of forecasters: the verdict, the scores on common targets, and where they differ."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import McNemarTest, benjamini_hochberg, holm
from foretell.metrics.decisions import clear_answers, consensus_matrix
from foretell.metrics.metric import metric_text
from foretell.metrics.scores import called_true
from foretell.number_text import plural
from foretell.report.charts.calibration import agreement_plot, reliability_diagram
from foretell.report.charts.groups import distance_heatmap, verdict_heatmap
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.document import rich_study_table
from foretell.report.leaderboard import SIGNS
from foretell.report.markup import clean
from foretell.report.numbers import CellValue, column_heading
from foretell.report.study import StudyChart, StudyColumn, StudyTable, column, count, draw_settings, table, words
from foretell.report.study_result import StudyResult
from foretell.scoring.score import PairComparison, accuracies
from foretell.scoring.scoreboard import Score, group_title
from foretell.scoring.table import ForecastTable
from foretell.scoring.verdict import METRIC_NOUNS, Correction, Verdict

if TYPE_CHECKING:
    from rich.console import Console

MAX_TARGETS = 25
"""Maximum number of targets that are listed."""
MAX_TEXT = 120
COMPARISON_ADVICE = (
    "Both scores and their difference are on the targets that both answered, recomputed on resamples of whole "
    "clusters, so that the difficulty of questions cancels.",
    "Gained is how much smaller the first one's squared error is on that target: above 0 it was nearer to the outcome.",
)


def print_comparison(pairs: Sequence[PairComparison], console: "Console", notes: Sequence[str] = ()) -> None:
    """Print the verdict on every pair, a table with a row for each pair and group, and the notes."""
    from rich.text import Text

    for pair in pairs:
        console.print(Text(clean(pair.sentence), style="bold"))
        if note := pair.verdicts[0].correction_text if pair.verdicts else "":
            console.print(Text(note))
    if not any(pair.verdicts for pair in pairs):
        return
    console.print()
    console.print(rich_study_table(comparison_table(pairs), console.width))
    console.print()
    for note in (*comparison_notes(pairs), *notes):
        console.print(Text(clean(note), style="dim"))


def comparison_table(pairs: Sequence[PairComparison]) -> StudyTable:
    """Build a table with a row for each pair and group: both scores on the common targets, and the difference."""
    verdicts = [verdict for pair in pairs for verdict in pair.verdicts]
    word, decimals = metric_text(verdicts[0].metric), verdicts[0].decimals
    # All pairs have no common reference.
    second = clean(pairs[0].second) if len({pair.second for pair in pairs}) == 1 else "second"
    first = clean(pairs[0].first) if len(pairs) == 1 else "Score"
    columns = (
        StudyColumn(label=first, decimals=decimals, tip=word.meaning),
        StudyColumn(label=f"{second} ", decimals=decimals, tip=word.meaning),
        StudyColumn(label="Difference", decimals=decimals, tip=f"minus {second}"),
        words("Verdict"),
        count("n", "targets both answered"),
    )
    rows: list[tuple[str, tuple[CellValue, ...]]] = []
    for verdict in verdicts:
        group = group_title(verdict.group)
        first = f"{verdict.first} − {verdict.second}" if second == "second" else verdict.first
        name = group if len(pairs) == 1 else first if len(pairs[0].verdicts) == 1 else f"{first} · {group}"
        says = f"{verdict.symbol} {verdict.says}"
        rows.append((name, (verdict.first_score, verdict.second_score, verdict, says, verdict.n)))
    header = "Group" if len(pairs) == 1 else "Forecaster"
    return table(column_heading(word.label), header, columns, rows, correct=False)


def comparison_notes(pairs: Sequence[PairComparison]) -> list[str]:
    """Return the notes of a comparison, one per line."""
    notes = list[str]()
    for pair in pairs:
        if (test := pair.mcnemar) is not None:
            text = (
                f"Right where the other is wrong: {pair.first} {test.only_a}, {pair.second} {test.only_b} of {test.n}"
            )
            ties = f" {plural(test.left_out, 'target')} left out: a forecast of 0.5 is neither right nor wrong." * bool(
                test.left_out
            )
            notes.append(f"{text}; McNemar's exact test, two-sided, p {test.p:.3f}.{ties}")
    merged = (note for pair in pairs for note in pair.notes)
    return [*dict.fromkeys((*notes, *_warnings(pairs), *merged)), SIGNS]


def _warnings(pairs: Sequence[PairComparison]) -> list[str]:
    return [
        f"{pair.first} and {pair.second}: {pair.verdicts[0].warning}."
        for pair in pairs
        if pair.verdicts and pair.verdicts[0].warning
    ]


def comparison_study(
    forecasts: ForecastTable, pairs: Sequence[PairComparison], texts: Mapping[str, str] | None = None
) -> StudyResult:
    """Show pairs of forecasters of a table; `texts` has the wording of questions and targets.

    A single pair also gets the targets on which the two are farthest apart, and how well both are calibrated.
    """
    names = " and ".join(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    known = [pair for pair in pairs if pair.verdicts]
    sentences = [text for pair in pairs for text in (pair.sentence, _correction(pair)) if text]
    shared = {"targets both answered": known[0].verdicts[0].n} if len(known) == 1 else {}
    settings = shared | draw_settings(pairs[0].resampling)
    if not known:
        return StudyResult(name="comparison", title=names, sentences=tuple(sentences), tables=(), settings=settings)
    pair = known[0] if len(known) == 1 else None
    return StudyResult(
        name="comparison",
        title=names if len(pairs) == 1 else f"{len(pairs)} forecasters against {pairs[0].second}",
        sentences=tuple(sentences),
        tables=(comparison_table(known), *([_disagreements(forecasts, pair, texts or {})] if pair else ())),
        charts=tuple(_pair_charts(forecasts, pair) if pair else [_forest(known)]),
        notes=(*comparison_notes(known), *forecasts.notes),
        settings=settings,
        how_to_read=COMPARISON_ADVICE,
    )


def _correction(pair: PairComparison) -> str:
    return pair.verdicts[0].correction_text if pair.verdicts else ""


def _pair_charts(forecasts: ForecastTable, pair: PairComparison) -> list[StudyChart]:
    both = {name: forecasts.p_of(name) for name in (pair.first, pair.second)}
    outcome, weight = forecasts.targets.outcome, forecasts.targets.weight
    common = np.all([np.isfinite(p) for p in both.values()], axis=0)
    agreement = agreement_plot(both[pair.first], both[pair.second], names=(pair.first, pair.second))
    charts = [StudyChart(name="agreement", title="Where they agree", chart=agreement)]
    for place, (name, p) in enumerate(both.items(), 1):
        drawn = reliability_diagram(p[common], outcome[common], weight[common], name=name)
        charts.append(StudyChart(name=f"reliability-{place}", title=f"Reliability of {name}", chart=drawn))
    return charts


def _forest(pairs: Sequence[PairComparison]) -> StudyChart:
    verdicts = [pair.verdicts[0] for pair in pairs]
    rows = [ForestRow(name=verdict.first, interval=verdict.interval) for verdict in verdicts]
    label = f"{column_heading(metric_text(verdicts[0].metric).label)} minus that of {pairs[0].second}"
    chart = forest_plot(rows, label=label, decimals=verdicts[0].decimals, reference=0.0)
    return StudyChart(name="differences", title="Differences", chart=chart)


def _disagreements(forecasts: ForecastTable, pair: PairComparison, texts: Mapping[str, str]) -> StudyTable:
    """The targets on which they are farthest apart."""
    a, b, targets = forecasts.p_of(pair.first), forecasts.p_of(pair.second), forecasts.targets
    apart = np.abs(a - b)
    order = np.argsort(-np.nan_to_num(apart, nan=-1.0), kind="stable")[:MAX_TARGETS]
    columns = (
        words("target"),
        StudyColumn(label=pair.first, unit="percent"),
        StudyColumn(label=f"{pair.second} ", unit="percent"),
        StudyColumn(label="price", unit="percent"),
        words("outcome"),
        column("gained", "squared error of the second minus that of the first", 3),
    )
    rows: list[tuple[str, tuple[CellValue, ...]]] = []
    for i in order[np.isfinite(apart[order])].tolist():
        question = targets.question.names[targets.question.codes[i]]
        p, q, y = float(a[i]), float(b[i]), float(targets.outcome[i])
        price = float(targets.price[i]) if np.isfinite(targets.price[i]) else None
        target = targets.target.names[targets.target.codes[i]]
        happened = {0.0: "no", 1.0: "yes"}.get(y, f"{y:g}")
        values = (texts.get(target, target)[:MAX_TEXT], p, q, price, happened, (q - y) ** 2 - (p - y) ** 2)
        rows.append((texts.get(question, question)[:MAX_TEXT], values))
    caption = f"The {len(rows)} resolved targets on which they are farthest apart"
    return table("Where they differ", "Question", columns, rows, caption=caption)


# All pairs of forecasters: verdicts, and McNemar's test.

MATRIX_NOTES = (
    "A forecast is right if p is on the same side of one half as the outcome. The accuracy is that of score: over all "
    "targets that a forecaster answered, with their weights, and exactly one half counts half. McNemar's test counts "
    "targets that both answered, without weights and without forecasts of one half.",
    "McNemar's test treats targets as independent. Horizons of one question and questions of one day are not, so its "
    "p-values and intervals (Newcombe 1998) are too small on such data. The verdicts resample whole clusters instead.",
    "Agreement is the share of targets that two forecasters put on the same side, without forecasts of one half.",
)


def matrix_study(forecasts: ForecastTable, pairs: Sequence[PairComparison], correction: Correction) -> StudyResult:
    """Show all pairs of forecasters, the best first: the verdict on each, McNemar's test and how often they agree."""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    verdicts = [pair.verdicts[0] for pair in pairs if pair.verdicts]
    counted = forecasts.targets.weight > 0
    side = np.stack([clear_answers(called_true(forecasts.p_of(name)[counted])) for name in names])
    agree = 100 * consensus_matrix(side)
    board = _against_best(names, pairs, accuracies(forecasts.only(*names)))
    charts = list[StudyChart]()
    if verdicts:
        word = metric_text(verdicts[0].metric)
        chart = verdict_heatmap(names, verdicts, label=word.label, decimals=verdicts[0].decimals)
        charts.append(StudyChart(name="verdicts", title="Who beats whom", chart=chart))
    apart = distance_heatmap(names, 100 - agree, label="% of targets put on different sides", decimals=0)
    charts.append(StudyChart(name="agreement", title="How often two differ", chart=apart))
    same = {(names[i], names[j]): float(agree[i, j]) for i, j in np.argwhere(np.isfinite(agree)) if i != j}
    agreement = _pairs_table("Agreement, % of targets", names, same, 0)
    groups = [comparison_table(pairs)] if any(len(pair.verdicts) > 1 for pair in pairs) else []
    return StudyResult(
        name="comparison",
        title=f"All pairs of {len(names)} forecasters",
        sentences=(_matrix_sentence(names, verdicts),),
        tables=(board, *_mcnemar_tables(names, pairs, correction), agreement, *groups),
        charts=tuple(charts),
        notes=(*MATRIX_NOTES, *_warnings(pairs), SIGNS, *forecasts.notes),
        settings={"correction": correction, **draw_settings(pairs[0].resampling)},
        how_to_read=COMPARISON_ADVICE[:1],
    )


def print_matrix(study: StudyResult, console: "Console") -> None:
    """Print the sentence, the tables and the notes of `matrix_study`."""
    from rich.text import Text

    console.print(Text(clean(study.text), style="bold"))
    for shown in study.tables:
        console.print()
        console.print(Text(clean(shown.title), style="bold"))
        console.print(rich_study_table(shown, console.width))
    console.print()
    for note in study.notes:
        console.print(Text(clean(note), style="dim"))


def _matrix_sentence(names: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    # The best is the first of its pairs.
    mine = [verdict for verdict in verdicts if verdict.first == names[0]]
    if not mine:
        return f"{names[0]} has no target with an outcome in common with others."
    beaten = sum(verdict.says == "better" and verdict.survives for verdict in mine)
    noun = METRIC_NOUNS.get(mine[0].metric) or metric_text(mine[0].metric).label
    return (
        f"{names[0]} has the best {noun}; corrected for the number of pairs, it is better by more than chance than "
        f"{beaten} of {plural(len(mine), 'other')}."
    )


def _against_best(names: Sequence[str], pairs: Sequence[PairComparison], accuracy: Mapping[str, Score]) -> StudyTable:
    """The score and accuracy of every forecaster, and its difference to the best on what both answered."""
    against = {pair.second: pair.verdicts[0] for pair in pairs if pair.first == names[0] and pair.verdicts}
    metric = pairs[0].verdicts[0].metric if pairs[0].verdicts else "brier_index"
    word = metric_text(metric)
    columns = (
        StudyColumn(
            label=word.label, decimals=word.decimals, tip=f"{word.meaning}; on the targets shared with the best"
        ),
        StudyColumn(label="best", decimals=word.decimals, brief=True, tip="the best one's score on the same targets"),
        StudyColumn(label="minus the best", decimals=word.decimals, tip="on the targets that both answered"),
        words("Verdict"),
        column("accuracy", "% of all targets that it answered, on the right side of one half", 1),
        count("n", "targets shared with the best"),
    )
    rows: list[tuple[str, tuple[CellValue, ...]]] = []
    for place, name in enumerate(names):
        score = accuracy.get(name)
        share = 100 * score.metrics["accuracy"].estimate if score and "accuracy" in score.metrics else None
        if name in against:
            verdict = against[name].swapped()
            says = f"{verdict.symbol} {verdict.says}"
            rows.append((name, (verdict.first_score, verdict.second_score, verdict, says, share, verdict.n)))
        else:
            most = max(against.values(), key=lambda verdict: verdict.n, default=None)
            best = None if place or most is None else most.first_score
            rows.append((name, (best, best, None, "" if place else "best", share, score.n if score else 0)))
    return table("Score and accuracy", "Forecaster", columns, rows, styles={names[0]: "reference"}, correct=False)


def _mcnemar_tables(
    names: Sequence[str], pairs: Sequence[PairComparison], correction: Correction
) -> tuple[StudyTable, StudyTable]:
    """The difference of accuracy of every pair with its interval, and the p-value of McNemar's test."""
    tests = {(pair.first, pair.second): pair.mcnemar for pair in pairs if pair.mcnemar is not None}
    adjust = {"holm": holm, "bh": benjamini_hochberg}.get(correction, np.asarray)
    p = dict(zip(tests, adjust([test.p for test in tests.values()]).tolist(), strict=True)) if tests else {}
    p |= {(second, first): value for (first, second), value in p.items()}
    gaps = {pair: _accuracy_gap(test) for pair, test in tests.items()}
    gaps |= {(second, first): gap.times(-1) for (first, second), gap in gaps.items()}
    how = {"holm": ", corrected for the number of pairs (Holm)", "bh": ", corrected (Benjamini-Hochberg)"}
    caption = "How often only the row is right minus how often only the column is, in % of the targets of the test"
    return (
        _pairs_table("Right where the other is wrong", names, gaps, 1, caption),
        _pairs_table("p-value of McNemar's exact test", names, p, 3, f"Two-sided{how.get(correction, '')}"),
    )


def _accuracy_gap(test: McNemarTest) -> Interval:
    diff, low, high = (100 * share for share in (test.diff, test.low, test.high))
    return Interval(estimate=diff, low=low, high=high, se=nan, n_clusters=test.n, n_effective=test.n, draws=0)


def _pairs_table(
    title: str, names: Sequence[str], cells: Mapping[tuple[str, str], CellValue], decimals: int, caption: str = ""
) -> StudyTable:
    """Build a table with a cell for every pair; columns are named by the number of their forecaster."""
    columns = tuple(column(str(i), name, decimals) for i, name in enumerate(names, 1))
    rows = {f"{i} {name}": [cells.get((name, other)) for other in names] for i, name in enumerate(names, 1)}
    return table(title, "Forecaster", columns, rows, caption=caption)
