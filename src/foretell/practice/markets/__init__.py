"""Stand-ins for prediction markets. Each plants a text of your choice wherever a real answer would tell the future."""

from foretell.practice.markets.faults import FieldDrift, InboxFault, InboxFaults, MarketFaults
from foretell.practice.markets.kalshi import (
    FakeBook,
    FakeEvent,
    FakeKalshi,
    FakeMarket,
    KalshiCatalogue,
    event_body,
    market_body,
)
from foretell.practice.markets.manifold import (
    FakeAnswer,
    FakeBet,
    FakeContract,
    FakeManifold,
    ManifoldCatalogue,
    contract_body,
)
from foretell.practice.markets.metaculus import (
    FakeCommunityPrediction,
    FakeForecastedQuestion,
    FakeMetaculus,
    FakeMetaculusQuestion,
    FakeScale,
    MetaculusCatalogue,
    MetaculusInbox,
    post_body,
    question_body,
)
from foretell.practice.markets.polymarket import (
    FakeBinary,
    FakeGroup,
    FakeListing,
    FakePolymarket,
    PolymarketCatalogue,
    binary_body,
    group_body,
)
from foretell.practice.markets.prophet_arena import FakeProphetArena, arena_body

__all__ = [
    "FakeAnswer",
    "FakeBet",
    "FakeBinary",
    "FakeBook",
    "FakeCommunityPrediction",
    "FakeContract",
    "FakeEvent",
    "FakeForecastedQuestion",
    "FakeGroup",
    "FakeKalshi",
    "FakeListing",
    "FakeManifold",
    "FakeMarket",
    "FakeMetaculus",
    "FakeMetaculusQuestion",
    "FakePolymarket",
    "FakeProphetArena",
    "FakeScale",
    "FieldDrift",
    "InboxFault",
    "InboxFaults",
    "KalshiCatalogue",
    "ManifoldCatalogue",
    "MarketFaults",
    "MetaculusCatalogue",
    "MetaculusInbox",
    "PolymarketCatalogue",
    "arena_body",
    "binary_body",
    "contract_body",
    "event_body",
    "group_body",
    "market_body",
    "post_body",
    "question_body",
]
