"""The two tools that deep-research models know, `search` and `fetch`, over a fenced toolbox."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.llm.message import ToolSpec
from foretell.tools.arguments import needed_text
from foretell.tools.fence import Fenced
from foretell.tools.names import LOOKUP_URL, WEB_SEARCH
from foretell.tools.shelf import Admitted
from foretell.tools.tool import ToolFailed

SEARCH, FETCH = "search", "fetch"


def _spec(name: str, argument: str, description: str, meaning: str) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": meaning}},
        "required": [argument],
        "additionalProperties": False,
    }
    return ToolSpec(name=name, description=description, parameters=parameters)


SPECS = (
    _spec(
        SEARCH,
        "query",
        "Search for reports, data and opinions published by the cutoff date. Returns results with an id, a title, an "
        "address and an excerpt.",
        "A few concrete words.",
    ),
    _spec(
        FETCH,
        "id",
        "Read the full text of a result, as it stood by the cutoff date.",
        "The id of a result, or an address.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Offered:
    """Answers the two tools. Results go by their address, which means the same in every toolbox."""

    toolbox: Fenced

    async def use(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """The answer as JSON in a text, and whether it worked."""
        try:
            if name == SEARCH:
                return json.dumps(await self._search(needed_text(arguments, "query")), ensure_ascii=False), True
            if name == FETCH:
                return json.dumps(await self._fetch(needed_text(arguments, "id")), ensure_ascii=False), True
        except ToolFailed as error:
            return str(error), False
        return f"There is no tool {name!r}; there are {SEARCH} and {FETCH}.", False

    async def _search(self, query: str) -> dict[str, Any]:
        if WEB_SEARCH not in {spec.name for spec in self.toolbox.specs()}:
            raise ToolFailed("Searching is not possible here.")
        seen = await self.toolbox.use(WEB_SEARCH, {"query": query})
        found = [self.toolbox.shelf[id] for id in seen.source_ids]
        return {"results": [{**_head(one), "text": one.shown} for one in found]}

    async def _fetch(self, id: str) -> dict[str, Any]:
        shelf = self.toolbox.shelf
        known = next((own for own in shelf.ids if id in (own, shelf[own].url)), None)
        if known is None and LOOKUP_URL in {spec.name for spec in self.toolbox.specs()} and "://" in id:
            seen = await self.toolbox.use(LOOKUP_URL, {"url": id})
            if seen.failed or not seen.source_ids:
                raise ToolFailed(seen.text)
            known = seen.source_ids[0]
        if known is None:
            raise ToolFailed(f"There is no result {id[:200]!r}: fetch what a search has shown.")
        ((admitted, text),) = await shelf.read([known])
        return {**_head(admitted), "text": text, "metadata": {"published": _day(admitted)}}


def _head(one: Admitted) -> dict[str, str]:
    return {"id": one.url or one.id, "title": one.title, "url": one.url}


def _day(one: Admitted) -> str:
    return one.published.date().isoformat() if one.published is not None else ""
