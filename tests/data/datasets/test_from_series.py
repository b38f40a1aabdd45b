"""Questions made out of series."""

from datetime import date
from typing import Any

import numpy as np
import pytest

from foretell.data.datasets import demo
from foretell.data.series import Series
from foretell.questions import SeriesRef

DAY = date(2020, 1, 2)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "LEAST_HISTORY", 2)


def asked(values: list[float], dues: list[date], horizons: tuple[int, ...], step: int = 1) -> Any:
    days = np.arange(len(values)) * step + np.datetime64("2020-01-01")
    series = Series(id="x", days=days.astype("M8[D]"), values=np.array(values, dtype=float))
    return demo.questions_from(series, SeriesRef(provider="p", id="x"), "the value", dues, horizons)


def test_outcomes_follow_from_the_series_and_a_tie_is_no():
    found = asked([1, 2, 2, 1, 5], [DAY], (1, 2, 3))
    assert [r.outcome for r in found.resolutions] == [0, 0, 1]
    assert [t.id for t in found.questions[0].targets] == ["2020-01-03", "2020-01-04", "2020-01-05"]


def test_what_cannot_be_resolved_is_left_out_and_counted():
    found = asked([1, 2, 3], [DAY], (1, 30))
    assert (len(found.questions[0].targets), found.notes) == (1, ("1 targets beyond the end of the series",))
    early = asked([1, 2, 3], [date(2020, 1, 1)], (1,))
    assert (early.questions, early.notes) == ((), ("1 due dates with too little history",))
    # Nothing could have changed within less than the spacing of the observations.
    sparse = asked([1, 2, 3, 4, 5, 6], [date(2020, 3, 1)], (7, 30, 60), step=30)
    assert [t.id for t in sparse.questions[0].targets] == ["2020-03-31", "2020-04-30"]


def test_rounds_differ_in_their_cluster():
    found = asked(list(range(20)), [date(2020, 1, 3), date(2020, 1, 6)], (1,))
    assert [question.cluster for question in found.questions] == ["2020-01-03", "2020-01-06"]
