"""Who is there and who is gone: files that a process locks, and locks that a session of PostgreSQL holds."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fakes.postgres import LocalPostgres
from foretell.models.canonical import content_key
from foretell.models.database import open_database
from foretell.models.journal import Journal, JournalRequest

Place = Path | str
CHILD = """
import sys, time
from foretell.models.journal import JournalRequest, Journal
journal = Journal(sys.argv[1])
assert journal.intend(JournalRequest(key=sys.argv[2], kind="tool"))
print(journal.database.life.id, flush=True)
time.sleep(600)
"""
KEY = content_key("on the wire")


@contextmanager
def another(place: Place) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that has sent something and waits for the answer."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(place), KEY], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child, int(child.stdout.readline())
    finally:  # Also where it died at once: a pipe left open fails whichever test runs when it is collected.
        child.kill()
        child.wait()
        child.stdout.close()


def test_one_who_signs_off_is_gone_at_once(place: Place):
    with closing(open_database(place, "test")) as one:
        other = open_database(place, "test")
        assert one.life.alive(other.life.id)
        assert one.life.alive(one.life.id)
        assert other.life.id != one.life.id
        gone = other.life.id
        other.close()
        assert not one.life.alive(gone)
        assert not one.life.alive(12345)


def test_what_a_killed_process_was_asking_is_taken_over(place: Place):
    async def fetch() -> bytes:
        return b"again"

    async def taken_over(journal: Journal) -> tuple[bytes, float]:
        start = time.monotonic()
        return await journal.once(KEY, "tool", fetch), time.monotonic() - start

    with closing(Journal(place)) as journal, another(place) as (child, id):
        assert not journal.intend(JournalRequest(key=KEY, kind="tool"))
        assert journal.database.life.alive(id)
        assert journal.maybe_paid() == 0  # Somebody is at it.
        child.kill()
        child.wait()
        found, _seconds = asyncio.run(taken_over(journal))
        assert found == b"again"
        assert not journal.database.life.alive(id)
        assert (journal.sends(), journal.maybe_paid()) == (2, 1)
    assert not isinstance(place, Path) or not list(place.parent.glob("*-alive-*"))


def test_nobody_dies_while_the_server_is_away(postgres: str, postgres_server: LocalPostgres):
    with closing(open_database(postgres, "test")) as one, another(postgres) as (_child, id):
        assert one.life.alive(id)
        outage = threading.Thread(target=postgres_server.outage, args=(1.5,))
        outage.start()
        seen: list[bool] = []
        until = time.monotonic() + 9
        while time.monotonic() < until:  # Longer than the grace.
            seen.append(one.life.alive(id))
            time.sleep(0.05)
        outage.join()
        assert all(seen)
