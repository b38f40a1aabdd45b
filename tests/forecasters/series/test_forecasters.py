import asyncio

import numpy as np
import pytest

from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.series.auto import auto
from foretell.forecasters.series.forecasters import Auto, Climatology, Hybrid, LinearTrend, SeasonalKnn, Walk
from foretell.forecasters.series.history import SeriesQuery
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, SeriesRef, Target

DAYS = np.arange("2015-01-01", "2025-12-31", dtype="M8[D]")
VALUES = np.cumsum(np.random.default_rng(0).standard_normal(len(DAYS)))
ALL = [SeasonalKnn(), Climatology(), LinearTrend(), Hybrid(), Walk(), Auto()]


class UnfilteredSource:
    """A source that also returns values after the cutoff."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        return Series(id=ref.id, days=DAYS, values=VALUES)


def question(ref: SeriesRef | None, *resolves: str | None) -> Question:
    targets = tuple(
        Target(id=f"t{i}", resolves_at=day) for i, day in enumerate(resolves or ("2025-11-02", "2026-10-26"))
    )
    return Question(id="q", source="fred", kind="dataset", text="?", due="2025-10-26", targets=targets, series=ref)


def probabilities(forecaster, series_question: Question, source=None) -> dict[str, float]:
    context = Context(as_of=series_question.as_of, series=source or UnfilteredSource())
    forecast = asyncio.run(forecaster.forecast(series_question, context))
    assert forecast.rationale
    return dict(forecast.p)


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_every_target_gets_a_probability(forecaster) -> None:
    p = probabilities(forecaster, question(SeriesRef(provider="fred", id="x")))
    assert set(p) == {"t0", "t1"}


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_values_after_the_cutoff_do_not_change_forecasts(forecaster) -> None:
    known = int(np.searchsorted(DAYS, np.datetime64("2025-10-26"), side="right"))
    filtered = SeriesInMemory(series={"x": Series(id="x", days=DAYS[:known], values=VALUES[:known])})
    series_question = question(SeriesRef(provider="fred", id="x"))
    assert probabilities(forecaster, series_question) == probabilities(forecaster, series_question, filtered)


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_probabilities_above_and_below_sum_to_one(forecaster) -> None:
    above = probabilities(forecaster, question(SeriesRef(provider="fred", id="x", threshold=3.0)))
    below = probabilities(forecaster, question(SeriesRef(provider="fred", id="x", threshold=3.0, comparison="below")))
    assert [above[t] + below[t] for t in above] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_questions_that_cannot_be_forecast_raise_errors_with_the_reason(forecaster) -> None:
    with pytest.raises(CannotForecast, match="not about a time series"):
        probabilities(forecaster, question(None))
    with pytest.raises(CannotForecast, match="no resolution date"):
        probabilities(forecaster, question(SeriesRef(provider="fred", id="x"), None))
    with pytest.raises(CannotForecast, match="on or before the due date"):
        probabilities(forecaster, question(SeriesRef(provider="fred", id="x"), "2025-10-26"))
    with pytest.raises(CannotForecast, match="no series is called"):
        probabilities(forecaster, question(SeriesRef(provider="fred", id="x")), SeriesInMemory(series={}))


def test_climatology_of_a_short_record_raises_cannot_forecast() -> None:
    source = SeriesInMemory(series={"x": Series(id="x", days=DAYS[-100:], values=VALUES[-100:])})
    with pytest.raises(CannotForecast, match="three years"):
        probabilities(Climatology(), question(SeriesRef(provider="fred", id="x")), source)


def test_prices_have_an_upward_drift() -> None:
    rate, price = (probabilities(Auto(), question(SeriesRef(provider=p, id="x")))["t1"] for p in ("fred", "yfinance"))
    assert price != rate
    plain = auto(SeriesQuery(DAYS, VALUES, np.datetime64("2025-10-26"), np.array(["2026-10-26"], "M8[D]"))).above[0]
    assert rate == pytest.approx(plain)


def test_rationale_names_the_age_of_the_last_value_and_dates_without_a_new_one() -> None:
    months = np.arange("2010-01", "2025-11", dtype="M8[M]").astype("M8[D]")
    source = SeriesInMemory(series={"m": Series(id="m", days=months, values=np.arange(len(months), dtype=float) % 7)})
    series_question = question(SeriesRef(provider="fred", id="m"), "2025-10-30", "2026-10-26")
    forecast = asyncio.run(Auto().forecast(series_question, Context(as_of=series_question.as_of, series=source)))
    assert forecast.p["t0"] == 0
    assert "value of 25 days ago" in forecast.rationale
    assert "4 days: no new value is expected by then" in forecast.rationale
