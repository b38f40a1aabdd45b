import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import METRICS, Bettor, MetricRows, brier, kalshi_fee, payoff, proportional_fee, sharpe_from_sums

HALF = ([0.5, 0.5], [0.5, 0.5])


def test_the_better_brier_score_may_earn_less():
    """Prophet Arena C.5: truth 0.6, price 0.5, A says 0.45 and B says 0.9."""
    chance, both = np.array([0.6, 0.4]), [1, 0]
    a, b = np.array([0.45, 0.45]), np.array([0.9, 0.9])
    assert chance @ brier(a, both) == pytest.approx(0.2625)
    assert chance @ brier(b, both) == pytest.approx(0.33)
    # The paper counts the profit of one contract at 0.5; a dollar buys two.
    assert (chance @ payoff(a, both, *HALF) - 1) / 2 == pytest.approx(-0.1)
    assert (chance @ payoff(b, both, *HALF) - 1) / 2 == pytest.approx(0.1)


def test_log_utility_prefers_the_calibrated_forecaster():
    """Prophet Arena C.4: B says 2/3 in three cases of four and 0 in the fourth; prices are 0.5."""
    log_bettor = Bettor(gamma=1.0)
    wealth = payoff([2 / 3, 2 / 3], [1, 0], *HALF, log_bettor)
    assert wealth.tolist() == pytest.approx([4 / 3, 2 / 3])
    assert np.array([2 / 3, 1 / 3]) @ np.log(wealth) == pytest.approx(np.log(32 / 27) / 3)
    assert payoff([0.0, 1.0], [0, 0], *HALF, log_bettor).tolist() == [2, 0]


def test_payoffs_match_a_hand_computation():
    p, outcome = [0.8, 0.8, 0.1, 0.1], [1, 0, 1, 0]
    paid = payoff(p, outcome, [0.4] * 4, [0.65] * 4)
    assert paid.tolist() == pytest.approx([2.5, 0, 0, 1 / 0.65])
    kelly = payoff([0.8], [0], [0.4], [0.65], Bettor(gamma=1.0))
    assert kelly[0] == pytest.approx(0.2 / 0.65)


def test_fees_are_paid_from_the_dollar():
    assert payoff([0.9], [1], [0.5], [0.5], Bettor(fee=kalshi_fee))[0] == pytest.approx(1 / 0.5175)
    assert payoff([0.9], [1], [0.5], [0.5], Bettor(fee=proportional_fee(0.1)))[0] == pytest.approx(1 / 0.55)


def test_rows_without_a_price_have_no_payoff_and_do_not_count():
    paid = payoff([0.9, 0.9], [1, 1], [0.5, np.nan], [0.5, np.nan])
    assert paid[0] == 2
    assert np.isnan(paid[1])
    rows = MetricRows.of([0.9, 0.9, 0.9], [1, 1, 0], [1, 5, 3], ([0.5, np.nan, 0.5], [0.5, np.nan, 0.5]))
    assert METRICS["return"].population(rows) == pytest.approx(0.5)


@settings(max_examples=50)
@given(
    p=st.floats(0, 1),
    yes=st.floats(0.01, 1),
    outcome=st.sampled_from([0, 1]),
    gamma=st.floats(0, 2),
)
def test_payoffs_are_bounded_by_the_odds(p, yes, outcome, gamma):
    no = 1.03 - yes
    paid = payoff([p], [outcome], [yes], [min(no, 1.0)], Bettor(gamma=gamma))[0]
    assert 0 <= paid <= max(1 / yes, 1 / no) + 1e-9


def test_agreeing_with_the_asks_loses_the_margin():
    yes, no = 0.52, 0.52
    forced = payoff([0.5, 0.5], [1, 0], [yes] * 2, [no] * 2, Bettor(gamma=1.0))
    assert forced.tolist() == pytest.approx([0.5 / 0.52] * 2)


def sharpe(paid, weight=1.0):
    excess, w = np.asarray(paid) - 1, np.broadcast_to(weight, len(paid))
    return sharpe_from_sums(np.array([w.sum(), w @ excess, w @ excess**2, w @ w]))


def test_sharpe_ratio_matches_a_hand_computation_and_numpy():
    paid = np.array([2.0, 0.0, 1.5, 0.7, 3.0])
    assert sharpe(paid) == pytest.approx((paid - 1).mean() / paid.std(ddof=1))
    assert sharpe(paid, 7.0) == pytest.approx(sharpe(paid))


@pytest.mark.parametrize("flat", [[1.0, 1.0, 1.0], [0.7] * 50, [3.0]])
def test_sharpe_without_variance_is_nan(flat):
    assert np.isnan(sharpe(flat))


def test_returns_of_yes_and_no_bets_are_separate():
    rows = MetricRows.of([0.9, 0.9, 0.1, 0.5], [1, 0, 0, 1], None, ([0.5, 0.5, 0.4, np.nan], [0.5, 0.5, 0.6, 0.5]))
    assert METRICS["yes_side"].population(rows) == pytest.approx(1.0)
    assert METRICS["no_side"].population(rows) == pytest.approx(1 / 0.6)
    only_yes = MetricRows.of([0.9], [1], None, ([0.5], [0.5]))
    assert METRICS["yes_side"].population(only_yes) == 2
    assert np.isnan(METRICS["no_side"].population(only_yes))


def test_missing_outcome_raises():
    with pytest.raises(ValueError, match="missing"):
        payoff([0.5], [np.nan], [0.5], [0.5])


def test_scoring_nothing_raises():
    with pytest.raises(ValueError, match="nothing to score"):
        payoff([], [], [], [])
