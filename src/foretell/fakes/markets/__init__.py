"""Stand-ins for prediction markets. Each plants a text of your choice wherever a real answer would tell the future."""

from foretell.fakes.markets.kalshi import FakeBook, FakeKalshi
from foretell.fakes.markets.manifold import FakeBet, FakeManifold
from foretell.fakes.markets.metaculus import FakeCrowd, FakeMetaculus, FakeQuestion
from foretell.fakes.markets.polymarket import FakeListing, FakePolymarket

__all__ = [
    "FakeBet",
    "FakeBook",
    "FakeCrowd",
    "FakeKalshi",
    "FakeListing",
    "FakeManifold",
    "FakeMetaculus",
    "FakePolymarket",
    "FakeQuestion",
]
