"""Candlesticks of a book in Kalshi's form. A candle is shown once its period is over, and not before."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from foretell.fakes.exchange.chance import HOUR, Floats
from foretell.fakes.exchange.traders import Book
from foretell.fakes.markets.kalshi import DAY_MINUTES, NEW_YORK_MIDNIGHT
from foretell.fakes.markets.kalshi_wire import Schema

PERIODS = (1, 60, DAY_MINUTES)
MOST = 10_000


class CannotShow(ValueError):
    """The request asks for what no exchange would send."""


def candles(
    book: Book, row: int, query: Mapping[str, str], now: float, *, schema: Schema, historical: bool = False
) -> list[dict[str, Any]]:
    """All candles of a market that end within the window asked for, and by now."""
    minutes = int(query["period_interval"])
    if minutes not in PERIODS:
        raise CannotShow("period_interval")
    step = minutes * 60
    offset = NEW_YORK_MIDNIGHT if minutes == DAY_MINUTES else 0
    start, end = max(int(query["start_ts"]), book.opens + 1), min(int(query["end_ts"]), math.floor(now), _last(book))
    first = start + (offset - start) % step
    ends = list(range(first, end + 1, step))
    if len(ends) > MOST:
        raise CannotShow("too_many_candlesticks")
    if query.get("include_latest_before_start") == "true" and first - step > book.opens:
        ends.insert(0, first - step)
    write = _written if schema == "dollars" else _in_cents
    suffix = "_dollars" if schema == "dollars" and not historical else ""
    return [_candle(book, row, (second - step, second), suffix, write) for second in ends]


def _last(book: Book) -> int:
    """Nothing is traded after the last hour of the book."""
    return book.opens + HOUR * book.bid.shape[1] + 24 * HOUR


def _candle(book: Book, row: int, span: tuple[int, int], suffix: str, write: Any) -> dict[str, Any]:
    """From after the first second of a span to its last."""
    begin, close = book.place(span[0]), book.place(span[1])
    # What stood at the beginning of the period is its opening quote; before the market opened there was none.
    places = np.arange(max(begin, 0), max(close, 0) + 1)
    shown = {
        "end_period_ts": span[1],
        "yes_bid": _quotes(book.bid[row, places], suffix, write),
        "yes_ask": _quotes(book.ask[row, places], suffix, write),
        "price": _trades(book, row, (begin, close), suffix, write),
    }
    before = float(book.volume[row, begin]) if begin >= 0 else 0.0
    traded, interest = float(book.volume[row, close]) - before, float(book.interest[row, close])
    if not suffix:
        return shown | {"volume": round(traded), "open_interest": round(interest)}
    return shown | {"volume_fp": f"{traded:.2f}", "open_interest_fp": f"{interest:.2f}"}


def _quotes(values: Floats, suffix: str, write: Any) -> dict[str, Any]:
    told = {"open": values[0], "low": values.min(), "high": values.max(), "close": values[-1]}
    return {f"{name}{suffix}": write(float(value)) for name, value in told.items()}


def _trades(book: Book, row: int, span: tuple[int, int], suffix: str, write: Any) -> dict[str, Any]:
    """Prices of the period's trades; nothing but the previous price where nobody traded."""
    begin, close = span
    volume = book.volume[row]
    traded = [at for at in range(begin + 1, close + 1) if volume[at] > (volume[at - 1] if at else 0.0)]
    previous = float(book.last[row, begin]) if begin >= 0 else 0.0
    told: dict[str, Any] = {"previous": write(previous) if previous else None}
    names = ("open", "low", "high", "close", "mean")
    if not traded:
        return {f"{name}{suffix}": value for name, value in (told | dict.fromkeys(names)).items()}
    prices = book.last[row, traded]
    values = (prices[0], prices.min(), prices.max(), prices[-1], prices.mean())
    told |= {name: write(float(value)) for name, value in zip(names, values, strict=True)}
    return {f"{name}{suffix}": value for name, value in told.items()}


def _written(dollars: float) -> str:
    return f"{dollars:.4f}"


def _in_cents(dollars: float) -> int:
    return round(dollars * 100)
