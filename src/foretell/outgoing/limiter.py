"""One limiter for all outgoing requests: so many per span, so many units per minute, so many at once, and pauses.

A request takes units of every limit that it falls under before it leaves. Units of a limit with a span count until the
span is over: since the request was sent or, for limits that are `held`, since its answer, because it reached the
service at some moment between the two. So the service never counts more in a span than its limit allows.

The state is in memory for one process, or in a database for all that share it: a file for the processes of one machine,
a server for several machines. Nobody holds a lock while waiting, and units of an ended process count as answered.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

from foretell.questions.clock_jump import ClockReading, jump_text, steady_seconds

log = logging.getLogger(__name__)
T = TypeVar("T")

MARGIN = 1.01
"""Spans are extended slightly because clocks differ."""
UNDER_WAY = inf
"""Answer time of a request that is still under way."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """At most so many units in any span of seconds or, without a span, under way at the same time."""

    what: str
    """Its name; a service may have several limits."""
    most: float
    seconds: float
    held: bool = True
    """Whether a unit counts until a whole span after the answer, instead of after the request was sent."""

    @property
    def span(self) -> float:
        """How long a unit counts."""
        return self.seconds * MARGIN

    def room_for(self, amount: float) -> float:
        """How much may be in use if so many units are to be added; more than the limit is let through alone."""
        return self.most - min(amount, self.most)


Wants = Sequence[tuple[Limit, float]]
"""The limits that a request falls under, and how many units of each it takes."""


@dataclass(frozen=True, kw_only=True)
class PlaceState:
    """The state of a service or provider. Times are seconds since 1970; 0 means never."""

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


class Taken(NamedTuple):
    """Units that a request has taken, or how long it has to wait for them."""

    units: tuple[Any, ...] = ()
    wait: float = 0.0
    """Seconds until it is worth asking again; 0 if the request may leave. Infinite until something is given back."""


Change = Callable[[PlaceState, float], PlaceState]
"""Makes a new state from the old one and the current time."""


class LimitStore(Protocol):
    """Where units and states are kept."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken | Awaitable[Taken]:
        """Take units if the request may leave now. It is over after `longest` seconds, whatever happens.

        `waiting` is the number of requests that wait here for the same.
        """
        ...

    def give_back(
        self, place: str, taken: Taken, wants: Wants, *, free: bool = False, change: Change | None = None
    ) -> None:
        """The request was answered: with these numbers of units, which may differ from those it took.

        With `free` they count no longer at all. `change` is made to the place's state with it.
        """
        ...

    def update(self, place: str, change: Change) -> PlaceState:
        """Change the state of a place."""
        ...

    def states(self) -> dict[str, PlaceState]:
        """The states of all places ever asked."""
        ...

    def close(self) -> None:
        """Close what is open."""
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

    def wait(self, limit: Limit, amount: float, now: float) -> float:
        """Seconds until so many more fit in; infinite until a request is answered."""
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
        # It depends on requests that are under way: their units are free a whole span after their answer.
        return limit.span or inf

    def add(self, limit: Limit, amount: float, now: float) -> _Units:
        """Add units."""
        self.total += amount
        units = _Units(UNDER_WAY if limit.held else now, amount)
        if not limit.held:
            self.dated.append(units)
        return units

    def answer(self, limit: Limit, units: _Units, amount: float, now: float, *, free: bool) -> None:
        """The request was answered, and so many units were counted."""
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
    >>> limits, two = MemoryLimits(clock=lambda: clock[0]), Limit(what="requests", most=2, seconds=10.0)
    >>> [limits.take("a", [(two, 1)], longest=60.0).wait for _ in range(3)]
    [0.0, 0.0, 10.1]
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """Without a clock, time goes on steadily from now on, whatever is done to the machine's clock."""
        began, passed = time.time() - time.monotonic(), time.monotonic
        self.now = clock or (lambda: began + passed())
        self._windows: dict[tuple[str, str], _Window] = {}
        self._states: dict[str, PlaceState] = {}

    def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken:
        """Take units if the request may leave now."""
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
        """The request was answered."""
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
        """The states of all places ever asked."""
        return dict(self._states)

    def close(self) -> None:
        """Do nothing: nothing is open."""


# In a database, for all processes that have it open.


class _Statements(Protocol):
    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...
    def write(self, sql: str, values: Sequence[Any] = ()) -> int: ...
    def now(self) -> float: ...


class LimitDatabase(Protocol):
    """What is needed of a database; `foretell.models.database` has files and servers that fit."""

    shared: bool
    """Whether other machines may have it open."""

    @property
    def life(self) -> Any:
        """The sign of life of this process."""
        ...

    def migrate(self, part: str, scripts: Sequence[str]) -> None:
        """Bring tables up to date."""
        ...

    def together(self, work: Callable[[Any], T], *, alone: str = "") -> T:
        """Run one transaction."""
        ...

    def aside(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run something without blocking the event loop."""
        ...

    def later(self, work: Callable[[], object]) -> None:
        """Run something soon."""
        ...

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        ...

    def now(self) -> float:
        """A clock that all users of the database share."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


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
"""Seconds between checks while other processes have requests under way: on one machine, and on several."""
LATEST = 1.0
"""Longest time between two checks: others may have given back units that they did not use."""
WANTED_SECONDS = 2.0
"""How long it counts that a process waits."""
TURN_SECONDS = 5.0
"""Seconds after which another process takes its turn if there are fewer units than processes."""
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
"""When the newest units began to count that have to end before there is room."""
_WRITE_WAIT = """
INSERT INTO limit_wait VALUES (?, ?, ?, ?)
ON CONFLICT (what, owner) DO UPDATE SET wanted = excluded.wanted, until = excluded.until"""
_NUMBERS = count(1)


def fair_shares(units: int, wanted: Mapping[int, int], turn: int = 0) -> dict[int, int]:
    """Everyone gets what they want, or an equal part of what those who want less leave over.

    >>> fair_shares(10, {1: 2, 2: 30, 3: 5})
    {1: 2, 2: 4, 3: 4}
    """
    shares: dict[int, int] = {}
    first_in_turn = sorted(wanted, key=lambda owner: (wanted[owner], crc32(f"{owner} {turn}".encode())))
    for place, owner in enumerate(first_in_turn):
        left = units - sum(shares.values())
        shares[owner] = min(wanted[owner], left // (len(wanted) - place))
    return dict(sorted(shares.items()))


class _Wish(NamedTuple):
    """A request that wants to leave."""

    place: str
    wants: Wants
    longest: float
    waiting: int


@dataclass(frozen=True)
class _Attempt:
    """How an attempt to take units ended."""

    taken: Taken
    in_the_way: frozenset[int] = field(default_factory=frozenset[int])
    """Processes whose requests under way leave no room."""


class DatabaseLimits:
    """Units and states of all processes that share a database."""

    def __init__(
        self,
        database: LimitDatabase,
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """`steady` is a clock that nobody can set; it reveals changes of the other one. A server has its own clock."""
        database.migrate("limits", LIMIT_TABLES)
        self.database = database
        self._wall = clock
        self._steady = steady or (steady_seconds if clock is time.time else clock)
        self._poll = SHARED_POLL if database.shared else POLL
        self._ahead = database.now() - clock() if database.shared else 0.0
        """Seconds by which a server's clock is ahead of ours."""
        self._told = frozenset[str]()
        """Limits for which it is recorded that requests wait here."""

    def now(self) -> float:
        """Seconds since 1970."""
        return self._wall() + self._ahead

    def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken | Awaitable[Taken]:
        """Take units if the request may leave now."""
        wish = _Wish(place, wants, longest, waiting)
        return self._take_aside(wish) if self.database.shared else self._take(wish)

    async def _take_aside(self, wish: _Wish) -> Taken:
        taking = asyncio.ensure_future(self.database.aside(lambda: self._take(wish)))

        def unused(done: "asyncio.Future[Taken]") -> None:
            if not done.cancelled() and done.exception() is None:
                self.give_back(wish.place, done.result(), wish.wants, free=True)

        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(unused)  # What has begun is completed, and nobody will send the request.
            raise

    def _take(self, wish: _Wish) -> Taken:
        found = self._alone(wish.place, lambda db, now: self._attempt(db, now, wish, frozenset()))
        if found.in_the_way:
            gone = self.database.life.gone(found.in_the_way)
            if ended := frozenset(gone - self.database.life.asleep(gone)):
                found = self._alone(wish.place, lambda db, now: self._attempt(db, now, wish, ended))
        return found.taken

    def _attempt(self, db: _Statements, now: float, wish: _Wish, ended: frozenset[int]) -> _Attempt:
        """Take units, where those of processes that have ended count as answered."""
        me: int = self.database.life.id
        closed = db.read("SELECT closed FROM limit_state WHERE name = ?", (wish.place,))
        wait, in_the_way = max(0.0, closed[0][0] - now) if closed else 0.0, set[int]()
        for limit, amount in wish.wants:
            what, room = f"{wish.place}/{limit.what}", limit.room_for(amount)
            used = self._used(db, what, now - limit.span)
            if used > room:
                _end_overdue(db, what, now, ended)
                used = self._used(db, what, now - limit.span)
            if used > room:
                at: float = db.read(_BLOCKING, (what, room))[0][0]
                # Units whose answer has not come are free a whole span after it at the soonest.
                wait = max(wait, max(limit.span, self._poll) if at == UNDER_WAY else at + limit.span - now)
                if at == UNDER_WAY:
                    rows = db.read("SELECT DISTINCT owner FROM limit_turn WHERE what = ? AND at > ?", (what, now))
                    in_the_way |= {owner for (owner,) in rows} - {me}
            elif not limit.seconds and self._over_share(db, now, what, limit, wish.waiting):
                wait = max(wait, self._poll)
            if not limit.seconds:
                self._note_waiting(db, now, what, wish.waiting + (wait > 0))
        if wait > 0:
            return _Attempt(Taken(wait=wait), frozenset(in_the_way))
        units = tuple(next(_NUMBERS) for _ in wish.wants)
        for number, (limit, amount) in zip(units, wish.wants, strict=True):
            at = UNDER_WAY if limit.held else now
            row = (me, number, f"{wish.place}/{limit.what}", amount, at, now + wish.longest)
            db.write("INSERT INTO limit_turn VALUES (?, ?, ?, ?, ?, ?)", row)
        return _Attempt(Taken(units))

    def _used(self, db: _Statements, what: str, over: float) -> float:
        """Units that count, after those that no longer do are gone."""
        db.write("DELETE FROM limit_turn WHERE what = ? AND at <= ?", (what, over))
        return db.read("SELECT coalesce(sum(amount), 0) FROM limit_turn WHERE what = ?", (what,))[0][0]

    def _over_share(self, db: _Statements, now: float, what: str, limit: Limit, waiting: int) -> bool:
        """Whether others wait for units of which this process has its fair share."""
        me: int = self.database.life.id
        query = "SELECT owner, wanted FROM limit_wait WHERE what = ? AND owner <> ? AND until > ? AND wanted > 0"
        wanted = dict(db.read(query, (what, me, now)))
        if not wanted:
            return False
        rows = db.read("SELECT owner, count(*) FROM limit_turn WHERE what = ? GROUP BY owner", (what,))
        held = {owner: int(number) for owner, number in rows}
        everyone = {owner: held.get(owner, 0) + int(wanted.get(owner, 0)) for owner in {*held, *wanted}}
        everyone[me] = held.get(me, 0) + waiting + 1
        return held.get(me, 0) >= fair_shares(int(limit.most), everyone, int(now / TURN_SECONDS))[me]

    def _note_waiting(self, db: _Statements, now: float, what: str, wanted: int) -> None:
        """Tell other processes how many requests wait here."""
        if wanted:
            db.write(_WRITE_WAIT, (what, self.database.life.id, wanted, now + WANTED_SECONDS))
        elif what in self._told:
            db.write("DELETE FROM limit_wait WHERE what = ? AND owner = ?", (what, self.database.life.id))
        self._told = self._told | {what} if wanted else self._told - {what}

    def give_back(
        self, place: str, taken: Taken, wants: Wants, *, free: bool = False, change: Change | None = None
    ) -> None:
        """The request was answered."""
        if not taken.units and change is None:
            return

        def work(db: _Statements, now: float) -> None:
            me: int = self.database.life.id
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

    def _change(self, db: _Statements, now: float, place: str, change: Change) -> PlaceState:
        rows = db.read(_READ_STATE, (place,))
        before = PlaceState(**dict(zip(_STATE, rows[0], strict=True))) if rows else PlaceState()
        state = change(before, now)
        db.write(_WRITE_STATE, (place, *(getattr(state, name) for name in _STATE)))
        return state

    def states(self) -> dict[str, PlaceState]:
        """The states of all places ever asked."""
        rows = self.database.read(f"SELECT name, {', '.join(_STATE)} FROM limit_state")
        found = {name: PlaceState(**dict(zip(_STATE, values, strict=True))) for name, *values in rows}
        jump = 0.0 if self.database.shared else self._jump(self.database)[1]
        if not jump:
            return found
        # Only shown as it would be: the database may be one that cannot be written to.
        return {name: replace(state, **_shifted(state, jump)) for name, state in found.items()}

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def _alone(self, place: str, work: Callable[[_Statements, float], T]) -> T:
        """Do something in a transaction that no other process has for the same place."""

        def timed(db: _Statements) -> T:
            if self.database.shared:
                return work(db, db.now())
            self._follow_clock(db)
            return work(db, self._wall())

        return self.database.together(timed, alone=f"limits/{place}")

    def _jump(self, db: _Statements | LimitDatabase) -> tuple[ClockReading | None, float]:
        """The clocks when something was last written, and by how much the wall clock was set since."""
        rows = db.read("SELECT wall, steady FROM limit_clock")
        before = ClockReading(*rows[0]) if rows else None
        return before, 0.0 if before is None else before.jump_to(ClockReading(self._wall(), self._steady()))

    def _follow_clock(self, db: _Statements) -> None:
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


def _end_overdue(db: _Statements, what: str, now: float, ended: frozenset[int]) -> None:
    """Requests of processes that have ended, and requests that must be over by now, count as answered."""
    for owner in ended:
        db.write("UPDATE limit_turn SET at = ? WHERE what = ? AND owner = ? AND at > ?", (now, what, owner, now))
    db.write("UPDATE limit_turn SET at = until WHERE what = ? AND at > until AND until < ?", (what, now))


# Waiting for a turn.


class PlaceClosed(Exception):
    """A request would have to wait for longer than its caller does. Nothing was sent."""

    def __init__(self, place: str, wait: float) -> None:
        super().__init__(f"{place} is not asked for {wait:.0f} s")
        self.wait = wait


class Limiter:
    """Admits the requests of one process in the order in which they came, as their limits allow."""

    def __init__(self, store: LimitStore, *, longest: float, patience: float = inf) -> None:
        """`longest` is how long a request takes at most, `patience` how long a caller waits for a turn."""
        self.store = store
        self._longest = longest
        self._patience = patience
        self._local = store if isinstance(store, MemoryLimits) else None
        self._queues: dict[tuple[str, ...], asyncio.Lock] = {}
        self._waiting: dict[str, int] = {}
        """How many requests wait here, by place."""
        self._given_back = asyncio.Event()
        self._paused: dict[str, float] = {}
        """Until when a place is paused, as it was told here: what is written elsewhere may take a moment."""

    async def take(
        self, place: str, wants: Wants, *, look_again: float = inf, spared: Callable[[], bool] | None = None
    ) -> Taken:
        """Wait until a request may leave.

        Args:
            place: The service or provider.
            wants: Its limits. Requests that fall under other limits do not wait for each other.
            look_again: Longest sleep, in seconds, before `spared` is asked again.
            spared: Whether the limits do not apply after all.
        """
        if self._local is not None and not self._waiting.get(place) and place not in self._paused:
            # Every call of a model passes here, so nothing is done that only those who wait need.
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
                    found = self.store.take(place, wants, longest=self._longest, waiting=self._waiting[place] - 1)
                    taken = found if isinstance(found, Taken) else await found
                    if taken.wait <= 0:
                        return taken
                    if self._patience < taken.wait < inf:
                        raise PlaceClosed(place, taken.wait)
                    await self._sleep(min(taken.wait, look_again))
        finally:
            self._waiting[place] -= 1

    async def _sleep(self, seconds: float) -> None:
        """Sleep that long, or until something is given back here."""
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
        """The request was answered; see `LimitStore.give_back`."""
        self.store.give_back(place, taken, wants, free=free, change=change)
        if self._waiting.get(place):
            self._given_back.set()

    def pause(self, place: str, seconds: float, reason: str = "") -> None:
        """The service asked for a pause: nothing leaves for it before that is over."""

        def close(state: PlaceState, now: float) -> PlaceState:
            later = now + seconds > state.closed
            return replace(state, closed=now + seconds, reason=reason) if later else state

        self._paused[place] = max(self._paused.get(place, 0.0), time.monotonic() + seconds)
        self.store.give_back(place, Taken(), (), change=close)

    def close(self) -> None:
        """Close the store."""
        self.store.close()
