"""`foretell run` killed with SIGKILL at random points, again and again, until it is done.

FORETELL_KILLS says how often; a full campaign is 100.
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
"""Share of the kills that fall into the first half second of a life, wherever the run stands."""
MARK = re.compile(rb"(?:call_|#)([0-9a-f]{12})")


@dataclass(kw_only=True)
class Campaign:
    """Kills one run, and keeps the provider's bill beside its journal."""

    house: Any
    provider: BackgroundModels
    rng: random.Random
    command: list[str]
    paid_when_kept: dict[str, int] = field(default_factory=dict)
    """By the mark of a request, how often it had been billed when its reply was first seen in the journal."""
    maybe_paid: int = 0
    in_flight: list[int] = field(default_factory=list)
    killed: int = 0

    def life(self, point: int | None) -> None:
        """Start, kill at a point of progress (None: within the first half second), and look at the books."""
        child = self.house.start(*self.command)
        if point is None:
            time.sleep(self.rng.uniform(0, 0.5))
        else:
            while child.poll() is None and replies(self.house.home / "journal.db") < point:
                time.sleep(0.003)
            time.sleep(self.rng.uniform(0, 2 * LATENCY))
        self.killed += child.poll() is None
        child.kill()
        child.wait()
        self.look()

    def look(self) -> None:
        """Nothing that is kept was billed again, and everything that may have been is counted."""
        billed = bill(self.provider)
        with closing(self.house.journal()) as journal:
            lost = journal.maybe_paid()
        self.in_flight.append(lost - self.maybe_paid)
        self.maybe_paid = lost
        for mark in kept_marks(self.house.home / "journal.db"):
            before = self.paid_when_kept.setdefault(mark, billed[mark])
            assert billed[mark] == before, f"{mark} was kept and billed again"


def replies(journal: Path) -> int:
    """Answers kept so far."""
    return rows(journal, "select coalesce(max(rowid), 0) from kept")[0][0]


def kept_marks(journal: Path) -> list[str]:
    """The marks of all model replies in the journal."""
    found = rows(journal, "select answer from kept where kind = 'model'")
    marks = [MARK.search(answer) for (answer,) in found if isinstance(answer, bytes)]
    assert all(marks)
    return [mark[1].decode() for mark in marks if mark]


def rows(path: Path, query: str) -> list[Any]:
    """Read beside a process that writes; zero where there is nothing yet."""
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


def test_killed_runs_pay_for_no_kept_reply_again(build_house: Callable[..., Any], capsys: Any):
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script", latency=LATENCY) as provider:
        calm = build_house(provider.url, count=QUESTIONS, name="calm")
        run = calm.run(calm.spec(trials=TRIALS), "--set", f"concurrency={AT_ONCE}")
        total = replies(calm.home / "journal.db")
        once = bill(provider)
        assert set(once.values()) == {1}
        provider.reset()

        house = build_house(provider.url, count=QUESTIONS, name="killed")
        command = ["run", house.spec(trials=TRIALS).name, "--set", f"concurrency={AT_ONCE}"]
        rng = random.Random(KILLS)
        campaign = Campaign(house=house, provider=provider, rng=rng, command=command)
        for point in sorted(rng.randrange(total) for _ in range(KILLS)):
            campaign.life(None if rng.random() < EARLY else point)
        end = house.foretell(*command)
        campaign.look()
        billed = bill(provider)

    assert end.returncode == 0, end.stderr
    # 0 forecasts lost, and the same table and the same events as without a single kill.
    assert len(house.forecasts(run)) == QUESTIONS * TRIALS
    assert house.answers(run) == calm.answers(run)
    assert house.events(run) == calm.events(run)
    # Nothing was asked that the calm run did not ask; what was billed twice was on the wire, and is counted.
    assert billed.keys() == once.keys()
    again = sum(billed.values()) - len(billed)
    assert again <= campaign.maybe_paid
    assert max(campaign.in_flight) <= AT_ONCE
    assert not campaign.maybe_paid or f"{campaign.maybe_paid} calls of all runs so far" in end.stderr
    assert campaign.killed >= KILLS // 2
    for name in ("journal.db", "runs.db"):
        assert rows(house.home / name, "pragma integrity_check") == [("ok",)]
    with capsys.disabled():
        told = f"{campaign.killed} kills, {len(billed)} replies, {again} re-sent, {campaign.maybe_paid} maybe paid"
        print(f"[{told}, at most {max(campaign.in_flight)} in flight at a kill]", end=" ")
