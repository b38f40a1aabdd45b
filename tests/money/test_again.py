"""Finished work costs nothing more: in a second process, after a restart, and in another run with the same requests."""

import json
from collections.abc import Callable

import pytest

from money.ways import BY_NAME, RESPONSES, TOLERANCE, WAYS, Figures, Site, Way, run_spec

PLENTY = 9.0


@pytest.mark.parametrize("way", [way for way in WAYS if "format" not in way.name], ids=str)
def test_repeating_a_finished_command_costs_nothing(way: Way, open_site: Callable[..., Site]) -> None:
    with open_site(way, wants=100) as site:
        command = way.prepare(site, PLENTY)
        (first,) = way.carry_out(site, command)
        assert first.code == 0, first.stderr
        bill = site.bill()
        assert bill.again == 0
        again = way.carry_out(site, command, processes=2)
        assert site.bill() == bill
        assert first.figures.billed == pytest.approx(bill.dollars)
        for result in again:
            assert result.code == 0, result.stderr
            assert result.figures._replace(reused=0.0) == Figures(0.0, 0.0, 0.0, 0.0)
        assert site.totals().billed == pytest.approx(bill.dollars)


@pytest.mark.parametrize("way", [BY_NAME[name] for name in ("run", "ask", "grid")], ids=str)
def test_a_small_budget_does_not_block_saved_replies(way: Way, open_site: Callable[..., Site]) -> None:
    """Repeat the questions with a tiny budget: all replies are in the journal.

    A tree is planned by its budget, so with another budget it sends other requests.
    """
    with open_site(way, wants=100) as site:
        (first,) = way.spend(site, PLENTY)
        bill = site.bill()
        (again,) = way.spend(site, 0.0001)
        assert (first.code, again.code) == (0, 0), again.stderr
        assert site.bill() == bill
        assert json.loads(again.stdout).get("p") == json.loads(first.stdout).get("p")
        money = again.figures
        assert (money.billed, money.unknown, money.reserved) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("way", "counts"), [(BY_NAME["grid"], True), (BY_NAME["arena"], True), (BY_NAME["run"], False)], ids=str
)
def test_a_larger_budget_pays_for_the_rest(way: Way, counts: bool, open_site: Callable[..., Site]) -> None:
    """Earlier costs of a grid or an arena count against its new budget. A run with another budget is another run."""
    with open_site(way) as site:
        way.spend(site)
        first = site.bill().dollars
        way.spend(site, 2 * way.budget)
        second = site.bill().dollars - (0.0 if counts else first)
        assert first <= way.budget + TOLERANCE
        assert 1.8 * way.budget <= second <= 2 * way.budget + TOLERANCE


@pytest.mark.parametrize("operation", ["run", "ask"])
def test_a_model_without_a_price_is_refused_under_a_budget(operation: str, open_site: Callable[..., Site]) -> None:
    """This includes local servers, which may forward requests to a paid provider."""
    with open_site(BY_NAME["run"]) as site:
        model = f"compat:nobody-knows-it@{site.provider.url}/v1"
        if operation == "ask":
            priced = list(BY_NAME["ask"].prepare(site, 0.5))
            place = next(place for place, word in enumerate(priced) if word.startswith("prices."))
            command = [model if word == RESPONSES else word for word in (*priced[: place - 1], *priced[place + 1 :])]
            free = [*command, "--set", "prices.agent=0"]
        else:
            site.write("run.yaml", run_spec(site, {"run": 0.5}, model=model, prices={}))
            site.write("free.yaml", run_spec(site, {"run": 0.5}, model=model, prices={model: "0"}))
            command, free = (["run", name, "--json"] for name in ("run.yaml", "free.yaml"))
        refused = site.tell(*command)
        assert (refused.code, site.bill().calls) == (2, 0), refused.stderr
        assert "price" in refused.stderr
        done = site.tell(*free)
        assert done.code == 0, done.stderr
        assert site.bill().calls > 0
