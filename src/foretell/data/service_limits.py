"""Rate limits of external services, shared by all processes of this machine or of several.

`known_services` lists the limits, and `foretell.models.rate_limits` enforces them. A pause that a service requests
applies to all clients. The state is in an SQLite file in the home, or in a database that several machines share.
"""

import logging
import re
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from ipaddress import ip_address
from math import inf
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from foretell.data.known_services import KNOWN_SERVICES, ServiceFacts
from foretell.data.untrusted import for_log
from foretell.frozen import frozen
from foretell.models.database import open_database
from foretell.models.rate_limits import (
    PERIODS,
    Change,
    DatabaseLimits,
    LimitStore,
    MemoryLimits,
    PlaceClosed,
    PlaceState,
    RateLimit,
    RateLimiter,
    Taken,
    Wants,
)
from foretell.questions.clock_jump import steady_seconds
from foretell.questions.errors import DamagedFile, InputError

log = logging.getLogger(__name__)
T = TypeVar("T")

STATE_FILE = "services.db"
HOST_PAUSE = 0.5
"""Seconds to pause after the first refusal of a host that a plug-in limits."""
LONGEST_PAUSE = 900.0
"""Longest pause, in seconds, while refusals continue."""
NOTE_INTERVAL = 10.0
"""Seconds between records of success for a service."""
LONGEST_NOTE = 300
PRACTICE_HEADER = "X-Foretell-Practice"
"""Header with which a local server declares that it is a practice server without rate limits."""
LOCAL_POLL = 0.25
"""Seconds between checks whether a local server has declared that to another process."""
SESSIONS = 2
"""Connections to a database server."""
PRACTICE_TABLES = ("CREATE TABLE practice_server (address TEXT PRIMARY KEY)",)
"""The tables of the part `practice`. Scripts never change once released."""


# Stored state: the requests that count against limits, the state of each service, and which servers are for practice.


class ServiceStore:
    """Units, service states and practice servers in a file or database shared by several processes, or in memory.

    It is opened when it is first needed. A damaged file is replaced. If nothing can be opened, limits apply to this
    process only.
    """

    def __init__(self, path: Path | str | None, *, clock: Callable[[], float] | None = None) -> None:
        """`path` is a file, the address of a database, or None for memory."""
        self._path = path
        self._clock = clock
        self.steady = clock or steady_seconds
        """A monotonic clock."""
        self._open: LimitStore | None = None
        self._practice: set[str] = set()

    def _store(self) -> LimitStore:
        if self._open is None:
            self._open = MemoryLimits(self._clock) if self._path is None else self._opened(self._path)
        return self._open

    def _opened(self, path: Path | str) -> LimitStore:
        database = open_database(path, "record of services", timeout=10.0, durable=False, sessions=SESSIONS)
        try:
            if database.shared:
                return DatabaseLimits(database)
            if database.read("SELECT 1 FROM sqlite_master WHERE name = 'place'"):
                raise DamagedFile("an earlier version wrote this", path=path)
            database.migrate("practice", PRACTICE_TABLES)
            self._practice = {address for (address,) in database.read("SELECT address FROM practice_server")}
            return DatabaseLimits(database, **({} if self._clock is None else {"clock": self._clock}))
        except BaseException:
            database.close()
            raise

    def _safely(self, work: Callable[[LimitStore], T]) -> T:
        for _ in range(2):
            try:
                return work(self._store())
            except (InputError, sqlite3.Error) as error:
                self._give_up(error)
        return work(self._store())

    def _give_up(self, error: InputError | sqlite3.Error) -> None:
        """Replace a damaged file; without any file, limits apply to this process only."""
        with suppress(InputError, sqlite3.Error):
            self.close()
        self._open = None
        if self._path is None:
            raise error
        if isinstance(error, DamagedFile) and isinstance(self._path, Path):
            log.warning("%s is replaced: %s", self._path, error)
            for file in (self._path, *(Path(f"{self._path}{end}") for end in ("-wal", "-shm"))):
                with suppress(OSError):
                    file.unlink(missing_ok=True)
            if not self._path.exists():
                return
        shown = self._path if isinstance(self._path, Path) else "the database of services"
        log.warning("%s cannot be used, so rate limits are not shared between processes: %s", shown, error)
        self._path = None

    def now(self) -> float:
        """Seconds since 1970."""
        return self._safely(lambda store: store.now())

    def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken | Awaitable[Taken]:
        """Take units if the request may be sent now."""
        return self._safely(lambda store: store.take(place, wants, longest=longest, waiting=waiting))

    def give_back(
        self, place: str, taken: Taken, wants: Wants, *, free: bool = False, change: Change | None = None
    ) -> None:
        """Return the units of a request that has ended."""
        closed = self._open is None
        self._safely(lambda store: store.give_back(place, taken, wants, free=free, change=change))
        if closed:  # The request ended after its client.
            self.close()

    def update(self, place: str, change: Change) -> PlaceState:
        """Change the state of a service."""
        return self._safely(lambda store: store.update(place, change))

    def state(self, service: str) -> PlaceState:
        """Return the state of a service; a new one if it was never used."""
        return self.states().get(service, PlaceState())

    def states(self) -> dict[str, PlaceState]:
        """Return the states of all services ever used; empty if the file cannot be read."""
        if self._missing:
            return {}
        try:
            return self._store().states()
        except (InputError, sqlite3.Error):
            return {}

    @property
    def _missing(self) -> bool:
        return self._open is None and (self._path is None or (isinstance(self._path, Path) and not self._path.exists()))

    async def aside(self, work: Callable[[], T]) -> T:
        """Run `work`, in a thread if the store is on a database server, so that the event loop is not blocked."""
        if isinstance(self._path, str):
            store = self._safely(lambda store: store)
            if isinstance(store, DatabaseLimits):
                return await store.database.aside(work)
        return work()

    def is_practice(self, address: str) -> bool:
        """Whether the server at an address has declared that it is a practice server."""
        if self._missing:
            return False
        query = "SELECT 1 FROM practice_server WHERE address = ?"
        return self._safely(
            lambda store: (
                bool(store.database.read(query, (address,)))
                if isinstance(store, DatabaseLimits) and not store.database.shared
                else address in self._practice
            )
        )

    def set_practice(self, address: str, practice: bool) -> None:
        """Record or clear that declaration."""
        statement = "DELETE FROM practice_server WHERE address = ?"
        if practice:
            statement = "INSERT INTO practice_server VALUES (?) ON CONFLICT DO NOTHING"

        def work(store: LimitStore) -> None:
            # Other machines have other servers at the same local address.
            if isinstance(store, DatabaseLimits) and not store.database.shared:
                store.database.together(lambda db: db.write(statement, (address,)))

        self._safely(work)
        self._practice = self._practice | {address} if practice else self._practice - {address}

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            self._open.close()
        self._open = None


# Which service is at an address, and which limits apply to a request.


@frozen
class ServiceAccess:
    """How this machine accesses external services: the user agent, the rate limits, and where the state is stored."""

    home: Path | None = None
    """None to store nothing and limit only this client."""
    database: str | None = field(default=None, repr=False)
    """Address of a PostgreSQL database through which several machines share the limits."""
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    """By service: a mirror, proxy or test server instead of the public address."""
    contact: str = ""
    """E-mail or web address of whoever runs this program."""
    user_agents: Mapping[str, str] = field(default_factory=dict[str, str])
    """User agent by service, or under "" for all."""
    rate_limits: Mapping[str, tuple[RateLimit, ...]] = field(default_factory=dict[str, tuple[RateLimit, ...]])
    """Limits by service that replace those of the table."""
    simulated: bool = False
    """Whether time is simulated. It stands still during a request, so a slow machine gets more time to answer."""

    def user_agent(self, service: str = "") -> str:
        """Return the configured user agent for a service; empty if none is set."""
        return self.user_agents.get(service) or self.user_agents.get("", "")

    @property
    def state(self) -> Path | str | None:
        """The file or database with the state of services."""
        return self.database or (None if self.home is None else self.home / STATE_FILE)


@frozen
class KnownService:
    """A service at one of its addresses."""

    name: str
    facts: ServiceFacts
    limits: tuple[RateLimit, ...]
    base: str = ""
    """Path prefix if it is at a custom address."""
    address: str = ""
    """Host, port and path if it is at a custom address."""
    public: bool = True
    """Whether it is reached over a network instead of on this machine."""
    by_settings: bool = False
    """Whether its limits come from settings or a plug-in: these also apply to practice servers."""

    def limits_of(self, path: str) -> tuple[RateLimit, ...]:
        """Return the limits for a path."""
        inner = path.removeprefix(self.base)
        return tuple(limit for limit in self.limits if re.search(limit.path, inner))


class ServiceAddresses:
    """Finds the service for an address."""

    def __init__(self, access: ServiceAccess) -> None:
        self._own: list[tuple[SplitResult, str]] = []
        for name, address in access.addresses.items():
            self._add(name, address)
        self._rate_limits = access.rate_limits
        self._limited_hosts: dict[str, KnownService] = {}
        self._by_host: dict[str, str | None] = {}
        self._services: dict[tuple[str, str], KnownService] = {}

    def _add(self, name: str, address: str) -> None:
        self._own.append((urlsplit(address), name))
        # Longest path first: several services may share a host, each below its own path.
        self._own.sort(key=lambda entry: -len(entry[0].path))

    def stand_in(self, address: str, public: str) -> None:
        """Treat an address as that of the service at a public address."""
        parts, other = urlsplit(public), urlsplit(address)
        service = self.find(parts.netloc, parts.path)
        if service is not None and self._is_unknown(other.netloc, other.path):
            self._add(service.name, address)

    def find(self, host: str, path: str) -> KnownService | None:
        """Return the service at a host (with its port, if it has one); None for any other address."""
        for address, name in self._own:
            # Plug-ins of the same service may be named differently from it.
            if address.netloc == host and path.startswith(address.path) and name in KNOWN_SERVICES:
                return self._known(name, address)
        if host not in self._by_host:
            self._by_host[host] = next((name for name, facts in KNOWN_SERVICES.items() if _at(facts, host)), None)
        name = self._by_host[host]
        return self._limited_hosts.get(host) if name is None else self._known(name)

    def limit_host(self, host: str, path: str, limit: RateLimit) -> None:
        """Limit the requests to a host. Limits of known services are not changed."""
        if self._is_unknown(host, path):
            facts = ServiceFacts(title=host, hosts=(host,), pause=HOST_PAUSE)
            self._limited_hosts[host] = KnownService(name=host, facts=facts, limits=(limit,), by_settings=True)

    def _is_unknown(self, host: str, path: str) -> bool:
        """Whether an address belongs to no service of the table; its host may be limited."""
        return self.find(host, path) is self._limited_hosts.get(host)

    def by_name(self, name: str) -> KnownService | None:
        """Return a service with the address that this machine uses for it."""
        return self._known(name, next((address for address, other in self._own if other == name), None))

    def _known(self, name: str, own: SplitResult | None = None) -> KnownService | None:
        facts = KNOWN_SERVICES.get(name)
        address = "" if own is None else f"{own.netloc}{own.path}".rstrip("/")
        if facts is not None and (name, address) not in self._services:
            self._services[name, address] = KnownService(
                name=name,
                facts=facts,
                limits=self._rate_limits.get(name, facts.limits),
                base="" if own is None else own.path.rstrip("/"),
                address=address,
                public=own is None or not _is_this_machine(own.hostname or ""),
                by_settings=name in self._rate_limits,
            )
        return self._services.get((name, address))


def _at(facts: ServiceFacts, host: str) -> bool:
    return any(host == known or (known.startswith(".") and host.endswith(known)) for known in facts.hosts)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# Waiting until a request may be sent.


class ServiceClosed(Exception):
    """The service accepts no requests for longer than the caller waits. Nothing was sent."""


@dataclass(kw_only=True)
class ServiceTurn:
    """A request that may be sent. Its sender reports how it ended."""

    sent: float
    problem: str | None = None
    """What went wrong; empty if nothing did, None if it should not be recorded."""


class ServiceTurns:
    """Admits the requests of one client at the rate shared by all clients of this machine."""

    def __init__(self, store: ServiceStore, *, patience: float, longest: float) -> None:
        """`patience` is how long a caller waits for a closed service, `longest` how long a request takes."""
        self.store = store
        self._limiter = RateLimiter(store, longest=longest, patience=patience)
        self._noted: dict[str, float] = {}
        self._practice: dict[str, bool] = {}
        self._announced: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, service: KnownService, path: str, weight: int = 1) -> AsyncGenerator[ServiceTurn]:
        """Wait until a request may be sent, and hold its units while it is in flight."""
        limits = () if self.spared(service) else service.limits_of(path)
        wants = [(limit, weight if limit.seconds else 1) for limit in limits]
        # A server on this machine may meanwhile declare, perhaps to another process, that it is for practice.
        look_again = inf if service.public or service.by_settings else LOCAL_POLL
        spared = (lambda: self.spared(service)) if wants else None
        try:
            taken = await self._limiter.take(service.name, wants, look_again=look_again, spared=spared)
        except PlaceClosed as closed:
            raise ServiceClosed(await self._why(service, closed.wait)) from None
        turn = ServiceTurn(sent=self.store.now())
        try:
            yield turn
        finally:
            self._over(service, taken, wants, turn)

    async def _why(self, service: KnownService, wait: float) -> str:
        state, now = await self.store.aside(lambda: self.store.state(service.name)), self.store.now()
        why = state.reason if state.closed > now else "its limits are used up"
        until = datetime.fromtimestamp(now + wait, UTC)
        return f"{service.facts.title} gets no requests before {until:%Y-%m-%d %H:%M:%S} UTC: {why}"

    def _over(self, service: KnownService, taken: Taken, wants: Wants, turn: ServiceTurn) -> None:
        """Return the units and record how the request ended."""
        steady, problem = self.store.steady(), turn.problem
        recent = steady - self._noted.get(service.name, -inf) < NOTE_INTERVAL
        noted = bool(problem) or (problem is not None and not recent)
        if not taken.units and not noted:
            return
        if noted:
            self._noted[service.name] = -inf if problem else steady

        def note(state: PlaceState, now: float) -> PlaceState:
            if problem:
                return replace(state, error=now, problem=problem[:LONGEST_NOTE])
            return replace(state, success=now, refusals=0)

        free = self.spared(service)
        self._limiter.give_back(service.name, taken, wants, free=free, change=note if noted else None)

    async def refused(self, service: KnownService, turn: ServiceTurn, requested: float | None, reason: str) -> None:
        """Pause all requests to a service that refused one because they came too fast, and asked to wait or did not.

        Of many refused requests in flight, only the first makes pauses longer.
        """
        least = 0.0 if self.spared(service) else service.facts.least_pause

        def close(state: PlaceState, now: float) -> PlaceState:
            fresh = turn.sent > state.paused
            refusals = state.refusals + fresh
            usual = (
                min(LONGEST_PAUSE, service.facts.pause * 2 ** max(0, refusals - 1)) if requested is None else requested
            )
            closed = now + max(usual, least, _named_wait(service, reason, now))
            state = replace(state, refusals=refusals, paused=now if fresh else state.paused)
            later = closed > max(state.closed, now)
            return replace(state, closed=closed, reason=reason[:LONGEST_NOTE]) if later else state

        closed = (await self.store.aside(lambda: self.store.update(service.name, close))).closed
        if closed > max(self.store.now(), self._announced.get(service.name, 0.0) + 1.0):
            self._announced[service.name] = closed
            until = datetime.fromtimestamp(closed, UTC)
            log.warning(
                "%s gets no requests before %s UTC: %s", service.facts.title, f"{until:%H:%M:%S}", for_log(reason)
            )

    def spared(self, service: KnownService) -> bool:
        """Whether a service is a practice server, which has no limits except those from settings."""
        if service.public or service.by_settings:
            return False
        if service.address not in self._practice:
            self._practice[service.address] = self.store.is_practice(service.address)
        return self._practice[service.address]

    def answered_by(self, service: KnownService, *, practice: bool) -> None:
        """Record from a local server's response whether it is a practice server."""
        if not service.public and not service.by_settings and self.spared(service) != practice:
            self._practice[service.address] = practice
            self.store.set_practice(service.address, practice)

    def warn_once(self, service: KnownService, problem: str) -> None:
        """Log once why no request is sent to a service."""
        if service.name not in self._announced:
            self._announced[service.name] = 0.0
            log.warning("%s", for_log(problem))

    def close(self) -> None:
        """Close the file."""
        self.store.close()


def _named_wait(service: KnownService, reason: str, now: float) -> float:
    """Return the seconds until the time that a refusal of this service implies."""
    ends = {"the next hour": PERIODS["h"], "midnight UTC": PERIODS["day"]}
    waits = [ends[until] for words, until in (service.facts.refused_until or {}).items() if words in reason]
    return max((span - now % span for span in waits), default=0.0)
