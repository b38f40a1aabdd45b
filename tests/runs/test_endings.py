"""How an answer ended is shown in every interface, in the exit code, in combinations and in files."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from foretell import ask
from foretell.models.model import ModelRefused, Reply, Request, ToolCall
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.runs.combine import CombinationSettings, combine_trials
from foretell.runs.executor import HOPELESS_AFTER, Executor
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore, RunTrial, TrialKey

BELIEF = {"p": 0.3, "reason": "A first guess.", "evidence_for": [], "evidence_against": []}


class BreaksAtTheSecondStep:
    """Gives an estimate with its first reply and fails with the second."""

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        if self.calls % 2 == 0:
            raise ModelRefused("the wire broke")
        arguments = json.dumps({"updated_belief": BELIEF})
        return Reply(calls=(ToolCall(id="c1", name="look_around", arguments=arguments),), finish="tool")


def test_estimate_before_a_failure_is_a_fallback(tmp_path: Path):
    result = ask("Will it rain in Oslo tomorrow?", model=BreaksAtTheSecondStep(), settings=Settings(home=tmp_path))
    assert result.p == {"yes": 0.3}
    assert result.forecast.fallback
    assert result.exit_code == 3
    assert "this is a fallback forecast: the wire broke" in " ".join(result.notes)
    assert result.to_dict()["ending"] == "fallback"


def test_fallback_trials_count_as_failed_by_default():
    question = Question(id="q", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),))
    common = {"question_id": "q", "forecaster": "agent", "as_of": question.as_of}
    sound = Forecast(p={"yes": 0.2}, **common)
    broken = Forecast(p={"yes": 0.9}, trial=1, ending="fallback", problem="no tool worked", **common)
    (combined,) = combine_trials([sound, broken], [question])
    assert (combined.p, combined.ending) == ({"yes": 0.2}, "submitted")
    assert combine_trials([broken], [question]) == []
    (both,) = combine_trials([sound, broken], [question], CombinationSettings(fallback=True))
    assert 0.2 < both.p["yes"] < 0.9
    assert (both.ending, both.problem) == ("fallback", "no tool worked")


def run_trials(count: int) -> list[RunTrial]:
    questions = [
        Question(id=f"q{n}", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),))
        for n in range(count)
    ]
    return [RunTrial(run="r", question=question, trial=0) for question in questions]


@pytest.mark.parametrize("alike", [True, False])
def test_hopeless_run_stops_with_its_reason(tmp_path: Path, alike: bool):
    answered: list[str] = []

    async def answer(trial: RunTrial, emit: object) -> Failure:
        answered.append(trial.question.id)
        reason = f"the key is not accepted after {len(answered)} s" if alike else f"{'x' * len(answered)} broke"
        return Failure(question_id=trial.question.id, forecaster="agent", as_of=trial.question.as_of, error=reason)

    with closing(RunStore(tmp_path / "runs.db")) as store:
        progress = asyncio.run(Executor(store, concurrency=2).run(run_trials(40), answer))
    assert (len(answered) <= HOPELESS_AFTER + 2) == alike
    assert ("the key is not accepted" in progress.stopped) == alike


def test_fallback_forecasts_are_retried(tmp_path: Path):
    (trial,) = run_trials(1)
    forecast = Forecast(
        question_id="q0", forecaster="a", as_of=trial.question.as_of, p={"yes": 0.5}, rationale='"ending":"fallback"'
    )
    broken = Forecast(**{**vars(forecast), "ending": "fallback", "problem": "cut off"})
    with closing(RunStore(tmp_path / "runs.db")) as store:
        store.start_trial(trial.key)
        store.finish_trial(trial.key, broken)
        assert store.finished("r") == set()
        assert not store.answered(trial.key)
        store.start_trial(trial.key)
        store.finish_trial(trial.key, forecast)
        assert len(store.finished("r")) == 1
        assert store.answered(TrialKey(**vars(trial.key)) if not hasattr(trial.key, "_fields") else trial.key)
