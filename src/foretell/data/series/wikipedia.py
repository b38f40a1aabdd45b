"""Numbers in the tables of Wikipedia articles, such as rating lists, month by month up to a cutoff."""

import asyncio
import re
import unicodedata
from datetime import date, timedelta

from foretell.data.pages import PageUnavailable
from foretell.data.series.series import FetchedSeries, Publication, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import ServiceConfig
from foretell.data.wikipedia import WIKIPEDIA_URL, ArticleTable, Wikipedia
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

LOOKS_BACK = 12
"""Number of earlier revisions that are read, besides that of the cutoff."""
STEP = timedelta(days=30)
DAY = timedelta(days=1)
NUMBER = pattern(r"[-+\u2212]?\d[\d,]*(?:\.\d+)?")
ANSWER = pattern(r"(yes|no|under (?:research|development))\b", re.IGNORECASE)


class WikipediaSeries(WebSeries):
    """One number of one row of a table, read from the revision of the article that was current on each day."""

    facts = Wikipedia.facts
    description = (
        "a number in a table of a Wikipedia article, monthly, by article/row/column, such as "
        "FIDE rankings/Magnus Carlsen/Rating"
    )
    publication = Publication(monthly=True)

    def __init__(self, config: ServiceConfig) -> None:
        self._wikipedia = Wikipedia(config.http, config.address or WIKIPEDIA_URL)
        self._tables: dict[tuple[str, date], asyncio.Task[list[ArticleTable]]] = {}

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return the number at the cutoff and at intervals of a month before it; days without the row are left out."""
        title, row, column = read_table_id(ref.id)
        last = as_of.at.date() if as_of.admits_day(as_of.at.date()) else as_of.at.date() - DAY
        values: dict[date, float] = {}
        problem = ""
        for look in range(LOOKS_BACK + 1):
            day = last - look * STEP
            try:
                number = table_number(await self._tables_on(title, day), row, column)
            except PageUnavailable as error:
                problem = problem or str(error)
                break
            if number is not None:
                values[day] = number
        if not values:
            reason = problem or f"no table of {title!r} has a number in the column {column!r} of a row {row!r}"
            raise SeriesUnavailable(reason)
        return FetchedSeries(series=known_series(ref, values, as_of), vintage=last)

    async def _tables_on(self, title: str, day: date) -> list[ArticleTable]:
        """Return the tables of an article on a day. Several rows of it share one request; a failed one is repeated."""
        key = (title, day)
        known = self._tables.get(key)
        if known is None or (known.done() and (known.cancelled() or known.exception() is not None)):
            known = self._tables[key] = asyncio.create_task(self._wikipedia.tables(title, AsOf.day(day)))
        return await asyncio.shield(known)


def read_table_id(id: str) -> tuple[str, str, str]:
    """Parse article, row and column; raise `SeriesUnavailable` unless all are given.

    >>> read_table_id("FIDE rankings/Magnus Carlsen/Rating")
    ('FIDE rankings', 'Magnus Carlsen', 'Rating')
    """
    parts = [part.strip() for part in id.replace("_", " ").rsplit("/", 2)]
    if len(parts) != 3 or not all(parts):
        raise SeriesUnavailable(f"{id!r} does not name a number of a table: write article/row/column")
    return parts[0], parts[1], parts[2]


def table_number(tables: list[ArticleTable], row: str, column: str) -> float | None:
    """Return the number in a column of the first row with a cell of this name; None if there is none."""
    wanted = _folded(row)
    for table in tables:
        place = table.column(column)
        if place is None:
            continue
        for cells in table.rows:
            number = _number(cells[place])
            if number is not None and any(_folded(cell) == wanted for cell in cells):
                return number
    return None


def _number(cell: str) -> float | None:
    """Parse a cell as a number: yes is 1; no, under research and under development are 0."""
    if ANSWER.match(cell):
        return float(cell.lower().startswith("yes"))
    number = NUMBER.search(cell)
    return None if number is None else float(number[0].replace(",", "").replace("\u2212", "-"))


def _folded(text: str) -> str:
    """Normalise a name, removing accents, dots and case: articles write the same person in several ways."""
    plain = "".join(
        character for character in unicodedata.normalize("NFKD", text) if not unicodedata.combining(character)
    )
    return " ".join(re.sub(r"[^\w ]", " ", plain).casefold().split())
