"""Dates as search engines write them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.data.dates import parse_stated_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-03", datetime(2026, 3, 3, tzinfo=UTC)),
        ("2026-03-03T10:00:00.000Z", datetime(2026, 3, 3, 10, tzinfo=UTC)),
        ("2026-03-03T10:00:00+02:00", datetime(2026, 3, 3, 8, tzinfo=UTC)),
        ("Mar 3, 2026", datetime(2026, 3, 3, tzinfo=UTC)),
        ("March 3, 2026", datetime(2026, 3, 3, tzinfo=UTC)),
        ("3 Mar 2026", datetime(2026, 3, 3, tzinfo=UTC)),
        ("Tue, 03 Mar 2026 07:00:00 GMT", datetime(2026, 3, 3, 7, tzinfo=UTC)),
    ],
)
def test_stated_dates_are_parsed(text: str, expected: datetime) -> None:
    assert parse_stated_date(text) == (expected, "published")


@pytest.mark.parametrize("text", ["2 days ago", "1 hour ago", "an hour ago", "3 months ago", "5 mins ago", "Yesterday"])
def test_relative_ages_give_no_date(text: str) -> None:
    assert parse_stated_date(text) == (None, "relative")


@pytest.mark.parametrize(
    "text", [None, "", "soon", "0001-01-01T00:00:00Z", "2026", "Feb 31, 2026", "Foo 3, 2026", "03/04/2026"]
)
def test_unknown_formats_give_no_date(text: str | None) -> None:
    assert parse_stated_date(text) == (None, "none")


@given(st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)))
@settings(max_examples=50)
def test_an_iso_time_is_parsed_exactly(time: datetime) -> None:
    assert parse_stated_date(time.isoformat()) == (time, "published")


@given(st.text())
@settings(max_examples=200)
def test_any_text_is_parsed_or_left_undated(text: str) -> None:
    parsed, dating = parse_stated_date(text)
    assert (parsed is None) == (dating != "published")
