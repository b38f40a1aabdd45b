"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.data.corpus import CorpusSearch as CorpusSearch
from foretell.data.search.engine import CannotSearch as CannotSearch
from foretell.data.search.engine import Dating as Dating
from foretell.data.search.engine import SearchEngine as SearchEngine
from foretell.data.search.engine import SearchHit as SearchHit
from foretell.data.search.news import ASKNEWS_URL as ASKNEWS_URL
from foretell.data.search.news import AskNewsSearch as AskNewsSearch
from foretell.data.search.news import GDELT_URL as GDELT_URL
from foretell.data.search.news import GdeltSearch as GdeltSearch
from foretell.data.search.web import BraveSearch as BraveSearch
from foretell.data.search.web import ExaSearch as ExaSearch
from foretell.data.search.web import PerplexitySearch as PerplexitySearch
from foretell.data.search.web import SerperSearch as SerperSearch
from foretell.data.search.web import TavilySearch as TavilySearch
from foretell.data.search.web import brave_hits as brave_hits
from foretell.data.search.web import exa_hits as exa_hits
from foretell.data.search.web import tavily_hits as tavily_hits
