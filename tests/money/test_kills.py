"""Processes killed with SIGKILL, again and again, while they spend: no budget is overspent, nothing is bought twice."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from fakes.processes import ForkedCommand
from money.ways import BY_NAME, PATIENCE, WORKER, Site, Way

TOLERANCE = 1e-9
AT_ONCE = 2
"""Calls under way at a time, in all processes together."""
LIMITS = {"FORETELL_LIMITS": "; ".join(f"{name} at_once={AT_ONCE}" for name in ("openai", "anthropic", "mistral"))}


@dataclass(frozen=True, kw_only=True)
class Drill:
    """A way of spending, by so many processes at once, all of which are killed so many times."""

    way: Way
    rounds: int
    processes: int = 1

    @property
    def kills(self) -> int:
        """Processes that are killed in all."""
        return self.rounds * self.processes

    def __str__(self) -> str:
        return f"{self.way}, {self.kills} kills"


DRILLS = [
    Drill(way=BY_NAME[name], rounds=rounds, processes=processes)
    for name, rounds, processes in [
        ("run", 11, 2),
        ("run with question budgets", 6, 1),
        ("run in batches", 10, 1),
        ("ask", 8, 1),
        ("tree", 8, 1),
        ("grid", 6, 2),
        ("arena entry", 8, 1),
        ("arena", 8, 1),
        ("tournament", 8, 1),
        ("run on PostgreSQL", 3, 2),
        ("workers", 2, 2),
    ]
]


def test_there_are_enough_kills() -> None:
    assert sum(drill.kills for drill in DRILLS) >= 100


@contextmanager
def _begun(site: Site, drill: Drill, command: Sequence[str]) -> Iterator[list[ForkedCommand]]:
    """Processes at work, and in the end those that are not killed."""
    waiting = [site.start(command, watched=False)] if drill.way.by_workers else []
    begun = [site.start(WORKER if waiting else command, watched=False) for _ in range(drill.processes)]
    try:
        yield begun
    finally:
        for child in (*waiting, *begun):
            child.kill()
            child.wait(PATIENCE)


def _killed(site: Site, drill: Drill, command: Sequence[str], rng: random.Random) -> int:
    """Let processes work until they have bought a little, and kill all of them; how many were still at work."""
    wanted, until = site.bill().calls + rng.randrange(1, 3), time.monotonic() + PATIENCE
    with _begun(site, drill, command) as begun:
        while site.bill().calls < wanted and any(child.poll() is None for child in begun):
            assert time.monotonic() < until, "nothing goes on"
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.08))
        return sum(child.poll() is None for child in begun)


@pytest.mark.parametrize("drill", DRILLS, ids=str)
def test_nothing_is_bought_twice(drill: Drill, open_site: Callable[..., Site]) -> None:
    """With money enough for everything: what a killed process had bought is used by the next."""
    rng, way = random.Random(str(drill)), drill.way
    with open_site(way, wants=300, latency=0.08) as site:
        site.environment |= LIMITS
        command = way.prepare(site, 9.0)
        killed = sum(_killed(site, drill, command, rng) for _ in range(drill.rounds))
        (done,) = way.carry_out(site, command)
        bill = site.bill()
        # Everything is there; only what was under way at a kill was sent again.
        assert done.code == 0, done.stderr
        assert killed == drill.kills
        assert bill.again <= AT_ONCE * drill.rounds
        assert max(bill.answered.values()) <= 1 + drill.rounds
        for ended in way.carry_out(site, command, processes=2):
            assert ended.code == 0, ended.stderr
        assert site.bill() == bill, "a finished thing asks nobody"
        money = site.totals()
        assert bill.dollars <= money.billed + money.unknown + TOLERANCE
        assert bill.again * bill.longest <= money.unknown + TOLERANCE
        assert money.reserved == 0


TIGHT = 1.0
"""Dollars: a few replies of the usual length, and a few more that were lost."""


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: str(drill.way))
def test_a_tight_budget_is_not_overspent_and_not_stranded(drill: Drill, open_site: Callable[..., Site]) -> None:
    """With less money than work: killed until most of it is spent, then carried out to the end."""
    rng, way = random.Random(str(drill)), drill.way
    with open_site(way, latency=0.05) as site:
        site.environment |= LIMITS
        command = way.prepare(site, TIGHT)
        for _ in range(2):
            _killed(site, drill, command, rng)
            assert site.bill().dollars <= TIGHT + TOLERANCE
        way.carry_out(site, command)
        bill = site.bill()
        assert bill.dollars <= TIGHT + TOLERANCE
        money = site.totals()
        assert bill.dollars <= money.billed + money.unknown + TOLERANCE
        assert money.billed + money.unknown + money.reserved <= TIGHT + TOLERANCE
        # All that cannot have been spent can be used.
        assert bill.dollars >= 0.9 * (TIGHT - money.unknown)
