"""What a study is made of and what comes out of it: tables whose numbers carry their intervals, pictures and notes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from math import isfinite, nan
from typing import Any, Literal, cast

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.comparison import Comparison
from foretell.questions.errors import InputError
from foretell.report.charts.svg import Chart

SCHEMA = "foretell/study/1"
CellValue = str | int | float | Interval | Comparison | None
"""What a cell of a table may hold; None is written as a dash."""
RowStyle = Literal["", "anchor", "reference"]
StudyProgress = Callable[[int, int], None]


def ignore_progress(done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, kw_only=True)
class StudyInput:
    """What a study looks at: configurations by name, all over the same targets, and how sure it is to be."""

    tables: Mapping[str, Examples]
    paper: Callable[[], Mapping[str, Examples]] | None = None
    """Reads the same with the prices, priors and outcomes of the paper; None where there is only one version."""
    chosen: tuple[str, ...] = ()
    """Configurations to look at one by one; empty leaves the choice to the study."""
    resampling: Resampling = field(default_factory=Resampling)
    progress: StudyProgress = ignore_progress


@dataclass(frozen=True, kw_only=True)
class StudyColumn:
    """One column of a table."""

    label: str
    decimals: int = 1
    tip: str = ""
    numeric: bool = True


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """One line of a table: its name and a value for each column."""

    name: str
    values: tuple[CellValue, ...]
    style: RowStyle = ""


@dataclass(frozen=True, kw_only=True)
class StudyTable:
    """A table with what has to be said about it."""

    title: str
    columns: tuple[StudyColumn, ...]
    entries: tuple[StudyRow, ...]
    head: str = ""
    """Over the names of the lines."""
    caption: str = ""

    def __post_init__(self) -> None:
        for entry in self.entries:
            if len(entry.values) != len(self.columns):
                raise ValueError(f"{entry.name!r} has {len(entry.values)} values for {len(self.columns)} columns")


@dataclass(frozen=True, kw_only=True)
class StudyChart:
    """A figure with its title; the name makes its file."""

    name: str
    title: str
    figure: Chart


@dataclass(frozen=True, kw_only=True)
class StudyResult:
    """The result of a study, ready to print, to write as a page and to save."""

    name: str
    title: str
    finding: str
    """The result in a sentence or two."""
    grids: tuple[StudyTable, ...]
    pictures: tuple[StudyChart, ...] = ()
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    advice: tuple[str, ...] = ()
    """How to read it; empty where the advice on all studies of scores will do."""

    def grid(self, title: str) -> StudyTable:
        """The table of that title."""
        return next(grid for grid in self.grids if grid.title == title)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; of the pictures only name and title; numbers that do not exist are null."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "title": self.title,
            "finding": self.finding,
            "grids": [_table_to_dict(grid) for grid in self.grids],
            "pictures": [{"name": one.name, "title": one.title} for one in self.pictures],
            "notes": list(self.notes),
            "settings": _plain(dict(self.settings)),
            "advice": list(self.advice),
        }


def study_from_dict(data: Mapping[str, Any]) -> StudyResult:
    """The study that `to_dict` wrote, without its pictures; a number that is null is NaN."""
    if data.get("schema") != SCHEMA:
        raise InputError(f"this is no study: its schema is {data.get('schema')!r}", hint=f"it should be {SCHEMA}")
    try:
        return StudyResult(
            name=str(data["name"]),
            title=str(data["title"]),
            finding=str(data["finding"]),
            grids=tuple(_table_from_dict(grid) for grid in data["grids"]),
            notes=tuple(data["notes"]),
            settings=data["settings"],
            advice=tuple(data.get("advice", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the study is damaged: {type(error).__name__} {error}") from None


def _table_to_dict(grid: StudyTable) -> dict[str, Any]:
    keys = _column_keys([column.label for column in grid.columns])
    entries = [
        {"name": entry.name, **{key: _plain(value) for key, value in zip(keys, entry.values, strict=True)}}
        for entry in grid.entries
    ]
    return {
        "title": grid.title,
        "head": grid.head,
        "caption": grid.caption,
        "columns": keys,
        "looks": [asdict(column) for column in grid.columns],
        "entries": entries,
        "styles": [entry.style for entry in grid.entries],
    }


def _column_keys(labels: list[str]) -> list[str]:
    """What the values of each column are called: its label, numbered where that is taken."""
    taken = {"name"}
    keys: list[str] = []
    for label in labels:
        key, number = label, 2
        while key in taken:
            key, number = f"{label} ({number})", number + 1
        taken.add(key)
        keys.append(key)
    return keys


def _table_from_dict(data: Mapping[str, Any]) -> StudyTable:
    keys: list[str] = data["columns"]
    columns = tuple(StudyColumn(**look) for look in data.get("looks", [{"label": key} for key in keys]))
    styles = data.get("styles", [""] * len(data["entries"]))
    entries = [
        StudyRow(
            name=entry["name"],
            values=tuple(_value_from_dict(entry[key], column) for key, column in zip(keys, columns, strict=True)),
            style=style,
        )
        for entry, style in zip(data["entries"], styles, strict=True)
    ]
    return StudyTable(
        title=data["title"],
        head=data.get("head", ""),
        caption=data["caption"],
        columns=columns,
        entries=tuple(entries),
    )


def _value_from_dict(value: Any, column: StudyColumn) -> CellValue:
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        kind = Comparison if "diff" in given else Interval
        numbers = {one.name for one in fields(kind)} - {"stars", "warning"}
        read: dict[str, Any] = {key: nan if one is None and key in numbers else one for key, one in given.items()}
        return kind(**read)
    return nan if value is None and column.numeric else value


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
