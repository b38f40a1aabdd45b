"""`foretell run` killed with SIGKILL at random points until it is done.

FORETELL_KILLS is the number of kills; a full campaign has 100.
"""

import os
import random
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.models import BackgroundModels

KILLS = int(os.environ.get("FORETELL_KILLS", "6"))
QUESTIONS, TRIALS = 20, 4
AT_ONCE = 20
LATENCY = 0.02
EARLY = 0.2
"""Share of the kills within the first half second of a process."""
MARK = re.compile(rb"(?:call_|#)([0-9a-f]{12})")


@dataclass(kw_only=True)
class Campaign:
    """Kills one run, and compares the provider's bill with its journal."""

    workspace: Any
    provider: BackgroundModels
    rng: random.Random
    command: list[str]
    paid_when_kept: dict[str, int] = field(default_factory=dict)
    """By the mark of a request, how often it had been billed when its reply was first seen in the journal."""
    lost_calls: int = 0
    in_flight: list[int] = field(default_factory=list)
    killed: int = 0

    def life(self, point: int | None) -> None:
        """Start, kill at a point of progress (None: within the first half second), and check the bill."""
        child = self.workspace.start(*self.command)
        if point is None:
            time.sleep(self.rng.uniform(0, 0.5))
        else:
            while child.poll() is None and replies(self.workspace.home / "journal.db") < point:
                time.sleep(0.003)
            time.sleep(self.rng.uniform(0, 2 * LATENCY))
        self.killed += child.poll() is None
        child.kill()
        child.wait()
        self.look()

    def look(self) -> None:
        """Check that no stored reply was billed again, and that possible repeats are counted."""
        billed = bill(self.provider)
        with closing(self.workspace.journal()) as journal:
            lost = journal.ledger.lost_calls()
        self.in_flight.append(lost - self.lost_calls)
        self.lost_calls = lost
        for mark in kept_marks(self.workspace.home / "journal.db"):
            before = self.paid_when_kept.setdefault(mark, billed[mark])
            assert billed[mark] == before, f"{mark} was kept and billed again"


def replies(journal: Path) -> int:
    """Return the number of answers so far."""
    return rows(journal, "select coalesce(max(rowid), 0) from kept")[0][0]


def kept_marks(journal: Path) -> list[str]:
    """Return the marks of all model replies in the journal."""
    answers = rows(journal, "select answer from kept where kind = 'model'")
    marks = [MARK.search(answer) for (answer,) in answers if isinstance(answer, bytes)]
    assert all(marks)
    return [mark[1].decode() for mark in marks if mark]


def rows(path: Path, query: str) -> list[Any]:
    """Read while another process writes; zero if there is nothing yet."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as con:
            return con.execute(query).fetchall()
    except sqlite3.OperationalError:
        return [(0,)]


def bill(provider: BackgroundModels) -> dict[str, int]:
    """Completions by the mark of what was asked."""
    billed = provider.stats()["billed"]
    assert len({key[:12] for key in billed}) == len(billed)
    return {key[:12]: times for key, times in billed.items()}


def test_killed_runs_never_pay_twice_for_a_stored_reply(build_workspace: Callable[..., Any], capsys: Any):
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script", latency=LATENCY) as provider:
        calm = build_workspace(provider.url, count=QUESTIONS, name="calm")
        run = calm.run(calm.spec(trials=TRIALS), "--set", f"concurrency={AT_ONCE}")
        total = replies(calm.home / "journal.db")
        once = bill(provider)
        assert set(once.values()) == {1}
        provider.reset()

        workspace = build_workspace(provider.url, count=QUESTIONS, name="killed")
        command = ["run", workspace.spec(trials=TRIALS).name, "--set", f"concurrency={AT_ONCE}"]
        rng = random.Random(KILLS)
        campaign = Campaign(workspace=workspace, provider=provider, rng=rng, command=command)
        for point in sorted(rng.randrange(total) for _ in range(KILLS)):
            campaign.life(None if rng.random() < EARLY else point)
        end = workspace.foretell(*command)
        campaign.look()
        billed = bill(provider)

    assert end.returncode == 0, end.stderr
    # No forecast is lost, and the table and the events are the same as without kills.
    assert len(workspace.forecasts(run)) == QUESTIONS * TRIALS
    assert workspace.answers(run) == calm.answers(run)
    assert workspace.events(run) == calm.events(run)
    # The same requests as without kills. Only requests in flight are billed twice, and they are counted.
    assert billed.keys() == once.keys()
    again = sum(billed.values()) - len(billed)
    assert again <= campaign.lost_calls
    assert max(campaign.in_flight) <= AT_ONCE
    assert not campaign.lost_calls or f"{campaign.lost_calls} calls of all runs so far" in end.stderr
    assert campaign.killed >= KILLS // 2
    for name in ("journal.db", "runs.db"):
        assert rows(workspace.home / name, "pragma integrity_check") == [("ok",)]
    with capsys.disabled():
        summary = f"{campaign.killed} kills, {len(billed)} replies, {again} re-sent, {campaign.lost_calls} maybe paid"
        print(f"[{summary}, at most {max(campaign.in_flight)} in flight at a kill]", end=" ")
