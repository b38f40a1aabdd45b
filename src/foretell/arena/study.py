"""What a study is made of and what comes out of it: tables whose numbers carry their intervals, pictures and notes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from math import isfinite, nan
from typing import Any, Literal, cast

from foretell.arena.report.svg import Figure
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison
from foretell.forecasters.combine.rows import Examples
from foretell.questions.problems import InputError

SCHEMA = "foretell/study/1"
Value = str | int | float | Interval | Comparison | None
"""What a cell of a table may hold; None is written as a dash."""
Style = Literal["", "anchor", "reference"]
Progress = Callable[[int, int], None]


def quietly(done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a study looks at: configurations by name, all over the same targets, and how sure it is to be."""

    tables: Mapping[str, Examples]
    paper: Callable[[], Mapping[str, Examples]] | None = None
    """Reads the same with the prices, priors and outcomes of the paper; None where there is only one version."""
    chosen: tuple[str, ...] = ()
    """Configurations to look at one by one; empty leaves the choice to the study."""
    resampling: Resampling = field(default_factory=Resampling)
    progress: Progress = quietly


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    label: str
    decimals: int = 1
    tip: str = ""
    numeric: bool = True


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a table: its name and a value for each column."""

    name: str
    values: tuple[Value, ...]
    style: Style = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table with what has to be said about it."""

    title: str
    columns: tuple[Column, ...]
    entries: tuple[Entry, ...]
    head: str = ""
    """Over the names of the lines."""
    caption: str = ""

    def __post_init__(self) -> None:
        for entry in self.entries:
            if len(entry.values) != len(self.columns):
                raise ValueError(f"{entry.name!r} has {len(entry.values)} values for {len(self.columns)} columns")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure with its title; the name makes its file."""

    name: str
    title: str
    figure: Figure


@dataclass(frozen=True, kw_only=True)
class Study:
    """The result of a study, ready to print, to write as a page and to save."""

    name: str
    title: str
    finding: str
    """The result in a sentence or two."""
    grids: tuple[Grid, ...]
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    advice: tuple[str, ...] = ()
    """How to read it; empty where the advice on all studies of scores will do."""

    def grid(self, title: str) -> Grid:
        """The table of that title."""
        return next(grid for grid in self.grids if grid.title == title)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; of the pictures only name and title; numbers that do not exist are null."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "title": self.title,
            "finding": self.finding,
            "grids": [_grid(grid) for grid in self.grids],
            "pictures": [{"name": one.name, "title": one.title} for one in self.pictures],
            "notes": list(self.notes),
            "settings": _plain(dict(self.settings)),
            "advice": list(self.advice),
        }


def study_from_dict(data: Mapping[str, Any]) -> Study:
    """The study that `to_dict` wrote, without its pictures; a number that is null is NaN."""
    if data.get("schema") != SCHEMA:
        raise InputError(f"this is no study: its schema is {data.get('schema')!r}", hint=f"it should be {SCHEMA}")
    try:
        return Study(
            name=str(data["name"]),
            title=str(data["title"]),
            finding=str(data["finding"]),
            grids=tuple(_read_grid(grid) for grid in data["grids"]),
            notes=tuple(data["notes"]),
            settings=data["settings"],
            advice=tuple(data.get("advice", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the study is damaged: {type(error).__name__} {error}") from None


def _grid(grid: Grid) -> dict[str, Any]:
    keys = _keys([column.label for column in grid.columns])
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


def _keys(labels: list[str]) -> list[str]:
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


def _read_grid(data: Mapping[str, Any]) -> Grid:
    keys: list[str] = data["columns"]
    columns = tuple(Column(**look) for look in data.get("looks", [{"label": key} for key in keys]))
    styles = data.get("styles", [""] * len(data["entries"]))
    entries = [
        Entry(
            name=entry["name"],
            values=tuple(_read(entry[key], column) for key, column in zip(keys, columns, strict=True)),
            style=style,
        )
        for entry, style in zip(data["entries"], styles, strict=True)
    ]
    return Grid(
        title=data["title"],
        head=data.get("head", ""),
        caption=data["caption"],
        columns=columns,
        entries=tuple(entries),
    )


def _read(value: Any, column: Column) -> Value:
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
