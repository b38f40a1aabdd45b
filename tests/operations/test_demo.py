"""`foretell demo`: a real result without a network."""

import json
import os
import re
import shutil
import subprocess
import urllib.request
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foretell
from fakes.processes import ForkedCommand
from foretell.cli.main import cli
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.questions.errors import InputError
from foretell.questions.file_lock import locked
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore


def test_demo_fits_on_one_screen_and_its_tables_can_be_scored(made_example: Any):
    lines = made_example.stdout.rstrip().splitlines()
    assert 24 <= len(lines) <= 40
    assert max(map(len, lines[:-1])) <= 100
    assert [line[:1] for line in lines if line[:1].isdigit()] == ["1", "2", "3", "4"]
    assert "auto is better than" in made_example.stdout
    assert sum("example:" in line for line in lines) == 3  # All but the backtest are marked as made up.
    assert "foretell demo --open" in lines[-1]
    assert "<html" in made_example.page.read_text(encoding="utf-8")
    board = foretell.score(made_example.tables / "forecasts.csv", made_example.tables / "outcomes.csv")
    overall = {s.forecaster: s.metrics["brier_index"] for s in board.scores if dict(s.group) == {"kind": "overall"}}
    best_other = max(value.estimate for name, value in overall.items() if name != "auto")
    assert overall["auto"].low > best_other


def test_the_page_shows_the_four_parts_with_the_words_and_numbers_of_the_terminal(made_example: Any):
    document = made_example.page.read_text(encoding="utf-8")
    assert re.findall(r"<h2>(\d\. \w+)</h2>", document) == ["1. Backtest", "2. Agent", "3. Tree", "4. Arena"]
    result = " ".join(unescape(re.sub(r"<[^>]+>", " ", document)).lower().split())
    *parts, _ = re.split(r"\n\n", made_example.stdout.rstrip().lower())
    assert len(parts) == 4
    for part in parts:
        heading, rest = part.split("\n", 1)
        assert re.split(r"[:(] ?", heading, maxsplit=1)[1].rstrip(")") in result
        for row in re.findall(r"^ +(.+? +[\d.]+  \[.+\])$", rest, re.MULTILINE):
            assert " ".join(row.split()) in result
        text = re.sub(r"^ +.+? +[\d.]+  \[.+\]$", "", rest, flags=re.MULTILINE)
        for sentence in re.split(r"(?<=[.?:]) ", " ".join(text.split())):
            assert sentence in result
    assert re.search("made by foretell [0-9.]+ on .* with foretell demo .*--questions 40", result)
    assert document.count("<svg") > 4


def test_the_example_holds_a_scored_backtest_a_trace_a_failure_a_tree_and_an_arena(made_example: Any):
    settings = Settings(home=made_example.home)
    runs = {run["name"]: run for run in foretell.list_runs(find="archived:any", settings=settings).rows()}
    assert runs["auto: the best series model by its past"]["score"]["brier_index"]["estimate"] > 55
    agent, hasty = runs["example: an agent's research"], runs["example: one search and an answer"]
    assert agent["score"]["decided"] == 4
    assert hasty["failed"] == 1
    assert all("example" in run["tags"] and run["note"] for run in runs.values())
    with closing(RunStore(settings.store)) as store:
        kinds = {type(event).__name__ for _, _, event in store.events(agent["run"])}
    assert {"ModelCalled", "ToolUsed", "BeliefRevised", "LeakBlocked", "ForecastMade"} <= kinds
    assert read_tree_file(made_example.home / "trees" / "grid_batteries.json").scenarios
    assert sum("arena" in run["tags"] for run in runs.values()) == 7


def test_a_folder_with_something_else_is_never_replaced(tmp_path: Path):
    mine = tmp_path / "example" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")
    result = CliRunner(env={"FORETELL_HOME": str(tmp_path)}).invoke(cli, ["demo"])
    assert isinstance(result.exception, InputError)
    assert "something other" in str(result.exception)
    assert mine.read_text(encoding="utf-8") == "mine"


def test_two_processes_do_not_create_one_example_at_once(tmp_path: Path):
    home = tmp_path / "example"
    with locked(tmp_path / "example.lock"):
        result = CliRunner().invoke(cli, ["demo"], env={"FORETELL_HOME": str(tmp_path)})
    assert isinstance(result.exception, InputError)
    assert "another process" in str(result.exception)
    assert not home.exists()


def test_questions_have_no_effect_on_the_arena():
    result = CliRunner().invoke(cli, ["demo", "--arena", "--questions", "3"])
    assert "--questions: has no effect with --arena" in str(result.exception)


def test_demo_open_never_uses_the_users_own_home(made_example: Any, tmp_path: Path):
    pytest.importorskip("fastapi")
    own = tmp_path / "own"
    shutil.copytree(made_example.home, own / "example")
    environment = os.environ | {
        "FORETELL_HOME": str(own),
        "OPENAI_API_KEY": "sk-mine",
        "FORETELL_MODEL": "openai:mine",
        "BROWSER": "true",
    }
    process = ForkedCommand(["demo", "--open"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        address, _, token = process.stdout.readline().split("at ")[1].strip().partition("/login?token=")
        assert json.loads(_get(f"{address}/api/runs"))["total"] == 8
        question = {"question": "Will it snow in Oslo by Christmas 2026?", "search": ["brave"]}
        body = json.dumps(question | {"model": "openai:practice"}).encode()
        begun = json.loads(_get(f"{address}/api/ask", body, token))
        assert not begun["warnings"]  # Its models cost nothing.
        stream = _get(f"{address}/api/runs/{begun['run']}/stream?after=0")
        assert "ForecastMade" in stream
    finally:
        process.terminate()
        process.communicate()
    assert not any(own.glob("*.db"))


def _get(address: str, body: bytes | None = None, token: str = "") -> str:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60) as answer:
        return answer.read().decode()


def test_backtest_writes_what_score_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["backtest", "demo", "-F", "always:p=0.4", "--out", "run"])
    assert result.exit_code == 0, result.output
    assert "Wrote run" in result.stderr
    board = foretell.score(tmp_path / "run" / "forecasts.csv", tmp_path / "run" / "outcomes.csv")
    assert "always 0.4" in {s.forecaster for s in board.scores}


def test_an_unusable_example_folder_is_an_error(tmp_path: Path):
    taken = tmp_path / "notes.txt"
    taken.write_text("mine", encoding="utf-8")
    for home in (taken, taken / "below"):
        result = CliRunner(env={"FORETELL_HOME": str(home)}).invoke(cli, ["demo"])
        assert isinstance(result.exception, InputError)
        assert str(home / "example") in str(result.exception)
    assert taken.read_text(encoding="utf-8") == "mine"
