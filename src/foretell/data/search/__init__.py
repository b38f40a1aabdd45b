"""Search engines."""

from foretell.interface import offer

HOMES = {
    "foretell.data.search.asknews": "ASKNEWS_URL AskNewsSearch",
    "foretell.data.search.brave": "BraveSearch brave_hits",
    "foretell.data.search.engine": "CannotSearch Dating SearchEngine SearchHit",
    "foretell.data.search.exa": "ExaSearch exa_hits",
    "foretell.data.search.gdelt": "GDELT_URL GdeltSearch",
    "foretell.data.search.local": "CorpusSearch",
    "foretell.data.search.perplexity": "PerplexitySearch",
    "foretell.data.search.serper": "SerperSearch",
    "foretell.data.search.tavily": "TavilySearch tavily_hits",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
