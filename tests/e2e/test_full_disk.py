"""The disk is full, then freed: a run says so in one line, loses no reply, pays none twice and goes on."""

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
    """The command with a disk of its own at a folder; a skip where this user may have none."""
    mount = f'mount -t tmpfs -o size={megabytes}m drill "$1" && shift && exec "$@"'
    tried = [*OWN_MOUNTS, "sh", "-c", mount, "sh", str(folder)]
    if not OWN_MOUNTS or not shutil.which("unshare") or subprocess.run([*tried, "true"], check=False).returncode:
        pytest.skip("this user cannot mount a small disk in a namespace of its own")
    return [*tried, *map(str, command)]


def test_a_full_disk_loses_no_reply_and_pays_none_twice(build_house: Callable[..., Any], tmp_path: Path) -> None:
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script", latency=0.02) as provider:
        house = build_house(provider.url, count=QUESTIONS)
        spec, disk = house.spec(trials=TRIALS), tmp_path / "disk"
        disk.mkdir()
        house = house.with_environment(FORETELL_HOME=str(disk), FORETELL_CORPUS=str(house.home / "corpus.db"))
        run = house.command("run", spec.name, "--set", "concurrency=8", "--out", str(tmp_path / "tables"))
        child = [sys.executable, Path(__file__).with_name("full_disk_child.py"), tmp_path / "said.txt", *run]
        command = on_small_disk(disk, 24, *child)
        end = subprocess.run(
            command, cwd=house.folder, env=house.whole_environment, capture_output=True, text=True, check=False
        )
        billed = provider.stats()["billed"]
    assert end.returncode == 0, end.stderr
    told = json.loads(end.stdout)
    # From the start: one line, and nothing was asked.
    code, message = told["full"]
    assert code == 2
    assert message.strip().splitlines()[-1].startswith(f"foretell: {disk}/runs.db: the disk is full (free some space")
    assert "Traceback" not in message + told["said"]
    # In the midst of it: it waited, said so, went on, and everything was paid for once.
    assert told["waits"]
    assert "the disk is full" in told["said"]
    assert told["code"] == 0, told["said"]
    assert len(billed) > told["at_full"] >= 12
    assert set(billed.values()) == {1}
    assert run_id_of(spec)
    assert (tmp_path / "tables" / "forecasts.csv").read_text().count("own/") == QUESTIONS * TRIALS
