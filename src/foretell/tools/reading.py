"""How the results of tools are shown to a model: briefly, as in the papers, or longer and with hints."""

from collections.abc import Collection, Mapping
from typing import Any

from foretell.frozen import frozen
from foretell.models.model import ToolSpec
from foretell.models.structured_output import closed_object
from foretell.tools.addresses import is_encyclopedia
from foretell.tools.tool import (
    CALCULATE,
    FETCH_PRICES,
    FETCH_SERIES,
    FETCH_WIKIPEDIA,
    LOOKUP_URL,
    SERIES_STATS,
    SUMMARIZE_RESULTS,
    WEB_SEARCH,
)


@frozen
class ReadingStyle:
    """How much of a result is shown, and whether a model is helped when a call fails."""

    excerpt: int | None = None
    """Length of an excerpt that ends at a sentence, in characters; None for the engine's own excerpt."""
    page: int = 6_000
    """Maximum number of characters of a page that are shown."""
    guided: bool = False
    """Whether results shown before, and those that the next belief does not cite, are only named, found pages open in
    full, an unknown id costs only itself, the tools of `COMPUTING` are offered, and a failure names the tool that can
    do what was asked."""


BRIEF = ReadingStyle()
"""The style of the presets, which reproduce the papers."""
GUIDED = ReadingStyle(excerpt=1_500, page=24_000, guided=True)
"""The style of the forecaster `reason`."""
STYLES = {"brief": BRIEF, "guided": GUIDED}
GUIDED_SPECS: Mapping[str, ToolSpec] = {
    LOOKUP_URL: ToolSpec(
        name=LOOKUP_URL,
        description=(
            "Read a page or a document in full: a result of a search, by its id, or an address that the question "
            "names. Some pages are closed."
        ),
        parameters=closed_object({"url": {"type": "string", "description": "The id of a result, or an address."}}),
    )
}
"""Descriptions of tools that can do more in the style `GUIDED`."""
ABLE: Mapping[str, str] = {
    WEB_SEARCH: "finds reports by a few words",
    LOOKUP_URL: "opens a result or an address",
    FETCH_WIKIPEDIA: "reads articles of Wikipedia",
    SERIES_STATS: "counts the past changes of the series",
    CALCULATE: "computes an expression",
}
"""What a tool can do, for hints."""
OTHER_TOOLS: Mapping[str, tuple[str, ...]] = {
    LOOKUP_URL: (WEB_SEARCH,),
    FETCH_SERIES: (WEB_SEARCH,),
    FETCH_PRICES: (WEB_SEARCH,),
    SERIES_STATS: (FETCH_SERIES, WEB_SEARCH),
    FETCH_WIKIPEDIA: (WEB_SEARCH, LOOKUP_URL),
    SUMMARIZE_RESULTS: (LOOKUP_URL,),
}
"""Tools to try after one has failed, the best first."""


def hint_after(tool: str, arguments: Mapping[str, Any], offered: Collection[str]) -> str:
    """Return a sentence that names the tool which can do what a failed call asked for; empty if there is none.

    >>> hint_after("web_search", {"query": "https://a.example/b"}, ["web_search", "lookup_url"])
    'For this, call lookup_url: it opens a result or an address.'
    """
    values = [part for value in arguments.values() for part in (value if isinstance(value, list) else [value])]
    texts = [value.strip() for value in values if isinstance(value, str)]
    address = next((text for text in texts if "://" in text and " " not in text), "")
    others = OTHER_TOOLS.get(tool, ())
    if address and is_encyclopedia(address):
        others = (FETCH_WIKIPEDIA, *others)
    elif address:
        others = (LOOKUP_URL, *others)
    elif tool == CALCULATE:
        others = (SERIES_STATS,) if any(word in " ".join(texts) for word in ("series", "quantile", "change")) else ()
    best = next((name for name in others if name != tool and name in offered and name in ABLE), "")
    return f"For this, call {best}: it {ABLE[best]}." if best else ""
