"""`foretell dev fakes` as a user has it: a process that serves, and another that asks."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from foretell.cli.dev import environment
from foretell.practice.services import KEY
from foretell.runs.settings import KEYS, load_settings

DEV = [sys.executable, "-c", "from foretell.cli.dev import dev; dev(prog_name='foretell dev')"]
FORETELL = [sys.executable, "-m", "foretell.cli.main"]
PATIENCE = 60.0


@pytest.fixture
def fakes(tmp_path: Path) -> Iterator[Path]:
    """The file of shell lines, there once all fakes listen."""
    env = tmp_path / "fakes.env"
    command = [*DEV, "fakes", "--print-env", str(env), "--home", str(tmp_path / "home of fakes")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + PATIENCE
        while not env.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        try:
            assert env.exists(), process.stderr.read() if process.stderr and process.poll() is not None else "too slow"
            yield env
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "serving until Ctrl-C\n")
    assert out == env.read_text()


def foretell(env: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a shell that evaluated the lines."""
    command = ["sh", "-c", '. "$0"; exec "$@"', str(env), *FORETELL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_question_is_answered_from_what_the_fakes_serve(fakes: Path, tmp_path: Path):
    told = ("Will Norges Bank cut its rate before 2027?", "--model", "openai:fake", "--search", "brave")
    asked = foretell(fakes, "ask", *told, "--json")
    assert asked.returncode == 0, asked.stderr
    forecast = json.loads(asked.stdout)
    assert 0.05 <= forecast["p"]["yes"] <= 0.95
    assert "http://localhost:" in forecast["rationale"]
    assert forecast["usage"]["calls"] > 1
    assert (tmp_path / "home of fakes" / "journal.db").exists()
    past = foretell(fakes, "ask", *told, "--as-of", "2026-07-01", "--trials", "2", "--json")
    assert past.returncode == 0, past.stderr
    assert "rates-held" in json.loads(past.stdout)["rationale"]


def test_the_lines_lead_every_service_to_a_fake_and_give_no_other_key():
    lines = environment({service: "http://127.0.0.1:1" for service in (*KEYS, "wikipedia")}, Path("/tmp/it's here"))
    done = subprocess.run(
        ["sh", "-c", "\n".join([*lines, "env"])],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    settings = load_settings(dict(line.partition("=")[::2] for line in done.stdout.splitlines()))
    assert settings.home == Path("/tmp/it's here")
    assert settings.addresses["wikipedia"] == "http://127.0.0.1:1"
    assert {settings.key(service) for service in KEYS} == {KEY}


def test_a_taken_port_is_one_line():
    with socket.socket() as taken:
        port = _bound(taken)
        code = "from foretell.cli import main as cli\ncli.COMMANDS['dev'] = ('foretell.cli.dev:dev', '')\ncli.main()"
        command = [sys.executable, "-c", code, "dev", "fakes", "--port-base", str(port)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 2
    assert result.stderr == "foretell: --port-base: a port is taken (name another, or none for free ones)\n"


def _bound(sock: socket.socket) -> int:
    """Below the ports that the system hands out, some of which are too high for twelve in a row."""
    for port in range(20011, 30000, 7):
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            continue
        sock.listen()
        return port
    raise AssertionError("no free port")
