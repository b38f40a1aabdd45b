import numpy as np
import pytest

from foretell.forecasters.series.changes import OriginOutcomes, OriginRegression, independent_share


def regression(
    x: np.ndarray, y: np.ndarray, *, lead: int = 1, strength: float = 1e-9, prior: float = 0.0
) -> OriginRegression:
    known = len(x) - lead
    outcomes = OriginOutcomes(y=y[:known], valid=np.ones(known, bool), n_origins=len(x), lead=lead, share=1.0)
    k = x.shape[1]
    return OriginRegression(x=x, outcomes=outcomes, prior=np.full(k, prior), strength=np.full(k, strength))


def test_last_origin_is_predicted_by_least_squares_on_all_known_outcomes() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    fitted = regression(x, y, lead=5).using([0, 1])
    expected = x[-1] @ np.linalg.lstsq(x[:195], y[:195], rcond=None)[0]
    assert fitted.mean[-1] == pytest.approx(expected)


def test_without_outcomes_the_prediction_is_the_prior() -> None:
    x = np.ones((3, 1))
    fitted = regression(x, np.array([9.0, 9.0, 9.0]), lead=3, strength=2.0, prior=0.5).using([0])
    assert fitted.mean.tolist() == [0.5, 0.5, 0.5]
    assert fitted.spread.tolist() == [1.0, 1.0, 1.0]


def test_no_origin_uses_an_outcome_not_yet_known() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((100, 2)), rng.standard_normal(100)
    changed = y.copy()
    changed[60:] += 100
    # Outcome 60 is known at origin 64, so it must not change earlier origins.
    before = regression(x, y, lead=4).using([0, 1]).mean[:64]
    assert regression(x, changed, lead=4).using([0, 1]).mean[:64].tolist() == before.tolist()


def test_overlapping_sums_are_counted_once() -> None:
    steps = np.random.default_rng(2).standard_normal(20_000)
    sums = np.convolve(steps, np.ones(10), mode="valid")
    assert independent_share(sums, np.ones(len(sums), bool), least=0.01) == pytest.approx(0.1, rel=0.15)
    assert independent_share(steps, np.ones(len(steps), bool), least=0.01) == 1.0
