import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from fakes.stored_run import StoredRunBuilder
from foretell.models import WaitingReply, asking_for
from foretell.runs import RunCell, RunStore, cells_of

QUESTION = "questions/own%2F0000"


def messages(text: str) -> list[dict[str, Any]]:
    """What a stream said: id, event and data of each message."""
    found: list[dict[str, Any]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found


def test_a_finished_run_is_told_again_from_its_start(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=2, trials=2).keep(store)
    answer = client.get(f"/api/runs/{run}/stream")
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = messages(answer.text)
    kept = list(store.events(run))
    assert [int(one["id"]) for one in told[:-1]] == [number for number, _, _ in kept]
    assert told[-1]["event"] == "end"
    first = told[0]["data"]
    assert (first["kind"], first["question"], first["trial"]) == ("ModelCalled", "own/0000", 0)
    assert first["event"]["dollars"] == 0.003


def test_a_lost_line_goes_on_after_what_was_heard(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=2).keep(store)
    whole = messages(client.get(f"/api/runs/{run}/stream").text)
    heard = whole[7]["id"]
    rest = messages(client.get(f"/api/runs/{run}/stream", headers={"Last-Event-ID": heard}).text)
    assert rest == whole[8:]
    assert messages(client.get(f"/api/runs/{run}/stream?after={heard}").text) == whole[8:]
    # What the browser heard last counts more than what the page was made with.
    again = client.get(f"/api/runs/{run}/stream?after=1", headers={"Last-Event-ID": heard}).text
    assert messages(again) == whole[8:]


def test_nonsense_in_the_header_is_ignored(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=1).keep(store)
    for told in ("x", "-1", "9" * 40, "1e3"):
        answer = client.get(f"/api/runs/{run}/stream", headers={"Last-Event-ID": told})
        assert len(messages(answer.text)) == 14


def test_numbers_that_are_gone_start_over(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=1).keep(store)
    assert len(messages(client.get(f"/api/runs/{run}/stream?after=1000000").text)) == 14


def test_one_question_alone(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=3, trials=1).keep(store)
    told = messages(client.get(f"/api/runs/{run}/{QUESTION}/stream?brief=true").text)
    assert {one["data"].get("question", "own/0000") for one in told} == {"own/0000"}
    belief = next(one["data"] for one in told if one["data"].get("kind") == "BeliefRevised")
    assert belief["p"] == {"yes": pytest.approx(0.4)}
    assert "event" not in belief


def test_events_can_be_read_without_waiting(client: TestClient, store: RunStore) -> None:
    made = StoredRunBuilder(questions=1, trials=1)
    run = made.begin(store)
    assert client.get(f"/api/runs/{run}/events").json() == []
    (cell,) = cells_of(run, made.asked(), 1)
    made.tell(store, cell.key)
    first = client.get(f"/api/runs/{run}/events?limit=5").json()
    rest = client.get(f"/api/runs/{run}/events", params={"after": first[-1]["id"]}).json()
    assert (len(first), len(rest)) == (5, 8)


@pytest.fixture
def slowly(store: RunStore) -> Iterator[Any]:
    """Tells a cell event by event, as far as it is let."""
    threads: list[threading.Thread] = []

    def tell(made: StoredRunBuilder, cell: RunCell, pause: float = 0.1) -> threading.Thread:
        def work() -> None:
            for event in made.events(cell.trial):
                store.add_events([(cell.key, event)])
                time.sleep(pause)
            made.finish(store, cell.key)

        thread = threading.Thread(target=work)
        thread.start()
        threads.append(thread)
        return thread

    yield tell
    for thread in threads:
        thread.join()


def test_a_run_is_followed_while_it_goes_on(site: Any, store: RunStore, slowly: Any) -> None:
    import httpx2

    made = StoredRunBuilder(questions=1, trials=1)
    run = made.begin(store)
    (cell,) = cells_of(run, made.asked(), 1)
    slowly(made, cell)
    with httpx2.stream("GET", f"{site.url}/api/runs/{run}/stream", timeout=30) as answer:
        told = messages("".join(answer.iter_text()))
    assert [one["data"].get("kind") for one in told[-3:]] == ["BeliefRevised", "ForecastMade", None]
    assert len(told) == 14


def test_a_page_follows_and_a_reload_loses_nothing(page: Any, site: Any, store: RunStore, slowly: Any) -> None:
    made = StoredRunBuilder(questions=1, trials=2)
    run = made.begin(store)
    first, second = cells_of(run, made.asked(), 2)
    page.goto(f"{site.url}/runs/{run}/{QUESTION}")
    page.get_by_text("No answer yet.").wait_for()
    slowly(made, first).join()
    page.locator("#trial-0 .searches li").nth(2).wait_for()
    page.locator("#probability", has_text="20 %").wait_for()
    expect(page.locator("#answer .tag", has_text="so far")).to_have_count(1)
    # Opened details stay open while the rest moves on.
    page.locator("#steps-0 > summary").click()
    page.reload()
    expect(page.locator("#probability")).to_have_text("20 %", use_inner_text=True)
    page.locator("#steps-0 > summary").click()
    slowly(made, second).join()
    page.locator("#probability", has_text="22 %").wait_for()
    assert page.locator("#steps-0").evaluate("e => e.open")
    live = page.locator("main").inner_text()
    page.locator("#steps-0 > summary").click()
    page.reload()
    page.locator("#steps-0 > summary").click()
    assert page.locator("main").inner_text() == live


def test_the_progress_of_a_run_moves(page: Any, site: Any, store: RunStore, slowly: Any) -> None:
    made = StoredRunBuilder(questions=1, trials=2)
    run = made.begin(store)
    page.goto(f"{site.url}/runs/{run}")
    page.get_by_text("0 of 2 cells done").wait_for()
    with asking_for(run, "own/0000"), WaitingReply():
        page.get_by_text("waiting for the model, ").wait_for()
    first, second = cells_of(run, made.asked(), 2)
    slowly(made, first, 0.02).join()
    page.get_by_text("1 of 2 cells done").wait_for()
    slowly(made, second, 0.02).join()
    page.get_by_text("Finished: 2 forecasts, 0 failures.").wait_for()
    assert page.title().startswith("2/2")
