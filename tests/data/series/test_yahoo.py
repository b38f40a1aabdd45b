"""Yahoo closes on the share basis of the cutoff."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import ServerFault, busy, failing
from foretell.data.http import SourceError
from foretell.data.series.series import SeriesUnavailable
from foretell.data.series.yahoo import YahooSeries
from foretell.data.service import ServiceConfig
from foretell.practice.series import PracticeYahoo, SampleShare, SampleShareSplit
from foretell.questions.as_of import AsOf

NEW_YORK = ZoneInfo("America/New_York")


def opening(day: str, zone: str = "America/New_York", hour: int = 9, minute: int = 30) -> datetime:
    local = datetime.combine(date.fromisoformat(day), datetime.min.time(), ZoneInfo(zone))
    return local.replace(hour=hour, minute=minute).astimezone(UTC)


def make(http: Any, url: str) -> YahooSeries:
    return YahooSeries(ServiceConfig(http=http, address=url))


def shown(series: Any) -> dict[str, float]:
    return {day: round(value, 6) for day, value in zip(series.days.astype(str).tolist(), series.values, strict=True)}


# A four-for-one split on 3 June and a one-for-ten split on 1 September, with the prices actually paid.
PAID = {"2024-05-30": 400.0, "2024-05-31": 404.0, "2024-06-03": 102.0, "2024-08-30": 90.0, "2024-09-03": 910.0}
SPLITS = (
    SampleShareSplit(at=opening("2024-06-03"), numerator=4, denominator=1),
    SampleShareSplit(at=opening("2024-09-03"), numerator=1, denominator=10),
)
SHARE = SampleShare(sessions=tuple((opening(day), price) for day, price in PAID.items()), splits=SPLITS)


def fetched(
    ask: Any, share: SampleShare, as_of: AsOf, faults: list[ServerFault] | None = None, ticker: str = "ACME"
) -> Any:
    return ask(PracticeYahoo({"ACME": share, "BNY": share}).server(), make, ticker, as_of, faults).series


def test_closes_before_any_split_are_the_prices_paid_then(ask: Any) -> None:
    assert shown(fetched(ask, SHARE, AsOf.day("2024-06-01"))) == {"2024-05-30": 400.0, "2024-05-31": 404.0}


def test_splits_up_to_the_cutoff_are_adjusted_for_and_later_ones_undone(ask: Any) -> None:
    series = fetched(ask, SHARE, AsOf.day("2024-08-31"))
    assert shown(series) == {"2024-05-30": 100.0, "2024-05-31": 101.0, "2024-06-03": 102.0, "2024-08-30": 90.0}


def test_after_all_splits_closes_are_on_the_newest_share_basis(ask: Any) -> None:
    assert shown(fetched(ask, SHARE, AsOf.day("2024-12-01")))["2024-05-30"] == 1000.0


def test_the_request_reaches_past_the_cutoff_to_learn_of_later_splits(ask: Any) -> None:
    fetched(ask, SHARE, AsOf.day("2024-06-01"))
    (request,) = ask.server.requests
    assert request.path == "/v8/finance/chart/ACME"
    assert int(request.query["period2"]) > datetime(2100, 1, 1, tzinfo=UTC).timestamp()
    assert (request.query["interval"], request.query["events"]) == ("1d", "div,splits")


def test_a_renamed_share_is_requested_under_its_present_symbol(ask: Any) -> None:
    assert len(fetched(ask, SHARE, AsOf.day("2024-12-01"), ticker="BK")) == 5
    assert ask.server.requests[0].path.endswith("/BNY")


@pytest.mark.parametrize(
    ("zone", "hour", "stamp"),
    [
        ("Australia/Sydney", 10, "2024-01-14T23:00:00+00:00"),
        ("Europe/London", 0, "2024-07-14T23:00:00+00:00"),
        ("America/New_York", 9, "2024-07-15T13:00:00+00:00"),
    ],
)
def test_a_session_is_dated_in_the_time_zone_of_its_exchange(ask: Any, zone: str, hour: int, stamp: str) -> None:
    at = datetime.fromisoformat(stamp)
    day = "2024-01-15" if "-01-" in stamp else "2024-07-15"
    assert opening(day, zone, hour, 0) == at
    share = SampleShare(sessions=((at, 5.0), (at + timedelta(days=200), 6.0)), zone=zone)
    assert next(iter(shown(fetched(ask, share, AsOf.day("2024-07-20"))))) == day


def test_an_unknown_zone_falls_back_to_the_offset(ask: Any) -> None:
    share = SampleShare(sessions=((opening("2024-01-15"), 5.0),), zone="Mars/Olympus")
    assert list(shown(fetched(ask, share, AsOf.day("2024-02-01")))) == ["2024-01-15"]


@pytest.mark.parametrize(("at", "known"), [("2024-05-31T21:00:00Z", 1), ("2024-05-31T23:59:59.999999Z", 2)])
def test_the_day_of_the_cutoff_is_known_once_its_session_is_over(ask: Any, at: str, known: int) -> None:
    assert len(fetched(ask, SHARE, AsOf(at=at))) == known


def test_a_session_that_runs_into_the_next_day_is_not_known_at_midnight(ask: Any) -> None:
    share = SampleShare(
        sessions=((opening("2024-05-30"), 1.0), (opening("2024-05-31"), 2.0)), hours=timedelta(hours=20)
    )
    assert len(fetched(ask, share, AsOf.day("2024-05-31"))) == 1
    unknown = SampleShare(sessions=share.sessions, hours=None)
    assert len(fetched(ask, unknown, AsOf.day("2024-05-31"))) == 1


def test_a_missing_close_is_taken_only_from_the_last_trade_of_that_day(ask: Any) -> None:
    sessions = ((opening("2024-05-30"), None), (opening("2024-05-31"), None))
    quote = (opening("2024-05-31") + timedelta(hours=6.5), 7.0)
    series = fetched(ask, SampleShare(sessions=sessions, quote=quote), AsOf.day("2024-05-31"))
    assert shown(series) == {"2024-05-31": 7.0}
    with pytest.raises(SeriesUnavailable, match="nothing of x/ACME"):
        fetched(ask, SampleShare(sessions=sessions), AsOf.day("2024-05-31"))


def test_an_unknown_ticker_or_one_without_prices_is_unavailable(ask: Any, edited: Callable[..., ServerFault]) -> None:
    with pytest.raises(SeriesUnavailable, match="no ticker 'NOPE'"):
        fetched(ask, SHARE, AsOf.day("2024-06-01"), ticker="NOPE")
    with pytest.raises(SeriesUnavailable, match="no prices of 'ACME'"):
        fetched(ask, SHARE, AsOf.day("2024-06-01"), [edited(lambda body: body["chart"].update(result=[]))])
    with pytest.raises(SeriesUnavailable, match="nothing of x/ACME"):
        fetched(ask, SampleShare(sessions=()), AsOf.day("2024-06-01"))


@settings(max_examples=25)
@given(
    day=st.dates(date(2024, 5, 1), date(2024, 12, 1)),
    hour=st.integers(0, 23),
    splits=st.dictionaries(
        st.dates(date(2024, 5, 1), date(2025, 6, 1)), st.tuples(st.integers(1, 20), st.integers(1, 20)), max_size=4
    ),
)
def test_data_after_the_cutoff_does_not_change_the_series(
    ask: Any, day: date, hour: int, splits: dict[date, tuple[int, int]]
) -> None:
    """The series is the same with and without all sessions and splits after the cutoff."""
    cutoff = AsOf(at=AsOf.day(day).at.replace(hour=hour))
    all_splits = tuple(
        SampleShareSplit(at=opening(d.isoformat()), numerator=n, denominator=m) for d, (n, m) in splits.items()
    )
    days = [date(2024, 5, 1) + timedelta(days=3 * i) for i in range(90)]
    sessions = tuple((opening(d.isoformat()), 50.0 + i) for i, d in enumerate(days))
    whole = SampleShare(sessions=sessions, splits=all_splits)
    past = SampleShare(
        sessions=tuple(session for session in sessions if cutoff.admits(session[0])),
        splits=tuple(split for split in all_splits if cutoff.admits(split.at)),
    )
    try:
        then = shown(fetched(ask, past, cutoff))
    except SeriesUnavailable:
        then = {}
    try:
        now = shown(fetched(ask, whole, cutoff))
    except SeriesUnavailable:
        now = {}
    assert now == pytest.approx(then)
    assert all(cutoff.admits_day(date.fromisoformat(day)) for day in now)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.pop("chart"), "chart is missing"),
        (lambda body: body["chart"]["result"][0].pop("meta"), r"chart\.result\[0\]\.meta is missing"),
        (lambda body: body["chart"]["result"][0]["indicators"].pop("quote"), "indicators.quote is missing"),
        (
            lambda body: body["chart"]["result"][0]["indicators"]["quote"][0].pop("close"),
            r"quote\[0\]\.close is missing",
        ),
        (lambda body: body["chart"]["result"][0]["timestamp"].pop(), "indicators is not as long as timestamp"),
        (lambda body: body["chart"]["result"][0]["meta"].update(dataGranularity="3mo"), "steps of 3mo, not of a day"),
        (lambda body: _first_split(body).pop("numerator"), "numerator is missing"),
        (lambda body: _first_split(body).update(denominator=0), "denominator is not positive"),
        (lambda body: _first_split(body).pop("date"), "date is missing"),
        (lambda body: body["chart"]["result"][0]["meta"].update(exchangeTimezoneName="?", gmtoffset=1e9), "gmtoffset"),
    ],
)
def test_an_error_about_a_changed_response_names_the_field(
    ask: Any, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    with pytest.raises(SourceError, match=field):
        fetched(ask, SHARE, AsOf.day("2024-06-01"), [edited(change)])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda chart: chart["timestamp"].__setitem__(0, 1e300), "timestamp[0] is not a time"),
        (
            lambda chart: chart["indicators"]["quote"][0]["close"].__setitem__(0, "dear"),
            "close[0] is not a finite number",
        ),
    ],
)
def test_one_unreadable_row_is_left_out_and_noted(
    ask: Any, edited: Callable[..., ServerFault], change: Callable[[Any], None], problem: str
) -> None:
    fault = edited(lambda body: change(body["chart"]["result"][0]))
    server = PracticeYahoo({"ACME": SHARE}).server
    whole, spoilt = (ask(server(), make, "ACME", AsOf.day("2024-12-01"), faults) for faults in ([], [fault]))
    assert spoilt.series.days.tolist() == whole.series.days.tolist()[1:]
    assert problem in spoilt.notes[0]


def _first_split(body: Any) -> dict[str, Any]:
    return next(iter(body["chart"]["result"][0]["events"]["splits"].values()))


def test_a_busy_server_is_retried_and_one_that_keeps_failing_raises(ask: Any) -> None:
    assert len(fetched(ask, SHARE, AsOf.day("2024-12-01"), [busy(), busy()])) == 5
    with pytest.raises(SourceError, match="500"):
        fetched(ask, SHARE, AsOf.day("2024-12-01"), [failing()] * 3)
