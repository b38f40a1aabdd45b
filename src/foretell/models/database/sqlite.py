"""An SQLite file that several processes on one machine may have open."""

import asyncio
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from foretell.models.database.interface import (
    WRITE_VERSION,
    Database,
    Liveness,
    P,
    SqlRow,
    SqlValues,
    Statements,
    T,
)
from foretell.models.database.liveness import FileLiveness
from foretell.questions.clock_jump import steady_seconds
from foretell.questions.errors import FULL_HINT, DiskFull, NoRoom, StorageError, storage_error

log = logging.getLogger(__name__)

# Flushing to disk without blocking the event loop, once for all waiters.


class DiskFlush:
    """`await settled()` returns when everything written before the call is on disk.

    Many waiters share one `fsync`, which runs in a thread. A caller that arrives while one is running waits for the
    next, because the running one may have started before its bytes were written.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR)  # Windows flushes only what may be written.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal-flush")
        self._running: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        self._next: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    async def settled(self) -> None:
        """Wait for the disk."""
        loop = asyncio.get_running_loop()
        if loop not in self._next:
            self._next[loop] = loop.create_task(self._after(loop))
        # Shielded, because a cancelled waiter must not cancel the flush for the others.
        await asyncio.shield(self._next[loop])

    async def _after(self, loop: asyncio.AbstractEventLoop) -> None:
        running = self._running.get(loop)
        if running is not None and not running.done():
            await asyncio.wait([running])
        self._running[loop] = self._next.pop(loop)
        await loop.run_in_executor(self._thread, os.fsync, self._file)

    def close(self) -> None:
        """Wait for the running flush and close the file."""
        self._thread.shutdown()
        os.close(self._file)


# Opening an SQLite file that several processes may open or create at the same time.

WAL_TIMEOUT = 30.0
WAL_RETRY_PAUSE = 0.01


def use_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging: readers do not wait for a writer, and a commit is one write.

    SQLite fails immediately if another process is switching the same new file. This function waits.
    """
    until = time.monotonic() + WAL_TIMEOUT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(WAL_RETRY_PAUSE)


def _can_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def open_read_only(path: str | Path) -> sqlite3.Connection:
    """Open a file that this process cannot write to, even if its write-ahead log was left behind."""
    address = Path(path).absolute().as_uri()
    tries = [f"{address}?mode=ro"]
    log_file = Path(f"{path}-wal")
    if not log_file.exists() or not log_file.stat().st_size:
        tries.append(f"{address}?immutable=1")
    while True:
        con = sqlite3.connect(tries.pop(0), uri=True, isolation_level=None, check_same_thread=False)
        try:
            con.execute("SELECT count(*) FROM sqlite_master").fetchall()
            return con
        except sqlite3.DatabaseError:
            con.close()
            if not tries:
                raise


def _attempt(work: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """Run one statement of a group. If it fails, only this statement is undone, not the whole transaction."""
    try:
        return work(), None
    except StorageError:  # It may have undone the whole transaction.
        raise
    except Exception as error:
        return None, error


_Grouped = tuple["asyncio.Future[Any]", Callable[[], Any], bool]
"""The future of the waiter, the work, and whether to run it even if the waiter was cancelled."""
_Ended = tuple["asyncio.Future[Any]", Any, Exception | None]


def _tell(ended: "list[_Ended]") -> None:
    for done, value, error in ended:
        if done.done():  # The waiter was cancelled.
            continue
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)


MEMORY = ":memory:"
PARTS_WITH_OWN_FILE = ("store", "journal")
"""Parts with a file of their own, which may also hold tables of other parts."""
RESERVED_BYTES = 8_000_000
"""Nothing is requested while the disk has less room than this, so that replies in flight can be stored."""
AMPLE_BYTES, AMPLE_SECONDS = 50 * RESERVED_BYTES, 0.25
"""With this much room, the disk is checked again only after `AMPLE_SECONDS`."""
FULL_PATIENCE = 300.0
"""Seconds to wait for a full disk, with paid replies held in memory."""
FULL_PAUSE = 0.5
FULL_NOTICE = 60.0
"""Seconds between warnings about a full disk."""

STREAM_ROWS = 1000
"""Number of rows of a stream that are read together."""
GROUP_SECONDS, GROUP_SECONDS_EACH = 0.03, 6e-5
"""Longest pause between two transactions, and the share of each call in flight: one transaction per call costs more."""


class SqliteDatabase(Database):
    """Runs statements immediately, on the event loop: they take microseconds."""

    shared = False

    def __init__(self, path: str | Path, *, timeout: float = 60.0, durable: bool = True) -> None:
        """With `durable`, `settled` waits for the disk."""
        super().__init__(str(path))
        self._copied: TemporaryDirectory[str] | None = None
        self._full_since: float | None = None
        self._full_told = 0.0
        self._ample_until = 0.0
        self._flushes: set[asyncio.Task[None]] = set()
        self._last_group = 0.0
        self._groups: dict[asyncio.AbstractEventLoop, list[_Grouped]] = {}
        # Checked here because SQLite opens a read-only file next to a leftover log without an error.
        self.read_only = self.place != MEMORY and Path(path).is_file() and not _can_write(Path(path))
        if self.read_only:
            self._con = open_read_only(path)
        else:
            # DBOS and others may run the event loop in another thread, so a lock serializes access.
            self._con = sqlite3.connect(path, isolation_level=None, timeout=timeout, check_same_thread=False)
            try:
                use_wal(self._con)
                # A commit survives a killed process. `settled` waits for the disk without blocking the event loop.
                self._con.execute("PRAGMA synchronous = NORMAL")
                self._con.execute("PRAGMA wal_autocheckpoint = 4000")
            except sqlite3.DatabaseError:
                self._con.close()
                raise
        self._on_disk = durable and self.place != MEMORY and not self.read_only

    def _new_life(self) -> Liveness:
        return FileLiveness(self.place, read_only=self.read_only)

    def migrate(self, part: str, scripts: Sequence[str]) -> None:
        """If the file cannot be written to, a copy is migrated and read in its place."""
        with self._lock:
            if not self.read_only or self._version(self, part) >= len(scripts):
                super().migrate(part, scripts)
                return
            if self._copied is None:
                self._copied = TemporaryDirectory(prefix="foretell-copy-", ignore_cleanup_errors=True)
                path = Path(self._copied.name) / "copy.db"
                copy = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                with closing(self._con):
                    self._con.backup(copy)
                self._con = copy
            self._con.execute("PRAGMA query_only = OFF")
            super().migrate(part, scripts)
            self._con.execute("PRAGMA query_only = ON")

    @cached_property
    def _flush(self) -> DiskFlush:
        return DiskFlush(Path(f"{self.place}-wal"))

    def _version(self, statements: Statements, part: str) -> int:
        """The version is stored in the file's header for its own part and in a table for others."""
        if part in PARTS_WITH_OWN_FILE:
            return statements.read("PRAGMA user_version")[0][0]
        if not statements.read("select 1 from sqlite_master where type = 'table' and name = 'version'"):
            return 0
        rows = statements.read("select number from version where part = ?", (part,))
        return rows[0][0] if rows else 0

    def _set_version(self, statements: Statements, part: str, number: int) -> None:
        if part in PARTS_WITH_OWN_FILE:
            statements.write(f"PRAGMA user_version = {number}")
            return
        statements.write("create table if not exists version (part text primary key, number integer not null)")
        statements.write(WRITE_VERSION, (part, number))

    def json_field(self, column: str, field: str, kind: Literal["text", "number", "flag"] = "text") -> str:
        """Its values have the types that they have in JSON."""
        return f"json_extract({column}, '$.{field}')"

    def concatenated(self, expression: str, order: str) -> str:
        """Rows are read in the order of the table's key, which `order` must be."""
        return f"group_concat({expression})"

    def concatenated_bytes(self, column: str, order: str) -> str:
        """SQLite joins blobs byte by byte as if they were text."""
        return f"cast(group_concat({column}, '') as blob)"

    def change_mark(self) -> tuple[int, ...]:
        """Count the writes by other processes and by this one."""
        return (*self.read("PRAGMA data_version")[0], *self.read("select total_changes()")[0])

    def read(self, sql: str, values: SqlValues = ()) -> list[SqlRow]:
        """All rows of a query."""
        with self._lock:
            try:
                return self._con.execute(sql, values).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._problem(error) from None

    def write(self, sql: str, values: SqlValues = ()) -> int:
        """How many rows were changed."""
        with self._lock:
            try:
                return self._con.execute(sql, values).rowcount
            except sqlite3.DatabaseError as error:
                raise self._problem(error) from None

    def _problem(self, error: sqlite3.DatabaseError) -> Exception:
        """Return a StorageError with a hint for the user, or the error itself."""
        return storage_error(error, self.place) or error

    def write_many(self, sql: str, rows: Sequence[SqlValues]) -> None:
        """Execute the same statement for many rows in one transaction."""
        with self._lock:
            if not self._con.in_transaction:
                self.together(lambda statements: statements.write_many(sql, rows))
                return
            try:
                self._con.executemany(sql, rows)
            except sqlite3.DatabaseError as error:
                raise self._problem(error) from None

    def now(self) -> float:
        """Seconds since the machine was started. This clock cannot be set."""
        return steady_seconds()

    def together(self, work: Callable[[Statements], T], *, alone: str = "", flushed: bool = True) -> T:
        """Run one transaction. SQLite lets only one writer in at a time, so `alone` needs nothing more."""
        try:
            with self._lock:
                if self._con.in_transaction:
                    return self._part(work)
                with self._con:  # Commits or rolls back.
                    self._con.execute("BEGIN IMMEDIATE")
                    return work(self)
        except sqlite3.DatabaseError as error:
            raise self._problem(error) from None

    def joined(self, work: Callable[[Statements], T], *, alone: str = "", flushed: bool = True) -> T:
        """Run it within the open transaction, or in one of its own."""
        with self._lock:
            return work(self) if self._con.in_transaction else self.together(work, alone=alone)

    def _part(self, work: Callable[[Statements], T]) -> T:
        """Run `work` in a savepoint of the current transaction."""
        self._con.execute("SAVEPOINT part")
        try:
            return work(self)
        except BaseException:
            if self._con.in_transaction:  # A full disk rolls back the whole transaction.
                self._con.execute("ROLLBACK TO part")
            raise
        finally:
            if self._con.in_transaction:
                self._con.execute("RELEASE part")

    def stream(self, sql: str, values: SqlValues = ()) -> Iterator[SqlRow]:
        """Rows straight from the file."""
        try:
            with self._lock:
                cursor = self._con.execute(sql, values)
            while True:
                with self._lock:
                    rows = cursor.fetchmany(STREAM_ROWS)
                if not rows:
                    return
                yield from rows
        except sqlite3.DatabaseError as error:
            raise self._problem(error) from None

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it now, or as soon as a full disk has room again."""
        waited = False
        while True:
            try:
                result = work(*args, **kwargs)
            except DiskFull as error:
                self._wait_or_raise(error)
                waited = True
                await asyncio.sleep(FULL_PAUSE)
            else:
                # Reads succeed on a full disk too, so only work that had to wait shows that there is room again.
                if waited:
                    self._full_since = None
                return result

    def check_room(self) -> None:
        """Check the free space of the disk."""
        now = time.monotonic()
        if self.place == MEMORY or now < self._ample_until:
            return
        free = shutil.disk_usage(Path(self.place).parent).free
        if free < RESERVED_BYTES:
            raise NoRoom(f"the disk is full: only {free // 1000:,} kB are left", path=self.place, hint=FULL_HINT)
        self._ample_until = now + AMPLE_SECONDS if free >= AMPLE_BYTES else 0.0

    async def room(self) -> None:
        """Wait until a full disk has room."""
        await self.aside(self.check_room)

    def _wait_or_raise(self, problem: DiskFull) -> None:
        """Raise the problem if the disk has been full for too long. Until then, log it at intervals."""
        now = time.monotonic()
        if self._full_since is None:
            self._full_since, self._full_told = now, now - FULL_NOTICE
        if now - self._full_since >= FULL_PATIENCE:
            raise problem
        if now - self._full_told >= FULL_NOTICE:
            self._full_told = now
            log.warning("%s; waiting up to %.0f s, nothing is lost", problem, FULL_PATIENCE - (now - self._full_since))

    def grouped(self, work: Callable[[], T], *, others: int = 0) -> Awaitable[T]:
        """Run it at the end of this iteration of the event loop, in one transaction with others."""
        return self._group(work, False, others)

    def grouped_durably(self, work: Callable[[], T], *, others: int = 0) -> "asyncio.Future[T]":
        """Run it in the same transaction, followed by one flush to disk for all."""
        return self._group(work, True, others)

    def _group(self, work: Callable[[], T], keep: bool, others: int) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        if loop not in self._groups:
            self._groups[loop] = []
            due = self._last_group + min(others * GROUP_SECONDS_EACH, GROUP_SECONDS)
            loop.call_later(max(0.0, due - time.monotonic()), self._carry_out, loop)
        done: asyncio.Future[T] = loop.create_future()
        self._groups[loop].append((done, work, keep))
        return done

    def _carry_out(self, loop: asyncio.AbstractEventLoop) -> None:
        self._last_group = time.monotonic()
        group = [entry for entry in self._groups.pop(loop) if entry[2] or not entry[0].cancelled()]
        try:
            ends = self.together(lambda _: [_attempt(work) for _, work, _ in group]) if group else []
            self._full_since = None
        except DiskFull as error:
            try:
                self._wait_or_raise(error)
            except DiskFull:
                ends = [(None, error)] * len(group)
            else:
                # Keep the group until there is room. New work is added to it.
                if not self._groups.setdefault(loop, []):
                    loop.call_later(FULL_PAUSE, self._carry_out, loop)
                self._groups[loop][:0] = group
                return
        except Exception as error:
            ends = [(None, error)] * len(group)
        ended = [(done, *end) for (done, _, keep), end in zip(group, ends, strict=True) if not keep]
        paid = [(done, *end) for (done, _, keep), end in zip(group, ends, strict=True) if keep]
        _tell(ended)
        if paid and self._on_disk:
            self._flushes.add(flush := loop.create_task(self._tell_when_settled(paid)))
            flush.add_done_callback(self._flushes.discard)
        else:
            _tell(paid)

    async def _tell_when_settled(self, paid: "list[_Ended]") -> None:
        try:
            await self._flush.settled()
        except Exception as error:
            paid = [(done, None, error) for done, *_ in paid]
        _tell(paid)

    def later(self, work: Callable[[], object]) -> None:
        """Run it immediately. A failure is ignored, because earlier entries hold the same information."""
        with suppress(StorageError):
            work()

    async def settled(self) -> None:
        """Wait for a flush to disk, shared with other waiters."""
        if self._on_disk:
            await self._flush.settled()

    def close(self) -> None:
        """Close the file after writing paid replies whose event loop ended before they were written."""
        unfinished = [work for group in self._groups.values() for _, work, keep in group if keep]
        if unfinished:
            self.together(lambda _: [_attempt(work) for work in unfinished])
        if "_flush" in self.__dict__:
            self._flush.close()
        if self._life is not None:
            self._life.close()
        with self._lock:  # A running statement in another thread would read freed memory.
            self._con.close()
        if self._copied is not None:
            self._copied.cleanup()
