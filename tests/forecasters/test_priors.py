import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.base_rates.rates import BaseRates, FixedRates, PastOutcomes
from foretell.questions.question import Question, Target


def past(*rows: tuple[str, str, str, int, int]) -> PastOutcomes:
    day, source, subtype, horizon, outcome = zip(*rows, strict=True)
    return PastOutcomes(
        known_on=np.array(day, "M8[D]"),
        source=np.array(source),
        subtype=np.array(subtype),
        horizon_days=np.array(horizon),
        outcome=np.array(outcome, dtype=float),
    )


def ask(
    rates: BaseRates, *, due: str = "2025-10-26", subtype: str = "all", resolves: str = "2025-11-02"
) -> float | None:
    target = Target(id="t", resolves_at=resolves)
    question = Question(id="q", source="fred", subtype=subtype, text="?", due=due, targets=(target,))
    return rates.rate(question, target, question.as_of)


def test_only_outcomes_known_before_the_due_day_count() -> None:
    rates = BaseRates(
        past=past(("2025-10-25", "fred", "all", 7, 1), ("2025-10-26", "fred", "all", 7, 0)),
        strength=0.0,
        correlation=0.0,
    )
    assert ask(rates) == 1.0
    assert ask(rates, due="2025-10-27", resolves="2025-11-03") == 0.5
    assert ask(rates, due="2025-10-25") is None


def test_partial_pooling_matches_values_computed_by_hand() -> None:
    rows = [("2025-01-01", "fred", "a", 7, 1), ("2025-01-02", "fred", "a", 30, 1), ("2025-01-03", "fred", "b", 7, 0)]
    rates = BaseRates(past=past(*rows), strength=2.0, correlation=0.0)
    source = (2 + 2 * 0.5) / (3 + 2)
    subtype = (2 + 2 * source) / (2 + 2)
    assert ask(rates, subtype="a") == pytest.approx((1 + 2 * subtype) / (1 + 2))
    assert ask(rates, subtype="a", resolves="2026-10-26") == pytest.approx(subtype)
    assert ask(rates, subtype="new") == pytest.approx(source)
    pooled = BaseRates(past=past(*rows), strength=2.0, correlation=0.0, by_horizon=False)
    assert ask(pooled, subtype="a") == pytest.approx(subtype)


def test_outcomes_of_one_day_count_less_than_outcomes_of_many_days() -> None:
    same = past(*[("2025-01-01", "fred", "all", 7, 1)] * 10)
    apart = past(*[(f"2025-01-{d:02d}", "fred", "all", 7, 1) for d in range(1, 11)])
    one_day, many_days = (ask(BaseRates(past=p, strength=5.0, correlation=0.5)) for p in (same, apart))
    assert one_day is not None
    assert many_days is not None
    assert 0.5 < one_day < many_days


@given(st.lists(st.integers(0, 1), min_size=1, max_size=30), st.floats(0, 50), st.floats(0, 1))
@settings(max_examples=50)
def test_rate_lies_between_one_half_and_the_frequency(outcomes: list[int], strength: float, correlation: float) -> None:
    rows = [("2025-01-01", "fred", "all", 7, y) for y in outcomes]
    rate = ask(BaseRates(past=past(*rows), strength=strength, correlation=correlation))
    low, high = sorted((0.5, sum(outcomes) / len(outcomes)))
    assert rate is not None
    assert low - 1e-9 <= rate <= high + 1e-9


def test_invalid_rows_and_rates_raise_errors() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        past(("2025-01-01", "fred", "all", 7, 2))
    with pytest.raises(ValueError, match="different length"):
        PastOutcomes(
            known_on=np.array([], "M8[D]"),
            source=np.array(["a"]),
            subtype=np.array([], str),
            horizon_days=np.array([], int),
            outcome=np.array([]),
        )
    with pytest.raises(ValueError, match="not in"):
        FixedRates(table={("fred", ""): 1.2})
