"""What store, journal and limits need from a database; SQLite and PostgreSQL stand behind it."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from foretell.questions.errors import InputError

T = TypeVar("T")
P = ParamSpec("P")
SqlRow = tuple[Any, ...]
SqlValues = Sequence[Any]


def refuse_newer(place: str, part: str, version: int, known: int) -> None:
    """Raise where a newer foretell wrote the tables: using them with older code could spoil them."""
    if version > known:
        raise InputError(
            f"a newer foretell wrote this ({part} version {version}, this one knows {known})",
            path=place,
            hint="update foretell, or set FORETELL_HOME to another folder",
        )


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
        """Seconds since 1970, by a clock that everybody with this database shares."""
        ...


class Liveness(Protocol):
    """The sign of life of one who has a database open. It vanishes with the process, however that ends."""

    id: int
    """Unlike that of anybody else, ever."""

    def alive(self, id: int) -> bool:
        """Whether the one with that id is still there."""
        ...

    def gone(self, ids: Iterable[int]) -> set[int]:
        """Those of them that are not."""
        ...

    def close(self) -> None:
        """Sign off."""
        ...


class Database(Statements, Protocol):
    """A place to keep things. A statement outside of `together` is committed when it returns.

    A server that goes away is waited for: what was begun is done when it is back.
    """

    place: str
    """For people; without a password."""
    shared: bool
    """Whether other machines may have it open."""

    @property
    def life(self) -> Liveness:
        """Ours; it begins when it is first asked for."""
        ...

    def migrate(self, part: str, scripts: Sequence[str]) -> None:
        """Bring the tables of one part up to date; safe when several processes do so at once.

        Each script brings them one version further. They are written for SQLite; existing ones never change. Tables of
        a newer version than the scripts know are refused with an `InputError`, and not touched.
        """
        ...

    def together(self, work: Callable[[Statements], T], *, alone: str = "") -> T:
        """Do all of it in one transaction, or nothing. With `alone` nobody else is at work under that name."""
        ...

    def stream(self, sql: str, values: SqlValues = ()) -> Iterator[SqlRow]:
        """Rows one by one, for results that are large."""
        ...

    def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Do it without holding up the event loop. Once begun it is finished, also when the waiter is cancelled."""
        ...

    def later(self, work: Callable[[], object]) -> None:
        """Do it soon; nobody waits for it."""
        ...

    async def settled(self) -> None:
        """Wait until what was written would survive a power cut."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
