"""Processes are killed repeatedly with SIGKILL while they spend: no budget is exceeded, nothing is paid for twice."""

import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from fakes.processes import ForkedCommand
from money.ways import BY_NAME, PATIENCE, ROUNDED, TOLERANCE, WORKER, Site, Way

AT_ONCE = 2
"""Maximum number of concurrent calls in all processes together."""
LIMITS = ("[model_limits]", *(f"{name} = {{at_once = {AT_ONCE}}}" for name in ("openai", "anthropic", "mistral")))


@dataclass(frozen=True, kw_only=True)
class KillPlan:
    """A way of spending by several processes at once, all of which are killed several times."""

    way: Way
    rounds: int
    processes: int = 1

    @property
    def kills(self) -> int:
        """Total number of kills."""
        return self.rounds * self.processes

    def __str__(self) -> str:
        return f"{self.way}, {self.kills} kills"


PLANS = [
    KillPlan(way=BY_NAME[name], rounds=rounds, processes=processes)
    for name, rounds, processes in [
        ("run", 8, 2),
        ("run with question budgets", 4, 1),
        ("run in batches", 7, 1),
        ("ask", 6, 1),
        ("tree", 6, 1),
        ("grid", 4, 2),
        ("arena entry", 6, 1),
        ("arena", 6, 1),
        ("tournament", 6, 1),
        ("run on PostgreSQL", 3, 2),
        ("workers", 2, 2),
    ]
]
TIGHT_ROUNDS = 2
"""How often all processes with too small a budget are killed."""


def test_there_are_enough_kills() -> None:
    assert sum(plan.kills + TIGHT_ROUNDS * plan.processes for plan in PLANS) >= 100


@contextmanager
def _begun(site: Site, plan: KillPlan, command: Sequence[str]) -> Generator[list[ForkedCommand]]:
    """Start processes, and kill all of them at the end."""
    waiting = [site.start(command, watched=False)] if plan.way.by_workers else []
    begun = [site.start(WORKER if waiting else command, watched=False) for _ in range(plan.processes)]
    try:
        yield begun
    finally:
        for child in (*waiting, *begun):
            child.kill()
            child.wait(PATIENCE)


def _killed(site: Site, plan: KillPlan, command: Sequence[str], rng: random.Random) -> int:
    """Let processes work until they have spent a little, and kill all of them; return how many were still running.

    Some are killed at a random time while they start.
    """
    more, until = rng.choice([0, 1, 1, 2]), time.monotonic() + PATIENCE
    wanted = site.bill().calls + more
    with _begun(site, plan, command) as begun:
        while site.bill().calls < wanted and any(child.poll() is None for child in begun):
            assert time.monotonic() < until, "no progress"
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.08 if more else 0.3))
        return sum(child.poll() is None for child in begun)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_nothing_is_bought_twice(plan: KillPlan, open_site: Callable[..., Site]) -> None:
    """With a sufficient budget, replies that a killed process paid for are used by the next."""
    rng, way = random.Random(str(plan)), plan.way
    with open_site(way, wants=300, latency=0.08) as site:
        site.set(*LIMITS)
        command = way.prepare(site, 9.0)
        killed = sum(_killed(site, plan, command, rng) for _ in range(plan.rounds))
        (done,) = way.carry_out(site, command)
        bill = site.bill()
        # Everything is complete. Only requests in progress at a kill were sent again.
        assert done.code == 0, done.stderr
        assert killed == plan.kills
        assert bill.again <= AT_ONCE * plan.rounds
        assert max(bill.answered.values()) <= 1 + plan.rounds
        (ended,) = way.carry_out(site, command)
        assert (ended.code, site.bill()) == (0, bill), "a finished command sends no request"
        money = site.totals()
        assert bill.dollars <= money.billed + money.unknown + ROUNDED
        assert bill.again * bill.longest <= money.unknown + ROUNDED
        assert money.reserved == 0


TIGHT = 1.2
"""Dollars: a few replies of the usual length, and a few more that were lost."""
LONGEST_REPLY = 0.18
"""Dollars: the most that is reserved for one call."""


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan.way))
def test_a_tight_budget_is_fully_used_and_never_exceeded(plan: KillPlan, open_site: Callable[..., Site]) -> None:
    """With too small a budget: kill a few times, then run to the end."""
    rng, way = random.Random(str(plan)), plan.way
    with open_site(way, latency=0.05) as site:
        site.set(*LIMITS)
        command = way.prepare(site, TIGHT)
        for _ in range(TIGHT_ROUNDS):
            assert _killed(site, plan, command, rng) == plan.processes
            assert site.bill().dollars <= TIGHT + TOLERANCE
        way.carry_out(site, command)
        bill = site.bill()
        assert bill.dollars <= TIGHT + TOLERANCE
        money = site.totals()
        assert bill.dollars <= money.billed + money.unknown + ROUNDED
        assert money.billed + money.unknown + money.reserved <= TIGHT + ROUNDED
        # Money that was not spent can be used, including reservations for requests that were never sent.
        assert money.unknown <= TIGHT_ROUNDS * AT_ONCE * LONGEST_REPLY
        assert bill.dollars >= 0.9 * (TIGHT - money.unknown)
