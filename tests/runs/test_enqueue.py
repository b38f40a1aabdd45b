from contextlib import closing

from foretell.models.database.liveness import SessionLiveness
from foretell.questions.as_of import instant
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.runs.store import RunStore, trials_of
from foretell.runs.trial_queue import QueuedTrial, TrialQueue, enqueue, not_queued
from foretell.runs.worker import MAX_TAKEOVERS, Reaper

QUESTIONS = [
    Question(id=f"q/{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),))
    for i in range(3)
]
TRIALS = list(trials_of("r", QUESTIONS, 2))


def test_trial_that_ended_without_a_forecast_is_queued_as_a_new_attempt():
    key = TRIALS[0].key
    assert [q.attempt for q in not_queued(TRIALS[:1], [])] == [0]
    assert [q.attempt for q in not_queued(TRIALS[:1], [QueuedTrial(key=key, status="SUCCESS")])] == [1]
    standing = [QueuedTrial(key=key, status="SUCCESS"), QueuedTrial(key=key, attempt=1, status="PENDING")]
    assert list(not_queued(TRIALS[:1], standing)) == []


def test_trials_of_dead_workers_are_queued_again_until_they_count_as_failed(postgres: str):
    with closing(RunStore(postgres)) as store, closing(TrialQueue(postgres)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        life = store.database.life
        assert isinstance(life, SessionLiveness)
        reaper = Reaper(queue, store, life)

        assert len(enqueue(queue, store, TRIALS)) == 6
        assert len(enqueue(queue, store, TRIALS)) == 6
        assert {queued.key for queued in queue.open_trials()} == {trial.key for trial in TRIALS}
        first = [queued.key.trial for queued in queue.open_trials()]
        assert sorted(first) == [0, 0, 0, 1, 1, 1]

        mine = f"{life.id:016x}"
        assert queue.take(mine, 2) == 2
        assert [queued.key.trial for queued in queue.held([mine])] == [0, 0]  # Early trials first.
        assert len(reaper.sweep()) == 2
        assert len(queue.held([mine])) == 2
        for times in range(1, MAX_TAKEOVERS + 2):
            assert queue.take("dead", 4) == 4
            assert len(queue.held(["dead"])) == 4
            assert len(reaper.sweep()) == 2  # Our own trials stay.
            assert queue.held(["dead"]) == []
            assert len(queue.open_trials()) == (6 if times <= MAX_TAKEOVERS else 2)
        failures = list(store.answers("r"))
        assert [type(failure) for failure in failures] == [Failure] * 4
        assert "given up after 5 takeovers" in failures[0].error

        # A restart retries failed trials and leaves running ones alone.
        store.forget_failures("r")
        enqueue(queue, store, TRIALS)
        assert sorted(queued.attempt for queued in queue.open_trials()) == [0, 0, 1, 1, 1, 1]
        trial = TRIALS[0]
        forecast = Forecast(question_id="q/0", forecaster="t", as_of=trial.question.as_of, p={"yes": 0.5})
        store.finish_trial(trial.key, forecast)
        assert len(enqueue(queue, store, TRIALS)) == 5
