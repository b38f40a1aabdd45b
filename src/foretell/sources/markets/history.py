"""Price points made into a history that ends at the cutoff."""

from collections.abc import Iterable
from datetime import date, timedelta

from foretell.questions.clock import AsOf
from foretell.sources.market import MarketRef, PricePoint, PricesUnavailable


def window_start(as_of: AsOf, days: int) -> int:
    """The Unix second at which the last `days` days before the cutoff begin."""
    if days < 1:
        raise ValueError(f"days must be at least 1, got {days}")
    return int((as_of.at - timedelta(days=days)).timestamp())


def daily(ref: MarketRef, points: Iterable[PricePoint], as_of: AsOf, days: int) -> list[PricePoint]:
    """The last point of each day (UTC) of the window, oldest first, none after the cutoff.

    If nothing happened within the window, the one price that still stood. Of points with the same moment the later
    in the list wins. Nothing at all raises `PricesUnavailable`.
    """
    known = sorted((point for point in points if as_of.admits(point.at)), key=lambda point: point.at)
    if not known:
        raise PricesUnavailable(f"{ref.platform} shows no price of {ref.id} at or before {as_of}")
    since = window_start(as_of, days)
    by_day: dict[date, PricePoint] = {}
    for point in known:
        if point.at.timestamp() >= since:
            by_day[point.at.date()] = point
    return list(by_day.values()) or [known[-1]]
