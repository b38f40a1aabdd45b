"""`foretell grid` killed with SIGKILL at random times until it is done.

FORETELL_KILLS is the number of kills.
"""

import json
import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from fakes.models import BackgroundModels

KILLS = int(os.environ.get("FORETELL_KILLS", "2"))
LATENCY = 0.01
FACTORS = {"variant": ["full", "no-belief"], "steps": [2, 3], "seed": [0, 1, 2]}
CLAIMS = [("The film superconducts.", True), ("The cell lasts ten years.", False)]


def experiment(workspace: Any) -> list[str]:
    """Write a grid of 12 runs over two claims with known outcomes, and return its command."""
    lines = [json.dumps({"claim": text, "label": label, "published": "2026-02-01"}) for text, label in CLAIMS]
    (workspace.folder / "claims.jsonl").write_text("\n".join(lines))
    base = {"questions": "claims.jsonl", "search": ["local"], "models": {"agent": "openai:gpt-5-mini"}}
    base["concurrency"] = 4
    (workspace.folder / "grid.yaml").write_text(yaml.safe_dump({"base": base, "factors": FACTORS, "budget": 50}))
    return ["grid", "grid.yaml"]


def billed(provider: BackgroundModels) -> dict[str, int]:
    """Return the number of completions by request."""
    return dict(provider.stats()["billed"])


def tables(workspace: Any, command: list[str]) -> list[dict[str, Any]]:
    """Return the tables of the finished grid."""
    end = workspace.foretell(*command, "--json")
    assert end.returncode == 0, end.stderr
    return json.loads(end.stdout)["study"]["tables"]


def begun_runs(home: Path) -> int:
    """Return the number of runs, read while another process writes."""
    try:
        with closing(sqlite3.connect(f"file:{home / 'runs.db'}?mode=ro", uri=True, timeout=30)) as con:
            return con.execute("select count(*) from run").fetchall()[0][0]
    except sqlite3.OperationalError:
        return 0


def test_killed_grid_has_the_same_tables_and_pays_once(build_workspace: Callable[..., Any]):
    rng = random.Random(KILLS)
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script", latency=LATENCY) as provider:
        calm = build_workspace(provider.url, count=1, name="calm")
        command = experiment(calm)
        plan = calm.foretell(*command, "--plan", "--json")
        assert (len(json.loads(plan.stdout)["runs"]), billed(provider)) == (12, {}), "a plan sends no requests"
        expected = tables(calm, command)
        once = billed(provider)
        assert set(once.values()) == {1}, "equal requests of several runs are paid once"
        provider.reset()

        workspace = build_workspace(provider.url, count=1, name="killed")
        command = experiment(workspace)
        killed = 0
        for begun in sorted(rng.randrange(12) for _ in range(KILLS)):
            child = workspace.start(*command)
            while child.poll() is None and begun_runs(workspace.home) <= begun:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 3 * LATENCY))
            killed += child.poll() is None
            child.kill()
            child.wait()
        assert tables(workspace, command) == expected
        with closing(workspace.journal()) as journal:
            lost = journal.ledger.lost_calls()
        again = billed(provider)
        assert killed >= 1
        assert again.keys() == once.keys()
        assert sum(again.values()) - len(again) <= lost, "only requests in flight at a kill may be billed again"
        assert tables(workspace, command) == expected
        assert billed(provider) == again, "a finished grid sends no requests"
