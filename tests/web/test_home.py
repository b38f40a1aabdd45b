import html
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from fakes.stored_run import StoredRunBuilder
from foretell.runs import RunStore, Settings
from foretell.web import create_app
from foretell.web.pages.home import Finding, sandbox_check

TREES = Path(__file__).parents[2] / "examples" / "trees"


def test_an_empty_machine_is_told_how_to_begin(client: TestClient) -> None:
    told = client.get("/").text
    assert "You have no runs yet" in told
    assert "foretell demo" in told
    assert "OPENAI_API_KEY" in told


def test_a_home_with_studies_saved_by_an_earlier_version_opens(client: TestClient, settings: Settings) -> None:
    folder = settings.home / "studies" / "buildup"
    folder.mkdir(parents=True)
    (folder / "study.json").write_text('{"schema": "foretell/study/1", "name": "buildup"}')
    assert client.get("/").status_code == 200
    assert client.get("/api/home").status_code == 200
    assert client.get("/studies").status_code == 404


def test_the_same_as_json(client: TestClient) -> None:
    found = client.get("/api/home").json()
    assert found["run_count"] == 0
    assert found["missing"][0] == "OPENAI_API_KEY"


def test_the_home_page_lists_what_is_set_up_as_the_doctor_sees_it_and_no_key(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", keys={"OPENAI_API_KEY": "sk-canary-0123456789"})
    with TestClient(create_app(settings, token="0123456789-0123456789"), base_url="http://127.0.0.1") as client:
        client.get("/")
        sandbox_check().result()
        setup = {one["what"]: one for one in client.get("/api/home").json()["setup"]}
        told = html.unescape(client.get("/").text)
    assert list(setup) == ["model key", "search key", "data", "PostgreSQL", "sandbox"]
    assert (setup["model key"]["state"], setup["model key"]["detail"]) == ("ok", "openai")
    assert setup["search key"]["state"] == "missing"
    wanting = [one for one in setup.values() if one["state"] in ("missing", "wrong")]
    assert f"{5 - len(wanting)} of 5 ready" in told
    assert f"To do: {setup['search key']['advice']}"[:200] in told
    assert "foretell data pull forecastbench" in told
    assert "canary" not in told + str(setup)


def test_strangers_read_no_address_of_what_is_set_up(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Finding("PostgreSQL", "wrong", "does not answer: connection to 10.9.8.7 failed for user jane", "start it")
    monkeypatch.setattr("foretell.web.pages.home.look_at_setup", lambda _: [wrong])
    told = client.get("/").text + client.get("/api/home").text
    assert "does not answer" in told
    assert "10.9.8.7" not in told


def test_runs_and_trees_are_one_list_by_time(client: TestClient, store: RunStore, settings: Settings) -> None:
    StoredRunBuilder(questions=1, trials=1).keep(store)
    StoredRunBuilder(questions=3, trials=2).keep(store)
    folder = settings.home / "trees"
    folder.mkdir()
    (folder / "bank.json").write_bytes((TREES / "central_bank.json").read_bytes())
    (folder / "torn.json").write_text("{", encoding="utf-8")
    recent = client.get("/api/home").json()["recent"]
    assert [one["at"] for one in recent] == sorted((one["at"] for one in recent), reverse=True)
    assert sorted(one["kind"] for one in recent) == ["run", "run", "tree"]
    told = client.get("/").text
    for one in recent:
        assert one["result"].endswith("%") or one["what"] == "run, 3 questions"
        assert one["name"][:40] in html.unescape(told)


def test_in_a_browser(page: Any, site: Any) -> None:
    page.goto(site.url)
    assert page.title() == "foretell"
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_home_page_asks_with_what_is_set_up_and_shows_the_price_first(
    page: Any, serve: Callable[[FastAPI], Any], settings: Settings, token: str
) -> None:
    site = serve(create_app(replace(settings, keys={"OPENAI_API_KEY": "sk-canary-0123456789"}), token=token))
    page.goto(site.url)
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    expect(page.locator("#estimate")).to_have_count(0)  # A stranger spends nothing.
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


def test_a_file_that_is_damaged_meanwhile_is_named_and_no_fault_of_the_request(
    client: TestClient, store: RunStore, settings: Settings
) -> None:
    run = StoredRunBuilder(questions=3, trials=2).keep(store)
    assert client.get(f"/api/runs/{run}").status_code == 200
    store.database.read("PRAGMA wal_checkpoint(TRUNCATE)")
    path = settings.home / "runs.db"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    answer = client.get(f"/api/runs/{run}")
    assert answer.status_code == 503
    assert answer.json()["detail"].startswith(f"{path}: the file is damaged")
    assert "foretell doctor says how to restore it" in answer.json()["detail"]
