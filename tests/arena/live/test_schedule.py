from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.arena.select import CLOSED_FIRST, NEXT_FIRST, WAITED, Schedule, next_forecast_time, question_date, slot

T = datetime(2026, 11, 1, tzinfo=UTC)
HOURS = st.floats(min_value=0.1, max_value=2000, allow_nan=False)


@given(HOURS, HOURS)
@settings(max_examples=100)
def test_forecast_times_halve_the_time_left_and_keep_the_gap(whole: float, gap: float):
    closes, at, forecast_times = T + timedelta(hours=whole), T, [T]
    while (following := next_forecast_time(at, closes, timedelta(hours=gap))) is not None:
        forecast_times.append(at := following)
    for k, forecast_time in enumerate(forecast_times):
        assert abs(forecast_time - (closes - timedelta(hours=whole) / 2**k)) < timedelta(milliseconds=1)
    assert all(
        closes - forecast_time >= timedelta(hours=gap) - timedelta(milliseconds=1)
        for forecast_time in forecast_times[1:]
    )
    assert (closes - forecast_times[-1]) / 2 < timedelta(hours=gap)


def test_deadline_has_its_reason():
    schedule = Schedule(minimum_gap_hours=6)
    closes = T + timedelta(hours=48)
    assert schedule.deadline(0, T, closes) == (T + timedelta(hours=24), NEXT_FIRST)
    last = T + timedelta(hours=40)
    assert schedule.deadline(3, last, closes) == (closes, CLOSED_FIRST)
    patient = Schedule(minimum_gap_hours=6, patience_hours=2)
    assert patient.deadline(0, T, closes) == (T + timedelta(hours=2), WAITED)


def test_maximum_number_of_forecast_times():
    schedule = Schedule(minimum_gap_hours=1, most=2)
    closes = T + timedelta(days=10)
    assert schedule.following(0, T, closes) is not None
    assert schedule.following(1, T, closes) is None
    assert schedule.deadline(1, T, closes) == (closes, CLOSED_FIRST)


@pytest.mark.parametrize("wrong", [{"minimum_gap_hours": 0}, {"most": 0}, {"patience_hours": 0}])
def test_invalid_schedules_are_rejected(wrong: dict[str, float]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Schedule(**wrong)  # pyright: ignore


def test_midnight_is_a_time_and_not_a_whole_day():
    assert question_date(T) == T + timedelta(microseconds=1)
    assert question_date(T + timedelta(hours=3)) == T + timedelta(hours=3)


def test_slots_of_a_day_begin_at_midnight():
    assert slot(T + timedelta(hours=23.9), 24) == T
    assert slot(T + timedelta(hours=7.5), 1) == T + timedelta(hours=7)
