"""A run is followed while another process answers its trials."""

import asyncio
from contextlib import closing

from foretell.questions.as_of import instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, ModelCalled
from foretell.runs.executor import Executor, RunProgress
from foretell.runs.store import RunStore, RunTrial, panel_trials, trials_of
from foretell.runs.trial_queue import RunFollower, TrialQueue

QUESTIONS = [
    Question(id=f"q{i}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),)) for i in range(3)
]


async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast:
    emit(ModelCalled(role="agent", model="m", key=f"{trial.question.id}/{trial.trial}", dollars=0.5))
    if trial.question.id == "q1":
        raise RuntimeError("no luck")
    return Forecast(question_id=trial.question.id, forecaster="t", as_of=trial.question.as_of, p={"yes": 0.5})


def test_done_failed_and_calls_add_up_over_trials_and_panel(postgres: str):
    seen: list[tuple[int, int]] = []

    def watch(progress: RunProgress) -> None:
        seen.append((progress.done, progress.total))

    async def follow(store: RunStore, queue: TrialQueue) -> RunProgress:
        following = RunFollower(queue=queue, store=store, watch=watch)
        for trials in (list(trials_of("r", QUESTIONS, 2)), list(panel_trials("r", QUESTIONS, 2))):
            followed = asyncio.create_task(following.until_ended(trials))
            while len(queue.open_trials()) < len(trials):
                await asyncio.sleep(0.05)
            # Not through the queue, because the follower reads the store.
            await Executor(store).run(trials, answer)
            queue.drop(queue.open_trials())
            await followed
        return following.progress

    with closing(RunStore(postgres)) as store, closing(TrialQueue(postgres)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        progress = asyncio.run(follow(store, queue))
    assert (progress.total, progress.done, progress.failed, progress.skipped) == (9, 9, 3, 0)
    assert progress.calls == 9
    assert seen[-1] == (9, 9)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
