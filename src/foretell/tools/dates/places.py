"""A date and its context: its line, its sentence, the field it belongs to, and the headings above it."""

import re
from functools import cached_property

from foretell.tools.dates.find import FoundDate
from foretell.tools.dates.folding import lower, written
from foretell.tools.dates.words import FUTURE_SIGN, PLAN_HEADING, PLANNED, SCHEDULED, TOKEN, WILL, is_future

_RUN_ON = re.compile(r"[.!](?<=[^\W\d]{4}.)\s+(?=[^\Wa-z]|[\"'(\[])")
_DOT_AFTER = re.compile(r"(?<=\d)\.\s?-?\s+(?=[^\Wa-z\d])")
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[^\Wa-z]|[\"'(\[])|\n\s{0,9}(?=\n|[^\Wa-z]|[\"'(\[#*|<-])|[。！？]")
CLOCK_AFTER = re.compile(
    r"^[\s,t|·•@-]{0,6}(?:at|um|a las|kl\.?|as|alle|ore)?\s?\d{1,2}\s?(?:[:h]\s?\d{2}|\.\d{2}\s?uhr|\s?[ap]\.?m\b)"
)
WORDS = re.compile(r"[^\W\d_]+")
LONGEST_HEAD_LINE = 160
LONGEST_LEAD = 60
"""How many characters right before a date are searched for what introduces it."""
_BY_NAME = re.compile(r"\b[Bb]y (?=[A-Z@]|u/|the (?!end|time|deadline))")
_TO_BE = re.compile(r"\b(?:to be|(?:is|are|was|were|due|set|expected|planned) to|may|might|could|should|must|if)\b")
_REACH = 200
"""How many characters of a line are searched on each side of a date, because untrusted lines may be endless."""

_FIELD, _LONGEST_FIELD = 120, 80
"""How many characters before a date are searched for its field, in a tag and elsewhere."""
SPAN_HEAD = re.compile(r"(?:^|(?<=[\s(]))\d{1,2}\.?(?: [a-z]{3,9})? ?[-/] ?$")
"""The first day of a range whose last day is the date: "3-" of "3-5 December 2025"."""
SPAN_BEFORE = re.compile(r"\b(?:from|until|till|to|by|ab|bis|a partir|dal|desde) $")
_OPEN_CELL = re.compile(r"(?:^|[,;|\t])[ ]*open[ ]*(?=[,;|\t])", re.MULTILINE)
"""The column of a day's opening price."""
_LONGEST_TITLE = 120
_LONGEST_LIST, _MOST_ROWS, _LONGEST_HEADING = 2_000, 40, 70
_ROW = re.compile(r"\d{1,2}[./:-]\d|(?:19|20)\d\d|\d\s?(?:[|;\t]|$)|---")
"""What a row of a table or list contains and a heading does not."""
YEAR = re.compile(r"(?:19|20)\d\d")


class DatePlace:
    """A date in its text, with its context."""

    def __init__(self, plain: str, low: str, found: FoundDate, text: str = "", *, far: bool = False) -> None:
        self.plain, self.low, self.found = plain, low, found
        """The folded text with its capitals, the same in lower case, and the date."""
        self.text = text
        """The original text, with its accents."""
        self.far = far
        """Whether the date is so far ahead that only words of publishing make it a stamp."""
        start, end = found.start, found.end
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
        first, start, end = self.wide_start, self.found.start, self.found.end
        for one in _RUN_ON.finditer(self.plain, first, start + 1):
            first = one.end() if one.end() <= start else first
        if (stop := _DOT_AFTER.match(self.plain, end, self.wide_end)) is not None:
            return first, stop.start()
        stop = _RUN_ON.search(self.plain, end, self.wide_end)
        return first, stop.start() + 1 if stop is not None else self.wide_end

    @cached_property
    def segment(self) -> str:
        """The text before the date since the last field separator."""
        part = self.before[-_FIELD:]
        start = max(len(part) - _LONGEST_FIELD, *(part.rfind(one) + 1 for one in ",;{}<>["))
        tag = part.rfind("<")
        return part[tag if tag >= 0 and ">" not in part[tag:] else start :]

    @cached_property
    def short_line(self) -> bool:
        """Whether the whole line is within the search limits and no longer than a heading."""
        ended = self.line_end == len(self.low) or self.line_end < self.wide_end or self.low[self.line_end] == "\n"
        return self.opens_line and ended and self.line_end - self.line_start <= LONGEST_HEAD_LINE

    @cached_property
    def planned(self) -> bool:
        """Whether the line or its heading mentions plans."""
        return self.line_plans or self.under_a_plan

    @cached_property
    def line_plans(self) -> bool:
        """Whether the line itself mentions plans."""
        # Those who wrote something are no deadline.
        before, after = self.plain[self.wide_start : self.found.start], self.plain[self.found.end : self.wide_end]
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
    def title(self) -> str:
        """The first line of the text, or "" if it is the date's own line or not a heading."""
        first = self.low[:_LONGEST_TITLE].split("\n", 1)[0]
        return first if self.wide_start > len(first) and len(first) < _LONGEST_TITLE else ""

    def sentence_before(self, place: int, reach: int = 90) -> str:
        """Return the sentence up to a position."""
        first = max(0, place - reach)
        # One character more: the end of a sentence is known by how the next one begins.
        ends = [one.end() for one in SENTENCE_END.finditer(self.plain, first, place + 1) if one.end() <= place]
        return self.low[ends[-1] if ends else first : place]

    def sentence_after(self, reach: int = 90) -> str:
        """Return the rest of the sentence after the date."""
        part = self.plain[self.found.end : self.found.end + reach]
        end = SENTENCE_END.search(part)
        return lower(part[: end.start()] if end is not None else part)

    def shown(self) -> str:
        """Return the date with a few words before it."""
        return " ".join(self.plain[max(self.line_start, self.found.start - 30) : self.found.end].split())

    @cached_property
    def written_place(self) -> tuple[str, int, int]:
        """The original text, and the start and end of the date in it."""
        return written(self.text, self.plain, self.found.start, self.found.end)


def looks_ahead(words: str) -> bool:
    """Whether folded lower-case words refer to something in the future."""
    return (not words.isascii() and bool(FUTURE_SIGN.search(words))) or any(map(is_future, TOKEN.findall(words)))
