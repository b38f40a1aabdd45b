"""The board of 200 entries on 20,000 targets: time until it is shown, compared with 1 s, and the size of its page.

If no board was saved, the ranking is shown first, otherwise the last board; the whole board follows. The size is that
of the markup, with all numbers in tables and figures.

    python benchmarks/board_page.py [--store FOLDER]

`--store` does it with a server on a real store of 20,000 events (some with several markets), which takes minutes to
fill and is left in the folder for the next time: each page of the arena, and the memory that the server takes.
"""

import argparse
import re
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar
from urllib.parse import quote

import numpy as np
from fastapi.testclient import TestClient

from arena_year import ARENA, ArenaSize, build
from foretell.models.database import open_database
from foretell.report.arena_report import arena_report
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.scoring.arena_table import ArenaEntry, ArenaEventTable, ArenaForecastTable, ArenaMarketTable, ArenaTable
from foretell.scoring.table import Labels
from foretell.web.app import create_app
from foretell.web.arena_board import BoardChoice, board_view
from foretell.web.boards import ArenaFilters, LeaderboardCache

EVENTS, MOMENTS, ENTRIES = 5_000, 4, 200
CATEGORIES = ("Politics", "Economics", "Sports", "Weather", "Culture", "Science", "Companies")
T = TypeVar("T")


def synthetic_table() -> ArenaTable:
    rng = np.random.default_rng(0)
    event = np.repeat(np.arange(EVENTS), MOMENTS)
    n = len(event)
    truth = rng.uniform(0.02, 0.98, EVENTS)
    outcome = (rng.random(EVENTS) < truth)[event].astype(float)
    price = np.clip(truth[event] + rng.normal(0, 0.05, n), 0.02, 0.98)
    start = np.datetime64("2026-01-01", "s")
    return ArenaTable(
        name="big",
        events=ArenaEventTable(
            ids=tuple(f"e{i}" for i in range(EVENTS)),
            category=Labels(codes=np.arange(EVENTS) % len(CATEGORIES), names=CATEGORIES),
            platform=Labels(codes=np.zeros(EVENTS, np.int64), names=("kalshi",)),
            cluster=np.arange(EVENTS),
        ),
        forecast_times=ArenaForecastTable(
            event=event,
            taken_at=start + np.arange(n) * np.timedelta64(600, "s"),
            hours=np.tile([96.0, 48.0, 24.0, 12.0], EVENTS),
        ),
        markets=ArenaMarketTable(
            forecast_time=np.arange(n),
            target=("yes",) * n,
            outcome=outcome,
            known_at=np.full(n, np.datetime64("2026-06-01", "s")),
            last=price,
            yes_ask=price + 0.01,
            no_ask=1.01 - price,
        ),
        entries=tuple(ArenaEntry(name=f"entry {i}", forecasts=n, dollars=0.01, seconds=1.0) for i in range(ENTRIES)),
        p=np.clip(truth[event] + rng.normal(0, 0.1, (ENTRIES, n)), 0.01, 0.99),
    )


def timed(what: str, job: Callable[[], T]) -> T:
    start, worked = time.perf_counter(), time.process_time()
    result = job()
    print(f"{what}: {time.perf_counter() - start:.2f} of 1 s ({time.process_time() - worked:.2f} s of processor)")
    return result


def main() -> None:
    standings = synthetic_table()
    report = timed("scores, intervals, pairs", lambda: arena_report(standings, by=("category",), bootstrap="draws=500"))
    view = timed("pictures and tables", lambda: board_view(report, BoardChoice()))
    print(
        f"{sum(len(body) for _, _, body in view.parts) / 1e3:.0f} kB of further parts, each fetched when it is opened"
    )
    with TemporaryDirectory() as folder:
        cache = LeaderboardCache(_Changing(standings), Path(folder))
        cache.table = lambda arena: standings
        key = ("big", ArenaFilters(), BoardChoice())
        first = timed("the first view there ever was", lambda: cache.page(*key))
        print(f"{first.note or 'the board'} ({len(first.body) / 1e3:.0f} kB)")
        whole = timed("the whole board after it", lambda: cache.page(*key, whole=True))
        print(f"{len(whole.body) / 1e3:.0f} kB of page, {len(whole.body) / 150e3:.2f} of 150 kB")
        timed("the same again", lambda: cache.page(*key))
        cache._database.seq += 1
        page = timed("right after a forecast came in", lambda: cache.page(*key))
        print(page.note or "the new board")
        cache.close()


class _Changing:
    """A store whose forecasts are counted but not read, because the table is passed in."""

    def __init__(self, table: ArenaTable) -> None:
        self.database, self.place, self.seq, self.table = self, table.name, table.p.size, table

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        return [(self.seq,)] if "said" in sql else [(0, "")]


# On a real store.

STORED = ArenaSize(days=100, a_day=200, entries=ENTRIES, forecast_times=1)
AGAIN = "data-again>"
"""Marks a page that shows an older or partial board while the new one is computed."""
NEW_FORECAST = """
insert into said (entry, moment, trial, p, at, dollars, seconds)
select entry, moment, (select max(trial) + 1 from said where moment = first.moment), p, at, dollars, seconds
from said first where seq = 1"""


def on_store(home: Path) -> None:
    file = home / "runs.db"
    if not file.exists():
        home.mkdir(parents=True, exist_ok=True)
        RunStore(file).close()
        with closing(open_database(file, "arena", durable=False)) as database:
            print(f"{timed('filling the store', lambda: build(database, STORED)):,} forecasts")
            database.read("pragma wal_checkpoint(truncate)")
    with TestClient(create_app(Settings(home=home)), base_url="http://127.0.0.1") as client:

        def get(what: str, path: str = "") -> str:
            text = timed(what, lambda: client.get(f"/arena/{ARENA}{path}")).raise_for_status().text
            bare = re.sub(r"<tbody.*?</tbody>|<svg [^>]*class=\"ft.*?</svg>", "", text, flags=re.DOTALL)
            print(f"    {len(text) / 1e3:.0f} kB, {len(bare) / 1e3:.0f} kB without data")
            return text

        def wait(text: str) -> None:
            while AGAIN in text:
                time.sleep(1)
                text = client.get(f"/arena/{ARENA}").text

        get("events", "/events")
        get("the last page of them", "/events?offset=19950")
        get("a search for a title", "/events?find=KXGAME05")
        get("another search", "/events?find=26FEB")
        get("an event", "/event/" + quote("KALSHI/KXGAME05-26FEB03", safe=""))
        page = get("the board after a start of the server")
        timed("until it is whole and new", lambda: wait(page))
        get("the same again")
        get("an entry", "/entry/model%2017")
        get("the entry again", "/entry/model%2017")
        with closing(open_database(file, "arena")) as database:
            database.write(NEW_FORECAST)
        page = get("the board right after a forecast came in")
        get("events meanwhile", "/events")
        timed("until it is new", lambda: wait(page))
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB of memory at most")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="a server on a real store in this folder")
    options = parser.parse_args()
    if options.store:
        on_store(options.store)
    else:
        main()
