"""The same pages as files, opened from disk in a real Chromium."""

import asyncio
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from foretell.forecasters.tree import Scenario, SetP, apply_scenario, read_tree_file
from foretell.questions import Forecast, InputError, Question, Target
from foretell.runs import CellKey, QuestionsSpec, RunSpec, RunStore, Settings
from foretell.web import WrittenSite, write_site

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"
HOSTILE = '<img src=x onerror="document.title=1"> " href="/runs'


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """One home for all tests of this file: none of them writes to it."""
    return Settings(home=tmp_path_factory.mktemp("site") / "home")


@pytest.fixture(scope="module")
def written(settings: Settings) -> tuple[Path, WrittenSite]:
    """A run with a hostile question and two trees, as files."""
    trees = settings.home / "trees"
    trees.mkdir(parents=True)
    for path in EXAMPLES.glob("*.json"):
        shutil.copy(path, trees / path.name)
    spec = RunSpec(questions=QuestionsSpec(dataset="own"), models={"agent": "openai:m"})
    question = Question(id="own/1", source="own", text=HOSTILE, due="2026-01-01", targets=(Target(id="yes"),))
    key = CellKey(run=spec.id, question=question.id, due=question.due.isoformat(), trial=0)
    forecast = Forecast(
        question_id="own/1", forecaster="agent", as_of=question.as_of, p={"yes": 0.3}, rationale=HOSTILE
    )
    with closing(RunStore(settings.store)) as store:
        store.begin(spec.id, spec.to_json(), "2026-01-01T00:00:00+00:00")
        store.keep_questions(spec.id, [question])
        store.finish_cell(key, forecast)
    out = settings.home.parent / "site"
    return out, _write(out, settings)


def _write(out: Path, settings: Settings, *only: str) -> WrittenSite:
    """In a thread of its own: while a browser lives, this one has an event loop."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(write_site(out, settings, only=only))).result()


def test_every_link_leads_to_a_file(written: tuple[Path, WrittenSite]):
    out, told = written
    assert told.broken == ()
    pages = list(out.rglob("*.html"))
    assert len(pages) >= told.pages > 5
    for page in pages:
        text = page.read_text()
        if "tree-export" in str(page) or "export" in str(page.relative_to(out)):
            continue
        for _, link in re.findall(r' (href|src)="([^"#]+)', text):
            if not link.startswith(("http", "data:")):
                assert (page.parent / link).resolve().is_file(), (page, link)
        assert 'href="/' not in text
        assert 'type="module"' not in text


def test_what_if_works_from_disk(written: tuple[Path, WrittenSite], page: Any, settings: Settings):
    out, _ = written
    tree = read_tree_file(settings.home / "trees" / "nvda.json").tree
    page.goto((out / "index.html").as_uri())
    page.get_by_role("link", name="Trees", exact=True).click()
    page.get_by_role("link", name="Buying NVIDIA").click()
    page.locator("#tools").wait_for()
    leaf = next(id for id, node in tree.nodes.items() if not node.children)
    page.locator(f'[data-exact="{leaf}"]').fill("0.125")
    found = float(page.locator("#answer").get_attribute("data-value"))
    assert abs(found - apply_scenario(tree, Scenario(name="s", edits=(SetP(id=leaf, p=0.125),))).p) < 1e-9
    page.get_by_role("link", name="Runs", exact=True).click()
    page.locator("tbody a").first.click()
    page.locator("tbody a, main li a").first.click()
    expect(page.locator("main")).to_contain_text("onerror", use_inner_text=True)
    assert page.title() != "1"


def test_only_what_was_chosen(written: tuple[Path, WrittenSite], settings: Settings, tmp_path: Path):
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
