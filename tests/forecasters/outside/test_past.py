from datetime import date

import numpy as np
import pytest

from foretell.forecasters.base_rates.past import Past


def test_before_a_day_later_outcomes_and_prices_are_unknown(bank_of) -> None:
    bank = bank_of(
        [
            {"due": "2025-01-05", "outcome": 1.0, "known_on": "2025-02-01", "price": 0.4},
            {"due": "2025-01-05", "outcome": 0.0, "known_on": "2025-03-01", "price": 0.4, "price_on": "2025-02-20"},
            {"due": "2025-02-20", "outcome": 0.0, "known_on": "2025-02-21"},
        ]
    )
    past = bank.before(date(2025, 2, 20))
    assert past.id.tolist() == ["q0", "q1"]
    assert past.outcome[0] == 1.0
    assert np.isnan(past.outcome[1])
    assert np.isnat(past.known_on[1])
    assert past.price[0] == 0.4
    assert np.isnan(past.price[1])
    # An outcome known on a day is not known before it.
    assert np.isnan(bank.before(date(2025, 2, 1)).outcome[0])


def test_invalid_columns_raise_errors(bank_of) -> None:
    with pytest.raises(ValueError, match="0, 1 or NaN"):
        bank_of([{"outcome": 0.5, "known_on": "2025-02-01"}])
    with pytest.raises(ValueError, match="known_on"):
        bank_of([{"outcome": 1.0}])
    with pytest.raises(ValueError, match="due"):
        bank_of([{"due": None}])


def test_default_past_is_empty() -> None:
    assert len(Past().table) == 0
    assert len(Past().table.before(date(2025, 1, 1))) == 0
