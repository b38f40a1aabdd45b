"""What store, journal and limits need from a database; SQLite and PostgreSQL stand behind it."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from foretell.questions.errors import InputError

T = TypeVar("T")
P = ParamSpec("P")
SqlRow = tuple[Any, ...]
SqlValues = Sequence[Any]
WRITE_VERSION = "insert into version values (?, ?) on conflict (part) do update set number = excluded.number"


class Statements(Protocol):
    """SQL that both dialects understand, with `?` for values."""

    def read(self, sql: str, values: SqlValues = ()) -> list[SqlRow]:
        """All rows of a query."""
        ...

    def write(self, sql: str, values: SqlValues = ()) -> int:
        """How many rows were changed."""
        ...

    def write_many(self, sql: str, rows: Sequence[SqlValues]) -> None:
        """The same statement for many rows."""
        ...

    def now(self) -> float:
        """Seconds by a clock that everybody with this database shares; they count from no particular moment."""
        ...


class Liveness(Protocol):
    """The sign of life of one who has a database open. It vanishes with the process, however that ends."""

    id: int
    """Unlike that of anybody else, ever."""

    @property
    def term(self) -> int:
        """A number that changes where others may have taken us for gone, and what was ours for theirs."""
        ...

    def holds(self, term: int) -> bool:
        """Whether nobody can have taken us for gone since that number was read."""
        ...

    def alive(self, id: int) -> bool:
        """Whether the one with that id is still there."""
        ...

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of them that are not."""
        ...

    def asleep(self, ids: Iterable[int]) -> set[int]:
        """Those of them that count as gone for their silence only: what they sent may still be under way."""
        ...

    def close(self) -> None:
        """Sign off."""
        ...


class Database(Statements, ABC):
    """A place to keep things. A statement outside of `together` is committed when it returns.

    A server that goes away is waited for: what was begun is done when it is back.
    """

    shared: bool
    """Whether other machines may have it open."""
    read_only = False
    """Whether it lies where nobody here can write."""

    def __init__(self, place: str) -> None:
        self.place = place
        """For people; without a password."""
        self._lock = threading.RLock()
        self._life: Liveness | None = None

    @property
    def life(self) -> Liveness:
        """Ours; it begins when it is first asked for."""
        if self._life is None:
            with self._lock:
                self._life = self._life or self._new_life()
        return self._life

    @abstractmethod
    def _new_life(self) -> Liveness: ...

    def migrate(self, part: str, scripts: Sequence[str]) -> None:
        """Bring the tables of one part up to date; safe when several processes do so at once.

        Each script brings them one version further. They are written for SQLite; existing ones never change. Tables of
        a newer version than the scripts know are refused, and not touched: older code could spoil them.
        """
        version = self._version(self, part)
        if version > len(scripts):
            raise InputError(
                f"a newer foretell wrote this ({part} version {version}, this one knows {len(scripts)})",
                path=self.place,
                hint="update foretell, or set FORETELL_HOME to another folder",
            )
        if version == len(scripts):
            return

        def bring_up(statements: Statements) -> None:
            # Asked again under the lock: another process may have been quicker.
            for script in scripts[self._version(statements, part) :]:
                for statement in filter(str.strip, script.split(";")):
                    statements.write(self._table_description(statement))
            self._set_version(statements, part, len(scripts))

        self.together(bring_up, alone="migrate")

    @abstractmethod
    def _version(self, statements: Statements, part: str) -> int:
        """How many scripts of a part were carried out."""

    @abstractmethod
    def _set_version(self, statements: Statements, part: str, number: int) -> None: ...

    def _table_description(self, statement: str) -> str:
        """A statement of a script in this database's dialect."""
        return statement

    @abstractmethod
    def together(self, work: Callable[[Statements], T], *, alone: str = "") -> T:
        """Do all of it in one transaction, or nothing. With `alone` nobody else is at work under that name."""

    @abstractmethod
    def stream(self, sql: str, values: SqlValues = ()) -> Iterator[SqlRow]:
        """Rows one by one, for results that are large."""

    @abstractmethod
    def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Do it without holding up the event loop. Once begun it is finished, also when the waiter is cancelled."""

    def grouped(self, work: Callable[[], T], *, others: int = 0) -> Awaitable[T]:
        """Like `aside`, for a few statements that may share a transaction with others' where that is cheaper.

        The more `others` are under way, the longer company is waited for: a few milliseconds at most. Who stops
        waiting before it is begun has it left undone.
        """
        return self.aside(work)

    def kept(self, work: Callable[[], T], *, others: int = 0) -> Awaitable[T]:
        """Like `grouped`, for what was paid for: done though nobody waits any more, and on the disk when it returns."""

        async def settled() -> T:
            result = await asyncio.shield(asyncio.ensure_future(self.grouped(work, others=others)))
            await self.settled()
            return result

        return settled()

    @abstractmethod
    def later(self, work: Callable[[], object]) -> None:
        """Do it soon; nobody waits for it."""

    def check_room(self) -> None:
        """Raise `NoRoom` where there is none for what is about to be asked for; a server has its own watchmen."""

    async def room(self) -> None:
        """Wait until there is room for it."""

    @abstractmethod
    async def settled(self) -> None:
        """Wait until what was written would survive a power cut."""

    @abstractmethod
    def close(self) -> None:
        """Finish what was begun and close it."""
