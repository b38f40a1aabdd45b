"""Numbers as text: true minus signs, a dash for what is missing, intervals in brackets."""

import math


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


def plural(count: int, noun: str) -> str:
    """Format a count with its noun in the singular or plural.

    >>> plural(1, "question"), plural(1200, "question")
    ('1 question', '1,200 questions')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def p_text(p: float) -> str:
    """Format a p-value.

    >>> p_text(0.0432), p_text(0.00001)
    ('p = 0.043', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
