"""Free-text questions about weather and prices: the public series that decides them, and forecasts from its past."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from math import exp, log, nan, sqrt
from typing import Literal

import numpy as np

from foretell.forecasters.base_rates.same_question import LONGEST, QuestionSense, sense, word_set
from foretell.forecasters.base_rates.wording import DateMention, deadline, mentions
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.probability_functions import beta_quantile, normal_below, student_below, student_quantile
from foretell.number_text import percent
from foretell.patterns import pattern

CENTRAL = 0.8
"""Probability that an interval covers."""
Interval = tuple[float, float]


# Named days.

_HOLIDAYS = pattern(r"\b(white christmas|christmas eve|christmas|new year(?:['’]s)?|halloween)\b", re.IGNORECASE)
_SOON = pattern(r"\b(tomorrow|today|tonight)\b", re.IGNORECASE)
_AHEAD = pattern(
    r"\b(in|within)\s+(an?|one|two|three|four|five|six|\d{1,3})\s+(day|week|month|year)s?\b", re.IGNORECASE
)
_COUNTS = {word: n for n, word in enumerate(("one", "two", "three", "four", "five", "six"), start=1)} | {
    "a": 1,
    "an": 1,
}
_DAYS = {"day": 1.0, "week": 7.0, "month": 365.25 / 12, "year": 365.25}
_BEFORE = pattern(r"\b(before|by|until|till)\s+(?:the\s+end\s+of\s+)?$", re.IGNORECASE)
_WITHIN = pattern(r"\b(?:in|during|throughout|over|on)\s+(?:the\s+)?$", re.IGNORECASE)
_FROM = pattern(r"\b(?:between|from)\s+$", re.IGNORECASE)
_TO = pattern(r"\s*(?:and|to|until|till|through|[-–])\s*", re.IGNORECASE)


@frozen
class AskedSpan:
    """The days that a question asks about."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """Number of days, including both ends."""
        return (self.last - self.first).days + 1


def asked_span(text: str, due: date, closes: date | None) -> AskedSpan | None:
    """Return the days a question asks about: a named day or period, or every day up to a deadline; None if unknown.

    >>> asked_span("Will it snow in Oslo before Christmas?", date(2026, 11, 16), None)
    AskedSpan(first=datetime.date(2026, 11, 16), last=datetime.date(2026, 12, 24))
    >>> asked_span("Will it snow in Oslo in January 2027?", date(2026, 11, 16), None)
    AskedSpan(first=datetime.date(2027, 1, 1), last=datetime.date(2027, 1, 31))
    >>> asked_span("Will it snow in Oslo in two weeks?", date(2026, 11, 16), None)
    AskedSpan(first=datetime.date(2026, 11, 30), last=datetime.date(2026, 11, 30))
    """
    text = text[:LONGEST]
    if holiday := _HOLIDAYS.search(text):
        day = _holiday(holiday[1].lower(), due)
        if _BEFORE.search(text[: holiday.start()]):
            return AskedSpan(first=due, last=day - timedelta(days=1))
        return AskedSpan(first=day, last=day)
    if ahead := _AHEAD.search(text):
        word, count = ahead[1].lower(), ahead[2].lower()
        day = due + timedelta(days=round(_DAYS[ahead[3].lower()] * (_COUNTS.get(count) or int(count))))
        return AskedSpan(first=due if word == "within" else day, last=day)
    if soon := _SOON.search(text):
        day = due + timedelta(days=1 if soon[1].lower() == "tomorrow" else 0)
        return AskedSpan(first=day, last=day)
    parsed = sense(text, due, closes)
    if parsed.until is None or parsed.until < due:
        return None
    first = parsed.until if parsed.standing else max(due, _first_day(text, due, parsed.until))
    return AskedSpan(first=first, last=parsed.until)


def _first_day(text: str, due: date, until: date) -> date:
    """First day of "in January" or "between 3 and 9 May"; for "by" or "before" a day, the day of asking."""
    named = mentions(text, due)
    last = deadline(named, due)
    if last is None or last.deadline != until:
        return due
    before: DateMention | None = next((mention for mention in reversed(named) if mention.end <= last.begin), None)
    if before is not None and _FROM.search(text[: before.begin]) and _TO.fullmatch(text[before.end : last.begin]):
        return before.first
    return last.first if _WITHIN.search(text[: last.begin]) else due


def _holiday(name: str, due: date) -> date:
    month, day = {"christmas eve": (12, 24), "halloween": (10, 31)}.get(
        name, (1, 1) if name.startswith("new year") else (12, 25)
    )
    this = date(due.year, month, day)
    return this if this >= due else date(due.year + 1, month, day)


# Weather.

Summary = Literal["any day", "total"]
_PLACE = pattern(
    r"\b(?:in|at|over|for)\s+(?:the\s+)?((?:[A-ZÀ-Þ][\w’'.-]{1,30})(?:[\s-]+(?:(?:de|la|upon|am|of)\s+)?[A-ZÀ-Þ][\w’'.-]{1,30}){0,3})"
)
_FAHRENHEIT = pattern(r"°\s?F\b|\bfahrenheit\b|\bdegrees F\b", re.IGNORECASE)
_INCHES = pattern(r"\binch(?:es)?\b|\d\s?(?:in|\")(?:\s|$)", re.IGNORECASE)
_MONTHS = word_set(
    "January February March April May June July August September October November December Christmas Halloween"
)
LONGEST_WEATHER = 400
"""Maximum number of days ahead of a question, for which past years are informative."""
YEARS = 15
SNOW_CM, RAIN_MM = 0.1, 1.0
"""Least snowfall of a day with snow, in cm, and least rainfall of a day with rain, in mm."""
CM_PER_INCH, MM_PER_INCH = 2.54, 25.4
_SNOW = pattern(r"^\W*Snow\w*\b(?!\s+[A-Z])|\bsnow(?:s|fall|ing|y)?\b|\b[Ww]hite [Cc]hristmas\b")
_RAIN = pattern(r"^\W*Rain\w*\b(?!\s+[A-Z])|\brain(?:s|fall|ing|y)?\b")
"""Lower case except at the start of the question, because names such as Jon Snow do not count."""
_DEPTH = pattern(r"\d\s?(?:cm\b|mm\b|centimet|millimet|inch|in\b|\")", re.IGNORECASE)
_RAIN_OR_SNOW = pattern(r"\brain\w* or snow|\bsnow\w* or rain", re.IGNORECASE)
_FROST = pattern(r"\bfrost\b|\bbelow freezing\b|\bfreez(?:e|ing)\b", re.IGNORECASE)
_WARMTH = pattern(
    r"\btemperatures?\b|\bdegrees?\b|°|\bcelsius\b|\bfahrenheit\b|\bhow (?:warm|hot|cold)\b", re.IGNORECASE
)
_HIGH = pattern(r"\bmax(?:imum)?\b|\bhigh(?:est)?\b|\bhow (?:warm|hot)\b", re.IGNORECASE)
_LOW = pattern(r"\bmin(?:imum)?\b|\blow(?:est)?\b|\bhow cold\b", re.IGNORECASE)
_CELSIUS = pattern(r"°\s?C\b|\bcelsius\b|\bdegrees C\b", re.IGNORECASE)
_MINUS = pattern(r"(?:(?<![\w.])[-−–]\s?|\bminus\s+)\d|\d\s?(?:°\s?[CF]?|degrees)?\s+below zero", re.IGNORECASE)
_LESS = pattern(r"\b(?:less|fewer|below|under|at most)\b|[<≤]", re.IGNORECASE)
_NO_SINGLE_DAY = pattern(
    r"\b(?:all|every|each|whole|entire|throughout|consecutive|average|mean|anomal\w+|records?|sea|water|global)\b"
    r"|\bno (?:less|fewer)\b|\bnot only\b|\bor\b(?!\s+(?:more|less|above|below|higher|lower|greater|rain|snow))",
    re.IGNORECASE,
)
"""Matches questions that cannot be answered by counting days."""


@frozen
class WeatherQuestion:
    """A question about the weather: whether an event happens in the span, or how large a quantity gets."""

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
    parsed = sense(text, due, closes)
    place = next((m[1].strip(" .,") for m in _PLACE.finditer(text) if m[1].split()[0] not in _MONTHS), None)
    span = asked_span(text, due, closes)
    if place is None or span is None or (span.last - due).days > LONGEST_WEATHER:
        return None
    if parsed.stays or _NO_SINGLE_DAY.search(text) or (number and parsed.negated):
        return None
    level = next(iter(parsed.numbers)) if len(parsed.numbers) == 1 and not number else None
    if parsed.numbers and level is None and not number:
        return None
    if _SNOW.search(text) or _RAIN.search(text):
        return _fallen(text, parsed, place, span, level, number=number)
    if not number and level is None:
        if not _FROST.search(text):
            return None
        return WeatherQuestion(
            place=place, variable="temperature_2m_min", threshold=0.0, above=False, summary="any day", span=span,
            unit="°C", negated=parsed.negated,
        )  # fmt: skip
    return _warmth(text, parsed, place, span, level) if _WARMTH.search(text) else None


def _fallen(
    text: str, parsed: QuestionSense, place: str, span: AskedSpan, level: float | None, *, number: bool
) -> WeatherQuestion | None:
    """Parse a question about snow or rain: any at all, or a total."""
    snow, rain = _SNOW.search(text) is not None, _RAIN.search(text) is not None
    if (snow and rain and not _RAIN_OR_SNOW.search(text)) or (level is not None and not _DEPTH.search(text)):
        return None
    only_snow = snow and not rain
    unit, inch = ("cm", CM_PER_INCH) if only_snow else ("mm", MM_PER_INCH)
    if number:
        threshold, summary = nan, "total"
    elif level is not None:
        threshold, summary = level * inch if _INCHES.search(text) else level, "total"
    else:
        threshold, summary = SNOW_CM if only_snow else RAIN_MM, "any day"
    # "Less than 5 cm" is the opposite of "at least 5 cm", and "not less than 5 cm" is the same.
    below = level is not None and _LESS.search(text) is not None
    return WeatherQuestion(
        place=place,
        variable="snowfall_sum" if only_snow else "precipitation_sum",
        threshold=threshold,
        above=True,
        summary=summary,
        span=span,
        unit=unit,
        negated=parsed.negated != below,
        imperial=_INCHES.search(text) is not None,
    )


def _warmth(
    text: str, parsed: QuestionSense, place: str, span: AskedSpan, level: float | None
) -> WeatherQuestion | None:
    """Parse a question about a temperature that is passed on some day, or about the highest or lowest of the span."""
    highest, lowest = _HIGH.search(text) is not None, _LOW.search(text) is not None
    if highest and lowest:
        return None
    below = parsed.down and not parsed.up
    # "The high is below 10" means that it does not reach 10, the opposite of the counted event.
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
        negated=parsed.negated != ((highest and below) or (lowest and parsed.up and not parsed.down)),
        imperial=fahrenheit,
        scale_unstated=not fahrenheit and _CELSIUS.search(text) is None,
    )


def _from_fahrenheit(degrees: float) -> float:
    return (degrees - 32) / 1.8


HIT_BY_LEAD = (0.85, 0.85, 0.7, 0.7, 0.55, 0.55, 0.55)
"""How often a forecast event happens, by days ahead: rounded rules of thumb, not fitted."""
SUREST = 0.99
"""Highest probability from a weather forecast alone."""
MISSED = 0.05
"""Probability of an event that was not forecast, on a day of the next week."""
LEAST_SPREAD = 0.1
"""Smallest standard deviation, for past years that are all alike."""
ERROR_FIRST, ERROR_GROWTH = 1.5, 0.3
"""Standard error, in °C, of a temperature forecast for tomorrow, and how much each further day adds."""


@frozen
class SeriesAnswer:
    """A probability derived from a series, with an interval."""

    p: float
    interval: Interval
    n: int
    """Number of years, or trading sessions, it is based on."""
    reason: str


def weather_answer(
    question: WeatherQuestion, past: Mapping[int, Sequence[float]], forecast: Mapping[date, float], today: date
) -> SeriesAnswer:
    """Answer from the same days of past years and, for the next days, from a weather forecast.

    `past` holds by year the values of the days of the span that no forecast covers, or of all of them.
    """
    hits, n = sum(question.happens(values) for values in past.values()), len(past)
    soon = _soon(question, forecast, today) if question.summary == "any day" else 0.0
    low, p, high = (1 - (1 - soon) * (1 - chance) for chance in share_interval(hits, n))
    if not n:
        low, p, high = max(0.0, soon - 0.15), soon, min(1.0, soon + 0.15)
    if question.negated:
        low, p, high = 1 - high, 1 - p, 1 - low
    parts = [f"In {hits} of the last {n} years there was {question.words} on those days."] if n else []
    if forecast and question.summary == "any day":
        days = str(min(forecast)) if len(forecast) == 1 else f"{min(forecast)} to {max(forecast)}"
        alone = f"From the forecast for {days} alone, the chance of that is {percent(soon)}."
        parts.append(alone if n else alone.replace("that", question.words))
    if question.negated:
        parts.append("The question asks that it does not happen.")
    return SeriesAnswer(p=p, interval=(low, high), n=n, reason=" ".join(parts))


def weather_quantiles(
    question: WeatherQuestion,
    past: Mapping[int, Sequence[float]],
    forecast: Mapping[date, float],
    today: date,
    levels: Sequence[float],
) -> tuple[list[float], str]:
    """Return quantiles of the quantity over the span, from a forecast if it covers every day, else from past years."""
    if question.unit == "°C" and len(forecast) == question.span.days:
        expected = question.quantity(list(forecast.values()))
        lead = max((question.span.last - today).days, 1)
        error = ERROR_FIRST + ERROR_GROWTH * lead
        quantiles = [expected + error * student_quantile(level, 50) for level in levels]
        return [
            question.in_asked_units(value) for value in quantiles
        ], f"{expected:.1f} °C is forecast, give or take {error:.1f} °C."
    totals = np.array([question.quantity(values) for values in past.values()])
    # Amounts of rain and snow are skewed; their square roots are nearly normal.
    scale = totals if question.unit == "°C" else np.sqrt(np.maximum(totals, 0.0))
    n = len(totals)
    spread = max(float(scale.std(ddof=1)), LEAST_SPREAD) * sqrt(1 + 1 / n)
    reached = [float(scale.mean()) + spread * student_quantile(level, n - 1) for level in levels]
    quantiles = reached if question.unit == "°C" else [max(value, 0.0) ** 2 for value in reached]
    kind = "total" if question.summary == "total" else "highest" if question.above else "lowest"
    range_text = f"the {kind} of those days was {totals.min():.4g} to {totals.max():.4g} {question.unit}"
    return [
        question.in_asked_units(value) for value in quantiles
    ], f"In the last {n} years {range_text}, {totals.mean():.4g} on average."


def _soon(question: WeatherQuestion, forecast: Mapping[date, float], today: date) -> float:
    """Return the chance of the event on days with a forecast: that of the likeliest day, as days are correlated."""
    chances = [0.0]
    for day, value in forecast.items():
        lead = min(max((day - today).days, 1), len(HIT_BY_LEAD))
        if question.variable.startswith("temperature"):
            over = (value - question.threshold) * (1 if question.above else -1)
            chances.append(normal_below(over / (ERROR_FIRST + ERROR_GROWTH * lead)))
        else:
            chances.append(HIT_BY_LEAD[lead - 1] if question.happens([value]) else MISSED)
    return min(max(chances), SUREST)


def share_interval(hits: float, n: float) -> tuple[float, float, float]:
    """Return lower bound, estimate and upper bound of a share, with Jeffreys' prior (Brown, Cai & DasGupta 2001)."""
    a, b, tail = hits + 0.5, n - hits + 0.5, (1 - CENTRAL) / 2
    return beta_quantile(tail, a, b), a / (a + b), beta_quantile(1 - tail, a, b)


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
_SHARE_WORDS = pattern(r"\b(?:shares?|stock|close[sd]?|trad(?:e|es|ing)|price)\b", re.IGNORECASE)
_NOT_A_PRICE = pattern(
    r"\b(?:market cap|reserve|hold(?:s|ings?)?|etf|medals?|standard|than(?!\s*[$€£]?\d)|percent|revenue|earnings"
    r"|mayor|deliver|ballon|dominance|first)\b|%",
    re.IGNORECASE,
)
_AT_END = pattern(r"\b(?:at|on)\s+(?:the\s+)?(?:very\s+)?(?:end|close)\s+of\b", re.IGNORECASE)
_BESIDE = word_set("industrial average index composite price us usd futures spot oil stock")
ROUND_THE_CLOCK = frozenset({"BTC-USD", "ETH-USD", "SOL-USD", "DOGE-USD", "XRP-USD"})
LONGEST_PRICE = 400
"""Maximum number of days ahead for a random walk."""
SESSIONS, RECENT_SESSIONS = 500, 60
LEAST_MOVE = 0.0005
"""Smallest spread of a session's log change, for a price that never moved, such as a pegged currency."""
DEGREES = 4.0
"""Degrees of freedom of Student's t, because daily changes have fat tails."""
TOUCH = 1.65
"""Ratio of the probability that some close touches a level to the probability that the last close is beyond it. It is 2
in theory, by reflection. Closes are a day apart, and for shares the ratio was 1.63 (benchmarks/reports/asking.md)."""
UNSURE = 1.3
"""Factor by which the spread may be larger or smaller than in the past."""


@frozen
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
    """Parse the price a question asks about; None unless it asks about one price, one threshold and one day."""
    text = text[:LONGEST]
    parsed, lowered = sense(text, due, closes), text.lower()
    names = [name for name in _SYMBOLS if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", lowered)]
    symbols = {_SYMBOLS[name] for name in names if not any(name in other for other in names if other != name)}
    # The number in the name of an index is not the level asked about.
    numbers = parsed.numbers - {500.0, 100.0} if symbols & {"^GSPC", "^NDX", "^FTSE"} else parsed.numbers
    if _SHARE_WORDS.search(text):
        symbols |= {_SHARES[word] for word in re.findall(r"[a-z]+", lowered) if word in _SHARES}
        # A ticker names exactly one price: SPY follows the S&P 500 but is not the same.
        symbols = _TICKERS & set(re.findall(r"\b[A-Z]{2,5}\b", text)) or symbols
    span = asked_span(text, due, closes)
    if len(symbols) != 1 or span is None or parsed.negated or (span.last - due).days > LONGEST_PRICE:
        return None
    known = _BESIDE | {part for name in (*_SYMBOLS, *_SHARES) for part in re.split(r"[ /&-]", name)} | set(_SYMBOLS)
    known |= {ticker.lower() for ticker in _TICKERS}
    unknown_names = [word for who in parsed.names for word in who if word.lower().removesuffix("'s") not in known]
    if unknown_names or _NOT_A_PRICE.search(text) or (not number and (len(numbers) != 1 or parsed.up == parsed.down)):
        return None
    (symbol,) = symbols
    return PriceQuestion(
        name=next((name for name, listed in (_SYMBOLS | _SHARES).items() if listed == symbol), symbol),
        symbol=symbol,
        threshold=None if number else next(iter(numbers)),
        above=parsed.up,
        touch=not (parsed.standing or _AT_END.search(text)),
        span=span,
    )


def log_spread(values: Floats, steps: float) -> float:
    """Spread of the log price over `steps` sessions, weighting recent sessions as much as the last two years."""
    moves = np.diff(np.log(values[values > 0][-SESSIONS - 1 :]))
    whole, recent = float(np.mean(moves**2)), float(np.mean(moves[-RECENT_SESSIONS:] ** 2))
    return sqrt(max((whole + recent) / 2, LEAST_MOVE**2) * max(steps, 1.0))


def sessions_ahead(question: PriceQuestion, last: date) -> float:
    """Number of sessions from the last value to the last day that counts."""
    days = max((question.span.last - last).days, 1)
    return days if question.symbol in ROUND_THE_CLOCK else max(days * 5 / 7, 1.0)


def price_answer(question: PriceQuestion, values: Floats, last: date) -> SeriesAnswer:
    """Return the answer from a random walk with fat tails and no drift, starting at the last value.

    Touching a level at any time is `TOUCH` times as likely as being beyond it at the end.
    """
    assert question.threshold is not None
    now, steps = float(values[-1]), sessions_ahead(question, last)
    spread = log_spread(values, steps)
    if question.threshold <= 0 or now <= 0:
        beyond = 1.0 if question.above else 0.0
        return SeriesAnswer(p=beyond, interval=(beyond, beyond), n=len(values), reason="")

    def chance(width: float) -> float:
        away = log(question.threshold / now) * (1 if question.above else -1) if question.threshold else 0.0
        tail = _student_tail(away / width)
        return min(0.99, TOUCH * tail) if question.touch and away > 0 else 0.99 if question.touch else tail

    ends = sorted(chance(spread * factor) for factor in (1 / UNSURE, 1.0, UNSURE))
    p = chance(spread)
    far = log(question.threshold / now) / spread
    name = question.name if question.name.isupper() else question.name.capitalize()
    reason = (
        f"{name} was at {now:,.6g} on {last}; {question.threshold:,.6g} is {abs(far):.1f} standard "
        f"deviations {'above' if far > 0 else 'below'} that over {steps:.0f} sessions, in a random walk without drift."
    )
    return SeriesAnswer(p=p, interval=(ends[0], ends[-1]), n=min(len(values) - 1, SESSIONS), reason=reason)


def price_quantiles(question: PriceQuestion, values: Floats, last: date, levels: Sequence[float]) -> list[float]:
    """Quantiles of the price on the last day."""
    now, spread = float(values[-1]), log_spread(values, sessions_ahead(question, last))
    scale = spread / sqrt(DEGREES / (DEGREES - 2))
    return [now * exp(student_quantile(level, DEGREES) * scale) for level in levels]


def _student_tail(z: float) -> float:
    """Return the probability that Student's t, scaled to a spread of one, is above z."""
    return student_below(-z * sqrt(DEGREES / (DEGREES - 2)), DEGREES)
