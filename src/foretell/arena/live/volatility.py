"""How much an event's prices move, for rules that want lively markets."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import stdev

from foretell.arena.live.selection import Rules, refusal
from foretell.questions.clock import AsOf
from foretell.sources.http import SourceError
from foretell.sources.listing import ListedEvent
from foretell.sources.market import PricePoint, PriceSource, PricesUnavailable
from foretell.sources.markets.reference import market_ref

DAYS = 14
FEWEST = 3
"""Daily changes, to speak of a spread."""
AT_ONCE = 4
LOOKED_AT = 4
"""Markets of an event whose history is read: those traded most."""


async def volatilities(
    events: Sequence[ListedEvent], rules: Rules, prices: Mapping[str, PriceSource], now: datetime
) -> dict[str, float]:
    """By event, of those that fit all other rules; absent where no history is told."""
    slots = asyncio.Semaphore(AT_ONCE)
    as_of = AsOf(at=now, mode="live")

    async def one(event: ListedEvent) -> tuple[str, float | None]:
        async with slots:
            return event.question.id, await _of(event, prices[event.platform], as_of)

    fitting = [one for one in events if one.platform in prices and refusal(one, rules, now) is None]
    found = await asyncio.gather(*map(one, fitting))
    return {id: value for id, value in found if value is not None}


async def _of(event: ListedEvent, source: PriceSource, as_of: AsOf) -> float | None:
    """That of its liveliest market."""

    def traded(place: int) -> float:
        shot = event.question.targets[place].snapshot
        return -(shot.volume or 0.0) if shot is not None else 0.0

    found: list[float] = []
    for place in sorted(range(len(event.question.targets)), key=traded)[:LOOKED_AT]:
        ref = market_ref(event.question, event.question.targets[place])
        if ref is None:
            continue
        try:
            points = await source.prices(ref, as_of, DAYS)
        except (PricesUnavailable, SourceError):
            continue
        if (value := volatility(points)) is not None:
            found.append(value)
    return max(found, default=None)


def volatility(points: Sequence[PricePoint]) -> float | None:
    """Standard deviation of the changes from one day's last price to the next.

    >>> from foretell.questions.clock import instant
    >>> days = [PricePoint(at=instant(f"2026-01-0{n}"), p=p) for n, p in enumerate((0.5, 0.6, 0.5, 0.6), 1)]
    >>> round(volatility(days), 4)
    0.1155
    """
    by_day = {point.at.date(): point.p for point in points}
    values = [by_day[day] for day in sorted(by_day)]
    changes = [after - before for before, after in pairwise(values)]
    return stdev(changes) if len(changes) >= FEWEST else None
