"""Rate limits of outgoing requests: requests and units per time span, concurrent requests, and pauses.

All limits of services, hosts and providers of models are enforced here.

A request takes units of each of its limits before it is sent. Units of a limit with a span count until a span after the
request was sent or, for limits that are `held`, after its answer, because it reached the service at some time between
the two. So the service never counts more in a span than its limit allows.

The state is in memory for one process, or in a database that processes share: a file on one machine, a server for
several machines. No lock is held while waiting, and units of an ended process count as answered.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

from foretell.frozen import frozen
from foretell.models.database.interface import Database, Statements
from foretell.questions.clock_jump import ClockReading, jump_text, steady_seconds
from foretell.questions.errors import InputError

log = logging.getLogger(__name__)
T = TypeVar("T")

MARGIN = 1.01
"""Spans are extended slightly because clocks differ."""
UNDER_WAY = inf
"""Answer time of a request that is still under way."""
PERIODS = {"s": 1.0, "min": 60.0, "h": 3_600.0, "day": 86_400.0}
"""Seconds by the name of a time span."""


@frozen
class RateLimit:
    """A maximum number of units in any span of seconds or, without a span, in progress at the same time.

    >>> str(RateLimit(most=1000, seconds=60.0)), str(RateLimit(most=1, seconds=5)), str(RateLimit(most=8))
    ('1,000/min', '1/5 s', '8 at once')
    """

    most: float
    seconds: float = 0.0
    what: str = "requests"
    """Its name; a service may have several limits."""
    path: str = ""
    """Regular expression for the paths it applies to; empty for all."""
    source: str = ""
    """Where it is documented."""
    held: bool = True
    """Whether a unit counts until a span after the answer, instead of after the request was sent."""

    def __post_init__(self) -> None:
        if self.most < 1 or self.seconds < 0:
            raise InputError(
                "a limit must allow at least one request, in a time that is not negative", hint="e.g. 30/60s"
            )

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.most:,.10g} at once"
        names = {seconds: name for name, seconds in PERIODS.items()}
        return f"{self.most:,.10g}/{names.get(self.seconds, f'{self.seconds:g} s')}"

    @property
    def span(self) -> float:
        """How long a unit counts."""
        return self.seconds * MARGIN

    def room_for(self, amount: float) -> float:
        """Return how many units may be in use when `amount` is added. More than the limit needs all units free."""
        return self.most - min(amount, self.most)


Wants = Sequence[tuple[RateLimit, float]]
"""The limits of a request, and how many units of each it takes."""


@frozen
class PlaceState:
    """The state of a service or provider. Times are seconds since 1970; 0 means never."""

    closed: float = 0.0
    """No request is sent before this time."""
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


class Taken(NamedTuple):
    """Units that a request has taken, or how long it has to wait for them."""

    units: tuple[Any, ...] = ()
    wait: float = 0.0
    """Seconds until the next try; 0 if the request may be sent. Infinite if units must be given back first."""


Change = Callable[[PlaceState, float], PlaceState]
"""Returns a new state from the old one and the current time."""


class LimitStore(Protocol):
    """Stores units and states."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken | Awaitable[Taken]:
        """Take units if the request may be sent now. It ends after `longest` seconds at the latest.

        `waiting` is the number of other requests that wait here for the same limits.
        """
        ...

    def give_back(
        self, place: str, taken: Taken, wants: Wants, *, free: bool = False, change: Change | None = None
    ) -> None:
        """Record that the request was answered, with the final numbers of units, which may differ from those it took.

        With `free` they no longer count. `change` is applied to the place's state in the same step.
        """
        ...

    def update(self, place: str, change: Change) -> PlaceState:
        """Change the state of a place."""
        ...

    def states(self) -> dict[str, PlaceState]:
        """Return the states of all places."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...


# In memory, for one process.


class _Units:
    """Units that were taken of one limit."""

    __slots__ = ("amount", "at")

    def __init__(self, at: float, amount: float) -> None:
        self.at, self.amount = at, amount


class _Window:
    """What is in use of one limit."""

    __slots__ = ("dated", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.dated: deque[_Units] = deque()
        """Units whose span has begun, oldest first."""

    def wait(self, limit: RateLimit, amount: float, now: float) -> float:
        """Return the seconds until `amount` fits in; infinite if a request must be answered first."""
        dated = self.dated
        if dated:
            ended = now - limit.span
            while dated and dated[0].at <= ended:
                self.total -= dated.popleft().amount
        if self.total + amount <= limit.most:
            return 0.0
        room = limit.room_for(amount)
        if self.total <= room:
            return 0.0
        left = self.total
        for units in dated:
            left -= units.amount
            if left <= room:
                return units.at + limit.span - now
        # Units of requests in progress are free a span after their answer.
        return limit.span or inf

    def add(self, limit: RateLimit, amount: float, now: float) -> _Units:
        """Add units."""
        self.total += amount
        units = _Units(UNDER_WAY if limit.held else now, amount)
        if not limit.held:
            self.dated.append(units)
        return units

    def answer(self, limit: RateLimit, units: _Units, amount: float, now: float, *, free: bool) -> None:
        """Record that the request was answered with `amount` units."""
        if limit.held and limit.seconds and not free:
            units.at = now
            self.dated.append(units)
        elif limit.held:
            self.total -= units.amount
            return
        self.total += (0.0 if free else amount) - units.amount
        units.amount = 0.0 if free else amount


class MemoryLimits:
    """Units and states of one process.

    >>> clock = [0.0]
    >>> limits, two = MemoryLimits(clock=lambda: clock[0]), RateLimit(most=2, seconds=10.0)
    >>> [limits.take("a", [(two, 1)], longest=60.0).wait for _ in range(3)]
    [0.0, 0.0, 10.1]
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """Without `clock`, a steady clock is used that ignores changes of the machine's clock."""
        began, passed = time.time() - time.monotonic(), time.monotonic
        self.now = clock or (lambda: began + passed())
        self._windows: dict[tuple[str, str], _Window] = {}
        self._states: dict[str, PlaceState] = {}

    def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken:
        """Take units if the request may be sent now."""
        now = self.now()
        state = self._states.get(place)
        wait = 0.0 if state is None else state.closed - now
        windows: list[_Window] = []
        for limit, amount in wants:
            window = self._windows.get((place, limit.what))
            if window is None:
                window = self._windows[place, limit.what] = _Window()
            windows.append(window)
            if (blocked := window.wait(limit, amount, now)) > wait:
                wait = blocked
        if wait > 0:
            return Taken(wait=wait)
        return Taken(tuple([window.add(*want, now) for window, want in zip(windows, wants, strict=True)]))

    def give_back(
        self, place: str, taken: Taken, wants: Wants, *, free: bool = False, change: Change | None = None
    ) -> None:
        """Record that the request was answered."""
        now = self.now()
        for units, (limit, amount) in zip(taken.units, wants, strict=False):
            self._windows[place, limit.what].answer(limit, units, amount, now, free=free)
        if change is not None:
            self.update(place, change)

    def update(self, place: str, change: Change) -> PlaceState:
        """Change the state of a place."""
        state = self._states[place] = change(self._states.get(place, PlaceState()), self.now())
        return state

    def states(self) -> dict[str, PlaceState]:
        """Return the states of all places."""
        return dict(self._states)

    def close(self) -> None:
        """Do nothing: nothing is open."""


# In a database, for all processes that have it open.


LIMIT_TABLES = (
    """
    CREATE TABLE limit_turn (
        owner INTEGER NOT NULL, number INTEGER NOT NULL, what TEXT NOT NULL, amount REAL NOT NULL, at REAL NOT NULL,
        until REAL NOT NULL, PRIMARY KEY (owner, number)
    );
    CREATE INDEX limit_turns ON limit_turn (what, at, amount);
    CREATE TABLE limit_wait (
        what TEXT NOT NULL, owner INTEGER NOT NULL, wanted INTEGER NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (what, owner)
    );
    CREATE TABLE limit_state (
        name TEXT PRIMARY KEY, closed REAL NOT NULL, reason TEXT NOT NULL, refusals INTEGER NOT NULL,
        paused REAL NOT NULL, success REAL NOT NULL, error REAL NOT NULL, problem TEXT NOT NULL
    );
    CREATE TABLE limit_clock (wall REAL NOT NULL, steady REAL NOT NULL)
    """,
)
"""The tables of the part `limits`. Scripts never change once released."""
POLL, SHARED_POLL = 0.02, 0.1
"""Seconds between checks while other processes have requests in progress, on one machine and on several."""
LATEST = 1.0
"""Maximum seconds between two checks, because other processes may give back unused units."""
WANTED_SECONDS = 2.0
"""Seconds for which a record that a process waits is valid."""
TURN_SECONDS = 5.0
"""Seconds after which another process has its turn if there are fewer units than processes."""
CLOCK_INTERVAL = 0.5
"""Seconds between two records of the clocks."""
_TIMES = ("closed", "paused", "success", "error")
_STATE = tuple(PlaceState.__dataclass_fields__)
_READ_STATE = f"SELECT {', '.join(_STATE)} FROM limit_state WHERE name = ?"
_WRITE_STATE = f"""
INSERT INTO limit_state (name, {", ".join(_STATE)}) VALUES (?, {", ".join("?" for _ in _STATE)})
ON CONFLICT (name) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in _STATE)}"""
_BLOCKING = """
SELECT max(at) FROM (
    SELECT at, sum(amount) OVER (ORDER BY at DESC, owner, number) AS newer FROM limit_turn WHERE what = ?
) AS turns WHERE newer > ?"""
"""Start time of the newest units that must end before there is room."""
_WRITE_WAIT = """
INSERT INTO limit_wait VALUES (?, ?, ?, ?)
ON CONFLICT (what, owner) DO UPDATE SET wanted = excluded.wanted, until = excluded.until"""
_NUMBERS = count(1)


def fair_shares(units: int, wanted: Mapping[int, int], turn: int = 0) -> dict[int, int]:
    """Return a fair share for each owner: what it wants, or an equal part of what is left.

    >>> fair_shares(10, {1: 2, 2: 30, 3: 5})
    {1: 2, 2: 4, 3: 4}
    """
    shares: dict[int, int] = {}
    order = sorted(wanted, key=lambda owner: (wanted[owner], crc32(f"{owner} {turn}".encode())))
    for i, owner in enumerate(order):
        left = units - sum(shares.values())
        shares[owner] = min(wanted[owner], left // (len(wanted) - i))
    return dict(sorted(shares.items()))


class _UnitRequest(NamedTuple):
    """A request that waits to be sent."""

    place: str
    wants: Wants
    longest: float
    waiting: int


class DatabaseLimits:
    """Units and states of all processes that share a database."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """`steady` is a clock that cannot be set, which shows changes of `clock`. A server has its own clock."""
        database.migrate("limits", LIMIT_TABLES)
        self.database = database
        self._wall = clock
        self._steady = steady or (steady_seconds if clock is time.time else clock)
        self._poll = SHARED_POLL if database.shared else POLL
        self._ahead = database.now() - clock() if database.shared else 0.0
        """Seconds by which a server's clock is ahead of ours."""
        self._recorded = frozenset[str]()
        """Limits for which it is recorded that requests wait here."""

    def now(self) -> float:
        """Seconds since 1970."""
        return self._wall() + self._ahead

    def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken | Awaitable[Taken]:
        """Take units if the request may be sent now."""
        request = _UnitRequest(place, wants, longest, waiting)
        return self._take_aside(request) if self.database.shared else self._take(request)

    async def _take_aside(self, request: _UnitRequest) -> Taken:
        taking = asyncio.ensure_future(self.database.aside(lambda: self._take(request)))

        def unused(done: "asyncio.Future[Taken]") -> None:
            if not done.cancelled() and done.exception() is None:
                self.give_back(request.place, done.result(), request.wants, free=True)

        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(unused)  # The units are taken although the request will not be sent.
            raise

    def _take(self, request: _UnitRequest) -> Taken:
        if not request.wants:  # A service without limits may still be closed.
            return Taken(wait=max(0.0, self.states().get(request.place, PlaceState()).closed - self.now()))
        taken, blocking = self._alone(request.place, lambda db, now: self._attempt(db, now, request, set()))
        if blocking:
            gone = self.database.life.gone(blocking)
            if ended := gone - self.database.life.asleep(gone):
                taken, _ = self._alone(request.place, lambda db, now: self._attempt(db, now, request, ended))
        return taken

    def _attempt(self, db: Statements, now: float, request: _UnitRequest, ended: set[int]) -> tuple[Taken, set[int]]:
        """Take units, and return the processes whose requests in progress leave no room.

        Requests of ended processes count as answered.
        """
        me = self.database.life.id
        closed = db.read("SELECT closed FROM limit_state WHERE name = ?", (request.place,))
        wait, blocking = max(0.0, closed[0][0] - now) if closed else 0.0, set[int]()
        for limit, amount in request.wants:
            what, room = f"{request.place}/{limit.what}", limit.room_for(amount)
            used = self._used(db, what, now - limit.span)
            if used > room:
                _end_overdue(db, what, now, ended)
                used = self._used(db, what, now - limit.span)
            if used > room:
                at: float = db.read(_BLOCKING, (what, room))[0][0]
                # Units of requests in progress are free a span after their answer at the earliest.
                wait = max(wait, max(limit.span, self._poll) if at == UNDER_WAY else at + limit.span - now)
                if at == UNDER_WAY:
                    rows = db.read("SELECT DISTINCT owner FROM limit_turn WHERE what = ? AND at > ?", (what, now))
                    blocking |= {owner for (owner,) in rows} - {me}
            elif not limit.seconds and self._over_share(db, now, what, limit, request.waiting):
                wait = max(wait, self._poll)
            if not limit.seconds:
                self._note_waiting(db, now, what, request.waiting + (wait > 0))
        if wait > 0:
            return Taken(wait=wait), blocking
        units = tuple(next(_NUMBERS) for _ in request.wants)
        for number, (limit, amount) in zip(units, request.wants, strict=True):
            at = UNDER_WAY if limit.held else now
            row = (me, number, f"{request.place}/{limit.what}", amount, at, now + request.longest)
            db.write("INSERT INTO limit_turn VALUES (?, ?, ?, ?, ?, ?)", row)
        return Taken(units), set()

    def _used(self, db: Statements, what: str, over: float) -> float:
        """Delete units that no longer count, and return the sum of the others."""
        db.write("DELETE FROM limit_turn WHERE what = ? AND at <= ?", (what, over))
        return db.read("SELECT coalesce(sum(amount), 0) FROM limit_turn WHERE what = ?", (what,))[0][0]

    def _over_share(self, db: Statements, now: float, what: str, limit: RateLimit, waiting: int) -> bool:
        """Return whether others wait for units and this process has its fair share already."""
        me = self.database.life.id
        query = "SELECT owner, wanted FROM limit_wait WHERE what = ? AND owner <> ? AND until > ? AND wanted > 0"
        wanted = dict(db.read(query, (what, me, now)))
        if not wanted:
            return False
        rows = db.read("SELECT owner, count(*) FROM limit_turn WHERE what = ? GROUP BY owner", (what,))
        held = {owner: int(number) for owner, number in rows}
        demand = {owner: held.get(owner, 0) + int(wanted.get(owner, 0)) for owner in {*held, *wanted}}
        demand[me] = held.get(me, 0) + waiting + 1
        return held.get(me, 0) >= fair_shares(int(limit.most), demand, int(now / TURN_SECONDS))[me]

    def _note_waiting(self, db: Statements, now: float, what: str, wanted: int) -> None:
        """Record how many requests wait here, for other processes."""
        if wanted:
            db.write(_WRITE_WAIT, (what, self.database.life.id, wanted, now + WANTED_SECONDS))
        elif what in self._recorded:
            db.write("DELETE FROM limit_wait WHERE what = ? AND owner = ?", (what, self.database.life.id))
        self._recorded = self._recorded | {what} if wanted else self._recorded - {what}

    def give_back(
        self, place: str, taken: Taken, wants: Wants, *, free: bool = False, change: Change | None = None
    ) -> None:
        """Record that the request was answered."""
        if not taken.units and change is None:
            return

        def work(db: Statements, now: float) -> None:
            me = self.database.life.id
            for number, (limit, amount) in zip(taken.units, wants, strict=False):
                if free or (limit.held and not limit.seconds):
                    db.write("DELETE FROM limit_turn WHERE owner = ? AND number = ?", (me, number))
                elif limit.held:
                    update = "UPDATE limit_turn SET at = ?, amount = ? WHERE owner = ? AND number = ?"
                    db.write(update, (now, amount, me, number))
                else:
                    update = "UPDATE limit_turn SET amount = ? WHERE owner = ? AND number = ?"
                    db.write(update, (amount, me, number))
            if change is not None:
                self._change(db, now, place, change)

        self.database.later(lambda: self._alone(place, work))

    def update(self, place: str, change: Change) -> PlaceState:
        """Change the state of a place."""
        return self._alone(place, lambda db, now: self._change(db, now, place, change))

    def _change(self, db: Statements, now: float, place: str, change: Change) -> PlaceState:
        rows = db.read(_READ_STATE, (place,))
        before = PlaceState(**dict(zip(_STATE, rows[0], strict=True))) if rows else PlaceState()
        state = change(before, now)
        db.write(_WRITE_STATE, (place, *(getattr(state, name) for name in _STATE)))
        return state

    def states(self) -> dict[str, PlaceState]:
        """Return the states of all places."""
        rows = self.database.read(f"SELECT name, {', '.join(_STATE)} FROM limit_state")
        states = {name: PlaceState(**dict(zip(_STATE, values, strict=True))) for name, *values in rows}
        jump = 0.0 if self.database.shared else self._jump(self.database)[1]
        if not jump:
            return states
        # Not written, because the database may be read-only.
        return {name: replace(state, **_shifted(state, jump)) for name, state in states.items()}

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def _alone(self, place: str, work: Callable[[Statements, float], T]) -> T:
        """Run `work` in an exclusive transaction for a place."""

        def timed(db: Statements) -> T:
            if self.database.shared:
                return work(db, db.now())
            self._follow_clock(db)
            return work(db, self._wall())

        # After a power cut of a server the limits are those of a moment before.
        return self.database.together(timed, alone=f"limits/{place}", flushed=False)

    def _jump(self, db: Statements) -> tuple[ClockReading | None, float]:
        """Return the clocks at the last write, and by how much the wall clock was set since."""
        rows = db.read("SELECT wall, steady FROM limit_clock")
        before = ClockReading(*rows[0]) if rows else None
        return before, 0.0 if before is None else before.jump_to(ClockReading(self._wall(), self._steady()))

    def _follow_clock(self, db: Statements) -> None:
        """If the clock was set, shift all recorded times by the same amount, so that waits keep their length."""
        before, jump = self._jump(db)
        now = ClockReading(self._wall(), self._steady())
        if before is None:
            db.write("INSERT INTO limit_clock VALUES (?, ?)", (now.wall, now.steady))
            return
        if jump:
            log.warning("%s; waits for services stay as long as they were", jump_text(jump))
            db.write("UPDATE limit_turn SET at = at + ?, until = until + ?", (jump, jump))
            db.write("UPDATE limit_wait SET until = until + ?", (jump,))
            for column in _TIMES:
                db.write(f"UPDATE limit_state SET {column} = {column} + ? WHERE {column} > 0", (jump,))
        if jump or abs(now.steady - before.steady) > CLOCK_INTERVAL:
            db.write("UPDATE limit_clock SET wall = ?, steady = ?", (now.wall, now.steady))


def _shifted(state: PlaceState, jump: float) -> dict[str, Any]:
    return {name: getattr(state, name) + jump for name in _TIMES if getattr(state, name) > 0}


def _end_overdue(db: Statements, what: str, now: float, ended: set[int]) -> None:
    """Record requests of ended processes and overdue requests as answered."""
    for owner in ended:
        db.write("UPDATE limit_turn SET at = ? WHERE what = ? AND owner = ? AND at > ?", (now, what, owner, now))
    db.write("UPDATE limit_turn SET at = until WHERE what = ? AND at > until AND until < ?", (what, now))


# Waiting for units.


class PlaceClosed(Exception):
    """A request would have to wait for too long. Nothing was sent."""

    def __init__(self, place: str, wait: float) -> None:
        super().__init__(f"{place} is paused for {wait:.0f} s")
        self.wait = wait


class RateLimiter:
    """Admits the requests of one process in order, as their limits allow."""

    def __init__(self, store: LimitStore, *, longest: float, patience: float = inf) -> None:
        """`longest` is the maximum duration of a request, `patience` how long a caller waits for units."""
        self.store = store
        self._longest = longest
        self._patience = patience
        self._local = store if isinstance(store, MemoryLimits) else None
        self._queues: dict[tuple[str, ...], asyncio.Lock] = {}
        self._waiting: dict[str, int] = {}
        """How many requests wait here, by place."""
        self._given_back = asyncio.Event()
        self._paused: dict[str, float] = {}
        """Until when a place is paused, because writing it to the store may take time."""

    async def take(
        self, place: str, wants: Wants, *, look_again: float = inf, spared: Callable[[], bool] | None = None
    ) -> Taken:
        """Wait until a request may be sent, or until `spared` says, every `look_again` seconds, that no limit applies.

        Requests with other limits do not wait for each other.
        """
        if self._local is not None and not self._waiting.get(place) and place not in self._paused:
            # A fast path without queueing, because every model call comes here.
            taken = self._local.take(place, wants, longest=self._longest)
            if taken.wait <= 0:
                return taken
        key = (place, *[limit.what for limit, _ in wants])
        queue = self._queues.setdefault(key, asyncio.Lock())
        self._waiting[place] = self._waiting.get(place, 0) + 1
        try:
            async with queue:
                while True:
                    if spared is not None and spared():
                        return Taken()
                    while (left := self._paused.get(place, 0.0) - time.monotonic()) > 0:
                        await asyncio.sleep(left)
                    self._paused.pop(place, None)
                    self._given_back.clear()
                    result = self.store.take(place, wants, longest=self._longest, waiting=self._waiting[place] - 1)
                    taken = result if isinstance(result, Taken) else await result
                    if taken.wait <= 0:
                        return taken
                    if self._patience < taken.wait < inf:
                        raise PlaceClosed(place, taken.wait)
                    await self._sleep(min(taken.wait, look_again))
        finally:
            self._waiting[place] -= 1

    async def _sleep(self, seconds: float) -> None:
        """Sleep that long, or until units are given back here."""
        if seconds == inf:
            await self._given_back.wait()
            return
        if self._local is None:
            seconds = min(seconds, LATEST)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._given_back.wait()

    def give_back(
        self, place: str, taken: Taken, wants: Wants, *, free: bool = False, change: Change | None = None
    ) -> None:
        """Record that the request was answered; see `LimitStore.give_back`."""
        self.store.give_back(place, taken, wants, free=free, change=change)
        if self._waiting.get(place):
            self._given_back.set()

    def give_back_and_pause(self, place: str, taken: Taken, wants: Wants, seconds: float) -> None:
        """Record that the service asked to send nothing for a while.

        The pause and the units are recorded together. Otherwise another process could send with these units before it
        knows of the pause.
        """

        def close(state: PlaceState, now: float) -> PlaceState:
            return replace(state, closed=now + seconds, reason="") if now + seconds > state.closed else state

        self._paused[place] = max(self._paused.get(place, 0.0), time.monotonic() + seconds)
        self.give_back(place, taken, wants, change=close)

    def close(self) -> None:
        """Close the store."""
        self.store.close()
