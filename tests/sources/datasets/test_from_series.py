from datetime import date

import numpy as np

from foretell.data.datasets.from_series import SeriesQuestionPlan, SeriesSubject, due_dates, questions_from
from foretell.data.series.series import Series
from foretell.questions.question import SeriesRef


def subject(values: list[float], step: int = 1) -> SeriesSubject:
    days = np.arange(len(values)) * step + np.datetime64("2020-01-01")
    series = Series(id="x", days=days.astype("M8[D]"), values=np.array(values))
    return SeriesSubject(series=series, ref=SeriesRef(provider="p", id="x"), title="the value", source="p")


def test_outcomes_follow_from_the_series_and_a_tie_is_no():
    found = questions_from(
        subject([1, 2, 2, 1, 5]), SeriesQuestionPlan(dues=(date(2020, 1, 2),), horizons=(1, 2, 3), least_history=1)
    )
    assert [r.outcome for r in found.resolutions] == [0, 0, 1]
    assert [t.id for t in found.questions[0].targets] == ["2020-01-03", "2020-01-04", "2020-01-05"]


def test_what_cannot_be_resolved_is_left_out_and_counted():
    found = questions_from(
        subject([1, 2, 3]), SeriesQuestionPlan(dues=(date(2020, 1, 2),), horizons=(1, 30), least_history=1)
    )
    assert len(found.questions[0].targets) == 1
    assert found.notes == ("1 targets beyond the end of the series",)
    early = questions_from(
        subject([1, 2, 3]), SeriesQuestionPlan(dues=(date(2020, 1, 1),), horizons=(1,), least_history=2)
    )
    assert early.questions == ()
    assert early.notes == ("1 due dates with too little history",)


def test_horizons_below_the_spacing_are_not_asked():
    found = questions_from(
        subject([1, 2, 3, 4, 5, 6], step=30),
        SeriesQuestionPlan(dues=(date(2020, 3, 1),), horizons=(7, 30, 60), least_history=1),
    )
    assert [t.id for t in found.questions[0].targets] == ["2020-03-31", "2020-04-30"]


def test_rounds_share_a_cluster_across_series_and_differ_over_time():
    asking = SeriesQuestionPlan(dues=due_dates(date(2020, 1, 3), date(2020, 1, 9), 3), horizons=(1,), least_history=1)
    clusters = [q.cluster for q in questions_from(subject(list(map(float, range(20)))), asking).questions]
    assert clusters == ["2020-01-03", "2020-01-06", "2020-01-09"]
