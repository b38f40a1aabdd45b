"""A study as one web page: the finding, every table, the pictures, and how to read them."""

from collections.abc import Sequence

from foretell.arena.report.markup import Markup, element, join
from foretell.arena.report.page import (
    Cell,
    Head,
    Line,
    contents,
    definitions,
    name,
    number_cell,
    page,
    paragraph,
    section,
    shown,
    table,
)
from foretell.arena.report.reading import setting
from foretell.arena.report.study_text import told
from foretell.arena.report.wording import bracket, number, signed
from foretell.arena.study import Column, Entry, Grid, Picture, Study, Value
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison

ADVICE = (
    "BI is the Brier index 100·(1 − √Brier) of all targets together: 50 is always-0.5, 100 is perfect. Overall is the "
    "mean of the kinds (market, dataset).",
    "Δ is a paired difference: both sides are recomputed on the same resamples of whole questions, so what makes a "
    "question hard drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, one-sided, without correction "
    "for the number of lines.",
    "Questions that resolve on one day hang together as well. Δ two-way resamples resolution days beside questions; "
    "where the two intervals disagree, believe the wider one.",
)


def study_page(study: Study, advice: Sequence[str] = ()) -> str:
    """A whole HTML document that needs no network; `advice` says how to read it, else the study does."""
    parts = study_parts(study, advice)
    return page(
        study.title,
        paragraph(study.finding, "lead"),
        contents([(anchor, title) for anchor, title, _ in parts]),
        *(section(title, body, anchor=anchor) for anchor, title, body in parts),
    )


def study_parts(study: Study, advice: Sequence[str] = ()) -> list[tuple[str, str, Markup]]:
    """Anchor, title and body of every section: tables, pictures after the first of them, and how to read it all."""
    parts = [(f"table-{i}", grid.title, _grid(grid)) for i, grid in enumerate(study.grids, 1)]
    if study.pictures:
        parts.insert(1, ("pictures", "Pictures", _pictures(study.pictures)))
    return [*parts, ("reading", "How to read this", _reading(study, advice or study.advice or ADVICE))]


def _pictures(pictures: Sequence[Picture]) -> Markup:
    """Wide ones below each other, the others side by side."""
    wide = [join(element("h3", one.title), shown(one.figure)) for one in pictures if one.figure.wide]
    narrow = [element("div", shown(one.figure)) for one in pictures if not one.figure.wide]
    return join(*wide, element("div", *narrow, class_="grid") if narrow else None)


def _grid(grid: Grid) -> Markup:
    heads = [Head(label=grid.head or " ")]
    heads += [Head(label=c.label, numeric=c.numeric, tip=c.tip or None) for c in grid.columns]
    lines = [_line(entry, grid.columns) for entry in grid.entries]
    return table(heads, lines, grid.caption or grid.title)


def _line(entry: Entry, columns: tuple[Column, ...]) -> Line:
    cells = [_cell(value, column) for value, column in zip(entry.values, columns, strict=True)]
    return Line(cells=[Cell(shown=name(entry.name), style="name"), *cells], style=entry.style or None)


def _cell(value: Value, column: Column) -> Cell:
    if isinstance(value, Interval):
        ends = element("span", bracket(value.low, value.high, column.decimals), class_="ci")
        return number_cell(join(number(value.estimate, column.decimals), " ", ends), value.estimate)
    if isinstance(value, Comparison):
        good = ("good" if value.diff > 0 else "bad") if value.stars else None
        ends = element("span", bracket(value.low, value.high, column.decimals), class_="ci")
        gap = element("span", signed(value.diff, column.decimals) + value.stars, class_=good)
        return number_cell(join(gap, " ", ends), value.diff)
    text = told(value, column.decimals)
    if isinstance(value, int | float):
        return number_cell(text, float(value))
    return Cell(shown=text, style="n" if column.numeric else None)


def _reading(study: Study, advice: Sequence[str]) -> Markup:
    return join(
        *(paragraph(one) for one in advice),
        element("h3", "Notes") if study.notes else None,
        element("ul", *(element("li", note) for note in study.notes)) if study.notes else None,
        element("h3", "Settings"),
        definitions([(key, setting(value)) for key, value in study.settings.items()]),
    )
