"""One market over time: its price, what was forecast at each moment, and how it came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from foretell.arena.report.markup import Markup, join, shorten
from foretell.arena.report.scales import Scale
from foretell.arena.report.svg import Figure, empty, figure, line, mark, polyline, text

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 760, 300, 44, 30, 40, 190
MOST = 10
"""Forecasters in one picture; more cannot be told apart."""

Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, kw_only=True)
class MarketHistory:
    """What is known about one market."""

    title: str
    prices: Points
    """Oldest first."""
    forecasts: Mapping[str, Points] = field(default_factory=dict[str, Points])
    """By forecaster."""
    outcome: float | None = None
    closes: datetime | None = None


def history_plot(market: MarketHistory) -> Figure:
    """The price as a line in steps, each forecaster's numbers with a mark of their own."""
    shown = dict(list(market.forecasts.items())[:MOST])
    times = [at for at, _ in market.prices] + [at for points in shown.values() for at, _ in points]
    if not times:
        return empty("No price and no forecast yet")
    x = _time_scale([*times, *([market.closes] if market.closes else [])])
    y = Scale(low=0, high=1, start=HEIGHT - BOTTOM, stop=TOP)
    return figure(
        WIDTH,
        HEIGHT,
        f"{market.title}: price and {len(shown)} forecasters over time",
        text(4, 16, shorten(market.title, 90), "h", tip=market.title),
        _frame(x, y),
        _prices(market.prices, x, y),
        *(_forecasts(name, points, i, x, y) for i, (name, points) in enumerate(shown.items())),
        join(_outcome(market, y) if market.outcome is not None else None),
        join(_left_out(len(market.forecasts) - MOST) if len(market.forecasts) > MOST else None),
    )


def _time_scale(times: Sequence[datetime]) -> Scale:
    low, high = min(times).timestamp(), max(times).timestamp()
    return Scale(low=low, high=max(high, low + 3600), start=LEFT, stop=WIDTH - RIGHT)


def _frame(x: Scale, y: Scale) -> Markup:
    parts: list[Markup] = []
    for p in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [line(LEFT, y(p), WIDTH - RIGHT, y(p), "l-grid thin"), text(LEFT - 6, y(p) + 4, f"{p:.0%}", "s r k")]
    for step in range(5):
        at = x.low + (x.high - x.low) * step / 4
        parts.append(text(x(at), HEIGHT - BOTTOM + 16, _day(at, x.high - x.low), "s m k"))
    return join(*parts)


def _day(stamp: float, span: float) -> str:
    at = datetime.fromtimestamp(stamp, UTC)
    return at.strftime("%d %b" if span > 3 * 86400 else "%d %b %H:%M")


def _prices(prices: Points, x: Scale, y: Scale) -> Markup:
    """A price holds until the next one."""
    places: list[tuple[float, float]] = []
    for at, p in prices:
        place = (x(at.timestamp()), y(p))
        places += [(place[0], places[-1][1]), place] if places else [place]
    key = text(WIDTH - RIGHT + 22, TOP + 4, "price", "s")
    drawn = polyline(places, "l-ink bold") if len(places) > 1 else None
    return join(drawn, line(WIDTH - RIGHT + 6, TOP, WIDTH - RIGHT + 18, TOP, "l-ink bold"), key)


def _forecasts(name: str, points: Points, series: int, x: Scale, y: Scale) -> Markup:
    colour = "abcde"[series % 5]
    places = [(x(at.timestamp()), y(p)) for at, p in points]
    row = TOP + 18 * (series + 1)
    return join(
        polyline(places, f"l-{colour} thin") if len(places) > 1 else None,
        *(
            mark(*place, series, tip=f"{name}, {at:%Y-%m-%d %H:%M}: {p:.1%}")
            for place, (at, p) in zip(places, points, strict=True)
        ),
        mark(WIDTH - RIGHT + 12, row, series),
        text(WIDTH - RIGHT + 22, row + 4, shorten(name, 24), "s", tip=name),
    )


def _outcome(market: MarketHistory, y: Scale) -> Markup:
    p = market.outcome or 0.0
    told = {1.0: "came true", 0.0: "did not"}.get(p, f"paid {p:g}")
    return join(
        line(LEFT, y(p), WIDTH - RIGHT, y(p), "l-ink thin dash"),
        text(WIDTH - RIGHT - 4, y(p) + (14 if p > 0.5 else -6), told, "s r w"),
    )


def _left_out(more: int) -> Markup:
    return text(WIDTH - RIGHT + 6, TOP + 18 * (MOST + 1) + 4, f"and {more} more", "s k")
