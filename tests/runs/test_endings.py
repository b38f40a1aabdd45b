"""How an answer came about is told: at every door, in the exit code, in combinations and in files."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from foretell import ask
from foretell.models import ModelRefused, Reply, Request, ToolCall
from foretell.questions import Failure, Forecast, Question, Target
from foretell.runs import CellKey, CombinationSettings, Executor, RunCell, RunStore, Settings, combine_trials
from foretell.runs.executor import HOPELESS_AFTER

BELIEF = {"p": 0.3, "reason": "A first guess.", "evidence_for": [], "evidence_against": []}


class BreaksAtTheSecondStep:
    """States a belief with its first reply, and is gone with the second."""

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        if self.calls % 2 == 0:
            raise ModelRefused("the wire broke")
        arguments = json.dumps({"updated_belief": BELIEF})
        return Reply(calls=(ToolCall(id="c1", name="look_around", arguments=arguments),), finish="tool")


def test_a_guess_before_a_failure_is_no_success(tmp_path: Path):
    result = ask("Will it rain in Oslo tomorrow?", model=BreaksAtTheSecondStep(), settings=Settings(home=tmp_path))
    assert result.p == {"yes": 0.3}
    assert result.forecast.degraded
    assert result.exit_code == 3
    assert "it rests on a failure: the wire broke" in " ".join(result.notes)
    assert result.to_dict()["ending"] == "degraded"


def test_degraded_trials_count_as_failed_unless_asked_for():
    question = Question(id="q", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),))
    common = {"question_id": "q", "forecaster": "agent", "as_of": question.as_of}
    sound = Forecast(p={"yes": 0.2}, **common)
    broken = Forecast(p={"yes": 0.9}, trial=1, ending="degraded", problem="no tool worked", **common)
    (combined,) = combine_trials([sound, broken], [question])
    assert (combined.p, combined.ending) == ({"yes": 0.2}, "submitted")
    assert combine_trials([broken], [question]) == []
    (both,) = combine_trials([sound, broken], [question], CombinationSettings(degraded=True))
    assert 0.2 < both.p["yes"] < 0.9
    assert (both.ending, both.problem) == ("degraded", "no tool worked")


def cells(count: int) -> list[RunCell]:
    questions = [
        Question(id=f"q{n}", source="own", text="?", due="2026-01-01", targets=(Target(id="yes"),))
        for n in range(count)
    ]
    return [RunCell(run="r", question=question, trial=0) for question in questions]


@pytest.mark.parametrize("alike", [True, False])
def test_a_run_that_cannot_succeed_stops_and_says_why(tmp_path: Path, alike: bool):
    asked: list[str] = []

    async def answer(cell: RunCell, emit: object) -> Failure:
        asked.append(cell.question.id)
        reason = f"the key is not accepted after {len(asked)} s" if alike else f"{'x' * len(asked)} broke"
        return Failure(question_id=cell.question.id, forecaster="agent", as_of=cell.question.as_of, error=reason)

    with closing(RunStore(tmp_path / "runs.db")) as store:
        progress = asyncio.run(Executor(store, concurrency=2).run(cells(40), answer))
    assert (len(asked) <= HOPELESS_AFTER + 2) == alike
    assert ("the key is not accepted" in progress.stopped) == alike


def test_what_rests_on_a_failure_is_tried_anew(tmp_path: Path):
    (cell,) = cells(1)
    forecast = Forecast(
        question_id="q0", forecaster="a", as_of=cell.question.as_of, p={"yes": 0.5}, rationale='"ending":"degraded"'
    )
    broken = Forecast(**{**vars(forecast), "ending": "degraded", "problem": "cut off"})
    with closing(RunStore(tmp_path / "runs.db")) as store:
        store.start_cell(cell.key)
        store.finish_cell(cell.key, broken)
        assert store.finished("r") == set()
        assert not store.answered(cell.key)
        store.start_cell(cell.key)
        store.finish_cell(cell.key, forecast)
        assert len(store.finished("r")) == 1
        assert store.answered(CellKey(**vars(cell.key)) if not hasattr(cell.key, "_fields") else cell.key)
