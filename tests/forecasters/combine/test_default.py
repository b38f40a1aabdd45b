"""The default rule: before training, after training, without enough evidence, and on degenerate inputs."""

from dataclasses import replace

import numpy as np
import pytest

from foretell.forecasters.combine.default import UNFITTED, DefaultMethod, FittedTrust, LearningGain, Trust, fit_trust
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.forecasters.combine.rules import TrainingOverlap, apply
from foretell.metrics.transforms import logit, sigmoid

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


def examples(table: TrialRows, outcome, after: int = 7) -> Examples:
    known = table.due + np.timedelta64(after, "D")
    return Examples(rows=table, outcome=np.asarray(outcome, float), known_on=known, weight=np.ones(len(table)))


def world(seed: int, *, trust: float | None, rounds: int = 12, per_round: int = 60) -> Examples:
    """Rounds a fortnight apart in which the truth lies between trials and price, `trust` of the way to the trials.

    With None the truth is the rule before any training.
    """
    rng = np.random.default_rng(seed)
    n = rounds * per_round
    z, a = rng.normal(0, 2, n), rng.normal(0, 2, n)
    table = rows(sigmoid(z), price=sigmoid(a), day=np.repeat(np.arange(rounds) * 14, per_round))
    truth = UNFITTED.probabilities(table) if trust is None else sigmoid(trust * z + (1 - trust) * a)
    return examples(table, rng.random(n) < truth)


def moved(price: float, trials: float, trust: float = 0.2) -> float:
    """Return a price moved towards the trials within the reach of 1.5."""
    return float(sigmoid(logit(price) + trust * 1.5 * np.tanh((logit(trials) - logit(price)) / 1.5)))


def test_before_training_it_is_the_price_moved_a_little_or_mostly_the_trials():
    nothing = DefaultMethod().fit(examples(rows(np.empty((1, 0))), []))
    market = nothing.probabilities(rows([0.2, 0.9, 0.137], price=[0.8, 0.4, 0.137]))
    dataset = nothing.probabilities(rows([0.8], kind="dataset", prior=0.4))
    assert market == pytest.approx([0.750, moved(0.4, 0.9), 0.137], abs=5e-4)
    assert dataset == pytest.approx(sigmoid(0.6 * logit(0.8) + 0.4 * logit(0.4)))


def test_surer_trials_count_more_with_the_age_of_the_price_and_others_never():
    def combined(p: float, price: float, age: float) -> float:
        return float(UNFITTED.probabilities(replace(rows([p], price=price), price_age=np.array([age])))[0])

    assert combined(0.1, 0.3, 1.0) == pytest.approx(moved(0.3, 0.1))
    assert [combined(p, 0.3, 10.0) for p in (0.5, 0.9)] == pytest.approx([moved(0.3, p) for p in (0.5, 0.9)])
    assert moved(0.3, 0.1) > combined(0.1, 0.3, 5.0) > combined(0.1, 0.3, 10.0) > combined(0.1, 0.3, 40.0) > 0.1
    assert combined(0.9, 0.7, 10.0) == pytest.approx(1 - combined(0.1, 0.3, 10.0))
    assert combined(0.9, 0.5001, 10.0) == pytest.approx(combined(0.9, 0.4999, 10.0), abs=1e-3)


def test_strong_forecaster_gets_weight_and_a_weak_one_none():
    far = rows([0.98], price=0.1)
    strong = DefaultMethod().fit(world(7, trust=1.0))
    assert strong.market.beyond > 0.4
    assert strong.probabilities(far) > 0.6, "a strong forecaster has weight far from the price"
    weak = DefaultMethod().fit(world(8, trust=0.0))
    assert weak.probabilities(far) == pytest.approx(0.1, abs=0.02)


def test_rule_of_an_older_version_without_reach_applies_at_any_distance():
    older = FittedTrust(trust=0.5)
    assert older.probabilities(rows([0.8], price=0.4)) == pytest.approx(sigmoid((logit(0.8) + logit(0.4)) / 2))


def test_without_an_anchor_it_is_the_logit_mean_of_the_trials():
    nothing = DefaultMethod().fit(examples(rows(np.empty((1, 0))), []))
    assert nothing.probabilities(rows([[0.2, 0.9], [0.4, 0.9]])) == pytest.approx(rows([[0.2, 0.9], [0.4, 0.9]]).raw)


@pytest.mark.parametrize("trust", [0.4, 0.9])
def test_many_rounds_recover_the_true_trust(trust):
    fitted = DefaultMethod().fit(world(1, trust=trust, rounds=24))
    assert fitted.proofs[0].share_used > 0.5
    assert fitted.market.trust_in(rows([0.5]))[0] == pytest.approx(trust, abs=0.15)


def test_gain_within_noise_leaves_the_starting_weights():
    fitted = DefaultMethod().fit(world(2, trust=None, rounds=4, per_round=40))
    assert fitted.proofs[0].share_used == 0
    assert fitted.market == replace(UNFITTED.market, training=fitted.market.training)


def test_single_round_is_no_evidence_for_learnt_weights():
    single_round = world(3, trust=1.0, rounds=1, per_round=500)
    _, proof = fit_trust(Trust(), single_round)
    assert proof == LearningGain()


def test_trust_of_a_source_depends_on_its_own_outcomes():
    both = world(4, trust=0.5)
    source = np.where(np.arange(len(both)) % 2, "a", "b")
    z, a = logit(both.rows.raw), logit(both.rows.price)
    rng = np.random.default_rng(5)
    outcome = rng.random(len(both)) < sigmoid(np.where(source == "a", z, a))
    table = rows(both.rows.raw, price=both.rows.price, day=(both.rows.due - FIRST).astype(int), source=source)
    fitted = Trust(levels=("source",)).fit(examples(table, outcome))
    trust = fitted.trust_in(rows([0.5, 0.5, 0.5], source=np.array(["a", "b", "unseen"])))
    assert trust[0] > trust[2] > trust[1]


def test_lead_and_liquidity_are_levels():
    table = rows([0.4, 0.5, 0.6], price=0.5, horizon=[3, 300, np.nan], liquidity=[10, 1e6, np.nan])
    fitted = Trust().fit(examples(table, [0, 1, 1]))
    assert {"polymarket/lead 0", "polymarket/lead unknown", "polymarket/thin", "polymarket/deep"} <= fitted.moves.keys()


def test_applying_it_to_training_data_or_earlier_questions_raises_an_error():
    past = world(6, trust=0.8)
    fitted = DefaultMethod().fit(past)
    with pytest.raises(TrainingOverlap, match="among the"):
        apply(fitted, past.rows)
    with pytest.raises(TrainingOverlap, match="fitted on outcomes"):
        apply(fitted, rows([0.5], day=20))
    assert np.isfinite(apply(fitted, rows([0.5], day=400))).all()


@pytest.mark.parametrize(
    ("table", "outcome"),
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
def test_degenerate_inputs_give_finite_probabilities(table, outcome):
    fitted = DefaultMethod().fit(examples(table, outcome))
    p = fitted.probabilities(table)
    assert (np.isnan(p) == np.isnan(table.raw)).all()
    assert ((p >= 0) & (p <= 1))[~np.isnan(p)].all()
