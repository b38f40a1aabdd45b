"""The whole loop with a real small model from a file: whatever it says, a valid forecast comes out."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def gguf() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    path = os.environ.get("FORETELL_TEST_GGUF")
    if not path:
        pytest.skip("set FORETELL_TEST_GGUF to the path of a small .gguf file")
    return Path(path).resolve()


def test_a_small_model_ends_in_a_valid_forecast(build_house: Callable[..., Any], gguf: Path):
    """Nobody else is there to ask: agent, filter and summariser are the same few million weights."""
    house = build_house("http://127.0.0.1:9", count=1).with_environment(OPENAI_API_KEY="")
    # Short replies: every token takes the small model a thirtieth of a second of processor time.
    spec = house.spec(
        models={"agent": f"local:{gguf}"}, options={"reply_format": "schema", "steps": 2}, sampling={"max_tokens": 40}
    )
    told = house.foretell("run", spec.name, "--concurrency", "2")
    run = told.stdout.split()[1].rstrip(":")
    made = house.forecasts(run)
    # Such a model may fail at its task: then the forecast says so, and so does the exit code.
    assert told.returncode == (3 if any(forecast.degraded for forecast in made) else 0), told.stderr
    assert [forecast.question_id for forecast in made] == ["own/0"]
    for forecast in made:
        assert 0.05 <= forecast.p["yes"] <= 0.95
        assert forecast.rationale
        assert forecast.usage.calls >= 1
    for told_events in house.events(run).values():
        assert told_events[-1][0] == "ForecastMade"
        assert json.loads(told_events[-1][1])["how"]
    # Sampling is not the same twice, but the journal is: the replay needs no model at all.
    replayed = house.foretell("replay", run)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
