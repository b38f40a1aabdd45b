"""Who works at what: two processes never at the same thing, and another takes over from one that dies."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from foretell.arena.once import Once
from foretell.llm.database.port import Database


class Claims:
    """Claims of one process. What was claimed and ended can be claimed again: whether it is done stands elsewhere."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._once = Once(database)
        self._held: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def claim(self, name: str, what: str) -> AsyncGenerator[bool]:
        """Whether it is ours while the block lasts."""
        if (name, what) in self._held:
            yield False
            return
        self._held.add((name, what))
        try:
            mine = await self._db.aside(self._once.take, name, what)
            try:
                yield mine
            finally:
                if mine:
                    await self._db.aside(self._once.give_back, name, what)
        finally:
            self._held.discard((name, what))
