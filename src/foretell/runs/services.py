"""Everything off this machine, put together from settings: search engines, pages, series, prices, events."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from foretell.data.http import AsyncHttpClient
from foretell.data.markets.listing import EventSource
from foretell.data.markets.prices import PriceSource
from foretell.data.pages import PageSource
from foretell.data.search.engine import SearchEngine
from foretell.data.series.series import SeriesByProvider
from foretell.data.settlements.settlement import SettlementSource
from foretell.data.wikipedia import Wikipedia
from foretell.questions.errors import InputError
from foretell.runs.settings import KEYS, Settings

if TYPE_CHECKING:
    from foretell.data.markets.kalshi import KalshiClient
    from foretell.data.markets.manifold import ManifoldClient
    from foretell.data.markets.metaculus import MetaculusClient
    from foretell.data.markets.polymarket import PolymarketClient
    from foretell.data.markets.prophet_arena import ProphetArenaClient

SEARCH_ENGINES = ("brave", "exa", "tavily", "serper", "asknews", "gdelt", "local")
NEEDING_KEYS = ("metaculus", "prophet_arena")
"""Platforms that tell nothing to strangers."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """What tools can be made of. Engines are absent where none was asked for."""

    engine: SearchEngine | None
    live_pages: PageSource
    stored_pages: PageSource
    """Versions kept by an archive: in a backtest today's page proves nothing."""
    wikipedia: Wikipedia
    series: SeriesByProvider
    prices: Mapping[str, PriceSource]
    """By platform."""


def open_services(settings: Settings, client: AsyncHttpClient, engines: Sequence[str]) -> Services:
    """Connects nothing yet; a named engine without its key is an `InputError` now, not in the middle of a run."""
    from foretell.data.pages import WaybackPages, WebPages
    from foretell.data.search.engine import FallbackSearch

    address = _addresses(settings)
    found = [_engine(name, settings, client, address) for name in engines]
    return Services(
        engine=FallbackSearch(found) if len(found) > 1 else found[0] if found else None,
        live_pages=WebPages(client, allow_private="pages" in settings.addresses),
        stored_pages=WaybackPages(client, **address("wayback", "base_url")),
        wikipedia=Wikipedia(client, **address("wikipedia", "base_url")),
        series=_series(settings, client, address),
        prices=_prices(_clients(settings, client)),
    )


Address = Callable[[str, str], dict[str, Any]]


def _addresses(settings: Settings) -> Address:
    """Keyword arguments that replace a service's public address, where settings name another."""

    def address(service: str, keyword: str) -> dict[str, Any]:
        return {keyword: settings.addresses[service]} if service in settings.addresses else {}

    return address


def _engine(name: str, settings: Settings, client: AsyncHttpClient, address: Address) -> SearchEngine:
    from foretell.data.search.asknews import AskNewsSearch
    from foretell.data.search.brave import BraveSearch
    from foretell.data.search.exa import ExaSearch
    from foretell.data.search.gdelt import GdeltSearch
    from foretell.data.search.serper import SerperSearch
    from foretell.data.search.tavily import TavilySearch

    if name not in SEARCH_ENGINES:
        raise InputError(f"there is no search engine {name!r}", hint=f"engines are {', '.join(SEARCH_ENGINES)}")
    if name == "local":
        return _local(settings)
    if name == "gdelt":
        return GdeltSearch(client, **address("gdelt", "base_url"))
    key = settings.key(name)
    if not key:
        raise InputError(f"the search engine {name} needs a key", hint=f"set {KEYS[name][0]}, or use --search local")
    if name == "exa":
        return ExaSearch(client, key, snapshots=True, now=lambda: datetime.now(UTC), **address("exa", "base_url"))
    made = {"brave": BraveSearch, "tavily": TavilySearch, "serper": SerperSearch, "asknews": AskNewsSearch}[name]
    return made(client, key, **address(name, "base_url"))


def _local(settings: Settings) -> SearchEngine:
    from foretell.data.corpus import Corpus
    from foretell.data.search.local import CorpusSearch

    return CorpusSearch(Corpus(settings.corpus, must_exist=True))


def _series(settings: Settings, client: AsyncHttpClient, address: Address) -> SeriesByProvider:
    from foretell.data.series.dbnomics import DbnomicsSeries
    from foretell.data.series.fred import FredSeries
    from foretell.data.series.yahoo import YahooSeries

    yahoo = YahooSeries(http=client, **address("yahoo", "host"))
    sources: dict[str, Any] = {
        "yfinance": yahoo,
        "yahoo": yahoo,
        "dbnomics": DbnomicsSeries(http=client, **address("dbnomics", "host")),
    }
    if settings.key("fred"):
        sources["fred"] = FredSeries(http=client, key=settings.key("fred"), **address("fred", "host"))
    return SeriesByProvider(sources)


@dataclass(frozen=True, kw_only=True)
class MarketClients:
    """One connection for each platform, shared by all that read it."""

    kalshi: "KalshiClient"
    manifold: "ManifoldClient"
    polymarket: "PolymarketClient"
    metaculus: "MetaculusClient | None"
    """None without a token."""
    prophet_arena: "ProphetArenaClient | None"
    """None without a key."""


def _clients(settings: Settings, client: AsyncHttpClient) -> MarketClients:
    from foretell.data.markets.kalshi import KalshiClient
    from foretell.data.markets.manifold import ManifoldClient
    from foretell.data.markets.metaculus import MetaculusClient
    from foretell.data.markets.polymarket import PolymarketClient, PolymarketHosts
    from foretell.data.markets.prophet_arena import ProphetArenaClient

    address = _addresses(settings)
    own = settings.addresses.get("polymarket")
    token, key = settings.key("metaculus"), settings.key("prophet_arena")
    return MarketClients(
        kalshi=KalshiClient(http=client, **address("kalshi", "host")),
        manifold=ManifoldClient(http=client, **address("manifold", "host")),
        polymarket=PolymarketClient(
            http=client, hosts=PolymarketHosts(gamma=own, clob=own, data=own) if own else PolymarketHosts()
        ),
        metaculus=MetaculusClient(http=client, token=token, **address("metaculus", "host")) if token else None,
        prophet_arena=ProphetArenaClient(http=client, key=key, **address("prophet_arena", "host")) if key else None,
    )


def _prices(clients: MarketClients) -> dict[str, PriceSource]:
    from foretell.data.markets.kalshi import KalshiPrices
    from foretell.data.markets.manifold import ManifoldPrices
    from foretell.data.markets.metaculus import MetaculusPrices
    from foretell.data.markets.polymarket import PolymarketPrices

    sources: dict[str, PriceSource] = {
        "kalshi": KalshiPrices(clients.kalshi),
        "manifold": ManifoldPrices(clients.manifold),
        "polymarket": PolymarketPrices(clients.polymarket),
    }
    if clients.metaculus is not None:
        sources["metaculus"] = MetaculusPrices(clients.metaculus)
    return sources


@dataclass(frozen=True, kw_only=True)
class MarketSources:
    """What is listed, what it cost and how it came out, by platform. For live use and for scoring."""

    events: Mapping[str, EventSource]
    settlements: Mapping[str, SettlementSource]
    prices: Mapping[str, PriceSource]


def open_markets(settings: Settings, client: AsyncHttpClient, platforms: Sequence[str]) -> MarketSources:
    """Readers of these platforms. One that needs a key and has none is an `InputError` now."""
    for platform in platforms:
        if platform in NEEDING_KEYS and not settings.key(platform):
            raise InputError(f"the platform {platform} needs a key", hint=f"set {KEYS[platform][0]}")
    clients = _clients(settings, client)
    return MarketSources(
        events={name: source for name, source in _events(clients).items() if name in platforms},
        settlements={name: source for name, source in _settlements(clients).items() if name in platforms},
        prices={name: source for name, source in _prices(clients).items() if name in platforms},
    )


def _events(clients: MarketClients) -> dict[str, EventSource]:
    from foretell.data.markets.kalshi import KalshiEvents
    from foretell.data.markets.manifold import ManifoldEvents
    from foretell.data.markets.metaculus import MetaculusEvents
    from foretell.data.markets.polymarket import PolymarketEvents
    from foretell.data.markets.prophet_arena import ProphetArenaListing

    sources: dict[str, EventSource] = {
        "kalshi": KalshiEvents(clients.kalshi),
        "manifold": ManifoldEvents(clients.manifold),
        "polymarket": PolymarketEvents(clients.polymarket),
    }
    if clients.metaculus is not None:
        sources["metaculus"] = MetaculusEvents(clients.metaculus)
    if clients.prophet_arena is not None:
        sources["prophet_arena"] = ProphetArenaListing(clients.prophet_arena)
    return sources


def _settlements(clients: MarketClients) -> dict[str, SettlementSource]:
    from foretell.data.settlements.kalshi import KalshiSettlements
    from foretell.data.settlements.manifold import ManifoldSettlements
    from foretell.data.settlements.metaculus import MetaculusSettlements
    from foretell.data.settlements.polymarket import PolymarketSettlements
    from foretell.data.settlements.prophet_arena import ProphetArenaSettlements

    sources: dict[str, SettlementSource] = {
        "kalshi": KalshiSettlements(clients.kalshi),
        "manifold": ManifoldSettlements(clients.manifold),
        "polymarket": PolymarketSettlements(clients.polymarket),
    }
    if clients.metaculus is not None:
        sources["metaculus"] = MetaculusSettlements(clients.metaculus)
    if clients.prophet_arena is not None:
        sources["prophet_arena"] = ProphetArenaSettlements(clients.prophet_arena)
    return sources
