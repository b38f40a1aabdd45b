"""The leakage filter's rules, which refuse items for a cutoff and a question without a model."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache

from foretell.data.markets.market import PricePoint
from foretell.data.series.series import Series
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.tools.addresses import BlockedAddress, Blocklist, UnreadableAddress, address_of, is_encyclopedia
from foretell.tools.dates.refusal import date_refusal
from foretell.tools.tool import FETCH_WIKIPEDIA, Refusal, SourceItem

# The data layer: each point is compared with the cutoff, whatever the source has filtered already.

ROW = pattern(r"^\s*[|\"'\[(]*(?P<day>\d{4}-\d{2}-\d{2})(?P<clock>[T ]\d{2}:\d{2}(?::\d{2})?Z?)?(?=[\s,;:|=\t\"'])")
ROW_START = len("2026-01-01, ")
TOLD_LATER = pattern(
    r"^\W*(?:\w+[ _-])?(?:status|state|closed|active|is[ _]?resolved|resolv(?:ed|es)\w*|resolution\w*|result"
    r"|outcome|winner|settle(?:d|ment)\w*|expir\w+|close[sd]?[ _]?(?:time|date|at|on)?|end[ _]?(?:date|time)"
    r"|volume\w*|liquidity|open[ _]?interest|traders?|bettors?|last[ _]?(?:price|trade)\w*|updated\w*)\b"
    r"[^:=\n]{0,20}[:=]",
    re.IGNORECASE,
)
"""Fields of a market that became known later: whether it is over, how it ended, how much was traded."""


def clamp_series(series: Series, as_of: AsOf) -> tuple[Series, int]:
    """Return the series up to the cutoff, and the number of later points."""
    known = series.until(as_of)
    return known, len(series) - len(known)


def clamp_prices(points: Sequence[PricePoint], as_of: AsOf) -> tuple[list[PricePoint], int]:
    """Return the prices up to the cutoff, oldest first, and the number of later or unreadable ones."""
    known = sorted((point for point in points if _admitted(point.at, as_of)), key=lambda point: point.at)
    return known, len(points) - len(known)


def _admitted(at: datetime, as_of: AsOf) -> bool:
    try:
        return as_of.admits(at)
    except ValueError:
        return False


def clamp_text(text: str, as_of: AsOf) -> tuple[str, list[str]]:
    """Return the text without rows dated after the cutoff and without fields known later, and the lines left out."""
    if not text:
        return text, []
    lines, known = text.splitlines(), _late_moments(as_of)

    def is_late(line: str) -> bool:
        row = ROW.match(line)
        # A line that begins with a date does not begin with a field name.
        return known[row[1], row[2]] if row else TOLD_LATER.match(line) is not None

    # Most lines are rows of a series that begin with the day.
    rows = known.rows
    late = [line for line in lines if rows[line[:ROW_START]] and is_late(line)]
    return "\n".join([line for line in lines if line not in late] if late else lines), late


def has_rows(text: str) -> bool:
    """Whether the text has any dated row."""
    return any(ROW.match(line) for line in text.splitlines())


class _LateTimes(dict[tuple[str, str | None], bool]):
    """Caches whether times are after a cutoff, because a series is read in every trial and for every question."""

    def __init__(self, as_of: AsOf) -> None:
        self._as_of = as_of
        self.rows = _RowStarts(self)

    def __missing__(self, key: tuple[str, str | None]) -> bool:
        if len(self) > 20_000:
            self.clear()
        self[key] = late = self._is_late(*key)
        return late

    def _is_late(self, day: str, clock: str | None) -> bool:
        try:
            if clock is None:
                return not self._as_of.admits_day(datetime.fromisoformat(day).date())
            at = datetime.fromisoformat(day + clock.rstrip("Z").replace(" ", "T"))
        except ValueError:
            return True
        return not self._as_of.admits(at.replace(tzinfo=UTC))


class _RowStarts(dict[str, bool]):
    """Caches whether a line with this start needs checking: False for days like `2026-01-01, ` before the cutoff."""

    def __init__(self, late: _LateTimes) -> None:
        self._late = late

    def __missing__(self, start: str) -> bool:
        if len(self) > 20_000:
            self.clear()
        row = ROW.match(start) if start[ROW_START - 2 :] == ", " else None
        self[start] = look = row is None or row.end() != ROW_START - 2 or self._late[row[1], row[2]]
        return look


_late_moments = lru_cache(maxsize=50)(_LateTimes)


@frozen
class LeakageRules:
    """The cutoff of one question, and the rules that follow from it for all outside material."""

    as_of: AsOf
    question: Question
    unfiltered: bool = False
    emit: EmitEvent = ignore_event
    crawl_dates: bool = True
    """Whether an item dated only by a crawler is passed to the content filter."""

    @property
    def active(self) -> bool:
        """Whether anything is withheld at all."""
        return self.as_of.mode == "backtest" and not self.unfiltered

    @property
    def sees(self) -> AsOf:
        """The cutoff passed to tools; an unfiltered run sees a year past the real one."""
        return AsOf(at=self.as_of.at + timedelta(days=365), mode="live") if self.unfiltered else self.as_of

    @cached_property
    def blocklist(self) -> Blocklist:
        """The addresses that are closed for this question."""
        return Blocklist.of(self.question)

    def admit(self, item: SourceItem, tool: str) -> SourceItem | Refusal:
        """Return the item, with numbers past the cutoff removed, or the refusal of the rule that rejects it."""
        if not self.active:
            return item
        if (blocked := self._address(item)) is not None:
            return Refusal(layer="address", reason=blocked)
        if item.clamped:
            return self._clamped(item)
        reason = date_refusal(item, self.as_of, crawl_dates=self.crawl_dates)
        if reason is None and tool != FETCH_WIKIPEDIA and any(map(_rendered_now, _passed(item))):
            reason = "an old revision is rendered with today's templates; only its source text is old"
        return item if reason is None else Refusal(layer="date", reason=reason)

    def check_address(self, tool: str, url: str) -> BlockedAddress | None:
        """Return why a tool must not even open an address, or None."""
        if not self.active:
            return None
        if tool != FETCH_WIKIPEDIA and is_encyclopedia(url):
            return BlockedAddress(reason="an encyclopedia shows today's page")
        blocked = self.blocklist.check(url, arrived=True)
        return blocked if blocked is not None and not blocked.unless_stored else None

    def _address(self, item: SourceItem) -> str | None:
        stored = item.captured is not None and self.as_of.admits(item.captured)
        for url in _passed(item):
            blocked = self.blocklist.check(url, arrived=bool(item.hops) and url != item.hops[-1])
            if blocked is not None and not (blocked.unless_stored and stored):
                return blocked.reason
        return None

    def _clamped(self, item: SourceItem) -> SourceItem | Refusal:
        text, late = clamp_text(item.text, self.as_of)
        snippet, late_too = clamp_text(item.snippet, self.as_of)
        if not has_rows(text):
            return Refusal(layer="data", reason="none of its values was known at the cutoff")
        if late or late_too:
            self.emit(
                Refusal(layer="data", reason=f"{len(late) or len(late_too)} lines dated after the cutoff").of(item)
            )
        return replace(item, text=text, snippet=snippet) if (text, snippet) != (item.text, item.snippet) else item


def _passed(item: SourceItem) -> list[str]:
    return [url for url in (item.url, *item.hops) if url]


def _rendered_now(url: str) -> bool:
    if not is_encyclopedia(url):
        return False
    try:
        address = address_of(url)
    except UnreadableAddress:
        return True
    return address is not None and ("oldid" in dict(address.params) or address.path.startswith("/api/"))
