"""Tables, charts and costs as most studies show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.comparison import Comparison, holm, stars
from foretell.questions.forecast import Cost
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.study import CellValue, RowStyle, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable

Rows = Mapping[str, Sequence[CellValue]] | Sequence[tuple[str, Sequence[CellValue]]]
"""Values by the name of their row, in the order of the columns."""


def column(label: str, tip: str = "", decimals: int = 1) -> StudyColumn:
    """A column of numbers."""
    return StudyColumn(label=label, tip=tip, decimals=decimals)


def count(label: str, tip: str = "") -> StudyColumn:
    """A column of whole numbers."""
    return StudyColumn(label=label, tip=tip, decimals=0)


def words(label: str, tip: str = "") -> StudyColumn:
    """A column of texts."""
    return StudyColumn(label=label, tip=tip, numeric=False)


def table(
    title: str,
    row_header: str,
    columns: Iterable[StudyColumn],
    rows: Rows,
    *,
    caption: str = "",
    styles: Mapping[str, RowStyle] | None = None,
) -> StudyTable:
    """A table; `styles` says by the name of a row how it is set off.

    Stars are corrected for the number of differences in their column (Holm).
    """
    named = list(rows.items() if isinstance(rows, Mapping) else rows)
    lines = zip(*(_corrected(cells) for cells in zip(*(values for _, values in named), strict=True)), strict=True)
    made = [
        StudyRow(name=name, values=values, style=(styles or {}).get(name, ""))
        for (name, _), values in zip(named, lines, strict=True)
    ]
    return StudyTable(title=title, row_header=row_header, columns=tuple(columns), rows=tuple(made), caption=caption)


def _corrected(cells: Sequence[CellValue]) -> list[CellValue]:
    """The cells of a column; of differences the stars go by p-values corrected for their number."""
    found = list(cells)
    many = [(i, cell) for i, cell in enumerate(cells) if isinstance(cell, Comparison)]
    for (i, cell), p in zip(many, holm([cell.p_two_sided for _, cell in many]).tolist(), strict=True):
        found[i] = replace(cell, stars=stars(p) if cell.stars else "")
    return found


def forest_chart(
    name: str,
    title: str,
    intervals: Mapping[str, Interval | None],
    label: str,
    *,
    decimals: int = 1,
    reference: float | None = None,
) -> StudyChart:
    """Numbers with their intervals, one below the other in the order given; those that do not exist are left out."""
    rows = [ForestRow(name=who, interval=one) for who, one in intervals.items() if one is not None]
    chart = forest_plot(rows, label=label, decimals=decimals, reference=reference)
    return StudyChart(name=name, title=title, chart=chart)


def reliability_chart(place: int, title: str, p: Floats, examples: Examples, *, name: str) -> StudyChart:
    """The reliability diagram of probabilities for the targets of examples; `place` numbers the chart."""
    chart = reliability_diagram(p, examples.outcome, examples.weight, name=name)
    return StudyChart(name=f"reliability-{place}", title=title, chart=chart)


def draw_settings(how: Resampling) -> dict[str, Any]:
    """What it takes to draw the same intervals again."""
    return {"draws": how.draws, "level": how.level, "seed": how.seed}


def with_cost(result: StudyResult, cost: Cost, **settings: Any) -> StudyResult:
    """A result with what its model calls cost, and with settings that stand before its own."""
    note = (f"{cost.unpriced} calls have no known price: dollars leave them out",) if cost.unpriced else ()
    return replace(result, settings={**settings, **result.settings}, notes=(*result.notes, *note), cost=cost)
