import asyncio
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from tests.forecasters.stack.made import STATION, asked, events, forecast, past_of, rate, walk, warmer

from foretell.data.series import Series, SeriesInMemory
from foretell.forecasters import CannotForecast, Context
from foretell.forecasters.base_rates import FixedRates
from foretell.forecasters.series import Auto
from foretell.forecasters.stack import Stack
from foretell.forecasters.stack.stack import fresh
from foretell.questions import Question, SeriesRef, Snapshot, Target

MARKET = Question(
    id="m/1", source="manifold", text="?", due="2025-10-26", subtype="market", targets=(Target(id="yes"),)
)
PRICED = replace(MARKET, targets=(Target(id="yes", snapshot=Snapshot(at="2025-10-26", last_price=0.37)),))
RATES = FixedRates(table={("manifold", ""): 0.2, ("own", ""): 0.3, ("fred", ""): 0.4})


def test_a_market_gets_its_own_price() -> None:
    said = forecast(PRICED, Stack(rates=RATES))
    assert said.p == {"yes": 0.37}
    assert "market's own price" in said.rationale


def test_a_newer_price_of_the_markets_history_replaces_the_one_a_question_came_with() -> None:
    frozen = replace(PRICED, targets=(Target(id="yes", snapshot=Snapshot(at="2025-10-16", last_price=0.37)),))
    frozen = replace(frozen, id="manifold/abcDEF123456")
    days = np.array(["2025-10-20", "2025-10-25", "2025-10-28"], "M8[D]")
    history = Series(id="abcDEF123456", days=days, values=np.array([0.4, 0.6, 0.99]))
    said = forecast(frozen, Stack(), history)
    assert said.p == {"yes": 0.6}, "what came after the due date is not seen"
    assert "1 day old" in said.rationale
    alone = forecast(frozen, Stack())
    assert alone.p == {"yes": 0.37}
    assert "10 days old" in alone.rationale
    old = Series(id="abcDEF123456", days=days[:1] - np.timedelta64(30, "D"), values=np.array([0.9]))
    assert forecast(frozen, Stack(), old).p == {"yes": 0.37}


def test_a_market_without_price_gets_the_base_rate_or_none() -> None:
    said = forecast(MARKET, Stack(rates=RATES))
    assert said.p == {"yes": 0.2}
    assert "no price" in said.rationale
    assert "Base rate of manifold market" in said.rationale
    with pytest.raises(CannotForecast, match="no price"):
        forecast(MARKET, Stack())


def test_what_no_model_covers_gets_the_base_rate_or_none() -> None:
    question = asked("own", "kind", "x", "2025-10-26")
    assert set(forecast(question, Stack(rates=RATES)).p.values()) == {0.3}
    with pytest.raises(CannotForecast, match="nothing is known of questions like own/x"):
        forecast(question, Stack())


def test_a_fresh_series_speaks_for_a_share_alone() -> None:
    question = rate("AAPL", "2025-10-26", source="yfinance")
    series = walk("AAPL", "2025-10-27")
    said = forecast(question, Stack(rates=RATES), series)
    context = Context(as_of=question.as_of, series=SeriesInMemory(series={"AAPL": series}))
    assert said.p == pytest.approx(dict(asyncio.run(Auto().forecast(question, context)).p))
    assert said.rationale.startswith("From the series:")


def test_a_fresh_series_of_fred_is_blended_with_its_kind() -> None:
    question = rate("DGS10", "2025-10-26")
    series = walk("DGS10", "2025-10-27")
    blended, alone = forecast(question, Stack(), series), forecast(question, Stack())
    auto = asyncio.run(
        Auto().forecast(question, Context(as_of=question.as_of, series=SeriesInMemory(series={"DGS10": series})))
    )
    for target in question.targets:
        assert blended.p[target.id] == pytest.approx(0.7 * auto.p[target.id] + 0.3 * alone.p[target.id])
    assert "Blended 70% to 30%" in blended.rationale


def test_where_no_new_number_is_due_nothing_else_has_a_say() -> None:
    months = np.arange("2010-01", "2025-11", dtype="M8[M]").astype("M8[D]")
    values = np.cumsum(np.random.default_rng(3).normal(0, 1, len(months)))
    question = rate("SNDR", "2025-10-05", "Will interest rates for savings accounts have increased?")
    said = forecast(question, Stack(), Series(id="SNDR", days=months, values=values))
    assert said.p["2025-10-12"] == 0.0
    assert 0.05 < said.p["2025-11-04"] < 0.95


def test_a_stale_series_gives_normals_not_a_forecast_of_its_own() -> None:
    days = np.arange("1950-01-01", "1992-01-01", dtype="M8[D]")
    values = 10 - 8 * np.cos(2 * np.pi * (days.astype(int) - 20) / 365.2425)
    record = Series(id=STATION, days=days, values=values + np.random.default_rng(0).normal(0, 3, len(days)))
    question = warmer("2025-10-01", value=14.0)
    said = forecast(question, Stack(), record)
    assert "its own record until 1991-12-31" in said.rationale
    assert "its region" in forecast(question, Stack()).rationale
    assert said.p["2025-12-30"] < 0.1


@pytest.mark.parametrize(("step", "age", "is_fresh"), [(1, 45, True), (1, 46, False), (30, 90, True), (30, 91, False)])
def test_freshness_goes_by_the_pace_of_the_series(step: int, age: int, is_fresh: bool) -> None:
    days = np.arange(0, 40 * step, step).astype("M8[D]")
    due = (days[-1] + np.timedelta64(age, "D")).astype(date)
    assert fresh(Series(id="x", days=days, values=np.zeros(len(days))), due) is is_fresh


def test_the_base_rate_holds_the_rest_of_the_weight() -> None:
    question = rate("DFF", "2025-10-26", "Will the federal funds rate have increased?")
    with_rate, without = forecast(question, Stack(rates=RATES)), forecast(question, Stack())
    for target in question.targets:
        assert with_rate.p[target.id] == pytest.approx(0.731 * without.p[target.id] + 0.269 * 0.4, abs=1e-3)
    assert "gets 73% of the weight" in with_rate.rationale


def test_dates_of_a_lasting_change_fit_each_other() -> None:
    question = asked("wikipedia", "vaccine", "x", "2025-10-26")
    rounds = [asked("wikipedia", "vaccine", f"y{i}", "2025-01-05") for i in range(6)]
    past = past_of(*[(one, (1, 0, 0, 0)) for one in rounds])
    fitted = list(forecast(question, Stack(), past=past).p.values())
    loose = list(forecast(question, Stack(coherent=False), past=past).p.values())
    assert fitted == sorted(fitted)
    assert loose != sorted(loose), "the base rate by horizon alone would contradict itself"


def test_a_past_makes_the_base_rates_too() -> None:
    past = past_of(*[(asked("own", "kind", f"x{i}", "2025-01-05"), (1, 1)) for i in range(20)])
    assert min(forecast(asked("own", "kind", "new", "2025-10-26"), Stack(), past=past).p.values()) > 0.7


def test_the_newest_value_at_hand_replaces_the_one_a_question_came_with_and_its_age_is_told() -> None:
    question = warmer("2025-10-26", value=25.0)
    days = np.arange("2010-01-01", "2025-10-25", dtype="M8[D]")
    season = 12 - 8 * np.cos(2 * np.pi * (days.astype(int) - 20) / 365.2425)
    weather = np.random.default_rng(3).normal(0, 3, len(days))
    cold, mild = (Series(id=STATION, days=days, values=np.append((season + weather)[:-1], t)) for t in (2.0, 20.0))
    stale, after_cold, after_mild = (forecast(question, Stack(), *one) for one in ((), (cold,), (mild,)))
    first = question.targets[0].id
    assert after_cold.p[first] > stale.p[first] + 0.1 > after_mild.p[first] + 0.2
    assert "2 of 2025-10-24, was 2 days old on the due date" in after_cold.rationale
    assert "25 of 2025-10-16, was 10 days old on the due date" in stale.rationale


def test_counts_of_days_seen_are_not_diluted_by_a_base_rate() -> None:
    ref = SeriesRef(provider="acled", id="Iraq/Battles/30 days")
    question = replace(events("Battles", "Iraq", "2025-10-26", 30.0), series=ref)
    days = np.arange("2024-06-01", "2025-10-24", dtype="M8[D]")
    daily = Series(id="Iraq/Battles", days=days, values=np.where(days >= np.datetime64("2025-10-01"), 6.0, 1.0))
    said = forecast(question, Stack(rates=FixedRates(table={("acled", ""): 0.1})), daily)
    assert said.p[question.targets[0].id] > 0.95
    assert "Counted by day until 2025-10-23" in said.rationale
