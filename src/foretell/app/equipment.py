"""Everything off this machine, put together from settings: search engines, pages, series, prices, events."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from foretell.app.settings import KEYS, Settings
from foretell.questions.problems import InputError
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.listing import EventSource
from foretell.sources.market import PriceSource
from foretell.sources.page import PageSource
from foretell.sources.search import SearchEngine
from foretell.sources.series_from.by_provider import ByProvider
from foretell.sources.settlements.settlement import SettlementSource
from foretell.sources.wikipedia import Wikipedia

if TYPE_CHECKING:
    from foretell.sources.markets.kalshi import KalshiClient
    from foretell.sources.markets.manifold import ManifoldClient
    from foretell.sources.markets.metaculus import MetaculusClient
    from foretell.sources.markets.polymarket import PolymarketClient
    from foretell.sources.markets.prophet_arena import ArenaClient

ENGINES = ("brave", "exa", "tavily", "serper", "asknews", "gdelt", "local")
NEEDING_KEYS = ("metaculus", "prophet_arena")
"""Platforms that tell nothing to strangers."""


@dataclass(frozen=True, kw_only=True)
class Equipment:
    """What tools can be made of. Engines are absent where none was asked for."""

    engine: SearchEngine | None
    live_pages: PageSource
    stored_pages: PageSource
    """Versions kept by an archive: in a backtest today's page proves nothing."""
    wikipedia: Wikipedia
    series: ByProvider
    prices: Mapping[str, PriceSource]
    """By platform."""


def equip(settings: Settings, client: AsyncHttpClient, engines: Sequence[str]) -> Equipment:
    """Connects nothing yet; a named engine without its key is an `InputError` now, not in the middle of a run."""
    from foretell.sources.engines.in_turn import InTurn
    from foretell.sources.wayback import WaybackPages
    from foretell.sources.web import WebPages

    address = _addresses(settings)
    found = [_engine(name, settings, client, address) for name in engines]
    return Equipment(
        engine=InTurn(found) if len(found) > 1 else found[0] if found else None,
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
    from foretell.sources.engines.asknews import AskNews
    from foretell.sources.engines.brave import Brave
    from foretell.sources.engines.exa import Exa
    from foretell.sources.engines.gdelt import Gdelt
    from foretell.sources.engines.serper import Serper
    from foretell.sources.engines.tavily import Tavily

    if name not in ENGINES:
        raise InputError(f"there is no search engine {name!r}", hint=f"engines are {', '.join(ENGINES)}")
    if name == "local":
        return _local(settings)
    if name == "gdelt":
        return Gdelt(client, **address("gdelt", "base_url"))
    key = settings.key(name)
    if not key:
        raise InputError(f"the search engine {name} needs a key", hint=f"set {KEYS[name][0]}, or use --search local")
    if name == "exa":
        return Exa(client, key, snapshots=True, now=lambda: datetime.now(UTC), **address("exa", "base_url"))
    made = {"brave": Brave, "tavily": Tavily, "serper": Serper, "asknews": AskNews}[name]
    return made(client, key, **address(name, "base_url"))


def _local(settings: Settings) -> SearchEngine:
    from foretell.sources.corpus.store import Corpus
    from foretell.sources.engines.local import LocalCorpus

    return LocalCorpus(Corpus(settings.corpus, must_exist=True))


def _series(settings: Settings, client: AsyncHttpClient, address: Address) -> ByProvider:
    from foretell.sources.series_from.dbnomics import DbnomicsSeries
    from foretell.sources.series_from.fred import FredSeries
    from foretell.sources.series_from.yahoo import YahooSeries

    yahoo = YahooSeries(http=client, **address("yahoo", "host"))
    sources: dict[str, Any] = {
        "yfinance": yahoo,
        "yahoo": yahoo,
        "dbnomics": DbnomicsSeries(http=client, **address("dbnomics", "host")),
    }
    if settings.key("fred"):
        sources["fred"] = FredSeries(http=client, key=settings.key("fred"), **address("fred", "host"))
    return ByProvider(sources)


@dataclass(frozen=True, kw_only=True)
class Clients:
    """One connection for each platform, shared by all that read it."""

    kalshi: "KalshiClient"
    manifold: "ManifoldClient"
    polymarket: "PolymarketClient"
    metaculus: "MetaculusClient | None"
    """None without a token."""
    prophet_arena: "ArenaClient | None"
    """None without a key."""


def _clients(settings: Settings, client: AsyncHttpClient) -> Clients:
    from foretell.sources.markets.kalshi import KalshiClient
    from foretell.sources.markets.manifold import ManifoldClient
    from foretell.sources.markets.metaculus import MetaculusClient
    from foretell.sources.markets.polymarket import Hosts, PolymarketClient
    from foretell.sources.markets.prophet_arena import ArenaClient

    address = _addresses(settings)
    own = settings.addresses.get("polymarket")
    token, key = settings.key("metaculus"), settings.key("prophet_arena")
    return Clients(
        kalshi=KalshiClient(http=client, **address("kalshi", "host")),
        manifold=ManifoldClient(http=client, **address("manifold", "host")),
        polymarket=PolymarketClient(http=client, hosts=Hosts(gamma=own, clob=own, data=own) if own else Hosts()),
        metaculus=MetaculusClient(http=client, token=token, **address("metaculus", "host")) if token else None,
        prophet_arena=ArenaClient(http=client, key=key, **address("prophet_arena", "host")) if key else None,
    )


def _prices(clients: Clients) -> dict[str, PriceSource]:
    from foretell.sources.markets.kalshi import KalshiPrices
    from foretell.sources.markets.manifold import ManifoldPrices
    from foretell.sources.markets.metaculus import MetaculusPrices
    from foretell.sources.markets.polymarket import PolymarketPrices

    sources: dict[str, PriceSource] = {
        "kalshi": KalshiPrices(clients.kalshi),
        "manifold": ManifoldPrices(clients.manifold),
        "polymarket": PolymarketPrices(clients.polymarket),
    }
    if clients.metaculus is not None:
        sources["metaculus"] = MetaculusPrices(clients.metaculus)
    return sources


@dataclass(frozen=True, kw_only=True)
class Markets:
    """What is listed, what it cost and how it came out, by platform. For live use and for scoring."""

    events: Mapping[str, EventSource]
    settlements: Mapping[str, SettlementSource]
    prices: Mapping[str, PriceSource]


def open_markets(settings: Settings, client: AsyncHttpClient, platforms: Sequence[str]) -> Markets:
    """Readers of these platforms. One that needs a key and has none is an `InputError` now."""
    for platform in platforms:
        if platform in NEEDING_KEYS and not settings.key(platform):
            raise InputError(f"the platform {platform} needs a key", hint=f"set {KEYS[platform][0]}")
    clients = _clients(settings, client)
    return Markets(
        events={name: source for name, source in _events(clients).items() if name in platforms},
        settlements={name: source for name, source in _settlements(clients).items() if name in platforms},
        prices={name: source for name, source in _prices(clients).items() if name in platforms},
    )


def _events(clients: Clients) -> dict[str, EventSource]:
    from foretell.sources.markets.kalshi_events import KalshiEvents
    from foretell.sources.markets.manifold_events import ManifoldEvents
    from foretell.sources.markets.metaculus_events import MetaculusEvents
    from foretell.sources.markets.polymarket_events import PolymarketEvents
    from foretell.sources.markets.prophet_arena import ArenaEvents

    sources: dict[str, EventSource] = {
        "kalshi": KalshiEvents(clients.kalshi),
        "manifold": ManifoldEvents(clients.manifold),
        "polymarket": PolymarketEvents(clients.polymarket),
    }
    if clients.metaculus is not None:
        sources["metaculus"] = MetaculusEvents(clients.metaculus)
    if clients.prophet_arena is not None:
        sources["prophet_arena"] = ArenaEvents(clients.prophet_arena)
    return sources


def _settlements(clients: Clients) -> dict[str, SettlementSource]:
    from foretell.sources.settlements.kalshi import KalshiSettlements
    from foretell.sources.settlements.manifold import ManifoldSettlements
    from foretell.sources.settlements.metaculus import MetaculusSettlements
    from foretell.sources.settlements.polymarket import PolymarketSettlements
    from foretell.sources.settlements.prophet_arena import ArenaSettlements

    sources: dict[str, SettlementSource] = {
        "kalshi": KalshiSettlements(clients.kalshi),
        "manifold": ManifoldSettlements(clients.manifold),
        "polymarket": PolymarketSettlements(clients.polymarket),
    }
    if clients.metaculus is not None:
        sources["metaculus"] = MetaculusSettlements(clients.metaculus)
    if clients.prophet_arena is not None:
        sources["prophet_arena"] = ArenaSettlements(clients.prophet_arena)
    return sources
