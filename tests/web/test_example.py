"""The example home in a real browser: clicks for common tasks, and every page at every width."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi import FastAPI
from playwright.sync_api import expect
from starlette.routing import Match

from foretell.models import facts
from foretell.operations.example import ARENA, serving_example
from foretell.runs.settings import CHECKED_MODELS, KNOWN_MODELS, Settings
from foretell.web.app import create_app
from foretell.web.static_files import SHEETS, static_text

SCREENSHOTS = os.environ.get("FORETELL_SCREENSHOTS")
"""Folder for pictures, if they are saved."""
WIDTHS, THEMES = (1440, 1280, 1024, 390), ("light", "dark")
SHOTS = {1440: "light", 390: "dark"}
"""Widths and themes of the pictures that are saved of a page."""
COLOURS, PLACES = ["color-contrast", "link-in-text-block"], ["target-size", "scrollable-region-focusable"]
"""Rules whose result depends on the theme, and on the width. Different text is visible at each width, so colours are
checked at each: one piece of text for each combination of colours that was not checked before."""
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
    if (rules.length && !alike.size) return [];
    if (rules.length) where = { include: [...alike.values()] };
  }
  const found = await axe.run(where, options);
  return found.violations.filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.target.join(' ')).join(' | ')}`);
}"""
LEGIBLE = """() => {
  const brush = Object.assign(document.createElement('canvas'), { width: 1, height: 1 })
    .getContext('2d', { willReadFrequently: true });
  const rgba = text => {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = text;
    brush.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = one => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
    return layers.reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const holds = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  const looks = globalThis.svgLooks ??= new Set(), found = new Set();
  for (const one of document.querySelectorAll('main *, header *, footer *')) {
    if (![...one.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    const box = one.getBoundingClientRect();
    // A title is a tooltip, and what is one pixel large is for screen readers.
    if (one.localName === 'title' || box.width < 2 || box.height < 2 || !one.checkVisibility()) continue;
    const style = getComputedStyle(one), inSvg = one instanceof SVGElement, says = one.textContent.trim().slice(0, 40);
    let size = parseFloat(style.fontSize);
    if (inSvg) { const m = one.getScreenCTM(); size *= Math.sqrt(Math.abs(m.a * m.d - m.b * m.c)); }
    else if (one.closest('#sheet')) size *= box.width / (one.offsetWidth || box.width);
    if (size < 10.95) found.add(`${size.toFixed(1)} px: ${says}`);
    if (!inSvg) continue;  // axe checks the contrast of all other text.
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    const below = [...one.ownerSVGElement.querySelectorAll('rect')].filter(rect =>
      rect.compareDocumentPosition(one) & 4 && holds(rect.getBoundingClientRect(), x, y)).at(-1);
    const fill = below ? getComputedStyle(below) : null;
    const look = String([style.fill, style.opacity, fill?.fill, fill?.opacity, getComputedStyle(document.body).color]);
    if (looks.has(look)) continue;
    looks.add(look);
    let under = ground(one.ownerSVGElement);
    if (fill) { const paint = rgba(fill.fill); under = over([...paint.slice(0, 3), paint[3] * fill.opacity], under); }
    const ink = rgba(style.fill), shown = over([...ink.slice(0, 3), ink[3] * style.opacity], under);
    const [a, b] = [light(shown), light(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(`contrast ${ratio.toFixed(1)}: ${says}`);
  }
  return [...found].slice(0, 8);
}"""
"""Text that is rendered smaller than 11 px, and labels of figures with too little contrast."""
CUT = """() => [...document.querySelectorAll('main table')].filter(table => {
  const box = table.closest('.scroll, figure, details:not([open])') ?? table.parentElement;
  return table.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === 'visible';
}).length"""
WIDE = """() => [...document.querySelectorAll('main table.board')]
  .filter(table => table.checkVisibility() && table.scrollWidth > table.parentElement.clientWidth + 1).length"""
TORN = """() => {
  const found = [], seen = one => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  for (const svg of document.querySelectorAll('main svg.ft')) {
    const room = svg.getBoundingClientRect();
    if (!room.width || !seen(svg)) continue;
    for (const label of svg.querySelectorAll('text')) {
      const box = label.getBoundingClientRect();
      const cut = box.width > 1 && (box.left < room.left - 1.5 || box.right > room.right + 1.5);
      if (cut && seen(label)) found.push(`the label ${label.textContent.trim()} is cut`);
    }
  }
  const narrow = [...document.querySelectorAll('main :is(strong, span, td, th, dd, dt, a, p, li)')];
  for (const one of narrow) {
    if (one.getBoundingClientRect().width > 90 || one.closest('svg, code, .sr')) continue;
    for (const node of one.childNodes) {
      if (node.nodeType !== 3 || !node.data.trim() || !seen(one)) continue;
      for (const word of node.data.matchAll(/[\\p{L}\\p{N}]{2,12}/gu)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const boxes = [...range.getClientRects()].filter(box => box.width > 0.5);
        const lines = new Set(boxes.map(box => Math.round(box.top)));
        if (lines.size > 1) found.push(`the word ${word[0]} is broken`);
      }
    }
  }
  return found.slice(0, 8);
}"""
"""Labels of figures that do not fit into them, and short words that are broken because a cell is too narrow."""
UNDRESSED = """sheets => {
  const own = new Set([...document.querySelectorAll('style[data-sheet]')].map(one => one.dataset.sheet)), found = [];
  const rules = list => [...list].flatMap(rule => rule.selectorText ? [rule] : rules(rule.cssRules ?? []));
  for (const [name, text] of Object.entries(sheets)) {
    if (own.has(name)) continue;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    for (const { selectorText } of rules(sheet.cssRules)) {
      const bare = selectorText.replaceAll(/::[\\w-]+|:(?:hover|focus[\\w-]*|checked)/g, '')
        .replaceAll(/:(?:is|has|not)\\([, ]*\\)/g, '');
      if (bare !== ':root' && document.querySelector(bare || '*')) found.push(`lacks ${name}: ${selectorText}`);
    }
  }
  return found;
}"""
"""Rules for something on the page in style sheets that it does not have."""
OPEN_ALL = "() => document.querySelectorAll('details').forEach(one => { one.open = true; })"
LINKS = """() => [...document.querySelectorAll("main a[href^='/'], header a[href^='/']")]
  .map(link => link.getAttribute('href'))"""
PATIENCE = 90_000
FILES = (".csv", ".png", ".svg", ".json", ".zip", ".ipynb")


@pytest.fixture(scope="module")
def example(made_example: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Return a copy of the example, with its services."""
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(made_example.home, home)
    before = facts._HOME_FILES[:]  # pyright: ignore[reportPrivateUsage]
    facts.use_facts_from(home / CHECKED_MODELS, home / KNOWN_MODELS)
    with serving_example(home) as settings:
        yield settings
    facts.use_facts_from(*before)


@pytest.fixture(autouse=True)
def patience(page: Any) -> Iterator[None]:
    """Use long timeouts, because the first page is slow on a busy machine."""
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
    """A visitor whose clicks are counted."""

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


def test_common_tasks_take_few_clicks(page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any]) -> None:
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

    visitor = start()  # See why the answer is this number, which evidence moved it, and open the source.
    expect(page.get_by_role("link", name="An agent's research", exact=True)).to_be_visible()
    visitor.click(page.get_by_role("link", name="example: an agent's research").first)
    visitor.click(page.get_by_role("link", name="Will the Bank of Norland lower its policy rate"))
    expect(page.locator("#answer .big")).to_contain_text("%")
    expect(page.locator("#why .moved li strong").first).to_contain_text("pts")
    expect(page.locator("#withheld")).to_contain_text("it has no date")
    expect(page.locator("#why h3 + ul li").first).to_be_visible()
    visitor.click(page.locator("#why .seen").first)
    expect(page.locator("details.saw[open] pre").first).to_be_visible()
    assert visitor.clicks <= 3
    image = page.locator("meta[property='og:image']").get_attribute("content")
    assert page.request.get(image, max_retries=3).headers["content-type"] == "image/png"
    assert page.request.get(page.locator("link[rel=canonical]").get_attribute("href"), max_retries=3).ok

    visitor = start()  # See why a trial failed, and retry it.
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

    visitor = start()  # Add a table of your own.
    visitor.click(page.get_by_role("link", name="Runs", exact=True))
    visitor.click(page.get_by_role("link", name="compare 6 runs on demo"))
    address = "/api/runs/auto%3A%20the%20best%20series%20model%20by%20its%20past/answers.csv"
    mine = page.request.get(site.url + address, max_retries=3).body()
    page.locator("#files").set_input_files({"name": "mine.csv", "mimeType": "text/csv", "buffer": mine})
    visitor.click(page.get_by_role("button", name="Compare", exact=True))
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
    visitor.click(page.get_by_role("button", name="Delete this run"))
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
    assert "snow in Bergen" not in page.request.get(f"{site.url}/runs?find=Bergen", max_retries=3).text()
    price.fill("0.5/2")
    page.get_by_role("button", name="Research it").click()
    expect(page.get_by_role("heading", name="Will it snow in Bergen by Christmas 2026?")).to_be_visible()
    expect(page.locator("#probability")).to_contain_text("%")
    page.get_by_label("Search questions, runs, trees").fill("bergen")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Will it snow in Bergen by Christmas 2026?").first).to_be_visible()


def test_every_page_fits_every_width_in_light_and_dark(
    page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any]
) -> None:
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    site, problems = serve(example_app), list[str]()
    page.goto(site.login)
    waiting, seen = ["/", "/runs?find=rate", "/login"], set[str]()
    sheets = {name: static_text(name) for name in SHEETS}
    while waiting:
        address = waiting.pop(0)
        shape = _shape(example_app, address)
        if shape is None or shape in seen:
            continue
        seen.add(shape)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")  # Colours change without a transition.
        page.goto(site.url + address)
        waiting += page.evaluate(LINKS)
        problems += [f"{address} {problem}" for problem in page.evaluate(UNDRESSED, sheets)]
        page.evaluate(axe)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                all_rules = (width, theme) == (WIDTHS[0], THEMES[0])
                evaluate = page.evaluate(SERIOUS, [] if all_rules else COLOURS)
                evaluate += page.evaluate(LEGIBLE)
                problems += [f"{address} at {width} in {theme}: {problem}" for problem in evaluate]
            if width != WIDTHS[0]:  # All rules were tried at this width and theme.
                problems += [f"{address} at {width}: {problem}" for problem in page.evaluate(SERIOUS, PLACES)]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                problems.append(f"{address} scrolls sideways at {width}")
            if page.evaluate(CUT):
                problems.append(f"{address} cuts a table at {width}")
            if width >= 1280 and page.evaluate(WIDE):
                problems.append(f"{address} has a leaderboard that scrolls sideways at {width}")
            problems += [f"{address} at {width}: {problem}" for problem in page.evaluate(TORN)]
            if SCREENSHOTS and width in SHOTS:
                page.emulate_media(color_scheme=SHOTS[width])
                name = (
                    shape.strip("/").replace("/", "-").replace("{", "").replace("}", "").replace(":path", "") or "home"
                )
                tall = page.evaluate("document.documentElement.scrollHeight") > 6000
                page.screenshot(path=str(Path(SCREENSHOTS) / f"{name}-{width}.png"), full_page=not tall)
    assert not problems, "\n".join(problems)
    assert len(seen) >= 15, sorted(seen)


def test_parts_that_are_loaded_later_bring_their_style_sheets(
    page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any]
) -> None:
    site, sheets = serve(example_app), {name: static_text(name) for name in SHEETS}
    page.goto(f"{site.url}/arena/{ARENA}")
    parts = page.locator("details a.part")
    assert parts.count() > 0
    page.evaluate("document.querySelector('style[data-sheet=\"tables.css\"]').remove()")
    page.evaluate(OPEN_ALL)
    expect(parts).to_have_count(0)
    loaded = page.locator("style[data-sheet]").evaluate_all("all => all.map(one => one.dataset.sheet)")
    assert loaded == [name for name in SHEETS if name in loaded]
    assert page.evaluate(UNDRESSED, sheets) == []


def _shape(app: FastAPI, address: str) -> str | None:
    """Return the route of a page, so that only one of each kind is checked; None if it is not a page."""
    path = urlsplit(address).path
    if path.startswith(("/api/", "/static")) or path.endswith(FILES) or path == "/openapi.json":
        return None
    # With these parameters, it counts as another page.
    query = parse_qs(urlsplit(address).query)
    shown = "".join(f"?{name}" for name in ("view", "run", "entry", "grid", "find", "arena") if name in query)
    scope = {"type": "http", "method": "GET", "path": path}
    routes: list[Any] = [route for route in app.routes if hasattr(route, "path")]
    route_path = next((str(route.path) for route in routes if route.matches(scope)[0] is Match.FULL), None)
    return route_path and route_path + shown
