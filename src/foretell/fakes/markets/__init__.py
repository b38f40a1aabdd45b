"""Stand-ins for prediction markets. Each plants a text of your choice wherever a real answer would tell the future."""

from foretell.fakes.markets.inbox import Mishap, Mishaps
from foretell.fakes.markets.kalshi import FakeBook, FakeKalshi
from foretell.fakes.markets.kalshi_catalogue import KalshiCatalogue
from foretell.fakes.markets.kalshi_wire import FakeEvent, FakeMarket, event_body, market_body
from foretell.fakes.markets.manifold import FakeBet, FakeManifold
from foretell.fakes.markets.manifold_catalogue import FakeAnswer, FakeContract, ManifoldCatalogue, contract_body
from foretell.fakes.markets.metaculus import FakeCrowd, FakeMetaculus, FakeQuestion
from foretell.fakes.markets.metaculus_catalogue import FakeAsked, FakeScale, MetaculusCatalogue, asked_body, post_body
from foretell.fakes.markets.metaculus_inbox import MetaculusInbox
from foretell.fakes.markets.polymarket import FakeListing, FakePolymarket
from foretell.fakes.markets.polymarket_catalogue import (
    FakeBinary,
    FakeGroup,
    PolymarketCatalogue,
    binary_body,
    group_body,
)
from foretell.fakes.markets.prophet_arena import FakeArena, arena_body
from foretell.fakes.markets.trouble import Drift, Trouble

__all__ = [
    "Drift",
    "FakeAnswer",
    "FakeArena",
    "FakeAsked",
    "FakeBet",
    "FakeBinary",
    "FakeBook",
    "FakeContract",
    "FakeCrowd",
    "FakeEvent",
    "FakeGroup",
    "FakeKalshi",
    "FakeListing",
    "FakeManifold",
    "FakeMarket",
    "FakeMetaculus",
    "FakePolymarket",
    "FakeQuestion",
    "FakeScale",
    "KalshiCatalogue",
    "ManifoldCatalogue",
    "MetaculusCatalogue",
    "MetaculusInbox",
    "Mishap",
    "Mishaps",
    "PolymarketCatalogue",
    "Trouble",
    "arena_body",
    "asked_body",
    "binary_body",
    "contract_body",
    "event_body",
    "group_body",
    "market_body",
    "post_body",
]
