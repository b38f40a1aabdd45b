import json
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from tests.scoring.made_standings import arena

from foretell.arena import MIGRATIONS, SCHEMA_NAME, read_arena_table
from foretell.arena import score_data as reading
from foretell.models.database import open_database
from foretell.questions import InputError
from foretell.scoring.arena_view import arena_view

NAME = "made up"


@pytest.fixture
def database(place):
    with closing(open_database(place, "arena")) as found:
        found.migrate(SCHEMA_NAME, MIGRATIONS)
        yield found


def write(database, standings, name=NAME, *, trials=1, first_entry=1, first_moment=1):
    """Put standings into the tables of a book, moments in another order than they come out in."""
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
    for m in reversed(range(len(s.moments))):
        _write_moment(database, s, name, m, trials=trials, first=(first_entry, first_moment))
    rows = np.unique(s.market_event * 1000 + [int(t[1:]) for t in s.markets.target], return_index=True)[1]
    for i in rows.tolist():
        outcome, at = s.markets.outcome[i], f"{s.markets.known_at[i]}+00:00"
        values = (name, s.events.ids[s.market_event[i]], s.markets.target[i], int(outcome), None, at, "test", at)
        database.write("insert into outcome values (?, ?, ?, ?, ?, ?, ?, ?)", values)


def _write_moment(database, s, name, m, *, trials, first):
    rows = np.flatnonzero(s.markets.moment == m)
    at, number = s.moments.taken_at[m], first[1] + len(s.moments) - m
    closes = at + np.timedelta64(int(s.moments.hours[m] * 3600), "s")
    quotes = np.stack([s.markets.last, s.markets.last, s.markets.yes_ask, s.markets.no_ask], axis=1)[rows]
    targets = json.dumps([s.markets.target[i] for i in rows])
    times = (f"{at}", f"{at}+00:00", f"{closes}+00:00")
    database.write(
        "insert into moment (id, arena, event, number, planned_at, taken_at, closes_at, state, targets, quotes)"
        " values (?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?)",
        (number, name, s.events.ids[s.moments.event[m]], m, *times, targets, quotes.astype("<f8").tobytes()),
    )
    for k in range(len(s.entries)):
        if np.isfinite(s.p[k, rows]).all():
            for trial in range(trials):
                database.write(
                    "insert into said (entry, moment, trial, p, at, dollars, seconds) values (?, ?, ?, ?, '', ?, ?)",
                    (first[0] + k, number, trial, s.p[k, rows].astype("<f8").tobytes(), 0.01 * (k + 1), 2.0),
                )


def same(found, wanted):
    for part in ("outcome", "known_at", "last", "yes_ask", "no_ask", "moment"):
        np.testing.assert_array_equal(getattr(found.markets, part), getattr(wanted.markets, part))
    np.testing.assert_array_equal(found.moments.taken_at, wanted.moments.taken_at)
    np.testing.assert_allclose(found.moments.hours, wanted.moments.hours)
    np.testing.assert_array_equal(found.p, wanted.p)
    assert found.markets.target == wanted.markets.target
    assert found.names == wanted.names


def ordered(found, wanted):
    """Events in the order of the other: a book lists them as their moments were written."""
    order = [found.events.ids.index(id) for id in wanted.events.ids]
    moments = np.concatenate([np.flatnonzero(found.moments.event == e) for e in order])
    rows = np.concatenate([np.flatnonzero(found.markets.moment == m) for m in moments])
    sizes = [int((found.markets.moment == m).sum()) for m in moments]
    markets = found.markets
    return replace(
        found,
        moments=replace(found.moments, taken_at=found.moments.taken_at[moments], hours=found.moments.hours[moments]),
        markets=replace(
            markets,
            moment=np.repeat(np.arange(len(moments)), sizes),
            target=tuple(markets.target[i] for i in rows),
            **{k: getattr(markets, k)[rows] for k in ("outcome", "known_at", "last", "yes_ask", "no_ask")},
        ),
        p=found.p[:, rows],
    )


@pytest.mark.parametrize("portion", [7, 100_000])
def test_what_went_into_the_book_comes_out(database, monkeypatch, portion):
    monkeypatch.setattr(reading, "PORTION", portion)
    wanted = arena(events=12, drop=0.2, quoted=0.8)
    write(database, wanted)
    found = read_arena_table(database, NAME)
    same(ordered(found, wanted), wanted)
    good, bad = found.entries
    assert (good.dollars, bad.dollars, good.seconds) == pytest.approx((0.01, 0.02, 2.0))
    assert good.forecasts == int(np.isfinite(wanted.p[0, wanted.starts]).sum())
    ours, theirs = arena_view(found), arena_view(wanted)
    for a, b in zip(ours.lines, theirs.lines, strict=True):
        assert a.entry.name == b.entry.name
        assert a.scores["brier"].estimate == pytest.approx(b.scores["brier"].estimate)
        assert a.scores["net_gamma0.5"].estimate == pytest.approx(b.scores["net_gamma0.5"].estimate)


def test_arenas_of_one_database_are_kept_apart(database):
    one, two = arena(events=8, seed=1), arena(events=9, seed=2, entries=("other",))
    write(database, one, "one")
    write(database, two, "two", first_entry=50, first_moment=900)
    same(ordered(read_arena_table(database, "two"), two), two)
    same(ordered(read_arena_table(database, "one"), one), one)


def test_an_entry_may_be_combined_by_what_markets_before_each_moment_taught(database):
    wanted = arena(events=16, seed=3)
    write(database, wanted, trials=2)
    mean = read_arena_table(database, NAME)
    database.write("update entry set spec = ? where id = 1", ('{"aggregate": "default"}',))
    taught = read_arena_table(database, NAME)
    np.testing.assert_array_equal(taught.p[1], mean.p[1])  # The other entry is averaged as before.
    day, known = taught.moments.taken_at[taught.markets.moment].astype("M8[D]"), taught.markets.known_at
    said, price = np.isfinite(mean.p[0]), taught.markets.price
    assert np.isfinite(taught.p[0]).tolist() == said.tolist()
    # Where nothing had come out the price stands, in an event of several outcomes normalised to one.
    alone = np.bincount(taught.markets.moment)[taught.markets.moment] == 1
    first = said & alone & ~np.isnan(price) & (day <= known.min().astype("M8[D]"))
    np.testing.assert_allclose(taught.p[0, first], price[first], atol=1e-9)
    assert np.nanmax(np.abs(taught.p[0] - mean.p[0])) > 0.01
    # What comes out later changes nothing.
    half = np.sort(known)[len(known) // 2]
    database.write("update outcome set outcome = 1 - outcome where coalesce(resolved_at, told_at) >= ?", (str(half),))
    before = said & (day <= half.astype("M8[D]"))
    poisoned = read_arena_table(database, NAME)
    assert before.any()
    np.testing.assert_array_equal(poisoned.p[0, before], taught.p[0, before])


def test_trials_are_averaged(database):
    wanted = arena(events=5)
    write(database, wanted, trials=2)
    moved = np.full(1, 1.0).astype("<f8").tobytes()
    single = next(m for m in range(len(wanted.moments)) if (wanted.markets.moment == m).sum() == 1)
    id = 1 + len(wanted.moments) - single
    database.write("update said set p = ? where moment = ? and entry = 1 and trial = 1", (moved, id))
    found = ordered(read_arena_table(database, NAME), wanted)
    row = int(wanted.starts[single])
    assert found.p[0, row] == pytest.approx((wanted.p[0, row] + 1) / 2)
    assert found.entries[0].forecasts == 2 * len(wanted.moments)


def test_moments_that_never_became_ready_are_no_questions(database):
    wanted = arena(events=6)
    write(database, wanted)
    database.write("update moment set state = 'missed' where id = 3")
    found = read_arena_table(database, NAME)
    assert len(found.moments) == len(wanted.moments) - 1
    assert np.isfinite(found.p).all()


def test_answers_that_do_not_fit_their_moment_are_nobodys(database):
    wanted = arena(events=6)
    write(database, wanted)
    database.write("update said set p = ? where moment = 4 and entry = 1", (np.zeros(9).tobytes(),))
    found = read_arena_table(database, NAME)
    assert np.isnan(found.p[0]).any()
    assert np.isfinite(found.p[1]).all()
    others = np.isfinite(found.p[0])
    assert 0 < others.sum() < len(others)


def test_an_entry_whose_set_up_changed_is_two(database):
    wanted = arena(events=6)
    write(database, wanted)
    database.write("update entry set name = 'same'")
    assert read_arena_table(database, NAME).names == ("same (run0)", "same (run1)")


def test_an_arena_that_is_not_there_is_named(database):
    write(database, arena(events=3))
    with pytest.raises(InputError, match="there is no arena 'else'") as problem:
        read_arena_table(database, "else")
    assert NAME in str(problem.value)


def test_an_arena_without_forecasts_can_be_read(database):
    database.write("insert into arena (name, spec, created) values (?, '{}', '2026-01-01')", ("new",))
    found = read_arena_table(database, "new")
    assert (len(found.events), found.entries) == (0, ())
    with pytest.raises(InputError, match="resolved"):
        arena_view(found)


def kept_twice(database, tmp_path, change):
    """What a reading gives that finds a file of an earlier one, after something changed in between."""
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
    """Whatever is new is kept."""
    monkeypatch.setattr(reading, "WORTH_STORING", 1)


@pytest.mark.usefixtures("eager")
class TestKeptReadings:
    def test_only_what_is_new_is_read(self, database, tmp_path, monkeypatch):
        write(database, arena(events=10))
        read_arena_table(database, NAME, keep=tmp_path)
        asked = []
        after = reading.ForecastReader.after

        def watched(self, last, sizes):
            asked.append(last)
            return after(self, last, sizes)

        monkeypatch.setattr(reading.ForecastReader, "after", watched)
        read_arena_table(database, NAME, keep=tmp_path)
        assert asked == [database.read("select max(seq) from said")[0][0]]

    def test_new_forecasts_are_added(self, database, tmp_path):
        def change():
            p = database.read("select p from said where entry = 1 and moment = 3")[0][0]
            row = (1, 3, 1, bytes(p), "", 0.5, 1.0)
            database.write(
                "insert into said (entry, moment, trial, p, at, dollars, seconds) values (?,?,?,?,?,?,?)", row
            )

        assert kept_twice(database, tmp_path, change).entries[0].forecasts == 21

    def test_a_moment_that_became_ready_is_noticed(self, database, tmp_path):
        def change():
            database.write("update moment set state = 'missed' where id = 7")

        assert len(kept_twice(database, tmp_path, change).moments) == 19
        database.write("update moment set state = 'ready' where id = 7")
        assert len(read_arena_table(database, NAME, keep=tmp_path).moments) == 20

    def test_a_row_that_went_missing_is_noticed(self, database, tmp_path):
        found = kept_twice(
            database, tmp_path, lambda: database.write("delete from said where moment = 5 and entry = 2")
        )
        assert np.isnan(found.p[1]).any()

    def test_another_database_at_the_same_place_is_noticed(self, database, tmp_path):
        change = "update said set p = ? where seq = (select max(seq) from said)"

        def altered():
            ((size,),) = database.read("select length(p) from said where seq = (select max(seq) from said)")
            database.write(change, (np.full(size // 8, 0.25).astype("<f8").tobytes(),))

        assert (kept_twice(database, tmp_path, altered).p == 0.25).any()

    def test_a_broken_file_is_read_past(self, database, tmp_path):
        kept_twice(database, tmp_path, lambda: [path.write_bytes(b"PK nonsense") for path in tmp_path.glob("*.npz")])
