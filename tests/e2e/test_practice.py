"""All commands in one practice home: ask, run, audit, tree, submit and ledger."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.processes import ForkedCommand, run_forked
from foretell.practice.services import KEY
from foretell.runs.store import RunStore

PATIENCE = 120.0
SPEC = """
questions: {questions}
mode: live
models: {{agent: "openai:practice"}}
search: [brave]
trials: 1
"""


@dataclass(frozen=True, kw_only=True)
class Shell:
    """A shell in practice."""

    folder: Path
    environment: dict[str, str]

    def foretell(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_forked(arguments, cwd=self.folder, env=self.environment, timeout=PATIENCE)
        assert done.returncode == code, done
        return done

    def run_of(self, *, dataset: str) -> str:
        """The id of the run that asked these questions."""
        with closing(RunStore(Path(self.environment["FORETELL_HOME"]) / "runs.db")) as store:
            (run,) = [row.id for row in store.runs() if row.spec["questions"]["dataset"] == dataset]
        return run

    def get(self, service: str, path: str) -> Any:
        """Return what a service of the sandbox shows to the account."""
        request = urllib.request.Request(
            self.environment[f"FORETELL_{service}_URL"] + path, headers={"Authorization": f"Token {KEY}"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("practice")
    lines, environment = folder / "practice.env", {**os.environ, "FORETELL_HOME": str(folder / "real")}
    world = ForkedCommand(["practice", "--env-file", str(lines)], cwd=folder, env=environment)
    until = time.monotonic() + PATIENCE
    while not lines.exists() and world.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    script = f". {lines}; exec {sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env=environment)
    yield Shell(folder=folder, environment=json.loads(result.stdout))
    world.send_signal(signal.SIGTERM)
    world.communicate(timeout=PATIENCE)


def test_ask_and_audit_in_the_sandbox(shell: Shell):
    question = ("ask", "Will Norges Bank cut its rate before 2027?", "--as-of", "2026-07-01", "--json")
    answer = json.loads(shell.foretell(*question).stdout)
    assert "rates-held" in answer["rationale"]
    assert "rates-cut" not in answer["rationale"]
    audit = shell.foretell("audit", answer["run"], "--auditor", "openai:auditor")
    assert audit.stdout


def test_numeric_questions_and_market_listings_in_the_sandbox(shell: Shell):
    command = ("ask", "How many goals fall on Sunday?", "--range", "0:12 goals")
    answer = json.loads(shell.foretell(*command, "--json").stdout)
    assert list(answer["quantiles"].values()) == sorted(answer["quantiles"].values())
    assert answer["labels"][">6"] == "above 6 goals"
    shell.foretell("data", "show", "polymarket", "--limit", "1", "--out", "poly.jsonl")
    (shell.folder / "poly.yaml").write_text("questions: poly.jsonl\nforecaster: market\nmode: live\n")
    assert "1 trials, 0 failed" in shell.foretell("run", "poly.yaml").stdout


@pytest.mark.parametrize("grounder", ["search", "deep"])
def test_a_tree_grows_also_with_deep_research(shell: Shell, grounder: str):
    claim = "The ECB cuts its deposit rate by 31 March 2027."
    deep = ("--set", "options.deep_model=openai:gpt-6.1-sol") if grounder == "deep" else ()
    how = ("--grounder", grounder, *deep, "--closes", "2027-03-31", "--leaves", "3", "--out", f"{grounder}.json")
    grown = shell.foretell("tree", "grow", claim, *how)
    assert re.match(r"P0 \d+\.\d % ", grown.stdout)
    assert claim in shell.foretell("tree", "show", f"{grounder}.json").stdout


def test_numeric_question_is_forecast_submitted_and_read_back(shell: Shell):
    shell.foretell("data", "show", "metaculus", "--out", "metaculus.jsonl")
    (shell.folder / "bot.yaml").write_text(SPEC.format(questions="metaculus.jsonl"))
    done = shell.foretell("run", "bot.yaml")
    assert "0 failed" in done.stdout + done.stderr
    run = shell.run_of(dataset="metaculus.jsonl")
    assert "snow" in shell.foretell("show", run, "metaculus/9003").stdout
    sent = shell.foretell("submit", run, "--to", "metaculus", "--comment", "--yes").stdout
    # A group of two is one question with one comment. The parts of the other posts are separate questions.
    assert (sent.count("forecast: sent"), sent.count("comment: sent")) == (12, 11)
    mine = shell.get("METACULUS", "/posts/9003/")["question"]["my_forecasts"]["latest"]["forecast_values"]
    assert len(mine) == 201
    assert mine == sorted(mine)
    date = shell.get("METACULUS", "/posts/9005/")["question"]["my_forecasts"]["latest"]["forecast_values"]
    goals = shell.get("METACULUS", "/posts/9004/")["question"]["my_forecasts"]["latest"]["forecast_values"]
    assert (len(date), len(goals)) == (201, 10)
    choice = shell.get("METACULUS", "/posts/9002/")["question"]["my_forecasts"]["latest"]["forecast_values"]
    assert sum(choice) == pytest.approx(1)
    again = shell.foretell("submit", run, "--to", "metaculus", "--comment", "--yes")
    assert "nothing" in again.stderr


def test_prophet_arena_and_the_ledger(shell: Shell):
    shell.foretell("data", "show", "prophet-arena", "--out", "arena.jsonl")
    (shell.folder / "arena.yaml").write_text(SPEC.format(questions="arena.jsonl"))
    shell.foretell("run", "arena.yaml")
    run = shell.run_of(dataset="arena.jsonl")
    assert (
        "cup-final forecast: sent"
        in shell.foretell("submit", run, "--to", "prophet-arena", "--set", "tournament.agent=me", "--yes").stdout
    )
    assert "intact entries" in shell.foretell("ledger", "--verify").stdout
    rows = json.loads(shell.foretell("ledger", "--json").stdout)["entries"]
    assert {row["platform"] for row in rows} >= {"prophet-arena"}
    assert {row["kind"] for row in rows} == {"intention", "receipt"}
