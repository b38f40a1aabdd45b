"""Series from CSV files: one long table, or one file per series."""

import csv
from collections.abc import Iterator
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from foretell.data.datasets.rows import csv_rows, read_text
from foretell.data.series.series import Days, Series, SeriesUnavailable, series_of
from foretell.data.service import ServiceConfig
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError, MissingExtra
from foretell.questions.question import SeriesRef

LONG = ("series", "date", "value")
SINGLE = ("date", "value")
OWN_SERIES = "series"
"""Folder in the home directory with the user's own series."""


@frozen
class CsvSeries:
    """A file with columns series, date, value; or a directory of such files and of `<id>.csv` with date, value.

    Rows may be in any order. A day that appears twice, an unreadable date or number, or a missing column raises an
    `InputError` that names the file, row and column; an empty value is a missing observation and is skipped.
    """

    path: Path

    def ids(self) -> tuple[str, ...]:
        """Return the known ids, sorted."""
        return tuple(sorted(self._all))

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff."""
        if ref.id not in self._all:
            raise SeriesUnavailable(f"no series {ref.id!r} in {self.path}")
        return self._all[ref.id].until(as_of)

    @cached_property
    def _all(self) -> dict[str, Series]:
        path = Path(self.path)
        if not path.exists():
            raise InputError("there is no such file or directory", path=path)
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        if not files:
            raise InputError("the directory contains no .csv file", path=path)
        values: dict[str, dict[date, float]] = {}
        for file in files:
            for row, (name, day, value) in _rows(file):
                observed = values.setdefault(name, {})
                if day in observed:
                    raise InputError(f"series {name} has a second value for {day}", path=file, row=row, column="date")
                observed[day] = value
        return {name: series_of(name, observed) for name, observed in values.items()}


class OwnSeries:
    """The user's own series for agents and notebooks: a CSV file or a folder of them, cut off by their dates.

    A value counts as known at the end of its day, so date a value that was published later by its day of publication.
    """

    facts = "our own format"
    description = "series of the user's own, by the names in their CSV files"

    def __init__(self, path: Path) -> None:
        self._files = CsvSeries(path=path)

    @classmethod
    def available(cls, config: ServiceConfig) -> bool:
        """Whether there are any such series."""
        return config.series is not None or (config.home / OWN_SERIES).exists()

    @classmethod
    def open(cls, config: ServiceConfig) -> "OwnSeries":
        """Open for the registry: the path in the settings, else the folder `series` in the home directory."""
        return cls(config.series or config.home / OWN_SERIES)

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff."""
        try:
            known = await self._files.fetch(ref, as_of)
        except InputError as problem:
            raise SeriesUnavailable(f"{problem} (series in settings.toml names CSV files)") from None
        if not len(known):
            raise SeriesUnavailable(f"nothing of csv/{ref.id} was known at {as_of}")
        return known


def _rows(file: Path) -> Iterator[tuple[int, tuple[str, date, float]]]:
    """Yield row number, then series id, day and value, of every row with a value."""
    header = next(csv.reader(read_text(file).splitlines()), [])
    wanted = LONG if "series" in header else SINGLE
    for column in wanted:
        if column not in header:
            hint = f"columns must be {', '.join(LONG)}, or {', '.join(SINGLE)}"
            raise InputError("the column is missing", path=file, column=column, hint=hint)
    for row in csv_rows(file):
        value, day = row.real("value"), row.get_datetime("date")
        if value is None:
            continue
        if day is None:
            raise row.problem("date", "the row has no date", "e.g. 2025-10-26")
        name = row.need("series") if "series" in header else file.stem
        yield row.number, (name, day.date(), value)


# Real series that come with an installed library, for use without a network.

MACRO = (
    "realgdp",
    "realcons",
    "realinv",
    "realgovt",
    "realdpi",
    "cpi",
    "m1",
    "tbilrate",
    "unemp",
    "pop",
    "infl",
    "realint",
)
TITLES = {
    "elnino": "the sea surface temperature off Peru (monthly)",
    "co2": "the concentration of CO₂ over Mauna Loa (weekly)",
    "sunspots": "the number of sunspots (yearly)",
    "nile": "the flow of the Nile at Aswan (yearly)",
    **{f"macro.{column}": f"US {column} (quarterly)" for column in MACRO},
}
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


@frozen
class PackagedSeries:
    """The data sets of statsmodels as series, each observation dated on the last day of the period it describes."""

    def ids(self) -> tuple[str, ...]:
        """Return the known ids."""
        return tuple(TITLES)

    def title(self, id: str) -> str:
        """Return what the series measures."""
        return TITLES[id]

    def series(self, id: str) -> Series:
        """Return the whole series."""
        if id not in TITLES:
            raise SeriesUnavailable(f"no packaged series is called {id!r}; there are {', '.join(TITLES)}")
        return _load(id)

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff."""
        return self.series(ref.id).until(as_of)


@cache
def _load(id: str) -> Series:
    data = _frame(id.partition(".")[0])
    if id == "elnino":
        table = data[list(MONTHS)].to_numpy(dtype=np.float64)
        months = [f"{int(year)}-{month:02d}" for year in data["YEAR"] for month in range(1, 13)]
        return _packaged_series(id, _last_day(months), table.ravel())
    if id == "co2":
        return _packaged_series(id, data.index.to_numpy().astype("M8[D]"), data["co2"].to_numpy(dtype=np.float64))
    if id.startswith("macro."):
        quarters = [f"{int(y)}-{int(q) * 3:02d}" for y, q in zip(data["year"], data["quarter"], strict=True)]
        return _packaged_series(id, _last_day(quarters), data[id.partition(".")[2]].to_numpy(np.float64))
    year, column = {"sunspots": ("YEAR", "SUNACTIVITY"), "nile": ("year", "volume")}[id]
    return _packaged_series(
        id, _last_day([f"{int(y):04d}-12" for y in data[year]]), data[column].to_numpy(dtype=np.float64)
    )


def _frame(name: str) -> Any:
    try:
        from statsmodels import datasets
    except ImportError:
        raise MissingExtra("packaged series", "stats") from None
    return getattr(datasets, {"macro": "macrodata"}.get(name, name)).load_pandas().data


def _last_day(months: list[str]) -> Days:
    following = np.asarray(months, dtype="M8[M]") + np.timedelta64(1, "M")
    return (following.astype("M8[D]") - np.timedelta64(1, "D")).astype("M8[D]")


def _packaged_series(id: str, days: Days, values: Any) -> Series:
    observed = np.isfinite(values)
    return Series(id=id, days=days[observed], values=values[observed])
