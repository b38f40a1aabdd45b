import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from foretell.metrics import (
    Bettor,
    crra_stakes,
    kalshi_fee,
    no_fee,
    normalised_price,
    proportional_fee,
)

probability = st.floats(0.01, 0.99)
price = st.floats(0.02, 0.98)
aversion = st.floats(0.2, 3)


def utility(wealth, gamma):
    log = np.log(np.maximum(wealth, 1e-30))
    return log if gamma == 1 else np.expm1((1 - gamma) * log) / (1 - gamma)


def expected(p, wealth_yes, wealth_no, gamma):
    return p * utility(wealth_yes, gamma) + (1 - p) * utility(wealth_no, gamma)


def best(objective):
    optimum = minimize_scalar(lambda a: -objective(a), bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    return max(-optimum.fun, objective(0.0), objective(1.0))


@settings(max_examples=60)
@given(p=probability, yes=price, no=price, gamma=aversion)
def test_closed_form_is_the_numeric_optimum(p, yes, no, gamma):
    a, b = (float(x[0]) for x in crra_stakes([p], [yes], [no], gamma))
    assert a + b == pytest.approx(1)
    ours = expected(p, a / yes, b / no, gamma)
    numeric = best(lambda x: expected(p, x / yes, (1 - x) / no, gamma))
    assert ours == pytest.approx(numeric, rel=1e-6, abs=1e-7)


def test_stakes_match_the_formula_of_the_paper():
    """Equation (6) of Prophet Arena C.3, evaluated as printed."""
    p, q, gamma = 0.6, 0.45, 0.5
    top = q ** (1 - 1 / gamma) * p ** (1 / gamma)
    bottom = (1 - q) ** (1 - 1 / gamma) * (1 - p) ** (1 / gamma)
    assert crra_stakes([p], [q], [1 - q], gamma)[0][0] == pytest.approx(top / (top + bottom))


def test_log_utility_stakes_equal_the_probabilities():
    p = np.array([0.0, 0.25, 1.0])
    yes, no = crra_stakes(p, [0.5, 0.9, 0.1], [0.6, 0.1, 0.9], 1.0)
    assert yes.tolist() == p.tolist()
    assert no.tolist() == (1 - p).tolist()


def test_risk_neutral_goes_all_in_and_ties_go_to_yes():
    yes, no = crra_stakes([0.6, 0.4, 0.5, 0.3], [0.5, 0.5, 0.5, 0.3], [0.5, 0.5, 0.5, 0.7], 0.0)
    assert yes.tolist() == [1, 0, 1, 1]
    assert no.tolist() == [0, 1, 0, 0]


def test_repeating_the_market_price_is_always_a_tie():
    """p = yes/(yes+no) has no edge; rounding must not decide the side."""
    cents = np.arange(1, 100) / 100
    yes, no = (grid.ravel() for grid in np.meshgrid(cents, cents))
    market = normalised_price(yes, no)
    assert (crra_stakes(market, yes, no, 0.0)[0] == 1).all()
    for gamma in (1e-15, 1e-3, 0.5):
        assert crra_stakes(market, yes, no, gamma)[0] == pytest.approx(yes / (yes + no))


@pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e-12, 1e-3, 0.5, 1.0, 5.0])
def test_stakes_stay_finite_at_the_edges(gamma):
    edges = [0.0, 1e-300, 1e-9, 0.5, 1 - 1e-9, 1.0]
    p, yes, no = (grid.ravel() for grid in np.meshgrid(edges, edges, edges))
    a, b = crra_stakes(p, yes, no, gamma)
    assert ((a >= 0) & (b >= 0) & (a + b <= 1 + 1e-12)).all()


def test_contracts_that_are_not_offered_are_not_bought():
    yes, no = crra_stakes([0.9, 0.9, 0.9], [0.0, 0.5, 0.0], [1.0, 0.0, 0.0], 0.0)
    assert yes.tolist() == [0, 1, 0]
    assert no.tolist() == [1, 0, 0]


def test_small_aversion_approaches_all_in():
    a = crra_stakes([0.51], [0.5], [0.5], 1e-4)[0][0]
    assert a == pytest.approx(1)
    assert crra_stakes([0.49], [0.5], [0.5], 1e-4)[0][0] == pytest.approx(0)


@settings(max_examples=50)
@given(low=probability, high=probability, yes=price, no=price, gamma=st.floats(0, 3))
def test_a_higher_probability_never_lowers_the_stake_on_yes(low, high, yes, no, gamma):
    low, high = sorted([low, high])
    (less, more), _ = crra_stakes([low, high], [yes, yes], [no, no], gamma)
    assert less <= more + 1e-9


@settings(max_examples=50)
@given(p=probability, yes=price, no=price, gamma=st.floats(0.01, 3))
def test_sides_are_symmetric(p, yes, no, gamma):
    assume(abs(p * no - (1 - p) * yes) > 1e-6)
    a, b = crra_stakes([p], [yes], [no], gamma)
    c, d = crra_stakes([1 - p], [no], [yes], gamma)
    assert (a[0], b[0]) == pytest.approx((d[0], c[0]), abs=1e-6)


def test_missing_prices_give_missing_stakes():
    a, b = crra_stakes([0.5, 0.9], [np.nan, 0.5], [0.5, 0.5], 0.5)
    assert np.isnan([a[0], b[0]]).all()
    assert np.isfinite([a[1], b[1]]).all()


def test_normalised_price_matches_a_hand_computation():
    price = normalised_price([0.6, 0.0, np.nan, 0.0], [0.6, 1.0, 0.5, 0.0])
    assert price[:2].tolist() == [0.5, 0]
    assert np.isnan(price[2:]).all()


def test_fees_match_a_hand_computation():
    ask = np.array([0.5, 0.9])
    assert no_fee(ask).tolist() == [0, 0]
    assert kalshi_fee(ask, 100).tolist() == pytest.approx([1.75, 0.63])
    assert proportional_fee(0.02)(ask, 10).tolist() == pytest.approx([0.1, 0.18])
    assert Bettor(fee=kalshi_fee).cost([0.5, 0.0, np.nan])[:2].tolist() == pytest.approx([0.5175, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crra_stakes([0.5], [0.5], [0.5], -1), "gamma"),
        (lambda: crra_stakes([0.5], [0.5], [0.5], np.nan), "gamma"),
        (lambda: crra_stakes([0.5], [-0.1], [0.5], 0), r"yes_price\[0\] = -0.1"),
        (lambda: crra_stakes([0.5, 0.5], [0.5], [0.5], 0), "shapes differ"),
        (lambda: crra_stakes([np.nan], [0.5], [0.5], 0), r"p\[0\] = nan"),
        (lambda: Bettor().stakes([0.5], [58], [44]), "yes_price.* lies above 1"),
        (lambda: proportional_fee(-0.1), "rate"),
    ],
)
def test_invalid_input_raises_an_error_that_names_it(call, message):
    with pytest.raises(ValueError, match=message):
        call()
