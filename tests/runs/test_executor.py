import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from foretell.forecasters.early_stop import StopWish, early_stop
from foretell.questions import (
    EmitEvent,
    Failure,
    Forecast,
    ForecastMade,
    InputError,
    ModelCalled,
    Question,
    Target,
    instant,
)
from foretell.questions.errors import DiskFull
from foretell.runs import Executor, QuestionsSpec, RunCell, RunProgress, RunSpec, RunStore, cells_of, read_spec

QUESTIONS = [
    Question(id=f"q{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),)) for i in range(6)
]


@pytest.fixture
def store(place: Path | str) -> Iterator[RunStore]:
    opened = RunStore(place)
    yield opened
    opened.close()


def forecast_of(cell: RunCell) -> Forecast:
    p = {"yes": 0.1 + cell.trial / 10}
    return Forecast(question_id=cell.question.id, forecaster="t", as_of=cell.question.as_of, p=p, trial=cell.trial)


async def answer(cell: RunCell, emit: EmitEvent) -> Forecast:
    emit(ModelCalled(role="agent", model="m", key=f"{cell.question.id}/{cell.trial}", dollars=0.5))
    await asyncio.sleep(0.001)
    found = forecast_of(cell)
    emit(ForecastMade(p=found.p, how="submitted"))
    return found


def test_every_cell_is_answered_once_and_kept(store: RunStore):
    progress = asyncio.run(Executor(store, concurrency=4).run(cells_of("r", QUESTIONS, 3), answer))
    assert (progress.done, progress.failed, progress.calls) == (18, 0, 18)
    assert len(list(store.answers("r"))) == 18
    kinds = [type(event).__name__ for _, _, event in store.events("r", "q3")]
    assert kinds.count("ForecastMade") == 3


def test_a_second_start_does_only_what_is_missing(store: RunStore):
    asyncio.run(Executor(store).run(cells_of("r", QUESTIONS[:2], 2), answer))
    seen: list[str] = []

    async def watched(cell: RunCell, emit: EmitEvent) -> Forecast:
        seen.append(f"{cell.question.id}/{cell.trial}")
        return await answer(cell, emit)

    progress = asyncio.run(Executor(store).run(cells_of("r", QUESTIONS[:3], 2), watched))
    assert sorted(seen) == ["q2/0", "q2/1"]
    assert progress.skipped == 4


def test_a_broken_cell_is_a_failure_and_is_tried_again_next_time(store: RunStore):

    async def breaks(cell: RunCell, emit: EmitEvent) -> Forecast:
        if cell.question.id == "q1":
            raise RuntimeError("no luck")
        return await answer(cell, emit)

    progress = asyncio.run(Executor(store).run(cells_of("r", QUESTIONS[:3], 1), breaks))
    assert (progress.done, progress.failed) == (3, 1)
    failures = [a for a in store.answers("r") if isinstance(a, Failure)]
    assert [f.error for f in failures] == ["RuntimeError: no luck"]
    progress = asyncio.run(Executor(store).run(cells_of("r", QUESTIONS[:3], 1), answer))
    assert progress.skipped == 2
    assert not [a for a in store.answers("r") if isinstance(a, Failure)]


def test_events_of_an_unfinished_cell_are_written_anew(store: RunStore):
    cell = next(iter(cells_of("r", QUESTIONS, 1)))
    store.add_events([(cell.key, ModelCalled(role="agent", model="m", key="half"))])
    asyncio.run(Executor(store).run([cell], answer))
    keys = [event.key for _, _, event in store.events("r") if isinstance(event, ModelCalled)]
    assert keys == ["q0/0"]


def test_two_processes_share_the_cells(place: Path | str):
    """Two that have the store open on their own, as two processes do."""
    begun: list[str] = []

    async def slowly(cell: RunCell, emit: EmitEvent) -> Forecast:
        begun.append(f"{cell.question.id}/{cell.trial}")
        await asyncio.sleep(0.02)
        return await answer(cell, emit)

    async def both(stores: list[RunStore]) -> list[RunProgress]:
        runs = [Executor(store, concurrency=2).run(cells_of("r", QUESTIONS, 3), slowly) for store in stores]
        return await asyncio.gather(*runs)

    stores = [RunStore(place), RunStore(place)]
    found = asyncio.run(both(stores))
    assert sorted(begun) == sorted(f"{q.id}/{trial}" for q in QUESTIONS for trial in range(3))
    assert [progress.done for progress in found] == [18, 18]
    assert all(0 < progress.calls < 18 for progress in found)
    assert len(list(stores[0].events("r"))) == 36
    assert stores[0].database.read("select * from tick") == []
    for store in stores:
        store.close()


def test_what_another_process_left_unfinished_is_taken_over(place: Path | str):
    cells = list(cells_of("r", QUESTIONS[:2], 1))
    begun = asyncio.Event()

    async def gets_stuck(cell: RunCell, emit: EmitEvent) -> Forecast:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def both() -> RunProgress:
        first, second = RunStore(place), RunStore(place)
        stuck = asyncio.create_task(Executor(first).run(cells[:1], gets_stuck))
        await begun.wait()
        going_on = asyncio.create_task(Executor(second).run(cells, answer))
        await asyncio.sleep(0.3)
        assert not going_on.done()
        stuck.cancel()
        await asyncio.wait([stuck])
        first.close()
        found = await going_on
        second.close()
        return found

    assert asyncio.run(both()).done == 2


@pytest.mark.parametrize("wish", ["answer", "pause"])
def test_a_run_that_is_stopped_keeps_early_answers_and_leaves_the_rest_open(store: RunStore, wish: StopWish):
    begun: list[str] = []

    async def slow(cell: RunCell, emit: EmitEvent) -> Forecast:
        clock = asyncio.timeout(60)
        begun.append(cell.question.id)
        emit(ModelCalled(role="agent", model="m", key=f"{cell.question.id}/{cell.trial}"))
        if cell.question.id == "q0":  # Has nothing to say yet, and does not listen.
            await asyncio.sleep(60)
        with suppress(TimeoutError):
            async with clock:
                with early_stop().answers(clock):
                    await asyncio.sleep(60)
        return forecast_of(cell)

    async def stopped() -> RunProgress:
        working = asyncio.create_task(Executor(store, concurrency=2).run(cells_of("r", QUESTIONS[:4], 1), slow))
        while len(begun) < 2:
            await asyncio.sleep(0.05)
        await store.aside(store.ask_to_stop, "r", wish)
        return await working

    progress = asyncio.run(stopped())
    assert progress.early
    answered = [answer.question_id for answer in store.answers("r")]
    assert answered == (["q1"] if wish == "answer" else [])
    # What stays open keeps its steps for readers, and starts anew when the run goes on.
    assert sorted(key.question for _, key, _ in store.events("r")) == ["q0", "q1"]
    store.begin("r", "{}", "2026-01-01")
    again = asyncio.run(Executor(store).run(cells_of("r", QUESTIONS[:4], 1), answer))
    assert (again.early, again.done, len(list(store.answers("r")))) == (False, 4, 4)


def test_watchers_see_progress_grow(store: RunStore):
    seen: list[int] = []

    def watch(progress: RunProgress) -> None:
        seen.append(progress.done)

    asyncio.run(Executor(store, watch=watch).run(cells_of("r", QUESTIONS, 1), answer))
    assert seen == sorted(seen)
    assert seen[-1] == 6


def test_two_trials_have_distinct_cells():
    keys = {cell.key for cell in cells_of("r", QUESTIONS, 2)}
    assert len(keys) == 12


def test_equal_specs_share_their_id_and_others_do_not():
    one = RunSpec(questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:gpt"})
    assert one.id == RunSpec(questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:gpt"}).id
    assert one.id != RunSpec(questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:other"}).id


def test_what_is_no_text_file_is_no_spec(tmp_path: Path):
    binary = tmp_path / "run.yaml"
    binary.write_bytes(b"\xff\xfe")
    for path, why in ((tmp_path, "cannot be read"), (binary, "is not UTF-8"), (tmp_path / "none", "no such file")):
        with pytest.raises(InputError, match=why):
            read_spec(path)


def test_a_spec_file_names_what_is_wrong(tmp_path: Path):
    path = tmp_path / "run.yaml"
    path.write_text("questions: demo\nmodels: {agent: 'scripted:x'}\ntrials: 3\nsearch: [local]\n")
    assert read_spec(path).trials == 3
    for text, place in {
        "questions: demo\ntrails: 3\n": "trails",
        "questions: demo\ntrials: many\n": "trials",
        "questions: demo\ntrials: 0\n": "trials = 0",
        "questions: [": "YAML",
    }.items():
        path.write_text(text)
        with pytest.raises(InputError) as error:
            read_spec(path)
        assert place in str(error.value)


def test_a_disk_that_is_full_ends_the_run_in_one_error_and_no_cell_counts_as_failed(tmp_path: Path):
    async def full(cell: RunCell, emit: EmitEvent) -> Forecast:
        raise DiskFull("the disk is full", path="journal.db")

    store = RunStore(tmp_path / "runs.db")
    with pytest.raises(DiskFull, match=r"journal\.db: the disk is full"):
        asyncio.run(Executor(store, concurrency=3).run(cells_of("r", QUESTIONS, 1), full))
    assert list(store.answers("r")) == []
    assert asyncio.run(Executor(store).run(cells_of("r", QUESTIONS, 1), answer)).done == len(QUESTIONS)
    store.close()
