import asyncio

import numpy as np
import pytest
from scipy.stats import norm

from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.forecaster import Context, Forecaster
from foretell.forecasters.series.forecasters import Hybrid, LinearTrend, hybrid, linear, safe
from foretell.forecasters.series.history import SeriesChances, SeriesQuery
from foretell.forecasters.series.tuning import ONE_HALF, HybridSettings, tuned_settings
from foretell.questions.question import Question, SeriesRef, Target

DAYS = np.arange("2024-01-01", "2024-01-05", dtype="M8[D]")
VALUES = np.array([1.0, 3.0, 2.0, 4.0])
DUE = np.datetime64("2024-01-04")


def test_linear_trend_matches_values_computed_by_hand() -> None:
    # x = 0..3: slope 0.8, mean 2.5 at 1.5; residuals −0.3, 0.9, −0.9, 0.3; σ̂² = 1.8 / 2; at x = 5 the line is 5.3.
    chances = linear(SeriesQuery(DAYS, VALUES, DUE, np.array(["2024-01-06"], "M8[D]")))
    assert chances.above[0] == pytest.approx(norm.sf((4 - 5.3) / np.sqrt(0.9)))
    assert chances.above[0] + chances.below[0] == pytest.approx(1.0)


def test_linear_trend_uses_only_the_last_window() -> None:
    early = np.concatenate([np.full(50, 1000.0), VALUES])
    when = DUE - np.arange(len(early))[::-1].astype("m8[D]")
    ahead = np.array(["2024-01-06"], "M8[D]")
    assert linear(SeriesQuery(when, early, DUE, ahead), window=4).above == pytest.approx(
        linear(SeriesQuery(DAYS, VALUES, DUE, ahead)).above
    )


def test_constant_series_is_certain_to_equal_its_threshold() -> None:
    chances = linear(SeriesQuery(DAYS, np.full(4, 2.0), DUE, np.array(["2024-02-01"], "M8[D]")))
    assert (chances.above[0], chances.below[0], chances.atom[0]) == (0.0, 0.0, 1.0)


def test_safe_mixes_with_one_half() -> None:
    mixed = safe(SeriesChances(above=np.array([0.9]), below=np.array([0.1])), 0.1)
    assert mixed.above[0] == pytest.approx(0.1 * 0.9 + 0.9 * 0.5)


def test_hybrid_without_prior_years_is_safe_linear() -> None:
    ahead = np.array(["2024-06-01"], "M8[D]")
    expected = safe(linear(SeriesQuery(DAYS, VALUES, DUE, ahead), window=30), 0.5).above
    assert hybrid(SeriesQuery(DAYS, VALUES, DUE, ahead)).above == pytest.approx(expected)


def test_hybrid_with_prior_years_is_half_of_each() -> None:
    when = np.concatenate([np.array(["2023-06-01"], "M8[D]"), DAYS])
    values = np.concatenate([[9.0], VALUES])
    ahead = np.array(["2024-06-01"], "M8[D]")
    line = safe(linear(SeriesQuery(when, values, DUE, ahead), window=4), 0.5).above[0]
    got = hybrid(SeriesQuery(when, values, DUE, ahead), *(4, 0.5, 0.5)).above[0]
    assert got == pytest.approx(0.5 * line + 0.5 * (1 + 1) / (1 + 2))


@pytest.mark.parametrize(("provider", "window", "alpha"), [("fred", 30, 0.5), ("yfinance", 60, 0.1)])
def test_settings_depend_on_the_source_unless_given(provider: str, window: int, alpha: float) -> None:
    values = np.cumsum(np.random.default_rng(0).standard_normal(400))
    days = np.datetime64("2023-01-01") + np.arange(len(values)).astype("m8[D]")
    ref, end = SeriesRef(provider=provider, id="X"), days[-1] + 20
    question = Question(
        id="q",
        source=provider,
        text="?",
        due=str(days[-1]),
        kind="dataset",
        series=ref,
        targets=(Target(id="t", resolves_at=str(end)),),
    )
    context = Context(
        as_of=question.as_of, series=SeriesInMemory(series={"X": Series(id="X", days=days, values=values)})
    )
    query = SeriesQuery(days, values, days[-1], np.array([end]))

    def p(forecaster: Forecaster) -> float:
        return asyncio.run(forecaster.forecast(question, context)).p["t"]

    assert p(LinearTrend()) == pytest.approx(safe(linear(query, window), alpha).above[0])
    assert p(Hybrid()) == pytest.approx(hybrid(query, window, alpha).above[0])
    assert p(LinearTrend(window=20)) == pytest.approx(safe(linear(query, 20), alpha).above[0])


def test_tuned_settings_are_those_that_predicted_the_past_best() -> None:
    days = np.datetime64("2012-01-01") + np.arange(3000).astype("m8[D]")
    noise = np.random.default_rng(1).standard_normal(len(days))
    due, ahead = days[-1], days[-1] + np.array([60], "m8[D]")

    def chosen(values: np.ndarray) -> HybridSettings:
        return tuned_settings(SeriesQuery(days, values, due, ahead))[0]

    growing = chosen(0.05 * np.arange(3000) + noise)
    assert growing.beta == 1
    assert growing.alpha == 0.5
    seasonal = chosen(10 * np.sin(2 * np.pi * np.arange(3000) / 365.2425) + 0.5 * noise)
    assert seasonal.beta == 0
    assert chosen(np.cumsum(noise)) == ONE_HALF
    short = SeriesQuery(days[:200], noise[:200], days[199], days[199] + np.array([60], "m8[D]"))
    assert tuned_settings(short) == [ONE_HALF]


def test_tuned_settings_ignore_later_values() -> None:
    values = np.cumsum(np.random.default_rng(2).standard_normal(2500))
    days = np.datetime64("2015-01-01") + np.arange(len(values)).astype("m8[D]")
    due, ahead = days[2000], days[2000] + np.array([7, 90], "m8[D]")
    garbled = np.where(np.arange(len(values)) > 2000, 1e6, values)
    tuned = Hybrid(tuned=True)
    assert tuned.chances(SeriesQuery(days, values, due, ahead)).above == pytest.approx(
        tuned.chances(SeriesQuery(days, garbled, due, ahead)).above
    )
