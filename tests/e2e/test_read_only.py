"""A read-only home can be shown, replayed and served, and writing is rejected."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fakes.stored_run import run_id_of

OWN_MOUNTS = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])] if os.name == "posix" else []
CHILD = """
import asyncio, contextlib, io, json, sys
from click.testing import CliRunner
from foretell.cli.main import cli
from foretell.questions.errors import InputError
ends = []
for home, *words in json.loads(sys.argv[1]):
    end = CliRunner().invoke(cli, words, env={"FORETELL_HOME": home})
    if end.exception is not None and not isinstance(end.exception, (SystemExit, InputError)):
        raise end.exception
    said = f"{end.exception}" if isinstance(end.exception, InputError) else end.stderr
    ends.append([end.exit_code, end.stdout, said])
print(json.dumps(ends))
"""


def in_read_only_home(workspace: Any, *commands: list[str]) -> list[Any]:
    """Return the output of commands with the home mounted read-only; skip if this user cannot mount."""
    mount = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    tried = [*OWN_MOUNTS, "sh", "-c", mount, "sh", str(workspace.home)]
    if not OWN_MOUNTS or not shutil.which("unshare") or subprocess.run([*tried, "true"], check=False).returncode:
        pytest.skip("this user cannot mount in a namespace of its own")
    end = subprocess.run(
        [*tried, sys.executable, "-c", CHILD, json.dumps(commands)],
        cwd=workspace.folder,
        env=workspace.whole_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert end.returncode == 0, end.stderr
    return json.loads(end.stdout)


def test_read_only_home_is_read_and_not_written(workspace: Any, tmp_path: Path) -> None:
    spec = workspace.spec()
    run = workspace.run(spec)
    assert run == run_id_of(spec)
    # As a killed process leaves it: a request in flight, and the last writes in the write-ahead log.
    store, journal = (sqlite3.connect(workspace.home / name) for name in ("runs.db", "journal.db"))
    journal.execute("update sent set owner = 77")
    journal.commit()
    store.execute("update run set created = '2001-02-03T00:00:00+00:00'")
    # An outcome without a stored score.
    outcome_rows = "select run, question, due, 'yes', 0, null, null, '2026-09-01' from cell where trial = 0"
    store.execute(f"insert into run_outcome {outcome_rows}")
    store.commit()
    left = tmp_path / "left"
    shutil.copytree(workspace.home, left)
    store.close()
    journal.close()
    shutil.rmtree(workspace.home)
    left.rename(workspace.home)

    older = workspace.home / "older"
    older.mkdir()
    with closing(sqlite3.connect(older / "runs.db")) as con:
        con.executescript((Path(__file__).parents[1] / "runs" / "first_version.sql").read_text())
    before = (older / "runs.db").read_bytes()
    reading = [["runs"], ["show", run], ["show", run, "own/1"], ["replay", run], ["doctor", "--services"]]
    reading += [["serve", "--static", str(tmp_path / "site")], ["data", "show", "questions.jsonl"]]
    reading += [["corpus", "search", "council", "--as-of", "2026-07-01"]]
    asking = ["ask", "Will it rain?", "--as-of", "2026-08-20", "--model", "openai:gpt-5-mini"]
    writing = [["run", workspace.spec("other.yaml", trials=2).name], asking]
    commands = [[str(workspace.home), *words] for words in (*reading, *writing)]
    *ends, listed = in_read_only_home(workspace, *commands, [str(older), "runs", "--json"])
    assert [code for code, *_ in ends[: len(reading)]] == [0] * len(reading), ends
    assert run in ends[0][1]
    assert "2001-02-03" in ends[0][1]
    assert re.search(r"\d\d\.\d \[", ends[0][1]), "its score, with an interval"
    assert "own/1" in ends[1][1]
    assert ends[3][1] == "3 of 3 answers are the same, from the journal alone\n"
    assert run in ends[5][1] + "".join(path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    for code, _, problem in ends[len(reading) :]:
        assert code != 0
        assert problem.startswith(f"{workspace.home}/runs.db: it cannot be written to")

    # Files of an older version are read from a migrated copy.
    assert json.loads(listed[1])["total"] > 0
    assert (older / "runs.db").read_bytes() == before
