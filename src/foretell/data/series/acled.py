"""ACLED: events of political violence and protest, counted by day.

ACLED corrects its records every week and keeps no vintages. But every row says when it was last changed, so in a
backtest only rows that have stood unchanged since before the cutoff are counted: a lower bound of what was known, in
which nothing later can be. How many rows were changed or deleted since is told to whoever checks the numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from foretell.data.oauth import AccessToken, TokenService
from foretell.data.payload import Payload, readable
from foretell.data.series.series import FetchedSeries, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

ACLED_URL = "https://acleddata.com"
HISTORY = timedelta(days=3 * 365)
DAY = timedelta(days=1)
PAGE = 5_000
MAX_PAGES = 40
FIELDS = "event_id_cnty|event_date|event_type|fatalities|timestamp"
FATALITIES = "fatalities"


@dataclass(frozen=True, kw_only=True)
class ConflictEvent:
    """One row: an event of a day, as it has stood since a moment."""

    id: str
    day: date
    kind: str
    fatalities: float
    changed: datetime


class AcledSeries(WebSeries):
    """Events, or deaths, of a country by day. Needs the e-mail address and password of an account."""

    facts = "acledR 1.0.1 (September 2025) and ACLED's guides as of 2026-11-15; never held against a recorded answer"
    description = (
        "events of political violence and protest by day: country/event type, such as Iraq/Protests or Egypt/Riots, "
        "deaths as Iraq/Battles/fatalities; in a backtest a lower bound"
    )
    key_variables = ("ACLED_EMAIL+ACLED_PASSWORD",)

    def __init__(self, config: ServiceConfig) -> None:
        name, _, password = config.key.partition(":")
        form = {"username": name, "password": password, "grant_type": "password", "client_id": "acled"}
        host = config.address or ACLED_URL
        token = AccessToken(config.http, f"{host}/oauth/token", {**form, "scope": "authenticated"})
        self._service = TokenService(config, ACLED_URL, token, per_second=1.0)

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Counts by day from the first known event on, days without one as 0, up to the last known event."""
        country, kind, deaths = read_conflict_id(ref.id)
        last = as_of.at.date()
        events, notes = await self._events(country, kind, last - HISTORY, last)
        known = [one for one in events if as_of.mode == "live" or as_of.admits(one.changed)]
        if as_of.mode == "backtest":
            deleted = await self._deleted_since(as_of.at)
            notes += (f"{len(events) - len(known)} rows changed since, {deleted} rows of all countries deleted since",)
        if not known:
            raise SeriesUnavailable(f"ACLED has no {kind!r} of {country!r} known at {as_of}")
        days = [one.day for one in known]
        values = {min(days) + n * DAY: 0.0 for n in range((max(days) - min(days)).days + 1)}
        for one in known:
            values[one.day] += one.fatalities if deaths else 1.0
        return FetchedSeries(series=known_series(ref, values, as_of), notes=notes)

    async def _events(
        self, country: str, kind: str, first: date, last: date
    ) -> tuple[list[ConflictEvent], tuple[str, ...]]:
        query = {"country": country, "event_type": kind, "event_date": f"{first}|{last}", "event_date_where": "BETWEEN"}
        rows = await self._rows("/api/acled/read", {**query, "fields": FIELDS})
        events, notes = readable(rows, read_conflict_event)
        # A row that is listed twice, because pages shifted while they were read, is one event.
        return list({one.id: one for one in events if first <= one.day <= last}.values()), notes

    async def _deleted_since(self, moment: datetime) -> int:
        query = {"deleted_timestamp": str(int(moment.timestamp())), "deleted_timestamp_where": ">="}
        ids, _ = readable(await self._rows("/api/deleted/read", query), lambda row: row.need("event_id_cnty").name())
        return len(set(ids))

    async def _rows(self, path: str, query: Mapping[str, str]) -> list[Payload]:
        rows: list[Payload] = []
        for page in range(1, MAX_PAGES + 1):
            paging = {"_format": "json", "limit": str(PAGE), "page": str(page)}
            found = (await self._service.read(path, {**query, **paging})).need("data").items()
            rows += found
            if len(found) < PAGE:
                return rows
        raise SeriesUnavailable(f"ACLED lists more than {MAX_PAGES * PAGE:,} rows; ask for less")


def read_conflict_id(id: str) -> tuple[str, str, bool]:
    """Country, type of event and whether deaths are meant.

    >>> read_conflict_id("Egypt/Explosions/Remote violence"), read_conflict_id("Iraq/Battles/fatalities")
    (('Egypt', 'Explosions/Remote violence', False), ('Iraq', 'Battles', True))
    """
    country, _, rest = id.partition("/")
    deaths = rest.endswith(f"/{FATALITIES}")
    kind = rest.removesuffix(f"/{FATALITIES}")
    if not country or not kind:
        raise SeriesUnavailable(f"{id!r} names no events: write country/event type, such as Iraq/Protests")
    return country, kind, deaths


def read_conflict_event(row: Payload) -> ConflictEvent:
    """One row of the events."""
    fatalities = row.get("fatalities")
    return ConflictEvent(
        id=row.need("event_id_cnty").name(),
        day=row.need("event_date").day(),
        kind=row.optional_text("event_type"),
        fatalities=0.0 if fatalities is None else fatalities.number(),
        changed=row.need("timestamp").moment(),
    )
