"""The default rule: what it says untaught, what it learns, when it refuses to have learnt, and odd inputs."""

from dataclasses import replace

import numpy as np
import pytest

from foretell.forecasters.combine import (
    UNTAUGHT,
    DefaultMethod,
    Examples,
    FittedTrust,
    LearningGain,
    TrainingOverlap,
    TrialRows,
    Trust,
    apply,
    logit,
    sigmoid,
    taught,
)

FIRST = np.datetime64("2025-01-05")


def rows(trials, *, kind="market", price=np.nan, prior=np.nan, day=0, source="polymarket", **columns) -> TrialRows:
    trials = np.atleast_2d(np.asarray(trials, float))
    n = trials.shape[1]

    def text(value):
        return np.broadcast_to(np.asarray(value, str), n).copy()

    def number(value):
        return np.broadcast_to(np.asarray(value, float), n).copy()

    return TrialRows(
        trials=trials,
        question=np.array([f"q{i}" for i in range(n)]),
        due=FIRST + np.broadcast_to(day, n).astype("m8[D]"),
        target=text("yes"),
        source=text(source),
        subtype=text(columns.get("subtype", "")),
        kind=text(kind),
        horizon=number(columns.get("horizon", np.nan)),
        price=number(price),
        prior=number(prior),
        cluster=np.array([f"q{i}" for i in range(n)]),
        liquidity=number(columns.get("liquidity", np.nan)),
    )


def examples(said: TrialRows, outcome, after: int = 7) -> Examples:
    known = said.due + np.timedelta64(after, "D")
    return Examples(rows=said, outcome=np.asarray(outcome, float), known_on=known, weight=np.ones(len(said)))


def world(seed: int, *, trust: float | None, rounds: int = 12, per_round: int = 60) -> Examples:
    """Rounds a fortnight apart in which the truth lies between trials and price, `trust` of the way to the trials.

    With None the truth is what the rule says before it has learnt.
    """
    rng = np.random.default_rng(seed)
    n = rounds * per_round
    z, a = rng.normal(0, 2, n), rng.normal(0, 2, n)
    said = rows(sigmoid(z), price=sigmoid(a), day=np.repeat(np.arange(rounds) * 14, per_round))
    truth = UNTAUGHT.probabilities(said) if trust is None else sigmoid(trust * z + (1 - trust) * a)
    return examples(said, rng.random(n) < truth)


def test_untaught_it_says_the_price_to_the_last_digit_and_goes_a_quarter_to_the_base_rate():
    nothing = DefaultMethod().fit(examples(rows(np.empty((1, 0))), []))
    market = nothing.probabilities(rows([0.9, 0.2, 0.5], price=[0.4, 0.0002, 0.137]))
    dataset = nothing.probabilities(rows([0.8], kind="dataset", prior=0.4))
    assert market.tolist() == [0.4, 0.0002, 0.137]
    assert dataset == pytest.approx(sigmoid(0.75 * logit(0.8) + 0.25 * logit(0.4)))


def test_the_older_the_price_the_more_surer_trials_count_and_hedging_ones_never():
    def said(p: float, price: float, age: float) -> float:
        return float(UNTAUGHT.probabilities(replace(rows([p], price=price), price_age=np.array([age])))[0])

    assert said(0.1, 0.3, 1.0) == said(0.5, 0.3, 10.0) == said(0.9, 0.3, 10.0) == 0.3
    assert 0.3 > said(0.1, 0.3, 5.0) > said(0.1, 0.3, 10.0) > said(0.1, 0.3, 40.0) > 0.1
    assert said(0.9, 0.7, 10.0) == pytest.approx(1 - said(0.1, 0.3, 10.0))
    assert said(0.9, 0.5001, 10.0) == pytest.approx(said(0.9, 0.4999, 10.0), abs=1e-3)


def test_a_strong_forecaster_keeps_its_lead_and_a_weak_one_changes_nothing():
    far = rows([0.98], price=0.1)
    strong = DefaultMethod().fit(world(7, trust=1.0))
    assert strong.market.beyond > 0.4
    assert strong.probabilities(far) > 0.6, "a strong forecaster keeps its lead"
    weak = DefaultMethod().fit(world(8, trust=0.0))
    assert weak.probabilities(far) == pytest.approx(0.1, abs=0.02)


def test_a_rule_of_an_older_version_reads_and_goes_all_the_way():
    older = FittedTrust(trust=0.5)
    assert older.probabilities(rows([0.8], price=0.4)) == pytest.approx(sigmoid((logit(0.8) + logit(0.4)) / 2))


def test_without_an_anchor_it_says_what_the_trials_say():
    nothing = DefaultMethod().fit(examples(rows(np.empty((1, 0))), []))
    assert nothing.probabilities(rows([[0.2, 0.9], [0.4, 0.9]])) == pytest.approx(rows([[0.2, 0.9], [0.4, 0.9]]).raw)


@pytest.mark.parametrize("trust", [0.4, 0.9])
def test_many_rounds_teach_whom_to_believe(trust):
    fitted = DefaultMethod().fit(world(1, trust=trust, rounds=24))
    assert fitted.proofs[0].kept > 0.5
    assert fitted.market.trust_in(rows([0.5]))[0] == pytest.approx(trust, abs=0.15)


def test_what_is_within_noise_is_not_kept():
    fitted = DefaultMethod().fit(world(2, trust=None, rounds=4, per_round=40))
    assert fitted.proofs[0].kept == 0
    assert fitted.market == replace(UNTAUGHT.market, training=fitted.market.training)


def test_one_round_proves_nothing_however_large():
    one = world(3, trust=1.0, rounds=1, per_round=500)
    _, proof = taught(Trust(), one)
    assert proof == LearningGain()


def test_a_level_moves_only_its_own():
    both = world(4, trust=0.5)
    source = np.where(np.arange(len(both)) % 2, "a", "b")
    z, a = logit(both.rows.raw), logit(both.rows.price)
    rng = np.random.default_rng(5)
    outcome = rng.random(len(both)) < sigmoid(np.where(source == "a", z, a))
    said = rows(both.rows.raw, price=both.rows.price, day=(both.rows.due - FIRST).astype(int), source=source)
    fitted = Trust(levels=("source",)).fit(examples(said, outcome))
    trust = fitted.trust_in(rows([0.5, 0.5, 0.5], source=np.array(["a", "b", "unseen"])))
    assert trust[0] > trust[2] > trust[1]


def test_lead_and_liquidity_are_levels_too():
    said = rows([0.4, 0.5, 0.6], price=0.5, horizon=[3, 300, np.nan], liquidity=[10, 1e6, np.nan])
    fitted = Trust().fit(examples(said, [0, 1, 1]))
    assert {"polymarket/lead 0", "polymarket/lead unknown", "polymarket/thin", "polymarket/deep"} <= fitted.moves.keys()


def test_it_refuses_what_it_learnt_from_and_what_was_asked_before_it_knew():
    past = world(6, trust=0.8)
    fitted = DefaultMethod().fit(past)
    with pytest.raises(TrainingOverlap, match="among the"):
        apply(fitted, past.rows)
    with pytest.raises(TrainingOverlap, match="learnt from outcomes"):
        apply(fitted, rows([0.5], day=20))
    assert np.isfinite(apply(fitted, rows([0.5], day=400))).all()


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        pytest.param(rows([0.3] * 80, price=0.5, day=np.arange(80)), [0, 1] * 40, id="all trials equal"),
        pytest.param(rows([0.0, 1.0] * 40, price=[1.0, 0.0] * 40, day=np.arange(80)), [0, 1] * 40, id="all 0 or 1"),
        pytest.param(rows([0.3, 0.6] * 40, price=0.5, day=np.arange(80)), [1] * 80, id="one class"),
        pytest.param(rows([0.3, 0.6] * 40, day=np.arange(80)), [0, 1] * 40, id="no anchor"),
        pytest.param(rows([np.nan, 0.6] * 40, price=0.5, day=np.arange(80)), [0, 1] * 40, id="failed trials"),
        pytest.param(rows([0.3], price=0.5), [1], id="one row"),
        pytest.param(rows([0.3, 0.6] * 40, kind="dataset", prior=0.5, day=np.arange(80)), [0, 1] * 40, id="no market"),
    ],
)
def test_odd_inputs_give_finite_answers(said, outcome):
    fitted = DefaultMethod().fit(examples(said, outcome))
    p = fitted.probabilities(said)
    assert (np.isnan(p) == np.isnan(said.raw)).all()
    assert ((p >= 0) & (p <= 1))[~np.isnan(p)].all()
