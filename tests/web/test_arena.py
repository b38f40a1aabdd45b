"""The board of an arena, its filters, events, and two entries or runs side by side."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.web.made_arena import fill

from foretell.runs.store import RunStore


@pytest.fixture
def arena(store: RunStore) -> str:
    fill(store)
    return "made"


def test_board_api_returns_scores_with_intervals(arena: str, client: TestClient):
    assert client.get("/api/arenas").json()["arenas"][0] | {"created": ""} == {
        "name": "made",
        "created": "",
        "events": 12,
        "settled": 10,
    }
    board = client.get("/api/arena/made/board").json()
    rows = {line["entry"]["name"]: line["scores"]["brier"]["estimate"] for line in board["lines"]}
    assert rows["sharp"] == pytest.approx(0.15**2)
    assert rows["shy"] == pytest.approx(0.35**2)
    assert rows["market price"] == pytest.approx(0.3**2)
    assert rows["always 0.5"] == 0.25
    sports = client.get("/api/arena/made/board", params={"category": "Sports"}).json()
    assert sports["counts"]["resolved"] == 4
    late = client.get("/api/arena/made/board", params={"since": "2026-03-08"}).json()
    assert late["counts"]["resolved"] < 10


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/arena/nobody/board", 404),
        ("/api/arena/made/board?lead_time=never", 422),
        ("/api/arena/made/board?category=Nothing", 422),
        ("/api/arena/made/board?since=yesterday", 422),
        ("/api/arena/made/event/nobody", 404),
        ("/api/compare?arena=made&entry=sharp&entry=sharp", 422),
        ("/api/compare?arena=made&entry=sharp&entry=nobody", 404),
        ("/arena/made?category=Nothing", 200),
    ],
)
def test_unknown_arenas_and_filters_are_refused(arena: str, client: TestClient, path: str, status: int):
    assert client.get(path).status_code == status


def test_arena_pages_show_board_events_and_escaped_names(arena: str, site: Any, page: Any):
    page.goto(f"{site.url}/arena")
    page.get_by_role("link", name="made").click()
    expect(page.locator(".lead")).to_contain_text("sharp is the best entry", use_inner_text=True)
    assert page.locator("svg.ft").count() >= 5
    expect(page.locator("td b")).to_have_count(0)  # Names are text.
    board = page.get_by_role("region", name="Leaderboard")
    first = board.locator("tbody tr td:first-child").first.inner_text()
    board.get_by_role("button", name="#").click()
    expect(board.locator("tbody tr td:first-child").first).not_to_have_text(first)
    page.get_by_role("navigation", name="Filters").get_by_role("link", name="Sports").click()
    expect(page.locator(".lead")).to_contain_text("4 resolved events", use_inner_text=True)
    page.get_by_role("link", name="Events", exact=True).click()
    page.locator("#find").fill("event 3")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("main")).not_to_contain_text("kalshi/")
    page.get_by_role("link", name="Event 3?", exact=True).click()
    expect(page.locator("h1")).to_contain_text("Event 3?", use_inner_text=True)
    expect(page.locator(".beside svg.ft:visible")).to_have_count(2)
    expect(page.locator(".answers svg.ft:visible")).to_have_count(3)
    expect(page.locator("main")).to_contain_text("yes came true", use_inner_text=True)


def test_comparing_two_entries(arena: str, site: Any, page: Any):
    page.goto(f"{site.url}/compare?arena=made")
    page.get_by_label("First").select_option("sharp")
    page.get_by_label("Second").select_option("shy")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".lead")).to_contain_text(
        "sharp is better than shy by 0.1000 in Brier score", use_inner_text=True
    )
    assert page.locator("tbody tr").count() > 5


def test_a_phone_needs_no_sideways_scrolling(arena: str, site: Any, phone: Any):
    for path in ("/arena/made", "/arena/made/event/kalshi%2FKX-1", "/compare?arena=made&entry=sharp&entry=shy"):
        phone.goto(f"{site.url}{path}")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 375, path


def test_page_without_arenas(client: TestClient):
    assert "foretell init arena" in client.get("/arena").text
    assert client.get("/api/arenas").json() == {"arenas": []}
