"""Presentation of a comparison of forecasters: the verdict, the scores on common targets, and where they differ."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from foretell.report.charts.calibration import agreement_plot, reliability_diagram
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.document import rich_study_table
from foretell.report.leaderboard import SIGNS
from foretell.report.markup import clean
from foretell.report.numbers import CellValue, column_heading, metric_text, plural
from foretell.report.study import (
    StudyChart,
    StudyColumn,
    StudyResult,
    StudyTable,
    column,
    count,
    draw_settings,
    table,
    words,
)
from foretell.scoring.score import PairComparison
from foretell.scoring.scoreboard import group_title
from foretell.scoring.table import ForecastTable

if TYPE_CHECKING:
    from rich.console import Console

MAX_TARGETS = 25
"""Maximum number of targets that are listed."""
MAX_TEXT = 120
COMPARISON_ADVICE = (
    "Both scores and their difference are on the targets that both answered, recomputed on resamples of whole "
    "clusters, so that what makes a question hard for everyone drops out.",
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
    second = pairs[0].second
    first = clean(pairs[0].first) if len(pairs) == 1 else "Score"
    columns = (
        StudyColumn(label=first, decimals=decimals, tip=word.meaning),
        StudyColumn(label=f"{clean(second)} ", decimals=decimals, tip=word.meaning),
        StudyColumn(label="Difference", decimals=decimals, tip=f"minus {clean(second)}"),
        words("Verdict"),
        count("n", "targets both answered"),
    )
    rows: list[tuple[str, tuple[CellValue, ...]]] = []
    for verdict in verdicts:
        group = group_title(verdict.group)
        name = (
            group if len(pairs) == 1 else verdict.first if len(pairs[0].verdicts) == 1 else f"{verdict.first} · {group}"
        )
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
            ties = f" {plural(test.left_out, 'target')} left out: a forecast of 0.5 takes no side." * bool(
                test.left_out
            )
            notes.append(f"{text}; McNemar's exact test, two-sided, p {test.p:.3f}.{ties}")
        if pair.verdicts and (warning := pair.verdicts[0].warning):
            notes.append(f"{pair.first} and {pair.second}: {warning}.")
    return [*dict.fromkeys(notes), SIGNS]


def comparison_study(
    forecasts: ForecastTable, pairs: Sequence[PairComparison], texts: Mapping[str, str] | None = None
) -> StudyResult:
    """Show pairs of forecasters of a table; `texts` holds the wording of questions and targets.

    A single pair also gets the targets on which the two are farthest apart, and how well both are calibrated.
    """
    names = " and ".join(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    known = [pair for pair in pairs if pair.verdicts]
    sentences = [text for pair in pairs for text in (pair.sentence, _correction(pair)) if text]
    shared = {"targets both answered": known[0].verdicts[0].n} if len(known) == 1 else {}
    settings = shared | draw_settings(pairs[0].resampling)
    if not known:
        return StudyResult(name="comparison", title=names, sentences=tuple(sentences), tables=(), settings=settings)
    one = known[0] if len(known) == 1 else None
    return StudyResult(
        name="comparison",
        title=names if len(pairs) == 1 else f"{len(pairs)} forecasters against {pairs[0].second}",
        sentences=tuple(sentences),
        tables=(comparison_table(known), *([_disagreements(forecasts, one, texts or {})] if one else ())),
        charts=tuple(_pair_charts(forecasts, one) if one else [_forest(known)]),
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
        column(pair.first, decimals=2),
        column(f"{pair.second} ", decimals=2),
        column("price", decimals=2),
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
