"""Rate and concurrency limits of a provider, for one process or for all that share a database."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice
from math import inf
from typing import Any, NamedTuple
from zlib import crc32

from foretell.models.database.interface import Database, Statements, T

# How far ahead a provider is booked: so many requests and tokens in any minute.

WINDOW = 60.0
BURST = 5.0
"""Seconds' worth of the limit that may pass at once."""
HORIZON = 0.5
"""How far ahead turns are booked, in seconds: bookings of a killed process expire soon."""


class RateBooking(NamedTuple):
    """Until when a provider is booked, in seconds."""

    requests: float = 0.0
    tokens: float = 0.0
    closed: float = 0.0
    """No request leaves before this time."""


@dataclass(frozen=True, kw_only=True)
class RateFlow:
    """At most `limit` units in any minute: a burst at once, the rest evenly spaced (GCRA).

    A burst and a minute's refill may fall together, so the refill is slightly slower than the limit. Only a single
    request larger than a burst can exceed the limit, by the difference.
    """

    limit: float | None

    @property
    def room(self) -> float:
        """Units that may pass at once."""
        return max(1.0, self.limit * BURST / WINDOW) if self.limit else inf

    @property
    def rate(self) -> float:
        """Units per second after a burst. Units that pass one by one need no allowance for a burst."""
        limit = self.limit or inf
        return (limit - self.room if 1 < self.room < inf else limit) / WINDOW

    def book(self, booked: float, now: float, amount: float) -> float:
        """Until when it is booked after adding so many units; a negative amount returns them."""
        return max(booked, now) + amount / self.rate if self.limit else booked

    def wait(self, booked: float, now: float) -> float:
        """Seconds until what was booked last may leave."""
        return max(0.0, booked - now - self.room / self.rate) if self.limit else 0.0


class RateGrants(NamedTuple):
    """How long the first in a queue have to wait, and when the rest may ask again."""

    booked: RateBooking
    waits: tuple[float, ...]
    again: float


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """What a provider allows per minute; None for no limit."""

    requests: float | None = None
    tokens: float | None = None

    def book(self, booked: RateBooking, now: float, tokens: float) -> RateBooking:
        """Book one more request of so many tokens."""
        requests = RateFlow(limit=self.requests).book(booked.requests, now, 1)
        return self.give_back(booked._replace(requests=requests), now, -tokens)

    def give_back(self, booked: RateBooking, now: float, tokens: float) -> RateBooking:
        """Return tokens that were booked and not used; a negative number books more."""
        return booked._replace(tokens=RateFlow(limit=self.tokens).book(booked.tokens, now, -tokens))

    def wait(self, booked: RateBooking, now: float) -> float:
        """Seconds until the request that was booked last may leave."""
        requests = RateFlow(limit=self.requests).wait(booked.requests, now)
        tokens = RateFlow(limit=self.tokens).wait(booked.tokens, now)
        return max(0.0, requests, tokens, booked.closed - now)

    def grant(self, booked: RateBooking, now: float, waiting: Sequence[int]) -> RateGrants:
        """Book turns in order for the waiting requests (by tokens) that can leave before the horizon.

        A request larger than a whole burst could never do so: it is admitted when it is first in the queue.
        """
        waits: list[float] = []
        for amount in waiting:
            further = self.book(booked, now, amount)
            own, ahead = self.wait(further, now), self.wait(booked, now)
            if own > HORIZON and (ahead > 0 or amount <= RateFlow(limit=self.tokens).room):
                return RateGrants(booked, tuple(waits), own - HORIZON)
            booked = further
            waits.append(own)
        return RateGrants(booked, tuple(waits), 0.0)


class LocalRateLimiter:
    """The rate limit within one process."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._unlimited = limits == RateLimits()
        self._booked = RateBooking()

    async def turn(self, tokens: int) -> None:
        """Wait until a request of about so many tokens may leave, and for any pause that begins meanwhile."""
        now = time.monotonic()
        if self._unlimited:
            wait = self._booked.closed - now
        else:
            self._booked = self._limits.book(self._booked, now, tokens)
            wait = self._limits.wait(self._booked, now)
        while wait > 0:
            await asyncio.sleep(wait)
            wait = self._booked.closed - time.monotonic()

    def used(self, estimate: int, actual: int) -> None:
        """Correct the estimate: return what was not needed."""
        if self._limits.tokens is not None:
            self._booked = self._limits.give_back(self._booked, time.monotonic(), estimate - actual)

    def hold(self, seconds: float) -> None:
        """The provider asked for a pause: nothing leaves before it is over."""
        self._booked = self._booked._replace(closed=max(self._booked.closed, time.monotonic() + seconds))


# A pace that all processes with one database keep together: one row per provider says how far ahead it is booked.

BATCH = 200
SOONEST, LATEST = 0.02, 1.0
"""Seconds before asking again: others may have returned what they did not use."""
_READ_BOOKING = "SELECT requests, tokens, closed, written FROM pace WHERE place = ?"
_WRITE_BOOKING = """
INSERT INTO pace VALUES (?, ?, ?, ?, ?) ON CONFLICT (place) DO UPDATE
SET requests = excluded.requests, tokens = excluded.tokens, closed = excluded.closed, written = excluded.written"""


class SharedRateLimiter:
    """Requests turns for everyone waiting in this process, with one statement for all."""

    def __init__(self, database: Database, place: str, limits: RateLimits) -> None:
        self._db = database
        self._place = place
        self._limits = limits
        self._queue: deque[tuple[int, asyncio.Future[float]]] = deque()
        self._asking: asyncio.Task[None] | None = None
        self._unused = 0.0
        self._given_back = asyncio.Event()
        self._closed_until = 0.0

    async def turn(self, tokens: int) -> None:
        """Wait until a request of about so many tokens may leave."""
        turn: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._queue.append((tokens, turn))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        wait = await turn
        if wait > 0:
            await asyncio.sleep(wait)
        while (closed := self._closed_until - time.monotonic()) > 0:
            await asyncio.sleep(closed)

    def used(self, estimate: int, actual: int) -> None:
        """Correct the estimate; sent with the next request for turns."""
        self._unused += estimate - actual
        self._given_back.set()

    def hold(self, seconds: float) -> None:
        """Pause everyone: here at once, elsewhere when they next ask for a turn."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)

        def close(booked: RateBooking, now: float) -> tuple[RateBooking, None]:
            return booked._replace(closed=max(booked.closed, now + seconds)), None

        self._db.later(lambda: self._alone(close))

    async def _ask(self) -> None:
        try:
            while self._queue:
                while self._queue and self._queue[0][1].done():  # Whoever was cancelled needs no turn.
                    self._queue.popleft()
                waiting = [tokens for tokens, _ in islice(self._queue, BATCH)]
                unused, self._unused = self._unused, 0.0
                self._given_back.clear()
                granted = await self._db.aside(self._take, waiting, unused)
                for wait in granted.waits:
                    turn = self._queue.popleft()[1]
                    if not turn.done():
                        turn.set_result(wait)
                if self._queue and granted.again > 0:
                    await asyncio.sleep(SOONEST)
                    await _wait_for(self._given_back, min(LATEST, granted.again) - SOONEST)
        except Exception as error:
            _fail_all((turn for _, turn in self._queue), error)
            self._queue.clear()

    def _take(self, waiting: Sequence[int], unused: float) -> RateGrants:
        def take(booked: RateBooking, now: float) -> tuple[RateBooking, RateGrants]:
            if unused:
                booked = self._limits.give_back(booked, now, unused)
            granted = self._limits.grant(booked, now, waiting)
            return granted.booked, granted

        return self._alone(take)

    def _alone(self, change: Callable[[RateBooking, float], tuple[RateBooking, T]]) -> T:
        """Change the provider's row in an exclusive transaction."""

        def work(statements: Statements) -> T:
            rows, now = statements.read(_READ_BOOKING, (self._place,)), statements.now()
            booked = RateBooking()
            if rows:
                *times, written = rows[0]
                # Where the clock has gone back (a restart, a server's clock), all is as far ahead as it was then.
                booked = RateBooking(*(time + min(0.0, now - written) for time in times))
            booked, result = change(booked, now)
            statements.write(_WRITE_BOOKING, (self._place, *booked, now))
            return result

        return self._db.together(work, alone=f"pace/{self._place}")


RateLimiter = LocalRateLimiter | SharedRateLimiter


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait that long, or until the event."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()


def _fail_all(futures: Iterable[asyncio.Future[Any]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)


# So many calls at once over all processes with one database: each holds a lease, which ends with the process.

LEASE_INTERVAL = 0.5
"""Seconds between checks of what other processes want, while slots are held."""
RETRY_INTERVAL = 0.1
"""Seconds before asking again for slots that others have to return first."""
TURN_SECONDS = 5.0
"""Seconds after which another process takes its turn if there are fewer slots than processes."""
DEMAND_DECAY = 0.9
"""How much of an earlier peak is still requested at the next check: calls come and go."""
LONGEST_CALL = 300.0
"""Seconds after which a silent call counts as over, if nothing else is specified."""
_READ_LEASES = "SELECT owner, part, held, wanted, until FROM lease WHERE place = ?"
_WRITE_LEASE = """
INSERT INTO lease (place, owner, part, held, wanted, until) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (place, owner, part)
DO UPDATE SET held = excluded.held, wanted = excluded.wanted, until = excluded.until"""
_DELETE_LEASE = "DELETE FROM lease WHERE place = ? AND owner = ? AND part = ?"
_PARTS = count(1)
SlotHolder = tuple[int, int]
"""A process and one of its semaphores."""


def fair_shares(slots: int, wanted: Mapping[SlotHolder, int], turn: int = 0) -> dict[SlotHolder, int]:
    """Everyone gets what they want, or an equal part of what those who want less leave over.

    >>> fair_shares(10, {(1, 1): 2, (2, 1): 30, (3, 1): 5})
    {(1, 1): 2, (2, 1): 4, (3, 1): 4}
    """
    shares: dict[SlotHolder, int] = {}
    first_in_turn = sorted(wanted, key=lambda owner: (wanted[owner], crc32(f"{owner} {turn}".encode())))
    for place, owner in enumerate(first_in_turn):
        left = slots - sum(shares.values())
        shares[owner] = min(wanted[owner], left // (len(wanted) - place))
    return dict(sorted(shares.items()))


class SharedConcurrency:
    """A semaphore over many processes. Live processes never hold more than `slots` in total.

    Slots are leased in bulk and reused at once by whoever waits here; every half second, and when somebody waits, the
    leases are redistributed so that nobody starves. Slots of a stopped process count until the calls it has sent are
    over, because the provider goes on with them. For one event loop.
    """

    def __init__(self, database: Database, place: str, slots: int, *, seconds: float = LONGEST_CALL) -> None:
        """`seconds` is the longest a call may take without a sign from the other side."""
        self._db = database
        self._seconds = seconds
        self._place = place
        self._slots = slots
        self._part = next(_PARTS)
        self._used = 0
        self._allowed = 0
        self._term = -1
        """Term of the last settlement: our slots are void if others may have considered us dead since."""
        self._peak = 0.0
        self._settling = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._wanted = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Wait for a slot."""
        if not self._waiting and self._free:
            self._used += 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        self._wanted.set()
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep())
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                await self.__aexit__()
            raise

    async def __aexit__(self, *problem: object) -> None:
        """Return the slot."""
        self._used -= 1
        self._hand_out()

    @property
    def _free(self) -> bool:
        # While the leases are settled nothing is handed out: what is in use then is what we have told.
        return not self._settling and self._used < self._allowed and self._db.life.holds(self._term)

    def _hand_out(self) -> None:
        while self._waiting and self._free:
            slot = self._waiting.popleft()
            if not slot.done():
                self._used += 1
                slot.set_result(None)

    async def _keep(self) -> None:
        try:
            while await self._settled() or self._used or self._waiting:
                self._wanted.clear()
                if self._waiting:
                    await asyncio.sleep(RETRY_INTERVAL)
                else:
                    await _wait_for(self._wanted, LEASE_INTERVAL)
        except Exception as error:
            _fail_all(self._waiting, error)
            self._waiting.clear()

    async def _settled(self) -> int:
        """Settle the leases and return the number of slots that are now ours."""
        self._settling = True
        try:
            now = self._used + sum(not slot.done() for slot in self._waiting)
            self._peak = max(now, DEMAND_DECAY * self._peak) if now else 0.0
            held, self._allowed, self._term = await self._db.aside(self._settle, self._used, round(self._peak))
        finally:
            self._settling = False
        self._hand_out()
        return held

    def _settle(self, used: int, wanted: int) -> tuple[int, int, int]:
        """How many slots we hold from now on, how many of them we may use, and the term."""
        term = self._db.life.term
        me = (self._db.life.id, self._part)
        gone = self._db.life.gone({owner for owner, *_ in self._db.read(_READ_LEASES, (self._place,))})
        asleep = self._db.life.asleep(gone)

        def work(statements: Statements) -> tuple[int, int]:
            now = statements.now()
            rows = {(owner, part): rest for owner, part, *rest in statements.read(_READ_LEASES, (self._place,))}
            for holder in [holder for holder in rows if holder[0] in gone]:
                if holder[0] in asleep and rows[holder][2] > now:
                    continue
                statements.write(_DELETE_LEASE, (self._place, *holder))
                del rows[holder]
            rows.pop(me, None)
            # One who sleeps wants no more than it has.
            wants = {holder: held if holder[0] in gone else max(held, want) for holder, (held, want, _) in rows.items()}
            share = fair_shares(self._slots, wants | {me: wanted}, int(now / TURN_SECONDS))[me]
            left = self._slots - sum(held for held, *_ in rows.values())
            held = max(used, min(share, left))
            if held or wanted:
                statements.write(_WRITE_LEASE, (self._place, *me, held, wanted, now + self._seconds))
            else:
                statements.write(_DELETE_LEASE, (self._place, *me))
            # One who comes back and finds that others have its slots hands out none until they are given back.
            return held, max(0, min(share, left))

        held, allowed = self._db.together(work, alone=f"slots/{self._place}")
        return held, allowed, term
