"""Opening a page by its address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.sources.http import SourceError
from foretell.sources.page import PageSource, PageUnavailable
from foretell.tools.arguments import needed_text
from foretell.tools.names import LOOKUP_URL
from foretell.tools.tool import Item, Material, ToolFailed

SPEC = ToolSpec(
    name=LOOKUP_URL,
    description=(
        "Open one web address and read its text. Good for pages named in the question's background and for promising "
        "search results. Pages that would give the answer away, and pages without a usable date, are closed."
    ),
    parameters={
        "type": "object",
        "properties": {"url": {"type": "string", "description": "A full address that begins with https://."}},
        "required": ["url"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, kw_only=True)
class LookupUrl:
    """Fetches pages; in a backtest preferably from a source that keeps old versions."""

    pages: PageSource

    @property
    def spec(self) -> ToolSpec:
        """As shown to the model."""
        return SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> Material:
        """The page, unchecked, with every address it passed."""
        url = needed_text(arguments, "url")
        if not url.lower().startswith(("https://", "http://")):
            raise ToolFailed("Only web addresses can be opened: begin with https://.")
        try:
            page = await self.pages.fetch(url, as_of)
        except (PageUnavailable, SourceError) as error:
            raise ToolFailed(f"The page could not be opened: {error}") from error
        item = Item(
            title=page.title,
            text=page.text,
            url=page.url,
            hops=tuple(dict.fromkeys((url, *page.hops))),
            published=page.published,
            dating="published" if page.published is not None else "none",
            captured=page.captured,
        )
        return Material(heading=f"Text of {url}:", items=(item,))
