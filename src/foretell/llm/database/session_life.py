"""Signs of life over many machines: a lock that a PostgreSQL session holds, and that vanishes with the session."""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from foretell.llm.database.port import Row

if TYPE_CHECKING:
    from foretell.llm.database.postgres import Connection, PostgresDatabase

BEAT = 1.0
"""Seconds between two looks at who is there, and before a lost session is taken up again."""
PATIENCE = 2
"""Seconds that the server may take to let us in: well below the grace, or one who tries in vain would be gone."""
GRACE = 5.0
"""Seconds without a lock after which one counts as gone: when the server restarts, everybody loses theirs at once."""
FORGET = 600.0
TABLES = (
    """
    create table life (
        id integer primary key, name text not null, role text not null, since timestamptz not null, gone timestamptz
    );
    """,
)
# The lock of 64 bits stands in two columns of 32.
_LOOK = """
with held as (
    select (classid::bigint << 32) | objid::bigint as id from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
        and database = (select oid from pg_database where datname = current_database())
), seen as (select life.id, held.id is not null as here from life left join held on held.id = life.id)
update life set gone = case when here then null else clock_timestamp() end
from seen where seen.id = life.id and here <> (gone is null)"""
_BEGIN = """
insert into life (id, name, role, since) values (%s, %s, %s, clock_timestamp())
on conflict (id) do update set gone = null, role = excluded.role"""
_ALIVE = f"(gone is null or gone > clock_timestamp() - make_interval(secs => {GRACE}))"
_FORGET = "delete from life where gone < clock_timestamp() - make_interval(secs => %s)"

log = logging.getLogger(__name__)


class SessionLife:
    """Keeps a session with a lock of its own, in a thread that takes it up again when it breaks.

    All who live note in a table who has no lock; one that stays so for `GRACE` seconds is gone. Nobody's clock but the
    server's counts, and while the server is away nobody dies.
    """

    def __init__(self, database: "PostgresDatabase") -> None:
        database.migrate("life", TABLES)
        self.id = secrets.randbits(62) + 1
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._role = ""
        self._database = database
        self._stop = threading.Event()
        self._held = threading.Event()
        self._here = False
        self._thread = threading.Thread(target=self._live, name="sign of life", daemon=True)
        self._thread.start()
        self._held.wait()

    def alive(self, id: int) -> bool:
        """Whether that one has its lock, or lost it only a moment ago."""
        return id == self.id or bool(self._database.read(f"select 1 from life where id = ? and {_ALIVE}", (id,)))

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of them that are not."""
        asked = set(ids)
        return asked - self.living().keys() if asked else asked

    def living(self, role: str | None = None) -> dict[int, str]:
        """All who are there, or those with a role, with machine and process."""
        rows = self._database.read(f"select id, name, role from life where {_ALIVE}")
        found = [*rows, (self.id, self._name, self._role)]
        return {id: name for id, name, has in found if role in (None, has)}

    def play(self, role: str) -> None:
        """Tell the others what we are here for."""
        self._role = role
        self._database.write("update life set role = ? where id = ?", (role, self.id))

    def close(self) -> None:
        """Sign off: nobody needs to wait for the grace to pass."""
        self._stop.set()
        self._thread.join()

    def _live(self) -> None:
        from foretell.llm.database.postgres import AWAY

        while not self._stop.is_set():
            try:
                with self._database.connect(PATIENCE) as con:
                    if self._hold(con):
                        self._look_around(con)
            except AWAY as error:
                if self._here:
                    log.warning("the sign of life was lost: %s", " ".join(str(error).split()))
                self._here = False
            self._stop.wait(BEAT / 4)
        self._held.set()

    def _hold(self, con: "Connection") -> bool:
        """False while the server still believes in the session that broke."""
        found: Row | None = con.execute("select pg_try_advisory_lock(%s)", (self.id,)).fetchone()
        if found is None or not found[0]:
            return False
        con.execute(_BEGIN, (self.id, self._name, self._role))
        self._held.set()
        self._here = True
        return True

    def _look_around(self, con: "Connection") -> None:
        while not self._stop.wait(BEAT):
            con.execute(_LOOK)
            con.execute(_FORGET, (FORGET,))
        con.execute("delete from life where id = %s", (self.id,))
