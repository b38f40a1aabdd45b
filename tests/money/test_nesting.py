"""Nested budgets: each holds, even if the other is larger, for any number of processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from money.ways import BY_NAME, NOBODY_KNOWS, PRICE, TOLERANCE, Site, run_spec


@dataclass(frozen=True, kw_only=True)
class Nested:
    """Budgets in dollars, the outer one first, and the number of inner ones."""

    outer: float
    inner: float
    times: int

    @property
    def most(self) -> float:
        """The most that may be billed in total."""
        return min(self.outer, self.times * self.inner)

    def __str__(self) -> str:
        return f"{self.times} of {self.inner} in {self.outer}"


LOOSE, TIGHT = Nested(outer=0.9, inner=0.1, times=4), Nested(outer=0.25, inner=0.1, times=4)


def check(site: Site, nested: Nested) -> None:
    """Check that the bill is within both budgets and uses them."""
    billed = site.bill().dollars
    assert 0.9 * nested.most <= billed <= nested.most + TOLERANCE


@pytest.mark.parametrize("nested", [LOOSE, TIGHT], ids=str)
@pytest.mark.parametrize("processes", [1, 2])
def test_question_budgets_hold_within_a_run_budget(
    nested: Nested, processes: int, open_site: Callable[..., Site]
) -> None:
    way = BY_NAME["run"]
    with open_site(way) as site:
        budget = {"run": nested.outer, "question": nested.inner}
        spec = run_spec(site, budget, count=nested.times, forecaster="tree")
        site.write("run.yaml", {**spec, "options": {"grounder": "plain", "leaves": 6}})
        way.carry_out(site, ("run", "run.yaml", "--json"), processes)
        check(site, nested)


@pytest.mark.parametrize("nested", [LOOSE, TIGHT], ids=str)
def test_run_budgets_hold_within_a_grid_budget(nested: Nested, open_site: Callable[..., Site]) -> None:
    way = BY_NAME["grid"]
    with open_site(way) as site:
        base = run_spec(site, {"run": nested.inner}, count=20)
        seeds = list(range(nested.times))
        site.write("grid.yaml", {"name": "g", "base": base, "factors": {"seed": seeds}, "budget": nested.outer})
        way.carry_out(site, ("grid", "grid.yaml", "--json"), 2)
        check(site, nested)


@pytest.mark.parametrize("nested", [LOOSE, TIGHT], ids=str)
def test_entry_budgets_hold_within_an_arena_budget(nested: Nested, open_site: Callable[..., Site]) -> None:
    way = BY_NAME["arena"]
    models = [f"{NOBODY_KNOWS}{n}" for n in range(nested.times)]

    def entry(model: str) -> Mapping[str, Any]:
        return {"model": model, "prices": {model: PRICE}, "trials": 2, "budget": {"run": nested.inner}}

    with open_site(way) as site:
        command = way.prepare(site, nested.outer)
        entries = {f"entry{n}": entry(model) for n, model in enumerate(models)}
        site.write("arena.yaml", {"name": "a", "entries": entries, "select": {"volume": 1}, "budget": nested.outer})
        way.carry_out(site, command, 2)
        check(site, nested)
        assert max(site.bill().by_model.values()) <= nested.inner + TOLERANCE
