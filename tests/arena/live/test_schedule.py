from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.arena import Schedule, slot
from foretell.arena.select import CLOSED_FIRST, NEXT_FIRST, WAITED, next_moment, question_date

T = datetime(2026, 11, 1, tzinfo=UTC)
HOURS = st.floats(min_value=0.1, max_value=2000, allow_nan=False)


@given(HOURS, HOURS)
@settings(deadline=None, max_examples=100)
def test_moments_halve_the_time_left_and_keep_the_gap(whole: float, gap: float):
    closes, at, moments = T + timedelta(hours=whole), T, [T]
    while (following := next_moment(at, closes, timedelta(hours=gap))) is not None:
        moments.append(at := following)
    for k, moment in enumerate(moments):
        assert abs(moment - (closes - timedelta(hours=whole) / 2**k)) < timedelta(milliseconds=1)
    assert all(closes - moment >= timedelta(hours=gap) - timedelta(milliseconds=1) for moment in moments[1:])
    assert (closes - moments[-1]) / 2 < timedelta(hours=gap)


def test_what_ends_the_time_to_answer():
    schedule = Schedule(minimum_gap_hours=6)
    closes = T + timedelta(hours=48)
    assert schedule.deadline(0, T, closes) == (T + timedelta(hours=24), NEXT_FIRST)
    last = T + timedelta(hours=40)
    assert schedule.deadline(3, last, closes) == (closes, CLOSED_FIRST)
    patient = Schedule(minimum_gap_hours=6, patience_hours=2)
    assert patient.deadline(0, T, closes) == (T + timedelta(hours=2), WAITED)


def test_most_moments():
    schedule = Schedule(minimum_gap_hours=1, most=2)
    closes = T + timedelta(days=10)
    assert schedule.following(0, T, closes) is not None
    assert schedule.following(1, T, closes) is None
    assert schedule.deadline(1, T, closes) == (closes, CLOSED_FIRST)


@pytest.mark.parametrize("wrong", [{"minimum_gap_hours": 0}, {"most": 0}, {"patience_hours": 0}])
def test_a_schedule_that_cannot_be(wrong: dict[str, float]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Schedule(**wrong)  # pyright: ignore


def test_midnight_is_a_moment_and_not_a_day():
    assert question_date(T) == T + timedelta(microseconds=1)
    assert question_date(T + timedelta(hours=3)) == T + timedelta(hours=3)


def test_slots_of_a_day_begin_at_midnight():
    assert slot(T + timedelta(hours=23.9), 24) == T
    assert slot(T + timedelta(hours=7.5), 1) == T + timedelta(hours=7)
