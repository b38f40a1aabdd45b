"""The same replies give the same traces, on whatever machine; and a key is in none of them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fakes.models import ModelFault

Build = Callable[..., Any]
WORDS = ("KEEP", "DROP", *["KEEP"] * 8)
VERDICTS = [{"id": f"r{n}", "verdict": word, "reason": "so"} for n, word in enumerate(WORDS, start=1)]


def call(name: str, believed: float, **arguments: Any) -> dict[str, Any]:
    belief = {"reason": "so it seems", "evidence_for": [], "evidence_against": [], "retract": []}
    belief |= {"open_questions": [], "confidence": "low", "p": believed}
    return {"calls": [{"name": name, "arguments": {"updated_belief": belief, **arguments}}], "tokens": {"input": 9}}


SCRIPT = [
    {"when": "You guard a test of forecasting skill", "text": json.dumps({"verdicts": VERDICTS})},
    {"when": "(Step 2 of", **call("submit", 0.3, p=0.31, reason="Two looks.")},
    {"when": "(Step 1 of", **call("web_search", 0.35, query="council vote autumn")},
    {"when": "number 1 ", "text": "I call no tool. Probability: 40%"},
    {"when": "# Question", **call("web_search", 0.4, query="council bridge tariff marathon")},
]
"""Told by cues, so that it does not matter which cell asks first; question 1 is answered by salvage."""


def test_two_machines_give_identical_traces(build_house: Build):
    streams: list[Any] = []
    for name in ("one", "another"):
        house = build_house("http://127.0.0.1:9", name=name)
        script = "".join(json.dumps(line) + "\n" for line in SCRIPT)
        (house.folder / "script.jsonl").write_text(script, encoding="utf-8")
        run = house.run(house.spec(models={"agent": "scripted:script.jsonl"}, trials=3))
        streams.append((run, house.events(run), house.answers(run)))
    assert streams[0] == streams[1]
    events = streams[0][1]
    assert len(events) == 9
    assert {kind for told in events.values() for kind, _ in told} == {
        "ModelCalled",
        "ToolUsed",
        "BeliefRevised",
        "LeakBlocked",
        "ForecastMade",
    }


@pytest.mark.parametrize("variant", ["full", "batch"])
def test_traces_do_not_depend_on_how_fast_replies_come(build_house: Build, recorder: Any, variant: str):
    """The same replies, once at their usual pace and once with every third one late."""
    streams: list[Any] = []
    for name in ("quick", "halting"):
        house = build_house(recorder.url, name=name)
        if name == "halting":
            for seconds in (0.09, 0.06, 0.03, 0.0) * 20:
                recorder.fail(ModelFault(kind="slow", seconds=seconds))
        run = house.run(house.spec(options={"variant": variant}, models={"agent": "openai:gatherer"}, trials=2))
        streams.append((house.events(run), house.answers(run)))
    searches = [kind for told in streams[0][0].values() for kind, _ in told].count("ToolUsed")
    assert searches == {"full": 6 * 3, "batch": 6 * 4}[variant]
    assert streams[0] == streams[1]


def test_a_replay_tells_the_same_events(house: Any):
    """In a home of its own with the journal alone: nothing but the journal decides what is told."""
    spec = house.spec(trials=2)
    run = house.run(spec)
    before = house.events(run)
    (house.home / "runs.db").unlink()
    house.run(spec)
    assert house.events(run) == before


FAULTS = [
    ModelFault(kind="status", status=401, message="Incorrect API key provided: {key}"),
    ModelFault(kind="status", status=400, message="header Authorization: Bearer {key} is malformed"),
    ModelFault(kind="status", status=500, message="{key} broke us", wait=0.0),
    ModelFault(kind="status", status=500, message="{key} broke us", wait=0.0),
    ModelFault(kind="cut"),
]


def test_keys_appear_nowhere(build_house: Build, recorder: Any, engines: Any, canary: str):
    """Provider and search engine echo what they were sent in their errors; one of the searches has a wrong key."""
    wrong = "engine-canary-wrong-5555"
    house = build_house(recorder.url).with_environment(
        BRAVE_API_KEY=wrong,
        FORETELL_BRAVE_URL=f"{engines.url}/brave",
        TAVILY_API_KEY=engines.key,
        FORETELL_TAVILY_URL=f"{engines.url}/tavily",
        FRED_API_KEY=canary,
        METACULUS_TOKEN=canary,
        COMPAT_API_KEY=canary,
    )
    told: list[str] = []
    for fault in FAULTS:
        recorder.fail(
            ModelFault(kind=fault.kind, status=fault.status, message=fault.message.format(key=canary), wait=fault.wait)
        )
    spec = house.spec(search=["brave", "tavily"], trials=2)
    for _ in range(2):
        shown = house.foretell("run", spec.name, "--set", "concurrency=1", "--out", "tables")
        told += [shown.stdout, shown.stderr]
    run = shown.stdout.split()[1].rstrip(":")
    compat = f"compat:gpt@{recorder.url}/v1"
    recorder.fail(ModelFault(kind="status", status=401, message=f"Incorrect API key provided: {canary}"))
    commands = [("show", run), ("show", run, "own/0"), ("show", run, "--json"), ("runs",), ("replay", run)]
    commands += [("ask", "Will it be?", "--model", compat, "--search", "brave") for _ in range(2)]
    for command in commands:
        shown = house.foretell(*command)
        told += [shown.stdout, shown.stderr]
    everything = "\n".join(told)
    assert "401" in everything  # The errors were really shown.
    assert "6 cells, 0 failed" in everything
    for secret in (canary, wrong, engines.key):
        assert secret[:14] not in everything
        for path in house.files():
            assert secret.encode() not in path.read_bytes(), path
