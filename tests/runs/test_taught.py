"""The default way of combining in a run: taught by earlier runs of the same forecaster, and by nothing later."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from foretell.forecasters.combine import UNTAUGHT, sigmoid
from foretell.questions import Forecast, Question, Resolution, Snapshot, Target
from foretell.runs import CellKey, QuestionsSpec, RunOutcomes, RunSpec, RunStore, combine_trials, combining_of_run
from foretell.runs.taught import DefaultByDay, past_trials
from foretell.scoring import final_forecasts

SPEC = RunSpec(questions=QuestionsSpec(dataset="past.csv"), models={"agent": "openai:a"}, combine="default")
START = datetime(2025, 1, 5, tzinfo=UTC)


def market(id: str, due: datetime, price: float) -> Question:
    snapshot = Snapshot(at=due, last_price=price)
    target = Target(id="yes", resolves_at=due + timedelta(days=7), snapshot=snapshot)
    return Question(id=id, source="manifold", text="?", due=due, targets=(target,), closes_at=due + timedelta(days=7))


def keep(store: RunStore, spec: RunSpec, seed: int, *, right: bool, flip_after: date | None = None) -> None:
    """Twelve rounds of forty questions, in which the trials, or the prices, were right."""
    rng = np.random.default_rng(seed)
    store.begin(spec.id, spec.to_json(), "2025-01-01T00:00:00+00:00")
    questions: list[Question] = []
    told: list[Resolution] = []
    for n in range(480):
        due = START + timedelta(days=14 * (n // 40))
        z, a = rng.normal(0, 1.5, 2)
        question = market(f"{spec.id}-{n}", due, float(sigmoid(a)))
        outcome = int(rng.random() < sigmoid(z if right else a))
        ends = due + timedelta(days=7)
        outcome = 1 - outcome if flip_after is not None and ends.date() >= flip_after else outcome
        questions.append(question)
        forecast = Forecast(
            question_id=question.id, forecaster="agent", as_of=question.as_of, p={"yes": float(sigmoid(z))}
        )
        key = CellKey(run=spec.id, question=question.id, due=due.isoformat(), trial=0)
        store.start_cell(key)
        store.finish_cell(key, forecast)
        told.append(Resolution(question_id=question.id, target_id="yes", due=due, outcome=outcome, resolved_at=ends))
    store.keep_questions(spec.id, questions)
    RunOutcomes(store).keep(spec.id, questions, told)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(tmp_path / "runs.db")) as opened:
        yield opened


def said(store: RunStore, due: datetime, spec: RunSpec = SPEC) -> float:
    """What comes of a trial that says 80 % where the price is 40 %."""
    question = market("new", due, 0.4)
    trial = Forecast(question_id="new", forecaster="agent", as_of=question.as_of, p={"yes": 0.8})
    return combine_trials([trial], [question], combining_of_run(store, spec))[0].p["yes"]


LATER = START + timedelta(days=14 * 30)
NEW = replace(SPEC, questions=QuestionsSpec(dataset="new.csv"))


def untaught(price: float = 0.4) -> float:
    """The price as it is."""
    return price


def test_without_a_past_the_rule_is_the_untaught_one(store: RunStore) -> None:
    assert past_trials(store, NEW) is None
    assert combining_of_run(store, NEW).fitted is UNTAUGHT
    assert said(store, LATER, NEW) == pytest.approx(untaught())


def test_a_forecaster_that_was_right_is_believed_and_one_that_was_wrong_is_not(store: RunStore) -> None:
    keep(store, SPEC, 1, right=True)
    other = replace(SPEC, models={"agent": "openai:b"})
    keep(store, other, 2, right=False)
    assert said(store, LATER, NEW) > untaught() + 0.1
    wrong = replace(NEW, models={"agent": "openai:b"})
    assert said(store, LATER, wrong) == pytest.approx(untaught(), abs=0.02), (
        "who never added to the price changes nothing"
    )
    nobody = replace(NEW, models={"agent": "openai:c"})
    assert said(store, LATER, nobody) == pytest.approx(untaught()), "another model's skill is not its own"
    seer = replace(SPEC, clairvoyant=True, models={"agent": "openai:c"})
    keep(store, seer, 3, right=True)
    assert said(store, LATER, nobody) == pytest.approx(untaught()), "who saw the future teaches nothing"
    plain = replace(NEW, combine="logit-mean")
    assert said(store, LATER, plain) == pytest.approx(0.8)


def test_outcomes_that_were_known_later_change_nothing(store: RunStore, tmp_path: Path) -> None:
    keep(store, SPEC, 4, right=True)
    middle = START + timedelta(days=14 * 8)
    with closing(RunStore(tmp_path / "poisoned.db")) as poisoned:
        keep(poisoned, SPEC, 4, right=True, flip_after=middle.date())
        assert said(poisoned, middle, NEW) == said(store, middle, NEW) != pytest.approx(untaught())
        assert said(poisoned, LATER, NEW) != said(store, LATER, NEW)


def test_every_door_reads_a_stored_run_by_the_same_rule(store: RunStore) -> None:
    keep(store, SPEC, 5, right=True)
    row = store.run(SPEC.id)
    assert row is not None
    questions = store.questions(SPEC.id)
    answers = list(store.answers(SPEC.id))
    found = {one.question_id: one.p["yes"] for one in final_forecasts(store, row, answers, questions)}
    how = combining_of_run(store, SPEC)
    assert isinstance(how.fitted, DefaultByDay)
    assert found == {one.question_id: one.p["yes"] for one in combine_trials(answers, questions, how)}
    first = next(one for one in answers if one.question_id == f"{SPEC.id}-0")
    assert isinstance(first, Forecast)
    price = questions[[one.id for one in questions].index(f"{SPEC.id}-0")].targets[0].snapshot
    assert price is not None
    assert price.price is not None
    assert found[f"{SPEC.id}-0"] == pytest.approx(untaught(price.price)), "the first round knew nothing"
