"""Open-Meteo: recorded archives and forecasts of 2025 and 2026, and the parameters of its API."""

import json
from datetime import date, timedelta
from typing import Any

import pytest

from conformance.reading import body_of, config_on, sweep
from conformance.recordings import Check, answer, spec_file
from foretell.data.http import SourceError
from foretell.data.payload import Payload
from foretell.data.series.open_meteo import LEADS, OpenMeteoSeries, read_weather
from foretell.data.series.series import SeriesUnavailable
from foretell.outgoing.client import HttpRequest
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import SeriesRef

NEW_YORK = "forecast_pi-inky-_ny_6pm_before_gmt_open_meteo_daily_forecast"
SEATTLE = "forecast_pi-inky-_mixed_precip_open_meteo_daily_forecast"
ALASKA = "forecast_pi-inky-_alaska_snow_open_meteo_{}_forecast"
ADELAIDE = "archive_vinea_open_meteo_archive"
OSLO = "59.91,10.75"


def _archive() -> None:
    table = read_weather(body_of("open_meteo", ADELAIDE), "hourly")
    assert (table.offset, len(table.times)) == (timedelta(hours=9, minutes=30), 72)
    # Midnight in Adelaide is the afternoon before in Greenwich.
    assert (table.times[0], table.day(table.times[0])) == (instant("2025-01-09T14:30:00Z"), date(2025, 1, 10))
    days = table.whole_days("temperature_2m")
    assert (max(days[date(2025, 1, 10)]), min(days[date(2025, 1, 10)])) == (33.5, 16.7)
    assert list(days) == [date(2025, 1, 10), date(2025, 1, 11), date(2025, 1, 12)]
    assert table.ends(date(2025, 1, 10)) == instant("2025-01-10T14:30:00Z")


def _daily() -> None:
    new_york = read_weather(body_of("open_meteo", NEW_YORK), "daily")
    assert (new_york.times[0], new_york.day(new_york.times[0])) == (instant("2025-12-28T05:00:00Z"), date(2025, 12, 28))
    assert new_york.columns["temperature_2m_max"][:3] == (-1.0, 7.7, -0.2)
    assert (new_york.columns["precipitation_sum"][-1], len(new_york.times)) == (21.1, 14)
    assert "sunrise" not in new_york.columns
    seattle = read_weather(body_of("open_meteo", SEATTLE), "daily")
    assert seattle.columns["snowfall_sum"] == (0.0, 0.0, 3.0, 5.0, 2.0, 0.0, 0.0)
    alaska = read_weather(body_of("open_meteo", ALASKA.format("daily")), "daily")
    assert (alaska.columns["temperature_2m_min"][-1], alaska.columns["weather_code"][0]) == (-17.0, 73.0)
    assert alaska.offset == timedelta(hours=-9)


def _hourly() -> None:
    table = read_weather(body_of("open_meteo", ALASKA.format("hourly")), "hourly")
    days = table.whole_days("temperature_2m")
    assert (table.offset, len(days), len(table.times)) == (timedelta(0), 7, 168)
    assert (max(days[date(2026, 1, 15)]), min(days[date(2026, 1, 15)])) == (-5.9, -14.8)


async def _requests() -> None:
    declared: dict[str, Any] = json.loads(spec_file("open_meteo", "parameters.json").read_text())
    seen: list[HttpRequest] = []
    answers = {
        "/v1/archive": answer("open_meteo", NEW_YORK),
        "/v1/forecast": answer("open_meteo", ALASKA.format("hourly")),
    }
    source = OpenMeteoSeries(config_on(answers, seen), clock=lambda: instant("2026-01-20"))
    live, past = AsOf.day("2026-01-20", "live"), AsOf.day("2026-01-20")
    ref = SeriesRef(provider="open_meteo", id=f"observed/{OSLO}/temperature_2m_max")
    series = await source.fetch(ref, live)
    assert (len(series), float(series.values[-1])) == (14, 7.8)
    assert str((await source.fetch(ref, AsOf.day("2026-01-05"))).days[-1]) == "2025-12-30"
    await source.ahead(ref, live)
    await source.ahead(ref, past)
    with pytest.raises(SeriesUnavailable, match="nothing of"):
        await source.fetch(SeriesRef(provider="open_meteo", id=f"forecast3/{OSLO}/temperature_2m_max"), past)
    assert [request.url.host.partition(".")[0] for request in seen] == [
        "archive-api",
        "archive-api",
        "api",
        "previous-runs-api",
        "previous-runs-api",
    ]
    for request in seen:
        place = "historical-weather /v1/archive" if "archive" in request.url.host else "forecast /v1/forecast"
        allowed = declared[place]["parameters"]
        assert set(request.url.query) <= set(allowed)
        for block in ("hourly", "daily"):
            for name in filter(None, request.url.query.get(block, "").split(",")):
                assert name.partition("_previous_day")[0] in allowed[block]["values"]
    variables = seen[3].url.query["hourly"].split(",")
    assert variables == [f"temperature_2m_previous_day{lead}" for lead in LEADS]


def _any(name: str) -> None:
    body = body_of("open_meteo", name)
    places = body.items() if isinstance(body.value, list) else [body]
    for place in places:
        for block in ("hourly", "daily"):
            if place.is_set("error") or place.get(block) is not None:
                _read(place, block)


def _read(place: Payload, block: str) -> None:
    if place.is_set("error"):
        with pytest.raises(SourceError, match="refused"):
            read_weather(place, block)
        return
    table = read_weather(place, block)
    assert table.notes == ()
    assert list(table.times) == sorted(table.times)


CHECKS = [
    Check(
        service="open_meteo",
        what="an archive by the hour: local times with their offset, whole days of the place",
        recordings=(ADELAIDE,),
        function=_archive,
    ),
    Check(
        service="open_meteo",
        what="forecasts by the day, in three time zones",
        recordings=(NEW_YORK, SEATTLE, ALASKA.format("daily")),
        function=_daily,
    ),
    Check(
        service="open_meteo",
        what="a forecast by the hour, summed up by day",
        recordings=(ALASKA.format("hourly"),),
        function=_hourly,
    ),
    Check(
        service="open_meteo",
        what="requests name only parameters and quantities of its API; a backtest asks past forecasts",
        recordings=(NEW_YORK, ALASKA.format("hourly")),
        function=_requests,
    ),
    Check(
        service="open_meteo",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("open_meteo", _any),
    ),
]
