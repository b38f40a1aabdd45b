"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.data.search.asknews import ASKNEWS_URL as ASKNEWS_URL
from foretell.data.search.asknews import AskNewsSearch as AskNewsSearch
from foretell.data.search.brave import BraveSearch as BraveSearch
from foretell.data.search.brave import brave_hits as brave_hits
from foretell.data.search.engine import CannotSearch as CannotSearch
from foretell.data.search.engine import Dating as Dating
from foretell.data.search.engine import SearchEngine as SearchEngine
from foretell.data.search.engine import SearchHit as SearchHit
from foretell.data.search.exa import ExaSearch as ExaSearch
from foretell.data.search.exa import exa_hits as exa_hits
from foretell.data.search.gdelt import GDELT_URL as GDELT_URL
from foretell.data.search.gdelt import GdeltSearch as GdeltSearch
from foretell.data.search.local import CorpusSearch as CorpusSearch
from foretell.data.search.perplexity import PerplexitySearch as PerplexitySearch
from foretell.data.search.serper import SerperSearch as SerperSearch
from foretell.data.search.tavily import TavilySearch as TavilySearch
from foretell.data.search.tavily import tavily_hits as tavily_hits
