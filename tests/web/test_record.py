"""The record of one's own questions and the history of one, over HTTP and in a real Chromium."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.standing.made_record import MadeQuestion, fill
from tests.web.test_example import COLOURS, CUT, LEGIBLE, PLACES, SERIOUS, THEMES, TORN, WIDTHS
from tests.web.written_pages import page_text

from foretell.questions.question import NumericRange, Question, Target
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.standing.record import Sharpening, StandingBelief, StandingQuestion
from foretell.standing.store import StandingStore
from foretell.web.site import write_site

WAITING, WATCHED, DECIDED, CANCELLED = "made-90", "made-91", "made-37", "made-92"
HOSTILE = '<script>hit()</script><img src=x onerror="hit()">'


@pytest.fixture
def standing(store: RunStore) -> StandingStore:
    return fill(store)


def logged_in(client: TestClient, token: str) -> str:
    """Log in and return the CSRF token of the session."""
    client.get("/login", params={"token": token})
    page = client.get(f"/record/{WAITING}").text
    return page.partition('name="csrf" value="')[2].partition('"')[0]


def test_the_record_is_read_as_json(client: TestClient, standing: StandingStore):
    body = client.get("/api/record").json()
    assert (body["scored"], body["waiting"], body["completion"]) == (40, [WAITING], 1.0)
    assert body["brier_index"]["own forecast"]["estimate"] > body["brier_index"]["always 0.5"]["estimate"] == 50
    assert [verdict["second"] for verdict in body["against"]] == ["market price", "base rate", "first answer"]
    assert body["research"]["found"] + body["research"]["not_found"] == body["research"]["findable"]
    assert len(body["questions"]) == 43
    economy = client.get("/api/record", params={"topic": "economy"}).json()
    assert 0 < economy["scored"] < 40
    assert client.get("/api/record", params={"since": "30"}).json()["scored"] == 0
    assert client.get("/api/record", params={"since": "31"}).status_code == 422
    assert standing.questions()


def test_the_history_is_read_as_json(client: TestClient, standing: StandingStore):
    body = client.get(f"/api/record/{WAITING}").json()
    assert (body["state"], body["waits_for_answer"], body["outcome"]) == ("open", True, None)
    assert [update["number"] for update in body["updates"]] == [1, 2, 3, 4]
    assert len(body["record"]["looks"]) == 10
    decided = client.get(f"/api/record/{DECIDED}").json()
    assert decided["post_mortem"]["fault"] == "not found"
    assert decided["brier"] > 0.25
    assert client.get("/api/record/none").status_code == 404
    assert client.get("/record/none").status_code == 404
    assert standing.questions()


def test_a_stranger_sees_neither_money_nor_settings_nor_buttons(client: TestClient, standing: StandingStore):
    standing.add_notice(WAITING, datetime(2026, 11, 1, tzinfo=UTC), {"to": "https://hooks.example/secret"})
    addresses = ["/record", *(f"/record/{id}" for id in (WAITING, WATCHED, DECIDED, CANCELLED))]
    for address in [*addresses, *(f"/api{address}" for address in addresses)]:
        text = client.get(address).text
        for withheld in ("$0", "0.022", "day_budget", 'openai:made-up"}', "hooks.example", 'name="confirm"', "Budget"):
            assert withheld not in text, (address, withheld)


def test_an_outcome_is_confirmed_with_the_token_only(client: TestClient, standing: StandingStore, token: str):
    for form in ({"confirm": "proposed"}, {"confirm": "proposed", "csrf": "forged"}):
        assert client.post(f"/record/{WAITING}", data=form).status_code in (401, 403)
    csrf = logged_in(client, token)
    assert client.post(f"/record/{WAITING}", data={"confirm": "proposed", "csrf": "forged"}).status_code == 403
    assert standing.find(WAITING).state == "open"
    sent = client.post(f"/record/{WAITING}", data={"confirm": "proposed", "csrf": csrf})
    assert (sent.status_code, sent.headers["location"]) == (303, f"/record/{WAITING}")
    assert standing.find(WAITING).state == "resolved"
    assert client.get("/api/record").json()["scored"] == 41
    assert "Withdraw the outcome" in client.get(f"/record/{WAITING}").text
    client.post(f"/record/{WAITING}", data={"confirm": "not-yet", "csrf": csrf})
    assert standing.find(WAITING).state == "open"
    assert client.get("/api/record").json()["scored"] == 40


def test_the_same_by_json(client: TestClient, standing: StandingStore, token: str):
    client.headers["Authorization"] = f"Bearer {token}"
    body = client.post(f"/api/record/{WAITING}", json={"confirm": "no"}).json()
    assert (body["done"], body["outcome"]) == ("Confirmed: No.", {"yes": 0})
    paused = client.post(f"/api/record/{WATCHED}", json={"state": "paused"}).json()
    assert paused["state"] == "paused"
    assert client.post(f"/api/record/{CANCELLED}", json={"state": "paused"}).status_code in (400, 422)
    assert client.post(f"/api/record/{WATCHED}", json={}).status_code in (400, 422)
    assert client.post(f"/api/record/{WATCHED}", json={"confirm": "perhaps"}).status_code in (400, 422)
    assert standing.find(WATCHED).state == "paused"


def test_a_look_is_asked_for_and_a_question_paused(client: TestClient, standing: StandingStore, token: str):
    csrf = logged_in(client, token)
    before = standing.next_look(WATCHED)
    client.post(f"/record/{WATCHED}", data={"look": "now", "csrf": csrf})
    after = standing.next_look(WATCHED)
    assert before is not None
    assert after is not None
    assert after < datetime.now(UTC) + timedelta(minutes=1) < before
    client.post(f"/record/{WATCHED}", data={"state": "paused", "csrf": csrf})
    assert standing.find(WATCHED).state == "paused"
    refused = client.post(f"/record/{WATCHED}", data={"look": "now", "csrf": csrf})
    assert refused.status_code == 422
    assert "is paused, so it is not looked at" in refused.text
    client.post(f"/record/{WATCHED}", data={"state": "open", "csrf": csrf})
    assert standing.find(WATCHED).state == "open"


def test_a_wrong_answer_is_explained_on_the_page(client: TestClient, standing: StandingStore, token: str):
    csrf = logged_in(client, token)
    refused = client.post(f"/record/{WAITING}", data={"confirm": "perhaps", "csrf": csrf})
    assert refused.status_code == 422
    assert "is no answer to this question" in refused.text
    assert standing.find(WAITING).state == "open"


def test_a_decided_question_says_since_when_it_was_watched_and_how_it_ended(
    client: TestClient, standing: StandingStore
):
    page = client.get(f"/record/{DECIDED}").text
    assert "resolved since" not in page
    assert re.search(r'<span class="tag">watched since [^<]*</span> <span class="tag">resolved</span>', page)
    (ended,) = client.get(f"/api/record/{DECIDED}").json()["outcome"].values()
    outcome = "Yes" if ended else "No"
    assert f'<strong class="{outcome.lower()}">{outcome}</strong>' in page
    assert "0 looks" not in page


def test_a_number_is_confirmed_in_a_field(client: TestClient, store: RunStore, token: str):
    standing = StandingStore(store.database)
    opened = datetime(2026, 7, 1, tzinfo=UTC)
    question = Question(
        id="asked/n", source="asked", text="How many ships?", due=opened, range=NumericRange(minimum=0, maximum=9),
        targets=(Target(id=">3"), Target(id=">5")),
    )  # fmt: skip
    standing.open(StandingQuestion(id=WAITING, question=question, opened_at=opened), opened)
    csrf = logged_in(client, token)
    sent = client.post(f"/record/{WAITING}", data={"value": "4", "csrf": csrf})
    assert sent.status_code == 303
    assert {row.target_id: row.outcome for row in standing.record(WAITING).outcomes} == {">3": 1, ">5": 0}


def test_texts_from_outside_are_shown_as_text(client: TestClient, store: RunStore, token: str):
    standing = StandingStore(store.database)
    made = MadeQuestion(number=1, came=True, path=(0.4, 0.6))
    sharpening = Sharpening(original=f"Will {HOSTILE}?", text=f"Will it {HOSTILE}?", decides=HOSTILE)
    opened = replace(made.standing(), sharpening=sharpening, question=replace(made.standing().question, text=HOSTILE))
    assert standing.open(opened, made.opened)
    for look, belief in made.looks():
        news = tuple(replace(each, text=HOSTILE, url="javascript:hit()") for each in look.news)
        belief = belief and replace(belief, evidence=news, rationale=HOSTILE)
        standing.add_look(made.id, replace(look, news=news, why=HOSTILE), None, belief=belief)
    reading = replace(made.proposal().readings[0], quote=HOSTILE, url="javascript:hit()", why=HOSTILE)
    standing.add_proposal(made.id, replace(made.proposal(), readings=(reading,), why=HOSTILE))
    logged_in(client, token)
    for address in ("/record", f"/record/{made.id}", "/runs?find=hit"):
        text = client.get(address).text
        assert "<script>hit" not in text
        assert "<img src=x" not in text
        assert "javascript:hit" not in text
    assert "hit()" in client.get(f"/record/{made.id}").text


def test_search_finds_own_questions(client: TestClient, standing: StandingStore):
    text = client.get("/runs", params={"find": "night train run again in Halvik before 29"}).text
    assert f'href="/record/{WAITING}"' in text
    assert standing.find(WAITING)


def test_without_questions_the_page_says_how_to_begin(client: TestClient):
    text = client.get("/record").text
    assert "No question is watched yet" in text
    assert "--watch" in text


def test_one_decided_question_has_no_score_yet(client: TestClient, store: RunStore):
    MadeQuestion(number=1, came=True, path=(0.4, 0.6)).keep(StandingStore(store.database))
    assert "a score needs at least two" in client.get("/record").text


def test_the_record_fits_every_width_in_light_and_dark(page: Any, site: Any, standing: StandingStore):
    standing.update(replace(standing.find(WAITING), settings={"watch": {"related": [WATCHED], "budget": 2.0}}))
    last = standing.record(WATCHED).beliefs[-1]
    look = replace(standing.record(WATCHED).looks[-1], number=9, at=last.at + timedelta(days=30))
    agreed = StandingBelief(number=9, look=9, at=look.at, p={"yes": 0.4}, coherent={"yes": 0.45})
    assert standing.add_look(WATCHED, look, None, belief=agreed)
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    problems: list[str] = []
    page.goto(site.login)
    for address in ("/record", *(f"/record/{id}" for id in (WAITING, DECIDED, CANCELLED))):
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.goto(site.url + address)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.evaluate(axe)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                found = page.evaluate(SERIOUS, [] if (width, theme) == (WIDTHS[0], THEMES[0]) else COLOURS)
                found += page.evaluate(LEGIBLE)
                problems += [f"{address} at {width} in {theme}: {problem}" for problem in found]
            problems += [f"{address} at {width}: {problem}" for problem in page.evaluate(SERIOUS, PLACES)]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                problems.append(f"{address} scrolls sideways at {width}")
            if page.evaluate(CUT):
                problems.append(f"{address} cuts a table at {width}")
            problems += [f"{address} at {width}: {problem}" for problem in page.evaluate(TORN)]
    assert not problems, "\n".join(problems)


def test_an_outcome_is_confirmed_by_click(page: Any, site: Any, standing: StandingStore):
    page.goto(site.login)
    page.get_by_role("link", name="Record", exact=True).click()
    expect(page.locator("#finding")).to_contain_text("base rate by")
    page.get_by_role("link", name="1 waits for your answer").click()
    page.locator("#open ~ .scroll").get_by_role("link").first.click()
    expect(page.locator("#proposal")).to_contain_text("Proposed outcome: Yes")
    expect(page.locator("#proposal blockquote").first).to_contain_text("announces ruling number 90")
    expect(page.locator("#proposal")).to_contain_text("mean Brier score")
    page.get_by_role("button", name="Confirm Yes").click()
    expect(page.locator("#outcome")).to_contain_text("Outcome: Yes")
    expect(page.locator("#outcome")).to_contain_text("Brier score")
    assert standing.find(WAITING).state == "resolved"


def test_the_record_on_a_phone(phone: Any, site: Any, standing: StandingStore):
    phone.goto(f"{site.url}/record/{WAITING}")
    expect(phone.locator("h1")).to_contain_text("night train")
    expect(phone.get_by_role("img", name="Forecast and price: forecast 91 %").first).to_be_attached()
    expect(phone.locator(".moves tbody tr")).to_have_count(4)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 375
    assert standing.find(WAITING)


def test_the_static_site_has_the_record(standing: StandingStore, settings: Settings, tmp_path: Path):
    with ThreadPoolExecutor(1) as aside:
        written = aside.submit(lambda: asyncio.run(write_site(tmp_path / "site", settings))).result()
    assert written.broken == ()
    text = page_text(tmp_path / "site" / "record" / f"{WAITING}.html")
    assert "announces ruling number 90" in text
    assert "$0" not in text
    assert 'name="confirm"' not in text
    assert standing.find(WAITING)
