"""Databases of other versions of foretell: older ones are migrated, newer ones rejected."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from foretell.cli.main import cli
from foretell.models.canonical import request_key
from foretell.models.journal import JOURNAL_TABLES, Journal
from foretell.models.model import Request, SystemMessage, UserMessage
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.runs.store import MIGRATIONS, RunStore

FIRST = (Path(__file__).parent / "first_version.sql").read_text(encoding="utf-8")
KEY = "b43a2478060b07e9a0247e2e9cd2084cd3d706eb8943ef4b0216a7654adda02d"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with closing(sqlite3.connect(tmp_path / "runs.db")) as database:
        database.executescript(FIRST)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    return tmp_path


def test_runs_of_the_first_version_are_read(home: Path) -> None:
    with closing(RunStore(home / "runs.db")) as store:
        (run,) = store.runs()
        answers = list(store.answers(run.id))
        assert [type(answer) for answer in answers].count(Forecast) == 3
        assert [type(answer) for answer in answers].count(Failure) == 1
        assert all(answer.usage.calls > 0 for answer in answers if isinstance(answer, Forecast))
        events = [event for _, _, event in store.events(run.id)]
        assert len(events) == 36
        assert {(event.at, event.seconds) for event in events} == {(None, None)}
        assert len(store.questions(run.id)) == 2


def test_commands_show_runs_of_the_first_version(home: Path) -> None:
    with closing(RunStore(home / "runs.db")) as store:
        (run,) = store.runs()
    for command in (["runs"], ["show", run.id], ["show", run.id, "--json"]):
        result = CliRunner().invoke(cli, command, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert result.output.strip()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_every_older_version_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    place = tmp_path / "runs.db"
    with closing(sqlite3.connect(place)) as database:
        for script in MIGRATIONS[:version]:
            database.executescript(script)
        spec = json.dumps({"questions": {"dataset": "demo"}})
        database.execute("insert into run (id, spec, created) values ('r', ?, '2026-01-01T00:00:00+00:00')", (spec,))
        database.commit()
        database.execute(f"PRAGMA user_version = {version}")
    with closing(RunStore(place)) as store:
        assert [run.id for run in store.runs()] == ["r"]
    with closing(sqlite3.connect(place)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_newer_file_is_rejected_and_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "runs.db"
    with closing(sqlite3.connect(place)) as database:
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(InputError, match=r"a newer foretell wrote this .* \(update foretell"):
        RunStore(place)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    result = CliRunner().invoke(cli, ["runs"])
    assert isinstance(result.exception, InputError)
    with closing(sqlite3.connect(place)) as database:
        assert database.execute("select count(*) from sqlite_master").fetchone() == (0,)


def test_newer_journal_is_rejected(tmp_path: Path) -> None:
    place = tmp_path / "journal.db"
    with closing(sqlite3.connect(place)) as database:
        database.execute(f"PRAGMA user_version = {len(JOURNAL_TABLES) + 3}")
    with pytest.raises(InputError, match="a newer foretell"):
        Journal(place)


def test_newer_tables_on_a_server_are_rejected(postgres: str) -> None:
    with closing(RunStore(postgres)) as store:
        store.database.write("update version set number = number + 1 where part = 'store'")
    with pytest.raises(InputError, match="a newer foretell"):
        RunStore(postgres)


def test_replies_paid_for_by_the_first_version_are_found_again() -> None:
    """Replies are stored under the key of a request, which must never change."""
    messages = (SystemMessage(text="You forecast."), UserMessage(text="Will it rain?"))
    assert request_key(Request(model="openai:gpt-x", messages=messages)) == KEY
