"""The same replies give the same traces on any machine, and no trace has a key."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fakes.models import ModelFault

Build = Callable[..., Any]
WORDS = ("KEEP", "DROP", *["KEEP"] * 8)
VERDICTS = [{"id": f"r{n}", "verdict": word, "reason": "so"} for n, word in enumerate(WORDS, start=1)]


def call(name: str, believed: float, **arguments: Any) -> dict[str, Any]:
    estimate = {"reason": "so it seems", "evidence_for": [], "evidence_against": [], "retract": []}
    estimate |= {"open_questions": [], "confidence": "low", "p": believed}
    return {"calls": [{"name": name, "arguments": {"updated_belief": estimate, **arguments}}], "tokens": {"input": 9}}


SCRIPT = [
    {"when": "You guard a test of forecasting skill", "text": json.dumps({"verdicts": VERDICTS})},
    {"when": "(Step 2 of", **call("submit", 0.3, p=0.31, reason="Two looks.")},
    {"when": "(Step 1 of", **call("web_search", 0.35, query="council vote autumn")},
    {"when": "number 1 ", "text": "I call no tool. Probability: 40%"},
    {"when": "# Question", **call("web_search", 0.4, query="council bridge tariff marathon")},
]
"""Replies by cue, so that the order of trials does not matter; question 1 is answered by salvage."""


def test_two_machines_give_identical_traces(build_workspace: Build):
    streams: list[Any] = []
    for name in ("one", "another"):
        workspace = build_workspace("http://127.0.0.1:9", name=name)
        script = "".join(json.dumps(line) + "\n" for line in SCRIPT)
        (workspace.folder / "script.jsonl").write_text(script, encoding="utf-8")
        run = workspace.run(workspace.spec(models={"agent": "scripted:script.jsonl"}, trials=3))
        streams.append((run, workspace.events(run), workspace.answers(run)))
    assert streams[0] == streams[1]
    events = streams[0][1]
    assert len(events) == 9
    assert {kind for event in events.values() for kind, _ in event} == {
        "ModelCalled",
        "QuestionShown",
        "ToolUsed",
        "BeliefRevised",
        "EvidenceFound",
        "LeakBlocked",
        "ForecastMade",
    }


@pytest.mark.parametrize("variant", ["full", "batch"])
def test_traces_do_not_depend_on_how_fast_replies_come(build_workspace: Build, recorder: Any, variant: str):
    """The same replies, once at the usual speed and once with every third one late."""
    streams: list[Any] = []
    for name in ("quick", "halting"):
        workspace = build_workspace(recorder.url, name=name)
        if name == "halting":
            for seconds in (0.09, 0.06, 0.03, 0.0) * 20:
                recorder.fail(ModelFault(kind="slow", seconds=seconds))
        run = workspace.run(workspace.spec(options={"variant": variant}, models={"agent": "openai:gatherer"}, trials=2))
        streams.append((workspace.events(run), workspace.answers(run)))
    searches = [kind for events in streams[0][0].values() for kind, _ in events].count("ToolUsed")
    assert searches == {"full": 6 * 3, "batch": 6 * 4}[variant]
    assert streams[0] == streams[1]


def test_replay_has_the_same_events(workspace: Any):
    """In a home with only the journal, which determines the events."""
    spec = workspace.spec(trials=2)
    run = workspace.run(spec)
    before = workspace.events(run)
    (workspace.home / "runs.db").unlink()
    workspace.run(spec)
    assert workspace.events(run) == before


FAULTS = [
    ModelFault(kind="status", status=401, message="Incorrect API key provided: {key}"),
    ModelFault(kind="status", status=400, message="header Authorization: Bearer {key} is malformed"),
    ModelFault(kind="status", status=500, message="{key} broke us", wait=0.0),
    ModelFault(kind="status", status=500, message="{key} broke us", wait=0.0),
    ModelFault(kind="cut"),
]


def test_keys_are_never_stored_or_shown(build_workspace: Build, recorder: Any, engines: Any, canary: str):
    """Provider and search engine repeat requests in their errors, and one search has a wrong key."""
    wrong = "engine-canary-wrong-5555"
    workspace = build_workspace(recorder.url).with_environment(
        BRAVE_API_KEY=wrong,
        FORETELL_BRAVE_URL=f"{engines.url}/brave",
        TAVILY_API_KEY=engines.key,
        FORETELL_TAVILY_URL=f"{engines.url}/tavily",
        FRED_API_KEY=canary,
        METACULUS_TOKEN=canary,
        COMPAT_API_KEY=canary,
    )
    outputs: list[str] = []
    for fault in FAULTS:
        recorder.fail(
            ModelFault(kind=fault.kind, status=fault.status, message=fault.message.format(key=canary), wait=fault.wait)
        )
    spec = workspace.spec(search=["brave", "tavily"], trials=2)
    for _ in range(2):
        shown = workspace.foretell("run", spec.name, "--set", "concurrency=1", "--out", "tables")
        outputs += [shown.stdout, shown.stderr]
    run = shown.stdout.split()[1].rstrip(":")
    compat = f"compat:gpt@{recorder.url}/v1"
    recorder.fail(ModelFault(kind="status", status=401, message=f"Incorrect API key provided: {canary}"))
    commands = [("show", run), ("show", run, "own/0"), ("show", run, "--json"), ("runs",), ("replay", run)]
    commands += [("ask", "Will it be?", "--model", compat, "--search", "brave") for _ in range(2)]
    for command in commands:
        shown = workspace.foretell(*command)
        outputs += [shown.stdout, shown.stderr]
    everything = "\n".join(outputs)
    assert "401" in everything  # The errors were shown.
    assert "6 trials, 0 failed" in everything
    for secret in (canary, wrong, engines.key):
        assert secret[:14] not in everything
        for path in workspace.files():
            assert secret.encode() not in path.read_bytes(), path
