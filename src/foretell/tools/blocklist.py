"""Which addresses a question closes: the platforms, the live data it resolves on, and the pages it names."""

from collections.abc import Iterable
from dataclasses import dataclass

from foretell.questions.question import Question
from foretell.tools.addresses import Address, UnreadableAddress, address_of, places_in, urls_in

# Where answers can be read off: literal tables, one line per place. A path limits a line to part of a host.

PLATFORMS = (
    # Whoever asks the same question elsewhere shows its answer as well, so every platform is closed to every question.
    "polymarket.com",
    "polymarketanalytics.com",
    "uma.xyz",
    "kalshi.com",
    "manifold.markets",
    "manifold.love",
    "metaculus.com",
    "randforecastinginitiative.org",
    "infer-pub.com",
    "cset-foretell.com",
    "gjopen.com",
    "goodjudgment.com",
    "goodjudgment.io",
    "hypermind.com",
    "predictit.org",
    "insightprediction.com",
    "futuur.com",
    "limitless.exchange",
    "smarkets.com",
    "betfair.com",
    "electionbettingodds.com",
    "metaforecast.org",
    "predyx.com",
    "robinhood.com/us/en/prediction-markets",
    "forecastbench.org",
    "github.com/forecastingresearch",
    "raw.githubusercontent.com/forecastingresearch",
    "huggingface.co/datasets/forecastingresearch",
    "prophetarena.co",
    "prophetarena.ai",
)

LIVE_DATA: dict[str, tuple[str, ...]] = {
    # Pages that always show the newest figures of the data a question resolves on.
    "acled": (
        "api.acleddata.com",
        "acleddata.com/api",
        "acleddata.com/data",
        "acleddata.com/data-export-tool",
        "acleddata.com/conflict-data",
        "acleddata.com/curated-data-files",
        "acleddata.com/aggregated",
        "acleddata.com/explorer",
        "acleddata.com/dashboard",
        "acleddata.com/platform",
        "acleddata.com/trendfinder",
        "acleddata.com/early-warning-dashboard",
    ),
    "dbnomics": ("db.nomics.world", "meteofrance.com", "meteofrance.fr", "meteociel.fr", "infoclimat.fr", "ogimet.com"),
    "fred": ("stlouisfed.org", "tradingeconomics.com", "ycharts.com", "macrotrends.net"),
    "yfinance": (
        "finance.yahoo.com",
        "google.com/finance",
        "nasdaq.com/market-activity",
        "marketwatch.com/investing",
        "investing.com/equities",
        "stockanalysis.com",
        "macrotrends.net",
        "companiesmarketcap.com",
        "tradingview.com/symbols",
    ),
    "wikipedia": ("fide.com", "2700chess.com", "worldaquatics.com"),
}

LIVING = (
    # Pages rewritten for ever under one address: their date of birth says nothing about their text.
    "wikipedia.org",
    "wikimedia.org",
    "wikidata.org",
    "wiktionary.org",
    "wikivoyage.org",
    "wikinews.org",
    "wikiwand.com",
    "infogalactic.com",
    "dbpedia.org",
    "fandom.com",
    "miraheze.org",
    "everybodywiki.com",
    "en-academic.com",
    "liquipedia.net",
    "ballotpedia.org",
    "grokipedia.com",
    "worldometers.info",
    "ourworldindata.org",
    "statmuse.com",
    "transfermarkt.com",
    "270towin.com",
)

ENCYCLOPEDIAS = ("wikipedia.org",)
"""Read by revision, through a tool of their own."""

OPAQUE = (
    # Short links and redirectors that do not say where they lead.
    "archive.ph",
    "archive.is",
    "archive.today",
    "archive.li",
    "archive.vn",
    "archive.fo",
    "archive.md",
    "perma.cc",
    "bit.ly",
    "t.co",
    "tinyurl.com",
    "goo.gl",
    "ow.ly",
    "is.gd",
    "buff.ly",
    "lnkd.in",
    "dlvr.it",
    "ift.tt",
    "rb.gy",
    "cutt.ly",
    "shorturl.at",
    "trib.al",
    "news.google.com/rss/articles",
    "news.google.com/articles",
    "news.google.com/read",
)

WIDE = (
    # A question that names the front page of one of these does not mean everything it ever published.
    "reuters.com",
    "apnews.com",
    "bbc.com",
    "bbc.co.uk",
    "nytimes.com",
    "washingtonpost.com",
    "wsj.com",
    "ft.com",
    "bloomberg.com",
    "economist.com",
    "theguardian.com",
    "cnn.com",
    "cnbc.com",
    "foxnews.com",
    "nbcnews.com",
    "cbsnews.com",
    "abcnews.go.com",
    "politico.com",
    "axios.com",
    "npr.org",
    "aljazeera.com",
    "espn.com",
    "wikipedia.org",
    "twitter.com",
    "x.com",
    "youtube.com",
    "facebook.com",
    "reddit.com",
    "google.com",
    "github.com",
    "medium.com",
    "substack.com",
    "nature.com",
    "science.org",
    "arxiv.org",
    "rand.org",
    "whitehouse.gov",
    "europa.eu",
    "un.org",
    "acleddata.com",
)


class AddressPatterns:
    """Places of the web, found by the addresses that lie at or below them."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        self._by_host: dict[str, list[Address]] = {}
        for address in dict.fromkeys(addresses):
            self._by_host.setdefault(address.host, []).append(address)

    def __len__(self) -> int:
        return sum(map(len, self._by_host.values()))

    def over(self, address: Address) -> Address | None:
        """The place an address belongs to: its host or a host above, at or below the path, with the same parameters."""
        labels = address.host.split(".")
        for start in range(len(labels)):
            for place in self._by_host.get(".".join(labels[start:]), ()):
                below = address.path == place.path or address.path.startswith(place.path + "/")
                if below and place.params <= address.params:
                    return place
        return None

    def over_any(self, addresses: Iterable[Address]) -> Address | None:
        """The first place any of the addresses belongs to."""
        return next((place for address in addresses if (place := self.over(address)) is not None), None)


def address_patterns(lines: Iterable[str]) -> AddressPatterns:
    """The places a table lists."""
    return AddressPatterns(place for line in lines if (place := address_of(line)) is not None)


NOWHERE = AddressPatterns(())
CLOSED = address_patterns(PLATFORMS)
REWRITTEN = address_patterns(LIVING)
ENCYCLOPEDIC = address_patterns(ENCYCLOPEDIAS)
REDIRECTORS = address_patterns(OPAQUE)
FRONT_PAGES = address_patterns(WIDE)
LIVE = {source: address_patterns(lines) for source, lines in LIVE_DATA.items()}


def is_living(url: str) -> bool:
    """Whether a page is rewritten for ever under its address.

    >>> is_living("https://en.m.wikipedia.org/wiki/Elo"), is_living("https://www.reuters.com/world/x")
    (True, False)
    """
    return REWRITTEN.over_any(_readable(url)) is not None


def is_encyclopedia(url: str) -> bool:
    """Whether an address is that of an encyclopedia, which is read by revision."""
    return ENCYCLOPEDIC.over_any(_readable(url)[:1]) is not None


def _readable(url: str) -> tuple[Address, ...]:
    try:
        return places_in(url)
    except UnreadableAddress:
        return ()


@dataclass(frozen=True, kw_only=True)
class BlockedAddress:
    """Why an address is closed."""

    reason: str
    unless_stored: bool = False
    """A version stored before the cutoff may be read: only today's page holds the answer."""


@dataclass(frozen=True, kw_only=True)
class Blocklist:
    """The addresses closed to one question in a backtest."""

    live: AddressPatterns = NOWHERE
    named: AddressPatterns = NOWHERE
    fronts: frozenset[Address] = frozenset()
    """Front pages of large publishers: closed alone, without what lies below."""

    @classmethod
    def of(cls, question: Question) -> "Blocklist":
        """What the question's source and its own words close."""
        words = (question.text, question.criteria, question.background, question.url, *(_labels(question)))
        named = [place for text in words for url in urls_in(text) if (place := _named(url)) is not None]
        fronts = [place for place in named if not place.path and FRONT_PAGES.over(place) is not None]
        return cls(
            live=LIVE.get(question.source, NOWHERE),
            named=AddressPatterns(place for place in named if place not in fronts),
            fronts=frozenset(fronts),
        )

    def check(self, url: str, *, arrived: bool = False) -> BlockedAddress | None:
        """Why the address is closed, or None. A redirector says nothing until one has `arrived` somewhere.

        >>> Blocklist().check("https://web.archive.org/web/2026/https%3A%2F%2Fpolymarket.com/event/x")
        BlockedAddress(reason='polymarket.com is a forecasting platform', unless_stored=False)
        """
        try:
            found = places_in(url)
        except UnreadableAddress as error:
            return BlockedAddress(reason=f"the address cannot be trusted: {error}")
        for closed, why, unless_stored in (
            (CLOSED, "is a forecasting platform", False),
            (NOWHERE if arrived else REDIRECTORS, "does not say where it leads", False),
            (self.live, "shows the newest figures of the data in question", True),
            (self.named, "is named by the question", True),
        ):
            if (place := closed.over_any(found)) is not None:
                return BlockedAddress(reason=f"{place.host}{place.path} {why}", unless_stored=unless_stored)
        front = next((place for place in found if place in self.fronts), None)
        return BlockedAddress(reason=f"{front.host} is named by the question", unless_stored=True) if front else None


def _labels(question: Question) -> list[str]:
    return [target.label for target in question.targets]


def _named(url: str) -> Address | None:
    try:
        return address_of(url)
    except UnreadableAddress:
        return None
