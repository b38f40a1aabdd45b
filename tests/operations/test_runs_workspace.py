"""Runs as people keep them: scored where something has come out, found by name and tag, archived, removed."""

import csv
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foretell import run, score
from foretell.models.database import SqliteDatabase
from foretell.operations import (
    OPERATIONS,
    CompareRequest,
    ScoreRequest,
    delete_runs,
    edit_run,
    list_runs,
    look_at_databases,
    resolve_run,
    show,
    stop_run,
)
from foretell.questions import InputError, ModelCalled
from foretell.runs import CellKey, RunStore, Settings
from foretell.scoring import score_run

ROWS = [
    # The same question in two rounds, and one that has not come out.
    {"id": "rain", "text": "Will it rain?", "due": "2026-01-05", "by": "2026-01-10", "outcome": "1"},
    {"id": "rain", "text": "Will it rain?", "due": "2026-02-05", "by": "2026-02-10", "outcome": "0"},
    {"id": "snow", "text": "Will it snow?", "due": "2026-01-05", "by": "2026-01-10", "outcome": "0"},
    {"id": "hail", "text": "Will it hail?", "due": "2026-01-05", "by": "2026-01-10", "outcome": ""},
]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    return Settings(home=tmp_path / "home")


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def made(settings: Settings, p: float = 0.2) -> str:
    write(Path("questions.csv"), [{k: v for k, v in row.items() if k != "outcome"} for row in ROWS])
    spec: dict[str, Any] = {"questions": "questions.csv", "forecaster": "always", "options": {"p": p}}
    id = run(spec, settings=settings).run
    assert list_runs(settings=settings).stored[0].score["decided"] == 0
    told = [{"question": r["id"], "target": "yes", "due": r["due"], "outcome": r["outcome"]} for r in ROWS]
    # A table of outcomes will do where the run knows none.
    with pytest.raises(InputError, match="none of the questions has an outcome yet"):
        score(id)
    assert score(id, write(Path("outcomes.csv"), told)).scores
    assert resolve_run(id, outcomes=write(Path("outcomes.csv"), told), settings=settings).new == 3
    return id


def test_a_run_is_scored_by_what_came_out_and_every_door_says_the_same(settings: Settings):
    id = made(settings)
    (found,) = list_runs(settings=settings).stored
    # 0.2 said of 1, 0 and 0: Brier 0.64, 0.04 and 0.04.
    assert found.score["brier"]["estimate"] == pytest.approx(0.24)
    assert (found.score["decided"], found.state, found.questions) == (3, "done", 4)
    board = score(id)
    assert next(s for s in board.scores if s.forecaster.startswith("always") and s.n == 3).metrics[
        "brier"
    ].estimate == pytest.approx(0.24)
    with closing(RunStore(settings.store)) as store:
        row = store.run(id)
        assert row is not None
        scored = score_run(store, row)
    assert [answer.brier for answer in scored.answers] == [None, *map(pytest.approx, (0.64, 0.04, 0.04))]
    assert found.to_dict()["score"] == scored.summary()


def test_a_kept_score_is_made_anew_only_when_something_came_in(settings: Settings, tmp_path: Path):
    id = made(settings)
    first = list_runs(settings=settings).rows()[0]["score"]
    with closing(RunStore(settings.store)) as store:
        ((seen,),) = store.database.read("select seen from run_score")
        assert list_runs(settings=settings).rows()[0]["score"] == first
        assert store.database.read("select seen from run_score") == [(seen,)]
    table = write(tmp_path / "late.csv", [{"question": "hail", "target": "yes", "outcome": "1"}])
    told = resolve_run(id, outcomes=table, settings=settings)
    assert (told.new, told.decided, told.questions) == (1, 4, 4)
    assert told.score["brier"]["estimate"] == pytest.approx((0.64 + 0.04 + 0.04 + 0.64) / 4)
    assert "4 of 4 questions decided" in str(told)
    assert list_runs(settings=settings).rows()[0]["score"] == told.score
    strange = write(tmp_path / "strange.csv", [{"question": "storm", "target": "yes", "outcome": "1"}])
    with pytest.raises(InputError, match="no row is about a question of this run"):
        resolve_run(id, outcomes=strange, settings=settings)


def test_a_run_has_a_name_tags_and_a_note_and_is_found_by_them(settings: Settings):
    id, other = made(settings), made(settings, p=0.7)
    assert edit_run(id, name="autumn", settings=settings).name == "autumn"
    assert show("autumn", settings=settings).run.id == id
    edit_run(id, tags=("reference", "cheap"), note="before the change", settings=settings)
    assert edit_run(id, untag=("cheap",), settings=settings).tags == ("reference",)
    for wanted in (
        {"find": "AUTUMN"},
        {"find": "before the"},
        {"find": "tag:reference"},
        {"find": "autumn tag:reference state:done set:questions.csv"},
    ):
        assert [row.id for row in list_runs(settings=settings, **wanted).stored] == [id]
    assert [row.id for row in list_runs(settings=settings, find="state:running").stored] == []
    for unsafe in ("a\0b", "a\x1b[31m", "a\u202eb"):
        with pytest.raises(InputError, match="cannot be displayed"):
            edit_run(other, name=unsafe, settings=settings)
        with pytest.raises(InputError, match="cannot be displayed"):
            edit_run(other, tags=(unsafe,), settings=settings)
    with pytest.raises(InputError, match="answers to 'autumn'"):
        edit_run(other, name="autumn", settings=settings)
    assert "autumn" in {one.forecaster for one in score(["autumn"]).scores}
    edit_run("autumn", archive=True, settings=settings)
    listed = list_runs(settings=settings)
    assert ([row.id for row in listed.stored], listed.archived) == ([other], 1)
    assert "1 archived" in str(listed)
    assert {row.id for row in list_runs(find="archived:any", settings=settings).stored} == {id, other}
    assert [row.id for row in list_runs(find="archived:yes", settings=settings).stored] == [id]
    assert not edit_run("autumn", archive=False, settings=settings).archived
    with pytest.raises(InputError, match=r"there is no state:dome .did you mean done"):
        list_runs(find="state:dome", settings=settings)


def test_runs_are_listed_in_the_wanted_order(settings: Settings):
    first, second, third = made(settings, p=0.9), made(settings, p=0.2), made(settings, p=0.5)
    edit_run(second, name="beta", settings=settings)
    edit_run(third, name="Alpha", settings=settings)
    with closing(RunStore(settings.store)) as store:
        key = CellKey(run=second, question="rain", due="2026-01-05", trial=0)
        store.add_events([(key, ModelCalled(role="agent", model="openai:x", key="00", dollars=0.3))])

    def ids(**wanted: Any) -> list[str]:
        return [row.id for row in list_runs(settings=settings, **wanted).stored]

    assert ids() == ids(sort="date") == [third, second, first]
    assert ids(sort="score") == [second, third, first]
    assert ids(sort="cost")[0] == second
    assert ids(sort="name") == [third, second, first], "without a name last"
    assert ids(sort="name", limit=1) == [third]


def test_a_run_is_repeated_as_a_new_one_and_the_old_one_stays(settings: Settings):
    id = made(settings)
    edit_run(id, name="autumn", settings=settings)
    edit_run(id, tags=("cheap",), settings=settings)
    write(Path("questions.csv"), [{"id": "fog", "text": "Fog?", "due": "2026-01-05", "by": "2026-01-10"}])
    second = run("autumn", again=True, settings=settings)
    third = run("autumn (2)", again=True, settings=settings)
    assert (second.progress.done, third.progress.done) == (4, 4), "the questions as they were"
    found = {one.id: one.row for one in list_runs(settings=settings).stored}
    assert [found[one].spec["seed"] for one in (id, second.run, third.run)] == [0, 1, 2]
    assert [found[one].name for one in (id, second.run, third.run)] == ["autumn", "autumn (2)", "autumn (3)"]
    assert {row.tags for row in found.values()} == {("cheap",)}
    assert {one.score["decided"] for one in list_runs(settings=settings).stored} == {3}, "with the known outcomes"
    changed = run("autumn", again=True, set={"options.p": "0.7"}, settings=settings).run
    (row,) = [one.row for one in list_runs(settings=settings).stored if one.id == changed]
    assert (row.spec["seed"], row.spec["options"], row.done) == (0, {"p": 0.7}, 4)
    with pytest.raises(InputError, match="other questions are another run"):
        run("autumn", again=True, set={"questions.limit": "1"}, settings=settings)


def test_a_run_is_deleted_only_with_yes(settings: Settings):
    id = made(settings)
    assert "nothing was deleted" in str(delete_runs((id,), settings=settings))
    assert list_runs(settings=settings).total == 1
    assert delete_runs((id,), yes=True, settings=settings).deleted
    with closing(RunStore(settings.store)) as store:
        tables = ("run", "cell", "event", "question", "rate", "run_outcome", "run_score")
        assert [store.database.read(f"select count(*) from {table}") for table in tables] == [[(0,)]] * len(tables)
    assert str(list_runs(settings=settings)).startswith("no runs yet")


def test_a_run_that_somebody_works_at_is_running_and_is_not_deleted(settings: Settings):
    id = made(settings)
    with closing(RunStore(settings.store)) as store:
        store.database.write("delete from cell where run = ? and question = 'hail'", (id,))
        (stopped,) = list_runs(settings=settings).stored
        assert stopped.state == "stopped"
        # Queued for workers; then taken by a process that is gone; then one that says why it gave up.
        store.queue(id, queued=True)
        assert list_runs(settings=settings, find="state:waiting").total == 1
        store.queue(id, queued=False)
        store.database.write("insert into tick (name, due, owner) values (?, '', 987654321)", (f"run {id}",))
        listed = list_runs(settings=settings)
        assert listed.stored[0].state == "crashed"
        assert "its process ended unexpectedly; foretell run " in " ".join(str(listed).split())
        store.label(id, problem="nothing is left of the budget")
        listed = list_runs(settings=settings)
        assert listed.stored[0].state == "error"
        assert "ended with an error: nothing is left of the budget; foretell run " in " ".join(str(listed).split())
        store.database.write(
            "insert into tick (name, due, owner) values (?, 'hail', ?)", (f"cell {id}", store.database.life.id)
        )
        assert list_runs(settings=settings).stored[0].state == "running"
        with pytest.raises(InputError, match="is running"):
            delete_runs((id,), yes=True, settings=settings)
        assert "1 trial under way is left unfinished" in str(stop_run(id, discard=True, settings=settings))
        assert store.stop_wishes([id, "another"]) == {id: "pause"}
        assert not stop_run(id, settings=settings).discard
        assert store.stop_wishes([id]) == {id: "answer"}
    finished = made(settings, p=0.9)
    with pytest.raises(InputError, match="is not running: its state is done"):
        stop_run(finished, settings=settings)


def test_a_run_goes_on_and_is_mended_in_place(settings: Settings):
    id = made(settings)
    edit_run(id, name="autumn", settings=settings)
    edit_run(id, tags=("cheap",), note="before", settings=settings)
    with closing(RunStore(settings.store)) as store:
        store.database.write("delete from cell where run = ? and question = 'hail'", (id,))
    assert run("autumn", settings=settings).run == id
    assert list_runs(settings=settings).stored[0].state == "done"
    for name, value, told in (
        ("questions.dataset", "demo", "other questions are another run"),
        ("colour", "red", "no such setting"),
        ("trials.more", "2", "it has no parts"),
        ("trials", "0", "not a number of trials"),
    ):
        with pytest.raises(InputError, match=told):
            run("autumn", set={name: value}, settings=settings)
    changed = run("autumn", set={"options.p": "0.7", "trials": "2"}, settings=settings).run
    (found,) = list_runs(settings=settings).stored
    assert (found.id, found.row.name, found.row.tags, found.row.note) == (changed, "autumn", ("cheap",), "before")
    assert (found.row.spec["options"], found.row.done, changed != id) == ({"p": 0.7}, 8, True)
    old = next(one for one in list_runs(find="archived:any", settings=settings).stored if one.id == id)
    assert (old.row.archived, old.row.name, old.row.done) == (True, "", 4)
    # One that had no answer yet leaves nothing behind.
    with closing(RunStore(settings.store)) as store:
        store.database.write("delete from cell where run = ?", (changed,))
    mended = run("autumn", set={"trials": "null"}, settings=settings).run
    assert {one.id for one in list_runs(find="archived:any", settings=settings).stored} == {id, mended}


def test_a_run_that_becomes_another_does_so_in_one_piece(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    """Broken off after any statement, the name belongs to the run that had it, and nothing of the new one is there."""
    id = made(settings)
    edit_run(id, name="autumn", settings=settings)
    write, left = SqliteDatabase.write, [0]

    def broken_off(database: SqliteDatabase, sql: str, values: Any = ()) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return write(database, sql, values)

    monkeypatch.setattr(SqliteDatabase, "write", broken_off)
    for statements in range(4):
        left[0] = statements
        with pytest.raises(KeyboardInterrupt):
            run("autumn", set={"options.p": "0.7"}, settings=settings)
        (found,) = list_runs(find="archived:any", settings=settings).stored
        assert (found.id, found.row.name, found.row.done) == (id, "autumn", 4)
    left[0] = 1000
    assert run("autumn", set={"options.p": "0.7"}, settings=settings).run != id
    assert {one.row.name for one in list_runs(find="archived:any", settings=settings).stored} == {"", "autumn"}


def board_of(settings: Settings, **given: Any) -> Any:
    return OPERATIONS["score"].function(ScoreRequest(**given), settings).board


def test_runs_and_tables_of_ones_own_stand_on_one_board(settings: Settings):
    low, high = made(settings), made(settings, p=0.7)
    edit_run(low, name="low", settings=settings)
    both = board_of(settings, sources=("low", high))
    assert [(one.forecaster, one.n) for one in both.scores if one.n == 3][:1] == [("low", 3)]
    # A table says the question and the number; target, due date and its own name follow from the runs and the file.
    mine = write(Path("mine.csv"), [{"question": "snow", "p": "0.1"}])
    full = [{"forecaster": "low", "question": r["id"], "target": "yes", "due": r["due"], "p": "0.4"} for r in ROWS]
    boards = [board_of(settings, sources=("low", high), forecasts=table) for table in (mine, full)]
    named = [{one.forecaster: one.metrics["brier"].estimate for one in b.scores} for b in boards]
    assert named[0]["mine"] == pytest.approx(0.01)
    assert named[1]["low (table)"] == pytest.approx((0.36 + 0.16 + 0.16) / 3)
    assert named[0]["low"] == named[1]["low"] == pytest.approx(0.24)
    # Outcomes of one's own add to what is known; several tables stand under their names, without any run too.
    hail = [{"question": "hail", "outcome": "1"}]
    more = board_of(settings, sources=("low",), forecasts={"x.csv": full}, outcomes=hail)
    assert {one.n for one in more.scores if one.forecaster == "low"} == {4}
    alone = {name: [{"question": "q", "target": "yes", "p": p, "outcome": 1}] for name, p in (("a", 0.9), ("b", 0.4))}
    board = board_of(settings, forecasts=alone)
    assert {one.forecaster for one in board.scores} >= {"a", "b"}
    for wrong, told in (([{"question": "snow", "p": "700"}], "outside"), ([{"p": "0.5"}], "question")):
        with pytest.raises(InputError, match=told):
            board_of(settings, sources=("low",), forecasts=wrong)
    with pytest.raises(InputError, match="no forecasts are given"):
        board_of(settings)


DAMAGE = (
    "update question set body = replace(body, '2026-01-10', '2026-01-89') where id = 'snow'",
    "update question set body = cast(x'7bff' as text) where id = 'hail'",
    "update event set kind = 'Unknown' where id = (select min(id) from event)",
    "update run set tags = '{'",
    "update run_outcome set due = ':026-01-05T00:00:00+00:00' where question = 'snow'",
    "update run_score set summary = '2026-13'",
    "update cell set degraded = 'x' where question = 'rain' and due < '2026-02'",
)


def told(door: Callable[[], object]) -> str:
    """What is wrong, as a door says it; empty where nothing is."""
    try:
        door()
    except InputError as error:
        return str(error)
    return ""


def test_a_row_that_cannot_be_read_is_named_and_brought_back(settings: Settings, tmp_path: Path):
    """In a file that is sound as a file: what reads it says what mends it, and that does."""
    id = made(settings)
    list_runs(settings=settings)
    for number, damage in enumerate(DAMAGE):
        home = Settings(home=tmp_path / f"home{number}")
        shutil.copytree(settings.home, home.home)
        with closing(sqlite3.connect(home.store)) as con:
            con.execute("insert into event values (1, ?, 'rain', '', 0, 'Failed', '{\"error\": \"x\"}')", (id,))
            con.execute(damage)
            con.commit()
        said = [told(partial(list_runs, settings=home)), told(partial(show, id, settings=home))]
        assert all("foretell doctor" in one for one in said if one)
        wrong = [one for one in look_at_databases(home, repair=False) if one.state == "wrong"]
        # A kept score is made anew by whoever needs it.
        assert [one.advice for one in wrong] == ["foretell doctor --repair"] * ("run_score" not in damage)
        assert all(one.state != "wrong" for one in look_at_databases(home, repair=True))
        assert all(one.state == "ok" for one in look_at_databases(home, repair=False) if one.what)
        (row,) = list_runs(settings=home).stored
        assert (row.questions, row.row.done, row.state, show(id, settings=home).total) == (4, 4, "done", 4)


def test_stored_runs_are_compared_by_name_and_beside_a_table(settings: Settings):
    low, high = made(settings), made(settings, p=0.7)
    edit_run(low, name="low", settings=settings)
    edit_run(high, name="high", settings=settings)

    def compared(**given: Any) -> list[tuple[str, str]]:
        found = OPERATIONS["compare"].function(CompareRequest(**given), settings)
        return [(pair.first, pair.second) for pair in found.pairs]

    assert compared(names=("low", "high")) == [("low", "high")]
    mine = write(Path("mine.csv"), [{"forecaster": "mine", "question": "snow", "p": "0.1"}])
    assert compared(names=("low", "mine"), forecasts=mine) == [("low", "mine")]
    assert compared(names=("low", "high", "base rate")) == [("low", "base rate"), ("high", "base rate")]
