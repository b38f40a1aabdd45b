import asyncio

import pytest

from foretell.forecasters import CannotForecast, Context
from foretell.forecasters.base_rates import (
    PAPER_RATES,
    BaseRateForecaster,
    ConstantForecaster,
    CrowdElseBaseRate,
    CrowdForecaster,
    FixedRates,
    MarketForecaster,
)
from foretell.questions import AsOf, Exclusivity, Question, Snapshot, Target

FREEZE = "2025-10-16"


def market(*snapshots: Snapshot | None, exclusivity: Exclusivity = "independent") -> Question:
    targets = tuple(Target(id=f"t{i}", snapshot=s) for i, s in enumerate(snapshots))
    return Question(id="m", source="polymarket", text="?", due="2025-10-26", targets=targets, exclusivity=exclusivity)


def dataset(source: str = "fred", subtype: str = "all") -> Question:
    targets = (Target(id="a", resolves_at="2025-11-02"), Target(id="b", resolves_at="2025-11-25"))
    return Question(id="d", source=source, subtype=subtype, kind="dataset", text="?", due="2025-10-26", targets=targets)


def said(forecaster, question: Question, as_of: AsOf | None = None) -> dict[str, float]:
    context = Context(as_of=as_of or question.as_of)
    return dict(asyncio.run(forecaster.forecast(question, context)).p)


def test_always_says_the_same() -> None:
    assert said(ConstantForecaster(), dataset()) == {"a": 0.5, "b": 0.5}
    assert ConstantForecaster(p=0.3).name == "always 0.3"
    with pytest.raises(ValueError, match="outside"):
        ConstantForecaster(p=1.5)


def test_crowd_is_the_price_of_the_snapshot_untouched() -> None:
    assert said(CrowdForecaster(), market(Snapshot(at=FREEZE, last_price=0.0014))) == {"t0": 0.0014}
    assert said(CrowdForecaster(), market(Snapshot(at=FREEZE, last_price=0.0))) == {"t0": 0.0}


def test_crowd_refuses_or_falls_back_without_a_price() -> None:
    with pytest.raises(CannotForecast, match="no price"):
        said(CrowdForecaster(), market(None))
    assert said(CrowdForecaster(fallback=0.2), market(None, Snapshot(at=FREEZE, last_price=0.7))) == {
        "t0": 0.2,
        "t1": 0.7,
    }


def test_crowd_does_not_see_a_price_from_after_the_cutoff() -> None:
    question = market(Snapshot(at="2025-10-20", last_price=0.9))
    with pytest.raises(CannotForecast):
        said(CrowdForecaster(), question, AsOf.day("2025-10-18"))


def test_market_scales_asks_to_one_and_options_on_request() -> None:
    quotes = Snapshot(at=FREEZE, yes_ask=0.62, no_ask=0.42), Snapshot(at=FREEZE, yes_ask=0.5, no_ask=0.5)
    plain = said(MarketForecaster(), market(*quotes, exclusivity="exactly one"))
    assert plain == {"t0": pytest.approx(0.62 / 1.04), "t1": 0.5}
    scaled = said(MarketForecaster(across=True), market(*quotes, exclusivity="exactly one"))
    assert sum(scaled.values()) == pytest.approx(1.0)
    assert said(MarketForecaster(across=True), market(*quotes)) == plain
    with pytest.raises(CannotForecast):
        said(MarketForecaster(), market(Snapshot(at=FREEZE)))


def test_prior_is_the_rate_of_source_and_subtype() -> None:
    rates = FixedRates(table=PAPER_RATES)
    assert said(BaseRateForecaster(rates=rates), dataset()) == {"a": 0.42, "b": 0.42}
    assert said(BaseRateForecaster(rates=rates), dataset("acled", "increase")) == {"a": 0.23, "b": 0.23}
    with pytest.raises(CannotForecast, match="no past outcome"):
        said(BaseRateForecaster(rates=rates), dataset("unknown"))


def test_crowd_else_prior_goes_by_kind() -> None:
    both = CrowdElseBaseRate(rates=FixedRates(table=PAPER_RATES))
    assert said(both, market(Snapshot(at=FREEZE, last_price=0.7))) == {"t0": 0.7}
    assert said(both, dataset()) == {"a": 0.42, "b": 0.42}
