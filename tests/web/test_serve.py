"""`foretell serve` as a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from fakes.stored_run import StoredRunBuilder
from foretell.runs import RunStore

COMMAND = [sys.executable, "-c", "from foretell.cli.serve import serve; serve()"]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environment = {**os.environ, "FORETELL_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    environment.pop("FORETELL_TOKEN", None)
    process = subprocess.Popen(
        [*COMMAND, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    link = process.stdout.readline().split()[-1]
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            httpx2.get(link.partition("/login")[0], timeout=5)
            break
        except httpx2.TransportError:
            time.sleep(0.1)
    yield process, link
    process.kill()
    process.communicate()


def test_it_prints_a_link_that_logs_in_and_ends_with_streams_open(
    started: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    process, link = started
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?token=[\w-]{32}", link)
    base, _, token = link.partition("/login?token=")
    answer = httpx2.get(link)
    assert answer.status_code == 303
    assert "foretell_session" in answer.headers["set-cookie"]
    store = RunStore(tmp_path / "runs.db")
    run = StoredRunBuilder().begin(store)
    store.close()
    with httpx2.stream("GET", f"{base}/api/runs/{run}/stream", timeout=30) as listening:
        lines = listening.iter_lines()
        assert next(lines) == "retry: 1000"
        process.send_signal(signal.SIGINT)
        assert "event: end" not in list(lines)
    out, errors = process.communicate(timeout=30)
    assert token not in out + errors
    assert "Traceback" not in errors


def test_a_port_that_is_taken_is_said(started: tuple[subprocess.Popen[str], str]) -> None:
    from click.testing import CliRunner

    from foretell.cli.serve import serve

    port = re.findall(r":(\d+)/", started[1])[0]
    result = CliRunner().invoke(serve, ["--port", port, "--token", "x" * 20])
    assert f"cannot listen at 127.0.0.1, port {port}" in str(result.exception)
