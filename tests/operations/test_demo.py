"""The first minute, as a stranger has it: no network, a real result."""

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
from foretell.cli import cli
from foretell.forecasters.tree import read_tree_file
from foretell.questions import InputError
from foretell.runs import RunStore, Settings


def test_demo_shows_all_of_it_on_one_screen_and_its_tables_score(made_example: Any):
    lines = made_example.stdout.rstrip().splitlines()
    assert 24 <= len(lines) <= 40
    assert max(map(len, lines[:-1])) <= 100
    assert [line[:1] for line in lines if line[:1].isdigit()] == ["1", "2", "3", "4"]
    assert "auto is better than" in made_example.stdout
    assert sum("example:" in line for line in lines) == 3  # All but the backtest are made up, and say so.
    assert "foretell demo --open" in lines[-1]
    assert "<html" in made_example.page.read_text(encoding="utf-8")
    board = foretell.score(made_example.tables / "forecasts.csv", made_example.tables / "outcomes.csv")
    overall = {s.forecaster: s.metrics["brier_index"] for s in board.scores if dict(s.group) == {"kind": "overall"}}
    best_other = max(value.estimate for name, value in overall.items() if name != "auto")
    assert overall["auto"].low > best_other


def test_the_page_shows_the_four_parts_with_the_words_and_numbers_of_the_terminal(made_example: Any):
    document = made_example.page.read_text(encoding="utf-8")
    assert re.findall(r"<h2>(\d\. \w+)</h2>", document) == ["1. Backtest", "2. Agent", "3. Tree", "4. Arena"]
    told = " ".join(unescape(re.sub(r"<[^>]+>", " ", document)).lower().split())
    *parts, _ = re.split(r"\n\n", made_example.stdout.rstrip().lower())
    assert len(parts) == 4
    for part in parts:
        heading, rest = part.split("\n", 1)
        assert re.split(r"[:(] ?", heading, maxsplit=1)[1].rstrip(")") in told
        for row in re.findall(r"^ +(.+? +[\d.]+  \[.+\])$", rest, re.MULTILINE):
            assert " ".join(row.split()) in told
        text = re.sub(r"^ +.+? +[\d.]+  \[.+\]$", "", rest, flags=re.MULTILINE)
        for sentence in re.split(r"(?<=[.?:]) ", " ".join(text.split())):
            assert sentence in told
    assert re.search("made by foretell [0-9.]+ on .* with foretell demo .*--questions 40", told)
    assert document.count("<svg") > 4


def test_the_example_holds_a_scored_backtest_a_trace_a_failure_a_tree_and_an_arena(made_example: Any):
    settings = Settings(home=made_example.home)
    found = {run["name"]: run for run in foretell.list_runs(find="archived:any", settings=settings).rows()}
    assert found["auto: the best series model by its past"]["score"]["brier_index"]["estimate"] > 55
    agent, hasty = found["example: an agent's research"], found["example: one search and an answer"]
    assert agent["score"]["decided"] == 4
    assert hasty["failed"] == 1
    assert all("example" in run["tags"] and run["note"] for run in found.values())
    with closing(RunStore(settings.store)) as store:
        kinds = {type(event).__name__ for _, _, event in store.events(agent["run"])}
    assert {"ModelCalled", "ToolUsed", "BeliefRevised", "LeakBlocked", "ForecastMade"} <= kinds
    assert read_tree_file(made_example.home / "trees" / "grid_batteries.json").scenarios
    assert sum("arena" in run["tags"] for run in found.values()) == 7


def test_a_folder_with_something_else_is_never_replaced(tmp_path: Path):
    mine = tmp_path / "example" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")
    result = CliRunner(env={"FORETELL_HOME": str(tmp_path)}).invoke(cli, ["demo"])
    assert isinstance(result.exception, InputError)
    assert "something other" in str(result.exception)
    assert mine.read_text(encoding="utf-8") == "mine"


def test_questions_have_no_effect_on_the_arena():
    result = CliRunner().invoke(cli, ["demo", "--arena", "--questions", "3"])
    assert "--questions: has no effect with --arena" in str(result.exception)


def test_demo_open_serves_it_and_asks_there_but_never_in_the_own_home(made_example: Any, tmp_path: Path):
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
        assert json.loads(_get(f"{address}/api/home"))["run_count"] == 8
        asking = json.loads(_get(f"{address}/api/ask"))
        assert asking["model"] == "openai:practice"
        question = {"question": "Will it snow in Oslo by Christmas 2026?", "search": ["brave"]}
        body = json.dumps(question | {"model": asking["model"]}).encode()
        begun = json.loads(_get(f"{address}/api/ask", body, token))
        assert not begun["warnings"]  # Its models are known to cost nothing.
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


def test_a_folder_that_cannot_be_an_example_is_told_in_a_line(tmp_path: Path):
    taken = tmp_path / "notes.txt"
    taken.write_text("mine", encoding="utf-8")
    for home in (taken, taken / "below"):
        told = CliRunner(env={"FORETELL_HOME": str(home)}).invoke(cli, ["demo"])
        assert isinstance(told.exception, InputError)
        assert str(home / "example") in str(told.exception)
    assert taken.read_text(encoding="utf-8") == "mine"
