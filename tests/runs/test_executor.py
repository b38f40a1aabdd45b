import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from foretell.forecasters.early_stop import early_stop
from foretell.models.waiting import PendingWork
from foretell.questions.as_of import instant
from foretell.questions.errors import DiskFull, InputError
from foretell.questions.forecast import Failure, Forecast, StopWish
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, ForecastMade, ModelCalled
from foretell.runs.executor import Executor, RunProgress
from foretell.runs.spec import QuestionsSpec, RunSpec, read_spec
from foretell.runs.store import RunStore, RunTrial, trials_of

QUESTIONS = [
    Question(id=f"q{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),)) for i in range(6)
]


@pytest.fixture
def store(place: Path | str) -> Iterator[RunStore]:
    opened = RunStore(place)
    yield opened
    opened.close()


def forecast_of(trial: RunTrial) -> Forecast:
    p = {"yes": 0.1 + trial.trial / 10}
    return Forecast(question_id=trial.question.id, forecaster="t", as_of=trial.question.as_of, p=p, trial=trial.trial)


async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast:
    emit(ModelCalled(role="agent", model="m", key=f"{trial.question.id}/{trial.trial}", dollars=0.5))
    await asyncio.sleep(0.001)
    forecast = forecast_of(trial)
    emit(ForecastMade(p=forecast.p, how="submitted"))
    return forecast


def test_every_trial_is_answered_once_and_stored(store: RunStore):
    progress = asyncio.run(Executor(store, concurrency=4).run(trials_of("r", QUESTIONS, 3), answer))
    assert (progress.done, progress.failed, progress.calls) == (18, 0, 18)
    assert len(list(store.answers("r"))) == 18
    kinds = [type(event).__name__ for _, _, event in store.events("r", "q3")]
    assert kinds.count("ForecastMade") == 3


def test_second_start_answers_only_missing_trials(store: RunStore):
    asyncio.run(Executor(store).run(trials_of("r", QUESTIONS[:2], 2), answer))
    seen: list[str] = []

    async def watched(trial: RunTrial, emit: EmitEvent) -> Forecast:
        seen.append(f"{trial.question.id}/{trial.trial}")
        return await answer(trial, emit)

    progress = asyncio.run(Executor(store).run(trials_of("r", QUESTIONS[:3], 2), watched))
    assert sorted(seen) == ["q2/0", "q2/1"]
    assert progress.skipped == 4


def test_crashed_trial_is_a_failure_and_is_retried(store: RunStore):

    async def breaks(trial: RunTrial, emit: EmitEvent) -> Forecast:
        if trial.question.id == "q1":
            raise RuntimeError("no luck")
        return await answer(trial, emit)

    progress = asyncio.run(Executor(store).run(trials_of("r", QUESTIONS[:3], 1), breaks))
    assert (progress.done, progress.failed) == (3, 1)
    failures = [a for a in store.answers("r") if isinstance(a, Failure)]
    assert [f.error for f in failures] == ["RuntimeError: no luck"]
    progress = asyncio.run(Executor(store).run(trials_of("r", QUESTIONS[:3], 1), answer))
    assert progress.skipped == 2
    assert not [a for a in store.answers("r") if isinstance(a, Failure)]


def test_events_of_an_unfinished_trial_are_rewritten(store: RunStore):
    trial = next(iter(trials_of("r", QUESTIONS, 1)))
    store.add_events([(trial.key, ModelCalled(role="agent", model="m", key="half"))])
    asyncio.run(Executor(store).run([trial], answer))
    keys = [event.key for _, _, event in store.events("r") if isinstance(event, ModelCalled)]
    assert keys == ["q0/0"]


def test_pending_work_is_stored_while_it_lasts_and_stays_after_a_crash(store: RunStore):
    (trial,) = trials_of("r", QUESTIONS[:1], 1)
    store.keep_pending_work({trial.key: "left by a crash"})
    seen: list[dict[str, Any]] = []

    async def searching(trial: RunTrial, emit: EmitEvent) -> Forecast:
        with PendingWork("tool", "web_search", "bridge vote"):
            while not seen:
                await asyncio.sleep(0.01)
                text = store.pending_work("r").get(trial.key, "")
                seen.extend(json.loads(text) if text.startswith("[") else ())
        return await answer(trial, emit)

    asyncio.run(Executor(store).run([trial], searching))
    assert [(work["name"], work["about"]) for work in seen] == [("web_search", "bridge vote")]
    assert store.pending_work() == {}
    # A trial that never waits removes what an earlier attempt left.
    store.forget_answers([trial.key])
    store.keep_pending_work({trial.key: "left by a crash"})
    asyncio.run(Executor(store).run([trial], answer))
    assert store.pending_work() == {}


def test_two_processes_share_the_trials(place: Path | str):
    """Two executors with their own connections, like two processes."""
    begun: list[str] = []

    async def slowly(trial: RunTrial, emit: EmitEvent) -> Forecast:
        begun.append(f"{trial.question.id}/{trial.trial}")
        await asyncio.sleep(0.02)
        return await answer(trial, emit)

    async def both(stores: list[RunStore]) -> list[RunProgress]:
        runs = [Executor(store, concurrency=2).run(trials_of("r", QUESTIONS, 3), slowly) for store in stores]
        return await asyncio.gather(*runs)

    stores = [RunStore(place), RunStore(place)]
    results = asyncio.run(both(stores))
    assert sorted(begun) == sorted(f"{q.id}/{trial}" for q in QUESTIONS for trial in range(3))
    assert [progress.done for progress in results] == [18, 18]
    assert all(0 < progress.calls < 18 for progress in results)
    assert len(list(stores[0].events("r"))) == 36
    assert stores[0].database.read("select * from tick") == []
    for store in stores:
        store.close()


def test_unfinished_trials_of_a_dead_process_are_taken_over(place: Path | str):
    trials = list(trials_of("r", QUESTIONS[:2], 1))
    begun = asyncio.Event()

    async def gets_stuck(trial: RunTrial, emit: EmitEvent) -> Forecast:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def both() -> RunProgress:
        first, second = RunStore(place), RunStore(place)
        stuck = asyncio.create_task(Executor(first).run(trials[:1], gets_stuck))
        await begun.wait()
        going_on = asyncio.create_task(Executor(second).run(trials, answer))
        await asyncio.sleep(0.3)
        assert not going_on.done()
        stuck.cancel()
        await asyncio.wait([stuck])
        first.close()
        progress = await going_on
        second.close()
        return progress

    assert asyncio.run(both()).done == 2


@pytest.mark.parametrize("wish", ["answer", "pause"])
def test_stopped_run_keeps_early_answers_and_leaves_the_rest_open(store: RunStore, wish: StopWish):
    begun: list[str] = []

    async def slow(trial: RunTrial, emit: EmitEvent) -> Forecast:
        clock = asyncio.timeout(60)
        begun.append(trial.question.id)
        emit(ModelCalled(role="agent", model="m", key=f"{trial.question.id}/{trial.trial}"))
        if trial.question.id == "q0":  # Has no answer yet and ignores the stop.
            await asyncio.sleep(60)
        with suppress(TimeoutError):
            async with clock:
                with early_stop().answers(clock):
                    await asyncio.sleep(60)
        return forecast_of(trial)

    async def stopped() -> RunProgress:
        working = asyncio.create_task(Executor(store, concurrency=2).run(trials_of("r", QUESTIONS[:4], 1), slow))
        while len(begun) < 2:
            await asyncio.sleep(0.05)
        await store.aside(store.ask_to_stop, "r", wish)
        return await working

    progress = asyncio.run(stopped())
    assert progress.early
    answered = [answer.question_id for answer in store.answers("r")]
    assert answered == (["q1"] if wish == "answer" else [])
    # Open trials keep their events for readers and start again when the run resumes.
    assert sorted(key.question for _, key, _ in store.events("r")) == ["q0", "q1"]
    store.begin("r", "{}", "2026-01-01")
    again = asyncio.run(Executor(store).run(trials_of("r", QUESTIONS[:4], 1), answer))
    assert (again.early, again.done, len(list(store.answers("r")))) == (False, 4, 4)


def test_watchers_see_progress_grow(store: RunStore):
    seen: list[int] = []

    def watch(progress: RunProgress) -> None:
        seen.append(progress.done)

    asyncio.run(Executor(store, watch=watch).run(trials_of("r", QUESTIONS, 1), answer))
    assert seen == sorted(seen)
    assert seen[-1] == 6


def test_two_trials_have_distinct_keys():
    keys = {trial.key for trial in trials_of("r", QUESTIONS, 2)}
    assert len(keys) == 12


def test_equal_specs_share_their_id_and_others_do_not():
    run_spec = RunSpec(questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:gpt"})
    assert run_spec.id == RunSpec(questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:gpt"}).id
    assert run_spec.id != RunSpec(questions=QuestionsSpec(dataset="demo"), models={"agent": "openai:other"}).id


def test_spec_must_be_a_text_file(tmp_path: Path):
    binary = tmp_path / "run.yaml"
    binary.write_bytes(b"\xff\xfe")
    for path, why in ((tmp_path, "cannot be read"), (binary, "is not UTF-8"), (tmp_path / "none", "no such file")):
        with pytest.raises(InputError, match=why):
            read_spec(path)


def test_invalid_spec_file_names_the_field(tmp_path: Path):
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


def test_full_disk_ends_the_run_with_one_error_and_no_failed_trial(tmp_path: Path):
    async def full(trial: RunTrial, emit: EmitEvent) -> Forecast:
        raise DiskFull("the disk is full", path="journal.db")

    store = RunStore(tmp_path / "runs.db")
    with pytest.raises(DiskFull, match=r"journal\.db: the disk is full"):
        asyncio.run(Executor(store, concurrency=3).run(trials_of("r", QUESTIONS, 1), full))
    assert list(store.answers("r")) == []
    assert asyncio.run(Executor(store).run(trials_of("r", QUESTIONS, 1), answer)).done == len(QUESTIONS)
    store.close()


def test_a_grid_given_as_a_run_is_named_with_its_command(tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text("name: a\nbase:\n  questions: demo\n", encoding="utf-8")
    with pytest.raises(InputError, match="describes a grid of runs, not one run") as error:
        read_spec(file)
    assert error.value.hint == f"foretell grid {file}"
