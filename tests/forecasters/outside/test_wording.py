from datetime import date

import numpy as np
import pytest

from foretell.forecasters.base_rates.text_features import BUCKETS, bucket_of, buckets, grams, mark, marks, shape, tokens
from foretell.forecasters.base_rates.wording import read

DUE = date(2026, 1, 2)


@pytest.mark.parametrize(
    ("text", "course"),
    [
        ("Will Ada resign by 30 June 2026?", "by"),
        ("Will Ada remain in office until 30 June 2026?", "still"),
        ("Will Ada still be champion by the end of 2026?", "still"),
        ("Will there be no eclipse before July 2026?", "still"),
        ("Will Ada lead on 30 June 2026?", "at"),
        ("Will Ada win?", "none"),
    ],
)
def test_course_of_a_question_follows_from_its_wording(text: str, course: str) -> None:
    assert read(text, DUE).course == course


def test_significant_phrases_are_recognised() -> None:
    assert {"threshold", "money", "number", "will", "before"} <= read("Will gold reach $4,000 before 2027?", DUE).turns
    assert "number" not in read("Will gold rise before 2027?", DUE).turns
    assert "win" in read("Will Ada win the cup?", DUE).turns


def test_names_are_left_out_of_the_shape() -> None:
    assert shape("Will Ada Lovelace of London win?") == "will ‹name› win?"
    assert tokens("It's 1,000 €") == ["it's", "0", "€"]


def test_buckets_do_not_change_between_versions() -> None:
    # CRC-32 of the words. These numbers must never change, because the shipped weights depend on them.
    gram_marks = np.array([mark(0, "will"), mark(1, "will"), mark(0, "‹date› $")])
    assert bucket_of(gram_marks).tolist() == [7758, 7758 + BUCKETS, 3353]
    assert marks("Will it rain?").tolist() == sorted({mark(*gram) for gram in grams("Will it rain?")})
    assert buckets("").tolist() == sorted(bucket_of(np.array([mark(0, "^ $"), mark(1, "^ $")])).tolist())
