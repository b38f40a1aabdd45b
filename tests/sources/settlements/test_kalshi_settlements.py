"""How Kalshi markets came out."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off, failing
from fakes.markets import FakeKalshi
from foretell.data.http import SourceError
from foretell.data.markets.kalshi import KalshiClient
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.practice.markets.kalshi import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.questions.as_of import instant

OVER = {"status": "finalized", "settled": "2026-12-11T00:00:00Z"}
MARKETS = (
    SampleKalshiMarket(ticker="KXA-1-YES", label="a", result="yes", paid=1.0, **OVER),
    SampleKalshiMarket(ticker="KXA-1-NO", label="b", result="no", paid=0.0, **OVER),
    SampleKalshiMarket(ticker="KXA-1-OPEN", label="c"),
    SampleKalshiMarket(ticker="KXA-1-CLOSED", label="d", status="closed"),
    SampleKalshiMarket(ticker="KXA-1-DETERMINED", label="e", status="determined", result="yes"),
    SampleKalshiMarket(ticker="KXA-1-DISPUTED", label="f", status="disputed", result="yes"),
    SampleKalshiMarket(ticker="KXA-1-AMENDED", label="g", status="amended", result="no"),
    SampleKalshiMarket(ticker="KXA-1-HALF", label="h", result="", paid=0.5, **OVER),
    SampleKalshiMarket(ticker="KXA-1-VOID", label="i", result="void", **OVER),
    SampleKalshiMarket(ticker="KXA-1-PART", label="j", result="yes", paid=0.4, **OVER),
    SampleKalshiMarket(ticker="KXA-1-ODD", label="k", result="maybe", **OVER),
)
EVENT = SampleKalshiEvent(ticker="KXA-1", series="KXA", title="?", markets=MARKETS)
TICKERS = [market.ticker for market in MARKETS]


def make(http: Any, url: str, tell: Any) -> KalshiSettlements:
    return KalshiSettlements(KalshiClient(http=http, host=f"{url}/trade-api/v2", per_second=1e4), tell=tell)


def server(schema: Any = "dollars", trouble: MarketFaults | None = None, **options: Any) -> Any:
    return FakeKalshi({}).having(KalshiCatalogue([kalshi_event_body(EVENT, schema)], **options), trouble).server()


@pytest.mark.parametrize("schema", ["dollars", "cents"])
@pytest.mark.parametrize("archived", [False, True])
def test_only_what_is_final_has_come_out(settled: Any, asked: Any, schema: Any, archived: bool) -> None:
    question = asked("kalshi/KXA-1", *TICKERS)
    found = settled(server(schema, archived=TICKERS if archived else ()), make, [question])
    assert {ticker[6:]: (one.outcome, one.payoff) for ticker, one in found.items()} == {
        "YES": (1, None),
        "NO": (0, None),
        "HALF": (None, 0.5),
        "VOID": (None, None),
        "PART": (None, 0.4),
    }
    first = found["KXA-1-YES"]
    assert (first.question_id, first.due) == ("kalshi/KXA-1", question.due)
    # The older notation only tells when trading ended.
    assert first.resolved_at == instant("2026-12-11" if schema == "dollars" else "2027-01-01")
    assert first.provenance.endswith(f"/trade-api/v2{'/historical' if archived else ''}/markets/KXA-1-YES")
    assert settled.reasons == {
        "KXA-1-ODD": "kalshi market KXA-1-ODD: field markets[10].result is not yes, no or nothing"
    }
    paths = [request.path.rpartition("v2")[2] for request in settled.server.requests]
    assert paths == (["/markets", "/historical/markets"] if archived else ["/markets"])


def test_markets_asked_by_their_own_ticker_several_times_and_of_other_platforms(settled: Any, asked: Any) -> None:
    questions = [
        asked("kalshi/KXA-1-YES"),
        asked("kalshi/KXA-1-YES", due="2026-02-01"),
        asked("kalshi/KXA-1-YES"),
        asked("manifold/abcdefgh12"),
        asked("kalshi/KXNOPE-1"),
    ]
    settled(server(), make, questions)
    assert [(one.due, one.outcome) for one in settled.found] == [(questions[0].due, 1), (questions[1].due, 1)]
    assert settled.reasons == {"KXNOPE-1": "the platform knows no such market"}
    assert settled(server(), make, []) == {}
    assert not settled.server.requests


def test_many_markets_in_few_requests_with_pages(settled: Any, asked: Any) -> None:
    markets = tuple(SampleKalshiMarket(ticker=f"KXM-1-{n}", label=str(n), result="yes", **OVER) for n in range(250))
    event = kalshi_event_body(SampleKalshiEvent(ticker="KXM-1", series="KXM", title="?", markets=markets))
    fake = FakeKalshi({}).having(KalshiCatalogue([event], page=40)).server()
    found = settled(fake, make, [asked("kalshi/KXM-1", *(market.ticker for market in markets))])
    assert len(found) == 250
    assert len(settled.server.requests) == 3 + 3 + 2


def test_one_bad_market_keeps_nothing_else_from_being_read(settled: Any, asked: Any) -> None:
    question = asked("kalshi/KXA-1", "KXA-1-YES", "KXA-1-NO")
    for change, told in (("drop", "is missing"), ("retype", "is not a text")):
        trouble = MarketFaults(drifts=(FieldDrift(path="markets.0.result", change=change),))
        assert list(settled(server(trouble=trouble), make, [question])) == ["KXA-1-NO"]
        assert settled.reasons == {"KXA-1-YES": f"kalshi market KXA-1-YES: field markets[0].result {told}"}
    with pytest.raises(SourceError, match="field markets is missing"):
        settled(server(trouble=MarketFaults(drifts=(FieldDrift(path="markets"),))), make, [question])


def test_busy_broken_and_down(settled: Any, asked: Any) -> None:
    question = asked("kalshi/KXA-1", "KXA-1-YES")
    assert settled(server(), make, [question], faults=[busy(), cut_off()])["KXA-1-YES"].outcome == 1
    with pytest.raises(SourceError, match="500"):
        settled(server(), make, [question], faults=[failing()] * 3)
    with pytest.raises(SourceError, match="503"):
        settled(server(archived=["KXA-1-YES"], trouble=MarketFaults(down=("/historical",))), make, [question])
    with pytest.raises(SourceError, match=r"historical/markets.*503"):
        settled(server(trouble=MarketFaults(down=("/historical",))), make, [asked("kalshi/KXNOPE-1")])


@pytest.mark.shared_data
@pytest.mark.parametrize("archived", [False, True])
def test_real_results_of_the_old_notation(settled: Any, asked: Any, shared_data: Path, archived: bool) -> None:
    """609 finalized markets as sent in 2025; the 13 still active are absent."""
    raw = json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text())
    results = {market["ticker"]: market["result"] for event in raw for market in event["markets"]}
    questions = [
        asked(f"kalshi/{event['event_ticker']}", *(market["ticker"] for market in event["markets"])) for event in raw
    ]
    fake = FakeKalshi({}).having(KalshiCatalogue(raw, archived=results if archived else ()))
    found = settled(fake.server(), make, questions)
    assert not settled.skipped
    assert len(found) == 609
    told = {ticker: {"yes": 1, "no": 0}[result] for ticker, result in results.items() if result}
    assert {ticker: one.outcome for ticker, one in found.items()} == told
    assert all(one.resolved_at is not None and one.payoff is None for one in found.values())


@pytest.mark.shared_data
def test_real_results_of_the_new_notation(settled: Any, asked: Any, shared_data: Path) -> None:
    """267 markets of 2026, quoted while open and known to have come out since."""
    lines = (shared_data / "kalshi" / "resolved_markets.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    events: dict[str, dict[str, Any]] = {}
    for row in rows:
        event = events.setdefault(
            row["event"]["event_ticker"], {"event_ticker": row["event"]["event_ticker"], "markets": []}
        )
        names = {"ticker": row["event"]["market_ticker"], "event_ticker": row["event"]["event_ticker"]}
        event["markets"].append(
            {
                **row["market_snapshot"],
                **names,
                "status": "finalized",
                "result": row["result"],
                "close_time": row["event"]["close_time"],
            }
        )
    still_open = [
        {**event, "markets": [{**m, "status": "active", "result": ""} for m in event["markets"]]}
        for event in events.values()
    ]
    questions = [
        asked(f"kalshi/{ticker}", *(m["ticker"] for m in event["markets"])) for ticker, event in events.items()
    ]
    found = settled(FakeKalshi({}).having(KalshiCatalogue(events.values())).server(), make, questions)
    assert {t: one.outcome for t, one in found.items()} == {
        row["event"]["market_ticker"]: int(row["result"] == "yes") for row in rows
    }
    assert settled(FakeKalshi({}).having(KalshiCatalogue(still_open)).server(), make, questions) == {}
    assert not settled.skipped
