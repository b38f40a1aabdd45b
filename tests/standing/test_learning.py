"""Confirmed outcomes of standing questions are the past of later combinations, out of time."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.standing.made_record import BEGAN, DAY, MadeQuestion

from fakes.stored_run import StoredRunBuilder
from foretell.forecasters.combine.default import FEWEST, MARKETS
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.question import Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.runs.combine import default_by_day
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json
from foretell.runs.store import RunStore, TrialKey
from foretell.standing.confirm import confirm
from foretell.standing.learning import keep_outcomes, learnt_weights
from foretell.standing.record_report import learnt_text
from foretell.standing.store import StandingStore

COUNT = 90


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(tmp_path / "runs.db")) as runs:
        yield runs


def spec_of(number: int) -> RunSpec:
    return RunSpec(questions=QuestionsSpec(dataset=f"asked {number}"), models={"agent": "openai:made-up"}, mode="live")


def keep(runs: RunStore, made: MadeQuestion, *, p: float, price: float) -> str:
    """Store a question with the run that answered it first; return the id of the run."""
    standing, store, spec = made.standing(), StandingStore(runs.database), spec_of(made.number)
    at = made.opened + timedelta(seconds=1)
    target = Target(id="yes", resolves_at=made.closes, snapshot=Snapshot(at=made.opened, last_price=price))
    question = replace(standing.question, due=at, targets=(target,), source="manifold")
    runs.begin(spec.id, spec.to_json(), at.isoformat())
    runs.keep_questions(spec.id, [question])
    forecast = Forecast(
        question_id=question.id, forecaster="reason", as_of=AsOf(at=at, mode="live"), p={"yes": p}, rationale="Why."
    )
    runs.finish_trial(TrialKey(run=spec.id, question=question.id, due=question.due.isoformat(), trial=0), forecast)
    assert store.open(standing, made.opened)
    for look, belief in made.looks():
        store.add_look(made.id, look, None, belief=belief and replace(belief, run=spec.id))
    return spec.id


def test_a_confirmed_outcome_is_that_of_its_run(runs: RunStore):
    made = MadeQuestion(number=1, came=True, path=(0.4, 0.6))
    run, store = keep(runs, made, p=0.4, price=0.5), StandingStore(runs.database)
    assert keep_outcomes(runs, store.record(made.id)) == 0
    store.add_proposal(made.id, replace(made.proposal(), at=made.closes - DAY, readings=()))
    confirm(store, made.id, "proposed", made.closes + 2 * DAY)
    assert keep_outcomes(runs, store.record(made.id)) == 1
    assert keep_outcomes(runs, store.record(made.id)) == 0
    (outcome,) = RunOutcomes(runs).of(run)
    assert (outcome.outcome, outcome.resolved_at) == (1, made.closes - DAY)
    # If the user withdraws it, it is not learnt from.
    confirm(store, made.id, "not-yet", made.closes + 3 * DAY)
    assert keep_outcomes(runs, store.record(made.id)) == 1
    assert RunOutcomes(runs).of(run) == []


def test_own_outcomes_change_the_trust_in_ones_own_view_out_of_time(runs: RunStore):
    store, rng = StandingStore(runs.database), np.random.default_rng(3)
    for number in range(COUNT):
        # The own view is right, and the price says little.
        came = bool(rng.random() < 0.5)
        made = MadeQuestion(number=number, came=came, path=(0.5, 0.5), days=20)
        keep(runs, made, p=0.9 if came else 0.1, price=0.5 + 0.1 * float(rng.normal()) / 2)
        confirm(store, made.id, "yes" if came else "no", made.closes + DAY)
        keep_outcomes(runs, store.record(made.id))
    records = [store.record(question.id) for question in store.questions()]
    (weight,) = learnt_weights(runs, records, BEGAN + 400 * DAY)
    assert (weight.name, weight.start, weight.n) == ("Own view against the price", MARKETS.start, COUNT)
    assert weight.now > weight.start
    assert "→" in learnt_text(weight)
    assert "earlier outcomes" in weight.why
    # Before most outcomes were known, there is not enough yet.
    (before,) = learnt_weights(runs, records, BEGAN + 60 * DAY)
    assert (before.now, before.enough, before.n < FEWEST) == (MARKETS.start, False, True)
    assert learnt_text(before) == f"0.20, not enough outcomes yet: {before.n} of about {2 * FEWEST}"
    # The same rule combines the trials of the next question.
    rule = default_by_day(runs, spec_of(0))
    assert rule is not None
    assert rule.on(np.datetime64("2027-06-01")).market.trust == pytest.approx(weight.now)


def test_without_a_model_nothing_is_learnt(runs: RunStore):
    store = StandingStore(runs.database)
    MadeQuestion(number=1, came=True, path=(0.4, 0.6)).keep(store)
    record = store.record("made-01")
    assert keep_outcomes(runs, record) == 0
    assert learnt_weights(runs, [record], datetime(2027, 1, 1, tzinfo=UTC)) == ()


def test_earlier_runs_are_read_once_until_something_is_written(runs: RunStore, monkeypatch: pytest.MonkeyPatch):
    run = StoredRunBuilder(questions=2, trials=1).keep(runs)
    asked = StoredRunBuilder(questions=2, trials=1).asked()
    undated = [Resolution(question_id=one.id, target_id="yes", due=one.due, outcome=1) for one in asked]
    RunOutcomes(runs).keep(run, asked, undated[:1])
    row, read = runs.run(run), list[str]()
    assert row is not None
    answers = RunStore.answers

    def counted(store: RunStore, run: str):
        read.append(run)
        return answers(store, run)

    monkeypatch.setattr(RunStore, "answers", counted)
    for _ in range(3):
        assert default_by_day(runs, spec_from_json(row.spec)) is None
    assert read == [run]
    dated = [replace(one, resolved_at=datetime(2026, 8, 1, tzinfo=UTC)) for one in undated]
    for question in asked:
        RunOutcomes(runs).withdraw(run, question.id)
    RunOutcomes(runs).keep(run, asked, dated)
    assert default_by_day(runs, spec_from_json(row.spec)) is not None
    assert read == [run, run]
