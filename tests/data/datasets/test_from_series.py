"""Questions built from series."""

from datetime import date
from typing import Any

import numpy as np
import pytest

from foretell.data.datasets import demo
from foretell.data.series.series import Series
from foretell.questions.question import SeriesRef

DAY = date(2020, 1, 2)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "LEAST_HISTORY", 2)


def build(values: list[float], dues: list[date], horizons: tuple[int, ...], step: int = 1) -> Any:
    days = np.arange(len(values)) * step + np.datetime64("2020-01-01")
    series = Series(id="x", days=days.astype("M8[D]"), values=np.array(values, dtype=float))
    return demo.questions_from(series, SeriesRef(provider="p", id="x"), "the value", dues, horizons)


def test_outcomes_follow_from_the_series_and_a_tie_is_no():
    question_set = build([1, 2, 2, 1, 5], [DAY], (1, 2, 3))
    assert [r.outcome for r in question_set.resolutions] == [0, 0, 1]
    assert [t.id for t in question_set.questions[0].targets] == ["2020-01-03", "2020-01-04", "2020-01-05"]


def test_targets_that_cannot_be_resolved_are_left_out_and_counted():
    question_set = build([1, 2, 3], [DAY], (1, 30))
    assert (len(question_set.questions[0].targets), question_set.notes) == (
        1,
        ("1 targets beyond the end of the series",),
    )
    early = build([1, 2, 3], [date(2020, 1, 1)], (1,))
    assert (early.questions, early.notes) == ((), ("1 due dates with too little history",))
    # Nothing could have changed within less than the spacing of the observations.
    sparse = build([1, 2, 3, 4, 5, 6], [date(2020, 3, 1)], (7, 30, 60), step=30)
    assert [t.id for t in sparse.questions[0].targets] == ["2020-03-31", "2020-04-30"]


def test_each_round_is_a_cluster():
    question_set = build(list(range(20)), [date(2020, 1, 3), date(2020, 1, 6)], (1,))
    assert [question.cluster for question in question_set.questions] == ["2020-01-03", "2020-01-06"]
