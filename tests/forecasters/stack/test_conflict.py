from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from scipy.stats import nbinom, poisson
from tests.forecasters.stack.made import NOTHING, events, past_of

from foretell.data.series import Series
from foretell.forecasters.base_rates import Past
from foretell.forecasters.stack import ConflictModel, conflict
from foretell.forecasters.stack.conflict import DailyCounts, ReferenceValue, ReferenceValues, chance, reference_of
from foretell.questions import Question, SeriesRef

PLACES = [f"Land {i}" for i in range(10)]


def count(average: float, kind: str = "Riots") -> ReferenceValue:
    return ReferenceValue(kind=kind, place="", average=average)


def said(question: Question, past: Past = NOTHING) -> float:
    estimate = ConflictModel().estimate(question, past, question.due.date())
    assert len(set(estimate.p.tolist())) == 1
    assert len(estimate.p) == len(question.targets)
    return float(estimate.p[0])


@pytest.mark.parametrize(
    ("average", "kind"), [(0.0, "Riots"), (0.25, "Riots"), (7.5, "fatalities"), (300.0, "Protests")]
)
def test_the_count_is_negative_binomial(average: float, kind: str) -> None:
    shape = 1.0 if kind == "fatalities" else 4.0
    mean = average + conflict.NEVER
    expected = nbinom.sf(np.floor(average), shape, shape / (shape + mean))
    assert chance(count(average, kind)) == pytest.approx(expected)


def test_after_a_year_of_none_one_event_is_enough_and_unlikely() -> None:
    assert chance(count(0.0)) == pytest.approx(poisson.sf(0, 0.02), rel=0.01)


def test_a_spike_compares_with_ten_times_one_plus_the_average() -> None:
    spike = events("Riots", "Mali", "2025-10-26", 1.5, spike=True)
    assert reference_of(spike).average == 0.5
    assert said(spike) == pytest.approx(nbinom.sf(15, 4.0, 4 / 4.52))
    assert said(spike) < 1e-4


def test_outcomes_of_quiet_places_move_quiet_places_only() -> None:
    lessons = [(events("Riots", place, "2025-03-02", 0.0), (1, 1, 1)) for place in PLACES[:7]]
    past = past_of(*lessons)
    quiet, active = events("Riots", "X", "2025-10-26", 0.0), events("Riots", "X", "2025-10-26", 12.0)
    assert said(quiet, past) > 2 * said(quiet)
    assert said(active, past) == pytest.approx(said(active), abs=0.01)


def test_a_round_of_nothing_but_nil_was_published_without_its_feed() -> None:
    before = events("Riots", "Land 3", "2025-03-02", 40.0)
    nil = [events("Riots", place, "2025-11-09", 0.0) for place in PLACES]
    past = past_of((before, ()), *[(question, ()) for question in nil])
    assert said(nil[3], past) == pytest.approx(said(events("Riots", "Land 3", "2025-10-26", 40.0)), abs=0.01)
    elsewhere = said(nil[4], past)
    assert chance(count(0.0)) < elsewhere, "of the others what is known of riots stands in"
    enough = past_of((before, ()), *[(question, ()) for question in nil[:5]])
    assert said(nil[3], enough) == pytest.approx(said(nil[3])), "five quiet places are no outage"


def test_outcomes_of_an_outage_teach_nothing() -> None:
    nil = [(events("Riots", place, "2025-03-02", 0.0), (1, 1, 1)) for place in PLACES]
    quiet = events("Riots", "X", "2025-10-26", 0.0)
    assert said(quiet, past_of(*nil)) == pytest.approx(said(quiet))


def test_other_kinds_in_the_place_say_something() -> None:
    known = [events(kind, "Land 3", "2025-03-02", 30.0) for kind in ("Battles", "Protests")]
    calm = [events("Riots", place, "2025-03-02", 0.0) for place in PLACES[5:]]
    nil = [events("Riots", place, "2025-11-09", 0.0) for place in PLACES]
    past = past_of(*[(question, ()) for question in (*known, *calm, *nil)])
    assert said(nil[3], past) > said(nil[4], past)


def test_nothing_known_in_an_outage_is_a_plain_rate() -> None:
    nil = [events("Riots", place, "2025-11-09", 0.0) for place in PLACES]
    assert said(nil[0], past_of(*[(question, ()) for question in nil])) == pytest.approx(0.2)


def test_references_are_read_up_to_a_day() -> None:
    rounds = [events("Riots", "Mali", due, value) for due, value in (("2025-03-02", 3.0), ("2025-03-16", 4.0))]
    found = ReferenceValues.of(rounds)
    assert [r.average for r in found.before("Mali", rounds[1].due.date())] == [3.0]


def counts(per_day: float, until: str, *, ended: str = "2025-10-20", last_month: float | None = None) -> Series:
    """So many events a day for a year; another pace in the last thirty days where that is said."""
    first, end = date.fromisoformat(until) - timedelta(500), date.fromisoformat(ended) + timedelta(1)
    days = np.arange(first, end, dtype="M8[D]")
    values = np.full(len(days), per_day)
    if last_month is not None:
        values[-30:] = last_month
    return Series(id="Iraq/Battles", days=days, values=values)


def by_day(question: Question, record: Series) -> list[float]:
    return ConflictModel().estimate(question, NOTHING, question.due.date(), record).p.tolist()


def test_days_that_were_seen_decide_the_window_they_lie_in() -> None:
    question = events("Battles", "Iraq", "2025-10-26", 30.0)
    alone = [said(question)] * 4
    busy = by_day(question, counts(1.0, "2025-10-26", last_month=3.0))
    calm = by_day(question, counts(1.0, "2025-10-26", last_month=0.0))
    assert busy[0] > 0.95 > alone[0] > 0.1 > calm[0]
    assert busy[2:] == calm[2:] == alone[2:], "of a window that is all to come nothing was seen"


def test_a_record_that_leaves_events_out_is_not_believed() -> None:
    question = events("Battles", "Iraq", "2025-10-26", 30.0)
    assert by_day(question, counts(0.3, "2025-10-26")) == [said(question)] * 4


def test_quiet_days_count_as_seen_only_until_they_would_have_been_reported() -> None:
    question = events("Battles", "Iraq", "2025-10-26", 0.25, spike=False)
    record = Series(
        id="Iraq/Battles", days=np.array(["2025-01-05", "2025-05-01"], "M8[D]"), values=np.array([1.0, 2.0])
    )
    seen = DailyCounts.of(record, date(2025, 10, 26))
    assert seen.until == int(np.datetime64("2025-10-16").astype(int))
    assert 0.02 <= by_day(question, record)[0] < said(question)


def test_the_daily_counts_behind_the_sums_are_read() -> None:
    question = replace(
        events("Battles", "Iraq", "2025-10-26", 30.0), series=SeriesRef(provider="acled", id="Iraq/Battles/30 days")
    )
    ref = ConflictModel().record_of(question)
    assert ref is not None
    assert ref.id == "Iraq/Battles"
