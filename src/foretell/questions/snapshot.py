"""What a market showed at one moment."""

from dataclasses import dataclass

from foretell.questions.clock import Moment, instant


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Quotes of one binary market at one moment, in dollars per one-dollar contract.

    >>> Snapshot(at=instant("2025-06-26"), yes_ask=0.62, no_ask=0.42).price
    0.596...
    """

    at: Moment
    last_price: float | None = None
    yes_bid: float | None = None
    yes_ask: float | None = None
    no_ask: float | None = None
    volume: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", instant(self.at))
        for name in ("last_price", "yes_bid", "yes_ask", "no_ask"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} = {value} is outside [0, 1]")

    @property
    def price(self) -> float | None:
        """The implied probability of yes: the two asks normalised to one, else the last trade."""
        if self.yes_ask is not None and self.no_ask is not None and self.yes_ask + self.no_ask > 0:
            return self.yes_ask / (self.yes_ask + self.no_ask)
        return self.last_price
