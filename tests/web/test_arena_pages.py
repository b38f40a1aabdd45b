"""The pages of an arena: board, events, one event, one entry; served and as files."""

import asyncio
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.web.made_arena import START, fill
from tests.web.written_pages import written_pages

from foretell.arena.score_data import read_arena_table
from foretell.arena.store import ArenaStore
from foretell.number_text import percent
from foretell.report.arena_report import ARENA_COLUMNS, arena_report
from foretell.report.numbers import column_heading
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.web import boards
from foretell.web.arena_board import BoardChoice
from foretell.web.arena_pages import EntryAnswer, event_finding
from foretell.web.boards import ArenaFilters, LeaderboardCache
from foretell.web.site import write_site

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
    def listed(**wanted: str) -> str:
        return client.get("/arena/made", params={"view": "events", **wanted}).text

    events = listed(find="EVENT 23")
    assert re.findall(r'href="/arena/made/event/[^"]*">(.*?)</a>', events) == ["Event 23?"]
    assert "2 of 2 events, of 24 in all" in listed(state="open")
    assert "8 of 8 events, of 24 in all" in listed(category="Sports")
    assert "No event matches" in listed(find="nothing")


def test_event_page_shows_shared_context_and_reasons(arena: RunStore, client: TestClient):
    page = client.get(EVENT).text
    for part in ("A poll &lt;i&gt;of&lt;/i&gt; polls", "It is close.", "<strong>sharp</strong> holds", "1 Mar 2026"):
        assert part in page, part
    assert page.index('entry/sharp">') < page.index('entry/shy">'), "the best comes first"
    event = client.get("/api/arena/made/event/kalshi/KX-3").json()
    assert event["forecast_times"][-1]["reasons"]["shy"] == "**shy** holds the first source to be right."


def test_event_page_shows_its_steps_with_times(arena: RunStore, client: TestClient):
    page = client.get(EVENT).text
    steps = page[page.index('class="stations"') : page.index("What everybody said last")]
    for part in (
        "Selected",
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
    last_time = "select max(id) from moment where event = 'kalshi/KX-3'"
    arena.database.write(f"insert into asked values (({last_time}), ?)", (renamed,))
    page = client.get(EVENT).text
    assert "changed the title" in page
    assert "Event three, as amended?" in page


def test_board_shows_open_events_and_next_forecasts(arena: RunStore, client: TestClient):
    page = client.get("/arena/made").text
    assert "22 settled" in page
    assert "2 open" in page
    coming = page[page.index("Coming up") :]
    assert "Median entry" in coming
    assert "Event 23?" in coming


def test_a_category_counts_its_own_events_and_outcomes(arena: RunStore, client: TestClient):
    whole, part = (client.get(f"/arena/made{query}").text for query in ("", "?category=Sports"))
    counted = [re.search(r"<caption>(\d+) settled events with (\d+) outcomes", page) for page in (whole, part)]
    (events, outcomes), (fewer_events, fewer_outcomes) = [
        [int(n) for n in found.groups()] for found in counted if found
    ]
    assert 0 < fewer_events < events
    assert 0 < fewer_outcomes < outcomes


def test_an_entry_has_a_page(arena: RunStore, client: TestClient):
    page = client.get(ENTRY).text
    for part in (
        "Rank 1",
        "sharp is better than market price by 0.0675 in Brier score",
        "which is more than chance",
        "Where it was best",
        "Event 1?",
    ):
        assert part in page, part
    gaps = [float(text) for text in re.findall(r'<td class="n">([+-]\d\.\d{3})</td>', page)]
    assert gaps[0] == pytest.approx(0.0675, abs=0.0006)
    assert "Where it was worst" not in page
    assert "Where it was worst" in client.get("/arena/made/entry/shy").text
    assert client.get("/arena/made/entry/nobody").status_code == 404


def test_columns_and_calibration_are_chosen_in_the_address(arena: RunStore, client: TestClient):
    page = client.get(BOARD, params={"columns": ["brier_index", "nonsense"], "entry": "shy"}).text
    board = page[page.index('<table class="sort board rows">') : page.index("</tbody>")]
    assert ">Brier index</th>" in board
    assert "Completion" not in board
    assert "Reliability of shy" in page
    usual = client.get(BOARD).text
    assert "Reliability of sharp" in usual
    assert '<span class="tag">baseline</span>' in usual


def test_terminal_page_and_file_have_the_same_columns(arena: RunStore, client: TestClient, token: str):
    report = arena_report(read_arena_table(arena.database, "made"))
    client.get("/login", params={"token": token})  # What was spent needs the token.
    page = client.get(BOARD, params={"columns": list(ARENA_COLUMNS)}).text
    table = unescape(page[page.index('<table class="sort board rows">') : page.index("</tbody>")])
    printed = {column.label for grid in report.study().tables for column in grid.columns}
    for name, column in ARENA_COLUMNS.items():
        assert f'title="{column.shown.tip}">{column_heading(column.shown.label)}</th>' in table, name
        assert column.shown.label in printed, name
    rows = {row["entry"]: row for row in report.rows()}
    assert [{"entry", "rank", *ARENA_COLUMNS} - row.keys() for row in rows.values()] == [set()] * len(rows)
    for name, row in rows.items():
        cells = table[table.index(f"<bdi>{name}</bdi>") :]
        assert percent(row["completion"]) in cells[: cells.index("</tr>")]
        assert f"{row['brier']:.3f}" in cells[: cells.index("</tr>")]


def test_oracle_is_not_ranked(arena: RunStore, client: TestClient):
    arena.database.write("update entry set spec = ? where name = 'sharp'", ('{"forecaster": "oracle"}',))
    page = client.get(BOARD).text
    assert "shy is the best entry" in page


def held_up(monkeypatch: pytest.MonkeyPatch, function: str) -> threading.Event:
    """Make a step of the board computation wait until the event is set."""
    go_on, real = threading.Event(), getattr(boards, function)

    def wait(*args: Any, **options: Any) -> Any:
        assert go_on.wait(30)
        return real(*args, **options)

    monkeypatch.setattr(boards, function, wait)
    return go_on


def test_last_board_is_shown_while_the_new_one_is_computed(
    arena: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Visitors do not wait after new forecasts; a new server starts with the board of the last one."""
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


def test_first_visit_of_a_large_arena_does_not_wait(
    arena: RunStore, app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    slow = held_up(monkeypatch, "read_arena_table")
    monkeypatch.setattr(boards, "LARGE", 0)
    assert boards.READING in client.get(BOARD).text
    slow.set()
    held: LeaderboardCache = app.state.serving.boards
    whole = held.page("made", ArenaFilters(), BoardChoice(), whole=True)
    assert whole.public in client.get(BOARD).text


def test_a_large_board_ranks_at_once_and_its_intervals_come_after(
    arena: RunStore, app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    slow = held_up(monkeypatch, "arena_report")
    monkeypatch.setattr(boards, "LARGE", 0)
    held: LeaderboardCache = app.state.serving.boards
    parameters = {"category": "Sports", "columns": ["brier", "events", "market"]}
    first = client.get(BOARD, params=parameters).text
    assert "being computed" in first
    assert "Against the market</th>" not in first
    slow.set()
    whole = held.page(
        "made", ArenaFilters(category="Sports"), BoardChoice(columns=tuple(parameters["columns"])), whole=True
    )
    assert not whole.note
    ranked = [re.findall(r'data-v="([\d.]+)"', text) for text in (first, whole.body)]
    assert ranked[0]
    assert set(ranked[0]) <= set(ranked[1])
    # Further tables are fetched when they are opened, with the same filters.
    link = re.search(r'href="(/arena/made\?[^"]*view=table-1[^"]*)"', whole.body)
    assert link
    assert "category=Sports" in link[1]
    assert "<table" in client.get(unescape(link[1])).text
    assert client.get("/arena/made?view=nowhere").status_code == 404


def test_comparison_of_two_entries_takes_two_clicks(arena: RunStore, site: Any, page: Any):
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
    for path in (BOARD, EVENT, ENTRY, "/arena/made?view=events"):
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
        site = aside.submit(lambda: asyncio.run(write_site(out, settings))).result()
    assert site.broken == ()
    pages = written_pages(out)
    assert any(name.startswith("arena/made/entry/sharp") for name in pages)
    assert any(name.startswith("arena/made/event.html?") and "Event 3?" in text for name, text in pages.items())
    for name, text in pages.items():
        assert "key for" not in text.casefold(), name
        assert "API_KEY" not in text, name
        assert "canary" not in text, name


def test_arena_without_results_has_pages(store: RunStore, client: TestClient):
    ArenaStore(store.database, "new").begin("{}", START)
    assert "No leaderboard yet" in client.get("/arena/new").text
    assert "Events of new" in client.get("/arena/new?view=events").text


def test_entry_page_and_board_agree_for_incomplete_entries(arena: RunStore, tmp_path: Path):
    arena.database.write("delete from said where entry = (select id from entry where name = 'shy') and moment < 6")
    held = LeaderboardCache(arena, tmp_path)
    whole = {line.entry.name: line for line in held.board("made", ArenaFilters()).lines}
    for name in ("sharp", "shy"):
        alone = held.entry("made", (name,)).view
        assert next(line for line in alone.lines if line.entry.name == name) == whole[name]
        verdict = held.board("made", ArenaFilters()).versus_market[name]
        # On its own page, an entry is not corrected for several comparisons.
        assert alone.versus_market[name] == replace(verdict, comparisons=1, p_corrected=ANY)
    held.close()


SMALL_LABELS = """() => [...document.querySelectorAll('svg text, td, .ci, .tag, summary')]
  .filter(one => one.checkVisibility() && one.textContent.trim())
  .map(one => [parseFloat(getComputedStyle(one).fontSize) * (one.getScreenCTM?.().d ?? 1), one.textContent])
  .filter(([size]) => size < 11)"""


@pytest.mark.parametrize("width", [390, 1280])
def test_first_screen_of_an_arena_says_who_is_best_by_how_much_and_whether_it_is_sure(
    arena: RunStore, site: Any, open_page: Callable[..., Any], width: int
):
    page = open_page(viewport={"width": width, "height": 900})
    page.goto(f"{site.url}/arena/made")
    row = page.locator("table.board tbody tr", has=page.get_by_text("sharp", exact=True))
    for cell, text in (("td.rank", "1"), ("td.score", "0.0"), ('td[data-label^="Against"]', "[")):
        expect(row.locator(cell)).to_contain_text(text)
        box = row.locator(cell).bounding_box()
        assert box["x"] >= 0, (cell, box)
        assert box["x"] + box["width"] <= width, (cell, box)
        assert box["y"] + box["height"] <= 900, (cell, box)
    expect(page.locator("h1")).to_contain_text("sharp")
    assert page.locator("#where").is_visible() == (width > 640)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.querySelectorAll('.more details').forEach(part => { part.open = true; })")
    expect(page.locator("#more ~ h3").first).to_have_text("All events")
    expect(page.locator(".more a.part")).to_have_count(0)
    assert page.evaluate(SMALL_LABELS) == []


def test_the_list_of_arenas_says_who_is_best(arena: RunStore, client: TestClient):
    listed, board = client.get("/arena").text, client.get("/arena/made").text
    (finding,) = re.findall(r'/arena/made">made</a></td><td class="standing wraps">(.*?)</td>', listed)
    assert finding.removesuffix(".") in board


def test_the_finding_of_an_event_is_about_entries_not_baselines() -> None:
    said = {"market price": 0.5, "always 0.5": 0.5, "sharp": 0.4, "blunt": 0.2}
    answers = [
        EntryAnswer(name=name, entry=name, at=START, p={"a": p}, reason="", brier=None) for name, p in said.items()
    ]
    event: Any = SimpleNamespace(
        outcomes={"a": "yes", "b": "no"}, prices={"a": [(START, 0.3)]}, labels={"a": "Ann", "b": "Bob"}
    )
    found = "Ann came true. Of the entries, sharp gave it most, 40 %; 1 of 2 gave it more than the market's last 30 %."
    assert event_finding(event, answers) == found
