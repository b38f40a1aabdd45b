"""Without the token, no page, JSON route or static file says what is set up, where, or what was spent."""

import asyncio
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from tests.web.made_arena import fill
from tests.web.written_pages import page_text

from fakes.stored_run import StoredRunBuilder
from foretell.questions.forecast import Failure
from foretell.runs.settings import Settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, trials_of
from foretell.web.security import private_text_filter
from foretell.web.site import links_in, write_site

CANARIES = ("canary-host", "127.0.0.1:18177", "canary-folder", "4321.5", "key set", "OPENAI_API_KEY", "73.52", "73.519")
PRICE_LIST = "/setup"
"""The page with the prices of all models."""
SPENT_ON_A_FORECAST = 73.519
AMOUNT = re.compile(r'\$\d+\.\d|"(?:[a-z_]*dollars|billed|reused|reserved)": ?"?[\d.]')
MODEL = "compat:own@http://canary-host.example:18177/v1"
FOLDER = "/srv/canary-folder/of me"
TREES = Path(__file__).parents[2] / "examples" / "trees"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings with a home and an address that nobody else should see."""
    return Settings(home=tmp_path / "canary-folder" / "home", addresses={"openai": "https://canary-host.example/v1"})


@pytest.fixture
def values(store: RunStore, settings: Settings) -> dict[str, str]:
    """Fill the store with names that contain canaries; return values for the parameters of routes."""

    class Run(StoredRunBuilder):
        @property
        def spec(self) -> RunSpec:
            dataset = QuestionsSpec(dataset=f"{FOLDER[:18]}/questions.jsonl")
            return replace(super().spec, questions=dataset, models={"agent": MODEL}, budget=BudgetSpec(run=4321.5))

    builder = Run(questions=1, trials=1)
    run = builder.keep(store)
    spec = replace(builder.spec, trials=2)
    store.begin(spec.id, spec.to_json(), "2026-01-01T00:00:00+00:00", folder=FOLDER)
    store.keep_questions(spec.id, builder.asked())
    for trial in trials_of(spec.id, builder.asked(), 2):
        error = f"https://canary-host.example/v1/chat: refused; {settings.home}/journal.db; http://127.0.0.1:18177/v1"
        as_of = trial.question.as_of
        store.finish_trial(
            trial.key, Failure(question_id=trial.question.id, forecaster="agent", as_of=as_of, error=error)
        )
    fill(store, dollars=SPENT_ON_A_FORECAST)
    (settings.home / "trees").mkdir(parents=True)
    for path in TREES.glob("*.json"):
        shutil.copy(path, settings.home / "trees")
    return {"run": spec.id, "id": run, "question": "own/0000", "arena": "made", "name": "nvda", "entry": "sharp"}


def test_pages_and_json_routes_hide_addresses_and_paths(app: FastAPI, client: TestClient, values: dict[str, str]):
    routes = [route.path for route in app.routes if isinstance(route, APIRoute) and "GET" in (route.methods or ())]
    parameter = re.compile(r"\{(\w+)(?::\w+)?\}")
    waiting = ["/", *(parameter.sub(lambda part: values.get(part[1], values["run"]), route) for route in routes)]
    seen: set[str] = set()
    while waiting and len(seen) < 300:
        address = waiting.pop(0)
        if address in seen or address.startswith(("/static", "/logout", "/openapi")) or address.endswith("/stream"):
            continue
        seen.add(address)
        answer = client.get(address)
        for canary in CANARIES:
            assert canary not in answer.text, (address, canary)
        amount = AMOUNT.search(answer.text)
        assert amount is None or address.partition("?")[0].partition("#")[0] == PRICE_LIST, (address, amount)
        if answer.headers.get("content-type", "").startswith("text/html"):
            waiting += links_in(answer.text)
    assert {"/runs", "/api/runs", f"/runs/{values['run']}"} <= seen
    assert "compat:own" in client.get("/api/runs").text
    client.headers["Authorization"] = "Bearer test-token-0123456789-canary"
    known = client.get("/api/runs").text
    assert "canary-host" in known
    assert "4321.5" in known
    assert "$0.0" in client.get(f"/api/runs/{values['id']}/report.md").text


def test_static_pages_hide_addresses_and_paths(tmp_path: Path, settings: Settings, values: dict[str, str]):
    asyncio.run(write_site(tmp_path / "site", settings))
    files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        for canary in CANARIES:
            assert canary not in page_text(path), (path, canary)
    assert values


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a:b@https://x.example:1/v1, c", "a:b, c"),
        ("m=a%3Ab%40http%3A%2F%2Fx%2Fv1&c", "m=a%3Ab&c"),
        ("http://192.168.1.4:80/v1 http://172.20.0.1/", "(own server) (own server)"),
        ("https://own.example/v1/chat failed", "(own server) failed"),
        ("HTTP://LOCALHOST:80/v1 Https://OWN.example/v1/chat", "(own server) (own server)"),
        ("a@HTTPS://x.example/v1 file=%2Fhome%2Fme%2Fa.csv", "a file=a.csv"),
        ('{"budget": {"run": 4.5}, \\"total_dollars\\": "1.5"}', '{"budget": null, \\"total_dollars\\": null}'),
        ('{"budget": "none", "currency": 4.5} HTTP', None),
        ('"/home/me/a.csv" (local:/tmp/m.gguf) file:///var/x/', '"a.csv" (local:m.gguf) file://x'),
        ("https://site.example/home/x /runs/3f https://home/x a/tmp/b", None),
    ],
)
def test_what_is_hidden_in_a_text(text: str, shown: str | None):
    hide = private_text_filter(["https://own.example/v1/"], ["runs"])
    assert hide(text.encode()).decode() == (text if shown is None else shown)


def test_a_stranger_is_offered_nothing_that_needs_the_token(client: TestClient, values: dict[str, str], token: str):
    pages = {
        "/": ("Cost</th>", "To do"),
        "/runs": ("Cost</th>", "billed for", "tag or delete"),
        f"/runs/{values['id']}": ("<dt>Billed",),
        "/arena/made": ("mean cost of a forecast", "Accuracy and cost", 'value="cost"'),
        "/arena/made/entry/sharp": ("<dt>Cost", "a forecast,"),
        "/setup": ("Billed here", "times here"),
    }
    for address, withheld in pages.items():
        page = client.get(address).text
        assert not [text for text in withheld if text in page]
    ways = ("/runs?sort=cost", "/api/runs?sort=cost", "/arena/made?view=cost", "/setup?usable=true")
    assert [client.get(way).status_code for way in ways] == [401, 401, 404, 401]
    client.get("/login", params={"token": token})
    assert "billed for" in client.get("/runs").text
    assert client.get("/runs?sort=cost").status_code == 200
    board = client.get("/arena/made").text
    assert "Accuracy and cost" in board
    assert "$73.52" in board
    assert "<dt>Cost" in client.get("/arena/made/entry/sharp").text
