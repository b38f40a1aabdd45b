"""A pace that all processes with one database keep together: one row per provider says how far ahead it is booked."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import NamedTuple

from foretell.llm.database.port import Database, Statements, T
from foretell.llm.pace import BURST, WINDOW

HORIZON = 0.5
"""Seconds ahead that turns are booked: what a process books and never uses, because it is killed, is soon over."""
BATCH = 200
SOONEST, LATEST = 0.02, 1.0
"""Seconds before asking again: others may have given back what they did not use."""
_READ = "SELECT requests, tokens, closed FROM pace WHERE place = ?"
_WRITE = """
INSERT INTO pace VALUES (?, ?, ?, ?) ON CONFLICT (place) DO UPDATE
SET requests = excluded.requests, tokens = excluded.tokens, closed = excluded.closed"""


class Booked(NamedTuple):
    """Up to when a provider is booked, in seconds since 1970."""

    requests: float = 0.0
    tokens: float = 0.0
    closed: float = 0.0
    """Nobody leaves before."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """At most `limit` units in any minute, as `Bucket` has it: a burst at once, the rest at even distances (GCRA).

    >>> flow = Flow(limit=60)
    >>> booked = 0.0
    >>> for _ in range(6): booked = flow.book(booked, 0.0, 1)
    >>> round(flow.wait(booked, 0.0), 2)
    1.09
    """

    limit: float | None

    @property
    def room(self) -> float:
        """Units that may pass at once."""
        return max(1.0, self.limit * BURST / WINDOW) if self.limit else inf

    @property
    def rate(self) -> float:
        """Units in a second, after a burst."""
        limit = self.limit or inf
        return (limit - self.room if 1 < self.room < inf else limit) / WINDOW

    def book(self, booked: float, now: float, amount: float) -> float:
        """Up to when it is booked with so many units more; a negative amount gives them back."""
        return max(booked, now) + amount / self.rate if self.limit else booked

    def wait(self, booked: float, now: float) -> float:
        """Seconds before what was booked last may leave."""
        return max(0.0, booked - now - self.room / self.rate) if self.limit else 0.0


@dataclass(frozen=True, kw_only=True)
class Grants:
    """How long those at the head of a queue have to wait, and when the next of it may ask again."""

    booked: Booked
    waits: tuple[float, ...]
    again: float


def grant(booked: Booked, now: float, waiting: Sequence[int], requests: Flow, tokens: Flow) -> Grants:
    """Book turns, in order, for those of the waiting (with so many tokens each) who leave before the horizon.

    One that is larger than a whole burst would never do so: it is let in when nobody is ahead of it.
    """

    def wait(now_booked: Booked) -> float:
        speeds = requests.wait(now_booked.requests, now), tokens.wait(now_booked.tokens, now)
        return max(0.0, *speeds, now_booked.closed - now)

    waits: list[float] = []
    for amount in waiting:
        further = booked._replace(
            requests=requests.book(booked.requests, now, 1), tokens=tokens.book(booked.tokens, now, amount)
        )
        own, ahead = wait(further), wait(booked)
        if own > HORIZON and (ahead > 0 or amount <= tokens.room):
            return Grants(booked=booked, waits=tuple(waits), again=own - HORIZON)
        booked = further
        waits.append(own)
    return Grants(booked=booked, waits=tuple(waits), again=0.0)


def _closed(booked: Booked, until: float) -> Booked:
    return booked._replace(closed=max(booked.closed, until))


class SharedPace:
    """Asks for turns on behalf of everybody in this process who waits for one: one statement for all of them."""

    def __init__(
        self, database: Database, place: str, *, requests: float | None = None, tokens: float | None = None
    ) -> None:
        """Limits per minute; None for none."""
        self._db = database
        self._place = place
        self._requests = Flow(limit=requests)
        self._tokens = Flow(limit=tokens)
        self._queue: deque[tuple[int, asyncio.Future[float]]] = deque()
        self._asking: asyncio.Task[None] | None = None
        self._back = 0.0
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
        """Told with the next request for turns."""
        self._back += estimate - actual
        self._given_back.set()

    def hold(self, seconds: float) -> None:
        """Pause everybody, here at once and elsewhere when they ask for their next turn."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)
        self._db.later(lambda: self._alone(lambda booked, now: (_closed(booked, now + seconds), None)))

    async def _ask(self) -> None:
        try:
            while self._queue:
                while self._queue and self._queue[0][1].done():  # Whoever was cancelled needs no turn.
                    self._queue.popleft()
                waiting = [tokens for tokens, _ in islice(self._queue, BATCH)]
                back, self._back = self._back, 0.0
                self._given_back.clear()
                found = await self._db.aside(self._take, waiting, back)
                for wait in found.waits:
                    turn = self._queue.popleft()[1]
                    if not turn.done():
                        turn.set_result(wait)
                if self._queue and found.again > 0:
                    await self._until(min(LATEST, found.again))
        except Exception as error:
            for _, turn in self._queue:
                if not turn.done():
                    turn.set_exception(error)
            self._queue.clear()

    async def _until(self, seconds: float) -> None:
        """That long, or until something was given back."""
        await asyncio.sleep(SOONEST)
        try:
            async with asyncio.timeout(max(0.0, seconds - SOONEST)):
                await self._given_back.wait()
        except TimeoutError:
            return

    def _take(self, waiting: Sequence[int], back: float) -> Grants:
        def take(booked: Booked, now: float) -> tuple[Booked, Grants]:
            given = booked._replace(tokens=self._tokens.book(booked.tokens, now, -back)) if back else booked
            found = grant(given, now, waiting, self._requests, self._tokens)
            return found.booked, found

        return self._alone(take)

    def _alone(self, change: Callable[[Booked, float], tuple[Booked, T]]) -> T:
        """Change the provider's row while nobody else does."""

        def work(statements: Statements) -> T:
            found = statements.read(_READ, (self._place,))
            booked, told = change(Booked(*found[0]) if found else Booked(), statements.now())
            statements.write(_WRITE, (self._place, *booked))
            return told

        return self._db.together(work, alone=f"pace/{self._place}")
