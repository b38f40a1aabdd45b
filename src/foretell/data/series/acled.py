"""ACLED: events of political violence and protest, counted by day.

ACLED corrects its records every week and keeps no vintages. But every row says when it was last changed, so a backtest
counts only rows that have been unchanged since before the cutoff. That is a lower bound of what was known, and cannot
contain anything later. The notes say how many rows were changed or deleted since, for anyone who checks the numbers.
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta

from foretell.data.payload import Payload, readable
from foretell.data.series.series import FetchedSeries, Publication, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import AccessToken, ServiceConfig, TokenService
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

ACLED_URL = "https://acleddata.com"
HISTORY = timedelta(days=3 * 365)
DAY = timedelta(days=1)
PAGE = 5_000
MAX_PAGES = 40
FIELDS = "event_id_cnty|event_date|event_type|fatalities|timestamp"
FATALITIES = "fatalities"
WINDOW = pattern(r"/(\d{1,3}) days$")


@frozen
class ConflictEvent:
    """One row: an event of a day, unchanged since a point in time."""

    id: str
    day: date
    kind: str
    fatalities: float
    changed: datetime


class AcledSeries(WebSeries):
    """Events, or deaths, of a country by day. Needs the e-mail address and password of an account."""

    facts = (
        "acledR 1.0.1 (September 2025) and ACLED's guides as of 2026-11-15; never checked against a recorded response"
    )
    description = (
        "events of political violence and protest by day: country/event type, such as Iraq/Protests or Egypt/Riots, "
        "deaths as Iraq/Battles/fatalities or, of every type, Iraq/fatalities, sums of the last days as "
        "Iraq/Protests/30 days; in a backtest a lower bound"
    )
    key_variables = ("ACLED_EMAIL+ACLED_PASSWORD",)
    publication = Publication(interval=7, delay=3)

    def __init__(self, config: ServiceConfig) -> None:
        name, _, password = config.key.partition(":")
        form = {"username": name, "password": password, "grant_type": "password", "client_id": "acled"}
        host = config.address or ACLED_URL
        token = AccessToken(config.http, f"{host}/oauth/token", {**form, "scope": "authenticated"})
        self._service = TokenService(config, ACLED_URL, token)

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return daily counts from the first to the last known event, with 0 for days without events."""
        wanted = read_conflict_id(ref.id)
        last = as_of.at.date()
        events, notes = await self._events(wanted, last - HISTORY, last)
        known = [event for event in events if as_of.mode == "live" or as_of.admits(event.changed)]
        if as_of.mode == "backtest":
            deleted = await self._deleted_since(as_of.at)
            notes += (f"{len(events) - len(known)} rows changed since, {deleted} rows of all countries deleted since",)
        if not known:
            raise SeriesUnavailable(f"ACLED has no {wanted.kind or 'event'!r} of {wanted.country!r} known at {as_of}")
        days = [event.day for event in known]
        values = {min(days) + n * DAY: 0.0 for n in range((max(days) - min(days)).days + 1)}
        for event in known:
            values[event.day] += event.fatalities if wanted.deaths else 1.0
        return FetchedSeries(series=known_series(ref, _summed(values, wanted.days), as_of), notes=notes)

    async def _events(
        self, wanted: "ConflictId", first: date, last: date
    ) -> tuple[list[ConflictEvent], tuple[str, ...]]:
        query = {"country": wanted.country, "fields": FIELDS} | ({"event_type": wanted.kind} if wanted.kind else {})
        query |= {"event_date": f"{first}|{last}", "event_date_where": "BETWEEN"}
        rows = await self._rows("/api/acled/read", query)
        events, notes = readable(rows, read_conflict_event)
        # A row may be listed twice, because pages shift while they are read.
        return list({event.id: event for event in events if first <= event.day <= last}.values()), notes

    async def _deleted_since(self, since: datetime) -> int:
        query = {"deleted_timestamp": str(int(since.timestamp())), "deleted_timestamp_where": ">="}
        ids, _ = readable(await self._rows("/api/deleted/read", query), lambda row: row.need("event_id_cnty").name())
        return len(set(ids))

    async def _rows(self, path: str, query: Mapping[str, str]) -> list[Payload]:
        rows: list[Payload] = []
        for page in range(1, MAX_PAGES + 1):
            paging = {"_format": "json", "limit": str(PAGE), "page": str(page)}
            items = (await self._service.read(path, {**query, **paging})).need("data").items()
            rows += items
            if len(items) < PAGE:
                return rows
        raise SeriesUnavailable(f"ACLED lists more than {MAX_PAGES * PAGE:,} rows; ask for less")


@frozen
class ConflictId:
    """Which events are counted."""

    country: str
    kind: str
    """Type of the events; empty for all."""
    deaths: bool = False
    """Whether to count deaths instead of events."""
    days: int = 1
    """Number of days summed up, ending with the day of the value."""


def read_conflict_id(id: str) -> ConflictId:
    """Parse `country/event type`, optionally followed by `/fatalities` and `/30 days`.

    >>> read_conflict_id("Egypt/Explosions/Remote violence/30 days")
    ConflictId(country='Egypt', kind='Explosions/Remote violence', deaths=False, days=30)
    >>> read_conflict_id("Bolivia/fatalities/30 days")
    ConflictId(country='Bolivia', kind='', deaths=True, days=30)
    """
    country, _, rest = id.partition("/")
    window = WINDOW.search(rest)
    rest = rest[: window.start()] if window else rest
    deaths = rest == FATALITIES or rest.endswith(f"/{FATALITIES}")
    kind = rest.removesuffix(FATALITIES).removesuffix("/") if deaths else rest
    days = int(window[1]) if window else 1
    if not country or not rest or not days:
        raise SeriesUnavailable(f"{id!r} names no events: write country/event type, such as Iraq/Protests")
    return ConflictId(country=country, kind=kind, deaths=deaths, days=days)


def _summed(values: Mapping[date, float], days: int) -> dict[date, float]:
    """Return sums over the last `days` days, for every day with enough days before it."""
    listed = sorted(values)
    spans = {day: listed[n + 1 - days : n + 1] for n, day in enumerate(listed) if n + 1 >= days}
    return {day: sum(values[summed_day] for summed_day in span) for day, span in spans.items()}


def read_conflict_event(row: Payload) -> ConflictEvent:
    """Parse one event row."""
    fatalities = row.get("fatalities")
    return ConflictEvent(
        id=row.need("event_id_cnty").name(),
        day=row.need("event_date").day(),
        kind=row.optional_text("event_type"),
        fatalities=0.0 if fatalities is None else fatalities.number(),
        changed=row.need("timestamp").unix_time(),
    )
