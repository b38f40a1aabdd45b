"""Writes to a journal in bursts, from a fork that is killed again and again; every payment is a line in a file."""

import asyncio
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from foretell.models import Journal, content_key, entry_fault

ANSWERS, AT_ONCE = 1500, 32
KILLS = 33


def body(place: int) -> bytes:
    return f"answer {place} ".encode() * (1 + place % 200)


async def life(home: Path) -> None:
    """Ask for everything; what is in the journal costs nothing."""
    paid = os.open(home / "paid", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    used = os.open(home / "used", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    places = iter(range(ANSWERS))
    with closing(Journal(home / "journal.db", durable=False)) as journal:

        async def work() -> None:
            for place in places:

                async def pay(place: int = place) -> bytes:
                    os.write(paid, f"{place}\n".encode())
                    await asyncio.sleep(0.0005)
                    return body(place)

                assert await journal.once(content_key(place), "tool", pay) == body(place)
                os.write(used, f"{place}\n".encode())

        await asyncio.gather(*[work() for _ in range(AT_ONCE)])


def lines(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def forked(home: Path, burst: int, pause: float) -> bool:
    """One life, killed a moment after so much was paid; whether it was, and had not ended before."""
    child = os.fork()
    if child == 0:
        asyncio.run(life(home))
        os._exit(0)
    while size(home / "paid") < burst:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.0002)
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def look(home: Path, paid_when_kept: dict[int, int]) -> None:
    """What was used is kept and unchanged; what was kept was not paid for again."""
    keys = {content_key(place): place for place in range(ANSWERS)}
    with closing(sqlite3.connect(home / "journal.db")) as con:
        rows = con.execute("select * from kept").fetchall()
        assert con.execute("pragma quick_check").fetchone() == ("ok",)
    assert not any(entry_fault(row) for row in rows)
    kept, paid = {keys[row[0].hex()] for row in rows}, Counter(lines(home / "paid"))
    assert set(lines(home / "used")) <= kept
    for place in kept:
        assert paid_when_kept.setdefault(place, paid[place]) == paid[place], "paid twice"


def main(home: Path) -> None:
    rng, killed, paid_when_kept = random.Random(11), 0, dict[int, int]()
    Journal(home / "journal.db").close()
    for kill in range(KILLS):
        # Anywhere from its first breath on, or when a burst of payments is under way.
        early = kill % 4 == 0
        burst = 0 if early else size(home / "paid") + rng.randrange(5 * AT_ONCE)
        killed += forked(home, burst, rng.uniform(0, 0.05 if early else 0.005))
        look(home, paid_when_kept)
    with closing(Journal(home / "journal.db")) as journal:
        lost = journal.maybe_paid()
    asyncio.run(life(home))
    look(home, paid_when_kept)
    paid = Counter(lines(home / "paid"))
    assert set(paid) == set(range(ANSWERS))
    again = sum(paid.values()) - ANSWERS
    assert again <= lost <= killed * AT_ONCE
    print(killed, again, lost)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
