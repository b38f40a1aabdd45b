"""Who may learn from what: groups left out, rounds past only, one round judged by another."""

import numpy as np
import pytest

from foretell.forecasters.combine import (
    GROUPINGS,
    ChainedMethod,
    HierarchicalPlatt,
    Platt,
    Shrink,
    TrainingOverlap,
    across,
    groups_by,
    leave_last_out,
    leave_one_out,
    rolling,
)


def test_groups(make):
    examples = make(
        np.full((1, 4), 0.5), [0, 1, 0, 1], question=["b", "a", "b", "b"], day=[0, 0, 0, 7], source=["x", "y", "x", "x"]
    )
    found = {by: groups_by(examples, by).tolist() for by in GROUPINGS}
    assert found["event"] == [0, 1, 2, 3]
    assert found["question"] == found["cluster"] == [1, 0, 1, 1]
    assert found["asking"] == [1, 0, 1, 2]
    assert found["due"] == found["resolved_on"] == [0, 0, 0, 1]
    assert found["source"] == [0, 1, 0, 0]
    with pytest.raises(ValueError, match="by = 'colour' is not one of event, question"):
        groups_by(examples, "colour")


def test_a_question_is_left_out_with_all_its_events(world):
    examples = world(80)
    p = leave_one_out(Platt(), examples)
    mine = examples.rows.question == examples.rows.question[3]
    rule = Platt().fit(examples.take(~mine))
    assert p[mine] == pytest.approx(rule.probabilities(examples.rows.take(mine)), abs=1e-8)
    assert leave_one_out(Platt(), examples, by="event") != pytest.approx(p, abs=1e-6)


def test_only_the_last_stage_leaves_out(world):
    examples = world(80)
    chain = ChainedMethod(methods=(Shrink(), HierarchicalPlatt()))
    shrunk = examples.rows.with_trials(Shrink().fit(examples).probabilities(examples.rows))
    by_hand = leave_one_out(HierarchicalPlatt(), type(examples)(**{**vars(examples), "rows": shrunk}), by="event")
    assert leave_last_out(chain, examples) == pytest.approx(by_hand)
    assert leave_last_out(ChainedMethod(methods=()), examples) == pytest.approx(examples.rows.raw)


def test_rolling_uses_what_was_known_before(make):
    examples = make(np.linspace(0.1, 0.9, 6)[None], [0, 1, 0, 1, 0, 1], after=10, day=[0, 0, 10, 10, 11, 30])
    found = rolling(Platt(), examples)
    # Known on day 10 is not known before day 10.
    assert found.past.tolist() == [0, 0, 0, 0, 2, 5]
    assert found.p[:4] == pytest.approx(examples.rows.raw[:4])
    rule = Platt().fit(examples.take(np.arange(2)))
    assert found.p[4] == pytest.approx(rule.probabilities(examples.rows)[4])


def test_rolling_can_start_with_something_else(make):
    examples = make([[0.2, 0.3]], [0, 1], price=0.9, day=[0, 1])
    assert rolling(ChainedMethod(), examples, fallback=lambda rows: rows.price).p.tolist() == [0.9, 0.9]


def test_an_answer_older_than_its_question_teaches_nobody_about_it(make):
    examples = make([[0.2, 0.3, 0.4]], [0, 1, 1], after=-1, day=[5, 5, 9])
    assert rolling(Platt(), examples).past.tolist() == [0, 0, 2]


def test_across_rounds(world):
    early, late = world(60, seed=1), world(60, seed=2)
    late.rows.due[:] += np.timedelta64(30, "D")
    late.rows.target[:] = [f"u{i}" for i in range(60)]
    forward = across(Platt(), early, late, check="time")
    assert forward == pytest.approx(Platt().fit(early).probabilities(late.rows))
    assert np.isfinite(across(Platt(), late, early)).all()
    with pytest.raises(TrainingOverlap, match="was asked before"):
        across(Platt(), late, early, check="time")


def test_a_target_in_both_rounds_is_not_learnt_from(make):
    early = make([[0.2, 0.4, 0.6, 0.8]], [0, 1, 0, 1], question=["a", "b", "c", "d"])
    late = make([[0.3]], [1], question=["b"], day=30)
    other = make([[0.2, 0.6, 0.8]], [0, 0, 1], question=["a", "c", "d"])
    assert across(Platt(), early, late) == pytest.approx(Platt().fit(other).probabilities(late.rows))


def test_its_own_askings_are_refused(make):
    examples = make([[0.2, 0.4]], [0, 1], target=["x", "y"], question="a")
    with pytest.raises(TrainingOverlap, match="a@2025-01-05 is among"):
        across(Platt(), examples.take(np.array([0])), examples.take(np.array([1])))
