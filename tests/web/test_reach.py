"""Accessibility: keyboard, phone, dark theme, reduced motion, and slow connections."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from fakes.stored_run import StoredRunBuilder
from foretell.runs.store import RunStore

WEIGHT = 150_000
"""Maximum size of a page without data, in bytes."""
QUESTION = "questions/own%2F0000"
FOCUS = """() => {
  const e = document.activeElement, s = getComputedStyle(e);
  return { tag: e.localName, text: (e.textContent || e.value || '').trim().slice(0, 40), id: e.id,
           seen: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 };
}"""
CONTROLS = "a[href], button:not([hidden]), input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
COUNT = f"""() => [...document.querySelectorAll("{CONTROLS}")].filter(e => e.checkVisibility()).length"""


@pytest.fixture
def paths(store: RunStore) -> list[str]:
    run = StoredRunBuilder(questions=3, trials=2, failing=1).keep(store)
    several = StoredRunBuilder(questions=1, trials=3, options=("red", "green", "blue")).keep(store)
    return [
        "/",
        "/ask",
        "/runs",
        f"/runs/{run}",
        f"/runs/{run}/{QUESTION}",
        f"/runs/{several}/{QUESTION}",
        "/setup",
        "/login",
    ]


def test_a_phone_scrolls_only_downwards(phone: Any, site: Any, paths: list[str]) -> None:
    phone.goto(site.login)
    for path in paths:
        phone.goto(site.url + path)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 375, path
        assert phone.evaluate("visualViewport.scale") == 1


def test_every_control_is_reached_by_keyboard_with_visible_focus(page: Any, site: Any, paths: list[str]) -> None:
    page.goto(site.login)
    for path in paths:
        page.goto(site.url + path)
        page.keyboard.press("Tab")
        first = page.evaluate(FOCUS)
        assert first["text"] == "Skip to the content"
        assert first["seen"]
        reached = 1
        for _ in range(page.evaluate(COUNT) + 20):
            page.keyboard.press("Tab")
            now = page.evaluate(FOCUS)
            if now["tag"] == "body":
                break
            assert now["seen"], (path, now)
            reached += 1
        # A date field has several tab stops.
        assert reached >= page.evaluate(COUNT), path


def test_the_skip_link_leads_to_the_content(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/ask")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "question"


def test_a_question_is_asked_by_keyboard_alone(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/ask")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Will it snow in Oslo?")
    page.keyboard.press("Tab")
    page.keyboard.type("12242027")
    page.keyboard.press("Enter")
    page.get_by_text("This is the outside view").wait_for()


UNNAMED = """() => [...document.querySelectorAll(
    'input:not([type=hidden]), select, textarea, button, a[href], svg[role=img]')]
  .filter(e => !(e.labels && e.labels.length) && !e.textContent.trim() && !e.getAttribute('aria-label'))
  .map(e => e.outerHTML)"""
REPEATED = """() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  return ids.filter((id, i) => ids.indexOf(id) !== i); }"""
MOVING = """() => [...document.querySelectorAll('*')].filter(e => { const s = getComputedStyle(e);
  return s.transitionDuration !== '0s' || s.animationName !== 'none'; }).length"""
LUMA = """e => { const [r, g, b] = getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);
  return (0.3 * r + 0.6 * g + 0.1 * b) / 255; }"""
CONTRAST = """() => {
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => { const s = v / 255;
    return s <= 0.04 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  return [...document.querySelectorAll('main *, header *')].filter(e => !e.closest('svg') && e.checkVisibility() &&
      [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 80)]; }).filter(([ratio]) => ratio < 4.5);
}"""


def test_every_page_has_headings_labels_and_contrast_without_motion(
    open_page: Callable[..., Any], site: Any, paths: list[str]
) -> None:
    """One heading, a language and labelled controls; no motion if that is preferred; in light and dark."""
    page = open_page(reduced_motion="reduce")
    page.goto(site.login)
    for path in paths:
        page.goto(site.url + path)
        expect(page.locator("h1")).to_have_count(1)
        assert page.evaluate("document.documentElement.lang") == "en"
        assert page.evaluate(UNNAMED) == [], path
        assert page.evaluate(REPEATED) == [], path
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(MOVING) == 0, path
            assert (page.locator("body").evaluate(LUMA) > 0.5) == (scheme == "light")
            assert page.evaluate(CONTRAST) == [], path


def test_chosen_theme_overrides_the_system(open_page: Callable[..., Any], site: Any) -> None:
    page = open_page(color_scheme="light")
    page.goto(site.url)
    button = page.locator("#theme")
    button.click()
    button.click()
    assert button.inner_text() == "Theme: dark"
    assert page.locator("body").evaluate(LUMA) < 0.5
    page.goto(f"{site.url}/ask")
    assert page.locator("body").evaluate(LUMA) < 0.5
    page.locator("#theme").click()
    assert page.locator("body").evaluate(LUMA) > 0.5


def test_pages_work_without_scripts(open_page: Callable[..., Any], site: Any, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    page = open_page(java_script_enabled=False)
    page.goto(f"{site.url}/runs/{run}/{QUESTION}")
    expect(page.locator("#probability")).to_have_text("22 %", use_inner_text=True)
    page.goto(f"{site.url}/ask")
    page.get_by_label("Question", exact=True).fill("Will it snow?")
    page.get_by_role("button", name="Outside view, free").click()
    expect(page.locator("#probability")).to_have_count(1)


def test_page_size_is_limited(open_page: Callable[..., Any], site: Any) -> None:
    """Includes everything a first visit transfers: page, styles, scripts, icon and headers."""
    for path in ("/", "/ask", "/runs", "/setup", "/login"):
        page = open_page()
        sizes: list[int] = []
        page.on("response", lambda answer, sizes=sizes: sizes.append(_size(answer)))
        page.goto(site.url + path, wait_until="networkidle")
        assert 0 < sum(sizes) <= WEIGHT, (path, sum(sizes))


def _size(answer: Any) -> int:
    sizes = answer.request.sizes()
    return sizes["responseBodySize"] + sizes["responseHeadersSize"]
