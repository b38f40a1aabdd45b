"""The error analysis of one forecaster as a web page."""

from collections.abc import Sequence

import numpy as np

from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.groups import question_set, score_by_group
from foretell.report.html import (
    HtmlCell,
    HtmlColumn,
    HtmlRow,
    contents,
    name,
    number_cell,
    page,
    paragraph,
    section,
    shown,
    table,
)
from foretell.report.markup import Markup, clean, element, join, shorten
from foretell.report.numbers import bracket, column_name, estimate, metric_text, number, percent, plural, signed
from foretell.scoring.error_analysis import NOTABLE_DIFFERENCE, CalibrationGap, ErrorAnalysis, GroupShare, WorstForecast


def error_analysis_page(found: ErrorAnalysis, title: str | None = None) -> str:
    """A whole HTML document."""
    parts = [
        ("groups", "Score by group", _groups(found)),
        ("calibration", "What it said and what happened", _calibration(found)),
        ("cases", "Hardest and easiest questions", _cases(found)),
        ("set", "The questions themselves", _questions(found)),
        ("sample", "Is the sample like the whole?", _shares(found)),
    ]
    kept = [(anchor, head, body) for anchor, head, body in parts if body is not None]
    return page(
        title or f"Error analysis of {clean(found.forecaster)}",
        paragraph(error_analysis_lead(found), "lead"),
        contents([(anchor, head) for anchor, head, _ in kept]),
        *(section(head, body, anchor=anchor) for anchor, head, body in kept),
    )


def error_analysis_lead(found: ErrorAnalysis) -> str:
    """The analysis in a sentence or two."""
    word = metric_text(found.method.metric)
    scores = found.brier[np.isfinite(found.brier)]
    who = clean(found.forecaster)
    if not len(scores):
        return f"{who} answered no resolved target."
    kinds = next((" (mean over kinds)" for b in found.breakdowns if b.column == "kind"), "")
    worst = np.sort(scores)[::-1][: max(1, len(scores) // 10)]
    told = (
        f"{who} scores {word.label} {estimate(found.overall, word.decimals)} "
        f"on {plural(len(scores), 'target')}{kinds}. "
        f"The worst tenth of them makes up {percent(float(worst.sum() / max(scores.sum(), 1e-12)))} of its Brier score"
    )
    if found.in_sample is not None:
        told += f"; within the sample it scores {estimate(found.in_sample, word.decimals)}"
    return told + "."


def _groups(found: ErrorAnalysis) -> Markup | None:
    word = metric_text(found.method.metric)
    if not found.breakdowns:
        return None
    figures = [shown(score_by_group(b, label=word.label, decimals=word.decimals)) for b in found.breakdowns]
    plain = element("div", *figures, class_="pair")
    compared = [b for b in found.differences if len(b.groups) > 1]
    if not compared:
        return plain
    label = f"{word.label} difference"
    gaps = [shown(score_by_group(b, label=label, decimals=word.decimals, zero=True)) for b in compared]
    told = f"Minus {clean(found.reference or '')}, on the targets both answered"
    return join(plain, element("h3", told), element("div", *gaps, class_="pair"))


def _calibration(found: ErrorAnalysis) -> Markup | None:
    p, targets = found.p, found.targets
    if not np.isfinite(p).any():
        return None
    pictures = [
        shown(reliability_diagram(p, targets.outcome, targets.weight, name=found.forecaster)),
        shown(correctness_histogram(found.brier, name=found.forecaster)),
    ]
    if (np.isfinite(p) & np.isfinite(targets.price)).any():
        pictures.append(shown(conservatism_plot(p, targets.price, name=found.forecaster)))
    return join(element("div", *pictures, class_="grid"), _bins(found.worst_bins))


def _bins(bins: Sequence[CalibrationGap]) -> Markup:
    heads = ["Forecast", "Mean forecast", "Happened", "95 % interval", "Gap", "Forecasts", "Part of ECE"]
    lines = [
        HtmlRow(
            cells=[
                HtmlCell(shown=f"{b.low:.2f}–{b.high:.2f}", value=b.low),
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
    return table(
        [HtmlColumn(label=h, numeric=i > 0) for i, h in enumerate(heads)], lines, "Worst calibrated ranges first"
    )


def _cases(found: ErrorAnalysis) -> Markup | None:
    if not found.hardest:
        return None
    return join(
        element("h3", "Hardest"),
        _case_table(found.hardest, "Largest Brier scores"),
        element("h3", "Easiest"),
        _case_table(found.easiest, "Smallest Brier scores"),
    )


def _case_table(cases: Sequence[WorstForecast], caption: str) -> Markup:
    heads = ["Question", "Target", "p", "Outcome", "Brier", "All forecasters", "Price"]
    lines = [
        HtmlRow(
            cells=[
                HtmlCell(shown=_question(case), value=case.question, style="long"),
                HtmlCell(shown=name(shorten(case.target, 24))),
                number_cell(f"{case.p:.2f}", case.p),
                number_cell("yes" if case.outcome else "no", case.outcome),
                number_cell(number(case.brier, 3), case.brier),
                number_cell(number(case.field, 3), case.field),
                number_cell(number(case.price, 2), case.price),
            ]
        )
        for case in cases
    ]
    return table([HtmlColumn(label=h, numeric=i > 1) for i, h in enumerate(heads)], lines, caption)


def _question(case: WorstForecast) -> Markup:
    if not case.title:
        return name(shorten(case.question, 64))
    return join(name(shorten(case.title, 200)), " ", element("span", name(shorten(case.question, 24)), class_="quiet"))


def _questions(found: ErrorAnalysis) -> Markup | None:
    figures = [shown(question_set(b)) for b in found.breakdowns if len(b.groups) <= 30]
    return element("div", *figures, class_="pair") if figures else None


def _shares(found: ErrorAnalysis) -> Markup | None:
    if not found.shares:
        return None
    told = (
        "Share of each group among the sampled targets and among all. The standardised difference is the gap over "
        f"its spread; beyond ±{NOTABLE_DIFFERENCE} (marked) the sample leans to one side."
    )
    heads = ["Column", "Group", "Sample", "Whole", "Standardised difference"]
    body = table(
        [HtmlColumn(label=h, numeric=i > 1) for i, h in enumerate(heads)],
        [_share_line(s) for s in found.shares],
        "Sample against whole",
    )
    return join(paragraph(told, "quiet"), body)


def _share_line(s: GroupShare) -> HtmlRow:
    style = "n bad" if abs(s.difference) > NOTABLE_DIFFERENCE else "n"
    return HtmlRow(
        cells=[
            HtmlCell(shown=column_name(s.column)),
            HtmlCell(shown=name(s.group)),
            number_cell(percent(s.in_sample), s.in_sample),
            number_cell(percent(s.in_whole), s.in_whole),
            number_cell(signed(s.difference, 2), s.difference, style),
        ]
    )
