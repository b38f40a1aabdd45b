"""Inline SVG: the `Chart` value that all chart functions return, and the basic shapes they share.

Colours are classes over CSS variables, so one figure serves light, dark and print. Nothing has a style attribute,
because a page may forbid them in its security policy. A figure contains its numbers as CSV, so that a page, a report, a
notebook and a standalone file can offer them for download. The `<title>` of an element describes it; browsers show it
on hover, and `static/figures.js` shows it by mouse and keyboard.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from markupsafe import escape

from foretell.data.untrusted import for_csv
from foretell.frozen import frozen
from foretell.questions.errors import InputError, MissingExtra
from foretell.report.figure_page import figure_document
from foretell.report.markup import Markup, clean, compact, element, join, shorten
from foretell.report.theme import PALETTE, SERIES, figure_rules, figure_style
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, MARKET_PRICE

# Scales from numbers and dates to positions: linear, logarithmic and calendar scales with round ticks.


@frozen
class ChartScale:
    """Maps [low, high] to the pixels [start, stop], on a linear or logarithmic scale."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the position of the value; values outside the scale are put on its edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, count: int = 5) -> tuple[float, ...]:
        """Return about `count` round numbers within the scale."""
        return log_ticks(self.low, self.high, count) if self.log else nice_ticks(self.low, self.high, count)


def covering(
    values: Iterable[float], start: float, stop: float, *, within: tuple[float, float] | None = None, log: bool = False
) -> ChartScale:
    """Return a scale that shows every finite value with a small margin, but nothing outside `within`.

    >>> scale = covering([2.0, 4.0, math.nan], 0, 100)
    >>> scale.low < 2 < 4 < scale.high
    True
    """
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 10.0) if log else (0.0, 1.0)
    if log:
        air = max((high / low) ** 0.06, 1.3)
        return ChartScale(low=low / air, high=high * air, start=start, stop=stop, log=True)
    air = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
    low, high = low - air, high + air
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
    return ChartScale(low=low, high=high, start=start, stop=stop)


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Return about `count` multiples of 1, 2, 2.5 or 5 times a power of ten inside [low, high].

    >>> nice_ticks(0, 1)
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    >>> nice_ticks(61.3, 84.2)
    (65.0, 70.0, 75.0, 80.0)
    """
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.75)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(i * step, 12) + 0.0 for i in range(first, last + 1))


def log_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Return the powers of ten inside [low, high], with their multiples by 2 and 5 if there is room for them.

    >>> log_ticks(0.04, 30)
    (0.1, 1.0, 10.0)
    >>> log_ticks(0.4, 3)
    (0.5, 1.0, 2.0)
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for marks in ((1, 2, 5), (1,)):
        ticks = tuple(round(m * 10.0**k, 12) for k in decades for m in marks if low <= m * 10.0**k <= high)
        if len(ticks) <= count:
            break
    return ticks[:: max(1, math.ceil(len(ticks) / count))] or (low,)


def tick_label(value: float) -> str:
    """Format a tick without trailing zeros.

    >>> tick_label(0.25), tick_label(70.0), tick_label(-1.5), tick_label(20000.0)
    ('0.25', '70', '−1.5', '20k')
    """
    if abs(value) >= 10_000:
        return f"{compact(value / 1000).replace('-', '−')}k"
    return compact(value, 6).replace("-", "−")


# Dates: a scale over seconds since 1970 with ticks where days, weeks, months and years begin.

HOUR, DAY = 3600.0, 86_400.0
_HOURS = (1, 2, 3, 6, 12)
_DAYS = (1, 2, 7, 14)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)


def date_scale(times: Iterable[datetime], start: float, stop: float) -> ChartScale:
    """Return a scale from the first time to the last, spanning at least an hour."""
    seconds = [time.timestamp() for time in times] or [0.0]
    return ChartScale(low=min(seconds), high=max(max(seconds), min(seconds) + HOUR), start=start, stop=stop)


def date_ticks(low: float, high: float, count: int = 6) -> list[tuple[float, str]]:
    """Return at most about `count` starts of hours, days, weeks (Mondays), months or years, with their labels.

    The year is included in the first label and wherever it changes; times are UTC.

    >>> day = lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    >>> [name for _, name in date_ticks(day("2026-08-24"), day("2026-11-15"), 4)]
    ['Sep 2026', 'Oct', 'Nov']
    >>> [name for _, name in date_ticks(day("2026-12-30"), day("2027-01-02"), 5)]
    ['30 Dec 2026', '31 Dec', '1 Jan 2027', '2 Jan']
    """
    span = max(high - low, 1.0)
    first = datetime.fromtimestamp(low, UTC)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    starts: list[datetime] = []
    by_hours = by_months = False
    if step := next((hours for hours in _HOURS if span / (hours * HOUR) <= count), None):
        by_hours = True
        starts = [midnight + timedelta(hours=step * n) for n in range(int(span / HOUR / step) + 26 // step + 2)]
    elif step := next((days for days in _DAYS if span / (days * DAY) <= count), None):
        begin = midnight - timedelta(days=midnight.weekday()) if step >= 7 else midnight
        starts = [begin + timedelta(days=step * n) for n in range(int(span / DAY / step) + 3)]
    else:
        by_months = True
        step = next((months for months in _MONTHS if span / (months * 30.4 * DAY) <= count), _MONTHS[-1])
        begin = 12 * first.year // step * step if step >= 12 else 12 * first.year + (first.month - 1) // step * step
        months = range(begin, begin + int(span / (28 * DAY)) + 2 * step + 2, step)
        starts = [datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in months if n < 12 * 9999]
    shown = [at for at in starts if low <= at.timestamp() <= high] or [first]
    names: list[tuple[float, str]] = []
    for i, at in enumerate(shown):
        year = f" {at.year}" if not i or at.year != shown[i - 1].year else ""
        clock = f"{at:%H:%M}" if by_hours and at.hour else ""
        if by_months:
            name = str(at.year) if step >= 12 else f"{at:%b}{year}"
        else:
            name = clock if clock and i else f"{at.day} {at:%b}{year} {clock}".strip()
        # The start of the axis, rounded to microseconds, may lie before it.
        names.append((max(at.timestamp(), low), name))
    return names


def date_text(at: datetime) -> str:
    """Format a time in UTC; midnight is shown as the date alone.

    >>> date_text(datetime(2026, 11, 7, 6, tzinfo=UTC)), date_text(datetime(2026, 11, 7, tzinfo=UTC))
    ('7 Nov 2026, 06:00 UTC', '7 Nov 2026')
    """
    at = at.astimezone(UTC)
    clock = f", {at:%H:%M} UTC" if (at.hour, at.minute) != (0, 0) else ""
    return f"{at.day} {at:%b %Y}{clock}"


# Labels beside the ends of lines, so that none covers another.


def spread_labels(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions as close as possible to those wanted, in the same order, `gap` apart, from `low` to `high`.

    >>> spread_labels([10, 11, 50], 12, 0, 100)
    [4.5, 16.5, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups: list[tuple[float, int]] = []  # Sum of the positions wanted, and number of labels.
    for i in order:
        groups.append((wanted[i], 1))
        while len(groups) > 1:
            (above, n), (below, m) = groups[-2], groups[-1]
            if below / m - above / n >= gap * (n + m) / 2:
                break
            groups[-2:] = [(above + below, n + m)]
    places: list[float] = []
    for total, n in groups:
        middle = total / n
        places += [middle + (k - (n - 1) / 2) * gap for k in range(n)]
    if places and places[-1] > high:
        places[-1] = high
        for k in range(len(places) - 2, -1, -1):
            places[k] = min(places[k], places[k + 1] - gap)
    if places and places[0] < low:
        places[0] = low
        for k in range(1, len(places)):
            places[k] = max(places[k], places[k - 1] + gap)
    positions = [0.0] * len(places)
    for place, i in zip(places, order, strict=True):
        positions[i] = place
    return positions


# Charts as PNG, converted from the same SVG that pages show.


SCALE = 2
"""PNG pixels per SVG unit."""


def export_figure(svg: str, path: Path) -> Path:
    """Write a chart in its light colours to a .png file; needs the extra `plots`."""
    path.write_bytes(figure_png(svg, SCALE))
    return path


def figure_png(svg: str, scale: float = 1) -> bytes:
    """Return a chart in its light colours as PNG bytes; needs the extra `plots`."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("writing a chart as PNG", "plots") from None
    return vl_convert.svg_to_png(light_svg(svg), scale=scale)


def light_svg(svg: str) -> str:
    """Return the chart on white with its own style and no CSS variables, which converters do not support."""
    svg = re.sub(r"<style>.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    end = svg.index(">") + 1
    size = re.search(r'width="([^"]+)" height="([^"]+)"', svg[:end])
    paper = f'<rect width="{size[1]}" height="{size[2]}" fill="{PALETTE["paper"][0]}"/>' if size else ""
    return f"{svg[:end]}<style>{figure_rules(plain=True)}</style>{paper}{svg[end:]}"


WIDE, NARROW, HALF = 780, 300, 460
"""Widths of figures across a page, on a phone and side by side. Pages show them about as wide, so text is legible."""
LETTER = 7.0
"""Average width of a letter at the text size of figures."""
BOLD_LETTER = 7.7
"""The same of bold text."""
CsvRow = Mapping[str, object]


@frozen(kw_only=False)
class Chart:
    """An SVG chart for a page that includes the figure style; displays itself in notebooks."""

    svg: Markup
    wide: bool = False
    """Whether it needs the full width of a page."""
    narrow: Markup | None = None
    """The version for phones; without it, the chart is shrunk, or scrolls sideways if it is wide."""
    small: bool = False
    """Whether it is a mark in a table row, which has no download of its own because the table has one."""
    square: bool = False
    """Whether it is about as high as wide and should stay small."""

    def standalone(self) -> str:
        """Return the SVG with its own colours, for a separate file."""
        end = self.svg.index(">") + 1
        return str(self.svg[:end] + figure_style() + self.svg[end:])

    @property
    def title(self) -> str:
        """The text for screen readers."""
        match = re.search(r'aria-label="([^"]*)"', self.svg)
        return str(Markup(match[1]).unescape()) if match else ""

    @property
    def csv(self) -> str:
        """The chart's numbers as CSV; empty if there are none."""
        match = re.search(r"<metadata>([^<]*)</metadata>", self.svg)
        return str(Markup(match[1]).unescape()) if match else ""

    def to_html(self, style: str = "") -> Markup:
        """Return a figure element for a page with the figure style and script, which add read-out and downloads."""
        classes = " ".join([*(name for name in ("wide", "small", "square") if getattr(self, name)), style]).strip()
        narrow = self.narrow is not None
        picture = element("div", self.svg, class_="roomy" if narrow else "only")
        phone = element("div", self.narrow, class_="narrow") if narrow else None
        if self.small:
            return element("figure", self.svg, class_=classes)
        # A figure that scrolls sideways can be focused by keyboard.
        scrolls = (
            {"tabindex": "0", "role": "group", "aria_label": "Scrolls sideways"} if self.wide and not narrow else {}
        )
        box = element("div", picture, phone, class_="chart-box", **scrolls)
        label = "Figure; arrow keys read out its values"
        return element("figure", box, class_=f"chart {classes}".strip(), tabindex="0", aria_label=label)

    def _repr_html_(self) -> str:
        """Return the figure with its style and script, for notebooks and other websites."""
        return figure_document(self.to_html())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart to an .svg or .png file, or its numbers to a .csv file, and return the path.

        PNG needs the extra `plots`.
        """
        target = Path(path)
        if target.suffix == ".png":
            return export_figure(self.svg, target)
        if target.suffix == ".csv" and self.csv:
            target.write_text(self.csv, encoding="utf-8")
            return target
        if target.suffix != ".svg":
            hint = "use .svg or .png, or .csv for its numbers"
            raise InputError("cannot write a figure to this kind of file", path=target, hint=hint)
        target.write_text('<?xml version="1.0" encoding="UTF-8"?>\n' + self.standalone() + "\n", encoding="utf-8")
        return target


def figure(width: float, height: float, title: str, *children: Markup, rows: Sequence[CsvRow] = ()) -> Chart:
    """Build a figure of this size; `title` is the text for screen readers, `rows` is the data for CSV."""
    svg = element(
        "svg",
        _metadata(rows) if rows else None,
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        class_="ft",
        role="img",
        aria_label=title,
    )
    return Chart(svg, wide=width > 480, square=width <= 400)


def responsive(roomy: Chart, narrow: Chart) -> Chart:
    """Combine a chart for pages with its version for phones."""
    return replace(roomy, narrow=Markup(re.sub(r"<metadata>[^<]*</metadata>", "", narrow.svg)))


def _metadata(rows: Sequence[CsvRow]) -> Markup:
    """Return the rows as CSV metadata; texts are cleaned one by one, because the whole contains line breaks."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([row.get(name) for name in names] for row in rows)]
    text = "".join(",".join(_csv_cell(cell) for cell in cells) + "\n" for cells in lines)
    return Markup("<metadata>") + escape(text) + Markup("</metadata>")


def _csv_cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(for_csv(clean(str(value)))) if isinstance(value, str) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"') else text


def empty(message: str, width: float = 320) -> Chart:
    """Build a figure with a message on why there is nothing to show."""
    return figure(width, 60, message, text(width / 2, 34, message, "m k"))


def text(x: float, y: float, content: str, style: str | None = None, *, tip: str | None = None) -> Markup:
    """Draw text at a position, with a tooltip if `tip` differs from the text."""
    children = (content,) if tip is None or clean(tip) == clean(content) else (content, element("title", tip))
    return element("text", *children, x=float(x), y=float(y), class_=style)


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """Draw a straight line."""
    return element("path", d=f"M{_at(x1, y1)}L{_at(x2, y2)}", class_=style)


def polyline(points: Sequence[tuple[float, float]], style: str) -> Markup:
    """Draw a line through the points."""
    return element("path", d="M" + "L".join(_at(x, y) for x, y in points), class_=style + " no")


def polygon(points: Sequence[tuple[float, float]], style: str) -> Markup:
    """Draw a filled area."""
    return element("path", d="M" + "L".join(_at(x, y) for x, y in points) + "Z", class_=style)


def rect(x: float, y: float, width: float, height: float, style: str, *, tip: str | None = None) -> Markup:
    """Draw a rectangle, optionally with a tooltip."""
    children = () if tip is None else (element("title", tip),)
    return element(
        "rect",
        *children,
        x=float(x),
        y=float(y),
        width=float(max(width, 0)),
        height=float(max(height, 0)),
        class_=style,
    )


# Series: each has its own colour, shape and dashes, so that they can be distinguished without colour.


@frozen(kw_only=False)
class SeriesStyle:
    """How a series is drawn: its colour, shape and dashes."""

    colour: str
    shape: int
    dash: str = ""

    @property
    def stroke(self) -> str:
        """CSS classes of its line."""
        return f"l-{self.colour}{self.dash}"


MARKET_STYLE = SeriesStyle("e", 12)
"""Style of the market, which is ochre everywhere."""
RATE_STYLE = SeriesStyle("muted", 2)
"""Style of the base rate and other baselines, which are grey everywhere."""
HALF_STYLE = SeriesStyle("muted", 10, " dots")


def series_style(index: int) -> SeriesStyle:
    """Return the style of a series by index: twelve differ in colour and shape, further ones also in their dashes."""
    return SeriesStyle(SERIES[index % len(SERIES)], index % 12, ("", " dash", " dots")[index // 6 % 3])


def series_styles(names: Iterable[str], known: Mapping[str, SeriesStyle] | None = None) -> dict[str, SeriesStyle]:
    """Return a style for each name: its `known` one from the rest of the page, a baseline's own, or the next one."""
    fixed = {MARKET_PRICE: MARKET_STYLE, "market": MARKET_STYLE, BASE_RATE: RATE_STYLE, ALWAYS_HALF: HALF_STYLE}
    styles = dict(known or {})
    for name in names:
        if name not in styles:
            taken = sum(other not in fixed for other in styles)
            styles[name] = fixed.get(name) or series_style(taken)
    return styles


def mark(
    x: float, y: float, series: int | SeriesStyle, *, tip: str | None = None, together: str | None = None
) -> Markup:
    """Draw the mark of a series at a position.

    Marks with the same `together` are read out together, such as all series on one day.
    """
    style = series if isinstance(series, SeriesStyle) else series_style(series)
    return element(
        "path",
        *(() if tip is None else (element("title", tip),)),
        d=_shape(x, y, style.shape),
        class_=_shape_style(style.shape, style.colour),
        data_g=together,
    )


OPEN = frozenset({6, 7, 8, 9})
STROKED = frozenset({5, 10, 11, 12})
RADIUS = 4.0


def _shape_style(shape: int, colour: str) -> str:
    if shape in OPEN:
        return f"f-paper l-{colour} bold"
    return f"no l-{colour} bold" if shape in STROKED else f"f-{colour}"


def _shape(x: float, y: float, shape: int) -> str:
    """Circle, square, diamond, triangles up and down, plus; the first four hollow; cross, star, upright bar."""
    r, q = RADIUS, RADIUS * 0.85
    match shape:
        case 0 | 6:
            return f"M{_at(x - r, y)}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z"
        case 1 | 7:
            return f"M{_at(x - q, y - q)}h{2 * q:g}v{2 * q:g}h{-2 * q:g}z"
        case 2 | 8:
            d = r * 1.2
            return f"M{_at(x, y - d)}l{d:g} {d:g}l{-d:g} {d:g}l{-d:g} {-d:g}z"
        case 3 | 9:
            return f"M{_at(x, y - r * 1.15)}l{r * 1.1:g} {r * 2:g}h{-2.2 * r:g}z"
        case 4:
            return f"M{_at(x, y + r * 1.15)}l{r * 1.1:g} {-r * 2:g}h{-2.2 * r:g}z"
        case 5:
            return f"M{_at(x - r, y)}h{2 * r:g}M{_at(x, y - r)}v{2 * r:g}"
        case 10:
            return f"M{_at(x - q, y - q)}l{2 * q:g} {2 * q:g}m0 {-2 * q:g}l{-2 * q:g} {2 * q:g}"
        case 11:
            return f"M{_at(x - r, y)}h{2 * r:g}M{_at(x - r / 2, y - q)}l{r:g} {2 * q:g}m0 {-2 * q:g}l{-r:g} {2 * q:g}"
        case _:
            return f"M{_at(x, y - r * 1.3)}v{r * 2.6:g}"


def legend(keys: Sequence[tuple[str, SeriesStyle]], left: float, y: float, width: float) -> tuple[Markup, float]:
    """Draw a legend on as many lines as it needs, and return it with its height."""
    x, start, parts = left, y, list[Markup]()
    for name, style in keys:
        shown = shorten(name, 30)
        need = len(shown) * LETTER + 26
        if x > left and x + need > width:
            x, y = left, y + 17
        parts += [mark(x + 5, y - 4, style), text(x + 14, y, shown, "s", tip=name if shown != name else None)]
        x += need
    return join(*parts), y - start + 14


@frozen
class EndLabel:
    """The name of a line and its last value, placed beside its end."""

    name: str
    style: SeriesStyle
    x: float
    y: float
    value: str = ""

    def shown(self, letters: int) -> str:
        """Return the name and the value in at most so many letters; the name is shortened, never the value.

        >>> EndLabel(name="reader, news and price", style=MARKET_STYLE, x=0, y=0, value="−0.002").shown(18)
        'reade…price −0.002'
        """
        left = letters - len(self.value) - 1
        if not self.value or left < SHORTEST_NAME:
            return shorten(self.name, max(letters, SHORTEST_NAME))
        return f"{shorten(self.name, left)} {self.value}"


SHORTEST_NAME = 6
"""Letters of a name below which it is not shortened for its value."""


def end_labels(ends: Sequence[EndLabel], x: float, room: float, low: float, high: float) -> Markup:
    """Draw names to the right of lines, moved apart if they would touch, each connected to the end of its line."""
    places = spread_labels([end.y for end in ends], 13, low, high)
    parts: list[Markup] = []
    for end, y in zip(ends, places, strict=True):
        shown = end.shown(int(room / BOLD_LETTER))
        parts.append(polyline([(end.x + 3, end.y), (x - 8, y), (x - 3, y)], f"l-{end.style.colour} thin soft"))
        whole = f"{end.name} {end.value}".rstrip()
        tip = whole if shown != whole else None
        parts.append(text(x, y + 4, shown, f"s w f-{end.style.colour}", tip=tip))
    return join(*parts)


# Axes.


def x_axis(scale: ChartScale, y: float, top: float, label: str, *, percent: bool = False) -> Markup:
    """Draw grid lines from `top` to `y`, with ticks and a label below; takes 34 pixels below `y`.

    `percent` shows probabilities in percent.
    """
    ticks = [(tick, f"{compact(100 * tick)} %" if percent else tick_label(tick)) for tick in scale.ticks()]
    return join(_under(scale, ticks, y, top), text((scale.start + scale.stop) / 2, y + 31, label, "s m"))


def date_axis(scale: ChartScale, y: float, top: float, edge: float) -> Markup:
    """Draw grid lines at the start of days, weeks, months or years, with labels; takes 21 pixels below `y`.

    A label that would reach beyond the `edge` of the figure is moved to the left.
    """
    count = max(2, int((scale.stop - scale.start) / 78))
    return _under(scale, date_ticks(scale.low, scale.high, count), y, top, edge)


def _under(
    scale: ChartScale, ticks: Sequence[tuple[float, str]], y: float, top: float, edge: float = math.inf
) -> Markup:
    parts: list[Markup] = []
    for value, name in ticks:
        x = scale(value)
        parts.append(line(x, top, x, y, "l-grid thin"))
        parts.append(text(min(x, edge - len(name) * LETTER / 2), y + 17, name, "s m k"))
    return join(*parts)


def y_axis(scale: ChartScale, x: float, right: float, *, count: int = 5, percent: bool = False) -> Markup:
    """Draw grid lines from `x` to `right`, with ticks to the left of `x`; `percent` shows probabilities in percent."""
    parts: list[Markup] = []
    for tick in scale.ticks(count):
        y = scale(tick)
        parts.append(line(x, y, right, y, "l-grid thin"))
        parts.append(text(x - 6, y + 4, f"{compact(100 * tick)} %" if percent else tick_label(tick), "s r k"))
    return join(*parts)


def _at(x: float, y: float) -> str:
    return f"{compact(x)} {compact(y)}"
