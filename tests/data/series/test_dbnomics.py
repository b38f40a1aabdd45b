"""DBnomics with a publication lag instead of vintages."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import ServerFault, failing
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.series.dbnomics import LAGS, DbnomicsSeries
from foretell.data.series.series import SeriesUnavailable
from foretell.data.service import ServiceConfig
from foretell.practice.series import PracticeDbnomics, SampleDbnomicsSeries
from foretell.questions.as_of import AsOf

ABBEVILLE = "meteofrance/TEMPERATURE/celsius.07005.D"
DAILY = SampleDbnomicsSeries(
    values=tuple((date(2026, 1, 1) + timedelta(days=i), None if i == 3 else i / 4) for i in range(30))
)
MONTHLY = SampleDbnomicsSeries(values=tuple((date(2025, m, 1), float(m)) for m in range(1, 13)), frequency="monthly")


def fetched(
    ask: Any,
    as_of: AsOf,
    *,
    periods: SampleDbnomicsSeries = DAILY,
    lag_days: int | None = None,
    faults: list[ServerFault] | None = None,
    series_id: str = ABBEVILLE,
) -> Any:
    def make(http: AsyncHttpClient, url: str) -> DbnomicsSeries:
        return DbnomicsSeries(ServiceConfig(http=http, address=f"{url}/v22"), lag_days=lag_days)

    return ask(PracticeDbnomics({ABBEVILLE: periods}).server(), make, series_id, as_of, faults)


def last_day(result: Any) -> str:
    return str(result.series.days[-1])


def test_a_series_has_days_values_and_provenance_and_skips_gaps(ask: Any) -> None:
    result = fetched(ask, AsOf.day("2026-01-06"))
    assert result.series.days.astype(str).tolist() == ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-05"]
    assert result.series.values.tolist() == [0.0, 0.25, 0.5, 1.0]
    assert (result.vintage, result.revised) == (None, True)
    (request,) = ask.server.requests
    assert (request.path, request.query["observations"]) == (f"/v22/series/{ABBEVILLE}", "1")


@pytest.mark.parametrize(
    ("lag", "last"), [(None, "2026-01-09"), (0, "2026-01-10"), (1, "2026-01-09"), (5, "2026-01-05")]
)
def test_a_value_is_known_some_days_after_its_period(ask: Any, lag: int | None, last: str) -> None:
    assert last_day(fetched(ask, AsOf.day("2026-01-10"), lag_days=lag)) == last


def test_a_month_is_known_after_its_end_and_not_at_its_beginning(ask: Any) -> None:
    assert LAGS["monthly"] == 45
    assert last_day(fetched(ask, AsOf.day("2025-06-13"), periods=MONTHLY)) == "2025-03-01"
    assert last_day(fetched(ask, AsOf.day("2025-06-14"), periods=MONTHLY)) == "2025-04-01"
    assert last_day(fetched(ask, AsOf.day("2025-06-30"), periods=MONTHLY, lag_days=0)) == "2025-06-01"


def test_an_unknown_frequency_gets_the_longest_lag(ask: Any) -> None:
    for frequency in (None, "now and then"):
        periods = SampleDbnomicsSeries(values=MONTHLY.values, frequency=frequency)
        with pytest.raises(SeriesUnavailable, match="nothing of"):
            fetched(ask, AsOf.day("2026-06-01"), periods=periods)
        assert last_day(fetched(ask, AsOf.day("2026-07-01"), periods=periods)) == "2025-01-01"


def test_live_returns_all_values(ask: Any) -> None:
    result = fetched(ask, AsOf.day("2026-01-10", mode="live"))
    assert (last_day(result), result.revised) == ("2026-01-10", False)


def test_an_unknown_series_is_unavailable(ask: Any, edited: Callable[..., ServerFault]) -> None:
    with pytest.raises(SeriesUnavailable, match="no series 'a/b/c'"):
        fetched(ask, AsOf.day("2026-01-10"), series_id="a/b/c")
    with pytest.raises(SeriesUnavailable, match="no series"):
        fetched(ask, AsOf.day("2026-01-10"), faults=[edited(lambda body: body["series"].update(docs=[]))])


def test_a_negative_lag_is_refused() -> None:
    with pytest.raises(ValueError, match="lag_days"):
        DbnomicsSeries(ServiceConfig(http=AsyncHttpClient()), lag_days=-1)


@settings(max_examples=20)
@given(
    day=st.dates(date(2025, 12, 1), date(2026, 3, 1)),
    hour=st.integers(0, 23),
    lag=st.one_of(st.none(), st.integers(0, 9)),
    frequency=st.sampled_from([*LAGS, None]),
)
def test_no_value_after_the_cutoff_is_returned(
    ask: Any, day: date, hour: int, lag: int | None, frequency: str | None
) -> None:
    cutoff = AsOf(at=AsOf.day(day).at.replace(hour=hour))
    periods = SampleDbnomicsSeries(values=DAILY.values, frequency=frequency)
    try:
        series = fetched(ask, cutoff, periods=periods, lag_days=lag).series
    except SeriesUnavailable:
        return
    wait = timedelta(days=LAGS["daily"] if lag is None else lag)
    assert all(cutoff.admits_day(day + wait) for day in series.days.tolist())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.pop("series"), "series is missing"),
        (lambda body: body["series"].pop("docs"), r"series\.docs is missing"),
        (lambda body: body["series"]["docs"][0].pop("period_start_day"), "period_start_day is missing"),
        (lambda body: body["series"]["docs"][0].pop("value"), r"docs\[0\]\.value is missing"),
        (lambda body: body["series"]["docs"][0]["value"].pop(), "value is not as long as period_start_day"),
    ],
)
def test_an_error_about_a_changed_response_names_the_field(
    ask: Any, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    with pytest.raises(SourceError, match=field):
        fetched(ask, AsOf.day("2026-01-10"), faults=[edited(change)])


@pytest.mark.parametrize(
    ("column", "rubbish", "problem"),
    [("value", "warm", "value[0] is not a finite number"), ("period_start_day", "2026", "start_day[0] is not a date")],
)
def test_one_unreadable_row_is_left_out_and_noted(
    ask: Any, edited: Callable[..., ServerFault], column: str, rubbish: str, problem: str
) -> None:
    fault = edited(lambda body: body["series"]["docs"][0][column].__setitem__(0, rubbish))
    whole, spoilt = (fetched(ask, AsOf.day("2026-01-10"), faults=faults) for faults in ([], [fault]))
    assert (len(spoilt.series), spoilt.series.days.tolist()) == (len(whole.series) - 1, whole.series.days.tolist()[1:])
    assert problem in spoilt.notes[0]


def test_a_server_that_keeps_failing_raises_source_error(ask: Any) -> None:
    with pytest.raises(SourceError, match="502"):
        fetched(ask, AsOf.day("2026-01-10"), faults=[failing(502)] * 3)
