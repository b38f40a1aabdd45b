import asyncio

import numpy as np
import pytest

from foretell.data.series import Series, SeriesInMemory
from foretell.forecasters import CannotForecast, Context
from foretell.forecasters.series import AskedSeries, Auto, Climatology, Hybrid, LinearTrend, SeasonalKnn, Walk
from foretell.forecasters.series.auto import auto
from foretell.questions import AsOf, Question, SeriesRef, Target

DAYS = np.arange("2015-01-01", "2025-12-31", dtype="M8[D]")
VALUES = np.cumsum(np.random.default_rng(0).standard_normal(len(DAYS)))
ALL = [SeasonalKnn(), Climatology(), LinearTrend(), Hybrid(), Walk(), Auto()]


class Leaky:
    """A source that hands out the future."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        return Series(id=ref.id, days=DAYS, values=VALUES)


def question(ref: SeriesRef | None, *resolves: str | None) -> Question:
    targets = tuple(
        Target(id=f"t{i}", resolves_at=day) for i, day in enumerate(resolves or ("2025-11-02", "2026-10-26"))
    )
    return Question(id="q", source="fred", kind="dataset", text="?", due="2025-10-26", targets=targets, series=ref)


def said(forecaster, asked: Question, source=None) -> dict[str, float]:
    context = Context(as_of=asked.as_of, series=source or Leaky())
    forecast = asyncio.run(forecaster.forecast(asked, context))
    assert forecast.rationale
    return dict(forecast.p)


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_every_target_gets_a_probability(forecaster) -> None:
    p = said(forecaster, question(SeriesRef(provider="fred", id="x")))
    assert set(p) == {"t0", "t1"}


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_a_leaky_source_changes_nothing(forecaster) -> None:
    known = int(np.searchsorted(DAYS, np.datetime64("2025-10-26"), side="right"))
    honest = SeriesInMemory(series={"x": Series(id="x", days=DAYS[:known], values=VALUES[:known])})
    asked = question(SeriesRef(provider="fred", id="x"))
    assert said(forecaster, asked) == said(forecaster, asked, honest)


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_below_is_the_other_side(forecaster) -> None:
    above = said(forecaster, question(SeriesRef(provider="fred", id="x", threshold=3.0)))
    below = said(forecaster, question(SeriesRef(provider="fred", id="x", threshold=3.0, comparison="below")))
    assert [above[t] + below[t] for t in above] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("forecaster", ALL, ids=lambda f: f.name)
def test_reasons_for_saying_nothing(forecaster) -> None:
    with pytest.raises(CannotForecast, match="not about a time series"):
        said(forecaster, question(None))
    with pytest.raises(CannotForecast, match="no resolution date"):
        said(forecaster, question(SeriesRef(provider="fred", id="x"), None))
    with pytest.raises(CannotForecast, match="on or before the due date"):
        said(forecaster, question(SeriesRef(provider="fred", id="x"), "2025-10-26"))
    with pytest.raises(CannotForecast, match="no series is called"):
        said(forecaster, question(SeriesRef(provider="fred", id="x")), SeriesInMemory(series={}))


def test_climatology_says_why_a_short_record_will_not_do() -> None:
    source = SeriesInMemory(series={"x": Series(id="x", days=DAYS[-100:], values=VALUES[-100:])})
    with pytest.raises(CannotForecast, match="three years"):
        said(Climatology(), question(SeriesRef(provider="fred", id="x")), source)


def test_prices_lean_upward() -> None:
    rate, price = (said(Auto(), question(SeriesRef(provider=p, id="x")))["t1"] for p in ("fred", "yfinance"))
    assert price != rate
    plain = auto(AskedSeries(DAYS, VALUES, np.datetime64("2025-10-26"), np.array(["2026-10-26"], "M8[D]"))).above[0]
    assert rate == pytest.approx(plain)


def test_where_no_value_comes_in_between_it_is_said_so_and_the_age_of_the_last_one_is_told() -> None:
    months = np.arange("2010-01", "2025-11", dtype="M8[M]").astype("M8[D]")
    source = SeriesInMemory(series={"m": Series(id="m", days=months, values=np.arange(len(months), dtype=float) % 7)})
    asked = question(SeriesRef(provider="fred", id="m"), "2025-10-30", "2026-10-26")
    forecast = asyncio.run(Auto().forecast(asked, Context(as_of=asked.as_of, series=source)))
    assert forecast.p["t0"] == 0
    assert "25 days before the due date" in forecast.rationale
    assert "4 days: no new value is expected by then" in forecast.rationale
