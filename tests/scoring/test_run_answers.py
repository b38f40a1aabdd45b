"""What is stored of the answers and events of a run is the same as what its trials say."""

from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from fakes.stored_run import StoredRunBuilder
from foretell.questions.forecast import Forecast
from foretell.questions.trace import CallMeter, ForecastMade, ModelCalled, cost_of_calls
from foretell.runs.store import RunRow, RunStore, TrialKey
from foretell.scoring.run_scores import QuestionAnswer, score_run
from foretell.scoring.stored_scores import keep_summary

BUILDER = StoredRunBuilder(questions=3, trials=2, failing=1)


def row_of(store: RunStore, run: str) -> RunRow:
    row = store.run(run)
    assert row is not None
    return row


def answers(store: RunStore, run: str) -> tuple[QuestionAnswer, ...]:
    return score_run(store, row_of(store, run)).answers


def test_stored_answers_are_those_of_the_trials(place: Path | str):
    with closing(RunStore(place)) as store:
        run = BUILDER.keep(store)
        computed = score_run(store, row_of(store, run), combined=False)
        keep_summary(place, run)
        stored = score_run(store, row_of(store, run))
        assert (stored.answers, stored.caveats) == (computed.answers, computed.caveats)
        assert [(answer.failed, len(answer.targets[0].trials)) for answer in stored.answers] == [(1, 1), (0, 2), (0, 2)]


def test_answer_given_again_replaces_the_stored_one(place: Path | str):
    with closing(RunStore(place)) as store:
        run = BUILDER.keep(store)
        keep_summary(place, run)
        before = answers(store, run)
        question = BUILDER.asked()[1]
        key = TrialKey(run=run, question=question.id, due=question.due.isoformat(), trial=1)
        forecast = store.answers_to(key)[0]
        assert isinstance(forecast, Forecast)
        store.forget_answers([key])
        store.finish_trial(key, replace(forecast, trial=1, p={"yes": 0.9}))  # As many as before.
        again = answers(store, run)
        assert again[1].targets[0].trials == (before[1].targets[0].trials[0], 0.9)
        assert (again[0], again[2]) == (before[0], before[2])


def test_totals_of_a_run_are_those_of_its_events(place: Path | str):
    with closing(RunStore(place)) as store:
        run, key = BUILDER.keep(store), TrialKey(run="other", question="q", due="2026-07-01", trial=0)
        call = ModelCalled(role="agent", model="m", key="k", input_tokens=7, output_tokens=3)
        first = store.last_event()
        store.add_events(
            (key._replace(run=run), event)
            for event in (call, replace(call, key="l", dollars=0.5, reused=True, uncounted=True))
        )
        store.add_events([(key, call)])
        events = [event for _, _, event in store.events(run)]
        assert store.cost(run) == cost_of_calls(events)
        assert store.endings(run) == Counter(event.how for event in events if isinstance(event, ForecastMade))
        later, whole = CallMeter(), CallMeter()
        store.meter_calls(run, later, after=first)
        assert (later.cost.unpriced, later.cost.reused, later.cost.uncounted) == (1, 0.5, 1)
        for numbers in ({"upto": first}, {"after": first}, {"after": first}):  # A reply that is read again is known.
            store.meter_calls(run, whole, **numbers)
        assert whole.cost == store.cost(run)
        assert not store.cost("none").calls
        assert not store.endings(run, after=first)
