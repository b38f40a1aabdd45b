"""All external services, created from settings: search engines, pages, series, prices, events."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

from foretell.data.day_cache import FOLDER, DayCache
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.markets.listing import EventSource
from foretell.data.markets.market import Market, MarketRef, PriceSource, PricesUnavailable, events_named
from foretell.data.pages import PageSource, WaybackPages
from foretell.data.search.engine import SearchEngine
from foretell.data.search.own_engine import own_engine
from foretell.data.series.series import (
    Series,
    SeriesByProvider,
    SeriesSource,
    SeriesUnavailable,
    SeriesUnread,
    series_of,
)
from foretell.data.service import ServiceConfig, load_with_key, needs_key, open_service
from foretell.data.settlements.settlement import SettlementSource
from foretell.data.untrusted import for_log
from foretell.data.wikipedia import Wikipedia
from foretell.frozen import frozen
from foretell.number_text import plural
from foretell.own_objects import is_own
from foretell.plugins import Names, exists, load, load_object, names, variables_in_words
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.runs.settings import Settings, clock_of
from foretell.tools.tool import Tool

SEARCH_ENGINES = Names("search_engines")
log = logging.getLogger(__name__)


@frozen
class Services:
    """The services that tools use. There is no search engine unless one was chosen."""

    engine: SearchEngine | None
    live_pages: PageSource
    stored_pages: WaybackPages
    """Page versions from an archive, for backtests."""
    wikipedia: Wikipedia
    series: SeriesByProvider
    prices: Mapping[str, PriceSource]
    """Price sources by platform."""
    config: Callable[[str], ServiceConfig]
    """Configuration for the plug-in with this name."""


def service_config(settings: Settings, http: AsyncHttpClient, name: str) -> ServiceConfig:
    """The settings for one service."""
    return ServiceConfig(
        http=http,
        key=settings.key(name),
        address=settings.addresses.get(name),
        home=settings.home,
        corpus=settings.corpus,
        series=settings.series_file,
    )


def open_services(settings: Settings, client: AsyncHttpClient, engines: Sequence[str]) -> Services:
    """Create services without connecting. Raises `InputError` if the key of a named engine is missing."""
    from foretell.data.pages import WebPages
    from foretell.data.search.engine import FallbackSearch

    def config(name: str) -> ServiceConfig:
        return service_config(settings, client, name)

    def address(service: str) -> dict[str, Any]:
        return {"base_url": settings.addresses[service]} if service in settings.addresses else {}

    opened: list[SearchEngine] = [
        own_engine(name) if is_own(name) else open_service("search_engines", name, config(name)) for name in engines
    ]
    return Services(
        engine=FallbackSearch(opened) if len(opened) > 1 else opened[0] if opened else None,
        live_pages=WebPages(client, allow_private="pages" in settings.addresses),
        stored_pages=WaybackPages(client, **address("wayback")),
        wikipedia=Wikipedia(client, **address("wikipedia")),
        series=_series(settings, client, DayCache(settings.home / FOLDER, clock_of(settings))),
        prices=_prices(settings, config),
        config=config,
    )


def plugin_tools(services: Services, question: Question) -> list[Tool]:
    """Tools added by other packages: those with their key, for the question sources they name or for all.

    They are behind the leakage filter like every tool, and the content of everything they return is checked.
    """
    tools: list[Tool] = []
    for name in names("tools"):
        plugin, config = load("tools", name), services.config(name)
        sources = getattr(plugin, "sources", ())
        if (config.key or not needs_key(plugin)) and (not sources or question.source in sources):
            tool: Tool = open_service("tools", name, config)
            if tool.spec.name != name:
                raise InputError(f"the plug-in {name!r} makes a tool called {tool.spec.name!r}", hint="use one name")
            tools.append(tool)
    return tools


def _series(settings: Settings, client: AsyncHttpClient, daily: DayCache) -> SeriesByProvider:
    """Every series source that needs no key or has one, each response stored for a day.

    Entries that lead to the same class share one instance and its rate limit.
    """
    stored = client.once_a_day(daily)

    def config(name: str) -> ServiceConfig:
        return service_config(settings, stored, name)

    opened: dict[Any, SeriesSource] = {}
    sources: dict[str, SeriesSource] = {}
    for name in names("series"):
        plugin = load("series", name)
        available: Callable[[ServiceConfig], bool] | None = getattr(plugin, "available", None)
        usable = available is None or available(config(name))
        if usable and (settings.key(name) or not needs_key(plugin)):
            if plugin not in opened:
                opened[plugin] = open_service("series", name, config(name))
            sources[name] = opened[plugin]
    return SeriesByProvider(sources, daily)


MAY_BE_REVISED = frozenset({"dbnomics"})
"""Providers used in backtests although they keep no vintages, because their data is hardly ever revised."""
AT_ONCE = 16
"""Number of series of one provider that are fetched at the same time; its rate limit may allow fewer."""
TRIES = 3
"""Consecutive failures after which a provider is skipped for the rest of a run."""


class SeriesOnDemand:
    """Web series, the user's own files and market prices, for forecasters that read series without a tool.

    Nothing is opened before the first series is requested, and each is read once per cutoff.
    """

    def __init__(self, settings: Settings, limits: HttpLimits | None = None) -> None:
        self._settings = settings
        self._limits = limits
        self._stack = AsyncExitStack()
        self._http: AsyncHttpClient | None = None
        self._sources: SeriesByProvider | None = None
        self._daily = DayCache(settings.home / FOLDER, clock_of(settings))
        self._markets: dict[str, PriceSource] = {}
        self._read: dict[tuple[str, str, AsOf], asyncio.Task[Series]] = {}
        self._failures: dict[str, list[SourceError]] = {}
        self._unread: dict[str, dict[str, Exception]] = {}
        """Provider → why a series could not be read, by its id."""

    async def __aenter__(self) -> "SeriesOnDemand":
        """Use as a context manager, so that connections are closed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close connections, if there are any."""
        await self._stack.aclose()

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff. In a backtest, series that may have been revised raise an error."""
        key = (ref.provider, ref.id, as_of)
        if key not in self._read:
            self._read[key] = asyncio.create_task(self._fetch(ref, as_of))
        return await asyncio.shield(self._read[key])

    async def _fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        failures = self._failures.setdefault(ref.provider, [])
        if len(failures) >= TRIES:
            self._unread.setdefault(ref.provider, {})[ref.id] = failures[-1]
            raise SeriesUnread(f"{ref.provider} failed {TRIES} times and is skipped: {failures[-1]}")
        if self._sources is None or self._http is None:
            client = AsyncHttpClient(limits=self._limits or HttpLimits(), access=self._settings.access)
            self._stack.push_async_callback(client.aclose)
            self._sources = _series(self._settings, client, self._daily)
            self._http = client.once_a_day(self._daily)
        if not self._sources.supplies(ref) and exists("series", ref.provider):
            variables = variables_in_words(getattr(load("series", ref.provider), "key_variables", ()))
            raise SeriesUnread(f"{ref.provider}/{ref.id} needs {variables or 'a missing file'}")
        try:
            if exists("markets", ref.provider) and not exists("series", ref.provider):
                with self._daily.discarding(SourceError):
                    series = await self._prices(ref, as_of)
            else:
                provenance = await self._sources.fetch_with_provenance(ref, as_of)
                if provenance.revised and as_of.mode == "backtest" and ref.provider not in MAY_BE_REVISED:
                    raise SeriesUnavailable(f"{ref.provider}/{ref.id} has no values from before later revisions")
                series = provenance.series
        except SourceError as error:
            failures.append(error)
            if ref.provider not in self._unread:
                log.warning("%s could not be read: %s", ref.provider, for_log(str(error)))
            self._unread.setdefault(ref.provider, {})[ref.id] = error
            raise
        except SeriesUnavailable as error:
            if exists("series", ref.provider):
                self._unread.setdefault(ref.provider, {})[ref.id] = error
            raise
        failures.clear()
        self._unread.get(ref.provider, {}).pop(ref.id, None)
        return series

    @property
    def unread(self) -> tuple[str, ...]:
        """For each provider that could not be read: how many of its series, and why."""
        # The server's text goes to notes and logs, so it must not contain control characters.
        return tuple(
            f"{plural(len(failed), 'series', 'series')} of {provider} could not be read, so forecasts may use older "
            f"values: {for_log(str(next(iter(failed.values()))))}"
            for provider, failed in sorted(self._unread.items())
            if failed
        )

    async def fetch_all(
        self, wanted: Iterable[tuple[SeriesRef, AsOf]], watch: Callable[[int, int], None] = lambda done, total: None
    ) -> None:
        """Fetch many series, those of all providers at the same time, and once more those that failed.

        `watch` is called with how many have been fetched or failed, and how many there are.
        """
        by_provider: dict[str, list[tuple[SeriesRef, AsOf]]] = {}
        for ref, as_of in dict.fromkeys((SeriesRef(provider=ref.provider, id=ref.id), as_of) for ref, as_of in wanted):
            by_provider.setdefault(ref.provider, []).append((ref, as_of))
        total, done = sum(map(len, by_provider.values())), 0

        async def provider(listed: Sequence[tuple[SeriesRef, AsOf]]) -> None:
            slots = asyncio.Semaphore(AT_ONCE)

            async def single(ref: SeriesRef, as_of: AsOf) -> None:
                nonlocal done
                async with slots:
                    with suppress(SeriesUnavailable, SourceError):
                        await self.fetch(ref, as_of)
                done += 1
                watch(done, total)

            await asyncio.gather(*(single(ref, as_of) for ref, as_of in listed))

        await asyncio.gather(*map(provider, by_provider.values()))
        await asyncio.gather(*map(self._again, by_provider.values()))

    async def _again(self, listed: Sequence[tuple[SeriesRef, AsOf]]) -> None:
        """Fetch the series of a provider that failed again, until one fails again."""
        for ref, as_of in listed:
            if isinstance(self._unread.get(ref.provider, {}).get(ref.id), SourceError):
                self._failures.pop(ref.provider, None)
                del self._read[ref.provider, ref.id, as_of]
                try:
                    await self.fetch(ref, as_of)
                except SourceError as error:
                    self._failures[ref.provider] = [error] * TRIES
                    return
                except SeriesUnavailable:
                    continue

    async def _prices(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The last price of each day of a market, by its platform and id."""
        market: Market = load("markets", ref.provider)
        if market.prices is None or (needs_key(market) and not self._settings.key(ref.provider)):
            raise SeriesUnavailable(f"{ref.provider} has no prices here")
        if ref.provider not in self._markets:
            self._markets[ref.provider] = market.prices(market.client(self._config(ref.provider)))
        try:
            points = await self._markets[ref.provider].prices(MarketRef(platform=ref.provider, id=ref.id), as_of)
        except PricesUnavailable as error:
            raise SeriesUnavailable(str(error)) from None
        return series_of(ref.id, {point.at.date(): point.p for point in points})

    def _config(self, name: str) -> ServiceConfig:
        assert self._http is not None
        return service_config(self._settings, self._http, name)


@frozen
class MarketSources:
    """Listings, prices and outcomes by platform, for live use and for scoring."""

    events: Mapping[str, EventSource]
    settlements: Mapping[str, SettlementSource]
    prices: Mapping[str, PriceSource]


def open_markets(settings: Settings, client: AsyncHttpClient, platforms: Sequence[str]) -> MarketSources:
    """Open readers of these platforms, with one connection each. Raises `InputError` if a key is missing.

    A platform may be given with a part, such as `kalshi:KXFED`. Its listing is returned under the full name, everything
    else under the name of the market.
    """
    events: dict[str, EventSource] = {}
    settlements: dict[str, SettlementSource] = {}
    prices: dict[str, PriceSource] = {}
    parts: dict[str, list[str]] = {}
    for name in platforms:
        platform, _, part = name.partition(":")
        parts.setdefault(platform, []).append(part)
    for platform, named in parts.items():
        market: Market = load_with_key("markets", platform, settings.key(platform))
        connection = market.client(service_config(settings, client, platform))
        if market.events is not None:
            events[platform] = market.events(connection)
            events |= {f"{platform}:{part}": events_named(platform, market, connection, part) for part in named if part}
        if market.prices is not None:
            prices[platform] = market.prices(connection)
        if market.settlements:
            settlements[platform] = load_object(market.settlements)(connection)
        elif exists("settlements", platform):
            settlements[platform] = load("settlements", platform)(connection)
    return MarketSources(events=events, settlements=settlements, prices=prices)


def _prices(settings: Settings, config: Callable[[str], ServiceConfig]) -> dict[str, PriceSource]:
    """Return price sources of every platform that needs no key or has one. Tools get no outcomes."""
    sources: dict[str, PriceSource] = {}
    for platform in names("markets"):
        market: Market = load("markets", platform)
        if market.prices is not None and (settings.key(platform) or not needs_key(market)):
            sources[platform] = market.prices(market.client(config(platform)))
    return sources
