"""Whatever was paid for or fetched is kept before it is used: content-addressed, in one SQLite file.

A run that is killed and started again finds every answer it had received. What was on the wire at that moment is sent
again and counted as maybe paid. Several processes may share the file.
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

from foretell.llm.canonical import canonical
from foretell.llm.cost import Spend
from foretell.llm.failures import NotInJournal, ReplyLost
from foretell.llm.flush import Flush
from foretell.llm.message import Tokens
from foretell.llm.wal import use_wal
from foretell.questions.problems import InputError

T = TypeVar("T")
Mode = Literal["live", "replay"]
Flight = tuple[asyncio.AbstractEventLoop, str]

# Two tables, each written once per call: a row that is added small and grows later costs SQLite a rebalanced page.
_TABLES = """
CREATE TABLE IF NOT EXISTS sent (
    key BLOB PRIMARY KEY, sends INTEGER NOT NULL, unbilled INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kept (
    key BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL, slot TEXT NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, dollars REAL, answer BLOB NOT NULL
);"""
_INTEND = "INSERT INTO sent (key, sends) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET sends = sends + 1"
_KEEP = "INSERT OR IGNORE INTO kept VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SPENT = """
SELECT model, count(*), sum(input), sum(output), sum(cached), total(dollars), sum(dollars IS NULL)
FROM kept WHERE kind = 'model' GROUP BY model ORDER BY model"""
_UNSURE = """
SELECT sent.key, sends - unbilled - (kept.key IS NOT NULL) AS unsure
FROM sent LEFT JOIN kept ON kept.key = sent.key WHERE unsure > 0"""


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
        """With `durable` a kept answer survives a power cut before anyone sees it, without it only a killed process."""
        if mode == "replay" and not Path(path).is_file():
            raise InputError("there is no journal to replay", path=path)
        self.path = path
        self.mode: Mode = mode
        self._lock = threading.Lock()
        self._flying: dict[Flight, asyncio.Future[Any]] = {}
        self._sending: Counter[str] = Counter()
        # DBOS and others may run the loop in a thread of their own: the lock, not SQLite, keeps threads apart.
        self._db = sqlite3.connect(path, isolation_level=None, timeout=60.0, check_same_thread=False)
        self._open()
        on_disk = durable and mode == "live" and str(path) != ":memory:"
        self._flush = Flush(Path(f"{path}-wal")) if on_disk else None

    def _open(self) -> None:
        try:
            use_wal(self._db)
            # A commit writes at once, which a killed process survives; `record` waits for the disk, off the loop.
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA wal_autocheckpoint = 4000")
            if self.mode == "live":
                self._db.executescript(_TABLES)
            self._db.execute("SELECT sends FROM sent, kept LIMIT 1").fetchall()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InputError(f"this is no journal: {error}", path=self.path) from None

    def close(self) -> None:
        """Close the file."""
        if self._flush is not None:
            self._flush.close()
        self._db.close()

    def find(self, key: str) -> bytes | None:
        """The kept answer, if there is one."""
        with self._lock:
            row = self._db.execute("SELECT answer FROM kept WHERE key = ?", (bytes.fromhex(key),)).fetchone()
        return None if row is None else row[0]

    def intend(self, asked: Asked) -> None:
        """Write down that a request is about to be sent. One of which nothing more is heard counts as maybe paid."""
        with self._lock:
            self._db.execute(_INTEND, (bytes.fromhex(asked.key),))
        self._sending[asked.key] += 1

    def keep(self, asked: Asked, answer: Answer) -> bytes:
        """Keep an answer and return what is kept: the first one, should another process have been quicker."""
        tokens = answer.tokens
        row = (bytes.fromhex(asked.key), asked.kind, asked.model, asked.slot)
        with self._lock:
            cost = (tokens.input, tokens.output, tokens.cached, answer.dollars)
            added = self._db.execute(_KEEP, (*row, *cost, answer.body)).rowcount
        self._landed(asked.key)
        return answer.body if added else self.find(asked.key) or answer.body

    def give_up(self, asked: Asked, *, billed: bool) -> None:
        """The send ended without an answer. One that was surely not billed no longer counts as maybe paid."""
        self._landed(asked.key)
        if not billed:
            with self._lock:
                self._db.execute("UPDATE sent SET unbilled = unbilled + 1 WHERE key = ?", (bytes.fromhex(asked.key),))

    def _landed(self, key: str) -> None:
        """One send less under way; a long run must not remember every key it ever sent."""
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
        while (kept := self.find(asked.key)) is None:
            ahead = self._flying.get(flight)
            if ahead is None:
                return await self._lead(flight, asked, produce)
            await asyncio.wait([ahead])
            if not ahead.cancelled():
                return ahead.result()
        return read(kept)

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
        """Intent, send, keep, return: in this order."""
        self.intend(asked)
        try:
            answer = await send()
        except ReplyLost:
            self.give_up(asked, billed=True)
            raise
        except Exception:
            self.give_up(asked, billed=False)
            raise
        except BaseException:  # Cancelled, perhaps by a time limit: the provider may have finished its work.
            self.give_up(asked, billed=True)
            raise
        kept = self.keep(asked, answer)
        if self._flush is not None:
            await self._flush.settled()
        return kept

    def maybe_paid(self) -> int:
        """Sends without a known outcome (on the wire at a crash, out of time, cut off), but for those under way."""
        with self._lock:
            rows = self._db.execute(_UNSURE).fetchall()
        return sum(unsure - self._sending[key.hex()] for key, unsure in rows)

    def sends(self) -> int:
        """Requests sent, answered or not."""
        with self._lock:
            return self._db.execute("SELECT coalesce(sum(sends), 0) FROM sent").fetchone()[0]

    def spent(self) -> dict[str, Spend]:
        """By model: replies, tokens and dollars."""
        with self._lock:
            rows = self._db.execute(_SPENT).fetchall()
        return {
            model: Spend(
                calls=calls,
                tokens=Tokens(input=read, output=written, cached=cached),
                dollars=dollars,
                unpriced=unpriced,
            )
            for model, calls, read, written, cached, dollars, unpriced in rows
        }

    def kept_keys(self) -> frozenset[str]:
        """Everything that is answered."""
        with self._lock:
            return frozenset(key.hex() for (key,) in self._db.execute("SELECT key FROM kept"))


async def _answered(produce: Callable[[], Awaitable[bytes]]) -> Answer:
    return Answer(body=await produce())
