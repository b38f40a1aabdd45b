"""`foretell doctor`: what is present, missing and reachable, without printing keys."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foretell.runs.settings
from fakes.faults import failing, inject
from foretell.cli.main import cli
from foretell.data.http import AsyncHttpClient, HttpResponse, NotFound
from foretell.data.known_services import KNOWN_SERVICES, parse_rate_limits
from foretell.data.service_limits import KnownService, ServiceStore
from foretell.models.canonical import content_key
from foretell.models.journal import Journal, JournalEntry, JournalRequest
from foretell.operations.doctor import DoctorResult, doctor, run_doctor
from foretell.operations.requests.setup import DoctorRequest
from foretell.operations.services import ServiceChecks, check_services, list_services, service_names
from foretell.plugins import PAIR
from foretell.practice.server import PracticeServer, json_response
from foretell.practice.services import KEY, ServiceOptions, all_services
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.runs.settings import KEYS, OLD, Settings, load_settings, read_settings_file
from foretell.runs.store import RunStore, RunTrial

CANARY = "sk-canary-77"


@asynccontextmanager
async def practised(home: Path) -> AsyncGenerator[Settings]:
    keys = {part: KEY for names in KEYS.values() for name in names for part in name.split(PAIR)}
    async with all_services(ServiceOptions(now=datetime.now(UTC))) as addresses:
        yield Settings(home=home, keys=keys, addresses=addresses, contact="me@example.org")


def checked(home: Path, name: str | None = None) -> ServiceChecks:
    async def run() -> ServiceChecks:
        async with practised(home) as settings:
            return await check_services(name, settings)

    return asyncio.run(run())


def test_the_checks_pass_in_the_local_sandbox_and_are_recorded(tmp_path: Path) -> None:
    result = checked(tmp_path)
    by_service: dict[str, list[str]] = {}
    for check in result.checks:
        by_service.setdefault(check.service, []).append(check.verdict)
    assert {name: verdicts for name, verdicts in by_service.items() if "failed" in verdicts} == {}, str(result)
    assert result.ok
    for market in ("kalshi", "polymarket", "manifold", "metaculus"):
        assert by_service[market][::2] == ["ok", "ok"], "listed and settled"
    for name in ("fred", "yahoo", "dbnomics", "wikipedia", "wayback", "gdelt", "brave", "exa", "forecastbench"):
        assert by_service[name] == ["ok"], name
    states = ServiceStore(tmp_path / "services.db").states()
    assert states["kalshi"].success > 0
    assert not any(state.error for state in states.values())
    text = result.to_markdown()
    assert "| kalshi | list | ok |" in text
    assert KEY not in text.replace("practice world", "")


def test_failures_are_reported_without_keys(tmp_path: Path) -> None:
    async def run() -> tuple[ServiceChecks, ServiceChecks]:
        server = PracticeServer()
        server.route("GET", "/search/*", lambda _: json_response({"detail": f"the key {CANARY} is not good"}, 401))
        server.route("GET", "/*", lambda _: json_response({"series": {}}))
        inject(server, failing(500))
        async with server:
            keys = {"BRAVE_API_KEY": CANARY}
            addresses = {"brave": f"{server.url}/search", "yahoo": server.url}
            settings = Settings(home=tmp_path, keys=keys, addresses=addresses)
            brave = await check_services("brave", settings)
            return brave, await check_services("yahoo", settings)

    brave, yahoo = asyncio.run(run())
    assert (brave.ok, brave.exit_code, yahoo.ok) == (False, 1, False)
    assert "401" in brave.checks[0].detail
    assert CANARY not in brave.to_json() + brave.to_markdown()
    listed = list_services(None, Settings(home=tmp_path, keys={"BRAVE_API_KEY": CANARY}))
    row = next(row for row in listed.services if row.service == "brave")
    assert (row.key, "401" in row.problem, row.last_success) == ("set", True, "")
    assert CANARY not in listed.to_json() + str(listed)


def test_checks_without_a_network_say_so(tmp_path: Path) -> None:
    addresses = {"kalshi": "http://127.0.0.1:9"}
    result = asyncio.run(check_services("kalshi", Settings(home=tmp_path, addresses=addresses)))
    assert [(check.what, check.verdict) for check in result.checks] == [
        ("list", "failed"),
        ("history", "left out"),
        ("settle", "left out"),
    ]
    assert "network" in result.warnings[0]


def test_missing_keys_and_unknown_services_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="FRED_API_KEY"):
        asyncio.run(check_services("fred", Settings(home=tmp_path)))
    with pytest.raises(InputError, match="no service is called"):
        list_services("fed", Settings(home=tmp_path))
    wikipedia = asyncio.run(check_services("wikipedia", Settings(home=tmp_path)))
    assert (wikipedia.checks[0].verdict, "contact" in wikipedia.checks[0].detail) == ("left out", True)


def test_the_list_has_key_rate_limit_and_facts_of_every_service(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, keys={"FRED_API_KEY": CANARY})
    listed = list_services(None, settings)
    rows = {row.service: row for row in listed.services}
    assert set(rows) == set(service_names()) >= set(KNOWN_SERVICES)
    assert (rows["fred"].key, rows["metaculus"].key, rows["gdelt"].key) == ("set", "missing", "not needed")
    assert rows["wayback"].rate_limit == "30/min look-ups, 600/min pages, 10 at once"
    assert all(row.facts_date and row.facts_source for row in rows.values() if row.service in KNOWN_SERVICES)
    assert "wikipedia" in listed.warnings[0]
    assert list_services(None, replace(settings, contact="me@example.org")).warnings == ()
    services = list_services("wayback", settings)
    assert services.limits[0] == "look-ups: 30/min (edgi wayback, 2026-07-01)"
    unlimited = replace(settings, rate_limits=parse_rate_limits("wayback=none"))
    assert list_services("wayback", unlimited).limits == ("none",)


@pytest.mark.parametrize("words", [["--services"], ["--services", "--json"], ["--services", "fred"]])
def test_the_doctor_lists_services(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    result = CliRunner().invoke(cli, ["doctor", *words])
    assert result.exit_code == 0, result.output
    assert "fred" in result.stdout


def test_the_doctor_checks_one_service_online_and_refuses_to_repair_it(tmp_path: Path) -> None:
    offline = Settings(home=tmp_path, addresses={"kalshi": "http://127.0.0.1:9"})
    checked = asyncio.run(run_doctor(DoctorRequest(online=True, services="kalshi"), offline))
    assert isinstance(checked, ServiceChecks)
    assert (checked.exit_code, {check.service for check in checked.checks}) == (1, {"kalshi"})
    with pytest.raises(InputError, match="no effect with --services"):
        asyncio.run(run_doctor(DoctorRequest(repair=True, services="kalshi"), offline))


# The doctor.


def healthy(settings: Settings) -> dict[str, Any]:
    result = asyncio.run(doctor(DoctorRequest(), settings))
    return {finding.what: finding for finding in result.findings}


def test_the_doctor_lists_what_is_present_and_missing(tmp_path: Path) -> None:
    result = healthy(Settings(home=tmp_path / "home", keys={"EXA_API_KEY": CANARY, "FORETELL_MODEL": "openai:x"}))
    assert (result["home"].state, result["contact"].state, result["model"].state) == ("ok", "missing", "ok")
    assert "--contact" in result["contact"].advice
    assert "EXA_API_KEY" in result["keys"].detail
    assert CANARY not in "".join(finding.detail for finding in result.values())
    assert {"Python", "clock", "sandbox", "PostgreSQL", "extra llm"} <= set(result)


def test_the_doctor_keeps_a_contact_and_later_commands_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text('contact = "old@example.org"\n[rate_limits]\ngdelt = "1/9s"\n')
    result = CliRunner().invoke(cli, ["doctor", "--contact", "me@example.org", "--json"])
    assert result.exit_code == 0, result.output
    assert '"me@example.org"' in result.stdout
    assert load_settings().contact == "me@example.org"
    assert str(load_settings().rate_limits["gdelt"][0]) == "1/9 s"
    bad = CliRunner().invoke(cli, ["doctor", "--contact", "nobody\r\nX: y"])
    assert isinstance(bad.exception, InputError)


def wrongly_set(what: str, home: Path) -> Settings:
    """Settings with one thing wrong."""
    if what == "home":
        (home / "file").write_text("a file")
        return Settings(home=home / "file" / "below")
    if what == "clock":
        return Settings(home=home, clock="file:x")
    return Settings(home=home, database="postgresql://127.0.0.1:9/none")


@pytest.mark.parametrize("what", ["home", "clock", "PostgreSQL"])
def test_the_doctor_reports_what_is_wrong(what: str, tmp_path: Path) -> None:
    result = asyncio.run(doctor(DoctorRequest(), wrongly_set(what, tmp_path)))
    wrong = [finding for finding in result.findings if finding.state == "wrong"]
    assert [(finding.what, bool(finding.advice)) for finding in wrong] == [(what, True)]
    assert result.exit_code == 1
    assert json.loads(result.to_json())["findings"]


def test_the_doctor_knows_newer_files_a_clock_set_back_and_old_replies(tmp_path: Path) -> None:
    with closing(RunStore(tmp_path / "runs.db")) as store:
        store.begin("r", "{}", "2999-01-01T00:00:00+00:00")
    with closing(Journal(tmp_path / "journal.db")) as journal:
        request = JournalRequest(key=content_key("x"), kind="tool")
        journal.keep(request, JournalEntry(body=b"{}"))
        journal.database.write("UPDATE kept SET checksum = NULL")
    result = healthy(Settings(home=tmp_path))
    assert (result["clock"].state, result["journal.db"].state, result["runs.db"].state) == ("wrong", "ok", "ok")
    assert "2999-01-01" in result["clock"].detail
    assert "1 stored before checksums existed cannot be verified" in result["journal.db"].detail
    assert result["disk"].detail.endswith("GB free")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as con:
        con.execute("pragma user_version = 99")
    newer = healthy(Settings(home=tmp_path))["runs.db"]
    assert (newer.state, "--upgrade" in newer.advice) == ("wrong", True)
    assert "a newer foretell wrote it: store version 99" in newer.detail


def test_the_doctor_sets_edited_replies_of_a_server_aside(tmp_path: Path, postgres: str) -> None:
    settings = Settings(home=tmp_path, database=postgres)
    keys = [content_key(n) for n in range(3)]
    with closing(Journal(postgres)) as journal:
        for key in keys:
            request = JournalRequest(key=key, kind="tool")
            journal.intend(request)
            journal.keep(request, JournalEntry(body=b"{}"))
        journal.database.write("UPDATE kept SET answer = ? WHERE key = ?", (b"[]", bytes.fromhex(keys[1])))
    due = datetime(2026, 1, 1, tzinfo=UTC)
    question = Question(id="q", source="own", text="?", due=due, targets=(Target(id="yes"),))
    with closing(RunStore(postgres)) as store:
        store.begin("r", "{}", "2026-01-01T00:00:00+00:00")
        for trial in (0, 1):
            forecast = Forecast(question_id="q", forecaster="t", as_of=question.as_of, p={"yes": 0.5}, trial=trial)
            store.finish_trial(RunTrial(run="r", question=question, trial=trial).key, forecast)
        store.database.write("UPDATE cell SET forecast = replace(forecast, '0.5', '0.9') WHERE trial = 1")
    result = asyncio.run(doctor(DoctorRequest(repair=True), settings))
    assert [finding.state for finding in result.findings if finding.notes] == ["repaired", "repaired"]
    assert keys[1] in next(tmp_path.glob("journal.db.set-aside-*.jsonl")).read_text()
    assert "0.9" in next(tmp_path.glob("runs.db.set-aside-*.jsonl")).read_text()
    with closing(RunStore(postgres)) as store:
        assert [answer.trial for answer in store.answers("r")] == [0]
    sound = asyncio.run(doctor(DoctorRequest(repair=True), settings))
    assert [finding.state for finding in sound.findings if "on the server" in finding.detail] == ["ok", "ok"]
    with closing(Journal(postgres)) as journal:
        assert [journal.find(key) for key in keys] == [b"{}", None, b"{}"]


def test_the_doctor_reaches_every_service_with_one_call_and_compares_clocks(tmp_path: Path) -> None:
    async def run() -> DoctorResult:
        async with practised(tmp_path) as settings:
            return await doctor(DoctorRequest(online=True), settings)

    result = asyncio.run(run())
    reached = [finding for finding in result.findings if finding.what in service_names()]
    assert len(reached) == len({row.what for row in reached}) > 20
    assert {row.what: row.detail for row in reached if row.state == "wrong"} == {}
    (clock,) = (finding for finding in result.findings if finding.what == "clock")
    assert clock.detail.endswith("as services have it")
    assert KEY not in result.to_json().replace("practice world", "")
    assert [
        finding for finding in result.findings if finding.state in ("missing", "wrong") and not finding.advice
    ] == []


def test_a_new_settings_file_explains_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    assert CliRunner().invoke(cli, ["doctor", "--contact", "me@example.org"]).exit_code == 0
    text = (tmp_path / "settings.toml").read_text()
    assert load_settings().contact == "me@example.org"
    (tmp_path / "settings.toml").write_text(re.sub(r'(?m)^# (?=[\w"/]+ = |\[)', "", text), encoding="utf-8-sig")
    saved = read_settings_file(tmp_path)
    assert set(saved) == {"workers_concurrency", *(key for key, _ in OLD.values())}
    assert saved["corpus"] == tmp_path / "corpus.db"
    assert str(saved["rate_limits"]["wayback"][-1]) == "100/min"
    assert saved["model_limits"]["openai"].requests_per_minute == 500


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('contcat = "me@example.org"', "contcat: is no setting .did you mean contact"),
        ('contact = "me"', "contact: 'me' is neither an e-mail address"),
        ('network = "off"', "network: should be true or false"),
        ('rate_limits = "gdelt=1/9s"', "rate_limits: should be a table"),
        ('[rate_limits]\ngdelt = "often"', "rate_limits: cannot read the rate limit 'gdelt=often'"),
        ("[model_limits]\nopenai = 3", "the limits of openai should be a table"),
        ("[model_limits]\nopenai = {calls = 3}", "cannot read the limit 'calls=3'"),
        ('[user_agents]\nyaho = "x"', "did you mean yahoo"),
        ("contact", "settings.toml: "),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(InputError, match=f"settings.toml.*{problem}" if text != "contact" else problem):
        load_settings({"FORETELL_HOME": str(tmp_path)})


def test_old_variables_count_with_one_note_that_names_the_key(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(foretell.runs.settings, "_noted", set())
    old = {"FORETELL_HOME": str(tmp_path), "FORETELL_PACE": "gdelt=1/9s", "FORETELL_NETWORK": "off"}
    for _ in range(2):
        settings = load_settings(old)
    assert (str(settings.rate_limits["gdelt"][0]), settings.network) == ("1/9 s", False)
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "FORETELL_NETWORK is now network in settings.toml",
        "FORETELL_PACE is now rate_limits in settings.toml",
    ]
    finding = healthy(settings)["settings"]
    assert "FORETELL_PACE" in finding.detail
    assert str(tmp_path / "settings.toml") in finding.advice


def test_the_contact_can_still_be_set_by_old_variables() -> None:
    names = {"FORETELL_USER_AGENT": "all/1", "FORETELL_YAHOO_USER_AGENT": "yahoo/1", "FORETELL_PACE": "gdelt=1/9s"}
    settings = load_settings({"FORETELL_HOME": "/nowhere", "FORETELL_CONTACT": "https://me.example/about", **names})
    access = settings.access
    assert access.contact == "https://me.example/about"
    assert (access.user_agent("yahoo"), access.user_agent("fred")) == ("yahoo/1", "all/1")
    assert str(access.rate_limits["gdelt"][0]) == "1/9 s"
    for wrong in ({"FORETELL_CONTACT": "me"}, {"FORETELL_USER_AGENT": "a\nb"}, {"FORETELL_PACE": "x"}):
        with pytest.raises(InputError):
            load_settings({"FORETELL_HOME": "/nowhere", **wrong})


def test_every_adapter_respects_the_rate_limits_of_its_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the public addresses, with requests intercepted before they are sent."""
    seen: dict[str, set[str]] = {}

    async def caught(self: AsyncHttpClient, service: KnownService, request: Any, url: str, *_: object) -> HttpResponse:
        limits = {limit.what for limit in service.limits_of(request.url.path)}
        seen.setdefault(service.name, set()).update(limits)
        if "/cdx/" in request.url.path:
            row = {"timestamp": "20260101000000", "original": "https://example.com/", "statuscode": "200"}
            names = request.url.query["fl"].split(",")
            body = json.dumps([names, [row.get(name, "-") for name in names]])
            return HttpResponse(status=200, body=body.encode(), hops=(url,))
        raise NotFound("caught", url=url, status=404)

    async def uncaught(self: AsyncHttpClient, request: Any, url: str, *_: object) -> HttpResponse:
        raise AssertionError(f"{url} belongs to no known service")

    monkeypatch.setattr(AsyncHttpClient, "_in_turn", caught)
    monkeypatch.setattr(AsyncHttpClient, "_once", uncaught)
    keys = {name: CANARY for names in KEYS.values() for name in names}
    settings = Settings(home=tmp_path, keys=keys, contact="me@example.org")
    result = asyncio.run(check_services(None, settings))
    assert not [check for check in result.checks if "no known service" in check.detail]
    checked_services = {check.service for check in result.checks if check.verdict != "left out"}
    assert checked_services <= set(seen)
    unlimited = {name for name, facts in KNOWN_SERVICES.items() if not facts.limits}
    assert {name for name, limits in seen.items() if not limits} <= unlimited
    assert seen["wayback"] == {"look-ups", "pages", "at-once"}
