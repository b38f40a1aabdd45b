"""Ids of targets that name thresholds of a number or a date."""

from datetime import UTC, datetime

import pytest

from foretell.questions.thresholds import read_thresholds


def test_ids_name_the_side_and_the_value():
    read = read_thresholds([">3.5", "<= -100", ">2e-5", "<2027-01-31", ">=2027-01-31T12:00:00+02:00"])
    assert read is not None
    day = datetime(2027, 1, 31, tzinfo=UTC).timestamp()
    assert [(threshold.side, threshold.value) for threshold in read.values()] == [
        ("above", 3.5),
        ("below", -100.0),
        ("above", 0.00002),
        ("below", day),
        ("above", day + 10 * 3600),
    ]


@pytest.mark.parametrize("id", ["yes", ">", "3.5", ">3.5 %", ">2027-02-30", ">2027-01-31 at noon"])
def test_one_id_that_names_none_is_enough_for_no_thresholds(id: str):
    assert read_thresholds([">1", id]) is None
