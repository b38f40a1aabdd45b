"""A worker within this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing

import pytest

from foretell.models.database import SessionLiveness
from foretell.questions import EmitEvent, Forecast, ForecastMade, InputError, Question, Target, instant
from foretell.runs import (
    AnswerCell,
    CellQueue,
    RunCell,
    RunRow,
    RunStore,
    Worker,
    WorkerCapacity,
    WorkerSignals,
    cells_of,
    enqueue,
)

QUESTIONS = [
    Question(id=f"q{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),)) for i in range(4)
]
CELLS = list(cells_of("r", QUESTIONS, 2))


class Bench:
    """Answers when it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go = asyncio.Event()
        self.begun: list[str] = []
        self.asked = self.opened = 0
        self._error = error

    @asynccontextmanager
    async def furnish(self, row: RunRow) -> AsyncGenerator[AnswerCell]:
        self.asked += 1
        if self._error:
            raise self._error
        self.opened += 1
        yield self._answer
        self.opened -= 1

    async def _answer(self, cell: RunCell, emit: EmitEvent) -> Forecast:
        self.begun.append(f"{cell.question.id}/{cell.trial}")
        await self.go.wait()
        emit(ForecastMade(p={"yes": 0.5}, how="submitted"))
        return Forecast(
            question_id=cell.question.id, forecaster="t", as_of=cell.question.as_of, p={"yes": 0.5}, trial=cell.trial
        )


@asynccontextmanager
async def at_work(url: str, bench: Bench) -> AsyncGenerator[tuple[RunStore, CellQueue, Worker, WorkerSignals]]:
    with closing(RunStore(url)) as store, closing(await asyncio.to_thread(CellQueue, url)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        enqueue(queue, store, CELLS)
        life = store.database.life
        assert isinstance(life, SessionLiveness)
        worker, orders = Worker(url, store, life, bench.furnish), WorkerSignals()
        serving = asyncio.create_task(worker.serve(WorkerCapacity(here=3), orders))
        try:
            yield store, queue, worker, orders
        finally:
            orders.rest.set()
            await serving


async def until(found: object, wanted: object) -> None:
    async with asyncio.timeout(30):
        while found() != wanted:
            await asyncio.sleep(0.05)


def test_cells_are_answered_so_many_at_once_and_told_once(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            await asyncio.sleep(0.6)
            assert len(bench.begun) == 3
            bench.go.set()
            await until(lambda: worker.progress.done, 8)
            await until(lambda: len(queue.open_cells()), 0)
            assert len(list(store.answers("r"))) == 8
            assert len(list(store.events("r"))) == 8
            assert bench.opened == 1
        assert bench.opened == 0

    asyncio.run(main())


def test_the_number_of_another_worker_is_not_ours(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (_, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            assert await asyncio.to_thread(lambda: queue.open_for(everywhere=None, first=False)) is None
            await asyncio.sleep(1.5)
            # Neither begun nor taken away from those who have room.
            assert (len(bench.begun), len(queue.held())) == (3, 3)
            assert await asyncio.to_thread(lambda: queue.take("another", 50)) == 5
            assert (len(queue.held(["another"])), len(queue.held())) == (5, 8)
            queue.put_back(["another"], queue.held(["another"]))
            bench.go.set()
            await until(lambda: worker.progress.done, 8)

    asyncio.run(main())


def test_a_cap_over_all_stands_until_somebody_names_another(postgres: str):
    with closing(CellQueue(postgres)) as queue:
        assert queue.everywhere() is None
        assert queue.open_for(everywhere=3, first=True) == 3
        assert queue.open_for(everywhere=None, first=False) == 3
        assert queue.open_for(everywhere=7, first=False) == 7
        assert queue.everywhere() == 7
        assert queue.open_for(everywhere=None, first=True) is None


def test_cells_that_others_took_over_are_let_go(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            held = queue.held()
            queue.put_back([held[0].executor], held)
            assert await asyncio.to_thread(lambda: queue.take("other", 3)) == 3
            # Nobody called so lives: the cells are put back, let go, and taken again.
            await until(lambda: len(bench.begun), 6)
            bench.go.set()
            await until(lambda: len(queue.open_cells()), 0)
            assert len(list(store.events("r"))) == 8
            assert worker.progress.done == 8

    asyncio.run(main())


def test_in_a_hurry_everything_goes_back(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, _, orders):
            await until(lambda: len(bench.begun), 3)
            orders.leave.set()
            await until(lambda: len(queue.held()), 0)
            assert len(queue.open_cells()) == 8
            assert list(store.answers("r")) == []

    asyncio.run(main())


def test_one_who_cannot_serve_gives_back_what_it_took(postgres: str):
    async def main() -> None:
        bench = Bench(InputError("no key"))
        with pytest.raises(InputError, match="no key"):
            async with at_work(postgres, bench):
                await until(lambda: bench.asked, 1)
        with closing(CellQueue(postgres)) as queue:
            assert len(queue.open_cells()) == 8
            assert queue.held() == []

    asyncio.run(main())


def test_a_run_that_is_paused_ends_at_its_workers_and_goes_on_later(postgres: str):
    async def main() -> None:
        bench = Bench()
        async with at_work(postgres, bench) as (store, queue, worker, _):
            await until(lambda: len(bench.begun), 3)
            store.ask_to_stop("r", "pause")
            await until(lambda: len(queue.open_cells()), 0)
            assert (len(bench.begun), worker.progress.done, list(store.answers("r"))) == (3, 0, [])
            store.begin("r", "{}", "2026-01-01")  # As starting it again does.
            bench.go.set()
            enqueue(queue, store, CELLS)
            await until(lambda: worker.progress.done, 8)
        assert len(list(store.answers("r"))) == 8

    asyncio.run(main())
