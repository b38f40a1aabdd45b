from datetime import date

import numpy as np
import pytest

from foretell.forecasters.base_rates.outside_model import fit_price_correction, lessons
from foretell.forecasters.base_rates.text_features import features_of_past

NOW = date(2025, 6, 1)
DATED = {"due": "2025-01-01", "text": "Will it rain by 1 April 2025?"}
AHEAD = {"due": "2025-01-01", "text": "Will it rain by 1 December 2025?"}
STILL = {"due": "2025-01-01", "text": "Will it stay dry until 1 December 2025?"}
YES = {"outcome": 1.0, "known_on": "2025-02-01"}
NO = {"outcome": 0.0, "known_on": "2025-04-02"}


def taught(bank):
    past = bank.before(NOW)
    return lessons(past, features_of_past(past), np.ones(len(past)), NOW)


def test_an_outcome_counts_once_its_deadline_is_over(bank_of) -> None:
    found, _ = taught(bank_of([DATED | YES, DATED | NO]))
    assert found.target.tolist() == [1.0, 0.0]
    assert found.weight.tolist() == [1.0, 1.0]


def test_an_early_yes_does_not_move_a_price(bank_of) -> None:
    # Otherwise early answers, which are mostly yes, would raise every base rate.
    early, _ = taught(bank_of([AHEAD | YES | {"price": 0.3}]))
    waiting, _ = taught(bank_of([AHEAD | {"price": 0.3}]))
    assert early.target.tolist() == pytest.approx([0.3])
    assert waiting.target.tolist() == pytest.approx([0.3])


def test_price_and_outcome_share_a_lesson_when_both_are_there(bank_of) -> None:
    found, worth = taught(bank_of([DATED | NO | {"price": 0.3}]))
    assert found.weight.tolist() == [2.0]
    assert found.target[0] == pytest.approx(float(worth.of(np.array([0.3]))[0]) / 2)


def test_without_a_price_the_time_elapsed_is_the_horizon(bank_of) -> None:
    found, _ = taught(bank_of([AHEAD, AHEAD | YES, STILL, STILL | {"outcome": 0.0, "known_on": "2025-03-01"}]))
    assert found.target.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert [s.days for s in found.seen] == [151.0] * 4


def test_what_teaches_nothing_is_left_out(bank_of) -> None:
    undecided = {"due": "2025-01-01", "text": "Will Ada win?"}
    overdue = DATED | {"text": "Will it rain by 1 March 2025?"}
    found, _ = taught(bank_of([undecided, overdue, undecided | YES]))
    assert found.row.tolist() == [False, False, True]


def test_prices_are_believed_until_they_are_refuted() -> None:
    fair = fit_price_correction(np.full(4, 0.3), np.array([0.0, 0.0, 1.0, 0.0]), np.ones(4))
    assert abs(fair.shift) < 0.05
    assert abs(fair.slope - 1) < 0.05
    high = fit_price_correction(np.full(2000, 0.3), np.zeros(2000), np.ones(2000))
    assert high.of(np.array([0.3]))[0] < 0.02
