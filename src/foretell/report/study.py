"""The result of a study: sentences, tables whose numbers have intervals, charts, notes and the cost.

Every study and the audit of a run return a `StudyContent`. `foretell.report.document` shows it in a terminal, as
Markdown and as a web page; `to_dict` returns the content of its JSON file.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.tabular import Tabular
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.charts.svg import Chart
from foretell.report.numbers import CellUnit
from foretell.report.numbers import CellValue as CellValue
from foretell.report.provenance import Provenance, current_command
from foretell.scoring.verdict import Verdict, corrected

if TYPE_CHECKING:
    from foretell.forecasters.combine.rows import Examples

SCHEMA = "foretell/study/2"
RowStyle = Literal["", "baseline", "reference"]


def cell_number(value: CellValue, *, gain: bool = False) -> float:
    """Return the number in a cell without its interval; NaN if there is none.

    >>> cell_number(3), cell_number("text")
    (3.0, nan)
    """
    if isinstance(value, Interval):
        return value.estimate
    if isinstance(value, Verdict):
        return value.gain if gain else value.diff
    return float(value) if isinstance(value, int | float) else nan


@frozen
class StudyColumn:
    """A column of a table."""

    label: str
    decimals: int = 1
    tip: str = ""
    """Short explanation of the column."""
    numeric: bool = True
    brief: bool = False
    """Whether intervals are left out."""
    gain: bool = False
    """Whether differences are shown so that above 0 is better, whatever the metric."""
    unit: CellUnit = ""


@frozen
class StudyRow:
    """A row of a table: its name and a value for each column."""

    name: str
    values: tuple[CellValue, ...]
    style: RowStyle = ""


@frozen
class StudyTable:
    """A table with its title and caption."""

    title: str
    columns: tuple[StudyColumn, ...]
    rows: tuple[StudyRow, ...]
    row_header: str = ""
    """Heading of the column with the row names."""
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.values) != len(self.columns):
                raise ValueError(f"{row.name!r} has {len(row.values)} values for {len(self.columns)} columns")

    def column(self, label: str) -> dict[str, CellValue]:
        """Return the values of one column by row name."""
        place = [column.label for column in self.columns].index(label)
        return {row.name: row.values[place] for row in self.rows}

    def numbers(self, label: str) -> dict[str, float]:
        """Return the numbers of one column by row name, without intervals; rows without a number are left out."""
        numbers = {name: cell_number(value) for name, value in self.column(label).items()}
        return {name: value for name, value in numbers.items() if isfinite(value)}


@frozen
class StudyChart:
    """A chart with its title; its file is named after `name`."""

    name: str
    title: str
    chart: Chart


@frozen
class StudyFile:
    """A file that a study writes next to its report, such as a sheet for raters."""

    name: str
    text: str


@frozen
class StudyContent(Tabular):
    """The result of a study: sentences, tables, charts and notes."""

    name: str
    """The name of the study in the registry."""
    title: str
    sentences: tuple[str, ...]
    """The result in a sentence or two."""
    tables: tuple[StudyTable, ...] = ()
    charts: tuple[StudyChart, ...] = ()
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings needed to reproduce the result."""
    how_to_read: tuple[str, ...] = ()
    """Advice on how to read the result; empty for the general advice on studies of scores."""
    cost: Cost | None = None
    """Cost of the study's model calls; None if it calls no model."""
    passed: bool | None = None
    """Whether the check passed; None if the study is not a check."""
    files: tuple[StudyFile, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further plain data for the JSON file, such as every finding of an audit."""
    command: str = field(default_factory=current_command, compare=False)
    """The command or call that made it, without secrets; empty if it is not known."""

    @property
    def text(self) -> str:
        """All sentences as one text."""
        return " ".join(self.sentences)

    def __str__(self) -> str:
        return self.text

    def made(self) -> Provenance:
        """Return the provenance of a page of this study that is made now."""
        return Provenance.now(self.settings, command=self.command)

    def table(self, title: str) -> StudyTable:
        """Return the table with this title."""
        return next(table for table in self.tables if table.title == title)

    @property
    def ok(self) -> bool:
        """False if a check failed; the command then exits with code 1."""
        return self.passed is not False

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 if a check failed."""
        return 0 if self.ok else 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user: what the model calls cost."""
        return () if self.cost is None else (f"{self.cost}; if it is run again, stored replies cost nothing",)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per cell of every table, for CSV and Parquet: table, row, column, value, low, high, text."""
        rows: list[dict[str, Any]] = []
        for table in self.tables:
            for row in table.rows:
                for column, value in zip(table.columns, row.values, strict=True):
                    ranged = isinstance(value, Interval | Verdict)
                    numbers = (cell_number(value), value.low if ranged else nan, value.high if ranged else nan)
                    line = {"table": table.title, "row": row.name, "column": column.label}
                    line |= dict(zip(("value", "low", "high"), map(plain_data, numbers), strict=True))
                    rows.append({**line, "text": value if isinstance(value, str) else None})
        return rows

    def write_charts(self, path: Path) -> list[Path]:
        """Write the charts as SVG or PNG, by the suffix; returns the files written.

        If there are several, each file has the chart's name before its suffix. Raises InputError if there is none.
        """
        if not self.charts:
            raise InputError("this study has no chart", path=path)
        several = len(self.charts) > 1
        paths = [path.with_stem(f"{path.stem}-{chart.name}") if several else path for chart in self.charts]
        return [chart.chart.save(name) for chart, name in zip(self.charts, paths, strict=True)]

    def to_json(self) -> str:
        """Return the result as JSON; missing numbers are null."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; charts and files are given by name only, and missing numbers are null."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "title": self.title,
            "sentences": list(self.sentences),
            "tables": [_table_to_dict(table) for table in self.tables],
            "charts": [{"name": chart.name, "title": chart.title} for chart in self.charts],
            "notes": list(self.notes),
            "settings": plain_data(dict(self.settings)),
            "how_to_read": list(self.how_to_read),
            "cost": None if self.cost is None else _cost_to_dict(self.cost),
            "passed": self.passed,
            "files": [file.name for file in self.files],
            "details": plain_data(dict(self.details)),
            "command": self.command,
        }


AnyStudy = TypeVar("AnyStudy", bound=StudyContent)


def _cost_to_dict(cost: Cost) -> dict[str, Any]:
    """Return calls and dollars; tokens are left out, because replies from the journal do not count them again."""
    money = {"dollars": round(cost.dollars, 9), "reused": round(cost.reused, 9)}
    return {"calls": cost.calls, **money, "unpriced": cost.unpriced}


def _table_to_dict(table: StudyTable) -> dict[str, Any]:
    keys = _column_keys([column.label for column in table.columns])
    rows = [
        {"name": row.name, **{key: plain_data(value) for key, value in zip(keys, row.values, strict=True)}}
        for row in table.rows
    ]
    return {
        "title": table.title,
        "row_header": table.row_header,
        "caption": table.caption,
        "columns": keys,
        "formats": [asdict(column) for column in table.columns],
        "rows": rows,
        "styles": [row.style for row in table.rows],
    }


def _column_keys(labels: Sequence[str]) -> list[str]:
    """Return the key of each column's values: its label, with a number if that is taken."""
    taken = {"name"}
    keys: list[str] = []
    for label in labels:
        key, number = label, 2
        while key in taken:
            key, number = f"{label} ({number})", number + 1
        taken.add(key)
        keys.append(key)
    return keys


def _corrected(cells: Sequence[CellValue]) -> list[CellValue]:
    """Return the cells of a column, with verdicts corrected for their number."""
    verdicts = iter(corrected([cell for cell in cells if isinstance(cell, Verdict)]))
    return [next(verdicts) if isinstance(cell, Verdict) else cell for cell in cells]


# Tables, charts and costs as most studies show them.


Rows = Mapping[str, Sequence[CellValue]] | Sequence[tuple[str, Sequence[CellValue]]]
"""Values by row name, in the order of the columns."""


def column(label: str, tip: str = "", decimals: int = 1) -> StudyColumn:
    """Create a column of numbers."""
    return StudyColumn(label=label, tip=tip, decimals=decimals)


def count(label: str, tip: str = "") -> StudyColumn:
    """Create a column of whole numbers."""
    return StudyColumn(label=label, tip=tip, decimals=0)


def share(label: str, tip: str = "") -> StudyColumn:
    """Create a column of probabilities or shares, which are shown in percent."""
    return StudyColumn(label=label, tip=tip, unit="percent")


def points(label: str, tip: str = "") -> StudyColumn:
    """Create a column of differences of probabilities or shares, which are shown in percentage points."""
    return StudyColumn(label=label, tip=tip, unit="points")


def words(label: str, tip: str = "") -> StudyColumn:
    """Create a column of text."""
    return StudyColumn(label=label, tip=tip, numeric=False)


def table(  # noqa: PLR0913 - what tables differ in
    title: str,
    row_header: str,
    columns: Iterable[StudyColumn],
    rows: Rows,
    *,
    caption: str = "",
    styles: Mapping[str, RowStyle] | None = None,
    correct: bool = True,
) -> StudyTable:
    """Build a table; `styles` maps row names to how they are highlighted.

    Stars are corrected for the number of differences in their column (Holm); set `correct` to False if that has been
    done.
    """
    named = list(rows.items() if isinstance(rows, Mapping) else rows)
    columns_of_cells = zip(*(values for _, values in named), strict=True)
    lines = zip(*(_corrected(cells) if correct else cells for cells in columns_of_cells), strict=True)
    table_rows = [
        StudyRow(name=name, values=tuple(values), style=(styles or {}).get(name, ""))
        for (name, _), values in zip(named, lines, strict=True)
    ]
    return StudyTable(
        title=title, row_header=row_header, columns=tuple(columns), rows=tuple(table_rows), caption=caption
    )


def forest_chart(
    name: str,
    title: str,
    intervals: Mapping[str, Interval | None],
    label: str,
    *,
    decimals: int = 1,
    reference: float | None = None,
) -> StudyChart:
    """Plot numbers with their intervals below each other, in the order given; missing ones are left out."""
    rows = [ForestRow(name=name, interval=interval) for name, interval in intervals.items() if interval is not None]
    chart = forest_plot(rows, label=label, decimals=decimals, reference=reference)
    return StudyChart(name=name, title=title, chart=chart)


def reliability_chart(place: int, title: str, p: Floats, examples: "Examples", *, name: str) -> StudyChart:
    """Plot the reliability of probabilities for the targets of `examples`; `place` numbers the chart."""
    chart = reliability_diagram(p, examples.outcome, examples.weight, name=name)
    return StudyChart(name=f"reliability-{place}", title=title, chart=chart)


def draw_settings(how: Resampling) -> dict[str, Any]:
    """Return the settings needed to reproduce the intervals."""
    return {"draws": how.draws, "level": how.level, "seed": how.seed}


def with_cost(result: AnyStudy, cost: Cost, **settings: Any) -> AnyStudy:
    """Return the result with the cost of its model calls, and with `settings` before its own."""
    note = (f"{cost.unpriced} calls have no known price and are not included in the dollars",) if cost.unpriced else ()
    return replace(result, settings={**settings, **result.settings}, notes=(*result.notes, *note), cost=cost)
