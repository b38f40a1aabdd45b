"""Numbers as text for people: the same number has the same text in a terminal, on a page and in a sentence."""

import math
from collections.abc import Callable


def number(value: float, decimals: int) -> str:
    """Format a number with a true minus sign; NaN becomes a dash.

    >>> number(-1.25, 1), number(math.nan, 1), number(-0.01, 1)
    ('−1.2', '–', '0.0')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float, decimals: int) -> str:
    """Format a difference, always with its sign.

    >>> signed(2.04, 1), signed(-2.04, 1), signed(0.01, 1)
    ('+2.0', '−2.0', '0.0')
    """
    text = number(value, decimals)
    return f"+{text}" if value > 0 and any(c in "123456789∞" for c in text) else text


def bracket(low: float, high: float, decimals: int) -> str:
    """Format an interval; empty if there is none.

    >>> bracket(0.4, 3.9, 1)
    '[0.4, 3.9]'
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{number(low, decimals)}, {number(high, decimals)}]"


def signed_decimals(shown: Callable[[int], float], low: float, high: float, decimals: int) -> int:
    """Number of decimals, from `decimals`, that shows the sign of a value whose interval excludes zero.

    `shown` returns the value as it is shown with a number of decimals.

    >>> [signed_decimals(lambda _: -0.03, -0.04, high, 1) for high in (-0.02, 0.01)]
    [2, 1]
    """
    if low > 0 or high < 0:
        return next((places for places in range(decimals, decimals + 5) if round(shown(places), places)), decimals)
    return decimals


def percent(p: float | None, decimals: int | None = None) -> str:
    """Format a probability or share. Near 0 and 1 it has more digits, and only 0 and 1 become 0 % and 100 %.

    >>> percent(0.234), percent(0.004), percent(0.9995), percent(1e-6), percent(1.0), percent(None)
    ('23 %', '0.4 %', '99.95 %', '<0.01 %', '100 %', '–')
    >>> percent(0.234, decimals=1)
    '23.4 %'
    """
    if p is None or math.isnan(p):
        return "–"
    near = min(p, 1 - p)
    if 0 < near < 0.00005:
        return "<0.01 %" if p < 0.5 else ">99.99 %"
    places = 0 if near >= 0.0495 or near <= 0 else 1 if near >= 0.00095 else 2
    return f"{100 * p:.{max(places, decimals or 0)}f} %"


def points(share: float) -> str:
    """Format a difference of probabilities or shares, such as a calibration error, in percentage points.

    >>> points(0.0567), points(-0.2), points(math.nan)
    ('5.7 pts', '−20.0 pts', '–')
    """
    return "–" if math.isnan(share) else f"{number(100 * share, 1)} pts"


def brief_percent(p: float) -> str:
    """Format a probability in a sentence: as `percent`, but without a zero after the point.

    >>> brief_percent(0.75), brief_percent(0.02), brief_percent(0.007), brief_percent(0.0), brief_percent(0.999)
    ('75 %', '2 %', '0.7 %', '0 %', '99.9 %')
    """
    return percent(p).replace(".0 %", " %")


def percent_range(low: float, high: float) -> str:
    """Format an interval of probabilities.

    >>> percent_range(0.12, 0.28), percent_range(0.007, 0.5)
    ('12–28 %', '0.7–50 %')
    """
    return f"{brief_percent(low).removesuffix(' %')}–{brief_percent(high)}"


def dollars(amount: float | None) -> str:
    """Format an amount of money to the cent; below ten cents, to two significant digits.

    >>> dollars(0.0), dollars(0.0147), dollars(0.00996), dollars(0.0996), dollars(1234.5), dollars(None)
    ('$0', '$0.015', '$0.010', '$0.10', '$1,234.50', '–')
    """
    if amount is None or not math.isfinite(amount):
        return "–"
    power = int(f"{amount:.1e}".partition("e")[2])  # Of the rounded amount.
    return f"${amount:,.{max(2, 1 - power)}f}" if amount else "$0"


def duration(seconds: float | None) -> str:
    """Format a number of seconds as a duration.

    >>> duration(42), duration(200), duration(8000), duration(None)
    ('42 s', '3 min', '2 h 13 min', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def elapsed(seconds: float, decimals: int | None = None) -> str:
    """Format a time since a start as minutes and seconds, by default with fractions below ten seconds.

    >>> elapsed(0), elapsed(2.37), elapsed(9.97), elapsed(112), elapsed(3725), elapsed(0.15, 2)
    ('0:00', '0:02.4', '0:10', '1:52', '1:02:05', '0:00.15')
    """
    if decimals is None:
        has_fraction = 0.0005 <= seconds < 9.95 and seconds % 1
        decimals = (1 if seconds >= 0.0995 else 3) if has_fraction else 0
    minutes, rest = divmod(round(seconds, decimals), 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:0{2 + bool(decimals) + decimals}.{decimals}f}"
    return f"{hours}:{minutes:02d}:{text}" if hours else f"{minutes}:{text}"


def exact_duration(seconds: float) -> str:
    """Format how long something took, with fractions below ten seconds.

    >>> exact_duration(0.0123), exact_duration(3.21), exact_duration(41.6), exact_duration(150)
    ('12 ms', '3.2 s', '42 s', '2 min')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else duration(seconds)


def plural(count: int, noun: str, several: str = "") -> str:
    """Format a count with its noun in the singular or plural.

    >>> plural(1, "question"), plural(1200, "question"), plural(0, "reply", "replies")
    ('1 question', '1,200 questions', '0 replies')
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def p_text(p: float) -> str:
    """Format a p-value.

    >>> p_text(0.0432), p_text(0.00001)
    ('p = 0.043', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
