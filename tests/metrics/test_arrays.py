import numpy as np
import pytest

from foretell.metrics import as_probabilities, as_vector, as_weights, group_sums
from foretell.metrics.arrays import as_distributions, as_floats, as_outcomes, as_pairs, same_shape


@pytest.mark.parametrize("outcome", [[True, False], [1, 0], [1.0, 0.0], np.array([1, 0], dtype=np.int8)])
def test_outcomes_of_any_type_become_floats(outcome):
    array = as_outcomes(outcome)
    assert array.dtype == np.float64
    assert array.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: as_probabilities([0.1, np.nan]), r"p\[1\] = nan is missing"),
        (lambda: as_probabilities([0.1, None]), r"p\[1\] = nan is missing"),
        (lambda: as_probabilities([0.1, -0.2, 1.2]), r"p\[1\] = -0.2 lies outside"),
        (lambda: as_probabilities([[0.1, 0.2], [0.3, 2.0]]), r"p\[1, 1\] = 2.0"),
        (lambda: as_probabilities(1.5, "price"), "price = 1.5 lies outside"),
        (lambda: as_probabilities(["a lot"]), "p must be numbers"),
        (lambda: as_probabilities([np.inf]), "inf lies outside"),
        (lambda: as_outcomes([0, 1, 1.5]), r"outcome\[2\] = 1.5 lies outside"),
        (lambda: as_weights([1, 2], 3), "weight has length 2, expected 3"),
        (lambda: as_weights([1, -1], 2), r"weight\[1\] = -1.0"),
        (lambda: as_weights([1, np.inf], 2), r"weight\[1\] = inf"),
        (lambda: as_weights([0, 0], 2), "weight sums to zero"),
        (lambda: as_weights(None, 0), "nothing to score"),
        (lambda: as_vector([[1.0]], "score"), "score must be one-dimensional"),
        (lambda: as_floats([[1, 2], [3]], "x"), "x must be numbers without gaps"),
        (lambda: as_pairs([0.5, 0.5], [1]), r"shapes differ: p \(2,\), outcome \(1,\)"),
        (lambda: as_distributions([[0.5, 0.6]]), r"sum of p\[0\] = 1.1 is not 1"),
        (lambda: as_distributions([[np.nan, np.nan]]), "non-empty matrix"),
        (lambda: same_shape(a=np.ones(1), b=np.ones(2)), "shapes differ"),
    ],
)
def test_invalid_input_raises_an_error_that_names_it(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_missing_outcome_raises():
    for missing in (np.nan, None):
        with pytest.raises(ValueError, match=r"outcome\[1\] = nan is missing"):
            as_pairs([0.2, 0.4], [1, missing])


def test_scoring_nothing_raises():
    for check in (as_probabilities, as_outcomes):
        with pytest.raises(ValueError, match="nothing to score"):
            check([])


def test_group_sums_keeps_empty_groups():
    assert group_sums(np.array([3, 3]), np.array([1.0, 2.0]), 5).tolist() == [0, 0, 0, 3, 0]
