"""CSV files of this machine that were named beforehand, row by row up to the cutoff."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from foretell.questions.clock import AsOf, instant
from foretell.questions.problems import InputError
from foretell.tools.notebook.endpoint import EndpointFailed, Parameter

ROWS = 5_000
MOST_ROWS = 50_000


@dataclass(frozen=True, kw_only=True)
class LocalFile:
    """A table that notebooks may read. In a backtest it needs a column of dates, or a day on which all was known."""

    path: Path
    meaning: str
    """Told to every notebook, so it should not tell what became known later."""
    date_column: str | None = None
    """Holds the day or moment each row became known; rows that are later, or have no readable date, are left out."""
    known_since: date | None = None
    """The day on which the whole file was public, for tables without dates."""

    def admitted(self, row: Mapping[str, str], as_of: AsOf) -> bool:
        """Whether a row was known."""
        if self.date_column is None:
            return True
        return _admits(row.get(self.date_column) or "", as_of)

    def open_at(self, as_of: AsOf) -> bool:
        """Whether anything of it may be read at all."""
        if as_of.mode == "live" or self.date_column is not None:
            return True
        return self.known_since is not None and as_of.admits_day(self.known_since)


@dataclass(frozen=True, kw_only=True)
class LocalFiles:
    """Reads named files only: a name is looked up and never becomes part of a path."""

    files: Mapping[str, LocalFile]

    path = "/files/read"

    @classmethod
    def in_folder(cls, folder: Path, **files: LocalFile) -> "LocalFiles":
        """Files given by paths relative to a folder, which they must not leave."""
        top = folder.resolve()
        found: dict[str, LocalFile] = {}
        for name, file in files.items():
            place = (top / file.path).resolve()
            if not place.is_relative_to(top):
                raise InputError(f"the file for {name!r} lies outside of {folder}", path=file.path)
            if not place.is_file():
                raise InputError("there is no such file", path=place)
            found[name] = replace(file, path=place)
        return cls(files=found)

    @property
    def documentation(self) -> str:
        """As shown to the notebook."""
        known = "\n".join(f"  {name}: {file.meaning}" for name, file in self.files.items())
        return (
            f"Rows of a table kept on this machine.\nTables:\n{known}\n"
            'Answer: {"name", "columns": […], "rows": [{column: value}, …], "more": true if rows are left}; numbers '
            f"are numbers, empty fields None. {ROWS:,} rows if not told otherwise, at most {MOST_ROWS:,}."
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes."""
        return (
            Parameter(name="name", meaning=f"one of {', '.join(self.files)}", needed=True),
            Parameter(name="limit", meaning="how many rows", kind="number"),
            Parameter(name="offset", meaning="how many rows to leave out before", kind="number"),
        )

    async def call(self, params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        """The known rows of a table."""
        file = self.files.get(params["name"])
        if file is None or not file.open_at(as_of):
            known = [name for name, file in self.files.items() if file.open_at(as_of)]
            raise EndpointFailed(f"there is no table {params['name']!r}; tables: {', '.join(known) or 'none'}")
        offset = int(max(params.get("offset", 0), 0))
        limit = int(min(max(params.get("limit", ROWS), 0), MOST_ROWS))
        try:
            columns, rows, more = _read(file, as_of, offset, limit)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise EndpointFailed("the table cannot be read") from error
        return {"name": params["name"], "columns": columns, "rows": rows, "more": more}


def _read(file: LocalFile, as_of: AsOf, offset: int, limit: int) -> tuple[list[str], list[dict[str, Any]], bool]:
    rows: list[dict[str, Any]] = []
    with file.path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream)
        columns = list(reader.fieldnames or ())
        for place, row in enumerate(_known(reader, file, as_of)):
            if place >= offset + limit:
                return columns, rows, True
            if place >= offset:
                rows.append({name: _value(row.get(name)) for name in columns})
    return columns, rows, False


def _known(reader: "csv.DictReader[str]", file: LocalFile, as_of: AsOf) -> Iterator[dict[str, Any]]:
    return (row for row in reader if file.admitted(row, as_of))


def _value(text: str | None) -> str | float | int | None:
    """As a number where it is one; a number with a leading zero is a name.

    >>> [_value(text) for text in ("12", "-1.5", "0.5", "007", "n/a", "", None)]
    [12, -1.5, 0.5, '007', 'n/a', None, None]
    """
    if not text:
        return None
    if "_" in text or (len(text) > 1 and text.startswith("0") and text.isdigit()):
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _admits(text: str, as_of: AsOf) -> bool:
    """A bare day must be over by the cutoff; whatever is no date was not known."""
    text = text.strip()
    try:
        if len(text) == 10:
            return as_of.admits_day(date.fromisoformat(text))
        return as_of.admits(instant(datetime.fromisoformat(text)))
    except ValueError:
        return False
