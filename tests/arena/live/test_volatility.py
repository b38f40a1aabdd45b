import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from tests.arena.live.site import START, Site

from foretell.arena import SelectionRules
from foretell.arena.select import volatilities
from foretell.arena.stages import collect
from foretell.data.markets import MarketRef, PricePoint, PricesUnavailable
from foretell.questions import AsOf


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


def test_the_liveliest_market_counts(site: Site):
    site.exchange.offer("KXA-1", closes=START + timedelta(days=4), targets=("A", "B"))
    site.exchange.offer("KXB-1", closes=START + timedelta(days=4), targets=("A",))
    site.exchange.offer("KXC-1", closes=START + timedelta(days=4), targets=("A",))
    site.exchange.offer("KXFAR-1", closes=START + timedelta(days=400), targets=("A",))
    paths = {"KXA-1-A": [0.5] * 5, "KXA-1-B": [0.5, 0.6, 0.5, 0.6, 0.5], "KXB-1-A": [0.4, 0.5]}
    source = Histories(paths=paths)
    events = list(site.exchange.events_.values())
    found = asyncio.run(volatilities(events, SelectionRules(volatility=0.01), {"kalshi": source}, START))
    assert found == {"kalshi/KXA-1": pytest.approx(0.11547, abs=1e-4)}
    assert "KXFAR-1-A" not in source.asked


def test_calm_events_are_left_out(site: Site):
    site.exchange.offer("KXA-1", closes=START + timedelta(days=4), targets=("A",))
    site.exchange.offer("KXB-1", closes=START + timedelta(days=4), targets=("A",))
    site.spec["select"] = {"volatility": 0.05}
    source = Histories(paths={"KXA-1-A": [0.2, 0.6, 0.2, 0.6], "KXB-1-A": [0.5, 0.5, 0.5, 0.51]})
    found = asyncio.run(collect(site.arena(prices={"kalshi": source}), START))
    assert found.chosen == ("kalshi/KXA-1",)
    assert found.rejected == {"volatility below the minimum": 1}
