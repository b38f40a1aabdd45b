from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.doubles import CUTOFF, at, series

from foretell.data.markets.market import PricePoint
from foretell.questions.as_of import AsOf
from foretell.tools.leakage_rules import clamp_prices, clamp_series, clamp_text, has_rows


def test_series_is_clamped_and_later_points_are_counted() -> None:
    known, late = clamp_series(series({"2025-10-25": 1.0, "2025-10-26": 2.0, "2025-10-27": 3.0}), CUTOFF)
    assert list(known.values) == [1.0, 2.0]
    assert late == 1


def test_day_that_is_not_over_is_after_the_cutoff() -> None:
    noon = AsOf(at=at("2025-10-26T12:00:00Z"))
    assert clamp_series(series({"2025-10-25": 1.0, "2025-10-26": 2.0}), noon)[1] == 1
    assert clamp_text("2025-10-26, 2.0", noon)[0] == ""
    assert clamp_text("2025-10-26T11:59Z, 2.0", noon)[0] != ""


@given(st.lists(st.integers(-500, 500), max_size=20))
@settings(max_examples=60)
def test_clamp_prices_removes_exactly_the_later_prices(hours: list[int]) -> None:
    points = [PricePoint(at=CUTOFF.at + timedelta(hours=h), p=0.5) for h in hours]
    known, late = clamp_prices(points, CUTOFF)
    assert all(point.at <= CUTOFF.at for point in known)
    assert (len(known), late) == (sum(h <= 0 for h in hours), sum(h > 0 for h in hours))


def test_price_without_time_zone_is_dropped() -> None:
    naive = PricePoint(at=datetime(2025, 10, 1), p=0.5)  # noqa: DTZ001
    assert clamp_prices([naive], CUTOFF) == ([], 1)


def test_rows_with_impossible_dates_are_dropped() -> None:
    assert clamp_text("2025-13-45, 7", CUTOFF) == ("", ["2025-13-45, 7"])


def test_clamp_text_keeps_ordinary_lines() -> None:
    above = "last value on or before 2025-10-26: 4.1\nmodel estimate of yes for 2025-11-02: 0.4"
    text = f"{above}\nday, value\n2025-10-26, 4.1"
    assert clamp_text(text, CUTOFF) == (text, [])
    assert has_rows(text)
    assert not has_rows("day, value")
