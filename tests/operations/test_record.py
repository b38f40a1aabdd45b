"""The record of one's own questions from the command line, in Python and over MCP."""

import asyncio
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.standing.made_record import fill

import foretell
from foretell.cli.main import cli
from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.server import run_tool
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.types import HistoryResult, RecordResult


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = Settings(home=tmp_path / "home")
    monkeypatch.setenv("FORETELL_HOME", str(settings.home))
    monkeypatch.delenv("FORETELL_DATABASE_URL", raising=False)
    with closing(RunStore(settings.store)) as store:
        fill(store)
    return settings


def output(*words: str) -> str:
    result = CliRunner().invoke(cli, ["record", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("settings")
def test_the_record_says_how_good_the_forecasts_are():
    text = output()
    assert "Better than the base rate by" in text
    assert "40 of 40 confirmed questions scored, 2 open" in text
    assert "research found the deciding fact in" in text
    assert "your answer" in text
    assert all(len(line) <= 80 for line in text.splitlines()[2:])
    body = json.loads(output("--json"))
    assert body["scored"] == 40
    assert body["against"][0]["sentence"].startswith("own forecast")


@pytest.mark.usefixtures("settings")
def test_the_history_says_where_a_question_stands():
    text = output("made-90")
    assert "91 % (range 79–99 %, market 92 %, base rate 40 %, first answer 46 %)" in text
    assert "Proposed outcome: Yes" in text
    assert "foretell record made-90 --confirm proposed" in text
    assert "Billed $0.26 of $2.00" in text
    assert json.loads(output("made-90", "--json"))["waits_for_answer"] is True


@pytest.mark.usefixtures("settings")
def test_an_outcome_is_confirmed_and_a_question_paused():
    assert "Confirmed: Yes." in output("made-90", "--confirm", "proposed")
    assert "41 of 41 confirmed questions scored" in output()
    assert "It stays open." in output("made-90", "--confirm", "not-yet")
    assert "It is paused" in output("made-91", "--state", "paused")
    assert "Next look" not in output("made-91")
    assert json.loads(output("made-91", "--json"))["next_look"] is None
    assert "It is open." in output("made-91", "--state", "open")
    planned = datetime.fromisoformat(json.loads(output("made-91", "--json"))["next_look"])
    assert planned >= datetime.now(UTC) - timedelta(hours=1), "a look that was due meanwhile is due now"
    assert "It ended without an outcome, unscored." in output("made-91", "--confirm", "ambiguous")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["made-90", "--confirm", "perhaps"], "is no answer to this question"),
        (["made-92", "--state", "paused"], "the question is cancelled"),
        (["--confirm", "yes"], "has no effect without ID"),
        (["made-9"], "is the beginning of several questions"),
        (["nothing"], "no question 'nothing' is watched"),
    ],
)
@pytest.mark.usefixtures("settings")
def test_what_does_not_fit_is_refused(words: list[str], problem: str):
    result = CliRunner().invoke(cli, ["record", *words])
    assert isinstance(result.exception, InputError)
    assert problem in str(result.exception)


@pytest.mark.usefixtures("settings")
def test_reports_are_written(tmp_path: Path):
    for name in ("record.html", "record.md", "record.csv"):
        output("--out", str(tmp_path / name))
    page = (tmp_path / "record.html").read_text()
    assert "Why the worst went wrong" in page
    assert "<svg" in page
    assert "research had not found" in (tmp_path / "record.md").read_text().lower()
    assert len((tmp_path / "record.csv").read_text().splitlines()) == 44
    output("made-90", "--out", str(tmp_path / "one.html"))
    one = (tmp_path / "one.html").read_text()
    assert "What moved it" in one
    assert "The question as sharpened" in one


def test_the_same_in_python(settings: Settings):
    record = foretell.record(settings=settings)
    assert isinstance(record, RecordResult)
    assert len(record.own.scored) == 40
    history = foretell.record("made-90", confirm="no", settings=settings)
    assert isinstance(history, HistoryResult)
    assert dict(history.history.outcome) == {"yes": 0}
    with pytest.raises(InputError, match="field state"):
        foretell.record("made-90", state="closed", settings=settings)  # pyright: ignore[reportArgumentType]


def test_an_assistant_reads_it(settings: Settings):
    permissions = ServerPermissions(settings=settings)
    listed, worked = asyncio.run(run_tool(permissions, "list", {"kind": "questions", "find": "made-9"}))
    assert worked
    assert listed["total"] == 3
    shown, _ = asyncio.run(run_tool(permissions, "show", {"watched": "made-90"}))
    assert shown["p"] == {"yes": 0.91}
    whole, _ = asyncio.run(run_tool(permissions, "show", {"watched": "all"}))
    assert whole["scored"] == 40
    refused, worked = asyncio.run(run_tool(permissions, "show", {"watched": "made-90", "run": "x"}))
    assert not worked
    assert "watched question" in refused["problem"]
