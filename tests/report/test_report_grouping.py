import numpy as np
import pytest

from foretell.scoring.breakdown import UNKNOWN, group_labels
from foretell.scoring.table import Labels


def column(values: list[str]) -> Labels:
    names = tuple(dict.fromkeys(values))
    return Labels(codes=np.array([names.index(v) for v in values], np.int64), names=names)


def test_numbers_are_ordered_as_numbers_with_their_signs() -> None:
    grouping = group_labels("horizon", column(["365", "≥7", "≤7", ">3650", "8–30", "7", "<365"]))
    assert grouping.names == ("≤7", "7", "≥7", "8–30", "<365", "365", ">3650")
    assert grouping.ordered


def test_many_numbers_become_fifths() -> None:
    grouping = group_labels("volume", column([str(i) for i in range(100)]))
    assert len(grouping.names) == 5
    assert np.bincount(grouping.codes).tolist() == pytest.approx([20] * 5, abs=1)
    # A fifth of 0 to 30,000 is 6,000.
    in_thousands = group_labels("volume", column([str(500 * i) for i in range(61)]))
    assert in_thousands.names == ("0–6k", "6k–12k", "12k–18k", "18k–24k", "24k–30k")


def test_missing_numbers_are_a_separate_group() -> None:
    grouping = group_labels("volume", column([str(i) for i in range(50)] + [""]))
    assert grouping.names[-1] == UNKNOWN
    assert grouping.codes[-1] == len(grouping.names) - 1


def test_many_days_become_months_then_years() -> None:
    days = [f"2025-{m:02d}-{d:02d}" for m in range(1, 7) for d in range(1, 11)]
    assert group_labels("due", column(days)).names == tuple(f"2025-{m:02d}" for m in range(1, 7))
    months = [f"{y}-{m:02d}-01" for y in range(2019, 2026) for m in range(1, 13)]
    assert group_labels("due", column(months)).names == tuple(str(y) for y in range(2019, 2026))


def test_small_categories_are_pooled_last() -> None:
    values = [c for i, c in enumerate("abcdefghijklmnop") for _ in range(20 - i)]
    grouping = group_labels("category", column(values))
    assert len(grouping.names) == 12
    assert grouping.names[0] == "a"
    assert grouping.names[-1] == "other"
    assert not grouping.ordered


def test_empty_label_is_called_none() -> None:
    grouping = group_labels("source", column(["x", "", "x"]))
    assert grouping.names == ("x", UNKNOWN)
    assert grouping.codes.tolist() == [0, 1, 0]


def test_groups_partition_the_rows() -> None:
    rng = np.random.default_rng(1)
    grouping = group_labels("s", column([str(v) for v in rng.integers(0, 40, 300)]))
    assert np.bincount(grouping.codes, minlength=len(grouping.names)).sum() == 300
    assert grouping.codes.max() < len(grouping.names)


def test_equal_numbers_give_one_group() -> None:
    assert group_labels("volume", column(["3"] * 5)).names == ("3",)
