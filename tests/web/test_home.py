from typing import Any

from fastapi.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.runs import RunStore, Settings


def test_an_empty_machine_is_told_how_to_begin(client: TestClient) -> None:
    told = client.get("/").text
    assert "Nothing was run here yet" in told
    assert "foretell demo" in told
    assert "OPENAI_API_KEY" in told


def test_the_same_as_json(client: TestClient) -> None:
    found = client.get("/api/home").json()
    assert found["run_count"] == 0
    assert found["missing"][0] == "OPENAI_API_KEY"


def test_in_a_browser(page: Any, site: Any) -> None:
    page.goto(site.url)
    assert page.title() == "foretell"
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


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
    assert "doctor --repair" in answer.json()["detail"]
