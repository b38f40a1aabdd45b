"""Smoothing over horizons: as written, variance-weighted, and off unless the past pays for it."""

import numpy as np
import pytest

from foretell.forecasters.combine.coherence import FittedHorizonSmoothing, HorizonSmoothing, smoothed
from foretell.forecasters.combine.rows import Examples, TrialRows, logit, sigmoid
from foretell.forecasters.combine.rules import Training, TrainingOverlap, apply

HORIZONS = np.array([7.0, 14, 30, 60])
ROUNDS = np.array(["2025-01-01", "2025-06-01", "2025-11-01"], dtype="M8[D]")


def series(questions, *, noise, spread, seed=0, trials=3):
    """Questions with four horizons: true log-odds that differ by `spread` between them, seen with noise."""
    rng = np.random.default_rng(seed)
    n = questions * len(HORIZONS)
    level = np.repeat(rng.normal(0, 1.2, questions), len(HORIZONS))
    truth = level + spread * rng.normal(size=n)
    question = np.repeat([f"q{i}" for i in range(questions)], len(HORIZONS))
    due = np.repeat(np.resize(ROUNDS, questions), len(HORIZONS))
    text, missing = np.full(n, "s"), np.full(n, np.nan)
    rows = TrialRows(
        trials=sigmoid(truth + noise * rng.normal(size=(trials, n))),
        question=question,
        due=due,
        target=np.tile(HORIZONS.astype(str), questions),
        source=text,
        subtype=text,
        kind=np.full(n, "dataset"),
        horizon=np.tile(HORIZONS, questions),
        price=missing,
        prior=missing,
        cluster=question,
    )
    outcome = (rng.uniform(size=n) < sigmoid(truth)).astype(float)
    known = due + np.tile(HORIZONS.astype(int), questions).astype("m8[D]")
    return Examples(rows=rows, outcome=outcome, known_on=known, weight=np.ones(n))


def test_it_minimises_what_it_says():
    rng = np.random.default_rng(0)
    p, h, v = rng.uniform(0.1, 0.9, 4), np.array([30.0, 7, 90, 14]), np.array([1.0, 4, 0.5, 2])
    z = logit(smoothed(p, h, v, strength=0.7))
    order = np.argsort(h)

    def loss(z):
        steps = np.diff(z[order]) ** 2 / np.diff(np.log(h[order]))
        return np.sum((z - logit(p)) ** 2 * v.mean() / v) + 0.7 * steps.sum()

    for _ in range(200):
        assert loss(z) <= loss(z + 0.01 * rng.normal(size=4)) + 1e-12


def test_limits():
    p, h, v = [0.2, 0.6, 0.9], [7, 30, 90], [1.0, 1, 2]
    assert smoothed(p, h, v, strength=0).tolist() == p
    mean = np.average(logit(p), weights=1 / np.array(v))
    assert smoothed(p, h, v, strength=1e9) == pytest.approx(sigmoid(mean).repeat(3) if np.ndim(mean) else sigmoid(mean))
    assert smoothed([0.3], [7], [1], strength=5).tolist() == [0.3]
    noisy = smoothed([0.2, 0.8], [7, 30], [1e-6, 1.0], strength=1.0)
    assert noisy[0] == pytest.approx(0.2, abs=1e-3)
    assert noisy[1] < 0.6


def test_it_is_learnt_where_noise_is_shared_and_off_where_it_is_not():
    on = HorizonSmoothing().fit(series(600, noise=2.0, spread=0.0))
    assert on.strength > 0
    off = HorizonSmoothing().fit(series(200, noise=0.05, spread=2.0))
    assert off.strength == 0
    assert "off" in off.told
    assert HorizonSmoothing().fit(series(200, noise=1.0, spread=0.2).take(np.arange(0))).training == Training()


def test_it_helps_on_other_questions_and_refuses_its_own():
    fitted = HorizonSmoothing().fit(series(600, noise=2.0, spread=0.0))
    test = series(400, noise=2.0, spread=0.0, seed=9)
    better = np.mean((fitted.probabilities(test.rows) - test.outcome) ** 2)
    assert better < np.mean((test.rows.raw - test.outcome) ** 2)
    with pytest.raises(TrainingOverlap):
        apply(fitted, test.rows)


def test_rows_without_horizon_or_trials_stay_as_they_are():
    examples = series(3, noise=1.0, spread=0.5)
    trials, horizon = examples.rows.trials.copy(), examples.rows.horizon.copy()
    trials[:, 0], horizon[1] = np.nan, np.nan
    columns = {k: getattr(examples.rows, k) for k in ("question", "due", "target", "source", "subtype", "kind")}
    more = {k: getattr(examples.rows, k) for k in ("price", "prior", "cluster")}
    rows = TrialRows(trials=trials, horizon=horizon, **columns, **more)
    out = FittedHorizonSmoothing(strength=1.0).probabilities(rows)
    assert np.isnan(out[0])
    assert out[1] == rows.raw[1]
    assert (out[4:] != rows.raw[4:]).any()
    same = FittedHorizonSmoothing(strength=1.0).probabilities(rows.with_trials(np.full((2, len(rows)), 0.3)))
    assert same == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("variance", "strength", "told"), [([0, 1], 1, "variance"), ([1, 1], -1, "strength"), ([1], 1, "shapes differ")]
)
def test_nonsense_is_refused(variance, strength, told):
    with pytest.raises(ValueError, match=told):
        smoothed([0.2, 0.3], [7, 14], variance, strength=strength)
