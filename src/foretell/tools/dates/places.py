"""A date and its context: its line, its sentence, the field it belongs to, and the headings above it."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from foretell.patterns import pattern
from foretell.tools.dates.find import FoundDate
from foretell.tools.dates.folding import lower, original_span
from foretell.tools.dates.words import FUTURE_SIGN, PLAN_HEADING, PLANNED, SCHEDULED, TOKEN, WILL, is_future

_RUN_ON = pattern(r"[.!](?<=[^\W\d]{4}.)\s+(?=[^\Wa-z]|[\"'(\[])")
_DOT_AFTER = pattern(r"(?<=\d)\.\s?-?\s+(?=[^\Wa-z\d])")
SENTENCE_END = pattern(r"(?<=[.!?;])\s+(?=[^\Wa-z]|[\"'(\[])|\n\s{0,9}(?=\n|[^\Wa-z]|[\"'(\[#*|<-])|[。！？]")
CLOCK_AFTER = pattern(
    r"^[\s,t|·•@-]{0,6}(?:at|um|a las|kl\.?|as|alle|ore)?\s?\d{1,2}\s?(?:[:h]\s?\d{2}|\.\d{2}\s?uhr|\s?[ap]\.?m\b)"
)
WORDS = pattern(r"[^\W\d_]+")
LONGEST_HEAD_LINE = 160
LONGEST_LEAD = 60
"""How many characters right before a date are searched for what introduces it."""
_BY_NAME = pattern(r"\b[Bb]y (?=[A-Z@]|u/|the (?!end|time|deadline))")
_TO_BE = pattern(r"\b(?:to be|(?:is|are|was|were|due|set|expected|planned) to|may|might|could|should|must|if)\b")
_REACH = 200
"""How many characters of a line are searched on each side of a date, because untrusted lines may be endless."""

_FIELD, _LONGEST_FIELD = 120, 80
"""How many characters before a date are searched for its field, in a tag and elsewhere."""
SPAN_HEAD = pattern(r"(?:^|(?<=[\s(]))\d{1,2}\.?(?: [a-z]{3,9})? ?[-/] ?$")
"""The first day of a range whose last day is the date: "3-" of "3-5 December 2025"."""
SPAN_BEFORE = pattern(r"\b(?:from|until|till|to|by|ab|bis|a partir|dal|desde) $")
_OPEN_CELL = pattern(r"(?:^|[,;|\t])[ ]*open[ ]*(?=[,;|\t])", re.MULTILINE)
"""The column of a day's opening price."""
_LONGEST_TITLE = 120
_LONGEST_LIST, _MOST_ROWS, _LONGEST_HEADING = 2_000, 40, 70
_ROW = pattern(r"\d{1,2}[./:-]\d|(?:19|20)\d\d|\d\s?(?:[|;\t]|$)|---")
"""Characters that occur in rows of tables and lists but not in headings."""
YEAR = pattern(r"(?:19|20)\d\d")
_DIGIT = pattern(r"\d")


_COMMA = pattern(r",")
_CELLS = (pattern(r"[|\t;]"), pattern(r" {2,}"), _COMMA)
"""What separates the cells of a row; commas only below a head, because prose has them too."""
_FEWEST_COLUMNS, _LONGEST_COLUMN = 4, 24
_MISSING = pattern(r"[\W_]*|tb[acd]|n/?a|pending")
_RESULT_COLUMN = pattern(
    r"\W*(?:[\w.]{2,12} )?(?:actual|result|outcome|decision|ist|tatsachlich|ergebnis|entscheid(?:ung)?"
    r"|reel|publie|resultat|decisione?|effettivo|actual|resultado|efectivo|real|atual|werkelijk|uitslag|wynik)\W*"
)
_EXPECTED_COLUMN = pattern(
    r"\b(?:f'?cast|forecast|cons|consensus|exp|expected|est|estimate|median|survey|poll|prognose|erwartet|erwartung|schatzung"
    r"|prevision|prevu|attendu|consenso|prevision|previsto|esperado|atteso|previsione|verwachting|prognoza)\b"
)
_EARLIER_COLUMN = pattern(
    r"\b(?:prior|previous|prev|previo|last|vorwert|vormonat|precedent|anterior|precedente|vorige|poprzednio)\b"
)
"""Columns of the value before, which calendars have beside the dates of releases."""
_VALUE_COLUMN = pattern(
    r"\b(?:value|price|close|open|high|low|rate|level|change|volume|wert|kurs|valeur|valor|cours)\b"
)
"""Columns of what was measured on the date."""
_PLANNED_COLUMN = pattern(
    r"\b(?:no earlier|net|due|deadline|expir\w*|matur\w*|planned|schedul\w*|expected|target|eta|window|kick-?off"
    r"|starts?|opens|closes|next|until|frist|fallig|termin|echeance|vencimiento|scadenza)\b"
)
"""Columns of days to come."""
_EXPECTED_VALUE = pattern(rf"(?:{_EXPECTED_COLUMN.pattern}|\bfcst|\bprev\.?)[.:]? ?[-+$€£]?\d[\d.,]* ?%?")
_GIVEN_VALUE = pattern(
    r"\b(?:act|actual|ist)[.:]? ?[-+$€£]?\d|(?:(?<!\d): ?|: )[-+$€£]?\d[\d.,]* ?(?:%|[km]\b|bn\b|tsd\b)?\s?[(;,|]"
)
"""The result beside the expected value in a line of a calendar: "decision: 4.00% (fcst 4.00%)"."""


class DatePlace:
    """A date in its text, with its context."""

    def __init__(self, plain: str, low: str, found_date: FoundDate, text: str = "", *, far: bool = False) -> None:
        self.plain, self.low, self.date = plain, low, found_date
        """The folded text with its capitals, the same in lower case, and the date."""
        self.text = text
        """The original text, with its accents."""
        self.far = far
        """Whether the date is so far ahead that it is a stamp only next to a word of publishing."""
        start, end = found_date.start, found_date.end
        least, most = max(0, start - _REACH), min(len(low), end + _REACH)
        newline = low.rfind("\n", least, start)
        self.wide_start = least if newline < 0 else newline + 1
        """Where its line begins, or the search limit before the date."""
        newline = low.find("\n", end, most)
        self.wide_end = most if newline < 0 else newline
        """Where its line ends, or the search limit after the date."""
        self.line_start, self.line_end = self._sentence_of_line()
        """Start and end of its line, or of its sentence, because page extracts run several lines into one."""
        self.opens_line = self.line_start == 0 or self.line_start > self.wide_start or low[self.line_start - 1] == "\n"
        """Whether `before` reaches back to the beginning of the line."""
        self.before, self.after = low[self.line_start : start], low[end : self.line_end]
        """The line before and after the date."""

    def _sentence_of_line(self) -> tuple[int, int]:
        first, start, end = self.wide_start, self.date.start, self.date.end
        for match in _RUN_ON.finditer(self.plain, first, start + 1):
            first = match.end() if match.end() <= start else first
        if (stop := _DOT_AFTER.match(self.plain, end, self.wide_end)) is not None:
            return first, stop.start()
        stop = _RUN_ON.search(self.plain, end, self.wide_end)
        return first, stop.start() + 1 if stop is not None else self.wide_end

    @cached_property
    def segment(self) -> str:
        """The text before the date since the last field separator."""
        part = self.before[-_FIELD:]
        start = max(len(part) - _LONGEST_FIELD, *(part.rfind(separator) + 1 for separator in ",;{}<>["))
        tag = part.rfind("<")
        return part[tag if tag >= 0 and ">" not in part[tag:] else start :]

    @cached_property
    def short_line(self) -> bool:
        """Whether the whole line is within the search limits and no longer than a heading."""
        ended = self.line_end == len(self.low) or self.line_end < self.wide_end or self.low[self.line_end] == "\n"
        return self.opens_line and ended and self.line_end - self.line_start <= LONGEST_HEAD_LINE

    @cached_property
    def in_table(self) -> bool:
        """Whether the line is a row of a table: as many bars as in the lines next to it."""
        bars = self.low.count("|", self.wide_start, self.wide_end)
        near = self.low[max(0, self.wide_start - _REACH) : self.wide_end + _REACH].split("\n")
        return bars > 1 and sum(line.count("|") == bars for line in near) > 1

    @cached_property
    def among_plans(self) -> bool:
        """Whether the line names several dates and plans, as lists of events to come do."""
        return len(YEAR.findall(self.low[self.wide_start : self.wide_end])) > 1 and self.line_plans

    @cached_property
    def planned(self) -> bool:
        """Whether the line or its heading mentions plans."""
        return self.line_plans or self.under_a_plan

    @cached_property
    def line_plans(self) -> bool:
        """Whether the line itself mentions plans."""
        # A byline is not a deadline.
        before, after = self.plain[self.wide_start : self.date.start], self.plain[self.date.end : self.wide_end]
        line = lower(_BY_NAME.sub("", f"{before} {after}"))
        ahead = PLANNED.search(line) or SCHEDULED.search(line) or FUTURE_SIGN.search(line) or _TO_BE.search(line)
        return bool(ahead) or not WILL.isdisjoint(TOKEN.findall(line))

    @cached_property
    def under_a_plan(self) -> bool:
        """Whether the line is below the heading of an agenda, forecast or plan."""
        above = self.low[max(0, self.line_start - 400) : self.line_start].split("\n")[-4:]
        short = "\n".join(line for line in above if len(line) < 60)
        return SCHEDULED.search(_OPEN_CELL.sub("", short)) or self.heading_plans

    @cached_property
    def heading_plans(self) -> bool:
        """Whether the nearest heading, above all rows of the same list or table, announces plans."""
        above = self.low[max(0, self.wide_start - _LONGEST_LIST) : self.wide_start].split("\n")
        heads = [line for line in above[-_MOST_ROWS:] if 2 < len(line) < _LONGEST_HEADING and not _ROW.search(line)]
        return PLAN_HEADING.search("\n".join((*heads[-2:], self.title)))

    @cached_property
    def result(self) -> Literal["given", "missing"] | None:
        """Whether its row of a calendar has a result beside the expected value; None if it is in no such table."""
        row = self.low[self.wide_start : self.wide_end]
        above = self.low[max(0, self.wide_start - _LONGEST_LIST) : self.wide_start].split("\n")
        for separator in _CELLS:
            cells = separator.split(row)
            heads = (
                separator.split(line)
                for line in reversed(above[-_MOST_ROWS:])
                if WORDS.search(line) and not _DIGIT.search(line)
            )
            head = next((head for head in heads if len(head) == len(cells) > 1), None)
            if head is not None and (separator is not _COMMA or _is_head(head)):
                column = len(separator.split(self.low[self.wide_start : self.date.start])) - 1
                return _result_in_row(head, cells, head[column])
        others, expected = _EXPECTED_VALUE.subn("", row)
        if not expected:
            return None
        return "given" if _GIVEN_VALUE.search(others) else "missing"

    @cached_property
    def title(self) -> str:
        """The first line of the text, or "" if it is the date's own line or not a heading."""
        first = self.low[:_LONGEST_TITLE].split("\n", 1)[0]
        return first if self.wide_start > len(first) and len(first) < _LONGEST_TITLE else ""

    def sentence_before(self, place: int, reach: int = 90) -> str:
        """Return the sentence up to a position."""
        first = max(0, place - reach)
        # One character more, because the start of the next sentence marks the end of this one.
        ends = [match.end() for match in SENTENCE_END.finditer(self.plain, first, place + 1) if match.end() <= place]
        return self.low[ends[-1] if ends else first : place]

    def sentence_after(self, reach: int = 90) -> str:
        """Return the rest of the sentence after the date."""
        part = self.plain[self.date.end : self.date.end + reach]
        end = SENTENCE_END.search(part)
        return lower(part[: end.start()] if end is not None else part)

    def shown(self) -> str:
        """Return the date with a few words before it."""
        return " ".join(self.plain[max(self.line_start, self.date.start - 30) : self.date.end].split())

    @cached_property
    def original_span(self) -> tuple[str, int, int]:
        """The original text, and the start and end of the date in it."""
        return original_span(self.text, self.plain, self.date.start, self.date.end)


def _is_head(cells: Sequence[str]) -> bool:
    """Whether the parts of a line between commas are names of columns."""
    return len(cells) >= _FEWEST_COLUMNS and all(0 < len(cell.strip()) <= _LONGEST_COLUMN for cell in cells)


def _result_in_row(head: Sequence[str], cells: Sequence[str], column: str) -> Literal["given", "missing"] | None:
    """Whether a row below these column names has a result; `column` is the name of the date's own column."""
    results = [k for k, name in enumerate(head) if _RESULT_COLUMN.fullmatch(name)]
    if results:
        return "missing" if all(_MISSING.fullmatch(cells[k].strip()) for k in results) else "given"
    if _PLANNED_COLUMN.search(column) or any(map(_EXPECTED_COLUMN.search, head)):
        return "missing"
    return "missing" if any(map(_EARLIER_COLUMN.search, head)) and not any(map(_VALUE_COLUMN.search, head)) else None


def looks_ahead(words: str) -> bool:
    """Whether folded lower-case words refer to something in the future."""
    return (not words.isascii() and bool(FUTURE_SIGN.search(words))) or any(map(is_future, TOKEN.findall(words)))
