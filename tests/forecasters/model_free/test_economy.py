from dataclasses import replace

import numpy as np
import pytest
from tests.forecasters.model_free.simulated import NOTHING, past_of, rate

from foretell.data.series.series import Series
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.model_free.economy import EconomyModel, ShareModel, kind_of
from foretell.metrics import Floats
from foretell.questions.question import LastValue, Question

POLICY = "Will the federal funds rate have increased?"
MONEY = "Will the deposits in all US commercial banks have increased?"


def chances(question: Question, past: Past = NOTHING) -> Floats:
    return EconomyModel().estimate(question, past, question.due.date()).p


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("the total return of the ICE BofA US Corporate Index, which tracks the yield of …", "index"),
        ("the effective yield of the ICE BofA Corporate Index", "market"),
        ("the yield spread between 10-year and 2-year bonds", "market"),
        ("the Federal Reserve's Bank Prime Loan Rate", "administered"),
        ("the total dollar amount of assets held by all US commercial banks", "growing"),
        ("the weekly number of initial unemployment claims", "market"),
        ("the deposits in the Treasury's general account", "flow"),
        ("the SOFR (Secured Overnight Financing Rate) Index", "accruing"),
        ("the 90-day average of the Federal Reserve's Secured Overnight Financing Rate", "money-market"),
        ("the market yield on US treasury securities at 3-month constant maturity", "money-market"),
        ("the yield spread between 10-year and 3-month US Treasury bonds", "market"),
        ("the cash assets of all commercial US banks", "flow"),
    ],
)
def test_wording_determines_the_kind_of_series(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_kinds_have_different_priors() -> None:
    policy, yields, money = (chances(rate("x", "2025-10-26", text))[-1] for text in (POLICY, "the yield", MONEY))
    assert policy < 0.25 < yields < 0.5 < money


def test_past_rises_count_more_for_steady_series_than_for_markets() -> None:
    rounds = ["2025-01-05", "2025-02-02", "2025-03-02", "2025-03-30"]

    def shift(text: str) -> float:
        past = past_of(*[(rate("A", due, text), (1, 1, 1, 1)) for due in rounds])
        return float((chances(rate("A", "2025-10-26", text), past) - chances(rate("A", "2025-10-26", text)))[0])

    assert shift(MONEY) > 1.3 * shift("the yield of bonds") > 0


def test_past_rises_of_a_series_change_others_of_its_kind_slightly() -> None:
    past = past_of(*[(rate(f"S{i}", "2025-03-02", MONEY), (1, 1, 1, 1)) for i in range(12)])
    new = chances(rate("new", "2025-10-26", MONEY), past)
    assert (new > chances(rate("new", "2025-10-26", MONEY))).all()
    assert chances(rate("y", "2025-10-26"), past) == pytest.approx(chances(rate("y", "2025-10-26")), abs=0.02)


def test_shares_drift_upward_independently_of_the_past() -> None:
    question = rate("AAPL", "2025-10-26", source="yfinance")
    assert ShareModel().covers(question)
    assert not EconomyModel().covers(question)
    falls = past_of(*[(rate("AAPL", due, source="yfinance"), (0, 0, 0)) for due in ("2025-03-02", "2025-04-27")])
    p = ShareModel().estimate(question, falls, question.due.date()).p
    assert p.tolist() == ShareModel().estimate(question, NOTHING, question.due.date()).p.tolist()
    assert (np.diff(p) > 0).all()
    assert 0.5 < p[0] < p[-1] < 0.62


def test_accruing_index_rises_and_an_amount_of_zero_stays() -> None:
    index = chances(rate("i", "2025-10-26", "Will the Secured Overnight Financing Rate) Index have increased?"))
    amount = rate("a", "2025-10-26", "Will the amount of loans have increased?")
    zero = replace(amount, last_value=LastValue(value=0.0, at=amount.due))
    assert (index > 0.95).all()
    assert (chances(zero) < 0.1).all()
    assert (abs(chances(amount) - 0.5) < 0.05).all()


def test_common_falls_of_a_round_change_other_series_little() -> None:
    fallen = past_of(*[(rate(f"Y{i}", "2025-03-02", "the yield of bonds"), (0, 0, 0, 0)) for i in range(60)])
    p = chances(rate("new", "2025-10-26", "the yield of bonds"), fallen)
    assert (p > 0.44).all()


def curve(one_year: float, overnight: float = 4.0) -> dict[str, Series]:
    days = np.arange("2025-06-01", "2025-10-25", dtype="M8[D]")
    return {
        id: Series(id=id, days=days, values=np.full(len(days), x))
        for id, x in (("DGS1", one_year), ("EFFR", overnight))
    }


@pytest.mark.parametrize("text", [POLICY, "the Federal Reserve's 3-month secondary market treasury bill rate"])
def test_yield_curve_changes_the_probability_of_policy_rates(text: str) -> None:
    question = rate("x", "2025-10-26", text)
    model, due = EconomyModel(), question.due.date()
    cuts, rises = (model.estimate(question, NOTHING, due, None, curve(x)) for x in (3.5, 4.5))
    assert (cuts.p < chances(question)).all()
    assert (chances(question) < rises.p).all()
    assert "−0.50 points from the overnight rate" in cuts.rationale
    old = rate("x", "2026-03-01", text)
    assert model.estimate(old, NOTHING, old.due.date(), None, curve(3.5)).p.tolist() == chances(old).tolist()


def test_average_follows_its_parent_series() -> None:
    days = np.arange("2023-01-01", "2025-10-26", dtype="M8[D]")
    wiggle = np.random.default_rng(1).normal(0, 0.02, len(days))
    question = rate("SOFR90DAYAVG", "2025-10-26", "the 90-day average of the Secured Overnight Financing Rate")
    estimates: list[Floats] = []
    for step in (-0.25, 0.0, 0.25):
        parent = Series(id="SOFR", days=days, values=4 + wiggle + step * (days >= np.datetime64("2025-10-01")))
        others = {"SOFR": parent}
        estimates.append(EconomyModel().estimate(question, NOTHING, question.due.date(), None, others).p)
    assert (estimates[0] < 0.2).all()
    assert (estimates[2] > 0.8).all()
    assert [ref.id for ref in EconomyModel().others_of(question)] == ["DGS1", "EFFR", "SOFR"]
