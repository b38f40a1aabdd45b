"""Outside services: list them with key, rate limit and last answer, and check that they answer as expected."""

import asyncio
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.known_services import KNOWN_SERVICES, ServiceFacts
from foretell.data.service_limits import ServiceAddresses, ServiceStore
from foretell.frozen import frozen
from foretell.models.rate_limits import PlaceState
from foretell.number_text import percent
from foretell.plugins import exists, load, names, variables_in_words
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError, known_names
from foretell.questions.question import Question, SeriesRef
from foretell.report.markup import markdown_text
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.settings import KEYS, Settings, load_settings

if TYPE_CHECKING:
    from rich.console import Console

ALL = "all"
"""Selects every service."""
KINDS = ("markets", "search_engines", "series", "tools")
"""Kinds of plug-ins that use outside services."""


NOT_OUTSIDE = ("local", "yfinance")
"""A corpus on this machine, and an alias of Yahoo."""


def service_names() -> list[str]:
    """Return all known outside services, and those that plug-ins add."""
    others = (name for kind in KINDS for name in names(kind) if name not in NOT_OUTSIDE)
    return list(dict.fromkeys((*KNOWN_SERVICES, *others)))


# The list.


@frozen
class ServiceRow:
    """How a service is used from this machine."""

    service: str
    title: str
    key: Literal["set", "missing", "not needed", "optional"]
    key_variables: tuple[str, ...]
    rate_limit: str
    address: str
    """Its address, if it is not the public one."""
    last_success: str
    last_error: str
    problem: str
    """The text of the last error."""
    closed_until: str
    needs_contact: bool
    facts_date: str
    facts_source: str


@frozen
class ServicesResult(Result):
    """The services, with what is missing."""

    lines = "services"
    services: tuple[ServiceRow, ...]
    contact: str
    limits: tuple[str, ...] = ()
    """For a single service: each limit with its source."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is missing."""
        if self.contact or not any(row.needs_contact for row in self.services):
            return ()
        names = ", ".join(row.service for row in self.services if row.needs_contact)
        return (f"no contact is set, so {names} cannot be used: foretell doctor --contact you@example.org",)

    def print(self, console: "Console") -> None:
        """Print a table; for a single service, everything known about it."""
        if self.limits:
            for name, value in self.rows()[0].items():
                shown = ", ".join(value) if isinstance(value, tuple) else value
                show_text(console, f"{name.replace('_', ' '):14} {shown}\n")
            show_text(console, "".join(f"{'limit':14} {limit}\n" for limit in self.limits))
            return
        columns: dict[TextColumn, str | Callable[[Any], object]] = {
            TextColumn(head="service"): "service",
            TextColumn(head="key"): "key",
            TextColumn(head="rate limit"): lambda row: row["rate_limit"].split(", ")[0],
            TextColumn(head="last success"): "last_success",
            TextColumn(head="last error", shrink=11): lambda row: f"{row['last_error']} {row['problem']}".strip(),
            TextColumn(head="facts", drop=1): "facts_date",
        }
        show_table(console, self.rows(), columns)


def list_services(name: str | None = None, settings: Settings | None = None) -> ServicesResult:
    """List the outside services, or one with its limits: key, rate limits, and last answers."""
    settings = settings or load_settings()
    wanted = service_names() if name is None else [_known_name(name)]
    with closing(ServiceStore(settings.access.state)) as store:
        states = store.states()
    rows = [_row(name, settings, states.get(name, PlaceState())) for name in wanted]
    limits: tuple[str, ...] = ()
    if name is not None:
        known = ServiceAddresses(settings.access).by_name(name)
        known_limits = known.limits if known else ()
        lines = (f"{limit.what}: {limit}" + (f" ({limit.source})" if limit.source else "") for limit in known_limits)
        limits = tuple(lines) or ("none",)
    return ServicesResult(services=tuple(rows), contact=settings.contact, limits=limits)


def _known_name(name: str) -> str:
    known = service_names()
    if name not in known:
        raise InputError(f"no service is called {name!r}", column="--services", hint=known_names(name, known))
    return name


def _row(name: str, settings: Settings, state: PlaceState) -> ServiceRow:
    facts = KNOWN_SERVICES.get(name, ServiceFacts(title=name, hosts=(), date="", source="a plug-in of another package"))
    known = ServiceAddresses(settings.access).by_name(name)
    limits = ", ".join(f"{limit} {limit.what}" if limit.path else str(limit) for limit in known.limits) if known else ""
    now = datetime.now(UTC).timestamp()
    return ServiceRow(
        service=name,
        title=facts.title,
        key=_key(name, settings),
        key_variables=KEYS.get(name, ()),
        rate_limit=limits or "no limit",
        address=settings.addresses.get(name, ""),
        last_success=_time_text(state.success),
        last_error=_time_text(state.error),
        problem=state.problem,
        closed_until=_time_text(state.closed) if state.closed > now else "",
        needs_contact=facts.needs_contact,
        facts_date=facts.date,
        facts_source=_built_from(name) or facts.source,
    )


def _built_from(name: str) -> str:
    """Version and date of the facts that an adapter was built from, if it states them."""
    facts = (getattr(load(kind, name), "facts", "") for kind in KINDS if exists(kind, name))
    return next(filter(None, facts), "")


def _key(name: str, settings: Settings) -> Literal["set", "missing", "not needed", "optional"]:
    from foretell.data.service import needs_key

    if not KEYS.get(name):
        return "not needed"
    if settings.key(name):
        return "set"
    return "missing" if any(needs_key(load(kind, name)) for kind in KINDS if exists(kind, name)) else "optional"


def _time_text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}" if seconds else ""


# The check.

ONCE_MORE = HttpLimits(attempts=2, total_seconds=30.0, max_bytes=20_000_000)
QUERY = "central bank rate decision"
ARTICLE = "Norges Bank"
PAGE = "https://example.com/"
CHECK_SECONDS = 60.0
"""Longest time for one check, including waiting for the rate limit."""
TRIES = 3
"""How many listed markets to try until one has prices."""
STORED_BY = "2026-07-01"
"""The date for checks of old versions."""
Verdict = Literal["ok", "failed", "left out"]


@frozen
class ServiceCheck:
    """One check of a service."""

    service: str
    what: str
    verdict: Verdict
    detail: str
    seconds: float | None = None
    """Duration, including waiting for the rate limit."""


@frozen
class ServiceChecks(Result):
    """The results of checking services."""

    lines = "checks"
    checks: tuple[ServiceCheck, ...]
    versions: Mapping[str, str]
    at: str

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.verdict != "failed" for check in self.checks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A note if no service answered."""
        verdicts = {check.verdict for check in self.checks}
        return ("no service answered: is there a network?",) if "failed" in verdicts and "ok" not in verdicts else ()

    def to_markdown(self) -> str:
        """Return a table to paste into an issue."""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        lines = [
            f"{versions}, {self.at}",
            "",
            "| service | check | verdict | seconds | detail |",
            "|---|---|---|---:|---|",
        ]
        for check in self.checks:
            took = "" if check.seconds is None else f"{check.seconds:.2f}"
            lines.append(
                f"| {check.service} | {check.what} | {check.verdict} | {took} | {markdown_text(check.detail)} |"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_markdown()


class CheckFailed(Exception):
    """A service answered, but not as expected."""


class NothingToCheck(Exception):
    """A service answered, but there was nothing to check."""


async def check_services(name: str | None = None, settings: Settings | None = None) -> ServiceChecks:
    """Send a few cheap requests to each service, or only to one, all services in parallel.

    Raises:
        InputError: If the service is not known, or needs a key that is not set.
    """
    settings = settings or load_settings()
    wanted = service_names() if name is None else [_known_name(name)]
    if name is not None and _key(name, settings) == "missing":
        raise InputError(f"{name} needs a key", hint=f"set {variables_in_words(KEYS[name])}")
    results, _ = await _checked(settings, wanted, CHECK_SECONDS)
    facts = {
        "foretell": version("foretell"),
        "Python": platform.python_version(),
        platform.system(): platform.release(),
    }
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return ServiceChecks(checks=tuple(check for checks in results for check in checks), versions=facts, at=at)


async def reach_services(settings: Settings, seconds: float) -> tuple[list[ServiceCheck], float | None]:
    """Return the cheapest check of every service, and how many seconds this machine's clock is ahead of theirs."""
    results, client = await _checked(settings, service_names(), seconds, most=1)
    return [check for checks in results for check in checks], client.clock_skew()


async def _checked(
    settings: Settings, names: Sequence[str], seconds: float, most: int | None = None
) -> tuple[list[list[ServiceCheck]], AsyncHttpClient]:
    async with AsyncHttpClient(limits=ONCE_MORE, access=settings.access) as client:
        checker = _Checker(settings=settings, client=client, seconds=seconds, most=most)
        return await asyncio.gather(*(checker.check(name) for name in names)), client


Step = tuple[str, Callable[[], Awaitable[str]]]
"""The name of a check, and the function that runs it: it returns a description of the result, or raises."""


@frozen
class _Checker:
    settings: Settings
    client: AsyncHttpClient
    seconds: float
    most: int | None = None
    """The number of checks per service; None for all."""

    async def check(self, name: str) -> list[ServiceCheck]:
        """Run the checks of one service, one after the other."""
        if _key(name, self.settings) == "missing":
            return [_left_out(name, f"no key: set {variables_in_words(KEYS[name])}")]
        known = ServiceAddresses(self.settings.access).by_name(name)
        if known is not None and known.public and known.facts.needs_contact and not self.settings.contact:
            return [_left_out(name, "no contact: foretell doctor --contact you@example.org")]
        try:
            steps = self._steps(name)
        except InputError as error:
            return [ServiceCheck(service=name, what="open", verdict="failed", detail=self._plain(error))]
        done: list[ServiceCheck] = []
        for what, step in steps[: self.most]:
            # Later checks use what the first one listed.
            if done and done[0].verdict == "failed":
                done.append(_left_out(name, f"{done[0].what} failed", what))
            else:
                done.append(await self._timed(name, what, step))
        return done or [_left_out(name, "there is no check for it")]

    async def _timed(self, name: str, what: str, step: Callable[[], Awaitable[str]]) -> ServiceCheck:
        begun = perf_counter()
        verdict: Verdict = "failed"
        try:
            async with asyncio.timeout(self.seconds):
                detail = await step()
            verdict = "ok"
        except NothingToCheck as nothing:
            verdict, detail = "left out", str(nothing)
        except TimeoutError:
            detail = f"no answer within {self.seconds:g} s"
        except Exception as error:  # Any error of an adapter is the result of its check.
            detail = self._plain(error)
        return ServiceCheck(service=name, what=what, verdict=verdict, detail=detail, seconds=perf_counter() - begun)

    def _plain(self, error: Exception) -> str:
        problem = error.problem if isinstance(error, SourceError) else str(error) or type(error).__name__
        return " ".join(self.client.redact(problem).split())[:200]

    def _steps(self, name: str) -> Sequence[Step]:
        from foretell.data.service import open_service
        from foretell.runs.services import open_markets, service_config

        config = service_config(self.settings, self.client, name)
        if exists("markets", name):
            return _MarketChecks(name=name, sources=open_markets(self.settings, self.client, [name])).steps()
        if exists("search_engines", name):
            engine = open_service("search_engines", name, config)
            return [("search", lambda: _searched(engine))]
        if exists("series", name) and KNOWN_SERVICES.get(name, ServiceFacts(title="", hosts=())).example:
            source = open_service("series", name, config)
            return [("series", lambda: _read_series(source, name))]
        return self._other_steps(name)

    def _other_steps(self, name: str) -> Sequence[Step]:
        from foretell.data.datasets.forecastbench_download import FORECASTBENCH_URL, ForecastBenchDownload
        from foretell.data.files import DownloadCache
        from foretell.runs.services import open_services

        services = open_services(self.settings, self.client, ())
        stored = AsOf.day(STORED_BY)
        if name == "wikipedia":

            async def revision() -> str:
                page = await services.wikipedia.revision(ARTICLE, stored)
                _expect(stored.admits(page.at) and bool(page.wikitext), f"a revision of {page.at}")
                return f"{page.title}, revision {page.revid} of {page.at:%Y-%m-%d}"

            return [("revision as of a day", revision)]
        if name == "wayback":

            async def capture() -> str:
                page = await services.stored_pages.fetch(PAGE, stored)
                _expect(page.captured is not None and stored.admits(page.captured), f"a capture of {page.captured}")
                return f"{PAGE} of {page.captured:%Y-%m-%d}"

            return [("capture as of a day", capture)]
        if name == "forecastbench":
            url = self.settings.addresses.get(name, FORECASTBENCH_URL)
            source = ForecastBenchDownload(DownloadCache(self.settings.home / name), self.client, url=url)

            async def latest() -> str:
                return f"the newest round is {await source.latest()}"

            return [("newest round", latest)]
        return []


def _left_out(name: str, why: str, what: str = "-") -> ServiceCheck:
    return ServiceCheck(service=name, what=what, verdict="left out", detail=why)


def _expect(true: bool, otherwise: str) -> None:
    if not true:
        raise CheckFailed(f"answered with {otherwise}")


async def _searched(engine: Any) -> str:
    hits = await engine.search(QUERY, AsOf(at=datetime.now(UTC), mode="live"), 5)
    _expect(bool(hits), "no results")
    _expect(all(hit.url.startswith("http") and hit.title for hit in hits), "results without address or title")
    dated = sum(hit.published is not None for hit in hits)
    return f"{len(hits)} results, {dated} with a date"


async def _read_series(source: Any, name: str) -> str:
    now = datetime.now(UTC)
    as_of = AsOf(at=now, mode="live")
    example = KNOWN_SERVICES[name].example
    series = await source.fetch(SeriesRef(provider=name, id=example), as_of)
    _expect(len(series) > 0, "an empty series")
    last = instant(str(series.days[-1]))
    _expect(last <= now + timedelta(days=1), f"a value of {series.days[-1]}, which is in the future")
    return f"{example}: {len(series)} values, the last {series.values[-1]:g} of {series.days[-1]}"


@dataclass(kw_only=True)
class _MarketChecks:
    """Checks of a market: its list, the prices of one market, and the settlement of an open one."""

    name: str
    sources: Any
    questions: Sequence[Question] = ()

    def steps(self) -> list[Step]:
        checks: list[Step] = []
        if self.name in self.sources.events:
            checks.append(("list", self.list))
            if self.name in self.sources.prices:
                checks.append(("history", self.history))
            if self.name in self.sources.settlements:
                checks.append(("settle", self.settle))
        return checks

    async def list(self) -> str:
        from foretell.data.markets.listing import ListingFilter

        wanted = ListingFilter(as_of=AsOf(at=datetime.now(UTC), mode="live"), limit=5, pages=1)
        listing = self.sources.events[self.name].events(wanted)
        events = await listing.all()
        skipped = len(listing.ledger.skipped)
        _expect(bool(events), f"no open event ({skipped} could not be read)")
        for event in events:
            for target in event.question.targets:
                quoted = target.snapshot.price if target.snapshot else None
                _expect(quoted is None or 0.0 <= quoted <= 1.0, f"a price of {quoted} for {target.id}")
        self.questions = [event.question for event in events]
        return f"{len(events)} open events, {skipped} could not be read"

    async def history(self) -> str:
        from foretell.data.markets.market import PricesUnavailable, market_ref

        as_of = AsOf(at=datetime.now(UTC), mode="live")
        refs = [market_ref(question, question.targets[0]) for question in self.questions]
        named = [ref for ref in refs if ref is not None][:TRIES]
        for ref in named:
            try:
                points = await self.sources.prices[self.name].prices(ref, as_of, 7)
            except PricesUnavailable:
                # It was never traded, or this account may not see it.
                continue
            good = bool(points) and all(0.0 <= point.p <= 1.0 and as_of.admits(point.at) for point in points)
            _expect(good, "impossible prices")
            return f"{len(points)} prices of {ref.id}, the last {percent(points[-1].p)} of {points[-1].at:%Y-%m-%d}"
        raise NothingToCheck(f"no prices are available for the {len(named)} listed markets that were tried")

    async def settle(self) -> str:
        settled = await self.sources.settlements[self.name].settlements(self.questions[:1])
        return f"{len(settled)} outcomes of an open event"
