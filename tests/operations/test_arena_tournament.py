"""`foretell tournament run prophet-arena:…` and its results: every event is answered once a round, despite failures."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fakes.background import Background
from fakes.models import BackgroundModels
from fakes.samples import prophet_arena_body, weekly_event_body, weekly_release_body
from foretell.operations.requests.tournaments import TournamentResultsRequest, TournamentRunRequest
from foretell.operations.tournament import enter
from foretell.operations.tournament_results import TournamentResults, score_tournaments
from foretell.practice.markets.prophet_arena import PracticeProphetArena
from foretell.practice.server import PracticeServer, json_response
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings, load_settings
from foretell.runs.store import RunStore
from foretell.tournaments.question_visit import TournamentResult
from foretell.web.app import create_app

KEY, MODEL = "pa_live_canary_9", "openrouter:openai/gpt-5-mini"
BRAIN = "foretell.practice.models.scripts:agent_script"
NOW = datetime(2026, 11, 16, 10, tzinfo=UTC)
CLOSES = "2026-11-22T04:59:00Z"
CERTIFICATES = ssl.create_default_context()


def read_already(*_: Any, **__: Any) -> ssl.SSLContext:
    return CERTIFICATES


class World:
    """The arena and a model on this machine."""

    def __init__(self, home: Path, provider: BackgroundModels) -> None:
        self.home, self.clock, self.provider = home, home / "clock.txt", provider
        week = [weekly_event_body(f"w{n}", f"KX{n}", f"Will {n} happen?", {"Yes": "It does."}) for n in range(3)]
        live = [prophet_arena_body(f"e{n}", f"Who wins {n}?", {"Red": None, "Blue": None}) for n in range(2)]
        self.arena = PracticeProphetArena(
            live, key=KEY, now=self.now, release=weekly_release_body("2026-11-15", CLOSES, *week)
        )
        self.arena.weekly_agent = "ours"
        self.at(NOW)
        self.site: Background[PracticeServer] = Background(self.arena.server)

    def at(self, time: datetime) -> None:
        self.clock.write_text(time.isoformat(), encoding="utf-8")

    def now(self) -> datetime:
        return datetime.fromisoformat(self.clock.read_text(encoding="utf-8"))

    @property
    def settings(self) -> Settings:
        settings = load_settings({
            "FORETELL_HOME": str(self.home),
            "FORETELL_CLOCK": f"file:{self.clock}",
            "FORETELL_PROPHET_ARENA_URL": self.site.url,
            "FORETELL_OPENROUTER_URL": f"{self.provider.url}/api/v1",
            "ARENA_API_KEY": KEY,
            "OPENROUTER_API_KEY": KEY,
        })  # fmt: skip
        return replace(settings, network=True)

    def enter_track(self, track: str = "weekly", agent: str | None = None, **fields: Any) -> TournamentResult:
        changes = {"tournament.budget": 5.0, "tournament.agent": agent, "forecaster": "agent"}
        values = {"tournament": f"prophet-arena:{track}", "model": MODEL, "set": changes, **fields}
        done = asyncio.run(enter(TournamentRunRequest.read(values), self.settings))
        assert isinstance(done, TournamentResult)
        return done

    def results(self, **fields: Any) -> TournamentResults:
        return asyncio.run(score_tournaments(TournamentResultsRequest.read(fields), self.settings))

    @property
    def sent(self) -> list[tuple[str, int]]:
        return [(forecast["event"], forecast["window"]) for forecast in self.arena.forecasts]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(ssl, "create_default_context", read_already)
    with BackgroundModels(script=BRAIN) as provider:
        created = World(tmp_path, provider)
        yield created
        created.site.close()


def test_a_release_is_answered_once_and_scored_when_it_is_over(world: World):
    plan = world.enter_track(plan=True).plan
    assert plan is not None
    assert (plan.questions, plan.most, world.sent) == (3, 5.0, [])
    # If the key is refused, forecasts wait for a valid key, whatever the number of attempts.
    world.site.server.middleware = lambda request, handler: (
        json_response({}, 401) if request.method == "POST" else handler(request)
    )
    assert [world.enter_track().exit_code for _ in range(4)] == [3, 3, 3, 3]
    assert world.provider.stats()["arrived"] == 3, "one for each question"
    world.site.server.middleware = None
    world.arena.quota = 2
    done = world.enter_track()
    assert (done.account, done.open, done.exit_code) == ("ours", 3, 3)
    assert any("quota_exceeded" in row["problem"] for row in done.rows())
    assert world.sent == [("w0", 1), ("w1", 1)]
    assert all(forecast["rationale"] for forecast in world.arena.forecasts)
    # Forecasts over the quota wait, and are not paid for again.
    calls, world.arena.quota = world.provider.stats()["arrived"], None
    again = world.enter_track()
    assert (world.sent[2:], again.exit_code, again.billed) == ([("w2", 1)], 0, 0.0)
    assert world.provider.stats()["arrived"] == calls
    # The local record is lost; the arena still has the forecasts.
    state = world.home / "tournaments" / "prophet_arena-weekly" / "state.json"
    saved = state.read_bytes()
    for path in (state, world.home / "ledger.jsonl"):
        path.unlink()
    assert world.enter_track().rows() == []
    assert len(world.sent) == 3
    state.write_bytes(saved)

    before = world.results()
    assert (len(before.entered), before.boards) == (1, {})
    assert world.arena.release is not None
    for number, event in enumerate(world.arena.release["events"]):
        event["outcomes"][0]["resolution"] = "yes" if number % 2 else "no"
    world.at(NOW + timedelta(days=30))
    after = world.results(tournament="prophet-arena", bootstrap="draws=200")
    assert (after.entered[0].decided, after.entered[0].state) == (3, "3 sent")
    with closing(RunStore(world.settings.store)) as store:
        decided = [json.loads(text)["decided"] for _, text in store.summaries().values()]
    assert sum(decided) == 3, "the scores that lists show are stored with the outcomes"
    rows = {row["forecaster"]: row for row in after.rows()}
    assert set(rows) >= {"weekly", "always 0.5", "base rate"}
    assert (rows["weekly"]["n"], rows["weekly"]["completion"]) == (3, 1.0)
    assert rows["weekly"]["brier_index_low"] <= rows["weekly"]["brier_index"]
    assert world.results(tournament="prophet-arena:live").entered == ()
    assert len(world.results(tournament="prophet-arena:weekly", rounds=["live"]).entered) == 1
    with TestClient(create_app(world.settings, token="t"), base_url="http://127.0.0.1") as client:
        client.get("/login", params={"token": "t"})  # What was spent needs the token.
        page = client.get("/").text
    assert "<td>Prophet Arena</td>" in page
    assert '<td class="n">$0.00' in page


def test_every_round_of_a_live_event_is_answered(world: World):
    world.enter_track("live", agent="ours", limit=1)
    world.enter_track("live", agent="ours")
    assert world.sent == [("e0", 1), ("e1", 1)]
    assert world.enter_track("live", agent="ours").rows() == []
    # The next round of the first event, a day later.
    world.arena.events[0]["window"] = 2
    world.at(NOW + timedelta(days=1))
    dry = world.enter_track("live", agent="ours", dry_run=True)
    assert dry.requests is not None
    assert [request["body"]["window"] for request in dry.requests] == [2]
    world.enter_track("live", agent="ours")
    assert world.sent == [("e0", 1), ("e1", 1), ("e0", 2)]
    world.arena.weekly_agent = None
    with pytest.raises(InputError, match="name of the agent"):
        world.enter_track("live")
