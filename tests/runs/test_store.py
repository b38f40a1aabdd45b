import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.models.journal import Journal
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import Failed, ModelCalled
from foretell.runs.contexts import context_rows, stored_contexts
from foretell.runs.store import RunStore, TrialKey
from foretell.runs.trial_costs import measured_costs

Place = Path | str
QUESTIONS = [
    Question(id=f"q{i}", source="s", text="naïve? \u0000 ✓", due=instant("2026-01-01"), targets=(Target(id="yes"),))
    for i in range(3)
]
DUE = "2026-01-01T00:00:00+00:00"


def key_of(question: int = 0, trial: int = 0) -> TrialKey:
    return TrialKey(run="r", question=f"q{question}", due=DUE, trial=trial)


def forecast_of(question: int = 0, trial: int = 0, p: float = 0.25) -> Forecast:
    stored = QUESTIONS[question]
    return Forecast(question_id=stored.id, forecaster="t", as_of=stored.as_of, p={"yes": p}, trial=trial)


def test_stored_values_are_read_back_unchanged(place: Place):
    with closing(RunStore(place)) as store:
        store.begin("r", '{"trials": 2}', "2026-01-02T00:00:00", services=["brave"])
        store.begin("r", "{}", "2026-01-03T00:00:00")
        store.keep_questions("r", QUESTIONS)
        store.keep_questions("r", QUESTIONS)
        assert store.questions("r") == QUESTIONS
        store.finish_trial(key_of(1), forecast_of(1))
        store.finish_trial(key_of(0, 1), forecast_of(0, 1))
        failure = Failure(question_id="q0", forecaster="t", as_of=QUESTIONS[0].as_of, error="no", trial=0)
        store.finish_trial(key_of(0), failure)
        assert list(store.answers("r")) == [failure, forecast_of(0, 1), forecast_of(1)]
        assert store.answers_to(key_of(0)) == [failure, forecast_of(0, 1)]
        assert store.finished("r") == {("q1", DUE, 0), ("q0", DUE, 1)}
        (run,) = store.runs()
        assert (run.id, run.spec, run.services, run.done, run.failed) == ("r", {"trials": 2}, ("brave",), 2, 1)


def test_contexts_are_stored_once_and_removed_with_their_last_run(place: Place):
    shown = [PredictionContext(question=question, as_of=question.as_of, searcher="x") for question in QUESTIONS[:2]]
    other = replace(shown[0], searcher="y")
    with closing(RunStore(place)) as store:
        store.keep_contexts("r", context_rows(shown))
        store.keep_contexts("r", context_rows([other]))
        store.keep_contexts("s", context_rows(shown[:1]))
        assert store.context("r", QUESTIONS[0]) == shown[0].to_json(), "a question keeps its first context"
        assert sorted(stored_contexts(store, "r"), key=lambda context: context.question.id) == shown
        assert store.context_digests("s") == {(QUESTIONS[0].id, QUESTIONS[0].due): shown[0].digest}
        assert store.context("s", QUESTIONS[1]) is None
        store.remove("r")
        assert (stored_contexts(store, "r"), stored_contexts(store, "s")) == ([], shown[:1])
        digests = {digest for (digest,) in store.database.read("select digest from shown_context")}
        assert shown[0].digest in digests, "another run shows it"
        assert shown[1].digest not in digests


def test_forecast_replaces_a_failure(place: Place):
    with closing(RunStore(place)) as store:
        store.finish_trial(key_of(), Failure(question_id="q0", forecaster="t", as_of=QUESTIONS[0].as_of, error="no"))
        store.finish_trial(key_of(), forecast_of())
        assert list(store.answers("r")) == [forecast_of()]


def test_reader_continues_after_the_last_event(place: Place):
    with closing(RunStore(place)) as store, closing(RunStore(place)) as reader:
        events = [(key_of(i), ModelCalled(role="agent", model="m", key=f"{i}")) for i in range(3)]
        store.add_events(events[:2])
        seen = list(reader.events("r"))
        assert [(key, event) for _, key, event in seen] == events[:2]
        store.add_events([*events[2:], (key_of(1), Failed(error="ü"))])
        assert [key for _, key, _ in reader.events("r", after=seen[-1][0])] == [key_of(2), key_of(1)]
        store.start_trial(key_of(1))
        assert [key for _, key, _ in reader.events("r", "q1")] == []


def test_copies_of_events_keep_their_time():
    call = ModelCalled(role="agent", model="m", key="0").timed(1_790_000_000.25, 3.5)
    for copied in (copy(call), deepcopy(call), pickle.loads(pickle.dumps(call))):
        assert (copied, copied.at, copied.seconds) == (call, call.at, call.seconds)


def test_events_keep_their_time(place: Place):
    call = ModelCalled(role="agent", model="m", key="0").timed(1_790_000_000.25, 3.5)
    with closing(RunStore(place)) as store:
        store.add_events([(key_of(), call), (key_of(), Failed(error="ü").timed(1_790_000_001.5, None))])
        columns = "run, question, due, trial, kind, body"
        older = f"insert into event ({columns}) select {columns} from event where kind = 'Failed'"
        store.database.write(older)
        read = [event for _, _, event in store.events("r")]
    assert [(event.at, event.seconds) for event in read] == [
        (1_790_000_000.25, 3.5),
        (1_790_000_001.5, None),
        (None, None),
    ]
    assert read[1] == read[2], "time is no part of what an event is"


@pytest.mark.parametrize("kind", [RunStore, Journal])
def test_new_store_can_be_opened_concurrently(place: Place, kind: Callable[[Place], Any]):
    barrier = Barrier(6)

    def opened() -> None:
        barrier.wait()
        kind(place).close()

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(opened) for _ in range(6)]:
            future.result(timeout=60)


def test_unreachable_database_is_reported_without_its_password():
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match=r"postgresql://me@127.0.0.1:9/x: the database cannot be reached") as caught:
        RunStore("postgresql://me:secret@127.0.0.1:9/x")
    assert "secret" not in str(caught.value)


def test_measured_costs_are_those_of_a_trial_of_runs_with_models(place: Place):
    def call(dollars: float, trial: int) -> ModelCalled:
        return ModelCalled(role="agent", model="m", key=f"k{trial}", dollars=dollars, input_tokens=1, output_tokens=1)

    with closing(RunStore(place)) as store:
        for run, spec in (("r", '{"models": {"agent": "openai:m"}}'), ("free", "{}")):
            store.begin(run, spec, "2026-01-02T00:00:00")
            for trial in range(4):
                key = key_of(0, trial)._replace(run=run)
                store.finish_trial(key, forecast_of(0, trial), new_events=[call(0.5, trial)])
        store.begin("open", '{"models": {"agent": "openai:other"}}', "2026-01-02T00:00:00")
        (cost,) = measured_costs(store).values()
    assert (cost.trials, cost.dollars) == (4, 0.5)
