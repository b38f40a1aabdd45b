from typing import Any

from fastapi.testclient import TestClient


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
