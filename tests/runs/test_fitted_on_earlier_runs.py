"""The default rule of a run is fitted to earlier runs of the same forecaster and to nothing later."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from foretell.forecasters.combine.default import UNFITTED
from foretell.metrics.transforms import logit, sigmoid
from foretell.questions.forecast import TREE_WEIGHT, Forecast, Reconciliation
from foretell.questions.question import Question, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.runs.combine import DefaultByDay, combine_trials, combined_answers, combining_of_run, default_by_day
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.spec import QuestionsSpec, RunSpec
from foretell.runs.store import RunStore, TrialKey
from foretell.scoring.run_answers import final_forecasts
from foretell.scoring.run_scores import score_run

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
    resolutions: list[Resolution] = []
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
        key = TrialKey(run=spec.id, question=question.id, due=due.isoformat(), trial=0)
        store.start_trial(key)
        store.finish_trial(key, forecast)
        resolutions.append(
            Resolution(question_id=question.id, target_id="yes", due=due, outcome=outcome, resolved_at=ends)
        )
    store.keep_questions(spec.id, questions)
    RunOutcomes(store).keep(spec.id, questions, resolutions)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(tmp_path / "runs.db")) as opened:
        yield opened


def combined_p(store: RunStore, due: datetime, spec: RunSpec = SPEC) -> float:
    """Return the combined answer of a trial at 80 % where the price is 40 %."""
    question = market("new", due, 0.4)
    trial = Forecast(question_id="new", forecaster="agent", as_of=question.as_of, p={"yes": 0.8})
    return combine_trials([trial], [question], combining_of_run(store, spec))[0].p["yes"]


LATER = START + timedelta(days=14 * 30)
NEW = replace(SPEC, questions=QuestionsSpec(dataset="new.csv"))


def untaught(price: float = 0.4, trial: float = 0.8) -> float:
    """Return the answer of the unfitted rule: the price, moved a little towards the trial."""
    near = 1.5 * np.tanh((logit(trial) - logit(price)) / 1.5)
    return float(sigmoid(logit(price) + 0.2 * near))


def test_without_a_past_the_rule_is_unfitted(store: RunStore) -> None:
    assert default_by_day(store, NEW) is None
    assert combining_of_run(store, NEW).fitted is UNFITTED
    assert combined_p(store, LATER, NEW) == pytest.approx(untaught())


def test_weight_of_trials_depends_on_earlier_skill(store: RunStore) -> None:
    keep(store, SPEC, 1, right=True)
    other = replace(SPEC, models={"agent": "openai:b"})
    keep(store, other, 2, right=False)
    assert combined_p(store, LATER, NEW) > untaught() + 0.1
    wrong = replace(NEW, models={"agent": "openai:b"})
    assert combined_p(store, LATER, wrong) == pytest.approx(0.4, abs=0.02), (
        "a forecaster that never improved on the price has no weight"
    )
    nobody = replace(NEW, models={"agent": "openai:c"})
    assert combined_p(store, LATER, nobody) == pytest.approx(untaught()), "another model's skill is not its own"
    seer = replace(SPEC, leakage_filter=False, models={"agent": "openai:c"})
    keep(store, seer, 3, right=True)
    assert combined_p(store, LATER, nobody) == pytest.approx(untaught()), "runs without the leakage filter are not used"
    plain = replace(NEW, combine="logit-mean")
    assert combined_p(store, LATER, plain) == pytest.approx(0.8)


def test_later_outcomes_do_not_change_the_combination(store: RunStore, tmp_path: Path) -> None:
    keep(store, SPEC, 4, right=True)
    middle = START + timedelta(days=14 * 8)
    with closing(RunStore(tmp_path / "poisoned.db")) as poisoned:
        keep(poisoned, SPEC, 4, right=True, flip_after=middle.date())
        assert combined_p(poisoned, middle, NEW) == combined_p(store, middle, NEW) != pytest.approx(untaught())
        assert combined_p(poisoned, LATER, NEW) != combined_p(store, LATER, NEW)


def test_every_interface_combines_a_stored_run_by_the_same_rule(store: RunStore) -> None:
    keep(store, SPEC, 5, right=True)
    row = store.run(SPEC.id)
    assert row is not None
    questions = store.questions(SPEC.id)
    answers = list(store.answers(SPEC.id))
    final = {forecast.question_id: forecast.p["yes"] for forecast in final_forecasts(store, row, answers, questions)}
    how = combining_of_run(store, SPEC)
    assert isinstance(how.fitted, DefaultByDay)
    assert final == {forecast.question_id: forecast.p["yes"] for forecast in combine_trials(answers, questions, how)}
    first = next(answer for answer in answers if answer.question_id == f"{SPEC.id}-0")
    assert isinstance(first, Forecast)
    price = questions[[question.id for question in questions].index(f"{SPEC.id}-0")].targets[0].snapshot
    assert price is not None
    assert price.price is not None
    assert final[f"{SPEC.id}-0"] == pytest.approx(untaught(price.price, first.p["yes"])), (
        "nothing was known in the first round"
    )


def grown(question: Question, tree: float, direct: float, kind: str) -> Forecast:
    """Return a forecast with a tree beside the direct estimate."""
    both = Reconciliation(tree={"yes": tree}, direct={"yes": direct}, gap=0.0, kind=kind)
    return Forecast(
        question_id=question.id, forecaster="reason", as_of=question.as_of, p=both.combined(), reconciliation=both
    )


def keep_trees(store: RunStore, spec: RunSpec) -> None:
    """Sixty questions with a tree of each of two kinds: conjunctions were right, sums were wrong."""
    store.begin(spec.id, spec.to_json(), "2025-01-01T00:00:00+00:00")
    questions = [replace(market(f"t{n}", START, 0.5), source="mine") for n in range(120)]
    ends, resolutions = START + timedelta(days=7), list[Resolution]()
    for n, question in enumerate(questions):
        kind, outcome = ("all", "weigh")[n % 2], n // 2 % 2
        tree = 0.1 + 0.8 * (outcome if kind == "all" else 1 - outcome)
        key = TrialKey(run=spec.id, question=question.id, due=question.due.isoformat(), trial=0)
        store.start_trial(key)
        store.finish_trial(key, grown(question, tree, 0.5, kind))
        resolutions.append(
            Resolution(question_id=question.id, target_id="yes", due=START, outcome=outcome, resolved_at=ends)
        )
    store.keep_questions(spec.id, questions)
    RunOutcomes(store).keep(spec.id, questions, resolutions)


def test_the_weight_of_a_tree_is_learnt_by_the_kind_of_its_root(store: RunStore) -> None:
    spec = replace(SPEC, forecaster="reason")

    def weight(kind: str, due: datetime = LATER) -> float:
        question = replace(market("new", due, 0.5), source="mine")
        new = replace(spec, questions=QuestionsSpec(dataset="new.csv"))
        (answer,) = combined_answers([grown(question, 0.9, 0.5, kind)], [question], combining_of_run(store, new))
        assert answer.reconciliation is not None
        return answer.reconciliation.weight

    assert weight("all") == weight("weigh") == TREE_WEIGHT, "before there is a record"
    keep_trees(store, spec)
    assert weight("weigh") < TREE_WEIGHT < weight("all")
    assert weight("weigh") < weight("any") < weight("all"), "a kind without a record counts as all trees do"
    assert weight("all", START) == TREE_WEIGHT, "nothing later than the question is used"


AUTO = replace(NEW, combine="auto")


def test_auto_is_the_default_rule_from_the_start(store: RunStore) -> None:
    assert RunSpec(questions=NEW.questions).combine == "auto"
    assert combined_p(store, LATER, AUTO) == combined_p(store, LATER, NEW) == pytest.approx(untaught())
    keep(store, replace(SPEC, combine="auto"), 1, right=True)
    strong = combined_p(store, LATER, AUTO)
    assert untaught() + 0.1 < strong < 0.8, "a strong agent keeps most of its lead"
    assert strong == combined_p(store, LATER, NEW)
    assert combined_p(store, START + timedelta(days=7), AUTO) == pytest.approx(untaught()), "no outcome was known then"
    keep(store, replace(SPEC, models={"agent": "openai:b"}), 2, right=False)
    weak = replace(AUTO, models={"agent": "openai:b"})
    assert combined_p(store, LATER, weak) == pytest.approx(0.4, abs=0.02), "a weak agent leaves the price unchanged"


def test_the_weight_of_a_strong_agent_rises_with_its_past(store: RunStore) -> None:
    keep(store, replace(SPEC, combine="auto"), 1, right=True)
    rule = default_by_day(store, AUTO)
    assert rule is not None
    row = rule.examples.rows.take(np.array([0]))

    def weight(rounds: int) -> float:
        return float(
            rule.on(np.datetime64(START.date()) + np.timedelta64(14 * rounds, "D")).market.weight_of_trials(row)[0]
        )

    weights = [weight(rounds) for rounds in (1, 4, 8, 12)]
    assert weights[0] == pytest.approx(UNFITTED.market.weight_of_trials(row)[0])
    assert weights == sorted(weights)
    assert weights[-1] > 0.5


def test_answer_explains_the_weights(store: RunStore) -> None:
    def reasons(spec: RunSpec) -> str:
        question = market("new", LATER, 0.4)
        trial = Forecast(question_id="new", forecaster="agent", as_of=question.as_of, p={"yes": 0.8})
        return combine_trials([trial], [question], combining_of_run(store, spec))[0].rationale

    for spec in (AUTO, NEW):
        weights = "The trials count 14 % and the market price 86 %. This forecaster has no track record yet"
        assert weights in reasons(spec)
    keep(store, replace(SPEC, combine="auto"), 1, right=True)
    assert "earlier outcomes, learned weights changed the Brier score by −0." in reasons(AUTO)
    assert "of what was learned is used" in reasons(AUTO)


def test_flipped_later_outcomes_change_no_answer_of_a_run_that_names_no_rule(store: RunStore, tmp_path: Path) -> None:
    middle = START + timedelta(days=14 * 8)
    spec = replace(SPEC, combine="auto")
    keep(store, spec, 4, right=True)
    with closing(RunStore(tmp_path / "poisoned.db")) as poisoned:
        keep(poisoned, spec, 4, right=True, flip_after=middle.date())
        answers = []
        for each_store in (store, poisoned):
            row = each_store.run(spec.id)
            assert row is not None
            early = [question for question in each_store.questions(spec.id) if question.due <= middle]
            ids = {question.id for question in early}
            own_answers = [answer for answer in each_store.answers(spec.id) if answer.question_id in ids]
            answers.append(
                [(forecast.p, forecast.rationale) for forecast in final_forecasts(each_store, row, own_answers, early)]
            )
        assert answers[0] == answers[1]
        assert combined_p(poisoned, LATER, AUTO) != combined_p(store, LATER, AUTO)


def test_the_board_shows_the_trials_and_the_combined_answers(store: RunStore) -> None:
    spec = replace(SPEC, combine="auto")
    keep(store, spec, 5, right=True)
    row = store.run(spec.id)
    assert row is not None
    scores = score_run(store, row)
    assert scores.board is not None
    names = {score.forecaster for score in scores.board.scores}
    assert {"this run", "this run, combined"} <= names
    assert scores.combined is not None
    assert "by the default rule" in scores.rule
    trials = {answer.question_id: answer.p["yes"] for answer in store.answers(spec.id) if isinstance(answer, Forecast)}
    shown = {answer.question.id: answer.targets[0].p for answer in scores.answers}
    assert all(shown[f"{spec.id}-{n}"] != trials[f"{spec.id}-{n}"] for n in (0, 479))
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


def test_forecaster_without_a_model_is_not_combined_with_the_price(store: RunStore) -> None:
    spec = replace(SPEC, forecaster="model_free", models={}, combine="auto")
    keep(store, spec, 1, right=True)
    assert combined_p(store, LATER, replace(AUTO, forecaster="model_free", models={})) == pytest.approx(0.8)


def test_stored_answers_are_used_until_earlier_runs_change_or_they_are_damaged(store: RunStore) -> None:
    spec = replace(SPEC, combine="auto")
    keep(store, spec, 5, right=True)

    def answers() -> list[float | None]:
        row = store.run(spec.id)
        assert row is not None
        return [answer.targets[0].p for answer in score_run(store, row).answers]

    def stored() -> list[tuple[object, ...]]:
        return [tuple(row) for row in store.database.read("select run, seen, answers from run_combined")]

    fresh, kept = answers(), stored()
    assert len(kept) == 1
    assert answers() == fresh
    assert stored() == kept
    store.database.write("update run_combined set answers = replace(answers, '0.', '0.0')")
    assert answers() == fresh, "damaged answers are computed again"
    keep(store, replace(spec, questions=QuestionsSpec(dataset="other.csv")), 6, right=False)
    assert answers() != fresh, "the rule learns from the other run"
    assert stored() != kept
