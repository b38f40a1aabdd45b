from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from foretell.models import Journal
from foretell.questions import Failed, Failure, Forecast, InputError, ModelCalled, Question, Target, instant
from foretell.runs import CellKey, RunStore

Place = Path | str
QUESTIONS = [
    Question(id=f"q{i}", source="s", text="naïve? \u0000 ✓", due=instant("2026-01-01"), targets=(Target(id="yes"),))
    for i in range(3)
]
DUE = "2026-01-01T00:00:00+00:00"


def key_of(question: int = 0, trial: int = 0) -> CellKey:
    return CellKey(run="r", question=f"q{question}", due=DUE, trial=trial)


def forecast_of(question: int = 0, trial: int = 0, p: float = 0.25) -> Forecast:
    asked = QUESTIONS[question]
    return Forecast(question_id=asked.id, forecaster="t", as_of=asked.as_of, p={"yes": p}, trial=trial)


def test_everything_comes_back_as_it_was(place: Place):
    with closing(RunStore(place)) as store:
        store.begin("r", '{"trials": 2}', "2026-01-02T00:00:00", services=["brave"])
        store.begin("r", "{}", "2026-01-03T00:00:00")
        store.keep_questions("r", QUESTIONS)
        store.keep_questions("r", QUESTIONS)
        assert store.questions("r") == QUESTIONS
        store.finish_cell(key_of(1), forecast_of(1))
        store.finish_cell(key_of(0, 1), forecast_of(0, 1))
        failure = Failure(question_id="q0", forecaster="t", as_of=QUESTIONS[0].as_of, error="no", trial=0)
        store.finish_cell(key_of(0), failure)
        assert list(store.answers("r")) == [failure, forecast_of(0, 1), forecast_of(1)]
        assert store.answers_to(key_of(0)) == [failure, forecast_of(0, 1)]
        assert store.finished("r") == {("q1", DUE, 0), ("q0", DUE, 1)}
        (run,) = store.runs()
        assert (run.id, run.spec, run.services, run.done, run.failed) == ("r", {"trials": 2}, ("brave",), 2, 1)


def test_a_forecast_takes_the_place_of_a_failure(place: Place):
    with closing(RunStore(place)) as store:
        store.finish_cell(key_of(), Failure(question_id="q0", forecaster="t", as_of=QUESTIONS[0].as_of, error="no"))
        store.finish_cell(key_of(), forecast_of())
        assert list(store.answers("r")) == [forecast_of()]


def test_a_reader_goes_on_where_it_was(place: Place):
    with closing(RunStore(place)) as store, closing(RunStore(place)) as reader:
        events = [(key_of(i), ModelCalled(role="agent", model="m", key=f"{i}")) for i in range(3)]
        store.add_events(events[:2])
        seen = list(reader.events("r"))
        assert [(key, event) for _, key, event in seen] == events[:2]
        store.add_events([*events[2:], (key_of(1), Failed(error="ü"))])
        assert [key for _, key, _ in reader.events("r", after=seen[-1][0])] == [key_of(2), key_of(1)]
        store.start_cell(key_of(1))
        assert [key for _, key, _ in reader.events("r", "q1")] == []


@pytest.mark.parametrize("kind", [RunStore, Journal])
def test_many_may_open_a_new_one_at_once(place: Place, kind: Callable[[Place], Any]):
    barrier = Barrier(6)

    def opened() -> None:
        barrier.wait()
        kind(place).close()

    with ThreadPoolExecutor(6) as pool:
        for one in [pool.submit(opened) for _ in range(6)]:
            one.result(timeout=60)


def test_an_address_that_leads_nowhere_is_told_without_its_password():
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match=r"postgresql://me@127.0.0.1:9/x: the database cannot be reached") as caught:
        RunStore("postgresql://me:secret@127.0.0.1:9/x")
    assert "secret" not in str(caught.value)
