"""The same pages as files, opened from disk in a real Chromium."""

import asyncio
import gzip
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html import unescape
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect
from tests.web.made_arena import fill
from tests.web.written_pages import written_pages

from fakes.stored_run import StoredRunBuilder
from foretell.forecasters.tree.edits import Scenario, SetP
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.forecasters.tree.what_if import apply_scenario
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.runs.settings import Settings
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, TrialKey
from foretell.web.site import RECORD, WrittenSite, rewrite_page, write_site
from foretell.web.site_files import PageGroup, file_of, key_of, read_part
from foretell.web.static_files import SHEETS, style_sheets

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"
HOSTILE = '<img src=x onerror="document.title=1"> " href="/runs </script></main></title>'


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return one home for all tests of this file; none of them writes to it."""
    return Settings(home=tmp_path_factory.mktemp("site") / "home")


@pytest.fixture(scope="module")
def written_site(settings: Settings) -> tuple[Path, WrittenSite]:
    """Write a run with a hostile question and two trees as files."""
    trees = settings.home / "trees"
    trees.mkdir(parents=True)
    for path in EXAMPLES.glob("*.json"):
        shutil.copy(path, trees / path.name)
    spec = RunSpec(questions=QuestionsSpec(dataset="own"), models={"agent": "openai:m"})
    question = Question(id="own/1", source="own", text=HOSTILE, due="2026-01-01", targets=(Target(id="yes"),))
    key = TrialKey(run=spec.id, question=question.id, due=question.due.isoformat(), trial=0)
    forecast = Forecast(
        question_id="own/1", forecaster="agent", as_of=question.as_of, p={"yes": 0.3}, rationale=HOSTILE
    )
    with closing(RunStore(settings.store)) as store:
        store.begin(spec.id, spec.to_json(), "2026-01-01T00:00:00+00:00")
        store.keep_questions(spec.id, [question])
        store.finish_trial(key, forecast)
        fill(store)
    out = settings.home.parent / "Größe & 100 % #1"  # What a user may call a folder.
    return out, _write(out, settings)


def _write(out: Path, settings: Settings, *only: str, **more: Any) -> WrittenSite:
    """Write the site in another thread, because a browser runs an event loop in this one."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(write_site(out, settings, only=only, **more))).result()


def test_every_link_of_the_static_site_leads_to_a_file(written_site: tuple[Path, WrittenSite]):
    out, site = written_site
    assert site.broken == ()
    pages = written_pages(out)
    assert len(pages) >= site.pages > 5
    assert len([path for path in out.rglob("*") if path.is_file()]) == site.files + 1  # and the record
    for name, text in pages.items():
        if "export" in name:
            continue
        for _, link, place in re.findall(r' (href|src)="([^"#]+)(#said[^"]*)?', text):
            if not link.startswith(("http", "data:")):
                target = normpath(join(dirname(name), link))
                assert target in pages or (out / target).is_file(), (name, link)
                assert not place or f'id="{unquote(place[1:])}"' in unescape(pages[target]), (name, place)
        assert 'href="/' not in text
        assert 'type="module"' not in text


def test_an_event_has_one_page_with_all_rounds_and_a_board_one_with_all_parts(
    written_site: tuple[Path, WrittenSite], open_page: Callable[..., Any]
):
    out, _ = written_site
    assert sum(name.startswith("arena/made/event.html?") for name in written_pages(out)) == 12
    assert [path.name for path in out.glob("arena/made/event/*")] == ["1.js"]
    # The whole board, one for each of two categories and of the times to close, and the list of events.
    assert len(list(out.glob("arena/made*.html"))) <= 8
    page = open_page(viewport={"width": 390, "height": 740})  # An error in its console fails the test.
    page.goto((out / "arena" / "made.html").as_uri())
    expect(page.locator("h1")).to_be_visible()
    part = page.locator("#more ~ .more details").last
    part.locator("summary").click()
    expect(part.locator("p, table").first).to_be_visible()
    page.get_by_role("link", name="Sports").click()
    expect(page.locator("nav.filters strong", has_text="Sports")).to_be_visible()
    page.get_by_role("link", name="Events").click()
    page.get_by_role("link", name="Event 3?").click()
    page.get_by_role("link", name="Every step it took").first.click()
    expect(page.locator("[id^=said-]:target, [id^=said-]").first).to_be_attached()
    assert page.locator("details:has(> [id^=said-])[open]").count() == 1


def test_an_interrupted_export_goes_on_where_it_stopped(settings: Settings, tmp_path: Path, written_site: Any):
    out = tmp_path / "site"

    def interrupt(done: int, known: int) -> None:
        if done == 6:
            raise InterruptedError
        assert known >= done

    with pytest.raises(InterruptedError):
        _write(out, settings, progress=interrupt)
    with (out / RECORD).open("ab") as record:
        record.write(gzip.compress(b'{"address": "/runs", "file": "runs')[:-20])  # What was being written.
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.html")}
    assert "index.html" in {path.name for path in before}
    site = _write(out, settings)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert site.files == written_site[1].files
    assert written_pages(out).keys() == written_pages(written_site[0]).keys()


def test_an_export_killed_between_pages_of_one_file_writes_the_same_in_the_end(
    settings: Settings, tmp_path: Path, written_site: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("foretell.web.site.SAVE_SECONDS", 0.0)
    first, out = written_site[0], tmp_path / "site"
    lines = gzip.decompress((first / RECORD).read_bytes()).splitlines()
    events = [number for number, line in enumerate(lines) if b"/arena/made/event/" in line]

    def interrupt(done: int, known: int) -> None:
        if done == stops[0]:
            raise InterruptedError

    stops = [events[3], events[8], 0]
    while stops[0]:
        with pytest.raises(InterruptedError):
            _write(out, settings, progress=interrupt)
        # As after a kill between saving pages and recording them.
        recorded = gzip.decompress((out / RECORD).read_bytes()).splitlines(keepends=True)
        assert b"/arena/made/event/" in recorded.pop()
        (out / RECORD).write_bytes(gzip.compress(b"".join(recorded)))
        stops.pop(0)
    _write(out, settings)
    parts = {path.relative_to(first) for path in first.rglob("*.js")}
    assert {path.relative_to(out) for path in out.rglob("*.js")} == parts
    assert [part for part in parts if (out / part).read_bytes() != (first / part).read_bytes()] == []
    assert written_pages(out).keys() == written_pages(first).keys()


def test_site_that_leaves_pages_out_says_so(
    settings: Settings, tmp_path: Path, written_site: tuple[Path, WrittenSite], monkeypatch: pytest.MonkeyPatch
):
    assert written_site[1].warnings == ()
    monkeypatch.setattr("foretell.web.site.MAX_PAGES", 5)
    (warning,) = _write(tmp_path / "site", settings).warnings
    assert "at most 5 pages" in warning


def test_five_thousand_questions_of_a_run_need_a_few_dozen_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "foretell.web.site_files.SMALLEST_PART", 1_500
    )  # As 30,000 characters a page are to 1.5 million.
    group = PageGroup(out=tmp_path, file="runs/3f2a/questions.html")
    page = '<title>Question {0}</title><main id="main" tabindex="-1"><h1>{0:030}</h1></main><script></script></body>'
    for number in range(5_000):
        group.add(key_of(f"/runs/3f2a/questions/{number}"), page.format(number))
    group.save()
    assert len(list(tmp_path.rglob("*.*"))) < 70
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.*")) < 300_000
    parts = [read_part(path) for path in (tmp_path / "runs" / "3f2a" / "questions").iterdir()]
    assert sorted(title for part in parts for title, _ in part.values()) == sorted(
        f"Question {n}" for n in range(5_000)
    )


def test_pages_that_share_a_file_are_found_by_their_address(written_site: tuple[Path, WrittenSite], open_page: Any):
    out, _ = written_site
    shown = open_page(viewport={"width": 390, "height": 740})
    link, text = next((link, text) for link, text in written_pages(out).items() if "/questions.html?" in link)
    file, key = link.split("?")
    assert HOSTILE in unescape(text)
    for query in (key, f"{key}=&utm_source=mail"):
        shown.goto(f"{(out / file).as_uri()}?{query}")
        expect(shown.locator("h1")).to_contain_text("onerror")
        expect(shown).to_have_title(re.compile("30 % · <img"))
    for query in ("", "?0123456789ab"):
        shown.goto(f"{(out / file).as_uri()}{query}")
        expect(shown.locator("main")).to_have_text("This site has no page at this address.")


def test_questions_of_a_large_run_are_data_in_parts_that_one_page_shows(
    tmp_path: Path, open_page: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("foretell.web.site_files.SMALLEST_PART", 200_000)
    settings, out = Settings(home=tmp_path / "home"), tmp_path / "site"
    with closing(RunStore(settings.store)) as store:
        run = StoredRunBuilder(questions=40, trials=1, steps=1).keep(store)
    _write(out, settings)
    assert [path.name for path in (out / "runs").glob("*.html")] == [f"{run}.html"]
    parts = list((out / "runs" / run / "questions").iterdir())
    assert 1 < len(parts) < 12
    shown = open_page(viewport={"width": 390, "height": 740})  # An error in its console fails the test.
    requested: list[str] = []
    shown.on("request", lambda request: requested.append(Path(request.url).name))
    shown.goto((out / "index.html").as_uri())
    shown.get_by_role("link", name="Runs", exact=True).click()
    shown.locator("main table a").first.click()
    for number in (39, 0):
        shown.get_by_role("link", name=f"Will the harbour bridge number {number} be approved?").click()
        expect(shown.locator("h1")).to_have_text(f"Will the harbour bridge number {number} be approved?")
        expect(shown.locator("#probability")).to_contain_text("%")
        shown.go_back()
    names = {path.name for path in parts}
    assert len([name for name in requested if name in names]) == 2, "a page loads the part that it is in"


def test_pages_of_the_static_site_have_the_style_sheets_of_what_they_show(written_site: tuple[Path, WrittenSite]):
    out, _ = written_site
    kinds = set[str]()
    for link, text in written_pages(out).items():
        if link.startswith("api/"):
            continue  # A report, which is one file.
        needed = set(re.findall(r"/static/([a-z]+)\.css", style_sheets(text, still=True)))
        page = (out / link.partition("?")[0]).read_text(encoding="utf-8")
        linked = re.findall(r'<link rel="stylesheet" href="[./]*static/([a-z]+)-\w+\.css">', page)
        assert needed <= set(linked), link
        assert linked == [name.removesuffix(".css") for name in SHEETS if name.removesuffix(".css") in linked], link
        kinds.add(" ".join(linked))
    assert len(kinds) > 3


def test_a_file_of_several_pages_has_the_style_sheets_of_them_all(tmp_path: Path):
    def page(main: str) -> str:
        head = (
            f"<head><title>t</title>{rewrite_page(style_sheets(main, still=True), lambda link: file_of(link))}</head>"
        )
        return f'<html>{head}<body><main id="main">{main}</main></body></html>'

    pages = {name: page(f'<div class="{name}"></div>') for name in ("claim", "mosaic", "examined")}
    group = PageGroup(out=tmp_path, file="runs/a/questions.html")
    file, length = group.add("one", pages["claim"])
    group.save()
    later = PageGroup(out=tmp_path, file="runs/a/questions.html")  # As after an interruption.
    later.recall(file, "one", length)
    later.add("two", pages["mosaic"])
    later.add("three", pages["examined"])
    later.save()
    text = (tmp_path / "runs/a/questions.html").read_text(encoding="utf-8")
    assert re.findall(r"static/([a-z]+)-\w+\.css", text) == ["foretell", "arena", "record", "tree"]


def test_what_if_works_in_the_static_site(written_site: tuple[Path, WrittenSite], page: Any, settings: Settings):
    out, _ = written_site
    tree = read_tree_file(settings.home / "trees" / "nvda.json").tree
    page.goto((out / "index.html").as_uri())
    page.get_by_role("link", name="Trees", exact=True).click()
    page.get_by_role("link", name="Buying NVIDIA").click()
    page.locator("#tools").wait_for()
    leaf = next(id for id, node in tree.nodes.items() if not node.children)
    page.locator(f'[data-exact="{leaf}"]').fill("12.5")
    answer = float(page.locator("#answer").get_attribute("data-value"))
    assert abs(answer - apply_scenario(tree, Scenario(name="s", edits=(SetP(id=leaf, p=0.125),))).p) < 1e-9
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("link", name="question of own").click()
    page.locator("tbody a, main li a").first.click()
    expect(page.locator("main")).to_contain_text("onerror", use_inner_text=True)
    assert page.title() != "1"


def test_only_chosen_pages_are_written(written_site: tuple[Path, WrittenSite], settings: Settings, tmp_path: Path):
    out = tmp_path / "chosen"
    _write(out, settings, "tree:nvda")
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.html")}
    assert "trees/view/nvda.html" in names
    assert not any("central_bank" in name for name in names)
    assert not any(name.startswith("runs/") for name in names)
    for wrong in ("tree:none", "run:none", "arena:none"):
        with pytest.raises(InputError, match="there is no"):
            _write(tmp_path / "nothing", settings, wrong)
    assert not (tmp_path / "nothing").exists()
