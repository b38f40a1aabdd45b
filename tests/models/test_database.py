"""Transactions, liveness of processes, and an unavailable server."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.postgres import LocalPostgres
from foretell.models.canonical import content_key
from foretell.models.database import open_database
from foretell.models.database.interface import Statements
from foretell.models.database.sqlite import DiskFlush
from foretell.models.journal import Journal, JournalRequest


def test_waiters_share_one_flush_that_starts_after_their_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "wal").write_bytes(b"x")
    go = threading.Event()
    started: list[int] = []

    def fsync(file: int) -> None:
        started.append(file)
        go.wait(10)

    monkeypatch.setattr(os, "fsync", fsync)

    async def main() -> None:
        flush = DiskFlush(tmp_path / "wal")
        early = [asyncio.create_task(flush.settled()) for _ in range(20)]
        while not started:
            await asyncio.sleep(0.001)
        late = [asyncio.create_task(flush.settled()) for _ in range(20)]
        late[0].cancel()
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in [*early, *late[1:]])
        go.set()
        await asyncio.gather(*early, *late[1:])
        assert len(started) == 2
        flush.close()

    asyncio.run(main())


Place = Path | str
CHILD = """
import sys, time
from foretell.models.journal import JournalRequest, Journal
journal = Journal(sys.argv[1])
assert journal.intend(JournalRequest(key=sys.argv[2], kind="tool"))
print(journal.database.life.id, flush=True)
time.sleep(600)
"""
KEY = content_key("in flight")


@contextmanager
def another(place: Place) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that has sent a request and waits for the answer."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(place), KEY], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child, int(child.stdout.readline())
    finally:  # Close the pipe in any case, because an open one would fail a later test when it is collected.
        child.kill()
        child.wait()
        child.stdout.close()


def test_closed_database_is_not_alive_anymore(place: Place):
    with closing(open_database(place, "test")) as mine:
        other = open_database(place, "test")
        assert mine.life.alive(other.life.id)
        assert mine.life.alive(mine.life.id)
        assert other.life.id != mine.life.id
        gone = other.life.id
        other.close()
        assert not mine.life.alive(gone)
        assert not mine.life.alive(12345)


def test_requests_of_a_killed_process_are_taken_over(place: Place):
    async def fetch() -> bytes:
        return b"again"

    async def taken_over(journal: Journal) -> tuple[bytes, float]:
        start = time.monotonic()
        return await journal.once(KEY, "tool", fetch), time.monotonic() - start

    with closing(Journal(place)) as journal, another(place) as (child, id):
        assert not journal.intend(JournalRequest(key=KEY, kind="tool"))
        assert journal.database.life.alive(id)
        child.kill()
        child.wait()
        body, _seconds = asyncio.run(taken_over(journal))
        assert body == b"again"
        assert not journal.database.life.alive(id)
        assert journal.sends() == 2
    assert not isinstance(place, Path) or not list(place.parent.glob("*-alive-*"))


def test_processes_stay_alive_while_the_server_is_unavailable(postgres: str, postgres_server: LocalPostgres):
    with closing(open_database(postgres, "test")) as database, another(postgres) as (_child, id):
        assert database.life.alive(id)
        outage = threading.Thread(target=postgres_server.outage, args=(1.5,))
        outage.start()
        alive: list[bool] = []
        until = time.monotonic() + 9
        while time.monotonic() < until:  # Longer than the grace period.
            alive.append(database.life.alive(id))
            time.sleep(0.05)
        outage.join()
        assert all(alive)


COUNTER = ("create table counter (name text primary key, n integer not null);",)


def test_failed_transaction_is_rolled_back(place: Place):
    def broken(statements: Statements) -> None:
        statements.write("insert into counter values ('a', 1)")
        raise RuntimeError("inside the transaction")

    with closing(open_database(place, "test")) as database:
        database.migrate("counter", COUNTER)
        with pytest.raises(RuntimeError):
            database.together(broken)
        assert database.read("select * from counter") == []
        with closing(open_database(place, "test")) as other:
            assert database.now() <= other.now() <= database.now()


def test_named_transactions_are_exclusive(place: Place):
    def count_up(statements: Statements) -> None:
        ((n,),) = statements.read("select n from counter where name = 'a'")
        statements.write("update counter set n = ? where name = 'a'", (n + 1,))

    with closing(open_database(place, "test")) as one, closing(open_database(place, "test")) as other:
        one.migrate("counter", COUNTER)
        one.write("insert into counter values ('a', 0)")
        threads = [
            threading.Thread(target=lambda who=who: [who.together(count_up, alone="counter") for _ in range(20)])
            for who in (one, other, one, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert one.read("select n from counter") == [(80,)]


def test_reply_that_arrives_while_the_server_is_unavailable_is_stored(postgres: str, postgres_server: LocalPostgres):
    requested: list[int] = []

    async def main() -> None:
        journal = Journal(postgres)
        away = asyncio.Event()

        async def ask(place: int) -> bytes:
            async def fetch() -> bytes:
                requested.append(place)
                await away.wait()
                return f"reply {place}".encode()

            return await journal.once(content_key(place), "tool", fetch)

        waiting = [asyncio.create_task(ask(place)) for place in range(30)]
        while len(requested) < 30:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(postgres_server.stop, "immediate")
        ticked = threading.Event()

        def come_back() -> bool:
            in_time = ticked.wait(60)
            postgres_server.start()
            return in_time

        back = asyncio.get_running_loop().run_in_executor(None, come_back)
        away.set()
        # The event loop is not blocked while callers wait for the server.
        for _ in range(30):
            await asyncio.sleep(0.1)
        assert not any(task.done() for task in waiting)
        ticked.set()
        assert await back
        assert [await task for task in waiting] == [f"reply {place}".encode() for place in range(30)]
        assert journal.sends() == 30
        journal.close()

    asyncio.run(main())
    with closing(Journal(postgres)) as journal:
        assert len(journal.database.read("SELECT key FROM kept")) == 30
    assert sorted(requested) == list(range(30))


def test_reply_is_stored_although_its_waiter_was_cancelled(postgres: str, postgres_server: LocalPostgres):
    async def main() -> None:
        journal = Journal(postgres)
        sent, away = asyncio.Event(), asyncio.Event()

        async def fetch() -> bytes:
            sent.set()
            await away.wait()
            return b"paid for"

        waiting = asyncio.create_task(journal.once(content_key("x"), "tool", fetch))
        await sent.wait()
        await asyncio.to_thread(postgres_server.stop, "immediate")
        away.set()
        await asyncio.sleep(0.3)  # The reply has arrived and waits for the server.
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        back = threading.Timer(0.5, postgres_server.start)
        back.start()
        assert await journal.once(content_key("x"), "tool", fetch) == b"paid for"
        back.join()
        assert journal.sends() == 1
        journal.close()

    asyncio.run(main())


def test_grouped_statements_share_a_transaction_and_fail_separately(tmp_path: Path):
    async def main() -> None:
        with closing(open_database(tmp_path / "a.db", "journal")) as database:
            database.write("create table t (n integer primary key)")
            commits: list[str] = []

            def note(sql: str) -> None:
                if sql == "COMMIT":
                    commits.append(sql)

            connection: Any = database._con  # pyright: ignore
            connection.set_trace_callback(note)

            def add(n: int) -> asyncio.Future[int]:
                return asyncio.ensure_future(database.grouped(lambda: database.write("insert into t values (?)", (n,))))

            added = [add(n) for n in (1, 2, 2, 3)]
            given_up = add(4)
            given_up.cancel()
            ends = await asyncio.gather(*added, return_exceptions=True)
            assert [type(end).__name__ for end in ends] == ["int", "int", "IntegrityError", "int"]
            assert database.read("select n from t order by n") == [(1,), (2,), (3,)]
            assert commits == ["COMMIT"]

    asyncio.run(main())


def test_paid_reply_is_stored_although_its_event_loop_ended(tmp_path: Path):
    database = open_database(tmp_path / "a.db", "journal")
    database.write("create table t (n integer primary key)")

    def add(n: int) -> int:
        return database.write("insert into t values (?)", (n,))

    async def main() -> None:
        await database.grouped_durably(lambda: add(1), others=500)
        waiting = [database.grouped_durably(lambda: add(2), others=500), database.grouped(lambda: add(3), others=500)]
        for work in waiting:
            asyncio.ensure_future(work).cancel()

    asyncio.run(main())
    database.close()
    with closing(open_database(tmp_path / "a.db", "journal")) as again:
        assert again.read("select n from t order by n") == [(1,), (2,)]


CLOSED_UNDER_WAY = """
import sys, threading
from foretell.models.database import open_database
for turn in range(40):
    db = open_database(sys.argv[1], "file of numbers")
    db.write("create table if not exists t (a primary key)")
    db.write_many("insert or ignore into t values (?)", [(i,) for i in range(50)])
    reading = threading.Event()
    def read():
        while True:
            db.read("select count(*) from t a, t b")
            reading.set()
    def stream():
        while True:
            for _ in db.stream("select a.a from t a, t b"):
                pass
    threading.excepthook = lambda args: None
    threads = [threading.Thread(target=work) for work in (read, read, stream)]
    for thread in threads:
        thread.start()
    reading.wait(60)
    db.close()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
"""


def test_closing_a_file_while_threads_read_it_does_not_crash(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLOSED_UNDER_WAY, str(tmp_path / "numbers.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_session_in_use_while_the_database_is_closed_is_closed_too(postgres: str):
    database = open_database(postgres, "test")
    used, closed = threading.Event(), threading.Event()

    def work(statements: Statements) -> Any:
        used.set()
        closed.wait(10)
        return statements.read("select 1")

    thread = threading.Thread(target=database.together, args=(work,))
    thread.start()
    assert used.wait(10)
    database.close()
    closed.set()
    thread.join(10)
    del database, thread
    gc.collect()  # A session that is still open is reported as an unclosed resource.
