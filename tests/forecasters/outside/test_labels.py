from datetime import date

import numpy as np
import pytest

from foretell.forecasters.base_rates.outside_model import fit_price_correction, training_targets
from foretell.forecasters.base_rates.text_features import features_of_past

NOW = date(2025, 6, 1)
DATED = {"due": "2025-01-01", "text": "Will it rain by 1 April 2025?"}
AHEAD = {"due": "2025-01-01", "text": "Will it rain by 1 December 2025?"}
STILL = {"due": "2025-01-01", "text": "Will it stay dry until 1 December 2025?"}
YES = {"outcome": 1.0, "known_on": "2025-02-01"}
NO = {"outcome": 0.0, "known_on": "2025-04-02"}


def targets_of(bank):
    past = bank.before(NOW)
    return training_targets(past, features_of_past(past), np.ones(len(past)), NOW)


def test_outcome_is_the_target_once_its_deadline_is_over(bank_of) -> None:
    targets, _ = targets_of(bank_of([DATED | YES, DATED | NO]))
    assert targets.target.tolist() == [1.0, 0.0]
    assert targets.weight.tolist() == [1.0, 1.0]


def test_early_yes_does_not_replace_the_price(bank_of) -> None:
    # Early answers are mostly yes, so they would raise every base rate.
    early, _ = targets_of(bank_of([AHEAD | YES | {"price": 0.3}]))
    waiting, _ = targets_of(bank_of([AHEAD | {"price": 0.3}]))
    assert early.target.tolist() == pytest.approx([0.3])
    assert waiting.target.tolist() == pytest.approx([0.3])


def test_target_is_the_mean_of_price_and_outcome_if_both_are_known(bank_of) -> None:
    targets, correction = targets_of(bank_of([DATED | NO | {"price": 0.3}]))
    assert targets.weight.tolist() == [2.0]
    assert targets.target[0] == pytest.approx(float(correction.of(np.array([0.3]))[0]) / 2)


def test_without_a_price_the_horizon_is_the_elapsed_time(bank_of) -> None:
    targets, _ = targets_of(bank_of([AHEAD, AHEAD | YES, STILL, STILL | {"outcome": 0.0, "known_on": "2025-03-01"}]))
    assert targets.target.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert [s.days for s in targets.seen] == [151.0] * 4


def test_questions_without_price_or_usable_outcome_are_left_out(bank_of) -> None:
    undecided = {"due": "2025-01-01", "text": "Will Ada win?"}
    overdue = DATED | {"text": "Will it rain by 1 March 2025?"}
    targets, _ = targets_of(bank_of([undecided, overdue, undecided | YES]))
    assert targets.row.tolist() == [False, False, True]


def test_prices_are_corrected_only_with_enough_evidence() -> None:
    fair = fit_price_correction(np.full(4, 0.3), np.array([0.0, 0.0, 1.0, 0.0]), np.ones(4))
    assert abs(fair.shift) < 0.05
    assert abs(fair.slope - 1) < 0.05
    high = fit_price_correction(np.full(2000, 0.3), np.zeros(2000), np.ones(2000))
    assert high.of(np.array([0.3]))[0] < 0.02
