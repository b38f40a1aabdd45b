"""Claims on work: two processes never do the same thing, and another takes over when one dies."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from foretell.models.database.interface import Database, Statements

NOBODY = 0
_TAKE = """
insert into tick (name, due, owner) values (?, ?, ?)
on conflict (name, due) do update set owner = excluded.owner where tick.done = 0 and tick.owner = ?"""
_GIVE_BACK = "delete from tick where name = ? and due = ? and owner = ? and done = 0"
_OURS = "select due from tick where name = ? and owner = ? and done = 0"
_DONE = "update tick set done = 1 where name = ? and due = ?"


class ClaimTable:
    """Due work is done once, however many processes wait for it. If the process that took it dies, another takes over.

    ::

        claims = ClaimTable(store.database)
        if claims.take("collect", "2026-11-15T08:00:00+00:00"):
            collect()
            claims.done("collect", "2026-11-15T08:00:00+00:00")
    """

    def __init__(self, database: Database) -> None:
        self._db = database
        self._ours: set[tuple[str, str]] = set()
        self._claimed: set[tuple[str, str]] = set()

    def take(self, name: str, due: str) -> bool:
        """Whether we have claimed the work. What we took and did not finish stays ours as long as we live."""
        if (name, due) in self._ours or not self._taken(name, due, self._db.life.id):
            return False
        self._ours.add((name, due))
        return True

    def _taken(self, name: str, due: str, me: int) -> bool:
        if self._db.write(_TAKE, (name, due, me, NOBODY)):
            return True
        found = self._db.read("select owner, done from tick where name = ? and due = ?", (name, due))
        if not found:  # Given back this very moment.
            return False
        owner, done = found[0]
        if done or owner == me:  # Ours: taken by a statement of which we never heard that it went through.
            return not done
        return not self._db.life.alive(owner) and bool(self._db.write(_TAKE, (name, due, me, owner)))

    def done(self, name: str, due: str) -> None:
        """Record that the work is done, so that nobody does it again."""
        self._db.write(_DONE, (name, due))

    def give_back(self, name: str, due: str) -> None:
        """Release unfinished work, so that it can be claimed again."""
        self._db.write(_GIVE_BACK, (name, due, self._db.life.id))
        self._ours.discard((name, due))

    def take_away(self, statements: Statements, name: str, due: str, owner: int) -> None:
        """End the claim of a process that counts as dead. If it only slept, it learns of it on waking."""
        statements.write(_GIVE_BACK, (name, due, owner))

    def ours(self, statements: Statements, name: str, only: str | None = None) -> set[str]:
        """The claims we still hold under a name, fixed until the end of the transaction.

        A process that was suspended, and that others considered dead, learns of it here before it writes anything.
        """
        lock = " for share" if self._db.shared else ""
        one, which = ("", ()) if only is None else (" and due = ?", (only,))
        return {due for (due,) in statements.read(f"{_OURS}{one}{lock}", (name, self._db.life.id, *which))}

    @asynccontextmanager
    async def claim(self, name: str, what: str) -> AsyncGenerator[bool]:
        """Whether we hold the claim for the duration of the block. Whether the work is done is recorded elsewhere."""
        if (name, what) in self._claimed:  # By another task of this process, which may be taking it right now.
            yield False
            return
        self._claimed.add((name, what))
        try:
            taking = asyncio.ensure_future(self._db.grouped(lambda: self.take(name, what)))
            try:
                yield await taking
            finally:
                # Also where whoever waited was stopped the moment it was taken.
                if taking.done() and not taking.cancelled() and taking.exception() is None and taking.result():
                    await self._db.grouped(lambda: self.give_back(name, what))
        finally:
            self._claimed.discard((name, what))
