import asyncio

import pytest

from foretell.forecasters.base_rates.baselines import (
    BaseRateForecaster,
    ConstantForecaster,
    MarketForecaster,
    MarketOrBaseRate,
    MarketPriceForecaster,
)
from foretell.forecasters.base_rates.rates import FixedRates
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.questions.as_of import AsOf
from foretell.questions.question import Exclusivity, Question, Snapshot, Target

FREEZE = "2025-10-16"
RATES = FixedRates(table={("fred", ""): 0.42, ("acled", "increase"): 0.23})


def market(*snapshots: Snapshot | None, exclusivity: Exclusivity = "independent") -> Question:
    targets = tuple(Target(id=f"t{i}", snapshot=s) for i, s in enumerate(snapshots))
    return Question(id="m", source="polymarket", text="?", due="2025-10-26", targets=targets, exclusivity=exclusivity)


def dataset(source: str = "fred", subtype: str = "all") -> Question:
    targets = (Target(id="a", resolves_at="2025-11-02"), Target(id="b", resolves_at="2025-11-25"))
    return Question(id="d", source=source, subtype=subtype, kind="dataset", text="?", due="2025-10-26", targets=targets)


def probabilities(forecaster, question: Question, as_of: AsOf | None = None) -> dict[str, float]:
    context = Context(as_of=as_of or question.as_of)
    return dict(asyncio.run(forecaster.forecast(question, context)).p)


def test_constant_gives_the_same_probability_to_all_targets() -> None:
    assert probabilities(ConstantForecaster(), dataset()) == {"a": 0.5, "b": 0.5}
    assert ConstantForecaster(p=0.3).name == "always 0.3"
    with pytest.raises(ValueError, match="outside"):
        ConstantForecaster(p=1.5)


def test_market_price_is_that_of_the_snapshot_unchanged() -> None:
    assert probabilities(MarketPriceForecaster(), market(Snapshot(at=FREEZE, last_price=0.0014))) == {"t0": 0.0014}
    assert probabilities(MarketPriceForecaster(), market(Snapshot(at=FREEZE, last_price=0.0))) == {"t0": 0.0}


def test_market_price_without_a_price_fails_or_uses_the_fallback() -> None:
    with pytest.raises(CannotForecast, match="no price"):
        probabilities(MarketPriceForecaster(), market(None))
    assert probabilities(MarketPriceForecaster(fallback=0.2), market(None, Snapshot(at=FREEZE, last_price=0.7))) == {
        "t0": 0.2,
        "t1": 0.7,
    }


def test_market_price_ignores_prices_after_the_cutoff() -> None:
    question = market(Snapshot(at="2025-10-20", last_price=0.9))
    with pytest.raises(CannotForecast):
        probabilities(MarketPriceForecaster(), question, AsOf.day("2025-10-18"))


def test_market_scales_asks_to_one_and_exclusive_options_on_request() -> None:
    quotes = Snapshot(at=FREEZE, yes_ask=0.62, no_ask=0.42), Snapshot(at=FREEZE, yes_ask=0.5, no_ask=0.5)
    plain = probabilities(MarketForecaster(), market(*quotes, exclusivity="exactly one"))
    assert plain == {"t0": pytest.approx(0.62 / 1.04), "t1": 0.5}
    scaled = probabilities(MarketForecaster(across=True), market(*quotes, exclusivity="exactly one"))
    assert sum(scaled.values()) == pytest.approx(1.0)
    assert probabilities(MarketForecaster(across=True), market(*quotes)) == plain
    with pytest.raises(CannotForecast):
        probabilities(MarketForecaster(), market(Snapshot(at=FREEZE)))


def test_base_rate_is_that_of_source_and_subtype() -> None:
    assert probabilities(BaseRateForecaster(rates=RATES), dataset()) == {"a": 0.42, "b": 0.42}
    assert probabilities(BaseRateForecaster(rates=RATES), dataset("acled", "increase")) == {"a": 0.23, "b": 0.23}
    with pytest.raises(CannotForecast, match=r"question of unknown all is known on .*outside-view"):
        probabilities(BaseRateForecaster(rates=RATES), dataset("unknown"))


def test_market_or_base_rate_depends_on_the_kind_of_question() -> None:
    both = MarketOrBaseRate(rates=RATES)
    assert probabilities(both, market(Snapshot(at=FREEZE, last_price=0.7))) == {"t0": 0.7}
    assert probabilities(both, dataset()) == {"a": 0.42, "b": 0.42}
