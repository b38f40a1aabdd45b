import html
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from fakes.stored_run import BEGAN, StoredRunBuilder
from foretell import run as run_spec
from foretell.number_text import percent
from foretell.operations.compare import compare
from foretell.operations.requests.data import ListingFields
from foretell.operations.requests.scoring import CompareRequest
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure
from foretell.questions.resolution import Resolution
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import trial_claim
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.runner import prepare_run
from foretell.runs.settings import Settings
from foretell.runs.spec import spec_from_mapping
from foretell.runs.store import RunStore, trials_of
from foretell.runs.stored_rows import answer_checksum
from foretell.web.app import create_app
from foretell.web.run_form import PickedSet, UsualSettings


def test_runs_are_listed_with_their_progress(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=2, trials=2, failing=1)
    run = builder.keep(store)
    (line,) = client.get("/api/runs").json()["runs"]
    assert (line["id"], line["total"], line["done"], line["failed"]) == (run, 4, 3, 1)
    text = client.get("/runs").text
    assert run[:8] in text
    assert "Partial</span>" in text
    assert "1 of 4 failed" in text


def test_the_list_shows_the_answer_of_a_single_question_as_the_home_page_does(
    client: TestClient, store: RunStore
) -> None:
    single, several = (StoredRunBuilder(questions=count, trials=1).keep(store) for count in (1, 2))
    answer = percent(client.get(f"/api/runs/{single}").json()["questions"][0]["leading"]["p"])
    rows = dict(re.findall(r'<tr id="run-(\w+)".*?<td class="n score">(.*?)</td>', client.get("/runs").text, re.DOTALL))
    assert f"<strong>{answer}</strong>" in rows[single]
    assert rows[several] == "–"
    assert f"<strong>{answer}</strong>" in client.get("/").text


def test_a_run_shows_progress_cost_failures_and_questions(client: TestClient, store: RunStore, token: str) -> None:
    client.get("/login", params={"token": token})  # What was spent needs the token.
    run = StoredRunBuilder(questions=3, trials=2, failing=2).keep(store)
    view = client.get(f"/api/runs/{run}").json()
    assert view["finished"]
    assert view["spending"] == {
        "calls": 18,
        "input_tokens": 7200,
        "output_tokens": 1800,
        "dollars": pytest.approx(0.054),
        "seconds": 0.0,
        "unpriced": 0,
        "reused": 0.0,
        "uncounted": 0,
    }
    (reason,) = view["failures"]
    assert (reason["count"], reason["reason"]) == (2, "ModelError: the provider is overloaded")
    assert view["endings"] == {"submitted": 4}
    assert view["questions"][2]["answers"][1]["p"] == {"yes": pytest.approx(0.24)}
    text = client.get(f"/runs/{run}").text
    assert "4 forecasts, 2 failures" in text
    assert "the provider is overloaded" in text


def test_labels_fill_the_column_of_a_missing_score(client: TestClient, store: RunStore, token: str) -> None:
    client.get("/login", params={"token": token})
    run = StoredRunBuilder(questions=3, trials=1).keep(store)

    def before_the_side() -> bool:
        text = client.get(f"/runs/{run}").text
        assert text.count('id="labels"') == 1
        return text.index('id="labels"') < text.index("<aside")

    assert before_the_side()
    resolve(store, run)
    assert not before_the_side()


def test_unfinished_run_shows_open_trials(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=2, trials=2)
    run = builder.begin(store)
    first, second, *_ = trials_of(run, builder.asked(), builder.trials)
    builder.tell(store, first.key)
    store.add_events((second.key, event) for event in list(builder.events(0))[:2])
    view = client.get(f"/api/runs/{run}").json()
    assert not view["finished"]
    # No process works on it, so started trials are not under way.
    assert (view["run"]["done"], view["under_way"], view["run"]["state"]) == (1, 0, "stopped")
    assert "The run was stopped" in client.get(f"/runs/{run}").text
    claims = ClaimTable(store.database)
    assert claims.take(f"run {run}", "")
    assert claims.take(*trial_claim(second.key))
    assert client.get(f"/api/runs/{run}").json()["under_way"] == 1
    text = client.get(f"/runs/{run}").text
    assert "1 of 4 trials done, 1 under way" in text
    assert "The run was stopped" not in text


def test_spend_is_counted_once_while_it_grows(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=2)
    run = builder.begin(store)
    first, second = trials_of(run, builder.asked(), builder.trials)
    builder.tell(store, first.key)
    assert client.get(f"/api/runs/{run}").json()["spending"]["calls"] == 3
    builder.tell(store, second.key)
    assert client.get(f"/api/runs/{run}").json()["spending"]["calls"] == 6
    assert client.get(f"/api/runs/{run}").json()["spending"]["calls"] == 6


def test_questions_are_paginated(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=80, trials=1, steps=1).keep(store)
    first, rest = client.get(f"/api/runs/{run}").json(), client.get(f"/api/runs/{run}?offset=75").json()
    assert (len(first["questions"]), len(rest["questions"])) == (25, 5)
    assert rest["questions"][0]["id"] == "own/0075"
    assert rest["questions"][0]["answers"][0]["p"]
    page_text = client.get(f"/runs/{run}?sort=answer&offset=50").text
    assert "51 to 75 of 80" in page_text
    next_part = re.search(r'<a href="([^"]+)" rel="next">', page_text)
    assert next_part
    assert "76 to 80 of 80" in client.get(html.unescape(next_part[1])).text


def test_the_beginning_of_an_id_is_enough(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    assert client.get(f"/api/runs/{run[:6]}").json()["run"]["id"] == run
    assert client.get(f"/api/runs/{run[:2]}").status_code == 404


def test_only_running_runs_can_be_stopped(client: TestClient, store: RunStore, token: str) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    post = client.post(f"/api/runs/{run}/stop", headers={"Authorization": f"Bearer {token}"})
    assert post.status_code == 409


def test_run_page_in_a_browser(page: Any, site: Any, store: RunStore) -> None:
    run = StoredRunBuilder(questions=3, trials=3, failing=1).keep(store)
    page.goto(f"{site.url}/runs")
    page.locator(f'a[href="/runs/{run}"]').click()
    page.get_by_text("Finished: 8 forecasts, 1 failure.").wait_for()
    page.get_by_role("link", name="number 2").click()
    page.get_by_role("heading", name="Will the harbour bridge number 2 be approved?").wait_for()


def resolve(store: RunStore, run: str, outcomes: tuple[int, ...] = (0, 1, 0)) -> None:
    """Add outcomes for the questions of a run."""
    questions = store.questions(run)
    resolutions = [
        Resolution(question_id=question.id, target_id=question.targets[0].id, due=question.due, outcome=outcome)
        for question, outcome in zip(questions, outcomes, strict=False)
    ]
    assert RunOutcomes(store).keep(run, questions, resolutions) == len(resolutions)


def test_run_page_shows_its_score(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=3, trials=2).keep(store)
    assert client.get(f"/api/runs/{run}").json()["score"]["brier_index"] is None
    assert "No question has resolved yet" in client.get(f"/runs/{run}").text
    resolve(store, run)
    view = client.get(f"/api/runs/{run}").json()
    lines = view["questions"]
    assert view["score"]["decided"] == 3
    assert [line["brier"] for line in lines] == [
        pytest.approx((line["leading"]["p"] - line["leading"]["outcome"]) ** 2) for line in lines
    ]
    # The list, the page and the command show one number.
    (listed,) = client.get("/api/runs").json()["runs"]
    assert listed["score"] == view["score"]
    worst, *_ = client.get(f"/api/runs/{run}", params={"sort": "score"}).json()["questions"]
    assert worst["brier"] == max(line["brier"] for line in lines)
    (yes,) = client.get(f"/api/runs/{run}", params={"outcome": "yes"}).json()["questions"]
    assert yes["leading"]["outcome"] == 1
    assert client.get(f"/api/runs/{run}", params={"flag": "odd"}).status_code == 422
    text = client.get(f"/runs/{run}").text
    assert "Does 70 % happen 70 % of the time?" in text
    assert view["headline"] in text
    beside = view["score"]["against_base_rate"]
    assert beside["shown"] == pytest.approx(round(beside["own"], 1) - round(beside["other"], 1))
    table = client.get(f"/api/runs/{run}/answers.csv").text.splitlines()
    assert len(table) == 4
    assert table[0].startswith("question,due,text,target,p")
    question = client.get(f"/api/runs/{run}/questions/own%2F0001").json()["question"]
    assert question["targets"][0]["outcome"] == 1
    assert "Brier score" in client.get(f"/runs/{run}/questions/own%2F0001").text


def test_selected_runs_are_compared_on_one_board(client: TestClient, store: RunStore) -> None:
    runs = [StoredRunBuilder(questions=3, trials=trials).keep(store) for trials in (1, 2, 3)]
    for run in runs:
        resolve(store, run)
    board = client.get("/api/compare", params={"run": runs}).json()
    assert len({score["forecaster"] for score in board["scores"]} - {"always 0.5", "base rate", "market price"}) == 3
    assert "3 runs on one board" in client.get("/compare", params={"run": runs}).text
    assert f'value="{runs[0]}" checked' in client.get("/compare", params={"run": runs[:1]}).text
    assert client.get("/compare", params={"run": ["nobody", runs[0]]}).status_code == 404


def test_two_runs_are_compared_as_the_command_does(client: TestClient, store: RunStore, settings: Settings) -> None:
    runs = [StoredRunBuilder(questions=3, trials=trials).keep(store) for trials in (1, 2)]
    for run in runs:
        resolve(store, run)
    page = client.get("/api/compare", params={"run": runs}).json()
    command = plain_data(compare(CompareRequest(names=tuple(runs), by=("source",)), settings).to_dict())
    assert page.keys() == command.keys()
    assert page["schema"] == "foretell/compare/1"
    for part in ("first_score", "second_score", "diff", "says", "sentence"):
        assert page["verdicts"][0][part] == command["verdicts"][0][part]
    assert page["sentence"] == page["verdicts"][0]["sentence"]
    assert page["sentence"] in client.get("/compare", params={"run": runs}).text


def test_runs_without_common_questions_are_not_compared(client: TestClient, store: RunStore) -> None:
    first = StoredRunBuilder(questions=3, trials=1).keep(store)
    second = StoredRunBuilder(questions=3, trials=2, options=("red", "green")).keep(store)
    third = StoredRunBuilder(questions=3, trials=3).keep(store)
    for run in (first, second, third):
        resolve(store, run)
    pair = {"run": [first, second]}
    assert "have no target with an outcome in common" in str(client.get("/api/compare", params=pair).json())
    answer = client.get("/compare", params=pair)
    assert answer.status_code == 200
    assert "have no target with an outcome in common" in answer.text
    assert "<table" not in answer.text
    assert f'<a href="/compare?run={first}&amp;run={third}">' in answer.text, "what can be compared is offered"
    assert "(3 questions)" in answer.text
    answer = client.get("/compare", params={"run": [first, second, third]}).text
    assert "has no resolved question in common with 3 questions of" in answer
    assert "in common" not in client.get("/compare", params={"run": [first, third]}).text


def test_a_run_shows_what_is_left_of_its_budget(client: TestClient, store: RunStore, token: str) -> None:
    client.get("/login", params={"token": token})  # What was spent needs the token.
    builder = StoredRunBuilder(questions=2, trials=2)
    run = builder.begin(store)
    first, *_ = trials_of(run, builder.asked(), builder.trials)
    builder.tell(store, first.key)
    view = client.get(f"/api/runs/{run}").json()
    spent = view["spending"]["dollars"]
    assert spent > 0
    text = client.get(f"/runs/{run}").text
    card = text[text.index('id="budget"') :]
    amounts = [float(amount) for amount in re.findall(r"<dd>\$([\d.]+)</dd>", card)[:5]]
    assert amounts == [pytest.approx(amount, rel=0.1, abs=1e-9) for amount in (spent, 0.0, 0.0, 0.0, 5.0 - spent)]
    (at_the_end,) = re.findall(r"about \$([\d.]+) at the end", card)
    assert float(at_the_end) == pytest.approx(4 * spent, abs=0.005)
    series = StoredRunBuilder(questions=1)
    store.begin("0123456789ab", json.dumps({**json.loads(series.spec.to_json()), "models": {}, "budget": {}}), BEGAN)
    assert 'id="budget"' not in client.get("/runs/0123456789ab").text, "nothing can be spent"


def test_a_run_is_named_archived_and_removed_in_the_page(client: TestClient, store: RunStore, token: str) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    client.get("/login", params={"token": token})
    csrf = client.get(f"/runs/{run}").text.partition('name="csrf" value="')[2].partition('"')[0]
    values = {"csrf": csrf, "name": "autumn", "tags": "cheap, <b>bold", "note": "a note"}
    client.post(f"/runs/{run}/labels", data=values)
    text = client.get("/runs/autumn").text
    assert "&lt;b&gt;bold" in text
    assert client.post(f"/runs/{run}/labels", data={**values, "note": "a\x1b[31mnote"}).status_code == 422
    assert [run["name"] for run in client.get("/api/runs", params={"tag": "cheap"}).json()["runs"]] == ["autumn"]
    client.post(f"/runs/{run}/labels", data={**values, "tags": "", "archived": "yes"})
    listed = client.get("/api/runs").json()
    assert (listed["runs"], listed["archived"]) == ([], 1)
    assert client.get("/api/runs", params={"archived": True}).json()["runs"][0]["tags"] == []
    assert client.post(f"/runs/{run}/remove", data={"csrf": "forged"}).status_code == 403
    client.post(f"/runs/{run}/remove", data={"csrf": csrf})
    assert client.get("/api/runs", params={"archived": True}).json()["total"] == 0


def test_selected_runs_are_tagged_archived_and_deleted(client: TestClient, store: RunStore, token: str) -> None:
    runs = [StoredRunBuilder(questions=1, trials=trials).keep(store) for trials in (1, 2, 3)]
    assert client.post("/runs/selected/delete", data={"run": runs}).status_code == 401
    client.get("/login", params={"token": token})
    csrf = client.get("/runs").text.partition('name="csrf" value="')[2].partition('"')[0]

    def send(what: str, *chosen: str, **more: str) -> int:
        return client.post(f"/runs/selected/{what}", data={"csrf": csrf, "run": list(chosen), **more}).status_code

    assert send("tag", *runs[:2], tags="cheap, quick") == 303
    tagged = client.get("/api/runs", params={"tag": "quick"}).json()["runs"]
    assert {run["id"] for run in tagged} == set(runs[:2])
    assert send("archive", runs[0]) == 303
    assert {run["id"] for run in client.get("/api/runs").json()["runs"]} == set(runs[1:])
    assert send("delete", runs[1], "nobody") == 404  # Then none of them is changed.
    assert send("delete", *runs[:2]) == 303
    assert [run["id"] for run in client.get("/api/runs", params={"archived": True}).json()["runs"]] == [runs[2]]
    assert send("burn", runs[2]) == 422
    deleted = client.get("/api/runs", params={"state": "deleted"}).json()["runs"]
    assert {run["id"] for run in deleted} == set(runs[:2])
    assert client.get(f"/runs/{runs[1]}").status_code == 404
    assert send("restore", runs[1]) == 303
    assert {run["id"] for run in client.get("/api/runs").json()["runs"]} == set(runs[1:])


def test_all_of_two_thousand_runs_are_offered_for_a_comparison(site: Any, store: RunStore, page: Any) -> None:
    built = [StoredRunBuilder(questions=1, trials=trials).keep(store) for trials in (1, 2)]
    for column in ("run", "cell"):
        (names,) = {
            "run": ("id, spec, created, services, folder, name, note, tags, archived, problem, deleted",),
            "cell": ("run, question, due, trial, forecast, failure, degraded, checksum",),
        }[column]
        id = names.partition(",")[0]
        rest = names.partition(",")[2].replace(" name,", " 'copy ' || n,")
        store.database.write(
            "with recursive many(n) as (select 1 union all select n + 1 from many where n < 2000) "
            f"insert into {column} ({names}) select printf('%012x', n),{rest} from {column}, many where {id} = ?",
            (built[0],),
        )
    page.goto(site.login)
    page.goto(f"{site.url}/compare")
    assert page.locator("#ticks input").count() == 30
    page.locator("#ticks input").nth(2).check()
    page.get_by_role("searchbox", name="Search all 2002 runs").fill("copy 77")
    expect(page.locator("#ticks [role=status]")).to_contain_text("11 of 2,002 runs")
    assert page.locator("#ticks input:checked").count() == 1, "what is ticked stays"
    page.get_by_label("copy 777").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#ticks input:checked")).to_have_count(2)
    page.goto(f"{site.url}/runs")
    expect(page.locator("nav.pager")).to_contain_text("of 2,002")
    page.get_by_role("link", name="Later").click()
    expect(page.locator("table.runs tbody tr").first).to_be_visible()


def test_a_deleted_run_comes_back_with_one_click(site: Any, store: RunStore, page: Any) -> None:
    first, second = (StoredRunBuilder(questions=1, trials=trials).keep(store) for trials in (1, 2))
    page.goto(site.login)
    page.goto(f"{site.url}/runs/{first}")
    page.get_by_role("button", name="Delete this run").click()
    expect(page.locator(f"#run-{first}")).to_have_count(0)
    expect(page.locator(f"#run-{second}")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(f"#run-{first}")).to_be_visible()
    expect(page.locator("#undo")).to_have_count(0)


def test_runs_are_filtered_by_model_and_question_set_in_the_address(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    body = json.loads(StoredRunBuilder(questions=1).spec.to_json())
    other = {**body, "models": {}, "forecaster": "knn", "questions": {**body["questions"], "dataset": "/a/spring.csv"}}
    store.begin("0123456789ab", json.dumps(other), BEGAN)
    page_text = client.get("/runs").text
    assert '<option value="openai:made-up">' in page_text
    assert '<option value="knn">' in page_text
    assert '<option value="spring.csv">' in page_text, "without the folder"
    for address in ("model=knn", "questions=spring.csv", "model=knn&questions=spring.csv"):
        assert [row["id"] for row in client.get(f"/api/runs?{address}").json()["runs"]] == ["0123456789ab"]
    filtered = client.get("/runs?model=openai:made-up").text
    assert '<option value="openai:made-up" selected>' in filtered
    assert f'href="/runs/{run}"' in filtered
    assert 'href="/runs/0123456789ab"' not in filtered
    assert "No run matches" in client.get("/runs?model=knn&questions=nothing").text
    ids = re.findall(r' id="([^"]+)"', client.get("/runs").text)
    assert len(ids) == len(set(ids))


def test_runs_are_sorted_in_the_address(client: TestClient, store: RunStore, token: str) -> None:
    client.get("/login", params={"token": token})  # To sort by cost needs the token.
    cheap, dear = StoredRunBuilder(questions=1).keep(store), StoredRunBuilder(questions=3).keep(store)
    store.label(cheap, name="a")
    store.label(dear, name="b")
    for order, first in (("cost", dear), ("name", cheap)):
        assert client.get(f"/api/runs?sort={order}").json()["runs"][0]["id"] == first
        page_text = client.get(f"/runs?sort={order}").text
        assert f'<option value="{order}" selected>' in page_text
        assert page_text.index(f'href="/runs/{first}"') < page_text.index(
            f'href="/runs/{dear if first == cheap else cheap}"'
        )
    assert client.get("/runs?sort=colour").status_code == 422


def test_row_of_a_running_run_is_updated(page: Any, site: Any, store: RunStore) -> None:
    page.goto(site.login)  # What was spent needs the token.
    builder = StoredRunBuilder(questions=2, trials=2)
    run = builder.begin(store)
    first, *rest = trials_of(run, builder.asked(), builder.trials)
    builder.finish(store, first.key)
    working = "insert into tick (name, due, owner) values (?, ?, ?)"
    store.database.write(working, (f"run {run}", "", store.database.life.id))
    page.goto(f"{site.url}/runs")
    row = page.locator(f"#run-{run}")
    expect(row).to_contain_text("1 of 4")
    expect(row).to_contain_text("of $5")
    row.get_by_role("checkbox").check()
    builder.finish(store, rest[0].key)
    expect(row).to_contain_text("2 of 4 ·")
    expect(row).to_contain_text("left")
    expect(row.get_by_role("checkbox")).to_be_checked()
    for trial in rest[1:]:
        builder.finish(store, trial.key)
    store.database.write("delete from tick where name = ?", (f"run {run}",))
    expect(row).to_contain_text("Done")


def test_answers_are_filtered_by_category(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=2)
    run = builder.spec.id
    store.begin(run, builder.spec.to_json(), BEGAN)
    rain, snow = builder.asked()
    questions = (replace(rain, category="Weather"), replace(snow, category="Ski & snow"))
    store.keep_questions(run, questions)
    for trial in trials_of(run, questions, builder.trials):
        builder.finish(store, trial.key)
    page_text = client.get(f"/runs/{run}").text
    assert '<option value="Ski &amp; snow">' in page_text
    chosen = {"category": "Ski & snow"}
    assert [question["text"] for question in client.get(f"/api/runs/{run}", params=chosen).json()["questions"]] == [
        snow.text
    ]
    assert rain.text not in client.get(f"/runs/{run}", params=chosen).text
    table = client.get(f"/api/runs/{run}/answers.csv", params=chosen).text
    assert snow.text in table
    assert rain.text not in table


def test_a_run_is_run_again_in_two_clicks(
    page: Any, site: Any, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("id,text,due,by\nq,Will it?,2026-01-05,2026-01-20", encoding="utf-8")
    first = run_spec({"questions": "mine.csv", "forecaster": "always"}, settings=settings).run
    page.goto(site.login)
    page.goto(f"{site.url}/runs/{first}")
    page.get_by_text("Run again", exact=True).click()
    expect(page.locator(".menu form")).to_contain_text("It costs nothing.")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Start a new run").click()
    page.wait_for_url(lambda url: "/runs/" in url and not url.endswith(first))
    expect(page.locator("#progress")).to_contain_text("Finished: 1 forecast, 0 failures")
    assert page.request.get(f"{site.url}/api/runs", max_retries=3).json()["total"] == 2


def test_what_failed_for_one_reason_is_retried_alone(
    client: TestClient, store: RunStore, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["id,text,due,by", *(f"q{n},Will {n}?,2026-01-05,2026-01-2{n}" for n in range(4))]
    (tmp_path / "mine.csv").write_text("\n".join(rows), encoding="utf-8")
    prepared = prepare_run(spec_from_mapping({"questions": "mine.csv", "forecaster": "always"}))
    store.begin(prepared.spec.id, prepared.spec.to_json(), BEGAN, folder=tmp_path)
    store.keep_questions(prepared.spec.id, prepared.questions)
    errors = ("timed out\nafter 3.5 s", "timed out\nafter 12 s", "no probability", "no probability")
    for trial, error in zip(prepared.run_trials(), errors, strict=True):
        question = trial.question
        failure = Failure(question_id=question.id, forecaster="always", as_of=question.as_of, trial=0, error=error)
        store.finish_trial(trial.key, failure)
    client.get("/login", params={"token": token})
    page = client.get(f"/runs/{prepared.spec.id}").text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    assert page.count(">Retry 2</button>") == 2
    address = f"/runs/{prepared.spec.id}/resume"
    wrong = client.post(address, data={"csrf": csrf, "only_failed": "another"})
    assert wrong.status_code == 422
    assert "nothing failed for that reason" in wrong.text
    # Browsers use other line ends.
    assert client.post(address, data={"csrf": csrf, "only_failed": errors[0].replace("\n", "\r\n")}).status_code == 303
    while client.get(f"/api/runs/{prepared.spec.id}").json()["background"]["state"] == "running":
        time.sleep(0.02)
    view = client.get(f"/api/runs/{prepared.spec.id}").json()
    assert [(failure["reason"], failure["count"]) for failure in view["failures"]] == [("no probability", 2)]
    assert [question["answers"][0]["p"] is not None for question in view["questions"]] == [True, True, False, False]


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
        assert client.get(f"/api/runs/{run}/stream").text.count("event: progress") == 52
        assert postgres not in client.get("/").text


def test_question_set_is_picked_previewed_and_run(
    client: TestClient, store: RunStore, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    rows = ["id,text,due,by,category", *(f"q{n},Will {n}?,2026-01-05,2026-01-2{n},{'ab'[n % 2]}" for n in range(4))]
    (tmp_path / "mine.csv").write_text("\n".join(rows), encoding="utf-8")
    client.get("/login", params={"token": token})
    page_text = client.get("/runs").text
    csrf = page_text.partition('name="csrf" value="')[2].partition('"')[0]
    for name in ("mine.csv", "demo", "forecastbench", "kalshi:", "metaculus:", "prophet_arena:"):
        assert f'<option value="{name}">' in page_text
    # The options are those of the command.
    for name in ListingFields.model_fields:
        assert f'name="{name}"' in page_text

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
        "no question set is picked": {"csrf": csrf, "limit": "3", "spec": "forecaster: always"},
        "is neither a file nor one of": {**picked, "dataset": "gone.csv", "spec": "forecaster: always"},
        "must be at least 1": {**picked, "limit": "0", "look": "yes"},
        "write NAME: VALUE": {**picked, "spec": "- always"},
    }
    for words, form in wrong.items():
        post = client.post("/runs", data=form)
        assert post.status_code == 422
        assert words in html.unescape(post.text)
    listed = PickedSet.read({"dataset": "kalshi:KXFED", "minimum_volume": 50}).spec({"forecaster": "crowd"})
    questions = {"dataset": "kalshi:KXFED", "minimum_volume": 50}
    assert listed == {"mode": "live", "forecaster": "crowd", "questions": questions}


def test_a_run_is_started_from_a_dropped_file_and_the_form_and_yaml_are_one_spec(
    site: Any, store: RunStore, page: Any, settings: Settings
) -> None:
    page.goto(site.login)
    page.goto(f"{site.url}/runs")
    # What a browser does when a file is dropped from the desktop.
    page.evaluate(
        """() => {
            const data = new DataTransfer(), text = 'id,text,due\\na,Will A?,2026-01-01\\nb,Will B?,2026-01-01\\n';
            data.items.add(new File([text], 'autumn.csv'));
            for (const kind of ['dragover', 'drop'])
                document.querySelector('.drop').dispatchEvent(
                    new DragEvent(kind, { dataTransfer: data, cancelable: true }));
        }"""
    )
    page.get_by_label("Forecaster").fill("always")
    page.get_by_text("As YAML, with all other settings").click()
    page.get_by_label("Spec", exact=True).fill("options: {p: 0.2}\ntrials: 2")
    page.get_by_role("button", name="Fill in the fields").click()
    expect(page.get_by_label("Trials", exact=True)).to_have_value("2")
    expect(page.get_by_label("Question set")).to_have_value(re.compile(r"autumn\.csv$"))
    page.get_by_label("Trials", exact=True).fill("3")
    page.get_by_role("button", name="Write it all as YAML").click()
    expect(page.get_by_label("Spec", exact=True)).to_have_value(re.compile("p: 0.2\ntrials: 3|trials: 3"))
    page.get_by_role("button", name="Fill in the fields").click()
    page.get_by_label("Trials", exact=True).fill("1")
    page.get_by_role("button", name="Start it").click()
    expect(page.locator("h1")).to_have_text("2 questions of autumn · constant")
    (row,) = store.runs()
    assert (row.spec["options"], row.spec["trials"]) == ({"p": 0.2}, 1)
    assert (settings.home / "questions").is_dir()


def test_an_error_in_the_form_names_the_field_and_keeps_what_was_entered(client: TestClient, token: str) -> None:
    client.get("/login", params={"token": token})
    csrf = client.get("/runs").text.partition('name="csrf" value="')[2].partition('"')[0]
    sent = {"csrf": csrf, "text": "Will A?\nWill B?", "forecaster": "constant", "trials": "0"}
    answer = client.post("/runs", data=sent)
    assert answer.status_code == 422
    assert "Trials: must be at least 1" in answer.text.partition('id="problem"')[2]
    assert 'value="constant"' in answer.text
    assert re.search(r'name="dataset" type="text" value="[^"]*typed\.jsonl"', answer.text), "the questions are kept"


@pytest.mark.parametrize("button", [{}, {"look": "1"}])
def test_a_refused_file_is_called_by_its_own_name(
    client: TestClient, token: str, settings: Settings, button: dict[str, str]
) -> None:
    client.get("/login", params={"token": token})
    csrf = client.get("/runs").text.partition('name="csrf" value="')[2].partition('"')[0]
    sent = {"csrf": csrf, "forecaster": "prior", **button}
    table = "text,closes_at\nWill A?,never\n"
    refused = client.post("/runs", data=sent, files={"file": ("autumn.csv", table.encode())})
    typed = client.post("/runs", data={**sent, "text": table})
    for answer, name in ((refused, "autumn.csv"), (typed, "typed.csv")):
        assert answer.status_code == 422
        assert f'id="problem">{name}, row 1, column closes_at' in answer.text
        assert str(settings.home) not in answer.text
        assert 'name="dataset" type="text" value=""' in answer.text, "the next file is not the refused one"
    assert "Will A?,never" in typed.text, "what was typed can be corrected"


def test_fields_and_yaml_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InputError, match=r"models\.agent in the YAML says otherwise"):
        UsualSettings(model="openai:a").spec("models: {agent: 'openai:b'}")
    assert UsualSettings(model="openai:a", budget=2).spec("budget: {question: 1}") == {
        "models": {"agent": "openai:a"},
        "budget": {"run": 2.0, "question": 1},
    }
    assert UsualSettings().spec("") == {"forecaster": "model_free"}


def test_tables_are_uploaded_as_csv_jsonl_and_parquet(client: TestClient, token: str, tmp_path: Path) -> None:
    rows = [
        {"model": f"m{n % 2}", "question": f"q{n // 2}", "p": 0.2 + 0.01 * n, "outcome": n // 2 % 2} for n in range(40)
    ]
    csv = "model,question,p,outcome\r\n" + "".join(",".join(map(str, row.values())) + "\r\n" for row in rows)
    jsonl = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "mine.csv").write_text(csv)
    duckdb.read_csv(str(tmp_path / "mine.csv")).write_parquet(str(tmp_path / "mine.parquet"))
    contents = {
        "mine.parquet": (tmp_path / "mine.parquet").read_bytes(),
        "mine.csv": csv.encode(),
        "mine.jsonl": jsonl.encode(),
    }
    headers, titles = {"Authorization": f"Bearer {token}"}, set[str]()
    for name, content in contents.items():
        page = client.post("/compare", files={"files": (name, content)}, data={"outcomes": ""}, headers=headers)
        assert page.status_code == 200, page.text
        assert "1 table on one board" in page.text
        titles.add("".join(re.findall(r"<td[^>]*>(.*?)</td>", page.text)))
    assert len(titles) == 1
    two = [("files", (name, content)) for name, content in contents.items()]
    assert client.post("/compare", files=two, headers=headers).status_code in (200, 422)
    for broken in (b"PAR1 but not more", b"\x00\xff" * 50):
        refused = client.post("/compare", files={"files": ("odd.bin", broken)}, headers=headers)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.text
        assert "/foretell-" not in refused.text, "the folder of the copy that was read"
    assert client.post("/compare", files={"files": ("mine.csv", csv.encode())}).status_code == 401


def test_a_pasted_table_is_read_like_a_file(client: TestClient, token: str) -> None:
    def post(text: str) -> Any:
        form = {"name": "results.csv", "table": text}
        return client.post("/compare", data=form, headers={"Authorization": f"Bearer {token}"})

    wide = "id;gpt;claude;resolution\n" + "".join(f"q{n};{10 + n} %;{90 - n},5 %;yes\n" for n in range(12))
    page = post("\ufeff" + wide)
    assert page.status_code == 200
    assert "a wide table of 2 forecasters: gpt, claude" in page.text
    broken = post("model,id,prob,resolution\na,q1,abc,0\na,q2,0.5,won\n")
    assert broken.status_code == 422
    assert "results.csv has 2 problems" in broken.text
    assert broken.text.count("<li>row ") == 2


def test_what_failed_is_said_above_the_charts_of_a_run(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=3, trials=1, failing=1).keep(store)
    before = client.get(f"/runs/{run}").text
    assert before.count("1 of 3 trials failed") == 1
    resolve(store, run)
    text = client.get(f"/runs/{run}").text
    score, caveat, chart = (text.index(words) for words in ("Brier index", "1 of 3 trials failed", "Does 70 % happen"))
    assert score < caveat < chart


def test_a_run_of_five_thousand_questions_is_searched_and_followed_on_a_phone(
    site: Any, store: RunStore, phone: Any
) -> None:
    builder = StoredRunBuilder(questions=5_000, trials=1, steps=1)
    run = builder.begin(store)
    first, *_, last = trials_of(run, builder.asked(), 1)
    builder.tell(store, first.key)
    ((*key, forecast, failure, degraded, _),) = store.database.read("select * from cell")
    rows = [
        (run, id, *key[2:], forecast.replace("own/0000", id), failure, degraded)
        for id in (f"own/{number:04}" for number in range(1, 4_999))
    ]
    store.database.write_many(
        "insert into cell values (?, ?, ?, ?, ?, ?, ?, ?)", [(*row, answer_checksum((*row, ""))) for row in rows]
    )
    phone.goto(f"{site.url}/runs/{run}")
    expect(phone.locator("#progress [role=status]")).to_contain_text("4999 of 5,000 trials done")
    expect(phone.locator("nav.pager")).to_contain_text("1 to 25 of 5,000")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 375
    builder.tell(store, last.key)
    expect(phone.locator("#progress [role=status]")).to_contain_text("Finished: 5,000 forecasts, 0 failures.")
    phone.locator("#find").fill("number 4321 ")
    phone.keyboard.press("Enter")
    expect(phone.locator("#questions")).to_contain_text("1 of them shown")
    phone.get_by_role("link", name="Will the harbour bridge number 4321 be approved?").click()
    expect(phone.locator("#probability")).to_contain_text("%")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 375
