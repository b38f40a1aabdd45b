import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from foretell.runs.claims import ClaimTable
from foretell.runs.store import RunStore

Place = Path | str
DUE = "2026-11-15T08:00:00+00:00"
CHILD = """
import sys, time
from foretell.runs.claims import ClaimTable
from foretell.runs.store import RunStore
print(ClaimTable(RunStore(sys.argv[1]).database).take("collect", sys.argv[2]), flush=True)
time.sleep(600)
"""


def test_one_of_many_threads_takes_a_claim(place: Place):
    stores = [RunStore(place) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for hour in range(5):
            due = f"2026-11-15T0{hour}:00:00+00:00"
            taken = list(pool.map(lambda store, due=due: ClaimTable(store.database).take("collect", due), stores))
            assert sum(taken) == 1
    for store in stores:
        store.close()


def test_finished_work_is_not_claimed_again(place: Place):
    with closing(RunStore(place)) as store:
        once = ClaimTable(store.database)
        assert once.take("collect", DUE)
        assert not once.take("collect", DUE)
        assert once.take("resolve", DUE)
        once.done("collect", DUE)
    with closing(RunStore(place)) as store:
        assert not ClaimTable(store.database).take("collect", DUE)
        assert ClaimTable(store.database).take("resolve", DUE)  # The process that took it ended without finishing it.


def test_claim_of_a_dead_process_is_taken_over(place: Place):
    with closing(RunStore(place)) as store:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(place), DUE], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "True"
        once = ClaimTable(store.database)
        assert not once.take("collect", DUE)
        child.kill()
        child.communicate()
        until = time.monotonic() + 30
        while not once.take("collect", DUE):
            assert time.monotonic() < until
            time.sleep(0.1)


def test_work_cancelled_twice_can_be_claimed_again(place: Place):
    """A worker that was suspended cancels the same trial for its lost lease and for its lost place in the queue."""

    async def claims_again(cancellations: int, steps: int) -> None:
        async with claims.claim("collect", DUE) as first:
            assert first

        async def hold() -> None:
            async with claims.claim("collect", DUE):
                await asyncio.Event().wait()

        holder = asyncio.create_task(hold())
        for _ in range(cancellations):
            for _ in range(steps):
                await asyncio.sleep(0)
            holder.cancel()
        await asyncio.wait([holder])
        async with asyncio.timeout(30):
            while True:
                async with claims.claim("collect", DUE) as ours:
                    if ours:
                        return
                await asyncio.sleep(0.01)

    with closing(RunStore(place)) as store:
        claims = ClaimTable(store.database)
        for cancellations in (1, 2, 3):
            for steps in (0, 1, 2, 3, 5, 50):
                asyncio.run(claims_again(cancellations, steps))
