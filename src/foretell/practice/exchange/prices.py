"""Traders who half know the truth: prices with noise, lag, overreaction and a liking for longshots."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.practice.exchange.chance import HOUR, Floats, logit
from foretell.practice.exchange.events import SimulatedEvent

LONGSHOTS = 0.88
"""Prices in logits are so much of the truth: what is unlikely costs too much, what is likely too little."""
OVERREACTION = 0.35
"""How much of the change of the last hours is added once more."""
RECENT, LAG = 6, 3
"""Hours that count as recent, and that half of the traders are behind."""
MEMORY = 0.97
"""Of the noise, from hour to hour."""
NOISE, THIN_NOISE = 0.4, 0.8
SHARED = {"ladder": 0.95, "weekly": 0.95, "race": 0.0, "yes-no": 0.0}
"""Share of the noise that moves all markets of an event together."""
OVERROUND = 1.02
"""What the prices of a race sum to."""
SELDOM = 0.15
"""Share of hours in which somebody trades where hardly anybody does."""
EMPTY = 0.12
"""Share of hours without any order in such a market."""


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """Quotes and trades of an event at every hour of trading: a row for each market."""

    opens: int
    bid: Floats
    ask: Floats
    last: Floats
    """Zero before the first trade."""
    volume: Floats
    """Contracts so far."""
    interest: Floats

    def place(self, second: float) -> int:
        """The hour that stands for a moment; −1 before the opening."""
        return int(min((second - self.opens) // HOUR, self.bid.shape[1] - 1)) if second >= self.opens else -1


def book_of(event: SimulatedEvent) -> PriceBook:
    """What traders make of an event."""
    hours = event.hours[event.hours < event.life.ends]
    p = event.p[:, : len(hours)]
    middle = _middle(event, p, hours)
    half = 0.004 + 0.5 / np.sqrt(event.traded)
    bid = np.clip(np.floor(100 * (middle - half)), 0, 98) / 100
    ask = np.clip(np.ceil(100 * (middle + half)), 2, 100) / 100
    empty = _uniform(event, hours, "empty") < EMPTY if event.thin else np.zeros_like(p, dtype=bool)
    traded = _traded(event, p, hours)
    side = _uniform(event, hours, "side") < 0.5
    last = _carried(np.where(side, np.maximum(bid, 0.01), np.minimum(ask, 0.99)), traded > 0)
    volume = np.cumsum(traded, axis=1)
    return PriceBook(
        opens=event.life.opens,
        bid=np.where(empty, 0.0, bid),
        ask=np.where(empty, 1.0, ask),
        last=last,
        volume=volume,
        interest=np.floor(0.45 * volume),
    )


def _middle(event: SimulatedEvent, p: Floats, hours: Floats) -> Floats:
    known = logit(p)
    seen = 0.5 * known + 0.5 * _ago(known, LAG) + OVERREACTION * (known - _ago(known, RECENT))
    size = THIN_NOISE if event.thin else NOISE
    shared = SHARED[event.kind]
    own = np.array([_wandering(event, hours, row) for row in range(len(p))])
    noise = np.sqrt(shared) * _wandering(event, hours, -1)[None, :] + np.sqrt(1 - shared) * own
    middle = 1 / (1 + np.exp(-(LONGSHOTS * seen + size * noise)))
    if event.exclusive:
        middle = OVERROUND * middle / middle.sum(axis=0)
    return np.clip(middle, 0.005, 0.995)


def _wandering(event: SimulatedEvent, hours: Floats, row: int) -> Floats:
    """Noise that stays for a day or so: x ← MEMORY · x + √(1 − MEMORY²) · z."""
    drawn = event.chance.hourly(hours, event.number, "noise", row)
    steps = np.sqrt(1 - MEMORY**2) * drawn
    steps[0] = drawn[0]
    faded = MEMORY ** np.arange(len(hours))
    return np.asarray(faded * np.cumsum(steps / faded), dtype=np.float64)


def _traded(event: SimulatedEvent, p: Floats, hours: Floats) -> Floats:
    """Contracts of every hour: more where the answer is open."""
    length = max(1.0, (event.life.closes - event.life.opens) / HOUR)
    eager = 0.5 + 3.0 * p * (1 - p)
    amount = -np.log(np.maximum(_uniform(event, hours, "amount"), 1e-12)) * event.traded / length * eager
    if event.thin:
        amount = np.where(_uniform(event, hours, "trade") < SELDOM, amount / SELDOM, 0.0)
    return np.floor(amount)


def _uniform(event: SimulatedEvent, hours: Floats, what: str) -> Floats:
    rows = range(len(event.tickers))
    return np.array([event.chance.hourly(hours, event.number, what, row, normal=False) for row in rows])


def _ago(values: Floats, hours: int) -> Floats:
    """Values some hours before; the first ones stand for what was before them."""
    places = np.maximum(np.arange(values.shape[1]) - hours, 0)
    return values[:, places]


def _carried(prices: Floats, traded: npt.NDArray[np.bool_]) -> Floats:
    """The price of the last trade at every hour."""
    places = np.where(traded, np.arange(prices.shape[1])[None, :], -1)
    latest = np.maximum.accumulate(places, axis=1)
    return np.where(latest >= 0, np.take_along_axis(prices, np.maximum(latest, 0), axis=1), 0.0)
