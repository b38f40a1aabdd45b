"""What tables, headlines, period figures, states and live reports reveal about the time after the cutoff."""

from datetime import date

from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import FoundDate, find_in_folded, month_numbers
from foretell.tools.dates.folding import fold, lower, original_span, places_of
from foretell.tools.dates.own_dates import NUMBER_BEFORE
from foretell.tools.dates.periods import EXPECTED, RESULT, unfinished_periods
from foretell.tools.dates.places import SPAN_HEAD, YEAR, DatePlace, looks_ahead
from foretell.tools.dates.stamps import MOST_LATE_DATES, is_after, is_late, settled_by
from foretell.tools.dates.tenses import is_plan
from foretell.tools.dates.words import FIXTURE, PLANNED, SCHEDULED

_FORECAST = pattern(
    r"forecast|projec|predict|expect|estimat|outlook|schedul|calendar|prognos|previs|fixture|futures|maturity|model"
    r"|予測|预测|예측|прогноз"
)
_NUMBERS = pattern(r"^[\s,;|:\t\"'()\[\]=]*[-+$€£¥]?\d[\d.,%\s;|\t\"'$€£¥+()\[\]\w/-]{0,60}$")
_ROW_START = pattern(r"[\W_]*(?:\"?[a-z_]+\"?\s*:\s*\"?)?")
_CLOCK = pattern(r"^[t\s]*\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?")
_ENDED = r"resolved|settled|finali[sz]ed|closed|determined|ended"
_STATE = pattern(
    r"\"(?:closed|is_?resolved|resolved|settled|finali[sz]ed|is_?closed)\"\s*:\s*true\b"
    r"|\"(?:result|resolution|outcome|winner|resolved_?to|winning_?outcome|final_?result)\"\s*:\s*"
    r"(?:\"[^\"\s]|true|false|[01](?:\.0+)?\b)"
    rf"|\"(?:status|state)\"\s*:\s*\"(?:{_ENDED}|final|completed)\""
    r"|(?:^|\n)\W{0,8}(?:market |question |contract |poll )?(?:status|state|resolution|outcome|result|final result"
    r"|final outcome|verdict|winner|ergebnis|resultat|resultado|risultato|результат|итог|結果|结果|결과)"
    r"\s*[:=]\s*\**\s*"
    rf"(?:{_ENDED}|final\b|yes\b|no\b|ja\b|nein\b|oui\b|non\b|si\b|да\b|нет\b|はい|いいえ|是|否)"
    r"|(?:^|[\n·•|])\W{0,8}(?:this )?(?:market|question|contract)?\W{0,3}(?:has |was |is )?(?:resolved|settled)"
    r"\s*(?:as|to|:)?\s*[\"'*]*(?:yes|no)\b",
)
_STATE_WORDS = (
    "resol", "settled", "closed", "status", "state", "result", "outcome", "winner", "verdict", "finali", "ergebnis",
    "risult", "результат", "итог", "結果", "结果", "결과",
)  # fmt: skip
"""Every state contains one of these words."""
_LATIN_STATE_WORDS = tuple(filter(str.isascii, _STATE_WORDS))
_STATE_SIGNS = (":", "=", "resolved", "settled")
"""Every state also contains one of these."""
_AROUND = 80
"""How many characters around such a word are searched."""
_LIVE_WORDS = ("live", "happened", "minute", "rolling", "direct", "vivo")
"""Every title of a live report contains one of these words."""
_LIVE_REPORT = pattern(
    r"\blive ?blog|\blive\b[^\n]{0,40}\b(?:updates?|coverage|results|reaction|ticker|tracker)|\bas it happened\b"
    r"|\bminute[- ]by[- ]minute\b|\brolling coverage\b|^live:|\| live\b"
    r"|\bliveticker\b|\ben direct\b|\ben vivo\b|\bao vivo\b"
)


def late_title(title: str, as_of: AsOf, *, published: date | None = None) -> str | None:
    """Return the headline if it has a day after the cutoff, or a later month's result, and is not about the future."""
    low = lower(fold(title))
    if low.rstrip().endswith(("?", "？", "؟")):
        return None
    for found_date in find_in_folded(low):
        if is_late(found_date, as_of) and not settled_by(found_date, published):
            rest = f"{low[: found_date.start]} {low[found_date.end :]}"
            if (
                SCHEDULED.search(rest)
                or PLANNED.search(rest)
                or looks_ahead(rest)
                or _FOR.search(low[: found_date.start])
            ):
                continue
            if FIXTURE.search(rest) and not _SCORE.search(rest):
                continue
            if NUMBER_BEFORE.search(low, 0, found_date.start) or is_plan(
                *original_span(title, fold(title), found_date.start, found_date.end)
            ):
                continue
            if found_date.precision == "day" or (RESULT.search(rest) and not EXPECTED.search(rest)):
                return title
    return None


_SCORE = pattern(r"[a-z]\s\d{1,3}\s?[-:]\s?\d{1,3}(?![\d:])")
_FOR = pattern(
    r"\b(?:called|set|due|slated|tickets?|booked|fixed|agenda|plans?|candidates?|date|fixed|needed|why|matters?"
    r"|to) (?:for |on )?$"
)


_CELLS = pattern(r"</?t[dhr][^<>]{0,60}>|[,;|\t]|\s/\s")
_NUMBER_CELL = pattern(r"[-+$€£¥(]?\d[\d.,%)\s$€£¥]{0,20}(?:%|[kmb]n?|bn|bps?)?")
_CLOCK_CELL = pattern(r"\d{1,2}:\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_LONGEST_CELL = 40
_DIGITS = pattern(r"\d")


def late_row(title: str, text: str, as_of: AsOf) -> str | None:
    """Return a row of numbers for a day after the cutoff, in a table that is not a forecast, or None."""
    low = lower(fold(text))
    dates = [
        found_date for found_date in find_in_folded(low) if all(is_after(day, as_of) for day in found_date.readings)
    ]
    for late_date in (*dates[:MOST_LATE_DATES], *unfinished_periods(low, as_of)):
        place = DatePlace(low, low, late_date)
        if not place.opens_line or not (_leads_numbers(place) or _among_cells(place)) or place.under_a_plan:
            continue
        if place.result == "missing":
            continue
        above = low[max(0, place.line_start - 600) : place.line_start]
        heads = " ".join(line for line in above.split("\n")[-12:] if len(line) < 80 and not _DIGITS.search(line))
        planned = PLANNED.search(f"{heads} {place.before} {place.after}")
        if not (_FORECAST.search(lower(fold(title)) + above) or planned):
            return low[place.line_start : place.line_end][:60]
    return None


_MONTH_CELL = pattern(r"[a-z]{3,9}")
_FEWEST_MONTHS, _FEWEST_VALUES = 4, 2


def late_column(text: str, as_of: AsOf) -> str | None:
    """Return a number in the column of a late day, or of a late month of the cutoff's year, or None."""
    low = lower(fold(text))
    return _late_day_column(low, as_of) or _late_month_column(low, as_of)


def _late_day_column(low: str, as_of: AsOf) -> str | None:
    """Return a number below a day after the cutoff, in a table whose other columns are past days."""
    starts: dict[int, list[FoundDate]] = {}
    if "\n" not in low:
        return None
    for found_date in find_in_folded(low):
        if found_date.precision == "day" and len(found_date.readings) == 1:
            starts.setdefault(low.rfind("\n", 0, found_date.start) + 1, []).append(found_date)
    for start, days in starts.items():
        late = [day for day in days if is_after(day.readings[0], as_of)]
        if not late or len(late) == len(days) or len(days) > _MOST_ROWS:
            continue
        header, _, below = low[start : start + _LONGEST_ROW * 2].partition("\n")
        cells, values = _CELLS.split(header), _CELLS.split(below.split("\n", 1)[0])
        column = next((k for k, cell in enumerate(cells) if cell.strip(' "') == low[late[0].start : late[0].end]), None)
        if (
            column is None
            or len(values) != len(cells)
            or SCHEDULED.search(header)
            or _FORECAST.search(low[: start + 200])
        ):
            continue
        if _NUMBER_CELL.fullmatch(values[column].strip()):
            return f"{cells[column].strip()}: {values[column].strip()}"
    return None


def _late_month_column(low: str, as_of: AsOf) -> str | None:
    """Return a number below a month after the cutoff, in a table whose columns are the months of a year."""
    if "|" not in low and "\t" not in low and not ("mar" in low and "apr" in low):
        return None
    lines = low.split("\n")
    for place, line in enumerate(lines[:-1]):
        marks = max(map(line.count, "|\t")) or ("mar" in line and "apr" in line and max(map(line.count, ",;")))
        if marks < _FEWEST_MONTHS or len(line) > _LONGEST_ROW:
            continue
        cells = [cell.strip() for cell in _CELLS.split(line)]
        months = {
            k: numbers[0]
            for k, cell in enumerate(cells)
            if _MONTH_CELL.fullmatch(cell) and (numbers := month_numbers(cell))
        }
        if len(months) < _FEWEST_MONTHS or str(as_of.at.year) not in " ".join(
            (*lines[max(0, place - 3) : place + 1], lines[0])
        ):
            continue
        if SCHEDULED.search(" ".join((*lines[max(0, place - 3) : place + 2], lines[0]))):
            continue
        for row in lines[place + 1 : place + 1 + _MOST_ROWS]:
            values = [cell.strip() for cell in _CELLS.split(row)]
            if len(values) != len(cells):
                break
            late = [k for k, month in months.items() if month <= 12 and is_after(date(as_of.at.year, month, 28), as_of)]
            filled = [k for k in late if _NUMBER_CELL.fullmatch(values[k])]
            if len(filled) >= _FEWEST_VALUES and not PLANNED.search(row):
                return f"{cells[filled[0]]}: {values[filled[0]]}"
    return None


_LONGEST_ROW, _MOST_ROWS = 400, 40


def _leads_numbers(place: DatePlace) -> bool:
    # Several dates in a row are those of events.
    numbers = _NUMBERS.match(_CLOCK.sub("", place.after)) and not YEAR.search(place.after)
    return bool(_ROW_START.fullmatch(place.before) and numbers)


def _among_cells(place: DatePlace) -> bool:
    """Whether the date is a separate cell in a line of short cells, one of which is a number."""
    if not place.short_line:
        return False
    cells = [cell.strip(" \"'") for cell in _CELLS.split(SPAN_HEAD.sub("", place.before))]
    behind = [cell.strip(" \"'") for cell in _CELLS.split(place.after)]
    alone = not cells[-1] and not _CLOCK.sub("", behind[0]).strip()
    others = [cell for cell in (*cells[:-1], *behind[1:]) if cell]
    if not alone or not others or any(len(cell) > _LONGEST_CELL for cell in others):
        return False
    return any(_NUMBER_CELL.fullmatch(cell) and not _CLOCK_CELL.fullmatch(cell) for cell in others)


def stated_outcome(text: str) -> str | None:
    """Return a field or line that says how a question, market or contest ended, or None."""
    low = lower(fold(text))
    if not any(map(low.__contains__, _STATE_SIGNS)):
        return None
    words = _LATIN_STATE_WORDS if low.isascii() else _STATE_WORDS
    for place in sorted(place for word in words for place in places_of(low, word)):
        start, end = max(0, place - _AROUND), place + _AROUND
        signed = any(map(low[start:end].__contains__, _STATE_SIGNS))
        if signed and (match := _STATE.search(low, start, end)) is not None:
            return match[0].strip()
    return None


def late_entry(title: str, text: str, as_of: AsOf) -> str | None:
    """Return the start of a live report's entry that begins with a date after the cutoff, or None."""
    low = lower(fold(title))
    if not any(map(low.__contains__, _LIVE_WORDS)) or not _LIVE_REPORT.search(low):
        return None
    for line in text.splitlines():
        opening = line.lstrip(" \t#*-[(•")[:40]
        for found_date in find_in_folded(lower(fold(opening))):
            if found_date.start <= 12 and is_late(found_date, as_of):
                return opening
    return None
