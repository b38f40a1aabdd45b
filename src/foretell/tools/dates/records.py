"""What tables, headlines, figures of a period, states and live reports tell of a time after the cutoff."""

import re
from collections.abc import Iterator
from datetime import date

from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import find_in_folded
from foretell.tools.dates.folding import fold, lower
from foretell.tools.dates.places import DatePlace, looks_ahead
from foretell.tools.dates.stamps import is_after, is_late, settled_by
from foretell.tools.dates.words import FIXTURE, PLANNED, SCHEDULED

_FORECAST = re.compile(
    r"forecast|projec|predict|expect|estimat|outlook|schedul|calendar|prognos|previs|fixture|futures|maturity|model"
    r"|予測|预测|예측|прогноз"
)
_NUMBERS = re.compile(r"^[\s,;|:\t\"'()\[\]=]*[-+$€£¥]?\d[\d.,%\s;|\t\"'$€£¥+()\[\]a-z/-]{0,60}$")
_ROW_START = re.compile(r"[\W_]*(?:\"?[a-z_]+\"?\s*:\s*\"?)?")
_CLOCK = re.compile(r"^[t\s]*\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?")
_ENDED = r"resolved|settled|finali[sz]ed|closed|determined|ended"
_STATE = re.compile(
    r"\"(?:closed|is_?resolved|resolved|settled|finali[sz]ed|is_?closed)\"\s*:\s*true\b"
    r"|\"(?:result|resolution|outcome|winner|resolved_?to|winning_?outcome|final_?result)\"\s*:\s*"
    r"(?:\"[^\"\s]|true|false|[01](?:\.0+)?\b)"
    rf"|\"(?:status|state)\"\s*:\s*\"(?:{_ENDED}|final|completed)\""
    r"|(?:^|\n)\W{0,8}(?:market |question |contract |poll )?(?:status|state|resolution|outcome|result|final result"
    r"|final outcome|verdict|winner|ergebnis|resultat|resultado|risultato|результат|итог|結果|结果|결과)"
    r"\s*[:=]\s*\**\s*"
    rf"(?:{_ENDED}|final\b|yes\b|no\b|ja\b|nein\b|oui\b|non\b|si\b|да\b|нет\b|はい|いいえ|是|否)"
    r"|(?:^|\n)\W{0,8}(?:this )?(?:market|question|contract)?\W{0,3}(?:has |was |is )?(?:resolved|settled)"
    r"\s*(?:as|to|:)?\s*[\"'*]*(?:yes|no)\b",
)
_STATE_WORDS = (
    "resol", "settled", "closed", "status", "state", "result", "outcome", "winner", "verdict", "finali", "ergebnis",
    "risult", "результат", "итог", "結果", "结果", "결과",
)  # fmt: skip
"""One of them is in every state."""
_STATE_WORD = re.compile("|".join(_STATE_WORDS))
_STATE_SIGNS = (":", "=", "resolved", "settled")
"""And one of these."""
_AROUND = 80
"""Characters around such a word that are looked at."""
_LIVE_WORDS = ("live", "happened", "minute", "rolling", "direct", "vivo")
"""One of them is in each of these."""
_LIVE_REPORT = re.compile(
    r"\blive ?blog|\blive\b[^\n]{0,40}\b(?:updates?|coverage|results|reaction|ticker|tracker)|\bas it happened\b"
    r"|\bminute[- ]by[- ]minute\b|\brolling coverage\b|^live:|\| live\b"
    r"|\bliveticker\b|\ben direct\b|\ben vivo\b|\bao vivo\b"
)


_RESULT = re.compile(
    r"\b(?:results?|minutes|earnings|transcript|review|recap|report(?:ed|s)?|f[ae]lls?|r[io]ses?|beats?|wins?|won"
    r"|jump(?:s|ed)"
    r"|drop(?:s|ped)|inflation|gdp|cpi|revenue|profits?|loss(?:es)?|grew|shrank|came in|actual|added|payrolls"
    r"|unemployment|retail sales|turnout|missed|was|were"
    r"|final table|annual report|issue|edition|vol\.|published|who won|winners?|champions|resultats|benefice|bilanz"
    r"|gewinn|umsatz|\w{0,10}ergebnis(?:se)?|resultados|ganancias"
    r"|risultati|utili)\b"
)
_EXPECTED = re.compile(
    r"\b(?:expect\w*|forecast\w*|guid\w+|outlook|estimat\w*|project\w*|plan\w*|will|would|due|targets?|goals?"
    r"|consensus|preview"
    r"|ahead|before|by|could|may|might|should|set to|to report|to publish|to release|upcoming|next|budget|predict\w*"
    r"|if|until"
    r"|calendar|schedul\w*|view on|hope\w*|aim\w*|seen|likely|futures|contract|questions?|resol\w+|exceeds?|whether"
    r"|compared|means|refers?|bid|draw|preparations?|candidates?)\b"
)
_PERIOD = re.compile(
    r"\bq(?P<q1>[1-4])[ -]?(?P<y1>20\d\d)\b|\b(?P<y2>20\d\d)[ -]?q(?P<q2>[1-4])\b"
    r"|\b(?P<q3>[1-4])q ?'?(?P<y3>(?:20)?[2-4]\d)\b"
    r"|\b(?P<q4>first|second|third|fourth)[- ]quarter (?:of )?(?P<y4>20\d\d)\b|\bh(?P<h5>[12])[ -]?(?P<y5>20\d\d)\b"
    r"|\b(?:fy ?|full[- ]year |annual (?:report|results) )(?P<y6>20\d\d)\b|\b(?:season|saison) (?P<y7>20\d\d)[/-]\d\d"
    r"|\b(?P<s8>spring|summer|autumn|fall|winter) (?P<y8>20\d\d)\b|\b(?P<y9>20\d\d)(?= results\b)"
    r"|(?<=results )(?P<y10>20\d\d)\b"
    r"|(?<=champions )(?P<y11>20\d\d)\b|(?<=winner )(?P<y12>20\d\d)\b|(?<=winners )(?P<y13>20\d\d)\b"
    r"|(?<=bilanz )(?P<y14>20\d\d)\b"
)
_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_FISCAL = re.compile(r"fiscal|\bfy|financial year")


def late_title(title: str, as_of: AsOf, *, published: date | None = None) -> str | None:
    """A headline with a day after the cutoff, or with the result of a later month, that speaks of nothing to come."""
    low = lower(fold(title))
    if low.rstrip().endswith(("?", "？", "؟")):
        return None
    for found in find_in_folded(low):
        if is_late(found, as_of) and not settled_by(found, published):
            rest = f"{low[: found.start]} {low[found.end :]}"
            if SCHEDULED.search(rest) or PLANNED.search(rest) or looks_ahead(rest) or _FOR.search(low[: found.start]):
                continue
            if FIXTURE.search(rest) and not _SCORE.search(rest):
                continue
            if found.precision == "day" or (_RESULT.search(rest) and not _EXPECTED.search(rest)):
                return title
    return None


_SCORE = re.compile(r"[a-z]\s\d{1,3}\s?[-:]\s?\d{1,3}(?![\d:])")
_FOR = re.compile(
    r"\b(?:called|set|due|slated|tickets?|booked|fixed|agenda|plans?|candidates?|date|fixed|needed|why|matters?"
    r"|to) (?:for |on )?$"
)


def late_period(text: str, as_of: AsOf) -> str | None:
    """The result of a quarter, a half, a year or a season that began after the cutoff."""
    low = lower(fold(text))
    for one in _periods(low, as_of.at.year):
        begins = _begins(one)
        near = low[max(0, one.start() - 60) : one.end() + 60]
        if _FISCAL.search(near):
            # Years of accounts begin up to a year before those of the calendar.
            begins = date(begins.year - 1, begins.month, 1)
        if not is_after(begins, as_of):
            continue
        sentence = _sentence(low, one.start(), one.end())
        if _RESULT.search(sentence) and not _EXPECTED.search(sentence) and not SCHEDULED.search(sentence):
            return one[0]
    return _late_month(low, as_of)


def _late_month(low: str, as_of: AsOf) -> str | None:
    """The result of a month that began after the cutoff: "CPI for June 2024 came in at 2.4 %"."""
    for found in find_in_folded(low):
        if found.precision != "month" or not all(is_after(day, as_of) for day in found.readings):
            continue
        sentence = _sentence(low, found.start, found.end)
        ahead = _EXPECTED.search(sentence) or SCHEDULED.search(sentence) or PLANNED.search(sentence)
        figure = _FIGURE.search(sentence.replace(low[found.start : found.end], ""))
        if figure is not None and _RESULT.search(sentence) and not ahead:
            return low[found.start : found.end]
    return None


_FIGURE = re.compile(r"\d(?:[.,]\d|\d{2}|\s?%)|:\s?[-+]?\d")


_NEAR_YEAR, _NEAR_QUARTER = re.compile(r"20[2-4]\d(?!\d)"), re.compile(r"q(?<=[1-4]q) ?'?[2-4]\d(?!\d)")


def _periods(low: str, year: int) -> Iterator[re.Match[str]]:
    """The periods of that year and later ones, looked for around their years."""
    near = [one.span() for one in _NEAR_YEAR.finditer(low) if int(one[0]) >= year]
    near += [(one.start() - 1, one.end()) for one in _NEAR_QUARTER.finditer(low)]
    for start, end in sorted(near):
        one = _PERIOD.search(low, max(0, start - 24), end + 9)
        if one is not None and one.start() <= start < one.end():
            yield one


def _begins(one: re.Match[str]) -> date:
    named = {key: value for key, value in one.groupdict().items() if value}
    year = next(int(value) + (2000 if len(value) == 2 else 0) for key, value in named.items() if key[0] == "y")
    quarter = next((_QUARTERS.get(value) or int(value) for key, value in named.items() if key[0] == "q"), None)
    if quarter is not None:
        return date(year, 3 * quarter - 2, 1)
    if "h5" in named:
        return date(year, 6 * int(named["h5"]) - 5, 1)
    if "y7" in named:
        return date(year, 7, 1)
    return date(year, _SEASONS[named["s8"]] if "s8" in named else 1, 1)


def _sentence(low: str, start: int, end: int, reach: int = 90) -> str:
    """The words around a place, up to the ends of its sentence and its line."""
    before, after = low[max(0, start - reach) : start], low[end : end + reach]
    return before.rpartition("\n")[2].rpartition(". ")[2] + low[start:end] + after.partition("\n")[0].partition(". ")[0]


_CELLS = re.compile(r"</?t[dhr][^<>]{0,60}>|[,;|\t]")
_NUMBER_CELL = re.compile(r"[-+$€£¥(]?\d[\d.,%)\s$€£¥]{0,20}(?:%|[kmb]n?|bn)?")
_CLOCK_CELL = re.compile(r"\d{1,2}:\d{2}")
_LONGEST_CELL = 40


def late_row(title: str, text: str, as_of: AsOf) -> str | None:
    """A row of numbers for a day after the cutoff, in a table that is no forecast."""
    low = lower(fold(text))
    for found in find_in_folded(low):
        if not all(is_after(day, as_of) for day in found.readings):
            continue
        place = DatePlace(low, low, found)
        if not place.opens_line or not (_leads_numbers(place) or _among_cells(place)):
            continue
        above = low[max(0, place.line_start - 600) : place.line_start]
        if not (_FORECAST.search(lower(fold(title)) + above) or PLANNED.search(f"{place.before} {place.after}")):
            return low[place.line_start : place.line_end][:60]
    return None


def _leads_numbers(place: DatePlace) -> bool:
    return bool(_ROW_START.fullmatch(place.before) and _NUMBERS.match(_CLOCK.sub("", place.after)))


def _among_cells(place: DatePlace) -> bool:
    """Whether the date is a cell of its own in a line of short cells, one of which is a number."""
    if not place.short_line:
        return False
    cells = [cell.strip(" \"'") for cell in _CELLS.split(place.before)]
    behind = [cell.strip(" \"'") for cell in _CELLS.split(place.after)]
    alone = not cells[-1] and not _CLOCK.sub("", behind[0]).strip()
    others = [cell for cell in (*cells[:-1], *behind[1:]) if cell]
    if not alone or not others or any(len(cell) > _LONGEST_CELL for cell in others):
        return False
    return any(_NUMBER_CELL.fullmatch(cell) and not _CLOCK_CELL.fullmatch(cell) for cell in others)


def told_state(text: str) -> str | None:
    """A field or a line that tells how a question, a market or a contest ended."""
    low = lower(fold(text))
    if not any(map(low.__contains__, _STATE_SIGNS)):
        return None
    for word in _STATE_WORD.finditer(low):
        start, end = max(0, word.start() - _AROUND), word.end() + _AROUND
        signed = any(map(low[start:end].__contains__, _STATE_SIGNS))
        if signed and (found := _STATE.search(low, start, end)) is not None:
            return found[0].strip()
    return None


def late_entry(title: str, text: str, as_of: AsOf) -> str | None:
    """A line of a live report that begins with a date after the cutoff."""
    low = lower(fold(title))
    if not any(map(low.__contains__, _LIVE_WORDS)) or not _LIVE_REPORT.search(low):
        return None
    for line in text.splitlines():
        opening = line.lstrip(" \t#*-[(•")[:40]
        for found in find_in_folded(lower(fold(opening))):
            if found.start <= 12 and is_late(found, as_of):
                return opening
    return None
