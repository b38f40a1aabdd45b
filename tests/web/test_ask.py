import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from fakes.models import BackgroundModels
from fakes.stored_run import StoredRunBuilder
from foretell.data.corpus import Corpus, CorpusDocument
from foretell.questions.as_of import instant
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore, trials_of
from foretell.web.app import create_app
from foretell.web.background_runs import BackgroundRuns

BRAIN = "foretell.practice.models.scripts:agent_script"
KEY = "sk-canary-0123456789-do-not-leak"
TEXT = "Will the harbour bridge be approved?"


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN, latency=0.15) as fake:
        yield fake


@pytest.fixture
def keyed(tmp_path: Path, provider: BackgroundModels) -> Settings:
    """Return the application with a key and a local fake provider."""
    home = tmp_path / "home"
    home.mkdir()
    corpus = Corpus(home / "corpus.db")
    words = "The council discussed the harbour bridge and expects a vote in autumn."
    day = instant("2026-06-01")
    corpus.add(
        [CorpusDocument(url="https://news.example/old", title="Council on the bridge", text=words, published=day)]
    )
    corpus.close()
    return Settings(home=home, keys={"OPENAI_API_KEY": KEY}, addresses={"openai": f"{provider.url}/v1"})


@pytest.fixture
def keyed_app(keyed: Settings, token: str) -> FastAPI:
    return create_app(keyed, token=token)


def test_without_a_key_the_outside_view_answers(client: TestClient, token: str) -> None:
    client.get("/login", params={"token": token})
    answer = client.get("/api/ask", params={"question": TEXT, "closes": "2027-03-01"}).json()
    assert 0 < answer["p"]["yes"] < 1
    text = client.get("/ask", params={"question": TEXT, "closes": "2027-03-01"}).text
    assert "This is the outside view" in text
    assert "let an agent research" in text
    assert "OPENAI_API_KEY" in text


def test_outside_view_of_several_outcomes_and_of_a_price(client: TestClient) -> None:
    several = client.get("/api/ask", params={"question": "Who wins?", "options": ["a", "b", "c"]}).json()
    assert sum(several["p"].values()) == pytest.approx(1)
    priced = client.get("/api/ask", params={"question": TEXT, "price": 0.3}).json()
    assert priced["p"] == {"yes": pytest.approx(0.3)}
    text = client.get("/ask", params={"question": "Who wins?", "options": "red\ngreen\nblue"}).text
    assert len(re.findall(r"<strong>\d+ %</strong> (?:red|green|blue)<", text)) == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"question": TEXT, "closes": "soon"}, "not an ISO date"),
        ({"question": TEXT, "closes": "2001-01-01"}, "Answer known by: 2001-01-01 is not after the day of asking"),
        ({"question": TEXT, "as_of": "2199-01-01"}, "2199-01-01 is in the future: “As of” must be a past day"),
        (
            {"question": TEXT, "price": "7"},
            "Market price (62% or 0.62): must be a probability such as 62% or 0.62, not 7",
        ),
        ({"question": TEXT, "options": "a\na"}, "named twice"),
        ({"question": "x" * 6000}, "5000"),
    ],
)
def test_invalid_questions_are_explained_beside_the_form(
    client: TestClient, parameters: dict[str, str], message: str
) -> None:
    answer = client.get("/ask", params=parameters)
    assert answer.status_code == 422
    assert message in answer.text
    assert 'id="ask"' in answer.text


def test_errors_name_form_labels_on_pages_and_request_fields_in_the_api(keyed_app: FastAPI, token: str) -> None:
    wish = {"question": TEXT, "model": "openai:x", "price": "0.5"}
    with TestClient(keyed_app, base_url="http://127.0.0.1") as client:
        client.get("/login", params={"token": token})
        csrf = re.findall(r'name="csrf" value="([^"]+)"', client.get("/ask").text)[0]
        shown = client.post("/ask", data={**wish, "options": "a\nb", "csrf": csrf}).text
        several = {**wish, "options": ["a", "b"]}
        problem = client.post("/api/ask", json=several, headers={"Authorization": f"Bearer {token}"}).json()
        closes = {"question": TEXT, "model": "openai:x", "closes": "2001-01-01"}
        late = client.post("/api/ask", json=closes, headers={"Authorization": f"Bearer {token}"}).json()
    assert "Market price (62% or 0.62): is for a question with the answer yes or no" in shown
    assert "--price" not in shown
    assert (problem["field"], "is for a question with the answer" in problem["detail"]) == ("price", True)
    assert (late["field"], "--closes" in late["detail"]) == ("closes", False)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"model": "nonsense"}, "cannot read the model name"),
        ({"model": "anthropic:x"}, "ANTHROPIC_API_KEY"),
        ({"model": "openai:x", "search": ["yahoo"]}, "no search engine"),
        ({"model": "openai:x", "trials": 0}, "trials"),
        ({"model": "openai:x", "budget": -1}, "budget"),
        ({"model": "openai:x", "surprise": 1}, "surprise"),
    ],
)
def test_invalid_requests_cost_nothing(
    keyed_app: FastAPI, token: str, wish: dict[str, Any], message: str, provider: BackgroundModels
) -> None:
    with TestClient(keyed_app, base_url="http://127.0.0.1") as client:
        answer = client.post("/api/ask", json={"question": TEXT, **wish}, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 422
        assert message in answer.json()["detail"]
        assert client.get("/api/runs").json()["total"] == 0


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("ask", {"question": TEXT}),
        ("trees", {"claim": TEXT}),
        ("runs", {"spec": "questions: demo\nmodels: {agent: 'compat:unheard@http://203.0.113.1/v1'}"}),
    ],
)
def test_form_asks_for_an_unknown_price(
    keyed_app: FastAPI, token: str, page: str, fields: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {} if page == "runs" else {"model": "compat:unheard@http://203.0.113.1/v1"}
    started: list[str] = []
    monkeypatch.setattr(BackgroundRuns, "start", lambda jobs, prepared, **_: started.append(prepared.spec.id))
    monkeypatch.setattr("foretell.web.pages.ask.START_SECONDS", 0.0)
    with TestClient(keyed_app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        client.get("/login", params={"token": token})
        csrf = re.findall(r'name="csrf" value="([^"]+)"', client.get(f"/{page}").text)[0]
        sent = {"csrf": csrf, **model, **fields}
        if page != "runs":
            refused = client.post(f"/{page}", data={**sent, "budget": "1"})
            assert refused.status_code == 422
            assert "needs a known price" in refused.text
        page_again = client.post(f"/{page}", data=sent)
        assert page_again.status_code == 422
        assert "no price is known for compat:unheard@http://203.0.113.1/v1" in page_again.text
        assert 'name="unpriced"' in page_again.text
        assert client.get("/api/runs").json()["total"] == 0
        assert not started
        if page != "runs":
            assert client.post(f"/{page}", data={**sent, "set": "prices.agent=1/2"}).status_code == 303
        if page == "ask":
            assert client.post(f"/{page}", data={**sent, "model_price": "1/2"}).status_code == 303
        assert client.post(f"/{page}", data={**sent, "unpriced": "yes"}).status_code == 303
        assert started


def test_a_question_is_researched_in_the_background(keyed_app: FastAPI, token: str, keyed: Settings) -> None:
    with TestClient(keyed_app, base_url="http://127.0.0.1") as client:
        client.get("/login", params={"token": token})
        model = {"model": "openai:gpt-5-mini", "search": ["local"], "trials": 2}
        wish = {"question": TEXT, "closes": "2027-03-01", **model}
        begun = client.post("/api/ask", json=wish, headers={"Authorization": f"Bearer {token}"})
        assert begun.status_code == 202, begun.text
        run = begun.json()["run"]
        client.get(f"/api/runs/{run}/stream")  # The stream ends with the run.
        view = client.get(f"/api/runs/{run}/questions/{begun.json()['question']}").json()
        assert view["finished"]
        assert view["background"]["state"] == "ended"
        assert [trial["state"] for trial in view["trials"]] == ["answered", "answered"]
        assert view["spending"]["dollars"] > 0
        assert view["trials"][0]["trace"]["searches"]
        assert 0 < view["combination"]["p"]["yes"] < 1
    assert KEY.encode() not in b"".join(path.read_bytes() for path in keyed.home.rglob("*") if path.is_file())


def test_a_proposed_wording_fills_the_form_and_is_remembered(keyed_app: FastAPI, token: str, keyed: Settings) -> None:
    typed = "Will the harbour bridge be approved soon?"
    with TestClient(keyed_app, base_url="http://127.0.0.1") as client:
        client.get("/login", params={"token": token})
        csrf = re.findall(r'name="csrf" value="([^"]+)"', client.get("/ask").text)[0]
        wish = {"question": typed, "model": "openai:gpt-5-mini", "csrf": csrf}
        page = client.post("/ask", data={**wish, "sharpen": "propose"})
        assert (page.status_code, 'id="wording"' in page.text) == (200, True)
        assert client.get("/api/runs").json()["total"] == 0
        year = datetime.now(UTC).year + 1
        wording = f"Will the harbour bridge be approved, on or before 31 December {year}?"
        for part in (wording, f'value="{year}-12-31"', f'name="typed" value="{typed}"', "The source that decides"):
            assert part in page.text
        sent = {**wish, "question": wording, "closes": f"{year}-12-31", "typed": typed}
        begun = client.post("/ask", data=sent, follow_redirects=True)
        assert "cannot be resolved" not in begun.text
        plain = client.post("/ask", data=wish, follow_redirects=True)
        assert "cannot be resolved as it stands" in plain.text
    with closing(RunStore(keyed.store)) as store:
        backgrounds = [question.background for run in store.runs() for question in store.questions(run.id)]
    assert any(typed in background for background in backgrounds)


def test_failed_run_shows_its_error_on_its_page(keyed: Settings, token: str) -> None:
    # A missing corpus is only noticed when the run begins.
    (keyed.home / "corpus.db").unlink()
    with TestClient(create_app(keyed, token=token), base_url="http://127.0.0.1") as client:
        wish = {"question": TEXT, "model": "openai:gpt-5-mini", "search": ["local"]}
        begun = client.post("/api/ask", json=wish, headers={"Authorization": f"Bearer {token}"}).json()
        client.get(f"/api/runs/{begun['run']}/stream")
        text = client.get(f"/runs/{begun['run']}").text
        assert "The run ended with an error" in text
        assert "corpus" in text


def test_paused_run_resumes_without_paying_twice(keyed: Settings, token: str, provider: BackgroundModels) -> None:
    app = create_app(keyed, token=token)
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(app, base_url="http://127.0.0.1") as client:
        provider.reset()
        wish = {"question": TEXT, "model": "openai:searcher-9", "search": ["local"], "trials": 1}
        begun = client.post("/api/ask", json=wish, headers=headers).json()
        run = begun["run"]
        while client.get(f"/api/runs/{run}").json()["spending"]["calls"] < 2:
            time.sleep(0.05)
        again = client.post("/api/runs", json={"run": run}, headers=headers)
        assert again.status_code == 409
        paused = client.post(f"/api/runs/{run}/stop", json={"discard": True}, headers=headers)
        assert paused.json()["state"] == "stopped"
        assert client.get(f"/api/runs/{run}").json()["background"]["state"] == "stopped"
        client.get("/login", params={"token": token})
        asked = client.get(f"/runs/{run}/questions/{begun['question']}").text
        form = asked[asked.index(f'action="/runs/{run}/resume"') :].partition("</form>")[0]
        sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
        continued = client.post(f"/runs/{run}/resume", data=sent, follow_redirects=False)
        assert continued.status_code == 303
        assert continued.headers["location"].startswith(f"/runs/{run}/questions/"), "the page of the button"
        client.get(f"/api/runs/{run}/stream")
        view = client.get(f"/api/runs/{run}").json()
        assert (view["run"]["done"], view["run"]["failed"]) == (1, 0)
        calls = view["spending"]["calls"]
    # One request may have been in flight when the run was stopped.
    assert calls <= provider.stats()["arrived"] <= calls + 1


def test_stopped_question_is_answered_with_current_estimates(
    page: Any, keyed: Settings, token: str, serve: Callable[[FastAPI], Any]
) -> None:
    with BackgroundModels(script=BRAIN, latency=2.0) as slow:
        _stop_early(page, serve(create_app(replace(keyed, addresses={"openai": f"{slow.url}/v1"}), token=token)), token)


def _stop_early(page: Any, site: Any, token: str) -> None:
    page.goto(site.login)
    wish = {"question": TEXT, "model": "openai:searcher-9", "search": ["local"], "trials": 2}
    headers = {"Authorization": f"Bearer {token}"}
    begun = page.request.post(f"{site.url}/api/ask", data=wish, headers=headers).json()
    address = f"{site.url}/api/runs/{begun['run']}/questions/{begun['question']}"
    page.goto(f"{site.url}/runs/{begun['run']}/questions/{begun['question']}")
    expect(page.locator("#now")).to_contain_text("Time")
    expect(page.locator("#answer")).to_contain_text("so far, not final")
    expect(page.locator("#lanes")).to_contain_text("Asking openai:searcher-9 for its estimate and the next step")
    expect(page.locator("#lanes")).to_contain_text(re.compile(r"Step \d of at most \d"))
    page.get_by_role("button", name="Stop and use what there is").click()
    expect(page.locator("#answer")).to_contain_text("Stopped early")
    view = page.request.get(address, max_retries=3).json()
    assert [trial["stopped"] for trial in view["trials"]] == [True, True]
    assert 0 < view["combination"]["p"]["yes"] < 1
    answer = page.request.get(f"{site.url}/api/runs/{begun['run']}/answer", max_retries=3).json()
    assert answer["ending"] == "stopped"
    assert "stopped early" in answer["notes"][0]
    steps = [point["step"] for trial in view["trials"] for point in trial["trace"]["path"]]
    assert max(steps) < 9


def test_estimate_includes_the_ninth_decile_from_twenty_answers_on(
    client: TestClient, store: RunStore, token: str
) -> None:
    client.get("/login", params={"token": token})
    builder = StoredRunBuilder(questions=10, trials=2, steps=1)
    run, (last, *rest) = builder.begin(store), list(trials_of(builder.spec.id, builder.asked(), builder.trials))
    for trial in rest:
        builder.tell(store, trial.key)
    spec = builder.spec
    chosen = {"model": spec.models["agent"], "search": list(spec.search) or "none"}
    chosen["set"] = [f"options.{name}={value}" for name, value in spec.options.items()] + ["forecaster=agent"]

    def basis(trials: int) -> str:
        return client.get("/api/ask/estimate", params={**chosen, "trials": trials}).json()["basis"]

    assert basis(1) == "measured on 19 trials like this one on this machine", run
    builder.tell(store, last.key)
    assert basis(3) == "measured on 20 trials like this one on this machine: 9 in 10 cost under $0.030"


def test_the_estimate_follows_every_choice(client: TestClient, token: str) -> None:
    client.get("/login", params={"token": token})

    def estimate(**chosen: Any) -> dict[str, Any]:
        return client.get("/api/ask/estimate", params={"model": "openai:gpt-5.4", "search": "none", **chosen}).json()

    first = estimate()
    assert first["text"].startswith("About $")
    assert first["basis"].startswith("a rough guess")
    assert estimate(trials=3)["dollars"] == pytest.approx(3 * first["dollars"])
    assert estimate(trials=3)["seconds"] == first["seconds"], "trials run concurrently"
    assert estimate(trials=3, set="concurrency=1")["seconds"] == pytest.approx(3 * first["seconds"])
    assert estimate(set="options.take_apart=never")["dollars"] < first["dollars"]
    assert estimate(set="options.take_apart=always")["dollars"] > first["dollars"]
    agent = estimate(set="forecaster=agent")
    assert estimate(set="options.steps=20")["dollars"] == pytest.approx(2 * agent["dollars"])
    assert estimate(set=["options.variant=zero-shot", "sampling.temperature=0"])["dollars"] < agent["dollars"] / 2
    assert ", at most $0.010," in estimate(trials=5, budget=0.01)["text"]
    unheard = "compat:unheard@http://203.0.113.1/v1"
    assert estimate(model=unheard)["text"].startswith("Price not known")
    assert estimate(model=unheard, set="prices.agent=1/2")["text"].startswith("About $")
    assert estimate(model="local:x.gguf")["text"].startswith("Costs nothing")
    assert "cannot read the model name" in estimate(model="gpt-5")["basis"]


def test_without_a_model_the_free_answer_comes_first(client: TestClient, token: str) -> None:
    client.get("/login", params={"token": token})
    form = client.get("/ask").text
    assert '<output id="estimate">Choose a model</output>' in form
    buttons = re.findall(r'<button[^>]* id="([a-z-]+)"', form[form.index('<p class="actions">') :].partition("</p>")[0])
    assert buttons == ["outside-button", "research", "sharpen-button"]


def test_the_estimate_is_seen_before_the_start(page: Any, keyed_app: FastAPI, serve: Callable[[FastAPI], Any]) -> None:
    site = serve(keyed_app)
    page.goto(site.login)
    page.goto(f"{site.url}/ask")
    page.get_by_label("Question", exact=True).fill("Will it rain on the mayor's parade?")
    page.get_by_label("Name of another model").fill("openai:gpt-5.4")
    expect(page.locator("#estimate")).to_contain_text("About $")
    before = page.locator("#estimate").inner_text()
    page.locator("input[name=trials]").first.focus()
    page.keyboard.press("ArrowRight")  # The button for three trials.
    expect(page.locator("#estimate")).not_to_have_text(before)
    expect(page.locator("#share")).to_be_visible()
    expect(page.locator("#command")).to_contain_text("--trials 3 --budget 1")
    expect(page.locator("#command")).to_contain_text("parade?' --model openai:gpt-5.4")
    page.get_by_label("Another number of trials").fill("7")
    expect(page.locator("input[name=trials]:checked")).to_have_count(0)
    expect(page.locator("#command")).to_contain_text("--trials 7")


def test_asking_in_a_browser(page: Any, keyed_app: FastAPI, serve: Callable[[FastAPI], Any], keyed: Settings) -> None:
    site = serve(keyed_app)
    page.goto(site.login)
    page.get_by_role("link", name="Ask", exact=True).click()
    page.get_by_label("Question", exact=True).fill(TEXT)
    page.get_by_label("Answer known by").fill("2027-03-01")
    page.get_by_label("Name of another model").fill("openai:gpt-5-mini")
    page.get_by_label("Another number of trials").fill("2")
    page.get_by_label("local", exact=True).check()
    page.get_by_role("button", name="Research it").click()
    page.get_by_role("heading", name=TEXT).wait_for()
    assert "/questions/asked%2F" in page.url
    page.locator("#trial-1 .searches li").first.wait_for()
    page.locator("#trial-1 strong").first.wait_for()
    page.locator("#trial-0").get_by_text("Its evidence").click()  # Collapsed, because there are two trials.
    page.locator("#trial-0 .evidence li").first.wait_for()
    page.get_by_role("heading", name="Why").wait_for()
    page.get_by_role("button", name="Stop the run").wait_for(state="detached")
    store = RunStore(keyed.store)
    (row,) = store.runs()
    assert row.spec["budget"]["run"] == 1
    assert row.done == 2
    store.close()


def test_the_outside_view_in_a_browser_needs_no_token(page: Any, site: Any) -> None:
    page.goto(f"{site.url}/ask")
    page.get_by_label("Question", exact=True).fill(TEXT)
    page.get_by_role("button", name="Outside view, free").click()
    page.get_by_text("This is the outside view").wait_for()
    expect(page.locator("#probability")).to_contain_text("%", use_inner_text=True)
    expect(page.get_by_role("button", name="Research it")).to_have_count(0)


def test_addresses_contain_no_secrets(page: Any, site: Any) -> None:
    page.goto(site.login)
    page.goto(f"{site.url}/ask")
    page.get_by_label("Question", exact=True).fill(TEXT)
    page.get_by_role("button", name="Outside view only, free").click()
    page.get_by_text("This is the outside view").wait_for()
    assert "csrf" not in page.url
    assert "token" not in page.url
