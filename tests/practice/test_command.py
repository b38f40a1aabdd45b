"""`foretell practice` from the command line: a sandbox in the foreground, or around one command."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.processes import ForkedCommand, run_forked
from foretell.models.facts import forget_facts
from foretell.operations.model_check import ModelCheck, check_model
from foretell.operations.practice import UNSET, practice_environment, shell_lines
from foretell.operations.requests.setup import ModelsCheckRequest
from foretell.plugins import PAIR
from foretell.practice.models.scripts import agent_script
from foretell.practice.models.server import PracticeModels
from foretell.practice.services import KEY
from foretell.runs.settings import KEYS, Settings, load_settings

PATIENCE = 60.0
QUESTION = "Will Norges Bank cut its rate before 2027?"


def foretell(*arguments: str, env: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run foretell, optionally in the environment of a shell that has sourced the file `env`."""
    environment = {**os.environ, **more}
    if env is not None:
        shell = ["sh", "-c", '. "$0"; exec env -0', str(env)]
        values = subprocess.run(shell, capture_output=True, text=True, check=True, env=environment).stdout
        environment = dict(value.split("=", 1) for value in values.split("\0") if value)
    return run_forked(arguments, cwd=Path.cwd(), env=environment, timeout=PATIENCE)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Path]:
    """Start the sandbox and yield its file of shell lines, which exists once all services listen."""
    env = tmp_path / "practice.env"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "FORETELL_HOME": str(tmp_path / "it's home")}
    process = ForkedCommand(["practice", "--env-file", str(env)], cwd=tmp_path, env=environment, **pipes)
    until = time.monotonic() + PATIENCE
    while not env.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    try:
        assert env.exists(), process.communicate() if process.poll() is not None else "too slow"
        yield env
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Serving until Ctrl-C" in err
    assert "foretell ask" in err
    assert out == env.read_text()


def test_a_question_is_answered_with_the_services_of_the_sandbox(world: Path, tmp_path: Path):
    result = foretell("ask", QUESTION, "--json", env=world)
    assert result.returncode == 0, result.stderr
    forecast = json.loads(result.stdout)
    assert 0.05 <= forecast["p"]["yes"] <= 0.95
    assert "http://localhost:" in forecast["rationale"]
    assert forecast["usage"]["calls"] > 1
    assert (tmp_path / "it's home" / "practice" / "journal.db").exists()
    past = foretell("ask", QUESTION, "--as-of", "2026-07-01", "--trials", "2", "--json", env=world)
    assert past.returncode == 0, past.stderr
    assert "rates-held" in json.loads(past.stdout)["rationale"]


def test_a_command_runs_in_the_sandbox_and_its_exit_code_is_returned(tmp_path: Path):
    script = "import os, sys; print(os.environ['FORETELL_HOME'], 'FORETELL_CLOCK' in os.environ); sys.exit(7)"
    command = ("practice", "--", sys.executable, "-c", script)
    done = foretell(*command, FORETELL_CLOCK="file:nowhere", FORETELL_HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (7, f"{tmp_path / 'practice'} False\n", "")
    missing = foretell("practice", "--", "no-such-program", FORETELL_HOME=str(tmp_path))
    assert (missing.returncode, missing.stderr) == (
        2,
        "foretell: cannot run no-such-program: No such file or directory\n",
    )


def test_forecasts_sent_to_tournaments_are_counted_and_saved(tmp_path: Path):
    sending = """
import json, os, urllib.request
def post(service, path, scheme, body):
    head = {"Authorization": scheme + " practice", "Content-Type": "application/json"}
    url = os.environ[f"FORETELL_{service}_URL"] + path
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head)).read()
post("METACULUS", "/questions/forecast/", "Token", [{"question": 9101, "probability_yes": 0.3}])
post("BUCKETS", "/upload/storage/v1/b/forecasts/o?name=us/a.json", "Bearer", {"forecasts": []})
assert os.environ["FORECASTBENCH_TOKEN"] == "practice"
"""
    done = foretell("practice", "--", sys.executable, "-c", sending, FORETELL_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    inbox = tmp_path / "practice" / "inbox.jsonl"
    assert done.stderr == (
        f"Sent to Metaculus: 1 forecast; ForecastBench: 1 file. See {inbox}, one line for each, as received.\n"
    )
    rows = [json.loads(line) for line in inbox.read_text().splitlines()]
    assert [(row["platform"], row["kind"]) for row in rows] == [("Metaculus", "forecast"), ("ForecastBench", "file")]
    assert rows[0]["probability_yes"] == 0.3
    assert rows[1]["name"] == "gs://forecasts/us/a.json"


def test_a_round_is_uploaded_and_a_wrong_tournament_is_refused(tmp_path: Path):
    run = ("practice", "--", "foretell", "tournament", "run")
    done = foretell(*run, "forecastbench", "--model", "none", FORETELL_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Uploaded to gs://practice/" in done.stdout
    assert "gcloud" not in done.stdout + done.stderr
    wrong = foretell(*run, "metaculus:minibnech", FORETELL_HOME=str(tmp_path))
    assert wrong.returncode != 0
    assert "Tournament `minibnech` does not exist; there are minibench" in wrong.stderr


def test_shell_lines_redirect_every_service_and_replace_all_keys():
    services = {service: "http://127.0.0.1:1" for service in (*KEYS, "wikipedia")}
    lines = shell_lines(practice_environment(services, Path("/tmp/it's here")))
    real = {part: "real" for names in KEYS.values() for name in names for part in name.split(PAIR)} | dict.fromkeys(
        UNSET, "real"
    )
    done = subprocess.run(
        ["sh", "-c", f"{lines}env"], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", **real}
    )
    settings = load_settings(dict(line.partition("=")[::2] for line in done.stdout.splitlines()))
    assert settings.home == Path("/tmp/it's here")
    assert settings.addresses["wikipedia"] == "http://127.0.0.1:1"
    assert {part for service in KEYS for part in settings.key(service).split(":")} == {KEY}
    assert "real" not in done.stdout


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path):
    with socket.socket() as taken:
        port = _bound(taken)
        result = foretell("practice", "--port", str(port), FORETELL_HOME=str(tmp_path))
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("foretell: --port: a port is in use")


def _bound(sock: socket.socket) -> int:
    """Bind a port below the ephemeral range, where enough consecutive ports exist."""
    for port in range(20011, 30000, 7):
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            continue
        sock.listen()
        return port
    raise AssertionError("no free port")


def test_a_practice_model_passes_the_model_check(tmp_path: Path):
    async def main() -> ModelCheck:
        async with PracticeModels(agent_script) as server:
            settings = Settings(home=tmp_path, keys={"OPENAI_API_KEY": "k"}, addresses={"openai": f"{server.url}/v1"})
            return await check_model(ModelsCheckRequest(model="openai:practice"), settings)

    checks = dict(asyncio.run(main()).checks)
    assert checks["answers"] == checks["goes on after a tool"] == checks["answers by a JSON schema"] == "yes"
    forget_facts()
