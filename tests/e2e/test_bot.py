"""A bot from its template to the platform: the workflow's own commands, run against fakes."""

import asyncio
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fakes.markets import FakeMetaculus
from fakes.models import BackgroundModels
from fakes.processes import forked_on_path
from fakes.samples import SampleMetaculusQuestion, SampleMetaculusScale, metaculus_post_body
from foretell.cli.commands import operation_command
from foretell.operations.table import OPERATIONS
from foretell.practice.markets.metaculus import MetaculusCatalogue
from foretell.practice.web import search_server, small_world

pytestmark = [
    pytest.mark.skipif(shutil.which("bash") is None, reason="the bot's script needs bash"),
    pytest.mark.skipif("tournament run" not in OPERATIONS, reason="the bot calls a command that is not there yet"),
]
BRAIN = "foretell.practice.models.scripts:agent_script"
TOKEN, KEY = "metaculus-canary-123", "provider-canary-456"
SECRETS = {"METACULUS_TOKEN": TOKEN, "OPENROUTER_API_KEY": KEY, "BRAVE_API_KEY": KEY}
FAR: Any = {"closes": "2999-01-01T00:00:00Z", "resolves": "2999-02-01T00:00:00Z"}


def posts() -> list[dict[str, Any]]:
    """One post of every kind."""
    when = SampleMetaculusScale(low=1.7e9, high=2.2e9, open_lower=True, open_upper=True)
    goals = SampleMetaculusScale(low=-0.5, high=20.5, cells=21)
    level = SampleMetaculusScale(low=1, high=1000, zero=0, open_upper=True)
    questions = [
        SampleMetaculusQuestion(id=111, title="Will Norges Bank cut its rate?", centers=(0.4,), **FAR),
        SampleMetaculusQuestion(id=121, title="Who?", kind="multiple_choice", options=("A", "B", "C"), **FAR),
        SampleMetaculusQuestion(id=131, title="When?", kind="date", scale=when, **FAR),
        SampleMetaculusQuestion(id=141, title="How much?", kind="numeric", scale=level, **FAR),
        SampleMetaculusQuestion(id=151, title="How many?", kind="discrete", scale=goals, **FAR),
    ]
    group = [SampleMetaculusQuestion(id=161 + n, title=f"({n})", label=f"part {n}", **FAR) for n in range(2)]
    return [
        *(metaculus_post_body(question.id // 10, question.title, question) for question in questions),
        metaculus_post_body(16, "Which?", *group),
    ]


class Sites:
    """Metaculus and search engines on a loop of their own."""

    def __init__(self) -> None:
        from foretell.practice.markets.metaculus import MetaculusInbox

        self.inbox = MetaculusInbox(now=lambda: datetime.now(UTC))
        self.metaculus = FakeMetaculus({}, token=TOKEN).having(MetaculusCatalogue(posts())).taking(self.inbox)
        self.servers = [self.metaculus.server(), search_server(small_world(), KEY)]
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        for server in self.servers:
            self._on_loop(server.__aenter__())

    def _on_loop(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    def close(self) -> None:
        for server in self.servers:
            self._on_loop(server.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@dataclass(kw_only=True)
class Workshop:
    """The bot's repository, and a runner like GitHub's."""

    folder: Path
    sites: Sites
    provider: BackgroundModels
    clock: Path
    output: list[str] = field(default_factory=list[str])

    def environment(self, step: dict[str, Any]) -> dict[str, str]:
        for name, value in step["env"].items():
            assert value == f"${{{{ secrets.{name} }}}}"
        inherited = {
            name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ
        }
        return {
            **inherited,
            "PATH": f"{self.folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            "FORETELL_HOME": str(self.folder / ".foretell"),
            # The clock does not move, so that two runs are on the same day.
            "FORETELL_CLOCK": f"file:{self.clock}",
            "FORETELL_METACULUS_URL": self.sites.servers[0].url,
            "FORETELL_BRAVE_URL": f"{self.sites.servers[1].url}/brave",
            "FORETELL_OPENROUTER_URL": f"{self.provider.url}/api/v1",
            **{name: SECRETS[name] for name in step["env"]},
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a step of the workflow."""
        path = self.folder / ".github" / "workflows" / "forecast.yml"
        (job,) = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        step = next(step for step in job["steps"] if step.get("run") == command)
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=self.folder,
            env=self.environment(step),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        self.output += [done.stdout, done.stderr]
        return done


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    launchers = tmp_path / "bin"
    launchers.mkdir()
    # An engine with a key, because the one without allows one request in five seconds.
    result = CliRunner().invoke(
        operation_command("init"), ["bot", str(tmp_path / "bot"), "--set", "trials=1", "--set", "search=brave"]
    )
    assert result.exit_code == 0, result.output
    sites = Sites()
    with BackgroundModels(script=BRAIN) as provider, forked_on_path(launchers):
        clock = tmp_path / "clock.txt"
        clock.write_text(datetime.now(UTC).isoformat(), encoding="utf-8")
        yield Workshop(folder=tmp_path / "bot", sites=sites, provider=provider, clock=clock)
    sites.close()


def test_a_pull_request_shows_what_would_be_sent_and_sends_nothing(workshop: Workshop):
    done = workshop.run("bash bot.sh --dry-run --limit 1 --trials 1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert workshop.sites.inbox.forecasts == []
    sent = json.loads(done.stdout[done.stdout.index("[\n") :])
    assert [request["address"].partition("/")[2].partition("/")[2].partition("/")[2] for request in sent] == [
        "questions/forecast/",
        "comments/create/",
    ]
    for canary in (TOKEN, KEY):
        assert canary not in done.stdout + done.stderr


def test_schedule_submits_once_and_pays_once(workshop: Workshop):
    """First the sandbox, then the tournament, which has the same questions here."""
    inbox, provider = workshop.sites.inbox, workshop.provider
    done = workshop.run("bash bot.sh --sandbox")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(forecast["question"] for forecast in inbox.forecasts) == [111, 121, 131, 141, 151, 161, 162]
    assert sorted(comment["on_post"] for comment in inbox.comments) == [11, 12, 13, 14, 15, 16]
    (yes,) = [forecast for forecast in inbox.forecasts if forecast["question"] == 111]
    assert 0 < yes["probability_yes"] < 1
    (choice,) = [forecast for forecast in inbox.forecasts if forecast["question"] == 121]
    assert sum(choice["probability_yes_per_category"].values()) == pytest.approx(1)
    assert all(comment["is_private"] for comment in inbox.comments)
    (reasons,) = [comment["text"] for comment in inbox.comments if comment["on_post"] == 11]
    assert "Sources:" in reasons, "the evidence is cited"

    paid, handed = provider.stats()["arrived"], len(inbox.forecasts)
    fresh = metaculus_post_body(17, "Will it snow?", SampleMetaculusQuestion(id=171, title="Will it snow?", **FAR))
    workshop.sites.metaculus.having(MetaculusCatalogue([fresh, *posts()]))
    second = workshop.run("bash bot.sh")
    assert second.returncode == 0, second.stdout + second.stderr
    assert [forecast["question"] for forecast in inbox.forecasts[handed:]] == [171]
    assert provider.stats()["arrived"] > paid
    pages = sorted((workshop.folder / ".foretell").glob("tournaments/*/pages/*.html"))
    summaries = ["6 forecasts sent with their comments, 0 failed", "1 forecast sent with their comments, 0 failed"]
    assert [words in page.read_text(encoding="utf-8") for words, page in zip(summaries, pages, strict=True)] == [
        True,
        True,
    ]

    everything = "\n".join(workshop.output)
    logs = "\n".join(
        path.read_text(encoding="utf-8", errors="ignore")
        for path in (workshop.folder / ".foretell").rglob("*")
        if path.is_file()
    )
    for canary in (TOKEN, KEY):
        assert canary not in everything
        assert canary not in logs


def test_no_open_questions_succeed_and_platform_errors_fail_the_step(workshop: Workshop):
    workshop.sites.metaculus.having(MetaculusCatalogue([]))
    done = workshop.run("bash bot.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "minibench: 0 open, 0 sent" in done.stdout
    assert workshop.provider.stats()["arrived"] == 0
    workshop.sites.metaculus.token = "another"
    failed = workshop.run("bash bot.sh")
    assert failed.returncode != 0
    assert "could not be reached" in failed.stderr
    assert TOKEN not in failed.stdout + failed.stderr
