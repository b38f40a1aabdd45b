"""Everything off this machine, put together from settings: search engines, pages, series, prices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from foretell.app.settings import KEYS, Settings
from foretell.questions.problems import InputError
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.market import PriceSource
from foretell.sources.page import PageSource
from foretell.sources.search import SearchEngine
from foretell.sources.series_from.by_provider import ByProvider
from foretell.sources.wikipedia import Wikipedia

ENGINES = ("brave", "exa", "tavily", "serper", "asknews", "gdelt", "local")


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
        prices=_prices(settings, client, address),
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


def _prices(settings: Settings, client: AsyncHttpClient, address: Address) -> dict[str, PriceSource]:
    from foretell.sources.markets.kalshi import KalshiClient, KalshiPrices
    from foretell.sources.markets.manifold import ManifoldClient, ManifoldPrices
    from foretell.sources.markets.metaculus import MetaculusClient, MetaculusPrices
    from foretell.sources.markets.polymarket import Hosts, PolymarketClient, PolymarketPrices

    own = settings.addresses.get("polymarket")
    hosts = Hosts(gamma=own, clob=own, data=own) if own else Hosts()
    sources: dict[str, PriceSource] = {
        "kalshi": KalshiPrices(KalshiClient(http=client, **address("kalshi", "host"))),
        "manifold": ManifoldPrices(ManifoldClient(http=client, **address("manifold", "host"))),
        "polymarket": PolymarketPrices(PolymarketClient(http=client, hosts=hosts)),
    }
    token = settings.key("metaculus")
    if token:
        metaculus = MetaculusClient(http=client, token=token, **address("metaculus", "host"))
        sources["metaculus"] = MetaculusPrices(metaculus)
    return sources
