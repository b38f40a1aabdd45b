"""The fence: in a backtest nothing reaches a model unless every layer admits it. Whatever is not understood is dropped.

Address, date and data layers are rules; the content layer asks a model. Live there is no future to leak, so all are
off. A clairvoyant run switches them off on purpose, as an upper bound, and says so in everything it returns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, final

from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.questions.event import Emit, LeakBlocked, ignore
from foretell.questions.question import Question
from foretell.tools.addresses import UnreadableAddress, address_of
from foretell.tools.blocklist import Blocked, Blocklist, is_encyclopedia
from foretell.tools.clamp import clamp_text, has_rows
from foretell.tools.dated import undated
from foretell.tools.leaks import ContentFilter, Excerpt
from foretell.tools.refusal import Refusal, Refused
from foretell.tools.shelf import READ_LIMIT, Admitted, Shelf
from foretell.tools.stamps import without_age
from foretell.tools.tool import Item, Tool, ToolFailed

SNIPPET_LIMIT = 2_000
SHOWN_LIMIT = 6_000
ENCYCLOPEDIA_TOOL = "fetch_wikipedia"
PREFIXES = {
    "web_search": "search",
    "summarize_results": "summary",
    "lookup_url": "page",
    "fetch_series": "series",
    "fetch_prices": "prices",
    ENCYCLOPEDIA_TOOL: "wikipedia",
}
"""How the ids of a tool's results begin."""
CLAIRVOYANT = "(Clairvoyant run: nothing was withheld.)"


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
        if reason is None and tool != ENCYCLOPEDIA_TOOL and any(map(_rendered_now, _passed(item))):
            reason = "an old revision drawn with today's templates: only its source text is old"
        return item if reason is None else Refusal(layer="date", reason=reason)

    def door(self, tool: str, url: str) -> Blocked | None:
        """Why an address must not even be opened by a tool."""
        if not self.active:
            return None
        if tool != ENCYCLOPEDIA_TOOL and is_encyclopedia(url):
            return Blocked(reason="an encyclopedia shows today's page")
        blocked = self.blocklist.check(url, arrived=True)
        return blocked if blocked is not None and not blocked.unless_stored else None

    def _address(self, item: Item) -> str | None:
        stored = item.captured is not None and self.as_of.admits(item.captured)
        for url in _passed(item):
            blocked = self.blocklist.check(url, arrived=bool(item.hops))
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


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What a model may see of a tool's answer."""

    text: str
    source_ids: tuple[str, ...] = ()
    """Ids that may be cited from now on."""
    failed: bool = False
    clairvoyant: bool = False


_KEY = object()


@final
class Fenced:
    """Tools behind a fence: the only thing an agent accepts. Made by `Fenced.around`, for one trial of one question."""

    def __init__(self, key: object, tools: Mapping[str, Tool], fence: Fence, admit: "Admission") -> None:
        if key is not _KEY:
            raise TypeError("tools are fenced by Fenced.around(tools, fence, leak_filter)")
        self._tools = tools
        self._fence = fence
        self._admission = admit
        self._calls: dict[str, int] = {}

    @classmethod
    def around(
        cls, tools: Iterable[Tool], fence: Fence, leak_filter: ContentFilter | None, *, shelf: Shelf | None = None
    ) -> "Fenced":
        """Put tools behind a fence. A backtest needs a content filter: without one it is refused here."""
        if fence.active and leak_filter is None:
            raise ValueError("a backtest needs a content filter; pass one, or mark the run clairvoyant")
        shelf = Shelf() if shelf is None else shelf
        admission = Admission(fence=fence, leak_filter=leak_filter, shelf=shelf)
        shelf.guard(admission.vet)
        named = {tool.spec.name: tool for tool in tools}
        return cls(_KEY, named, fence, admission)

    @property
    def as_of(self) -> AsOf:
        """The cutoff, also of a clairvoyant run."""
        return self._fence.as_of

    @property
    def clairvoyant(self) -> bool:
        """Whether the layers were switched off on purpose: such a run is no forecast."""
        return self._fence.clairvoyant

    @property
    def shelf(self) -> Shelf:
        """Everything admitted so far."""
        return self._admission.shelf

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools on offer, always in the same order."""
        return tuple(tool.spec for tool in self._tools.values())

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Call a tool and return what of its answer may be seen. Failures come back as text to act on."""
        tool = self._tools.get(name)
        if tool is None:
            offered = ", ".join(self._tools) or "none"
            return self._failed(f"There is no tool {name!r}. Tools on offer: {offered}.")
        if (told := self._turned_away(name, arguments)) is not None:
            return self._failed(told)
        try:
            material = await tool.use(arguments, self._fence.sees)
        except Refused as error:
            self._fence.emit(LeakBlocked(layer=error.refusal.layer, reason=error.refusal.reason))
            return self._failed(str(error))
        except ToolFailed as error:
            return self._failed(self._told(name, error))
        admitted = await self._admission.pass_through(name, material.items, self._ids(name))
        if not admitted:
            return self._failed(self._nothing(name))
        text = "\n\n".join([self._admission.heading(material.heading), *map(_entry, admitted)]).strip()
        return self._seen(text, tuple(one.id for one in admitted))

    def _ids(self, name: str) -> Callable[[int, int], str]:
        """`search_{i}_result_{j}` for the j-th admitted result of the i-th search; `page_{i}` for single results."""
        prefix = PREFIXES.get(name, name)
        call = self._calls[name] = self._calls.get(name, 0) + 1

        def named(place: int, of: int) -> str:
            alone = of == 1 and prefix != "search"
            return f"{prefix}_{call}" if alone else f"{prefix}_{call}_result_{place}"

        return named

    def _turned_away(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        for key, value in arguments.items():
            if not isinstance(value, str) or not (key == "url" or ("://" in value and " " not in value.strip())):
                continue
            blocked = self._fence.door(name, value)
            if blocked is not None:
                self._fence.emit(LeakBlocked(layer="address", reason=blocked.reason, url=value))
                return self._closed(value)
        return None

    def _closed(self, url: str) -> str:
        if is_encyclopedia(url) and ENCYCLOPEDIA_TOOL in self._tools:
            return f"Encyclopedia pages are read as of the cutoff: call {ENCYCLOPEDIA_TOOL} with this address instead."
        return f"{url} is closed in this exercise and will stay so. Do not try it again: search for reports instead."

    def _told(self, name: str, error: ToolFailed) -> str:
        """Why a source failed can tell the future (a page that will exist, a market that closed): it is kept back."""
        if not self._fence.active or error.__cause__ is None:
            return str(error)
        self._fence.emit(LeakBlocked(layer="data", reason=f"reason of a failure: {error} ({error.__cause__})"))
        return self._nothing(name)

    def _nothing(self, name: str) -> str:
        day = self._fence.as_of.at.date().isoformat()
        return f"{name}: nothing could be admitted as of {day}. Try other words, another address or another tool."

    def _failed(self, text: str) -> Observation:
        return replace(self._seen(text, ()), failed=True)

    def _seen(self, text: str, ids: tuple[str, ...]) -> Observation:
        marked = f"{CLAIRVOYANT}\n{text}" if self.clairvoyant else text
        return Observation(text=marked, source_ids=ids, clairvoyant=self.clairvoyant)


def _entry(admitted: Admitted) -> str:
    when = admitted.published.date().isoformat() if admitted.published is not None else ""
    where = _host(admitted.url)
    place = ", ".join(filter(None, (where, when)))
    head = f"[{admitted.id}] {admitted.title}" + (f" ({place})" if place else "")
    rest = len(admitted.item.text) - len(admitted.shown)
    more = f"\n({rest} more characters: summarize_results reads them)" if rest > 0 and not admitted.item.snippet else ""
    return f"{head}\n{admitted.shown}{more}".strip()


def _host(url: str) -> str:
    try:
        address = address_of(url) if url else None
    except UnreadableAddress:
        return ""
    return address.host if address is not None else ""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """Rules first, then the content filter over what they admitted; every refusal is an event."""

    fence: Fence
    leak_filter: ContentFilter | None
    shelf: Shelf

    async def pass_through(self, tool: str, items: Sequence[Item], name: Callable[[int, int], str]) -> list[Admitted]:
        """The items that pass every layer, put on the shelf under their ids."""
        admitted = [item for item in (self._by_rule(item, tool) for item in items) if item is not None]
        excerpts = [Excerpt(title=item.title, text=_shown(item)) for item in admitted]
        kept = await self._by_content(admitted, excerpts)
        passed = [(item, excerpt.text) for item, excerpt, keep in zip(admitted, excerpts, kept, strict=True) if keep]
        for place, (item, shown) in enumerate(passed, start=1):
            whole = not self.fence.active or item.clamped or item.text in ("", shown)
            self.shelf.put(Admitted(id=name(place, len(passed)), item=item, shown=shown, whole=whole))
        return [self.shelf[name(place, len(passed))] for place in range(1, len(passed) + 1)]

    async def vet(self, admitted: Sequence[Admitted]) -> list[bool]:
        """Whether the whole text of each may be read."""
        items = [one.item for one in admitted]
        return await self._by_content(items, [Excerpt(title=item.title, text=item.text[:READ_LIMIT]) for item in items])

    def heading(self, text: str) -> str:
        """The tool's own words above its results, without anything told later."""
        return clamp_text(text, self.fence.as_of)[0] if self.fence.active else text

    def _by_rule(self, item: Item, tool: str) -> Item | None:
        found = self.fence.admit(item, tool)
        if isinstance(found, Refusal):
            self.fence.emit(found.of(item))
            return None
        return found

    async def _by_content(self, items: Sequence[Item], excerpts: Sequence[Excerpt]) -> list[bool]:
        """Clamped numbers hold no words to judge; everything else needs an explicit KEEP."""
        if not self.fence.active:
            return [True] * len(items)
        asked = [place for place, item in enumerate(items) if not item.clamped]
        kept = [item.clamped for item in items]
        if not asked or self.leak_filter is None:
            return kept
        chosen = [excerpts[place] for place in asked]
        verdicts = await self.leak_filter.judge(chosen, self.fence.as_of, self.fence.question.text)
        if len(verdicts) != len(asked):
            verdicts = []
        for order, place in enumerate(asked):
            verdict = verdicts[order] if verdicts else None
            kept[place] = verdict is not None and verdict.keeps
            if not kept[place]:
                reason = verdict.reason if verdict is not None else "the filter lost count"
                self.fence.emit(Refusal(layer="content", reason=reason).of(items[place]))
        return kept


def _shown(item: Item) -> str:
    return without_age(item.snippet)[:SNIPPET_LIMIT] if item.snippet else item.text[:SHOWN_LIMIT]
