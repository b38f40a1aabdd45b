"""Untrusted text is shown and has no effect: in a real browser, on every page that shows it."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from fakes.stored_run import RunWords, StoredRunBuilder
from foretell.runs.store import RunStore

SCRIPT = "<script>window.hit=1</script><img src=x onerror='window.hit=1'><svg onload='window.hit=1'>"
LINKS = "[click](javascript:window.hit=1) <a href='javascript:window.hit=1'>me</a> ![p](https://tracker.example/x.png)"
TURNED = "abc \u202e cba \u2066\u200f hidden\u200b \x00\x07\x1b[31m"
HUGE = "A" * 30_000 + " " + "B" * 300_000
BROKEN = "[[[[((((```` | | |\n|--\n> > > **__~~` <!-- ]]> </textarea></title></style></script> {{ 7*7 }} {% raw %}"
NASTY = {
    "scripts": f'"></p>{SCRIPT}',
    "links": f"{LINKS} {SCRIPT}",
    "turned": TURNED,
    "huge": HUGE,
    "broken": BROKEN,
}
QUESTION = "questions/own%2F0000"
DEAD = """document.querySelectorAll(
  'main script, main img, main iframe, main [onerror], main [onload], main [style]').length"""
PLACES = "[...document.querySelectorAll('main a')].map(a => a.protocol).filter(p => !['http:', 'https:'].includes(p))"


def hostile_run(nasty: str) -> StoredRunBuilder:
    words = RunWords(
        question=nasty,
        criteria=nasty,
        claim=nasty,
        title=nasty,
        url="javascript:window.hit=1",
        query=nasty,
        result=nasty,
        rationale=nasty,
        error=nasty,
    )
    return StoredRunBuilder(questions=1, trials=2, failing=1, words=words)


@pytest.mark.parametrize("kind", NASTY)
def test_hostile_text_is_shown_and_has_no_effect(kind: str, page: Any, site: Any, store: RunStore) -> None:
    run = hostile_run(NASTY[kind]).keep(store)
    for path in ("/", "/runs", f"/runs/{run}", f"/runs/{run}/{QUESTION}"):
        page.goto(site.url + path)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate("window.hit") is None
        assert page.evaluate(DEAD) == 0
        assert page.evaluate(PLACES) == []
        text = page.evaluate("document.body.textContent + document.title")
        assert not set(text) & set("\u202e\u2066\u200f\u200b\x00\x07\x1b")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert len(page.content()) < 1_500_000


def test_hostile_names_of_outcomes(page: Any, site: Any, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, options=(f"red{SCRIPT}", "green\u202e", "b" * 4000)).keep(store)
    page.goto(f"{site.url}/runs/{run}/{QUESTION}")
    assert page.evaluate("window.hit") is None
    assert page.evaluate(DEAD) == 0
    expect(page.locator("#paths svg:visible")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_form_input_has_no_effect(page: Any, site: Any, watched: Any) -> None:
    page.goto(f"{site.url}/ask")
    page.get_by_label("Question", exact=True).fill(f"</textarea>{SCRIPT}{LINKS}")
    page.get_by_role("button", name="Outside view, free").click()
    page.get_by_text("This is the outside view").wait_for()
    assert page.evaluate("window.hit") is None
    assert page.evaluate(DEAD) == 0
    # Text that an error page repeats is inert, too.
    watched.allowed.append("404")
    page.goto(f"{site.url}/runs/{SCRIPT.replace('/', '%2F')}")
    assert page.evaluate("window.hit") is None
    assert page.evaluate(DEAD) == 0


def test_a_page_that_another_site_opens_is_cut_off_from_it(page: Any, site: Any) -> None:
    page.goto("data:text/html,<p>Another site</p>")
    with page.expect_popup() as opened:
        page.evaluate("url => { window.handle = window.open(url); }", site.url)
    opened.value.get_by_role("heading", level=1).first.wait_for()
    assert opened.value.evaluate("window.opener") is None
    page.wait_for_function("window.handle.closed")  # so it can neither read frames nor navigate the page


@pytest.mark.parametrize("from_site", [None, "none", "same-origin", "same-site", "cross-site", "", "None", "x"])
def test_only_pages_that_no_other_site_opened_keep_their_opener(client: TestClient, from_site: str | None) -> None:
    answer = client.get("/", headers={} if from_site is None else {"sec-fetch-site": from_site})
    policy = answer.headers.get("cross-origin-opener-policy")
    assert policy == (None if from_site in ("none", "same-origin") else "same-origin")


def test_content_security_policy_blocks_injected_markup(page: Any, site: Any, watched: Any) -> None:
    watched.allowed.append("Content Security Policy")
    page.goto(site.url)
    page.evaluate("""
      document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hit=1">');
      const script = document.createElement('script');
      script.textContent = 'window.hit = 1';
      document.body.append(script);
    """)
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    watched.allowed.append("404")


def test_very_long_reasons_are_cut_with_a_link_to_the_whole_text(page: Any, site: Any, store: RunStore) -> None:
    long = "word " * 2_000_000
    run = StoredRunBuilder(questions=1, trials=1, steps=1, words=RunWords(rationale=long)).keep(store)
    page.goto(f"{site.url}/runs/{run}/{QUESTION}")
    assert len(page.content()) < 150_000
    page.get_by_text("Its reasons").click()
    page.locator("#rationale-0").get_by_text("Cut: this is the beginning of").wait_for()
    with page.expect_download() as download:
        page.locator("#rationale-0").get_by_role("link", name="The whole text").click()
    assert download.value.path().stat().st_size > 10_000_000


def test_api_returns_hostile_text_unchanged(client: TestClient, store: RunStore) -> None:
    run = hostile_run(NASTY["scripts"]).keep(store)
    answer = client.get(f"/api/runs/{run}/{QUESTION}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["question"]["text"] == NASTY["scripts"]
