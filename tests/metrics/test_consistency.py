import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import chain_gap, exclusivity_score, logical_chain_score

chain = st.lists(st.floats(0, 1), min_size=2, max_size=8)


def test_chain_score_matches_a_hand_computation():
    """Prophet Arena Eq. 9: one of two steps holds in the first chain, both in the second."""
    assert logical_chain_score([[0.3, 0.2, 0.4], [0.1, 0.1, 0.9]]) == pytest.approx(0.75)


def test_equal_probabilities_along_a_chain_are_consistent():
    assert logical_chain_score([[0.1 + 0.2, 0.3]]) == 1


def test_chain_gap_spans_steps():
    assert chain_gap([0.5, 0.45, 0.4]) == pytest.approx(0.1)


@settings(max_examples=60)
@given(p=chain)
def test_gap_is_zero_exactly_when_all_steps_hold(p):
    assert chain_gap(sorted(p)) == 0
    assert logical_chain_score([sorted(p)]) == 1
    assert 0 <= logical_chain_score([p]) <= 1
    brute = max(max(0.0, p[s] - p[t]) for t in range(len(p)) for s in range(t + 1))
    assert chain_gap(p) == pytest.approx(brute)


def test_exclusivity_score_matches_a_hand_computation():
    p, event = [0.5, 0.3, 0.2, 0.6, 0.43, 0.9], ["a", "a", "a", "b", "b", "c"]
    assert exclusivity_score(p, event) == pytest.approx(1 / 3)
    assert exclusivity_score(p, event, tolerance=0.03) == pytest.approx(2 / 3)
    assert exclusivity_score([0.1] * 10, ["e"] * 10, tolerance=0) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: logical_chain_score([]), "nothing to score"),
        (lambda: logical_chain_score([[0.5, 0.6], [0.5]]), r"chains\[1\] needs at least two"),
        (lambda: logical_chain_score([[0.5, 1.5]]), r"chains\[0\]\[1\] = 1.5"),
        (lambda: exclusivity_score([0.5], ["a"], tolerance=-1), "tolerance"),
        (lambda: exclusivity_score([0.5, 0.5], ["a"]), "shapes differ"),
    ],
)
def test_invalid_input_raises_an_error_that_names_it(call, message):
    with pytest.raises(ValueError, match=message):
        call()
