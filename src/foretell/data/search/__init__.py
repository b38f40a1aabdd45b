"""Search engines."""

from foretell.interface import offer

HOMES = {
    "foretell.data.corpus": "CorpusSearch",
    "foretell.data.search.engine": "CannotSearch Dating SearchEngine SearchHit",
    "foretell.data.search.news": "ASKNEWS_URL AskNewsSearch GDELT_URL GdeltSearch",
    "foretell.data.search.web": (
        "BraveSearch ExaSearch PerplexitySearch SerperSearch TavilySearch brave_hits exa_hits tavily_hits"
    ),
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
