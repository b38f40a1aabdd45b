"""`foretell tournament run forecastbench`: a round from its question set to the uploaded file, despite failures."""

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
from foretell.data.datasets.forecastbench_download import read_pulled
from foretell.data.files import DownloadCache
from foretell.operations.requests.tournaments import TournamentResultsRequest, TournamentRunRequest
from foretell.operations.tournament import enter
from foretell.operations.tournament_results import TournamentResults, score_tournaments
from foretell.plugins import names
from foretell.practice.forecastbench import PracticeBucket, serve_rounds
from foretell.practice.server import Handler, PracticeServer, ServerRequest, ServerResponse, json_response
from foretell.practice.services import data_services
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings, load_settings
from foretell.tournaments.forecastbench import check_submission
from foretell.tournaments.ledger import SubmissionLedger
from foretell.tournaments.round_visit import RoundResult

TOKEN, KEY = "storage-canary-77", "provider-canary-456"
MODEL = "openrouter:openai/gpt-5-mini"
BRAIN = "foretell.practice.models.scripts:agent_script"
NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)
DAY, EARLIER = "2026-11-15", "2026-11-01"
QUESTIONS = 13
OWN: dict[str, Any] = {
    "organization": "Us",
    "bucket": "gs://forecasts/{round}/us",
    "past_rounds": 2,
    "accept_stale": True,
}
PLACE = f"forecasts/{DAY}/us/{DAY}.Us.1.json"


class World:
    """The benchmark's files and a team's folder on this machine; every other service is empty."""

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

    def at(self, time: datetime) -> None:
        self.clock.write_text(time.isoformat(), encoding="utf-8")

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

    def take_part(
        self, settings: Settings | None = None, watch: Callable[[Any], None] = lambda _: None, **fields: Any
    ) -> RoundResult:
        """Take part; fields that the request does not have are keys of its section `tournament`."""
        own = {**OWN, **{key: fields.pop(key) for key in [*fields] if key not in TournamentRunRequest.model_fields}}
        values: dict[str, Any] = {"tournament": "forecastbench", **fields}
        changes = {**values.pop("set", {}), **{f"tournament.{key}": own[key] for key in own}}
        request = TournamentRunRequest.read({**values, "set": changes})
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
    # Nothing here is encrypted, and reading the certificates for every client took half of the time.
    monkeypatch.setattr(ssl, "create_default_context", read_already)
    created = World(tmp_path)
    yield created
    created.site.close()


def test_a_round_is_answered_checked_written_and_uploaded_once(world: World):
    done = world.take_part()
    assert (done.exit_code, done.round, done.answered, done.by_agents) == (0, DAY, QUESTIONS, 0), done
    assert done.file is not None
    body = json.loads(done.file.read_text(encoding="utf-8"))
    assert (body["organization"], body["model"], body["question_set"]) == (
        "Us",
        "foretell model_free",
        f"{DAY}-llm.json",
    )
    questions = read_pulled(DownloadCache(world.home / "forecastbench"), DAY).questions
    assert [(coverage.given, coverage.asked) for coverage in check_submission(body, questions)] == [(8, 8), (38, 38)]
    # A price is used unchanged, and the upload equals the file.
    price = next(row for row in body["forecasts"] if row["id"] == "practice-polymarket-1")
    assert (price["forecast"], price["resolution_date"]) == (0.35, None)
    assert world.bucket.files == {PLACE: done.file.read_bytes()}
    assert done.uploaded == f"gs://{PLACE}"
    assert len(done.rows()) == 46

    again = world.take_part()
    assert (again.exit_code, again.uploaded, again.forecasts) == (0, done.uploaded, done.forecasts)
    assert world.bucket.uploads == [PLACE]
    ledger = SubmissionLedger(world.home / "ledger.jsonl")
    assert ledger.verify().whole
    assert [entry.part for entry in ledger.entries() if entry.kind == "receipt"] == ["file", "upload"]
    stored = [path.read_bytes() for path in world.home.rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in text for text in stored)
    # Another entry of the same team needs its own file.
    other = world.take_part(entry="another")
    assert other.exit_code == 3
    assert any("use another file number" in problem for problem in other.problems)
    assert world.take_part(entry="another", file_number=2).exit_code == 0
    assert len(world.bucket.files) == 2


def test_model_free_may_be_named_as_the_forecaster(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_MODEL", "openai:gpt-5-mini")
    done = world.take_part(set={"forecaster": "model_free"}, dry_run=True)
    assert (done.answered, done.by_agents, done.entry) == (QUESTIONS, 0, "foretell model_free")
    monkeypatch.delenv("FORETELL_MODEL")
    with pytest.raises(InputError, match="--model: has no effect without a model"):
        world.take_part(set={"forecaster": "model_free"}, model="openai:gpt-5", dry_run=True)


def test_closed_rounds_are_refused_except_in_the_sandbox(world: World):
    with pytest.raises(InputError, match="was closed at the end of that day") as raised:
        world.take_part(tournament=f"forecastbench:{EARLIER}")
    assert "the next one is due on 2026-11-29" in str(raised.value)
    assert "--sandbox" in str(raised.value)
    quiet = world.take_part(tournament=f"forecastbench:{EARLIER}", when_open=True)
    assert (quiet.exit_code, quiet.answered) == (0, 0)
    assert "was closed" in quiet.warnings[0]
    world.at(NOW - timedelta(days=1))
    with pytest.raises(InputError, match="begins on that day"):
        world.take_part()
    world.at(NOW)
    problems: list[dict[str, Any]] = [
        {"tournament": "forecastbench:soon"},
        {"bucket": "s3://b"},
        {"bucket": "gs://forecasts/../us"},
    ]
    for wrong in problems:
        with pytest.raises(InputError):
            world.take_part(**wrong)
    with pytest.raises(InputError, match="who submits the file"):
        world.take_part(organization=None)
    done = world.take_part(tournament=f"forecastbench:{EARLIER}", sandbox=True, organization=None, bucket=None)
    assert (done.exit_code, done.answered, done.uploaded) == (0, QUESTIONS, None)
    assert done.file is not None
    assert done.file.parent == world.folder(f"forecastbench-{EARLIER}-1-rehearsal")
    assert not (world.home / "ledger.jsonl").exists()
    plan = world.take_part(plan=True)
    assert plan.plan is not None
    assert plan.plan.questions == QUESTIONS
    assert "costs nothing" in str(plan)
    looked = world.take_part(dry_run=True)
    assert (looked.file, looked.answered) == (None, QUESTIONS)
    assert world.bucket.files == {}


def test_without_a_bucket_it_explains_how_to_upload_the_file(world: World, tmp_path: Path):
    done = world.take_part(bucket=None, folder=tmp_path / "out")
    assert done.exit_code == 0
    assert done.file == tmp_path / "out" / f"{DAY}.Us.1.json"
    assert f"Upload it by 23:59:59 UTC on {DAY}" in str(done)
    assert "gcloud storage cp" in str(done)
    with pytest.raises(InputError, match="uploading needs a token"):
        world.take_part(world.settings(FORECASTBENCH_TOKEN=""), folder=tmp_path / "out")
    # A later run only uploads the file.
    assert world.take_part(folder=tmp_path / "out").uploaded == f"gs://{PLACE}"
    assert world.bucket.uploads == [PLACE]


def test_a_file_of_somebody_else_is_not_overwritten(world: World):
    world.bucket.files[PLACE] = b"other"
    world.bucket.generations[PLACE] = 5
    done = world.take_part()
    assert done.exit_code == 3
    assert any("exists already" in problem for problem in done.problems)
    assert world.bucket.files[PLACE] == b"other"
    assert world.take_part(overwrite=True).exit_code == 0
    # A team without read access replaces its last upload by the recorded generation.
    world.bucket.readable = False
    assert world.take_part(reasoning=True).exit_code == 0
    assert json.loads(world.bucket.files[PLACE])["forecasts"][0]["reasoning"]


def test_failing_services_are_named_and_nothing_is_lost_or_sent_twice(world: World):
    answers: dict[str, ServerResponse] = {}

    def broken(request: ServerRequest, handler: Handler) -> Any:
        failing = next((answer for part, answer in answers.items() if part in request.path), None)
        return handler(request) if failing is None else failing

    world.site.server.middleware = broken
    # Without the question set, there is nothing to answer.
    for answer in (json_response({}, 404), ServerResponse(body=b"<html>"), ServerResponse(body=b"")):
        answers["/forecastbench"] = answer
        with pytest.raises(InputError, match="the question set could not be fetched"):
            world.take_part()
    # Without its series it uses older values and notes that. Refused uploads are reported and tried again.
    answers = {"/nothing": ServerResponse(body=b"<html>")}
    for status in (401, 403, 409, 413, 429):
        answers["/upload/"] = json_response({"error": "no"}, status, {"Retry-After": "0"})
        done = world.take_part()
        assert (done.exit_code, done.answered, done.uploaded) == (3, QUESTIONS, None)
        assert any(f"the server answered {status}" in problem for problem in done.problems)
        if status == 401:
            assert any("1 series of yfinance could not be read" in note for note in done.notes)
    # The file is sent although the list of rounds cannot be read, and not sent again after the clock was wrong.
    answers = {"/question_sets": json_response({}, 500)}
    done = world.take_part(tournament=f"forecastbench:{DAY}")
    assert (done.exit_code, world.bucket.uploads) == (0, [PLACE])
    assert any("the newest round could not be looked up, so today's" in note for note in world.take_part().notes)
    for days in (1, -1):
        world.at(NOW + timedelta(days=days))
        with pytest.raises(InputError, match=r"was closed|begins on"):
            world.take_part(tournament=f"forecastbench:{DAY}")
    world.at(NOW)
    assert world.take_part().exit_code == 0
    assert world.bucket.uploads == [PLACE]


@pytest.fixture
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN) as background_models:
        yield background_models


@pytest.fixture
def temperatures() -> Iterator[str]:
    """The address of DBnomics, which agents have to read before they answer."""
    with Background(lambda: data_services(NOW, KEY)["dbnomics"].server()) as site:
        yield site.url


def test_agents_answer_within_a_budget_and_model_free_answers_the_rest(
    world: World, provider: BackgroundModels, temperatures: str
):
    free = world.settings(FORETELL_DBNOMICS_URL=temperatures)
    paid = world.settings(
        FORETELL_DBNOMICS_URL=temperatures,
        FORETELL_OPENROUTER_URL=f"{provider.url}/api/v1",
        OPENROUTER_API_KEY=KEY,
    )
    alone = world.take_part(free, dry_run=True)
    with pytest.raises(InputError, match="this may cost money"):
        world.take_part(paid, model=MODEL)
    plan = world.take_part(paid, model=MODEL, budget=2.0, plan=True).plan
    assert plan is not None
    assert (plan.open, plan.most) == (QUESTIONS, 2.0)
    assert plan.basis.startswith("a rough guess")
    assert plan.dollars
    assert plan.seconds > 0
    # The budget is too small for any agent, but the file is complete.
    short = world.take_part(paid, model=MODEL, budget=0.0001, sandbox=True)
    assert short.answered == QUESTIONS
    assert short.billed_in_all <= 0.0001
    done = world.take_part(paid, model=MODEL, budget=2.0)
    assert (done.by_agents, done.answered) == (QUESTIONS, QUESTIONS), done.problems
    assert 0 < done.billed_in_all <= 2.0
    assert json.loads(world.bucket.files[PLACE])["model"] == f"foretell {MODEL}"
    by_model_free = {(row["question"], row["target"]): row["p"] for row in alone.rows()}
    for row in done.rows():
        assert row["model_free"] == by_model_free[row["question"], row["target"]]
        assert row["p"] == row["agents"]
    # Agents are combined with the price or the model-free answer, so a certain agent does not dominate.
    assert any(row["p"] != row["model_free"] for row in done.rows())
    calls = provider.stats()["arrived"]
    again = world.take_part(paid, model=MODEL, budget=2.0)
    assert (again.forecasts, again.billed_in_all) == (done.forecasts, done.billed_in_all)
    assert provider.stats()["arrived"] == calls
    assert world.bucket.uploads == [PLACE]
    # In the last half hour, no agent is asked.
    at_end = datetime(2026, 11, 15, 23, 45, tzinfo=UTC)
    world.at(at_end)
    late = world.take_part(paid, model=MODEL, budget=2.0, trials=2, file_number=2, entry="late")
    assert any("out of time" in problem for problem in late.problems)
    assert (late.by_agents, late.answered) == (0, QUESTIONS)
    # Nor if the model-free answers took until then.
    world.at(NOW)
    slow = world.take_part(
        paid, watch=lambda _: world.at(at_end), model=MODEL, budget=2.0, trials=3, file_number=3, entry="slow"
    )
    assert any("out of time" in problem for problem in slow.problems)
    assert (slow.by_agents, slow.answered) == (0, QUESTIONS)
    assert provider.stats()["arrived"] == calls


class Killer:
    """Kills the uploading process: first before the upload is accepted, then after."""

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
    """One run in its own process."""
    request = TournamentRunRequest(tournament="forecastbench", set={f"tournament.{key}": OWN[key] for key in OWN})
    os._exit(asyncio.run(enter(request, load_settings(environment))).exit_code)


def test_a_run_killed_before_and_after_its_upload_uploads_once(world: World):
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


def test_own_rounds_are_scored_next_to_public_methods(world: World, tmp_path: Path):
    world.take_part(tournament=f"forecastbench:{EARLIER}", sandbox=True, organization=None, bucket=None)
    world.take_part()
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
        values = {"tournament": "forecastbench", "methods": methods, "bootstrap": "draws=200"}
        request = TournamentResultsRequest.read(values)
        return asyncio.run(score_tournaments(request, world.settings(**more)))

    results = scored(tmp_path / "forecast_sets", table)
    states = {(entry.name, entry.state): entry for entry in results.entered}
    assert set(states) == {(DAY, "uploaded"), (EARLIER, "sandbox")}
    assert (states[EARLIER, "sandbox"].decided, states[DAY, "uploaded"].decided) == (9, 0)
    assert [note for note in results.notes if "Broken" in note]
    rows = {(row["forecaster"], row["kind"]): row for row in results.rows()}
    mine = rows["foretell model_free (sandbox)", "dataset"]
    assert (mine["n"], mine["completion"]) == (5, 1.0)
    assert mine["brier_index_low"] <= mine["brier_index"] <= mine["brier_index_high"]
    # The rival left the last question out; imputed forecasts do not count.
    assert (rows["Rival:bold", "dataset"]["n"], rows["Rival:bold", "market"]["n"]) == (4, 4)
    assert rows["Tabled", "dataset"]["n"] == 1
    assert ("Tabled", "market") not in rows
    assert {"always 0.5", "base rate", "market price"} <= {name for name, _ in rows}
    assert rows["market price", "market"]["brier"] == pytest.approx(
        rows["foretell model_free (sandbox)", "market"]["brier"]
    )
    assert not any(name.startswith("sandbox:") for name, _ in rows), "one's own file is not a rival"
    same = scored(packed, table, FORETELL_NETWORK="0")
    # Compared as text, because NaN is not equal to itself.
    assert repr(same.rows()) == repr(results.rows())
    assert "Rival:bold" in same.to_markdown()
    with pytest.raises(InputError, match="is not an archive"):
        scored(_written(tmp_path / "bad.tar.gz", "not packed"))
    with pytest.raises(InputError, match="is missing"):
        scored(_written(tmp_path / "bad.csv", "method\nx\n"))
    (world.folder() / "state.json").write_text("{", encoding="utf-8")
    assert any(entry.state.startswith("damaged") for entry in scored(FORETELL_NETWORK="0").entered)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
