"""One market all the way: listed while open, priced as of a day, and settled when it is over."""

from dataclasses import replace
from typing import Any

from fakes.markets import FakeKalshi
from foretell.data.markets.kalshi import KalshiClient, KalshiEvents, KalshiPrices
from foretell.data.markets.listing import ListingFilter
from foretell.data.markets.prices import market_ref
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    SampleKalshiBook,
    SampleKalshiEvent,
    SampleKalshiMarket,
    kalshi_event_body,
)
from foretell.questions.as_of import AsOf, instant

NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
OPEN = SampleKalshiMarket(ticker="KXRAIN-26NOV05-Y", label="Rain", bid=0.6, ask=0.64)


def test_the_same_target_everywhere(settled: Any) -> None:
    event = SampleKalshiEvent(ticker="KXRAIN-26NOV05", series="KXRAIN", title="Rain?", markets=(OPEN,))
    over = replace(event, markets=(replace(OPEN, status="finalized", result="yes", settled="2026-11-06T00:00:00Z"),))
    book = SampleKalshiBook(quotes=((int(instant("2026-10-20").timestamp()), 0.6, 0.64),))
    fake = FakeKalshi({OPEN.ticker: book}).having(KalshiCatalogue([kalshi_event_body(event)]))

    class Way:
        platform = "kalshi"

        def __init__(self, http: Any, url: str, tell: Any) -> None:
            self.client, self.tell = KalshiClient(http=http, host=url, per_second=1e4), tell

        async def settlements(self, _: Any) -> Any:
            (listed,) = await KalshiEvents(self.client).events(ListingFilter(as_of=NOW)).all()
            question = listed.question
            ref = market_ref(question, question.targets[0])
            assert ref is not None
            assert (await KalshiPrices(self.client).prices(ref, AsOf(at="2026-10-30T00:00:00Z"), 5))[-1].p == 0.62
            source = KalshiSettlements(self.client, tell=self.tell)
            assert await source.settlements([question]) == []
            fake.catalogue.events = [kalshi_event_body(over)]
            return await source.settlements([question])

    found = settled(fake.server(), Way, [])
    assert (found[OPEN.ticker].outcome, found[OPEN.ticker].resolved_at) == (1, instant("2026-11-06"))
