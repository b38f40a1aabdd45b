"""Downloads from a real server on this machine, polite and impolite, and the command on top of them."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foretell.cli import cli, operation_command
from foretell.data import AsyncHttpClient, DownloadCache, HttpLimits, SourceError
from foretell.data.datasets import ForecastBenchDownload, PulledFile, pulled_rounds, read_pulled
from foretell.outgoing.retry import RetryRule
from foretell.questions import InputError, instant
from foretell.runs import open_benchmark, prepare_run, spec_from_mapping

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


class Bench:
    """Downloads, each in an event loop and with a client of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.cache = DownloadCache(folder)
        self._url = url

    def pull(self, days: list[str]) -> list[PulledFile]:
        return self._ask(lambda bench: bench.pull(days))

    def latest(self) -> str:
        return self._ask(lambda bench: bench.latest())

    def _ask(self, what: Any) -> Any:
        async def ask() -> Any:
            limits = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0)
            async with AsyncHttpClient(limits=limits) as client:
                return await what(ForecastBenchDownload(self.cache, client, url=self._url))

        return asyncio.run(ask())


@pytest.fixture
def bench(site, tmp_path: Path):
    site.publishes(QUESTIONS, round_of(), ETag='"q1"')
    site.publishes(OUTCOMES, outcomes_of(0.4, resolved=False), ETag='"r1"')
    site.publishes(LATEST, f"{DUE}-llm.json".encode())
    return Bench(tmp_path / "cache", f"{site.url}/")


def states(bench: Bench) -> list[str]:
    return [one.state for one in bench.pull([DUE])]


def reply(site, **fields: Any):
    """A scripted answer of the fixture's own type."""
    return type(site.replies[QUESTIONS][0])(**fields)


def test_a_round_is_brought_here_and_read(bench, site) -> None:
    assert states(bench) == ["downloaded", "downloaded"]
    assert pulled_rounds(bench.cache) == [DUE]
    found = read_pulled(bench.cache, DUE)
    assert [q.id for q in found.questions] == ["infer/1"]
    assert [r.outcome for r in found.resolutions] == [None]
    recorded = json.loads((bench.cache.root / "manifest.json").read_text())["files"]
    assert set(recorded) == {QUESTIONS[1:], OUTCOMES[1:]}
    assert recorded[QUESTIONS[1:]]["url"] == f"{site.url}{QUESTIONS}"


def test_what_is_here_is_not_downloaded_again(bench, site) -> None:
    states(bench)
    assert states(bench) == ["unchanged", "unchanged"]
    assert site.asked(QUESTIONS) == 1
    assert site.seen[-1][1]["If-None-Match"] == '"r1"', "outcomes are asked for only if they changed"


def test_new_outcomes_replace_old_ones_and_revisions_are_counted(bench, site) -> None:
    states(bench)
    site.publishes(OUTCOMES, outcomes_of(1.0), ETag='"r2"')
    assert [(one.state, one.revised) for one in bench.pull([DUE])] == [("unchanged", 0), ("updated", 0)]
    site.publishes(OUTCOMES, outcomes_of(0.0))
    assert bench.pull([DUE])[1].revised == 1
    assert read_pulled(bench.cache, DUE).outcomes() == {("infer/1", instant(DUE), "yes"): 0}
    assert states(bench) == ["unchanged", "unchanged"], "the same bytes without a tag are no update"


def test_a_file_changed_on_disk_is_noticed_and_mended(bench, site) -> None:
    states(bench)
    path = bench.cache.root / QUESTIONS[1:]
    path.write_text(path.read_text().replace("Will it?", "Won't it?"))
    with pytest.raises(InputError, match="is not what was downloaded"):
        read_pulled(bench.cache, DUE)
    assert states(bench)[0] == "downloaded"
    assert read_pulled(bench.cache, DUE).questions[0].text == "Will it?"


def test_a_file_deleted_from_disk_is_brought_back(bench) -> None:
    states(bench)
    (bench.cache.root / QUESTIONS[1:]).unlink()
    assert states(bench)[0] == "downloaded"


def test_an_interrupted_pull_goes_on_where_it_stopped(bench, site) -> None:
    site.says(OUTCOMES, reply(site, status=403))
    with pytest.raises(SourceError, match="403"):
        bench.pull([DUE])
    site.publishes(OUTCOMES, outcomes_of(1.0))
    assert states(bench) == ["unchanged", "downloaded"]
    assert site.asked(QUESTIONS) == 1


def test_a_busy_server_is_asked_again(bench, site) -> None:
    body = json.dumps(round_of()).encode()
    busy = reply(site, status=429, headers={"Retry-After": "0"})
    site.says(QUESTIONS, busy, reply(site, status=503), reply(site, body=body))
    assert states(bench) == ["downloaded", "downloaded"]
    assert site.asked(QUESTIONS) == 3


def test_a_body_cut_short_is_fetched_again(bench, site) -> None:
    body = json.dumps(round_of()).encode()
    short = reply(site, body=body[:20], claimed_length=len(body))
    site.says(QUESTIONS, short, reply(site, body=body))
    assert states(bench)[0] == "downloaded"
    site.says(OUTCOMES, short)
    with pytest.raises(SourceError):
        bench.pull([DUE])


@pytest.mark.parametrize("body", [b"<html>sorry</html>", b"[]", b'{"questions": {}}'])
def test_an_error_page_never_replaces_a_good_file(bench, site, body: bytes) -> None:
    states(bench)
    site.says(OUTCOMES, reply(site, body=body))
    with pytest.raises(SourceError, match="what came"):
        bench.pull([DUE])
    assert len(read_pulled(bench.cache, DUE).resolutions) == 1


def test_a_wrong_length_is_noticed(bench, site) -> None:
    body = json.dumps(round_of()).encode()
    site.says(QUESTIONS, reply(site, body=body, claimed_length=len(body) - 5))
    with pytest.raises(SourceError, match=r"not whole JSON|another length than it says"):
        bench.pull([DUE])
    assert pulled_rounds(bench.cache) == []
    assert not list(bench.cache.root.rglob("*.json")), "nothing half-written stays behind"


def test_a_round_that_does_not_exist(bench) -> None:
    with pytest.raises(InputError) as caught:
        bench.pull(["2025-10-27"])
    near = "2025-09-14, 2025-09-28, 2025-10-12, 2025-10-26"
    assert str(caught.value) == f"there is no round 2025-10-27 (rounds near it: {near}; latest 2025-10-26)"


def test_outcomes_not_published_yet(bench, site) -> None:
    site.says(OUTCOMES, reply(site, status=404))
    assert states(bench) == ["downloaded", "not published yet"]
    assert read_pulled(bench.cache, DUE).resolutions == ()


@pytest.mark.parametrize("day", ["yesterday", "20251026", "../../etc/passwd", ""])
def test_what_is_no_date_is_refused_before_anything_is_asked(bench, site, day: str) -> None:
    with pytest.raises(InputError, match="is not a round"):
        bench.pull([day])
    assert site.seen == []


def test_latest_follows_the_symlink_and_survives_a_real_file(bench, site) -> None:
    assert bench.latest() == DUE
    site.publishes(LATEST, round_of("2025-11-09"))
    assert bench.latest() == "2025-11-09"
    site.publishes(LATEST, b"hello")
    with pytest.raises(SourceError, match="does not name a round: 'hello'"):
        bench.latest()


def test_a_damaged_manifest_is_told(bench) -> None:
    states(bench)
    (bench.cache.root / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json: is damaged"):
        bench.pull([DUE])


def test_what_was_never_downloaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has not been downloaded"):
        read_pulled(DownloadCache(tmp_path), DUE)


@pytest.fixture
def run(site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_FORECASTBENCH_URL", site.url)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))

    def command(*args: str) -> Result:
        return CliRunner().invoke(data, list(args))

    return command


def test_the_command_pulls_and_lists(bench, run, tmp_path: Path) -> None:
    assert "nothing in" in run("list").output
    result = run("pull", "forecastbench")
    assert result.exit_code == 0, result.output
    assert f"{QUESTIONS[1:]}: downloaded" in result.output
    listed = run("list").output
    assert DUE in listed
    assert "intact" in listed
    assert (tmp_path / "home/forecastbench/manifest.json").exists()
    assert "unchanged" in run("pull", "forecastbench", "--round", DUE).output


def test_a_damaged_file_is_listed_as_such(bench, run, tmp_path: Path) -> None:
    run("pull", "forecastbench")
    (tmp_path / "home/forecastbench" / QUESTIONS[1:]).write_text("{}")
    listed = CliRunner(env={"COLUMNS": "200"}).invoke(data, ["list"])
    assert "is not what was downloaded" in listed.output


def test_a_failing_server_is_one_plain_line(bench, site, run) -> None:
    site.says(QUESTIONS, reply(site, status=403))
    result = run("pull", "forecastbench", "--round", DUE)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("http://127.0.0.1")
    assert "403" in str(result.exception)


def test_an_unknown_source(run) -> None:
    assert "'futurex' is not one of 'forecastbench', 'prophet-arena'" in run("pull", "futurex").output


def test_a_round_that_is_named_comes_by_itself(bench, site, tmp_path: Path, monkeypatch) -> None:
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
    assert json.loads(shown) == json.loads(saved), "what was saved is read back as it was"
    assert site.asked(QUESTIONS) == 1, "what is here is not fetched again"
    spec = spec_from_mapping({"questions": f"forecastbench:{DUE}", "forecaster": "always"})
    assert [one.id for one in prepare_run(spec).questions] == ["infer/1"]

    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "another"))
    newest = CliRunner().invoke(cli, ["data", "show", "forecastbench", "--json"])
    assert "infer/1" in newest.output, "the newest where none is named"
    wrong = CliRunner().invoke(cli, ["data", "show", "forecastbench:soon"])
    assert "'soon' is not a round" in str(wrong.exception)


def test_without_a_network_it_is_said_what_to_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    with socket.create_server(("127.0.0.1", 0)) as server:  # Nobody listens there any more.
        monkeypatch.setenv("FORETELL_FORECASTBENCH_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
    monkeypatch.setattr(RetryRule, "pause", lambda *_, **__: None)
    told = CliRunner().invoke(cli, ["data", "show", f"forecastbench:{DUE}"])
    for words in (
        f"round {DUE}",
        "could not be fetched",
        f"foretell data pull forecastbench --round {DUE}",
        "copy the",
    ):
        assert words in str(told.exception)
    with pytest.raises(InputError, match="does not hold round"):  # A folder of one's own is left as it is.
        open_benchmark("forecastbench", rounds=(DUE,), folder=tmp_path / "mine")
