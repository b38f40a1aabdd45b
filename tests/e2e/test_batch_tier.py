"""A run in the batch tier: many trials wait for the same batches and cost half."""

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
    """Completes every batch at once with the replies of a model."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.open.set()
        self.url = url

    def response(self, body: Json) -> Json:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}
        # Not `urlopen`, which would keep the command's proxy for all later tests.
        direct = build_opener(ProxyHandler({}))
        with direct.open(Request(f"{self.url}/v1/responses", json.dumps(body).encode(), headers)) as answer:
            return json.load(answer)


def test_batch_run_has_the_same_answers_at_half_the_price(
    provider: BackgroundModels, build_workspace: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    for name in ("GATHER_SECONDS", "FIRST_POLL", "LONGEST_POLL"):
        monkeypatch.setattr(batches, name, 0.1)
    monkeypatch.setattr("models.batch_server.KEY", "sk-canary")
    provider.reset()
    usual = build_workspace(provider.url, name="usual")
    run = usual.run(usual.spec(trials=2))
    calls = len(provider.stats()["billed"])
    front = BatchesInFront(provider.url)
    with serving(front) as url:
        cheap = build_workspace(url, name="cheap")
        spec = cheap.spec(trials=2)
        foretell = cheap.foretell("run", spec.name, "--set", "sampling.tier=batch")
        assert foretell.returncode == 0, foretell.stderr
        assert (
            "service tier batch: openai:gpt-5-mini costs half; replies come together, within a day" in foretell.stderr
        )
        forecasts, before = cheap.forecasts(foretell.stdout.split()[1].rstrip(":")), usual.forecasts(run)
    assert [forecast.p for forecast in forecasts] == [forecast.p for forecast in before]
    half = [forecast.usage.dollars / 2 for forecast in before]
    assert [forecast.usage.dollars for forecast in forecasts] == pytest.approx(half)
    sizes = [len(bodies) for bodies in front.batches.values()]
    assert sum(sizes) == calls
    assert max(sizes) == 6  # All trials at once.
