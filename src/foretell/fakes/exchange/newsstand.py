"""The news as a search engine sees it: an index over everything, of which only what is out by now is ever found."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import numpy as np

from foretell.fakes.exchange.clock import Clock
from foretell.fakes.exchange.news import NewsItem
from foretell.fakes.world import WebPage, World
from foretell.sources.corpus.store import Document

SITE = "https://news.example"
FITTING = 0.4
"""Pages below this share of the best one's score are not found."""
MOST = 60
FRESH, HALF_LIFE = 0.3, 2 * 86_400.0
"""How much more what is new counts, and seconds until that is half as much."""
_WORD = re.compile(r"\w+")


class Newsstand(World):
    """Answers the fake search engines. Nothing that is published after the clock's moment is on it."""

    def __init__(self, items: Iterable[NewsItem], clock: Clock, site: str = SITE) -> None:
        """`items` in the order of their publication; `site` is what the addresses of pages begin with."""
        super().__init__(now=clock(), pages=[_page(item, site) for item in items])
        self._clock = clock
        self._published = np.array([page.published.timestamp() for page in self.pages if page.published])
        self._holding = self._index()
        self._by_path = {page.path: page for page in self.pages}

    def _index(self) -> dict[str, "np.ndarray"]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for place, page in enumerate(self.pages):
            for word in set(_WORD.findall(f"{page.title} {page.text}".casefold())):
                found[word].append(place)
        return {word: np.array(places) for word, places in found.items()}

    def find(self, query: str, *, until: datetime | None = None) -> list[WebPage]:
        """Pages that share telling words with the query, the best first; what is new counts for more."""
        self.now = self._clock()
        latest = min(self.now, until) if until is not None else self.now
        out = int(np.searchsorted(self._published, latest.timestamp(), side="right"))
        scores = np.zeros(out)
        for word in set(_WORD.findall(query.casefold())):
            places = self._holding.get(word)
            if places is not None:
                shown = places[: np.searchsorted(places, out)]
                # Counted over what is out: how often a word will be used later must not show.
                scores[shown] += math.log((out + 1) / (len(shown) + 1))
        age = (latest.timestamp() - self._published[:out]) / HALF_LIFE
        scores *= 1 + FRESH * 0.5**age
        best = scores.max(initial=0.0)
        if best <= 0:
            return []
        fitting = np.flatnonzero(scores >= FITTING * best)
        order = fitting[np.lexsort((-fitting, -scores[fitting].round(6)))]
        return [self.pages[place] for place in order[:MOST]]

    def page(self, path: str) -> WebPage | None:
        """A page that is out by now."""
        found = self._by_path.get(path)
        return found if found is not None and found.published is not None and found.published <= self._clock() else None

    def documents(self) -> list[Document]:
        """Everything that is out by now, for a local corpus."""
        now = self._clock()
        return [
            Document(url=page.url, title=page.title, text=page.text, published=page.published, source="news")
            for page in self.pages
            if page.published is not None and page.published <= now
        ]


def _page(item: NewsItem, site: str) -> WebPage:
    return WebPage(
        url=f"{site}{item.path}", title=item.title, text=item.text, published=item.published, crawled=item.published
    )
