"""Free-text questions about weather and prices: which public series decides them, and what its past implies."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import exp, log, nan, sqrt
from typing import Literal

import numpy as np

from foretell.forecasters.base_rates.same_question import LONGEST, QuestionSense, sense, word_set
from foretell.forecasters.base_rates.wording import DateMention, deadline, mentions
from foretell.metrics.arrays import Floats

CENTRAL = 0.8
"""Probability that an interval covers."""
Interval = tuple[float, float]


# Days that have a name.

_FEASTS = re.compile(r"\b(white christmas|christmas eve|christmas|new year(?:['’]s)?|halloween)\b", re.IGNORECASE)
_SOON = re.compile(r"\b(tomorrow|today|tonight)\b", re.IGNORECASE)
_AHEAD = re.compile(
    r"\b(in|within)\s+(an?|one|two|three|four|five|six|\d{1,3})\s+(day|week|month|year)s?\b", re.IGNORECASE
)
_COUNTS = {word: n for n, word in enumerate(("one", "two", "three", "four", "five", "six"), start=1)} | {
    "a": 1,
    "an": 1,
}
_DAYS = {"day": 1.0, "week": 7.0, "month": 365.25 / 12, "year": 365.25}
_BEFORE = re.compile(r"\b(before|by|until|till)\s+(?:the\s+end\s+of\s+)?$", re.IGNORECASE)
_WITHIN = re.compile(r"\b(?:in|during|throughout|over|on)\s+(?:the\s+)?$", re.IGNORECASE)
_FROM = re.compile(r"\b(?:between|from)\s+$", re.IGNORECASE)
_TO = re.compile(r"\s*(?:and|to|until|till|through|[-–])\s*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class AskedSpan:
    """The days that a question asks about."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """Number of days, including both ends."""
        return (self.last - self.first).days + 1


def asked_span(text: str, due: date, closes: date | None) -> AskedSpan | None:
    """The days a question asks about: a day or period it names, or every day up to a deadline; None if it names none.

    >>> asked_span("Will it snow in Oslo before Christmas?", date(2026, 11, 16), None)
    AskedSpan(first=datetime.date(2026, 11, 16), last=datetime.date(2026, 12, 24))
    >>> asked_span("Will it snow in Oslo in January 2027?", date(2026, 11, 16), None)
    AskedSpan(first=datetime.date(2027, 1, 1), last=datetime.date(2027, 1, 31))
    >>> asked_span("Will it snow in Oslo in two weeks?", date(2026, 11, 16), None)
    AskedSpan(first=datetime.date(2026, 11, 30), last=datetime.date(2026, 11, 30))
    """
    text = text[:LONGEST]
    if feast := _FEASTS.search(text):
        day = _feast(feast[1].lower(), due)
        if _BEFORE.search(text[: feast.start()]):
            return AskedSpan(first=due, last=day - timedelta(days=1))
        return AskedSpan(first=day, last=day)
    if ahead := _AHEAD.search(text):
        word, count = ahead[1].lower(), ahead[2].lower()
        day = due + timedelta(days=round(_DAYS[ahead[3].lower()] * (_COUNTS.get(count) or int(count))))
        return AskedSpan(first=due if word == "within" else day, last=day)
    if soon := _SOON.search(text):
        day = due + timedelta(days=1 if soon[1].lower() == "tomorrow" else 0)
        return AskedSpan(first=day, last=day)
    found = sense(text, due, closes)
    if found.until is None or found.until < due:
        return None
    first = found.until if found.standing else max(due, _first_day(text, due, found.until))
    return AskedSpan(first=first, last=found.until)


def _first_day(text: str, due: date, until: date) -> date:
    """First day of "in January" or "between 3 and 9 May"; for "by" or "before" a day, the day of asking."""
    named = mentions(text, due)
    last = deadline(named, due)
    if last is None or last.deadline != until:
        return due
    before: DateMention | None = next((one for one in reversed(named) if one.end <= last.begin), None)
    if before is not None and _FROM.search(text[: before.begin]) and _TO.fullmatch(text[before.end : last.begin]):
        return before.first
    return last.first if _WITHIN.search(text[: last.begin]) else due


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
LONGEST_WEATHER = 400
"""How many days ahead a question may reach. Past years say as much about next summer as about a day next week."""
YEARS = 15
SNOW_CM, RAIN_MM = 0.1, 1.0
"""Least snowfall of a day with snow, in cm, and least rainfall of a day with rain, in mm."""
CM_PER_INCH, MM_PER_INCH = 2.54, 25.4
_SNOW = re.compile(r"^\W*Snow\w*\b(?!\s+[A-Z])|\bsnow(?:s|fall|ing|y)?\b|\b[Ww]hite [Cc]hristmas\b")
_RAIN = re.compile(r"^\W*Rain\w*\b(?!\s+[A-Z])|\brain(?:s|fall|ing|y)?\b")
"""Lower case except at the start of the question, because Snow White is a film and Jon Snow a man."""
_DEPTH = re.compile(r"\d\s?(?:cm\b|mm\b|centimet|millimet|inch|in\b|\")", re.IGNORECASE)
_RAIN_OR_SNOW = re.compile(r"\brain\w* or snow|\bsnow\w* or rain", re.IGNORECASE)
_FROST = re.compile(r"\bfrost\b|\bbelow freezing\b|\bfreez(?:e|ing)\b", re.IGNORECASE)
_WARMTH = re.compile(
    r"\btemperatures?\b|\bdegrees?\b|°|\bcelsius\b|\bfahrenheit\b|\bhow (?:warm|hot|cold)\b", re.IGNORECASE
)
_HIGH = re.compile(r"\bmax(?:imum)?\b|\bhigh(?:est)?\b|\bhow (?:warm|hot)\b", re.IGNORECASE)
_LOW = re.compile(r"\bmin(?:imum)?\b|\blow(?:est)?\b|\bhow cold\b", re.IGNORECASE)
_CELSIUS = re.compile(r"°\s?C\b|\bcelsius\b|\bdegrees C\b", re.IGNORECASE)
_MINUS = re.compile(r"(?:(?<![\w.])[-−–]\s?|\bminus\s+)\d|\d\s?(?:°\s?[CF]?|degrees)?\s+below zero", re.IGNORECASE)
_LESS = re.compile(r"\b(?:less|fewer|below|under|at most)\b|[<≤]", re.IGNORECASE)
_NO_SINGLE_DAY = re.compile(
    r"\b(?:all|every|each|whole|entire|throughout|consecutive|average|mean|anomal\w+|records?|sea|water|global)\b"
    r"|\bno (?:less|fewer)\b|\bnot only\b|\bor\b(?!\s+(?:more|less|above|below|higher|lower|greater|rain|snow))",
    re.IGNORECASE,
)
"""Matches questions that a count of days on which something happens cannot answer."""


@dataclass(frozen=True, kw_only=True)
class WeatherQuestion:
    """What a question asks of the weather: whether an event happens in the span, or how large a quantity gets."""

    place: str
    variable: str
    """A daily quantity, as Open-Meteo names it."""
    threshold: float
    """In °C, cm of snow or mm of rain; NaN if the question asks for the quantity itself."""
    above: bool
    summary: Summary
    span: AskedSpan
    unit: str
    """Unit of the threshold: °C, cm or mm."""
    negated: bool = False
    """Whether the answer is yes if the event does not happen."""
    imperial: bool = False
    """Whether the question uses °F or inches."""
    scale_unstated: bool = False
    """Whether the question says "degrees" without naming the scale."""

    @property
    def words(self) -> str:
        """Describe the event in words."""
        if self.unit == "°C":
            return f"a temperature of {self.threshold:.4g} °C or {'more' if self.above else 'less'} on a day"
        thing = "snow" if self.variable == "snowfall_sum" else "rain or snow"
        when = "in all" if self.summary == "total" else "on a day"
        return f"at least {self.threshold:.4g} {self.unit} of {thing} {when}"

    def happens(self, values: Sequence[float]) -> bool:
        """Whether the event happens in a span with these daily values."""
        reached = self.quantity(values)
        return reached >= self.threshold if self.above else reached <= self.threshold

    def quantity(self, values: Sequence[float]) -> float:
        """Return the total of a span with these daily values, or its highest or lowest value."""
        return sum(values) if self.summary == "total" else max(values) if self.above else min(values)

    def in_fahrenheit(self) -> "WeatherQuestion":
        """Return the same question with its threshold read as °F."""
        return replace(self, threshold=_from_fahrenheit(self.threshold), imperial=True, scale_unstated=False)

    def in_asked_units(self, value: float) -> float:
        """Convert a value in °C, cm or mm to the units of the question."""
        if not self.imperial:
            return value
        return value * 1.8 + 32 if self.unit == "°C" else value / (CM_PER_INCH if self.unit == "cm" else MM_PER_INCH)


def weather_question(text: str, due: date, closes: date | None, *, number: bool = False) -> WeatherQuestion | None:
    """Parse the weather a question asks about; None if it asks about something else, or names no place or day."""
    text = text[:LONGEST]
    found = sense(text, due, closes)
    place = next((m[1].strip(" .,") for m in _PLACE.finditer(text) if m[1].split()[0] not in _MONTHS), None)
    span = asked_span(text, due, closes)
    if place is None or span is None or (span.last - due).days > LONGEST_WEATHER:
        return None
    if found.stays or _NO_SINGLE_DAY.search(text) or (number and found.negated):
        return None
    level = next(iter(found.numbers)) if len(found.numbers) == 1 and not number else None
    if found.numbers and level is None and not number:
        return None
    if _SNOW.search(text) or _RAIN.search(text):
        return _fallen(text, found, place, span, level, number=number)
    if not number and level is None:
        if not _FROST.search(text):
            return None
        return WeatherQuestion(
            place=place, variable="temperature_2m_min", threshold=0.0, above=False, summary="any day", span=span,
            unit="°C", negated=found.negated,
        )  # fmt: skip
    return _warmth(text, found, place, span, level) if _WARMTH.search(text) else None


def _fallen(
    text: str, found: QuestionSense, place: str, span: AskedSpan, level: float | None, *, number: bool
) -> WeatherQuestion | None:
    """Parse a question about snow or rain: any at all, or a total."""
    snow, rain = _SNOW.search(text) is not None, _RAIN.search(text) is not None
    if (snow and rain and not _RAIN_OR_SNOW.search(text)) or (level is not None and not _DEPTH.search(text)):
        return None
    only_snow = snow and not rain
    unit, inch = ("cm", CM_PER_INCH) if only_snow else ("mm", MM_PER_INCH)
    if number:
        least, summary = nan, "total"
    elif level is not None:
        least, summary = level * inch if _INCHES.search(text) else level, "total"
    else:
        least, summary = SNOW_CM if only_snow else RAIN_MM, "any day"
    # "Less than 5 cm" is the opposite of "at least 5 cm"; "not less than 5 cm" is that again. Snow falls either way.
    below = level is not None and _LESS.search(text) is not None
    return WeatherQuestion(
        place=place,
        variable="snowfall_sum" if only_snow else "precipitation_sum",
        threshold=least,
        above=True,
        summary=summary,
        span=span,
        unit=unit,
        negated=found.negated != below,
        imperial=_INCHES.search(text) is not None,
    )


def _warmth(
    text: str, found: QuestionSense, place: str, span: AskedSpan, level: float | None
) -> WeatherQuestion | None:
    """Parse a question about a temperature that is passed on some day, or about the highest or lowest of the span."""
    highest, lowest = _HIGH.search(text) is not None, _LOW.search(text) is not None
    if highest and lowest:
        return None
    below = found.down and not found.up
    # The day's high is below 10 if it does not reach 10: the opposite of the event that is counted.
    above = highest or not (lowest or below)
    threshold = nan if level is None else -level if _MINUS.search(text) else level
    fahrenheit = _FAHRENHEIT.search(text) is not None
    return WeatherQuestion(
        place=place,
        variable="temperature_2m_max" if above else "temperature_2m_min",
        threshold=_from_fahrenheit(threshold) if fahrenheit else threshold,
        above=above,
        summary="any day",
        span=span,
        unit="°C",
        negated=found.negated != ((highest and below) or (lowest and found.up and not found.down)),
        imperial=fahrenheit,
        scale_unstated=not fahrenheit and _CELSIUS.search(text) is None,
    )


def _from_fahrenheit(degrees: float) -> float:
    return (degrees - 32) / 1.8


HIT_BY_LEAD = (0.85, 0.85, 0.7, 0.7, 0.55, 0.55, 0.55)
"""How often a forecast event happens, by days ahead: rounded rules of thumb, not fitted."""
SUREST = 0.99
"""Highest probability given on the strength of a weather forecast alone."""
MISSED = 0.05
"""How often an event happens that was not forecast, on a day of the next week."""
LEAST_SPREAD = 0.1
"""Smallest standard deviation, so that a distribution has a width even if past years are all alike."""
ERROR_FIRST, ERROR_GROWTH = 1.5, 0.3
"""Standard error, in °C, of a temperature forecast for tomorrow, and how much each further day adds."""


@dataclass(frozen=True, kw_only=True)
class SeriesAnswer:
    """A probability derived from a series, and the range that its past leaves open."""

    p: float
    interval: Interval
    n: int
    """Number of years, or trading sessions, it is based on."""
    reason: str


def weather_answer(
    asked: WeatherQuestion, past: Mapping[int, Sequence[float]], forecast: Mapping[date, float], today: date
) -> SeriesAnswer:
    """Answer from the same days of past years and, for the next days, from a weather forecast.

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
    if asked.negated:
        low, p, high = 1 - high, 1 - p, 1 - low
    parts = [f"In {hits} of the last {n} years there was {asked.words} on those days."] if n else []
    if forecast and asked.summary == "any day":
        days = str(min(forecast)) if len(forecast) == 1 else f"{min(forecast)} to {max(forecast)}"
        alone = f"From the forecast for {days} alone, the chance of that is {soon:.0%}."
        parts.append(alone if n else alone.replace("that", asked.words))
    if asked.negated:
        parts.append("The question asks that it does not happen.")
    return SeriesAnswer(p=p, interval=(low, high), n=n, reason=" ".join(parts))


def weather_quantiles(
    asked: WeatherQuestion,
    past: Mapping[int, Sequence[float]],
    forecast: Mapping[date, float],
    today: date,
    levels: Sequence[float],
) -> tuple[list[float], str]:
    """Quantiles of the quantity over the span, and the reason: a forecast if it covers every day, else past years."""
    from scipy.special import stdtrit

    if asked.unit == "°C" and len(forecast) == asked.span.days:
        expected = asked.quantity(list(forecast.values()))
        lead = max((asked.span.last - today).days, 1)
        error = ERROR_FIRST + ERROR_GROWTH * lead
        quantiles = [expected + error * float(stdtrit(50, level)) for level in levels]
        return [
            asked.in_asked_units(value) for value in quantiles
        ], f"{expected:.1f} °C is forecast, give or take {error:.1f} °C."
    found = np.array([asked.quantity(values) for values in past.values()])
    # Amounts of rain and snow are skewed; their square roots are nearly normal.
    scale = found if asked.unit == "°C" else np.sqrt(np.maximum(found, 0.0))
    n = len(found)
    spread = max(float(scale.std(ddof=1)), LEAST_SPREAD) * sqrt(1 + 1 / n)
    reached = [float(scale.mean()) + spread * float(stdtrit(n - 1, level)) for level in levels]
    quantiles = reached if asked.unit == "°C" else [max(value, 0.0) ** 2 for value in reached]
    kind = "total" if asked.summary == "total" else "highest" if asked.above else "lowest"
    told = f"the {kind} of those days was {found.min():.4g} to {found.max():.4g} {asked.unit}"
    return [
        asked.in_asked_units(value) for value in quantiles
    ], f"In the last {n} years {told}, {found.mean():.4g} on average."


def _soon(asked: WeatherQuestion, forecast: Mapping[date, float], today: date) -> float:
    """Chance that the event happens on a day with a forecast: that of the likeliest day, as the days go together."""
    chances = [0.0]
    for day, value in forecast.items():
        lead = min(max((day - today).days, 1), len(HIT_BY_LEAD))
        if asked.variable.startswith("temperature"):
            over = (value - asked.threshold) * (1 if asked.above else -1)
            chances.append(_normal(over / (ERROR_FIRST + ERROR_GROWTH * lead)))
        else:
            chances.append(HIT_BY_LEAD[lead - 1] if asked.happens([value]) else MISSED)
    return min(max(chances), SUREST)


def _normal(z: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(z))


def share_interval(hits: float, n: float) -> tuple[float, float, float]:
    """Lower bound, estimate and upper bound of a share, with Jeffreys' prior (Brown, Cai & DasGupta 2001)."""
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
"""Matched in capitals only, because "meta" and "coin" are also words."""
_SHARE_WORDS = re.compile(r"\b(?:shares?|stock|close[sd]?|trad(?:e|es|ing)|price)\b", re.IGNORECASE)
_NOT_A_PRICE = re.compile(
    r"\b(?:market cap|reserve|hold(?:s|ings?)?|etf|medals?|standard|than(?!\s*[$€£]?\d)|percent|revenue|earnings"
    r"|mayor|deliver|ballon|dominance|first)\b|%",
    re.IGNORECASE,
)
_AT_END = re.compile(r"\b(?:at|on)\s+(?:the\s+)?(?:very\s+)?(?:end|close)\s+of\b", re.IGNORECASE)
_BESIDE = word_set("industrial average index composite price us usd futures spot oil stock")
ROUND_THE_CLOCK = frozenset({"BTC-USD", "ETH-USD", "SOL-USD", "DOGE-USD", "XRP-USD"})
LONGEST_PRICE = 400
"""How many days ahead a random walk is trusted."""
SESSIONS, RECENT_SESSIONS = 500, 60
LEAST_MOVE = 0.0005
"""Smallest spread of a session's log change, for a price that never moved, such as a pegged currency: pegs break."""
DEGREES = 4.0
"""Degrees of freedom of Student's t, because daily changes have fat tails."""
TOUCH = 1.65
"""How many times as likely it is that some close touches a level as that the last close is beyond it. In theory 2, by
reflection; but closes are a day apart, and for shares 1.63 times as many touched a level
(benchmarks/reports/asking.md)."""
UNSURE = 1.3
"""Factor by which the spread may be larger or smaller than in the past."""


@dataclass(frozen=True, kw_only=True)
class PriceQuestion:
    """A threshold that a price must pass, on a day or at any time until then."""

    name: str
    symbol: str
    """The ticker symbol on Yahoo."""
    threshold: float | None
    """None if the question asks for the price itself."""
    above: bool
    touch: bool
    """Whether any time until the last day counts, rather than that day alone."""
    span: AskedSpan


def price_question(text: str, due: date, closes: date | None, *, number: bool = False) -> PriceQuestion | None:
    """Parse the price a question asks about; None if it asks about none, or not about one threshold and one day."""
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
        touch=not (found.standing or _AT_END.search(text)),
        span=span,
    )


def log_spread(values: Floats, steps: float) -> float:
    """Spread of the log price over `steps` sessions, weighting recent sessions as much as the last two years."""
    moves = np.diff(np.log(values[values > 0][-SESSIONS - 1 :]))
    whole, recent = float(np.mean(moves**2)), float(np.mean(moves[-RECENT_SESSIONS:] ** 2))
    return sqrt(max((whole + recent) / 2, LEAST_MOVE**2) * max(steps, 1.0))


def sessions_ahead(asked: PriceQuestion, last: date) -> float:
    """Number of sessions from the last value to the last day that counts."""
    days = max((asked.span.last - last).days, 1)
    return days if asked.symbol in ROUND_THE_CLOCK else max(days * 5 / 7, 1.0)


def price_answer(asked: PriceQuestion, values: Floats, last: date) -> SeriesAnswer:
    """Answer from a random walk with fat tails and no drift, starting at the last value.

    A level may be touched and left again, which makes touching it `TOUCH` times as likely as being beyond it at the
    end.
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
    """Quantiles of the price on the last day."""
    from scipy.special import stdtrit

    now, spread = float(values[-1]), log_spread(values, sessions_ahead(asked, last))
    scale = spread / sqrt(DEGREES / (DEGREES - 2))
    return [now * exp(float(stdtrit(DEGREES, level)) * scale) for level in levels]


def _student_tail(z: float) -> float:
    """Chance that Student's t, scaled to a spread of one, is above z."""
    from scipy.special import stdtr

    return float(stdtr(DEGREES, -z * sqrt(DEGREES / (DEGREES - 2))))
