"""Weather from Open-Meteo: observations, forecasts, and forecasts made on a day in the past.

An observation counts as known some days after its day, when the archive had it. A forecast is dated by the day on which
it was made: the value of that day is what was expected for a day up to a week later. So neither contains anything from
after the cutoff.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from itertools import groupby

from foretell.data.http import SourceError
from foretell.data.payload import Payload, readable
from foretell.data.series.series import FetchedSeries, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import JsonService, ServiceConfig
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.question import SeriesRef

HOSTS = {
    "archive": "https://archive-api.open-meteo.com",
    "forecast": "https://api.open-meteo.com",
    "previous": "https://previous-runs-api.open-meteo.com",
    "places": "https://geocoding-api.open-meteo.com",
}
OBSERVED = "observed"
FORECAST = "forecast"
AHEAD = "ahead"
"""The newest forecast at the cutoff, of whatever lead it has."""
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
HISTORY = timedelta(days=2 * 365)
"""Length of the history: a longer span counts as many more calls of the free service."""
FORECAST_HISTORY = timedelta(days=90)
FIRST_FORECASTS = date(2024, 1, 1)
"""First day in the archive of past forecasts."""
ARCHIVE_LAG = 5
"""Days after which the archive contains an observation."""
RUN_LAG = timedelta(hours=6)
"""Time from the start of a model run until its forecast is published."""
LONGEST_LEAD = 7
LEADS = range(1, LONGEST_LEAD + 1)
SHORTEST_DAY = 23
"""Hours of the day on which clocks go forward; a day with fewer hours is incomplete."""
SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "min": min,
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
}


@frozen
class WeatherId:
    """Which weather: the place, the daily quantity, and how many days ahead it was forecast."""

    place: str
    """Latitude and longitude, `59.91,10.75`."""
    variable: str
    """A daily quantity, such as `temperature_2m_max`."""
    lead: int = 0
    """Days from the forecast to the day it is for; 0 for observations."""
    newest: bool = False
    """Whether it is only the newest forecast, which may have been made a day earlier than it is dated."""

    @property
    def hourly(self) -> str:
        """The same quantity by the hour."""
        return self.variable.rpartition("_")[0]

    @property
    def coordinates(self) -> dict[str, str]:
        """The coordinates as query parameters."""
        latitude, _, longitude = self.place.partition(",")
        return {"latitude": latitude.strip(), "longitude": longitude.strip(), "timezone": "auto"}

    def of_day(self, values: Sequence[float]) -> float:
        """Return the quantity of a day from its hourly values."""
        return SUMMARIES[self.variable.rpartition("_")[2]](values)


def read_weather_id(id: str) -> WeatherId:
    """Parse `observed/LAT,LON/QUANTITY` or `forecast3/LAT,LON/QUANTITY`; else raise `SeriesUnavailable`.

    >>> read_weather_id("forecast3/59.91,10.75/temperature_2m_max")
    WeatherId(place='59.91,10.75', variable='temperature_2m_max', lead=3, newest=False)
    """
    kind, _, rest = id.partition("/")
    place, _, variable = rest.partition("/")
    lead = _KINDS.get(kind, -1)
    try:
        latitude, longitude = (float(part) for part in place.split(","))
    except ValueError:
        latitude = longitude = math.inf
    if lead < 0 or abs(latitude) > 90 or abs(longitude) > 180 or variable.rpartition("_")[2] not in SUMMARIES:
        example = "write observed/59.91,10.75/temperature_2m_max, or forecast1 to forecast7 in place of observed"
        raise SeriesUnavailable(f"{id!r} names no weather: {example}")
    return WeatherId(place=place, variable=variable, lead=lead, newest=kind.startswith(AHEAD))


_KINDS: Mapping[str, int] = {
    OBSERVED: 0,
    **{f"{FORECAST}{lead}": lead for lead in LEADS},
    **{f"{AHEAD}{days}": days for days in range(LONGEST_LEAD + 1)},
}
"""The first part of an id, and the lead it means."""


@frozen
class WeatherPlace:
    """A place on the map."""

    name: str
    """Name with its country."""
    coordinates: str
    """Latitude and longitude, as `WeatherId` takes them."""


@frozen
class WeatherTable:
    """Columns of a response, indexed by time."""

    times: tuple[datetime, ...]
    """Starts of hours or days, in UTC."""
    offset: timedelta
    """Offset of local time, in which days begin and end, from UTC."""
    columns: Mapping[str, tuple[float | None, ...]]
    """Values by column name, None if there is no value. Columns of times are left out."""
    notes: tuple[str, ...] = ()

    def day(self, time: datetime) -> date:
        """Return the local day of a time."""
        return (time + self.offset).date()

    def whole_days(self, column: str) -> dict[date, list[float]]:
        """Return the values of every local day without missing hours."""
        pairs = zip(self.times, self.columns.get(column, ()), strict=False)
        days = {day: [value for _, value in hours] for day, hours in groupby(pairs, lambda pair: self.day(pair[0]))}
        return {
            day: [value for value in values if value is not None]
            for day, values in days.items()
            if len(values) >= SHORTEST_DAY and None not in values
        }

    def ends(self, day: date) -> datetime:
        """Return when a local day ends."""
        return datetime.combine(day + DAY, datetime.min.time(), UTC) - self.offset


def read_weather(answer: Payload, block: str) -> WeatherTable:
    """Parse the `hourly` or `daily` table of a response. Times are local without a zone; the offset is sent along."""
    if answer.is_set("error"):
        raise SourceError(f"Open-Meteo refused: {answer.optional_text('reason')}", url=answer.url)
    table = answer.need(block)
    seconds = answer.need("utc_offset_seconds")
    if abs(seconds.number()) >= DAY.total_seconds():
        seconds.wrong("less than a day")
    offset = timedelta(seconds=seconds.number())
    stamps = table.need("time").items()
    places, unreadable = readable(list(enumerate(stamps)), lambda pair: (pair[0], _parse_time(pair[1], offset)))
    columns: dict[str, tuple[float | None, ...]] = {}
    notes: list[str] = list(unreadable)
    for name, column in table.members().items():
        if name == "time" or _unit(answer, block, name) in ("iso8601", "unixtime"):
            continue
        cells = column.items()
        if len(cells) != len(stamps):
            column.wrong("as long as time")
        columns[name] = tuple(_number(cells[place], notes) for place, _ in places)
    times = tuple(time for _, time in places)
    return WeatherTable(times=times, offset=offset, columns=columns, notes=tuple(notes))


def _unit(answer: Payload, block: str, column: str) -> str:
    units = answer.get(f"{block}_units")
    return "" if units is None else units.optional_text(column)


def _parse_time(stamp: Payload, offset: timedelta) -> datetime:
    if isinstance(stamp.value, int | float):
        # Numbers count from 1970 in UTC, whatever the offset.
        return stamp.unix_time()
    try:
        time = datetime.fromisoformat(stamp.text()).replace(tzinfo=UTC) - offset
    except (ValueError, OverflowError):
        time = None
    # Later days are computed from it, so the last year is refused.
    return time if time is not None and time.year < date.max.year else stamp.wrong("a time")


def _number(cell: Payload, notes: list[str]) -> float | None:
    if cell.value is None:
        return None
    try:
        return cell.number()
    except SourceError as problem:
        notes.append(problem.problem)
        return None


class OpenMeteoSeries(WebSeries):
    """Daily weather of a place, without a key."""

    facts = "recorded responses of 2025 and 2026, Open-Meteo's parameters of 2026; past forecasts only by documentation"
    description = (
        "weather by place and quantity of a day: observed/59.91,10.75/temperature_2m_max, or forecast3/… for what was "
        "forecast three days ahead (1 to 7), by the day of the forecast"
    )

    def __init__(self, config: ServiceConfig, *, clock: Clock = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        own = {name: f"{config.address}/{name}" for name in HOSTS} if config.address else {}
        self._services = {
            name: JsonService(replace(config, address=own.get(name)), host) for name, host in HOSTS.items()
        }

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return observations, or forecasts of the given lead, dated by the day of the forecast."""
        wanted = read_weather_id(ref.id)
        if wanted.newest:
            return await self._newest(ref, wanted, as_of)
        if wanted.lead:
            return await self._forecasts(ref, wanted, as_of)
        last = as_of.at.date()
        span = {"start_date": (last - HISTORY).isoformat(), "end_date": last.isoformat()}
        table = await self._table(
            "archive", "/v1/archive", "daily", {**wanted.coordinates, **span, "daily": wanted.variable}
        )
        values = {
            table.day(time): value
            for time, value in zip(table.times, table.columns.get(wanted.variable, ()), strict=False)
            if value is not None and _archived(table, time, as_of)
        }
        return FetchedSeries(series=known_series(ref, values, as_of), notes=table.notes)

    async def place(self, name: str) -> WeatherPlace | None:
        """Return the largest place with a name; None if there is none."""
        answer = await self._services["places"].read("/v1/search", {"name": name, "count": "1", "format": "json"})
        rows = answer.rows("results")
        if not rows:
            return None
        latitude, longitude = (rows[0].need(name).number() for name in ("latitude", "longitude"))
        called = ", ".join(filter(None, (rows[0].words("name") or name, rows[0].words("country"))))
        return WeatherPlace(name=called, coordinates=f"{latitude:.4f},{longitude:.4f}")

    async def same_days(self, wanted: WeatherId, first: date, last: date) -> dict[date, float]:
        """Return what the archive contains for a span of days."""
        span = {"start_date": first.isoformat(), "end_date": last.isoformat()}
        table = await self._table(
            "archive", "/v1/archive", "daily", {**wanted.coordinates, **span, "daily": wanted.variable}
        )
        pairs = zip(table.times, table.columns.get(wanted.variable, ()), strict=False)
        return {table.day(time): value for time, value in pairs if value is not None}

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """Return, as one line, the forecasts known at the cutoff for the days after it."""
        forecasts = await self.forecasts_ahead(ref, as_of)
        listed = ", ".join(f"{forecasts[day]:.4g} for {day}" for day in sorted(forecasts))
        return (f"forecasts of {read_weather_id(ref.id).variable} known by then: {listed}",) if listed else ()

    async def forecasts_ahead(self, ref: SeriesRef, as_of: AsOf) -> dict[date, float]:
        """Return the forecasts known at the cutoff for the days after it."""
        known = await self._known_forecasts(read_weather_id(ref.id), as_of)
        return {day: value for day, value in known.items() if day > as_of.at.date()}

    async def _newest(self, ref: SeriesRef, wanted: WeatherId, as_of: AsOf) -> FetchedSeries:
        """Return one value, dated by the last day before the cutoff: the forecast for so many days after it."""
        made = as_of.at.date() if as_of.admits_day(as_of.at.date()) else as_of.at.date() - DAY
        known = await self._known_forecasts(wanted, as_of)
        if (value := known.get(made + wanted.lead * DAY)) is None:
            raise SeriesUnavailable(f"no forecast for {made + wanted.lead * DAY} was known at {as_of}")
        return FetchedSeries(series=known_series(ref, {made: value}, as_of), vintage=made)

    async def _known_forecasts(self, wanted: WeatherId, as_of: AsOf) -> dict[date, float]:
        """Return the newest forecasts known at the cutoff, from the day before it on: one request for all days."""
        last = as_of.at.date()
        span = {"start_date": (last - DAY).isoformat(), "end_date": (last + LONGEST_LEAD * DAY).isoformat()}
        # For a cutoff that is over, today's forecasts would contain what was measured since.
        if as_of.mode == "live" and as_of.at > self._clock() - HOUR:
            query = {**wanted.coordinates, **span, "hourly": wanted.hourly}
            table = await self._table("forecast", "/v1/forecast", "hourly", query)
            forecasts = {day: wanted.of_day(hours) for day, hours in table.whole_days(wanted.hourly).items()}
        else:
            names = ",".join(_column(wanted, lead) for lead in LEADS)
            query = {**wanted.coordinates, **span, "hourly": names}
            table = await self._table("previous", "/v1/forecast", "hourly", query)
            forecasts = {}
            for lead in LEADS:
                for day, hours in table.whole_days(_column(wanted, lead)).items():
                    if day not in forecasts and as_of.admits(_published(table, day, lead)):
                        forecasts[day] = wanted.of_day(hours)
        return forecasts

    async def _forecasts(self, ref: SeriesRef, wanted: WeatherId, as_of: AsOf) -> FetchedSeries:
        last = as_of.at.date() + wanted.lead * DAY
        first = max(last - FORECAST_HISTORY, FIRST_FORECASTS)
        if first > last:
            raise SeriesUnavailable(f"past forecasts reach back to {FIRST_FORECASTS}")
        column = _column(wanted, wanted.lead)
        query = {**wanted.coordinates, "start_date": first.isoformat(), "end_date": last.isoformat(), "hourly": column}
        table = await self._table("previous", "/v1/forecast", "hourly", query)
        values = {
            day - wanted.lead * DAY: wanted.of_day(hours)
            for day, hours in table.whole_days(column).items()
            if as_of.admits(_published(table, day, wanted.lead))
        }
        return FetchedSeries(series=known_series(ref, values, as_of), vintage=as_of.at.date(), notes=table.notes)

    async def _table(self, host: str, path: str, block: str, query: Mapping[str, str]) -> WeatherTable:
        try:
            return read_weather(await self._services[host].read(path, query), block)
        except SourceError as error:
            if error.status == HTTPStatus.BAD_REQUEST:
                raise SeriesUnavailable(f"Open-Meteo refused: {error.problem}") from None
            raise


def _column(wanted: WeatherId, lead: int) -> str:
    return f"{wanted.hourly}_previous_day{lead}"


def _archived(table: WeatherTable, time: datetime, as_of: AsOf) -> bool:
    """Whether the archive had the observation of a day: live always, in a backtest after the usual delay."""
    day = table.day(time)
    return as_of.admits(table.ends(day if as_of.mode == "live" else day + ARCHIVE_LAG * DAY))


def _published(table: WeatherTable, day: date, lead: int) -> datetime:
    """Return when the forecast for a day was published. It was made `lead` days before the last hour of the day."""
    return table.ends(day) - HOUR - lead * DAY + RUN_LAG
