"""The pages of models and of the doctor: the same as the commands, and nothing about the set-up for strangers."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from foretell.cli import cli
from foretell.models import Journal, JournalEntry, JournalRequest
from foretell.runs import QuestionsSpec, RunSpec, RunStore, Settings, load_settings
from foretell.web import create_app, write_site

OWN = "compat:mine@http://10.9.8.7:11434/v1"
FILE = "local:/secret/folder/small.gguf"
KEYS = {"ANTHROPIC_API_KEY": "sk-canary"}
SECRETS = ("canary", "10.9.8.7", "/secret/folder", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "jane", "Ask with it")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home in which a model on another server was paid for, and one in a file was used."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text('contact = "jane@secret.example"')
    settings = Settings(home=home)
    with closing(RunStore(settings.store)) as store:
        for number, model in enumerate((OWN, FILE)):
            spec = RunSpec(questions=QuestionsSpec(dataset=f"own {number}"), models={"agent": model})
            store.begin(spec.id, spec.to_json(), "2026-01-01T00:00:00+00:00")
    asked = JournalRequest(key="ab" * 32, kind="model", model=OWN, slot="")
    with closing(Journal(settings.journal)) as journal:
        journal.intend(asked)
        journal.keep(asked, JournalEntry(body=b"{}", dollars=1.25))
    return {**KEYS, "FORETELL_HOME": str(home)}


@pytest.fixture
def settings(environment: dict[str, str]) -> Settings:
    return load_settings(environment)


@pytest.fixture
def owner(settings: Settings, token: str) -> Iterator[TestClient]:
    """Somebody who sends the token."""
    with TestClient(create_app(settings, token=token), base_url="http://127.0.0.1") as client:
        client.get(f"/login?token={token}")
        yield client


def by_command(environment: dict[str, str], *words: str) -> Any:
    done = CliRunner().invoke(cli, [*words, "--json"], env={**environment, "COLUMNS": "200"})
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ((), ""),
        (("--usable",), "?usable=true"),
        (("--provider", "openai", "--find", "SOL"), "?provider=openai&find=SOL"),
    ],
)
def test_models_are_the_same_on_the_command_line_and_on_the_web(
    environment: dict[str, str], owner: TestClient, words: tuple[str, ...], query: str
) -> None:
    told = owner.get(f"/api/models{query}").json()
    assert told == by_command(environment, "models", "list", *words)
    page = owner.get(f"/models{query}").text
    for row in told["models"]:
        assert row["model"].partition(":")[2].partition("@")[0] in page


def test_models_that_cost_money_here_come_first(owner: TestClient) -> None:
    first, *others = owner.get("/api/models").json()["models"]
    assert (first["model"], first["usable"], first["calls"], first["dollars"], first["runs"]) == (OWN, True, 1, 1.25, 1)
    usable = [row["usable"] for row in others]
    assert usable == sorted(usable, reverse=True)
    page = owner.get("/models").text
    assert "$1.25" in page
    assert "OPENAI_API_KEY" in page
    assert "sk-canary" not in page


def test_the_doctor_says_the_same_everywhere(environment: dict[str, str], owner: TestClient) -> None:
    told = {one["what"]: one for one in owner.get("/api/doctor").json()["findings"]}
    for one in by_command(environment, "doctor")["findings"]:
        if one["what"] not in ("clock", "disk"):  # They change while one looks.
            assert told[one["what"]] == one
    while "data-again" in (page := owner.get("/doctor").text):
        pass
    assert "jane@secret.example" in page
    assert "not set up" in re.findall(r"<h1>(.*?)</h1>", page)[0]
    assert "To do: " in page
    assert "sk-canary" not in page
    sign = re.findall(r'name="csrf" value="(\w+)"', page)[0]
    assert owner.post("/doctor", data={"csrf": sign}, follow_redirects=False).headers["location"] == "/doctor"


def test_strangers_learn_nothing_of_what_is_set_up(client: TestClient) -> None:
    assert client.get("/api/doctor").status_code == 401
    assert client.get("/api/models?usable=true").status_code == 401
    assert client.get("/models?usable=true").status_code == 401
    assert client.post("/doctor").status_code == 401
    found = client.get("/api/models").json()
    names = [row["model"] for row in found["models"]]
    assert names == sorted(names)
    assert {"compat:mine", "local:small.gguf"} <= set(names)
    assert {row["usable"] for row in found["models"]} == {None}
    told = json.dumps(found) + client.get("/models").text + client.get("/doctor").text
    assert [secret for secret in SECRETS if secret in told] == []


def test_a_site_of_files_has_neither(settings: Settings, tmp_path: Path) -> None:
    asyncio.run(write_site(tmp_path / "site", settings))
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "site").rglob("*.html")}
    assert not {"models.html", "doctor.html"} & pages.keys()
    assert not re.search(r"\w+_API_KEY|canary|jane@", "".join(pages.values()))
