"""FRED and its archive of vintages: recorded answers of November 2024."""

from datetime import date

import pytest

from conformance.reading import KEY, body_of, config_on, sweep
from conformance.recordings import Check, answer, recording
from fakes.answers import respond
from foretell.data.series.fred import FredSeries, ReleaseCalendar, first_values, fred_values, read_calendar
from foretell.data.series.series import SeriesUnavailable
from foretell.outgoing.client import HttpRequest
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

GDP = SeriesRef(provider="fred", id="GDP")
RECORDED = AsOf.day("2024-11-03", "live")


async def _current() -> None:
    seen: list[HttpRequest] = []
    source = FredSeries(config_on({"/series/observations": answer("fred", "get_series_pandas")}, seen, key=KEY))
    series = await source.fetch(GDP, RECORDED)
    # Four quarters of 1946 have a dot instead of a value.
    assert (len(series), str(series.days[0]), float(series.values[0])) == (311, "1947-01-01", 243.164)
    assert (str(series.days[-1]), float(series.values[-1])) == ("2024-07-01", 29349.924)
    query = seen[0].url.query
    assert (query["series_id"], query["file_type"], query["observation_end"]) == ("GDP", "json", "2024-11-03")


def _vintages() -> None:
    pages = [body_of("fred", "get_series_asof_date_pandas")]
    latest, notes = fred_values(pages, known_by=date(2019, 1, 1))
    assert notes == ()
    assert latest[date(2018, 7, 1)] == 20658.204
    # Published in 1992, withdrawn in 1996, published again in 1997, withdrawn in 1999.
    assert date(1946, 1, 1) not in latest
    first = date(1946, 1, 1)
    values = [fred_values(pages, known_by=date(year, 12, 31))[0].get(first) for year in (1991, 1995, 1996, 1998, 2000)]
    assert values == [None, 199.7, None, 210.4, None]
    assert max(fred_values(pages, known_by=date(2018, 12, 20))[0]) == date(2018, 7, 1)
    assert fred_values(pages, known_by=date(2018, 12, 20))[0][date(2018, 7, 1)] == 20660.34


def _initial() -> None:
    pages = [body_of("fred", "get_series_initial_release_pandas")]
    values, _ = first_values(pages, known_by=date(2024, 11, 3))
    assert (values[date(1991, 10, 1)], values[date(2024, 4, 1)], len(values)) == (5736.6, 28629.153, 132)
    assert max(first_values(pages, known_by=date(2024, 10, 29))[0]) == date(2024, 4, 1)


async def _calendar() -> None:
    body = body_of("fred", "get_release_dates")
    then = read_calendar(body, "CPI", AsOf.day("2024-09-12"))
    assert (then.past[:2], then.scheduled) == ((date(2024, 9, 11), date(2024, 8, 14)), ())
    live = read_calendar(body, "CPI", AsOf.day("2024-10-01", "live"))
    assert live == ReleaseCalendar(
        name="CPI",
        past=tuple(date(2024, month, day) for month, day in ((9, 11), (8, 14), (7, 11), (6, 12), (5, 15), (4, 10))),
        scheduled=(date(2024, 10, 10),),
    )
    answers = {"/series/release": answer("fred", "get_release"), "/release/dates": answer("fred", "get_release_dates")}
    seen: list[HttpRequest] = []
    lines = await FredSeries(config_on(answers, seen, key=KEY)).ahead(GDP, AsOf.day("2024-09-12"))
    assert lines[0].startswith("part of the release 'Consumer Price Index', last out on 2024-09-11, 2024-08-14, ")
    assert len(lines) == 1
    assert seen[1].url.query["release_id"] == "10"
    assert seen[1].url.query["include_release_dates_with_no_data"] == "true"


def _vintage_days() -> None:
    days = [item.day() for item in body_of("fred", "get_series_vintagedates").need("vintage_dates").items()]
    assert (len(days), days[0], days[-1]) == (393, date(1991, 12, 4), date(2024, 10, 30))
    (category,) = body_of("fred", "get_category").need("categories").items()
    assert (category.need("name").text(), category.need("parent_id").name()) == ("Trade Balance", "13")


async def _refusals() -> None:
    # Error messages of the service, as users report them.
    unlicensed = respond(404, json={"error_code": 404, "error_message": "Not Found.  The series does not exist."})
    unknown = respond(400, json={"error_code": 400, "error_message": "Bad Request.  The series does not exist."})
    for response, word in ((unlicensed, "licence"), (unknown, "no series 'GDP'")):
        with pytest.raises(SeriesUnavailable, match=word):
            await FredSeries(config_on({"/series/observations": response}, key=KEY)).fetch(GDP, RECORDED)


def _any(name: str) -> None:
    body = body_of("fred", name)
    if body.get("error_code") is not None:
        assert body.optional_text("error_message")
    elif body.get("observations") is not None:
        kind = recording("fred", name)["body"].get("output_type", 1)
        rows = body.need("observations").items()
        if kind == 1:
            values, notes = fred_values([body])
            assert notes == ()
            assert values or not any(row.optional_text("value") not in ("", ".") for row in rows)
        elif kind == 4:
            assert first_values([body], known_by=date.max)[1] == ()
    elif body.get("release_dates") is not None:
        days = read_calendar(body, "", AsOf.day("2100-01-01", "live")).past
        assert days or not body.rows("release_dates")
    else:
        # Categories, sources, tags and vintages have no values.
        assert body.members()


CHECKS = [
    Check(
        service="fred",
        what="current figures, with points as missing values",
        recordings=("get_series_pandas",),
        function=_current,
    ),
    Check(
        service="fred",
        what="what stood on a day, with values taken back and given again",
        recordings=("get_series_asof_date_pandas",),
        function=_vintages,
    ),
    Check(
        service="fred",
        what="each value as first published, by a day",
        recordings=("get_series_initial_release_pandas",),
        function=_initial,
    ),
    Check(
        service="fred",
        what="the release of a series and its calendar; scheduled days only live",
        recordings=("get_release", "get_release_dates"),
        function=_calendar,
    ),
    Check(
        service="fred",
        what="days on which anything of a series came out, and a category",
        recordings=("get_series_vintagedates", "get_category"),
        function=_vintage_days,
    ),
    Check(service="fred", what="a series without a licence (404) and an unknown one (400)", function=_refusals),
    Check(
        service="fred",
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep("fred", _any),
    ),
]
