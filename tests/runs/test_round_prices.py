"""Prices of a round at its due date, read from the markets' histories once and then stored."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.background import Background
from foretell.data.datasets.forecastbench_download import price_file, read_pulled
from foretell.data.files import DownloadCache
from foretell.practice.markets.manifold import PracticeManifold, SampleManifoldBet
from foretell.questions.errors import InputError
from foretell.runs.due_prices import keep_due_prices
from foretell.runs.settings import load_settings

DAY = "2025-10-26"
CONTRACT = "abcDEF123456"


def published(folder: Path) -> DownloadCache:
    rows = [
        {
            "id": CONTRACT,
            "source": source,
            "question": "Will it?",
            "resolution_dates": "N/A",
            "freeze_datetime": "2025-10-16T00:00:00+00:00",
            "freeze_datetime_value": "0.2",
        }
        for source in ("manifold", "infer")
    ]
    cache = DownloadCache(folder)
    body = {"forecast_due_date": DAY, "question_set": f"{DAY}-llm.json", "questions": rows}
    cache.put(f"question_sets/{DAY}-llm.json", json.dumps(body).encode(), url="")
    return cache


def test_price_at_the_due_date_replaces_the_published_one(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    prices = {"2025-10-25T09:00": 0.61, "2025-10-27T09:00": 0.95}
    times = [(id, datetime.fromisoformat(at).replace(tzinfo=UTC)) for id, at in enumerate(prices)]
    bets = tuple(
        SampleManifoldBet(id=f"b{id}", at_ms=int(at.timestamp() * 1000), after=p)
        for (id, at), p in zip(times, prices.values(), strict=True)
    )
    site = Background(lambda: PracticeManifold({CONTRACT: bets}).server())
    settings = load_settings({"FORETELL_HOME": str(tmp_path), "FORETELL_MANIFOLD_URL": site.url})
    try:
        first = asyncio.run(keep_due_prices(cache, [DAY], settings))
    finally:
        site.close()
    assert [(row.name, row.state) for row in first] == [(price_file(DAY), "1 of 2 markets read")]
    read, other = (question.targets[0].snapshot for question in read_pulled(cache, DAY).questions)
    assert read is not None
    assert (read.price, str(read.at.date())) == (0.61, "2025-10-25")
    assert other is not None
    assert (other.price, str(other.at.date())) == (0.2, "2025-10-16")
    # The stored price is used, and no market is read again.
    assert [row.state for row in asyncio.run(keep_due_prices(cache, [DAY], settings))] == ["unchanged"]


def test_markets_not_reached_are_asked_again_until_the_next_round_is_due(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    second, clock = "ghiJKL789012", tmp_path / "clock"
    body = json.loads(cache.path(f"question_sets/{DAY}-llm.json").read_bytes())
    body["questions"].append({**body["questions"][0], "id": second})
    cache.put(f"question_sets/{DAY}-llm.json", json.dumps(body).encode(), url="")
    at = int(datetime(2025, 10, 25, 9, tzinfo=UTC).timestamp() * 1000)

    def pulled(now: str, bets: dict[str, float]) -> list[str]:
        clock.write_text(f"{now}T12:00:00+00:00", encoding="utf-8")
        bets_by_market = {id: (SampleManifoldBet(id=id, at_ms=at, after=p),) for id, p in bets.items()}
        site = Background(lambda: PracticeManifold(bets_by_market).server())
        values = {"FORETELL_HOME": str(tmp_path), "FORETELL_MANIFOLD_URL": site.url, "FORETELL_CLOCK": f"file:{clock}"}
        try:
            return [row.state for row in asyncio.run(keep_due_prices(cache, [DAY], load_settings(values)))]
        finally:
            site.close()

    assert pulled("2025-10-26", {CONTRACT: 0.61}) == ["1 of 3 markets read"]
    assert pulled("2025-10-27", {CONTRACT: 0.99}) == ["unchanged"]
    # Stored prices are unchanged, and missing ones are added.
    assert pulled("2025-10-28", {CONTRACT: 0.99, second: 0.4}) == ["2 of 3 markets read"]
    prices = [question.targets[0].snapshot for question in read_pulled(cache, DAY).questions]
    assert [price.price for price in prices if price] == [0.61, 0.2, 0.4]
    cache.path(price_file(DAY)).unlink()
    cache.put(price_file(DAY), b'{"prices": {}}', url="")
    assert pulled("2025-11-20", {CONTRACT: 0.99, second: 0.4}) == ["unchanged"]


def test_unreachable_markets_leave_the_round_as_published_with_a_note(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    nowhere = {"FORETELL_HOME": str(tmp_path), "FORETELL_MANIFOLD_URL": "http://127.0.0.1:9"}
    done = asyncio.run(keep_due_prices(cache, [DAY], load_settings(nowhere)))
    assert [(row.state, row.bytes) for row in done] == [("no market could be reached, or none had a newer price", 0)]
    assert [q.targets[0].snapshot.price for q in read_pulled(cache, DAY).questions if q.targets[0].snapshot] == [
        0.2,
        0.2,
    ]
    (tmp_path / "clock").write_text("2025-10-20T00:00:00+00:00", encoding="utf-8")
    early = {**nowhere, "FORETELL_CLOCK": f"file:{tmp_path / 'clock'}"}
    assert asyncio.run(keep_due_prices(cache, [DAY], load_settings(early))) == []


def test_damaged_file_of_prices_is_named(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    cache.put(price_file(DAY), b'{"prices": {"a": 3}}', url="")
    with pytest.raises(InputError, match=r"prices.*contains no prices"):
        read_pulled(cache, DAY)
