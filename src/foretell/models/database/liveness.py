"""Signs of life: a locked file on one machine, a session lock in PostgreSQL for several. Both end with the process."""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from foretell.models.database.interface import Database, SqlRow
from foretell.questions.clock_jump import steady_seconds
from foretell.questions.errors import storage_error
from foretell.questions.file_lock import LockHeld, lock_open_file, remove_locked_file


class FileLiveness:
    """Locks a small file next to the database for as long as this process has it open.

    It needs no clock and no heartbeat. A process that can lock the file of another knows that the other has ended, and
    deletes the file. For a database in memory, no other process counts as alive.
    """

    def __init__(self, database: str, *, read_only: bool = False) -> None:
        """With `read_only`, this process creates no lock file but can still check those of others."""
        self._database = database
        self._mode = os.O_RDONLY if read_only else os.O_RDWR
        self.id = _new_id()
        self._file: int | None = None
        if database != ":memory:" and not read_only:
            while (locked := self._hold()) is None:
                self.id = _new_id()
            self._file = locked
            self._sweep()

    term = 0

    def holds(self, term: int) -> bool:
        """Return True: a file stays locked as long as its process exists, even if it is stopped."""
        return term == self.term

    def alive(self, id: int) -> bool:
        """Whether some process holds the lock of that id."""
        return id == self.id or self._locked(self._path(id))

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of the given processes that have ended."""
        return {id for id in ids if not self.alive(id)}

    def asleep(self, ids: Iterable[int]) -> set[int]:
        """Return an empty set: a process counts as alive as long as it exists."""
        return set()

    def close(self) -> None:
        """Remove the lock file."""
        if self._file is not None:
            remove_locked_file(self._file, self._path(self.id))
            self._file = None

    def _path(self, id: int) -> Path:
        return Path(f"{self._database}-alive-{id:016x}")

    def _hold(self) -> int | None:
        """The locked file, or None if another process deleted it before it was locked."""
        path = self._path(self.id)
        try:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        except OSError as error:
            raise storage_error(error, path) or error from None
        lock_open_file(file)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(file)):
                return file
        os.close(file)
        return None

    def _locked(self, path: Path) -> bool:
        try:
            file = os.open(path, self._mode)
        except FileNotFoundError:
            return False
        try:
            lock_open_file(file, wait=False)
        except (LockHeld, OSError):
            os.close(file)
            return True
        if self._mode == os.O_RDWR:
            remove_locked_file(file, path)
        else:
            os.close(file)
        return False

    def _sweep(self) -> None:
        """Delete files left behind by killed processes."""
        own = Path(self._database)
        for path in list(own.parent.iterdir()):
            if path.name.startswith(f"{own.name}-alive-") and path != self._path(self.id):
                self._locked(path)


def _new_id() -> int:
    return secrets.randbits(62) + 1


# Liveness across machines.

HEARTBEAT = 1.0
"""Seconds between checks of who is alive, and before a lost session is reopened."""
LOCK_CONNECT_TIMEOUT = 2
"""Seconds allowed for connecting: well below `GRACE`, so that failed attempts do not make a process count as dead."""
GRACE = 5.0
"""Seconds without a lock until a process counts as dead. A restarted server drops all locks at once."""
STALE = 5.0
"""Seconds of silence after which a lock no longer counts: a stopped process keeps its sessions."""
LEASE = 5.0
"""Seconds after its last sign in which a process cannot count as dead: well below `STALE` plus `GRACE`."""
FORGET_AFTER = 600.0
LIVENESS_TABLES = (
    """
    create table life (
        id integer primary key, name text not null, role text not null, since timestamptz not null, gone timestamptz
    );
    """,
    "alter table life add column seen timestamptz not null default clock_timestamp();",
)
# A 64-bit lock number is stored in two 32-bit columns.
_HELD = """
select (classid::bigint << 32) | objid::bigint as id from pg_locks
where locktype = 'advisory' and objsubid = 1 and granted
    and database = (select oid from pg_database where datname = current_database())"""
_UPDATE_GONE = f"""
with held as ({_HELD}
), looked_at as (
    select life.id, held.id is not null and seen > clock_timestamp() - make_interval(secs => %s) as here
    from life left join held on held.id = life.id
)
update life set gone = case when here then null else clock_timestamp() end
from looked_at where looked_at.id = life.id and here <> (gone is null)"""
_REGISTER = """
insert into life (id, name, role, since) values (%s, %s, %s, clock_timestamp())
on conflict (id) do update set gone = null, role = excluded.role, seen = clock_timestamp()"""
_SIGN = "update life set seen = clock_timestamp() where id = %s"
_ALIVE = f"(gone is null or gone > clock_timestamp() - make_interval(secs => {GRACE}))"
_FORGET = "delete from life where gone < clock_timestamp() - make_interval(secs => %s)"

log = logging.getLogger(__name__)


class SessionLiveness:
    """Holds a lock in a database session, in a thread that reconnects when the session breaks.

    Every live process gives a sign each second and records in a table which others have no lock or give no sign. After
    `GRACE` seconds of that, a process counts as dead. Only the server's clock is used, and no process counts as dead
    because the server is unavailable. A process knows from its own clock that others may have considered it dead if its
    last sign is older than `LEASE`.
    """

    def __init__(
        self, database: Database, connect: Callable[[int], Any], connection_errors: tuple[type[Exception], ...]
    ) -> None:
        """Register this process and wait until it holds its lock. `connect` opens a session within some seconds."""
        database.migrate("life", LIVENESS_TABLES)
        self._connect, self._connection_errors = connect, connection_errors
        self.id = _new_id()
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._role = ""
        self._database = database
        self._stop = threading.Event()
        self._held = threading.Event()
        self._here = False
        self._term = 0
        self._signed = -LEASE
        self._thread = threading.Thread(target=self._live, name="sign of life", daemon=True)
        self._thread.start()
        self._held.wait()

    @property
    def term(self) -> int:
        """A number that changes after a gap in the signs during which others may have taken over."""
        return self._term

    def holds(self, term: int) -> bool:
        """Whether there was no such gap since that number was read."""
        return term == self._term and steady_seconds() - self._signed < LEASE

    def _sign_given(self, at: float) -> None:
        """Record a sign with the time before it was sent, because the server starts counting later."""
        if at - self._signed >= LEASE:
            self._term += 1
        self._signed = at

    def alive(self, id: int) -> bool:
        """Whether that process holds its lock or lost it less than `GRACE` seconds ago."""
        return id == self.id or bool(self._database.read(f"select 1 from life where id = ? and {_ALIVE}", (id,)))

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of the given processes that are dead."""
        wanted = set(ids)
        return wanted - self.living().keys() if wanted else wanted

    def asleep(self, ids: Iterable[int]) -> set[int]:
        """Those that are stopped while a session with their lock is still open."""
        wanted = set(ids)
        return wanted & {id for (id,) in self._database.read(_HELD)} if wanted else wanted

    def living(self, role: str | None = None) -> dict[int, str]:
        """All live processes, or those with a role, with their machine and process id."""
        rows = self._database.read(f"select id, name, role from life where {_ALIVE}")
        processes = [*rows, (self.id, self._name, self._role)]
        return {id: name for id, name, has in processes if role in (None, has)}

    def play(self, role: str) -> None:
        """Record the role of this process."""
        self._role = role
        self._database.write("update life set role = ? where id = ?", (role, self.id))

    def close(self) -> None:
        """Sign off, so that others need not wait for the grace period."""
        self._stop.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._stop.is_set():
            try:
                with self._connect(LOCK_CONNECT_TIMEOUT) as con:
                    if self._hold(con):
                        self._look_around(con)
            except self._connection_errors as error:
                if self._here:
                    log.warning("the sign of life was lost: %s", " ".join(str(error).split()))
                self._here = False
            self._stop.wait(HEARTBEAT / 4)
        self._held.set()

    def _hold(self, con: Any) -> bool:
        """Try to take the lock; False while the server still keeps the broken session."""
        at = steady_seconds()
        row: SqlRow | None = con.execute("select pg_try_advisory_lock(%s)", (self.id,)).fetchone()
        if row is None or not row[0]:
            return False
        con.execute(_REGISTER, (self.id, self._name, self._role))
        self._sign_given(at)
        self._held.set()
        self._here = True
        return True

    def _look_around(self, con: Any) -> None:
        while True:
            # Immediately, so that commands that end within a second notice dead processes too.
            con.execute(_UPDATE_GONE, (STALE,))
            con.execute(_FORGET, (FORGET_AFTER,))
            if self._stop.wait(HEARTBEAT):
                break
            at = steady_seconds()
            if not con.execute(_SIGN, (self.id,)).rowcount:  # The row of this process was deleted.
                con.execute(_REGISTER, (self.id, self._name, self._role))
            self._sign_given(at)
        con.execute("delete from life where id = %s", (self.id,))
