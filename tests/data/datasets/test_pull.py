"""Downloads from a local server, with and without failures, and the command that uses them."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foretell.cli.commands import operation_command
from foretell.cli.main import cli
from foretell.data.datasets.forecastbench_download import (
    ForecastBenchDownload,
    PulledFile,
    pulled_rounds,
    read_pulled,
)
from foretell.data.files import DownloadCache
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.outgoing.retry import RetryRule
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.runs.question_sets import open_benchmark
from foretell.runs.runner import prepare_run
from foretell.runs.spec import spec_from_mapping

data = operation_command("data")

DUE = "2025-10-26"
QUESTIONS = f"/question_sets/{DUE}-llm.json"
OUTCOMES = f"/resolution_sets/{DUE}_resolution_set.json"
LATEST = "/question_sets/latest-llm.json"


def round_of(due: str = DUE) -> dict[str, Any]:
    question = {"id": "1", "source": "infer", "question": "Will it?", "resolution_dates": "N/A"}
    return {"forecast_due_date": due, "question_set": f"{due}-llm.json", "questions": [question]}


def outcomes_of(value: float, resolved: bool = True) -> dict[str, Any]:
    row = {"id": "1", "source": "infer", "resolution_date": "2025-12-01", "resolved_to": value, "resolved": resolved}
    return {"forecast_due_date": DUE, "question_set": f"{DUE}-llm.json", "resolutions": [row]}


class Downloader:
    """Downloads, each with its own event loop and client."""

    def __init__(self, folder: Path, url: str) -> None:
        self.cache = DownloadCache(folder)
        self._url = url

    def pull(self, days: list[str]) -> list[PulledFile]:
        return self._ask(lambda downloader: downloader.pull(days))

    def latest(self) -> str:
        return self._ask(lambda downloader: downloader.latest())

    def _ask(self, what: Any) -> Any:
        async def ask() -> Any:
            limits = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0)
            async with AsyncHttpClient(limits=limits) as client:
                return await what(ForecastBenchDownload(self.cache, client, url=self._url))

        return asyncio.run(ask())


@pytest.fixture
def downloader(site, tmp_path: Path):
    site.publish(QUESTIONS, round_of(), ETag='"q1"')
    site.publish(OUTCOMES, outcomes_of(0.4, resolved=False), ETag='"r1"')
    site.publish(LATEST, f"{DUE}-llm.json".encode())
    return Downloader(tmp_path / "cache", f"{site.url}/")


def states(downloader: Downloader) -> list[str]:
    return [file.state for file in downloader.pull([DUE])]


def reply(site, **fields: Any):
    """Return a scripted response of the fixture's own type."""
    return type(site.replies[QUESTIONS][0])(**fields)


def test_a_round_is_downloaded_and_read(downloader, site) -> None:
    assert states(downloader) == ["downloaded", "downloaded"]
    assert pulled_rounds(downloader.cache) == [DUE]
    pulled = read_pulled(downloader.cache, DUE)
    assert [q.id for q in pulled.questions] == ["infer/1"]
    assert [r.outcome for r in pulled.resolutions] == [None]
    recorded = json.loads((downloader.cache.root / "manifest.json").read_text())["files"]
    assert set(recorded) == {QUESTIONS[1:], OUTCOMES[1:]}
    assert recorded[QUESTIONS[1:]]["url"] == f"{site.url}{QUESTIONS}"


def test_downloaded_files_are_not_downloaded_again(downloader, site) -> None:
    states(downloader)
    assert states(downloader) == ["unchanged", "unchanged"]
    assert site.count(QUESTIONS) == 1
    assert site.seen[-1][1]["If-None-Match"] == '"r1"', "outcomes are requested only if they changed"


def test_new_outcomes_replace_old_ones_and_revisions_are_counted(downloader, site) -> None:
    states(downloader)
    site.publish(OUTCOMES, outcomes_of(1.0), ETag='"r2"')
    assert [(file.state, file.revised) for file in downloader.pull([DUE])] == [("unchanged", 0), ("updated", 0)]
    site.publish(OUTCOMES, outcomes_of(0.0))
    assert downloader.pull([DUE])[1].revised == 1
    assert read_pulled(downloader.cache, DUE).outcomes() == {("infer/1", instant(DUE), "yes"): 0}
    assert states(downloader) == ["unchanged", "unchanged"], "the same bytes without an ETag are not an update"


def test_a_file_changed_on_disk_is_detected_and_downloaded_again(downloader, site) -> None:
    states(downloader)
    path = downloader.cache.root / QUESTIONS[1:]
    path.write_text(path.read_text().replace("Will it?", "Won't it?"))
    with pytest.raises(InputError, match="is not what was downloaded"):
        read_pulled(downloader.cache, DUE)
    assert states(downloader)[0] == "downloaded"
    assert read_pulled(downloader.cache, DUE).questions[0].text == "Will it?"


def test_a_file_deleted_from_disk_is_downloaded_again(downloader) -> None:
    states(downloader)
    (downloader.cache.root / QUESTIONS[1:]).unlink()
    assert states(downloader)[0] == "downloaded"


def test_an_interrupted_pull_continues_where_it_stopped(downloader, site) -> None:
    site.respond(OUTCOMES, reply(site, status=403))
    with pytest.raises(SourceError, match="403"):
        downloader.pull([DUE])
    site.publish(OUTCOMES, outcomes_of(1.0))
    assert states(downloader) == ["unchanged", "downloaded"]
    assert site.count(QUESTIONS) == 1


def test_a_busy_server_is_retried(downloader, site) -> None:
    body = json.dumps(round_of()).encode()
    busy = reply(site, status=429, headers={"Retry-After": "0"})
    site.respond(QUESTIONS, busy, reply(site, status=503), reply(site, body=body))
    assert states(downloader) == ["downloaded", "downloaded"]
    assert site.count(QUESTIONS) == 3


def test_a_truncated_body_is_fetched_again(downloader, site) -> None:
    body = json.dumps(round_of()).encode()
    short = reply(site, body=body[:20], claimed_length=len(body))
    site.respond(QUESTIONS, short, reply(site, body=body))
    assert states(downloader)[0] == "downloaded"
    site.respond(OUTCOMES, short)
    with pytest.raises(SourceError):
        downloader.pull([DUE])


@pytest.mark.parametrize("body", [b"<html>sorry</html>", b"[]", b'{"questions": {}}'])
def test_an_error_page_never_replaces_a_good_file(downloader, site, body: bytes) -> None:
    states(downloader)
    site.respond(OUTCOMES, reply(site, body=body))
    with pytest.raises(SourceError, match="the response "):
        downloader.pull([DUE])
    assert len(read_pulled(downloader.cache, DUE).resolutions) == 1


def test_a_wrong_content_length_raises(downloader, site) -> None:
    body = json.dumps(round_of()).encode()
    site.respond(QUESTIONS, reply(site, body=body, claimed_length=len(body) - 5))
    with pytest.raises(SourceError, match=r"not complete JSON|its length is wrong"):
        downloader.pull([DUE])
    assert pulled_rounds(downloader.cache) == []
    assert not list(downloader.cache.root.rglob("*.json")), "no partial file remains"


def test_an_unknown_round_raises_with_the_rounds_near_it(downloader) -> None:
    with pytest.raises(InputError) as caught:
        downloader.pull(["2025-10-27"])
    near = "2025-09-14, 2025-09-28, 2025-10-12, 2025-10-26"
    assert str(caught.value) == f"there is no round 2025-10-27 (rounds near it: {near}; latest 2025-10-26)"


def test_outcomes_that_are_not_published_yet_are_reported(downloader, site) -> None:
    site.respond(OUTCOMES, reply(site, status=404))
    assert states(downloader) == ["downloaded", "not published yet"]
    assert read_pulled(downloader.cache, DUE).resolutions == ()


@pytest.mark.parametrize("day", ["yesterday", "20251026", "../../etc/passwd", ""])
def test_an_invalid_date_is_refused_before_any_request(downloader, site, day: str) -> None:
    with pytest.raises(InputError, match="is not a round"):
        downloader.pull([day])
    assert site.seen == []


def test_latest_follows_the_symlink_and_reads_a_real_file(downloader, site) -> None:
    assert downloader.latest() == DUE
    site.publish(LATEST, round_of("2025-11-09"))
    assert downloader.latest() == "2025-11-09"
    site.publish(LATEST, b"hello")
    with pytest.raises(SourceError, match="does not name a round: 'hello'"):
        downloader.latest()


def test_a_damaged_manifest_raises(downloader) -> None:
    states(downloader)
    (downloader.cache.root / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json: is damaged"):
        downloader.pull([DUE])


def test_a_file_that_was_never_downloaded_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has not been downloaded"):
        read_pulled(DownloadCache(tmp_path), DUE)


@pytest.fixture
def run(site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_FORECASTBENCH_URL", site.url)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))

    def command(*args: str) -> Result:
        return CliRunner().invoke(data, list(args))

    return command


def test_the_command_pulls_and_lists(downloader, run, tmp_path: Path) -> None:
    assert "nothing in" in run("list").output
    result = run("pull", "forecastbench")
    assert result.exit_code == 0, result.output
    assert f"{QUESTIONS[1:]}: downloaded" in result.output
    listed = run("list").output
    assert DUE in listed
    assert "intact" in listed
    assert (tmp_path / "home/forecastbench/manifest.json").exists()
    assert "unchanged" in run("pull", "forecastbench", "--round", DUE).output


def test_a_damaged_file_is_listed_as_such(downloader, run, tmp_path: Path) -> None:
    run("pull", "forecastbench")
    (tmp_path / "home/forecastbench" / QUESTIONS[1:]).write_text("{}")
    listed = CliRunner(env={"COLUMNS": "200"}).invoke(data, ["list"])
    assert "is not what was downloaded" in listed.output


def test_a_failing_server_is_reported_in_one_line(downloader, site, run) -> None:
    site.respond(QUESTIONS, reply(site, status=403))
    result = run("pull", "forecastbench", "--round", DUE)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("http://127.0.0.1")
    assert "403" in str(result.exception)


def test_an_unknown_source_is_refused(run) -> None:
    assert "'futurex' is not one of 'forecastbench', 'prophet-arena'" in run("pull", "futurex").output


def test_a_named_round_is_downloaded_automatically(downloader, site, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FORETELL_FORECASTBENCH_URL", site.url)
    monkeypatch.chdir(tmp_path)
    for command in (
        ["data", "show", f"forecastbench:{DUE}", "--json"],
        ["data", "show", "forecastbench", "--set", f"questions.rounds={DUE}", "--out", "round.jsonl"],
        ["backtest", "forecastbench", "--set", f"questions.rounds={DUE}", "-F", "always"],
    ):
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, done.output
    assert "infer/1" in (tmp_path / "round.jsonl").read_text()
    shown, saved = (
        CliRunner().invoke(cli, ["data", "show", name, "--json"]).stdout
        for name in (f"forecastbench:{DUE}", "round.jsonl")
    )
    assert json.loads(shown) == json.loads(saved), "saved questions read back unchanged"
    assert site.count(QUESTIONS) == 1, "downloaded files are not fetched again"
    spec = spec_from_mapping({"questions": f"forecastbench:{DUE}", "forecaster": "always"})
    assert [question.id for question in prepare_run(spec).questions] == ["infer/1"]

    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "another"))
    newest = CliRunner().invoke(cli, ["data", "show", "forecastbench", "--json"])
    assert "infer/1" in newest.output, "the newest round if none is named"
    wrong = CliRunner().invoke(cli, ["data", "show", "forecastbench:soon"])
    assert "'soon' is not a round" in str(wrong.exception)


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    with socket.create_server(("127.0.0.1", 0)) as server:  # Closed again, so nothing listens there.
        monkeypatch.setenv("FORETELL_FORECASTBENCH_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
    monkeypatch.setattr(RetryRule, "pause", lambda *_, **__: None)
    result = CliRunner().invoke(cli, ["data", "show", f"forecastbench:{DUE}"])
    for words in (
        f"round {DUE}",
        "could not be fetched",
        f"foretell data pull forecastbench --round {DUE}",
        "copy the",
    ):
        assert words in str(result.exception)
    with pytest.raises(InputError, match="does not contain round"):  # A custom folder is not changed.
        open_benchmark("forecastbench", rounds=(DUE,), folder=tmp_path / "mine")
