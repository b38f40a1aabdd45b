import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from fakes.stored_run import StoredRunBuilder
from foretell.runs.store import RunStore, RunTrial, trials_of

QUESTION = "questions/own%2F0000"


def messages(text: str) -> list[dict[str, Any]]:
    """Return id, event and data of each message of a stream that is about the run."""
    parsed: list[dict[str, Any]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if fields.get("event", "heartbeat") != "heartbeat":
            parsed.append({**fields, "data": json.loads(fields["data"])})
    return parsed


def test_stream_of_a_finished_run_replays_all_events(client: TestClient, store: RunStore, token: str) -> None:
    client.get("/login", params={"token": token})
    run = StoredRunBuilder(questions=2, trials=2).keep(store)
    answer = client.get(f"/api/runs/{run}/stream")
    assert answer.headers["content-type"].startswith("text/event-stream")
    received = messages(answer.text)
    events = list(store.events(run))
    assert [int(message["id"]) for message in received[:-1]] == [number for number, _, _ in events]
    assert received[-1]["event"] == "end"
    first = received[0]["data"]
    assert (first["kind"], first["question"], first["trial"]) == ("ModelCalled", "own/0000", 0)
    assert first["event"]["dollars"] == 0.003


def test_lost_connection_continues_after_the_last_event(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=2).keep(store)
    whole = messages(client.get(f"/api/runs/{run}/stream").text)
    heard = whole[7]["id"]
    rest = messages(client.get(f"/api/runs/{run}/stream", headers={"Last-Event-ID": heard}).text)
    assert rest == whole[8:]
    assert messages(client.get(f"/api/runs/{run}/stream?after={heard}").text) == whole[8:]
    # The last event id of the browser takes precedence over that of the page.
    again = client.get(f"/api/runs/{run}/stream?after=1", headers={"Last-Event-ID": heard}).text
    assert messages(again) == whole[8:]


def test_invalid_last_event_id_is_ignored(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=1).keep(store)
    for header in ("x", "-1", "9" * 40, "1e3"):
        answer = client.get(f"/api/runs/{run}/stream", headers={"Last-Event-ID": header})
        assert len(messages(answer.text)) == 14


def test_deleted_event_numbers_restart_the_stream(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=1).keep(store)
    assert len(messages(client.get(f"/api/runs/{run}/stream?after=1000000").text)) == 14


def test_stream_of_a_single_question(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=3, trials=1).keep(store)
    received = messages(client.get(f"/api/runs/{run}/stream?question=own/0000&brief=true").text)
    assert {message["data"].get("question", "own/0000") for message in received} == {"own/0000"}
    belief = next(message["data"] for message in received if message["data"].get("kind") == "BeliefRevised")
    assert belief["p"] == {"yes": pytest.approx(0.4)}
    assert "event" not in belief


def test_events_can_be_read_without_waiting(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    assert client.get(f"/api/runs/{run}/events").json() == []
    (trial,) = trials_of(run, builder.asked(), 1)
    builder.tell(store, trial.key)
    first = client.get(f"/api/runs/{run}/events?limit=5").json()
    rest = client.get(f"/api/runs/{run}/events", params={"after": first[-1]["id"]}).json()
    assert (len(first), len(rest)) == (5, 8)


@pytest.fixture
def slowly(store: RunStore) -> Iterator[Any]:
    """Yield a function that stores a trial event by event."""
    threads: list[threading.Thread] = []

    def tell(builder: StoredRunBuilder, trial: RunTrial, pause: float = 0.1) -> threading.Thread:
        def work() -> None:
            for event in builder.events(trial.trial):
                store.add_events([(trial.key, event)])
                time.sleep(pause)
            builder.finish(store, trial.key)

        thread = threading.Thread(target=work)
        thread.start()
        threads.append(thread)
        return thread

    yield tell
    for thread in threads:
        thread.join()


def test_running_run_is_streamed(site: Any, store: RunStore, slowly: Any) -> None:
    import httpx2

    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    (trial,) = trials_of(run, builder.asked(), 1)
    slowly(builder, trial)
    with httpx2.stream("GET", f"{site.url}/api/runs/{run}/stream", timeout=30) as answer:
        received = messages("".join(answer.iter_text()))
    assert [message["data"].get("kind") for message in received[-3:]] == ["BeliefRevised", "ForecastMade", None]
    assert len(received) == 14


def test_live_page_equals_a_reloaded_page(page: Any, site: Any, store: RunStore, slowly: Any) -> None:
    builder = StoredRunBuilder(questions=1, trials=2)
    run = builder.begin(store)
    first, second = trials_of(run, builder.asked(), 2)
    page.goto(f"{site.url}/runs/{run}/{QUESTION}")
    page.get_by_text("No estimate yet").wait_for()
    slowly(builder, first).join()
    page.locator("#trial-0 .searches li").nth(2).wait_for()
    page.locator("#probability", has_text="20 %").wait_for()
    expect(page.locator("#answer .tag", has_text="so far")).to_have_count(1)
    # Opened details stay open while the rest is updated.
    page.locator("#steps-0 > summary").click()
    page.reload()
    expect(page.locator("#probability")).to_have_text("20 %", use_inner_text=True)
    page.locator("#steps-0 > summary").click()
    slowly(builder, second).join()
    page.locator("#probability", has_text="22 %").wait_for()
    assert page.locator("#steps-0").evaluate("e => e.open")
    live = page.locator("main").inner_text()
    page.locator("#steps-0 > summary").click()
    page.reload()
    page.locator("#steps-0 > summary").click()
    assert page.locator("main").inner_text() == live


def test_page_of_a_question_shows_what_came_in_so_far(page: Any, site: Any, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=3)
    run = builder.begin(store)
    first, second, _ = trials_of(run, builder.asked(), 3)
    page.goto(f"{site.url}/runs/{run}/{QUESTION}")
    expect(page.locator("#answer")).to_contain_text("0 of 3 trials have begun")
    for n, event in enumerate(builder.events(0)):
        if n < 8:  # Two steps of three.
            store.add_events([(first.key, event)])
    work = {"kind": "model", "name": "agent", "about": "openai:made-up", "since": time.time(), "tokens": 40}
    store.keep_pending_work({second.key: json.dumps([{**work, "retries": 1, "problem": "busy"}])})
    lanes = page.locator("#lanes li")
    expect(lanes.nth(0)).to_contain_text("Step 3 of at most")
    expect(lanes.nth(0)).to_contain_text("30 %")
    expect(lanes.nth(0)).to_contain_text("−10.0 pts since its first")
    # No process works on this run.
    expect(lanes.nth(1)).to_contain_text(
        "Cut off while asking openai:made-up for its first estimate, 40 tokens so far, attempt 2 after: busy"
    )
    expect(lanes.nth(2)).to_contain_text("not started")
    expect(page.locator("#found")).to_contain_text("1 source found · 0 opened · 1 cited")
    expect(page.locator("#found")).to_contain_text(builder.words.title)
    expect(page.locator("#answer")).to_contain_text("1 (now 30 %)")


def test_a_running_question_has_a_place_for_the_parts_of_its_tree(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=1).begin(store)
    page = client.get(f"/runs/{run}/{QUESTION}").text
    assert '<div id="parts" data-live></div>' in page


def test_progress_of_a_run_is_updated_live(page: Any, site: Any, store: RunStore, slowly: Any) -> None:
    builder = StoredRunBuilder(questions=1, trials=2)
    run = builder.begin(store)
    page.goto(f"{site.url}/runs/{run}")
    page.get_by_text("0 of 2 trials done").wait_for()
    first, second = trials_of(run, builder.asked(), 2)
    work = {"kind": "tool", "name": "web_search", "about": "bridge vote", "since": time.time(), "tokens": 0}
    store.keep_pending_work({first.key: json.dumps([{**work, "retries": 0, "problem": ""}])})
    page.get_by_text("searching for “bridge vote”").wait_for()
    store.keep_pending_work({first.key: ""})
    page.get_by_text("searching for “bridge vote”").wait_for(state="detached")
    slowly(builder, first, 0.02).join()
    page.get_by_text("1 of 2 trials done").wait_for()
    slowly(builder, second, 0.02).join()
    page.get_by_text("Finished: 2 forecasts, 0 failures.").wait_for()
    assert page.title().startswith("2/2")
