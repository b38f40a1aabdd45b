"""Typed questions about weather and prices: which public series decides them, and what follows from its past."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import exp, log, sqrt
from typing import Literal

import numpy as np

from foretell.forecasters.base_rates.same_question import LONGEST, QuestionSense, sense, word_set
from foretell.metrics.arrays import Floats

CENTRAL = 0.8
"""How much of what may be true a range covers."""
Interval = tuple[float, float]


# Days that have a name.

_FEASTS = re.compile(r"\b(white christmas|christmas eve|christmas|new year(?:['’]s)?|halloween)\b", re.IGNORECASE)
_SOON = re.compile(r"\b(tomorrow|today)\b", re.IGNORECASE)
_BEFORE = re.compile(r"\b(before|by|until|till)\s+(?:the\s+end\s+of\s+)?$", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class AskedSpan:
    """The days that a question is about."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """How many."""
        return (self.last - self.first).days + 1


def asked_span(text: str, due: date, closes: date | None) -> AskedSpan | None:
    """From the day of asking to the last day named, or one day alone; None where no day is named.

    >>> asked_span("Will it snow in Oslo before Christmas?", date(2026, 11, 16), None)
    AskedSpan(first=datetime.date(2026, 11, 16), last=datetime.date(2026, 12, 24))
    """
    text = text[:LONGEST]
    if feast := _FEASTS.search(text):
        day = _feast(feast[1].lower(), due)
        if _BEFORE.search(text[: feast.start()]):
            return AskedSpan(first=due, last=day - timedelta(days=1))
        return AskedSpan(first=day, last=day)
    if soon := _SOON.search(text):
        day = due + timedelta(days=1 if soon[1].lower() == "tomorrow" else 0)
        return AskedSpan(first=day, last=day)
    found = sense(text, due, closes)
    if found.until is None or found.until < due:
        return None
    return AskedSpan(first=found.until if found.standing else due, last=found.until)


def _feast(name: str, due: date) -> date:
    month, day = {"christmas eve": (12, 24), "halloween": (10, 31)}.get(
        name, (1, 1) if name.startswith("new year") else (12, 25)
    )
    this = date(due.year, month, day)
    return this if this >= due else date(due.year + 1, month, day)


# Weather.

Summary = Literal["any day", "total"]
_PLACE = re.compile(
    r"\b(?:in|at|over|for)\s+(?:the\s+)?((?:[A-ZÀ-Þ][\w’'.-]{1,30})(?:[\s-]+(?:(?:de|la|upon|am|of)\s+)?[A-ZÀ-Þ][\w’'.-]{1,30}){0,3})"
)
_FAHRENHEIT = re.compile(r"°\s?F\b|\bfahrenheit\b|\bdegrees F\b", re.IGNORECASE)
_INCHES = re.compile(r"\binch(?:es)?\b|\d\s?(?:in|\")(?:\s|$)", re.IGNORECASE)
_MONTHS = word_set(
    "January February March April May June July August September October November December Christmas Halloween"
)
LONGEST_WEATHER = 183
"""Days ahead that past years are asked about."""
YEARS = 15
SNOW_CM, RAIN_MM = 0.1, 1.0
"""What counts as snow and as rain of a day."""


@dataclass(frozen=True, kw_only=True)
class WeatherQuestion:
    """What a question asks of the weather."""

    place: str
    variable: str
    """Of a day, as Open-Meteo names it."""
    threshold: float
    above: bool
    summary: Summary
    span: AskedSpan
    words: str
    """What counts, in words."""

    def happens(self, values: Sequence[float]) -> bool:
        """Whether it happens in a span with these values by day."""
        if self.summary == "total":
            return sum(values) >= self.threshold
        return any(value >= self.threshold if self.above else value <= self.threshold for value in values)


def weather_question(text: str, due: date, closes: date | None) -> WeatherQuestion | None:
    """The weather a question asks about; None where it is about none, or names no place or day."""
    text = text[:LONGEST]
    kind = _weather_kind(text, sense(text, due, closes))
    place = next((m[1].strip(" .,") for m in _PLACE.finditer(text) if m[1].split()[0] not in _MONTHS), None)
    span = asked_span(text, due, closes)
    if kind is None or place is None or span is None or (span.last - due).days > LONGEST_WEATHER:
        return None
    variable, threshold, above, summary, words = kind
    return WeatherQuestion(
        place=place, variable=variable, threshold=threshold, above=above, summary=summary, span=span, words=words
    )


def _weather_kind(text: str, found: QuestionSense) -> tuple[str, float, bool, Summary, str] | None:
    lowered = text.lower()
    number = next(iter(found.numbers)) if len(found.numbers) == 1 else None
    if re.search(r"\bsnow(?:s|fall|ing)?\b|\bwhite christmas\b", lowered):
        if number is not None:
            least = number * 2.54 if _INCHES.search(text) else number
            return "snowfall_sum", least, True, "total", f"at least {least:g} cm of snow in all"
        return "snowfall_sum", SNOW_CM, True, "any day", f"at least {SNOW_CM:g} cm of snow on a day"
    if re.search(r"\brain(?:s|fall|ing)?\b", lowered) and number is None:
        return "precipitation_sum", RAIN_MM, True, "any day", f"at least {RAIN_MM:g} mm of rain or snow on a day"
    if re.search(r"\bfrost\b|\bbelow freezing\b|\bfreez(?:e|ing)\b", lowered) and number is None:
        return "temperature_2m_min", 0.0, False, "any day", "a temperature of 0 °C or less on a day"
    if re.search(r"\btemperature|\bdegrees?\b|°|\bcelsius\b|\bfahrenheit\b", lowered) and number is not None:
        least = (number - 32) / 1.8 if _FAHRENHEIT.search(text) else number
        above = not found.down
        name = "temperature_2m_max" if above else "temperature_2m_min"
        return (
            name,
            least,
            above,
            "any day",
            f"a temperature of {least:.4g} °C or {'more' if above else 'less'} on a day",
        )
    return None


HIT_BY_LEAD = (0.85, 0.85, 0.7, 0.7, 0.55, 0.55, 0.55)
"""How often what is forecast for a day so far ahead comes: rounded rules of thumb, not fitted."""
MISSED = 0.05
"""How often what is not forecast comes all the same, on a day of the next week."""
ERROR_FIRST, ERROR_GROWTH = 1.5, 0.3
"""Standard error of a forecast temperature in °C for tomorrow, and what each day more adds."""


@dataclass(frozen=True, kw_only=True)
class SeriesAnswer:
    """A probability from a series, and the range that its past leaves open."""

    p: float
    interval: Interval
    n: int
    """Years, or sessions, that it rests on."""
    reason: str


def weather_answer(
    asked: WeatherQuestion, past: Mapping[int, Sequence[float]], forecast: Mapping[date, float], today: date
) -> SeriesAnswer:
    """From the same days of past years, and for the next days from a forecast, where there is one.

    Args:
        asked: What is asked.
        past: Year → values of the days of the span that no forecast covers, or of all of them.
        forecast: Values of the first days of the span.
        today: The day of asking.
    """
    hits, n = sum(asked.happens(values) for values in past.values()), len(past)
    soon = _soon(asked, forecast, today) if asked.summary == "any day" else 0.0
    low, p, high = (1 - (1 - soon) * (1 - chance) for chance in share_interval(hits, n))
    if not n:
        low, p, high = max(0.0, soon - 0.15), soon, min(1.0, soon + 0.15)
    parts = [f"In {hits} of the last {n} years there was {asked.words} on those days."] if n else []
    if forecast and asked.summary == "any day":
        days = f"{min(forecast)} to {max(forecast)}"
        parts.append(f"The forecast for {days} alone makes it {soon:.0%}.")
    return SeriesAnswer(p=p, interval=(low, high), n=n, reason=" ".join(parts))


def _soon(asked: WeatherQuestion, forecast: Mapping[date, float], today: date) -> float:
    """The chance that it happens on one of the days with a forecast; the days are taken for one story."""
    chances = [0.0]
    for day, value in forecast.items():
        lead = min(max((day - today).days, 1), len(HIT_BY_LEAD))
        if asked.variable.startswith("temperature"):
            over = (value - asked.threshold) * (1 if asked.above else -1)
            chances.append(_normal(over / (ERROR_FIRST + ERROR_GROWTH * lead)))
        else:
            chances.append(HIT_BY_LEAD[lead - 1] if asked.happens([value]) else MISSED)
    return max(chances)


def _normal(z: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(z))


def share_interval(hits: float, n: float) -> tuple[float, float, float]:
    """Low end, estimate and high end of a share, with Jeffreys' prior (Brown, Cai & DasGupta 2001)."""
    from scipy.special import betaincinv

    a, b, tail = hits + 0.5, n - hits + 0.5, (1 - CENTRAL) / 2
    return float(betaincinv(a, b, tail)), a / (a + b), float(betaincinv(a, b, 1 - tail))


# Prices.

_SYMBOLS = {
    "bitcoin": "BTC-USD", "btc": "BTC-USD", "ethereum": "ETH-USD", "eth": "ETH-USD", "solana": "SOL-USD",
    "dogecoin": "DOGE-USD", "xrp": "XRP-USD", "s&p 500": "^GSPC", "s&p": "^GSPC", "sp500": "^GSPC",
    "nasdaq-100": "^NDX", "nasdaq 100": "^NDX", "nasdaq": "^IXIC", "dow jones": "^DJI", "vix": "^VIX",
    "ftse 100": "^FTSE", "dax": "^GDAXI", "nikkei": "^N225", "gold": "GC=F", "silver": "SI=F", "brent": "BZ=F",
    "wti": "CL=F", "crude oil": "CL=F", "natural gas": "NG=F", "eur/usd": "EURUSD=X", "euro": "EURUSD=X",
}  # fmt: skip
_SHARES = {
    "nvidia": "NVDA", "tesla": "TSLA", "apple": "AAPL", "microsoft": "MSFT", "amazon": "AMZN", "alphabet": "GOOGL",
    "google": "GOOGL", "meta": "META", "netflix": "NFLX", "amd": "AMD", "palantir": "PLTR", "intel": "INTC",
    "coinbase": "COIN", "microstrategy": "MSTR", "boeing": "BA", "disney": "DIS",
}  # fmt: skip
_TICKERS = frozenset({*_SHARES.values(), "SPY", "QQQ"})
"""Read in capitals alone: Meta and coin are words."""
_SHARE_WORDS = re.compile(r"\b(?:shares?|stock|close[sd]?|trad(?:e|es|ing)|price)\b", re.IGNORECASE)
_NOT_A_PRICE = re.compile(
    r"\b(?:market cap|reserve|hold(?:s|ings?)?|etf|medals?|standard|than|percent|revenue|earnings|mayor|deliver"
    r"|ballon|dominance|first)\b|%",
    re.IGNORECASE,
)
_BESIDE = word_set("industrial average index composite price us usd futures spot oil stock")
ROUND_THE_CLOCK = frozenset({"BTC-USD", "ETH-USD", "SOL-USD", "DOGE-USD", "XRP-USD"})
LONGEST_PRICE = 400
"""Days ahead that a walk is believed."""
SESSIONS, RECENT_SESSIONS = 500, 60
DEGREES = 4.0
"""Degrees of freedom of Student's t: daily changes have fat tails."""
TOUCH = 1.65
"""How many times as likely a level is touched by some close as it is passed by the last one. In theory 2, by
reflection; closes are a day apart, and of shares 1.63 times as many touched a level (docs/studies/asking.md)."""
UNSURE = 1.3
"""By how much the spread may be larger or smaller than that of the past."""


@dataclass(frozen=True, kw_only=True)
class PriceQuestion:
    """A threshold that a price has to be beyond, on a day or at any time until then."""

    name: str
    symbol: str
    """Yahoo's."""
    threshold: float | None
    """None: the price itself is asked for."""
    above: bool
    touch: bool
    """Any time until the last day counts, rather than that day alone."""
    span: AskedSpan


def price_question(text: str, due: date, closes: date | None, *, number: bool = False) -> PriceQuestion | None:
    """The price that a question asks about; None where it is about none, or not about one threshold and one day."""
    text = text[:LONGEST]
    found, lowered = sense(text, due, closes), text.lower()
    names = [name for name in _SYMBOLS if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", lowered)]
    symbols = {_SYMBOLS[name] for name in names if not any(name in other for other in names if other != name)}
    # The number in the name of an index is not the level asked about.
    numbers = found.numbers - {500.0, 100.0} if symbols & {"^GSPC", "^NDX", "^FTSE"} else found.numbers
    if _SHARE_WORDS.search(text):
        symbols |= {_SHARES[word] for word in re.findall(r"[a-z]+", lowered) if word in _SHARES}
        # A ticker says exactly which price is meant: SPY is not the S&P 500, though it follows it.
        symbols = _TICKERS & set(re.findall(r"\b[A-Z]{2,5}\b", text)) or symbols
    span = asked_span(text, due, closes)
    if len(symbols) != 1 or span is None or found.negated or (span.last - due).days > LONGEST_PRICE:
        return None
    known = _BESIDE | {part for name in (*_SYMBOLS, *_SHARES) for part in re.split(r"[ /&-]", name)} | set(_SYMBOLS)
    known |= {ticker.lower() for ticker in _TICKERS}
    strange = [word for who in found.names for word in who if word.lower().removesuffix("'s") not in known]
    if strange or _NOT_A_PRICE.search(text) or (not number and (len(numbers) != 1 or found.up == found.down)):
        return None
    (symbol,) = symbols
    return PriceQuestion(
        name=next((name for name, one in (_SYMBOLS | _SHARES).items() if one == symbol), symbol),
        symbol=symbol,
        threshold=None if number else next(iter(numbers)),
        above=found.up,
        touch=not found.standing,
        span=span,
    )


def log_spread(values: Floats, steps: float) -> float:
    """Spread of the logarithm over so many sessions: recent ones count as much as those of two years."""
    moves = np.diff(np.log(values[values > 0][-SESSIONS - 1 :]))
    whole, recent = float(np.mean(moves**2)), float(np.mean(moves[-RECENT_SESSIONS:] ** 2))
    return sqrt((whole + recent) / 2 * max(steps, 1.0))


def sessions_ahead(asked: PriceQuestion, last: date) -> float:
    """Sessions from the last value to the last day that counts."""
    days = max((asked.span.last - last).days, 1)
    return days if asked.symbol in ROUND_THE_CLOCK else max(days * 5 / 7, 1.0)


def price_answer(asked: PriceQuestion, values: Floats, last: date) -> SeriesAnswer:
    """A walk without drift and with fat tails from the last value.

    A level may be touched and left again, which makes that `TOUCH` times as likely as being beyond it at the end.
    """
    assert asked.threshold is not None
    now, steps = float(values[-1]), sessions_ahead(asked, last)
    spread = log_spread(values, steps)
    if asked.threshold <= 0 or now <= 0:
        beyond = 1.0 if asked.above else 0.0
        return SeriesAnswer(p=beyond, interval=(beyond, beyond), n=len(values), reason="")

    def chance(width: float) -> float:
        away = log(asked.threshold / now) * (1 if asked.above else -1) if asked.threshold else 0.0
        tail = _student_tail(away / width)
        return min(0.99, TOUCH * tail) if asked.touch and away > 0 else 0.99 if asked.touch else tail

    ends = sorted(chance(spread * factor) for factor in (1 / UNSURE, 1.0, UNSURE))
    p = chance(spread)
    far = log(asked.threshold / now) / spread
    name = asked.name if asked.name.isupper() else asked.name.capitalize()
    reason = (
        f"{name} stood at {now:,.6g} on {last}; {asked.threshold:,.6g} is {abs(far):.1f} standard "
        f"deviations {'above' if far > 0 else 'below'} that over {steps:.0f} sessions, by a walk without drift."
    )
    return SeriesAnswer(p=p, interval=(ends[0], ends[-1]), n=min(len(values) - 1, SESSIONS), reason=reason)


def price_quantiles(asked: PriceQuestion, values: Floats, last: date, levels: Sequence[float]) -> list[float]:
    """Where the price may stand on the last day."""
    from scipy.special import stdtrit

    now, spread = float(values[-1]), log_spread(values, sessions_ahead(asked, last))
    scale = spread / sqrt(DEGREES / (DEGREES - 2))
    return [now * exp(float(stdtrit(DEGREES, level)) * scale) for level in levels]


def _student_tail(z: float) -> float:
    """The chance that Student's t, scaled to spread one, is above z."""
    from scipy.special import stdtr

    return float(stdtr(DEGREES, -z * sqrt(DEGREES / (DEGREES - 2))))
