"""Training and test sets: groups left out, past rounds only, and one round against another."""

import numpy as np
import pytest
from benchmarks.blf_study import leave_last_out

from foretell.forecasters.combine.calibration import HierarchicalPlatt, Platt
from foretell.forecasters.combine.crossfit import GROUPINGS, across, groups_by, later_splits, leave_one_out, rolling
from foretell.forecasters.combine.rules import ChainedMethod, TrainingOverlap
from foretell.forecasters.combine.shrink import Shrink


def test_groups_are_numbered_by_sorted_values_of_each_grouping(make):
    examples = make(
        np.full((1, 4), 0.5), [0, 1, 0, 1], question=["b", "a", "b", "b"], day=[0, 0, 0, 7], source=["x", "y", "x", "x"]
    )
    groups = {by: groups_by(examples, by).tolist() for by in GROUPINGS}
    assert groups["event"] == [0, 1, 2, 3]
    assert groups["question"] == groups["cluster"] == [1, 0, 1, 1]
    assert groups["asking"] == [1, 0, 1, 2]
    assert groups["due"] == groups["resolved_on"] == [0, 0, 0, 1]
    assert groups["source"] == [0, 1, 0, 0]
    with pytest.raises(ValueError, match="by = 'colour' is not one of event, question"):
        groups_by(examples, "colour")


def test_question_is_left_out_with_all_its_events(world):
    examples = world(80)
    p = leave_one_out(Platt(), examples)
    mine = examples.rows.question == examples.rows.question[3]
    rule = Platt().fit(examples.take(~mine))
    assert p[mine] == pytest.approx(rule.probabilities(examples.rows.take(mine)), abs=1e-8)
    assert leave_one_out(Platt(), examples, by="event") != pytest.approx(p, abs=1e-6)


def test_leave_last_out_refits_only_the_last_stage(world):
    examples = world(80)
    chain = ChainedMethod(methods=(Shrink(), HierarchicalPlatt()))
    shrunk = examples.rows.with_trials(Shrink().fit(examples).probabilities(examples.rows))
    by_hand = leave_one_out(HierarchicalPlatt(), type(examples)(**{**vars(examples), "rows": shrunk}), by="event")
    assert leave_last_out(chain, examples) == pytest.approx(by_hand)
    assert leave_last_out(ChainedMethod(methods=()), examples) == pytest.approx(examples.rows.raw)


def test_rolling_uses_only_outcomes_known_before_each_round(make):
    examples = make(np.linspace(0.1, 0.9, 6)[None], [0, 1, 0, 1, 0, 1], after=10, day=[0, 0, 10, 10, 11, 30])
    result = rolling(Platt(), examples)
    # Known on day 10 is not known before day 10.
    assert result.past.tolist() == [0, 0, 0, 0, 2, 5]
    assert result.p[:4] == pytest.approx(examples.rows.raw[:4])
    rule = Platt().fit(examples.take(np.arange(2)))
    assert result.p[4] == pytest.approx(rule.probabilities(examples.rows)[4])


def test_later_rounds_are_tested_by_what_was_known_before_them(make):
    examples = make(np.full((1, 6), 0.5), [0, 1, 0, 1, 0, 1], after=10, day=[0, 0, 10, 10, 11, 30])
    splits = [(np.flatnonzero(past).tolist(), np.flatnonzero(later).tolist()) for past, later in later_splits(examples)]
    assert splits == [([0, 1], [4]), ([0, 1, 2, 3, 4], [5])], "nothing was known before day 10"


@pytest.mark.parametrize(("questions", "folds"), [(12, 5), (3, 3), (1, 0)])
def test_a_single_round_is_split_into_folds_of_whole_questions(make, questions, folds):
    question = np.repeat([f"q{i}" for i in range(questions)], 2)
    examples = make(np.full((1, 2 * questions), 0.5), np.tile([0, 1], questions), question=question)
    splits = list(later_splits(examples))
    assert len(splits) == folds
    for train, test in splits:
        assert (train == ~test).all()
        assert test.any()
        assert not set(question[train]) & set(question[test])
    if folds:
        assert np.sum([test for _, test in splits], axis=0).tolist() == [1] * (2 * questions)


def test_certain_trials_are_allowed_and_impossible_ones_are_not(make_rows):
    assert make_rows([[0.0, 1.0, np.nan]]).trials.shape == (1, 3)
    for p in (-0.01, 1.01):
        with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
            make_rows([[0.5, p]])


def test_rolling_uses_the_fallback_without_a_past(make):
    examples = make([[0.2, 0.3]], [0, 1], price=0.9, day=[0, 1])
    assert rolling(ChainedMethod(), examples, fallback=lambda rows: rows.price).p.tolist() == [0.9, 0.9]


def test_rolling_ignores_an_answer_known_before_its_question_was_asked(make):
    examples = make([[0.2, 0.3, 0.4]], [0, 1, 1], after=-1, day=[5, 5, 9])
    assert rolling(Platt(), examples).past.tolist() == [0, 0, 2]


def test_rule_of_an_earlier_round_applies_to_a_later_one_but_not_the_reverse(world):
    early, late = world(60, seed=1), world(60, seed=2)
    late.rows.due[:] += np.timedelta64(30, "D")
    late.rows.target[:] = [f"u{i}" for i in range(60)]
    forward = across(Platt(), early, late, check="time")
    assert forward == pytest.approx(Platt().fit(early).probabilities(late.rows))
    assert np.isfinite(across(Platt(), late, early)).all()
    with pytest.raises(TrainingOverlap, match="was asked before"):
        across(Platt(), late, early, check="time")


def test_target_in_both_rounds_is_left_out_of_training(make):
    early = make([[0.2, 0.4, 0.6, 0.8]], [0, 1, 0, 1], question=["a", "b", "c", "d"])
    late = make([[0.3]], [1], question=["b"], day=30)
    other = make([[0.2, 0.6, 0.8]], [0, 0, 1], question=["a", "c", "d"])
    assert across(Platt(), early, late) == pytest.approx(Platt().fit(other).probabilities(late.rows))


def test_applying_a_rule_to_its_training_askings_raises_an_error(make):
    examples = make([[0.2, 0.4]], [0, 1], target=["x", "y"], question="a")
    with pytest.raises(TrainingOverlap, match="a@2025-01-05 is among"):
        across(Platt(), examples.take(np.array([0])), examples.take(np.array([1])))
