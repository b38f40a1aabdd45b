"""A year of an arena: how long the leaderboard's page data takes from a cold start, and what a forecast takes on disk.

20 events a day, 20 entries, 4 forecast times each: 584,000 forecasts, written in bulk into the arena's tables. Every
measurement is a fresh process on a file whose pages were dropped from memory; it opens the database, reads the
forecasts, computes every number of the page with its interval, and writes the JSON. Times are ratios: a year to a
quarter, and the whole to reading the same bytes from the file. `--postgres` does the same on its own PostgreSQL.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from foretell.arena.score_data import read_arena_table
from foretell.arena.store import MIGRATIONS, SCHEMA_NAME
from foretell.models.database import open_database
from foretell.models.database.interface import Database
from foretell.questions.codec import to_json
from foretell.questions.question import Question, Target
from foretell.scoring.arena_view import arena_view

ARENA, ENTRIES, FORECAST_TIMES, A_DAY, DAYS = "year", 20, 4, 20, 364
MARKETS = (1, 2, 2, 2, 2, 2, 2, 4, 8, 10)
"""Markets of an event: mostly two sides of a match, sometimes a ladder of thresholds."""
CATEGORIES = ("Sports",) * 6 + ("Politics", "Economics", "Crypto", "Entertainment", "World", "Climate")
START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = (48, 24, 12, 6)
LIMIT = 2.0
"""Seconds from a cold start to the page data of a year."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """A synthetic event."""

    id: str
    day: int
    category: str
    outcome: np.ndarray
    belief: np.ndarray

    @property
    def targets(self) -> list[str]:
        """Ids of its markets."""
        return [f"{self.id}-{chr(65 + i)}" for i in range(len(self.outcome))]


@dataclass(frozen=True, kw_only=True)
class ArenaSize:
    """The size of a synthetic arena."""

    days: int
    a_day: int = A_DAY
    entries: int = ENTRIES
    forecast_times: int = FORECAST_TIMES


def events(size: ArenaSize) -> Iterator[Event]:
    rng = np.random.default_rng(7)
    for day in range(size.days):
        for number in range(size.a_day):
            markets = int(rng.choice(MARKETS))
            truth = rng.beta(1.2, 1.2, markets)
            yield Event(
                id=f"kalshi/KXGAME{number:02d}-{(START + timedelta(days=day)):%y%b%d}".upper(),
                day=day,
                category=CATEGORIES[(day + number) % len(CATEGORIES)],
                outcome=(rng.random(markets) < truth).astype(int),
                belief=truth,
            )


def build(database: Database, size: ArenaSize) -> int:
    """Fill the tables and return the number of forecasts."""
    database.migrate(SCHEMA_NAME, MIGRATIONS)
    database.write("insert into arena (name, spec, created) values (?, ?, ?)", (ARENA, "{}", START.isoformat()))
    entries = [(i + 1, ARENA, f"model {i + 1:02d}", f"{i:012x}", "{}", START.isoformat()) for i in range(size.entries)]
    insert = "insert into entry (id, arena, name, run, spec, since) values (?, ?, ?, ?, ?, ?)"
    database.write_many(insert, entries)
    rng, number_of_times, forecasts = np.random.default_rng(11), 0, 0
    batch: dict[str, list[tuple[object, ...]]] = {}
    for event in events(size):
        _list(batch, event)
        for number in range(size.forecast_times):
            number_of_times += 1
            forecasts += _ask(batch, event, number_of_times, number, size.entries, rng)
        if len(batch["said"]) > 50_000:
            flush(database, batch)
    flush(database, batch)
    database.write(_TALLY)
    return forecasts


_TALLY = """
insert into tally (entry, forecasts, dollars, seconds)
select entry, count(*), sum(dollars), sum(seconds) from said group by entry"""


COLUMNS = {
    "listed": "arena, event, platform, category, format, first_seen, last_seen, status, closes_at, decision, reason, "
    "decided_at, settled, body",
    "outcome": "arena, event, target, outcome, payoff, resolved_at, provenance, told_at",
    "moment": "id, arena, event, number, planned_at, taken_at, closes_at, state, context, targets, quotes",
    "asked": "moment, question",
    "quote": "arena, event, target, at, last, yes_bid, yes_ask, no_ask, volume",
    "said": "entry, moment, trial, p, at, dollars, seconds",
}


def flush(database: Database, batch: dict[str, list[tuple[object, ...]]]) -> None:
    for table, rows in batch.items():
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            database.write_many(f"insert into {table} ({COLUMNS[table]}) values ({marks})", rows)
    batch.clear()


def _list(batch: dict[str, list[tuple[object, ...]]], event: Event) -> None:
    opened = START + timedelta(days=event.day)
    closes = opened + timedelta(hours=HOURS[0])
    opened_at = opened.isoformat()
    row = (ARENA, event.id, "kalshi", event.category, "KXGAME", opened_at, opened_at, "settled", closes.isoformat())
    batch.setdefault("listed", []).append(
        (*row, "selected", "", opened_at, 1, to_json(_question(event, opened, closes)))
    )
    known_at = (closes + timedelta(hours=2)).isoformat()
    batch.setdefault("outcome", []).extend(
        (ARENA, event.id, target, int(outcome), None, known_at, "made up", known_at)
        for target, outcome in zip(event.targets, event.outcome, strict=True)
    )


def _question(event: Event, due: datetime, closes: datetime) -> Question:
    targets = tuple(Target(id=target) for target in event.targets)
    text = f"Who wins {event.id.removeprefix('KALSHI/')}?"
    return Question(
        id=event.id, source="kalshi", text=text, criteria="x" * 600, due=due, closes_at=closes, targets=targets
    )


def _ask(
    batch: dict[str, list[tuple[object, ...]]],
    event: Event,
    time_id: int,
    number: int,
    entries: int,
    rng: np.random.Generator,
) -> int:
    closes = START + timedelta(days=event.day, hours=HOURS[0])
    due = closes - timedelta(hours=HOURS[number])
    taken_at = due.isoformat()
    price = np.clip(event.belief + rng.normal(0, 0.08, len(event.belief)), 0.02, 0.98).round(2)
    quotes = np.stack([price, price - 0.01, price + 0.01, 1.01 - price], axis=1)
    row = (time_id, ARENA, event.id, number, taken_at, taken_at, closes.isoformat(), "ready", f"{time_id:064x}")
    batch.setdefault("moment", []).append((*row, json.dumps(event.targets), quotes.astype("<f8").tobytes()))
    batch.setdefault("asked", []).append((time_id, to_json(_question(event, due, closes))))
    batch.setdefault("quote", []).extend(
        (ARENA, event.id, target, taken_at, *(float(q) for q in row), 1000.0)
        for target, row in zip(event.targets, quotes, strict=True)
    )
    p = np.clip(price + rng.normal(0, 0.1, (entries, len(price))), 0.01, 0.99).round(3).astype("<f8")
    there = np.flatnonzero(rng.random(entries) > 0.01)
    batch.setdefault("said", []).extend((int(i) + 1, time_id, 0, p[i].tobytes(), taken_at, 0.01, 20.0) for i in there)
    return len(there)


def read(place: str, keep: Path | None) -> dict[str, float]:
    """Return the seconds of each part, in its own process. The caller adds the start of the process."""
    times = [time.perf_counter()]
    with closing(open_database(place, "arena")) as database:
        standings = read_arena_table(database, ARENA, keep=keep)
    times.append(time.perf_counter())
    view = arena_view(standings)
    times.append(time.perf_counter())
    text = json.dumps(view.to_dict())
    times.append(time.perf_counter())
    read_, scored, written_at = np.diff(times).tolist()
    busy = time.process_time()
    return {"read": read_, "score": scored, "write": written_at, "busy": busy, "json": len(text)}


def cold(place: str, keep: Path | None = None) -> dict[str, float]:
    """Run a fresh process on files that are not in memory; with `keep` it finds what an earlier one saved."""
    glob = list(keep.glob("*.npz")) if keep else []
    for path in [*glob, *([] if place.startswith("postgres") else [Path(place)])]:
        _forget(path)
    start = time.perf_counter()
    command = [sys.executable, __file__, "--read", place, *(["--keep", str(keep)] if keep else [])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {"all": time.perf_counter() - start, **json.loads(done.stdout)}


def best(place: str, keep: Path | None = None, times: int = 3) -> dict[str, float]:
    """Return the fastest of several measurements, because other work on the machine slows them down."""
    return min((cold(place, keep) for _ in range(times)), key=lambda times_by_part: times_by_part["all"])


def _forget(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def plain_reading(path: Path) -> float:
    """Return the seconds that reading the bytes of the file takes."""
    _forget(path)
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    return time.perf_counter() - start


def sizes(path: Path) -> dict[str, int]:
    """Return the bytes of each table with its indexes."""
    with closing(open_database(path, "arena")) as database:
        rows = database.read(
            "select m.tbl_name, sum(s.pgsize) from dbstat s join sqlite_master m on m.name = s.name group by m.tbl_name"
        )
    return dict(rows)


def on_sqlite(folder: Path) -> None:
    measured: list[tuple[int, int, dict[str, float]]] = []
    for days in (DAYS // 4, DAYS // 2, DAYS):
        path = folder / f"{days}.db"
        with closing(open_database(path, "arena", durable=False)) as database:
            forecasts = build(database, ArenaSize(days=days))
            database.read("pragma wal_checkpoint(truncate)")
        measured.append((forecasts, path.stat().st_size, best(str(path))))
        print(
            f"{days:4d} days: {forecasts:8,} forecasts, {path.stat().st_size / forecasts:6.1f} bytes on disk for each"
        )
    (few, small, quarter), (many, large, year) = measured[0], measured[-1]
    ideal = plain_reading(folder / f"{DAYS}.db")
    print(f"storage: {many / few:.2f} × the forecasts take {large / small:.2f} × the bytes")
    for table, size in sorted(sizes(folder / f"{DAYS}.db").items(), key=lambda item: -item[1])[:6]:
        print(f"  {table:10s} {size / large:5.1%}")
    times, busy = year["all"] / quarter["all"], year["busy"] / quarter["busy"]
    print(f"page data of a year to that of a quarter: {times:.2f} × the time, {busy:.2f} × the computing")
    print(f"page data of a year to reading the bytes of the file: {year['all'] / ideal:.1f} ×")
    _print_times("SQLite, first reading", year)
    keep = folder / "kept"
    cold(str(folder / f"{DAYS}.db"), keep)
    _print_times("SQLite, with what an earlier reading kept", best(str(folder / f"{DAYS}.db"), keep))


def on_postgres() -> None:
    from fakes.postgres import LocalPostgres  # Not imported by the measured process.

    with LocalPostgres(safe=False) as server:
        url = server.create("arena")
        with closing(open_database(url, "arena")) as database:
            forecasts = build(database, ArenaSize(days=DAYS))
            database.write("analyze")
            ((size,),) = database.read("select pg_database_size(current_database())")
        print(f"PostgreSQL: {forecasts:,} forecasts, {size / forecasts:.1f} bytes on disk for each")
        _print_times("PostgreSQL, first reading", best(url, times=3))
        with tempfile.TemporaryDirectory() as keep:
            cold(url, Path(keep))
            _print_times("PostgreSQL, with what an earlier reading kept", best(url, Path(keep), times=3))


def _print_times(name: str, times_by_part: dict[str, float]) -> None:
    rest = times_by_part["all"] - times_by_part["read"] - times_by_part["score"] - times_by_part["write"]
    parts = {
        "starting": rest,
        "reading": times_by_part["read"],
        "scoring": times_by_part["score"],
        "writing": times_by_part["write"],
    }
    shares = ", ".join(f"{part} {seconds / times_by_part['all']:.0%}" for part, seconds in parts.items())
    verdict = "within" if times_by_part["all"] < LIMIT else "beyond"
    print(f"{name}: {times_by_part['all'] / LIMIT:.2f} of the allowed {LIMIT:g} s ({verdict}); {shares}")
    busy, megabytes = times_by_part["busy"] / LIMIT, times_by_part["json"] / 1e6
    print(f"  computing for {busy:.2f} of the allowed time, {megabytes:.2f} MB of JSON")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read", metavar="PLACE", help="read one database and tell the times")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL too")
    parser.add_argument("--folder", type=Path, help="folder for the files, which are then left there")
    parser.add_argument("--keep", type=Path, help="with --read: folder in which what was read is kept")
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read, options.keep)))
        return
    with nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        on_sqlite(Path(folder))
    if options.postgres:
        on_postgres()


if __name__ == "__main__":
    main()
