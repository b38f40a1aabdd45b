"""The journal stores every paid or fetched answer before it is used, in an SQLite file or in PostgreSQL.

Entries are content-addressed. A run that is killed and restarted finds every answer it had received; requests in flight
at that moment are sent again and counted as possibly paid. Several processes may share a journal and never send the
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
    LosableReservation,
    Model,
    NotInJournal,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    RequestInFlight,
    ReservationReleased,
    TokenCount,
)
from foretell.models.prices import PriceList
from foretell.models.waiting import NotSent, check_sending, sending_while
from foretell.questions.errors import InputError, NoRoom
from foretell.questions.forecast import Cost

# The tables of the journal, and what is asked of them, in words that SQLite and PostgreSQL share.

JOURNAL_TABLES = (
    # Two tables, each written once per call: a row that is added small and grows later costs SQLite a rebalanced page.
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
    # What processes share: up to when a provider is booked, who may have how many calls at once, what a run has spent.
    """
    CREATE TABLE pace (place TEXT PRIMARY KEY, requests REAL NOT NULL, tokens REAL NOT NULL, closed REAL NOT NULL);
    CREATE TABLE lease (
        place TEXT NOT NULL, owner INTEGER NOT NULL, part INTEGER NOT NULL, held INTEGER NOT NULL,
        wanted INTEGER NOT NULL, PRIMARY KEY (place, owner, part)
    );
    CREATE TABLE drawn (run TEXT PRIMARY KEY, dollars REAL NOT NULL);
    """,
    # Who pays for a send and how much it may cost: a run that is killed knows afterwards what may have been billed.
    "ALTER TABLE sent ADD COLUMN run TEXT; ALTER TABLE sent ADD COLUMN dollars REAL;",
    # A checksum of every entry, which those of older versions lack. Bookings are of a minute, and by another clock now.
    """
    ALTER TABLE kept ADD COLUMN checksum BLOB;
    DELETE FROM pace;
    ALTER TABLE pace ADD COLUMN written REAL NOT NULL DEFAULT 0;
    """,
    # Until when calls that were sent may be under way, by the clock of the database.
    "ALTER TABLE lease ADD COLUMN until REAL NOT NULL DEFAULT 0;",
    # What each process has drawn from the budget of a run, so that the part of one that was killed is known.
    """
    CREATE TABLE allowance (
        run TEXT NOT NULL, owner INTEGER NOT NULL, dollars REAL NOT NULL, PRIMARY KEY (run, owner)
    );
    INSERT INTO allowance SELECT run, 0, dollars FROM drawn;
    DROP TABLE drawn;
    """,
    # The ledger, which says for every run and what is around it what was billed and what may have been.
    LEDGER_TABLES + ACCOUNTS_OF_RUNS + "DROP TABLE allowance; DROP TABLE pace; DROP TABLE lease;",
)
"""Migrations of the journal's tables. Existing entries never change."""
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
_GIVE_UP = "UPDATE sent SET unbilled = unbilled + ?, owner = NULL WHERE key = ? AND owner = ?"
_STORE = """
INSERT INTO kept SELECT ?, ?, ?, ?, ?, ?, ?, CAST(? AS DOUBLE PRECISION), ?, ?
WHERE NOT EXISTS (SELECT 1 FROM sent WHERE key = ? AND owner IS NOT NULL AND owner <> ?) ON CONFLICT DO NOTHING"""
"""Stores nothing if another process took the request over: its answer, paid for there, counts."""
_COST_BY_MODEL = """
SELECT model, count(*), sum(input), sum(output), coalesce(sum(dollars), 0.0), count(*) - count(dollars)
FROM kept WHERE kind = 'model' GROUP BY model ORDER BY model"""

_UNCERTAIN = """
SELECT unsure, owner FROM (
    SELECT sends - unbilled - CASE WHEN kept.key IS NULL THEN 0 ELSE 1 END AS unsure,
        CASE WHEN kept.key IS NULL THEN owner END AS owner
    FROM sent LEFT JOIN kept ON kept.key = sent.key
) AS found WHERE unsure > 0"""


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
        return "it holds something else than it should"


class DamagedReply(InputError):
    """A stored reply was altered: it is reported and not used."""


T = TypeVar("T")
JournalMode = Literal["live", "replay"]
_InFlight = tuple[asyncio.AbstractEventLoop, str]

_FIRST_POLL, _LONGEST_POLL = 0.02, 0.5
"""Seconds between checks whether another process has received its answer."""


class JournalRequest(NamedTuple):
    """Identifies an entry, in terms a person understands."""

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
        """For error messages: never includes the request's text, which may be long."""
        return " ".join(filter(None, [self.kind, self.model, self.slot and f"slot {self.slot}", f"({self.key[:12]})"]))


class JournalEntry(NamedTuple):
    """An answer: the bytes and, for a model, their cost."""

    body: bytes
    tokens: TokenCount = TokenCount()
    dollars: float | None = None


class Recording:
    """Stores one answer. A class instead of a generator, because every call goes through it."""

    answer: JournalEntry
    stored: bytes

    def __init__(self, journal: "Journal", database: Database, asked: JournalRequest) -> None:
        self._journal = journal
        self._db = database
        self._asked = asked
        self._term = 0

    async def __aenter__(self) -> "Recording":
        """Record that the request is about to be sent, or raise `NoRoom` if the disk is full."""
        self._db.check_room()
        journal, asked = self._journal, self._asked
        journal.sets_out(asked.key)
        ours = False
        try:
            ours = await self._db.grouped(self._intend, others=len(journal.under_way))
        finally:
            if not ours:
                journal.landed(asked.key)
        if not ours:
            raise RequestInFlight(f"another process asks for {asked}")
        return self

    def _intend(self) -> bool:
        self._term = self._db.life.term
        return self._journal.intend(self._asked)

    def is_ours(self) -> bool:
        """Whether no other process can have considered us dead since the request was recorded."""
        return self._db.life.holds(self._term)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Store the answer, or record that the attempt failed."""
        journal, asked = self._journal, self._asked
        try:
            if error is None:
                others = len(journal.under_way)
                self.stored = await self._db.kept(lambda: journal.keep(asked, self.answer), others=others)
            elif isinstance(error, NotSent):
                await self._db.aside(journal.withdraw, asked)
            elif isinstance(error, Exception):
                await self._db.aside(journal.give_up, asked, billed=isinstance(error, ReplyLost | ReplyTooLong))
            else:  # Cancelled, perhaps by a time limit: the provider may have finished its work.
                self._db.later(lambda: journal.give_up(asked, billed=True))
        finally:
            journal.landed(asked.key)


class Journal:
    """Stores answers by request. `live` sends requests that have no stored answer; `replay` never sends any."""

    def __init__(self, path: str | Path, *, mode: JournalMode = "live", durable: bool = True) -> None:
        """Open a file or the PostgreSQL database at an address.

        With `durable`, a stored answer survives a power cut before anyone sees it; without, only a killed process.
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
            hint = "foretell doctor --repair sets it aside; it is then asked, and paid, again"
            raise DamagedReply(f"the stored answer {name} is not used: {fault}", path=self.path, hint=hint)
        return row

    def intend(self, asked: JournalRequest) -> bool:
        """Record that a request is about to be sent. If nothing more is recorded, it counts as possibly paid.

        Returns False if another process is sending it: then it must not be sent.
        """
        key, me = bytes.fromhex(asked.key), self._db.life.id
        ours = self._db.write(_INTEND, (key, me, asked.payer or None, _NOBODY)) or self._take_over(asked, key, me)
        money = self._reservation(asked)
        if ours and money is not None and not asked.batch and not self.ledger.sending(money.grant.call):
            self.withdraw(asked)
            raise ReservationReleased(f"the money for {asked} was released")
        return bool(ours)

    def _reservation(self, asked: JournalRequest) -> LosableReservation | None:
        """The reservation of a request, if it is in the ledger of this journal."""
        money = asked.reservation
        return money if money is not None and money.ledger is self.ledger else None

    def posting(self, keys: Sequence[str]) -> None:
        """Record that a batch of these requests is about to be submitted: from now on they may be billed."""
        self.ledger.sending_batch(keys)

    def not_posted(self, keys: Sequence[str]) -> None:
        """Record that the provider did not take a batch of these requests."""
        self.ledger.sending_batch(keys, sent=False)

    def _take_over(self, asked: JournalRequest, key: bytes, me: int) -> bool:
        """Whether we may send a request that another process had started."""
        ((owner, stored, *_),) = self._db.read(_LOOK, (key,))
        if stored is not None or owner is None or self._held(asked, owner, by_us=1):
            return False
        return owner == me or bool(self._db.write(_INTEND, (key, me, asked.payer or None, owner)))

    def keep(self, asked: JournalRequest, answer: JournalEntry) -> bytes:
        """Store an answer and return what is stored: the first answer, if another process was quicker."""
        tokens, dollars = answer.tokens, None if answer.dollars is None else float(answer.dollars)
        row = (bytes.fromhex(asked.key), asked.kind, asked.model, asked.slot)
        row = (*row, tokens.input, tokens.output, tokens.cached, dollars, answer.body)
        money = self._reservation(asked)

        def store(statements: Statements) -> int:
            if money is not None:
                self.ledger.bill_in(statements, money.grant, dollars or 0.0)
            return statements.write(_STORE, (*row, entry_checksum(row), row[0], self._db.life.id))

        # Billed and stored together; without money, a statement is a transaction of its own.
        added = store(self._db) if money is None else self._db.joined(store)
        if money is not None:
            money.ended_with_reply()
        stored = answer.body if added else self.find(asked.key)
        if stored is None:
            raise RequestInFlight(f"another process took over {asked}")
        return stored

    def give_up(self, asked: JournalRequest, *, billed: bool) -> None:
        """The attempt ended without an answer. If it was certainly not billed, it no longer counts as possibly paid."""
        key, me, money = bytes.fromhex(asked.key), self._db.life.id, self._reservation(asked)
        if money is not None:
            (self.ledger.lose if billed else self.ledger.waiting)(money.grant)
        self._db.write(_GIVE_UP, (0 if billed else 1, key, me))

    def withdraw(self, asked: JournalRequest) -> None:
        """Record that nothing was sent after all."""
        if (money := self._reservation(asked)) is not None:
            self.ledger.waiting(money.grant)
        self._db.write(_WITHDRAW, (bytes.fromhex(asked.key), self._db.life.id))

    def sets_out(self, key: str) -> None:
        """Count one more attempt in flight in this process."""
        with self._lock:
            self.under_way[key] = self.under_way.get(key, 0) + 1

    def landed(self, key: str) -> None:
        """Count one attempt less; finished keys are forgotten, so that long runs do not grow."""
        with self._lock:
            left = self.under_way.pop(key) - 1
            if left > 0:
                self.under_way[key] = left

    async def once(self, key: str, kind: str, produce: Callable[[], Awaitable[bytes]]) -> bytes:
        """The stored bytes for `key`, or those that `produce` returns, stored before they are used."""
        asked = JournalRequest(key=key, kind=kind)

        async def record() -> bytes:
            async with self.recording(asked) as recording:
                recording.answer = JournalEntry(body=await produce())
            return recording.stored

        return await self.share(asked, record, read=lambda entry: bytes(entry[8]))

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        """Like `once`, for JSON values. They are returned as parsed JSON the first time as well."""

        async def written() -> bytes:
            return canonical_json(await produce())

        return json.loads(await self.once(key, kind, written))

    async def share(
        self,
        asked: JournalRequest,
        produce: Callable[[], Awaitable[T]],
        *,
        read: Callable[[SqlRow], T],
        shared: Callable[[T], T] = lambda answer: answer,
    ) -> T:
        """The stored entry as parsed by `read`, that of an identical request in flight, or the result of `produce`."""
        flight = (asyncio.get_running_loop(), asked.key)
        while (stored := await self._found(asked, flight)) is None:
            ahead = self._flying.get(flight)
            if ahead is None:
                self._refuse_in_replay(asked)
                landed = self._flying[flight] = flight[0].create_future()
                try:
                    answer = await produce()
                    landed.set_result(answer)
                    return answer
                except Exception as error:
                    landed.set_exception(error)
                    landed.exception()  # Nobody may be waiting; asyncio must not complain about that.
                    if not isinstance(error, RequestInFlight | NoRoom):
                        raise
                finally:
                    landed.cancel()  # Only has an effect when we were cancelled: whoever waits then asks by itself.
                    del self._flying[flight]
                await self._db.room()
                continue
            await asyncio.wait([ahead])
            if not ahead.cancelled() and not isinstance(ahead.exception(), RequestInFlight | NoRoom):
                return shared(ahead.result())
        return read(stored)

    def reply(self, request: Request, ask: Callable[[], Awaitable[Reply]], payer: str = "") -> Awaitable[Reply]:
        """The stored reply, or the one that `ask` brings. `payer` is the run that wants it."""
        asked = journal_request(request)

        def others(reply: Reply) -> Reply:
            return replace(reply, reused=bool(payer) and self.payer(asked.key) != payer)

        def read(entry: SqlRow) -> Reply:
            reply = others(replace(unpack_reply(entry[8]), charged=entry[7]))
            if reply.reused and self.mode == "live":
                # What there was no money for before is free now: a replay finds it too.
                self._db.write("DELETE FROM kept WHERE key = ?", (bytes.fromhex(_refusal_key(asked.key, payer)),))
            return reply

        return self.share(asked, ask, read=read, shared=others)

    def keep_refusal(self, key: str, payer: str, why: str) -> None:
        """Record that a run had no money for a request, so that a replay of the run ends in the same way."""
        self.keep(JournalRequest(key=_refusal_key(key, payer), kind="refusal"), JournalEntry(body=why.encode()))

    def refusal(self, key: str, payer: str) -> str:
        """Why a run had no money for a request; empty if that is not recorded."""
        return (self.find(_refusal_key(key, payer)) or b"").decode()

    async def has(self, request: Request) -> bool:
        """Whether the reply is stored."""
        return await self._db.aside(self.find, request_key(request)) is not None

    async def _found(self, asked: JournalRequest, flight: _InFlight) -> SqlRow | None:
        """The stored entry. If another process is asking for it, wait for its answer or until it gives up or dies."""
        if self.mode == "replay":
            return await self._db.aside(self._entry, asked.key)
        pause = _FIRST_POLL
        while True:
            stored, held = await self._db.aside(self._look, asked)
            if stored is not None or not held or flight in self._flying:
                return stored
            await asyncio.sleep(pause)
            pause = min(_LONGEST_POLL, 1.5 * pause)

    def _look(self, asked: JournalRequest) -> tuple[SqlRow | None, bool]:
        """The stored entry, and whether some process is asking for it."""
        key = (bytes.fromhex(asked.key),)
        # Most are new, and that is known at half the price of reading what there is.
        rows = self._db.read(_LOOK, key) if self._db.read(_SENT, key) else ()
        if not rows:
            return None, False
        owner, *entry = rows[0]
        if entry[0] is not None:
            return self._checked(tuple(entry)), False
        return None, owner is not None and self._held(asked, owner)

    def _held(self, asked: JournalRequest, owner: int, *, by_us: int = 0) -> bool:
        """Whether somebody else, besides `by_us` attempts of our own, is asking for it.

        An entry of ours that is not in flight was written by a statement whose success we never learned of.
        """
        life = self._db.life
        return self.under_way.get(asked.key, 0) > by_us if owner == life.id else life.alive(owner)

    def _refuse_in_replay(self, asked: JournalRequest) -> None:
        if self.mode == "replay":
            hint = "a replay only repeats what was asked before; run it live to ask and pay"
            raise NotInJournal(f"no answer is kept for {asked}", path=self.path, hint=hint)

    def recording(self, asked: JournalRequest) -> "Recording":
        """Record the intent, send, store, return, in this order. The block sends and sets the answer.

        Raises `RequestInFlight` if another process is sending the request.
        """
        return Recording(self, self._db, asked)

    def maybe_paid(self) -> int:
        """Requests of any kind, those of tools too, whose outcome is not known; without those in flight."""
        rows = self._db.read(_UNCERTAIN)
        owners = {owner for _, owner in rows if owner is not None}
        alive = owners - self._db.life.gone(owners) if owners else owners
        return sum(unsure - (owner in alive) for unsure, owner in rows)

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
        for model, calls, read, written, dollars, unpriced in self._db.read(_COST_BY_MODEL):
            tokens = {"input_tokens": int(read), "output_tokens": int(written)}
            spent[model] = Cost(calls=calls, **tokens, dollars=dollars, unpriced=unpriced)
        return spent


# The journal around a model, in two halves: look up before waiting for a turn, write down next to the wire.


def _refusal_key(key: str, payer: str) -> str:
    return content_key(["refusal", payer, key])


def journal_request(request: Request) -> JournalRequest:
    """The journal's identification of a request, with the run that pays."""
    asked = JournalRequest(request_key(request), "model", request.model, request.slot)
    for reservation in request.reservations:
        return asked._replace(payer=reservation.payer, reservation=reservation, batch=request.settings.tier == "batch")
    return asked


class JournalReadingModel:
    """Answers from the journal if possible. Identical requests in flight are sent once."""

    def __init__(self, inner: Model, journal: Journal) -> None:
        self._inner = inner
        self._journal = journal

    async def complete(self, request: Request) -> Reply:
        """The stored reply, or a new one."""
        return await self._journal.reply(request, lambda: self._inner.complete(request))


class JournalWritingModel:
    """Records each request before it is sent and each reply before anyone sees it. The innermost wrapper."""

    def __init__(self, wire: Model, journal: Journal, prices: PriceList) -> None:
        self._wire = wire
        self._journal = journal
        self._prices = prices

    async def complete(self, request: Request) -> Reply:
        """The reply as stored: that of another process if it was quicker with the same request."""
        async with self._journal.recording(journal_request(request)) as recording:
            with sending_while(recording.is_ours):
                check_sending()
                reply = await self._wire.complete(request)
            if reply.finish == "length" and request.cap is not None and request.cap != request.settings.max_tokens:
                reply = replace(reply, cap=request.cap)
            reply = charged_reply(reply, request, self._prices)
            recording.answer = JournalEntry(body=pack_reply(reply), tokens=reply.tokens, dollars=reply.charged)
        if recording.stored is recording.answer.body:
            return reply
        return replace(unpack_reply(recording.stored), charged=reply.charged)
