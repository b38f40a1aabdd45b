"""Attacks on budgets: whatever a provider reports, loses or refuses, it is never billed more than a budget allows."""

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
    """A way of spending, by so many processes at once, at a provider with these habits."""

    way: Way
    processes: int = 1
    provider: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def calm(self) -> bool:
        """Whether the provider does nothing wrong, so that the budget can be used."""
        return not self.provider

    def __str__(self) -> str:
        habits = [str(value) if name == "usage" else name for name, value in self.provider.items() if name != "seed"]
        return f"{self.way}, {self.processes} at once, {' '.join(habits) or 'honest'}"


def _attacks() -> list[Attack]:
    everything = [way for way in WAYS if way.name not in FORMATS[1:]]
    found = [Attack(way=way) for way in WAYS]
    found += [Attack(way=way, provider={"usage": "missing"}) for way in WAYS]
    found += [Attack(way=way, processes=3) for way in everything]
    found += [
        Attack(way=way, processes=2, provider={"usage": "mixed", "faults": FAULTS, "seed": 5}) for way in everything
    ]
    run = BY_NAME["run"]
    found += [Attack(way=run, processes=number) for number in (2, 4)]
    found += [Attack(way=run, processes=2, provider=one) for one in ({"usage": "mixed"}, {"faults": FAULTS, "seed": 5})]
    for name in FORMATS:
        usages = ("zero", "nan", "small", *(("negative", "text") if name == "run" else ()))
        found += [Attack(way=BY_NAME[name], provider={"usage": usage}) for usage in usages]
    found += [Attack(way=BY_NAME["impatient run"], provider={"faults": {"slow": 0.5}, "slow": 1.5, "seed": 2})]
    found += [Attack(way=BY_NAME["run on long texts"], provider={"bytes_per_token": 1.25, "wants": 20})]
    return found


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """How an attack ended."""

    attack: Attack
    bill: Bill
    done: tuple[Done, ...]
    totals: Figures
    """Of all runs, as they are listed afterwards."""

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
    stated = [one.figures for one in attacked.done]
    assert billed <= attacked.totals.billed + attacked.totals.unknown + ROUNDED
    if all(one.stdout for one in attacked.done):  # A command that came to no answer prints none.
        assert billed <= sum(one.billed + one.unknown for one in stated) + ROUNDED
    for one in stated:
        assert all(amount >= 0 for amount in one)
        assert one.billed + one.unknown + one.reserved <= budget + ROUNDED
        assert one.reserved == 0  # Everything has ended.
        assert one.reused == 0 or attacked.attack.processes > 1  # Nothing was there before.
    if attacked.attack.calm and len(stated) == 1:
        assert stated[0].billed == pytest.approx(billed)
        assert stated[0].unknown == 0
