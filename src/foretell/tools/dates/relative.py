"""Times counted from a date: "one year after the June 2024 cut", "six weeks into the strike that began on 2 May"."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import find_in_folded
from foretell.tools.dates.folding import fold, lower, original_span, places_of
from foretell.tools.dates.partial_dates import latest_months
from foretell.tools.dates.places import looks_ahead
from foretell.tools.dates.stamps import FARTHEST, is_after
from foretell.tools.dates.tenses import is_plan, sentence_describes_past

_UNITS = {
    1: r"days?|tage?n?|jours?|dias?|giorn[oi]|dage?n?|dni|дн\w{1,3}",
    14: r"fortnights?|quinzaines?|quincenas?",
    7: r"weeks?|wochen?|semaines?|semanas?|settiman[ae]|weke?n?|uger|veckor|tygodni\w*|недел\w{1,2}",
    30: r"months?|monate?n?|mois|mes(?:es)?|mes[ei]|maande?n?|maneder|manader|miesi\w{2,5}|месяц\w{0,3}",
    365: r"years?|jahre?n?|ans?|annees?|anos?|ann[oi]|jaar|jaren|ar|lata?|год\w{0,2}|лет",
}
_NUMBER_WORDS = {
    1: "a an the first one ein eine einem einer un une una um uma een en ett et",
    2: "two zwei deux dos due dois duas twee tva to два две dwa dwie",
    3: "three drei trois tres tre drie три trzy",
    4: "four vier quatre cuatro quattro quatro fyra fire четыре cztery",
    5: "five funf cinq cinco cinque vijf fem пять piec",
    6: "six sechs seis sei zes sex seks шесть szesc",
    7: "seven sieben sept siete sette sete zeven sju syv семь siedem",
    8: "eight acht huit ocho otto oito atta atte otte восемь osiem",
    9: "nine neun neuf nueve nove negen nio ni девять dziewiec",
    10: "ten zehn dix diez dieci dez tien tio ti десять dziesiec",
    11: "eleven elf onze once undici",
    12: "twelve zwolf douze doce dodici doze twaalf",
    15: "quinze quince quindici",
    20: "twenty zwanzig vingt veinte",
    30: "thirty dreissig trente treinta",
    40: "forty",
    50: "fifty funfzig cinquante",
    60: "sixty",
    90: "ninety",
    100: "hundred hundert cent cien cento honderd",
}
_NUMBERS = {word: number for number, words in _NUMBER_WORDS.items() for word in words.split()}
_AFTER_WORDS = (
    "after since from into than following nach seit apres depuis despues tras desde dopo na sinds efter depois apos po"
    " после с"
)
_AFTER = tuple(f" {word} " for word in _AFTER_WORDS.split())
_FROM = (" de ", " del ", " de la ", " dal ", " dalla ", " dall'")
"""Words that count from a date after "a": "a seis meses del apagón"."""
_COUNTED = pattern(
    rf"(?:\b(?P<half>half an? )|\b(?P<n>\d{{1,3}}|[^\W\d_]+)[ -])?\b(?P<unit>{'|'.join(_UNITS.values())})"
    r"(?: on| to the day| later| (?:ha(?:ve|s|d) )?(?:now )?(?:passed|elapsed|gone by))?$"
)
_REACH = 80
"""How many characters after "after" are searched for a date."""
_CLAUSE_END = pattern(r"[\n.,;:!?()]")
_LEAD_WORDS = "a in the just only barely nearly almost about around some now for more than over less it is"
_LEAD = frozenset(_LEAD_WORDS.split())
_UNIT_DAYS = tuple((pattern(forms), days) for days, forms in _UNITS.items())
_LEAST_SHARE = 0.9
"""How much of a stated time must have passed, because writers round it up."""
_SENTENCE_START = pattern(r"(?:^|[.!?;:,\n]\s*|[–—-]\s)([^.!?;:,\n]{0,40})$")


def late_counted_time(text: str, published: date | None, as_of: AsOf) -> str | None:
    """Return a time counted from a date that lies after the cutoff and is not planned, or None.

    >>> late_counted_time("One year after the June 2024 cut, lending has hardly grown.", None, AsOf.day("2024-06-20"))
    'One year after the June 2024'
    >>> late_counted_time("One year after the June 2024 cut, the review will begin.", None, AsOf.day("2024-06-20"))
    """
    plain = fold(text)
    low = lower(plain)
    for after in sorted({place for word in (*_AFTER, *_FROM) for place in places_of(low, word)}):
        counted = _COUNTED.search(low, max(0, after - 50), after)
        if counted is None or (low.startswith(_FROM, after) and not low.endswith("a ", 0, counted.start())):
            continue
        for start, end, first in _dates(low, after, _clause_end(low, after), published):
            span = original_span(text, plain, start, end)
            far = first.year >= as_of.at.year + FARTHEST
            if far or not is_after(first + _length(counted), as_of) or is_plan(*span, edges=False):
                continue
            if _opens_sentence(low, counted.start()) or sentence_describes_past(*span):
                return " ".join(plain[counted.start() : end].split())
    return None


_ANNIVERSARY = pattern(r"\b(?P<n>[a-z]+|\d+)(?:st|nd|rd|th)?[ -](?:year )?anniversary of ")


def late_anniversary(text: str, as_of: AsOf) -> str | None:
    """Return an anniversary of a date that lies after the cutoff and is described as past, or None.

    >>> late_anniversary("By the first anniversary of the vote of 9 June 2024 it had met.", AsOf.day("2024-06-10"))
    'first anniversary'
    """
    low = lower(fold(text))
    for match in _ANNIVERSARY.finditer(low) if "anniversary of" in low else ():
        number = int(match["n"]) if match["n"].isdigit() else _ORDINALS.get(match["n"], -1) + 1
        for _, end, first in _dates(low, match.end(), _clause_end(low, match.end()), None):
            late = number > 0 and is_after(first + timedelta(days=_LEAST_DAYS * number), as_of)
            rest = _SENTENCE_STOP.split(low[end : end + _REACH], maxsplit=1)[0]
            if late and _TOLD.search(rest) and not looks_ahead(rest):
                return match[0].removesuffix(" of ")
    return None


_TOLD = pattern(r"\b(?:had|has|have|was|were|\w{3,}ed)\b")
_LEAST_DAYS = 360
"""At least how many days lie between anniversaries, because a year may have been rounded."""
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_WORDS.split())}
_AGES = {
    " its ": pattern(
        r"\b(?:in|into|entering|entered|reached) its (?P<n>[a-z]+|\d+(?:st|nd|rd|th)) (?P<unit>day|week|month|year)\b"
    ),
    "old": pattern(r"\b(?P<n>\d+|[a-z]+)[ -](?P<unit>day|week|month|year)s?[ -]old\b"),
}
"""Ways to say how long something has lasted, by a word that each contains."""
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


def late_age(text: str, as_of: AsOf) -> str | None:
    """Return how long something has lasted that began on a date, if that reaches past the cutoff, or None.

    >>> late_age("Now in its third month, the strike that began on 2 May 2024 goes on.", AsOf.day("2024-05-15"))
    'in its third month'
    """
    plain = fold(text)
    low = lower(plain)
    places = [(forms, place) for word, forms in _AGES.items() for place in places_of(low, word)]
    for age in filter(None, (forms.search(low, max(0, place - 20), place + 30) for forms, place in places)):
        for found_date in find_in_folded(low):
            if found_date.precision != "day" or _SENTENCE_STOP.search(low, *sorted((age.end(), found_date.start))):
                continue
            span = original_span(text, plain, found_date.start, found_date.end)
            if is_after(min(found_date.readings) + _lasted(age), as_of) and sentence_describes_past(*span):
                return age[0]
    return None


_SENTENCE_STOP = pattern(r"[.!?]\s|\n")


def _lasted(age: re.Match[str]) -> timedelta:
    digits = age["n"].rstrip("stndrh")
    if digits.isdigit():
        number = int(digits) - (digits != age["n"])
    else:
        number = _ORDINALS.get(age["n"], _NUMBERS.get(age["n"], 0))
    return timedelta(days=round(_LEAST_SHARE * number * _DAYS[age["unit"]]))


_DAY_BESIDE = pattern(r", (?:(?:le|am|el|il|on|den|op) )?(?=\d{1,2}\D)")


def _clause_end(low: str, start: int) -> int:
    """Return where the clause ends; a day between commas belongs to it: "trois mois après la chute, le 8 décembre"."""
    stop = _CLAUSE_END.search(low, start, start + _REACH)
    if stop is None:
        return start + _REACH
    beside = _DAY_BESIDE.match(low, stop.start())
    return stop.start() if beside is None else beside.end() + 1


def _dates(low: str, first: int, last: int, published: date | None) -> Iterator[tuple[int, int, date]]:
    """Yield start, end and first day of the dates between two positions; months may lack their year."""
    for found_date in find_in_folded(low):
        if first <= found_date.start < last and found_date.precision != "year":
            yield found_date.start, found_date.end, min(found_date.readings)
    for start, end, month in latest_months(low, published) if published is not None else ():
        if first <= start < last:
            yield start, end, month


def _length(counted: re.Match[str]) -> timedelta:
    """Return at least how long after the date the time is; an unknown number counts as none."""
    days = next(days for forms, days in _UNIT_DAYS if forms.fullmatch(counted["unit"]))
    if counted["half"]:
        return timedelta(days=days // 2)
    word = counted["n"] or ""
    number = int(word) if word.isdigit() else _NUMBERS.get(word, 0)
    return timedelta(days=round(_LEAST_SHARE * number * days))


def _opens_sentence(low: str, place: int) -> bool:
    lead = _SENTENCE_START.search(low, max(0, place - 60), place)
    return lead is not None and all(word in _LEAD for word in lead[1].split())
