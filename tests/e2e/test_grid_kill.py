"""`foretell grid` killed with SIGKILL at random moments, again and again, until it is done.

FORETELL_KILLS says how often.
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
FACTORS = {"variant": ["full", "nobelief"], "steps": [2, 3], "seed": [0, 1, 2]}
CLAIMS = [("The film superconducts.", True), ("The cell lasts ten years.", False)]


def experiment(house: Any) -> list[str]:
    """12 runs over two claims whose truth is known; the command that carries them out."""
    lines = [json.dumps({"claim": text, "label": label, "published": "2026-02-01"}) for text, label in CLAIMS]
    (house.folder / "claims.jsonl").write_text("\n".join(lines))
    base = {"questions": "claims.jsonl", "search": ["local"], "models": {"agent": "openai:gpt-5-mini"}}
    base["concurrency"] = 4
    (house.folder / "grid.yaml").write_text(yaml.safe_dump({"base": base, "factors": FACTORS, "budget": 50}))
    return ["grid", "grid.yaml"]


def billed(provider: BackgroundModels) -> dict[str, int]:
    """Completions by what was asked."""
    return dict(provider.stats()["billed"])


def tables(house: Any, command: list[str]) -> list[dict[str, Any]]:
    """What the grid says when it is carried out to its end."""
    end = house.foretell(*command, "--json")
    assert end.returncode == 0, end.stderr
    return json.loads(end.stdout)["study"]["tables"]


def begun_runs(home: Path) -> int:
    """Runs that were begun, read beside a process that writes."""
    try:
        with closing(sqlite3.connect(f"file:{home / 'runs.db'}?mode=ro", uri=True, timeout=30)) as con:
            return con.execute("select count(*) from run").fetchall()[0][0]
    except sqlite3.OperationalError:
        return 0


def test_a_killed_grid_ends_in_the_same_tables_and_pays_for_nothing_twice(build_house: Callable[..., Any]):
    rng = random.Random(KILLS)
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script", latency=LATENCY) as provider:
        calm = build_house(provider.url, count=1, name="calm")
        command = experiment(calm)
        plan = calm.foretell(*command, "--plan", "--json")
        assert (len(json.loads(plan.stdout)["runs"]), billed(provider)) == (12, {}), "a plan asks nobody"
        expected = tables(calm, command)
        once = billed(provider)
        assert set(once.values()) == {1}, "what several runs ask alike is paid once"
        provider.reset()

        house = build_house(provider.url, count=1, name="killed")
        command = experiment(house)
        killed = 0
        for begun in sorted(rng.randrange(12) for _ in range(KILLS)):
            child = house.start(*command)
            while child.poll() is None and begun_runs(house.home) <= begun:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 3 * LATENCY))
            killed += child.poll() is None
            child.kill()
            child.wait()
        assert tables(house, command) == expected
        with closing(house.journal()) as journal:
            lost = journal.maybe_paid()
        again = billed(provider)
        assert killed >= 1
        assert again.keys() == once.keys()
        assert sum(again.values()) - len(again) <= lost, "only what was on the wire at a kill may be billed again"
        assert tables(house, command) == expected
        assert billed(provider) == again, "a finished grid asks nobody"
