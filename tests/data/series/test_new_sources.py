"""Weather, conflict events, tables of Wikipedia, first figures and the user's own series, as known at the cutoff."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import inject
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.series.acled import AcledSeries
from foretell.data.series.fred import FredSeries
from foretell.data.series.local import OwnSeries
from foretell.data.series.open_meteo import ARCHIVE_LAG, OpenMeteoSeries
from foretell.data.series.series import FetchedSeries, SeriesByProvider, SeriesUnavailable, WebSeries
from foretell.data.series.wikipedia import WikipediaSeries, read_table_id, table_number
from foretell.data.service import ServiceConfig
from foretell.data.service_limits import ServiceAccess
from foretell.data.wikipedia import article_tables
from foretell.practice.series import (
    PracticeAcled,
    PracticeFred,
    PracticeOpenMeteo,
    SampleConflictEvent,
    SampleFredSeries,
    SampleFredValue,
)
from foretell.practice.server import PracticeServer, json_response
from foretell.practice.web import small_world, wikipedia_server
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, SeriesRef, Target
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.series import FetchSeries, FetchWeather, about_weather
from foretell.tools.tool import ToolFailed

QUICK = HttpLimits(attempts=1, total_seconds=5.0)
TODAY = date(2026, 6, 30)
OSLO = "59.91,10.75"
KEY = "me@example.org:canary-password"


def degrees(day: date) -> float:
    """Return a different number for every day, so that values of later days are recognised."""
    return float(day.toordinal() - date(2026, 1, 1).toordinal())


def use_source(
    plugin: Callable[[ServiceConfig], WebSeries],
    server: PracticeServer,
    id: str,
    as_of: AsOf,
    use: Callable[[WebSeries, SeriesRef], Any] | None = None,
) -> Any:
    async def run() -> Any:
        async with server:
            access = ServiceAccess(addresses={"wikipedia": server.url}, contact="me@example.org")
            async with AsyncHttpClient(limits=QUICK, access=access) as http:
                source = plugin(ServiceConfig(http=http, key=KEY, address=server.url))
                ref = SeriesRef(provider="x", id=id)
                return await (use(source, ref) if use else source.fetch_with_provenance(ref, as_of))

    return asyncio.run(run())


def shown(fetched: FetchedSeries) -> dict[str, float]:
    return dict(zip(fetched.series.days.astype(str).tolist(), fetched.series.values.tolist(), strict=True))


def weather(hours: float = 0.0) -> PracticeServer:
    return PracticeOpenMeteo(degrees, today=TODAY, offset=timedelta(hours=hours)).server()


def test_observations_are_known_after_the_delay_of_the_archive() -> None:
    then = shown(use_source(OpenMeteoSeries, weather(), f"observed/{OSLO}/temperature_2m_max", AsOf.day("2026-05-20")))
    assert max(then) == "2026-05-14"
    assert then["2026-05-14"] == degrees(date(2026, 5, 14))
    live = shown(use_source(OpenMeteoSeries, weather(), f"observed/{OSLO}/precipitation_sum", AsOf.day(TODAY, "live")))
    assert max(live) == "2026-06-25"


def test_a_forecast_is_dated_by_the_day_it_was_made() -> None:
    cutoff = AsOf.day("2026-05-20")
    forecasts = shown(use_source(OpenMeteoSeries, weather(), f"forecast3/{OSLO}/temperature_2m_max", cutoff))
    # The last run published by the cutoff is that of the day before.
    assert max(forecasts) == "2026-05-19"
    assert forecasts["2026-05-19"] == degrees(date(2026, 5, 22)) + 0.3
    far_west = shown(use_source(OpenMeteoSeries, weather(-10), f"forecast3/{OSLO}/temperature_2m_max", cutoff))
    far_east = shown(use_source(OpenMeteoSeries, weather(+10), f"forecast3/{OSLO}/temperature_2m_max", cutoff))
    assert (max(far_west), max(far_east)) == ("2026-05-19", "2026-05-20")
    total = shown(use_source(OpenMeteoSeries, weather(), f"forecast1/{OSLO}/precipitation_sum", cutoff))
    assert total["2026-05-10"] == pytest.approx(24 * (degrees(date(2026, 5, 11)) + 0.1))


@pytest.mark.parametrize(("mode", "first", "last"), [("backtest", 0.2, 0.7), ("live", 0.1, 0.7)])
def test_forecasts_known_at_the_cutoff_are_listed_for_the_days_after_it(mode: Any, first: float, last: float) -> None:
    as_of = AsOf.day("2026-05-20") if mode == "backtest" else AsOf.day(TODAY, "live")
    today = partial(OpenMeteoSeries, clock=lambda: instant(TODAY))
    (line,) = use_source(today, weather(), f"observed/{OSLO}/temperature_2m_max", as_of, lambda s, r: s.ahead(r, as_of))
    day = as_of.at.date()
    # The newest forecasts as series are dated by the cutoff's day. A day later, a live cutoff is that of a backtest.
    newest = shown(use_source(today, weather(), f"ahead6/{OSLO}/temperature_2m_max", as_of))
    assert newest == {str(day): pytest.approx(degrees(day + timedelta(days=6)) + (0.6 if mode == "live" else 0.7))}
    late = partial(OpenMeteoSeries, clock=lambda: instant(TODAY) + timedelta(days=2))
    over = shown(use_source(late, weather(), f"ahead6/{OSLO}/temperature_2m_max", as_of))
    assert over == {str(day): pytest.approx(degrees(day + timedelta(days=6)) + 0.7)}
    assert f"{degrees(day + timedelta(days=1)) + first:.4g} for {day + timedelta(days=1)}" in line
    assert line.endswith(f"for {day + timedelta(days=7 if mode == 'live' else 6)}")
    assert line.count(" for ") == (7 if mode == "live" else 6)
    assert last


@pytest.mark.parametrize(
    "id", ["observed/1/x_max", "observed/95,10/t_max", "forecast9/1,1/t_max", "t", f"observed/{OSLO}/code"]
)
def test_an_invalid_weather_id_is_unavailable(id: str) -> None:
    with pytest.raises(SeriesUnavailable, match="names no weather"):
        use_source(OpenMeteoSeries, weather(), id, AsOf.day(TODAY))


def test_the_error_quotes_the_refusal_of_the_weather_service() -> None:
    server = weather()
    inject(server, lambda _: json_response({"error": True, "reason": "Data corrupted at path"}, 400))
    with pytest.raises(SeriesUnavailable, match="Data corrupted"):
        use_source(OpenMeteoSeries, server, f"observed/{OSLO}/t_max", AsOf.day(TODAY))


def event(n: int, day: str, changed: str, **more: Any) -> SampleConflictEvent:
    return SampleConflictEvent(id=f"IRQ{n}", day=date.fromisoformat(day), changed=instant(changed), **more)


EVENTS = [
    event(1, "2026-05-01", "2026-05-06", fatalities=2),
    event(2, "2026-05-01", "2026-06-20"),
    event(3, "2026-05-03", "2026-05-06"),
    event(4, "2026-05-09", "2026-05-12"),
    event(5, "2026-05-10", "2026-06-01"),
    event(6, "2026-05-10", "2026-05-12", country="Egypt"),
]
DELETED = {"IRQ7": datetime(2026, 6, 1, tzinfo=UTC), "IRQ8": datetime(2026, 1, 1, tzinfo=UTC)}


def conflict(as_of: AsOf, id: str = "Iraq/Protests", password: str = "canary-password") -> FetchedSeries:
    return use_source(AcledSeries, PracticeAcled(EVENTS, password=password, deleted=DELETED).server(), id, as_of)


def test_conflict_rows_changed_after_the_cutoff_are_not_counted() -> None:
    then = conflict(AsOf.day("2026-05-10"))
    assert shown(then) == {"2026-05-01": 1.0, "2026-05-02": 0.0, "2026-05-03": 1.0}
    assert then.notes == ("3 rows changed since, 1 rows of all countries deleted since",)
    now = shown(conflict(AsOf.day("2026-06-30", "live")))
    assert (now["2026-05-01"], now["2026-05-10"], sum(now.values())) == (2.0, 1.0, 5.0)
    assert shown(conflict(AsOf.day("2026-05-10"), "Iraq/Protests/fatalities"))["2026-05-01"] == 2.0
    assert shown(conflict(AsOf.day("2026-05-10"), "Iraq/Protests/2 days")) == {"2026-05-02": 1.0, "2026-05-03": 1.0}


def test_a_wrong_password_or_no_events_makes_a_conflict_series_unavailable() -> None:
    with pytest.raises(SourceError) as refused:
        conflict(AsOf.day("2026-05-10"), password="another")
    assert "canary-password" not in str(refused.value)
    for id in ("Iraq/Riots", "Iraq", "/Riots"):
        with pytest.raises(SeriesUnavailable):
            conflict(AsOf.day("2026-05-10"), id)


def test_a_number_of_a_wikipedia_table_is_read_month_by_month() -> None:
    def rated(id: str, as_of: AsOf) -> dict[str, float]:
        return shown(use_source(WikipediaSeries, wikipedia_server(small_world()), id, as_of))

    ada = rated("Practice rankings/Ada Berg/Rating", AsOf.day("2026-07-01"))
    assert list(ada.items())[-2:] == [("2026-06-01", 2801.0), ("2026-07-01", 2799.0)]
    assert min(ada) == "2026-01-02"
    assert rated("Practice_rankings/bo lind/Rank", AsOf.day("2026-10-01"))["2026-10-01"] == 2.0
    for id in ("Practice rankings/Nobody/Rating", "Nowhere/A/B", "Practice rankings/Ada Berg/Weight", "x"):
        with pytest.raises(SeriesUnavailable):
            rated(id, AsOf.day("2026-07-01"))


def test_tables_with_spans_markup_and_nested_tables_are_parsed() -> None:
    (table,) = article_tables(
        "== Women ==\n{| class=wikitable\n|+ Records\n! scope=col | Event\n! colspan=2 | Time <ref>x</ref>\n! Name\n"
        "|-\n"
        "| rowspan=2 | [[50m]] || 23.61 || WR || {{flagathlete|[[Sarah Sjöström]]|SWE}}\n|-\n| 23.9 || || '''B'''\n"
        "| style=x | more\n|-\n! 100m\n| 51.71\n{|\n| inner\n|}\n|}"
    )
    assert (table.section, table.caption, table.columns) == ("Women", "Records", ("Event", "Time", "Time", "Name"))
    assert table.rows[0] == ("50m", "23.61", "WR", "Sarah Sjöström")
    assert table.rows[1] == ("50m", "23.9", "", "B")
    assert table.rows[2][:2] == ("100m", "51.71")
    assert table_number([table], "sarah sjostrom", "time") == 23.61
    assert article_tables("no table") == article_tables("{|\n| only || cells\n|}") == []
    (shots,) = article_tables(
        "{|\n! Disease !! Vaccine(s)\n|-\n| Mpox || {{yes}}\n|-\n| HIV || Under research 2024\n|}"
    )
    assert [table_number([shots], name, "Vaccine(s)") for name in ("mpox", "HIV", "Flu")] == [1.0, 0.0, None]
    assert read_table_id("A/B/C/D") == ("A/B", "C", "D")


@given(st.text(alphabet="{|}!-+\n ab=[]'\"23rowspan", max_size=200))
@settings(max_examples=60)
def test_parsing_tables_of_any_wikitext_does_not_fail(source: str) -> None:
    for table in article_tables("{|\n! a\n" + source + "\n|}"):
        assert all(len(row) == len(table.columns) for row in table.rows)


FIRST = SampleFredSeries(
    observations=(
        SampleFredValue(day=date(2026, 3, 1), value=4.0, since=date(2026, 4, 5), until=date(2026, 5, 5)),
        SampleFredValue(day=date(2026, 3, 1), value=4.1, since=date(2026, 5, 5)),
        SampleFredValue(day=date(2026, 4, 1), value=5.0, since=date(2026, 5, 5)),
    )
)


def test_fred_returns_first_published_figures_and_the_release_calendar() -> None:
    def fred() -> PracticeServer:
        return PracticeFred({"UNRATE": FIRST}, key=KEY, today=TODAY).server()

    cutoff = AsOf.day("2026-06-10")
    assert shown(use_source(FredSeries, fred(), "UNRATE/initial", cutoff)) == {"2026-03-01": 4.0, "2026-04-01": 5.0}
    assert shown(use_source(FredSeries, fred(), "UNRATE/initial", AsOf.day("2026-05-05"))) == {"2026-03-01": 4.0}
    (then,) = use_source(FredSeries, fred(), "UNRATE", cutoff, lambda source, ref: source.ahead(ref, cutoff))
    assert "2026-06-09, 2026-06-08, 2026-06-05" in then
    assert "2026-06-10" not in then
    live = AsOf.day(TODAY, "live")
    lines = use_source(FredSeries, fred(), "UNRATE", live, lambda source, ref: source.ahead(ref, live))
    assert lines[1].startswith("next releases scheduled for 2026-07-01, 2026-07-02")


def test_series_of_the_user_end_at_the_cutoff(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("date,value\n2026-01-01,1\n2026-02-01,2\n2026-03-01,3\n")

    async def run(id: str, as_of: AsOf, path: Path = tmp_path) -> list[float]:
        config = ServiceConfig(http=AsyncHttpClient(), series=path)
        assert OwnSeries.available(config)
        source = SeriesByProvider({"csv": OwnSeries.open(config)})
        return (await source.fetch(SeriesRef(provider="csv", id=id), as_of)).values.tolist()

    assert asyncio.run(run("sales", AsOf.day("2026-02-15"))) == [1.0, 2.0]
    for id, day, path in (
        ("costs", "2026-02-15", tmp_path),
        ("sales", "2025-01-01", tmp_path),
        ("sales", "2026-02-15", tmp_path / "none"),
    ):
        with pytest.raises(SeriesUnavailable):
            asyncio.run(run(id, AsOf.day(day), path))
    assert not OwnSeries.available(ServiceConfig(http=AsyncHttpClient(), home=tmp_path))


LATE_NEWS = [
    event(n, str(date(2026, 4, 1) + timedelta(days=n)), str(date(2026, 4, 3) + timedelta(days=3 * n)))
    for n in range(40)
]


@pytest.mark.parametrize(
    "name", ["observed", "forecast1", "forecast7", "ahead0", "ahead6", "acled", "wikipedia", "first figures"]
)
@settings(max_examples=4)
@given(offset=st.integers(0, 60), hour=st.integers(0, 23), zone=st.integers(-11, 13))
def test_no_value_after_the_cutoff_is_returned(name: str, offset: int, hour: int, zone: int) -> None:
    cutoff = AsOf(at=datetime(2026, 4, 20, hour, tzinfo=UTC) + timedelta(days=offset))
    fred = PracticeFred({"UNRATE": FIRST}, key=KEY, today=TODAY)
    sources: dict[str, tuple[Any, PracticeServer, str]] = {
        "acled": (AcledSeries, PracticeAcled(LATE_NEWS, password="canary-password").server(), "Iraq/Protests"),
        "wikipedia": (WikipediaSeries, wikipedia_server(small_world()), "Practice rankings/Ada Berg/Rating"),
        "first figures": (FredSeries, fred.server(), "UNRATE/initial"),
    }
    plugin, server, id = sources.get(name, (OpenMeteoSeries, weather(zone), f"{name}/{OSLO}/temperature_2m_max"))
    try:
        values = shown(use_source(plugin, server, id, cutoff))
    except SeriesUnavailable:
        return
    assert all(cutoff.admits_day(date.fromisoformat(day)) for day in values)
    if name == "observed":
        assert all(cutoff.admits_day(date.fromisoformat(day) + timedelta(days=ARCHIVE_LAG - 1)) for day in values)
    if name.startswith("ahead"):
        ((day, value),) = values.items()
        lead = round(10 * (value - degrees(date.fromisoformat(day) + timedelta(days=int(name[-1])))))
        assert lead >= int(name[-1]) - 1, "it was made before the cutoff, which may be in the day after its own"
    if name.startswith("forecast"):
        lead = int(name[-1])
        assert all(
            value == pytest.approx(degrees(date.fromisoformat(day) + timedelta(days=lead)) + lead / 10)
            for day, value in values.items()
        )
    if name == "acled":
        assert sum(values.values()) == sum(cutoff.admits(news.changed) for news in LATE_NEWS)
    if name == "wikipedia":
        assert (2822.0 in values.values()) == (cutoff.at >= instant("2026-09-02"))


def test_an_agent_sees_forecasts_known_at_the_cutoff() -> None:
    async def run() -> str:
        async with weather() as server, AsyncHttpClient(limits=QUICK) as http:
            weather_source = OpenMeteoSeries(ServiceConfig(http=http, address=server.url))
            ref = SeriesRef(provider="open_meteo", id=f"observed/{OSLO}/temperature_2m_max", threshold=100.0)
            question = Question(
                id="q", source="mine", text="Hot?", due=instant("2026-05-20"), targets=(Target(id="yes"),), series=ref
            )
            as_of = AsOf.day("2026-05-20")
            tool = FetchSeries(question=question, source=SeriesByProvider({"open_meteo": weather_source}))
            (item,) = (await tool.use({}, as_of)).items
            admitted = LeakageRules(as_of=as_of, question=question).admit(item, "fetch_series")
            return getattr(admitted, "text", "refused")

    text = asyncio.run(run())
    assert "forecasts of temperature_2m_max known by then: 140.2 for 2026-05-21, 141.3 for 2026-05-22" in text
    assert text.splitlines()[-1] == "2026-05-14, 133"


def test_an_agent_can_request_the_weather_of_a_place() -> None:
    question = Question(
        id="KXHIGHNY", source="kalshi", text="Highest temperature in NYC on May 22?", due=instant("2026-05-20")
    )
    assert about_weather(question)
    assert not about_weather(replace(question, text="Will rates rise?"))
    assert not about_weather(replace(question, series=SeriesRef(provider="fred", id="DGS10")))

    async def run(**arguments: str) -> str:
        async with weather() as server, AsyncHttpClient(limits=QUICK) as http:
            source = SeriesByProvider({"open_meteo": OpenMeteoSeries(ServiceConfig(http=http, address=server.url))})
            as_of = AsOf.day("2026-05-20")
            (item,) = (await FetchWeather(source=source).use(arguments, as_of)).items
            return getattr(LeakageRules(as_of=as_of, question=question).admit(item, "fetch_series"), "text", "refused")

    text = asyncio.run(run(place="40.78, -73.97", quantity="temperature_2m_max"))
    assert text.startswith("unit: °C\nforecasts of temperature_2m_max known by then: 140.2 for 2026-05-21")
    assert text.endswith("\n2026-05-14, 133")
    for wrong in ({"place": "New York", "quantity": "temperature_2m_max"}, {"place": OSLO, "quantity": "fog"}):
        with pytest.raises(ToolFailed):
            asyncio.run(run(**wrong))
