"""Signs of life: a locked file on one machine, a session lock in PostgreSQL for several. Both end with the process."""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.models.database.interface import SqlRow
from foretell.questions.clock_jump import steady_seconds
from foretell.questions.errors import storage_error

if TYPE_CHECKING:
    from foretell.models.database.postgres import Connection, PostgresDatabase


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class FileLiveness:
    """Locks a small file next to the database for as long as this process has it open.

    It needs no clock and no heartbeat: a process that can lock the file of another knows that the other has ended, and
    deletes it. Without file locks, or for a database in memory, no other process is ever seen alive.
    """

    def __init__(self, database: str, *, read_only: bool = False) -> None:
        """A process that can only read shows no sign of life but still sees those of others."""
        self._database = database
        self._mode = os.O_RDONLY if read_only else os.O_RDWR
        self.id = _new_id()
        self._file: int | None = None
        if fcntl is not None and database != ":memory:" and not read_only:
            while (locked := self._hold()) is None:
                self.id = _new_id()
            self._file = locked
            self._sweep()

    term = 0

    def holds(self, term: int) -> bool:
        """A file stays locked as long as its process exists, so nobody takes over from a stopped process."""
        return term == self.term

    def alive(self, id: int) -> bool:
        """Whether some process holds the lock of that id."""
        return id == self.id or self._locked(self._path(id))

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of the given processes that have ended."""
        return {id for id in ids if not self.alive(id)}

    def asleep(self, ids: Iterable[int]) -> set[int]:
        """Nothing: a process counts as alive as long as it exists."""
        return set()

    def close(self) -> None:
        """Remove the lock file."""
        if self._file is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._path(self.id))
            os.close(self._file)
            self._file = None

    def _path(self, id: int) -> Path:
        return Path(f"{self._database}-alive-{id:016x}")

    def _hold(self) -> int | None:
        """The locked file, or None if another process deleted it before it was locked."""
        if fcntl is None:
            return None
        path = self._path(self.id)
        try:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        except OSError as error:
            raise storage_error(error, path) or error from None
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(file)):
                return file
        os.close(file)
        return None

    def _locked(self, path: Path) -> bool:
        if fcntl is None:
            return False
        try:
            file = os.open(path, self._mode)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            with suppress(FileNotFoundError):
                if self._mode == os.O_RDWR:
                    os.unlink(path)
            return False
        finally:
            os.close(file)

    def _sweep(self) -> None:
        """Delete files left behind by killed processes."""
        own = Path(self._database)
        for path in list(own.parent.iterdir()):
            if path.name.startswith(f"{own.name}-alive-") and path != self._path(self.id):
                self._locked(path)


def _new_id() -> int:
    return secrets.randbits(62) + 1


# Over many machines.

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
# The lock of 64 bits stands in two columns of 32.
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

    Every live process gives a sign each second and records in a table which others have no lock or give no sign; after
    `GRACE` seconds of that, a process counts as dead. Only the server's clock is used, and nobody dies while the server
    is away. A process knows from its own clock whether others may have considered it dead: when its last sign is older
    than `LEASE`.
    """

    def __init__(self, database: "PostgresDatabase") -> None:
        database.migrate("life", LIVENESS_TABLES)
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
        """Changes when we return after a silence in which others may have taken over our work."""
        return self._term

    def holds(self, term: int) -> bool:
        """Whether we were never silent for too long since that number was read."""
        return term == self._term and steady_seconds() - self._signed < LEASE

    def _sign_given(self, at: float) -> None:
        """Record a sign with the moment before it was sent, because the server starts counting later."""
        if at - self._signed >= LEASE:
            self._term += 1
        self._signed = at

    def alive(self, id: int) -> bool:
        """Whether that process holds its lock or lost it only a moment ago."""
        return id == self.id or bool(self._database.read(f"select 1 from life where id = ? and {_ALIVE}", (id,)))

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of the given processes that are dead."""
        asked = set(ids)
        return asked - self.living().keys() if asked else asked

    def asleep(self, ids: Iterable[int]) -> set[int]:
        """Those that are stopped: a session with their lock is still open."""
        asked = set(ids)
        return asked & {id for (id,) in self._database.read(_HELD)} if asked else asked

    def living(self, role: str | None = None) -> dict[int, str]:
        """All live processes, or those with a role, with their machine and process id."""
        rows = self._database.read(f"select id, name, role from life where {_ALIVE}")
        found = [*rows, (self.id, self._name, self._role)]
        return {id: name for id, name, has in found if role in (None, has)}

    def play(self, role: str) -> None:
        """Announce our role to the others."""
        self._role = role
        self._database.write("update life set role = ? where id = ?", (role, self.id))

    def close(self) -> None:
        """Sign off, so that nobody has to wait for the grace period."""
        self._stop.set()
        self._thread.join()

    def _live(self) -> None:
        from foretell.models.database.postgres import CONNECTION_ERRORS

        while not self._stop.is_set():
            try:
                with self._database.connect(LOCK_CONNECT_TIMEOUT) as con:
                    if self._hold(con):
                        self._look_around(con)
            except CONNECTION_ERRORS as error:
                if self._here:
                    log.warning("the sign of life was lost: %s", " ".join(str(error).split()))
                self._here = False
            self._stop.wait(HEARTBEAT / 4)
        self._held.set()

    def _hold(self, con: "Connection") -> bool:
        """Try to take the lock; False while the server still keeps the broken session."""
        at = steady_seconds()
        found: SqlRow | None = con.execute("select pg_try_advisory_lock(%s)", (self.id,)).fetchone()
        if found is None or not found[0]:
            return False
        con.execute(_REGISTER, (self.id, self._name, self._role))
        self._sign_given(at)
        self._held.set()
        self._here = True
        return True

    def _look_around(self, con: "Connection") -> None:
        while True:
            # At once: commands that end within a second must notice dead processes too, or nobody ever would.
            con.execute(_UPDATE_GONE, (STALE,))
            con.execute(_FORGET, (FORGET_AFTER,))
            if self._stop.wait(HEARTBEAT):
                break
            at = steady_seconds()
            if not con.execute(_SIGN, (self.id,)).rowcount:  # We were forgotten.
                con.execute(_REGISTER, (self.id, self._name, self._role))
            self._sign_given(at)
        con.execute("delete from life where id = %s", (self.id,))
