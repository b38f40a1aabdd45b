import html
import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from fakes.stored_run import StoredRunBuilder
from foretell.operations.doctor import Finding
from foretell.runs.settings import EXAMPLE_FILE, Settings
from foretell.runs.store import RunStore
from foretell.web.app import create_app
from foretell.web.pages.home import home, sandbox_check

TREES = Path(__file__).parents[2] / "examples" / "trees"


def test_empty_home_page_explains_how_to_start(client: TestClient, token: str) -> None:
    text = client.get("/", headers={"Authorization": f"Bearer {token}"}).text
    assert "You have no runs yet" in text
    assert "foretell demo" in text
    assert "OPENAI_API_KEY" in text


def test_a_home_with_studies_saved_by_an_earlier_version_opens(client: TestClient, settings: Settings) -> None:
    folder = settings.home / "studies" / "buildup"
    folder.mkdir(parents=True)
    (folder / "study.json").write_text('{"schema": "foretell/study/1", "name": "buildup"}')
    assert client.get("/").status_code == 200
    assert client.get("/studies", follow_redirects=False).status_code == 301


def test_the_home_page_lists_what_is_set_up_as_the_doctor_sees_it_and_no_key(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", keys={"OPENAI_API_KEY": "sk-canary-0123456789"})
    with TestClient(create_app(settings, token="0123456789-0123456789"), base_url="http://127.0.0.1") as client:
        client.get("/")
        sandbox_check().result()
        setup = {finding.what: vars(finding) for finding in home(client.app.state.serving)["setup"]}  # pyright: ignore
        assert "ready" not in client.get("/").text, "strangers do not see what is set up"
        unescape = html.unescape(client.get("/", headers={"Authorization": "Bearer 0123456789-0123456789"}).text)
    assert list(setup) == ["model key", "search key", "data", "PostgreSQL", "sandbox"]
    assert (setup["model key"]["state"], setup["model key"]["detail"]) == ("ok", "openai")
    assert setup["search key"]["state"] == "missing"
    wanting = [finding for finding in setup.values() if finding["state"] in ("missing", "wrong")]
    assert f"{5 - len(wanting)} of 5 ready" in unescape
    assert f"To do: {setup['search key']['advice']}"[:200] in unescape
    assert "foretell data pull forecastbench" in unescape
    assert "canary" not in unescape + str(setup)


def test_the_example_claims_no_keys_and_ticks_only_what_was_checked(
    settings: Settings, store: RunStore, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.home / EXAMPLE_FILE).write_text("{}", encoding="utf-8")
    with_keys = replace(settings, keys={"OPENAI_API_KEY": "practice", "BRAVE_API_KEY": "practice"})
    monkeypatch.setattr("foretell.web.pages.home.sandbox_check", Future[Finding])
    with TestClient(create_app(with_keys, token=token), base_url="http://127.0.0.1") as client:
        client.get("/login", params={"token": token})
        text = client.get("/").text
    assert "key set" not in text
    assert "made-up news" in text
    ready, listed = re.findall(r"(\d) of (\d) ready", text)[0]
    assert (int(ready), int(listed)) == (text.count('<li class="ok">'), text.count('<li class="ok">') + 1)
    assert re.search(r'<li class="checking"><strong>Sandbox', text)


def test_runs_and_trees_are_one_list_by_time(client: TestClient, store: RunStore, settings: Settings) -> None:
    StoredRunBuilder(questions=1, trials=1).keep(store)
    StoredRunBuilder(questions=3, trials=2).keep(store)
    folder = settings.home / "trees"
    folder.mkdir()
    (folder / "bank.json").write_bytes((TREES / "central_bank.json").read_bytes())
    (folder / "torn.json").write_text("{", encoding="utf-8")
    recent = home(client.app.state.serving)["recent"]  # pyright: ignore
    assert [item["at"] for item in recent] == sorted((item["at"] for item in recent), reverse=True)
    assert sorted(item["kind"] for item in recent) == ["run", "run", "tree"]
    text = client.get("/").text
    for item in recent:
        assert item["result"].endswith("%") or item["what"] == "run, 3 questions"
        assert item["name"][:40] in html.unescape(text)


def test_home_page_in_a_browser(page: Any, site: Any) -> None:
    page.goto(site.url)
    assert page.title() == "foretell"
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_home_page_offers_usable_models_and_shows_the_price_first(
    page: Any, serve: Callable[[FastAPI], Any], settings: Settings, token: str
) -> None:
    site = serve(create_app(replace(settings, keys={"OPENAI_API_KEY": "sk-canary-0123456789"}), token=token))
    page.goto(site.url)
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    expect(page.locator("#estimate")).to_have_count(0)  # A visitor without the token cannot spend.
    page.goto(site.login)
    page.get_by_label("Question", exact=True).fill("Will it snow?")
    page.get_by_label("Name of another model").fill("openai:gpt-5.4")
    expect(page.locator("#estimate")).to_contain_text("About $")
    before = page.locator("#estimate").inner_text()
    page.get_by_label("Another number of trials").fill("7")
    expect(page.locator("#estimate")).not_to_have_text(before)
    expect(page.locator("#command")).to_contain_text("--trials 7")
    page.get_by_role("button", name="Outside view only, free").click()
    expect(page.locator("#probability")).to_contain_text("%")


def test_damaged_file_is_named_in_a_server_error(
    client: TestClient, store: RunStore, settings: Settings, token: str
) -> None:
    run = StoredRunBuilder(questions=3, trials=2).keep(store)
    assert client.get(f"/api/runs/{run}").status_code == 200
    store.database.read("PRAGMA wal_checkpoint(TRUNCATE)")
    path = settings.home / "runs.db"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    for headers, shown in (({}, path.name), ({"Authorization": f"Bearer {token}"}, path)):
        answer = client.get(f"/api/runs/{run}", headers=headers)
        assert answer.status_code == 503
        assert answer.json()["detail"].startswith(f"{shown}: the file is damaged")
    assert "foretell doctor shows how to restore it" in answer.json()["detail"]


def test_empty_pages_say_what_belongs_there_and_how_to_make_it(client: TestClient, token: str):
    client.get("/login", params={"token": token})
    ways = {
        "/": "foretell demo --open",
        "/runs": "foretell init run",
        "/runs?state=deleted": "Deleted runs stay here for 30 days",
        "/runs?find=nothing": "Show all",
        "/record": "--watch",
        "/trees": "foretell tree grow",
        "/arena": "foretell init arena",
        "/compare": "foretell backtest demo -F auto -F prior",
    }
    assert {page: way for page, way in ways.items() if way not in client.get(page).text} == {}


def test_pages_about_errors_say_what_happened_and_what_to_do(client: TestClient, settings: Settings, token: str):
    (settings.home / "trees").mkdir(parents=True)
    (settings.home / "trees" / "cut.json").write_text('{"nodes": [', encoding="utf-8")
    said = {
        "/nowhere": (404, "There is no page at this address", "Go to the home page"),
        "/runs/none": (404, "There is no run", 'state=deleted">bin</a>'),
        "/trees/view/none": (404, "none", "All trees"),
        "/trees/view/cut": (422, "<h1>The file cannot be read</h1>", "cut.json", "Mend the file"),
        "/login?token=wrong": (403, "not the token of this server", "Log in"),
        "/runs?sort=cost": (401, "needs the token", "Log in"),
    }
    for page, (status, *texts) in said.items():
        answer = client.get(page)
        assert answer.status_code == status, page
        assert [text for text in texts if text not in answer.text] == [], page
    client.get("/login", params={"token": token})
    assert client.get("/runs?sort=cost").status_code == 200


def test_the_example_offers_only_models_that_cost_nothing_there(
    settings: Settings, store: RunStore, token: str
) -> None:
    (settings.home / EXAMPLE_FILE).write_text("{}", encoding="utf-8")
    with_keys = replace(settings, keys={"OPENAI_API_KEY": "practice"})
    with TestClient(create_app(with_keys, token=token), base_url="http://127.0.0.1") as client:
        client.get("/login", params={"token": token})
        assert "a trial" not in client.get("/ask").text
        assert "Another model" in client.get("/ask").text
