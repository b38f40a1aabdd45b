"""Merges the results of several searches: each page once, copies of one report once, the best placed first."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foretell.data.search.engine import SearchEngine
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.tools.addresses import Address, UnreadableAddress, address_of
from foretell.tools.journal import material_from_json, material_to_json
from foretell.tools.tool import LeakRefused, SourceItem, ToolFailed, ToolMaterial
from foretell.tools.web import SEARCH_SPEC, WebSearch

K = 60
"""Constant of reciprocal rank fusion: score = Σ 1/(K + place) over the searches with the page (Cormack et al. 2009)."""
ALIKE = 0.6
"""Share of common three-word runs from which two texts count as one report (Broder 1997). Two days of one daily report
share their phrases but not their figures, and stay two."""
FEWEST_RUNS = 12
"""Minimum number of three-word runs for comparing texts; shorter ones are compared by their titles alone."""
TELLING_TITLE = 5
"""Number of words from which two equal titles are not a coincidence."""
COMPARED = 4_000
"""Number of characters of a text that are compared."""
TRACKING = ("utm_", "fbclid", "gclid", "ref", "cmpid", "ocid", "mc_")
_WORD = re.compile(r"\w+")
_Face = tuple[tuple[str, ...], frozenset[tuple[str, str, str]]]
"""What copies are recognised by: the words of the title, and the three-word runs of the text."""
SAME_ADDRESS, SAME_WORDS = "found by another search already", "a copy of another find"


def fuse(searches: Sequence[Sequence[SourceItem]]) -> tuple[tuple[SourceItem, ...], dict[str, int]]:
    """Merge the results of all searches in one order, and count those left out by reason.

    The same results give the same order, however they came in.
    """
    dropped: Counter[str] = Counter()
    first: dict[Address | str, SourceItem] = {}
    score: Counter[Address | str] = Counter()
    for items in searches:
        for place, item in enumerate(items, start=1):
            key = page_of(item.url)
            dropped[SAME_ADDRESS] += key in first
            score[key] += 1 / (K + place)  # pyright: ignore[reportArgumentType] - a Counter of floats
            # Of two finds of one page the one that says more; of equals the first.
            if key not in first or len(item.text) > len(first[key].text):
                first[key] = item
    ordered = [first[key] for key in sorted(first, key=lambda key: (-score[key], first[key].url))]
    kept: list[tuple[SourceItem, _Face]] = []
    for item in ordered:
        face = _face(item)
        if any(_copies(face, other) for _, other in kept):
            dropped[SAME_WORDS] += 1
        else:
            kept.append((item, face))
    return tuple(item for item, _ in kept), {why: n for why, n in dropped.items() if n}


def page_of(url: str) -> Address | str:
    """The identity of a page: its address without protocol, superfluous parts and tracking parameters.

    >>> page_of("https://www.a.example/x/?utm_source=feed") == page_of("http://a.example/x")
    True
    """
    try:
        found = address_of(url)
    except UnreadableAddress:
        return url.strip()
    if found is None:
        return url.strip()
    return replace(found, params=frozenset(pair for pair in found.params if not pair[0].startswith(TRACKING)))


def _face(item: SourceItem) -> _Face:
    words = _WORD.findall(item.text[:COMPARED].casefold())
    runs = frozenset(zip(words, words[1:], words[2:], strict=False))
    return tuple(_WORD.findall(item.title.casefold())), runs


def _copies(one: _Face, other: _Face) -> bool:
    if len(one[0]) >= TELLING_TITLE and one[0] == other[0]:
        return True
    both = one[1] | other[1]
    return min(len(one[1]), len(other[1])) >= FEWEST_RUNS and len(one[1] & other[1]) >= ALIKE * len(both)


# All searches of a context as one tool: asked side by side, kept in the journal, fused before the fence sees them.


class ParallelSearch:
    """Runs several queries concurrently. Use one for one context, then read from it what happened.

    Unlike an agent's tool it does not store failures: a failed search is repeated when the context is built again.
    """

    def __init__(self, engine: SearchEngine, journal: Journal | None, scope: str, *, limit: int) -> None:
        self._search = WebSearch(engine=engine, limit=limit)
        self._journal = journal
        self._scope = scope
        self.found = 0
        """Number of results of all searches, before anything was left out."""
        self.dropped: Mapping[str, int] = {}
        self.failures: list[str] = []

    @property
    def spec(self) -> ToolSpec:
        """The spec of a web search, which the fence knows."""
        return SEARCH_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the fused results; raise `ToolFailed` if no search worked."""
        queries: Sequence[str] = arguments["queries"]
        found = await asyncio.gather(*(self._one(query, as_of) for query in queries))
        brought = [[_whole(item) for item in material.items] for material in found if material is not None]
        if not brought:
            raise ToolFailed(f"All {len(queries)} searches failed; the first: {self.failures[0]}")
        self.found = sum(map(len, brought))
        items, self.dropped = fuse(brought)
        return ToolMaterial(heading="Results", items=items)

    async def _one(self, query: str, as_of: AsOf) -> ToolMaterial | None:
        asked = {"query": query}

        async def fetched() -> dict[str, Any]:
            return material_to_json(await self._search.use(asked, as_of))

        try:
            if self._journal is None:
                return await self._search.use(asked, as_of)
            key = content_key(["context", asked, as_of.at.isoformat(), as_of.mode, self._scope])
            return material_from_json(await self._journal.once_json(key, "tool", fetched))
        except LeakRefused as refused:
            self.failures.append(refused.refusal.reason)
        except ToolFailed as error:
            self.failures.append(str(error))
        return None


def _whole(item: SourceItem) -> SourceItem:
    """The item without lone surrogates, which no request and no file can hold."""
    texts = {name: getattr(item, name) for name in ("title", "text", "snippet", "url")}
    mended = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    return item if mended == texts else replace(item, **mended)
