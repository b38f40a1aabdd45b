from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.base_rates.wording import deadline, masked, mentions

DUE = date(2025, 11, 9)


def read(text: str, due: date = DUE) -> tuple[str, str] | None:
    mention = deadline(mentions(text, due), due)
    return None if mention is None else (mention.timing, mention.deadline.isoformat())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Will Apollo land by June 30, 2026?", ("by", "2026-06-30")),
        ("Will Apollo land by 30 June 2026?", ("by", "2026-06-30")),
        ("Will Apollo land before 1 July 2026?", ("by", "2026-06-30")),
        ("Will Apollo land before 2030?", ("by", "2029-12-31")),
        ("Will Apollo land by 2030?", ("by", "2029-12-31")),
        ("Will Apollo land by the end of 2030?", ("by", "2030-12-31")),
        ("Will Apollo land before the end of 2030?", ("by", "2030-12-31")),
        ("Apollo lands by EOY2026?", ("by", "2026-12-31")),
        ("Apollo lands in 2026?", ("by", "2026-12-31")),
        ("Apollo lands before July?", ("by", "2026-06-30")),
        ("Apollo lands in December?", ("by", "2025-12-31")),
        ("Apollo lands by November 5?", ("by", "2026-11-05")),
        ("Apollo lands by Q3 2026?", ("by", "2026-09-30")),
        ("Will Apollo land in the next 12 months?", ("by", "2026-11-09")),
        ("Will Apollo land in the next six weeks?", ("by", "2025-12-21")),
        ("Will Apollo land within 30 days?", ("by", "2025-12-09")),
        ("Will Apollo land this year?", ("by", "2025-12-31")),
        ("Will Apollo land by the end of the decade?", ("by", "2029-12-31")),
        ("Will Apollo land between 1 December 2025 and 31 March 2026?", ("by", "2026-03-31")),
        ("Will Apollo lead on December 31?", ("at", "2025-12-31")),
        ("Will Apollo lead at the end of 2026?", ("at", "2026-12-31")),
        ("Will Apollo win the 2026 World Cup?", ("none", "2026-12-31")),
        ("Will Apollo win the 2025–26 league?", ("none", "2026-06-30")),
        ("¿Aterrizará Apolo antes de 2027?", ("by", "2026-12-31")),
        ("Will the 2026 champion retire before 2031?", ("by", "2030-12-31")),
        ("Did Apollo land in 2024?", None),
        ("Will Apollo reach $2,030 or 2030.5 points?", None),
        ("Will she march on, may he rest?", None),
        ("Will it happen on 31 February?", None),
        ("", None),
    ],
)
def test_deadlines_in_common_notations_are_parsed(text: str, expected: tuple[str, str] | None) -> None:
    assert read(text) == expected


def test_texts_that_differ_only_in_dates_are_equal_when_masked() -> None:
    texts = ["Rain by June 30?", "Rain by 4 July 2031?", "Rain by 2040?", "Rain by Q2 2027?"]
    assert {masked(t, mentions(t, DUE)) for t in texts} == {"Rain by ‹date›?"}


@given(text=st.text(max_size=80), due=st.dates(date(1990, 1, 1), date(2200, 1, 1)))
@settings(max_examples=80)
def test_any_text_can_be_parsed(text: str, due: date) -> None:
    dates = mentions(text, due)
    assert all(a.end <= b.begin for a, b in pairwise(dates))
    last = deadline(dates, due)
    assert last is None or last.deadline >= due
    masked(text, dates)


@given(day=st.dates(date(2026, 1, 1), date(2099, 12, 31)))
@settings(max_examples=40)
def test_days_in_any_notation_are_parsed_exactly(day: date) -> None:
    for text in (f"{day:%B} {day.day}, {day.year}", f"{day.day} {day:%b} {day.year}", day.isoformat()):
        assert read(f"Rain by {text}?") == ("by", day.isoformat())
        assert read(f"Rain before {text}?") == ("by", (day - timedelta(days=1)).isoformat())
