"""The error analysis of one forecaster as a web page."""

from collections.abc import Iterable, Sequence

import numpy as np

from foretell.metrics.bootstrap import Interval
from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.groups import question_set, score_by_group
from foretell.report.html import HtmlBlock, page
from foretell.report.markup import clean, shorten
from foretell.report.numbers import column_name, estimate, metric_text, percent, plural
from foretell.report.study import StudyColumn, StudyRow, StudyTable
from foretell.scoring.breakdown import NOTABLE_DIFFERENCE, CalibrationGap, ErrorAnalysis, WorstForecast


def error_analysis_page(found: ErrorAnalysis, title: str | None = None) -> str:
    """A whole HTML document."""
    cases = [
        HtmlBlock(heading="Hardest"),
        _case_table(found.hardest, "Largest Brier scores"),
        HtmlBlock(heading="Easiest"),
        _case_table(found.easiest, "Smallest Brier scores"),
    ]
    questions = [question_set(b) for b in found.breakdowns if len(b.groups) <= 30]
    sections = [
        ("groups", "Score by group", _groups(found)),
        ("calibration", "Forecasts and what happened", _calibration(found)),
        ("cases", "Hardest and easiest questions", cases if found.hardest else []),
        ("set", "The questions themselves", [HtmlBlock(charts=questions, style="pair")] if questions else []),
        ("sample", "Is the sample like the whole?", _shares(found)),
    ]
    return page(title or f"Error analysis of {found.forecaster}", sections, lead=error_analysis_lead(found))


def error_analysis_lead(found: ErrorAnalysis) -> str:
    """The analysis in a sentence or two."""
    word = metric_text(found.scoring.metric)
    scores = found.brier[np.isfinite(found.brier)]
    who = clean(found.forecaster)
    if not len(scores):
        return f"{who} answered no resolved target."
    kinds = next((" (mean over kinds)" for b in found.breakdowns if b.column == "kind"), "")
    worst = np.sort(scores)[::-1][: max(1, len(scores) // 10)]
    text = (
        f"{who} scores {word.label} {estimate(found.overall, word.decimals)} "
        f"on {plural(len(scores), 'target')}{kinds}. "
        f"The worst tenth of them makes up {percent(float(worst.sum() / max(scores.sum(), 1e-12)))} of its Brier score"
    )
    if found.in_sample is not None:
        text += f"; within the sample it scores {estimate(found.in_sample, word.decimals)}"
    return text + "."


def _groups(found: ErrorAnalysis) -> list[HtmlBlock]:
    word = metric_text(found.scoring.metric)
    if not found.breakdowns:
        return []
    charts = [score_by_group(b, label=word.label, decimals=word.decimals) for b in found.breakdowns]
    blocks = [HtmlBlock(charts=charts, style="pair")]
    compared = [b for b in found.differences if len(b.groups) > 1]
    if compared:
        label = f"{word.label} difference"
        gaps = [score_by_group(b, label=label, decimals=word.decimals, zero=True) for b in compared]
        heading = f"Minus {found.reference or ''}, on the targets both answered"
        blocks += [HtmlBlock(heading=heading), HtmlBlock(charts=gaps, style="pair")]
    return blocks


def _calibration(found: ErrorAnalysis) -> list[HtmlBlock]:
    p, targets = found.p, found.targets
    if not np.isfinite(p).any():
        return []
    charts = [
        reliability_diagram(p, targets.outcome, targets.weight, name=found.forecaster),
        correctness_histogram(found.brier, name=found.forecaster),
    ]
    if (np.isfinite(p) & np.isfinite(targets.price)).any():
        charts.append(conservatism_plot(p, targets.price, name=found.forecaster))
    bins = _table("Worst calibrated ranges first", "Forecast", BINS, map(_bin, found.worst_bins))
    return [HtmlBlock(charts=charts, style="grid"), bins]


BINS = (
    StudyColumn(label="Mean forecast", decimals=2),
    StudyColumn(label="Happened", decimals=2, tip="with its 95 % interval"),
    StudyColumn(label="Gap", decimals=2),
    StudyColumn(label="Forecasts"),
    StudyColumn(label="% of ECE", decimals=0),
)
CASES = (
    StudyColumn(label="Id", numeric=False),
    StudyColumn(label="Target", numeric=False),
    StudyColumn(label="p", decimals=2),
    StudyColumn(label="Outcome"),
    StudyColumn(label="Brier", decimals=3),
    StudyColumn(label="All forecasters", decimals=3),
    StudyColumn(label="Price", decimals=2),
)
SHARES = (
    StudyColumn(label="Column", numeric=False),
    StudyColumn(label="Sample"),
    StudyColumn(label="Whole"),
    StudyColumn(label="Standardised difference", decimals=2),
    StudyColumn(label="Remark", numeric=False),
)


def _table(title: str, names: str, columns: tuple[StudyColumn, ...], rows: Iterable[StudyRow]) -> HtmlBlock:
    return HtmlBlock(table=StudyTable(title=title, row_header=names, columns=columns, rows=tuple(rows)))


def _bin(b: CalibrationGap) -> StudyRow:
    happened = Interval(
        estimate=b.frequency, low=b.frequency_low, high=b.frequency_high, se=float("nan"), n_clusters=b.count, draws=0
    )
    gap = b.frequency - b.mean_p
    return StudyRow(name=f"{b.low:.2f}–{b.high:.2f}", values=(b.mean_p, happened, gap, b.count, 100 * b.share_of_error))


def _case_table(cases: Sequence[WorstForecast], title: str) -> HtmlBlock:
    rows = [
        StudyRow(
            name=shorten(case.title, 200) if case.title else shorten(case.question, 64),
            values=(
                shorten(case.question, 24) if case.title else "",
                shorten(case.target, 24),
                case.p,
                "yes" if case.outcome else "no",
                case.brier,
                case.field,
                case.price,
            ),
        )
        for case in cases
    ]
    return _table(title, "Question", CASES, rows)


def _shares(found: ErrorAnalysis) -> list[HtmlBlock]:
    if not found.shares:
        return []
    text = (
        "Share of each group among the sampled targets and among all. The standardised difference is the gap over "
        f"its spread; beyond ±{NOTABLE_DIFFERENCE} the sample leans to one side."
    )
    rows = [
        StudyRow(
            name=s.group,
            values=(
                column_name(s.column),
                percent(s.in_sample),
                percent(s.in_whole),
                s.difference,
                "leans" if abs(s.difference) > NOTABLE_DIFFERENCE else "",
            ),
        )
        for s in found.shares
    ]
    return [HtmlBlock(text=text, style="quiet"), _table("Sample against whole", "Group", SHARES, rows)]
