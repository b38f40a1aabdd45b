import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from tests.arena.live.site import START, Site

from foretell.arena.select import SelectionRules, volatilities
from foretell.arena.stages import collect
from foretell.data.markets.market import MarketRef, PricePoint, PricesUnavailable
from foretell.questions.as_of import AsOf


@dataclass(kw_only=True)
class Histories:
    """Prices by market."""

    paths: dict[str, list[float]]
    platform: str = "kalshi"
    asked: list[str] = field(default_factory=list[str])

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        self.asked.append(ref.id)
        if ref.id not in self.paths:
            raise PricesUnavailable(ref.id)
        path = self.paths[ref.id]
        return [PricePoint(at=as_of.at - timedelta(days=len(path) - n), p=p) for n, p in enumerate(path)]


def test_volatility_is_that_of_the_most_volatile_market(site: Site):
    site.exchange.offer("KXA-1", closes=START + timedelta(days=4), targets=("A", "B"))
    site.exchange.offer("KXB-1", closes=START + timedelta(days=4), targets=("A",))
    site.exchange.offer("KXC-1", closes=START + timedelta(days=4), targets=("A",))
    site.exchange.offer("KXFAR-1", closes=START + timedelta(days=400), targets=("A",))
    paths = {"KXA-1-A": [0.5] * 5, "KXA-1-B": [0.5, 0.6, 0.5, 0.6, 0.5], "KXB-1-A": [0.4, 0.5]}
    source = Histories(paths=paths)
    events = list(site.exchange.events_.values())
    by_event = asyncio.run(volatilities(events, SelectionRules(volatility=0.01), {"kalshi": source}, START))
    assert by_event == {"kalshi/KXA-1": pytest.approx(0.11547, abs=1e-4)}
    assert "KXFAR-1-A" not in source.asked


def test_events_with_low_volatility_are_rejected(site: Site):
    site.exchange.offer("KXA-1", closes=START + timedelta(days=4), targets=("A",))
    site.exchange.offer("KXB-1", closes=START + timedelta(days=4), targets=("A",))
    site.spec["select"] = {"volatility": 0.05}
    source = Histories(paths={"KXA-1-A": [0.2, 0.6, 0.2, 0.6], "KXB-1-A": [0.5, 0.5, 0.5, 0.51]})
    report = asyncio.run(collect(site.arena(prices={"kalshi": source}), START))
    assert report.chosen == ("kalshi/KXA-1",)
    assert report.rejected == {"volatility below the minimum": 1}
