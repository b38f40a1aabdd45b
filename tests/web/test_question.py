import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

import foretell
from fakes.stored_run import BEGAN, RunWords, StoredRunBuilder
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.forecaster import Context
from foretell.questions.forecast import Forecast
from foretell.questions.trace import BeliefRevised, ModelCalled, ToolUsed, TraceEvent
from foretell.report.question_view import what_moved
from foretell.report.run_report import question_steps
from foretell.runs.combine import combine_trials, combining_by_name
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore, trials_of

PATH = "questions/own%2F0000"


def test_combination_of_trials_equals_that_of_the_command_line(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=3, options=("red", "green", "blue"))
    run = builder.keep(store)
    view = client.get(f"/api/runs/{run}/{PATH}").json()
    row = store.run(run)
    assert row is not None
    combined = combine_trials(store.answers(run), builder.asked(), combining_by_name(row.spec["combine"]))[0]
    assert view["combination"]["p"] == pytest.approx(dict(combined.p))
    assert view["combination"]["rationale"] == combined.rationale
    assert view["combination"]["stages"][0]["name"] == "Average of the trials"
    assert len(view["combination"]["trials"]) == 3
    assert sum(view["combination"]["p"].values()) == pytest.approx(1)


def test_a_page_says_how_many_outcomes_come_true_and_shows_none_of_them(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1, options=("red", "green"), exclusivity="at most one")
    run = builder.keep(store)
    view = client.get(f"/api/runs/{run}/{PATH}").json()
    assert view["question"]["exclusivity"] == "at most one"
    assert view["combination"]["none"] == pytest.approx(1 - sum(view["combination"]["p"].values()))
    page = client.get(f"/runs/{run}/{PATH}").text
    assert "at most one of the outcomes comes true" in page
    assert "None of them" in page


def test_an_open_question_is_shown_with_the_outside_view(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    live = replace(builder.spec, mode="live")
    store.begin(live.id, live.to_json(), BEGAN)
    store.keep_questions(live.id, builder.asked())
    (question,) = builder.asked()
    view = client.get(f"/api/runs/{live.id}/{PATH}").json()
    expected = OutsideView().estimate(question, Context(as_of=question.as_of_in("live")))
    assert view["question"]["targets"][0]["rate"] == pytest.approx(expected.p["yes"])


def test_trial_is_shown_step_by_step(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=2, steps=3).keep(store)
    trial = client.get(f"/api/runs/{run}/{PATH}").json()["trials"][0]
    trace = trial["trace"]
    assert [round(point["p"]["yes"], 2) for point in trace["path"]] == [0.4, 0.3, 0.2]
    assert [event["kind"] for event in trace["happenings"]][:4] == ["model", "withheld", "tool", "belief"]
    assert trace["tools"] == {"web_search": 3}
    assert trace["withheld"] == {"date": 3}
    assert trace["searches"] == ["harbour bridge council vote"] * 3
    assert "updated_belief" not in trace["happenings"][2]["arguments"]
    (for_it,) = trace["evidence_for"]
    assert for_it["source"]["url"] == "https://news.example/bridge"
    assert trace["evidence_against"][0]["source"] is None
    assert trial["drift"] == pytest.approx(0)
    assert trial["seconds"] == 12.5


def test_evidence_is_ranked_by_how_far_it_moved_belief() -> None:
    def source(name: str) -> dict[str, str]:
        return {"id": name, "title": name, "url": f"https://{name}.example/"}

    def point(p: float, *cited: str) -> dict[str, Any]:
        return {"p": {"yes": p}, "cited": [{"claim": f"{name} says so", "source": source(name)} for name in cited]}

    first = {"path": [point(0.4, "prior"), point(0.6, "poll"), point(0.5, "paper", "court")]}
    second = {"path": [point(0.4), point(0.5, "poll"), point(0.5, "idle")]}
    moved = what_moved([first, second], "yes")
    # The cause of the first belief is unknown; evidence without a change is left out.
    assert [(item["source"]["id"], round(item["move"], 3), item["trials"]) for item in moved] == [
        ("poll", 0.15, 2),
        ("paper", -0.05, 1),
        ("court", -0.05, 1),
    ]


@pytest.mark.usefixtures("fixed_clock")
def test_report_is_the_same_from_every_interface(
    client: TestClient, store: RunStore, settings: Settings, token: str
) -> None:
    client.get("/login", params={"token": token})  # A report says what was spent.
    run = StoredRunBuilder(questions=2, trials=2, steps=3).keep(store)
    page = client.get(f"/runs/{run}/{PATH}").text
    due = client.get(f"/api/runs/{run}/{PATH}").json()["question"]["due"]
    result = foretell.show(run, "own/0000", as_of=due, settings=settings)
    for form, text in (("html", result.to_html()), ("md", result.to_markdown())):
        address = next(link for link in re.findall(r'href="([^"]+)"', page) if f"report.{form}" in link)
        answer = client.get(html.unescape(address))
        assert (answer.status_code, answer.text) == (200, text)
        assert "attachment" in answer.headers["content-disposition"]
    assert json.loads(result.to_json())["report"] == result.to_markdown()
    assert "<svg" in result.to_html()
    assert "<link" not in result.to_html()
    for words in (
        "From trials to the answer",
        "https://news.example/bridge",
        "Held back from the agent",
        f"foretell replay {run}",
    ):
        assert words in result.to_markdown()
    whole = client.get(f"/api/runs/{run}/report.md").text
    assert whole == foretell.show(run, settings=settings).to_markdown()
    assert whole.count("| open |") == 2
    assert client.get(f"/api/runs/{run}/report.docx").status_code == 422
    many = StoredRunBuilder(questions=1, trials=1, options=("red", "green")).keep(store)
    assert "| red |" in foretell.show(many, "own/0000", settings=settings).to_markdown()


def test_page_shows_what_moved_the_probability(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1, steps=3)
    run = builder.keep(store)
    (trial,) = trials_of(run, builder.asked(), 1)
    late = {"evidence_for": [{"claim": "The council <b>voted</b>.", "source_id": "search_2_result_1"}]}
    store.add_events([(trial.key, BeliefRevised(step=4, p={"yes": 0.7}, reason="a vote", belief=late))])
    (moved,) = client.get(f"/api/runs/{run}/{PATH}").json()["moved"]
    assert (moved["trials"], round(moved["move"], 2)) == (1, 0.5)
    assert "+50.0 pts" in client.get(f"/runs/{run}/{PATH}").text
    assert "The council &lt;b&gt;voted" in client.get(f"/runs/{run}/{PATH}").text


def test_answer_far_from_the_last_belief_is_noted(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.keep(store)
    (answer,) = store.answers(run)
    assert isinstance(answer, Forecast)
    (question,) = builder.asked()
    from dataclasses import replace

    from foretell.runs.store import trials_of

    (trial,) = trials_of(run, [question], 1)
    store.finish_trial(trial.key, replace(answer, p={"yes": 0.35}))
    assert client.get(f"/api/runs/{run}/{PATH}").json()["trials"][0]["drift"] == pytest.approx(0.15)
    assert "15.0 points away from its last estimate" in client.get(f"/runs/{run}/{PATH}").text


def test_a_question_asked_twice_shows_the_newer_one_first(client: TestClient, store: RunStore) -> None:
    from dataclasses import replace

    from foretell.questions.as_of import instant

    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.keep(store)
    store.keep_questions(run, [replace(builder.asked()[0], due=instant("2026-08-01"))])
    newest = client.get(f"/api/runs/{run}/{PATH}").json()
    assert newest["question"]["due"].startswith("2026-08-01")
    assert newest["trials"][0]["state"] == "waiting"
    older = client.get(f"/api/runs/{run}/{PATH}", params={"due": newest["asked"][1]}).json()
    assert older["trials"][0]["state"] == "answered"


def test_whole_texts_are_in_the_api(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, words=RunWords(result="<script>alert(1)</script>")).keep(store)
    view = client.get(f"/api/runs/{run}/{PATH}").json()
    tool = next(event for event in view["trials"][0]["trace"]["happenings"] if event["kind"] == "tool")
    (event,) = client.get(f"/api/runs/{run}/events", params={"after": tool["id"] - 1, "limit": 1}).json()
    assert (event["id"], event["event"]["result"]) == (tool["id"], tool["text"])
    assert "YES if the council" in view["question"]["criteria"]
    picture = client.get(f"/api/runs/{run}/report.png", params={"question": "own/0000"})
    assert picture.headers["content-type"] in ("image/png", "image/svg+xml")
    assert client.get(f"/api/runs/{run}/report.png").status_code == 422


def test_unknown_questions_are_not_found(client: TestClient, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1).keep(store)
    for path in (f"/runs/{run}/questions/nope", f"/runs/nope/{PATH}", f"/runs/{run}/{PATH}?due=2020-01-01"):
        assert client.get(path).status_code == 404
        answer = client.get(f"/api{path}")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_question_page_in_a_browser(page: Any, site: Any, store: RunStore) -> None:
    run = StoredRunBuilder(questions=1, trials=3).keep(store)
    page.goto(f"{site.url}/runs/{run}/{PATH}")
    page.get_by_role("img", name="Belief after each step").wait_for()
    expect(page.locator("#paths svg:visible path.l-a.bold")).to_have_count(1)
    page.locator("#steps-0 > summary").click()
    page.locator("#steps-0 li.tool details summary").first.click()
    page.get_by_text("Members expect a vote in autumn.").first.wait_for()
    expect(page.locator("#steps-0 .withheld")).to_have_count(3)
    link = page.locator("#trial-0 .evidence a").first
    assert link.get_attribute("href") == "https://news.example/bridge"


def test_fallback_answer_is_marked(client: TestClient, store: RunStore, token: str) -> None:
    client.get("/login", params={"token": token})
    builder = StoredRunBuilder(questions=1, trials=2)
    run = builder.keep(store)
    from dataclasses import replace

    from foretell.runs.store import trials_of

    for trial, answer in zip(trials_of(run, builder.asked(), 2), list(store.answers(run)), strict=True):
        assert isinstance(answer, Forecast)
        store.finish_trial(trial.key, replace(answer, ending="fallback", problem="the wire broke"))
        view = client.get(f"/api/runs/{run}/{PATH}").json()
        assert view["trials"][trial.trial]["fallback"] == "the wire broke"
        assert view["combination"]["fallback"] == (trial.trial == 1)  # The other trial is not a fallback yet.
    assert "fallback: a step failed" in client.get(f"/runs/{run}/{PATH}").text
    view = client.get(f"/api/runs/{run}").json()
    assert (view["run"]["fallback"], view["money"]["unknown"]) == (2, 0.0)
    page = client.get(f"/runs/{run}").text
    assert "Unknown" in page
    assert 'title="the wire broke">fallback' in page
    assert "2 fallback" in client.get("/runs").text


def test_an_unfinished_question_of_a_run_with_several_has_a_page(client: TestClient, store: RunStore, token: str):
    builder = StoredRunBuilder(questions=2, trials=2)
    run = builder.begin(store)
    builder.tell(store, next(iter(trials_of(run, builder.asked(), 2))).key)
    for _ in range(2):  # As a stranger, then as the owner.
        for question in builder.asked():
            shown = client.get(f"/runs/{run}/questions/{question.id.replace('/', '%2F')}")
            assert shown.status_code == 200
            assert "Where each trial stopped" in shown.text
        client.get("/login", params={"token": token})


def test_an_only_trial_that_was_cut_off_is_no_average(client: TestClient, store: RunStore):
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    (trial,) = trials_of(run, builder.asked(), 1)
    store.start_trial(trial.key)
    store.add_events((trial.key, event) for event in list(builder.events(0, question=trial.question.id))[:4])
    page = client.get(f"/runs/{run}/questions/own%2F0000").text
    assert "The trial was cut off before it answered." in page
    assert "Average of" not in page


def test_steps_of_a_question_in_progress_are_listed_newest_first(client: TestClient, store: RunStore):
    builder = StoredRunBuilder(questions=1, trials=2)
    run = builder.begin(store)
    builder.tell(store, next(iter(trials_of(run, builder.asked(), 2))).key)
    address = f"/runs/{run}/questions/{builder.asked()[0].id.replace('/', '%2F')}"
    steps = client.get(f"/api{address}").json()["live"]["steps"]
    assert [step["id"] for step in steps] == sorted((step["id"] for step in steps), reverse=True)
    assert {"tool", "belief"} <= {step["kind"] for step in steps}
    assert {step["trial"] for step in steps} == {0}
    shown = client.get(address).text
    listed = shown[shown.index('<ol class="steps">') :].partition("</ol>")[0]
    assert listed.count("<li") == len(steps)
    assert "harbour bridge council vote" in listed
    assert "estimate revised" in listed


def test_the_last_step_of_a_trial_is_in_words_and_its_arguments_are_as_they_were_sent(
    client: TestClient, store: RunStore
):
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    (trial,) = trials_of(run, builder.asked(), 1)
    store.start_trial(trial.key)
    submitted = ToolUsed(step=1, tool="submit", arguments={"p": {"yes": 0.4}, "why": "It is near."}, result="")
    store.add_events([(trial.key, submitted)])
    page = client.get(f"/runs/{run}/questions/own%2F0000").text
    assert "Last: submit “It is near.”" in page
    assert "The question is asked" not in page, "it is asked once"
    assert "&#39;yes&#39;" not in page
    assert "{&#34;yes&#34;: 0.4}" in page


NOON = 1_790_000_000.0


def timed_trial() -> list[TraceEvent]:
    """A reply of 4 s, two searches at once of 3 s and 1 s, of which a filter takes one, and an estimate after 0.5 s."""
    call = ModelCalled(role="agent", model="openai:made-up", key="00", input_tokens=400, output_tokens=100)
    use = ToolUsed(step=1, tool="web_search", arguments={"query": "pier"}, result="nothing")
    belief = BeliefRevised(step=1, p={"yes": 0.4}, reason="so", belief={})
    at = (
        (call, 4.0, 4.0),
        (replace(call, role="filter"), 6.0, 1.0),
        (use, 7.0, 3.0),
        (use, 5.0, 1.0),
        (belief, 7.5, None),
    )
    return [replace(event).timed(NOON + end, seconds) for event, end, seconds in at]


def test_page_says_when_each_step_happened_and_how_long_it_took(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    (trial,) = trials_of(run, builder.asked(), 1)
    store.add_events((trial.key, event) for event in timed_trial())
    builder.finish(store, trial.key)
    view = client.get(f"/api/runs/{run}/{PATH}").json()
    assert view["trials"][0]["time"] == {"began": NOON, "seconds": 7.5, "model": 4.0, "tool": 3.0}
    shown = client.get(f"/runs/{run}/{PATH}").text
    assert "0:07 · took 3.0 s" in shown
    assert "7.5 s, of which 4.0 s waiting for models and 3.0 s for tools" in shown
    chart = shown[shown.index('id="times"') :].partition("</section>")[0]
    assert chart.count("web search “pier”, 3.0 s") >= 1
    events = client.get(f"/api/runs/{run}/events").json()
    assert [event["seconds"] for event in events] == [4.0, 1.0, 3.0, 1.0, None]
    assert events[0]["at"] == "2026-09-21T14:13:24.000+00:00"


def test_events_without_a_time_are_shown_without_one(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=1)
    run = builder.begin(store)
    (trial,) = trials_of(run, builder.asked(), 1)
    store.add_events((trial.key, event.timed(None, None)) for event in timed_trial())
    builder.finish(store, trial.key)
    assert client.get(f"/api/runs/{run}/{PATH}").json()["trials"][0]["time"] is None
    shown = client.get(f"/runs/{run}/{PATH}").text
    assert "How long each step took</h2>" not in shown
    assert "<time" not in shown[shown.index('id="trials"') :]


def test_a_step_that_has_not_ended_is_on_the_time_axis_while_it_goes_on(client: TestClient, store: RunStore) -> None:
    builder = StoredRunBuilder(questions=1, trials=2)
    run = builder.begin(store)
    first = next(iter(trials_of(run, builder.asked(), 2))).key
    store.add_events((first, event) for event in timed_trial())
    work = {"kind": "model", "name": "agent", "about": "openai:made-up", "since": NOON + 8, "tokens": 0, "retries": 0}
    store.keep_pending_work({first: json.dumps([{**work, "problem": ""}])})
    drawn = question_steps(client.get(f"/api/runs/{run}/{PATH}").json(), NOON + 20)
    assert drawn is not None
    assert "12 s so far" in drawn.svg
    assert "trial 2" not in drawn.svg, "it has not begun"
    shown = client.get(f"/runs/{run}/{PATH}").text
    chart = shown[shown.index('id="times"') :].partition("</section>")[0]
    assert "trial 1" in chart
    assert "so far" not in chart, "it was cut off, and nobody knows when"
