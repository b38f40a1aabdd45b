"""A worker within this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing

import pytest

from foretell.models.database.liveness import SessionLiveness
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, ForecastMade
from foretell.runs.executor import AnswerTrial
from foretell.runs.store import RunRow, RunStore, RunTrial, trials_of
from foretell.runs.trial_queue import TrialQueue, enqueue
from foretell.runs.worker import Worker, WorkerCapacity, WorkerSignals

QUESTIONS = [
    Question(id=f"q{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),)) for i in range(4)
]
TRIALS = list(trials_of("r", QUESTIONS, 2))


class Bench:
    """Answers when the test allows it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go = asyncio.Event()
        self.begun: list[str] = []
        self.asked = self.opened = 0
        self._error = error

    @asynccontextmanager
    async def prepare(self, row: RunRow) -> AsyncGenerator[AnswerTrial]:
        self.asked += 1
        if self._error:
            raise self._error
        self.opened += 1
        yield self._answer
        self.opened -= 1

    async def _answer(self, trial: RunTrial, emit: EmitEvent) -> Forecast:
        self.begun.append(f"{trial.question.id}/{trial.trial}")
        await self.go.wait()
        emit(ForecastMade(p={"yes": 0.5}, how="submitted"))
        return Forecast(
            question_id=trial.question.id, forecaster="t", as_of=trial.question.as_of, p={"yes": 0.5}, trial=trial.trial
        )


@asynccontextmanager
async def at_work(url: str, bench: Bench) -> AsyncGenerator[tuple[RunStore, TrialQueue, Worker, WorkerSignals]]:
    with closing(RunStore(url)) as store, closing(await asyncio.to_thread(TrialQueue, url)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        enqueue(queue, store, TRIALS)
        life = store.database.life
        assert isinstance(life, SessionLiveness)
        worker, orders = Worker(url, store, life, bench.prepare), WorkerSignals()
        serving = asyncio.create_task(worker.serve(WorkerCapacity(here=3), orders))
        try:
            yield store, queue, worker, orders
        finally:
            orders.rest.set()
            await serving


async def until(read: object, wanted: object) -> None:
    async with asyncio.timeout(30):
        while read() != wanted:
            await asyncio.sleep(0.05)


def test_worker_limits_concurrent_trials_and_records_each_once(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            await asyncio.sleep(0.6)
            assert len(bench.begun) == 3
            bench.go.set()
            await until(lambda: worker.progress.done, 8)
            await until(lambda: len(queue.open_trials()), 0)
            assert len(list(store.answers("r"))) == 8
            assert len(list(store.events("r"))) == 8
            assert bench.opened == 1
        assert bench.opened == 0

    asyncio.run(main())


def test_concurrency_of_another_worker_does_not_apply(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (_, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            assert await asyncio.to_thread(lambda: queue.open_for(everywhere=None, first=False)) is None
            await asyncio.sleep(1.5)
            # Neither started nor taken from workers with capacity.
            assert (len(bench.begun), len(queue.held())) == (3, 3)
            assert await asyncio.to_thread(lambda: queue.take("another", 50)) == 5
            assert (len(queue.held(["another"])), len(queue.held())) == (5, 8)
            queue.put_back(["another"], queue.held(["another"]))
            bench.go.set()
            await until(lambda: worker.progress.done, 8)

    asyncio.run(main())


def test_overall_limit_stays_until_a_worker_sets_another(postgres: str):
    with closing(TrialQueue(postgres)) as queue:
        assert queue.everywhere() is None
        assert queue.open_for(everywhere=3, first=True) == 3
        assert queue.open_for(everywhere=None, first=False) == 3
        assert queue.open_for(everywhere=7, first=False) == 7
        assert queue.everywhere() == 7
        assert queue.open_for(everywhere=None, first=True) is None


def test_trials_that_others_took_over_are_abandoned(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            held = queue.held()
            queue.put_back([held[0].executor], held)
            assert await asyncio.to_thread(lambda: queue.take("other", 3)) == 3
            # No worker with this name is alive, so the trials are put back, abandoned and taken again.
            await until(lambda: len(bench.begun), 6)
            bench.go.set()
            await until(lambda: len(queue.open_trials()), 0)
            assert len(list(store.events("r"))) == 8
            assert worker.progress.done == 8

    asyncio.run(main())


def test_worker_that_must_stop_now_returns_its_trials(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, _, orders):
            await until(lambda: len(bench.begun), 3)
            orders.leave.set()
            await until(lambda: len(queue.held()), 0)
            assert len(queue.open_trials()) == 8
            assert list(store.answers("r")) == []

    asyncio.run(main())


def test_worker_that_cannot_serve_a_run_returns_its_trials(postgres: str):
    async def main() -> None:
        bench = Bench(InputError("no key"))
        with pytest.raises(InputError, match="no key"):
            async with at_work(postgres, bench):
                await until(lambda: bench.asked, 1)
        with closing(TrialQueue(postgres)) as queue:
            assert len(queue.open_trials()) == 8
            assert queue.held() == []

    asyncio.run(main())


def test_stopped_run_ends_at_its_workers_and_can_resume(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            store.ask_to_stop("r", "pause")
            await until(lambda: len(queue.open_trials()), 0)
            assert (len(bench.begun), worker.progress.done, list(store.answers("r"))) == (3, 0, [])
            store.begin("r", "{}", "2026-01-01")  # As a restart does.
            bench.go.set()
            enqueue(queue, store, TRIALS)
            await until(lambda: worker.progress.done, 8)
        assert len(list(store.answers("r"))) == 8

    asyncio.run(main())
