"""Whatever was paid for or fetched is kept before it is used: content-addressed, in an SQLite file or in PostgreSQL.

A run that is killed and started again finds every answer it had received. What was on the wire at that moment is sent
again and counted as maybe paid. Several processes may share a journal: what one of them is asking no other asks.
"""

import asyncio
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from foretell.llm import journal_tables as sql
from foretell.llm.canonical import canonical
from foretell.llm.cost import Spend
from foretell.llm.database.opening import is_address, open_database
from foretell.llm.database.port import Database
from foretell.llm.failures import AskedElsewhere, NotInJournal, ReplyLost
from foretell.llm.message import Tokens
from foretell.questions.problems import InputError

T = TypeVar("T")
Mode = Literal["live", "replay"]
Flight = tuple[asyncio.AbstractEventLoop, str]

FIRST_LOOK, LONGEST_LOOK = 0.02, 0.5
"""Seconds between two looks whether another process has been answered."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What an entry answers, in words for a person."""

    key: str
    kind: str
    model: str = ""
    slot: str = ""

    def __str__(self) -> str:
        """For error messages: never the text of the request, which may be long."""
        return " ".join(filter(None, [self.kind, self.model, self.slot and f"slot {self.slot}", f"({self.key[:12]})"]))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is kept: the bytes, and for a model what they cost."""

    body: bytes
    tokens: Tokens = field(default_factory=Tokens)
    dollars: float | None = None


class Journal:
    """Answers by what was asked. `live` asks and keeps what it does not know; `replay` never asks.

    >>> from foretell.llm.canonical import content_key
    >>> async def two_readings(journal):
    ...     async def fetch():
    ...         return b"42"
    ...     return [await journal.once(content_key("6 × 7"), "tool", fetch) for _ in range(2)]
    >>> journal = Journal(":memory:")
    >>> asyncio.run(two_readings(journal)), journal.sends()
    ([b'42', b'42'], 1)
    >>> journal.close()
    """

    def __init__(self, path: str | Path, *, mode: Mode = "live", durable: bool = True) -> None:
        """A file, or the address of a PostgreSQL database.

        With `durable` a kept answer survives a power cut before anyone sees it, without it only a killed process.
        """
        if mode == "replay" and not is_address(path) and not Path(path).is_file():
            raise InputError("there is no journal to replay", path=path)
        self.mode: Mode = mode
        self._lock = threading.Lock()
        self._flying: dict[Flight, asyncio.Future[Any]] = {}
        self._sending: Counter[str] = Counter()
        self._db = open_database(path, "journal", durable=durable and mode == "live")
        self.path = self._db.place
        self._open()

    def _open(self) -> None:
        try:
            if self.mode == "live" or self._db.shared:
                self._db.migrate("journal", sql.MIGRATIONS)
            self._db.read("SELECT sends FROM sent, kept LIMIT 1")
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InputError(f"this is no journal: {error}", path=self.path) from None

    @property
    def database(self) -> Database:
        """Where it is kept; limits that processes share are kept there too."""
        return self._db

    def close(self) -> None:
        """Let go of it."""
        self._db.close()

    def find(self, key: str) -> bytes | None:
        """The kept answer, if there is one."""
        rows = self._db.read("SELECT answer FROM kept WHERE key = ?", (bytes.fromhex(key),))
        return rows[0][0] if rows else None

    def intend(self, asked: Asked) -> bool:
        """Write down that a request is about to be sent. One of which nothing more is heard counts as maybe paid.

        False where somebody else is at it: then it must not be sent.
        """
        key, me = bytes.fromhex(asked.key), self._db.life.id
        with self._lock:
            self._sending[asked.key] += 1
        if self._db.write(sql.INTEND, (key, me, sql.NOBODY)) or self._take_over(asked, key, me):
            return True
        self._landed(asked.key)
        return False

    def _take_over(self, asked: Asked, key: bytes, me: int) -> bool:
        """Whether it is ours to send, although it was somebody's."""
        ((kept, owner),) = self._db.read(sql.LOOK, (key, key))
        if kept is not None or owner is None or self._held(asked, owner, by_us=1):
            return False
        return owner == me or bool(self._db.write(sql.INTEND, (key, me, owner)))

    def keep(self, asked: Asked, answer: Answer) -> bytes:
        """Keep an answer and return what is kept: the first one, should another process have been quicker."""
        tokens = answer.tokens
        row = (bytes.fromhex(asked.key), asked.kind, asked.model, asked.slot)
        cost = (tokens.input, tokens.output, tokens.cached, answer.dollars)
        added = self._db.write(sql.KEEP, (*row, *cost, answer.body))
        self._landed(asked.key)
        return answer.body if added else self.find(asked.key) or answer.body

    def give_up(self, asked: Asked, *, billed: bool) -> None:
        """The send ended without an answer. One that was surely not billed no longer counts as maybe paid."""
        key, me = bytes.fromhex(asked.key), self._db.life.id
        self._db.write(sql.GIVE_UP, (0 if billed else 1, key, me))
        self._landed(asked.key)

    def _landed(self, key: str) -> None:
        """One send less under way; a long run must not remember every key it ever sent."""
        with self._lock:
            self._sending[key] -= 1
            if self._sending[key] <= 0:
                del self._sending[key]

    async def once(self, key: str, kind: str, produce: Callable[[], Awaitable[bytes]]) -> bytes:
        """The kept bytes for `key`, or those `produce` makes, kept before they are returned."""
        asked = Asked(key=key, kind=kind)
        return await self.share(asked, lambda: self.record(asked, lambda: _answered(produce)), read=bytes)

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        """Like `once`, for values that JSON can hold; they come back as JSON gives them the first time as well."""

        async def written() -> bytes:
            return canonical(await produce())

        return json.loads(await self.once(key, kind, written))

    async def share(self, asked: Asked, produce: Callable[[], Awaitable[T]], *, read: Callable[[bytes], T]) -> T:
        """The kept answer as `read` understands it, that of an equal request on its way, or what `produce` returns."""
        flight = (asyncio.get_running_loop(), asked.key)
        while (kept := await self._found(asked, flight)) is None:
            ahead = self._flying.get(flight)
            if ahead is None:
                try:
                    return await self._lead(flight, asked, produce)
                except AskedElsewhere:
                    continue
            await asyncio.wait([ahead])
            if not ahead.cancelled() and not isinstance(ahead.exception(), AskedElsewhere):
                return ahead.result()
        return read(kept)

    async def _found(self, asked: Asked, flight: Flight) -> bytes | None:
        """The kept answer; while another process asks for it, wait for its answer or until it gave up or is gone."""
        if self.mode == "replay":
            return await self._db.aside(self.find, asked.key)
        pause = FIRST_LOOK
        while True:
            kept, held = await self._db.aside(self._look, asked)
            if kept is not None or not held or flight in self._flying:
                return kept
            await asyncio.sleep(pause)
            pause = min(LONGEST_LOOK, 1.5 * pause)

    def _look(self, asked: Asked) -> tuple[bytes | None, bool]:
        """The kept answer, and whether somebody is asking for it."""
        key = bytes.fromhex(asked.key)
        ((kept, owner),) = self._db.read(sql.LOOK, (key, key))
        return kept, kept is None and owner is not None and self._held(asked, owner)

    def _held(self, asked: Asked, owner: int, *, by_us: int = 0) -> bool:
        """Whether somebody is asking, besides so many of us.

        What is ours and not on its way was written by a statement of which we never heard that it went through.
        """
        life = self._db.life
        return self._sending[asked.key] > by_us if owner == life.id else life.alive(owner)

    async def _lead(self, flight: Flight, asked: Asked, produce: Callable[[], Awaitable[T]]) -> T:
        if self.mode == "replay":
            hint = "a replay only repeats what was asked before; run it live to ask and pay"
            raise NotInJournal(f"no answer is kept for {asked}", path=self.path, hint=hint)
        landed = self._flying[flight] = flight[0].create_future()
        try:
            answer = await produce()
        except Exception as error:
            landed.set_exception(error)
            landed.exception()  # Nobody may be waiting; asyncio must not complain about that.
            raise
        else:
            landed.set_result(answer)
            return answer
        finally:
            landed.cancel()  # Only has an effect when we were cancelled: whoever waits then asks by itself.
            del self._flying[flight]

    async def record(self, asked: Asked, send: Callable[[], Awaitable[Answer]]) -> bytes:
        """Intent, send, keep, return: in this order. `AskedElsewhere` where another process is at it."""
        if not await self._db.aside(self.intend, asked):
            raise AskedElsewhere(f"another process asks for {asked}")
        try:
            answer = await send()
        except ReplyLost:
            await self._db.aside(self.give_up, asked, billed=True)
            raise
        except Exception:
            await self._db.aside(self.give_up, asked, billed=False)
            raise
        except BaseException:  # Cancelled, perhaps by a time limit: the provider may have finished its work.
            self._db.later(lambda: self.give_up(asked, billed=True))
            raise
        kept = await self._db.aside(self.keep, asked, answer)
        await self._db.settled()
        return kept

    def maybe_paid(self) -> int:
        """Sends without a known outcome (on the wire at a crash, out of time, cut off), but for those under way."""
        rows = self._db.read(sql.UNSURE)
        owners = {owner for _, owner in rows if owner is not None}
        alive = owners - self._db.life.gone(owners) if owners else owners
        return sum(unsure - (owner in alive) for unsure, owner in rows)

    def sends(self) -> int:
        """Requests sent, answered or not."""
        return int(self._db.read("SELECT coalesce(sum(sends), 0) FROM sent")[0][0])

    def spent(self) -> dict[str, Spend]:
        """By model: replies, tokens and dollars."""
        return {
            model: Spend(
                calls=calls,
                tokens=Tokens(input=int(read), output=int(written), cached=int(cached)),
                dollars=dollars,
                unpriced=unpriced,
            )
            for model, calls, read, written, cached, dollars, unpriced in self._db.read(sql.SPENT)
        }

    def kept_keys(self) -> frozenset[str]:
        """Everything that is answered."""
        return frozenset(key.hex() for (key,) in self._db.read("SELECT key FROM kept"))


async def _answered(produce: Callable[[], Awaitable[bytes]]) -> Answer:
    return Answer(body=await produce())
