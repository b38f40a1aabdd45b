"""A small demo from end to end: real sockets, simulated time, and a board that makes sense."""

import asyncio
import json
import struct
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from foretell.arena import ArenaStore, read_arena_table
from foretell.arena.select import next_moment
from foretell.operations import (
    BOLD,
    BOTH,
    HASTY,
    NEWS,
    ORACLE,
    OUTSIDE_ENTRY,
    ArenaSeason,
    DemoRequest,
    demo,
    demo_spec,
    demo_world,
)
from foretell.practice.exchange import SimulatedWorld
from foretell.questions import instant
from foretell.report import write_outputs
from foretell.runs import RunStore, Settings
from foretell.scoring import ALWAYS_HALF, CROWD, ArenaTable

SEASON = ArenaSeason(days=4, events_per_day=3, seed=3)
ENTRIES = {ORACLE, CROWD, ALWAYS_HALF, OUTSIDE_ENTRY, BOTH, NEWS, HASTY, BOLD}


@dataclass(frozen=True, kw_only=True)
class Played:
    """What a demo printed and left."""

    out: Path
    told: str
    world: SimulatedWorld
    store: RunStore
    book: ArenaStore

    def standings(self) -> ArenaTable:
        return read_arena_table(self.store.database, "demo")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory):
    home, lines = tmp_path_factory.mktemp("demo"), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foretell.operations.example.SEASON", SEASON)
        result = asyncio.run(demo(DemoRequest(arena=True), Settings(home=home), tell=lines.append))
    out = home / "arena-demo"
    write_outputs(result, [out / "leaderboard.html", out / "leaderboard.md", out / "leaderboard.csv", out / "tables"])
    told = "\n".join([*lines, str(result)])
    store = RunStore(out / "runs.db")
    yield Played(out=out, told=told, world=demo_world(SEASON), store=store, book=ArenaStore(store.database, "demo"))
    store.close()


def test_every_moment_is_answered_once_by_everybody_and_none_after_the_close(played: Played):
    db = played.store.database
    entries = {id: name for id, name in db.read("select id, name from entry")}
    assert set(entries.values()) == ENTRIES
    moments = db.read("select id, event, taken_at, closes_at, deadline, targets from moment where taken_at is not null")
    assert len(moments) > 2 * SEASON.days * SEASON.events_per_day
    said = db.read("select moment, entry, trial, at, p from said")
    assert Counter((moment, entry) for moment, entry, *_ in said) == Counter(
        (row[0], entry) for row in moments for entry in entries
    )
    known = {row[0]: row for row in moments}
    for moment, _, trial, at, p in said:
        _, event, taken, closes, deadline, targets = known[moment]
        life = played.world.by_ticker[event.removeprefix("kalshi/")].life
        assert trial == 0
        # A question that is asked at midnight sharp is dated a microsecond later.
        assert instant(taken) - timedelta(microseconds=1) <= instant(at) < instant(deadline) <= instant(closes)
        assert instant(at).timestamp() < life.ends
        assert len(p) == 8 * len(json.loads(targets))
    failures = db.read("select count(*) from cell where failure is not null")
    assert failures == [(0,)]
    assert f"{4 * len(moments)} calls of models" in played.told


def test_moments_halve_what_is_left_and_none_was_missed(played: Played):
    schedule = demo_spec(SEASON).schedule
    for event, row in played.book.selected().items():
        moments = played.book.moments.of_event(event)
        assert [one.number for one in moments] == list(range(len(moments)))
        assert {one.state for one in moments} <= {"ready", "done", "dropped"}
        life = played.world.by_ticker[row.native].life
        for one, following in pairwise(moments):
            assert one.closes_at is not None
            assert following.planned_at == next_moment(one.planned_at, one.closes_at, schedule.gap)
        for one in moments:
            if one.taken_at is not None:
                assert one.planned_at <= one.taken_at < one.planned_at + timedelta(hours=3, seconds=1)
            else:
                # Only an answer that was out early keeps a moment from coming.
                assert one.state == "dropped"
                assert life.early


def test_results_are_those_of_the_world(played: Played):
    selected = played.book.selected()
    assert len(selected) == SEASON.days * SEASON.events_per_day
    assert all(row.settled for row in selected.values())
    for one in played.book.outcomes():
        ticker = one.question_id.removeprefix("kalshi/")
        assert one.outcome == played.world.outcome(ticker, one.target_id)
    assert {one.question_id for one in played.book.outcomes()} == set(selected)


def by_truth(played: Played) -> tuple[ArenaTable, np.ndarray]:
    standings = played.standings()
    moments = standings.moments
    truth = [
        played.world.truth(
            standings.events.ids[moments.event[moment]].removeprefix("kalshi/"),
            target,
            instant(f"{moments.taken_at[moment]}+00:00"),
        )
        for moment, target in zip(standings.markets.moment, standings.markets.target, strict=True)
    ]
    return standings, np.array(truth)


def test_whoever_knows_more_is_nearer_to_the_truth(played: Played):
    """The order of the board without the luck of the outcomes: Brier = Brier of the truth + squared distance to it."""
    standings, truth = by_truth(played)
    far = {name: float(np.mean((standings.row(name) - truth) ** 2)) for name in standings.names}
    assert far[ORACLE] == pytest.approx(0.0, abs=1e-12)
    assert 0 < far[CROWD] < 0.02
    assert far[BOTH] < far[NEWS] < far[ALWAYS_HALF]
    assert far[CROWD] < far[HASTY] < far[ALWAYS_HALF]
    assert far[CROWD] < far[BOLD] < far[ALWAYS_HALF]
    assert far[OUTSIDE_ENTRY] > far[NEWS]


def test_the_bold_one_is_the_worst_calibrated_reader(played: Played):
    standings, truth = by_truth(played)

    def off(name: str) -> float:
        """Calibration error with the true probabilities in place of outcomes."""
        p = standings.row(name)
        bins = np.minimum((10 * p).astype(int), 9)
        return sum(abs(float((p - truth)[bins == one].sum())) for one in range(10)) / len(p)

    assert off(ORACLE) == pytest.approx(0.0, abs=1e-12)
    assert off(BOLD) > max(off(CROWD), off(BOTH), off(HASTY))


def test_the_board_is_printed_and_written(played: Played):
    page = (played.out / "leaderboard.html").read_text(encoding="utf-8")
    for name in ENTRIES | {"base rate"}:
        assert name in page
        assert name in played.told
    lines = played.told.splitlines()
    board = [line.strip() for line in lines if any(line.strip().startswith(name) for name in ENTRIES) and "[" in line]
    assert len(board) == len(ENTRIES)
    assert "is the best entry" in played.told
    days = [line for line in lines if "taken up" in line]
    assert len(days) >= SEASON.days
    assert sum(int(line.split("listed")[1].split()[0]) for line in days) == SEASON.days * SEASON.events_per_day


def test_contexts_were_searched_and_are_shared(played: Played):
    db = played.store.database
    rows = db.read("select body from context")
    moments = db.read("select count(*), count(distinct context) from moment where taken_at is not null")
    assert moments == [(len(rows), len(rows))]
    sources = [json.loads(body)["sources"] for (body,) in rows]
    assert np.mean([len(found) for found in sources]) > 5


def test_forecasts_of_exclusive_events_add_up(played: Played):
    db = played.store.database
    query = (
        "select m.event, s.p from said s join moment m on m.id = s.moment join entry e on e.id = s.entry "
        "where e.name not in ('always 0.5', 'crowd price')"  # Yardsticks stay as they are.
    )
    races = {event.ticker for event in played.world.events if event.exclusive}
    sums = [
        sum(struct.unpack(f"<{len(p) // 8}d", p))
        for event, p in db.read(query)
        if event.removeprefix("kalshi/") in races
    ]
    assert sums
    assert max(sums) <= 1 + 1e-9


def test_the_demo_is_marked_as_an_example_and_written_in_every_form(played: Played):
    assert Settings(home=played.out).is_example
    assert "foretell demo --arena --open" in played.told
    assert ORACLE in (played.out / "leaderboard.md").read_text(encoding="utf-8")
    assert ORACLE in (played.out / "leaderboard.csv").read_text(encoding="utf-8")
    assert (played.out / "tables" / "standings.html").is_file()


def test_the_arena_file_can_be_read_again(played: Played):
    from foretell.arena import read_arena

    assert read_arena(played.out) == demo_spec(SEASON)
