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

from foretell.models.canonical import content_key
from foretell.models.journal import Journal, entry_fault

ANSWERS, AT_ONCE = 1500, 32
KILLS = 33


def body(place: int) -> bytes:
    return f"answer {place} ".encode() * (1 + place % 200)


async def life(home: Path) -> None:
    """Request everything. What is in the journal is free."""
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
    """Run a process and kill it shortly after a number of payments. Returns False if it ended before."""
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


def look(home: Path, paid_when_stored: dict[int, int]) -> None:
    """Check that used replies are stored unchanged and that stored replies were not paid for again."""
    keys = {content_key(place): place for place in range(ANSWERS)}
    with closing(sqlite3.connect(home / "journal.db")) as con:
        rows = con.execute("select * from kept").fetchall()
        assert con.execute("pragma quick_check").fetchone() == ("ok",)
    assert not any(entry_fault(row) for row in rows)
    stored, paid = {keys[row[0].hex()] for row in rows}, Counter(lines(home / "paid"))
    assert set(lines(home / "used")) <= stored
    for place in stored:
        assert paid_when_stored.setdefault(place, paid[place]) == paid[place], "paid twice"


def main(home: Path) -> None:
    rng, killed, paid_when_stored = random.Random(11), 0, dict[int, int]()
    Journal(home / "journal.db").close()
    for kill in range(KILLS):
        # At any time after the start, or during a burst of payments.
        early = kill % 4 == 0
        burst = 0 if early else size(home / "paid") + rng.randrange(5 * AT_ONCE)
        killed += forked(home, burst, rng.uniform(0, 0.05 if early else 0.005))
        look(home, paid_when_stored)
    with closing(Journal(home / "journal.db")) as journal:
        lost = journal.sends() - journal.database.read("select count(*) from kept")[0][0]
    asyncio.run(life(home))
    look(home, paid_when_stored)
    paid = Counter(lines(home / "paid"))
    assert set(paid) == set(range(ANSWERS))
    again = sum(paid.values()) - ANSWERS
    assert again <= lost <= killed * AT_ONCE
    print(killed, again, lost)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
