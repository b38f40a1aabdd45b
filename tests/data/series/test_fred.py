"""FRED by vintages: values as known at the cutoff, not as known now."""

import traceback
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import ServerFault, busy, failing, garbled
from fakes.markets import FakeFred
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.payload import MalformedPayload
from foretell.data.series.fred import FredSeries, last_vintage
from foretell.data.series.series import FetchedSeries, SeriesUnavailable
from foretell.data.service import ServiceConfig
from foretell.practice.series import SampleFredSeries, SampleFredValue
from foretell.questions.as_of import AsOf

KEY = "canary-key-0123456789abcdef"
TODAY = date(2026, 11, 1)
AUGUST, SEPTEMBER = date(2023, 8, 1), date(2023, 9, 1)
UNRATE = SampleFredSeries(
    observations=(
        SampleFredValue(day=date(2023, 7, 1), value=3.5, since=date(2023, 8, 4)),
        SampleFredValue(day=AUGUST, value=3.8, since=date(2023, 9, 1), until=date(2024, 1, 5)),
        SampleFredValue(day=AUGUST, value=3.7, since=date(2024, 1, 5)),
        SampleFredValue(day=SEPTEMBER, value=None, since=date(2023, 10, 6)),
    )
)
DAILY = SampleFredSeries(
    observations=tuple(
        SampleFredValue(
            day=date(2025, 1, 1) + timedelta(days=i), value=float(i), since=date(2025, 1, 2) + timedelta(days=i)
        )
        for i in range(40)
    )
)
SP500 = SampleFredSeries(observations=DAILY.observations, archived_since=None)


def make(**options: Any) -> Callable[[AsyncHttpClient, str], FredSeries]:
    given_key = options.pop("key", KEY)
    return lambda http, url: FredSeries(ServiceConfig(http=http, key=given_key, address=f"{url}/fred"), **options)


def fake(**options: Any) -> FakeFred:
    return FakeFred({"UNRATE": UNRATE, "DAILY": DAILY, "SP500": SP500}, key=KEY, today=TODAY, **options)


def shown(fetched: FetchedSeries) -> dict[str, float]:
    return dict(zip(fetched.series.days.astype(str).tolist(), fetched.series.values.tolist(), strict=True))


def test_a_backtest_sees_the_figure_of_its_vintage_before_and_after_a_correction(ask: Any) -> None:
    before = ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"))
    after = ask(fake().server(), make(), "UNRATE", AsOf.day("2024-02-01"))
    assert shown(before) == {"2023-07-01": 3.5, "2023-08-01": 3.8}
    assert shown(after) == {"2023-07-01": 3.5, "2023-08-01": 3.7}
    assert (before.vintage, before.revised) == (date(2023, 9, 30), False)


def test_a_backtest_requests_one_vintage_and_no_later_day(ask: Any) -> None:
    ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"))
    (request,) = ask.server.requests
    assert request.path == "/fred/series/observations"
    assert {request.query[name] for name in ("realtime_start", "realtime_end", "observation_end")} == {"2023-09-30"}
    assert (request.query["file_type"], request.query["series_id"]) == ("json", "UNRATE")


@pytest.mark.parametrize(
    ("at", "vintage"), [("2025-03-10T23:59:59Z", "2025-03-09"), ("2025-03-10T03:00:00Z", "2025-03-08")]
)
def test_vintage_days_end_in_us_central_time(at: str, vintage: str) -> None:
    assert last_vintage(AsOf(at=at)).isoformat() == vintage


def test_a_release_on_the_day_of_the_cutoff_is_unknown(ask: Any) -> None:
    assert list(shown(ask(fake().server(), make(), "UNRATE", AsOf.day("2023-09-01")))) == ["2023-07-01"]


def test_without_vintages_a_backtest_is_refused(ask: Any) -> None:
    with pytest.raises(SeriesUnavailable, match=r"no vintage of SP500.*allow_revised=True"):
        ask(fake().server(), make(), "SP500", AsOf.day("2025-01-20"))


def test_revised_figures_are_read_only_on_request_and_marked(ask: Any) -> None:
    fetched = ask(fake().server(), make(allow_revised=True), "SP500", AsOf.day("2025-01-20"))
    assert (fetched.vintage, fetched.revised) == (None, True)
    assert list(shown(fetched))[-1] == "2025-01-19"


def test_a_misspelt_id_is_distinguished_from_a_missing_vintage(ask: Any) -> None:
    for source in (make(), make(allow_revised=True)):
        with pytest.raises(SeriesUnavailable, match="no series 'UNRTE'"):
            ask(fake().server(), source, "UNRTE", AsOf.day("2025-01-20"))


def test_live_reads_the_current_figures(ask: Any) -> None:
    fetched = ask(fake().server(), make(), "UNRATE", AsOf.day(TODAY, mode="live"))
    assert shown(fetched)["2023-08-01"] == 3.7
    assert (fetched.vintage, fetched.revised) == (None, False)
    assert "realtime_start" not in ask.server.requests[0].query


def test_a_long_series_is_read_in_pages(ask: Any) -> None:
    fetched = ask(fake(page=7).server(), make(), "DAILY", AsOf.day("2025-03-01"))
    assert shown(fetched) == {(date(2025, 1, 1) + timedelta(days=i)).isoformat(): float(i) for i in range(40)}
    assert len(ask.server.requests) == 6


def test_a_response_with_another_vintage_raises(ask: Any) -> None:
    with pytest.raises(MalformedPayload, match=r"field realtime_start is not the vintage asked for \(2023-09-30\)"):
        ask(fake(careless=True).server(), make(), "UNRATE", AsOf.day("2023-10-01"))


@settings(max_examples=25)
@given(offset=st.integers(-3, 60), hour=st.integers(0, 23), revised=st.booleans())
def test_no_value_after_the_cutoff_is_returned(ask: Any, offset: int, hour: int, revised: bool) -> None:
    at = AsOf.day(date(2025, 1, 1) + timedelta(days=offset)).at.replace(hour=hour)
    cutoff, server = AsOf(at=at), fake(careless=revised)
    try:
        series = ask(server.server(), make(allow_revised=revised), "SP500" if revised else "DAILY", cutoff).series
    except SeriesUnavailable:
        return
    assert all(cutoff.admits_day(day) for day in series.days.tolist())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.pop("observations"), "observations is missing"),
        (lambda body: body.pop("count"), "count is missing"),
        (lambda body: body.pop("realtime_end"), "realtime_end is missing"),
    ],
)
def test_an_error_about_a_changed_response_names_the_field(
    ask: Any, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    with pytest.raises(SourceError, match=f"field {field}"):
        ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"), [edited(change)])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda row: row.pop("value"), "observations[0].value is missing"),
        (lambda row: row.update(value="many"), "observations[0].value is not a finite number"),
        (lambda row: row.update(date="soon"), "observations[0].date is not a date"),
        (lambda row: row.update(realtime_end="soon"), "observations[0].realtime_end is not a date"),
    ],
)
def test_one_unreadable_row_is_left_out_and_noted(
    ask: Any, edited: Callable[..., ServerFault], change: Callable[[Any], None], problem: str
) -> None:
    fault = edited(lambda body: change(body["observations"][0]))
    whole, spoilt = (ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"), faults) for faults in ([], [fault]))
    assert spoilt.series.days.tolist() == whole.series.days.tolist()[1:]
    assert problem in spoilt.notes[0]
    assert whole.notes == ()


def test_unknown_fields_are_ignored(ask: Any, edited: Callable[..., ServerFault]) -> None:
    news = edited(lambda body: (body.update(news=1), body["observations"][0].update(extra={"a": 1})))
    assert shown(ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"), [news]))["2023-08-01"] == 3.8


def test_a_truncated_response_raises(ask: Any) -> None:
    with pytest.raises(MalformedPayload, match="not JSON"):
        ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"), [garbled()])


def test_a_busy_server_is_retried(ask: Any) -> None:
    fetched = ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"), [busy(), failing(503)])
    assert shown(fetched)["2023-08-01"] == 3.8


def test_the_key_appears_in_no_error_or_repr(ask: Any) -> None:
    wrong = "canary-wrong-key"
    with pytest.raises(SourceError) as refused:
        ask(fake().server(), make(key=wrong), "UNRATE", AsOf.day("2023-10-01"))
    assert wrong not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(SourceError) as down:
        ask(fake().server(), make(), "UNRATE", AsOf.day("2023-10-01"), [failing(500)] * 3)
    assert KEY not in "".join(traceback.format_exception(down.value))
    assert KEY not in repr(vars(FredSeries(ServiceConfig(http=AsyncHttpClient(), key=KEY)))["_service"])
