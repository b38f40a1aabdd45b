"""Finding the market of a question, also in real question sets."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakes.forecastbench_rounds import read_rounds
from foretell.data.markets.kalshi import TICKER
from foretell.data.markets.market import MarketRef, market_ref
from foretell.questions.question import Question, Target

HEX = "0x" + "5c" * 32


def question_with(**fields: Any) -> Question:
    defaults: dict[str, Any] = {
        "id": "mine",
        "source": "own",
        "text": "?",
        "due": "2026-01-01",
        "targets": (Target(id="yes"),),
    }
    return Question(**{**defaults, **fields})


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("polymarket", HEX),
        ("manifold", "OT9THV4AtcSgnFQPHh1c"),
        ("manifold", "QqgLt0pSUn"),
        ("metaculus", "20925"),
        ("kalshi", "KXAAAGASD-26MAY13-4.520"),
    ],
)
def test_a_market_is_found_by_source_and_id(source: str, own: str) -> None:
    for question_id in (own, f"{source}/{own}"):
        assert market_ref(question_with(id=question_id, source=source)) == MarketRef(platform=source, id=own)


@pytest.mark.parametrize(
    ("url", "platform", "market"),
    [
        ("https://polymarket.com/market/will-it-rain", "polymarket", "slug:will-it-rain"),
        ("https://polymarket.com/event/weather/will-it-rain?tid=1", "polymarket", "slug:will-it-rain"),
        ("https://manifold.markets/jks/will-mexico-city-get", "manifold", "slug:will-mexico-city-get"),
        ("https://www.metaculus.com/questions/20925", "metaculus", "20925"),
        ("https://www.metaculus.com/questions/20925/title/?sub-question=777", "metaculus", "20925#777"),
        ("https://kalshi.com/markets/kxfed/fed-funds/kxfed-26mar-t4.25", "kalshi", "KXFED-26MAR-T4.25"),
    ],
)
def test_a_market_is_found_by_its_address(url: str, platform: str, market: str) -> None:
    assert market_ref(question_with(url=url)) == MarketRef(platform=platform, id=market)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"url": "https://example.org/questions/1"},
        {"url": "https://metaculus.com/tournament/x"},
        {"url": "https://polymarket.com/"},
        {"url": "https://kalshi.com/markets"},
        {"url": "https://notpolymarket.com/market/x"},
        {"source": "infer", "id": "infer/1401", "url": "https://www.randforecastinginitiative.org/questions/1401"},
        {"source": "metaculus", "id": "metaculus/1", "kind": "dataset"},
    ],
)
def test_other_questions_have_no_market(fields: dict[str, Any]) -> None:
    assert market_ref(question_with(**fields)) is None


def test_with_several_targets_the_target_must_be_named() -> None:
    ann, bob = Target(id="ann"), Target(id="bob")
    question = question_with(id="manifold/OT9THV4AtcSgnFQPHh1c", source="manifold", targets=(ann, bob))
    assert market_ref(question) is None
    assert market_ref(question, bob) == MarketRef(platform="manifold", id="OT9THV4AtcSgnFQPHh1c#bob")
    event = question_with(
        id="kalshi/KXFED-26MAR",
        source="kalshi",
        targets=(Target(id="KXFED-26MAR-T4.25"), Target(id="KXFED-26MAR-T4.50")),
    )
    assert market_ref(event, event.targets[1]) == MarketRef(platform="kalshi", id="KXFED-26MAR-T4.50")


@pytest.mark.shared_data
def test_the_market_of_every_real_question_is_found(shared_data: Path) -> None:
    questions = read_rounds(shared_data / "forecastbench").questions
    by_source: dict[str, list[MarketRef | None]] = {}
    for question in questions:
        by_source.setdefault(question.source, []).append(market_ref(question))
    for source in ("manifold", "metaculus", "polymarket"):
        assert all(ref is not None and ref.platform == source for ref in by_source[source])
    for source in ("fred", "yfinance", "dbnomics", "acled", "wikipedia", "infer"):
        assert not any(by_source[source])


@pytest.mark.shared_data
def test_real_kalshi_tickers_match_the_pattern(shared_data: Path) -> None:
    events = json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text())
    lines = (shared_data / "kalshi" / "resolved_markets.jsonl").read_text().splitlines()
    tickers = [market["ticker"] for event in events for market in event["markets"]]
    tickers += [json.loads(line)["event"]["market_ticker"] for line in lines]
    assert len(tickers) > 800
    assert [ticker for ticker in tickers if not TICKER.fullmatch(ticker)] == []
