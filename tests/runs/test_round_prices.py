"""Prices of a round at its due moment: read from the markets' histories when it is pulled, and used ever after."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.background import Background
from foretell.data import DownloadCache
from foretell.data.datasets import price_file, read_pulled
from foretell.practice.markets import PracticeManifold, SampleManifoldBet
from foretell.questions import InputError
from foretell.runs import keep_due_prices, load_settings

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


def test_the_price_of_the_due_moment_takes_the_place_of_the_published_one(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    moments = {"2025-10-25T09:00": 0.61, "2025-10-27T09:00": 0.95}
    made = [(id, datetime.fromisoformat(at).replace(tzinfo=UTC)) for id, at in enumerate(moments)]
    bets = tuple(
        SampleManifoldBet(id=f"b{id}", at_ms=int(at.timestamp() * 1000), after=p)
        for (id, at), p in zip(made, moments.values(), strict=True)
    )
    site = Background(lambda: PracticeManifold({CONTRACT: bets}).server())
    settings = load_settings({"FORETELL_HOME": str(tmp_path), "FORETELL_MANIFOLD_URL": site.url})
    try:
        first = asyncio.run(keep_due_prices(cache, [DAY], settings))
    finally:
        site.close()
    assert [(one.name, one.state) for one in first] == [(price_file(DAY), "1 of 2 markets read")]
    read, other = (question.targets[0].snapshot for question in read_pulled(cache, DAY).questions)
    assert read is not None
    assert (read.price, str(read.at.date())) == (0.61, "2025-10-25")
    assert other is not None
    assert (other.price, str(other.at.date())) == (0.2, "2025-10-16")
    # Kept: nobody is asked again.
    assert [one.state for one in asyncio.run(keep_due_prices(cache, [DAY], settings))] == ["unchanged"]


def test_markets_not_reached_are_asked_again_until_the_next_round_is_due(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    second, clock = "ghiJKL789012", tmp_path / "clock"
    body = json.loads(cache.path(f"question_sets/{DAY}-llm.json").read_bytes())
    body["questions"].append({**body["questions"][0], "id": second})
    cache.put(f"question_sets/{DAY}-llm.json", json.dumps(body).encode(), url="")
    at = int(datetime(2025, 10, 25, 9, tzinfo=UTC).timestamp() * 1000)

    def pulled(now: str, bets: dict[str, float]) -> list[str]:
        clock.write_text(f"{now}T12:00:00+00:00", encoding="utf-8")
        told = {id: (SampleManifoldBet(id=id, at_ms=at, after=p),) for id, p in bets.items()}
        site = Background(lambda: PracticeManifold(told).server())
        values = {"FORETELL_HOME": str(tmp_path), "FORETELL_MANIFOLD_URL": site.url, "FORETELL_CLOCK": f"file:{clock}"}
        try:
            return [one.state for one in asyncio.run(keep_due_prices(cache, [DAY], load_settings(values)))]
        finally:
            site.close()

    assert pulled("2025-10-26", {CONTRACT: 0.61}) == ["1 of 3 markets read"]
    assert pulled("2025-10-27", {CONTRACT: 0.99}) == ["unchanged"]
    # What was read stays as it was read, what was missing is added.
    assert pulled("2025-10-28", {CONTRACT: 0.99, second: 0.4}) == ["2 of 3 markets read"]
    prices = [one.targets[0].snapshot for one in read_pulled(cache, DAY).questions]
    assert [one.price for one in prices if one] == [0.61, 0.2, 0.4]
    cache.path(price_file(DAY)).unlink()
    cache.put(price_file(DAY), b'{"prices": {}}', url="")
    assert pulled("2025-11-20", {CONTRACT: 0.99, second: 0.4}) == ["unchanged"]


def test_without_a_market_in_reach_the_round_stays_as_published_and_that_is_told(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    nowhere = {"FORETELL_HOME": str(tmp_path), "FORETELL_MANIFOLD_URL": "http://127.0.0.1:9"}
    done = asyncio.run(keep_due_prices(cache, [DAY], load_settings(nowhere)))
    assert [(one.state, one.bytes) for one in done] == [("no market could be reached, or none had a newer price", 0)]
    assert [q.targets[0].snapshot.price for q in read_pulled(cache, DAY).questions if q.targets[0].snapshot] == [
        0.2,
        0.2,
    ]
    (tmp_path / "clock").write_text("2025-10-20T00:00:00+00:00", encoding="utf-8")
    early = {**nowhere, "FORETELL_CLOCK": f"file:{tmp_path / 'clock'}"}
    assert asyncio.run(keep_due_prices(cache, [DAY], load_settings(early))) == []


def test_a_spoilt_file_of_prices_is_named(tmp_path: Path):
    cache = published(tmp_path / "forecastbench")
    cache.put(price_file(DAY), b'{"prices": {"a": 3}}', url="")
    with pytest.raises(InputError, match=r"prices.*holds no prices"):
        read_pulled(cache, DAY)
