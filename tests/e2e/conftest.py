"""A workspace for every test: questions, a corpus, a spec, and commands."""

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
from foretell.cli.main import cli
from foretell.models.journal import Journal
from foretell.practice.models.scripts import agent_script
from foretell.practice.server import PracticeServer
from foretell.practice.web import search_server, small_world
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.runs.store import RunStore

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
    """Return for every question an old document, one from after the cutoff, and one that the filter must drop."""
    rows: list[dict[str, Any]] = []
    for n, question in enumerate(questions(count)):
        topic = question["text"].removeprefix("Will the ").removesuffix(" be approved?")
        site = f"https://news.example/{n}"
        text = f"The council discussed the {topic}. Members expect a vote in autumn. " * 3
        rows += [
            {"url": f"{site}/old", "title": f"Council on {topic}", "text": text, "published": "2026-06-01"},
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
    return rows


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A folder with everything a run reads, and FORETELL_HOME within it."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def prepare(self, count: int) -> "Workspace":
        # The models of these tests are unknown, and a run would probe each first.
        self.set("check_models = false")
        for name, rows in (("questions", questions(count)), ("articles", documents(count))):
            lines = [json.dumps(row) + "\n" for row in rows]
            (self.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        foretell = self.foretell("corpus", "add", "articles.jsonl")
        assert foretell.returncode == 0, foretell.stderr
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

    def with_environment(self, **values: str) -> "Workspace":
        return replace(self, environment={**self.environment, **values})

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "foretell.cli.main", *map(str, arguments)]

    @property
    def whole_environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        # A proxy that does not exist, so that requests to other machines fail.
        away = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        return {**inherited, **away, "COLUMNS": "200", "FORETELL_HOME": str(self.home), **self.environment}

    def foretell(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, which is faster than `start`."""
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
        """Start a command in its own process; `streams` are arguments of `subprocess.Popen`."""
        whole = {**self.whole_environment, **environment}
        return ForkedCommand(arguments, cwd=self.folder, env=whole, **(streams or {}))

    def run(self, spec: Path, *arguments: str | Path) -> str:
        """Run `foretell run`, which must succeed, and return the run's id."""
        foretell = self.foretell("run", spec.name, *arguments)
        assert foretell.returncode == 0, foretell.stderr
        return run_id_of(spec)

    def forecasts(self, run: str) -> list[Forecast]:
        store = RunStore(self.home / "runs.db")
        answers = list(store.answers(run))
        store.close()
        assert all(isinstance(answer, Forecast) for answer in answers), answers
        return [answer for answer in answers if isinstance(answer, Forecast)]

    def answers(self, run: str) -> list[str]:
        """Return every answer as JSON, without the seconds it took."""
        store = RunStore(self.home / "runs.db")
        rows = [json.loads(to_json(answer)) for answer in store.answers(run)]
        store.close()
        for row in rows:
            row.get("usage", {}).pop("seconds", None)
        return [json.dumps(row, sort_keys=True) for row in rows]

    def events(self, run: str) -> dict[tuple[str, int], list[tuple[str, str]]]:
        """Return the kind and stored bytes of every event in order, by question and trial."""
        by_trial: dict[tuple[str, int], list[tuple[str, str]]] = {}
        con = sqlite3.connect(self.home / "runs.db")
        rows = con.execute("select question, trial, kind, body from event where run = ? order by id", (run,)).fetchall()
        con.close()
        for question, trial, kind, body in rows:
            by_trial.setdefault((question, trial), []).append((kind, body))
        return by_trial

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
def build_workspace(tmp_path: Path) -> Callable[..., Workspace]:
    """Makes a complete workspace that uses the provider at an address."""

    def build(url: str, *, count: int = 3, name: str = "workspace") -> Workspace:
        environment = {"OPENAI_API_KEY": CANARY, "FORETELL_OPENAI_URL": f"{url}/v1"}
        return Workspace(folder=tmp_path / name, environment=environment).prepare(count)

    return build


@pytest.fixture
def workspace(provider: BackgroundModels, build_workspace: Callable[..., Workspace]) -> Workspace:
    """A workspace with three questions, and a provider whose counts are zero."""
    provider.reset()
    return build_workspace(provider.url)


@pytest.fixture
def canary() -> str:
    """A key that must never be stored or shown."""
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
    """The research agent's model, with its requests."""

    def __init__(self) -> None:
        super().__init__(lambda: FakeModels(agent_script))

    @property
    def words(self) -> list[str]:
        return [query.words for query in self.server.queries]

    def fail(self, fault: ModelFault, *, times: int = 1) -> None:
        self.server.fail(fault, times=times)


@pytest.fixture
def engines() -> Iterator[Engines]:
    """Search engines on this machine."""
    opened = Engines()
    yield opened
    opened.close()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A provider in this process that can be inspected and made to fail."""
    opened = Recorder()
    yield opened
    opened.close()
