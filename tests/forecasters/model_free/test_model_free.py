import asyncio
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from tests.forecasters.model_free.simulated import (
    STATION,
    dataset_question,
    events,
    forecast,
    past_of,
    rate,
    walk,
    warmer,
)

from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.base_rates.rates import FixedRates
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.model_free.model_free import ModelFree, fresh
from foretell.forecasters.series.forecasters import Auto
from foretell.questions.question import Question, SeriesRef, Snapshot, Target

MARKET = Question(
    id="m/1", source="manifold", text="?", due="2025-10-26", subtype="market", targets=(Target(id="yes"),)
)
PRICED = replace(MARKET, targets=(Target(id="yes", snapshot=Snapshot(at="2025-10-26", last_price=0.37)),))
RATES = FixedRates(table={("manifold", ""): 0.2, ("own", ""): 0.3, ("fred", ""): 0.4})


def test_market_question_gets_its_price() -> None:
    result = forecast(PRICED, ModelFree(rates=RATES))
    assert result.p == {"yes": 0.37}
    assert "market price" in result.rationale


def test_newer_price_in_the_history_replaces_the_price_of_the_question() -> None:
    frozen = replace(PRICED, targets=(Target(id="yes", snapshot=Snapshot(at="2025-10-16", last_price=0.37)),))
    frozen = replace(frozen, id="manifold/abcDEF123456")
    days = np.array(["2025-10-20", "2025-10-25", "2025-10-28"], "M8[D]")
    history = Series(id="abcDEF123456", days=days, values=np.array([0.4, 0.6, 0.99]))
    result = forecast(frozen, ModelFree(), history)
    assert result.p == {"yes": 0.6}, "prices after the due date are not used"
    assert "1 day old" in result.rationale
    alone = forecast(frozen, ModelFree())
    assert alone.p == {"yes": 0.37}
    assert "10 days old" in alone.rationale
    old = Series(id="abcDEF123456", days=days[:1] - np.timedelta64(30, "D"), values=np.array([0.9]))
    assert forecast(frozen, ModelFree(), old).p == {"yes": 0.37}


def test_market_without_price_gets_the_base_rate_or_fails() -> None:
    result = forecast(MARKET, ModelFree(rates=RATES))
    assert result.p == {"yes": 0.2}
    assert "no price" in result.rationale
    assert "Base rate of manifold market" in result.rationale
    with pytest.raises(CannotForecast, match="no price"):
        forecast(MARKET, ModelFree())


def test_question_without_a_model_gets_the_base_rate_or_fails() -> None:
    question = dataset_question("own", "kind", "x", "2025-10-26")
    assert set(forecast(question, ModelFree(rates=RATES)).p.values()) == {0.3}
    with pytest.raises(CannotForecast, match="there is no data on questions like own/x"):
        forecast(question, ModelFree())


def test_share_with_a_fresh_series_gets_the_forecast_of_auto() -> None:
    question = rate("AAPL", "2025-10-26", source="yfinance")
    series = walk("AAPL", "2025-10-27")
    result = forecast(question, ModelFree(rates=RATES), series)
    context = Context(as_of=question.as_of, series=SeriesInMemory(series={"AAPL": series}))
    assert result.p == pytest.approx(dict(asyncio.run(Auto().forecast(question, context)).p))
    assert result.rationale.startswith("From the series:")


def test_fresh_fred_series_is_blended_with_the_estimate_of_its_kind() -> None:
    question = rate("DGS10", "2025-10-26")
    series = walk("DGS10", "2025-10-27")
    blended, alone = forecast(question, ModelFree(), series), forecast(question, ModelFree())
    auto = asyncio.run(
        Auto().forecast(question, Context(as_of=question.as_of, series=SeriesInMemory(series={"DGS10": series})))
    )
    for target in question.targets:
        assert blended.p[target.id] == pytest.approx(0.7 * auto.p[target.id] + 0.3 * alone.p[target.id])
    assert "Blended 70 % to 30 %" in blended.rationale


def test_last_value_stays_if_no_new_value_is_due() -> None:
    months = np.arange("2010-01", "2025-11", dtype="M8[M]").astype("M8[D]")
    values = np.cumsum(np.random.default_rng(3).normal(0, 1, len(months)))
    question = rate("SNDR", "2025-10-05", "Will interest rates for savings accounts have increased?")
    result = forecast(question, ModelFree(), Series(id="SNDR", days=months, values=values))
    assert result.p["2025-10-12"] == 0.0
    assert 0.05 < result.p["2025-11-04"] < 0.95


def test_stale_series_is_used_for_seasonal_normals_only() -> None:
    days = np.arange("1950-01-01", "1992-01-01", dtype="M8[D]")
    values = 10 - 8 * np.cos(2 * np.pi * (days.astype(int) - 20) / 365.2425)
    record = Series(id=STATION, days=days, values=values + np.random.default_rng(0).normal(0, 3, len(days)))
    question = warmer("2025-10-01", value=14.0)
    result = forecast(question, ModelFree(), record)
    assert "its own record until 1991-12-31" in result.rationale
    assert "its region" in forecast(question, ModelFree()).rationale
    assert result.p["2025-12-30"] < 0.1


@pytest.mark.parametrize(("step", "age", "is_fresh"), [(1, 45, True), (1, 46, False), (30, 90, True), (30, 91, False)])
def test_freshness_depends_on_the_interval_of_the_series(step: int, age: int, is_fresh: bool) -> None:
    days = np.arange(0, 40 * step, step).astype("M8[D]")
    due = (days[-1] + np.timedelta64(age, "D")).astype(date)
    assert fresh(Series(id="x", days=days, values=np.zeros(len(days))), due) is is_fresh


def test_estimate_is_blended_with_the_base_rate() -> None:
    question = rate("DFF", "2025-10-26", "Will the federal funds rate have increased?")
    with_rate, without = forecast(question, ModelFree(rates=RATES)), forecast(question, ModelFree())
    for target in question.targets:
        assert with_rate.p[target.id] == pytest.approx(0.731 * without.p[target.id] + 0.269 * 0.4, abs=1e-3)
    assert "has a weight of 73 %" in with_rate.rationale


def test_dates_of_a_permanent_change_have_increasing_probabilities() -> None:
    question = dataset_question("wikipedia", "vaccine", "x", "2025-10-26")
    rounds = [dataset_question("wikipedia", "vaccine", f"y{i}", "2025-01-05") for i in range(6)]
    past = past_of(*[(earlier, (1, 0, 0, 0)) for earlier in rounds])
    fitted = list(forecast(question, ModelFree(), past=past).p.values())
    loose = list(forecast(question, ModelFree(coherent=False), past=past).p.values())
    assert fitted == sorted(fitted)
    assert loose != sorted(loose), "without coherence the probabilities do not increase"


def test_base_rates_are_counted_from_the_past() -> None:
    past = past_of(*[(dataset_question("own", "kind", f"x{i}", "2025-01-05"), (1, 1)) for i in range(20)])
    assert min(forecast(dataset_question("own", "kind", "new", "2025-10-26"), ModelFree(), past=past).p.values()) > 0.7


def test_newest_value_of_the_series_replaces_the_last_value_of_the_question() -> None:
    question = warmer("2025-10-26", value=25.0)
    days = np.arange("2010-01-01", "2025-10-25", dtype="M8[D]")
    season = 12 - 8 * np.cos(2 * np.pi * (days.astype(int) - 20) / 365.2425)
    weather = np.random.default_rng(3).normal(0, 3, len(days))
    cold, mild = (Series(id=STATION, days=days, values=np.append((season + weather)[:-1], t)) for t in (2.0, 20.0))
    stale, after_cold, after_mild = (forecast(question, ModelFree(), *series) for series in ((), (cold,), (mild,)))
    first = question.targets[0].id
    assert after_cold.p[first] > stale.p[first] + 0.1 > after_mild.p[first] + 0.2
    assert "It stands on the value of 2 days ago (2 on 2025-10-24)." in after_cold.rationale
    assert "It stands on the value of 10 days ago (25 on 2025-10-16)." in stale.rationale
    assert after_cold.value is not None
    assert (after_cold.value.age, after_cold.value.usual, after_cold.value.stale) == (2, 1, False)


def test_estimate_from_daily_counts_is_not_blended_with_the_base_rate() -> None:
    ref = SeriesRef(provider="acled", id="Iraq/Battles/30 days")
    question = replace(events("Battles", "Iraq", "2025-10-26", 30.0), series=ref)
    days = np.arange("2024-06-01", "2025-10-24", dtype="M8[D]")
    daily = Series(id="Iraq/Battles", days=days, values=np.where(days >= np.datetime64("2025-10-01"), 6.0, 1.0))
    result = forecast(question, ModelFree(rates=FixedRates(table={("acled", ""): 0.1})), daily)
    assert result.p[question.targets[0].id] > 0.95
    assert "Counted by day until 2025-10-23" in result.rationale
