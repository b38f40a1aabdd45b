"""A study by a model as one web page: the finding, every table, and how to read them."""

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
    table,
)
from foretell.arena.report.reading import setting
from foretell.arena.report.study_text import told
from foretell.arena.report.wording import bracket, number, signed
from foretell.arena.study import Column, Entry, Grid, Study, Value
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison


def model_study_page(study: Study, advice: Sequence[str]) -> str:
    """A whole HTML document that needs no network."""
    parts = [(f"table-{i}", grid.title, _grid(grid)) for i, grid in enumerate(study.grids, 1)]
    parts.append(("reading", "How to read this", _reading(study, advice)))
    return page(
        study.title,
        paragraph(study.finding, "lead"),
        contents([(anchor, title) for anchor, title, _ in parts]),
        *(section(title, body, anchor=anchor) for anchor, title, body in parts),
    )


def _grid(grid: Grid) -> Markup:
    heads = [Head(label=grid.head or " ")]
    heads += [Head(label=c.label, numeric=c.numeric, tip=c.tip or None) for c in grid.columns]
    return table(heads, [_line(entry, grid.columns) for entry in grid.entries], grid.caption or grid.title)


def _line(entry: Entry, columns: Sequence[Column]) -> Line:
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
    return Cell(shown=text, style="n" if column.numeric else "long")


def _reading(study: Study, advice: Sequence[str]) -> Markup:
    return join(
        *(paragraph(one) for one in advice),
        element("h3", "Notes") if study.notes else None,
        element("ul", *(element("li", note) for note in study.notes)) if study.notes else None,
        element("h3", "Settings") if study.settings else None,
        definitions([(key, setting(value)) for key, value in study.settings.items()]),
    )
