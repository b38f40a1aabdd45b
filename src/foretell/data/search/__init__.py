"""Search engines."""

from foretell.interface import offer

HOMES = {
    "foretell.data.search.engine": "CannotSearch Dating SearchEngine SearchHit",
    "foretell.data.search.local": "CorpusSearch",
    "foretell.data.search.news": "ASKNEWS_URL AskNewsSearch GDELT_URL GdeltSearch",
    "foretell.data.search.web": (
        "BraveSearch ExaSearch PerplexitySearch SerperSearch TavilySearch brave_hits exa_hits tavily_hits"
    ),
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
