"""The set-up page: equal to the commands, and without details for visitors without the token."""

import asyncio
import html
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from tests.web.written_pages import written_pages

from foretell.cli.main import cli
from foretell.models.journal import Journal, JournalEntry, JournalRequest
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore
from foretell.web.app import create_app
from foretell.web.site import write_site

OWN = "compat:mine@http://10.9.8.7:11434/v1"
FILE = "local:/secret/folder/small.gguf"
KEYS = {"ANTHROPIC_API_KEY": "sk-canary"}
SECRETS = ("canary", "10.9.8.7", "/secret/folder", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "jane", "Ask with it")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return a home in which a model on another server was paid, and a local model file was used."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text('contact = "jane@secret.example"')
    settings = Settings(home=home)
    with closing(RunStore(settings.store)) as store:
        for number, model in enumerate((OWN, FILE)):
            spec = RunSpec(questions=QuestionsSpec(dataset=f"own {number}"), models={"agent": model})
            store.begin(spec.id, spec.to_json(), "2026-01-01T00:00:00+00:00")
    journal_request = JournalRequest(key="ab" * 32, kind="model", model=OWN, slot="")
    with closing(Journal(settings.journal)) as journal:
        journal.intend(journal_request)
        journal.keep(journal_request, JournalEntry(body=b"{}", dollars=1.25))
    return {**KEYS, "FORETELL_HOME": str(home)}


@pytest.fixture
def settings(environment: dict[str, str]) -> Settings:
    return load_settings(environment)


@pytest.fixture
def owner(settings: Settings, token: str) -> Iterator[TestClient]:
    """Return a client that sends the token."""
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
    listed = by_command(environment, "models", "list", *words)["models"]
    page = owner.get(f"/setup{query}").text
    assert listed_models(page) == [row["model"].partition(":")[2].partition("@")[0] for row in listed]


def listed_models(page: str) -> list[str]:
    """Return the names of the models in the table of the page, in order."""
    return [html.unescape(name).partition("@")[0] for name in re.findall(r"<bdi><strong>(.*?)</strong></bdi>", page)]


def test_models_that_cost_money_here_come_first(environment: dict[str, str], owner: TestClient) -> None:
    first, *others = by_command(environment, "models", "list")["models"]
    assert (first["model"], first["usable"], first["calls"], first["dollars"], first["runs"]) == (OWN, True, 1, 1.25, 1)
    usable = [row["usable"] for row in others]
    assert usable == sorted(usable, reverse=True)
    page = owner.get("/setup").text
    assert listed_models(page)[0] == "mine"
    assert "$1.25" in page
    assert "OPENAI_API_KEY" in page
    assert "sk-canary" not in page


def test_doctor_results_are_equal_on_page_and_command_line(environment: dict[str, str], owner: TestClient) -> None:
    while "data-again" in (page := owner.get("/setup").text):
        pass
    text = html.unescape(page)
    for finding in by_command(environment, "doctor")["findings"]:
        if finding["what"] not in ("clock", "disk"):  # These change between two checks.
            assert finding["detail"][:600] in text
    assert "jane@secret.example" in page
    assert "not set up" in re.findall(r"<h1>(.*?)</h1>", page)[0]
    assert "To do: " in page
    assert "sk-canary" not in page
    sign = re.findall(r'name="csrf" value="(\w+)"', page)[0]
    assert owner.post("/setup", data={"csrf": sign}, follow_redirects=False).headers["location"] == "/setup"


def test_visitors_without_the_token_see_no_setup(client: TestClient) -> None:
    assert client.get("/setup?usable=true").status_code == 401
    assert client.post("/setup").status_code == 401
    page = client.get("/setup").text
    names = listed_models(page)
    assert {"mine", "small.gguf"} <= set(names)
    assert "no key" not in page
    assert [secret for secret in SECRETS if secret in page] == []


def test_static_site_has_no_setup_page(settings: Settings, tmp_path: Path) -> None:
    asyncio.run(write_site(tmp_path / "site", settings))
    pages = written_pages(tmp_path / "site")
    assert "setup.html" not in pages
    assert not re.search(r"\w+_API_KEY|canary|jane@", "".join(pages.values()))


def test_every_column_of_the_models_is_seen_at_1280_pixels(
    settings: Settings, token: str, serve: Any, open_page: Any
) -> None:
    site, page = serve(create_app(settings, token=token)), open_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{site.url}/login?token={token}")
    page.goto(f"{site.url}/setup")
    table = page.locator(".scroll[aria-label=Models]")
    # As after much use.
    table.locator("tbody tr").first.evaluate(
        "row => { row.cells[3].textContent = '$12.50 1,204 replies'; row.cells[4].textContent = '61.2 12 runs' }"
    )
    shown, whole = table.evaluate("element => [element.clientWidth, element.scrollWidth]")
    assert whole <= shown
