"""The newest price before the cutoff, read from a market's history by forecasters that ask no model."""

import asyncio
from pathlib import Path

import pytest

from fakes.markets import FakeManifold
from foretell.data.http import HttpLimits, SourceError
from foretell.data.series.series import SeriesUnavailable
from foretell.forecasters.base_rates.baselines import MarketPriceForecaster
from foretell.forecasters.forecaster import Context
from foretell.practice.markets.manifold import SampleManifoldBet
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, SeriesRef, Snapshot, Target
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import Settings

CONTRACT = "OT9THV4AtcSgnFQPHh1c"
DAYS = {"2026-02-01": 0.3, "2026-02-09": 0.45, "2026-02-12": 0.9}
BETS = tuple(
    SampleManifoldBet(id=day, at_ms=int(instant(day).timestamp() * 1000), after=after) for day, after in DAYS.items()
)
FROZEN = Question(
    id=f"manifold/{CONTRACT}",
    source="manifold",
    text="?",
    due=instant("2026-02-10"),
    targets=(Target(id="yes", snapshot=Snapshot(at=instant("2026-01-31"), last_price=0.2)),),
)


def test_market_price_is_the_newest_in_the_history(tmp_path: Path) -> None:
    async def market_price() -> tuple[str, float]:
        async with FakeManifold({CONTRACT: BETS}).server() as server:
            settings = Settings(home=tmp_path, addresses={"manifold": f"{server.url}/v0"})
            async with SeriesOnDemand(settings) as source:
                context = Context(as_of=FROZEN.as_of, series=source)
                forecast = await MarketPriceForecaster().forecast(FROZEN, context)
                with pytest.raises(SeriesUnavailable):
                    await source.fetch(SeriesRef(provider="prophet_arena", id="x"), AsOf.day("2026-02-10"))
                return forecast.rationale, forecast.p["yes"]

    words, p = asyncio.run(market_price())
    assert p == 0.45, "neither the frozen price nor one of after the due date"
    assert "1 day old" in words


def test_unreachable_source_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def read() -> None:
        settings = Settings(home=tmp_path, addresses={"dbnomics": "http://127.0.0.1:9/v22"})
        async with SeriesOnDemand(settings, HttpLimits(attempts=1)) as source:
            for name in ("AMECO/ZUTN/a", "AMECO/ZUTN/b"):
                with pytest.raises((SourceError, SeriesUnavailable)):
                    await source.fetch(SeriesRef(provider="dbnomics", id=name), AsOf.day("2026-02-10"))

    asyncio.run(read())
    assert [record.message.startswith("dbnomics could not be read") for record in caplog.records] == [True]
