"""The list of runs: scores, names and tags, archiving and deletion."""

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foretell import run, score
from foretell.api import delete_runs, edit_run, list_runs, resolve_run, show, stop_run
from foretell.models.database.sqlite import SqliteDatabase
from foretell.operations.doctor import look_at_databases
from foretell.operations.requests.scoring import CompareRequest, ScoreRequest
from foretell.operations.table import OPERATIONS
from foretell.questions.errors import InputError
from foretell.questions.trace import ModelCalled
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore, TrialKey
from foretell.scoring.run_scores import score_run

ROWS = [
    # The same question in two rounds, and one unresolved question.
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


def spec_of(p: float) -> dict[str, Any]:
    return {"questions": "questions.csv", "forecaster": "always", "options": {"p": p}}


def create_run(settings: Settings, p: float = 0.2) -> str:
    write(Path("questions.csv"), [{k: v for k, v in row.items() if k != "outcome"} for row in ROWS])
    id = run(spec_of(p), settings=settings).run
    assert next(run for run in list_runs(settings=settings).stored if run.id == id).score["decided"] == 0
    rows = [{"question": r["id"], "target": "yes", "due": r["due"], "outcome": r["outcome"]} for r in ROWS]
    # A table of outcomes is used if the run has none.
    with pytest.raises(InputError, match="none of the questions has an outcome yet"):
        score(id)
    assert score(id, write(Path("outcomes.csv"), rows)).scores
    assert resolve_run(id, outcomes=write(Path("outcomes.csv"), rows), settings=settings).new == 3
    return id


def test_a_run_has_the_same_score_in_every_interface(settings: Settings):
    id = create_run(settings)
    (listed,) = list_runs(settings=settings).stored
    # Forecasts of 0.2 with outcomes 1, 0 and 0: Brier 0.64, 0.04 and 0.04.
    assert listed.score["brier"]["estimate"] == pytest.approx(0.24)
    assert (listed.score["decided"], listed.state, listed.questions) == (3, "done", 4)
    board = score(id)
    assert next(s for s in board.scores if s.forecaster.startswith("always") and s.n == 3).metrics[
        "brier"
    ].estimate == pytest.approx(0.24)
    with closing(RunStore(settings.store)) as store:
        row = store.run(id)
        assert row is not None
        scored = score_run(store, row)
    assert [answer.brier for answer in scored.answers] == [None, *map(pytest.approx, (0.64, 0.04, 0.04))]
    assert listed.to_dict()["score"] == scored.summary()


def test_a_run_with_known_outcomes_has_its_score_stored_when_it_ends(settings: Settings):
    spec = {"questions": {"dataset": "demo", "limit": 4}, "forecaster": "always", "options": {"p": 0.2}}
    id = run(spec, settings=settings).run
    with closing(RunStore(settings.store)) as store:
        ((stored, summary),) = store.database.read("select run, summary from run_score")
    assert stored == id
    assert json.loads(summary) == list_runs(settings=settings).rows()[0]["score"]


def test_a_stored_score_is_recomputed_only_after_new_outcomes(settings: Settings, tmp_path: Path):
    id = create_run(settings)
    first = list_runs(settings=settings).rows()[0]["score"]
    with closing(RunStore(settings.store)) as store:
        ((seen,),) = store.database.read("select seen from run_score")
        assert list_runs(settings=settings).rows()[0]["score"] == first
        assert store.database.read("select seen from run_score") == [(seen,)]
    table = write(tmp_path / "late.csv", [{"question": "hail", "target": "yes", "outcome": "1"}])
    result = resolve_run(id, outcomes=table, settings=settings)
    assert (result.new, result.decided, result.questions) == (1, 4, 4)
    assert result.score["brier"]["estimate"] == pytest.approx((0.64 + 0.04 + 0.04 + 0.64) / 4)
    assert "4 of 4 questions decided" in str(result)
    assert list_runs(settings=settings).rows()[0]["score"] == result.score
    strange = write(tmp_path / "strange.csv", [{"question": "storm", "target": "yes", "outcome": "1"}])
    with pytest.raises(InputError, match="no row is about a question of this run"):
        resolve_run(id, outcomes=strange, settings=settings)


def test_a_run_has_a_name_tags_and_a_note_and_is_found_by_them(settings: Settings):
    id, other = create_run(settings), create_run(settings, p=0.7)
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
    with pytest.raises(InputError, match="'autumn' already refers to run"):
        edit_run(other, name="autumn", settings=settings)
    assert "autumn" in {row.forecaster for row in score(["autumn"]).scores}
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
    first, second, third = create_run(settings, p=0.9), create_run(settings, p=0.2), create_run(settings, p=0.5)
    edit_run(second, name="beta", settings=settings)
    edit_run(third, name="Alpha", settings=settings)
    with closing(RunStore(settings.store)) as store:
        key = TrialKey(run=second, question="rain", due="2026-01-05", trial=0)
        store.add_events([(key, ModelCalled(role="agent", model="openai:x", key="00", dollars=0.3))])

    def ids(**wanted: Any) -> list[str]:
        return [row.id for row in list_runs(settings=settings, **wanted).stored]

    assert ids() == ids(sort="date") == [third, second, first]
    assert ids(sort="score") == [second, third, first]
    assert ids(sort="cost")[0] == second
    assert ids(sort="name") == [third, second, first], "without a name last"
    assert ids(sort="name", limit=1) == [third]


def test_a_run_is_repeated_as_a_new_one_and_the_old_one_stays(settings: Settings):
    id = create_run(settings)
    edit_run(id, name="autumn", settings=settings)
    edit_run(id, tags=("cheap",), settings=settings)
    write(Path("questions.csv"), [{"id": "fog", "text": "Fog?", "due": "2026-01-05", "by": "2026-01-10"}])
    second = run("autumn", again=True, settings=settings)
    third = run("autumn (2)", again=True, settings=settings)
    assert (second.progress.done, third.progress.done) == (4, 4), "the questions as they were"
    listed = {entry.id: entry.row for entry in list_runs(settings=settings).stored}
    assert [listed[entry].spec["seed"] for entry in (id, second.run, third.run)] == [0, 1, 2]
    assert [listed[entry].name for entry in (id, second.run, third.run)] == ["autumn", "autumn (2)", "autumn (3)"]
    assert {row.tags for row in listed.values()} == {("cheap",)}
    assert {entry.score["decided"] for entry in list_runs(settings=settings).stored} == {3}, "with the known outcomes"
    changed = run("autumn", again=True, set={"options.p": "0.7"}, settings=settings).run
    (row,) = [entry.row for entry in list_runs(settings=settings).stored if entry.id == changed]
    assert (row.spec["seed"], row.spec["options"], row.done) == (0, {"p": 0.7}, 4)
    with pytest.raises(InputError, match="cannot be changed in a stored run"):
        run("autumn", again=True, set={"questions.limit": "1"}, settings=settings)


def test_a_run_is_deleted_only_with_yes(settings: Settings):
    id = create_run(settings)
    listed = str(delete_runs((id,), settings=settings))
    assert "nothing was deleted" in listed
    assert "--" not in listed, "Python has no flags"
    assert list_runs(settings=settings).total == 1
    assert delete_runs((id,), yes=True, settings=settings).deleted
    assert str(list_runs(settings=settings)).startswith("no runs yet")
    with closing(RunStore(settings.store)) as store:
        store.label(id, deleted="2026-01-01T00:00:00+00:00")
    # It was in the bin for more than 30 days when the store was opened next.
    with closing(RunStore(settings.store)) as store:
        tables = ("run", "cell", "event", "question", "rate", "run_outcome", "run_score", "run_combined")
        assert [store.database.read(f"select count(*) from {table}") for table in tables] == [[(0,)]] * len(tables)
    assert str(list_runs(settings=settings)).startswith("no runs yet")


def test_a_deleted_run_is_restored_with_its_answers_and_scores(settings: Settings):
    id = create_run(settings)
    edit_run(id, name="autumn", settings=settings)
    before = list_runs(settings=settings).to_dict()
    delete_runs(("autumn",), yes=True, settings=settings)
    with pytest.raises(InputError, match="state:deleted"):
        edit_run("autumn", tags=("x",), settings=settings)
    (row,) = list_runs(find="state:deleted", settings=settings).to_dict()["runs"]
    assert (row["run"], row["state"]) == (id, "deleted")
    edit_run("autumn", restore=True, settings=settings)
    assert list_runs(settings=settings).to_dict() == before
    delete_runs((id,), yes=True, settings=settings)
    other = create_run(settings, p=0.3)
    edit_run(other, name="autumn", settings=settings)
    # Another run has the name now, and starting the run of a spec again restores it too.
    edit_run(id, restore=True, settings=settings)
    assert {run.id: run.row.name for run in list_runs(settings=settings).stored} == {id: "", other: "autumn"}
    delete_runs((id,), yes=True, settings=settings)
    assert run(spec_of(0.2), settings=settings).run == id
    assert list_runs(settings=settings).total == 2


def test_a_running_run_is_not_deleted(settings: Settings):
    id = create_run(settings)
    with closing(RunStore(settings.store)) as store:
        store.database.write("delete from cell where run = ? and question = 'hail'", (id,))
        (stopped,) = list_runs(settings=settings).stored
        assert stopped.state == "stopped"
        # Queued for workers; then claimed by a lost process; then by one that reports an error.
        store.queue(id, queued=True)
        assert list_runs(settings=settings, find="state:waiting").total == 1
        store.queue(id, queued=False)
        store.database.write("insert into tick (name, due, owner) values (?, '', 987654321)", (f"run {id}",))
        listed = list_runs(settings=settings)
        assert listed.stored[0].state == "crashed"
        assert 'its process ended unexpectedly; `foretell.run("' in " ".join(str(listed).split())
        store.label(id, problem="nothing is left of the budget")
        listed = list_runs(settings=settings)
        assert listed.stored[0].state == "error"
        assert 'ended with an error: nothing is left of the budget; `foretell.run("' in " ".join(str(listed).split())
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
    finished = create_run(settings, p=0.9)
    with pytest.raises(InputError, match="is not running: its state is done"):
        stop_run(finished, settings=settings)


def test_a_run_continues_with_changed_settings(settings: Settings):
    id = create_run(settings)
    edit_run(id, name="autumn", settings=settings)
    edit_run(id, tags=("cheap",), note="before", settings=settings)
    with closing(RunStore(settings.store)) as store:
        store.database.write("delete from cell where run = ? and question = 'hail'", (id,))
    assert run("autumn", settings=settings).run == id
    assert list_runs(settings=settings).stored[0].state == "done"
    for name, value, message in (
        ("questions.dataset", "demo", "cannot be changed in a stored run"),
        ("colour", "red", "no such setting"),
        ("trials.more", "2", "it has no parts"),
        ("trials", "0", "not a number of trials"),
    ):
        with pytest.raises(InputError, match=message):
            run("autumn", set={name: value}, settings=settings)
    changed = run("autumn", set={"options.p": "0.7", "trials": "2"}, settings=settings).run
    (listed,) = list_runs(settings=settings).stored
    assert (listed.id, listed.row.name, listed.row.tags, listed.row.note) == (changed, "autumn", ("cheap",), "before")
    assert (listed.row.spec["options"], listed.row.done, changed != id) == ({"p": 0.7}, 8, True)
    old = next(entry for entry in list_runs(find="archived:any", settings=settings).stored if entry.id == id)
    assert (old.row.archived, old.row.name, old.row.done) == (True, "", 4)
    # A run without answers leaves nothing behind.
    with closing(RunStore(settings.store)) as store:
        store.database.write("delete from cell where run = ?", (changed,))
    mended = run("autumn", set={"trials": "null"}, settings=settings).run
    assert {entry.id for entry in list_runs(find="archived:any", settings=settings).stored} == {id, mended}


def test_replacing_a_run_is_atomic(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    """If it is interrupted after any statement, the old run keeps its name, and nothing of the new one is stored."""
    id = create_run(settings)
    edit_run(id, name="autumn", settings=settings)
    write, left = SqliteDatabase.write, [0]

    def interrupted(database: SqliteDatabase, sql: str, values: Any = ()) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return write(database, sql, values)

    monkeypatch.setattr(SqliteDatabase, "write", interrupted)
    for statements in range(4):
        left[0] = statements
        with pytest.raises(KeyboardInterrupt):
            run("autumn", set={"options.p": "0.7"}, settings=settings)
        (listed,) = list_runs(find="archived:any", settings=settings).stored
        assert (listed.id, listed.row.name, listed.row.done) == (id, "autumn", 4)
    left[0] = 1000
    assert run("autumn", set={"options.p": "0.7"}, settings=settings).run != id
    assert {entry.row.name for entry in list_runs(find="archived:any", settings=settings).stored} == {"", "autumn"}


def board_of(settings: Settings, **fields: Any) -> Any:
    return OPERATIONS["score"].function(ScoreRequest(**fields), settings).board


def test_runs_and_own_tables_are_scored_together(settings: Settings):
    low, high = create_run(settings), create_run(settings, p=0.7)
    edit_run(low, name="low", settings=settings)
    both = board_of(settings, sources=("low", high))
    assert [(row.forecaster, row.n) for row in both.scores if row.n == 3][:1] == [("low", 3)]
    # A table has question and p; target, due date and name come from the runs and the file.
    mine = write(Path("mine.csv"), [{"question": "snow", "p": "0.1"}])
    full = [{"forecaster": "low", "question": r["id"], "target": "yes", "due": r["due"], "p": "0.4"} for r in ROWS]
    boards = [board_of(settings, sources=("low", high), forecasts=table) for table in (mine, full)]
    named = [{row.forecaster: row.metrics["brier"].estimate for row in b.scores} for b in boards]
    assert named[0]["mine"] == pytest.approx(0.01)
    assert named[1]["low (table)"] == pytest.approx((0.36 + 0.16 + 0.16) / 3)
    assert named[0]["low"] == named[1]["low"] == pytest.approx(0.24)
    # Own outcomes are added to the known ones; several tables are scored under their names, also without runs.
    hail = [{"question": "hail", "outcome": "1"}]
    more = board_of(settings, sources=("low",), forecasts={"x.csv": full}, outcomes=hail)
    assert {row.n for row in more.scores if row.forecaster == "low"} == {4}
    alone = {name: [{"question": "q", "target": "yes", "p": p, "outcome": 1}] for name, p in (("a", 0.9), ("b", 0.4))}
    board = board_of(settings, forecasts=alone)
    assert {row.forecaster for row in board.scores} >= {"a", "b"}
    for wrong, message in (([{"question": "snow", "p": "700"}], "outside"), ([{"p": "0.5"}], "question")):
        with pytest.raises(InputError, match=message):
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


def error_of(call: Callable[[], object]) -> str:
    """Return the error that a call raises; empty if it succeeds."""
    try:
        call()
    except InputError as error:
        return str(error)
    return ""


def test_unreadable_rows_are_named_and_repaired(settings: Settings, tmp_path: Path):
    """Errors name the command that repairs the file, and it does."""
    id = create_run(settings)
    list_runs(settings=settings)
    for number, damage in enumerate(DAMAGE):
        home = Settings(home=tmp_path / f"home{number}")
        shutil.copytree(settings.home, home.home)
        with closing(sqlite3.connect(home.store)) as con:
            failed = "1, ?, 'rain', '', 0, 'Failed', '{\"error\": \"x\"}', null, null"
            con.execute(f"insert into event values ({failed})", (id,))
            con.execute(damage)
            con.commit()
        messages = [error_of(partial(list_runs, settings=home)), error_of(partial(show, id, settings=home))]
        assert all("foretell doctor" in message for message in messages if message)
        wrong = [finding for finding in look_at_databases(home, repair=False) if finding.state == "wrong"]
        # A stored score is recomputed when it is needed.
        assert [finding.advice for finding in wrong] == ["foretell doctor --repair"] * ("run_score" not in damage)
        assert all(finding.state != "wrong" for finding in look_at_databases(home, repair=True))
        assert all(finding.state == "ok" for finding in look_at_databases(home, repair=False) if finding.what)
        (row,) = list_runs(settings=home).stored
        assert (row.questions, row.row.done, row.state, show(id, settings=home).total) == (4, 4, "done", 4)


def test_stored_runs_are_compared_by_name_and_with_a_table(settings: Settings):
    low, high = create_run(settings), create_run(settings, p=0.7)
    edit_run(low, name="low", settings=settings)
    edit_run(high, name="high", settings=settings)

    def compared(**fields: Any) -> list[tuple[str, str]]:
        function = OPERATIONS["compare"].function(CompareRequest(**fields), settings)
        return [(pair.first, pair.second) for pair in function.pairs]

    assert compared(names=("low", "high")) == [("low", "high")]
    mine = write(Path("mine.csv"), [{"forecaster": "mine", "question": "snow", "p": "0.1"}])
    assert compared(names=("low", "mine"), forecasts=mine) == [("low", "mine")]
    assert compared(names=("low", "high", "base rate")) == [("low", "base rate"), ("high", "base rate")]
