"""A small demo from end to end, with real sockets and simulated time."""

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

from foretell.arena.score_data import read_arena_table
from foretell.arena.select import next_forecast_time
from foretell.arena.store import ArenaStore
from foretell.operations.example import demo
from foretell.operations.requests.setup import DemoRequest
from foretell.practice.arena_demo import (
    BOLD,
    BOTH,
    HASTY,
    NEWS,
    ORACLE,
    OUTSIDE_ENTRY,
    ArenaSeason,
    demo_spec,
    demo_world,
)
from foretell.practice.exchange.world import SimulatedWorld
from foretell.questions.as_of import instant
from foretell.report.document import write_outputs
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.scoring.arena_table import ArenaTable
from foretell.scoring.baselines import ALWAYS_HALF, MARKET_PRICE

SEASON = ArenaSeason(days=4, events_per_day=3, seed=3)
ENTRIES = {ORACLE, MARKET_PRICE, ALWAYS_HALF, OUTSIDE_ENTRY, BOTH, NEWS, HASTY, BOLD}


@dataclass(frozen=True, kw_only=True)
class Played:
    """The output of a demo and its stores."""

    out: Path
    output: str
    world: SimulatedWorld
    store: RunStore
    records: ArenaStore

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
    output = "\n".join([*lines, str(result)])
    store = RunStore(out / "runs.db")
    yield Played(
        out=out, output=output, world=demo_world(SEASON), store=store, records=ArenaStore(store.database, "demo")
    )
    store.close()


def test_every_entry_answers_each_forecast_time_once_before_the_close(played: Played):
    db = played.store.database
    entries = {id: name for id, name in db.read("select id, name from entry")}
    assert set(entries.values()) == ENTRIES
    forecast_times = db.read(
        "select id, event, taken_at, closes_at, deadline, targets from moment where taken_at is not null"
    )
    assert len(forecast_times) > 2 * SEASON.days * SEASON.events_per_day
    forecasts = db.read("select moment, entry, trial, at, p from said")
    assert Counter((id, entry) for id, entry, *_ in forecasts) == Counter(
        (row[0], entry) for row in forecast_times for entry in entries
    )
    known = {row[0]: row for row in forecast_times}
    for id, _, trial, at, p in forecasts:
        _, event, asked_at, closes, deadline, targets = known[id]
        life = played.world.by_ticker[event.removeprefix("kalshi/")].life
        assert trial == 0
        # A question that is asked at midnight is dated a microsecond later.
        assert instant(asked_at) - timedelta(microseconds=1) <= instant(at) < instant(deadline) <= instant(closes)
        assert instant(at).timestamp() < life.ends
        assert len(p) == 8 * len(json.loads(targets))
    failures = db.read("select count(*) from cell where failure is not null")
    assert failures == [(0,)]
    assert f"{4 * len(forecast_times)} calls of models" in played.output


def test_forecast_times_halve_the_time_left_and_none_is_missed(played: Played):
    schedule = demo_spec(SEASON).schedule
    for event, row in played.records.selected().items():
        forecast_times = played.records.forecast_times.of_event(event)
        assert [forecast_time.number for forecast_time in forecast_times] == list(range(len(forecast_times)))
        assert {forecast_time.state for forecast_time in forecast_times} <= {"ready", "done", "dropped"}
        life = played.world.by_ticker[row.native].life
        for forecast_time, following in pairwise(forecast_times):
            assert forecast_time.closes_at is not None
            assert following.planned_at == next_forecast_time(
                forecast_time.planned_at, forecast_time.closes_at, schedule.gap
            )
        for forecast_time in forecast_times:
            if forecast_time.taken_at is not None:
                delay = forecast_time.taken_at - forecast_time.planned_at
                assert timedelta(0) <= delay < timedelta(hours=3, seconds=1)
            else:
                # A forecast time is dropped only if the event resolved early.
                assert forecast_time.state == "dropped"
                assert life.early


def test_results_match_the_simulated_world(played: Played):
    selected = played.records.selected()
    assert len(selected) == SEASON.days * SEASON.events_per_day
    assert all(row.settled for row in selected.values())
    for outcome in played.records.outcomes():
        ticker = outcome.question_id.removeprefix("kalshi/")
        assert outcome.outcome == played.world.outcome(ticker, outcome.target_id)
    assert {outcome.question_id for outcome in played.records.outcomes()} == set(selected)


def by_truth(played: Played) -> tuple[ArenaTable, np.ndarray]:
    standings = played.standings()
    forecast_times = standings.forecast_times
    truth = [
        played.world.truth(
            standings.events.ids[forecast_times.event[index]].removeprefix("kalshi/"),
            target,
            instant(f"{forecast_times.taken_at[index]}+00:00"),
        )
        for index, target in zip(standings.markets.forecast_time, standings.markets.target, strict=True)
    ]
    return standings, np.array(truth)


def test_better_informed_entries_are_nearer_to_the_truth(played: Played):
    """The order of entries without luck: Brier score = that of the true probabilities + squared distance to them."""
    standings, truth = by_truth(played)
    far = {name: float(np.mean((standings.row(name) - truth) ** 2)) for name in standings.names}
    assert far[ORACLE] == pytest.approx(0.0, abs=1e-12)
    assert 0 < far[MARKET_PRICE] < 0.02
    assert far[BOTH] < far[NEWS] < far[ALWAYS_HALF]
    assert far[MARKET_PRICE] < far[HASTY] < far[ALWAYS_HALF]
    assert far[MARKET_PRICE] < far[BOLD] < far[ALWAYS_HALF]
    assert far[OUTSIDE_ENTRY] > far[NEWS]


def test_overconfident_entry_has_the_worst_calibration(played: Played):
    standings, truth = by_truth(played)

    def off(name: str) -> float:
        """Calibration error with the true probabilities in place of outcomes."""
        p = standings.row(name)
        bins = np.minimum((10 * p).astype(int), 9)
        return sum(abs(float((p - truth)[bins == i].sum())) for i in range(10)) / len(p)

    assert off(ORACLE) == pytest.approx(0.0, abs=1e-12)
    assert off(BOLD) > max(off(MARKET_PRICE), off(BOTH), off(HASTY))


def test_leaderboard_is_printed_and_written(played: Played):
    page = (played.out / "leaderboard.html").read_text(encoding="utf-8")
    for name in ENTRIES | {"base rate"}:
        assert name in page
        assert name in played.output
    lines = played.output.splitlines()
    board = [line.strip() for line in lines if any(line.strip().startswith(name) for name in ENTRIES) and "[" in line]
    assert len(board) == len(ENTRIES)
    assert "is the best entry" in played.output
    days = [line for line in lines if "taken up" in line]
    assert len(days) >= SEASON.days
    assert sum(int(line.split("listed")[1].split()[0]) for line in days) == SEASON.days * SEASON.events_per_day


def test_contexts_have_sources_and_are_shared(played: Played):
    db = played.store.database
    rows = db.read("select body from context")
    forecast_times = db.read("select count(*), count(distinct context) from moment where taken_at is not null")
    assert forecast_times == [(len(rows), len(rows))]
    sources = [json.loads(body)["sources"] for (body,) in rows]
    assert np.mean([len(source) for source in sources]) > 5


def test_forecasts_of_exclusive_events_sum_to_one(played: Played):
    db = played.store.database
    query = (
        "select m.event, s.p from said s join moment m on m.id = s.moment join entry e on e.id = s.entry "
        "where e.name not in ('always 0.5', 'market price')"  # Baselines are not normalised.
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
    assert "foretell demo --arena --open" in played.output
    assert ORACLE in (played.out / "leaderboard.md").read_text(encoding="utf-8")
    assert ORACLE in (played.out / "leaderboard.csv").read_text(encoding="utf-8")
    assert (played.out / "tables" / "standings.html").is_file()


def test_the_arena_file_can_be_read_again(played: Played):
    from foretell.arena.spec import read_arena

    assert read_arena(played.out) == demo_spec(SEASON)
