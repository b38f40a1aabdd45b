"""Marks that people gave, from a CSV file: one line per item and rater, one column per dimension."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foretell.arena.studies.rubric import DIMENSIONS, HIGHEST, LOWEST
from foretell.questions.problems import InputError

ITEM, RATER = "item", "rater"


@dataclass(frozen=True, kw_only=True)
class Rating:
    """What one person said about one item; dimensions left blank are absent."""

    item: str
    rater: str
    scores: Mapping[str, int] = field(default_factory=dict[str, int])


def read_ratings(path: str | Path) -> tuple[Rating, ...]:
    """Read a file with the columns `item`, optionally `rater`, and the dimensions; a blank cell was not rated."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return tuple(_rows(csv.DictReader(file), path))
    except OSError as error:
        raise InputError(f"the ratings cannot be read: {error.strerror}", path=path) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"this is no CSV file in UTF-8: {error}", path=path) from None


def write_sheet(items: Sequence[tuple[str, str]], path: str | Path) -> None:
    """An empty sheet for raters: the id and the text of each item, and a column for every mark."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow([ITEM, RATER, *DIMENSIONS, "text"])
        sheet.writerows([item, "", *[""] * len(DIMENSIONS), _harmless(text)] for item, text in items)


def _harmless(text: str) -> str:
    """A text that a spreadsheet takes for a formula gets a blank in front."""
    return f" {text}" if text[:1] in ("=", "+", "-", "@") else text


def _rows(reader: "csv.DictReader[str]", path: Path) -> Iterator[Rating]:
    columns = reader.fieldnames or []
    for needed in (ITEM, *DIMENSIONS):
        if needed not in columns:
            raise InputError("the column is missing", path=path, column=needed, hint=f"there are {', '.join(columns)}")
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(reader, start=1):
        item, rater = (row.get(ITEM) or "").strip(), (row.get(RATER) or "").strip()
        if not item:
            raise InputError("no item is named", path=path, row=number, column=ITEM)
        if (item, rater) in seen:
            raise InputError(f"{rater or 'the rater'} has rated {item} before", path=path, row=number, column=ITEM)
        seen.add((item, rater))
        scores = {name: _score(text, path, number, name) for name in DIMENSIONS if (text := (row[name] or "").strip())}
        yield Rating(item=item, rater=rater, scores=scores)


def _score(text: str, path: Path, number: int, column: str) -> int:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    if not LOWEST <= score <= HIGHEST or score % 1:
        told = f"{text[:40]!r} is no whole mark from {LOWEST} to {HIGHEST}"
        raise InputError(told, path=path, row=number, column=column)
    return int(score)
