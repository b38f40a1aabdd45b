"""The journal stores every paid or fetched answer before it is used, in an SQLite file or in PostgreSQL.

Entries are content-addressed. A run that is killed and restarted finds every answer it had received. Requests that were
in flight are sent again, and the ledger counts them as lost. Several processes may share a journal and never send the
same request at the same time.
"""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeVar

from foretell.models.canonical import canonical_json, content_key, pack_reply, request_key, unpack_reply
from foretell.models.database import is_database_url, open_database
from foretell.models.database.interface import Database, SqlRow, Statements
from foretell.models.ledger import ACCOUNTS_OF_RUNS, LEDGER_TABLES, Ledger, charged_reply
from foretell.models.model import (
    BudgetExceeded,
    ContextTooLong,
    KeyRefused,
    Model,
    ModelError,
    ModelRefused,
    NotInJournal,
    OutOfCredit,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    RequestInFlight,
    ReservationReleased,
    TokenCount,
)
from foretell.models.prices import PriceList
from foretell.models.reservation import LosableReservation
from foretell.models.waiting import NotSent, check_sending, sending_while
from foretell.questions.errors import InputError, NoRoom
from foretell.questions.forecast import Cost

# Tables and queries of the journal, in SQL that both SQLite and PostgreSQL accept.

JOURNAL_TABLES = (
    # Two tables, each written once per call: growing a small row later would make SQLite rebalance a page.
    """
    CREATE TABLE IF NOT EXISTS sent (
        key BLOB PRIMARY KEY, sends INTEGER NOT NULL, unbilled INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS kept (
        key BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL, slot TEXT NOT NULL,
        input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, dollars REAL, answer BLOB NOT NULL
    );
    """,
    "ALTER TABLE sent ADD COLUMN owner INTEGER;",
    # Rate limits, leases of concurrent calls, and spending of runs, shared by all processes.
    """
    CREATE TABLE pace (place TEXT PRIMARY KEY, requests REAL NOT NULL, tokens REAL NOT NULL, closed REAL NOT NULL);
    CREATE TABLE lease (
        place TEXT NOT NULL, owner INTEGER NOT NULL, part INTEGER NOT NULL, held INTEGER NOT NULL,
        wanted INTEGER NOT NULL, PRIMARY KEY (place, owner, part)
    );
    CREATE TABLE drawn (run TEXT PRIMARY KEY, dollars REAL NOT NULL);
    """,
    # Who pays for a send and how much it may cost, so that a killed run knows what may have been billed.
    "ALTER TABLE sent ADD COLUMN run TEXT; ALTER TABLE sent ADD COLUMN dollars REAL;",
    # A checksum of every entry; older entries have none. Bookings are per minute, by the clock of the database.
    """
    ALTER TABLE kept ADD COLUMN checksum BLOB;
    DELETE FROM pace;
    ALTER TABLE pace ADD COLUMN written REAL NOT NULL DEFAULT 0;
    """,
    # The time until which sent calls may be in flight, by the clock of the database.
    "ALTER TABLE lease ADD COLUMN until REAL NOT NULL DEFAULT 0;",
    # What each process has drawn from the budget of a run, so that the share of a killed process is known.
    """
    CREATE TABLE allowance (
        run TEXT NOT NULL, owner INTEGER NOT NULL, dollars REAL NOT NULL, PRIMARY KEY (run, owner)
    );
    INSERT INTO allowance SELECT run, 0, dollars FROM drawn;
    DROP TABLE drawn;
    """,
    # The ledger: what was billed and what may have been billed, for every run and its enclosing accounts.
    LEDGER_TABLES + ACCOUNTS_OF_RUNS + "DROP TABLE allowance; DROP TABLE pace; DROP TABLE lease;",
)
"""Migrations of the journal's tables. Existing entries never change."""
FAILURES: dict[str, Callable[[str], ModelError]] = {
    error.__name__: error for error in (BudgetExceeded, ContextTooLong, KeyRefused, ModelRefused, OutOfCredit)
}
"""Errors that are recorded by name, because forecasters tell them apart or they say who has to act."""
CHECK_SLOT = "check of the model"
"""The slot of requests that probe a model."""
_NOBODY = 0
_INTEND = """
INSERT INTO sent (key, sends, owner, run) VALUES (?, 1, ?, ?)
ON CONFLICT (key) DO UPDATE SET sends = sent.sends + 1, owner = excluded.owner, run = excluded.run
WHERE sent.owner IS NULL OR sent.owner = ?"""
_ENTRY = "kept.key, kind, model, slot, input, output, cached, kept.dollars, answer, checksum"
_FIND = f"SELECT {_ENTRY} FROM kept WHERE key = ?"
_SENT = "SELECT 1 FROM sent WHERE key = ?"
_LOOK = f"SELECT owner, {_ENTRY} FROM sent LEFT JOIN kept ON kept.key = sent.key WHERE sent.key = ?"
_WITHDRAW = "UPDATE sent SET sends = sends - 1, owner = NULL WHERE key = ? AND owner = ?"
_FORGET = "DELETE FROM kept WHERE key = ?"
_GIVE_UP = "UPDATE sent SET owner = NULL WHERE key = ? AND owner = ?"
_STORE = """
INSERT INTO kept SELECT ?, ?, ?, ?, ?, ?, ?, CAST(? AS DOUBLE PRECISION), ?, ?
WHERE NOT EXISTS (SELECT 1 FROM sent WHERE key = ? AND owner IS NOT NULL AND owner <> ?) ON CONFLICT DO NOTHING"""
"""Stores nothing if another process took over the request, because the answer of that process is used."""
_COST_BY_MODEL = """
SELECT model, count(*), sum(input), sum(output), coalesce(sum(dollars), 0.0), count(*) - count(dollars)
FROM kept WHERE kind = 'model' GROUP BY model ORDER BY model"""


def entry_checksum(row: SqlRow) -> bytes:
    """Checksum of a stored entry: key, kind, model, slot, tokens, dollars and answer."""
    *facts, answer = row[1:9]
    checksum = blake2b(row[0], digest_size=16)
    checksum.update(repr(facts).encode())
    checksum.update(answer)
    return checksum.digest()


def entry_fault(row: SqlRow) -> str:
    """What is wrong with an entry; empty if nothing is. An entry without a checksum is accepted."""
    try:
        return "" if row[9] is None or entry_checksum(row) == row[9] else "it was changed after it was stored"
    except TypeError:
        return "its values have the wrong type"


class DamagedReply(InputError):
    """A stored reply was altered and is not used."""


T = TypeVar("T")
JournalMode = Literal["live", "replay"]
_InFlight = tuple[asyncio.AbstractEventLoop, str]

_FIRST_POLL, _LONGEST_POLL = 0.02, 0.5
"""Seconds between checks whether another process has received its answer."""


class JournalRequest(NamedTuple):
    """Identifies an entry in a readable form."""

    key: str
    kind: str
    model: str = ""
    slot: str = ""
    payer: str = ""
    """The run that pays."""
    reservation: LosableReservation | None = None
    """The money for it."""
    batch: bool = False
    """Whether it is sent later, in a batch."""

    def __str__(self) -> str:
        """Return a description for error messages, without the request's text."""
        return " ".join(filter(None, [self.kind, self.model, self.slot and f"slot {self.slot}", f"({self.key[:12]})"]))


class JournalEntry(NamedTuple):
    """An answer: the bytes and, for a model, their cost."""

    body: bytes
    tokens: TokenCount = TokenCount()
    dollars: float | None = None


class Recording:
    """Stores one answer. It is a class and not a generator for speed, because every call uses it."""

    answer: JournalEntry
    stored: bytes

    def __init__(self, journal: "Journal", database: Database, request: JournalRequest) -> None:
        self._journal = journal
        self._db = database
        self._request = request
        self._term = 0

    async def __aenter__(self) -> "Recording":
        """Record that the request is about to be sent, or raise `NoRoom` if the disk is full."""
        self._db.check_room()
        journal, request = self._journal, self._request
        journal.sets_out(request.key)
        ours = False
        try:
            ours = await self._db.grouped(self._intend, others=len(journal.under_way))
        finally:
            if not ours:
                journal.landed(request.key)
        if not ours:
            raise RequestInFlight(f"another process is sending {request}")
        return self

    def _intend(self) -> bool:
        self._term = self._db.life.term
        return self._journal.intend(self._request)

    def is_ours(self) -> bool:
        """Whether no other process can have considered this one dead since the request was recorded."""
        return self._db.life.holds(self._term)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Store the answer, or record that the attempt failed."""
        journal, request = self._journal, self._request
        try:
            if error is None:
                others = len(journal.under_way)
                self.stored = await self._db.grouped_durably(lambda: journal.keep(request, self.answer), others=others)
            elif isinstance(error, NotSent):
                await self._db.aside(journal.withdraw, request)
            elif isinstance(error, Exception):
                await self._db.aside(journal.give_up, request, billed=isinstance(error, ReplyLost | ReplyTooLong))
            else:  # Cancelled, perhaps by a time limit. The provider may have billed the reply.
                self._db.later(lambda: journal.give_up(request, billed=True))
        finally:
            journal.landed(request.key)


class Journal:
    """Stores answers by request. `live` sends requests that have no stored answer; `replay` never sends any."""

    def __init__(self, path: str | Path, *, mode: JournalMode = "live", durable: bool = True) -> None:
        """Open a file or the PostgreSQL database at an address.

        With `durable`, an answer is on disk before it is returned, so it survives a power cut. Without, it survives
        only a killed process.
        """
        if mode == "replay" and not is_database_url(path) and not Path(path).is_file():
            raise InputError("there is no journal to replay", path=path)
        self.mode: JournalMode = mode
        self._lock = threading.Lock()
        self._flying: dict[_InFlight, asyncio.Future[Any]] = {}
        self.under_way: dict[str, int] = {}
        """Requests being sent by this process, with the number of times."""
        self._db = open_database(path, "journal", durable=durable and mode == "live")
        self.path = self._db.place
        self._open()
        self.ledger = Ledger(self._db)
        """What the requests cost."""

    def _open(self) -> None:
        try:
            self._db.migrate("journal", JOURNAL_TABLES)
            self._db.read("SELECT sends, checksum FROM sent, kept LIMIT 1")
        except BaseException as error:
            self._db.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise InputError(f"this is not a journal: {error}", path=self.path) from None
            raise

    @property
    def database(self) -> Database:
        """The database of the journal. Rate limits shared by several processes are kept there too."""
        return self._db

    def close(self) -> None:
        """Close the journal."""
        self._db.close()

    def find(self, key: str) -> bytes | None:
        """The stored answer, if there is one."""
        entry = self._entry(key)
        return None if entry is None else entry[8]

    def _entry(self, key: str) -> SqlRow | None:
        rows = self._db.read(_FIND, (bytes.fromhex(key),))
        return self._checked(rows[0]) if rows else None

    def _checked(self, row: SqlRow) -> SqlRow:
        """An entry after verifying its checksum."""
        if fault := entry_fault(row):
            name = " ".join(str(part) for part in (*row[1:3], f"({bytes(row[0]).hex()[:12]})") if part)
            hint = "foretell doctor --repair removes it; it is then requested and paid for again"
            raise DamagedReply(f"the stored answer {name} is not used: {fault}", path=self.path, hint=hint)
        return row

    def intend(self, request: JournalRequest) -> bool:
        """Record that a request is about to be sent. If nothing more is recorded, the ledger counts it as lost.

        Returns False if another process is sending it. It must not be sent then.
        """
        key, me = bytes.fromhex(request.key), self._db.life.id
        money = self._reservation(request)
        call = None if money is None or request.batch else money.grant.call

        def record(statements: Statements) -> tuple[bool, bool]:
            ours = bool(statements.write(_INTEND, (key, me, request.payer or None, _NOBODY)))
            return ours, ours and (call is None or self.ledger.sending(call, statements))

        # The request and its money in one transaction. Without a reservation, a single statement is enough.
        ours, paid = record(self._db) if call is None else self._db.joined(record)
        if not ours and self._take_over(request, key, me):
            ours, paid = True, call is None or self.ledger.sending(call)
        if ours and not paid:
            self.withdraw(request)
            raise ReservationReleased(f"the money for {request} was released")
        return ours

    def _reservation(self, request: JournalRequest) -> LosableReservation | None:
        """The reservation of a request, if it is in the ledger of this journal."""
        money = request.reservation
        return money if money is not None and money.ledger is self.ledger else None

    def posting(self, keys: Sequence[str]) -> None:
        """Record that a batch of these requests is about to be submitted, so that they may be billed."""
        self.ledger.sending_batch(keys)

    def not_posted(self, keys: Sequence[str]) -> None:
        """Record that the provider did not accept a batch of these requests."""
        self.ledger.sending_batch(keys, sent=False)

    def _take_over(self, request: JournalRequest, key: bytes, me: int) -> bool:
        """Whether we may send a request that another process had started."""
        ((owner, stored, *_),) = self._db.read(_LOOK, (key,))
        if stored is not None or owner is None or self._held(request, owner, by_us=1):
            return False
        return owner == me or bool(self._db.write(_INTEND, (key, me, request.payer or None, owner)))

    def keep(self, request: JournalRequest, answer: JournalEntry) -> bytes:
        """Store an answer and return the stored one, which is that of another process if it was quicker."""
        tokens, dollars = answer.tokens, None if answer.dollars is None else float(answer.dollars)
        row = (bytes.fromhex(request.key), request.kind, request.model, request.slot)
        row = (*row, tokens.input, tokens.output, tokens.cached, dollars, answer.body)
        money = self._reservation(request)

        def store(statements: Statements) -> int:
            if money is not None:
                self.ledger.bill_in(statements, money.grant, dollars or 0.0)
            return statements.write(_STORE, (*row, entry_checksum(row), row[0], self._db.life.id))

        # Billed and stored in one transaction. Without a reservation, a single statement is enough.
        added = store(self._db) if money is None else self._db.joined(store)
        if money is not None:
            money.ended_with_reply()
        stored = answer.body if added else self.find(request.key)
        if stored is None:
            raise RequestInFlight(f"another process took over {request}")
        return stored

    def give_up(self, request: JournalRequest, *, billed: bool) -> None:
        """End an attempt without an answer. If it may have been billed, the ledger counts it as lost."""
        if (money := self._reservation(request)) is not None:
            (self.ledger.lose if billed else self.ledger.waiting)(money.grant)
        self._db.write(_GIVE_UP, (bytes.fromhex(request.key), self._db.life.id))

    def withdraw(self, request: JournalRequest) -> None:
        """Record that nothing was sent after all."""
        if (money := self._reservation(request)) is not None:
            self.ledger.waiting(money.grant)
        self._db.write(_WITHDRAW, (bytes.fromhex(request.key), self._db.life.id))

    def sets_out(self, key: str) -> None:
        """Count one more attempt in flight in this process."""
        with self._lock:
            self.under_way[key] = self.under_way.get(key, 0) + 1

    def landed(self, key: str) -> None:
        """Count one attempt less. Finished keys are removed, so that memory does not grow in long runs."""
        with self._lock:
            remaining = self.under_way.pop(key) - 1
            if remaining > 0:
                self.under_way[key] = remaining

    async def once(self, key: str, kind: str, produce: Callable[[], Awaitable[bytes]]) -> bytes:
        """The stored bytes for `key`, or those that `produce` returns, stored before they are used."""
        request = JournalRequest(key=key, kind=kind)

        async def record() -> bytes:
            async with self.recording(request) as recording:
                recording.answer = JournalEntry(body=await produce())
            return recording.stored

        return await self.share(request, record, read=lambda entry: bytes(entry[8]))

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        """Like `once`, for JSON values. They are returned as parsed JSON the first time as well."""

        async def produce_bytes() -> bytes:
            return canonical_json(await produce())

        return json.loads(await self.once(key, kind, produce_bytes))

    async def share(
        self,
        request: JournalRequest,
        produce: Callable[[], Awaitable[T]],
        *,
        read: Callable[[SqlRow], T],
        shared: Callable[[T], T] = lambda answer: answer,
    ) -> T:
        """The stored entry as parsed by `read`, that of an identical request in flight, or the result of `produce`."""
        flight = (asyncio.get_running_loop(), request.key)
        while (stored := await self._find_stored(request, flight)) is None:
            ahead = self._flying.get(flight)
            if ahead is None:
                if self.mode == "replay":
                    hint = "a replay sends no new requests; run it live to send and pay for them"
                    raise NotInJournal(f"no answer is stored for {request}", path=self.path, hint=hint)
                landed = self._flying[flight] = flight[0].create_future()
                try:
                    answer = await produce()
                    landed.set_result(answer)
                    return answer
                except Exception as error:
                    landed.set_exception(error)
                    landed.exception()  # Mark it as retrieved, because there may be no waiter.
                    if not isinstance(error, RequestInFlight | NoRoom):
                        raise
                finally:
                    landed.cancel()  # Only has an effect if this task was cancelled; waiters then send it themselves.
                    del self._flying[flight]
                await self._db.room()
                continue
            await asyncio.wait([ahead])
            if not ahead.cancelled() and not isinstance(ahead.exception(), RequestInFlight | NoRoom):
                return shared(ahead.result())
        return read(stored)

    def reply(self, request: Request, ask: Callable[[], Awaitable[Reply]], payer: str = "") -> Awaitable[Reply]:
        """Return the stored reply or the result of `ask`. `payer` is the run that needs it."""
        entry_request = journal_request(request)

        def others(reply: Reply) -> Reply:
            return replace(reply, reused=bool(payer) and self.payer(entry_request.key) != payer)

        def read(entry: SqlRow) -> Reply:
            reply = others(replace(unpack_reply(entry[8]), charged=entry[7]))
            if reply.reused and self.mode == "live":
                # The reply is free now, so a recorded failure no longer applies to replays.
                self._db.write(_FORGET, (bytes.fromhex(_failure_key(entry_request.key, payer)),))
            return reply

        return self.share(entry_request, ask, read=read, shared=others)

    def keep_failure(self, key: str, payer: str, error: ModelError) -> None:
        """Record that a request of a run ended in an error, so that a replay of the run ends in the same way."""
        failure = JournalRequest(key=_failure_key(key, payer), kind="refusal", slot=type(error).__name__)
        self._db.write(_FORGET, (bytes.fromhex(failure.key),))  # A later attempt may have failed in another way.
        self.keep(failure, JournalEntry(body=str(error).encode()))

    def failure(self, key: str, payer: str) -> ModelError | None:
        """The error in which a request of a run ended; None if it has the reply, or if none is recorded."""
        entry = self._entry(_failure_key(key, payer))
        if entry is None or (self.find(key) is not None and self.payer(key) == payer):
            return None
        return FAILURES.get(entry[3], BudgetExceeded if not entry[3] else ModelError)(bytes(entry[8]).decode())

    async def has(self, request: Request) -> bool:
        """Whether the reply is stored."""
        return await self._db.aside(self.find, request_key(request)) is not None

    async def _find_stored(self, request: JournalRequest, flight: _InFlight) -> SqlRow | None:
        """Return the stored entry. If another process is sending the request, wait until it ends."""
        if self.mode == "replay":
            return await self._db.aside(self._entry, request.key)
        pause = _FIRST_POLL
        while True:
            stored, held = await self._db.aside(self._look, request)
            if stored is not None or not held or flight in self._flying:
                return stored
            await asyncio.sleep(pause)
            pause = min(_LONGEST_POLL, 1.5 * pause)

    def _look(self, request: JournalRequest) -> tuple[SqlRow | None, bool]:
        """Return the stored entry and whether some process is sending the request."""
        key = (bytes.fromhex(request.key),)
        # Most requests are new, and this query is twice as fast as reading the entry.
        rows = self._db.read(_LOOK, key) if self._db.read(_SENT, key) else ()
        if not rows:
            return None, False
        owner, *entry = rows[0]
        if entry[0] is not None:
            return self._checked(tuple(entry)), False
        return None, owner is not None and self._held(request, owner)

    def _held(self, request: JournalRequest, owner: int, *, by_us: int = 0) -> bool:
        """Whether the request is in flight, apart from `by_us` attempts of this process.

        An entry of this process that is not in flight was written by a statement whose success was never reported.
        """
        life = self._db.life
        return self.under_way.get(request.key, 0) > by_us if owner == life.id else life.alive(owner)

    def recording(self, request: JournalRequest) -> "Recording":
        """Record the intent, send, store and return, in this order. The block sends the request and sets the answer.

        Raises `RequestInFlight` if another process is sending the request.
        """
        return Recording(self, self._db, request)

    def payer(self, key: str) -> str:
        """The run that last sent a request; empty if there is none."""
        rows = self._db.read("SELECT run FROM sent WHERE key = ?", (bytes.fromhex(key),))
        return str(rows[0][0] or "") if rows else ""

    def sends(self) -> int:
        """Number of requests sent, answered or not."""
        return int(self._db.read("SELECT coalesce(sum(sends), 0) FROM sent")[0][0])

    def spent(self) -> dict[str, Cost]:
        """Replies, tokens and dollars by model."""
        spent: dict[str, Cost] = {}
        for model, calls, input_tokens, output_tokens, dollars, unpriced in self._db.read(_COST_BY_MODEL):
            tokens = {"input_tokens": int(input_tokens), "output_tokens": int(output_tokens)}
            spent[model] = Cost(calls=calls, **tokens, dollars=dollars, unpriced=unpriced)
        return spent


# Two wrappers of a model: one looks up replies before waiting for a turn, one stores replies next to the client.


def _failure_key(key: str, payer: str) -> str:
    return content_key(["refusal", payer, key])


def journal_request(request: Request) -> JournalRequest:
    """The journal's identification of a request, with the run that pays."""
    entry_request = JournalRequest(request_key(request), "model", request.model, request.slot)
    for reservation in request.reservations:
        return entry_request._replace(
            payer=reservation.payer, reservation=reservation, batch=request.settings.tier == "batch"
        )
    return entry_request


class JournalReadingModel:
    """Answers from the journal if possible. Identical requests in flight are sent once."""

    def __init__(self, inner: Model, journal: Journal) -> None:
        self._inner = inner
        self._journal = journal

    async def complete(self, request: Request) -> Reply:
        """The stored reply, or a new one."""
        return await self._journal.reply(request, lambda: self._inner.complete(request))


class JournalWritingModel:
    """Records each request before it is sent and each reply before it is returned. The innermost wrapper."""

    def __init__(self, inner: Model, journal: Journal, prices: PriceList) -> None:
        self._inner = inner
        self._journal = journal
        self._prices = prices

    async def complete(self, request: Request) -> Reply:
        """Return the stored reply, which is that of another process if it was quicker."""
        async with self._journal.recording(journal_request(request)) as recording:
            with sending_while(recording.is_ours):
                check_sending()
                reply = await self._inner.complete(request)
            if reply.finish == "length" and request.cap is not None and request.cap != request.settings.max_tokens:
                reply = replace(reply, cap=request.cap)
            reply = charged_reply(reply, request, self._prices)
            recording.answer = JournalEntry(body=pack_reply(reply), tokens=reply.tokens, dollars=reply.charged)
        if recording.stored is recording.answer.body:
            return reply
        return replace(unpack_reply(recording.stored), charged=reply.charged)
