"""`foretell arena` stage by stage, against fakes of all platforms, with every kind of entry."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from foretell.operations.practice import practice_environment
from foretell.practice.services import ServiceOptions, all_services
from foretell.questions.as_of import instant

NOW = instant("2026-11-01T15:00:00Z")
EVENTS = 21
UNPRICED = 5
"""Questions about numbers and dates, whose thresholds have no market price."""
ENTRIES: dict[str, Any] = {
    "market": "market",
    "half": {"forecaster": "always", "options": {"p": 0.5}},
    "outside": "outside",
    "prompt": {"forecaster": "context", "model": "openai:fake"},
    "blind": {"forecaster": "context", "model": "openai:fake", "options": {"view": "none"}},
    "agent": {"forecaster": "agent", "model": "openai:fake", "search": ["brave"]},
    "shown agent": {"forecaster": "agent", "model": "openai:fake", "search": ["brave"], "context": True},
    "tree": {"forecaster": "tree", "model": "openai:fake", "context": {"tools": False}},
    "thoughts": {"forecaster": "thoughts", "model": "openai:fake", "context": {"view": "sources", "tools": False}},
}


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """All fakes, served on a loop of their own."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    urls: dict[str, str] = {}
    stop = asyncio.Event()

    async def serve() -> None:
        async with all_services(ServiceOptions(now=NOW)) as served:
            urls.update(served)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(30)
    yield urls
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


@pytest.fixture
def site(addresses: dict[str, str], tmp_path: Path, build_workspace: Callable[..., Any]) -> Any:
    workspace = build_workspace("http://127.0.0.1:9", count=1)
    values = {
        name: value for name, value in practice_environment(addresses, workspace.home).items() if value is not None
    }
    clock = workspace.folder / "clock"
    clock.write_text(NOW.isoformat())
    return workspace.with_environment(**values, FORETELL_CLOCK=f"file:{clock}")


def write(site: Any, **fields: Any) -> None:
    usual = {
        "name": "all",
        "entries": ENTRIES,
        "context": {"search": ["brave"], "models": {"summariser": "openai:fake"}},
    }
    (site.folder / "arena.yaml").write_text(yaml.safe_dump({**usual, **fields}), encoding="utf-8")


def run_arena(site: Any, *arguments: str) -> str:
    done = site.foretell("arena", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stage(site: Any, *names: str) -> str:
    return run_arena(site, "run", "--once", *(word for name in names for word in ("--stage", name)))


def test_stage_by_stage_on_every_platform_with_every_kind_of_entry(site: Any):
    platforms = ["kalshi", "polymarket", "manifold", "metaculus", "prophet_arena"]
    write(site, platforms=platforms, select={"per_day": 40})
    assert f"{EVENTS} events looked at, {EVENTS} taken up" in stage(site, "collect")
    assert f"{EVENTS} contexts made" in stage(site, "context")
    again = json.loads(run_arena(site, "run", "--once", "--stage", "context", "--stage", "collect", "--json"))
    assert (again["arena"], again["collect"]["chosen"], again["context"]["made"]) == ("all", [], 0)
    out = stage(site, "forecast")
    assert f"{EVENTS * len(ENTRIES) - UNPRICED} forecasts, {UNPRICED} failed" in out
    counts = re.findall(r"failed: (\d+) × .* has no price known", out)
    assert sum(map(int, counts)) == UNPRICED
    assert f"0 forecasts, {UNPRICED} failed" in stage(site, "forecast")
    assert "0 events looked up" in stage(site, "resolve")
    status = json.loads(run_arena(site, "show", "--json"))
    assert status["waiting"] == UNPRICED
    answered = {name: entry["forecasts"] for name, entry in status["entries"].items()}
    assert answered == dict.fromkeys(ENTRIES, EVENTS) | {"market": EVENTS - UNPRICED}
    story = json.loads(run_arena(site, "show", "KXNORGES-NEXT", "--json"))
    forecasts = story["forecast_times"][0]["said"]
    assert set(forecasts) == set(ENTRIES)
    # Exactly one comes true. Entries that repeat a baseline are unchanged.
    assert all(sum(p.values()) == pytest.approx(1) for name, p in forecasts.items() if name not in ("market", "half"))
    assert set(forecasts["half"].values()) == {0.5}
    ladder = json.loads(run_arena(site, "show", "kalshi/KXSNOWOSLO-NEXT", "--json"))["forecast_times"][0]["said"]
    assert sum(ladder["market"].values()) > 1.2  # each for itself
    assert "Norges Bank" in run_arena(site, "show", "KXNORGES-NEXT")


def test_local_documents_and_extracts_need_no_key(site: Any):
    write(site, context={"search": ["local"]}, entries={"market": "market"})
    stage(site, "collect")
    assert "5 contexts made" in stage(site, "context")


def test_the_file_that_init_writes_is_an_arena_that_runs(site: Any):
    assert site.foretell("init", "arena", "new", "--set", "name=fresh").returncode == 0
    tried = run_arena(site, "run", "new", "--sandbox")
    assert "15 forecasts, 0 failed" in tried
    assert "fresh-sandbox" in tried
    assert json.loads(run_arena(site, "show", "new", "--json"))["events"].get("selected", 0) == 0
    out = run_arena(site, "run", "new", "--once")
    assert "5 taken up" in out
    assert "15 forecasts, 0 failed" in out
    status = json.loads(run_arena(site, "show", "new", "--json"))
    assert status["arena"] == "fresh"
    assert status["entries"]["market"]["forecasts"] == status["events"]["selected"] > 0
    assert "--force" in site.foretell("init", "arena", "new").stderr


def test_late_service_asks_nothing_as_of_an_earlier_time(site: Any):
    write(site, entries={"market": "market"}, context={})
    stage(site, "collect")
    (site.folder / "clock").write_text((NOW + timedelta(days=2)).isoformat())
    out = stage(site, "context")
    assert "missed: " in out
    assert "too late" in json.dumps(json.loads(run_arena(site, "show", "--json"))["missed"])


FORECAST, CONTEXT = ("run", "--once", "--stage", "forecast"), ("run", "--once", "--stage", "context")


@pytest.mark.parametrize(
    ("fields", "arguments", "problem"),
    [
        ({"entries": {"a": {"forecaster": "marke"}}}, FORECAST, "entries.a: no forecaster is called 'marke'"),
        (
            {"entries": {"a": {"forecaster": "agent", "model": "openai:x", "options": {"variant": "odd"}}}},
            FORECAST,
            "entries.a.options.variant: is 'odd'; expected 'full', 'no-belief', 'zero-shot' or 'batch'",
        ),
        ({"entries": {"a": {"forecaster": "agent"}}}, FORECAST, "entries.a.models"),
        ({"context": {"search": ["altavista"]}}, CONTEXT, "no search engine is called 'altavista'"),
        ({"context": {"models": {"summariser": "openai:x"}}}, CONTEXT, "context.search"),
        ({"select": {"per_day": 0}}, ("show",), "arena.yaml, field select"),
        ({}, (*FORECAST, "--entry", "nobody"), "no entry is called 'nobody'"),
        ({}, ("run", "--stage", "collect", "--entry", "market"), "--entry: has no effect without the stage forecast"),
        ({}, ("show", "NOTHING"), "no event 'NOTHING'"),
    ],
)
def test_invalid_arena_is_reported_in_one_line(
    site: Any, fields: dict[str, Any], arguments: tuple[str, ...], problem: str
):
    write(site, **{"entries": {"market": "market"}, "context": {}, **fields})
    done = site.foretell("arena", *arguments)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_platform_without_its_key_is_named(site: Any):
    write(site, platforms=["metaculus"])
    done = site.with_environment(METACULUS_TOKEN="").foretell("arena", "run", "--once", "--stage", "collect")
    assert (done.returncode, "METACULUS_TOKEN" in done.stderr) == (2, True)
