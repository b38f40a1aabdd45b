"""The error analysis of one forecaster as a web page."""

from collections.abc import Sequence

import numpy as np

from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.groups import question_set, score_by_group
from foretell.report.html import HtmlBlock, HtmlCell, HtmlRow, columns_of, number_cell, page, table_block
from foretell.report.markup import clean, shorten
from foretell.report.numbers import bracket, column_name, estimate, metric_text, number, percent, plural, signed
from foretell.scoring.error_analysis import NOTABLE_DIFFERENCE, CalibrationGap, ErrorAnalysis, GroupShare, WorstForecast


def error_analysis_page(found: ErrorAnalysis, title: str | None = None) -> str:
    """A whole HTML document."""
    sections = [
        ("groups", "Score by group", _groups(found)),
        ("calibration", "Forecasts and what happened", _calibration(found)),
        ("cases", "Hardest and easiest questions", _cases(found)),
        ("set", "The questions themselves", _questions(found)),
        ("sample", "Is the sample like the whole?", _shares(found)),
    ]
    return page(title or f"Error analysis of {found.forecaster}", sections, lead=error_analysis_lead(found))


def error_analysis_lead(found: ErrorAnalysis) -> str:
    """The analysis in a sentence or two."""
    word = metric_text(found.method.metric)
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
    word = metric_text(found.method.metric)
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
    return [HtmlBlock(charts=charts, style="grid"), _bins(found.worst_bins)]


def _bins(bins: Sequence[CalibrationGap]) -> HtmlBlock:
    heads = ["Forecast", "Mean forecast", "Happened", "95 % interval", "Gap", "Forecasts", "Part of ECE"]
    lines = [
        HtmlRow(
            cells=[
                HtmlCell(text=f"{b.low:.2f}–{b.high:.2f}", value=b.low),
                number_cell(f"{b.mean_p:.2f}", b.mean_p),
                number_cell(f"{b.frequency:.2f}", b.frequency),
                number_cell(bracket(b.frequency_low, b.frequency_high, 2), b.frequency_low, "n ci"),
                number_cell(signed(b.frequency - b.mean_p, 2), b.frequency - b.mean_p),
                number_cell(f"{b.count:,}", b.count),
                number_cell(percent(b.share_of_error), b.share_of_error),
            ]
        )
        for b in bins
    ]
    return table_block(columns_of(heads), lines, "Worst calibrated ranges first")


def _cases(found: ErrorAnalysis) -> list[HtmlBlock]:
    if not found.hardest:
        return []
    return [
        HtmlBlock(heading="Hardest"),
        _case_table(found.hardest, "Largest Brier scores"),
        HtmlBlock(heading="Easiest"),
        _case_table(found.easiest, "Smallest Brier scores"),
    ]


def _case_table(cases: Sequence[WorstForecast], caption: str) -> HtmlBlock:
    heads = ["Question", "Target", "p", "Outcome", "Brier", "All forecasters", "Price"]
    lines = [
        HtmlRow(
            cells=[
                _question(case),
                HtmlCell(text=shorten(case.target, 24), is_name=True),
                number_cell(f"{case.p:.2f}", case.p),
                number_cell("yes" if case.outcome else "no", case.outcome),
                number_cell(number(case.brier, 3), case.brier),
                number_cell(number(case.field, 3), case.field),
                number_cell(number(case.price, 2), case.price),
            ]
        )
        for case in cases
    ]
    return table_block(columns_of(heads, texts=2), lines, caption)


def _question(case: WorstForecast) -> HtmlCell:
    text, detail = (case.title, shorten(case.question, 24)) if case.title else (case.question, "")
    text = shorten(text, 200 if case.title else 64)
    return HtmlCell(text=text, detail=detail, value=case.question, style="long", is_name=True)


def _questions(found: ErrorAnalysis) -> list[HtmlBlock]:
    charts = [question_set(b) for b in found.breakdowns if len(b.groups) <= 30]
    return [HtmlBlock(charts=charts, style="pair")] if charts else []


def _shares(found: ErrorAnalysis) -> list[HtmlBlock]:
    if not found.shares:
        return []
    text = (
        "Share of each group among the sampled targets and among all. The standardised difference is the gap over "
        f"its spread; beyond ±{NOTABLE_DIFFERENCE} (marked) the sample leans to one side."
    )
    columns = columns_of(["Column", "Group", "Sample", "Whole", "Standardised difference"], texts=2)
    rows = [_share_row(share) for share in found.shares]
    return [HtmlBlock(text=text, style="quiet"), table_block(columns, rows, "Sample against whole")]


def _share_row(s: GroupShare) -> HtmlRow:
    style = "n bad" if abs(s.difference) > NOTABLE_DIFFERENCE else "n"
    return HtmlRow(
        cells=[
            HtmlCell(text=column_name(s.column)),
            HtmlCell(text=s.group, is_name=True),
            number_cell(percent(s.in_sample), s.in_sample),
            number_cell(percent(s.in_whole), s.in_whole),
            number_cell(signed(s.difference, 2), s.difference, style),
        ]
    )
