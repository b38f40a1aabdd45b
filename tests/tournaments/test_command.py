"""`foretell submit` and `foretell ledger`, against fake platforms on this machine."""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fakes.markets import FakeMetaculus, FakeProphetArena
from fakes.processes import ForkedCommand
from fakes.samples import SampleMetaculusQuestion, SampleMetaculusScale, metaculus_post_body, prophet_arena_body
from foretell.cli.commands import operation_command
from foretell.data.files import DownloadCache
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox
from foretell.practice.server import PracticeServer
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question, Target
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, trials_of

show = operation_command("data show")
ledger_command = operation_command("ledger")
submit = operation_command("submit")

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
TOKEN, KEY = "canary-token-5", "pa_live_canary_5"


@contextmanager
def listening(server: PracticeServer) -> Iterator[PracticeServer]:
    """Serves from a thread of its own, as the command has the main one."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with server:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(5)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("METACULUS_TOKEN", "ARENA_API_KEY", "FORETELL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    (tmp_path / "clock").write_text(NOW.isoformat())
    monkeypatch.setenv("FORETELL_CLOCK", f"file:{tmp_path / 'clock'}")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def inbox() -> MetaculusInbox:
    return MetaculusInbox(now=lambda: NOW)


@pytest.fixture
def metaculus(home: Path, inbox: MetaculusInbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[PracticeServer]:
    numeric = SampleMetaculusQuestion(
        id=3, title="How many?", kind="numeric", scale=SampleMetaculusScale(low=0, high=100)
    )
    closed = SampleMetaculusQuestion(id=4, title="Over?", closes="2026-10-01T00:00:00Z", status="closed")
    posts = [
        metaculus_post_body(101, "Will it?", SampleMetaculusQuestion(id=1, title="Will it?")),
        metaculus_post_body(103, "How many?", numeric),
        metaculus_post_body(105, "Over?", closed),
    ]
    fake = FakeMetaculus({}, token=TOKEN).having(MetaculusCatalogue(posts)).taking(inbox)
    monkeypatch.setenv("METACULUS_TOKEN", TOKEN)
    with listening(fake.server()) as server:
        server.fake = fake
        monkeypatch.setenv("FORETELL_METACULUS_URL", f"{server.url}/api")
        yield server


def ran(home: Path, *, ids: tuple[str, ...] = ("metaculus/101",), silent: tuple[str, ...] = (), **spec: Any) -> str:
    """A run in the store with two trials, 0.2 and 0.4."""
    closing = spec.pop("closing", {})
    usual = {"questions": QuestionsSpec(dataset="arena:x"), "trials": 2, "mode": "live", "combine": "mean"}
    run_spec = RunSpec(**usual | spec)
    fields = {"text": "Will it?", "due": NOW, "targets": (Target(id="yes"),)}
    questions = [Question(id=id, source=id.split("/")[0], closes_at=closing.get(id), **fields) for id in ids]
    store = RunStore(home / "runs.db")
    store.begin(run_spec.id, run_spec.to_json(), NOW.isoformat())
    store.keep_questions(run_spec.id, questions)
    for trial in trials_of(run_spec.id, questions, run_spec.trials):
        if trial.question.id not in silent:
            as_of, p = trial.question.as_of_in(run_spec.mode), 0.2 + 0.2 * trial.trial
            stated = Numeric.from_quantiles({0.1: 10.0, 0.5: 30.0 + 10 * trial.trial, 0.9: 90.0})
            answer = Forecast(
                question_id=trial.question.id,
                forecaster="agent",
                as_of=as_of,
                p={"yes": p},
                trial=trial.trial,
                rationale=f"Trial {trial.trial} says so.",
                distribution=stated if trial.question.id == "metaculus/103" else None,
            )
            store.finish_trial(trial.key, answer)
    store.close()
    return run_spec.id


def run_submit(*arguments: str) -> Result:
    return CliRunner().invoke(submit, list(arguments))


def ledger(*arguments: str) -> Result:
    return CliRunner().invoke(ledger_command, list(arguments))


def refusal(result: Result) -> str:
    assert isinstance(result.exception, InputError), (result.output, result.exception)
    return str(result.exception)


def posted(server: PracticeServer) -> list[Any]:
    return [request.json() for request in server.requests if request.method != "GET"]


def test_a_dry_run_prints_exactly_what_is_sent_later_and_sends_nothing(
    home: Path, metaculus: PracticeServer, inbox: MetaculusInbox
):
    run = ran(home, ids=("metaculus/101", "metaculus/103"))
    dry = run_submit(run[:6], "--to", "metaculus", "--comment", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert posted(metaculus) == []
    assert not (home / "ledger.jsonl").exists()
    requests = json.loads(dry.stdout)
    assert "to metaculus as practice-bot: 2 forecasts, 2 comments" in dry.stderr
    sent = run_submit(run[:6], "--to", "metaculus", "--comment", "--yes")
    assert sent.exit_code == 0, sent.output
    assert posted(metaculus) == [request["body"] for request in requests]
    assert [request["address"].removeprefix(metaculus.url) for request in requests] == [
        "/api/questions/forecast/",
        "/api/comments/create/",
        "/api/comments/create/",
    ]
    assert inbox.forecasts[0] == {"question": 1, "probability_yes": 0.3}
    # The trials say 0.533 and 0.433 at 35, which is 0.483 in mean log-odds; between quantiles the cdf is linear.
    assert inbox.forecasts[1]["continuous_cdf"][70] == pytest.approx(0.483, abs=0.006)
    assert inbox.comments[0]["is_private"]
    assert "says so." in inbox.comments[0]["text"]
    everything = dry.output + sent.output + (home / "ledger.jsonl").read_text()
    assert TOKEN not in everything


def test_forecasts_are_sent_once_and_the_ledger_is_verified(home: Path, metaculus: PracticeServer):
    run = ran(home)
    first = run_submit(run, "--to", "metaculus", "--yes")
    assert "metaculus/101 forecast: sent" in first.stdout
    again = run_submit(run, "--to", "metaculus", "--yes")
    assert again.exit_code == 0
    assert "already (metaculus shows it)" in again.stderr
    assert len(posted(metaculus)) == 1
    shown = ledger("--platform", "metaculus").output.splitlines()
    assert "to send" in shown[0]
    assert "receipt of entry 1: answered" in shown[1]
    last_hash = shown[2].removeprefix("last hash ")
    assert last_hash in first.stderr
    assert ledger("--verify", last_hash).output.startswith("2 intact entries")
    (entry,) = json.loads(ledger("--json", "--last", "1").output)["entries"]
    assert entry["kind"] == "receipt"
    assert ledger("--platform", "prophet-arena").output == f"last hash {last_hash}\n"
    assert "has no effect with --verify" in refusal(ledger("--verify", "--last", "1"))


def test_changed_ledger_is_reported(home: Path, metaculus: PracticeServer):
    run_submit(ran(home), "--to", "metaculus", "--yes")
    path = home / "ledger.jsonl"
    last_hash = ledger().stdout.splitlines()[-1].removeprefix("last hash ")
    whole = path.read_text()
    path.write_text(whole.replace("0.3", "0.9", 1))
    broken = ledger("--verify")
    assert broken.exit_code == 1
    assert "entry 1 (line 1): its content was changed" in broken.output
    path.write_text(whole.splitlines(keepends=True)[0])
    assert ledger("--verify").exit_code == 0
    cut = ledger("--verify", last_hash)
    assert cut.exit_code == 1
    assert "the end was cut off" in cut.output
    assert "no such file" in refusal(ledger("--verify", "--file", "nothing"))
    assert "is not a NUMBER:HASH" in refusal(ledger("--verify", "zz"))
    path.unlink()
    assert ledger().output == "no entries\n"


def test_command_reads_back_a_lost_answer(home: Path, metaculus: PracticeServer, inbox: MetaculusInbox):
    metaculus.fake.inbox_faults.coming = ["lost answer"]
    result = run_submit(ran(home), "--to", "metaculus", "--yes")
    assert "metaculus/101 forecast: found" in result.stdout
    assert result.exit_code == 0
    assert len(inbox.forecasts) == 1


def test_unreachable_platform_is_reported_in_one_line(home: Path, metaculus: PracticeServer, inbox: MetaculusInbox):
    metaculus.fake.inbox_faults.coming = ["broken"] * 9
    result = run_submit(ran(home), "--to", "metaculus", "--yes")
    assert result.exit_code == 1
    assert "metaculus/101 forecast: failed" in result.stdout


def test_problems_are_reported_and_the_rest_is_sent(home: Path, metaculus: PracticeServer):
    run = ran(home, ids=("metaculus/101", "metaculus/105", "metaculus/103"), silent=("metaculus/103",))
    result = run_submit(run, "--to", "metaculus", "--yes")
    assert result.exit_code == 0, result.output
    assert "not sent: metaculus/105 forecast: the question accepts no forecasts: its status is closed" in result.stderr
    assert "not sent: metaculus/103 forecast: it has no forecast" in result.stderr
    assert len(posted(metaculus)) == 1
    only = run_submit(run, "--to", "metaculus", "--yes", "--question", "metaculus/105")
    assert only.exit_code == 1
    assert "there is no question 'x'" in refusal(run_submit(run, "--to", "metaculus", "--question", "x"))


def test_closed_questions_and_other_platforms_are_left_out(home: Path, metaculus: PracticeServer):
    ids = ("metaculus/101", "kalshi/KXFED-26DEC", "metaculus/7")
    run = ran(home, ids=ids, closing={"metaculus/7": "2026-10-30"})
    result = run_submit(run, "--to", "metaculus", "--yes")
    assert result.exit_code == 0, result.output
    assert "1 questions of other platforms are left out" in result.stderr
    assert "1 questions are closed" in result.stderr
    assert not any("/posts/7/" in request.path for request in metaculus.requests)


@pytest.mark.parametrize(
    ("spec", "why"),
    [({"mode": "backtest"}, "is a backtest"), ({"leakage_filter": False}, "had no leakage filter")],
)
def test_backtests_and_unfiltered_runs_are_rejected(home: Path, spec: dict[str, Any], why: str):
    assert why in refusal(run_submit(ran(home, **spec), "--to", "metaculus"))


def test_submit_needs_confirmation_and_a_key(home: Path, metaculus: PracticeServer, monkeypatch: pytest.MonkeyPatch):
    run = ran(home)
    assert "pass --yes" in refusal(run_submit(run, "--to", "metaculus"))
    assert posted(metaculus) == []
    monkeypatch.delenv("METACULUS_TOKEN")
    assert "set METACULUS_TOKEN" in refusal(run_submit(run, "--to", "metaculus"))
    monkeypatch.setenv("METACULUS_TOKEN", "canary-wrong")
    wrong = refusal(run_submit(run, "--to", "metaculus", "--dry-run"))
    assert "401" in wrong
    assert "canary-wrong" not in wrong


@pytest.mark.parametrize(("answer", "sent"), [("y\n", 1), ("n\n", 0)])
def test_user_is_asked_for_confirmation(
    home: Path, metaculus: PracticeServer, monkeypatch: pytest.MonkeyPatch, answer: str, sent: int
):
    run = ran(home)
    runner = CliRunner()
    with runner.isolation(input=answer):
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        result = submit.main([run, "--to", "metaculus"], standalone_mode=False) if sent else None
        if not sent:
            import click

            with pytest.raises(click.Abort):
                submit.main([run, "--to", "metaculus"], standalone_mode=False)
    assert result is None
    assert len(posted(metaculus)) == sent


def test_forecasts_from_a_file_and_a_typed_question_are_submitted(
    home: Path, metaculus: PracticeServer, inbox: MetaculusInbox
):
    Path("mine.jsonl").write_text('{"question": "metaculus/101", "p": 1.0}\n')
    assert run_submit("mine.jsonl", "--to", "metaculus", "--yes").exit_code == 1
    clipped = run_submit("mine.jsonl", "--to", "metaculus", "--yes", "--clip")
    assert "clipped it would be 0.999" in clipped.stderr
    run = ran(home, ids=("asked/abc",))
    assert run_submit(run, "--to", "metaculus", "--yes").exit_code == 1
    assert run_submit(run, "--to", "metaculus", "--yes", "--post", "101").exit_code == 0
    assert [forecast["probability_yes"] for forecast in inbox.forecasts] == [0.999, 0.3]
    two = ran(home, ids=("asked/abc", "asked/def"), trials=1)
    assert "one post cannot" in refusal(run_submit(two, "--to", "metaculus", "--post", "101"))


def test_prophet_arena_submission_by_command(home: Path, monkeypatch: pytest.MonkeyPatch):
    fake = FakeProphetArena([prophet_arena_body("who", "Who?", {"Ann": None, "Bob": None})], key=KEY)
    fake.agents = {"me"}
    Path("mine.jsonl").write_text(
        '{"question": "prophet_arena/who", "p": {"Ann": 0.7, "Bob": 0.3}, "rationale": "R"}\n'
    )
    monkeypatch.setenv("ARENA_API_KEY", KEY)
    with listening(fake.server()) as server:
        monkeypatch.setenv("FORETELL_PROPHET_ARENA_URL", server.url)
        assert "--set tournament.agent" in refusal(run_submit("mine.jsonl", "--to", "prophet-arena"))
        arguments = ("mine.jsonl", "--to", "prophet-arena", "--set", "tournament.agent=me", "--comment")
        dry = run_submit(*arguments, "--dry-run")
        assert posted(server) == []
        sent = run_submit(*arguments, "--yes")
        assert sent.exit_code == 0, sent.output
        assert posted(server) == [request["body"] for request in json.loads(dry.stdout)]
    assert fake.forecasts[0]["rationale"] == "R"
    assert KEY not in (home / "ledger.jsonl").read_text() + sent.output + dry.output


def question_set(day: str) -> bytes:
    rows: list[dict[str, Any]] = [
        {"id": f"m{n}", "source": "manifold", "question": "Will it?", "resolution_dates": "N/A"} for n in range(20)
    ]
    rows += [{"id": "S0", "source": "fred", "question": "Up?", "resolution_dates": ["2026-12-01", "2027-12-01"]}]
    return json.dumps({"forecast_due_date": day, "question_set": f"{day}-llm.json", "questions": rows}).encode()


def test_forecastbench_submission_by_command(home: Path):
    DownloadCache(home / "forecastbench").put(
        "question_sets/2026-11-01-llm.json", question_set("2026-11-01"), url="https://example.org"
    )
    rows = [{"question": f"manifold/m{n}", "p": {"yes": 0.3}} for n in range(19)]
    rows.append({"question": "fred/S0", "p": {"2026-12-01": 0.6, "2027-12-01": 0.7}})
    Path("mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert "--set tournament.organization" in refusal(run_submit("mine.jsonl", "--to", "forecastbench", "--yes"))
    own = {"organization": "Ex.", "entry": "full", "folder": "sent"}
    changes = [word for key, value in own.items() for word in ("--set", f"tournament.{key}={value}")]
    arguments = ("mine.jsonl", "--to", "forecastbench", *changes)
    dry = run_submit(*arguments, "--dry-run")
    assert not Path("sent").exists()
    result = run_submit(*arguments, "--yes")
    assert result.exit_code == 0, result.output
    body = json.loads(Path("sent/2026-11-01.Ex.1.json").read_text())
    assert [request["body"] for request in json.loads(dry.stdout)] == [body]
    assert len(body["forecasts"]) == 21
    assert "market forecasts: 19 of 20 (95.0 %); missing: manifold/m19" in result.stderr
    assert "Upload 2026-11-01.Ex.1.json" in result.stdout
    assert ledger("--verify").exit_code == 0


def test_shown_questions_are_asked_and_submitted_once(home: Path, metaculus: PracticeServer, inbox: MetaculusInbox):
    from foretell.data.datasets.question_files import read_questions
    from foretell.forecasters.agent.answer_format import thresholds_of

    out = ["--out", "questions.jsonl"]
    shown = CliRunner().invoke(show, ["metaculus:cup", *out])
    assert "2 questions (" in shown.output
    questions = read_questions("questions.jsonl")
    by_id = {question.id: question for question in questions.questions}
    assert set(by_id) == {"metaculus/101", "metaculus/103"}
    number = by_id["metaculus/103"]
    assert list(thresholds_of(number) or ()) == [">25", ">50", ">75"]
    assert "The range asked about is 0 to 100; it cannot end up outside." in number.background
    run_submit(ran(home), "--to", "metaculus", "--yes")
    again = CliRunner().invoke(show, ["metaculus", "--new", *out])
    assert "1 questions" in again.output
    assert [question.id for question in read_questions("questions.jsonl").questions] == ["metaculus/103"]
    run_submit(ran(home, ids=("metaculus/103",)), "--to", "metaculus", "--yes")
    assert "no new open question" in refusal(CliRunner().invoke(show, ["metaculus", "--new", *out]))
    assert len(inbox.forecasts) == 2
    assert all(request.query.get("tournaments") in (None, "cup") for request in metaculus.requests)


class Deadly(MetaculusInbox):
    """Kills the sender at the n-th item, before or after it is accepted."""

    def arm(self, at: int, *, after: bool) -> None:
        self.victim: ForkedCommand | None = None
        self.at, self.after, self.seen = at, after, 0

    def take(self, request: Any, posts: Any) -> tuple[int, Any]:
        self.seen += 1
        deadly = self.seen == self.at
        while deadly and self.victim is None:
            time.sleep(0.001)
        answer = super().take(request, posts) if self.after or not deadly else (503, {})
        if deadly and self.victim is not None:
            self.victim.kill()
            self.victim.wait()
        return answer


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_killed_submission_resumes_without_sending_twice(
    home: Path, monkeypatch: pytest.MonkeyPatch, at: int, after: bool
):
    inbox = Deadly(now=lambda: NOW)
    inbox.arm(at, after=after)
    posts = [metaculus_post_body(n, "Will it?", SampleMetaculusQuestion(id=n, title="Will it?")) for n in (101, 102)]
    fake = FakeMetaculus({}, token=TOKEN).having(MetaculusCatalogue(posts)).taking(inbox)
    monkeypatch.setenv("METACULUS_TOKEN", TOKEN)
    arguments = (ran(home, ids=("metaculus/101", "metaculus/102")), "--to", "metaculus", "--comment", "--yes")
    with listening(fake.server()) as server:
        monkeypatch.setenv("FORETELL_METACULUS_URL", f"{server.url}/api")
        inbox.victim = ForkedCommand(["submit", *arguments], cwd=Path.cwd(), env=os.environ)
        assert inbox.victim.wait(60) == -signal.SIGKILL
        again = run_submit(*arguments)
    assert again.exit_code == 0, again.output
    assert sorted(forecast["question"] for forecast in inbox.forecasts) == [101, 102]
    assert sorted(comment["on_post"] for comment in inbox.comments) == [101, 102]
    assert ledger("--verify").exit_code == 0
    entries = [json.loads(line) for line in (home / "ledger.jsonl").read_text().splitlines()]
    kinds = [entry["kind"] for entry in entries]
    assert kinds.count("receipt") == 4
    assert kinds.count("intention") == kinds.count("receipt") + kinds.count("absence")
