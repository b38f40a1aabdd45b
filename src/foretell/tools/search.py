"""Web search as of the cutoff."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.sources.http import SourceError
from foretell.sources.search import CannotSearch, SearchEngine, SearchHit
from foretell.tools.arguments import needed_text
from foretell.tools.names import WEB_SEARCH
from foretell.tools.refusal import Refusal, Refused
from foretell.tools.tool import Item, Material, ToolFailed

SNIPPET = 600
SPEC = ToolSpec(
    name=WEB_SEARCH,
    description=(
        "Search the web for reports, data and opinions published by the cutoff date. Returns numbered results with "
        "short excerpts; read promising ones further with summarize_results. Use few, concrete words: names, "
        "places, the quantity asked about. Vary the words rather than repeating a search."
    ),
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "The words to search for."}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, kw_only=True)
class WebSearch:
    """Asks a search engine. One that cannot leave out newer pages by itself is not asked in a backtest at all."""

    engine: SearchEngine
    limit: int = 10

    @property
    def spec(self) -> ToolSpec:
        """As shown to the model."""
        return SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> Material:
        """The engine's results, unchecked."""
        query = needed_text(arguments, "query")
        if as_of.mode == "backtest" and not self.engine.filters_dates:
            reason = f"the engine {self.engine.name} cannot filter by date"
            raise Refused(
                "Searching is not possible in this exercise. Use the other tools and what you know.",
                Refusal(layer="date", reason=reason),
            )
        try:
            hits = await self.engine.search(query, as_of, self.limit)
        except (CannotSearch, SourceError) as error:
            raise ToolFailed(f"The search failed: {error}") from None
        return Material(heading=f"Results for {query!r}:", items=tuple(map(_item, hits)))


def _item(hit: SearchHit) -> Item:
    text = hit.text or ""
    # Of a stored version only its own words are old: an excerpt made for today's index need not be among them.
    stored = hit.text_as_of is not None and hit.snippet not in text
    snippet = text[:SNIPPET] if stored else hit.snippet
    return Item(
        title=hit.title,
        text=text or snippet,
        snippet=snippet,
        url=hit.url,
        published=hit.published,
        dating=hit.dating,
        captured=hit.text_as_of,
    )
