from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.doubles import CUTOFF, at, series

from foretell.data.markets import PricePoint
from foretell.questions import AsOf
from foretell.tools import clamp_prices, clamp_series, clamp_text, has_rows


def test_a_series_is_cut_and_the_rest_counted() -> None:
    known, late = clamp_series(series({"2025-10-25": 1.0, "2025-10-26": 2.0, "2025-10-27": 3.0}), CUTOFF)
    assert list(known.values) == [1.0, 2.0]
    assert late == 1


def test_a_day_that_is_not_over_is_late() -> None:
    noon = AsOf(at=at("2025-10-26T12:00:00Z"))
    assert clamp_series(series({"2025-10-25": 1.0, "2025-10-26": 2.0}), noon)[1] == 1
    assert clamp_text("2025-10-26, 2.0", noon)[0] == ""
    assert clamp_text("2025-10-26T11:59Z, 2.0", noon)[0] != ""


@given(st.lists(st.integers(-500, 500), max_size=20))
@settings(max_examples=60, deadline=None)
def test_no_price_after_the_cutoff_survives_and_none_before_is_lost(hours: list[int]) -> None:
    points = [PricePoint(at=CUTOFF.at + timedelta(hours=h), p=0.5) for h in hours]
    known, late = clamp_prices(points, CUTOFF)
    assert all(point.at <= CUTOFF.at for point in known)
    assert (len(known), late) == (sum(h <= 0 for h in hours), sum(h > 0 for h in hours))


def test_a_price_without_zone_is_dropped() -> None:
    naive = PricePoint(at=datetime(2025, 10, 1), p=0.5)  # noqa: DTZ001
    assert clamp_prices([naive], CUTOFF) == ([], 1)


def test_rows_of_impossible_dates_are_dropped() -> None:
    assert clamp_text("2025-13-45, 7", CUTOFF) == ("", ["2025-13-45, 7"])


def test_ordinary_lines_stay() -> None:
    above = "last value on or before 2025-10-26: 4.1\nmodel estimate of yes for 2025-11-02: 0.4"
    text = f"{above}\nday, value\n2025-10-26, 4.1"
    assert clamp_text(text, CUTOFF) == (text, [])
    assert has_rows(text)
    assert not has_rows("day, value")
