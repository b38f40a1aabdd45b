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
from foretell.runs.combine import DefaultByDay, default_by_day
from foretell.scoring import final_forecasts, score_run

SPEC = RunSpec(questions=QuestionsSpec(dataset="past.csv"), models={"agent": "openai:a"}, combine="default")
START = datetime(2025, 1, 5, tzinfo=UTC)


def market(id: str, due: datetime, price: float) -> Question:
    snapshot = Snapshot(at=due, last_price=price)
    target = Target(id="yes", resolves_at=due + timedelta(days=7), snapshot=snapshot)
    return Question(id=id, source="manifold", text="?", due=due, targets=(target,), closes_at=due + timedelta(days=7))


def keep(
    store: RunStore, spec: RunSpec, seed: int, *, right: bool, flip_after: date | None = None, each: int = 40
) -> None:
    """Twelve rounds of `each` questions, in which the trials, or the prices, were right."""
    rng = np.random.default_rng(seed)
    store.begin(spec.id, spec.to_json(), "2025-01-01T00:00:00+00:00")
    questions: list[Question] = []
    told: list[Resolution] = []
    for n in range(12 * each):
        due = START + timedelta(days=14 * (n // each))
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
    assert default_by_day(store, NEW) is None
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


AUTO = replace(NEW, combine="auto")


def test_by_default_a_run_answers_with_its_trials_until_a_past_has_tested_how_far_to_trust_them(
    store: RunStore,
) -> None:
    assert RunSpec(questions=NEW.questions).combine == "auto"
    assert said(store, LATER, AUTO) == pytest.approx(0.8)
    keep(store, replace(SPEC, combine="auto"), 1, right=True)
    strong = said(store, LATER, AUTO)
    assert untaught() + 0.1 < strong < 0.8, "a strong agent keeps most of its lead"
    assert strong == said(store, LATER, NEW), "with a tested past it is the default rule"
    assert said(store, START + timedelta(days=7), AUTO) == pytest.approx(0.8), "that day knew of no outcome"
    keep(store, replace(SPEC, models={"agent": "openai:b"}), 2, right=False)
    weak = replace(AUTO, models={"agent": "openai:b"})
    assert said(store, LATER, weak) == pytest.approx(untaught(), abs=0.02), "a weak one leaves the price as it is"


def test_the_weight_of_a_strong_agent_rises_with_its_past(store: RunStore) -> None:
    keep(store, replace(SPEC, combine="auto"), 1, right=True)
    rule = default_by_day(store, AUTO)
    assert rule is not None
    row = rule.examples.rows.take(np.array([0]))

    def weight(rounds: int) -> float:
        return float(
            rule.on(np.datetime64(START.date()) + np.timedelta64(14 * rounds, "D")).market.weight_of_trials(row)[0]
        )

    found = [weight(rounds) for rounds in (1, 4, 8, 12)]
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] > 0.5


def test_the_answer_says_what_counted_and_why(store: RunStore) -> None:
    def reasons(spec: RunSpec) -> str:
        question = market("new", LATER, 0.4)
        trial = Forecast(question_id="new", forecaster="agent", as_of=question.as_of, p={"yes": 0.8})
        return combine_trials([trial], [question], combining_of_run(store, spec))[0].rationale

    assert reasons(AUTO) == "", "the trial alone"
    assert "The trials count 0% and the market price 100%. This forecaster has no track record yet" in reasons(NEW)
    keep(store, replace(SPEC, combine="auto"), 1, right=True)
    assert "earlier outcomes, learned weights changed the Brier score by -0." in reasons(AUTO)
    assert "of what was learned is used" in reasons(AUTO)


def test_flipped_later_outcomes_change_no_answer_of_a_run_that_names_no_rule(store: RunStore, tmp_path: Path) -> None:
    middle = START + timedelta(days=14 * 8)
    spec = replace(SPEC, combine="auto")
    keep(store, spec, 4, right=True)
    with closing(RunStore(tmp_path / "poisoned.db")) as poisoned:
        keep(poisoned, spec, 4, right=True, flip_after=middle.date())
        answers = []
        for one in (store, poisoned):
            row = one.run(spec.id)
            assert row is not None
            early = [question for question in one.questions(spec.id) if question.due <= middle]
            ids = {question.id for question in early}
            kept = [answer for answer in one.answers(spec.id) if answer.question_id in ids]
            answers.append([(said.p, said.rationale) for said in final_forecasts(one, row, kept, early)])
        assert answers[0] == answers[1]
        assert said(poisoned, LATER, AUTO) != said(store, LATER, AUTO)


def test_the_board_shows_the_trials_and_the_combined_answers(store: RunStore) -> None:
    spec = replace(SPEC, combine="auto")
    keep(store, spec, 5, right=True)
    row = store.run(spec.id)
    assert row is not None
    scores = score_run(store, row)
    assert scores.board is not None
    names = {one.forecaster for one in scores.board.scores}
    assert {"this run", "this run, combined"} <= names
    assert scores.combined is not None
    assert "where earlier outcomes have tested it" in scores.rule
    trials = {one.question_id: one.p["yes"] for one in store.answers(spec.id) if isinstance(one, Forecast)}
    shown = {one.question.id: one.targets[0].p for one in scores.answers}
    assert shown[f"{spec.id}-0"] == trials[f"{spec.id}-0"]
    assert shown[f"{spec.id}-479"] != trials[f"{spec.id}-479"]
    by_name = replace(SPEC, combine="logit-mean")
    keep(store, by_name, 5, right=True)
    row = store.run(by_name.id)
    assert row is not None
    alone = score_run(store, row)
    assert alone.combined is None
    assert alone.rule == "Answers are the average of the trials (the mean of their log-odds)."
    assert alone.index is not None
    assert scores.index is not None
    assert alone.index.estimate == pytest.approx(scores.index.estimate), "a run is scored by its trials"


def test_a_forecaster_without_a_model_stands_as_it_is(store: RunStore) -> None:
    spec = replace(SPEC, forecaster="stack", models={}, combine="auto")
    keep(store, spec, 1, right=True)
    assert said(store, LATER, replace(AUTO, forecaster="stack", models={})) == pytest.approx(0.8)
