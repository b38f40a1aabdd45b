"""A run in the batch tier: many cells wait for the same batches, step by step, and cost half."""

import json
from collections.abc import Callable
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from fakes.models import BackgroundModels
from foretell.models.providers import batches
from models.batch_server import BatchProvider, serving
from models.strict_servers import Json


class BatchesInFront(BatchProvider):
    """Ends every batch at once, with what a model behind it says."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.open.set()
        self.url = url

    def response(self, body: Json) -> Json:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}
        # Not `urlopen`: it would keep, for all tests after this one, the proxy that the command has just now.
        direct = build_opener(ProxyHandler({}))
        with direct.open(Request(f"{self.url}/v1/responses", json.dumps(body).encode(), headers)) as answer:
            return json.load(answer)


def test_a_run_in_batches_says_the_same_for_half_the_money(
    provider: BackgroundModels, build_house: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    for name in ("GATHER_SECONDS", "FIRST_POLL", "LONGEST_POLL"):
        monkeypatch.setattr(batches, name, 0.1)
    monkeypatch.setattr("models.batch_server.KEY", "sk-canary")
    provider.reset()
    usual = build_house(provider.url, name="usual")
    run = usual.run(usual.spec(trials=2))
    calls = len(provider.stats()["billed"])
    front = BatchesInFront(provider.url)
    with serving(front) as url:
        cheap = build_house(url, name="cheap")
        spec = cheap.spec(trials=2)
        told = cheap.foretell("run", spec.name, "--set", "sampling.tier=batch")
        assert told.returncode == 0, told.stderr
        assert "service tier batch: openai:gpt-5-mini costs half; replies come together, within a day" in told.stderr
        found, before = cheap.forecasts(told.stdout.split()[1].rstrip(":")), usual.forecasts(run)
    assert [forecast.p for forecast in found] == [forecast.p for forecast in before]
    half = [forecast.usage.dollars / 2 for forecast in before]
    assert [forecast.usage.dollars for forecast in found] == pytest.approx(half)
    sizes = [len(bodies) for bodies in front.batches.values()]
    assert sum(sizes) == calls
    assert max(sizes) == 6  # All cells at once.
