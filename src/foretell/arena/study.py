"""What a study is made of and what comes out of it: tables whose numbers carry their intervals, pictures and notes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from math import isfinite
from typing import Any, Literal

from foretell.arena.report.svg import Figure
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison
from foretell.forecasters.combine.rows import Examples

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

    def grid(self, title: str) -> Grid:
        """The table of that title."""
        return next(grid for grid in self.grids if grid.title == title)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without the pictures; numbers that do not exist are null."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "title": self.title,
            "finding": self.finding,
            "grids": [_grid(grid) for grid in self.grids],
            "notes": list(self.notes),
            "settings": _plain(dict(self.settings)),
        }


def _grid(grid: Grid) -> dict[str, Any]:
    labels = [column.label for column in grid.columns]
    entries = [
        {"name": entry.name, **{label: _plain(value) for label, value in zip(labels, entry.values, strict=True)}}
        for entry in grid.entries
    ]
    return {"title": grid.title, "caption": grid.caption, "columns": labels, "entries": entries}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
