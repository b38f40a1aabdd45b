"""What failed in a run or an answer is said in the same words in the terminal, on pages, in reports and in JSON."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from fakes.stored_run import StoredRunBuilder
from foretell.api import show
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.report.markup import sentence
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore, trials_of
from foretell.scoring.caveats import answer_caveats, run_caveats

QUESTION = Question(id="q", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),))


def forecast(trial: int, *, problem: str = "", stopped: bool = False) -> Forecast:
    ending = "fallback" if problem else "stopped" if stopped else "submitted"
    return Forecast(
        question_id="q",
        forecaster="agent",
        as_of=QUESTION.as_of,
        p={"yes": 0.4},
        trial=trial,
        ending=ending,
        problem=problem,
    )


def failure(trial: int, error: str, forecaster: str = "agent") -> Failure:
    return Failure(question_id="q", forecaster=forecaster, as_of=QUESTION.as_of, trial=trial, error=error)


def assert_says(caveats: Sequence[str], *facts: tuple[str, ...]) -> None:
    """There is one caveat for each tuple, and it states all facts of the tuple."""
    assert len(caveats) == len(facts), caveats
    for caveat, stated in zip(caveats, facts, strict=True):
        assert all(fact in caveat for fact in stated), (caveat, stated)


def test_an_answer_says_what_failed_and_what_stood_in():
    sound, early, broken = forecast(0), forecast(3, stopped=True), forecast(1, problem="no tool worked")
    assert_says(answer_caveats([sound, forecast(1)], sound))
    failed = [failure(1, "lost\nwire"), failure(2, "lost wire")]
    assert_says(answer_caveats([sound, *failed], sound), ("2 of 3 trials failed", "rests on one", "lost wire"))
    assert_says(answer_caveats([sound, broken], sound), ("1 of 2 trials", "fallback", "left out", "no tool worked"))
    assert_says(answer_caveats([broken], broken), ("this is a fallback forecast", "no tool worked"))
    stopped = ("stopped early", "1 of 3 trials", "1 gave no answer")
    assert_says(answer_caveats([sound, early], sound, unended=1), stopped)
    without_panel = ("the panel failed", "without it", "too long")
    assert_says(answer_caveats([sound, failure(2, "too long", "panel")], sound), without_panel)


def test_an_answer_that_is_missing_is_explained_by_the_usual_reason():
    failed = [failure(0, "a"), failure(1, "b"), failure(2, "a")]
    assert_says(answer_caveats(failed, None), ("all 3 trials failed", "no answer", "a (2)", "1 other reason (1)"))


def test_caveats_of_a_tree_are_those_of_an_answer_that_rests_on_it():
    of_tree, fallback = "P1: synthesis failed", forecast(1, problem="no tool worked")
    assert answer_caveats([forecast(0)], forecast(0), [of_tree]) == (of_tree,)
    assert of_tree not in answer_caveats([fallback], fallback, [of_tree])


def test_a_run_says_what_its_scores_rest_on():
    answers = [forecast(0), forecast(1, problem="no tool worked"), failure(2, "lost"), forecast(3, stopped=True)]
    assert_says(
        run_caveats(answers, unanswered=1, questions=3, excluded=2),
        ("1 of 4 trials failed", "lost"),
        ("1 of 4 trials", "fallback", "left out", "no tool worked"),
        ("1 of 3 questions has no answer",),
        ("1 of 4 trials was stopped early",),
        ("2 excluded", "after the forecast date"),
    )
    assert_says(run_caveats([forecast(0)], unanswered=0, questions=1, excluded=0))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def stored(settings: Settings) -> tuple[str, Question]:
    """Store a run with two questions: one has a fallback forecast and a failure, the other three sound trials."""
    builder = StoredRunBuilder(questions=2, trials=3)
    with closing(RunStore(settings.store)) as store:
        run = builder.begin(store)
        first = builder.asked()[0]
        for trial in trials_of(run, builder.asked(), 3):
            if trial.question.id == first.id and trial.key.trial:
                own = {"question_id": first.id, "as_of": first.as_of, "trial": trial.key.trial}
                broken = replace(forecast(1, problem="no tool worked"), **own)
                lost = replace(failure(2, "the wire broke"), **own)
                store.finish_trial(trial.key, broken if trial.key.trial == 1 else lost)
            else:
                builder.tell(store, trial.key)
    return run, first


@pytest.mark.parametrize("one", [False, True])
def test_every_interface_says_the_same(settings: Settings, one: bool):
    testing = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed: pip install 'foretell[web]'")
    from foretell.web.app import create_app

    run, question = stored(settings)
    result = show(run, question.id if one else None, settings=settings)
    caveats = result.to_dict()["caveats"]
    assert len(caveats) == 2
    assert "the wire broke" in caveats[0]
    assert "no tool worked" in caveats[1]
    page = f"/runs/{run}/questions/{question.id.replace('/', '%2F')}" if one else f"/runs/{run}"
    with testing.TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        shown = unescape(client.get(page, params={"due": question.due.isoformat()} if one else {}).text)
        data = json.loads(client.get(f"/api{page}").text)
    printed = " ".join(str(result).split())
    for text in map(sentence, caveats):
        assert text in printed
        assert text in shown
        assert text in result.to_markdown()
        assert text in unescape(result.to_html())
    assert data["caveats"] == caveats
