"""A run followed from outside, while somebody else answers its cells."""

import asyncio
from contextlib import closing

from foretell.questions import EmitEvent, Forecast, ModelCalled, Question, Target, instant
from foretell.runs import CellQueue, Executor, RunCell, RunFollower, RunProgress, RunStore, cells_of, panel_cells

QUESTIONS = [
    Question(id=f"q{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),)) for i in range(3)
]


async def answer(cell: RunCell, emit: EmitEvent) -> Forecast:
    emit(ModelCalled(role="agent", model="m", key="k", dollars=0.5))
    if cell.question.id == "q1":
        raise RuntimeError("no luck")
    return Forecast(question_id=cell.question.id, forecaster="t", as_of=cell.question.as_of, p={"yes": 0.5})


def test_done_failed_and_calls_add_up_over_trials_and_panel(postgres: str):
    seen: list[tuple[int, int]] = []

    def watch(progress: RunProgress) -> None:
        seen.append((progress.done, progress.total))

    async def follow(store: RunStore, queue: CellQueue) -> RunProgress:
        following = RunFollower(queue=queue, store=store, watch=watch)
        for cells in (list(cells_of("r", QUESTIONS, 2)), list(panel_cells("r", QUESTIONS, 2))):
            followed = asyncio.create_task(following.until_ended(cells))
            while len(queue.open_cells()) < len(cells):
                await asyncio.sleep(0.05)
            # Not through the queue: what counts is what the store says.
            await Executor(store).run(cells, answer)
            queue.drop(queue.open_cells())
            await followed
        return following.progress

    with closing(RunStore(postgres)) as store, closing(CellQueue(postgres)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        found = asyncio.run(follow(store, queue))
    assert (found.total, found.done, found.failed, found.skipped) == (9, 9, 3, 0)
    assert found.calls == 9
    assert seen[-1] == (9, 9)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
