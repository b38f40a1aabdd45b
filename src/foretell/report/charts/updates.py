"""A question that is watched: forecast, range and price over time, its updates by number, and every look at it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from foretell.frozen import frozen
from foretell.number_text import percent, percent_range, plural, signed
from foretell.report.charts.rulers import MARKET, OURS, RATE
from foretell.report.charts.svg import (
    LETTER,
    NARROW,
    WIDE,
    Chart,
    ChartScale,
    CsvRow,
    EndLabel,
    SeriesStyle,
    date_axis,
    date_scale,
    date_text,
    empty,
    end_labels,
    figure,
    line,
    polygon,
    polyline,
    rect,
    responsive,
    text,
    y_axis,
)
from foretell.report.markup import Markup, element, join, shorten

Points = Sequence[tuple[datetime, float]]
LABEL_ROOM = 140.0
"""Space to the right of the plot for the names of the lines."""
NUMBER_RADIUS = 9.0
MOVE_WIDTH, MOVE_HEIGHT = 130, 16


@frozen
class ShownUpdate:
    """A forecast at a time; the first one is when the question was asked."""

    at: datetime
    p: float
    ends: tuple[float, float] | None = None
    text: str = ""
    """What moved it."""


@frozen
class ShownLook:
    """A look at a question that did not change the forecast."""

    at: datetime
    text: str
    news: bool = False
    """Whether there was news that did not bear on the question."""


@frozen
class ForecastHistory:
    """What the chart of a watched question shows."""

    title: str
    updates: Sequence[ShownUpdate]
    prices: Points = ()
    looks: Sequence[ShownLook] = ()
    rate: float | None = None
    """The base rate."""
    now: datetime
    closes: datetime | None = None
    next_look: datetime | None = None
    outcome: bool | None = None


def updates_plot(shown: ForecastHistory) -> Chart:
    """Plot forecasts as steps with their ranges, the price, and below them a mark for each look."""
    if not shown.updates:
        return empty("No forecast yet")
    return responsive(_updates(shown, WIDE, 330), _updates(shown, NARROW, 300))


def _updates(shown: ForecastHistory, width: float, height: float) -> Chart:
    narrow = width == NARROW
    top, bottom, lane = 34.0, height - 78.0, height - 34.0
    room = 0.0 if narrow else LABEL_ROOM
    last = shown.now if shown.outcome is None or shown.closes is None else min(shown.now, shown.closes)
    last = max(last, shown.updates[-1].at)
    times = [shown.updates[0].at, last, *([shown.closes] if shown.closes else [])]
    x, y = date_scale(times, 48, width - room - 14), ChartScale(low=0, high=1, start=bottom, stop=top)

    def at(time: datetime) -> float:
        return x(time.timestamp())

    ends = [*(update.at for update in shown.updates[1:]), last]
    parts: list[Markup] = [y_axis(y, x.start, x.stop, count=4, percent=True), date_axis(x, bottom, top, width)]
    for update, end in zip(shown.updates, ends, strict=True):
        if update.ends is not None:
            low, high = update.ends
            tip = f"range {percent_range(low, high)}"
            parts.append(
                rect(at(update.at), y(high), at(end) - at(update.at), y(low) - y(high), f"f-{OURS} band", tip=tip)
            )
    prices = [(time, p) for time, p in shown.prices if time <= last]
    if len(prices) > 1:
        parts.append(polyline([(at(time), y(p)) for time, p in prices], f"l-{MARKET} line"))
    parts += [
        rect(at(time) - 3, y(p) - 3, 6, 6, f"f-{MARKET} hit", tip=f"market, {date_text(time)}: {percent(p)}")
        for time, p in prices
    ]
    if shown.rate is not None:
        parts.append(line(x.stop - 8, y(shown.rate), x.stop + 6, y(shown.rate), f"l-{RATE} bold"))
    steps: list[tuple[float, float]] = []
    for update, end in zip(shown.updates, ends, strict=True):
        steps += [(at(update.at), y(update.p)), (at(end), y(update.p))]
    parts.append(polyline(steps, f"l-{OURS} bold"))
    if shown.closes is not None and shown.closes > last:
        parts.append(line(at(last), top - 8, at(last), bottom, "l-ink thin dash"))
        parts.append(_today(x, at(last), top, inside=narrow))
    parts += [_number(number, update, at(update.at), y, bottom) for number, update in enumerate(shown.updates)]
    parts.append(_looks(shown, x, lane))
    if room:
        parts.append(_names(shown, prices, x, y, room))
    outcome = "" if shown.outcome is None else f", outcome {'yes' if shown.outcome else 'no'}"
    label = f"{shown.title}: forecast {percent(shown.updates[-1].p)} after {plural(len(shown.updates) - 1, 'update')}"
    head = text(4, 16, shorten(shown.title, int(width / 8)), "h", tip=shown.title)
    return figure(width, height, label + outcome, head, *parts, rows=_rows(shown))


def _today(x: ChartScale, place: float, top: float, *, inside: bool) -> Markup:
    """Name the line of today above it, or, on a phone, where the word would cover the title, beside it."""
    if not inside:
        return text(place, top - 12, "today", "s w m")
    fits = x.stop - place > 6 * LETTER
    return text(place + (5 if fits else -5), top + 11, "today", "s w" if fits else "s w r")


def _number(number: int, update: ShownUpdate, x: float, y: ChartScale, bottom: float) -> Markup:
    """Draw an update with its number; a hollow circle is the first forecast."""
    tip = f"{date_text(update.at)}: {percent(update.p)}{f', {update.text}' if update.text else ''}"
    title, middle = element("title", shorten(tip, 200)), y(update.p)
    if not number:
        return element("circle", title, cx=x, cy=middle, r="5", class_=f"f-paper l-{OURS} bold")
    digits = text(x, middle + 4, str(number), "xs w m f-paper")
    left, top, wide = x - NUMBER_RADIUS, middle - NUMBER_RADIUS, 2 * NUMBER_RADIUS
    disc = element("rect", title, x=left, y=top, width=wide, height=wide, rx=f"{NUMBER_RADIUS:g}", class_=f"f-{OURS}")
    return join(line(x, middle + NUMBER_RADIUS, x, bottom, "l-axis thin dots"), disc, digits)


def _looks(shown: ForecastHistory, x: ChartScale, y: float) -> Markup:
    """Draw a strip with a mark for each look: a bar that changed the forecast, a circle for other news, a tick."""
    parts = [text(4, y + 4, "looks", "s k")] if x.start > 40 else []
    for look in shown.looks:
        place, tip = x(look.at.timestamp()), f"{date_text(look.at)}: {shorten(look.text or 'nothing new', 160)}"
        if look.news:
            title = element("title", tip)
            parts.append(element("circle", title, cx=place, cy=y, r="3.5", class_=f"f-paper l-{OURS}"))
        else:
            parts.append(rect(place - 0.75, y - 6, 1.5, 12, "f-axis", tip=tip))
    for update in shown.updates:
        place = x(update.at.timestamp())
        parts.append(rect(place - 2, y - 8, 4, 16, f"f-{OURS}", tip=f"{date_text(update.at)}: {percent(update.p)}"))
    if shown.next_look is not None and shown.next_look.timestamp() <= x.high:
        place = x(max(shown.next_look, shown.now).timestamp())
        title = element("title", f"next look {date_text(shown.next_look)}")
        parts.append(element("circle", title, cx=place, cy=y, r="3.5", class_="no l-muted dots"))
    return join(*parts)


def _names(shown: ForecastHistory, prices: Points, x: ChartScale, y: ChartScale, room: float) -> Markup:
    """Draw the names of the lines to the right of the plot."""
    ours, names = shown.updates[-1].p, list[EndLabel]()
    if prices:
        style, price = SeriesStyle(MARKET, 0), prices[-1][1]
        names.append(EndLabel(name="market", style=style, x=x.stop, y=y(price), value=percent(price)))
    ours_style = SeriesStyle(OURS, 0)
    names.append(EndLabel(name="foretell", style=ours_style, x=x.stop, y=y(ours), value=percent(ours)))
    if shown.rate is not None:
        style = SeriesStyle(RATE, 0)
        value = percent(shown.rate)
        names.append(EndLabel(name="base rate", style=style, x=x.stop, y=y(shown.rate), value=value))
    return end_labels(names, x.stop + 14, room - LETTER, y.stop, y.start)


def _rows(shown: ForecastHistory) -> list[CsvRow]:
    rows: list[CsvRow] = []
    for update in shown.updates:
        low, high = update.ends or (None, None)
        row = {"at": update.at.isoformat(), "kind": "forecast", "p": update.p, "low": low, "high": high}
        rows.append({**row, "text": update.text})
    rows += [{"at": at.isoformat(), "kind": "price", "p": p} for at, p in shown.prices]
    return rows + [{"at": look.at.isoformat(), "kind": "look", "text": look.text} for look in shown.looks]


def move_ruler(before: float, after: float) -> Chart:
    """Draw an arrow from one probability to another between 0 and 100 %, for a table row."""
    x, middle = ChartScale(low=0, high=1, start=3, stop=MOVE_WIDTH - 3), MOVE_HEIGHT / 2
    colour, way = ("c", -1) if after >= before else ("b", 1)
    start, end = x(before), x(after)
    head = min(5.0, abs(end - start))
    parts = [rect(x(0), middle - 2, x(1) - x(0), 4, "f-grid")]
    parts.append(line(start, middle - 5, start, middle + 5, f"l-{colour} line"))
    parts.append(line(start, middle, end + way * head, middle, f"l-{colour} bold"))
    parts.append(
        polygon([(end, middle), (end + way * head, middle - 4), (end + way * head, middle + 4)], f"f-{colour}")
    )
    label = f"{percent(before)} to {percent(after)}, {signed(100 * (after - before), 0)} points"
    return replace(figure(MOVE_WIDTH, MOVE_HEIGHT, label, *parts), small=True)
