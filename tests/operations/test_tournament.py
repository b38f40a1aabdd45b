"""`foretell tournament run metaculus:…`: every kind of question is forecast and commented once, despite failures."""

import asyncio
import json
import os
import signal
import traceback
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
from foretell.models.providers.function import model_name
from foretell.operations.requests.tournaments import TournamentResultsRequest, TournamentRunRequest
from foretell.operations.tournament import TESTING_AREA, enter
from foretell.operations.tournament_results import TournamentResults, score_tournaments
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox
from foretell.practice.server import Handler, PracticeServer, ServerRequest, ServerResponse, json_response
from foretell.questions.errors import InputError
from foretell.questions.file_lock import locked
from foretell.runs.settings import Settings, load_settings
from foretell.tournaments.ledger import SubmissionLedger
from foretell.tournaments.policy import ATTEMPTS
from foretell.tournaments.question_visit import TournamentResult

TOKEN, KEY = "metaculus-canary-123", "provider-canary-456"
BRAIN = "foretell.practice.models.scripts:agent_script"
MODEL = "openrouter:openai/gpt-5-mini"
NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)


def posts() -> list[dict[str, Any]]:
    """One post of every kind, and one without a question."""

    def sample(id: int, title: str, **fields: Any) -> SampleMetaculusQuestion:
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
        sample(1, "Will it?"),
        sample(2, "Who?", kind="multiple_choice", options=("Ann", "Bob", "Cat"), closes="2026-11-17T00:00:00Z"),
        sample(3, "How much?", kind="numeric", scale=level),
        sample(4, "How many goals?", kind="discrete", scale=goals),
        sample(5, "When?", kind="date", scale=when),
    ]
    numbers = [sample(71 + n, f"({n})", label=f"part {n}", kind="numeric", scale=level) for n in range(2)]
    pair = sample(81, "If yes"), sample(82, "If no")
    return [
        *(metaculus_post_body(100 + question.id, question.title, question) for question in single),
        metaculus_post_body(106, "Which of them?", *(sample(61 + n, f"({n})", label=f"part {n}") for n in range(2))),
        metaculus_post_body(107, "How much each?", *numbers),
        metaculus_conditional_body(108, "Is it signed?", "Does it grow?", *pair),
        {**metaculus_post_body(109, "An essay"), "question": None, "notebook": {"id": 1}},
        metaculus_post_body(110, "Over?", sample(10, "Over?", closes="2026-11-15T09:00:00Z")),
    ]


QUESTIONS = [1, 2, 3, 4, 5, 61, 62, 71, 72, 81, 82]
"""Numbers of the questions that can be forecast."""
COMMENTED = [101, 102, 103, 104, 105, 106, 107, 107, 108, 108]
"""Posts, repeated for each comment."""


class World:
    """Metaculus and a model on this machine, and settings that use them."""

    def __init__(self, home: Path, provider: BackgroundModels) -> None:
        self.clock = home / "clock.txt"
        self.inbox = MetaculusInbox(now=self.now)
        self.fake = FakeMetaculus({}, token=TOKEN).having(MetaculusCatalogue(posts())).taking(self.inbox)
        self.site: Background[PracticeServer] = Background(self.fake.server)
        self.provider, self.home = provider, home
        self.at(NOW)

    def at(self, time: datetime) -> None:
        self.clock.write_text(time.isoformat(), encoding="utf-8")

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

    def take_part(self, own: Mapping[str, Any] | None = None, **fields: Any) -> TournamentResult:
        own = {"budget": 5.0, **(own or {})}
        changes = {f"tournament.{key}": value for key, value in own.items()} | fields.pop("set", {})
        request = TournamentRunRequest.read({"tournament": "metaculus:cup", "model": MODEL, "set": changes, **fields})
        done = asyncio.run(enter(request, self.settings))
        assert isinstance(done, TournamentResult)
        return done

    @property
    def forecast(self) -> list[int]:
        return sorted(forecast["question"] for forecast in self.inbox.forecasts)

    @property
    def commented(self) -> list[int]:
        return sorted(comment["on_post"] for comment in self.inbox.comments)


class Killer:
    """A middleware that kills the posting process: first before the request is accepted, then after."""

    def __init__(self) -> None:
        self.victim: int | None = None
        self.killed: list[tuple[str, bool]] = []
        """What was posted, and whether it had been accepted."""

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
        created = World(tmp_path, provider)
        yield created
        created.site.close()


def test_every_kind_is_forecast_and_commented_once(world: World):
    done = world.take_part(own={"budget": 5.0})
    assert done.exit_code == 0, done
    assert world.forecast == QUESTIONS
    assert world.commented == COMMENTED
    assert {entry["is_private"] for entry in world.inbox.comments} == {True}
    assert all(entry["included_forecast"] for entry in world.inbox.comments if entry["on_post"] <= 105)
    for comment in world.inbox.comments:
        assert "2026-11-15 10:00 UTC" in comment["text"]
        assert "Weighed" in comment["text"], "the model's reasons"
    texts = {entry["on_post"]: entry["text"] for entry in world.inbox.comments}
    assert "8 in 10: 2026-11-" in texts[105], "dates are told as dates"
    (when,) = [forecast["continuous_cdf"] for forecast in world.inbox.forecasts if forecast["question"] == 5]
    assert when[-1] <= 0.999
    # The sandbox model answers a few days from now, the first twentieth of four years.
    assert when[60] > 0.9
    assert any("notebook" in reason for reason in done.skipped)
    # Questions that close first are asked first.
    assert done.rows()[0]["question"] == "metaculus/102"
    assert done.page is not None
    page = done.page.read_text(encoding="utf-8")
    assert page.count("#comment-") == len(COMMENTED)
    assert f"{world.site.url}/questions/105/#comment-" in page, "the practice site has the page of a made-up question"
    assert "11 open" not in page
    assert "of $5.00 in all" in page

    calls = world.provider.stats()["arrived"]
    again = world.take_part(own={"budget": 5.0})
    assert (again.exit_code, again.rows()) == (0, [])
    assert again.billed_in_all == pytest.approx(done.billed_in_all) != 0
    assert world.provider.stats()["arrived"] == calls
    assert (world.forecast, world.commented) == (QUESTIONS, COMMENTED)
    stored = "".join(
        path.read_text(encoding="utf-8", errors="ignore") for path in world.home.rglob("*") if path.is_file()
    )
    assert TOKEN not in stored
    assert KEY not in stored


def test_questions_answered_on_the_platform_are_not_asked_after_data_loss(world: World):
    world.take_part(limit=9)
    for path in world.home.rglob("*"):
        if path.is_file() and path != world.clock:
            path.unlink()
    world.take_part()
    assert world.forecast == QUESTIONS
    # In a partly answered group, only the rest is asked.
    world.inbox.forecasts = [forecast for forecast in world.inbox.forecasts if forecast["question"] != 62]
    (world.home / "ledger.jsonl").unlink()
    done = world.take_part()
    assert [row["question"] for row in done.rows()] == ["metaculus/106"]
    assert world.forecast == QUESTIONS


def test_a_question_is_forecast_again_according_to_the_policy(world: World):
    world.take_part(limit=2)
    first = world.forecast
    assert first == [1, 2]
    world.fake.having(MetaculusCatalogue(posts()[:2]))
    world.at(NOW + timedelta(hours=3))
    assert world.take_part(own={"update_after": 1}).rows() == []
    world.at(NOW + timedelta(days=1, hours=3))
    # Another model answers otherwise: the same forecast is not sent twice. One of the two closes in eleven hours.
    other = "openrouter:openai/gpt-6-luna"
    done = world.take_part(own={"before_close": 12}, model=other)
    assert [row["question"] for row in done.rows()] == ["metaculus/102"]
    assert world.take_part(own={"before_close": 12}, model=other).rows() == []
    done = world.take_part(own={"update_after": 1}, model=other)
    assert [row["question"] for row in done.rows()] == ["metaculus/101"]
    assert world.forecast == [1, 1, 2, 2]
    assert world.commented == [101, 101, 102, 102]


def test_own_forecasts_missing_from_lists_are_read_from_the_post(world: World):
    world.take_part(limit=1)
    (world.home / "ledger.jsonl").unlink()
    (world.home / "tournaments" / "metaculus-cup" / "state.json").unlink()
    plain = world.fake.get

    def without_own_forecasts(request: ServerRequest) -> tuple[int, Any]:
        status, body = plain(request)
        for post in body.get("results", ()) if request.path.endswith("/posts/") else ():
            (post.get("question") or {}).pop("my_forecasts", None)
        return status, body

    world.fake.get = without_own_forecasts
    assert [row["question"] for row in world.take_part(limit=1).rows()] == ["metaculus/101"]
    assert world.forecast == [1, 2]


def test_a_spent_budget_stops_and_is_remembered(world: World):
    first = world.take_part(own={"budget": 5.0}, limit=3)
    assert 0 < first.billed_in_all < 5
    calls, sent = world.provider.stats()["arrived"], len(world.inbox.forecasts)
    done = world.take_part(own={"budget": first.billed_in_all})
    assert done.exit_code == 3
    assert "used up" in done.stopped
    assert (world.provider.stats()["arrived"], len(world.inbox.forecasts)) == (calls, sent)
    # Questions are not given up for lack of budget.
    for _ in range(2):
        left = world.take_part(own={"budget": first.billed_in_all + 1e-6}, limit=1)
        assert left.exit_code == 3
        assert "budget of the tournament" in left.rows()[0]["problem"]
        assert left.billed_in_all - first.billed_in_all < 0.001
    state = json.loads((world.home / "tournaments" / "metaculus-cup" / "state.json").read_text(encoding="utf-8"))
    assert {entry["attempts"] for entry in state["pending"].values()} == {0}


def test_a_paid_model_needs_a_budget_before_anything_is_asked(world: World):
    with pytest.raises(InputError, match=r"--budget: this may cost money: .*--plan only shows the cost"):
        world.take_part(own={"budget": None})
    assert world.provider.stats()["arrived"] == 0
    assert world.take_part(own={"budget": None}, budget=1.0, limit=1).exit_code == 0


def test_a_function_takes_part_with_a_dictionary_or_by_passing_the_prompt_on(world: World):
    world.fake.having(MetaculusCatalogue(posts()[:1]))
    prompts: list[str] = []

    def dictionary(prompt: str) -> dict[str, Any]:
        prompts.append(prompt)
        return {"probability": 0.4, "reason": "It rarely happens."}

    def text(prompt: str) -> str:
        answer = {"tool": "submit", "reason": "It often happens.", "p": 0.6}
        return f"```json\n{json.dumps(answer)}\n```"

    for model in (dictionary, text):
        done = world.take_part(own={"budget": None, "update_after": 1}, model=model_name(model))
        assert done.exit_code == 0, done
        world.at(NOW + timedelta(days=2))
    assert [forecast["probability_yes"] for forecast in world.inbox.forecasts] == [0.4, 0.6]
    assert "It rarely happens." in world.inbox.comments[0]["text"]
    assert "Call a tool with one JSON object: its name as `tool`" in prompts[0]
    assert '"Probability that it resolves YES."' in prompts[0]


def test_failed_forecasts_are_retried_and_finally_given_up(world: World):
    world.fake.having(MetaculusCatalogue(posts()[:1]))
    model = "openrouter:openai/gpt-5-nano"
    for _ in range(ATTEMPTS):
        done = world.take_part(model=model, set={"budget.question": 1e-9})
        assert done.exit_code == 3
        assert done.rows()[0]["problem"]
        assert not done.rows()[0]["sent"]
    given_up = world.take_part(model=model, set={"budget.question": 1e-9})
    assert given_up.rows() == []
    assert any(f"given up after {ATTEMPTS} runs: metaculus/101" in note for note in given_up.notes)
    assert world.inbox.forecasts == world.inbox.comments == []
    # A day later it is treated as a new question.
    world.at(NOW + timedelta(days=1, minutes=1))
    assert world.take_part(model=model).exit_code == 0
    assert world.forecast == [1]


def test_only_one_process_works_and_a_dry_run_sends_nothing(world: World):
    with locked(world.home / "tournaments" / "metaculus-cup" / "lock", wait=False):
        busy = world.take_part()
    assert (busy.exit_code, busy.open) == (0, 0)
    assert "another process" in busy.notes[0]
    looked = world.take_part(dry_run=True, limit=2)
    assert looked.exit_code == 0
    assert world.inbox.forecasts == []
    bodies = [entry["body"] for entry in looked.to_dict()["requests"]]
    assert [len(body) if isinstance(body, list) else body["on_post"] for body in bodies] == [2, 102, 101]
    calls = world.provider.stats()["arrived"]
    world.take_part(limit=2)
    assert world.forecast == [1, 2]
    assert world.provider.stats()["arrived"] == calls, "what was paid for in the dry run is used"


def test_the_sandbox_is_the_testing_area(world: World):
    done = world.take_part(sandbox=True, limit=1, summary=world.home / "summary.md")
    assert done.tournament == TESTING_AREA
    lists = [request.query["tournaments"] for request in world.site.server.requests if request.path.endswith("/posts/")]
    assert set(lists) == {TESTING_AREA}
    summary = (world.home / "summary.md").read_text(encoding="utf-8")
    assert "1 forecast sent with their comments, 0 failed" in summary
    assert f"[comment]({world.site.url}/questions/102/#comment-1000)" in summary


def test_a_damaged_state_a_wrong_token_and_a_missing_tournament_are_errors(world: World):
    state = world.home / "tournaments" / "metaculus-cup" / "state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"pending": 3}', encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        world.take_part()
    with pytest.raises(InputError, match="not the name of a tournament"):
        world.take_part(tournament="metaculus:a b")
    state.unlink()
    world.fake.token = "another"
    with pytest.raises(InputError, match="could not be reached") as raised:
        world.take_part()
    assert TOKEN not in str(raised.value)


def live(environment: dict[str, str]) -> None:
    """One run in its own process."""
    settings = load_settings(environment)
    changes = {"tournament.budget": 5.0, "concurrency": 1}
    request = TournamentRunRequest(tournament="metaculus:cup", model=MODEL, set=changes)
    try:
        code = asyncio.run(enter(request, settings)).exit_code
    except BaseException:
        problem_of(environment).write_text(traceback.format_exc(), encoding="utf-8")
        raise
    os._exit(code)


def problem_of(environment: Mapping[str, str]) -> Path:
    """Return the file for the error of a process."""
    return Path(environment["FORETELL_HOME"], "problem.txt")


def test_a_run_killed_at_every_request_sends_nothing_twice(world: World):
    """Every process is killed at its first post to the model or the platform."""
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
    problem = problem_of(world.environment)
    assert exits[-1] == 0, problem.read_text(encoding="utf-8") if problem.exists() else exits
    assert world.forecast == [1, 5, 61, 62]
    assert world.commented == [101, 105, 106]
    # Three answers of the model, three requests with forecasts (a group's go together) and three comments, each killed
    # once before it was accepted and once after. Only answers of the model cannot be read back.
    assert len(killer.killed) == len(set(killer.killed)) == 2 * 9 == len(exits) - 1
    assert SubmissionLedger(world.home / "ledger.jsonl").verify().whole
    state = json.loads((world.home / "tournaments" / "metaculus-cup" / "state.json").read_text(encoding="utf-8"))
    assert state["outbox"] == []
    assert state["pending"] == {}


def test_forecasts_are_scored_when_questions_resolve(world: World):
    def post(number: int, **fields: Any) -> dict[str, Any]:
        times = {"opens": "2026-11-01T00:00:00Z", "closes": "2026-12-15T00:00:00Z", "resolves": "2026-12-20T00:00:00Z"}
        metaculus_question = SampleMetaculusQuestion(id=number, title=f"Will {number}?", **times, **fields)
        return metaculus_post_body(100 + number, metaculus_question.title, metaculus_question)

    def results() -> TournamentResults:
        request = TournamentResultsRequest.read({"tournament": "metaculus", "bootstrap": "draws=200"})
        return asyncio.run(score_tournaments(request, world.settings))

    world.fake.having(MetaculusCatalogue([post(n) for n in (1, 2, 3)]))
    plan = world.take_part(own={"budget": 5.0}, plan=True).plan
    assert plan is not None
    assert (plan.questions, plan.open, world.forecast) == (3, 3, [])
    world.take_part()
    assert results().boards == {}
    over = {"status": "resolved", "resolved": "2026-12-16T00:00:00Z"}
    ends = {1: "yes", 2: "no", 3: "annulled"}
    world.fake.having(MetaculusCatalogue([post(n, resolution=end, **over) for n, end in ends.items()]))
    world.at(NOW + timedelta(days=60))
    report = results()
    (entered,) = report.entered
    assert (entered.name, entered.state, entered.decided) == ("cup", "3 sent", 2)
    assert entered.billed > 0
    rows = {row["forecaster"]: row for row in report.rows()}
    # Annulled questions do not count.
    assert (rows["cup"]["n"], rows["always 0.5"]["brier_index"]) == (2, pytest.approx(50))


def test_an_unreadable_post_does_not_block_the_others(world: World):
    broken = [True]

    async def spoil(request: ServerRequest, handler: Handler) -> ServerResponse:
        if broken and request.method == "GET" and request.path.rstrip("/").endswith("/posts/103"):
            return ServerResponse(body=b"<html>Just a moment</html>", headers={"Content-Type": "text/html"})
        answer = handler(request)
        return await answer if isawaitable(answer) else answer

    world.site.server.middleware = spoil
    done = world.take_part()
    others = [question for question in QUESTIONS if question != 3]
    assert (world.forecast, done.exit_code) == (others, 3)
    (failed,) = [row for row in done.forecasts if not row.sent]
    assert f"How much? (metaculus/103): {failed.answer} (not sent: " in str(done)
    assert "not JSON" in failed.problem
    assert world.take_part().billed == 0
    broken.clear()
    done = world.take_part()
    # Earlier forecasts are sent now, and nothing is asked again.
    assert (done.billed, done.exit_code, [row.question for row in done.forecasts]) == (0, 0, ["metaculus/103"])
    assert (world.forecast, world.commented) == (QUESTIONS, COMMENTED)


def test_a_forecast_that_stays_unreadable_for_a_day_is_dropped(world: World):
    def spoil(request: ServerRequest, handler: Handler) -> Any:
        return json_response({}, 500) if request.path.rstrip("/").endswith("/posts/102") else handler(request)

    world.site.server.middleware = spoil
    world.take_part(limit=1)
    state = world.home / "tournaments/metaculus-cup/state.json"
    assert json.loads(state.read_text(encoding="utf-8"))["outbox"]
    world.at(NOW + timedelta(days=3))  # Closed by then.
    assert world.take_part(limit=1).exit_code == 3
    assert not json.loads(state.read_text(encoding="utf-8"))["outbox"]


@pytest.mark.parametrize("reply", [b"{}", b"[]", b'{"id": null}', b"<html>", b""])
def test_a_comment_whose_reply_cannot_be_read_is_read_back(world: World, reply: bytes):
    async def spoil(request: ServerRequest, handler: Handler) -> ServerResponse:
        answer = handler(request)
        answer = await answer if isawaitable(answer) else answer
        return replace(answer, body=reply) if "comments/create" in request.path else answer

    world.site.server.middleware = spoil
    done = world.take_part(limit=2)
    assert (done.exit_code, world.forecast, world.commented) == (0, [1, 2], [101, 102])


def test_a_closed_question_of_a_group_does_not_block_comments_on_the_others(world: World):
    async def close(request: ServerRequest, handler: Handler) -> ServerResponse:
        answer = handler(request)
        answer = await answer if isawaitable(answer) else answer
        if request.method != "GET" or not request.path.rstrip("/").endswith("/posts/106"):
            return answer
        body = json.loads(answer.body)
        body["group_of_questions"]["questions"][0]["status"] = "closed"
        return json_response(body)

    world.site.server.middleware = close
    done = world.take_part()
    assert (world.forecast, world.commented) == ([question for question in QUESTIONS if question != 61], COMMENTED)
    assert "(not sent: forecast: the question accepts no forecasts: its status is closed)" in str(done)


def edited(post: dict[str, Any], change: str) -> dict[str, Any]:
    """Return a post as its author changed it between two runs."""
    question = dict(post["question"])
    if change == "text":
        return {**post, "title": "Will it at last?", "question": {**question, "title": "Will it at last?"}}
    if change == "criteria":
        return {**post, "question": {**question, "resolution_criteria": "Another thing counts."}}
    return {**post, "question": {**question, "scheduled_close_time": "2026-11-25T00:00:00Z"}}


@pytest.mark.parametrize("change", ["text", "criteria", "close"])
def test_a_question_edited_between_two_runs_is_asked_with_its_new_text(world: World, change: str):
    before = posts()[0]
    world.fake.having(MetaculusCatalogue([before]))
    model = "openrouter:openai/gpt-5-nano"
    assert world.take_part(model=model, set={"budget.question": 1e-9}).exit_code == 3
    world.fake.having(MetaculusCatalogue([edited(before, change)]))
    assert world.take_part(model=model).exit_code == 0
    words = world.provider.server.queries[-1].words
    expected = {"text": "Will it at last?", "criteria": "Another thing counts.", "close": "2026-11-25"}
    assert expected[change] in words
    assert world.forecast == [1]


@pytest.mark.parametrize("change", ["", "text", "criteria", "close"])
def test_an_unsent_forecast_of_a_question_that_was_edited_is_not_sent(world: World, change: str):
    before = posts()[0]
    world.fake.having(MetaculusCatalogue([before]))

    def spoil(request: ServerRequest, handler: Handler) -> Any:
        return json_response({}, 500) if request.path.rstrip("/").endswith("/posts/101") else handler(request)

    world.site.server.middleware = spoil
    assert world.take_part().exit_code == 3
    calls = world.provider.stats()["arrived"]
    world.site.server.middleware = None
    world.at(NOW + timedelta(hours=20))  # Early the next day.
    world.fake.having(MetaculusCatalogue([edited(before, change) if change else before]))
    done = world.take_part()
    assert (done.exit_code, world.forecast, world.commented) == (0, [1], [101])
    # A forecast is valid as long as the text of the question is unchanged, even if its dates change.
    again = change in ("text", "criteria")
    assert (world.provider.stats()["arrived"] > calls) == again
    assert any("metaculus/101 was edited after it was forecast" in note for note in done.notes) == again
    assert world.take_part().rows() == []
