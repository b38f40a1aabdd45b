from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.questions import AsOf, instant

moments = st.integers(-631152000, 4102444800).map(lambda second: datetime.fromtimestamp(second, UTC))


@given(cutoff=moments, published=moments, earlier=st.timedeltas(timedelta(0), timedelta(days=900)))
def test_admits_is_monotone_in_time(cutoff: datetime, published: datetime, earlier: timedelta):
    as_of = AsOf(at=cutoff)
    if as_of.admits(published):
        assert as_of.admits(published - earlier)
        assert AsOf(at=cutoff + earlier).admits(published)


@given(cutoff=moments, day=st.dates(date(1950, 1, 1), date(2100, 1, 1)))
def test_a_day_is_admitted_only_when_its_last_moment_is(cutoff: datetime, day: date):
    as_of = AsOf(at=cutoff)
    last = instant(day) + timedelta(days=1) - timedelta(microseconds=1)
    assert as_of.admits_day(day) == as_of.admits(last)


def test_backtest_refuses_what_has_no_date_and_live_does_not():
    assert not AsOf.day("2025-10-26").admits(None)
    assert AsOf.day("2025-10-26", "live").admits(None)


@pytest.mark.parametrize("bad", ["2025-10-26T12:00:00", "2025-10-26 12:00", "26.10.2025", "2025-13-01", "soon", ""])
def test_moments_without_zone_or_sense_are_refused(bad: str):
    with pytest.raises(ValueError):
        instant(bad)


def test_zones_are_converted():
    assert instant("2025-10-26T00:30:00+02:00") == instant("2025-10-25T22:30:00Z")
