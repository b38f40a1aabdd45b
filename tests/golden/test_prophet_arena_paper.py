"""The examples of Prophet Arena's appendices C.4 to C.8, computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from foretell.metrics import METRICS, Bettor, MetricRows, Resampling, bootstrap_score, brier, crra_stakes, ece, payoff

HALF = 0.5


def test_c4_better_calibrated_forecaster_may_have_the_worse_brier_score():
    """Chances 0.9 and 0.1; Alice says 1 and 0, Bob 0.5 twice. In expectation, as weights on the four outcomes."""
    outcome, chance = np.array([1, 0, 1, 0]), np.array([0.9, 0.1, 0.1, 0.9])
    alice, bob = np.array([1.0, 1.0, 0.0, 0.0]), np.full(4, 0.5)
    assert np.average(brier(alice, outcome), weights=chance) == pytest.approx(0.1)
    assert np.average(brier(bob, outcome), weights=chance) == pytest.approx(0.25)
    assert ece(alice, outcome, chance) == pytest.approx(0.1)
    assert ece(bob, outcome, chance) == pytest.approx(0.0)


@pytest.mark.parametrize("error", [0.01, 0.1, 0.3])
def test_c4_log_bettor_loses_everything_after_a_certain_and_wrong_forecast(error):
    """Forecaster A says 0 or 1 and errs rarely; B is calibrated at 2/3 and 0. Contracts cost 0.5."""
    a, outcome_a = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1, 0, 0, 1])
    chance_a = np.array([1 - error, 1 - error, error, error]) / 2
    b, outcome_b, chance_b = np.array([2 / 3, 2 / 3, 0.0]), np.array([1, 0, 0]), np.array([0.5, 0.25, 0.25])
    assert chance_a @ brier(a, outcome_a) == pytest.approx(error)
    assert chance_b @ brier(b, outcome_b) == pytest.approx(1 / 6)
    # The paper squares the gaps here; by its own definition (3) they are absolute: ε, not ε²/2.
    assert ece(a, outcome_a, chance_a) == pytest.approx(error)
    assert ece(b, outcome_b, chance_b) == pytest.approx(0, abs=1e-12)
    log = Bettor(gamma=1.0)
    wealth_a = payoff(a, outcome_a, np.full(4, HALF), np.full(4, HALF), log)
    wealth_b = payoff(b, outcome_b, np.full(3, HALF), np.full(3, HALF), log)
    assert wealth_a.min() == 0
    assert wealth_b.tolist() == pytest.approx([4 / 3, 2 / 3, 2])
    given_two_thirds = np.array([2 / 3, 1 / 3]) @ np.log(wealth_b[:2])
    assert given_two_thirds == pytest.approx(np.log(32 / 27) / 3)
    assert given_two_thirds > 0


def test_c5_forecaster_with_the_better_brier_score_may_earn_less():
    chance, outcome, price = np.array([0.6, 0.4]), np.array([1, 0]), np.full(2, HALF)
    a, b = np.full(2, 0.45), np.full(2, 0.9)
    assert 1 - chance @ brier(a, outcome) == pytest.approx(0.7375)
    assert 1 - chance @ brier(b, outcome) == pytest.approx(0.67)
    # Profit of one contract at 0.5; a dollar buys two.
    for p, profit in ((a, -0.1), (b, 0.1)):
        assert (chance @ payoff(p, outcome, price, price) - 1) / 2 == pytest.approx(profit)


def test_c6_calibrated_symmetric_forecaster_earns_the_same_on_both_sides():
    rng = np.random.default_rng(0)
    price = rng.uniform(0.4, 0.6, 400_000)
    p = price + rng.uniform(-0.2, 0.2, len(price))
    outcome = (rng.random(len(price)) < p).astype(int)
    per_contract = outcome - price
    yes, no = per_contract[p > price].mean(), -per_contract[p < price].mean()
    assert yes == pytest.approx(no, abs=0.005)
    rows = MetricRows.of(p, outcome, prices=(price, 1 - price))
    yes, no = (METRICS[side].population(rows) for side in ("yes_side", "no_side"))
    assert yes == pytest.approx(no, abs=0.02)


@settings(max_examples=80)
@given(p=st.floats(0.02, 0.98), yes=st.floats(0.05, 0.95), no=st.floats(0.05, 0.95), gamma=st.floats(0.05, 1))
def test_closed_form_of_stakes_is_the_numeric_optimum(p, yes, no, gamma):
    def utility(share: float) -> float:
        won, lost = max(share / yes, 1e-300), max((1 - share) / no, 1e-300)
        if gamma == 1:
            return p * np.log(won) + (1 - p) * np.log(lost)
        return (p * won ** (1 - gamma) + (1 - p) * lost ** (1 - gamma)) / (1 - gamma)

    ours = utility(float(crra_stakes([p], [yes], [no], gamma)[0][0]))
    optimum = minimize_scalar(lambda a: -utility(a), bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    best = max(-optimum.fun, utility(0.0), utility(1.0))
    assert ours >= best - 1e-7 * max(1, abs(best))


@settings(max_examples=60)
@given(p=st.floats(0.02, 0.98), yes=st.floats(0.05, 0.95), no=st.floats(0.05, 0.95))
def test_closed_form_of_stakes_reaches_both_limits_of_gamma(p, yes, no):
    near_log = crra_stakes([p], [yes], [no], 1 - 1e-9)[0][0]
    assert near_log == pytest.approx(crra_stakes([p], [yes], [no], 1.0)[0][0], abs=1e-6)
    edge = np.log(p / yes) - np.log((1 - p) / no)
    if abs(edge) > 1e-3:
        near_zero = crra_stakes([p], [yes], [no], 1e-6)[0][0]
        assert near_zero == pytest.approx(crra_stakes([p], [yes], [no], 0.0)[0][0], abs=1e-6)
        assert near_zero == pytest.approx(float(edge > 0), abs=1e-6)


def test_stakes_match_equation_6():
    for p, q, gamma in ((0.6, 0.45, 0.5), (0.2, 0.35, 0.25), (0.9, 0.5, 0.8)):
        top = q ** (1 - 1 / gamma) * p ** (1 / gamma)
        bottom = (1 - q) ** (1 - 1 / gamma) * (1 - p) ** (1 / gamma)
        assert crra_stakes([p], [q], [1 - q], gamma)[0][0] == pytest.approx(top / (top + bottom))


def test_c7_symmetric_interval_is_centred():
    rng = np.random.default_rng(1)
    scores = rng.exponential(size=80)
    interval = bootstrap_score(scores, resampling=Resampling(draws=1000, interval="symmetric"))
    assert interval.high - interval.estimate == pytest.approx(interval.estimate - interval.low)
