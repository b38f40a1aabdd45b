"""`foretell tournament run forecastbench`: a round from its question set to the uploaded file, whatever happens."""

import asyncio
import json
import os
import signal
import ssl
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from fakes.background import Background
from fakes.models import BackgroundModels
from fakes.processes import forks
from foretell.data import DownloadCache
from foretell.data.datasets import read_pulled
from foretell.operations import (
    RoundResult,
    TournamentResults,
    TournamentResultsRequest,
    TournamentRunRequest,
    enter,
    score_tournaments,
)
from foretell.plugins import names
from foretell.practice import (
    Handler,
    PracticeBucket,
    PracticeServer,
    ServerRequest,
    ServerResponse,
    json_response,
    serve_rounds,
)
from foretell.questions import InputError
from foretell.runs import Settings, load_settings
from foretell.submit import SubmissionLedger, check_submission

TOKEN, KEY = "storage-canary-77", "provider-canary-456"
MODEL = "openrouter:openai/gpt-5-mini"
BRAIN = "foretell.practice.models.scripts:agent_script"
NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)
DAY, EARLIER = "2026-11-15", "2026-11-01"
QUESTIONS = 13
OWN: dict[str, Any] = {"organization": "Us", "bucket": "gs://forecasts/{round}/us", "past_rounds": 2}
PLACE = f"forecasts/{DAY}/us/{DAY}.Us.1.json"


class World:
    """The benchmark's files and a team's folder on this machine; every other service has nothing."""

    def __init__(self, home: Path) -> None:
        self.home, self.clock = home, home / "clock.txt"
        self.bucket = PracticeBucket(TOKEN)
        self.site: Background[PracticeServer] = Background(self._server)
        self.at(NOW)

    def _server(self) -> PracticeServer:
        server = PracticeServer()
        serve_rounds(server, "/forecastbench", NOW)
        self.bucket.serve(server, "/buckets")
        return server

    def at(self, moment: datetime) -> None:
        self.clock.write_text(moment.isoformat(), encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        others = {*names("series"), *names("markets"), "wikipedia", "wayback"} - {"csv"}
        return {
            **{f"FORETELL_{name.upper()}_URL": f"{self.site.url}/nothing" for name in others},
            "FORETELL_HOME": str(self.home),
            "FORETELL_CLOCK": f"file:{self.clock}",
            "FORETELL_FORECASTBENCH_URL": f"{self.site.url}/forecastbench",
            "FORETELL_BUCKETS_URL": f"{self.site.url}/buckets",
            "FORECASTBENCH_TOKEN": TOKEN,
        }

    def settings(self, **more: str) -> Settings:
        return replace(load_settings({**self.environment, **more}), network=True)

    def visit(
        self, settings: Settings | None = None, watch: Callable[[Any], None] = lambda _: None, **fields: Any
    ) -> RoundResult:
        """Take part; fields that the request does not have are keys of its section `tournament`."""
        own = {**OWN, **{key: fields.pop(key) for key in [*fields] if key not in TournamentRunRequest.model_fields}}
        given = {"tournament": "forecastbench", **fields}
        request = TournamentRunRequest.read({**given, "set": {f"tournament.{key}": own[key] for key in own}})
        done = asyncio.run(enter(request, settings or self.settings(), watch=watch))
        assert isinstance(done, RoundResult)
        return done

    def folder(self, name: str = f"forecastbench-{DAY}-1") -> Path:
        return self.home / "tournaments" / name


CERTIFICATES = ssl.create_default_context()


def read_already(*_: Any, **__: Any) -> ssl.SSLContext:
    return CERTIFICATES


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # Nothing here is encrypted, and reading the certificates anew for every client took half of the time.
    monkeypatch.setattr(ssl, "create_default_context", read_already)
    made = World(tmp_path)
    yield made
    made.site.close()


def test_a_round_is_answered_checked_written_and_uploaded_once(world: World):
    done = world.visit()
    assert (done.exit_code, done.round, done.answered, done.by_agents) == (0, DAY, QUESTIONS, 0), done
    assert done.file is not None
    body = json.loads(done.file.read_text(encoding="utf-8"))
    assert (body["organization"], body["model"], body["question_set"]) == ("Us", "foretell stack", f"{DAY}-llm.json")
    questions = read_pulled(DownloadCache(world.home / "forecastbench"), DAY).questions
    assert [(one.given, one.asked) for one in check_submission(body, questions)] == [(8, 8), (40, 40)]
    # A price is taken as it is; what was uploaded is the file to the letter.
    price = next(row for row in body["forecasts"] if row["id"] == "practice-polymarket-1")
    assert (price["forecast"], price["resolution_date"]) == (0.35, None)
    assert world.bucket.files == {PLACE: done.file.read_bytes()}
    assert done.uploaded == f"gs://{PLACE}"
    assert len(done.rows()) == 48

    again = world.visit()
    assert (again.exit_code, again.uploaded, again.forecasts) == (0, done.uploaded, done.forecasts)
    assert world.bucket.uploads == [PLACE]
    ledger = SubmissionLedger(world.home / "ledger.jsonl")
    assert ledger.verify().whole
    assert [entry.part for entry in ledger.entries() if entry.kind == "receipt"] == ["file", "upload"]
    stored = [path.read_bytes() for path in world.home.rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in text for text in stored)
    # Another entry of the same team needs a file of its own.
    other = world.visit(entry="another")
    assert other.exit_code == 3
    assert any("take another file number" in problem for problem in other.problems)
    assert world.visit(entry="another", file_number=2).exit_code == 0
    assert len(world.bucket.files) == 2


def test_what_is_not_open_is_refused_and_can_be_tried_in_the_sandbox(world: World):
    with pytest.raises(InputError, match="was closed at the end of that day") as raised:
        world.visit(tournament=f"forecastbench:{EARLIER}")
    assert "the next one is due on 2026-11-29" in str(raised.value)
    assert "--sandbox" in str(raised.value)
    quiet = world.visit(tournament=f"forecastbench:{EARLIER}", when_open=True)
    assert (quiet.exit_code, quiet.answered) == (0, 0)
    assert "was closed" in quiet.warnings[0]
    world.at(NOW - timedelta(days=1))
    with pytest.raises(InputError, match="begins on that day"):
        world.visit()
    world.at(NOW)
    problems: list[dict[str, Any]] = [
        {"tournament": "forecastbench:soon"},
        {"bucket": "s3://b"},
        {"bucket": "gs://forecasts/../us"},
    ]
    for wrong in problems:
        with pytest.raises(InputError):
            world.visit(**wrong)
    with pytest.raises(InputError, match="whose file it is"):
        world.visit(organization=None)
    done = world.visit(tournament=f"forecastbench:{EARLIER}", sandbox=True, organization=None, bucket=None)
    assert (done.exit_code, done.answered, done.uploaded) == (0, QUESTIONS, None)
    assert done.file is not None
    assert done.file.parent == world.folder(f"forecastbench-{EARLIER}-1-rehearsal")
    assert not (world.home / "ledger.jsonl").exists()
    plan = world.visit(plan=True)
    assert plan.plan is not None
    assert plan.plan.questions == QUESTIONS
    assert "nothing to pay" in str(plan)
    looked = world.visit(dry_run=True)
    assert (looked.file, looked.answered) == (None, QUESTIONS)
    assert world.bucket.files == {}


def test_without_a_folder_it_says_what_to_do_with_the_file(world: World, tmp_path: Path):
    done = world.visit(bucket=None, folder=tmp_path / "out")
    assert done.exit_code == 0
    assert done.file == tmp_path / "out" / f"{DAY}.Us.1.json"
    assert f"Upload it by 23:59:59 UTC on {DAY}" in str(done)
    assert "gcloud storage cp" in str(done)
    with pytest.raises(InputError, match="uploading needs a token"):
        world.visit(world.settings(FORECASTBENCH_TOKEN=""), folder=tmp_path / "out")
    # The upload is made up for later; nothing is asked or written anew.
    assert world.visit(folder=tmp_path / "out").uploaded == f"gs://{PLACE}"
    assert world.bucket.uploads == [PLACE]


def test_a_file_of_somebody_else_is_not_overwritten(world: World):
    world.bucket.files[PLACE] = b"other"
    world.bucket.generations[PLACE] = 5
    done = world.visit()
    assert done.exit_code == 3
    assert any("is there already" in problem for problem in done.problems)
    assert world.bucket.files[PLACE] == b"other"
    assert world.visit(overwrite=True).exit_code == 0
    # Where a team may write and not look, what it uploaded last is replaced by what it knows of it.
    world.bucket.readable = False
    assert world.visit(reasoning=True).exit_code == 0
    assert json.loads(world.bucket.files[PLACE])["forecasts"][0]["reasoning"]


def test_services_that_are_down_lose_nothing_send_nothing_twice_and_are_named(world: World):
    answers: dict[str, ServerResponse] = {}

    def broken(request: ServerRequest, handler: Handler) -> Any:
        failing = next((answer for part, answer in answers.items() if part in request.path), None)
        return handler(request) if failing is None else failing

    world.site.server.middleware = broken
    # Where the question set cannot be read, there is nothing to answer.
    for answer in (json_response({}, 404), ServerResponse(body=b"<html>"), ServerResponse(body=b"")):
        answers["/forecastbench"] = answer
        with pytest.raises(InputError, match="the question set could not be fetched"):
            world.visit()
    # Without its series it answers from older values and says so; every refused upload is told and tried again.
    answers = {"/nothing": ServerResponse(body=b"<html>")}
    for status in (401, 403, 409, 413, 429):
        answers["/upload/"] = json_response({"error": "no"}, status, {"Retry-After": "0"})
        done = world.visit()
        assert (done.exit_code, done.answered, done.uploaded) == (3, QUESTIONS, None)
        assert any(f"the server answered {status}" in problem for problem in done.problems)
        if status == 401:
            assert any("yfinance could not be read, so forecasts may rest on older" in note for note in done.notes)
    # The file is sent though the list of rounds is down by now, and not again when the clock was wrong for a while.
    answers = {"/question_sets": json_response({}, 500)}
    done = world.visit(tournament=f"forecastbench:{DAY}")
    assert (done.exit_code, world.bucket.uploads) == (0, [PLACE])
    assert any("the newest round could not be looked up, so today's" in note for note in world.visit().notes)
    for days in (1, -1):
        world.at(NOW + timedelta(days=days))
        with pytest.raises(InputError, match=r"was closed|begins on"):
            world.visit(tournament=f"forecastbench:{DAY}")
    world.at(NOW)
    assert world.visit().exit_code == 0
    assert world.bucket.uploads == [PLACE]


@pytest.fixture
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN) as found:
        yield found


def test_agents_answer_within_a_budget_and_the_stack_stands_for_the_rest(world: World, provider: BackgroundModels):
    paid = world.settings(FORETELL_OPENROUTER_URL=f"{provider.url}/api/v1", OPENROUTER_API_KEY=KEY)
    alone = world.visit(dry_run=True)
    with pytest.raises(InputError, match="this may cost money"):
        world.visit(paid, model=MODEL)
    plan = world.visit(paid, model=MODEL, budget=2.0, plan=True).plan
    assert plan is not None
    assert (plan.cells, plan.most, plan.basis) == (QUESTIONS, 2.0, "rough")
    assert plan.dollars
    assert plan.seconds > 0
    # Too little for anybody: the file is whole all the same.
    short = world.visit(paid, model=MODEL, budget=0.0001, sandbox=True)
    assert short.answered == QUESTIONS
    assert short.billed_in_all <= 0.0001
    done = world.visit(paid, model=MODEL, budget=2.0)
    assert (done.by_agents, done.answered) == (QUESTIONS, QUESTIONS), done.problems
    assert 0 < done.billed_in_all <= 2.0
    assert json.loads(world.bucket.files[PLACE])["model"] == f"foretell {MODEL}"
    by_stack = {(row["question"], row["target"]): row["p"] for row in alone.rows()}
    for row in done.rows():
        assert row["stack"] == by_stack[row["question"], row["target"]]
        assert row["p"] == row["agents"]
    # Agents are anchored: a sure agent against a price of .35 or a stack does not win outright.
    assert any(row["p"] != row["stack"] for row in done.rows())
    calls = provider.stats()["arrived"]
    again = world.visit(paid, model=MODEL, budget=2.0)
    assert (again.forecasts, again.billed_in_all) == (done.forecasts, done.billed_in_all)
    assert provider.stats()["arrived"] == calls
    assert world.bucket.uploads == [PLACE]
    # Half an hour before the end nobody is asked any more.
    at_end = datetime(2026, 11, 15, 23, 45, tzinfo=UTC)
    world.at(at_end)
    late = world.visit(paid, model=MODEL, budget=2.0, trials=2, file_number=2, entry="late")
    assert any("out of time" in problem for problem in late.problems)
    assert (late.by_agents, late.answered) == (0, QUESTIONS)
    # Neither where the answers of the stack took until then.
    world.at(NOW)
    slow = world.visit(
        paid, watch=lambda _: world.at(at_end), model=MODEL, budget=2.0, trials=3, file_number=3, entry="slow"
    )
    assert any("out of time" in problem for problem in slow.problems)
    assert (slow.by_agents, slow.answered) == (0, QUESTIONS)
    assert provider.stats()["arrived"] == calls


class Killer:
    """Kills whoever uploads: first before it is taken, the second time after."""

    def __init__(self) -> None:
        self.victim: int | None = None
        self.killed: list[bool] = []

    async def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        if request.method != "POST" or len(self.killed) == 2 or self.victim is None:
            answer = handler(request)
            return await answer if isawaitable(answer) else answer
        taken = bool(self.killed)
        answer = handler(request) if taken else ServerResponse(status=503)
        self.killed.append(taken)
        os.kill(self.victim, signal.SIGKILL)
        return await answer if isawaitable(answer) else answer


def live(environment: dict[str, str]) -> None:
    """One visit in a process of its own."""
    request = TournamentRunRequest(tournament="forecastbench", set={f"tournament.{key}": OWN[key] for key in OWN})
    os._exit(asyncio.run(enter(request, load_settings(environment))).exit_code)


def test_killed_before_and_after_its_upload_is_taken_it_uploads_once(world: World):
    killer = world.site.server.middleware = Killer()
    exits: list[int | None] = []
    while not exits or exits[-1] == -signal.SIGKILL:
        life = forks().Process(target=live, args=(world.environment,))
        life.start()
        killer.victim = life.pid
        life.join(120)
        exits.append(life.exitcode)
    assert exits == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert world.bucket.uploads == [PLACE]
    ledger = SubmissionLedger(world.home / "ledger.jsonl")
    assert ledger.verify().whole
    uploads = [entry.kind for entry in ledger.entries() if entry.part == "upload"]
    assert uploads == ["intention", "absence", "intention", "receipt"]
    state = json.loads((world.folder() / "state.json").read_text(encoding="utf-8"))
    assert (state["uploaded"], state["round"]) == (f"gs://{PLACE}", DAY)


def test_own_rounds_are_scored_beside_public_methods(world: World, tmp_path: Path):
    world.visit(tournament=f"forecastbench:{EARLIER}", sandbox=True, organization=None, bucket=None)
    world.visit()
    own = world.folder(f"forecastbench-{EARLIER}-1-rehearsal") / f"{EARLIER}.sandbox.1.json"
    body = json.loads(own.read_text(encoding="utf-8"))
    sets = tmp_path / "forecast_sets" / EARLIER
    sets.mkdir(parents=True)
    rival = {**body, "organization": "Rival", "model": "bold"}
    rival["forecasts"] = [{**row, "forecast": 0.9} for row in body["forecasts"][:-8]]
    (sets / f"{EARLIER}.Rival.bold.json").write_text(json.dumps(rival), encoding="utf-8")
    (sets / f"{EARLIER}.sandbox.1.json").write_text(json.dumps(body), encoding="utf-8")
    (sets / f"{EARLIER}.Broken.json").write_text('{"question_set": "2026-11-01-llm.json"}', encoding="utf-8")
    (sets / "2020-01-01.Old.json").write_text("not even JSON", encoding="utf-8")
    packed = tmp_path / "forecast_sets.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(sets, arcname=EARLIER)
    table = tmp_path / "methods.csv"
    head = "method,forecast_due_date,source,question_id,resolution_date,probability,imputed"
    lines = [f"Tabled,{EARLIER},fred,DGS10,2026-11-08,0.4,false", f"Tabled,{EARLIER},infer,practice-infer-1,,0.2,true"]
    table.write_text("\n".join([head, *lines]), encoding="utf-8")

    def scored(*methods: Path, **more: str) -> TournamentResults:
        given = {"tournament": "forecastbench", "methods": methods, "bootstrap": "draws=200"}
        request = TournamentResultsRequest.read(given)
        return asyncio.run(score_tournaments(request, world.settings(**more)))

    found = scored(tmp_path / "forecast_sets", table)
    states = {(one.name, one.state): one for one in found.entered}
    assert set(states) == {(DAY, "uploaded"), (EARLIER, "sandbox")}
    assert (states[EARLIER, "sandbox"].decided, states[DAY, "uploaded"].decided) == (9, 0)
    assert [note for note in found.notes if "Broken" in note]
    rows = {(row["forecaster"], row["kind"]): row for row in found.rows()}
    mine = rows["foretell stack (sandbox)", "dataset"]
    assert (mine["n"], mine["completion"]) == (5, 1.0)
    assert mine["brier_index_low"] <= mine["brier_index"] <= mine["brier_index_high"]
    # The rival left the last question out; a forecast that was put in for somebody is not theirs.
    assert (rows["Rival:bold", "dataset"]["n"], rows["Rival:bold", "market"]["n"]) == (4, 4)
    assert rows["Tabled", "dataset"]["n"] == 1
    assert ("Tabled", "market") not in rows
    assert {"always 0.5", "base rate", "crowd price"} <= {name for name, _ in rows}
    assert rows["crowd price", "market"]["brier"] == pytest.approx(rows["foretell stack (sandbox)", "market"]["brier"])
    assert not any(name.startswith("sandbox:") for name, _ in rows), "one's own file is not a rival"
    same = scored(packed, table, FORETELL_NETWORK="0")
    # Compared as text: what has no interval is not a number, and equals nothing.
    assert repr(same.rows()) == repr(found.rows())
    assert "Rival:bold" in same.to_markdown()
    with pytest.raises(InputError, match="is not an archive"):
        scored(_written(tmp_path / "bad.tar.gz", "not packed"))
    with pytest.raises(InputError, match="is missing"):
        scored(_written(tmp_path / "bad.csv", "method\nx\n"))
    (world.folder() / "state.json").write_text("{", encoding="utf-8")
    assert any(one.state.startswith("damaged") for one in scored(FORETELL_NETWORK="0").entered)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
