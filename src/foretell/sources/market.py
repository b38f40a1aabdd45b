"""Prices of prediction markets as they stood at a moment, without anything that became known later."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from foretell.questions.clock import AsOf


@dataclass(frozen=True, kw_only=True)
class MarketRef:
    """A market by its platform and the platform's own id."""

    platform: str
    id: str


@dataclass(frozen=True, kw_only=True)
class PricePoint:
    """The implied probability of yes at a moment."""

    at: datetime
    p: float


class PricesUnavailable(Exception):
    """No price is known for the market at the cutoff, and why."""


class PriceSource(Protocol):
    """Supplies price histories up to a cutoff. Status, volume, close time and result never leave it in a backtest."""

    @property
    def platform(self) -> str:
        """The platform it reads."""
        ...

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Prices of the last `days` days before the cutoff, oldest first, or `PricesUnavailable`."""
        ...
