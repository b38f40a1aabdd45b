import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from foretell.runs import ClaimTable, RunStore

Place = Path | str
MOMENT = "2026-11-15T08:00:00+00:00"
CHILD = """
import sys, time
from foretell.runs import ClaimTable
from foretell.runs import RunStore
print(ClaimTable(RunStore(sys.argv[1]).database).take("collect", sys.argv[2]), flush=True)
time.sleep(600)
"""


def test_one_of_many_takes_a_moment(place: Place):
    stores = [RunStore(place) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for hour in range(5):
            due = f"2026-11-15T0{hour}:00:00+00:00"
            taken = list(pool.map(lambda store, due=due: ClaimTable(store.database).take("collect", due), stores))
            assert sum(taken) == 1
    for store in stores:
        store.close()


def test_what_is_done_is_not_done_again(place: Place):
    with closing(RunStore(place)) as store:
        once = ClaimTable(store.database)
        assert once.take("collect", MOMENT)
        assert not once.take("collect", MOMENT)
        assert once.take("resolve", MOMENT)
        once.done("collect", MOMENT)
    with closing(RunStore(place)) as store:
        assert not ClaimTable(store.database).take("collect", MOMENT)
        assert ClaimTable(store.database).take("resolve", MOMENT)  # Its taker left without having done it.


def test_one_takes_over_from_the_dead(place: Place):
    with closing(RunStore(place)) as store:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(place), MOMENT], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "True"
        once = ClaimTable(store.database)
        assert not once.take("collect", MOMENT)
        child.kill()
        child.communicate()
        until = time.monotonic() + 30
        while not once.take("collect", MOMENT):
            assert time.monotonic() < until
            time.sleep(0.1)
