"""Claims on work, so that two processes never do the same work and another takes over when one dies."""

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
_HELD = f"select due, owner from tick where name = ? and done = 0 and owner <> {NOBODY}"
_DONE = "update tick set done = 1 where name = ? and due = ?"


class ClaimTable:
    """Table of claims, so that one of many processes does due work. If it dies, another takes over.

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
        self._releases: set[asyncio.Task[None]] = set()

    def take(self, name: str, due: str) -> bool:
        """Claim the work and return whether that succeeded. Unfinished work stays claimed while this process lives."""
        if (name, due) in self._ours or not self._taken(name, due, self._db.life.id):
            return False
        self._ours.add((name, due))
        return True

    def _taken(self, name: str, due: str, me: int) -> bool:
        if self._db.write(_TAKE, (name, due, me, NOBODY)):
            return True
        rows = self._db.read("select owner, done from tick where name = ? and due = ?", (name, due))
        if not rows:  # Released since the statement above.
            return False
        owner, done = rows[0]
        if done or owner == me:  # Ours if the statement succeeded but its reply was lost.
            return not done
        return not self._db.life.alive(owner) and bool(self._db.write(_TAKE, (name, due, me, owner)))

    def held(self, name: str) -> set[str]:
        """Return the unfinished work under a name that a living process has claimed."""
        rows = self._db.read(_HELD, (name,))
        ended = self._db.life.gone({owner for _, owner in rows})
        return {due for due, owner in rows if owner not in ended}

    def is_done(self, name: str, due: str) -> bool:
        """Return whether the work is done."""
        return bool(self._db.read("select 1 from tick where name = ? and due = ? and done = 1", (name, due)))

    def done(self, name: str, due: str) -> None:
        """Record that the work is done. It is not done again."""
        self._db.write(_DONE, (name, due))

    def give_back(self, name: str, due: str) -> None:
        """Release unfinished work, so that it can be claimed again."""
        self._db.write(_GIVE_BACK, (name, due, self._db.life.id))
        self._ours.discard((name, due))

    def take_away(self, statements: Statements, name: str, due: str, owner: int) -> None:
        """End the claim of a process that counts as dead. If it was only suspended, it notices on resuming."""
        statements.write(_GIVE_BACK, (name, due, owner))

    def ours(self, statements: Statements, name: str, only: str | None = None) -> set[str]:
        """Return the claims that we still hold under a name, locked until the end of the transaction.

        A suspended process whose claims were taken away notices it here, before it writes anything.
        """
        condition, values = ("", ()) if only is None else (" and due = ?", (only,))
        query = f"{_OURS}{condition}{self._db.row_lock}"
        return {due for (due,) in statements.read(query, (name, self._db.life.id, *values))}

    @asynccontextmanager
    async def claim(self, name: str, what: str) -> AsyncGenerator[bool]:
        """Hold a claim during the block and yield whether we have it. The block records whether the work is done."""
        if (name, what) in self._claimed:  # By another task of this process.
            yield False
            return
        self._claimed.add((name, what))
        taking = asyncio.ensure_future(self._db.grouped(lambda: self.take(name, what)))
        try:
            yield await asyncio.shield(taking)
        finally:
            # In its own task: a second cancellation would leave the work claimed for as long as this process lives.
            releasing = asyncio.create_task(self._release(name, what, taking))
            self._releases.add(releasing)
            releasing.add_done_callback(self._releases.discard)
            await asyncio.shield(releasing)

    async def _release(self, name: str, what: str, taking: "asyncio.Future[bool]") -> None:
        try:
            if await taking:
                await self._db.grouped(lambda: self.give_back(name, what))
        finally:
            self._claimed.discard((name, what))
