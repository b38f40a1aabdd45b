"""Ids of targets that name thresholds of a number or a date."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from foretell.questions.question import NumericRange, Question, Target
from foretell.questions.thresholds import NUMERIC, read_thresholds, thresholds_of


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


def test_only_a_question_about_a_number_has_thresholds():
    targets = (Target(id=">3"), Target(id=">5"))
    question = Question(id="q", source="own", text="How many?", due="2027-01-01", targets=targets)
    assert thresholds_of(question) is None
    assert set(thresholds_of(replace(question, subtype=NUMERIC)) or ()) == {">3", ">5"}
    scale = NumericRange(minimum=0, maximum=10)
    assert set(thresholds_of(replace(question, range=scale)) or ()) == {">3", ">5"}
