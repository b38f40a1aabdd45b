"""The pages that a host of an arena publishes: board, events, one event, one entry; served and as files."""

import asyncio
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.web.made_arena import START, fill

from foretell.arena import ArenaStore
from foretell.runs import RunStore, Settings
from foretell.web import boards, write_site
from foretell.web.arena_board import BoardChoice
from foretell.web.boards import ArenaFilters, LeaderboardCache

BOARD, EVENT, ENTRY = "/arena/made", "/arena/made/event/kalshi%2FKX-3", "/arena/made/entry/sharp"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "runs.db"
    with closing(RunStore(path)) as store:
        fill(store, events=24)
    return path


@pytest.fixture
def arena(filled: Path, settings: Settings, request: pytest.FixtureRequest) -> RunStore:
    settings.home.mkdir(parents=True)
    shutil.copy(filled, settings.store)
    return request.getfixturevalue("store")


def test_events_are_found_by_their_titles(arena: RunStore, client: TestClient):
    found = client.get("/api/arena/made/events", params={"find": "EVENT 23"}).json()
    assert [one["title"] for one in found["events"]] == ["Event 23?"]
    assert client.get("/api/arena/made/events", params={"state": "open"}).json()["total"] == 2
    sports = client.get("/api/arena/made/events", params={"category": "Sports"}).json()
    assert (sports["total"], sports["of"]) == (8, 24)
    assert "No event matches" in client.get("/arena/made/events", params={"find": "nothing"}).text


def test_an_event_tells_what_everybody_saw_and_why_they_said_so(arena: RunStore, client: TestClient):
    page = client.get(EVENT).text
    for part in ("A poll &lt;i&gt;of&lt;/i&gt; polls", "It is close.", "<strong>sharp</strong> holds", "1 Mar 2026"):
        assert part in page, part
    assert page.index('entry/sharp">') < page.index('entry/shy">'), "the best stands first"
    found = client.get("/api/arena/made/event/kalshi/KX-3").json()
    assert found["moments"][-1]["reasons"]["shy"] == "**shy** holds the first source to be right."


def test_an_event_tells_what_happened_when(arena: RunStore, client: TestClient):
    page = client.get(EVENT).text
    steps = page[page.index('class="stations"') : page.index("What everybody said last")]
    for part in (
        "Taken up",
        "4 Mar 2026",
        "Forecast twice",
        "Closed",
        "Resolved: yes",
        'href="http://x"',
        "8 Mar 2026",
    ):
        assert part in steps, part
    assert "changed the title" not in page
    still = client.get("/arena/made/event/kalshi/KX-23").text
    assert "Closes" in still[still.index('class="stations"') :]
    body = arena.database.read("select body from listed where event = 'kalshi/KX-3'")[0][0]
    renamed = body.replace("Event 3?", "Event three, as amended?")
    moment = "select max(id) from moment where event = 'kalshi/KX-3'"
    arena.database.write(f"insert into asked values (({moment}), ?)", (renamed,))
    page = client.get(EVENT).text
    assert "changed the title" in page
    assert "Event three, as amended?" in page


def test_the_board_tells_what_comes_next(arena: RunStore, client: TestClient):
    page = client.get("/arena/made").text
    assert "22 settled" in page
    assert "2 open" in page
    coming = page[page.index("Coming up") :]
    assert "Median entry" in coming
    assert "Event 23?" in coming


def test_an_entry_has_a_page(arena: RunStore, client: TestClient):
    page = client.get(ENTRY).text
    for part in (
        "Rank 1",
        "sharp is better than crowd price by 0.0675 in Brier score",
        "which is more than chance",
        "Where it was best",
        "Event 1?",
    ):
        assert part in page, part
    found = client.get("/api/arena/made/entry/sharp").json()
    assert found["best"][0]["gap"] == pytest.approx(0.0675)
    assert found["worst"] == []
    assert "Where it was worst" in client.get("/arena/made/entry/shy").text
    assert client.get("/arena/made/entry/nobody").status_code == 404


def test_columns_and_calibration_are_chosen_in_the_address(arena: RunStore, client: TestClient):
    page = client.get(BOARD, params={"columns": ["brier_index", "nonsense"], "entry": "shy"}).text
    board = page[page.index('<table class="sort board">') : page.index("</tbody>")]
    assert ">Brier index</th>" in board
    assert "Completion" not in board
    assert "Reliability of shy" in page
    usual = client.get(BOARD).text
    assert "Reliability of sharp" in usual
    assert "the yardstick" in usual


def test_one_who_knows_the_truth_is_no_entry(arena: RunStore, client: TestClient):
    arena.database.write("update entry set spec = ? where name = 'sharp'", ('{"forecaster": "oracle"}',))
    page = client.get(BOARD).text
    assert "shy is the best entry" in page


def held_up(monkeypatch: pytest.MonkeyPatch, function: str) -> threading.Event:
    """Make a step of the boards wait until the event is set."""
    go_on, real = threading.Event(), getattr(boards, function)

    def wait(*args: Any, **options: Any) -> Any:
        assert go_on.wait(30)
        return real(*args, **options)

    monkeypatch.setattr(boards, function, wait)
    return go_on


def test_the_last_board_is_shown_until_the_new_one_is_made(
    arena: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Right after new forecasts came in nobody waits; a new server begins with what the last one showed."""
    held = LeaderboardCache(arena, tmp_path)
    first = held.page("made", ArenaFilters(), BoardChoice())
    assert not first.note
    slow = held_up(monkeypatch, "arena_report")
    monkeypatch.setattr(boards, "PATIENCE", 0.0)
    arena.database.write("update outcome set told_at = ? where event = 'kalshi/KX-3'", ("2027-01-01T00:00:00+00:00",))
    later = LeaderboardCache(arena, tmp_path)
    for cache in (held, later):
        shown = cache.page("made", ArenaFilters(), BoardChoice())
        assert shown.note == boards.OUTDATED
        assert shown.body == first.body
    slow.set()
    monkeypatch.setattr(boards, "PATIENCE", 30.0)
    assert not held.page("made", ArenaFilters(), BoardChoice()).note
    held.close()
    later.close()


def test_nobody_waits_while_many_forecasts_are_read_for_the_first_time(
    arena: RunStore, app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    slow = held_up(monkeypatch, "read_arena_table")
    monkeypatch.setattr(boards, "LARGE", 0)
    assert boards.READING in client.get(BOARD).text
    slow.set()
    held: LeaderboardCache = app.state.serving.boards
    whole = held.page("made", ArenaFilters(), BoardChoice(), whole=True)
    assert whole.body in client.get(BOARD).text


def test_a_large_board_ranks_at_once_and_its_intervals_come_after(
    arena: RunStore, app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    slow = held_up(monkeypatch, "arena_report")
    monkeypatch.setattr(boards, "LARGE", 0)
    held: LeaderboardCache = app.state.serving.boards
    asked = {"category": "Sports", "columns": ["brier", "events", "market"]}
    first = client.get(BOARD, params=asked).text
    assert "being computed" in first
    assert "Against the market</th>" not in first
    slow.set()
    whole = held.page("made", ArenaFilters(category="Sports"), BoardChoice(columns=tuple(asked["columns"])), whole=True)
    assert not whole.note
    ranked = [re.findall(r'data-v="([\d.]+)"', text) for text in (first, whole.body)]
    assert ranked[0]
    assert set(ranked[0]) <= set(ranked[1])
    # The further tables are fetched when they are opened, of the same events.
    link = re.search(r'href="(/arena/made/part/table-1[^"]*)"', whole.body)
    assert link
    assert "category=Sports" in link[1]
    assert "<table" in client.get(unescape(link[1])).text
    assert client.get("/arena/made/part/nowhere").status_code == 404


def test_who_is_best_and_is_it_more_than_noise_in_two_clicks(arena: RunStore, site: Any, page: Any):
    page.goto(site.url)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Arenas", exact=True).click()
    page.get_by_role("link", name="made").click()
    expect(page.locator(".lead")).to_contain_text("sharp is the best entry")
    expect(page.locator(".lead")).to_contain_text("sharp is better than shy by 0.1000 in Brier score")
    with page.expect_download() as taken:
        page.get_by_role("button", name="Save the table as CSV: Leaderboard").click()
    assert "sharp" in Path(taken.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_pages_fit_every_screen_in_light_and_dark(arena: RunStore, site: Any, open_page: Any, width: int):
    shown = open_page(viewport={"width": width, "height": 900})
    for path in (BOARD, EVENT, ENTRY, "/arena/made/events"):
        shown.goto(f"{site.url}{path}")
        for scheme in ("light", "dark"):
            shown.emulate_media(color_scheme=scheme)
            assert shown.evaluate("document.documentElement.scrollWidth") <= width, path
    if width == 1440:
        shown.goto(f"{site.url}{BOARD}")
        expect(shown.locator(".scroll:has(.board) + .take .more-right")).to_be_hidden()


def test_the_files_have_the_same_pages_and_name_no_key(
    arena: RunStore, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    out = tmp_path / "site"
    with ThreadPoolExecutor(1) as aside:
        told = aside.submit(lambda: asyncio.run(write_site(out, settings))).result()
    assert told.broken == ()
    pages = {path.relative_to(out).as_posix(): path.read_text(encoding="utf-8") for path in out.rglob("*.html")}
    assert any(name.startswith("arena/made/entry/sharp") for name in pages)
    assert any("KX-3" in name for name in pages)
    for name, text in pages.items():
        assert "key for" not in text.casefold(), name
        assert "API_KEY" not in text, name
        assert "canary" not in text, name


def test_a_book_without_a_result_has_pages_too(store: RunStore, client: TestClient):
    ArenaStore(store.database, "new").begin("{}", START)
    assert "No leaderboard yet" in client.get("/arena/new").text
    assert "Events of new" in client.get("/arena/new/events").text


def test_an_entry_stands_on_its_page_as_on_the_board_also_where_it_missed_some(arena: RunStore, tmp_path: Path):
    arena.database.write("delete from said where entry = (select id from entry where name = 'shy') and moment < 6")
    held = LeaderboardCache(arena, tmp_path)
    whole = {line.entry.name: line for line in held.board("made", ArenaFilters()).lines}
    for name in ("sharp", "shy"):
        alone = held.entry("made", (name,)).view
        assert next(line for line in alone.lines if line.entry.name == name) == whole[name]
        verdict = held.board("made", ArenaFilters()).versus_crowd[name]
        # On its own page an entry is not one of several comparisons.
        assert alone.versus_crowd[name] == replace(verdict, comparisons=1, p_corrected=ANY)
    held.close()
