from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.model_free.simulated import past_of, rate

from foretell.forecasters.base_rates.rates import FixedRates
from foretell.forecasters.model_free.economy import ShareModel
from foretell.forecasters.model_free.model_free import trust_in_family, trust_in_model

DAYS = np.arange("2025-03-02", "2025-06-10", dtype="M8[D]")


def test_prior_weight_of_the_model_is_73_percent() -> None:
    assert trust_in_model(np.zeros(0), DAYS[:0]) == pytest.approx(0.731, abs=1e-3)


def test_answers_of_one_day_count_less_than_answers_of_many_days() -> None:
    gain = np.full(30, 0.05)
    apart, together = trust_in_model(gain, DAYS[:30]), trust_in_model(gain, np.repeat(DAYS[:1], 30))
    assert 0.731 < together < apart
    assert together == pytest.approx(1 / (1 + np.exp(-1 - 2 * 0.05 * 30 / 3.9)))


@settings(max_examples=30)
@given(st.lists(st.floats(-1, 1), max_size=60))
def test_trust_is_a_share_and_decreases_with_losses(gains: list[float]) -> None:
    gain = np.array(gains)
    p = trust_in_model(gain, DAYS[: len(gain)])
    assert 0 <= p <= 1
    assert trust_in_model(gain - 0.01, DAYS[: len(gain)]) <= p


def weight(rises: int, day: date) -> float:
    """Return the trust after three rounds of share questions, against a base rate of one half."""
    rounds = [rate("A", due, source="yfinance") for due in ("2025-03-02", "2025-03-30", "2025-04-27")]
    past = past_of(*[(question, (rises,) * 4) for question in rounds])
    return trust_in_family(ShareModel(), past, FixedRates(table={("yfinance", ""): 0.5}), day)


def test_trust_rises_for_a_better_model_and_falls_for_a_worse_one() -> None:
    assert weight(0, date(2026, 1, 1)) < 0.731 < weight(1, date(2026, 1, 1))


def test_only_answers_known_before_the_day_count() -> None:
    weights = [weight(1, day) for day in (date(2025, 3, 2), date(2025, 3, 9), date(2025, 3, 10), date(2025, 6, 1))]
    assert weights[0] == weights[1] == pytest.approx(0.731, abs=1e-3)
    assert weights[1] < weights[2] < weights[3]


def test_questions_without_a_base_rate_do_not_change_the_trust() -> None:
    question = rate("A", "2025-03-02", source="yfinance")
    trust = trust_in_family(ShareModel(), past_of((question, (1, 1))), FixedRates(table={}), date(2026, 1, 1))
    assert trust == pytest.approx(0.731, abs=1e-3)
