from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.questions.as_of import AsOf, instant

datetimes = st.integers(-631152000, 4102444800).map(lambda second: datetime.fromtimestamp(second, UTC))


@given(cutoff=datetimes, published=datetimes, earlier=st.timedeltas(timedelta(0), timedelta(days=900)))
def test_admits_is_monotone_in_time(cutoff: datetime, published: datetime, earlier: timedelta):
    as_of = AsOf(at=cutoff)
    if as_of.admits(published):
        assert as_of.admits(published - earlier)
        assert AsOf(at=cutoff + earlier).admits(published)


@given(cutoff=datetimes, day=st.dates(date(1950, 1, 1), date(2100, 1, 1)))
def test_day_is_admitted_only_when_it_is_over(cutoff: datetime, day: date):
    as_of = AsOf(at=cutoff)
    last = instant(day) + timedelta(days=1) - timedelta(microseconds=1)
    assert as_of.admits_day(day) == as_of.admits(last)


@pytest.mark.parametrize(
    ("cutoff", "admitted"),
    [
        ("2025-10-25T23:59:59.999999Z", False),
        ("2025-10-26T00:00:00Z", False),
        ("2025-10-26T12:00:00Z", False),
        ("2025-10-26T23:59:59.999998Z", False),
        ("2025-10-26T23:59:59.999999Z", True),
        ("2025-10-27T00:00:00Z", True),
    ],
)
def test_day_is_admitted_from_its_last_moment_on(cutoff: str, admitted: bool):
    assert AsOf(at=instant(cutoff)).admits_day(date(2025, 10, 26)) is admitted
    assert AsOf(at=instant(cutoff)).admits(instant("2025-10-26T23:59:59.999999Z")) is admitted


def test_backtest_rejects_undated_material_and_live_does_not():
    assert not AsOf.day("2025-10-26").admits(None)
    assert AsOf.day("2025-10-26", "live").admits(None)


@pytest.mark.parametrize("bad", ["2025-10-26T12:00:00", "2025-10-26 12:00", "26.10.2025", "2025-13-01", "soon", ""])
def test_invalid_times_and_times_without_zone_are_rejected(bad: str):
    with pytest.raises(ValueError):
        instant(bad)


def test_time_zones_are_converted_to_utc():
    assert instant("2025-10-26T00:30:00+02:00") == instant("2025-10-25T22:30:00Z")
