"""A full disk is reported in one line. When it is freed, the run continues without losing or repaying replies."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.models import BackgroundModels
from fakes.stored_run import run_id_of

OWN_MOUNTS = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])] if os.name == "posix" else []
QUESTIONS, TRIALS = 5, 2


def on_small_disk(folder: Path, megabytes: int, *command: str | Path) -> list[str]:
    """Return the command with its own disk at a folder; skip if this user cannot mount one."""
    mount = f'mount -t tmpfs -o size={megabytes}m drill "$1" && shift && exec "$@"'
    tried = [*OWN_MOUNTS, "sh", "-c", mount, "sh", str(folder)]
    if not OWN_MOUNTS or not shutil.which("unshare") or subprocess.run([*tried, "true"], check=False).returncode:
        pytest.skip("this user cannot mount a small disk in a namespace of its own")
    return [*tried, *map(str, command)]


def test_a_full_disk_loses_no_reply_and_pays_none_twice(build_workspace: Callable[..., Any], tmp_path: Path) -> None:
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script", latency=0.02) as provider:
        workspace = build_workspace(provider.url, count=QUESTIONS)
        spec, disk = workspace.spec(trials=TRIALS), tmp_path / "disk"
        disk.mkdir()
        workspace = workspace.with_environment(
            FORETELL_HOME=str(disk), FORETELL_CORPUS=str(workspace.home / "corpus.db")
        )
        run = workspace.command("run", spec.name, "--set", "concurrency=8", "--out", str(tmp_path / "tables"))
        child = [sys.executable, Path(__file__).with_name("full_disk_child.py"), tmp_path / "said.txt", *run]
        command = on_small_disk(disk, 24, *child)
        end = subprocess.run(
            command, cwd=workspace.folder, env=workspace.whole_environment, capture_output=True, text=True, check=False
        )
        billed = provider.stats()["billed"]
    assert end.returncode == 0, end.stderr
    outputs = json.loads(end.stdout)
    # Full from the start: one line, and nothing was requested.
    code, message = outputs["full"]
    assert code == 2
    assert message.strip().splitlines()[-1].startswith(f"foretell: {disk}/runs.db: the disk is full (free some space")
    assert "Traceback" not in message + outputs["said"]
    # Full during the run: it waited, said so, continued, and paid for everything once.
    assert outputs["waits"]
    assert "the disk is full" in outputs["said"]
    assert outputs["code"] == 0, outputs["said"]
    assert len(billed) > outputs["at_full"] >= 12
    assert set(billed.values()) == {1}
    assert run_id_of(spec)
    assert (tmp_path / "tables" / "forecasts.csv").read_text().count("own/") == QUESTIONS * TRIALS
