"""The leakage filter: in a backtest, a model only sees what every layer admits. Anything unclear is dropped.

The address, date and data layers are rules. The content layer uses a model. In live runs there is no future to leak, so
all layers are off. A run with `leakage_filter: false` switches them off on purpose, as an upper bound, and notes it in
every result.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from hashlib import sha256
from types import MethodType
from typing import Any, final
from weakref import WeakMethod

from foretell.data.search.excerpts import cut_at_sentence, excerpt
from foretell.data.untrusted import for_prompt
from foretell.frozen import frozen
from foretell.models.model import ToolSpec
from foretell.models.waiting import PendingWork
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import UNFILTERED_SUFFIX
from foretell.questions.trace import LeakBlocked
from foretell.tools.addresses import UnreadableAddress, address_of, is_encyclopedia, page_of
from foretell.tools.calculate import Calculate
from foretell.tools.content_filter import ContentFilter, Excerpt, LeakVerdict
from foretell.tools.dates.ages import without_age
from foretell.tools.leakage_rules import LeakageRules, clamp_text
from foretell.tools.marks import MARK_LENGTH, MARKS, marked
from foretell.tools.reading import BRIEF, GUIDED_SPECS, ReadingStyle, hint_after
from foretell.tools.tool import (
    COMPUTING,
    FETCH_PRICES,
    FETCH_SERIES,
    FETCH_WIKIPEDIA,
    LOOKUP_URL,
    PREFIXES,
    SERIES_STATS,
    SUMMARIZE_RESULTS,
    WEB_SEARCH,
    LeakRefused,
    Refusal,
    SourceItem,
    Tool,
    ToolFailed,
    ToolMaterial,
)

# Admitted sources, by the id with which a model may cite and read them.

LONGEST_ABOUT = 300
"""Maximum number of characters of a query or address that is shown while a tool is at work."""
READ_LIMIT = 24_000
"""Maximum number of characters of a text that can be read."""


@frozen
class AdmittedSource:
    """An item that passed the leakage filter."""

    id: str
    item: SourceItem
    shown: str
    """The part that the model saw."""
    whole: bool
    """Whether the whole text was judged. If not, only the shown part may be used."""

    @property
    def url(self) -> str:
        """Its address."""
        return self.item.url

    @property
    def title(self) -> str:
        """Its headline."""
        return self.item.title

    @property
    def published(self) -> datetime | None:
        """Its date, or that of the stored version."""
        return self.item.published or self.item.captured


VetSources = Callable[[Sequence[AdmittedSource]], Awaitable[list[bool]]]
"""Judges the full text of items of which only a part was shown."""


class SourceStore:
    """Admitted items in the order of arrival. Only the leakage filter adds to it."""

    def __init__(self, *, marked: bool = False) -> None:
        self.marked = marked
        """Whether foretell's own words among results are marked. They are not in runs of older versions."""
        self.style: ReadingStyle = BRIEF
        """How results are shown; `FilteredTools.read_in` sets it."""
        self._admitted: dict[str, AdmittedSource] = {}
        self._vet: Callable[[], VetSources | None] | None = None

    def __contains__(self, source_id: str) -> bool:
        return source_id in self._admitted

    def __len__(self) -> int:
        return len(self._admitted)

    def __getitem__(self, source_id: str) -> AdmittedSource:
        return self._admitted[source_id]

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of everything that may be cited."""
        return tuple(self._admitted)

    def matching(self, name: str) -> list[AdmittedSource]:
        """Return the admitted items with this id or address, in the order of arrival."""
        if name in self._admitted:
            name = self._admitted[name].url or name
        page = page_of(name)
        return [source for id, source in self._admitted.items() if id == name or (page and page_of(source.url) == page)]

    def guard(self, vet: VetSources) -> None:
        """Judge full texts with `vet` before they are read. A store has only one leakage filter."""
        if self._vet is not None:
            raise ValueError("this store already belongs to a leakage filter; every trial needs its own")
        # A weak reference, because a cycle of filter and store would keep all texts of a trial in memory.
        self._vet = WeakMethod(vet) if isinstance(vet, MethodType) else lambda: vet

    def put(self, admitted: AdmittedSource) -> None:
        """Add an item that passed."""
        self._admitted[admitted.id] = admitted

    def mark(self, *words: str) -> str:
        """Return the mark for foretell's own words among these texts; empty if nothing is marked.

        It is a hash of all the texts, so no text can contain it. The same results always have the same mark.
        """
        return sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:MARK_LENGTH] if self.marked else ""

    async def read(self, ids: Sequence[str]) -> list[tuple[AdmittedSource, str]]:
        """Return items with the text that may be read: the full text if it passes, else the part shown before.

        Raises `ToolFailed` for an unknown id; with guided results only if none is known.
        """
        unknown = [source_id for source_id in ids if source_id not in self._admitted]
        if self.style.guided and len(unknown) < len(ids):
            ids, unknown = [source_id for source_id in ids if source_id in self._admitted], []
        if unknown:
            known = ", ".join(self._admitted) or "none yet"
            raise ToolFailed(f"There is no result {unknown[0]!r}. Results so far: {known}.")
        vet = self._vet() if self._vet is not None else None
        if vet is None:
            raise ToolFailed("Nothing can be read: no leakage filter guards these results.")
        partly = [self._admitted[source_id] for source_id in dict.fromkeys(ids) if not self._admitted[source_id].whole]
        for admitted, passed in zip(partly, await vet(partly) if partly else [], strict=True):
            text = admitted.item.text[:READ_LIMIT] if passed else admitted.shown
            self._admitted[admitted.id] = replace(admitted, whole=True, item=replace(admitted.item, text=text))
        return [
            (source := self._admitted[source_id], source.item.text[:READ_LIMIT]) for source_id in dict.fromkeys(ids)
        ]


SNIPPET_LIMIT = 2_000
SHOWN_LIMIT = 6_000
LONGEST_ADDRESS = 400
"""Longest address shown in full. For a longer one only the host is shown."""
UNFILTERED = "(No leakage filter: nothing was withheld.)"
NOT_CITED = "(not cited: the text is left out{})"
"""Shown in place of the text of a result that was read and not cited."""


@frozen
class Observation:
    """The part of a tool's result that a model may see."""

    text: str
    source_ids: tuple[str, ...] = ()
    """Ids that may be cited from now on."""
    entries: tuple[str, ...] = ()
    """The entry of each source within the text."""
    mark: str = ""
    """Shown next to ids and foretell's own notes; empty if nothing is marked."""
    failed: bool = False
    unfiltered: bool = False


@frozen
class FetchedResult:
    """The result of a call before it gets ids. Calls of one reply are fetched at once and presented in their order."""

    tool: str
    call: int = 0
    arguments: Mapping[str, Any]
    heading: str = ""
    passed: tuple[AdmittedSource, ...] = ()
    """The items that passed every layer, without their final ids."""
    opened: AdmittedSource | None = None
    """A result shown before, with the text in full."""
    ended: Observation | None = None
    """The observation, if the call failed or computed something."""
    at: float | None = field(default=None, compare=False)
    """When the call ended, in seconds since 1970; None if it could not begin."""
    seconds: float | None = field(default=None, compare=False)
    """How long it took."""


def failed_result(tool: str, arguments: Mapping[str, Any], error: Exception) -> FetchedResult:
    """Return the result of a call that failed because a model behind the tool did."""
    seen = Observation(text=f"{tool} failed: {for_prompt(str(error))}. Try another way.", failed=True)
    return FetchedResult(tool=tool, arguments=arguments, ended=seen)


_KEY = object()


@final
class FilteredTools:
    """Tools behind a leakage filter, the only kind an agent accepts. Create them with `FilteredTools.around`."""

    def __init__(
        self,
        key: object,
        tools: Mapping[str, Tool],
        rules: LeakageRules,
        content_filter: ContentFilter | None,
        sources: SourceStore,
    ) -> None:
        if key is not _KEY:
            raise TypeError("use FilteredTools.around(tools, rules, content_filter)")
        self._tools = tools
        self._rules = rules
        self._content_filter = content_filter
        self.sources = sources
        """Everything admitted so far."""
        self._calls: dict[str, int] = {}
        self._only_named = set[str]()
        """Ids of results whose text has left the conversation."""

    @classmethod
    def around(
        cls,
        tools: Iterable[Tool],
        rules: LeakageRules,
        content_filter: ContentFilter | None,
        *,
        sources: SourceStore | None = None,
    ) -> "FilteredTools":
        """Put tools behind a leakage filter. Raises ValueError for a backtest without a content filter."""
        if rules.active and content_filter is None:
            raise ValueError("a backtest needs a content filter; pass one, or set leakage_filter to false")
        by_name: dict[str, Tool] = {}
        for tool in tools:
            if by_name.setdefault(tool.spec.name, tool) is not tool:
                raise ValueError(f"two tools are called {tool.spec.name!r}")
        filtered = cls(_KEY, by_name, rules, content_filter, SourceStore() if sources is None else sources)
        filtered.sources.guard(filtered._vet)
        return filtered

    @property
    def as_of(self) -> AsOf:
        """The cutoff, even of an unfiltered run."""
        return self._rules.as_of

    @property
    def unfiltered(self) -> bool:
        """Whether the layers were switched off on purpose. Such a run is not a forecast."""
        return self._rules.unfiltered

    def marked_name(self, name: str) -> str:
        """Return the name of a forecaster or grounder that uses these tools, marked if nothing is withheld."""
        return f"{name}{UNFILTERED_SUFFIX}" if self.unfiltered else name

    def read_in(self, style: ReadingStyle) -> "FilteredTools":
        """Show results in this style from now on, and return these tools."""
        self.sources.style = style
        return self

    def specs(self) -> tuple[ToolSpec, ...]:
        """The available tools, always in the same order."""
        specs = (tool.spec for tool in self._offered.values())
        return tuple(GUIDED_SPECS.get(spec.name, spec) if self._style.guided else spec for spec in specs)

    @property
    def _style(self) -> ReadingStyle:
        return self.sources.style

    @property
    def _offered(self) -> Mapping[str, Tool]:
        return {name: tool for name, tool in self._tools.items() if self._style.guided or name not in COMPUTING}

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Call a tool and return the part of its result that may be seen. Failures are returned as text."""
        return self.present(await self.fetch(name, arguments))

    async def fetch(self, name: str, arguments: Mapping[str, Any]) -> FetchedResult:
        """Call a tool and filter its result. Nothing is stored or shown before `present`.

        Calls made at once may end in any order, so ids and repeated results are decided afterwards, in a fixed order.
        """
        about = next((value for value in arguments.values() if isinstance(value, str)), "")
        with PendingWork("tool", name, about[:LONGEST_ABOUT]) as work:
            fetched = await self._fetch(name, arguments)
        now = time.time()
        return replace(fetched, at=now, seconds=max(0.0, now - work.since))

    async def _fetch(self, name: str, arguments: Mapping[str, Any]) -> FetchedResult:
        ended = FetchedResult(tool=name, arguments=arguments)
        tool = self._offered.get(name)
        if tool is None:
            offered = ", ".join(self._offered) or "none"
            return replace(ended, ended=self._failed(f"There is no tool {name!r}. Tools on offer: {offered}."))
        if name == LOOKUP_URL and self._style.guided:
            named = str(arguments.get("url", "")).strip().strip("[]")
            if (fullest := max(self.sources.matching(named), key=lambda s: len(s.item.text), default=None)) is not None:
                if (opened := await self._opened(fullest)) is not None:
                    return replace(ended, opened=opened)
                if not fullest.url or not _is_excerpt(fullest.item):
                    text = f"All of {fullest.id} that can be read was shown already."
                    return replace(ended, ended=self._failed(text))
                arguments = {**arguments, "url": fullest.url}
        if (closed := self._closed_address(name, arguments)) is not None:
            return replace(ended, ended=self._failed(self._hinted(closed, name, arguments)))
        # Counted before the first await, because concurrent calls may return in any order.
        call = self._calls[name] = self._calls.get(name, 0) + 1
        try:
            material = await tool.use(arguments, self._rules.sees)
        except LeakRefused as error:
            self._rules.emit(LeakBlocked(layer=error.refusal.layer, reason=error.refusal.reason))
            text = str(error) if name in PREFIXES else self._nothing(name)
            return replace(ended, ended=self._failed(self._hinted(text, name, arguments)))
        except ToolFailed as error:
            return replace(ended, ended=self._failed(self._hinted(self._failure(name, error), name, arguments)))
        if isinstance(tool, Calculate):
            # It computes from the model's own words: there is no outside material to filter or to cite.
            return replace(ended, ended=self._seen(material.heading, ()))
        cited = arguments.get("ids", ()) if name == SUMMARIZE_RESULTS else ()
        admitted = await self._admit(name, material, [source for source in self.sources.ids if source in cited])
        heading = self._heading(material.heading)
        return FetchedResult(tool=name, call=call, arguments=arguments, heading=heading, passed=tuple(admitted))

    def present(self, fetched: FetchedResult) -> Observation:
        """Store a result under its ids and return the part that may be seen.

        `search_{i}_result_{j}` for the j-th new result of the i-th search; `page_{i}` for single results. With guided
        results, one that was shown before is only named.
        """
        if fetched.ended is not None:
            return fetched.ended
        name = fetched.tool
        if (opened := fetched.opened) is not None:
            self.sources.put(opened)
            mark = self.sources.mark(name, self._rules.question.id, opened.title + opened.shown)
            return self._shown_as(f"Text of {opened.id}:", [opened], mark, name=name)
        if not fetched.passed:
            return self._seen(self._hinted(self._nothing(name), name, fetched.arguments), ())
        prefix = f"{PREFIXES.get(name, name)}_{fetched.call}"
        alone = len(fetched.passed) == 1 and name != WEB_SEARCH
        names_repeats = self._style.guided and name == WEB_SEARCH
        admitted: list[AdmittedSource] = []
        repeated: dict[str, None] = {}
        for source in fetched.passed:
            if names_repeats and source.url and (before := self.sources.matching(source.url)):
                repeated[before[0].id] = None
                continue
            admitted.append(replace(source, id=prefix if alone else f"{prefix}_result_{len(admitted) + 1}"))
            self.sources.put(admitted[-1])
        mark = self.sources.mark(name, self._rules.question.id, *(source.title + source.shown for source in admitted))
        return self._shown_as(fetched.heading, admitted, mark, name=name, repeated=tuple(repeated))

    def _shown_as(
        self, heading: str, sources: Sequence[AdmittedSource], mark: str, *, name: str, repeated: Sequence[str] = ()
    ) -> Observation:
        """Return the observation of sources under a heading; those shown before are named by their ids."""
        reader = LOOKUP_URL if self._style.guided and LOOKUP_URL in self._tools else SUMMARIZE_RESULTS
        entries = [_entry(source, self._address(name, source.item), mark, reader) for source in sources]
        # Headings of built-in tools only repeat the model's words. Headings of plugin tools are outside text.
        heading = marked(heading, mark) if name in PREFIXES else for_prompt(heading)
        if repeated:
            nothing = "" if sources else "Nothing new. "
            entries.insert(0, marked(f"({nothing}Shown before: {', '.join(repeated)}.)", mark))
        text = "\n\n".join([heading, *entries]).strip()
        text = f"{MARKS.format(mark=mark)}\n\n{text}" if mark else text
        seen = self._seen(text, tuple(source.id for source in sources), mark=mark)
        return replace(seen, entries=tuple(entries[len(entries) - len(sources) :]))

    def shortened(self, seen: Observation, cited: Collection[str]) -> str:
        """Return the text of an observation with sources that are not cited only named, if the style says so.

        The text of a source that is only named can be opened again.
        """
        text = seen.text
        if not self._style.guided:
            return text
        note = marked(NOT_CITED.format(f"; {LOOKUP_URL} opens it" if LOOKUP_URL in self._offered else ""), seen.mark)
        for id, entry in zip(seen.source_ids, seen.entries, strict=True):
            if id not in cited:
                text = text.replace(entry, f"{entry.splitlines()[0]}\n{note}", 1)
                self._only_named.add(id)
        return text

    async def _opened(self, source: AdmittedSource) -> AdmittedSource | None:
        """Return the item with its text, if there is more than the conversation shows and it may be read."""
        ((read, text),) = await self.sources.read([source.id])
        shown = cut_at_sentence(text, self._style.page)
        if len(shown) <= len(source.shown) and source.id not in self._only_named:
            return None
        self._only_named.discard(source.id)
        return replace(read, shown=shown)

    def _hinted(self, text: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the message of a failed call, with the tool that can do what was asked if results are guided."""
        if not self._style.guided or any(name in text for name in self._offered if name != tool):
            return text
        return f"{text} {hint_after(tool, arguments, self._offered)}".strip()

    # Rules come first, then the content filter. Every refusal is an event.

    def _closed_address(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """The refusal if an argument names a blocked address; None otherwise."""
        for key, value in arguments.items():
            if not isinstance(value, str) or not (key == "url" or ("://" in value and " " not in value.strip())):
                continue
            if (blocked := self._rules.check_address(name, value)) is None:
                continue
            self._rules.emit(LeakBlocked(layer="address", reason=blocked.reason, url=value))
            if is_encyclopedia(value) and FETCH_WIKIPEDIA in self._tools:
                return (
                    f"Encyclopedia pages are read as of the cutoff: call {FETCH_WIKIPEDIA} with this address instead."
                )
            return (
                f"{value} is closed in this exercise and will stay so. Do not try it again: search for reports instead."
            )
        return None

    async def _admit(self, tool: str, material: ToolMaterial, cited: Collection[str]) -> list[AdmittedSource]:
        """The items that pass every layer, without ids. They may cite only `cited`."""
        items: list[SourceItem] = []
        for item in material.items:
            admitted = self._rules.admit(item, tool)
            if isinstance(admitted, Refusal):
                self._rules.emit(admitted.of(item))
            else:
                items.append(_unframed(admitted, cited))
        # Headings of built-in tools only repeat the question. Headings of plugin tools are judged with their items.
        above = "" if tool in PREFIXES else f"{material.heading}\n"
        excerpts = [
            Excerpt(
                title=f"{above}{item.title} {self._address(tool, item)}".rstrip(),
                text=shown_part(item, self._style, tool),
                url=item.url,
            )
            for item in items
        ]
        numbers = tool in (FETCH_SERIES, FETCH_PRICES, SERIES_STATS)
        keeps = await self._by_content(items, excerpts, numbers=numbers)
        passed = [(item, part.text) for item, part, keep in zip(items, excerpts, keeps, strict=True) if keep]
        return [
            AdmittedSource(
                id="",
                item=item,
                shown=shown,
                whole=not self._rules.active or (numbers and item.clamped) or item.text.strip() in ("", shown.strip()),
            )
            for item, shown in passed
        ]

    def _address(self, tool: str, item: SourceItem) -> str:
        """Return the address of a result if a tool can open it. It is shown to the model, so it is judged too."""
        shown = tool == WEB_SEARCH and LOOKUP_URL in self._tools and len(item.url) <= LONGEST_ADDRESS
        return item.url if shown else ""

    async def _vet(self, admitted: Sequence[AdmittedSource]) -> list[bool]:
        """Whether the full text of each item may be read."""
        items = [source.item for source in admitted]
        return await self._by_content(
            items, [Excerpt(title=item.title, text=item.text[:READ_LIMIT], url=item.url) for item in items]
        )

    async def _by_content(
        self, items: Sequence[SourceItem], excerpts: Sequence[Excerpt], *, numbers: bool = False
    ) -> list[bool]:
        """Judge items by content. Dated numbers of built-in tools pass; everything else needs an explicit KEEP."""
        if not self._rules.active:
            return [True] * len(items)
        keeps = [numbers and item.clamped for item in items]
        unjudged = [place for place, keep in enumerate(keeps) if not keep]
        if not unjudged or self._content_filter is None:
            return keeps
        chosen = [excerpts[place] for place in unjudged]
        verdicts = await self._content_filter.judge(chosen, self._rules.as_of, self._rules.question.text)
        if len(verdicts) != len(unjudged):
            verdicts = [LeakVerdict(word="DROP", reason="the filter returned the wrong number of verdicts")] * len(
                unjudged
            )
        for place, verdict in zip(unjudged, verdicts, strict=True):
            keeps[place] = verdict.keeps
            if not verdict.keeps:
                self._rules.emit(Refusal(layer="content", reason=verdict.reason).of(items[place]))
        return keeps

    def _heading(self, text: str) -> str:
        """Return the heading of a tool without lines from after the cutoff."""
        if not self._rules.active:
            return text
        known, late = clamp_text(text, self._rules.as_of)
        if late:
            self._rules.emit(
                LeakBlocked(layer="data", reason=f"{len(late)} lines dated after the cutoff", title=late[0][:200])
            )
        return known

    def _failure(self, name: str, error: ToolFailed) -> str:
        """Return the message for a failed source. The cause is withheld, because it can reveal later events.

        Messages of built-in tools about wrong arguments are harmless.
        """
        if not self._rules.active or (error.__cause__ is None and name in PREFIXES):
            return for_prompt(str(error), known=self.sources.ids)
        self._rules.emit(LeakBlocked(layer="data", reason=f"the cause of the failure is withheld: {error}"))
        return self._nothing(name)

    def _nothing(self, name: str) -> str:
        day = self._rules.as_of.at.date().isoformat()
        return f"{name}: nothing could be admitted as of {day}. Try other words, another address or another tool."

    def _failed(self, text: str) -> Observation:
        return self._seen(text, (), failed=True)

    def _seen(self, text: str, ids: tuple[str, ...], *, mark: str = "", failed: bool = False) -> Observation:
        marked = f"{UNFILTERED}\n{text}" if self.unfiltered else text
        return Observation(text=marked, source_ids=ids, mark=mark, failed=failed, unfiltered=self.unfiltered)


def _unframed(item: SourceItem, cited: Collection[str]) -> SourceItem:
    """Return the item with text that cannot imitate another source or one of foretell's notes."""
    words = {name: for_prompt(getattr(item, name), known=cited) for name in ("title", "snippet", "text")}
    changed = {name: text for name, text in words.items() if text != getattr(item, name)}
    return replace(item, **changed) if changed else item


def shown_part(item: SourceItem, style: ReadingStyle = BRIEF, tool: str = "") -> str:
    """Return the part of an item that a model is shown at first."""
    if style.excerpt is not None and item.snippet:
        return excerpt(item.text, without_age(item.snippet), style.excerpt)
    if style.guided and tool == LOOKUP_URL:
        return cut_at_sentence(item.text, style.page)
    return without_age(item.snippet)[:SNIPPET_LIMIT] if item.snippet else item.text[:SHOWN_LIMIT]


def _is_excerpt(item: SourceItem) -> bool:
    """Whether only an excerpt of a page is known, so that there is more to read at its address."""
    return item.snippet != "" and len(item.text) <= len(item.snippet)


def _entry(admitted: AdmittedSource, shown_address: str, mark: str, reader: str) -> str:
    address = None
    with suppress(UnreadableAddress):
        address = address_of(admitted.url) if admitted.url else None
    day = admitted.published.date().isoformat() if admitted.published is not None else ""
    place = ", ".join(filter(None, (shown_address or (address.host if address is not None else ""), day)))
    head = f"[{admitted.id}] {marked(admitted.title, mark)}" + (f" ({for_prompt(place)})" if place else "")
    rest = len(admitted.item.text) - len(admitted.shown)
    # `lookup_url` shows no more of a page that it has opened.
    whole = reader == LOOKUP_URL and admitted.item.snippet != ""
    note = f"({rest} more characters: {reader if whole else SUMMARIZE_RESULTS} reads them)"
    more = f"\n{marked(note, mark)}" if rest > 0 and (whole or not admitted.item.snippet) else ""
    return f"{head}\n{admitted.shown}{more}".strip()
