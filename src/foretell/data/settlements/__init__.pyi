"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.data.settlements.kalshi import KalshiSettlements as KalshiSettlements
from foretell.data.settlements.manifold import ManifoldSettlements as ManifoldSettlements
from foretell.data.settlements.metaculus import MetaculusResolution as MetaculusResolution
from foretell.data.settlements.metaculus import MetaculusSettlements as MetaculusSettlements
from foretell.data.settlements.polymarket import PolymarketSettlements as PolymarketSettlements
from foretell.data.settlements.prophet_arena import ProphetArenaSettlements as ProphetArenaSettlements
from foretell.data.settlements.settlement import SettledOutcome as SettledOutcome
from foretell.data.settlements.settlement import SettlementTarget as SettlementTarget
