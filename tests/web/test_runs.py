import html
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.operations.requests import ListingFields
from foretell.runs.runner import prepare_run
from foretell.runs.settings import Settings
from foretell.runs.spec import spec_from_mapping
from foretell.runs.store import RunStore, cells_of
from foretell.web.app import create_app
from foretell.web.pages.runs import PickedSet


def test_runs_are_listed_with_how_far_they_are(client: TestClient, store: RunStore) -> None:
    made = StoredRunBuilder(questions=2, trials=2, failing=1)
    run = made.keep(store)
    (line,) = client.get("/api/runs").json()["runs"]
    assert (line["id"], line["cells"], line["done"], line["failed"]) == (run, 4, 3, 1)
    told = client.get("/runs").text
    assert run in told
    assert "1 failed" in told


def test_a_run_shows_progress_cost_failures_and_questions(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=3, trials=2, failing=2).keep(store)
    view = client.get(f"/api/runs/{run}").json()
    assert view["finished"]
    assert view["spending"] == {
        "calls": 18,
        "input_tokens": 7200,
        "output_tokens": 1800,
        "dollars": pytest.approx(0.054),
    }
    (reason,) = view["failures"]
    assert (reason["count"], reason["reason"]) == (2, "ModelError: the provider is overloaded")
    assert view["endings"] == {"submitted": 4}
    assert view["questions"][2]["cells"][1]["p"] == {"yes": pytest.approx(0.24)}
    told = client.get(f"/runs/{run}").text
    assert "4 forecasts, 2 failures" in told
    assert "the provider is overloaded" in told


def test_an_unfinished_run_tells_what_is_open(client: TestClient, store: RunStore) -> None:
    made = StoredRunBuilder(questions=2, trials=2)
    run = made.begin(store)
    first, second, *_ = cells_of(run, made.asked(), made.trials)
    made.tell(store, first.key)
    store.add_events((second.key, event) for event in list(made.events(0))[:2])
    view = client.get(f"/api/runs/{run}").json()
    assert not view["finished"]
    assert (view["run"]["done"], view["under_way"]) == (1, 1)
    told = client.get(f"/runs/{run}").text
    assert "1 of 4 cells done, 1 under way" in told
    assert "Not finished" in told


def test_spend_is_counted_once_while_it_grows(client: TestClient, store: RunStore) -> None:
    made = StoredRunBuilder(questions=1, trials=2)
    run = made.begin(store)
    first, second = cells_of(run, made.asked(), made.trials)
    made.tell(store, first.key)
    assert client.get(f"/api/runs/{run}").json()["spending"]["calls"] == 3
    made.tell(store, second.key)
    assert client.get(f"/api/runs/{run}").json()["spending"]["calls"] == 6
    assert client.get(f"/api/runs/{run}").json()["spending"]["calls"] == 6


def test_many_questions_come_in_parts(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=130, trials=1, steps=1).keep(store)
    first, rest = client.get(f"/api/runs/{run}").json(), client.get(f"/api/runs/{run}?offset=100").json()
    assert (len(first["questions"]), len(rest["questions"])) == (100, 30)
    assert rest["questions"][0]["id"] == "own/0100"
    assert rest["questions"][0]["cells"][0]["p"]
    assert "101 to 130 of 130" in client.get(f"/runs/{run}?offset=100").text


def test_the_beginning_of_an_id_is_enough(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    assert client.get(f"/api/runs/{run[:6]}").json()["run"]["id"] == run
    assert client.get(f"/api/runs/{run[:2]}").status_code == 404


def test_only_what_goes_on_here_can_be_stopped(client: TestClient, store: RunStore, token: str) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    told = client.post(f"/api/runs/{run}/stop", headers={"Authorization": f"Bearer {token}"})
    assert told.status_code == 409


def test_in_a_browser(page: Any, site: Any, store: RunStore) -> None:
    run = StoredRunBuilder(questions=3, trials=3, failing=1).keep(store)
    page.goto(f"{site.url}/runs")
    page.get_by_role("link", name=run).click()
    page.get_by_text("Finished: 8 forecasts, 1 failure.").wait_for()
    page.get_by_role("link", name="number 2").click()
    page.get_by_role("heading", name="Will the harbour bridge number 2 be approved?").wait_for()


def test_pages_over_a_shared_database(postgres: str, tmp_path: Path, token: str) -> None:
    store = RunStore(postgres)
    run = StoredRunBuilder(questions=2, trials=2, failing=1).keep(store)
    store.close()
    app = create_app(Settings(home=tmp_path, database=postgres), token=token)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        view = client.get(f"/api/runs/{run}").json()
        assert (view["run"]["done"], view["run"]["failed"], view["spending"]["calls"]) == (3, 1, 12)
        assert "3 forecasts, 1 failure" in client.get(f"/runs/{run}").text
        assert client.get(f"/runs/{run}/questions/own%2F0001").status_code == 200
        assert client.get(f"/api/runs/{run}/stream").text.count("event: told") == 52
        assert postgres not in client.get("/").text


def test_a_set_is_picked_looked_at_and_run(
    client: TestClient, store: RunStore, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    rows = ["id,text,due,by,category", *(f"q{n},Will {n}?,2026-01-05,2026-01-2{n},{'ab'[n % 2]}" for n in range(4))]
    (tmp_path / "mine.csv").write_text("\n".join(rows), encoding="utf-8")
    client.get("/login", params={"token": token})
    shown = client.get("/runs").text
    csrf = shown.partition('name="csrf" value="')[2].partition('"')[0]
    for name in ("mine.csv", "demo", "forecastbench", "kalshi:", "metaculus:", "prophet_arena:"):
        assert f'<option value="{name}">' in shown
    # The options are those of the command.
    for name in ListingFields.model_fields:
        assert f'name="{name}"' in shown

    picked = {"dataset": "mine.csv", "category": "B", "limit": "1", "csrf": csrf}
    looked = client.post("/runs", data={**picked, "look": "yes"})
    assert looked.status_code == 200
    assert "Will 1?" in looked.text
    assert "Will 3?" not in looked.text
    assert 'value="mine.csv"' in looked.text, "what was picked stays picked"
    assert store.runs() == []
    begun = client.post("/runs", data={**picked, "spec": "forecaster: always"})
    assert begun.status_code == 303
    spec = {"questions": {"dataset": "mine.csv", "category": "B", "limit": 1}, "forecaster": "always"}
    assert [row.id for row in store.runs()] == [prepare_run(spec_from_mapping(spec)).spec.id], "as the command says it"

    wrong = {
        "questions are picked above": {**picked, "spec": "questions: demo"},
        "a part of which set?": {"csrf": csrf, "limit": "3", "spec": "forecaster: always"},
        "is neither a file nor one of": {**picked, "dataset": "gone.csv", "spec": "forecaster: always"},
        "greater than or equal to 1": {**picked, "limit": "0", "look": "yes"},
        "write NAME: VALUE": {**picked, "spec": "- always"},
    }
    for words, sent in wrong.items():
        told = client.post("/runs", data=sent)
        assert told.status_code == 422
        assert words in html.unescape(told.text)
    listed = PickedSet.read({"dataset": "kalshi:KXFED", "minimum_volume": 50}).spec({"forecaster": "crowd"})
    questions = {"dataset": "kalshi:KXFED", "minimum_volume": 50}
    assert listed == {"mode": "live", "forecaster": "crowd", "questions": questions}
