"""The rules of the fence: which items a cutoff and a question refuse without asking any model."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from foretell.questions.clock import AsOf
from foretell.questions.event import Emit, ignore
from foretell.questions.question import Question
from foretell.tools.addresses import UnreadableAddress, address_of
from foretell.tools.blocklist import Blocked, Blocklist, is_encyclopedia
from foretell.tools.clamp import clamp_text, has_rows
from foretell.tools.dated import undated
from foretell.tools.names import FETCH_WIKIPEDIA
from foretell.tools.refusal import Refusal
from foretell.tools.tool import Item


@dataclass(frozen=True, kw_only=True)
class Fence:
    """The cutoff of one question, and what follows from it for everything outside."""

    as_of: AsOf
    question: Question
    clairvoyant: bool = False
    emit: Emit = ignore
    crawl_dates: bool = True
    """Whether an item dated only by a crawler may go on to the content filter."""
    sees_until: datetime | None = None
    """How far a clairvoyant sees; a year past the cutoff if not given."""

    @property
    def active(self) -> bool:
        """Whether anything is withheld at all."""
        return self.as_of.mode == "backtest" and not self.clairvoyant

    @property
    def sees(self) -> AsOf:
        """The cutoff handed to tools."""
        if not self.clairvoyant:
            return self.as_of
        return AsOf(at=self.sees_until or self.as_of.at + timedelta(days=365), mode="live")

    @cached_property
    def blocklist(self) -> Blocklist:
        """The addresses this question closes."""
        return Blocklist.of(self.question)

    def admit(self, item: Item, tool: str) -> Item | Refusal:
        """The item, cut where numbers go past the cutoff, or why a rule refuses it."""
        if not self.active:
            return item
        if (blocked := self._address(item)) is not None:
            return Refusal(layer="address", reason=blocked)
        if item.clamped:
            return self._clamped(item)
        reason = undated(item, self.as_of, crawl_dates=self.crawl_dates)
        if reason is None and tool != FETCH_WIKIPEDIA and any(map(_rendered_now, _passed(item))):
            reason = "an old revision drawn with today's templates: only its source text is old"
        return item if reason is None else Refusal(layer="date", reason=reason)

    def door(self, tool: str, url: str) -> Blocked | None:
        """Why an address must not even be opened by a tool."""
        if not self.active:
            return None
        if tool != FETCH_WIKIPEDIA and is_encyclopedia(url):
            return Blocked(reason="an encyclopedia shows today's page")
        blocked = self.blocklist.check(url, arrived=True)
        return blocked if blocked is not None and not blocked.unless_stored else None

    def _address(self, item: Item) -> str | None:
        stored = item.captured is not None and self.as_of.admits(item.captured)
        for url in _passed(item):
            blocked = self.blocklist.check(url, arrived=bool(item.hops) and url != item.hops[-1])
            if blocked is not None and not (blocked.unless_stored and stored):
                return blocked.reason
        return None

    def _clamped(self, item: Item) -> Item | Refusal:
        text, late = clamp_text(item.text, self.as_of)
        snippet, late_too = clamp_text(item.snippet, self.as_of)
        if not has_rows(text):
            return Refusal(layer="data", reason="no value of it was known at the cutoff")
        if late or late_too:
            self.emit(Refusal(layer="data", reason=f"{len(late) or len(late_too)} lines told later").of(item))
        return replace(item, text=text, snippet=snippet)


def _passed(item: Item) -> list[str]:
    return [url for url in (item.url, *item.hops) if url]


def _rendered_now(url: str) -> bool:
    if not is_encyclopedia(url):
        return False
    try:
        address = address_of(url)
    except UnreadableAddress:
        return True
    by_revision = address is not None and ("oldid" in dict(address.params) or address.path.startswith("/api/"))
    return by_revision
