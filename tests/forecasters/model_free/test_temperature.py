from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from tests.forecasters.model_free.simulated import NOTHING, past_of, rate, warmer

from foretell.data.series.series import Series
from foretell.forecasters.model_free.source_model import Estimate
from foretell.forecasters.model_free.temperature import REGIONS, Climate, Report, TemperatureModel, from_record, region
from foretell.forecasters.series.climatology import harmonics
from foretell.questions.question import SeriesRef

SURE = replace(REGIONS["07"], doubt=np.zeros((5, 5)), spread=np.array([3.0, 0.0, 0.0]))


def number(day: str) -> float:
    return float(np.datetime64(day, "D").astype(int))


def chances(question, past=NOTHING, record=None):
    return TemperatureModel().estimate(question, past, question.due.date(), record).p


def synthetic_record(warmth: float = 10.0, until: str = "1991-12-31") -> Series:
    days = np.arange("1960-01-01", until, dtype="M8[D]")
    season = -8 * np.cos(2 * np.pi * (days.astype(int) - 20) / 365.2425)
    weather = np.random.default_rng(1).normal(0, 3, len(days))
    return Series(id="s", days=days, values=warmth + season + weather)


def test_temperature_falls_in_autumn_and_rises_in_spring() -> None:
    autumn, spring = chances(warmer("2025-10-01")), chances(warmer("2025-03-15"))
    assert autumn[2] < 0.05
    assert spring[2] > 0.9
    assert 0.4 < autumn[0] < 0.5 < spring[0] < 0.6, "a week changes little"


def test_southern_station_has_its_summer_in_february() -> None:
    south = warmer("2025-08-01", station="meteofrance/TEMPERATURE/celsius.61980.D", days=(180,))
    assert chances(south)[0] > 0.9
    unknown = warmer("2025-08-01", station="meteofrance/TEMPERATURE/celsius.99999.D", days=(180,))
    assert chances(unknown)[0] == pytest.approx(0.5, abs=0.02), "an unknown place has no season"


def test_report_of_the_due_day_matches_values_computed_by_hand() -> None:
    """x(due) known: T(r) − T(due) has mean Δμ + (ρ−1)·x and variance σ²(1−ρ²)."""
    due, end = number("2025-10-26"), number("2025-11-02")
    normal = harmonics(np.array([due, end]), 5) @ SURE.normal
    rho = float(SURE.memory(np.array([7.0]))[0])
    mean, spread = SURE.change(due, np.array([end]), [Report(day=due, value=normal[0] + 2.0)])
    assert mean[0] == pytest.approx(normal[1] - normal[0] + (rho - 1) * 2.0)
    assert spread[0] == pytest.approx(3 * np.sqrt(1 - rho**2))


def test_without_a_report_the_spread_is_that_of_two_days() -> None:
    due, end = number("2025-01-15"), number("2025-07-15")
    mean, spread = SURE.change(due, np.array([end]))
    rho = float(SURE.memory(np.array([181.0]))[0])
    assert mean[0] == pytest.approx(2 * 7.7, abs=0.3)
    assert spread[0] == pytest.approx(3 * np.sqrt(2 - 2 * rho))


def test_warm_report_ten_days_ago_lowers_the_probability_slightly() -> None:
    hot, cold = chances(warmer("2025-10-01", value=25.0)), chances(warmer("2025-10-01", value=8.0))
    assert (hot[:2] < cold[:2]).all()
    assert abs(hot[0] - cold[0]) < 0.2


def test_reports_update_the_normal_of_a_station() -> None:
    place = region(15.0, 5.0, 200, (1.0, 0.0), 0.0)
    days = number("2024-01-01") + np.arange(0, 700, 14.0)
    truth = np.array([18.0, -3.0, 0.0, 0.0, 0.0])
    learnt = place.having_seen(days, harmonics(days, 5) @ truth)
    assert learnt.normal[:3] == pytest.approx(truth[:3], abs=0.5)
    assert np.trace(learnt.doubt) < np.trace(place.doubt)
    assert place.having_seen(np.zeros(0), np.zeros(0)) is place


def test_outlier_report_changes_the_normal_only_by_a_limited_amount() -> None:
    place = region(15.0, 5.0, 200, (1.0, 0.0), 0.0)
    moved = place.having_seen(np.array([number("2025-01-01")]), np.array([900.0]))
    assert abs(moved.normal[0] - 15.0) < 12


def test_normal_of_an_old_record_includes_seasons_and_warming() -> None:
    climate = from_record(synthetic_record(), date(2025, 10, 26))
    assert isinstance(climate, Climate)
    assert np.hypot(*climate.normal[1:3]) == pytest.approx(8.0, abs=0.2)
    assert climate.normal[0] == pytest.approx(10.0 + 0.035 * 49.8, abs=0.2)
    assert climate.spread[0] == pytest.approx(3.0, abs=0.1)
    assert from_record(synthetic_record(until="1962-01-01"), date(2025, 10, 26)) is None


@pytest.mark.parametrize("trend", [0.0, 0.1])
def test_normal_of_a_current_record_includes_its_own_trend(trend: float) -> None:
    record = synthetic_record()
    years = (record.days - record.days[-1]).astype(np.int64) / 365.2425
    climate = from_record(replace(record, values=record.values + trend * years), record.days[-1].item())
    assert climate is not None
    assert climate.normal[0] == pytest.approx(10.0, abs=0.35)


def test_level_of_an_old_record_does_not_change_the_estimate() -> None:
    question = warmer("2025-10-01")
    assert chances(question, record=synthetic_record(10.0)) == pytest.approx(
        chances(question, record=synthetic_record(-40.0))
    )


def test_only_reports_of_earlier_rounds_are_used() -> None:
    now, later = warmer("2025-10-01", value=14.0), warmer("2025-10-15", value=99.0)
    earlier = warmer("2025-09-01", value=30.0)
    assert chances(now, past_of((now, ()), (later, ()))).tolist() == chances(now).tolist()
    assert chances(now, past_of((earlier, ()))).tolist() != chances(now).tolist()


def test_model_covers_only_rises_of_temperatures() -> None:
    family = TemperatureModel()
    assert family.covers(warmer("2025-10-01"))
    assert not family.covers(rate("DFF", "2025-10-01"))
    fixed = replace(warmer("2025-10-01"), series=SeriesRef(provider="dbnomics", id="x/TEMPERATURE/y", threshold=3.0))
    assert not family.covers(fixed)


def test_forecasts_are_used_for_days_without_a_measurement() -> None:
    question = warmer("2025-10-26", 12.0)
    model, due = TemperatureModel(), question.due.date()
    near, *_, far = (ref.id for ref in model.others_of(question))
    assert (near.split("/")[0], far.split("/")[0]) == ("ahead0", "ahead7")

    def estimate(today: float, next_week: float, issued: str = "2025-10-26") -> Estimate:
        last = np.datetime64(issued)
        others = {
            near: Series(id=near, days=np.array([last]), values=np.array([today])),
            far: Series(id=far, days=np.array([last]), values=np.array([next_week])),
        }
        return model.estimate(question, NOTHING, due, None, others)

    without = model.estimate(question, NOTHING, due)
    cold, warm = estimate(8.0, 16.0), estimate(16.0, 8.0)
    assert cold.p[0] > 0.85 > 0.15 > warm.p[0]
    assert cold.p[2] > without.p[2] > warm.p[2]
    assert "Forecast: 8.0 on 2025-10-26, 16.0 on 2025-11-02." in cold.rationale
    assert "No public forecast was available." in without.rationale
    # Forecasts for days before the due day are not used.
    assert estimate(8.0, 16.0, issued="2025-10-10").p.tolist() == without.p.tolist()
