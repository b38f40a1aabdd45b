"""`foretell tournament run metaculus:…`: every kind of question is forecast and commented once, whatever happens."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from fakes.background import Background
from fakes.markets import FakeMetaculus
from fakes.models import BackgroundModels
from fakes.processes import forks
from fakes.samples import SampleMetaculusQuestion, SampleMetaculusScale, metaculus_conditional_body, metaculus_post_body
from foretell.data import locked
from foretell.operations import (
    ATTEMPTS,
    TESTING_AREA,
    TournamentResult,
    TournamentResults,
    TournamentResultsRequest,
    TournamentRunRequest,
    enter,
    score_tournaments,
)
from foretell.practice import Handler, PracticeServer, ServerRequest, ServerResponse, json_response
from foretell.practice.markets import MetaculusCatalogue, MetaculusInbox
from foretell.questions import InputError
from foretell.runs import Settings, load_settings
from foretell.submit import SubmissionLedger

TOKEN, KEY = "metaculus-canary-123", "provider-canary-456"
BRAIN = "foretell.practice.models.scripts:agent_script"
MODEL = "openrouter:openai/gpt-5-mini"
NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)


def posts() -> list[dict[str, Any]]:
    """One post of every kind, and one that asks nothing."""

    def asked(id: int, title: str, **fields: Any) -> SampleMetaculusQuestion:
        times: dict[str, Any] = {
            "opens": "2026-11-01T00:00:00Z",
            "closes": "2026-12-15T00:00:00Z",
            "resolves": "2026-12-20T00:00:00Z",
        }
        return SampleMetaculusQuestion(id=id, title=title, **{**times, **fields})

    seconds = [datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2026, 2030)]
    when = SampleMetaculusScale(low=seconds[0], high=seconds[1], open_upper=True)
    goals = SampleMetaculusScale(low=-0.5, high=20.5, cells=21)
    level = SampleMetaculusScale(low=1, high=1000, zero=0, open_lower=True, open_upper=True)
    single = [
        asked(1, "Will it?"),
        asked(2, "Who?", kind="multiple_choice", options=("Ann", "Bob", "Cat"), closes="2026-11-17T00:00:00Z"),
        asked(3, "How much?", kind="numeric", scale=level),
        asked(4, "How many goals?", kind="discrete", scale=goals),
        asked(5, "When?", kind="date", scale=when),
    ]
    numbers = [asked(71 + n, f"({n})", label=f"part {n}", kind="numeric", scale=level) for n in range(2)]
    pair = asked(81, "If yes"), asked(82, "If no")
    return [
        *(metaculus_post_body(100 + one.id, one.title, one) for one in single),
        metaculus_post_body(106, "Which of them?", *(asked(61 + n, f"({n})", label=f"part {n}") for n in range(2))),
        metaculus_post_body(107, "How much each?", *numbers),
        metaculus_conditional_body(108, "Is it signed?", "Does it grow?", *pair),
        {**metaculus_post_body(109, "An essay"), "question": None, "notebook": {"id": 1}},
        metaculus_post_body(110, "Over?", asked(10, "Over?", closes="2026-11-15T09:00:00Z")),
    ]


QUESTIONS = [1, 2, 3, 4, 5, 61, 62, 71, 72, 81, 82]
"""Numbers of the questions that can be forecast."""
COMMENTED = [101, 102, 103, 104, 105, 106, 107, 107, 108, 108]
"""Posts, as often as they are commented on."""


class World:
    """Metaculus and a model on this machine, and the settings that lead there."""

    def __init__(self, home: Path, provider: BackgroundModels) -> None:
        self.clock = home / "clock.txt"
        self.inbox = MetaculusInbox(now=self.now)
        self.fake = FakeMetaculus({}, token=TOKEN).having(MetaculusCatalogue(posts())).taking(self.inbox)
        self.site: Background[PracticeServer] = Background(self.fake.server)
        self.provider, self.home = provider, home
        self.at(NOW)

    def at(self, moment: datetime) -> None:
        self.clock.write_text(moment.isoformat(), encoding="utf-8")

    def now(self) -> datetime:
        return datetime.fromisoformat(self.clock.read_text(encoding="utf-8"))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "FORETELL_HOME": str(self.home),
            "FORETELL_CLOCK": f"file:{self.clock}",
            "FORETELL_METACULUS_URL": f"{self.site.url}/api",
            "FORETELL_OPENROUTER_URL": f"{self.provider.url}/api/v1",
            "METACULUS_TOKEN": TOKEN,
            "OPENROUTER_API_KEY": KEY,
        }

    @property
    def settings(self) -> Settings:
        return replace(load_settings(self.environment), network=True)

    def visit(self, own: Mapping[str, Any] | None = None, **fields: Any) -> TournamentResult:
        changes = {f"tournament.{key}": value for key, value in (own or {}).items()} | fields.pop("set", {})
        request = TournamentRunRequest.read({"tournament": "metaculus:cup", "model": MODEL, "set": changes, **fields})
        done = asyncio.run(enter(request, self.settings))
        assert isinstance(done, TournamentResult)
        return done

    @property
    def forecast(self) -> list[int]:
        return sorted(one["question"] for one in self.inbox.forecasts)

    @property
    def commented(self) -> list[int]:
        return sorted(one["on_post"] for one in self.inbox.comments)


class Killer:
    """Stands before a server and kills whoever posts something: first before it is taken, the second time after."""

    def __init__(self) -> None:
        self.victim: int | None = None
        self.killed: list[tuple[str, bool]] = []
        """What was posted, and whether it had been taken."""

    async def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        name = f"{request.path} {request.body!r}"
        taken = (name, False) in self.killed
        lost = json_response({}, 503)
        if request.method != "POST" or self.victim is None or (name, True) in self.killed:
            lost, taken = None, True
        answer = handler(request) if taken else lost
        answer = await answer if isawaitable(answer) else answer
        if lost is not None and self.victim is not None:
            self.killed.append((name, taken))
            os.kill(self.victim, signal.SIGKILL)
        assert answer is not None
        return answer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with BackgroundModels(script=BRAIN) as provider:
        made = World(tmp_path, provider)
        yield made
        made.site.close()


def test_every_kind_is_forecast_and_commented_once(world: World):
    done = world.visit(own={"budget": 5.0})
    assert done.exit_code == 0, done
    assert world.forecast == QUESTIONS
    assert world.commented == COMMENTED
    assert {one["is_private"] for one in world.inbox.comments} == {True}
    assert all(one["included_forecast"] for one in world.inbox.comments if one["on_post"] <= 105)
    for one in world.inbox.comments:
        assert "2026-11-15 10:00 UTC" in one["text"]
        assert "Weighed" in one["text"], "the model's reasons"
    texts = {one["on_post"]: one["text"] for one in world.inbox.comments}
    assert "8 in 10: 2026-11-" in texts[105], "dates are told as dates"
    (when,) = [one["continuous_cdf"] for one in world.inbox.forecasts if one["question"] == 5]
    assert when[-1] <= 0.999
    # The practice model says a few days from now: the first twentieth of four years.
    assert when[60] > 0.9
    assert any("notebook" in reason for reason in done.skipped)
    # What closes first is asked first.
    assert done.rows()[0]["question"] == "metaculus/102"
    assert done.page is not None
    page = done.page.read_text(encoding="utf-8")
    assert page.count("#comment-") == len(COMMENTED)
    assert "https://www.metaculus.com/questions/105/#comment-" in page
    assert "11 open" not in page
    assert "of $5 in all" in page

    calls = world.provider.stats()["arrived"]
    again = world.visit(own={"budget": 5.0})
    assert (again.exit_code, again.rows()) == (0, [])
    assert again.billed_in_all == pytest.approx(done.billed_in_all) != 0
    assert world.provider.stats()["arrived"] == calls
    assert (world.forecast, world.commented) == (QUESTIONS, COMMENTED)
    stored = "".join(
        path.read_text(encoding="utf-8", errors="ignore") for path in world.home.rglob("*") if path.is_file()
    )
    assert TOKEN not in stored
    assert KEY not in stored


def test_what_the_platform_shows_as_answered_is_not_asked_though_everything_here_was_lost(world: World):
    world.visit(limit=9)
    for path in world.home.rglob("*"):
        if path.is_file() and path != world.clock:
            path.unlink()
    world.visit()
    assert world.forecast == QUESTIONS
    # Of a group that is answered in part, only the rest is asked.
    world.inbox.forecasts = [one for one in world.inbox.forecasts if one["question"] != 62]
    (world.home / "ledger.jsonl").unlink()
    done = world.visit()
    assert [row["question"] for row in done.rows()] == ["metaculus/106"]
    assert world.forecast == QUESTIONS


def test_a_question_is_forecast_again_as_the_policy_says(world: World):
    world.visit(limit=2)
    first = world.forecast
    assert first == [1, 2]
    world.fake.having(MetaculusCatalogue(posts()[:2]))
    world.at(NOW + timedelta(hours=3))
    assert world.visit(own={"update_after": 1}).rows() == []
    world.at(NOW + timedelta(days=1, hours=3))
    # One of the two closes in eleven hours.
    assert [row["question"] for row in world.visit(own={"before_close": 12}).rows()] == ["metaculus/102"]
    assert world.visit(own={"before_close": 12}).rows() == []
    assert [row["question"] for row in world.visit(own={"update_after": 1}).rows()] == ["metaculus/101"]
    assert world.forecast == [1, 1, 2, 2]
    assert world.commented == [101, 101, 102, 102]


def test_what_lists_do_not_tell_is_read_from_the_post(world: World):
    world.visit(limit=1)
    (world.home / "ledger.jsonl").unlink()
    (world.home / "tournaments" / "metaculus-cup" / "state.json").unlink()
    plain = world.fake.get

    def without_own_forecasts(request: ServerRequest) -> tuple[int, Any]:
        status, body = plain(request)
        for post in body.get("results", ()) if request.path.endswith("/posts/") else ():
            (post.get("question") or {}).pop("my_forecasts", None)
        return status, body

    world.fake.get = without_own_forecasts
    assert [row["question"] for row in world.visit(limit=1).rows()] == ["metaculus/101"]
    assert world.forecast == [1, 2]


def test_a_spent_budget_stops_and_is_remembered(world: World):
    first = world.visit(own={"budget": 5.0}, limit=3)
    assert 0 < first.billed_in_all < 5
    calls, sent = world.provider.stats()["arrived"], len(world.inbox.forecasts)
    done = world.visit(own={"budget": first.billed_in_all})
    assert done.exit_code == 3
    assert "used up" in done.stopped
    assert (world.provider.stats()["arrived"], len(world.inbox.forecasts)) == (calls, sent)
    # Hardly anything is left, which is no fault of the questions: they are not given up.
    for _ in range(2):
        left = world.visit(own={"budget": first.billed_in_all + 1e-6}, limit=1)
        assert left.exit_code == 3
        assert "budget of the tournament" in left.rows()[0]["problem"]
        assert left.billed_in_all - first.billed_in_all < 0.001
    state = json.loads((world.home / "tournaments" / "metaculus-cup" / "state.json").read_text(encoding="utf-8"))
    assert {one["attempts"] for one in state["pending"].values()} == {0}


def test_what_fails_is_not_sent_is_tried_again_and_given_up_at_last(world: World):
    world.fake.having(MetaculusCatalogue(posts()[:1]))
    model = "openrouter:openai/gpt-5-nano"
    for _ in range(ATTEMPTS):
        done = world.visit(model=model, set={"budget.question": 1e-9})
        assert done.exit_code == 3
        assert done.rows()[0]["problem"]
        assert not done.rows()[0]["sent"]
    given_up = world.visit(model=model, set={"budget.question": 1e-9})
    assert given_up.rows() == []
    assert any(f"given up after {ATTEMPTS} runs: metaculus/101" in note for note in given_up.notes)
    assert world.inbox.forecasts == world.inbox.comments == []
    # A day later it is another question.
    world.at(NOW + timedelta(days=1, minutes=1))
    assert world.visit(model=model).exit_code == 0
    assert world.forecast == [1]


def test_one_at_a_time_and_nothing_sent_in_a_dry_run(world: World):
    with locked(world.home / "tournaments" / "metaculus-cup" / "lock", wait=False):
        busy = world.visit()
    assert (busy.exit_code, busy.open) == (0, 0)
    assert "another process" in busy.notes[0]
    looked = world.visit(dry_run=True, limit=2)
    assert looked.exit_code == 0
    assert world.inbox.forecasts == []
    bodies = [one["body"] for one in looked.to_dict()["requests"]]
    assert [len(body) if isinstance(body, list) else body["on_post"] for body in bodies] == [2, 102, 101]
    calls = world.provider.stats()["arrived"]
    world.visit(limit=2)
    assert world.forecast == [1, 2]
    assert world.provider.stats()["arrived"] == calls, "what was paid for in the dry run is used"


def test_the_sandbox_is_the_testing_area(world: World):
    done = world.visit(sandbox=True, limit=1, summary=world.home / "summary.md")
    assert done.tournament == TESTING_AREA
    lists = [one.query["tournaments"] for one in world.site.server.requests if one.path.endswith("/posts/")]
    assert set(lists) == {TESTING_AREA}
    written = (world.home / "summary.md").read_text(encoding="utf-8")
    assert "1 forecast sent with their comments, 0 failed" in written
    assert "[comment](https://www.metaculus.com/questions/102/#comment-1000)" in written


def test_a_damaged_state_a_wrong_token_and_a_nameless_tournament_are_told(world: World):
    state = world.home / "tournaments" / "metaculus-cup" / "state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"pending": 3}', encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        world.visit()
    with pytest.raises(InputError, match="not the name of a tournament"):
        world.visit(tournament="metaculus:a b")
    state.unlink()
    world.fake.token = "another"
    with pytest.raises(InputError, match="could not be reached") as raised:
        world.visit()
    assert TOKEN not in str(raised.value)


def live(environment: dict[str, str]) -> None:
    """One visit in a process of its own."""
    settings = load_settings(environment)
    changes = {"tournament.budget": 5.0, "concurrency": 1}
    request = TournamentRunRequest(tournament="metaculus:cup", model=MODEL, set=changes)
    code = asyncio.run(enter(request, settings)).exit_code
    os._exit(code)


def test_killed_at_everything_it_sends_and_resumed_without_a_double(world: World):
    """Every life is killed at the first thing it posts, to the model or to the platform."""
    everything = posts()
    world.fake.having(MetaculusCatalogue([everything[n] for n in (0, 4, 5)]))
    killer = world.site.server.middleware = world.provider.server.middleware = Killer()
    exits: list[int | None] = []
    while not exits or exits[-1] == -signal.SIGKILL:
        life = forks().Process(target=live, args=(world.environment,))
        life.start()
        killer.victim = life.pid
        life.join(60)
        exits.append(life.exitcode)
    assert exits[-1] == 0
    assert world.forecast == [1, 5, 61, 62]
    assert world.commented == [101, 105, 106]
    # Three answers of the model, three requests with forecasts (a group's go together) and three comments, each killed
    # once before it was taken and once after. Only of the model is an answer lost that nobody can read back.
    assert len(killer.killed) == len(set(killer.killed)) == 2 * 9 == len(exits) - 1
    assert SubmissionLedger(world.home / "ledger.jsonl").verify().whole
    state = json.loads((world.home / "tournaments" / "metaculus-cup" / "state.json").read_text(encoding="utf-8"))
    assert state["outbox"] == []
    assert state["pending"] == {}


def test_what_was_said_is_scored_when_it_has_come_out(world: World):
    def asked(number: int, **fields: Any) -> dict[str, Any]:
        times = {"opens": "2026-11-01T00:00:00Z", "closes": "2026-12-15T00:00:00Z", "resolves": "2026-12-20T00:00:00Z"}
        one = SampleMetaculusQuestion(id=number, title=f"Will {number}?", **times, **fields)
        return metaculus_post_body(100 + number, one.title, one)

    def results() -> TournamentResults:
        request = TournamentResultsRequest.read({"tournament": "metaculus", "bootstrap": "draws=200"})
        return asyncio.run(score_tournaments(request, world.settings))

    world.fake.having(MetaculusCatalogue([asked(n) for n in (1, 2, 3)]))
    plan = world.visit(own={"budget": 5.0}, plan=True).plan
    assert plan is not None
    assert (plan.questions, plan.cells, world.forecast) == (3, 3, [])
    world.visit()
    assert results().boards == {}
    over = {"status": "resolved", "resolved": "2026-12-16T00:00:00Z"}
    ends = {1: "yes", 2: "no", 3: "annulled"}
    world.fake.having(MetaculusCatalogue([asked(n, resolution=end, **over) for n, end in ends.items()]))
    world.at(NOW + timedelta(days=60))
    found = results()
    (entered,) = found.entered
    assert (entered.name, entered.state, entered.decided) == ("cup", "3 sent", 2)
    assert entered.billed > 0
    rows = {row["forecaster"]: row for row in found.rows()}
    # What was called off counts for nobody.
    assert (rows["cup"]["n"], rows["always 0.5"]["brier_index"]) == (2, pytest.approx(50))


def test_a_post_that_cannot_be_read_does_not_hold_up_the_others(world: World):
    broken = [True]

    async def spoil(request: ServerRequest, handler: Handler) -> ServerResponse:
        if broken and request.method == "GET" and request.path.rstrip("/").endswith("/posts/103"):
            return ServerResponse(body=b"<html>Just a moment</html>", headers={"Content-Type": "text/html"})
        answer = handler(request)
        return await answer if isawaitable(answer) else answer

    world.site.server.middleware = spoil
    done = world.visit()
    others = [one for one in QUESTIONS if one != 3]
    assert (world.forecast, done.exit_code) == (others, 3)
    (failed,) = [row for row in done.forecasts if not row.sent]
    assert f"How much? (metaculus/103): {failed.answer} (not sent: " in str(done)
    assert "not JSON" in failed.problem
    assert world.visit().billed == 0
    broken.clear()
    done = world.visit()
    # What was forecast then is sent now, and nothing is asked again.
    assert (done.billed, done.exit_code, [row.question for row in done.forecasts]) == (0, 0, ["metaculus/103"])
    assert (world.forecast, world.commented) == (QUESTIONS, COMMENTED)


def test_a_forecast_that_stays_unreadable_for_a_day_is_dropped(world: World):
    def spoil(request: ServerRequest, handler: Handler) -> Any:
        return json_response({}, 500) if request.path.rstrip("/").endswith("/posts/102") else handler(request)

    world.site.server.middleware = spoil
    world.visit(limit=1)
    state = world.home / "tournaments/metaculus-cup/state.json"
    assert json.loads(state.read_text(encoding="utf-8"))["outbox"]
    world.at(NOW + timedelta(days=3))  # Closed by then.
    assert world.visit(limit=1).exit_code == 3
    assert not json.loads(state.read_text(encoding="utf-8"))["outbox"]


@pytest.mark.parametrize("reply", [b"{}", b"[]", b'{"id": null}', b"<html>", b""])
def test_a_comment_whose_reply_cannot_be_read_is_read_back(world: World, reply: bytes):
    async def spoil(request: ServerRequest, handler: Handler) -> ServerResponse:
        answer = handler(request)
        answer = await answer if isawaitable(answer) else answer
        return replace(answer, body=reply) if "comments/create" in request.path else answer

    world.site.server.middleware = spoil
    done = world.visit(limit=2)
    assert (done.exit_code, world.forecast, world.commented) == (0, [1, 2], [101, 102])


def test_a_question_of_a_group_that_closes_meanwhile_costs_the_others_no_comment(world: World):
    async def close(request: ServerRequest, handler: Handler) -> ServerResponse:
        answer = handler(request)
        answer = await answer if isawaitable(answer) else answer
        if request.method != "GET" or not request.path.rstrip("/").endswith("/posts/106"):
            return answer
        body = json.loads(answer.body)
        body["group_of_questions"]["questions"][0]["status"] = "closed"
        return json_response(body)

    world.site.server.middleware = close
    done = world.visit()
    assert (world.forecast, world.commented) == ([one for one in QUESTIONS if one != 61], COMMENTED)
    assert "(not sent: forecast: the question takes no forecasts: its status is closed)" in str(done)


def edited(post: dict[str, Any], change: str) -> dict[str, Any]:
    """A post as its author changed it between two visits."""
    question = dict(post["question"])
    if change == "text":
        return {**post, "title": "Will it at last?", "question": {**question, "title": "Will it at last?"}}
    if change == "criteria":
        return {**post, "question": {**question, "resolution_criteria": "Another thing counts."}}
    return {**post, "question": {**question, "scheduled_close_time": "2026-11-25T00:00:00Z"}}


@pytest.mark.parametrize("change", ["text", "criteria", "close"])
def test_a_question_edited_between_two_visits_is_asked_as_it_reads_now(world: World, change: str):
    before = posts()[0]
    world.fake.having(MetaculusCatalogue([before]))
    model = "openrouter:openai/gpt-5-nano"
    assert world.visit(model=model, set={"budget.question": 1e-9}).exit_code == 3
    world.fake.having(MetaculusCatalogue([edited(before, change)]))
    assert world.visit(model=model).exit_code == 0
    asked = world.provider.server.queries[-1].words
    told = {"text": "Will it at last?", "criteria": "Another thing counts.", "close": "2026-11-25"}
    assert told[change] in asked
    assert world.forecast == [1]


@pytest.mark.parametrize("change", ["", "text", "criteria", "close"])
def test_an_unsent_forecast_of_a_question_that_was_edited_is_not_sent(world: World, change: str):
    before = posts()[0]
    world.fake.having(MetaculusCatalogue([before]))

    def spoil(request: ServerRequest, handler: Handler) -> Any:
        return json_response({}, 500) if request.path.rstrip("/").endswith("/posts/101") else handler(request)

    world.site.server.middleware = spoil
    assert world.visit().exit_code == 3
    calls = world.provider.stats()["arrived"]
    world.site.server.middleware = None
    world.at(NOW + timedelta(hours=20))  # Early the next day.
    world.fake.having(MetaculusCatalogue([edited(before, change) if change else before]))
    done = world.visit()
    assert (done.exit_code, world.forecast, world.commented) == (0, [1], [101])
    # A forecast stands as long as the question reads as it did, whatever becomes of its window.
    again = change in ("text", "criteria")
    assert (world.provider.stats()["arrived"] > calls) == again
    assert any("metaculus/101 was edited after it was forecast" in note for note in done.notes) == again
    assert world.visit().rows() == []
