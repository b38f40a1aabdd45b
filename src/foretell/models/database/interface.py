"""The database interface of run store, journal and rate limits, implemented for SQLite and PostgreSQL."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from foretell.questions.errors import InputError

T = TypeVar("T")
P = ParamSpec("P")
SqlRow = tuple[Any, ...]
SqlValues = Sequence[Any]
WRITE_VERSION = "insert into version values (?, ?) on conflict (part) do update set number = excluded.number"


def like_pattern(text: str) -> str:
    """Return the pattern that matches exactly this text in `like ? escape '!'`.

    >>> like_pattern("50%_!")
    '50!%!_!!'
    """
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


class Statements(Protocol):
    """SQL that both dialects understand, with `?` as placeholder."""

    def read(self, sql: str, values: SqlValues = ()) -> list[SqlRow]:
        """All rows of a query."""
        ...

    def write(self, sql: str, values: SqlValues = ()) -> int:
        """Execute a statement and return the number of changed rows."""
        ...

    def write_many(self, sql: str, rows: Sequence[SqlValues]) -> None:
        """Execute the same statement for many rows."""
        ...

    def now(self) -> float:
        """Seconds on a clock shared by all users of this database, counted from an arbitrary time."""
        ...


class Liveness(Protocol):
    """Shows other processes that this one is alive. The sign disappears when the process ends for any reason."""

    id: int
    """Unique among all processes, ever."""

    @property
    def term(self) -> int:
        """A number that changes when others may have considered this process dead and taken over its work."""
        ...

    def holds(self, term: int) -> bool:
        """Whether no other process can have considered this one dead since that number was read."""
        ...

    def alive(self, id: int) -> bool:
        """Whether the process with that id is alive."""
        ...

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of the given processes that are dead."""
        ...

    def asleep(self, ids: Iterable[int]) -> set[int]:
        """Those considered dead only because they gave no sign. Their requests may still be in flight."""
        ...

    def close(self) -> None:
        """Remove the sign of life."""
        ...


class Database(Statements, ABC):
    """A SQL database. A statement outside of `together` is committed when it returns.

    If a server goes away, statements wait for its return and are then completed.
    """

    shared: bool
    """Whether other machines may have it open."""
    read_only = False
    """Whether it is stored where this process cannot write."""
    row_lock = ""
    """Appended to a query, keeps its rows from being changed until the end of the transaction."""

    def __init__(self, place: str) -> None:
        self.place = place
        """Location for messages, without any password."""
        self._lock = threading.RLock()
        self._life: Liveness | None = None

    @property
    def life(self) -> Liveness:
        """The liveness of this process, started on first use."""
        if self._life is None:
            with self._lock:
                self._life = self._life or self._new_life()
        return self._life

    @abstractmethod
    def _new_life(self) -> Liveness: ...

    def migrate(self, part: str, scripts: Sequence[str]) -> None:
        """Bring the tables of one part up to date; safe when several processes do it at the same time.

        Each script raises the version by one. Scripts are written for SQLite and never change once released. Tables of
        a newer version than the scripts know are refused and left untouched, because older code could damage them.
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
            # Checked again under the lock, because another process may have been quicker.
            for script in scripts[self._version(statements, part) :]:
                for statement in filter(str.strip, script.split(";")):
                    statements.write(self._table_description(statement))
            self._set_version(statements, part, len(scripts))

        self.together(bring_up, alone="migrate")

    @abstractmethod
    def _version(self, statements: Statements, part: str) -> int:
        """Number of scripts already applied to a part."""

    @abstractmethod
    def _set_version(self, statements: Statements, part: str, number: int) -> None: ...

    def _table_description(self, statement: str) -> str:
        """Translate a script's statement into this database's dialect."""
        return statement

    # Expressions for which the two dialects have no common words.

    @abstractmethod
    def json_field(self, column: str, field: str, kind: Literal["text", "number", "flag"] = "text") -> str:
        """Return an expression for a field of the JSON objects in a column."""

    @abstractmethod
    def concatenated(self, expression: str, order: str) -> str:
        """Return an expression that joins numbers of all rows with commas, in the order of a column."""

    @abstractmethod
    def concatenated_bytes(self, column: str, order: str) -> str:
        """Return an expression that joins the blobs of all rows, in the order of a column."""

    def change_mark(self) -> tuple[int, ...] | None:
        """Return a value that changes with every write by any process; None if that is not known."""
        return None

    @abstractmethod
    def together(self, work: Callable[[Statements], T], *, alone: str = "", flushed: bool = True) -> T:
        """Run `work` in one transaction. With `alone`, no other process is in a transaction of that name.

        Without `flushed`, a server need not wait for its disk. Others see the result at once, and the next flushed
        transaction of anyone writes it to disk too. Use it for what matters only once such a transaction follows.
        """

    def joined(self, work: Callable[[Statements], T], *, alone: str = "", flushed: bool = True) -> T:
        """Like `together`, but as a part of the transaction that `grouped` has open, if there is one.

        It needs no savepoint. Use it for work that writes nothing before it raises.
        """
        return self.together(work, alone=alone, flushed=flushed)

    @abstractmethod
    def stream(self, sql: str, values: SqlValues = ()) -> Iterator[SqlRow]:
        """Rows one by one, for large results."""

    @abstractmethod
    def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Run `work` without blocking the event loop. Once started it completes, even if the waiter is cancelled."""

    def grouped(self, work: Callable[[], T], *, others: int = 0) -> Awaitable[T]:
        """Like `aside`, for a few statements that may share a transaction with others to save time.

        The more `others` are in flight, the longer it may wait for more statements, a few milliseconds at most. If the
        waiter is cancelled before the work starts, it is not done.
        """
        return self.aside(work)

    def grouped_durably(self, work: Callable[[], T], *, others: int = 0) -> Awaitable[T]:
        """Like `grouped`, for paid replies. It runs even if the waiter is cancelled and is on disk when it returns."""

        async def settled() -> T:
            result = await asyncio.shield(asyncio.ensure_future(self.grouped(work, others=others)))
            await self.settled()
            return result

        return settled()

    @abstractmethod
    def later(self, work: Callable[[], object]) -> None:
        """Run `work` soon, without waiting for it."""

    def check_room(self) -> None:
        """Raise `NoRoom` if the disk has no room for new replies. Does nothing for a server."""

    async def room(self) -> None:
        """Wait until there is room."""

    @abstractmethod
    async def settled(self) -> None:
        """Wait until everything written would survive a power cut."""

    @abstractmethod
    def close(self) -> None:
        """Finish started work and close the database."""
