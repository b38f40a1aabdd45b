"""The example home in a real browser: how many clicks what people want takes, and every page at every width."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from playwright.sync_api import expect
from starlette.routing import Match

from foretell.models import facts
from foretell.operations import serving_example
from foretell.runs import CHECKED_MODELS, KNOWN_MODELS, Settings
from foretell.web import create_app

SCREENSHOTS = os.environ.get("FORETELL_SCREENSHOTS")
"""Where pictures are kept, if anywhere."""
WIDTHS, THEMES = (1440, 1024, 390), ("light", "dark")
SHOTS = {1440: "light", 390: "dark"}
"""Pictures that are kept of a page."""
COLOURS, PLACES = ["color-contrast", "link-in-text-block"], ["target-size", "scrollable-region-focusable"]
"""Rules whose answer depends on the theme, and on the width. What shows at a width depends on it too, so colours are
looked at in each: of text that looks alike on the same ground, one piece, and none that was looked at before."""
SERIOUS = """async (rules) => {
  const options = { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } };
  if (rules.length) options.runOnly = { type: 'rule', values: rules };
  let where = document;
  if (!rules.length || rules.includes('color-contrast')) {
    const alike = new Map(), known = globalThis.knownLooks ??= new Set();
    const clear = 'rgba(0, 0, 0, 0)', ground = new Map();
    const behind = one => {
      if (!one) return '';
      if (!ground.has(one)) {
        const own = getComputedStyle(one).backgroundColor;
        ground.set(one, own === clear ? behind(one.parentElement) : own);
      }
      return ground.get(one);
    };
    for (const one of document.querySelectorAll('body *')) {
      if (![...one.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
      if (!one.checkVisibility()) continue;
      const { color, fill, opacity, fontSize, fontWeight, textDecorationLine } = getComputedStyle(one);
      const around = one.localName === 'a' && getComputedStyle(one.parentElement).color;
      const look = String([around, one instanceof SVGElement && fill, color, opacity, fontSize, fontWeight,
        textDecorationLine, behind(one)]);
      if (!known.has(look)) alike.set(look, one);
      known.add(look);
    }
    if (!alike.size) return [];
    if (rules.length) where = { include: [...alike.values()] };
  }
  const found = await axe.run(where, options);
  return found.violations.filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.target.join(' ')).join(' | ')}`);
}"""
CUT = """() => [...document.querySelectorAll('main table')].filter(table => {
  const box = table.closest('.scroll, figure, details:not([open])') ?? table.parentElement;
  return table.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === 'visible';
}).length"""
LINKS = """() => [...document.querySelectorAll("main a[href^='/'], header a[href^='/']")]
  .map(link => link.getAttribute('href'))"""
PATIENCE = 90_000
FILES = (".csv", ".png", ".svg", ".json", ".zip", ".ipynb")


@pytest.fixture(scope="module")
def example(made_example: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A copy of the example, with its services."""
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(made_example.home, home)
    before = facts._HOME_FILES[:]  # pyright: ignore[reportPrivateUsage]
    facts.use_facts_from(home / CHECKED_MODELS, home / KNOWN_MODELS)
    with serving_example(home) as settings:
        yield settings
    facts.use_facts_from(*before)


@pytest.fixture(autouse=True)
def patience(page: Any) -> Iterator[None]:
    """On a busy machine a first page takes long, and nothing here is about speed."""
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def example_app(example: Settings, token: str, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setenv("FORETELL_MODEL", "openai:practice")
    monkeypatch.setenv("FORETELL_SEARCH", "brave")
    return create_app(example, token=token)


@dataclass
class Visitor:
    """Somebody whose clicks are counted."""

    page: Any
    clicks: int = 0

    def click(self, what: Any) -> None:
        self.clicks += 1
        what.click()


def test_a_question_is_answered_without_any_key_in_one_click(page: Any, site: Any) -> None:
    visitor = Visitor(page)
    page.goto(site.url)
    page.get_by_label("Question", exact=True).fill("Will it snow in Oslo by Christmas 2026?")
    visitor.click(page.get_by_role("button", name="Ask", exact=True))
    expect(page.locator("#probability")).to_contain_text("%")
    assert visitor.clicks <= 2


def test_what_people_want_takes_few_clicks(page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any]) -> None:
    site = serve(example_app)
    page.goto(site.login)

    def start() -> Visitor:
        page.goto(site.url)
        return Visitor(page)

    visitor = start()  # Ask with a key.
    page.get_by_label("Question", exact=True).fill("Will it snow in Oslo by Christmas 2026?")
    expect(page.locator("#estimate")).to_contain_text("Costs nothing")
    expect(page.get_by_label("openai:practice")).to_be_checked()
    expect(page.get_by_label("brave", exact=True)).to_be_checked()
    visitor.click(page.get_by_role("button", name="Research it"))
    expect(page.locator("#probability")).to_contain_text("%")
    expect(page.get_by_role("button", name="Stop the run")).to_have_count(0)
    assert visitor.clicks <= 2

    visitor = start()  # Why this number, which evidence moved it, open the source.
    expect(page.get_by_role("link", name="An agent's research", exact=True)).to_be_visible()
    visitor.click(page.get_by_role("link", name="example: an agent's research").first)
    visitor.click(page.get_by_role("link", name="Will the Bank of Norland lower its policy rate"))
    expect(page.locator("#answer .big")).to_contain_text("%")
    expect(page.locator("#moved li strong").first).to_contain_text("pts")
    expect(page.locator("#withheld")).to_contain_text("it has no date")
    expect(page.locator("#change li").first).to_be_visible()
    visitor.click(page.locator("#moved .seen").first)
    expect(page.locator("details.saw[open] pre").first).to_be_visible()
    assert visitor.clicks <= 3
    image = page.locator("meta[property='og:image']").get_attribute("content")
    assert page.request.get(image).headers["content-type"] == "image/png"
    assert page.request.get(page.locator("link[rel=canonical]").get_attribute("href")).ok

    visitor = start()  # Why a cell failed, and retry it.
    visitor.click(page.get_by_role("link", name="example: one search and an answer").first)
    expect(page.locator("#failures")).to_contain_text("out of service")
    visitor.click(page.get_by_role("button", name="Retry what failed"))
    expect(page.locator("#progress [role=status]")).to_contain_text("4 forecasts, 0 failures")
    assert visitor.clicks <= 3

    visitor = start()  # Compare three runs and more.
    visitor.click(page.get_by_role("link", name="Runs", exact=True))
    visitor.click(page.get_by_role("link", name="compare 6 runs on demo"))
    expect(page.get_by_role("heading", name="6 runs on one board")).to_be_visible()
    expect(page.locator("main .lead").first).to_contain_text("is better than")
    assert visitor.clicks <= 3

    visitor = start()  # A table of one's own beside them.
    visitor.click(page.get_by_role("link", name="Runs", exact=True))
    visitor.click(page.get_by_role("link", name="compare 6 runs on demo"))
    address = "/api/runs/auto%3A%20the%20best%20series%20model%20by%20its%20past/answers.csv"
    mine = page.request.get(site.url + address).body()
    page.locator("#files").set_input_files({"name": "mine.csv", "mimeType": "text/csv", "buffer": mine})
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine.csv")
    visitor.click(page.get_by_role("button", name="Put them on the board"))
    expect(page.get_by_role("heading", name="6 runs and 1 table on one board")).to_be_visible()
    rows = page.locator("main table").first.locator("tbody tr")
    same = [rows.filter(has_text=name).locator("td.n").nth(1).inner_text() for name in ("auto: the best", "mine")]
    assert same[0] == same[1]
    assert visitor.clicks <= 3

    visitor = start()  # Watch a run, rename it, remove it.
    visitor.click(page.get_by_role("link", name="always 0.5").first)
    expect(page.locator("#progress [role=status]")).to_contain_text("Finished")
    page.get_by_label("Name", exact=True).fill("a shrug")
    visitor.click(page.get_by_role("button", name="Save", exact=True))
    expect(page.get_by_role("heading", name="a shrug")).to_be_visible()
    assert visitor.clicks <= 2
    visitor = Visitor(page)
    visitor.click(page.get_by_text("Remove this run"))
    visitor.click(page.get_by_role("button", name="Remove it"))
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    expect(page.get_by_text("a shrug")).to_have_count(0)
    assert visitor.clicks <= 2


def test_an_unknown_price_is_asked_for_in_place_and_nothing_is_stored(
    page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any], watched: Any
) -> None:
    watched.allowed.append("422")
    site = serve(example_app)
    page.goto(site.login)
    page.goto(f"{site.url}/ask")
    page.get_by_label("Question", exact=True).fill("Will it snow in Bergen by Christmas 2026?")
    page.get_by_label("Name of another model").fill("openai:unheard-of")
    expect(page.locator("#estimate")).to_contain_text("Price not known")
    page.get_by_role("button", name="Research it").click()
    price = page.get_by_label("Price of this model")
    expect(price).to_be_focused()
    expect(page.get_by_label("Question", exact=True)).to_have_value("Will it snow in Bergen by Christmas 2026?")
    assert not page.request.get(f"{site.url}/api/find?words=Bergen").json()["questions"]
    price.fill("0.5/2")
    page.get_by_role("button", name="Research it").click()
    expect(page.get_by_role("heading", name="Will it snow in Bergen by Christmas 2026?")).to_be_visible()
    expect(page.locator("#probability")).to_contain_text("%")
    page.get_by_label("Search questions, runs, trees").fill("bergen")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Will it snow in Bergen by Christmas 2026?").first).to_be_visible()


def test_every_page_is_whole_at_every_width_in_light_and_dark(
    page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any]
) -> None:
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    site, problems = serve(example_app), list[str]()
    page.goto(site.login)
    waiting, seen = ["/", "/find?words=rate", "/api", "/login"], set[str]()
    while waiting:
        address = waiting.pop(0)
        shape = _shape(example_app, address)
        if shape is None or shape in seen:
            continue
        seen.add(shape)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")  # Colours do not fade in.
        page.goto(site.url + address)
        waiting += page.evaluate(LINKS)
        page.evaluate(axe)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                every = (width, theme) == (WIDTHS[0], THEMES[0])
                found = page.evaluate(SERIOUS, [] if every else COLOURS)
                problems += [f"{address} at {width} in {theme}: {one}" for one in found]
            if width != WIDTHS[0]:  # Where every rule was tried.
                problems += [f"{address} at {width}: {one}" for one in page.evaluate(SERIOUS, PLACES)]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                problems.append(f"{address} scrolls sideways at {width}")
            if page.evaluate(CUT):
                problems.append(f"{address} cuts a table at {width}")
            if SCREENSHOTS and width in SHOTS:
                page.emulate_media(color_scheme=SHOTS[width])
                name = (
                    shape.strip("/").replace("/", "-").replace("{", "").replace("}", "").replace(":path", "") or "home"
                )
                tall = page.evaluate("document.documentElement.scrollHeight") > 6000
                page.screenshot(path=str(Path(SCREENSHOTS) / f"{name}-{width}.png"), full_page=not tall)
    assert not problems, "\n".join(problems)
    assert len(seen) >= 15, sorted(seen)


def _shape(app: FastAPI, address: str) -> str | None:
    """The route of a page, so that one of a kind is looked at; None for what is not a page."""
    path = urlsplit(address).path
    if path.startswith(("/api/", "/static")) or path.endswith(FILES) or "/raw/" in path:
        return None
    scope = {"type": "http", "method": "GET", "path": path}
    routes: list[Any] = [route for route in app.routes if hasattr(route, "path")]
    return next((str(route.path) for route in routes if route.matches(scope)[0] is Match.FULL), None)
