"""What a bot sent, with its comments, is one click away; made-up questions link to the practice site."""

import asyncio
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fakes.samples import SampleMetaculusQuestion, metaculus_post_body
from fakes.stored_run import StoredRunBuilder
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox, PracticeMetaculus
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.tournaments.ledger import LEDGER_FILE, LedgerDraft, SubmissionLedger
from foretell.tournaments.state import TournamentState
from foretell.web.app import create_app

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
COMMENT = "**33 %**, because the <i>council</i> has no majority."
QUESTION = "metaculus/9001"


def send(home: Path) -> None:
    """Write a ledger with a forecast, its comment, and the receipt of the forecast alone."""

    def draft(kind: Any, part: str, **content: Any) -> LedgerDraft:
        return LedgerDraft(
            kind=kind, platform="metaculus", account="bot", question=QUESTION, part=part, content=content
        )

    forecast = draft("intention", "forecast", question=9101, probability_yes=0.3286)
    comment = draft("intention", "comment", on_post=9001, text=COMMENT, is_private=True)
    receipt = draft("receipt", "forecast", intention=1, how="answered")
    SubmissionLedger(home / LEDGER_FILE).append([forecast, comment, receipt], NOW)
    state = home / "tournaments" / "metaculus-minibench" / "state.json"
    state.parent.mkdir(parents=True)
    visit = {"at": NOW.isoformat(), "run": "", "billed": 0.0, "rows": [{"question": QUESTION, "text": "Is it signed?"}]}
    TournamentState(path=state, visits=[visit]).save()


@pytest.mark.parametrize("practice", [False, True])
def test_what_was_sent_is_on_the_home_page(client: TestClient, token: str, settings: Settings, practice: bool):
    send(settings.practice_home if practice else settings.home)
    stranger = client.get("/").text
    assert "Is it signed?" not in stranger
    assert "council" not in stranger
    client.get("/login", params={"token": token})
    page = client.get("/").text
    section = page[page.index("Sent in practice" if practice else "Sent to tournaments") :]
    for text in ("Is it signed?", "33 %", "<strong>33 %</strong>", "&lt;i&gt;council", "comment: no receipt"):
        assert text in section, text
    assert "forecast: no receipt" not in section


def test_the_parts_of_a_group_are_shown_as_the_question_that_was_asked(
    client: TestClient, token: str, settings: Settings
):
    send(settings.home)

    def draft(of: str, part: str, **content: Any) -> LedgerDraft:
        return LedgerDraft(
            kind="intention", platform="metaculus", account="bot", question=of, part=part, content=content
        )

    group = "metaculus/9011"
    each = [draft(f"{group}#{id}", "forecast", question=id, probability_yes=p) for id, p in ((9111, 0.4), (9112, 0.47))]
    SubmissionLedger(settings.home / LEDGER_FILE).append([*each, draft(group, "comment", text="Snow is likely.")], NOW)
    state = settings.home / "tournaments" / "metaculus-other" / "state.json"
    state.parent.mkdir(parents=True)
    row = {"question": group, "text": "Which passes close?", "answer": "Bo Pass 47 %, Ada Pass 40 %", "sent": True}
    TournamentState(path=state, visits=[{"at": NOW.isoformat(), "run": "", "billed": 0.0, "rows": [row]}]).save()
    client.get("/login", params={"token": token})
    page = client.get("/").text
    assert "Which passes close?</strong> Bo Pass 47 %, Ada Pass 40 %" in page
    assert f'<strong dir="auto">{group}#' not in page
    assert "Snow is likely." in page


def test_a_click_opens_the_comment(page: Any, site: Any, settings: Settings):
    from playwright.sync_api import expect

    send(settings.practice_home)
    page.goto(site.login)
    expect(page.get_by_text("has no majority")).to_be_hidden()
    page.get_by_text("Is it signed?").click()
    expect(page.get_by_text("has no majority")).to_be_visible()


def test_a_number_that_was_sent_is_in_words_not_as_a_list(settings: Settings, client: TestClient, token: str):
    content = {"question": 9103, "continuous_cdf": [0.0, 0.25, 1.0]}
    draft = LedgerDraft(
        kind="intention", platform="metaculus", account="bot", question=QUESTION, part="forecast", content=content
    )
    SubmissionLedger(settings.home / LEDGER_FILE).append([draft], NOW)
    state = settings.home / "tournaments" / "metaculus-minibench" / "state.json"
    state.parent.mkdir(parents=True)
    row = {"question": QUESTION, "text": "How much snow falls?", "answer": "5.4 cm (8 in 10: 3 to 7 cm)", "sent": True}
    TournamentState(path=state, visits=[{"at": NOW.isoformat(), "run": "", "billed": 0.0, "rows": [row]}]).save()
    shown = client.get("/", headers={"Authorization": f"Bearer {token}"}).text
    assert "5.4 cm (8 in 10: 3 to 7 cm)" in shown
    assert "continuous_cdf" not in shown


def test_made_up_questions_link_to_the_practice_site(settings: Settings, store: RunStore):
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.keep(store)
    real, made_up = "https://www.metaculus.com/questions/9001/", "http://127.0.0.1:8123/questions/9001/"
    asked = replace(builder.asked()[0], id=QUESTION, url=real)
    store.keep_questions(run, [asked])
    address = f"/runs/{run}/questions/metaculus%2F9001"
    for addresses, link in (({}, real), ({"metaculus": "http://127.0.0.1:8123"}, made_up)):
        app = create_app(replace(settings, addresses=addresses), token="t" * 30)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            client.headers["Authorization"] = f"Bearer {'t' * 30}"
            shown = client.get(address).text
            assert f'href="{link}"' in shown
            assert (real in shown) == (link == real)


def test_the_practice_site_shows_a_question_with_what_was_sent():
    post = metaculus_post_body(9001, "Is it <signed>?", SampleMetaculusQuestion(id=9101, title="Is it?"))
    inbox = MetaculusInbox(now=lambda: NOW)
    inbox.forecasts.append({"question": 9101, "probability_yes": 0.33})
    inbox.comments.append({"on_post": 9001, "text": "Why <b>not</b>.", "is_private": True})
    service = PracticeMetaculus(MetaculusCatalogue([post]), token="secret", inbox=inbox)

    async def look() -> str:
        async with service.server() as server:
            address = f"{server.url}/questions/9001/"
            return await asyncio.to_thread(lambda: urllib.request.urlopen(address).read().decode())

    with ThreadPoolExecutor(1) as pool:  # A browser test before this one leaves a loop in this thread.
        page = pool.submit(lambda: asyncio.run(look())).result()
    for text in ("<h1>Is it &lt;signed&gt;?</h1>", "0.33", "Private comment", "Why &lt;b&gt;not&lt;/b&gt;."):
        assert text in page
