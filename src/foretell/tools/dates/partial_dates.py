# ruff: noqa: E501 (tables of words)
"""Incomplete dates: days and months without a year ("Updated June 5"), and years without a day ("in late 2026").

A text that describes "7 June" as past normally means the last 7 June before it was published. If that day is many
months ago, the text was more likely written after the next one.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache

from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import FoundDate, find_in_folded, month_names, month_numbers, valid_days
from foretell.tools.dates.folding import fold, lower, original_span
from foretell.tools.dates.places import DatePlace
from foretell.tools.dates.stamp_words import has_stamp_word_before
from foretell.tools.dates.stamps import MOST_LATE_DATES, is_after
from foretell.tools.dates.tenses import describes_past, sentence_describes_past

_SMALL_NUMBER = pattern(r"[0-9][0-9]?(?![0-9:%/]|[.,][0-9])")
_MONTH_AFTER = pattern(r"(?:st|nd|rd|th|er|º|\.)?(?: (?:of|de|di)(?= )| d')? ?([^\W\d_]{3,12})(?![\w-])")
_OTHER_YEAR_AFTER = pattern(r",? (?:de |del |a\. ?d\. )?\d{3,4}(?![\d:.,]?\d)")
"""A year before those of the web that belongs to the day: "fought on 21 October 1600"."""
_MONTH_BEFORE = pattern(r"(?<![\w-])([^\W\d_]{3,12})\.? (?:the )?$")
_ASIAN_DAY = pattern(r"(?P<m>[0-9]{1,2})[月월] ?(?P<d>[0-9]{1,2})[日号號일]")
_ASIAN_MONTH = pattern(r"(?<![0-9年년])(?P<m>[0-9]{1,2})[月월](?!\s?[0-9])")
_NAME_GOES_ON = pattern(r"[\w-]|\.? [0-9]")
_IN_BEFORE = pattern(r"\b(?:in|im|en|em|a|au|since|early|late|mid|until|w|v|i) $|\bmid-$")
_OTHER_NAMES = "march mars august marca marci marco mart augusta kova наурыз listopadu"
_OTHER_WORDS = frozenset(_OTHER_NAMES.split())
"""Month names that are also other words, and count only after a word such as "in"."""
_NO_MONTH_BEFORE = pattern(r"[0-9](?:st|nd|rd|th|\.|er)?(?: (?:de|of|di))? ?$|\b(?:last|each|every|previous) $")
_NO_DAY_BEFORE = frozenset("-/.,:$€£")
_JOINED = frozenset("בלמה")
"""Hebrew "on", "to", "from" and "the", which a hyphen joins to the number."""
_SHORT_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec mai maj okt dez"
_SHORT_MONTHS = frozenset(_SHORT_NAMES.split())
"""The short names that count as months; others ("set", "des", "ago") are too often other words."""
_LONGEST_LAG, _LONGEST_NAMED_LAG = 270, 100
"""Most days before publication for which writers omit the year: in general, and after naming the next year."""
_MONTH_LENGTH, _SAME_DAYS = 30, 3
_NEARBY_YEAR = pattern(r"(?<![\d.,])1[5-9]\d\d(?![\d.,]\d)|(?<![\d.,])20\d\d(?![\d.,]\d)")
_YEAR_REACH = 400
_LAST_YEAR = pattern(
    r"\b(?:last|previous|preceding|prior|that|each|every) year|\bannual|\byearly|vorjahr|letzten jahres"
    r"|vergangenen jahres|jedes jahr"
    r"|l'an dernier|l'annee derniere|chaque annee|ano pasado|cada ano|ano passado|todos os anos|anno scorso"
    r"|ogni anno|vorig jaar|elk jaar|ubieglego roku|co roku|loni|minuleho roku|прошлого года|каждый год|минулого року"
    r"|去年|昨年|每年|毎年|지난해|매년"
)
_SCHEDULED = pattern(
    r"\b(?:eta|etd|cut-?offs?|sold out|tba|tbc|(?<!second )(?<!premier )tour|tickets?|doors|kick-?off|fixtures?|schedule|semi-?finals?)\b"
)
_ENTRY_END = pattern(r"[·|;\n]|\.\s| - ")
_LOGGED = pattern(r"^ \d{2}:\d{2}:\d{2}\b")
_SCORED = pattern(r"^[\s|,;]{1,4}[^\n]{0,40}\b[wldt] \d{1,3}-\d{1,3}\b")
_SPAN_AFTER = pattern(r"^\s?(?:-|to|until|till|through|bis|au|al|a|do|до|по)\s?(?:[^\W\d_]{3,9} )?\d")
_UPDATED = pattern(
    r"\b(?:updated?|modified|edited|revised|corrected|aktualisiert|a jour|actualizado|atualizado|aggiornato|обновлено"
    r"|bijgewerkt)\b[^\n]{0,24}$"
)
_NUMERIC = pattern(r"(?<![\d./:,-])(?!24/7)(?P<a>\d{1,2})(?:/(?P<b>\d{1,2})(?![\d/.]?\d))")
"""Day and month, or month and day, as numbers."""
_HEAD = 600
_LONGEST_DATELINE_LAG = 120
_DATELINE = pattern(
    r"(?:^|\n)[A-Z][A-Z .'/-]{2,40}(?:, [A-Z][a-z.]{2,12})?, (?:(?P<m>[A-Z][a-z]{2,8})\.? (?P<d>\d{1,2})"
    r"|(?P<d2>\d{1,2})\.? (?P<m2>[A-Za-z]{3,10})\.?) ?(?:\([A-Z][^)\n]{1,25}\) ?-|--? )"
)


def late_yearless_day(text: str, published: date, as_of: AsOf) -> str | None:
    """Return a day without a year that is described as past and lies after the cutoff, or None.

    >>> cutoff, published = AsOf.day("2024-04-01"), date(2024, 3, 10)
    >>> late_yearless_day("On 7 June the union accepted the offer.", published, cutoff)
    'On 7 June'
    >>> late_yearless_day("On 7 December the union accepted the offer. It meets on 7 June.", published, cutoff)
    """
    plain = fold(text)
    if (dateline := _late_dateline(plain[:_HEAD], published, as_of)) is not None:
        return dateline
    low = lower(plain)
    for start, end, month, day in _days(low):
        if (updated := _late_update(low, start, end, [(month, day)], published, as_of)) is not None:
            return updated
        meant = _meant(low, start, published, month, day)
        if meant is not None and is_after(meant, as_of) and _describes_day(text, plain, low, start, end):
            return _shown(plain, start, end)
    for match in _NUMERIC.finditer(low):
        day, month = int(match["a"]), int(match["b"])
        updated = _late_update(low, *match.span(), [(month, day), (day, month)], published, as_of)
        if updated is not None:
            return updated
    if any(found_date.precision == "day" for found_date in find_in_folded(low)):
        # Authors who write complete dates give the year where it matters.
        return None
    for start, end, month in _months(low):
        meant = _meant(low, start, published, month)
        if meant is not None and is_after(meant, as_of) and _describes_day(text, plain, low, start, end):
            return _shown(plain, start, end)
    return None


def _late_update(
    low: str, start: int, end: int, readings: Sequence[tuple[int, int]], published: date, as_of: AsOf
) -> str | None:
    """Return an update of the text on a day, given as months and days, that is after the cutoff by all its readings."""
    if not _UPDATED.search(low, max(0, start - 40), start):
        return None
    days = tuple(filter(None, (_following(published, *reading) for reading in readings)))
    if not days or not all(is_after(day, as_of) for day in days):
        return None
    place = DatePlace(low, low, FoundDate(start, end, days))
    return place.shown() if has_stamp_word_before(place) else None


def latest_months(low: str, published: date) -> Iterator[tuple[int, int, date]]:
    """Yield start, end and first day of the months without a year: the last one before the text's publication."""
    for start, end, month in _months(low):
        days = [day for year in (published.year, published.year - 1) for day in valid_days(year, month, 1)]
        yield start, end, next(day for day in days if (day - published).days <= _SAME_DAYS)


def _shown(plain: str, start: int, end: int) -> str:
    return " ".join(plain[max(plain.rfind("\n", 0, start) + 1, start - 30) : end].split())


def _days(low: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield start, end, month and day of each date without a year."""
    dated = [(match.start, match.end) for match in find_in_folded(low)]
    for match in _SMALL_NUMBER.finditer(low):
        before = low[match.start() - 1 : match.start()]
        joined = before == "-" and low[match.start() - 2 : match.start() - 1] in _JOINED
        if before.isalnum() or (before in _NO_DAY_BEFORE and not joined) or not 1 <= int(match[0]) <= 31:
            continue
        after = _MONTH_AFTER.match(low, match.end())
        ahead = _MONTH_BEFORE.search(low, max(0, match.start() - 18), match.start()) if before == " " else None
        for name, start, end in (
            (after, match.start(), after and after.end()),
            (ahead, ahead and ahead.start(), match.end()),
        ):
            month = _month(name[1]) if name is not None else 0
            if not month or start is None or end is None or _OTHER_YEAR_AFTER.match(low, end):
                continue
            if not any(a < end and start < b for a, b in dated):
                yield start, end, month, int(match[0])
                break
    for match in _ASIAN_DAY.finditer(low) if "月" in low or "월" in low else ():
        if not any(a < match.end() and match.start() < b for a, b in dated):
            yield match.start(), match.end(), int(match["m"]), int(match["d"])


def _months(low: str) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of each month name without a day and a year."""
    present = _names().keys() & low.replace(",", " ").replace(".", " ").split()
    places = [(*place, _names()[name]) for name in sorted(present) for place in _places(low, name)]
    if "月" in low or "월" in low:
        places += [
            (*match.span(), int(match["m"])) for match in _ASIAN_MONTH.finditer(low) if 1 <= int(match["m"]) <= 12
        ]
    dated = [(found_date.start, found_date.end) for found_date in find_in_folded(low)] if places else []
    for start, end, month in places:
        if not any(a < end and start < b for a, b in dated):
            yield start, end, month


def _places(low: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of a name where it is a separate word and no number makes it a day."""
    end = 0
    while (start := low.find(name, end)) >= 0:
        end = start + len(name)
        if _NAME_GOES_ON.match(low, end) or (start and (low[start - 1].isalnum() or low[start - 1] == "-")):
            continue
        first = max(0, start - 14)
        if name in _OTHER_WORDS:
            fits = _IN_BEFORE.search(low, first, start) is not None
        else:
            fits = _NO_MONTH_BEFORE.search(low, first, start) is None
        if fits:
            yield start, end


@cache
def _names() -> dict[str, int]:
    """Return the month numbers by name, without short names, which are too often other words."""
    known = {name: month_numbers(name) for name in month_names() if len(name) > 3 and name.isalpha()}
    return {name: numbers[0] for name, numbers in known.items() if len(numbers) == 1 and numbers[0] <= 12}


def _month(name: str) -> int:
    if len(name) < 4 and name.isascii() and name not in _SHORT_MONTHS:
        return 0
    numbers = month_numbers(name)
    return numbers[0] if len(numbers) == 1 and numbers[0] <= 12 else 0


def _meant(low: str, start: int, published: date, month: int, day: int = 0) -> date | None:
    """Return the day that is meant, or the first of the month; None if it is just the last one before publication."""
    days = [
        day_found for year in (published.year, published.year - 1) for day_found in valid_days(year, month, day or 1)
    ]
    last = next((day_found for day_found in days if (day_found - published).days <= _SAME_DAYS), None)
    meant = _following(published, month, day or 1)
    if last is None or meant is None:
        return None
    years_before = [int(match[0]) for match in _NEARBY_YEAR.finditer(low, max(0, start - _YEAR_REACH), start)]
    if years_before and years_before[-1] != meant.year:
        return None
    if not years_before:
        # A year that follows is that of the day only if no other one is there: "on 9 November ... (c) 2023".
        behind = {int(match[0]) for match in _NEARBY_YEAR.finditer(low, start, start + _YEAR_REACH)}
        years_before = [meant.year] if behind == {meant.year} else []
    lag = (published - last).days - (0 if day else _MONTH_LENGTH)
    return meant if lag > (_LONGEST_NAMED_LAG if years_before else _LONGEST_LAG) else None


def _describes_day(text: str, plain: str, low: str, start: int, end: int) -> bool:
    if _LAST_YEAR.search(low, max(0, start - 120), end + 80):
        return False
    if _SCHEDULED.search(_entry(low, start, end)):
        return False
    rest = low[end : end + 60]
    if _SPAN_AFTER.match(rest):
        return False
    if _LOGGED.match(rest) or _SCORED.match(rest):
        return True
    return describes_past(*original_span(text, plain, start, end))


def _entry(low: str, start: int, end: int) -> str:
    """Return the text around a day in a list that runs along a line."""
    return _ENTRY_END.split(low[max(0, start - 60) : start])[-1] + " " + _ENTRY_END.split(low[end : end + 60])[0]


def _following(published: date, month: int, day: int) -> date | None:
    """Return that calendar day at or after publication; up to three days before it count as the same."""
    days = [reading for year in (published.year, published.year + 1) for reading in valid_days(year, month, day)]
    return next((reading for reading in days if (reading - published).days >= -_SAME_DAYS), None)


def _late_dateline(head: str, published: date, as_of: AsOf) -> str | None:
    """Return a dateline without a year, "OSLO, June 6 (Reuters) -", that cannot be from before the cutoff, or None.

    Its day nearest to publication lies after the cutoff, or is months older than the page.
    """
    for match in _DATELINE.finditer(head) if ") -" in head or ")-" in head or " -" in head else ():
        for month in month_numbers((match["m"] or match["m2"]).lower()):
            years = (published.year - 1, published.year, published.year + 1)
            days = [day for year in years for day in valid_days(year, month, int(match["d"] or match["d2"]))]
            nearest = min(days, key=lambda day: abs((day - published).days), default=published)
            # A report that is months older than its page was not written on the day it claims.
            if is_after(nearest, as_of) or (published - nearest).days > _LONGEST_DATELINE_LAG:
                return match[0].strip()
    return None


# Years and parts of years described as past: "closed two plants in 2026", "in late 2026", "won the 2026 final".

_YEAR_ALONE = pattern(r"20[2-4][0-9](?![0-9%]|[.,:/][0-9]|-[0-9])")
_NO_YEAR_BEFORE = frozenset("0123456789.,:/$€£#-")
_WORD = pattern(r"[^\W\d_]+")
_REACH = 48
_IN_WORDS = (
    "in during throughout since after im seit während en dans depuis durant desde em durante nel nell dal sinds sedan siden "
    "under i v w we в во у през vuonna vuodesta aastal anul året jahr jahre année año ano anno roku roce godine godini leta "
    "gada году року годзе έτος το από pada tahun sejak năm trong في عام سنة منذ در سال בשנת מאז ב साल वर्ष सन ปี"
)
_IN = frozenset(lower(fold(_IN_WORDS)).split())
"""Words right before a year that something happened in."""
_IN_AFTER = pattern(
    lambda: fold(
        r"^(?:'?-?(?:da|de|ta|te|ban|ben)\b|-(?:an|en|aan)\b|\s?[年년](?!\s?(?:度|\d))| में| সালে| წელს| թվականին)"
    )
)
"""Endings and words right after such a year."""
_OPENS = pattern(r"(?:^|[.!?\n]\s*)$")
_SUBJECT = pattern(r" (?:was|were|saw|brought|proved|turned out|marked)\b(?! (?:meant|supposed|to|set|due|expected)\b)")
"""Statements about a year itself: "2026 saw fewer strikes"."""
_PART_WORDS = {
    1: "early beginning start anfang début principios comienzos início inicio inizio inizi begin början starten początek "
    "początku počátku začátku начале початку elején başında",
    6: "mid middle mitte mi mediados meados metà medio mitten połowie polovině середине середині közepén ortasında",
    10: "late ende",
    12: "end fin finales final fine eind einde slutet slutningen koniec końcu końca konci konce конце кінці végén végére "
    "sonunda sonuna lopussa lopulla lõpus",
}
_PARTS = {word: month for month, words in _PART_WORDS.items() for word in lower(fold(words)).split()}
"""The month in which each part of a year begins."""
_SMALL = frozenset(
    lower(fold("of the de del di des do du da van von av af år jahres roku roce года году року r année")).split()
)
_WON = pattern(
    lambda: lower(
        fold(
            r"\b(?:won|beat|defeated|crowned|clinched|winners?|champions?|victory|triumph\w*|gewann|gewonnen|siegte|sieger(?:in)?"
            r"|gagne|remporte|vainqueur|gano|gana|venci[oó]|ganador\w*|campe[oó]n\w*|venceu|ganhou|vinse|vinto|vincitore"
            r"|won|wint|winnaar|vann|vandt|vant|voitti|wygra[lł]\w*|zwyciężył\w*|vyhr[aá]l\w*|v[ií]t[eě]z\w*|выиграл\w*|победил\w*|победитель"
            r"|виграл\w*|переміг|megnyerte|nyerte|castigat|kazandi|κερδισε|juara|menang|vo dich)\b|優勝|冠军|夺冠|우승"
        )
    )
)
_NOT_WON = pattern(
    r"\b(?:bids?|hosts?|hosting|rights?|place|spot|berth|qualif\w*|promotion|contract|nomination|ticket|primary|odds"
    r"|favou?rites?|to win|could|would|will|if)\b"
)
_ENDED = pattern(
    lambda: lower(
        fold(
            r"\b(?:ended|finished|closed|closing|beendete|beendeten|schloss|termin[eéoó]|a termine|cl[oô]ture|cerr[oó]|fechou|encerrou"
            r"|chiuso|eindigde|sloot|avslutade|avsluttet|sluttede|zakończył\w*|skončil\w*|завершил\w*|закончил\w*)"
            r"(?: (?:the|out|das|das jahr|year|l'annee|el|ano|o|il|anno|het|jaar|aret|rok|год)){0,3} $"
        )
    )
)
"""Statements about a year at its end."""
_LAST_MONTH = 12
_YEARS_AHEAD = 3
"""Years ahead from which a year belongs to targets, bonds and games, whatever the tense."""


def late_year(text: str, as_of: AsOf) -> str | None:
    """Return a year, or a part of one, after the cutoff that the text describes as past, or None.

    >>> late_year("The firm closed two plants in 2026.", AsOf.day("2025-04-10"))
    'closed two plants in 2026'
    >>> late_year("The firm cut its forecast for 2026. It plans to close two plants in 2026.", AsOf.day("2025-04-10"))
    """
    plain = fold(text)
    low = lower(plain)
    now = as_of.at.year
    dated: list[FoundDate] | None = None
    for match in list(_YEAR_ALONE.finditer(low))[:MOST_LATE_DATES]:
        if (
            not now <= int(match[0]) < now + _YEARS_AHEAD
            or low[max(0, match.start() - 1) : match.start()] in _NO_YEAR_BEFORE
        ):
            continue
        dated = find_in_folded(low) if dated is None else dated
        if any(found_date.start <= match.start() < found_date.end for found_date in dated):
            continue
        if _describes_year(text, plain, low, match, as_of):
            return " ".join(
                plain[max(plain.rfind("\n", 0, match.start()) + 1, match.start() - 22) : match.end()].split()
            )
    return None


def _describes_year(text: str, plain: str, low: str, match: re.Match[str], as_of: AsOf) -> bool:
    before, after = low[max(0, match.start() - _REACH) : match.start()], low[match.end() : match.end() + _REACH]
    year = int(match[0])
    if _ENDED.search(before) and is_after(date(year, _LAST_MONTH, 15), as_of):
        return True
    first = _first_day(before, after, year)
    if first is not None and is_after(first, as_of):
        return sentence_describes_past(*original_span(text, plain, match.start(), match.end()))
    near = re.split(r"[.;:\n]", before)[-1] + match[0] + re.split(r"[.;,\n]", after)[0]
    if year > as_of.at.year and _WON.search(near) and not _NOT_WON.search(near):
        return sentence_describes_past(*original_span(text, plain, match.start(), match.end()))
    return False


def _first_day(before: str, after: str, year: int) -> date | None:
    """Return the day on which the year, or the named part of it, begins, if something may have happened in it."""
    words = _WORD.findall(before)
    place = len(words) - 1
    while place >= 0 and words[place] in _SMALL:
        place -= 1
    if place >= 0 and (month := _PARTS.get(words[place])) is not None:
        return date(year, month, 1)
    inside = bool(words) and before[-1:] in " -" and words[-1] in _IN
    return (
        date(year, 1, 1)
        if inside or _IN_AFTER.match(after) or (_OPENS.search(before) and _SUBJECT.match(after))
        else None
    )
