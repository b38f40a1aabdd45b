"""Attacks on budgets: whatever a provider reports, loses or refuses, the bill never exceeds the budget."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.billing import Bill
from money.ways import BY_NAME, ROUNDED, TOLERANCE, WAYS, Done, Figures, Site, Way

FORMATS = ("run", "run in chat format", "run in messages format")
FAULTS = {"429": 0.15, "500": 0.1, "cut": 0.25}


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A way of spending by several processes at once, with a provider that misbehaves."""

    way: Way
    processes: int = 1
    provider: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def calm(self) -> bool:
        """Whether the provider behaves, so that the budget can be used."""
        return not self.provider

    def __str__(self) -> str:
        habits = [str(value) if name == "usage" else name for name, value in self.provider.items() if name != "seed"]
        return f"{self.way}, {self.processes} at once, {' '.join(habits) or 'honest'}"


def _attacks() -> list[Attack]:
    everything = [way for way in WAYS if way.name not in FORMATS[1:]]
    attacks = [Attack(way=way) for way in WAYS]
    attacks += [Attack(way=way, provider={"usage": "missing"}) for way in WAYS]
    attacks += [Attack(way=way, processes=3) for way in everything]
    attacks += [
        Attack(way=way, processes=2, provider={"usage": "mixed", "faults": FAULTS, "seed": 5}) for way in everything
    ]
    run = BY_NAME["run"]
    attacks += [Attack(way=run, processes=number) for number in (2, 4)]
    attacks += [
        Attack(way=run, processes=2, provider=habits) for habits in ({"usage": "mixed"}, {"faults": FAULTS, "seed": 5})
    ]
    for name in FORMATS:
        usages = ("zero", "nan", "small", *(("negative", "text") if name == "run" else ()))
        attacks += [Attack(way=BY_NAME[name], provider={"usage": usage}) for usage in usages]
    attacks += [Attack(way=BY_NAME["impatient run"], provider={"faults": {"slow": 0.5}, "slow": 1.5, "seed": 2})]
    attacks += [Attack(way=BY_NAME["run on long texts"], provider={"bytes_per_token": 1.25, "wants": 20})]
    return attacks


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """How an attack ended."""

    attack: Attack
    bill: Bill
    done: tuple[Done, ...]
    totals: Figures
    """The figures of all runs, as listed afterwards."""

    @property
    def budget(self) -> float:
        """Dollars."""
        return self.attack.way.budget


@pytest.fixture(scope="module", params=_attacks(), ids=str)
def attacked(request: pytest.FixtureRequest, open_site: Callable[..., Site]) -> Attacked:
    """One attack, carried out once for all tests."""
    attack: Attack = request.param
    site = open_site(attack.way, **attack.provider)
    done = attack.way.spend(site, processes=attack.processes)
    bill, totals = site.bill(), site.totals()
    site.close()
    return Attacked(attack=attack, bill=bill, done=tuple(done), totals=totals)


def test_no_more_is_billed_than_the_budget(attacked: Attacked) -> None:
    billed, budget = attacked.bill.dollars, attacked.budget
    assert 0 < billed <= budget + TOLERANCE


def test_nearly_all_of_a_budget_can_be_used(attacked: Attacked) -> None:
    billed, budget = attacked.bill.dollars, attacked.budget
    assert billed >= (0.9 if attacked.attack.calm else 0.0) * budget


def test_the_figures_add_up_to_the_bill(attacked: Attacked) -> None:
    billed, budget = attacked.bill.dollars, attacked.budget
    stated = [result.figures for result in attacked.done]
    assert billed <= attacked.totals.billed + attacked.totals.unknown + ROUNDED
    if all(result.stdout for result in attacked.done):  # A command without an answer prints nothing.
        assert billed <= sum(figures.billed + figures.unknown for figures in stated) + ROUNDED
    for figures in stated:
        assert all(amount >= 0 for amount in figures)
        assert figures.billed + figures.unknown + figures.reserved <= budget + ROUNDED
        assert figures.reserved == 0  # Everything has ended.
        assert figures.reused == 0 or attacked.attack.processes > 1  # The journal was empty before.
    if attacked.attack.calm and len(stated) == 1:
        assert stated[0].billed == pytest.approx(billed)
        assert stated[0].unknown == 0
