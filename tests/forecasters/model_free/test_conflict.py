from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from scipy.stats import nbinom, poisson
from tests.forecasters.model_free.simulated import NOTHING, events, past_of

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.model_free import conflict
from foretell.forecasters.model_free.conflict import (
    ConflictModel,
    DailyCounts,
    ReferenceValue,
    ReferenceValues,
    chance,
    reference_of,
)
from foretell.questions.question import Question, SeriesRef

PLACES = [f"Land {i}" for i in range(10)]


def count(average: float, kind: str = "Riots") -> ReferenceValue:
    return ReferenceValue(kind=kind, place="", average=average)


def probability(question: Question, past: Past = NOTHING) -> float:
    estimate = ConflictModel().estimate(question, past, question.due.date())
    assert len(set(estimate.p.tolist())) == 1
    assert len(estimate.p) == len(question.targets)
    return float(estimate.p[0])


@pytest.mark.parametrize(
    ("average", "kind"), [(0.0, "Riots"), (0.25, "Riots"), (7.5, "fatalities"), (300.0, "Protests")]
)
def test_count_is_negative_binomial(average: float, kind: str) -> None:
    shape = 1.0 if kind == "fatalities" else 4.0
    mean = average + conflict.NEVER
    expected = nbinom.sf(np.floor(average), shape, shape / (shape + mean))
    assert chance(count(average, kind)) == pytest.approx(expected)


def test_any_event_after_a_year_without_is_a_rise_and_unlikely() -> None:
    assert chance(count(0.0)) == pytest.approx(poisson.sf(0, 0.02), rel=0.01)


def test_spike_compares_with_ten_times_one_plus_the_average() -> None:
    spike = events("Riots", "Mali", "2025-10-26", 1.5, spike=True)
    assert reference_of(spike).average == 0.5
    assert probability(spike) == pytest.approx(nbinom.sf(15, 4.0, 4 / 4.52))
    assert probability(spike) < 1e-4


def test_outcomes_of_quiet_places_change_only_quiet_places() -> None:
    askings = [(events("Riots", place, "2025-03-02", 0.0), (1, 1, 1)) for place in PLACES[:7]]
    past = past_of(*askings)
    quiet, active = events("Riots", "X", "2025-10-26", 0.0), events("Riots", "X", "2025-10-26", 12.0)
    assert probability(quiet, past) > 2 * probability(quiet)
    assert probability(active, past) == pytest.approx(probability(active), abs=0.01)


def test_round_with_only_zeros_counts_as_an_outage() -> None:
    before = events("Riots", "Land 3", "2025-03-02", 40.0)
    zeros = [events("Riots", place, "2025-11-09", 0.0) for place in PLACES]
    past = past_of((before, ()), *[(question, ()) for question in zeros])
    assert probability(zeros[3], past) == pytest.approx(
        probability(events("Riots", "Land 3", "2025-10-26", 40.0)), abs=0.01
    )
    elsewhere = probability(zeros[4], past)
    assert chance(count(0.0)) < elsewhere, "other places get the rate of riots elsewhere"
    enough = past_of((before, ()), *[(question, ()) for question in zeros[:5]])
    assert probability(zeros[3], enough) == pytest.approx(probability(zeros[3])), "five zeros are not an outage"


def test_outcomes_of_an_outage_are_not_used() -> None:
    zeros = [(events("Riots", place, "2025-03-02", 0.0), (1, 1, 1)) for place in PLACES]
    quiet = events("Riots", "X", "2025-10-26", 0.0)
    assert probability(quiet, past_of(*zeros)) == pytest.approx(probability(quiet))


def test_outage_estimate_uses_other_kinds_of_event_in_the_place() -> None:
    known = [events(kind, "Land 3", "2025-03-02", 30.0) for kind in ("Battles", "Protests")]
    calm = [events("Riots", place, "2025-03-02", 0.0) for place in PLACES[5:]]
    zeros = [events("Riots", place, "2025-11-09", 0.0) for place in PLACES]
    past = past_of(*[(question, ()) for question in (*known, *calm, *zeros)])
    assert probability(zeros[3], past) > probability(zeros[4], past)


def test_outage_without_a_past_gives_a_default_rate() -> None:
    zeros = [events("Riots", place, "2025-11-09", 0.0) for place in PLACES]
    assert probability(zeros[0], past_of(*[(question, ()) for question in zeros])) == pytest.approx(0.2)


def test_references_before_a_day_exclude_later_rounds() -> None:
    rounds = [events("Riots", "Mali", due, value) for due, value in (("2025-03-02", 3.0), ("2025-03-16", 4.0))]
    references = ReferenceValues.of(rounds)
    assert [r.average for r in references.before("Mali", rounds[1].due.date())] == [3.0]


def counts(per_day: float, until: str, *, ended: str = "2025-10-20", last_month: float | None = None) -> Series:
    """Return a constant number of events a day, with another number in the last thirty days if given."""
    first, end = date.fromisoformat(until) - timedelta(500), date.fromisoformat(ended) + timedelta(1)
    days = np.arange(first, end, dtype="M8[D]")
    values = np.full(len(days), per_day)
    if last_month is not None:
        values[-30:] = last_month
    return Series(id="Iraq/Battles", days=days, values=values)


def by_day(question: Question, record: Series) -> list[float]:
    return ConflictModel().estimate(question, NOTHING, question.due.date(), record).p.tolist()


def test_known_days_decide_the_windows_that_contain_them() -> None:
    question = events("Battles", "Iraq", "2025-10-26", 30.0)
    alone = [probability(question)] * 4
    busy = by_day(question, counts(1.0, "2025-10-26", last_month=3.0))
    calm = by_day(question, counts(1.0, "2025-10-26", last_month=0.0))
    assert busy[0] > 0.95 > alone[0] > 0.1 > calm[0]
    assert busy[2:] == calm[2:] == alone[2:], "windows in the future contain no known days"


def test_incomplete_record_is_not_used() -> None:
    question = events("Battles", "Iraq", "2025-10-26", 30.0)
    assert by_day(question, counts(0.3, "2025-10-26")) == [probability(question)] * 4


def test_days_without_events_count_only_until_the_reporting_delay() -> None:
    question = events("Battles", "Iraq", "2025-10-26", 0.25, spike=False)
    record = Series(
        id="Iraq/Battles", days=np.array(["2025-01-05", "2025-05-01"], "M8[D]"), values=np.array([1.0, 2.0])
    )
    seen = DailyCounts.of(record, date(2025, 10, 26))
    assert seen.until == int(np.datetime64("2025-10-16").astype(int))
    assert 0.02 <= by_day(question, record)[0] < probability(question)


def test_daily_counts_are_read_instead_of_sums() -> None:
    question = replace(
        events("Battles", "Iraq", "2025-10-26", 30.0), series=SeriesRef(provider="acled", id="Iraq/Battles/30 days")
    )
    ref = ConflictModel().record_of(question)
    assert ref is not None
    assert ref.id == "Iraq/Battles"
