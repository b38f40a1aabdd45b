"""Rate limits of external services, shared by all processes of this machine.

A request takes a slot of every limit it falls under before it leaves and keeps it until a whole span has passed since
its *response*. It reached the service between the two, so the service never counts more requests in a span than its
limit allows. A pause requested by a service applies to everyone.

The state is an SQLite file in the home. Nobody holds a lock while waiting, and requests of a dead process count as
answered.
"""

import asyncio
import logging
import os
import re
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from math import inf
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from foretell.data.known_services import DAY, HOUR, KNOWN_SERVICES, ServiceFacts, ServiceLimit
from foretell.data.untrusted import for_log
from foretell.questions.clock_jump import ClockReading, jump_text, steady_seconds

log = logging.getLogger(__name__)

STATE_FILE = "services.db"
MARGIN = 1.01
"""Spans are extended slightly because clocks differ."""
LONGEST_PAUSE = 900.0
"""Longest pause, in seconds, while refusals continue."""
POLL = 0.02
"""Seconds between checks while others have requests in flight."""
NOTE_INTERVAL = 10.0
"""Seconds between records of success for a service without limits."""
LOOK_INTERVAL = 0.5
"""Seconds between checks whether another process was told to pause for a service without limits."""
LONGEST_NOTE = 300
PRACTICE_HEADER = "X-Foretell-Practice"
"""Header with which a local server declares that it is for practice and has no limits."""
LOCAL_POLL = 0.25
"""Seconds between checks whether a local server has declared that to another process."""


# What is stored: the places that requests have taken, and how a service is.

_TABLES = """
CREATE TABLE IF NOT EXISTS place (
    id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, at REAL NOT NULL, process INTEGER, until REAL);
CREATE INDEX IF NOT EXISTS places ON place (what, at);
CREATE TABLE IF NOT EXISTS service (
    name TEXT PRIMARY KEY, closed REAL NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',
    refusals INTEGER NOT NULL DEFAULT 0, paused REAL NOT NULL DEFAULT 0,
    success REAL NOT NULL DEFAULT 0, error REAL NOT NULL DEFAULT 0, problem TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS practice (address TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS clock (wall REAL NOT NULL, steady REAL NOT NULL)"""
_NO_NUMBERS = """
SELECT 1 FROM clock WHERE typeof(wall) || typeof(steady) <> 'realreal' UNION ALL
SELECT 1 FROM service WHERE typeof(closed) || typeof(paused) || typeof(success) || typeof(error) || typeof(refusals)
    <> 'realrealrealrealinteger' UNION ALL
SELECT 1 FROM place WHERE typeof(at) <> 'real' OR typeof(until) NOT IN ('real', 'null') LIMIT 1"""
UNDER_WAY = inf
"""Response time of a request that is still in flight."""


@dataclass(frozen=True, kw_only=True)
class ServiceState:
    """The state of a service. Times are seconds since 1970; 0 means never."""

    closed: float = 0.0
    """Nobody asks before this time."""
    reason: str = ""
    """Why it is closed."""
    refusals: int = 0
    """Consecutive refusals."""
    paused: float = 0.0
    """Start of the last pause."""
    success: float = 0.0
    error: float = 0.0
    problem: str = ""
    """Message of the last error."""


class PaceStore:
    """Slots and states, in a file shared by several processes, or in memory."""

    def __init__(
        self, path: Path | None, clock: Callable[[], float] = time.time, steady: Callable[[], float] | None = None
    ) -> None:
        """`steady` is a clock that nobody can set; it reveals changes of the other one."""
        self._path = path
        self.now = clock
        self.steady = steady or (steady_seconds if clock is time.time else clock)
        self._open: sqlite3.Connection | None = None
        self._process = 0

    @contextmanager
    def alone(self) -> Generator[sqlite3.Connection]:
        """Change something exclusively."""
        db = self._begun()
        try:
            self._follow_clock(db)
            yield db
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def _begun(self) -> sqlite3.Connection:
        for _ in range(2):
            try:
                db = self._connection()
                db.execute("BEGIN IMMEDIATE")
                return db
            except sqlite3.Error as error:
                self._give_up(error)
        db = self._connection()
        db.execute("BEGIN IMMEDIATE")
        return db

    def _jump(self, db: sqlite3.Connection) -> tuple[ClockReading | None, ClockReading, float]:
        """The clocks at the last write and now, and by how much the wall clock was set in between."""
        row = db.execute("SELECT wall, steady FROM clock").fetchone()
        now = ClockReading(self.now(), self.steady())
        before = None if row is None else ClockReading(*row)
        return before, now, 0.0 if before is None else before.jump_to(now)

    def _follow_clock(self, db: sqlite3.Connection) -> None:
        """If the clock was set, shift all recorded times by the same amount, so that waits keep their length."""
        before, now, jump = self._jump(db)
        if jump:
            log.warning("%s; waits for services stay as long as they were", jump_text(jump))
            db.execute("UPDATE place SET at = at + ?, until = until + ?", (jump, jump))
            for column in ("closed", "paused", "success", "error"):
                db.execute(f"UPDATE service SET {column} = {column} + ? WHERE {column} > 0", (jump,))
        if before is None:
            db.execute("INSERT INTO clock VALUES (?, ?)", (now.wall, now.steady))
        elif jump or abs(now.steady - before.steady) > LOOK_INTERVAL:
            db.execute("UPDATE clock SET wall = ?, steady = ?", (now.wall, now.steady))

    def _give_up(self, error: sqlite3.Error) -> None:
        """Replace a damaged file; without any file, limits hold for this process alone."""
        self.close()
        if self._path is not None and not isinstance(error, sqlite3.OperationalError):
            log.warning("%s is damaged and begun anew: %s", self._path, error)
            self._path.unlink(missing_ok=True)
        else:
            log.warning("%s cannot be used, so every process keeps a pace of its own: %s", self._path, error)
            self._path = None

    def _connection(self) -> sqlite3.Connection:
        # A connection must not be used by a forked process.
        if self._open is None or self._process != os.getpid():
            if self._path is not None:
                with suppress(OSError):
                    self._path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self._path or ":memory:", isolation_level=None, timeout=10.0)
            try:
                # What a power cut loses is a pace of minutes ago: no commit waits for the disk.
                db.execute("PRAGMA synchronous = OFF")
                # Half the work of other modes. Where another process is switching a new file right now, that will do.
                with suppress(sqlite3.OperationalError):
                    db.execute("PRAGMA journal_mode = WAL")
                for statement in _TABLES.split(";"):
                    db.execute(statement)
                if db.execute(_NO_NUMBERS).fetchone():
                    raise sqlite3.DatabaseError("text stands where numbers belong")
            except sqlite3.Error:
                db.close()
                raise
            self._open, self._process = db, os.getpid()
        return self._open

    def take(
        self, service: str, limits: Sequence[ServiceLimit], longest: float, weight: int = 1
    ) -> tuple[list[int], float]:
        """The slots of a request that may leave now, or none and the minimum seconds until it may.

        A request that is not returned after `longest` seconds counts as answered. A request that the service counts as
        several has a `weight` and takes as many slots.
        """
        places: list[int] = []
        with self.alone() as db:
            now = self.now()
            wait = _wait(db, service, limits, weight, now)
            if wait <= 0:
                for limit in limits:
                    row = (f"{service}/{limit.what}", UNDER_WAY, os.getpid(), now + longest)
                    for _ in range(_places(limit, weight)):
                        added = db.execute("INSERT INTO place (what, at, process, until) VALUES (?, ?, ?, ?)", row)
                        places.append(added.lastrowid or 0)
        return places, wait

    def give_back(self, service: str, places: Sequence[int], *, free: bool = False, **notes: float | str) -> None:
        """The request with these slots was answered; `notes` are facts to record about the service.

        With `free` the slots are free at once, as for a practice server.
        """
        with self.alone() as db:
            now = self.now()
            change = "DELETE FROM place WHERE ? > 0 AND id = ?" if free else "UPDATE place SET at = ? WHERE id = ?"
            db.executemany(change, [(now, place) for place in places])
            if notes:
                _note(db, service, **notes)

    def is_practice(self, address: str) -> bool:
        """Whether the server at an address has declared that it is for practice."""
        if self._open is None and (self._path is None or not self._path.exists()):
            return False
        return bool(self._connection().execute("SELECT 1 FROM practice WHERE address = ?", (address,)).fetchone())

    def set_practice(self, address: str, practice: bool) -> None:
        """Record or clear that declaration."""
        with self.alone() as db:
            if practice:
                db.execute("INSERT OR IGNORE INTO practice VALUES (?)", (address,))
            else:
                db.execute("DELETE FROM practice WHERE address = ?", (address,))

    def state(self, service: str) -> ServiceState:
        """The state of a service; a new one if it was never asked."""
        return self.states(service).get(service, ServiceState())

    def states(self, only: str = "") -> dict[str, ServiceState]:
        """The states of all services ever asked, or of one."""
        if self._open is None and (self._path is None or not self._path.exists()):
            return {}
        columns = tuple(ServiceState.__dataclass_fields__)
        query = f"SELECT name, {', '.join(columns)} FROM service WHERE ? IN ('', name)"
        try:
            db = self._connection()
            if not db.in_transaction and self._jump(db)[2]:
                with self.alone():
                    pass
            rows = db.execute(query, (only,)).fetchall()
        except (
            sqlite3.DatabaseError
        ):  # Damaged: whoever writes next begins anew. Or read-only, and of an older version.
            return {}
        return {name: ServiceState(**dict(zip(columns, values, strict=True))) for name, *values in rows}

    def close(self) -> None:
        """Close the file."""
        if self._open is not None and self._process == os.getpid():
            self._open.close()
        self._open = None


def _alive(process: int) -> bool:
    """Whether a process exists; True if that cannot be determined."""
    if process == os.getpid() or os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


# Whose address it is, and under which limits a request falls.


@dataclass(frozen=True, kw_only=True)
class ServiceAccess:
    """How this machine accesses external services: who asks, at which rate, and where the state is stored."""

    home: Path | None = None
    """None to store nothing and limit only this client."""
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    """By service: a mirror, proxy or test server instead of the public address."""
    contact: str = ""
    """E-mail or web address of whoever runs this program."""
    user_agents: Mapping[str, str] = field(default_factory=dict[str, str])
    """User agent by service, or under "" for all."""
    pace: Mapping[str, tuple[ServiceLimit, ...]] = field(default_factory=dict[str, tuple[ServiceLimit, ...]])
    """Limits by service that replace those of the table."""

    def user_agent(self, service: str = "") -> str:
        """The configured user agent for a service; empty if none is set."""
        return self.user_agents.get(service) or self.user_agents.get("", "")

    @property
    def state_file(self) -> Path | None:
        """The file with the state of services."""
        return None if self.home is None else self.home / STATE_FILE


@dataclass(frozen=True, kw_only=True)
class KnownService:
    """A service at one of its addresses."""

    name: str
    facts: ServiceFacts
    limits: tuple[ServiceLimit, ...]
    base: str = ""
    """Path prefix if it is at a custom address."""
    address: str = ""
    """Host, port and path if it is at a custom address."""
    public: bool = True
    """Whether it is asked over a network instead of on this machine."""
    by_settings: bool = False
    """Whether its limits come from settings: these also apply to practice servers."""

    def limits_of(self, path: str) -> tuple[ServiceLimit, ...]:
        """The limits for a path."""
        inner = path.removeprefix(self.base)
        return tuple(limit for limit in self.limits if re.search(limit.path, inner))


class ServiceAddresses:
    """Finds the service for an address."""

    def __init__(self, access: ServiceAccess) -> None:
        self._own: list[tuple[SplitResult, str]] = []
        for name, address in access.addresses.items():
            self._add(name, address)
        self._pace = access.pace
        self._by_host: dict[str, str | None] = {}
        self._services: dict[tuple[str, str], KnownService] = {}

    def _add(self, name: str, address: str) -> None:
        self._own.append((urlsplit(address), name))
        # The longest first: several services may share a host, each below a path of its own.
        self._own.sort(key=lambda one: -len(one[0].path))

    def stand_in(self, address: str, public: str) -> None:
        """Treat an address as that of the service at a public address."""
        parts, other = urlsplit(public), urlsplit(address)
        service = self.find(parts.netloc, parts.path)
        if service is not None and self.find(other.netloc, other.path) is None:
            self._add(service.name, address)

    def find(self, host: str, path: str) -> KnownService | None:
        """The service at a host (with its port, if it has one); None for any other address."""
        for address, name in self._own:
            if address.netloc == host and path.startswith(address.path):
                return self._known(name, address)
        if host not in self._by_host:
            self._by_host[host] = next((name for name, facts in KNOWN_SERVICES.items() if _at(facts, host)), None)
        name = self._by_host[host]
        return None if name is None else self._known(name)

    def by_name(self, name: str) -> KnownService | None:
        """A service at the address at which it is asked from here."""
        return self._known(name, next((address for address, other in self._own if other == name), None))

    def _known(self, name: str, own: SplitResult | None = None) -> KnownService | None:
        facts = KNOWN_SERVICES.get(name)
        address = "" if own is None else f"{own.netloc}{own.path}".rstrip("/")
        if facts is not None and (name, address) not in self._services:
            self._services[name, address] = KnownService(
                name=name,
                facts=facts,
                limits=self._pace.get(name, facts.limits),
                base="" if own is None else own.path.rstrip("/"),
                address=address,
                public=own is None or not _is_this_machine(own.hostname or ""),
                by_settings=name in self._pace,
            )
        return self._services.get((name, address))


def _at(facts: ServiceFacts, host: str) -> bool:
    return any(host == one or (one.startswith(".") and host.endswith(one)) for one in facts.hosts)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# Taking turns.


class ServiceClosed(Exception):
    """The service must not be asked for longer than the caller waits. Nothing was sent."""


@dataclass(kw_only=True)
class ServiceTurn:
    """A request that may leave. Its sender reports how it ended."""

    sent: float
    problem: str | None = None
    """What went wrong; empty if nothing did, None if it should not be recorded."""


class ServiceTurns:
    """Admits the requests of one client at the rate shared by all clients of this machine."""

    def __init__(self, store: PaceStore, *, patience: float, longest: float) -> None:
        """`patience` is how long a caller waits for a closed service, `longest` how long a request takes."""
        self.store = store
        self._patience = patience
        self._longest = longest
        self._queues: dict[tuple[str, ...], asyncio.Lock] = {}
        self._answered = asyncio.Event()
        self._noted: dict[str, float] = {}
        self._looked: dict[str, tuple[float, float]] = {}
        self._practice: dict[str, bool] = {}
        self._announced: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, service: KnownService, path: str, weight: int = 1) -> AsyncGenerator[ServiceTurn]:
        """Wait until a request may leave, and hold its slots while it is in flight."""
        limits = () if self.spared(service) else service.limits_of(path)
        places: list[int] = []
        if limits:
            # In the order they came; whoever falls under other limits does not wait for them.
            queue = self._queues.setdefault((service.name, *(limit.what for limit in limits)), asyncio.Lock())
            async with queue:
                places = await self._take(service, limits, weight)
        else:
            while (wait := self._closed(service)) > 0:
                await self._pause(service, wait)
        turn = ServiceTurn(sent=self.store.now())
        try:
            yield turn
        finally:
            self._over(service, places, turn)

    def _closed(self, service: KnownService) -> float:
        """Seconds for which a service without limits is closed, checked only now and then."""
        now, closed = self.store.steady(), 0.0
        looked = self._looked.get(service.name)
        if looked is not None:
            closed = looked[1]
        if looked is None or now - looked[0] > LOOK_INTERVAL or closed > now:
            closed = now + self.store.state(service.name).closed - self.store.now()
            self._looked[service.name] = (now, closed)
        return closed - now

    async def _take(self, service: KnownService, limits: Sequence[ServiceLimit], weight: int) -> list[int]:
        while True:
            if self.spared(service):
                return []
            places, wait = self.store.take(service.name, limits, self._longest, weight)
            if places:
                return places
            await self._pause(service, wait)

    async def _pause(self, service: KnownService, wait: float) -> None:
        if wait > self._patience:
            state = self.store.state(service.name)
            until = datetime.fromtimestamp(self.store.now() + wait, UTC)
            why = state.reason if state.closed > self.store.now() else "its limits are used up"
            raise ServiceClosed(f"{service.facts.title} is not asked before {until:%Y-%m-%d %H:%M:%S} UTC: {why}")
        if wait > POLL:
            # A server on this machine may say meanwhile, perhaps to another process, that it is there for practice.
            await asyncio.sleep(wait if service.public or service.by_settings else min(wait, LOCAL_POLL))
            return
        # It may be a request of our own that we wait for.
        self._answered.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._answered.wait()

    def _over(self, service: KnownService, places: Sequence[int], turn: ServiceTurn) -> None:
        """Return the slots and record how the request ended."""
        now, steady = self.store.now(), self.store.steady()
        known = turn.problem is not None
        if not places and (
            not known or (not turn.problem and steady - self._noted.get(service.name, -inf) < NOTE_INTERVAL)
        ):
            return
        self._noted[service.name] = -inf if turn.problem else steady
        notes: dict[str, float | str] = {"success": now, "refusals": 0} if known else {}
        if turn.problem:
            notes = {"error": now, "problem": turn.problem[:LONGEST_NOTE]}
        self.store.give_back(service.name, places, free=self.spared(service), **notes)
        self._answered.set()

    def refused(self, service: KnownService, turn: ServiceTurn, told: float | None, reason: str) -> None:
        """The service refused because it was asked too fast: nobody asks it for a while.

        Args:
            service: Which service.
            turn: The refused request; of many in flight, only the first makes pauses longer.
            told: Seconds that the service asked to wait, if it did.
            reason: Its message.
        """
        with self.store.alone() as db:
            now, state = self.store.now(), self.store.state(service.name)
            fresh = turn.sent > state.paused
            refusals = state.refusals + fresh
            usual = min(LONGEST_PAUSE, service.facts.pause * 2 ** max(0, refusals - 1)) if told is None else told
            least = 0.0 if self.spared(service) else service.facts.least_pause
            wait = max(usual, least, _named_wait(service, reason, now))
            closed = max(state.closed, now + wait)
            why = reason[:LONGEST_NOTE] if closed > state.closed else state.reason
            paused = now if fresh else state.paused
            _note(db, service.name, closed=closed, reason=why, refusals=refusals, paused=paused)
        self._looked.pop(service.name, None)
        if wait > 0 and closed > self._announced.get(service.name, 0.0) + 1.0:
            self._announced[service.name] = closed
            until = datetime.fromtimestamp(closed, UTC)
            log.warning("%s is not asked before %s UTC: %s", service.facts.title, f"{until:%H:%M:%S}", for_log(reason))

    def spared(self, service: KnownService) -> bool:
        """Whether a service is a local practice server, which has no limits except those from settings."""
        if service.public or service.by_settings:
            return False
        if service.address not in self._practice:
            self._practice[service.address] = self.store.is_practice(service.address)
        return self._practice[service.address]

    def answered_by(self, service: KnownService, *, practice: bool) -> None:
        """Record from a local server's response whether it is for practice."""
        if not service.public and not service.by_settings and self.spared(service) != practice:
            self._practice[service.address] = practice
            self.store.set_practice(service.address, practice)

    def say_once(self, service: KnownService, problem: str) -> None:
        """Log once why a service is not asked at all."""
        if service.name not in self._announced:
            self._announced[service.name] = 0.0
            log.warning("%s", for_log(problem))

    def close(self) -> None:
        """Close the file."""
        self.store.close()


def _places(limit: ServiceLimit, weight: int) -> int:
    """How many slots of a limit a request takes; one that is heavier than the limit takes all of them."""
    return min(weight, limit.requests) if limit.seconds else 1


def _wait(db: sqlite3.Connection, service: str, limits: Sequence[ServiceLimit], weight: int, now: float) -> float:
    """Minimum seconds until a request may leave; 0 for now."""
    closed = db.execute("SELECT closed FROM service WHERE name = ?", (service,)).fetchone()
    waits = [closed[0] - now if closed else 0.0]
    for limit in limits:
        key, span = f"{service}/{limit.what}", limit.seconds * MARGIN
        db.execute("DELETE FROM place WHERE what = ? AND at <= ?", (key, now - span))
        last = "SELECT at FROM place WHERE what = ? ORDER BY at DESC LIMIT 1 OFFSET ?"
        left = limit.requests - _places(limit, weight)
        row = db.execute(last, (key, left)).fetchone()
        if row is not None and row[0] == UNDER_WAY:
            _forget_the_gone(db, key, now)
            row = db.execute(last, (key, left)).fetchone()
        if row is not None:
            # A place whose answer has not come is free a whole span after it at the soonest.
            waits.append(max(span, POLL) if row[0] == UNDER_WAY else row[0] + span - now)
    return max(waits)


def _forget_the_gone(db: sqlite3.Connection, what: str, now: float) -> None:
    """Mark requests of dead processes and overdue requests as answered."""
    rows = db.execute("SELECT id, process, until FROM place WHERE what = ? AND at > 1e300", (what,)).fetchall()
    for place, process, until in rows:
        if until < now or not _alive(process):
            db.execute("UPDATE place SET at = ? WHERE id = ?", (now, place))


def _note(db: sqlite3.Connection, service: str, **values: float | str) -> None:
    db.execute("INSERT OR IGNORE INTO service (name) VALUES (?)", (service,))
    changes = ", ".join(f"{column} = ?" for column in values)
    db.execute(f"UPDATE service SET {changes} WHERE name = ?", (*values.values(), service))


def _named_wait(service: KnownService, reason: str, now: float) -> float:
    """Seconds until the time that a refusal of this service implies."""
    ends = {"the next hour": HOUR, "midnight UTC": DAY}
    waits = [ends[until] for said, until in (service.facts.refused_until or {}).items() if said in reason]
    return max((span - now % span for span in waits), default=0.0)
