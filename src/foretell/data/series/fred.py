"""FRED series as of a day, from the archive of vintages (ALFRED).

FRED itself returns today's corrected figures, which is a leak in a backtest. The archive has only whole days in US
Central time, so the vintage of the last day that was over at the cutoff is read.
"""

from datetime import date, timedelta, timezone
from http import HTTPStatus

from foretell.data.http import NotFound, SourceError
from foretell.data.payload import Payload, readable
from foretell.data.series.series import FetchedSeries, Publication, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import JsonService, ServiceConfig
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

HOST = "https://api.stlouisfed.org/fred"
MISSING = "."
NOT_ARCHIVED = "does not exist in ALFRED"
INITIAL = "/initial"
"""Suffix of an id: each value as it was first published, before any correction."""
FIRST_DAY = "1776-07-04"
"""First day of FRED's real-time periods."""
RELEASES_SHOWN = 6
PAGE = 100_000
CENTRAL_WINTER = timezone(timedelta(hours=-6))
"""St. Louis without daylight saving time: in summer, days end an hour late here, which is the safe side."""
DAY = timedelta(days=1)


class FredSeries(WebSeries):
    """Series of the Federal Reserve Bank of St. Louis. Needs a free key, which no error shows."""

    facts = "recorded responses of November 2024, public reports of refusals up to 2026"
    description = (
        "US and international economic data by FRED id, such as DGS10, UNRATE, CPIAUCSL; UNRATE/initial for each value "
        "as first published"
    )
    key_variables = ("FRED_API_KEY",)
    publication = Publication(interval=7)

    def __init__(self, config: ServiceConfig, *, allow_revised: bool = False) -> None:
        """`allow_revised`: in a backtest, read today's figures if the archive has no vintage of that day."""
        self._service = JsonService(config, HOST)
        self._key = config.key
        self._allow_revised = allow_revised

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return the vintage of the cutoff; live, the current figures. A backtest without a vintage is refused."""
        try:
            return await self._fetched(ref, as_of)
        except NotFound:
            reason = "is not, or no longer, served by FRED: its owner withdrew the licence"
            raise SeriesUnavailable(f"{_plain_id(ref)} {reason}") from None

    async def _fetched(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        if ref.id.endswith(INITIAL):
            return await self._initial(ref, as_of)
        if as_of.mode == "live":
            values, notes = await self._current(ref, as_of)
            return FetchedSeries(series=known_series(ref, values, as_of), notes=notes)
        vintage = last_vintage(as_of)
        archived = await self._vintage(ref, vintage)
        if archived is not None:
            return FetchedSeries(series=known_series(ref, archived[0], as_of), vintage=vintage, notes=archived[1])
        current, notes = await self._current(ref, as_of)
        if not self._allow_revised:
            raise SeriesUnavailable(
                f"FRED keeps no vintage of {ref.id} for {vintage}: only today's figures, which may have been corrected "
                "since (allow_revised=True reads them and marks the series)"
            )
        # Without vintages the publication times are unknown; the value of the last day was surely published later.
        known = {day: value for day, value in current.items() if as_of.admits_day(day + DAY)}
        return FetchedSeries(series=known_series(ref, known, as_of), revised=True, notes=notes)

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """Return when its values are published."""
        calendar = await self.releases(ref, as_of)
        lines = [f"part of the release {calendar.name!r}, last out on {', '.join(map(str, calendar.past))}"]
        if calendar.scheduled:
            lines.append(f"next releases scheduled for {', '.join(map(str, calendar.scheduled))}")
        return tuple(lines)

    async def releases(self, ref: SeriesRef, as_of: AsOf) -> "ReleaseCalendar":
        """Return when the release that contains a series was published and, live, when it is scheduled next.

        FRED lists actual release days after a cutoff, not scheduled ones, so a backtest gets none.
        """
        key = {"api_key": self._key, "file_type": "json"}
        answer = await self._service.read("/series/release", {"series_id": _plain_id(ref), **key})
        listed = answer.need("releases").items()
        names, _ = readable(listed, lambda row: (int(row.need("id").number()), row.optional_text("name")))
        if not names:
            raise SeriesUnavailable(f"FRED names no release of {_plain_id(ref)}")
        release, name = names[0]
        query = {"release_id": str(release), "include_release_dates_with_no_data": "true", "sort_order": "desc", **key}
        return read_calendar(await self._service.read("/release/dates", {**query, "limit": "100"}), name, as_of)

    async def _initial(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return each value as first published, of those published by the cutoff."""
        last = as_of.at.date() if as_of.mode == "live" else last_vintage(as_of)
        span = {"realtime_start": FIRST_DAY, "realtime_end": last.isoformat(), "output_type": "4"}
        pages = await self._pages(ref, span | {"observation_end": last.isoformat()})
        values, notes = first_values(pages, known_by=last)
        return FetchedSeries(series=known_series(ref, values, as_of), vintage=last, notes=notes)

    async def _vintage(self, ref: SeriesRef, vintage: date) -> "FredValues | None":
        """Return the values of a vintage; None if the archive has none of that day, or no such series."""
        day = vintage.isoformat()
        try:
            pages = await self._pages(ref, {"realtime_start": day, "realtime_end": day, "observation_end": day})
        except SourceError as error:
            if error.status == HTTPStatus.BAD_REQUEST and NOT_ARCHIVED in error.problem:
                return None
            raise
        for page in pages:
            for bound in ("realtime_start", "realtime_end"):
                if (stated := page.need(bound)).text() != day:
                    stated.wrong(f"the vintage asked for ({day})")
        return fred_values(pages, known_by=vintage)

    async def _current(self, ref: SeriesRef, as_of: AsOf) -> "FredValues":
        try:
            return fred_values(await self._pages(ref, {"observation_end": as_of.at.date().isoformat()}))
        except SourceError as error:
            if error.status == HTTPStatus.BAD_REQUEST and "series does not exist" in error.problem:
                raise SeriesUnavailable(f"FRED has no series {ref.id!r}") from None
            raise

    async def _pages(self, ref: SeriesRef, params: dict[str, str]) -> list[Payload]:
        fixed = {"series_id": _plain_id(ref), "api_key": self._key, "file_type": "json", "limit": str(PAGE)}
        pages: list[Payload] = []
        read_so_far = 0
        while True:
            query = {**fixed, **params, "offset": str(read_so_far)}
            page = await self._service.read("/series/observations", query)
            pages.append(page)
            size = len(page.need("observations").items())
            read_so_far += size
            if not size or read_so_far >= page.need("count").number():
                return pages


def last_vintage(as_of: AsOf) -> date:
    """Return the vintage day for a cutoff: the last day that was over."""
    return as_of.at.astimezone(CENTRAL_WINTER).date() - DAY


def _plain_id(ref: SeriesRef) -> str:
    return ref.id.removesuffix(INITIAL)


@frozen
class ReleaseCalendar:
    """Days on which a release was published, newest first, and days on which it is scheduled, soonest first."""

    name: str
    past: tuple[date, ...]
    scheduled: tuple[date, ...] = ()


def read_calendar(answer: Payload, name: str, as_of: AsOf) -> ReleaseCalendar:
    """Parse the calendar in a response of `release/dates`, as far as it was known at the cutoff."""
    days, _ = readable(answer.need("release_dates").items(), lambda row: row.need("date").day())
    last = as_of.at.date() if as_of.mode == "live" else last_vintage(as_of)
    past = sorted((day for day in days if day <= last), reverse=True)
    coming = sorted(day for day in days if day > last) if as_of.mode == "live" else []
    return ReleaseCalendar(name=name, past=tuple(past[:RELEASES_SHOWN]), scheduled=tuple(coming[:RELEASES_SHOWN]))


FredValues = tuple[dict[date, float], tuple[str, ...]]
"""Values by day, and notes on rows that cannot be read."""


def fred_values(pages: list[Payload], *, known_by: date | None = None) -> FredValues:
    """Return the values of a response: of several for one day, the last published or the one current on `known_by`.

    A day whose value was withdrawn, or has none yet, has no value.
    """
    rows, notes = _fred_rows(pages)
    values = {row.day: row.value for row in rows if known_by is None or row.since <= known_by <= row.until}
    return {day: value for day, value in values.items() if value is not None}, notes


def first_values(pages: list[Payload], *, known_by: date) -> FredValues:
    """Return each day's value as first published, of those published by `known_by`."""
    rows, notes = _fred_rows(pages)
    values: dict[date, float] = {}
    for row in rows:
        if row.value is not None and row.since <= known_by:
            values.setdefault(row.day, row.value)
    return values, notes


@frozen
class _FredRow:
    since: date
    until: date
    day: date
    value: float | None


def _fred_rows(pages: list[Payload]) -> tuple[list[_FredRow], tuple[str, ...]]:
    """Return the rows in order of publication."""
    rows, notes = readable([row for page in pages for row in page.need("observations").items()], _fred_row)
    return sorted(rows, key=lambda row: row.since), notes


def _fred_row(row: Payload) -> _FredRow:
    value = row.need("value")
    return _FredRow(
        since=row.need("realtime_start").day(),
        # The period of a current value ends on the last day of the calendar.
        until=date.max if row.need("realtime_end").value == date.max.isoformat() else row.need("realtime_end").day(),
        day=row.need("date").day(),
        value=None if value.value == MISSING else value.number(),
    )
