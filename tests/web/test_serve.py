"""`foretell serve` in its own process."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from fakes.processes import ForkedCommand
from fakes.stored_run import StoredRunBuilder
from foretell.runs.store import RunStore


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[ForkedCommand, str]]:
    environment = {**os.environ, "FORETELL_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    environment.pop("FORETELL_TOKEN", None)
    process = ForkedCommand(
        ["serve", "--port", "0"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
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


def test_serve_prints_a_login_link_and_ends_with_open_streams(
    started: tuple[ForkedCommand, str], tmp_path: Path
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


def test_used_port_is_reported(started: tuple[ForkedCommand, str]) -> None:
    from click.testing import CliRunner

    from foretell.cli.main import cli

    port = re.findall(r":(\d+)/", started[1])[0]
    result = CliRunner().invoke(cli, ["serve", "--port", port, "--token", "x" * 20])
    assert f"cannot listen at 127.0.0.1, port {port}" in str(result.exception)
