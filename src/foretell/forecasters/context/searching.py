"""All searches of a context as one tool: asked side by side, kept in the journal, fused before the fence sees them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foretell.forecasters.context.candidates import fuse
from foretell.llm.canonical import content_key
from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.sources.search import SearchEngine
from foretell.tools.kept import Once, packed, unpacked
from foretell.tools.refusal import Refused
from foretell.tools.search import SPEC, WebSearch
from foretell.tools.tool import Item, Material, ToolFailed


class ManySearches:
    """Brings the results of several queries at once. Used for one context, then looked at for what happened.

    Unlike a tool of an agent it keeps no failures: a search that failed is made again when the context is.
    """

    def __init__(self, engine: SearchEngine, journal: Once | None, scope: str, *, limit: int) -> None:
        self._search = WebSearch(engine=engine, limit=limit)
        self._journal = journal
        self._scope = scope
        self.found = 0
        """Results of all searches, before anything was left out."""
        self.dropped: Mapping[str, int] = {}
        self.failures: list[str] = []

    @property
    def spec(self) -> ToolSpec:
        """That of a web search: the fence knows it."""
        return SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> Material:
        """The fused results; `ToolFailed` where no search worked."""
        queries: Sequence[str] = arguments["queries"]
        found = await asyncio.gather(*(self._one(query, as_of) for query in queries))
        brought = [[_whole(item) for item in material.items] for material in found if material is not None]
        if not brought:
            raise ToolFailed(f"All {len(queries)} searches failed; the first: {self.failures[0]}")
        self.found = sum(map(len, brought))
        fused = fuse(brought)
        self.dropped = fused.dropped
        return Material(heading="Results", items=fused.items)

    async def _one(self, query: str, as_of: AsOf) -> Material | None:
        asked = {"query": query}

        async def fetched() -> dict[str, Any]:
            return packed(await self._search.use(asked, as_of))

        try:
            if self._journal is None:
                return await self._search.use(asked, as_of)
            key = content_key(["context", asked, as_of.at.isoformat(), as_of.mode, self._scope])
            return unpacked(await self._journal.once_json(key, "tool", fetched))
        except Refused as refused:
            self.failures.append(refused.refusal.reason)
        except ToolFailed as error:
            self.failures.append(str(error))
        return None


def _whole(item: Item) -> Item:
    """The item without half characters, which no request and no file can hold."""
    texts = {name: getattr(item, name) for name in ("title", "text", "snippet", "url")}
    mended = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    return item if mended == texts else replace(item, **mended)
