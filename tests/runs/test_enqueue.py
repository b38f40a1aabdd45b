from contextlib import closing

from foretell.models.database import SessionLiveness
from foretell.questions import Failure, Forecast, Question, Target, instant
from foretell.runs import CellQueue, QueuedCell, RunStore, cells_of, enqueue, not_queued
from foretell.runs.worker import MAX_TAKEOVERS, Reaper

QUESTIONS = [
    Question(id=f"q/{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),))
    for i in range(3)
]
CELLS = list(cells_of("r", QUESTIONS, 2))


def test_a_cell_that_ended_without_a_forecast_is_a_new_attempt():
    key = CELLS[0].key
    assert [q.attempt for q in not_queued(CELLS[:1], [])] == [0]
    assert [q.attempt for q in not_queued(CELLS[:1], [QueuedCell(key=key, status="SUCCESS")])] == [1]
    standing = [QueuedCell(key=key, status="SUCCESS"), QueuedCell(key=key, attempt=1, status="PENDING")]
    assert list(not_queued(CELLS[:1], standing)) == []


def test_the_queue_and_those_who_die(postgres: str):
    with closing(RunStore(postgres)) as store, closing(CellQueue(postgres)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        life = store.database.life
        assert isinstance(life, SessionLiveness)
        reaper = Reaper(queue, store, life)

        assert len(enqueue(queue, store, CELLS)) == 6
        assert len(enqueue(queue, store, CELLS)) == 6
        assert {queued.key for queued in queue.open_cells()} == {cell.key for cell in CELLS}
        first = [queued.key.trial for queued in queue.open_cells()]
        assert sorted(first) == [0, 0, 0, 1, 1, 1]

        mine = f"{life.id:016x}"
        assert queue.take(mine, 2) == 2
        assert [queued.key.trial for queued in queue.held([mine])] == [0, 0]  # Early trials first.
        assert len(reaper.sweep()) == 2
        assert len(queue.held([mine])) == 2
        for times in range(1, MAX_TAKEOVERS + 2):
            assert queue.take("dead", 4) == 4
            assert len(queue.held(["dead"])) == 4
            assert len(reaper.sweep()) == 2  # Ours stay.
            assert queue.held(["dead"]) == []
            assert len(queue.open_cells()) == (6 if times <= MAX_TAKEOVERS else 2)
        failures = list(store.answers("r"))
        assert [type(failure) for failure in failures] == [Failure] * 4
        assert "given up after 5 takeovers" in failures[0].error

        # Started again, what failed is tried anew, and what is at work is left alone.
        store.forget_failures("r")
        enqueue(queue, store, CELLS)
        assert sorted(queued.attempt for queued in queue.open_cells()) == [0, 0, 1, 1, 1, 1]
        cell = CELLS[0]
        forecast = Forecast(question_id="q/0", forecaster="t", as_of=cell.question.as_of, p={"yes": 0.5})
        store.finish_cell(cell.key, forecast)
        assert len(enqueue(queue, store, CELLS)) == 5
