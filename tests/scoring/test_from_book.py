import json
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from tests.scoring.made_standings import arena

from foretell.arena import score_data as reading
from foretell.arena.score_data import read_arena_table
from foretell.arena.store import MIGRATIONS, SCHEMA_NAME
from foretell.metrics.transforms import logit, sigmoid
from foretell.models.database import open_database
from foretell.questions.errors import InputError
from foretell.scoring.arena_view import arena_view

NAME = "made up"


@pytest.fixture
def database(place):
    with closing(open_database(place, "arena")) as opened:
        opened.migrate(SCHEMA_NAME, MIGRATIONS)
        yield opened


def write(database, standings, name=NAME, *, trials=1, first_entry=1, first_time=1):
    """Write an arena's table to the database, with forecast times in another order."""
    s = standings
    database.write("insert into arena (name, spec, created) values (?, '{}', '2026-01-01')", (name,))
    entries = [(first_entry + i, name, e.name, f"run{i}", "{}", "2026-01-01") for i, e in enumerate(s.entries)]
    database.write_many("insert into entry (id, arena, name, run, spec, since) values (?, ?, ?, ?, ?, ?)", entries)
    for code, event in enumerate(s.events.ids):
        category, platform = (labels.names[labels.codes[code]] for labels in (s.events.category, s.events.platform))
        row = (name, event, platform, category, "", "", "", "settled", None, "selected", "", "", "{}")
        columns = "arena, event, platform, category, format, first_seen, last_seen, status, closes_at, decision, reason"
        marks = ", ".join("?" * len(row))
        database.write(f"insert into listed ({columns}, decided_at, body) values ({marks})", row)
    for m in reversed(range(len(s.forecast_times))):
        _write_forecast_time(database, s, name, m, trials=trials, first=(first_entry, first_time))
    rows = np.unique(s.market_event * 1000 + [int(t[1:]) for t in s.markets.target], return_index=True)[1]
    for i in rows.tolist():
        outcome, at = s.markets.outcome[i], f"{s.markets.known_at[i]}+00:00"
        values = (name, s.events.ids[s.market_event[i]], s.markets.target[i], int(outcome), None, at, "test", at)
        database.write("insert into outcome values (?, ?, ?, ?, ?, ?, ?, ?)", values)


def _write_forecast_time(database, s, name, m, *, trials, first):
    rows = np.flatnonzero(s.markets.forecast_time == m)
    at, number = s.forecast_times.taken_at[m], first[1] + len(s.forecast_times) - m
    closes = at + np.timedelta64(int(s.forecast_times.hours[m] * 3600), "s")
    quotes = np.stack([s.markets.last, s.markets.last, s.markets.yes_ask, s.markets.no_ask], axis=1)[rows]
    targets = json.dumps([s.markets.target[i] for i in rows])
    times = (f"{at}", f"{at}+00:00", f"{closes}+00:00")
    database.write(
        "insert into moment (id, arena, event, number, planned_at, taken_at, closes_at, state, targets, quotes)"
        " values (?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?)",
        (number, name, s.events.ids[s.forecast_times.event[m]], m, *times, targets, quotes.astype("<f8").tobytes()),
    )
    for k in range(len(s.entries)):
        if np.isfinite(s.p[k, rows]).all():
            for trial in range(trials):
                database.write(
                    "insert into said (entry, moment, trial, p, at, dollars, seconds) values (?, ?, ?, ?, '', ?, ?)",
                    (first[0] + k, number, trial, s.p[k, rows].astype("<f8").tobytes(), 0.01 * (k + 1), 2.0),
                )


def same(actual, expected):
    for part in ("outcome", "known_at", "last", "yes_ask", "no_ask", "forecast_time"):
        np.testing.assert_array_equal(getattr(actual.markets, part), getattr(expected.markets, part))
    np.testing.assert_array_equal(actual.forecast_times.taken_at, expected.forecast_times.taken_at)
    np.testing.assert_allclose(actual.forecast_times.hours, expected.forecast_times.hours)
    np.testing.assert_array_equal(actual.p, expected.p)
    assert actual.markets.target == expected.markets.target
    assert actual.names == expected.names


def ordered(actual, expected):
    """Return the table with its events in the order of the other table."""
    order = [actual.events.ids.index(id) for id in expected.events.ids]
    times = np.concatenate([np.flatnonzero(actual.forecast_times.event == e) for e in order])
    rows = np.concatenate([np.flatnonzero(actual.markets.forecast_time == m) for m in times])
    sizes = [int((actual.markets.forecast_time == m).sum()) for m in times]
    markets = actual.markets
    return replace(
        actual,
        forecast_times=replace(
            actual.forecast_times,
            taken_at=actual.forecast_times.taken_at[times],
            hours=actual.forecast_times.hours[times],
        ),
        markets=replace(
            markets,
            forecast_time=np.repeat(np.arange(len(times)), sizes),
            target=tuple(markets.target[i] for i in rows),
            **{k: getattr(markets, k)[rows] for k in ("outcome", "known_at", "last", "yes_ask", "no_ask")},
        ),
        p=actual.p[:, rows],
    )


@pytest.mark.parametrize("portion", [7, 100_000])
def test_a_stored_arena_is_read_unchanged(database, monkeypatch, portion):
    monkeypatch.setattr(reading, "PORTION", portion)
    wanted = arena(events=12, drop=0.2, quoted=0.8)
    write(database, wanted)
    arena_table = read_arena_table(database, NAME)
    same(ordered(arena_table, wanted), wanted)
    good, bad = arena_table.entries
    assert (good.dollars, bad.dollars, good.seconds) == pytest.approx((0.01, 0.02, 2.0))
    assert good.forecasts == int(np.isfinite(wanted.p[0, wanted.starts]).sum())
    ours, theirs = arena_view(arena_table), arena_view(wanted)
    for a, b in zip(ours.lines, theirs.lines, strict=True):
        assert a.entry.name == b.entry.name
        assert a.scores["brier"].estimate == pytest.approx(b.scores["brier"].estimate)
        assert a.scores["net_gamma0.5"].estimate == pytest.approx(b.scores["net_gamma0.5"].estimate)


def test_arenas_of_one_database_do_not_mix(database):
    first, second = arena(events=8, seed=1), arena(events=9, seed=2, entries=("other",))
    write(database, first, "one")
    write(database, second, "two", first_entry=50, first_time=900)
    same(ordered(read_arena_table(database, "two"), second), second)
    same(ordered(read_arena_table(database, "one"), first), first)


def test_combining_learns_only_from_markets_resolved_before_each_forecast_time(database):
    wanted = arena(events=16, seed=3)
    write(database, wanted, trials=2)
    mean = read_arena_table(database, NAME)
    database.write("update entry set spec = ? where id = 1", ('{"aggregate": "default"}',))
    taught = read_arena_table(database, NAME)
    np.testing.assert_array_equal(taught.p[1], mean.p[1])  # The other entry is averaged as before.
    day, known = taught.forecast_times.taken_at[taught.markets.forecast_time].astype("M8[D]"), taught.markets.known_at
    answered, price = np.isfinite(mean.p[0]), taught.markets.price
    assert np.isfinite(taught.p[0]).tolist() == answered.tolist()
    # If nothing had resolved, the price is moved a little towards the trials, and normalised to a sum of one in events
    # with several outcomes.
    alone = np.bincount(taught.markets.forecast_time)[taught.markets.forecast_time] == 1
    first = answered & alone & ~np.isnan(price) & (day <= known.min().astype("M8[D]"))
    a, z = logit(price[first]), logit(mean.p[0, first])
    np.testing.assert_allclose(taught.p[0, first], sigmoid(a + 0.2 * 1.5 * np.tanh((z - a) / 1.5)), atol=1e-9)
    assert np.nanmax(np.abs(taught.p[0] - mean.p[0])) > 0.01
    # Later outcomes change nothing.
    half = np.sort(known)[len(known) // 2]
    database.write("update outcome set outcome = 1 - outcome where coalesce(resolved_at, told_at) >= ?", (str(half),))
    before = answered & (day <= half.astype("M8[D]"))
    poisoned = read_arena_table(database, NAME)
    assert before.any()
    np.testing.assert_array_equal(poisoned.p[0, before], taught.p[0, before])


def test_trials_are_averaged(database):
    wanted = arena(events=5)
    write(database, wanted, trials=2)
    moved = np.full(1, 1.0).astype("<f8").tobytes()
    single = next(m for m in range(len(wanted.forecast_times)) if (wanted.markets.forecast_time == m).sum() == 1)
    id = 1 + len(wanted.forecast_times) - single
    database.write("update said set p = ? where moment = ? and entry = 1 and trial = 1", (moved, id))
    table = ordered(read_arena_table(database, NAME), wanted)
    row = int(wanted.starts[single])
    assert table.p[0, row] == pytest.approx((wanted.p[0, row] + 1) / 2)
    assert table.entries[0].forecasts == 2 * len(wanted.forecast_times)


def test_forecast_times_that_never_became_ready_are_left_out(database):
    wanted = arena(events=6)
    write(database, wanted)
    database.write("update moment set state = 'missed' where id = 3")
    arena_table = read_arena_table(database, NAME)
    assert len(arena_table.forecast_times) == len(wanted.forecast_times) - 1
    assert np.isfinite(arena_table.p).all()


def test_answers_of_the_wrong_length_are_ignored(database):
    wanted = arena(events=6)
    write(database, wanted)
    database.write("update said set p = ? where moment = 4 and entry = 1", (np.zeros(9).tobytes(),))
    arena_table = read_arena_table(database, NAME)
    assert np.isnan(arena_table.p[0]).any()
    assert np.isfinite(arena_table.p[1]).all()
    others = np.isfinite(arena_table.p[0])
    assert 0 < others.sum() < len(others)


def test_entries_with_the_same_name_are_listed_with_their_run(database):
    wanted = arena(events=6)
    write(database, wanted)
    database.write("update entry set name = 'same'")
    assert read_arena_table(database, NAME).names == ("same (run0)", "same (run1)")


def test_an_unknown_arena_is_an_error(database):
    write(database, arena(events=3))
    with pytest.raises(InputError, match="there is no arena 'else'") as problem:
        read_arena_table(database, "else")
    assert NAME in str(problem.value)


def test_an_arena_without_forecasts_can_be_read(database):
    database.write("insert into arena (name, spec, created) values (?, '{}', '2026-01-01')", ("new",))
    arena_table = read_arena_table(database, "new")
    assert (len(arena_table.events), arena_table.entries) == (0, ())
    with pytest.raises(InputError, match="resolved"):
        arena_view(arena_table)


def read_from_cache(database, tmp_path, change):
    """Read a table with a cache file, after `change` was called."""
    write(database, arena(events=10))
    read_arena_table(database, NAME, keep=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 2
    change()
    again, fresh = read_arena_table(database, NAME, keep=tmp_path), read_arena_table(database, NAME)
    np.testing.assert_array_equal(again.p, fresh.p)
    assert again.entries == fresh.entries
    return again


@pytest.fixture
def eager(monkeypatch):
    """Write the cache file after every change."""
    monkeypatch.setattr(reading, "WORTH_STORING", 1)


@pytest.mark.usefixtures("eager")
class TestCachedTables:
    def test_only_new_rows_are_read(self, database, tmp_path, monkeypatch):
        write(database, arena(events=10))
        read_arena_table(database, NAME, keep=tmp_path)
        read_after = []
        after = reading.ForecastReader.after

        def watched(self, last, sizes):
            read_after.append(last)
            return after(self, last, sizes)

        monkeypatch.setattr(reading.ForecastReader, "after", watched)
        read_arena_table(database, NAME, keep=tmp_path)
        assert read_after == [database.read("select max(seq) from said")[0][0]]

    def test_new_forecasts_are_added(self, database, tmp_path):
        def change():
            p = database.read("select p from said where entry = 1 and moment = 3")[0][0]
            row = (1, 3, 1, bytes(p), "", 0.5, 1.0)
            database.write(
                "insert into said (entry, moment, trial, p, at, dollars, seconds) values (?,?,?,?,?,?,?)", row
            )

        assert read_from_cache(database, tmp_path, change).entries[0].forecasts == 21

    def test_a_forecast_time_that_became_ready_is_read(self, database, tmp_path):
        def change():
            database.write("update moment set state = 'missed' where id = 7")

        assert len(read_from_cache(database, tmp_path, change).forecast_times) == 19
        database.write("update moment set state = 'ready' where id = 7")
        assert len(read_arena_table(database, NAME, keep=tmp_path).forecast_times) == 20

    def test_a_deleted_row_is_noticed(self, database, tmp_path):
        table = read_from_cache(
            database, tmp_path, lambda: database.write("delete from said where moment = 5 and entry = 2")
        )
        assert np.isnan(table.p[1]).any()

    def test_another_database_at_the_same_path_is_noticed(self, database, tmp_path):
        change = "update said set p = ? where seq = (select max(seq) from said)"

        def altered():
            ((size,),) = database.read("select length(p) from said where seq = (select max(seq) from said)")
            database.write(change, (np.full(size // 8, 0.25).astype("<f8").tobytes(),))

        assert (read_from_cache(database, tmp_path, altered).p == 0.25).any()

    def test_a_damaged_cache_file_is_ignored(self, database, tmp_path):
        read_from_cache(
            database, tmp_path, lambda: [path.write_bytes(b"PK nonsense") for path in tmp_path.glob("*.npz")]
        )
