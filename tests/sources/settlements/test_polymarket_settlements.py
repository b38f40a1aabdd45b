"""How Polymarket markets came out."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off
from fakes.markets import FakePolymarket
from foretell.data.http import SourceError
from foretell.data.markets.polymarket import PolymarketClient, PolymarketHosts
from foretell.data.settlements.polymarket import PolymarketSettlements
from foretell.practice.markets.polymarket import (
    PolymarketCatalogue,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    polymarket_event_body,
)
from foretell.questions.as_of import instant

DONE: dict[str, Any] = {"closed": True, "stage": "resolved", "closed_at": "2026-12-11 10:00:00+00"}
STATES: dict[str, dict[str, Any]] = {
    "yes": {**DONE, "prices": ("1", "0")},
    "no": {**DONE, "prices": ("0", "1")},
    "flipped": {**DONE, "outcomes": ("No", "Yes"), "prices": ("0", "1")},
    "open": {"prices": ("1", "0")},
    "proposed": {**DONE, "stage": "proposed", "prices": ("1", "0")},
    "disputed": {**DONE, "stage": "disputed", "prices": ("1", "0")},
    "last": {**DONE, "stage": None, "prices": ("0.97", "0.03")},
    "half": {**DONE, "prices": ("0.5", "0.5")},
    "split": {**DONE, "stage": None, "prices": ("0.5", "0.5")},
    "old": {**DONE, "prices": ("0.9999989", "0.0000011")},
    "named": {**DONE, "outcomes": ("Lions", "Bears"), "prices": ("0", "1")},
    "unsaid": {**DONE, "stage": None, "prices": ("0", "1")},
}
ID = {name: f"0x{n + 1:064x}" for n, name in enumerate(STATES)}
MARKETS = tuple(SamplePolymarketMarket(condition=ID[name], question=name, **state) for name, state in STATES.items())


def make(http: Any, url: str, tell: Any) -> PolymarketSettlements:
    hosts = PolymarketHosts(gamma=f"{url}/gamma", data=f"{url}/data", clob=f"{url}/clob")
    return PolymarketSettlements(PolymarketClient(http=http, hosts=hosts, per_second=1e4), tell=tell)


def server(*, trouble: MarketFaults | None = None, markets: Any = MARKETS, **options: Any) -> Any:
    body = polymarket_event_body(SamplePolymarketEvent(id="1", title="?", markets=markets))
    catalogue = PolymarketCatalogue([body], page=options.pop("page", 500))
    return FakePolymarket({}, **options).having(catalogue, trouble).server()


def targets() -> list[str]:
    return [ID[name] for name in ID if name != "named"] + [f"{ID['named']}#Lions", f"{ID['named']}#bears"]


@pytest.mark.parametrize("cursors", [True, False])
def test_what_a_share_was_worth(settled: Any, asked: Any, cursors: bool) -> None:
    found = settled(server(cursors=cursors), make, [asked("polymarket/1", *targets())])
    names = {id: name for name, id in ID.items()}
    assert {names[id.partition("#")[0]] + id[66:]: (one.outcome, one.payoff) for id, one in found.items()} == {
        "yes": (1, None),
        "no": (0, None),
        "flipped": (1, None),
        "half": (None, 0.5),
        "old": (1, None),
        "named#Lions": (0, None),
        "named#bears": (1, None),
        "unsaid": (0, None),
    }
    assert found[ID["yes"]].resolved_at == instant("2026-12-11T10:00:00Z")
    assert ID["yes"] in found[ID["yes"]].provenance
    assert not settled.skipped
    assert all(request.query["closed"] == "true" for request in settled.server.requests)


def test_questions_asked_by_condition_or_by_address(settled: Any, asked: Any) -> None:
    slug = f"market-{ID['no'][-6:]}"
    by_address = replace(asked("mine/1"), url=f"https://polymarket.com/market/{slug}")
    assert settled(server(), make, [by_address])["yes"].outcome == 0
    assert settled(server(), make, [asked(f"polymarket/{ID['yes']}")])["yes"].outcome == 1
    assert settled(server(), make, [asked("polymarket/5", f"{ID['yes']}#Draw")]) == {}
    assert settled.reasons == {f"{ID['yes']}#Draw": "the market has no outcome 'Draw'"}


def test_many_in_few_requests(settled: Any, asked: Any) -> None:
    many = tuple(
        SamplePolymarketMarket(condition=f"0x{n:064x}", question="?", prices=("1", "0"), closed=True)
        for n in range(120)
    )
    question = asked("polymarket/9", *(market.condition for market in many))
    assert len(settled(server(markets=many), make, [question])) == 120
    assert len(settled.server.requests) == 3
    assert len(settled(server(markets=many, page=30), make, [question])) == 120
    assert len(settled.server.requests) == 5


def test_one_bad_market_wrong_pages_and_outages(settled: Any, asked: Any) -> None:
    question = asked("polymarket/1", ID["yes"], ID["no"])
    trouble = MarketFaults(drifts=(FieldDrift(path="markets.0.outcomePrices"),))
    assert list(settled(server(trouble=trouble), make, [question])) == [ID["no"]]
    assert "field markets[0].outcomePrices is missing" in settled.reasons[ID["yes"]]
    with pytest.raises(SourceError, match="field markets is missing"):
        settled(server(trouble=MarketFaults(drifts=(FieldDrift(path="markets"),))), make, [question])
    assert len(settled(server(), make, [question], faults=[busy(), cut_off()])) == 2
    with pytest.raises(SourceError, match="503"):
        settled(server(trouble=MarketFaults(down=("/gamma",))), make, [question])
