"""A server that goes away in the midst of it."""

import asyncio
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from fakes.postgres import LocalPostgres
from foretell.models.canonical import content_key
from foretell.models.database import open_database
from foretell.models.database.interface import Statements
from foretell.models.journal import Journal

Place = Path | str
COUNTER = ("create table counter (name text primary key, n integer not null);",)


def test_all_of_it_or_nothing(place: Place):
    def broken(statements: Statements) -> None:
        statements.write("insert into counter values ('a', 1)")
        raise RuntimeError("in the midst of it")

    with closing(open_database(place, "test")) as database:
        database.migrate("counter", COUNTER)
        with pytest.raises(RuntimeError):
            database.together(broken)
        assert database.read("select * from counter") == []
        assert abs(database.now() - time.time()) < 60


def test_one_at_a_time_under_a_name(place: Place):
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


def test_a_reply_that_arrives_while_the_server_is_away_is_kept(postgres: str, postgres_server: LocalPostgres):
    asked: list[int] = []

    async def main() -> None:
        journal = Journal(postgres)
        away = asyncio.Event()

        async def ask(place: int) -> bytes:
            async def fetch() -> bytes:
                asked.append(place)
                await away.wait()
                return f"reply {place}".encode()

            return await journal.once(content_key(place), "tool", fetch)

        waiting = [asyncio.create_task(ask(place)) for place in range(30)]
        while len(asked) < 30:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(postgres_server.stop, "immediate")
        ticked = threading.Event()

        def come_back() -> bool:
            in_time = ticked.wait(60)
            postgres_server.start()
            return in_time

        back = asyncio.get_running_loop().run_in_executor(None, come_back)
        away.set()
        # The loop is not held up while everybody waits for the server.
        for _ in range(30):
            await asyncio.sleep(0.1)
        assert not any(task.done() for task in waiting)
        ticked.set()
        assert await back
        assert [await task for task in waiting] == [f"reply {place}".encode() for place in range(30)]
        assert (journal.sends(), journal.maybe_paid()) == (30, 0)
        journal.close()

    asyncio.run(main())
    with closing(Journal(postgres)) as journal:
        assert len(journal.database.read("SELECT key FROM kept")) == 30
    assert sorted(asked) == list(range(30))


def test_a_cancelled_waiter_does_not_keep_a_reply_from_being_kept(postgres: str, postgres_server: LocalPostgres):
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
        await asyncio.sleep(0.3)  # The reply is there, and waits for the server.
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
