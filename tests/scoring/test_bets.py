import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scoring.made_standings import arena, one_asking, several

from foretell.metrics import Bettor, kalshi_fee, payoff
from foretell.metrics.metric import GAMMAS
from foretell.scoring.event_sums import bet_payoffs, bet_prices, has_prices

ask = st.integers(0, 100).map(lambda cents: cents / 100)


def of_one(p, outcome, yes, no, platform="kalshi"):
    return several(one_asking(p=(p,), outcome=(outcome,), quotes=[np.nan, np.nan, yes, no], platform=platform))


def paid(standings, *, fees):
    h = np.where(standings.markets.outcome == 1, standings.p[0], 1 - standings.p[0])
    return bet_payoffs(h, bet_prices(standings, fees=fees))


@settings(max_examples=200)
@given(p=st.floats(0, 1), outcome=st.sampled_from([0, 1]), yes=ask, no=ask, fees=st.booleans())
def test_payoffs_equal_those_of_the_metrics_function(p, outcome, yes, no, fees):
    payoffs = paid(of_one(p, outcome, yes, no), fees=fees)
    for gamma in GAMMAS:
        bettor = Bettor(gamma=gamma, fee=kalshi_fee) if fees else Bettor(gamma=gamma)
        plain = payoff([p], [outcome], [yes], [no], bettor)
        assert payoffs[gamma][0] == pytest.approx(plain[0], rel=1e-6, abs=1e-9)


@settings(max_examples=100)
@given(yes=st.integers(1, 99), no=st.integers(1, 99), outcome=st.sampled_from([0, 1]))
def test_repeating_the_market_is_a_tie_and_buys_yes(yes, no, outcome):
    standings = of_one(yes / (yes + no), outcome, yes / 100, no / 100)
    assert paid(standings, fees=False)[0.0][0] == pytest.approx(100 / yes if outcome else 0)


def test_net_payoffs_subtract_the_fee_of_the_platform():
    with_fee, without = of_one(0.9, 1, 0.5, 0.52), of_one(0.9, 1, 0.5, 0.52, platform="manifold")
    assert paid(with_fee, fees=True)[0.0][0] == pytest.approx(1 / 0.5175)
    assert paid(without, fees=True)[0.0][0] == 2


def test_last_price_is_used_without_asks():
    standings = several(one_asking(p=(0.9,), outcome=(1,), quotes=[0.4, np.nan, np.nan, np.nan]))
    assert paid(standings, fees=False)[0.0][0] == pytest.approx(2.5)
    assert standings.markets.price[0] == 0.4


def test_markets_without_a_price_cannot_be_bet_on():
    standings = several(one_asking(p=(0.9,), outcome=(1,)))
    assert not has_prices(standings).any()
    assert has_prices(arena(quoted=0.5)).any()
