"""A house of one's own for every test: questions, a corpus, a spec, and `foretell` in it."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fakes.background import Background
from fakes.models import BackgroundModels, FakeModels, ModelFault
from fakes.processes import ForkedCommand
from fakes.stored_run import run_id_of
from foretell.cli import cli
from foretell.models import Journal
from foretell.practice import PracticeServer, search_server, small_world
from foretell.practice.models import agent_script
from foretell.questions import Forecast, InputError, to_json
from foretell.runs import RunStore

BRAIN = "foretell.practice.models.scripts:agent_script"
CANARY = "sk-canary-0123456789-do-not-leak"
TOPICS = ("harbour bridge", "grain tariff", "city marathon", "reactor licence", "wolf census", "ferry strike")
INHERITED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")


def questions(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"own/{n}",
            "text": f"Will the {TOPICS[n % len(TOPICS)]} number {n} be approved?",
            "criteria": f"YES if the council announces approval of number {n}.",
            "background": f"Number {n} was proposed in May.",
            "due": "2026-07-01",
            "by": "2026-12-31",
        }
        for n in range(count)
    ]


def documents(count: int) -> list[dict[str, Any]]:
    """For every question something old, something from after the cutoff, and something the filter must drop."""
    found: list[dict[str, Any]] = []
    for n, asked in enumerate(questions(count)):
        topic = asked["text"].removeprefix("Will the ").removesuffix(" be approved?")
        site = f"https://news.example/{n}"
        said = f"The council discussed the {topic}. Members expect a vote in autumn. " * 3
        found += [
            {"url": f"{site}/old", "title": f"Council on {topic}", "text": said, "published": "2026-06-01"},
            {
                "url": f"{site}/late",
                "title": f"Approved: {topic}",
                "text": "It was approved.",
                "published": "2026-09-01",
            },
            {
                "url": f"{site}/leak",
                "title": f"About {topic}",
                "text": f"LEAK ME {topic}",
                "published": "2026-05-01",
            },
        ]
    return found


@dataclass(frozen=True, kw_only=True)
class House:
    """A folder with everything a run reads, and FORETELL_HOME within it."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def furnish(self, count: int) -> "House":
        # Models of these tests are nobody's; a run would try each before it asks.
        self.set("check_models = false")
        for name, rows in (("questions", questions(count)), ("articles", documents(count))):
            lines = [json.dumps(row) + "\n" for row in rows]
            (self.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        told = self.foretell("corpus", "add", "articles.jsonl")
        assert told.returncode == 0, told.stderr
        return self

    def set(self, line: str) -> None:
        """Add a line to settings.toml in the home."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "settings.toml").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def spec(self, name: str = "run.yaml", **fields: Any) -> Path:
        usual = {"questions": "questions.jsonl", "search": ["local"], "models": {"agent": "openai:gpt-5-mini"}}
        path = self.folder / name
        path.write_text(yaml.safe_dump({**usual, **fields}), encoding="utf-8")
        return path

    def with_environment(self, **values: str) -> "House":
        return replace(self, environment={**self.environment, **values})

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "foretell.cli.main", *map(str, arguments)]

    @property
    def whole_environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        # A proxy that exists nowhere: whatever would leave this machine fails.
        away = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        return {**kept, **away, "COLUMNS": "200", "FORETELL_HOME": str(self.home), **self.environment}

    def foretell(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """The command in this process: a new one takes its time to start, and `start` is for those who need one."""
        environment = dict.fromkeys(os.environ) | self.whole_environment
        with contextlib.chdir(self.folder):
            end = CliRunner().invoke(cli, list(map(str, arguments)), env=environment)
        if end.exception is None or isinstance(end.exception, SystemExit):
            return subprocess.CompletedProcess(arguments, end.exit_code, end.stdout, end.stderr)
        if not isinstance(end.exception, InputError):
            raise end.exception
        return subprocess.CompletedProcess(
            arguments, end.exception.exit_code, end.stdout, f"{end.stderr}foretell: {end.exception}\n"
        )

    def start(
        self, *arguments: str | Path, streams: Mapping[str, Any] | None = None, **environment: str
    ) -> ForkedCommand:
        """The command in a process of its own; `streams` as `subprocess.Popen` takes them, all else is dropped."""
        whole = {**self.whole_environment, **environment}
        return ForkedCommand(arguments, cwd=self.folder, env=whole, **(streams or {}))

    def run(self, spec: Path, *arguments: str | Path) -> str:
        """`foretell run`, which must succeed; the run's id."""
        told = self.foretell("run", spec.name, *arguments)
        assert told.returncode == 0, told.stderr
        return run_id_of(spec)

    def forecasts(self, run: str) -> list[Forecast]:
        store = RunStore(self.home / "runs.db")
        found = list(store.answers(run))
        store.close()
        assert all(isinstance(answer, Forecast) for answer in found), found
        return [answer for answer in found if isinstance(answer, Forecast)]

    def answers(self, run: str) -> list[str]:
        """Every answer as JSON, without the seconds it took: those are the clock's and not the run's."""
        store = RunStore(self.home / "runs.db")
        rows = [json.loads(to_json(answer)) for answer in store.answers(run)]
        store.close()
        for row in rows:
            row.get("usage", {}).pop("seconds", None)
        return [json.dumps(row, sort_keys=True) for row in rows]

    def events(self, run: str) -> dict[tuple[str, int], list[tuple[str, str]]]:
        """By question and trial, kind and stored bytes of every event in its order."""
        found: dict[tuple[str, int], list[tuple[str, str]]] = {}
        con = sqlite3.connect(self.home / "runs.db")
        rows = con.execute("select question, trial, kind, body from event where run = ? order by id", (run,)).fetchall()
        con.close()
        for question, trial, kind, body in rows:
            found.setdefault((question, trial), []).append((kind, body))
        return found

    def journal(self) -> Journal:
        return Journal(self.home / "journal.db")

    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture(scope="session")
def provider() -> Iterator[BackgroundModels]:
    """A research agent's model behind an OpenAI-compatible address, in the background."""
    with BackgroundModels(script=BRAIN) as fake:
        yield fake


@pytest.fixture
def build_house(tmp_path: Path) -> Callable[..., House]:
    """Makes a furnished house that asks the provider at an address."""

    def build(url: str, *, count: int = 3, name: str = "house") -> House:
        environment = {"OPENAI_API_KEY": CANARY, "FORETELL_OPENAI_URL": f"{url}/v1"}
        return House(folder=tmp_path / name, environment=environment).furnish(count)

    return build


@pytest.fixture
def house(provider: BackgroundModels, build_house: Callable[..., House]) -> House:
    """Three questions, and a provider that has counted nothing yet."""
    provider.reset()
    return build_house(provider.url)


@pytest.fixture
def canary() -> str:
    """The key that must appear nowhere."""
    return CANARY


class Engines(Background[PracticeServer]):
    """Search engines that know a few pages about a central bank."""

    key = "engine-canary-9876543210"

    def __init__(self) -> None:
        super().__init__(lambda: search_server(small_world(), self.key))

    @property
    def requests(self) -> list[Any]:
        return self.server.requests


class Recorder(Background[FakeModels]):
    """The research agent's model, with everything it was told."""

    def __init__(self) -> None:
        super().__init__(lambda: FakeModels(agent_script))

    @property
    def words(self) -> list[str]:
        return [heard.words for heard in self.server.queries]

    def fail(self, fault: ModelFault, *, times: int = 1) -> None:
        self.server.fail(fault, times=times)


@pytest.fixture
def engines() -> Iterator[Engines]:
    """Search engines on this machine."""
    found = Engines()
    yield found
    found.close()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A provider in this process that can be looked into and made to fail."""
    found = Recorder()
    yield found
    found.close()
