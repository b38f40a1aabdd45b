"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.practice.markets.kalshi import KalshiCatalogue as KalshiCatalogue
from foretell.practice.markets.kalshi import PracticeKalshi as PracticeKalshi
from foretell.practice.markets.kalshi import SampleKalshiBook as SampleKalshiBook
from foretell.practice.markets.kalshi import SampleKalshiEvent as SampleKalshiEvent
from foretell.practice.markets.kalshi import SampleKalshiMarket as SampleKalshiMarket
from foretell.practice.markets.kalshi import Schema as Schema
from foretell.practice.markets.kalshi import kalshi_event_body as kalshi_event_body
from foretell.practice.markets.kalshi import kalshi_market_body as kalshi_market_body
from foretell.practice.markets.kalshi import kalshi_series_body as kalshi_series_body
from foretell.practice.markets.manifold import ManifoldCatalogue as ManifoldCatalogue
from foretell.practice.markets.manifold import PracticeManifold as PracticeManifold
from foretell.practice.markets.manifold import SampleManifoldBet as SampleManifoldBet
from foretell.practice.markets.metaculus import MetaculusCatalogue as MetaculusCatalogue
from foretell.practice.markets.metaculus import MetaculusInbox as MetaculusInbox
from foretell.practice.markets.metaculus import PracticeMetaculus as PracticeMetaculus
from foretell.practice.markets.metaculus import refusal as refusal
from foretell.practice.markets.polymarket import PolymarketCatalogue as PolymarketCatalogue
from foretell.practice.markets.polymarket import PracticePolymarket as PracticePolymarket
from foretell.practice.markets.polymarket import TokenTrades as TokenTrades
from foretell.practice.markets.prophet_arena import PracticeProphetArena as PracticeProphetArena
