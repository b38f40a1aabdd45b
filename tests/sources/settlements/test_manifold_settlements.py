"""How Manifold markets came out."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off
from fakes.markets import FakeManifold
from foretell.data.http import SourceError
from foretell.data.markets.manifold import ManifoldClient
from foretell.data.settlements.manifold import ManifoldSettlements
from foretell.practice.markets.manifold import (
    ManifoldCatalogue,
    SampleManifoldAnswer,
    SampleManifoldMarket,
    manifold_market_body,
)
from foretell.questions.as_of import instant

AT = int(instant("2026-12-11").timestamp() * 1000)


def make(http: Any, url: str, tell: Any) -> ManifoldSettlements:
    return ManifoldSettlements(ManifoldClient(http=http, host=f"{url}/v0", per_second=1e4), tell=tell)


def server(*contracts: SampleManifoldMarket, trouble: MarketFaults | None = None) -> Any:
    return FakeManifold({}).having(ManifoldCatalogue(map(manifold_market_body, contracts)), trouble).server()


def plain(resolution: str | None, **fields: Any) -> SampleManifoldMarket:
    return SampleManifoldMarket(id="plain00001", question="?", p=0.9, resolution=resolution, resolved_ms=AT, **fields)


def choice(
    resolution: str | None, *, own: tuple[str | None, ...] = (None, None), **fields: Any
) -> SampleManifoldMarket:
    answers = tuple(
        SampleManifoldAnswer(id=id, text=id, p=0.5, resolution=told, resolved_ms=AT if told else None)
        for id, told in zip(("annanswer1", "bobanswer1"), own, strict=True)
    )
    options: dict[str, Any] = {"id": "choice0001", "question": "?", "kind": "MULTIPLE_CHOICE", "answers": answers}
    return SampleManifoldMarket(**options, resolution=resolution, resolved_ms=AT if resolution else None, **fields)


@pytest.mark.parametrize(
    ("contract", "outcome", "payoff"),
    [
        (plain("YES"), 1, None),
        (plain("NO"), 0, None),
        (plain("MKT", resolved_p=0.7), None, 0.7),
        (plain("CANCEL"), None, None),
    ],
)
def test_yes_or_no(settled: Any, asked: Any, contract: SampleManifoldMarket, outcome: Any, payoff: Any) -> None:
    found = settled(server(contract), make, [asked("manifold/plain00001")])["yes"]
    assert (found.outcome, found.payoff, found.resolved_at) == (outcome, payoff, instant("2026-12-11"))
    assert settled(server(plain(None)), make, [asked("manifold/plain00001")]) == {}


@pytest.mark.parametrize(
    ("contract", "verdicts"),
    [
        (choice("annanswer1"), [(1, None), (0, None)]),
        (choice("CANCEL"), [(None, None), (None, None)]),
        (choice("MKT", shares={"annanswer1": 75, "bobanswer1": 25}), [(None, 0.75), (None, 0.25)]),
        (choice("CHOOSE_MULTIPLE", shares={"annanswer1": 100}), [(1, None), (0, None)]),
        (choice("MKT"), [(None, None), (None, None)]),
        (choice(None), []),
        (choice(None, sums_to_one=False, own=("YES", "NO")), [(1, None), (0, None)]),
        (choice(None, sums_to_one=False, own=("CANCEL", None)), [(None, None)]),
        (choice("CANCEL", sums_to_one=False), [(None, None), (None, None)]),
        (choice("MKT", sums_to_one=False, own=("NO", None)), [(0, None)]),
    ],
)
def test_answers(settled: Any, asked: Any, contract: SampleManifoldMarket, verdicts: Any) -> None:
    question = asked("manifold/choice0001", "annanswer1", "bobanswer1")
    found = settled(server(contract), make, [question])
    assert [(one.outcome, one.payoff) for one in found.values()] == verdicts
    assert not settled.skipped
    assert len(settled.server.requests) == 1


def test_what_cannot_be_read_is_told(settled: Any, asked: Any) -> None:
    question = asked("manifold/choice0001", "annanswer1", "catanswer1")
    assert list(settled(server(choice("annanswer1")), make, [question])) == ["annanswer1"]
    assert settled.reasons == {"choice0001#catanswer1": "the market has no answer 'catanswer1' any more"}
    cases = (
        (plain("PERHAPS"), "field resolution is not YES, NO, MKT or CANCEL"),
        (plain("MKT"), "field resolutionProbability is missing"),
        (plain("YES", kind="PSEUDO_NUMERIC"), "a market of type PSEUDO_NUMERIC has no such target"),
    )
    for contract, reason in cases:
        assert settled(server(contract), make, [asked("manifold/plain00001")]) == {}
        assert reason in settled.reasons["plain00001"]
    assert settled(server(choice("stranger")), make, [question]) == {}
    assert "field resolution is not an answer" in settled.reasons["choice0001#annanswer1"]


def test_gone_drifted_busy_and_down(settled: Any, asked: Any) -> None:
    questions = [asked("manifold/goneaway01"), asked("manifold/plain00001")]
    assert settled(server(plain("YES")), make, questions)["yes"].outcome == 1
    assert settled.reasons == {"goneaway01": "the platform knows no such market"}
    trouble = MarketFaults(drifts=(FieldDrift(path="isResolved", change="rename"),))
    assert settled(server(plain("YES"), trouble=trouble), make, questions[1:]) == {}
    assert settled.reasons == {"plain00001": "manifold market plain00001: field isResolved is missing"}
    assert settled(server(plain("NO")), make, questions[1:], faults=[busy(), cut_off()])["yes"].outcome == 0
    with pytest.raises(SourceError, match="503"):
        settled(server(plain("NO"), trouble=MarketFaults(down=("/market",))), make, questions[1:])
